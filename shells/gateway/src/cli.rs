//! The command line: what can be typed, with its manual pages.
//!
//! It holds words only. What a command does stands in the module of its name; what its exit
//! codes mean stands in [`exit`](crate::exit).

mod hint;
mod values;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use serde_json::Value;
use tidegate_sim::{FULL_CAMPAIGN, Recording};
use tidegate_wire::Secret;

use crate::config::Given;
use crate::exit::Exit;
use crate::manual;

pub use hint::read;
pub use values::{Emit, Form, Planted, Seeds, faults};

/// The port of the gateway where nothing names another (surface 1.1).
pub const DEFAULT_PORT: u16 = 18_789;

/// An agent gateway whose every timing decision replays from a seed.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    long_about = manual::PROGRAM,
    after_long_help = manual::after(manual::PROGRAM_EXAMPLES, &Exit::ALL),
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway, or ask a running one.
    #[command(
        subcommand,
        long_about = manual::GATEWAY,
        after_long_help = manual::after(manual::GATEWAY_EXAMPLES, &Exit::ALL)
    )]
    Gateway(GatewayCommand),
    /// Send a message to the agent and stream its reply.
    #[command(
        long_about = manual::AGENT,
        after_long_help = manual::after(manual::AGENT_EXAMPLES, &manual::AGENT_EXITS)
    )]
    Agent(AgentArgs),
    /// Talk with the agent, line by line.
    #[command(
        long_about = manual::CHAT,
        after_long_help = manual::after(manual::CHAT_EXAMPLES, &manual::CHAT_EXITS)
    )]
    Chat(ChatArgs),
    /// See which tool calls wait for a person; allow or deny them.
    #[command(
        subcommand,
        long_about = manual::APPROVALS,
        after_long_help = manual::after(manual::APPROVALS_EXAMPLES, &Exit::CLIENT)
    )]
    Approvals(ApprovalsCommand),
    /// Check the configuration, show what it comes to, or print its schema.
    #[command(
        subcommand,
        long_about = manual::CONFIG,
        after_long_help = manual::after(manual::CONFIG_EXAMPLES, &manual::CONFIG_EXITS)
    )]
    Config(ConfigCommand),
    /// Simulate the core: seeds in, broken promises out.
    #[command(
        subcommand,
        long_about = manual::SIM,
        after_long_help = manual::after(manual::SIM_EXAMPLES, &manual::SIM_EXITS)
    )]
    Sim(SimCommand),
    /// Run timelines written as text.
    #[command(
        subcommand,
        long_about = manual::SCENARIO,
        after_long_help = manual::after(manual::SCENARIO_EXAMPLES, &manual::SCENARIO_EXITS)
    )]
    Scenario(ScenarioCommand),
}

/// The commands about the gateway.
#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Run the gateway in the foreground.
    #[command(
        long_about = manual::RUN,
        after_long_help = manual::after(manual::RUN_EXAMPLES, &manual::RUN_EXITS)
    )]
    Run(RunArgs),
    /// Ask a running gateway whether it is well.
    #[command(
        long_about = manual::HEALTH,
        after_long_help = manual::after(manual::HEALTH_EXAMPLES, &Exit::CLIENT)
    )]
    Health(HealthArgs),
    /// Call one method of a running gateway.
    #[command(
        long_about = manual::CALL,
        after_long_help = manual::after(manual::CALL_EXAMPLES, &Exit::CLIENT)
    )]
    Call(CallArgs),
}

/// The commands about tool calls that wait for a person.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// Show what waits, oldest first.
    #[command(
        long_about = manual::APPROVALS_LIST,
        after_long_help = manual::after(manual::APPROVALS_EXAMPLES, &Exit::CLIENT)
    )]
    List(ApprovalsArgs),
    /// Let a call run, this once.
    #[command(
        long_about = manual::APPROVALS_DECIDE,
        after_long_help = manual::after(manual::APPROVALS_EXAMPLES, &Exit::CLIENT)
    )]
    Allow(ApprovalArgs),
    /// Do not let a call run.
    #[command(
        long_about = manual::APPROVALS_DECIDE,
        after_long_help = manual::after(manual::APPROVALS_EXAMPLES, &Exit::CLIENT)
    )]
    Deny(ApprovalArgs),
}

/// The commands about the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say what is wrong with the configuration, all at once.
    #[command(
        long_about = manual::CONFIG_CHECK,
        after_long_help = manual::after(manual::CONFIG_CHECK_EXAMPLES, &manual::CONFIG_EXITS)
    )]
    Check(ConfigArgs),
    /// Show every setting and who set it.
    #[command(
        long_about = manual::CONFIG_SHOW,
        after_long_help = manual::after(manual::CONFIG_SHOW_EXAMPLES, &manual::CONFIG_EXITS)
    )]
    Show(ConfigArgs),
    /// Print the JSON Schema of the file.
    #[command(
        long_about = manual::CONFIG_SCHEMA,
        after_long_help = manual::after(manual::CONFIG_SCHEMA_EXAMPLES, &[Exit::Ok, Exit::Usage])
    )]
    Schema,
}

/// The commands of the simulator.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run a block of seeds.
    #[command(
        long_about = manual::SIM_RUN,
        after_long_help = manual::after(manual::SIM_RUN_EXAMPLES, &manual::SIM_EXITS)
    )]
    Run(SimRunArgs),
    /// Run a seed or a recording again and tell what happens.
    #[command(
        long_about = manual::SIM_REPLAY,
        after_long_help = manual::after(manual::SIM_REPLAY_EXAMPLES, &manual::SIM_REPLAY_EXITS)
    )]
    Replay(SimReplayArgs),
    /// Plant every fault in turn and see that the checkers find it.
    #[command(
        long_about = manual::SIM_AUDIT,
        after_long_help = manual::after(manual::SIM_AUDIT_EXAMPLES, &manual::SIM_AUDIT_EXITS)
    )]
    Audit(SimAuditArgs),
}

/// The commands about scenarios.
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Run scenario files and compare what comes with what they expect.
    #[command(
        long_about = manual::SCENARIO_RUN,
        after_long_help = manual::after(manual::SCENARIO_EXAMPLES, &manual::SCENARIO_EXITS)
    )]
    Run(ScenarioRunArgs),
}

/// Where the gateway keeps what must last.
#[derive(Clone, Debug, Default, Args)]
pub struct StateArgs {
    /// The state directory: database, token, key. Default: ~/.tidegate.
    #[arg(long, value_name = "DIR", env = "TIDEGATE_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
    /// The configuration file. Default: tidegate.json5 in the state directory, if it is there.
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// Which gateway a client command asks.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub state: StateArgs,
    /// The port of the gateway on this machine. Default: that of the configuration, or 18789.
    #[arg(long, env = "TIDEGATE_GATEWAY_PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// The whole address, instead of the port: ws://HOST:PORT.
    #[arg(long)]
    pub url: Option<String>,
    /// The gateway's token. Default, for a gateway on this machine: that of the configuration,
    /// or the token file of the state directory. Other users of the machine can see a flag; they cannot see the variable.
    #[arg(long, env = "TIDEGATE_GATEWAY_TOKEN", hide_env_values = true, value_parser = secret)]
    pub token: Option<Secret>,
}

/// `tidegate gateway run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub given: Given,
}

/// `tidegate config check` and `tidegate config show`.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub given: Given,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `tidegate gateway health`.
#[derive(Clone, Debug, Args)]
pub struct HealthArgs {
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub target: TargetArgs,
    /// Print the gateway's answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `tidegate gateway call`.
#[derive(Clone, Debug, Args)]
pub struct CallArgs {
    /// The method, for example `status` or `sessions.list`.
    pub method: String,
    /// Its parameters, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    pub params: Option<Value>,
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub target: TargetArgs,
    /// Print errors as JSON too.
    #[arg(long)]
    pub json: bool,
}

/// `tidegate approvals list`.
#[derive(Clone, Debug, Args)]
pub struct ApprovalsArgs {
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub target: TargetArgs,
    /// Print the gateway's answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `tidegate approvals allow` and `tidegate approvals deny`.
#[derive(Clone, Debug, Args)]
pub struct ApprovalArgs {
    /// Which call: the id that the list shows.
    #[arg(value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub id: String,
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub target: TargetArgs,
    /// Print the gateway's answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `tidegate agent`.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// The message.
    #[arg(short, long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub message: String,
    /// The conversation that the message belongs to. Default: the agent's main session.
    #[arg(long, visible_alias = "session", value_name = "K", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub session_key: Option<String>,
    /// Seconds of work after which the run is ended; 0 for no limit. Default: the gateway's
    /// own limit.
    #[arg(long, value_name = "S")]
    pub timeout: Option<u64>,
    /// The name of this run. Sending the same message under the same name again gives
    /// the answer of the first time. Default: a new name.
    #[arg(long, value_name = "K", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub target: TargetArgs,
    /// Print the final answer as JSON instead of streaming its text.
    #[arg(long)]
    pub json: bool,
}

/// `tidegate chat`.
#[derive(Clone, Debug, Args)]
pub struct ChatArgs {
    /// The session to talk in: `agent:main:NAME`, or `NAME` for short. Default: the agent's main
    /// session.
    #[arg(long, alias = "session-key", value_name = "KEY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub session: Option<String>,
    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment here would become the command's own help"
    )]
    pub target: TargetArgs,
}

/// `tidegate sim run`.
#[derive(Clone, Debug, Args)]
pub struct SimRunArgs {
    /// The seeds to run: from A up to and without B. With --inputs or --until-plateau it may be
    /// left out: then from 0 on, until that is reached.
    #[arg(
        long,
        value_name = "A..B",
        required_unless_present_any = ["inputs", "until_plateau", "fault"]
    )]
    pub seeds: Option<Seeds>,
    /// Stop after at least so many inputs to the core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub inputs: Option<u64>,
    /// Stop when so many seeds brought nothing new: no mark, no step of a run, no output after
    /// an input. Without a number: 2000.
    #[arg(
        long,
        value_name = "SEEDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2000",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub until_plateau: Option<u64>,
    /// End with exactly one line of JSON.
    #[arg(long)]
    pub json: bool,
    /// Threads to use. Default: one a core. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Plant this fault around the core; the checkers must find it. `list` names the faults.
    #[arg(long, value_name = "NAME")]
    pub fault: Option<Planted>,
    /// Write what was found into a file: scenario or recording, or either with =PATH. Default
    /// path: CODE-SEED with that ending, here.
    #[arg(long, value_name = "scenario[=PATH]")]
    pub emit: Option<Emit>,
}

/// `tidegate sim audit`.
#[derive(Clone, Debug, Args)]
pub struct SimAuditArgs {
    /// Seeds within which a fault must be found.
    #[arg(
        long,
        value_name = "SEEDS",
        default_value_t = FULL_CAMPAIGN,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub within: u64,
}

/// `tidegate scenario run`.
#[derive(Clone, Debug, Args)]
pub struct ScenarioRunArgs {
    /// Scenario files, or folders that hold some. Default: scenarios/.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Kill the process before each input and after each single output, and judge what holds
    /// over a crash.
    #[arg(long)]
    pub crash_at_every_step: bool,
    /// Run every order of what falls on one instant, up to a thousand for each scenario.
    #[arg(long)]
    pub orders: bool,
    /// Print what happened.
    #[arg(long)]
    pub trace: bool,
    /// Write what happened into the files that hold an expected trace.
    #[arg(long)]
    pub bless: bool,
}

/// `tidegate sim replay`.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("source")))]
pub struct SimReplayArgs {
    /// The seed to run again.
    #[arg(
        long,
        value_name = "N",
        group = "source",
        required_unless_present_any = ["recording", "file", "fault"]
    )]
    pub seed: Option<u64>,
    /// The recording to run again, as it was printed.
    #[arg(long, value_name = "STRING", group = "source")]
    pub recording: Option<Recording>,
    /// The file that holds a recording.
    #[arg(long, value_name = "PATH", group = "source")]
    pub file: Option<PathBuf>,
    /// The fault that the seed was run with; `list` names the faults. A recording names its own.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["recording", "file"])]
    pub fault: Option<Planted>,
    /// Print every input and what followed from it, in full.
    #[arg(long)]
    pub trace: bool,
}

/// Reads a token of the command line or of its variable.
pub fn secret(text: &str) -> Result<Secret, String> {
    match text.trim() {
        "" => Err("the token is empty".into()),
        token => Ok(Secret::new(token)),
    }
}

fn json_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("expected a JSON object, for example '{\"limit\":5}'".into()),
        Err(error) => Err(format!("this is not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_manual_page_has_examples_and_exit_codes() {
        fn check(command: &mut clap::Command) {
            if command.get_name() == "help" {
                return;
            }
            let page = command.render_long_help().to_string();
            for heading in ["Examples:", "Exit codes:"] {
                assert!(
                    page.contains(heading),
                    "{} lacks {heading}",
                    command.get_name()
                );
            }
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut Cli::command());
    }

    /// A campaign without end would be a trap; a recording has its own fault.
    #[test]
    fn the_simulator_is_told_when_to_stop_and_one_thing_to_replay() {
        let recording = "tg2-00";
        for wrong in [
            vec!["run"],
            vec!["replay"],
            vec!["replay", "--seed", "1", "--file", "a"],
            vec!["replay", "--recording", recording],
            vec!["replay", "--file", "a", "--fault", "canary"],
            vec!["run", "--seeds", "0..1", "--until-plateau=0"],
        ] {
            let line = ["tidegate", "sim"].into_iter().chain(wrong.clone());
            assert!(Cli::try_parse_from(line).is_err(), "{wrong:?}");
        }
        for right in [
            vec!["run", "--inputs", "9"],
            vec!["run", "--fault", "list"],
            vec!["run", "--until-plateau", "--seeds", "0..9"],
            vec!["replay", "--seed", "1", "--fault", "canary", "--trace"],
            vec!["replay", "--fault", "list"],
            vec!["replay", "--file", "a"],
            vec!["audit"],
        ] {
            let line = ["tidegate", "sim"].into_iter().chain(right.clone());
            assert!(Cli::try_parse_from(line).is_ok(), "{right:?}");
        }
    }

    #[test]
    fn parameters_are_an_object() {
        assert!(json_object("{\"a\":1}").is_ok());
        assert!(json_object("[1]").is_err());
        assert!(json_object("{").is_err());
    }

    #[test]
    fn a_server_needs_its_model() {
        let line = [
            "tidegate",
            "gateway",
            "run",
            "--provider-url",
            "http://h/v1",
        ];
        assert!(Cli::try_parse_from(line).is_err());
        let whole = line.into_iter().chain(["--model", "m"]);
        assert!(Cli::try_parse_from(whole).is_ok());
    }
}
