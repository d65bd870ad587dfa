//! `keyrail run`: the host.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use keyrail::access::{self, Access};
use keyrail::api::{Health, Server, Stage};
use keyrail::clock;
use keyrail::config::{BrokerAddress, Config};
use keyrail::engine::{Engine, Handler, Idle, Surroundings, WasmHandler};
use keyrail::modules::{Modules, OwnFiles};
use keyrail::service::{Search, Service};
use keyrail::telemetry::Telemetry;
use keyrail::telemetry::metrics::{FleetSource, Guests};
use keyrail::telemetry::traces::Traces;
use keyrail_ordering::{GroupName, OwnerId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::failure::{Exit, Usage, printed};
use super::numbers::{count, grouped, seconds_and_rate};
use super::{by, load, partitions, text};

/// Halted partitions that the summary shows; keyrail halted has all of them.
const HALTED_SHOWN_MAX: usize = 10;
/// What a process that was ended by a second signal answers.
const EXIT_INTERRUPTED: i32 = 130;

/// Run a host: own keys that have events, and run the handlers on them
///
/// It runs what is deployed with keyrail deploy, and the files that it is given here.
///
/// Any number of hosts can run on one Redis; one on an embedded file, where it serves FILE.sock so that the other
/// commands work beside it. SIGTERM, SIGHUP or Ctrl-C ends it in order: nothing new is started, running events end or are
/// stopped after engine.shutdown_grace_ms (5 s), keys are given up. A second signal ends it at once, with exit code 130;
/// nothing is lost by that either.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail run --handler itinerary.wasm\n  \
    keyrail run --broker redis://10.0.0.5 --handler a.wasm --handler b.wasm\n  \
    keyrail run --handler itinerary.wasm --until-idle && keyrail state dump itinerary\n\n\
    With --until-idle it ends with 3 if partitions are halted or emitted events abandoned.")]
pub(crate) struct Args {
    /// Component to run, whatever is deployed under its name; repeatable
    #[arg(long = "handler", value_name = "FILE.wasm")]
    handlers: Vec<PathBuf>,
    /// Folder of components to run: each FILE.wasm, with FILE.manifest.toml; watched while the host runs
    #[arg(long = "handlers", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// End when everything that was published is settled or halted
    #[arg(long)]
    until_idle: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let mut signals = Signals::new()?;
    if let Some(folder) = args.directory.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Usage(format!("--handlers {} is not a folder; make it, or give another", folder.display())).into());
    }
    let started_ms = clock::now_ms();
    let runtime = load::runtime(config)?;
    let modules = load::all(&runtime, &args.handlers).await?;
    let broker = access::open_broker(config).await?;
    let owner = owner_id();
    let traces = Traces::start(&config.traces, owner.as_str())?;
    let telemetry = Telemetry::new(traces.clone());
    telemetry.show(Arc::new(Guests(runtime.clone())));
    let service = Service::new(broker.clone(), config.publish.clone()).with_view_ttl_ms(config.api.view_ttl_ms);
    // This one counts nowhere: what is shown must not hold what shows it.
    telemetry.show(Arc::new(FleetSource::new(Arc::new(service.clone()))));
    let service = service.with_telemetry(telemetry.clone());
    let registrations: Vec<_> = modules.iter().map(|module| load::registration(module)).collect();
    let access = Access::Direct(service.clone());
    for handler in access.register(registrations).await? {
        info!(handler = %handler.handler, version = handler.version, "{}", handler.change);
    }
    let health = Health::default();
    let server = Server::start(service.clone(), socket(config).as_deref(), config, health.clone()).await?;
    let own = modules.clone();
    let handlers = modules.into_iter().map(|module| Arc::new(WasmHandler(module)) as Arc<dyn Handler>).collect();
    let surroundings = Surroundings { telemetry, ..Surroundings::default() };
    let mut engine = Engine::start_in(surroundings, broker.clone(), handlers, &config.engine, owner.clone())
        .await
        .context("cannot start the host")?;
    let own = OwnFiles { modules: own, directory: args.directory };
    let modules = Modules::start(service, runtime, &mut engine, own, &config.modules);
    let socket = server.path().map(|path| path.display().to_string());
    let url = server.url();
    info!(%owner, broker = broker.address(), socket, "the host is up");
    match &url {
        Some(url) => info!("the HTTP API and the dashboard are at {url}"),
        None if socket.is_none() && config.broker == BrokerAddress::Memory => {
            warn!("nobody can publish to this host; let it listen with --set http.listen=auto, or api.socket=PATH");
        }
        None => {}
    }
    let loaded = modules.until_settled();
    let up = health.clone();
    let starting = tokio::spawn(async move {
        loaded.await;
        up.enter(Stage::Serving);
    });
    let idle = tokio::select! {
        () = signals.next() => None,
        idle = until_idle(&engine, &modules), if args.until_idle => Some(idle),
    };
    starting.abort();
    health.enter(Stage::Stopping);
    let stats = engine.stats();
    let groups = engine.handlers().groups();
    // From here on a second signal ends the process at once.
    let impatient = tokio::spawn(async move {
        signals.next().await;
        warn!("second signal: ending at once; leases lapse by themselves");
        std::process::exit(EXIT_INTERRUPTED);
    });
    if idle.is_none() {
        info!(owned = stats.owned, "ending: keys are given up; a second signal ends at once");
    }
    let took_ms = clock::now_ms() - started_ms;
    modules.stop().await;
    engine.shutdown(config.engine.shutdown_grace_ms).await;
    let exit = match idle {
        Some(idle) => {
            printed(summary(&access, &groups, idle, stats.settled, took_ms).await)?;
            if idle.halted > 0 || idle.abandoned > 0 { Exit::Halted } else { Exit::Done }
        }
        None => Exit::Done,
    };
    server.stop().await;
    traces.stop().await;
    impatient.abort();
    Ok(exit)
}

/// Waits until everything that is deployed is loaded, and then until nothing is left to do.
async fn until_idle(engine: &Engine, modules: &Modules) -> Idle {
    modules.until_settled().await;
    engine.until_idle().await
}

/// What was done, for people.
async fn summary(access: &Access, groups: &[GroupName], idle: Idle, settled: u64, took_ms: u64) -> Result<()> {
    let mut rows = partitions::all(access, &Search::default(), usize::MAX).await?.0;
    // Other handlers may be registered that this host does not run.
    rows.retain(|row| groups.contains(&row.group));
    let mut out = io::stdout().lock();
    let took = seconds_and_rate(settled, took_ms);
    writeln!(out, "settled {} in {took}; {} in all", count(settled, "event"), count(rows.len() as u64, "partition"))?;
    if idle.halted > 0 {
        writeln!(out, "{} halted:", count(idle.halted, "partition"))?;
        let halted: Vec<_> = rows.iter().filter(|row| row.halted.is_some()).collect();
        for row in halted.iter().take(HALTED_SHOWN_MAX) {
            let category = row.category.as_ref().map(|category| format!("{category}/")).unwrap_or_default();
            writeln!(out, "  {category}{} ({}): {}", row.key, row.group, partitions::halted(row).unwrap_or_default())?;
        }
        if halted.len() > HALTED_SHOWN_MAX {
            writeln!(out, "  and {} more", grouped((halted.len() - HALTED_SHOWN_MAX) as u64))?;
        }
        if let Some(command) = halted.iter().find_map(|row| partitions::head_show(row)) {
            let all = if halted.len() > 1 { ", and keyrail halted for all" } else { "" };
            writeln!(out, "{}", text::typed(&format!("see {command}{all}")))?;
        }
    }
    if idle.abandoned > 0 {
        writeln!(out, "{} could not be published: see the log", count(idle.abandoned, "emitted event"))?;
    }
    Ok(())
}

/// Where this host serves other commands, if it does.
fn socket(config: &Config) -> Option<PathBuf> {
    match (config.api.socket.as_str(), &config.broker) {
        ("off" | "", _) => None,
        ("auto", BrokerAddress::Embedded(file)) => Some(BrokerAddress::socket_beside(file)),
        ("auto", _) => None,
        (path, _) => Some(path.into()),
    }
}

/// Unique per process start: no lease of an earlier process is ever taken for this one's.
fn owner_id() -> OwnerId {
    let host = by::host_name();
    let chance = (clock::chance() * f64::from(u32::MAX)) as u32;
    OwnerId::new(&format!("{host}-{}-{chance:08x}", std::process::id()))
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal is gone: ends in order too.
    hangup: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
