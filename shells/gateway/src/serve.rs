//! `tidegate gateway run`: opens the rooms, joins them, and closes them in order.
//!
//! Whatever can be refused is refused before the banner is printed; from then on the gateway
//! answers. It decides when to go down (a signal, or a driver that ended) and nothing else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::serve::Listener;
use sd_notify::NotifyState;
use tidegate_driver::{Client, Clock, Driver, DriverError, SystemClock};
use tidegate_server::{Server, ServerConfig, TcpPort, Token};
use tidegate_store::{SqliteStore, StateDir};
use tokio::task::JoinHandle;

use crate::banner::Banner;
use crate::cli::RunArgs;
use crate::config::{Configuration, Settings};
use crate::exec::Offered;
use crate::exit::Exit;
use crate::model::Model;
use crate::out;
use crate::problem::{Origin, Problem};
use crate::random;
use crate::signals::Signals;
use crate::supervisor;
use crate::target;

/// Runs the command.
pub fn gateway(args: &RunArgs) -> Exit {
    match run(args) {
        Ok(exit) => exit,
        Err(problem) => problem.tell(false),
    }
}

/// What is opened before anything runs.
struct Rooms {
    port: TcpPort,
    address: SocketAddr,
    dir: StateDir,
    store: SqliteStore,
    token: Token,
    model: Model,
    offered: Offered,
    settings: Settings,
    boot_id: String,
}

async fn open(args: &RunArgs) -> Result<Rooms, Problem> {
    let configuration = Configuration::load(&args.given)?;
    configuration.tell_warnings();
    let settings = configuration.settings()?;
    let model = Model::choose(&settings)?;
    let path = target::state_dir(&args.given.flags.state)?;
    let early = match bind(settings.port).await {
        // Nothing is made that would not be used.
        Err(problem) if !is_in_use(&path) => return Err(problem),
        early => early,
    };
    let refused = |error: &dyn std::error::Error| Problem::configuration(error.to_string());
    let dir = StateDir::acquire(&path).map_err(|error| refused(&error))?;
    let kept = dir.token().map_err(|error| refused(&error))?;
    let token = match &settings.token {
        Some((own, _)) => Token::new(own.reveal()),
        None => Token::new(kept.reveal()),
    };
    let offered = Offered::choose(&settings, &dir)?;
    let store = SqliteStore::open(&dir).map_err(|error| refused(&error))?;
    let (port, address) = match early {
        Ok(bound) => bound,
        // Whoever owned the directory until now may have had the port too.
        Err(_) => bind(settings.port).await?,
    };
    Ok(Rooms {
        port,
        address,
        dir,
        store,
        token,
        model,
        offered,
        settings,
        boot_id: random::name()?,
    })
}

/// Whether anything is in the state directory, be it a gateway's or a file of the operator's.
fn is_in_use(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

fn run(args: &RunArgs) -> Result<Exit, Problem> {
    // One thread: the driver is one loop, connections are small, the store has its own thread.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Problem::configuration(format!("the operating system refuses: {error}"))
        })?;
    let ended = runtime.block_on(async { serve(args, open(args).await?).await });
    // In order, all is done by now; at a third signal, nothing more is waited for.
    runtime.shutdown_background();
    ended
}

async fn serve(args: &RunArgs, rooms: Rooms) -> Result<Exit, Problem> {
    let signals = Signals::listen()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let key = rooms.store.fingerprint_key();
    let config = rooms.model.config(&rooms.settings);
    let budget_ms = config.drain_budget_ms;
    let models = Arc::clone(&rooms.model.models);
    let tools = Arc::clone(&rooms.offered.tools);
    let (driver, client) = Driver::new(config, rooms.store, models, tools, Arc::clone(&clock), key);
    let server = Server::new(
        ServerConfig {
            token: rooms.token,
            version: env!("CARGO_PKG_VERSION").into(),
            boot_id: rooms.boot_id,
        },
        client.clone(),
        Arc::clone(&clock),
    );
    let driver = tokio::spawn(driver.run());
    let banner = Banner {
        address: rooms.address,
        state_dir: rooms.dir.path(),
        is_default_dir: args.given.flags.state.state_dir.is_none(),
        config: args.given.flags.state.config.as_deref(),
        own_token: rooms.settings.token.as_ref().map(|(_, source)| source),
        model: &rooms.model.words,
        tools: &rooms.offered.words,
    };
    out::line(&banner.text());
    tokio::spawn(supervisor::tell(vec![NotifyState::Ready]));
    let stop = Stop {
        signals: &signals,
        clock,
        budget_ms,
    };
    tokio::select! {
        biased;
        ended = until_the_end(server, rooms.port, client, driver, stop) => ended,
        () = signals.nth(3) => {
            out::err("tidegate: stopped at once by a third signal; accepted messages are kept.");
            Ok(Exit::Failed)
        }
    }
}

/// What a stop goes by.
struct Stop<'a> {
    signals: &'a Signals,
    clock: Arc<dyn Clock>,
    /// How long the runs at work are waited for.
    budget_ms: u64,
}

/// Serves until a signal comes or the driver ends. After a signal nothing new begins and what
/// is at work may end; then the connections are closed and, after them, the driver.
async fn until_the_end(
    server: Server,
    port: TcpPort,
    client: Client,
    mut driver: JoinHandle<Result<(), DriverError>>,
    stop: Stop<'_>,
) -> Result<Exit, Problem> {
    let mut ended = None;
    let shutdown = async {
        tokio::select! {
            biased;
            result = &mut driver => ended = Some(result),
            () = drained(&client, &stop) => {}
        }
    };
    server.serve(port, shutdown).await;
    let result = match ended {
        Some(result) => result,
        None => {
            client.stop().await;
            driver.await
        }
    };
    match result {
        Ok(Ok(())) => Ok(Exit::Ok),
        Ok(Err(error)) => Err(broken(error)),
        Err(error) => Err(Problem::new(
            Exit::Failed,
            Origin::Cli,
            format!("the driver broke: {error}"),
        )
        .remedy(RESUMED)),
    }
}

/// Returns when a signal has come and nothing is at work any more; a second signal ends the
/// waiting.
async fn drained(client: &Client, stop: &Stop<'_>) {
    let (signals, budget_ms) = (stop.signals, stop.budget_ms);
    signals.nth(1).await;
    let clock = Arc::clone(&stop.clock);
    // Not waited for: it goes on while connections are closed, and ends with the process.
    let asking = tokio::spawn(async move {
        supervisor::ask_for_patience(clock.as_ref(), budget_ms, supervisor::tell).await;
    });
    out::err(&format!(
        "tidegate: stopping; what is at work may end within {} s, what waits runs after the next start. A second signal ends the waiting.",
        budget_ms / 1_000
    ));
    tokio::select! {
        biased;
        () = client.drain(None) => {}
        () = async {
            signals.nth(2).await;
            // What was asked for last is enough for the end; a process that is stuck is killed then.
            asking.abort();
            client.drain(Some(0)).await;
        } => {}
    }
}

const RESUMED: &str = "Accepted messages are kept; the next start goes on with them.";

fn broken(error: DriverError) -> Problem {
    let exit = match error {
        DriverError::Halted(_) => Exit::Halt,
        DriverError::StoreLost => Exit::Failed,
        DriverError::OpenWorkUnknown(_) => Exit::Configuration,
    };
    Problem::new(exit, Origin::Cli, error.to_string()).remedy(RESUMED)
}

async fn bind(port: u16) -> Result<(TcpPort, SocketAddr), Problem> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = async {
        let listener = TcpPort::bind(address).await?;
        let address = listener.local_addr()?;
        io::Result::Ok((listener, address))
    };
    bound.await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => format!("port {port} of 127.0.0.1 is in use"),
            _ => format!("port {port} of 127.0.0.1 cannot be listened on: {error}"),
        };
        Problem::configuration(why).remedy(
            "Choose another with --port (0 takes any free one). `tidegate gateway health` says \
             whether a gateway has it.",
        )
    })
}
