//! Events/s end to end, beside the floor on the same server in the same run.
//!
//! Each row: events are published, then one host runs the `itinerary` component on all of them with strict commits. The
//! ratio is what counts: absolute figures say more about the machine.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use keyrail::config::EngineConfig;
use keyrail::engine::{Engine, WasmHandler};
use keyrail_benches::floor::{self, Floor};
use keyrail_benches::{guest, publication};
use keyrail_broker::Broker;
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_ordering::OwnerId;
use keyrail_runtime::{Manifest, Module, Runtime, Settings};

/// Rows: keys, events.
const ROWS: [(usize, usize); 3] = [(1, 10_000), (100, 50_000), (3_000, 60_000)];
/// Runs of each row; the median counts.
const RUNS: usize = 3;
/// Events published in one call.
const BATCH: usize = 100;

#[tokio::main]
async fn main() -> Result<()> {
    let runtime = Runtime::new(Settings::default()).context("the runtime")?;
    let module = runtime.load(&guest("itinerary"), &Manifest::default()).await.context("the itinerary component")?;
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!(
        "{cores} cores, median of {RUNS} runs, events/s; floor: one publish function, one commit-and-take function"
    );
    println!(
        "{:>6} {:>8} | {:>9} {:>9} {:>6} | {:>9} {:>9} {:>6} | {:>6} | {:>9}",
        "keys", "events", "publish", "floor", "ratio", "handle", "floor", "ratio", "both", "server us"
    );
    let wanted: Vec<usize> = std::env::args().skip(1).map(|keys| keys.parse()).collect::<Result<_, _>>()?;
    for (keys, events) in ROWS.into_iter().filter(|(keys, _)| wanted.is_empty() || wanted.contains(keys)) {
        let mut runs = vec![];
        for _ in 0..RUNS {
            runs.push(run(&module, keys, events).await?);
        }
        let median = |of: &dyn Fn(&Run) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[RUNS / 2]
        };
        let rate = |took: Duration| events as f64 / took.as_secs_f64();
        let ratio = |ours: Duration, floor: Duration| floor.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{keys:>6} {events:>8} | {:>9.0} {:>9.0} {:>6.2} | {:>9.0} {:>9.0} {:>6.2} | {:>6.2} | {:>9.1}",
            median(&|run| rate(run.publish)),
            median(&|run| rate(run.floor.publish)),
            median(&|run| ratio(run.publish, run.floor.publish)),
            median(&|run| rate(run.handle)),
            median(&|run| rate(run.floor.handle)),
            median(&|run| ratio(run.handle, run.floor.handle)),
            median(&|run| ratio(run.publish + run.handle, run.floor.publish + run.floor.handle)),
            median(&|run| run.server_us / events as f64),
        );
    }
    Ok(())
}

struct Run {
    /// Time that the server spent in functions while events were handled.
    server_us: f64,
    publish: Duration,
    handle: Duration,
    floor: Floor,
}

async fn run(module: &Arc<Module>, keys: usize, events: usize) -> Result<Run> {
    let server = RedisServer::start()?;
    let client = redis::Client::open(server.url())?;
    let settings = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_mins(1)));
    let mut connection = client.get_multiplexed_async_connection_with_config(&settings).await?;
    let floor = floor::measure(&mut connection, events, keys).await?;

    let broker: Arc<dyn Broker> = Arc::new(RedisBroker::connect(&server.url(), RedisSettings::default()).await?);
    let (catalog, version) = broker.catalog().await?;
    let catalog = catalog
        .register(module.metadata(), module.content_hash(), broker.capabilities())
        .map_err(|refusals| anyhow::anyhow!("{refusals:?}"))?;
    ensure!(broker.set_catalog(&catalog, version).await?.is_some(), "somebody else registers on this server");

    let start = Instant::now();
    for first in (0..events).step_by(BATCH) {
        let batch = (first..events.min(first + BATCH)).map(|n| publication(n, n % keys)).collect();
        for answer in broker.publish(batch).await? {
            answer?;
        }
    }
    let publish = start.elapsed();

    let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut connection).await?;
    let start = Instant::now();
    let handler = Arc::new(WasmHandler(module.clone()));
    let config = EngineConfig::default();
    let engine = Engine::start(broker, vec![handler], &config, OwnerId::new("bench")).await?;
    while engine.stats().settled < events as u64 {
        ensure!(start.elapsed() < Duration::from_mins(5), "stuck at {:?}", engine.stats());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let handle = start.elapsed();
    ensure!(engine.stats().failed == 0, "some events failed: {:?}", engine.stats());
    engine.shutdown(config.shutdown_grace_ms).await;
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await?;
    let server_us = function_time_us(&stats).context("the server tells no time of FCALL")?;
    Ok(Run { server_us, publish, handle, floor })
}

/// The `usec` of `cmdstat_fcall:calls=…,usec=…,…`.
fn function_time_us(stats: &str) -> Option<f64> {
    let line = stats.lines().find(|line| line.starts_with("cmdstat_fcall:"))?;
    line.split("usec=").nth(1)?.split(',').next()?.parse().ok()
}
