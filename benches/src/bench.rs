//! A server, a catalog, events in it, and hosts on it: what most benchmarks begin with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use keyrail::config::EngineConfig;
use keyrail::engine::{Engine, Handler, WasmHandler};
use keyrail_broker::Broker;
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_ordering::OwnerId;
use keyrail_runtime::{Manifest, Module, Runtime, Settings};
use redis::aio::MultiplexedConnection;

/// Events published in one call.
const BATCH: usize = 100;
/// A benchmark that stands for so long is broken.
const STUCK: Duration = Duration::from_secs(90);

/// A Redis of its own.
pub struct Server {
    /// Its process.
    pub process: RedisServer,
    /// For commands beside the hosts'.
    pub connection: MultiplexedConnection,
}

impl Server {
    /// Starts one.
    pub async fn start() -> Result<Self> {
        let process = RedisServer::start()?;
        let client = redis::Client::open(process.url())?;
        let settings = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_mins(1)));
        let connection = client.get_multiplexed_async_connection_with_config(&settings).await?;
        Ok(Self { process, connection })
    }

    /// A broker on it, with connections of its own.
    pub async fn broker(&self) -> Result<Arc<dyn Broker>> {
        Ok(Arc::new(RedisBroker::connect(&self.process.url(), RedisSettings::default()).await?))
    }

    async fn info(&mut self, section: &str) -> Result<String> {
        Ok(redis::cmd("INFO").arg(section).query_async(&mut self.connection).await?)
    }

    /// Calls of functions since the last [`Self::reset`].
    pub async fn functions(&mut self) -> Result<f64> {
        let stats = self.info("commandstats").await?;
        let calls = stats.lines().filter(|line| line.starts_with("cmdstat_fcall")).map(|line| value(line, "calls="));
        calls.sum()
    }

    /// Counts commands from here on.
    pub async fn reset(&mut self) -> Result<()> {
        Ok(redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut self.connection).await?)
    }

    /// Commands that clients sent in all.
    pub async fn processed(&mut self) -> Result<f64> {
        let stats = self.info("stats").await?;
        let line = stats.lines().find(|line| line.starts_with("total_commands_processed:")).context("no count")?;
        value(line, "total_commands_processed:")
    }

    /// Seconds of processor time that the server's process has used.
    pub fn cpu_s(&self) -> f64 {
        cpu_s(self.process.pid())
    }

    /// Resident memory of the server's process.
    pub fn memory_mb(&self) -> f64 {
        memory_mb(self.process.pid())
    }
}

fn value(line: &str, name: &str) -> Result<f64> {
    let text = line.split(name).nth(1).and_then(|rest| rest.split(',').next()).context("INFO has another form")?;
    Ok(text.trim().parse()?)
}

/// Processor time of a process, from /proc: user and system, in hundredths of a second.
pub fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Resident memory of a process.
pub fn memory_mb(pid: u32) -> f64 {
    kb_of(pid, "VmRSS:") / 1_024.0
}

/// Of that what belongs to nobody else: a page of a component's image that many instances read counts for none of them.
pub fn own_memory_kb(pid: u32) -> f64 {
    kb_of(pid, "RssAnon:")
}

fn kb_of(pid: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0)
}

/// The compiled `itinerary` of Rust.
pub async fn itinerary() -> Result<Arc<Module>> {
    let runtime = Runtime::new(Settings::default()).context("the runtime")?;
    runtime.load(&crate::guest("itinerary"), &Manifest::default()).await.context("the itinerary component")
}

/// Registers handlers and answers with them.
pub async fn register(broker: &Arc<dyn Broker>, handlers: &[Arc<dyn Handler>]) -> Result<()> {
    for handler in handlers {
        let (catalog, version) = broker.catalog().await?;
        let catalog = catalog
            .register(handler.metadata(), "0", broker.capabilities())
            .map_err(|refusals| anyhow::anyhow!("{refusals:?}"))?;
        ensure!(broker.set_catalog(&catalog, version).await?.is_some(), "somebody else registers on this server");
    }
    Ok(())
}

/// A module as what is served.
pub fn served(module: &Arc<Module>) -> Vec<Arc<dyn Handler>> {
    vec![Arc::new(WasmHandler(module.clone()))]
}

/// Publishes flights, one key after the other in turn; answers with how long it took.
pub async fn publish(broker: &Arc<dyn Broker>, events: usize, keys: usize) -> Result<Duration> {
    let start = Instant::now();
    for first in (0..events).step_by(BATCH) {
        let batch = (first..events.min(first + BATCH)).map(|n| crate::publication(n, n % keys)).collect();
        for answer in broker.publish(batch).await? {
            answer?;
        }
    }
    Ok(start.elapsed())
}

/// Starts a host.
pub async fn host(
    broker: Arc<dyn Broker>,
    handlers: Vec<Arc<dyn Handler>>,
    config: &EngineConfig,
    name: &str,
) -> Result<Engine> {
    Ok(Engine::start(broker, handlers, config, OwnerId::new(name)).await?)
}

/// Waits until so many events are settled by these hosts together, since `start`; answers with how long that was.
pub async fn until_settled(engines: &[Engine], events: usize, start: Instant) -> Result<Duration> {
    loop {
        let settled: u64 = engines.iter().map(|engine| engine.stats().settled).sum();
        if settled >= events as u64 {
            return Ok(start.elapsed());
        }
        ensure!(start.elapsed() < STUCK, "stuck at {:?}", engines.iter().map(Engine::stats).collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Ends hosts; none may have failed anything.
pub async fn end(engines: Vec<Engine>) -> Result<()> {
    for engine in engines {
        ensure!(engine.stats().failed == 0, "some events failed: {:?}", engine.stats());
        engine.shutdown(EngineConfig::default().shutdown_grace_ms).await;
    }
    Ok(())
}
