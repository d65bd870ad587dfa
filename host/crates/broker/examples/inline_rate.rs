//! What an operation costs on the embedded broker without threads: what a simulation pays.
//!
//! `cargo run --release -p keyrail-broker --example inline_rate`
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::Instant;

use keyrail_broker::Broker;
use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{CommitWords, Story, billing, commit, publication};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, Writing};

const KEYS: usize = 50;
const EVENTS: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let settings = EmbeddedSettings { writing: Writing::Inline, ..EmbeddedSettings::default() };
    let broker: Arc<dyn Broker> = Arc::new(EmbeddedBroker::memory(settings).unwrap());
    let story = Story::begin(Subject::new(broker.clone())).await;
    let start = Instant::now();
    for n in 0..KEYS * EVENTS {
        broker.publish(vec![publication(&format!("k{}", n % KEYS), &n.to_string())]).await.unwrap();
    }
    say("publish", start, KEYS * EVENTS);
    let start = Instant::now();
    for key in 0..KEYS {
        let mut acquired = story.acquire("A", &billing(&format!("k{key}")).id.key().to_string()).await;
        while !acquired.entries.is_empty() {
            let entry = acquired.entries.remove(0);
            let take_max = usize::from(acquired.entries.is_empty()) * 10;
            let commit = commit(&entry).put("n", "1").and_take(take_max);
            acquired.entries.extend(broker.commit(&acquired.lease, commit).await.unwrap().entries);
        }
        broker.release(&acquired.lease).await.unwrap();
    }
    say("commit", start, KEYS * EVENTS);
}

fn say(what: &str, start: Instant, count: usize) {
    println!("{what}: {:.1} µs each of {count}", start.elapsed().as_secs_f64() * 1e6 / count as f64);
}
