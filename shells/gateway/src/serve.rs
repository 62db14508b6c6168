//! `tidegate gateway run`: opens the rooms, joins them, and closes them in order.
//!
//! Whatever can be refused is refused before the banner is printed; from then on the gateway
//! answers. It decides when to go down (a signal, or a driver that ended) and nothing else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::serve::Listener;
use tidegate_driver::{Client, Clock, Driver, DriverError, SystemClock};
use tidegate_server::{Server, ServerConfig, TcpPort, Token};
use tidegate_store::{SqliteStore, StateDir};
use tokio::task::JoinHandle;

use crate::banner::Banner;
use crate::cli::RunArgs;
use crate::config::{Configuration, Settings};
use crate::exit::Exit;
use crate::model::Model;
use crate::out;
use crate::problem::{Origin, Problem};
use crate::random;
use crate::signals::Signals;
use crate::target;

/// Runs the command.
pub fn gateway(args: &RunArgs) -> Exit {
    match open(args).and_then(|rooms| run(args, rooms)) {
        Ok(exit) => exit,
        Err(problem) => problem.tell(false),
    }
}

/// What is opened before anything runs.
struct Rooms {
    dir: StateDir,
    store: SqliteStore,
    token: Token,
    model: Model,
    settings: Settings,
    boot_id: String,
}

fn open(args: &RunArgs) -> Result<Rooms, Problem> {
    let configuration = Configuration::load(&args.given)?;
    configuration.tell_warnings();
    let settings = configuration.settings()?;
    let model = Model::choose(&settings)?;
    let path = target::state_dir(&args.given.flags.state)?;
    let refused = |error: &dyn std::error::Error| Problem::configuration(error.to_string());
    let dir = StateDir::acquire(&path).map_err(|error| refused(&error))?;
    let kept = dir.token().map_err(|error| refused(&error))?;
    let token = match &settings.token {
        Some((own, _)) => Token::new(own.reveal()),
        None => Token::new(kept.reveal()),
    };
    let store = SqliteStore::open(&dir).map_err(|error| refused(&error))?;
    Ok(Rooms {
        dir,
        store,
        token,
        model,
        settings,
        boot_id: random::name()?,
    })
}

fn run(args: &RunArgs, rooms: Rooms) -> Result<Exit, Problem> {
    // One thread: the driver is one loop, connections are small, the store has its own thread.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Problem::configuration(format!("the operating system refuses: {error}"))
        })?;
    let ended = runtime.block_on(serve(args, rooms));
    // In order, all is done by now; at a third signal, nothing more is waited for.
    runtime.shutdown_background();
    ended
}

async fn serve(args: &RunArgs, rooms: Rooms) -> Result<Exit, Problem> {
    let signals = Signals::listen()?;
    let (port, address) = bind(rooms.settings.port).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let key = rooms.store.fingerprint_key();
    let config = rooms.model.config(&rooms.settings);
    let budget_ms = config.drain_budget_ms;
    let models = Arc::clone(&rooms.model.models);
    let (driver, client) = Driver::new(config, rooms.store, models, Arc::clone(&clock), key);
    let server = Server::new(
        ServerConfig {
            token: rooms.token,
            version: env!("CARGO_PKG_VERSION").into(),
            boot_id: rooms.boot_id,
        },
        client.clone(),
        clock,
    );
    let driver = tokio::spawn(driver.run());
    let banner = Banner {
        address,
        state_dir: rooms.dir.path(),
        is_default_dir: args.given.flags.state.state_dir.is_none(),
        config: args.given.flags.state.config.as_deref(),
        own_token: rooms.settings.token.as_ref().map(|(_, source)| source),
        model: &rooms.model.words,
    };
    out::line(&banner.text());
    tokio::select! {
        biased;
        ended = until_the_end(server, port, client, driver, &signals, budget_ms) => ended,
        () = signals.nth(3) => {
            out::err("tidegate: stopped at once by a third signal; accepted messages are kept.");
            Ok(Exit::Failed)
        }
    }
}

/// Serves until a signal comes or the driver ends. After a signal nothing new begins and what
/// is at work may end; then the connections are closed and, after them, the driver.
async fn until_the_end(
    server: Server,
    port: TcpPort,
    client: Client,
    mut driver: JoinHandle<Result<(), DriverError>>,
    signals: &Signals,
    budget_ms: u64,
) -> Result<Exit, Problem> {
    let mut ended = None;
    let shutdown = async {
        tokio::select! {
            biased;
            result = &mut driver => ended = Some(result),
            () = drained(&client, signals, budget_ms) => {}
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
async fn drained(client: &Client, signals: &Signals, budget_ms: u64) {
    signals.nth(1).await;
    out::err(&format!(
        "tidegate: stopping; what is at work may end within {} s, what waits runs after the next start. A second signal ends the waiting.",
        budget_ms / 1_000
    ));
    tokio::select! {
        biased;
        () = client.drain(None) => {}
        () = async {
            signals.nth(2).await;
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
