//! Events a second, beside the floor on the same server in the same run: few and many keys, committed one by one and in
//! batches, a chain through the outbox, several hosts on one server, and the embedded broker.
//!
//! Each row: events are published, then hosts work on all of them. The ratio is what counts: absolute figures say more about
//! the machine. `throughput TABLE…` measures only these: `redis`, `chain`, `hosts`, `embedded`; a number is one of the numbers of keys.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use keyrail::config::EngineConfig;
use keyrail_benches::bench::{self, Server};
use keyrail_benches::floor::{self, Floor};
use keyrail_benches::forward::Native;
use keyrail_benches::report::{Table, median, number};
use keyrail_broker::Broker;
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_runtime::Module;
use serde_json::json;

/// Rows: keys, events.
const ROWS: [(usize, usize); 4] = [(1, 20_000), (100, 50_000), (3_000, 60_000), (50_000, 100_000)];
/// Runs of each row; the median counts.
const RUNS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let keys: Vec<usize> = wanted.iter().filter_map(|wanted| wanted.parse().ok()).collect();
    let is_wanted = |name: &str| wanted.len() == keys.len() || wanted.iter().any(|wanted| wanted == name);
    let module = bench::itinerary().await?;
    if is_wanted("redis") {
        redis(&module, &keys).await?;
    }
    if is_wanted("chain") {
        chain().await?;
    }
    if is_wanted("hosts") {
        hosts(&module).await?;
    }
    if is_wanted("embedded") {
        embedded(&module).await?;
    }
    Ok(())
}

fn config(is_batched: bool) -> EngineConfig {
    let commit_batch_max = if is_batched { EngineConfig::default().commit_batch_max } else { 1 };
    EngineConfig { commit_batch_max, ..EngineConfig::default() }
}

struct Run {
    publish: Duration,
    handle: Duration,
    floor: Floor,
    calls: f64,
    server_cpu_s: f64,
    host_cpu_s: f64,
}

async fn redis(module: &Arc<Module>, wanted: &[usize]) -> Result<()> {
    let mut table = Table::new(
        "throughput",
        &[
            "keys",
            "commits",
            "published /s",
            "ratio",
            "handled /s",
            "floor /s",
            "ratio to floor",
            "by hand /s",
            "ratio to by hand",
            "functions an event",
            "server µs an event",
            "host µs an event",
        ],
    );
    for (keys, events) in ROWS.into_iter().filter(|(keys, _)| wanted.is_empty() || wanted.contains(keys)) {
        for is_batched in [false, true] {
            let mut runs = vec![];
            for _ in 0..RUNS {
                runs.push(run(module, keys, events, is_batched).await?);
            }
            let of = |what: &dyn Fn(&Run) -> f64| median(runs.iter().map(what).collect());
            let rate = |took: Duration| events as f64 / took.as_secs_f64();
            let limit = |run: &Run| if is_batched { run.floor.batched } else { run.floor.strict };
            let by_hand = |run: &Run| if is_batched { run.floor.batched_by_hand } else { run.floor.strict_by_hand };
            table.row(vec![
                json!(keys),
                json!(if is_batched { "batched" } else { "one by one" }),
                number(of(&|run| rate(run.publish))),
                number(of(&|run| run.floor.publish.as_secs_f64() / run.publish.as_secs_f64())),
                number(of(&|run| rate(run.handle))),
                number(of(&|run| rate(limit(run)))),
                number(of(&|run| limit(run).as_secs_f64() / run.handle.as_secs_f64())),
                number(of(&|run| rate(by_hand(run)))),
                number(of(&|run| by_hand(run).as_secs_f64() / run.handle.as_secs_f64())),
                number(of(&|run| run.calls / events as f64)),
                number(of(&|run| run.server_cpu_s * 1e6 / events as f64)),
                number(of(&|run| run.host_cpu_s * 1e6 / events as f64)),
            ]);
        }
    }
    table.finish()
}

async fn run(module: &Arc<Module>, keys: usize, events: usize, is_batched: bool) -> Result<Run> {
    let mut server = Server::start().await?;
    let floor = floor::measure(&mut server, events, keys).await?;
    let broker = server.broker().await?;
    let handlers = bench::served(module);
    bench::register(&broker, &handlers).await?;
    let publish = bench::publish(&broker, events, keys).await?;
    server.reset().await?;
    let (start, cpu_s, server_cpu_s) = (Instant::now(), bench::cpu_s(std::process::id()), server.cpu_s());
    let engines = vec![bench::host(broker, handlers, &config(is_batched), "bench").await?];
    let handle = bench::until_settled(&engines, events, start).await?;
    let host_cpu_s = bench::cpu_s(std::process::id()) - cpu_s;
    let server_cpu_s = server.cpu_s() - server_cpu_s;
    let calls = server.functions().await?;
    bench::end(engines).await?;
    Ok(Run { publish, handle, floor, calls, server_cpu_s, host_cpu_s })
}

/// Everything at once: published, handled, emitted, routed, and handled again by a second handler.
async fn chain() -> Result<()> {
    const EVENTS: usize = 20_000;
    let mut table = Table::new("chain", &["keys", "commits", "events /s", "calls of handlers /s"]);
    for keys in [100, 3_000] {
        for is_batched in [false, true] {
            let mut rates = vec![];
            for _ in 0..RUNS {
                let server = Server::start().await?;
                let broker = server.broker().await?;
                let handlers = vec![
                    Native::new("first", "flight").into("landed").served(),
                    Native::new("second", "landed").served(),
                ];
                bench::register(&broker, &handlers).await?;
                let start = Instant::now();
                let engines = vec![bench::host(broker.clone(), handlers, &config(is_batched), "bench").await?];
                bench::publish(&broker, EVENTS, keys).await?;
                let took = bench::until_settled(&engines, 2 * EVENTS, start).await?;
                bench::end(engines).await?;
                rates.push(EVENTS as f64 / took.as_secs_f64());
            }
            let rate = median(rates);
            let commits = if is_batched { "batched" } else { "one by one" };
            table.row(vec![json!(keys), json!(commits), number(rate), number(2.0 * rate)]);
        }
    }
    table.finish()
}

/// Several hosts on one server; all of them in one process, so that what the machine gives is the same. And one that has a place for every
/// key: then a key is kept between its events.
async fn hosts(module: &Arc<Module>) -> Result<()> {
    const EVENTS: usize = 100_000;
    const KEYS: usize = 1_000;
    let mut table = Table::new(
        "hosts",
        &["hosts", "places each", "handled /s", "server µs an event", "server busy %", "busiest host %"],
    );
    let usual = EngineConfig::default().partitions_max;
    for (count, partitions_max) in [(1, usual), (2, usual), (4, usual), (1, 2 * KEYS)] {
        let config = EngineConfig { partitions_max, ..EngineConfig::default() };
        let mut runs = vec![];
        for _ in 0..RUNS {
            let mut server = Server::start().await?;
            let broker = server.broker().await?;
            let handlers = bench::served(module);
            bench::register(&broker, &handlers).await?;
            let mut engines = vec![];
            for n in 0..count {
                let name = format!("host-{n}");
                engines.push(bench::host(server.broker().await?, handlers.clone(), &config, &name).await?);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.reset().await?;
            let (start, cpu_s) = (Instant::now(), server.cpu_s());
            bench::publish(&broker, EVENTS, KEYS).await?;
            let took = bench::until_settled(&engines, EVENTS, start).await?;
            let server_s = server.cpu_s() - cpu_s;
            let most = engines.iter().map(|engine| engine.stats().settled).max().unwrap_or(0);
            bench::end(engines).await?;
            let events = EVENTS as f64;
            let took_s = took.as_secs_f64();
            runs.push([
                events / took_s,
                server_s * 1e6 / events,
                server_s * 100.0 / took_s,
                most as f64 * 100.0 / events,
            ]);
        }
        let of = |which: usize| number(median(runs.iter().map(|run| run[which]).collect()));
        table.row(vec![json!(count), json!(partitions_max), of(0), of(1), of(2), of(3)]);
    }
    table.finish()
}

/// A file, or memory.
async fn embedded(module: &Arc<Module>) -> Result<()> {
    let mut table = Table::new("embedded", &["keys", "kept", "commits", "published /s", "handled /s"]);
    let folder = std::env::temp_dir().join(format!("keyrail-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for (keys, events) in [(1, 10_000), (100, 20_000), (3_000, 30_000)] {
        for (kept, path) in [("file", Some(folder.join("bench.redb"))), ("memory", None)] {
            for is_batched in [false, true] {
                let mut runs = vec![];
                for _ in 0..RUNS {
                    let broker = embedded_broker(path.as_deref())?;
                    let handlers = bench::served(module);
                    bench::register(&broker, &handlers).await?;
                    let publish = bench::publish(&broker, events, keys).await?;
                    let start = Instant::now();
                    let engines = vec![bench::host(broker, handlers, &config(is_batched), "bench").await?];
                    let handle = bench::until_settled(&engines, events, start).await?;
                    bench::end(engines).await?;
                    runs.push((events as f64 / publish.as_secs_f64(), events as f64 / handle.as_secs_f64()));
                }
                let of = |what: &dyn Fn(&(f64, f64)) -> f64| number(median(runs.iter().map(what).collect()));
                let commits = if is_batched { "batched" } else { "one by one" };
                table.row(vec![json!(keys), json!(kept), json!(commits), of(&|run| run.0), of(&|run| run.1)]);
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    table.finish()
}

fn embedded_broker(path: Option<&Path>) -> Result<Arc<dyn Broker>> {
    let broker = match path {
        Some(path) => {
            // What an earlier run left.
            let _ = std::fs::remove_file(path);
            EmbeddedBroker::open(path, EmbeddedSettings::default())?
        }
        None => EmbeddedBroker::memory(EmbeddedSettings::default())?,
    };
    Ok(Arc::new(broker))
}
