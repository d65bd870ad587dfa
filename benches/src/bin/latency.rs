//! From publishing an event until it is settled, and how keys get on beside a busy one.
//!
//! Events come at a steady pace, whether or not the host keeps up; the pace is a share of what the same host can do.
#![allow(clippy::disallowed_methods)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use keyrail::config::EngineConfig;
use keyrail::engine::Engine;
use keyrail_benches::bench::{self, Server};
use keyrail_benches::forward::Native;
use keyrail_benches::publication;
use keyrail_benches::report::{Table, number, percentile};
use keyrail_ordering::{CategoryName, EntryRef};
use keyrail_tests::intercept::Intercepted;
use serde_json::json;

const KEYS: usize = 100;
const LASTS: Duration = Duration::from_secs(5);
/// Events are published so often, each time as many as are due.
const TICK: Duration = Duration::from_micros(500);

#[tokio::main]
async fn main() -> Result<()> {
    let most = highest_rate().await?;
    println!("published and handled at most {most:.0}/s");
    let mut table = Table::new("latency", &["load %", "events /s", "median ms", "p99 ms", "p99.9 ms", "max ms"]);
    for load in [10, 50, 80] {
        let rate = most * f64::from(load) / 100.0;
        let mut waited = paced(rate).await?;
        let at = |waited: &mut [f64], share| number(percentile(waited, share));
        table.row(vec![
            json!(load),
            number(rate),
            at(&mut waited, 0.5),
            at(&mut waited, 0.99),
            at(&mut waited, 0.999),
            at(&mut waited, 1.0),
        ]);
    }
    table.finish()?;
    fairness().await
}

/// What one host handles while events are published, a second.
async fn highest_rate() -> Result<f64> {
    const EVENTS: usize = 60_000;
    let server = Server::start().await?;
    let broker = server.broker().await?;
    let handlers = bench::served(&bench::itinerary().await?);
    bench::register(&broker, &handlers).await?;
    let start = Instant::now();
    let engines = vec![bench::host(server.broker().await?, handlers, &EngineConfig::default(), "bench").await?];
    bench::publish(&broker, EVENTS, KEYS).await?;
    let took = bench::until_settled(&engines, EVENTS, start).await?;
    bench::end(engines).await?;
    Ok(EVENTS as f64 / took.as_secs_f64())
}

/// When events were published, and how long each took to be settled. The n-th event is the `n / KEYS`-th of its key, so its
/// entry tells which it was.
#[derive(Default)]
struct Settled(Mutex<(Vec<Instant>, Vec<f64>)>);

impl Settled {
    fn lock(&self) -> std::sync::MutexGuard<'_, (Vec<Instant>, Vec<f64>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publishing(&self, events: usize) {
        let now = Instant::now();
        self.lock().0.extend((0..events).map(|_| now));
    }

    fn committed(&self, entries: &[EntryRef]) {
        let now = Instant::now();
        let (published, waited) = &mut *self.lock();
        for entry in entries {
            let key = entry.stream.key.as_ref().and_then(|key| key.as_str().strip_prefix('N')?.parse::<usize>().ok());
            let at = key.and_then(|key| published.get(entry.id.sequence as usize * KEYS + key));
            waited.extend(at.map(|at| (now - *at).as_secs_f64() * 1e3));
        }
    }
}

/// Milliseconds from publishing to settled, of every event.
async fn paced(rate: f64) -> Result<Vec<f64>> {
    let server = Server::start().await?;
    let broker = server.broker().await?;
    let handlers = bench::served(&bench::itinerary().await?);
    bench::register(&broker, &handlers).await?;
    let settled = Arc::new(Settled::default());
    let hear = {
        let settled = settled.clone();
        Arc::new(move |entries: &[EntryRef]| settled.committed(entries))
    };
    let watched = Intercepted::hearing(server.broker().await?, hear);
    let engines = vec![bench::host(watched, handlers, &EngineConfig::default(), "bench").await?];
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begun = Instant::now();
    let (mut published, mut ticks) = (0usize, tokio::time::interval(TICK));
    while begun.elapsed() < LASTS {
        ticks.tick().await;
        let due = (begun.elapsed().as_secs_f64() * rate) as usize;
        if due > published {
            let batch: Vec<_> = (published..due).map(|n| publication(n, n % KEYS)).collect();
            settled.publishing(batch.len());
            for answer in broker.publish(batch).await? {
                answer?;
            }
            published = due;
        }
    }
    bench::until_settled(&engines, published, begun).await?;
    bench::end(engines).await?;
    let waited = std::mem::take(&mut settled.lock().1);
    ensure!(waited.len() == published, "{} of {published} were heard of", waited.len());
    Ok(waited)
}

/// Keys with an event now and then, alone, beside a key with a long row, and beside a slow handler.
async fn fairness() -> Result<()> {
    let mut table = Table::new("fairness", &["beside", "samples", "median ms", "p99 ms", "max ms"]);
    for beside in ["nothing", "a key with 200,000 events", "200 events of 50 ms in another handler"] {
        let server = Server::start().await?;
        let broker = server.broker().await?;
        let began: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
        let seen = {
            let began = began.clone();
            Arc::new(move |_: &str, id: &str| {
                began.lock().unwrap_or_else(PoisonError::into_inner).entry(id.to_string()).or_insert_with(Instant::now);
            })
        };
        let quick = Native::new("quick", "flight").telling(seen).served();
        let slow = Native::new("slow", "slow").taking(Duration::from_millis(50)).served();
        let handlers = vec![quick, slow];
        bench::register(&broker, &handlers).await?;
        match beside {
            "a key with 200,000 events" => {
                bench::publish(&broker, 200_000, 1).await?;
            }
            "200 events of 50 ms in another handler" => {
                let mut batch: Vec<_> = (0..200).map(|n| publication(n, n % 50)).collect();
                for publication in &mut batch {
                    publication.event.category = CategoryName::parse("slow")?;
                }
                broker.publish(batch).await?;
            }
            _ => {}
        }
        let engines: Vec<Engine> =
            vec![bench::host(server.broker().await?, handlers, &EngineConfig::default(), "bench").await?];
        let mut sent = HashMap::new();
        for n in 0..300 {
            let event = publication(1_000_000 + n, 1 + n % 50);
            sent.insert(event.event.id.to_string(), Instant::now());
            broker.publish(vec![event]).await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let start = Instant::now();
        let all = || -> Vec<f64> {
            let began = began.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = sent.iter().filter_map(|(id, at)| Some((*began.get(id)? - *at).as_secs_f64() * 1e3));
            waited.collect()
        };
        let mut waited = all();
        while waited.len() < sent.len() {
            ensure!(start.elapsed() < Duration::from_mins(1), "{} of {} began", waited.len(), sent.len());
            tokio::time::sleep(Duration::from_millis(10)).await;
            waited = all();
        }
        for engine in engines {
            engine.shutdown(100).await;
        }
        table.row(vec![
            json!(beside),
            json!(waited.len()),
            number(percentile(&mut waited, 0.5)),
            number(percentile(&mut waited, 0.99)),
            number(percentile(&mut waited, 1.0)),
        ]);
    }
    table.finish()
}
