//! How much one server does: publish, then commit-and-take event by event, on keys in parallel. Prints; asserts nothing.
//!
//! `cargo run -p keyrail-broker --features contract --example redis_rate`
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{Acquired, CatalogStore, Commit, Leases, Log, Publication, Publish};
use keyrail_ordering::{
    CategoryName, Effects, Event, Field, FieldType, GroupName, Key, KeyRules, Lane, MessageName, MessageType, Metadata,
    OwnerId, PartitionSpec, Role, SequentialBy, StateChange,
};

const KEYS: usize = 100;
const EVENTS_PER_KEY: usize = 400;
const PAYLOAD_BYTES: usize = 300;
const SPARSE_KEYS: usize = 2_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = RedisServer::start().unwrap();
    let broker = Arc::new(RedisBroker::connect(&server.url(), RedisSettings::default()).await.unwrap());
    let fields = vec![Field { name: "client".into(), kind: FieldType::Text, required: true }];
    let (category, name) = (CategoryName::parse("order").unwrap(), MessageName::parse("Placed").unwrap());
    let metadata = Metadata {
        name: GroupName::parse("h").unwrap(),
        version: "1".into(),
        role: Role::EventHandler,
        handles: vec![MessageType { category: category.clone(), name, version: 1, fields }],
        sequential_by: SequentialBy::Field("client".into()),
        options: vec![],
    };
    let (catalog, version) = broker.catalog().await.unwrap();
    let catalog = catalog.register(&metadata, "00", broker.capabilities()).unwrap();
    broker.set_catalog(&catalog, version).await.unwrap();

    for (label, window_ms) in [("with dedupe", 60_000), ("without dedupe", 0)] {
        let start = (Instant::now(), cpu_us(&server).await);
        let publish = (0..KEYS).map(|key| tokio::spawn(publish(broker.clone(), format!("{label} {key}"), window_ms)));
        futures::future::join_all(publish).await;
        report(&server, &format!("publish in batches of 100, {label}"), KEYS * EVENTS_PER_KEY, start).await;
    }
    for (label, put) in [("with dedupe", false), ("without dedupe", true)] {
        let start = (Instant::now(), cpu_us(&server).await);
        let drains = (0..KEYS).map(|key| tokio::spawn(drain(broker.clone(), format!("{label} {key}"), put)));
        let settled: usize = futures::future::join_all(drains).await.into_iter().map(Result::unwrap).sum();
        let what = if put { "commit and take one by one, with state" } else { "commit and take one by one" };
        report(&server, what, settled, start).await;
    }
    for round in 1..=2 {
        let start = (Instant::now(), cpu_us(&server).await);
        let sparse = (0..KEYS).map(|lane| {
            let broker = broker.clone();
            tokio::spawn(async move {
                for key in (lane..SPARSE_KEYS).step_by(KEYS) {
                    let key = format!("sparse {key}");
                    broker.publish(vec![event(&key, round, 60_000)]).await.unwrap()[0].as_ref().unwrap();
                    drain(broker.clone(), key, false).await;
                }
            })
        });
        futures::future::join_all(sparse).await.into_iter().for_each(Result::unwrap);
        report(&server, "sparse: publish, acquire, commit and release", SPARSE_KEYS, start).await;
    }
}

fn event(key: &str, n: usize, dedupe_window_ms: u64) -> Publication {
    Publication {
        event: Event {
            id: format!("{key}-{n}").into(),
            category: CategoryName::parse("order").unwrap(),
            name: MessageName::parse("Placed").unwrap(),
            version: 1,
            key: Some(Key::parse(key, &KeyRules::default()).unwrap()),
            headers: vec![],
            data: Bytes::from(format!("{{\"client\":\"{key}\",\"x\":\"{}\"}}", "x".repeat(PAYLOAD_BYTES))),
        },
        key_field: Some("client".into()),
        lane: Lane::Primary,
        dedupe_window_ms,
    }
}

async fn publish(broker: Arc<RedisBroker>, key: String, window_ms: u64) {
    for from in (0..EVENTS_PER_KEY).step_by(100) {
        let batch = (from..from + 100).map(|n| event(&key, n, window_ms)).collect();
        for answer in broker.publish(batch).await.unwrap() {
            answer.unwrap();
        }
    }
}

async fn drain(broker: Arc<RedisBroker>, key: String, put: bool) -> usize {
    let key = Key::parse(&key, &KeyRules::default()).unwrap();
    let spec = PartitionSpec::of_key(GroupName::parse("h").unwrap(), CategoryName::parse("order").unwrap(), key);
    let acquired = broker.acquire(Arc::new(spec), &OwnerId::new("bench"), 60_000, 1).await.unwrap();
    let Acquired { lease, mut entries, .. } = acquired;
    let mut settled = 0;
    while let Some(entry) = entries.pop() {
        let mut effects = Effects::default();
        if put {
            let value = Some(Bytes::from_static(&[b'x'; 100]));
            effects.state.push(StateChange { name: "total".into(), value });
        }
        let commit = Commit { entries: vec![entry.at.clone()], effects, take_max: 1, release: true, version: None };
        entries = broker.commit(&lease, commit).await.unwrap().entries;
        settled += 1;
    }
    settled
}

async fn raw(server: &RedisServer) -> redis::aio::MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

/// CPU time of the server so far, in microseconds.
async fn cpu_us(server: &RedisServer) -> f64 {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(&mut raw(server).await).await.unwrap();
    let fields = ["used_cpu_sys:", "used_cpu_user:"];
    let seconds: f64 = info
        .lines()
        .filter_map(|line| fields.iter().find_map(|field| line.strip_prefix(field)?.parse::<f64>().ok()))
        .sum();
    seconds * 1e6
}

async fn report(server: &RedisServer, what: &str, events: usize, (start, cpu): (Instant, f64)) {
    let rate = events as f64 / start.elapsed().as_secs_f64();
    let cpu = (cpu_us(server).await - cpu) / events as f64;
    println!("{what:50} {events:6} events {rate:8.0}/s, {cpu:5.1} us of the server's CPU each");
}
