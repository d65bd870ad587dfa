//! How many events a second the embedded broker settles on a file, with each of 64 partitions going on by itself.
//!
//! `cargo run --release -p keyrail-broker --example embedded_rate [FILE]`
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::Instant;

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{CommitWords, LONG_TTL_MS, Story, billing, commit, publication};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{Broker, Publication};
use keyrail_ordering::OwnerId;

const PARTITIONS: usize = 64;
const EVENTS: usize = 500;
const READ_AHEAD: usize = 16;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::args().nth(1).map_or_else(|| folder.path().join("rate.db"), Into::into);
    for file in [true, false] {
        let settings = EmbeddedSettings::default();
        let broker = if file {
            EmbeddedBroker::open(&path, settings).unwrap()
        } else {
            EmbeddedBroker::memory(settings).unwrap()
        };
        println!("on {}:", broker.address());
        measure(Arc::new(broker)).await;
    }
}

async fn measure(broker: Arc<dyn Broker>) {
    let story = Story::begin(Subject::new(broker.clone())).await;
    let total = PARTITIONS * EVENTS;
    let start = Instant::now();
    let mut tasks = vec![];
    for partition in 0..PARTITIONS {
        let broker = broker.clone();
        tasks.push(tokio::spawn(async move {
            let key = format!("k{partition}");
            for part in 0..EVENTS / 50 {
                let of =
                    |n| Publication { dedupe_window_ms: 60_000, ..publication(&key, &format!("{key}-{part}-{n}")) };
                broker.publish((0..50).map(of).collect()).await.unwrap();
            }
        }));
    }
    for task in tasks.drain(..) {
        task.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("  published {total} in {seconds:.2} s: {:.0}/s", total as f64 / seconds);

    let start = Instant::now();
    for partition in 0..PARTITIONS {
        let broker = broker.clone();
        tasks.push(tokio::spawn(async move {
            let spec = billing(&format!("k{partition}"));
            let acquired = broker.acquire(spec, &OwnerId::new("A"), LONG_TTL_MS, READ_AHEAD).await.unwrap();
            let mut entries = std::collections::VecDeque::from(acquired.entries);
            while let Some(entry) = entries.pop_front() {
                let take_max = if entries.len() <= READ_AHEAD / 2 { READ_AHEAD - entries.len() } else { 0 };
                let commit = commit(&entry).put("n", &entry.at.id.sequence.to_string()).and_take(take_max);
                entries.extend(broker.commit(&acquired.lease, commit).await.unwrap().entries);
            }
            broker.release(&acquired.lease).await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("  settled {total} one by one in {seconds:.2} s: {:.0}/s", total as f64 / seconds);
    assert_eq!(story.backlog().await.ready, 0);
}
