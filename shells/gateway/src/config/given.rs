//! What the command line and the environment say, and which of the two said it.
//!
//! It owns the flags that stand for settings. Whether what they say fits the file is judged
//! where both meet.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use tidegate_wire::Secret;

use super::source::Source;
use super::table::{LONGEST_SECONDS, MOST_RETRIES};
use crate::cli::{StateArgs, secret};

/// The variable with the provider's key. No flag: other users of the machine could see one.
pub const KEY_VARIABLE: &str = "TIDEGATE_PROVIDER_KEY";

/// The flags that stand for settings.
#[derive(Clone, Debug, Default, Args)]
pub struct Flags {
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub state: StateArgs,
    /// The port to listen on, on 127.0.0.1. 0 takes any free one and prints it. Default: 18789.
    #[arg(long, env = "TIDEGATE_GATEWAY_PORT")]
    pub port: Option<u16>,
    /// The token that clients must show. Default: the one kept in the state directory, made
    /// at the first start.
    #[arg(long, env = "TIDEGATE_GATEWAY_TOKEN", hide_env_values = true, value_parser = secret)]
    pub token: Option<Secret>,
    /// An OpenAI-compatible server, up to and with /v1, instead of the configured provider and
    /// its fallbacks.
    /// Its key, if it needs one, comes from the variable TIDEGATE_PROVIDER_KEY and from
    /// nowhere else.
    #[arg(long, value_name = "URL", requires = "model")]
    pub provider_url: Option<String>,
    /// The model to ask that server, or the configured provider, for.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Seconds without progress after which a model call is given up. Without it: 120 for a
    /// server in the cloud, 300 for a self-hosted one; a local one has 300 to begin and no
    /// limit after that.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=LONGEST_SECONDS))]
    pub provider_timeout: Option<u64>,
    /// How often a run asks its model again after a call that failed for a while: 0 to 9.
    /// Without it: 8 times, and 9 where the provider limits the rate.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MOST_RETRIES))]
    pub provider_retries: Option<u64>,
}

/// The flags and variables of a command, with who gave what.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What was given.
    pub flags: Flags,
    /// The arguments whose value is their variable's.
    by_variable: BTreeSet<&'static str>,
}

/// The settings that have a flag and a variable: name of the argument, flag, variable.
const BOTH: [(&str, &str, &str); 2] = [
    ("port", "--port", "TIDEGATE_GATEWAY_PORT"),
    ("token", "--token", "TIDEGATE_GATEWAY_TOKEN"),
];

impl Given {
    /// Who set the argument `id`, one of `port` and `token`.
    #[must_use]
    pub fn source(&self, id: &str) -> Source {
        let known = BOTH.iter().find(|(known, ..)| *known == id);
        let (_, flag, variable) = known.expect("only arguments with a variable are asked for");
        if self.by_variable.contains(id) {
            Source::Variable(variable)
        } else {
            Source::Flag(flag)
        }
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_variable = |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        let ids = BOTH.iter().map(|(id, ..)| *id);
        let by_variable = ids.filter(|id| is_variable(id)).collect();
        Ok(Self {
            flags: Flags::from_arg_matches(matches)?,
            by_variable,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: clap::Command) -> clap::Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Flags::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::table::KEYS;

    /// The table's flags and variables are those of the command line.
    #[test]
    fn every_flag_and_variable_of_the_table_exists() {
        let command = Flags::augment_args(clap::Command::new("x"));
        for key in KEYS {
            let Some(flag) = key.flag else {
                assert!(
                    key.variable.is_none_or(|name| name == KEY_VARIABLE),
                    "{}",
                    key.path
                );
                continue;
            };
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_long().map(|long| format!("--{long}")).as_deref() == Some(flag))
                .unwrap_or_else(|| panic!("{flag} of {}", key.path));
            let variable = arg.get_env().and_then(|name| name.to_str());
            assert_eq!(variable, key.variable, "{}", key.path);
        }
    }
}
