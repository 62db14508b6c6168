//! From a scenario to its text.
//!
//! What is written reads back as the same scenario; a shrinker writes its finds with it.

use std::fmt;

use super::ast::{Scenario, When};
use super::units::{show_span, show_time};
use super::{conds, knobs, steps};

/// The column at which a step or an expectation begins.
const INDENT: usize = 9;

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.about {
            writeln!(f, "{}", format!("# {line}").trim_end())?;
        }
        if !self.proves.is_empty() {
            writeln!(f, "# proves: {}", self.proves.join(" "))?;
        }
        let settings = knobs::written(&self.config);
        if !settings.is_empty() {
            writeln!(f, "\nconfig")?;
            for (name, value) in settings {
                writeln!(f, "    {name:<19} {value}")?;
            }
        }
        if let Some(planted) = self.fault {
            write!(f, "\nfault    {}", planted.fault.name())?;
            match planted.occasion {
                1 => writeln!(f)?,
                n => writeln!(f, ", at occasion {n}")?,
            }
        }
        if !self.timeline.is_empty() {
            writeln!(f)?;
        }
        for block in &self.timeline {
            let mut head = format!("at {}", show_time(block.at_ms));
            if block.any_order {
                writeln!(f, "{head} in any order")?;
                head.clear();
            }
            if block.steps.is_empty() && !block.any_order {
                writeln!(f, "{head}")?;
            }
            for step in &block.steps {
                let room = INDENT.max(head.len() + 1);
                writeln!(f, "{head:<room$}{}", steps::write(step))?;
                head.clear();
            }
        }
        if !self.expects.is_empty() || self.violation.is_some() {
            writeln!(f)?;
        }
        for expect in &self.expects {
            let when = match expect.when {
                When::Between(from, to) => format!("expect   at {}", show_span(from, to)),
                When::By(to) => format!("expect   by {}", show_time(to)),
                When::Finally => "expect   finally".into(),
                When::Never => "never".into(),
                When::NotBetween(from, to) => format!("never    at {}", show_span(from, to)),
            };
            let unless = match expect.unless_crashed {
                true => ", unless crashed",
                false => "",
            };
            let head = format!("{when}{unless}");
            writeln!(f, "{head:<18} {}", conds::write(&expect.what))?;
        }
        if let Some(code) = self.violation {
            writeln!(f, "expect   violation {}", code.name())?;
        }
        if let Some(trace) = &self.trace {
            writeln!(f, "\ntrace")?;
            for line in trace {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}
