//! The program `tidegate`: it reads the command line and composes the rooms.
//!
//! No decision about messages, runs or time is taken here; those are the core's.

mod again;
mod agent;
mod approvals;
mod banner;
mod call;
mod called;
mod chat;
mod cli;
mod config;
mod exec;
mod exit;
mod logs;
mod manual;
mod model;
mod out;
mod problem;
mod random;
mod rpc;
mod scenario;
mod serve;
mod shown;
mod signals;
mod simulate;
mod state;
mod supervisor;
mod target;
mod tool_lines;
mod transcript;

use std::future::Future;
use std::process::ExitCode;

use tidegate_wire::ApprovalDecision;

use crate::cli::{
    ApprovalsCommand, Command, ConfigCommand, GatewayCommand, ScenarioCommand, SimCommand,
};
use crate::exit::Exit;
use crate::problem::Problem;

fn main() -> ExitCode {
    let cli = cli::read();
    let exit = match logs::start() {
        Ok(()) => run(&cli.command),
        Err(problem) => problem.tell(false),
    };
    exit.into()
}

fn run(command: &Command) -> Exit {
    match command {
        Command::Agent(args) => block_on(agent::agent(args)),
        Command::Chat(args) => block_on(chat::chat(args)),
        Command::Approvals(ApprovalsCommand::List(args)) => block_on(approvals::list(args)),
        Command::Approvals(ApprovalsCommand::Allow(args)) => {
            block_on(approvals::decide(args, ApprovalDecision::AllowOnce))
        }
        Command::Approvals(ApprovalsCommand::Deny(args)) => {
            block_on(approvals::decide(args, ApprovalDecision::Deny))
        }
        Command::Gateway(GatewayCommand::Health(args)) => block_on(call::health(args)),
        Command::Gateway(GatewayCommand::Call(args)) => block_on(call::call(args)),
        Command::Gateway(GatewayCommand::Run(args)) => serve::gateway(args),
        Command::Config(ConfigCommand::Check(args)) => config::check(args),
        Command::Config(ConfigCommand::Show(args)) => config::show(args),
        Command::Config(ConfigCommand::Schema) => config::schema(),
        Command::Scenario(ScenarioCommand::Run(args)) => scenario::run(args),
        Command::Sim(SimCommand::Run(args)) => simulate::run(args),
        Command::Sim(SimCommand::Replay(args)) => simulate::replay(args),
        Command::Sim(SimCommand::Audit(args)) => simulate::audit(args),
    }
}

/// Runs a command on one thread: it waits for sockets and does nothing heavy.
fn block_on(command: impl Future<Output = Exit>) -> Exit {
    match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => {
            Problem::configuration(format!("the operating system refuses: {error}")).tell(false)
        }
    }
}
