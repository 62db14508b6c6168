//! `tidegate config check|show|schema`.
//!
//! They see what `gateway run` with the same flags and variables would see, and start nothing.

use serde_json::{Value, json};

use super::source::{Finding, Source};
use super::{Configuration, schema as schemas, show as shows};
use crate::cli::ConfigArgs;
use crate::exit::Exit;
use crate::out;
use crate::problem::Problem;

/// `tidegate config check`.
pub fn check(args: &ConfigArgs) -> Exit {
    let configuration = match Configuration::load(&args.given) {
        Ok(configuration) => configuration,
        Err(problem) => return problem.tell(args.json),
    };
    configuration.tell_warnings();
    let settled = configuration.settings();
    if args.json {
        out::json(&configuration.judgement(settled.as_ref().err()));
    }
    match settled {
        Err(problem) => problem.tell(false),
        Ok(_) => {
            if !args.json {
                out::line(&configuration.praise());
            }
            Exit::Ok
        }
    }
}

/// `tidegate config show`.
pub fn show(args: &ConfigArgs) -> Exit {
    let configuration = match Configuration::load(&args.given) {
        Ok(configuration) => configuration,
        Err(problem) => return problem.tell(args.json),
    };
    configuration.tell_warnings();
    if let Err(problem) = configuration.settings() {
        return problem.tell(args.json);
    }
    let rows = shows::rows(&configuration.reading.values);
    if args.json {
        let file = configuration.is_there.then_some(&configuration.file);
        let file = file.map(|file| file.display().to_string());
        out::json(&json!({ "file": file, "settings": shows::json(rows) }));
    } else {
        out::line(&shows::text(&rows));
    }
    Exit::Ok
}

/// `tidegate config schema`.
pub fn schema() -> Exit {
    out::json(&schemas::schema());
    Exit::Ok
}

impl Configuration {
    fn praise(&self) -> String {
        let file = self.file.display();
        match (self.is_there, self.reading.warnings.count()) {
            (false, _) => format!("no file {file}; the defaults hold"),
            (true, 0) => format!("{file}: no mistakes"),
            (true, 1) => format!("{file}: no mistakes, a warning"),
            (true, more) => format!("{file}: no mistakes, {more} warnings"),
        }
    }

    fn judgement(&self, refusal: Option<&Problem>) -> Value {
        let told = |findings: &super::Findings| -> Value {
            findings.sorted().into_iter().map(finding).collect()
        };
        let mut judgement = refusal.map_or_else(|| json!({ "ok": true }), Problem::json);
        judgement["file"] = self.file.display().to_string().into();
        judgement["problems"] = told(&self.reading.problems);
        judgement["warnings"] = told(&self.reading.warnings);
        judgement
    }
}

fn finding(finding: &Finding) -> Value {
    let mut told = json!({
        "key": finding.place.to_string(),
        "message": finding.says,
        "source": finding.source.to_string(),
    });
    if let Source::File(_, at) = finding.source {
        told["line"] = at.line.into();
        told["column"] = at.column.into();
    }
    if let Some(nearest) = &finding.nearest {
        told["nearest"] = nearest.clone().into();
    }
    told
}
