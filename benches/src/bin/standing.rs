//! What keys cost that have nothing to do, how soon many of them wake at once, and how soon many that are at work go on when
//! their host is killed.
//!
//! `standing --host URL` is the host that is killed: a process of its own.
#![allow(clippy::disallowed_methods)]

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use keyrail::config::EngineConfig;
use keyrail::engine::Handler;
use keyrail_benches::bench::{self, Server};
use keyrail_benches::forward::{Native, Seen};
use keyrail_benches::report::{Table, number};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use serde_json::json;

/// How long idle hosts are watched.
const WATCHED: Duration = Duration::from_secs(10);
/// Partitions of the host that is killed.
const ACTIVE: usize = 10_000;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, url] = arguments.as_slice()
        && flag == "--host"
    {
        return work_until_killed(url).await;
    }
    idle().await?;
    takeover().await
}

async fn idle() -> Result<()> {
    let mut table = Table::new(
        "standing",
        &[
            "live keys",
            "commands /s",
            "server CPU %",
            "host CPU %",
            "server MB",
            "host MB",
            "all woken at once",
            "ms until settled",
        ],
    );
    for keys in [1_000, 10_000, 100_000] {
        let mut server = Server::start().await?;
        let broker = server.broker().await?;
        let handlers = bench::served(&bench::itinerary().await?);
        bench::register(&broker, &handlers).await?;
        let engines = vec![bench::host(server.broker().await?, handlers, &EngineConfig::default(), "bench").await?];
        let start = Instant::now();
        bench::publish(&broker, keys, keys).await?;
        bench::until_settled(&engines, keys, start).await?;
        // Keys that were busy linger for a moment.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let own = std::process::id();
        let before = (server.processed().await?, server.cpu_s(), bench::cpu_s(own));
        tokio::time::sleep(WATCHED).await;
        let seconds = WATCHED.as_secs_f64();
        let commands = (server.processed().await? - before.0 - 1.0) / seconds;
        let (server_cpu, host_cpu) = (server.cpu_s() - before.1, bench::cpu_s(own) - before.2);
        let (server_mb, host_mb) = (server.memory_mb(), bench::memory_mb(own));
        let woken = keys.min(10_000);
        let start = Instant::now();
        bench::publish(&broker, woken, woken).await?;
        let took = bench::until_settled(&engines, keys + woken, start).await?;
        bench::end(engines).await?;
        table.row(vec![
            json!(keys),
            number(commands),
            number(server_cpu / seconds * 100.0),
            number(host_cpu / seconds * 100.0),
            number(server_mb),
            number(host_mb),
            json!(woken),
            number(took.as_secs_f64() * 1e3),
        ]);
    }
    table.finish()
}

fn slow(seen: Option<Seen>) -> Vec<Arc<dyn Handler>> {
    let native = Native::new("slow", "flight").taking(Duration::from_secs(2));
    vec![match seen {
        Some(seen) => native.telling(seen).served(),
        None => native.served(),
    }]
}

fn roomy() -> EngineConfig {
    EngineConfig { partitions_max: 2 * ACTIVE, executions_max: 2 * ACTIVE, ..EngineConfig::default() }
}

async fn work_until_killed(url: &str) -> Result<()> {
    let broker = Arc::new(RedisBroker::connect(url, RedisSettings::default()).await?);
    let engine = bench::host(broker, slow(None), &roomy(), "killed").await?;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if engine.stats().owned >= ACTIVE as u64 {
            println!("owns them");
        }
    }
}

/// A process that ends with this one.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every one of many keys is in the middle of an event when its host is killed.
async fn takeover() -> Result<()> {
    let mut table = Table::new("takeover", &["active partitions", "first ms", "half ms", "99 % ms", "all ms"]);
    let server = Server::start().await?;
    let broker = server.broker().await?;
    bench::register(&broker, &slow(None)).await?;
    let program = std::env::current_exe()?;
    let mut child = Command::new(program).args(["--host", &server.process.url()]).stdout(Stdio::piped()).spawn()?;
    let told = child.stdout.take().context("it was asked for")?;
    let child = Killed(child);
    bench::publish(&broker, 8 * ACTIVE, ACTIVE).await?;
    let line = BufReader::new(told).lines().next().context("the host ended")??;
    ensure!(line == "owns them", "{line}");
    let begun: Arc<Mutex<Vec<(Instant, usize)>>> = Arc::default();
    let keys: Mutex<HashSet<String>> = Mutex::default();
    let seen: Seen = {
        let begun = begun.clone();
        Arc::new(move |key: &str, _: &str| {
            let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
            if keys.insert(key.to_string()) {
                begun.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), keys.len()));
            }
        })
    };
    let killed = Instant::now();
    drop(child);
    let engine = bench::host(server.broker().await?, slow(Some(seen)), &roomy(), "successor").await?;
    let at = |share: f64| {
        let wanted = (ACTIVE as f64 * share).ceil() as usize;
        let begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.get(wanted.max(1) - 1).map(|(at, _)| (*at - killed).as_secs_f64() * 1e3)
    };
    while at(1.0).is_none() {
        ensure!(killed.elapsed() < Duration::from_secs(90), "not all keys went on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let cell = |share| at(share).map_or(json!("never"), number);
    table.row(vec![json!(ACTIVE), cell(0.0), cell(0.5), cell(0.99), cell(1.0)]);
    engine.shutdown(0).await;
    table.finish()
}
