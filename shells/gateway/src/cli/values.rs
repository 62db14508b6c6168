//! The values of the simulator's flags: seeds, faults, what to write.
//!
//! It owns how they are written on the command line. What they make the simulator do is not
//! known here.

use std::path::PathBuf;
use std::str::FromStr;

use tidegate_sim::Fault;

/// What a finding is written down as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A script for `tidegate scenario run`.
    Scenario,
    /// A file for `tidegate sim replay --file`.
    Recording,
}

impl Form {
    /// Its name, which is the ending of its files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Recording => "recording",
        }
    }
}

/// What to write of a finding, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emit {
    /// As what.
    pub form: Form,
    /// A folder, or the file; `None`: the folder that the command runs in.
    pub path: Option<PathBuf>,
}

impl FromStr for Emit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((_, "")) => return Err("the path after = is empty".into()),
            Some((name, path)) => (name, Some(PathBuf::from(path))),
            None => (text, None),
        };
        let form = [Form::Scenario, Form::Recording]
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or("expected scenario or recording, or either with =PATH")?;
        Ok(Self { form, path })
    }
}

/// A block of seeds, its end excluded. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// One beyond the last.
    pub end: u64,
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected FIRST..END with FIRST below END, for example 0..2000";
        let (first, end) = text.split_once("..").ok_or(expected)?;
        let number = |part: &str| part.parse::<u64>().map_err(|_| expected.to_owned());
        let seeds = Self {
            first: number(first)?,
            end: number(end)?,
        };
        if seeds.first < seeds.end {
            Ok(seeds)
        } else {
            Err(expected.into())
        }
    }
}

/// What `--fault` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The names of the faults, and no campaign.
    List,
    /// A campaign with this fault.
    Fault(Fault),
}

impl FromStr for Planted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "list" => Ok(Self::List),
            name => fault(name).map(Self::Fault),
        }
    }
}

/// Reads the name of a fault.
///
/// # Errors
/// If there is none of that name: all that there are.
fn fault(name: &str) -> Result<Fault, String> {
    Fault::from_name(name)
        .ok_or_else(|| format!("there is no such fault; there are:\n{}", faults("  ")))
}

/// The faults, one a line: its name and what it does.
#[must_use]
pub fn faults(indent: &str) -> String {
    let lines = Fault::ALL
        .iter()
        .map(|fault| format!("{indent}{:<18} {}", fault.name(), fault.says()));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_block_that_is_not_empty() {
        assert_eq!("3..5".parse(), Ok(Seeds { first: 3, end: 5 }));
        for wrong in ["", "3", "5..3", "3..3", "a..b", "3..=5", "-1..2"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_to_emit_is_a_form_and_maybe_a_path() {
        let scenario = |path: Option<&str>| Emit {
            form: Form::Scenario,
            path: path.map(PathBuf::from),
        };
        assert_eq!("scenario".parse(), Ok(scenario(None)));
        assert_eq!("scenario=a/b=c".parse(), Ok(scenario(Some("a/b=c"))));
        for wrong in ["", "scenario=", "script", "=a", "Scenario"] {
            assert!(wrong.parse::<Emit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_fault_is_named_or_all_are_asked_for() {
        assert_eq!("list".parse(), Ok(Planted::List));
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(Planted::Fault(*fault)));
        }
        let refused = "lst".parse::<Planted>().expect_err("there is none");
        assert!(refused.contains(&faults("  ")), "{refused}");
    }
}
