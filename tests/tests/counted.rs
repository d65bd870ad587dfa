//! What an event costs the server, in commands and not in seconds: a change that makes it dearer is seen here.
//!
//! Commands that a client sends are round trips at worst; commands inside of functions are the server's time. Both are counted by
//! the server itself. The bounds are what it costs today and a little; lower them when it costs less.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::config::EngineConfig;
use keyrail::engine::{Engine, Handler, HandlerInstance};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{Broker, CatalogStore as _, Publication};
use keyrail_ordering::{
    BatchLimits, CategoryName, Effects, Event, Field, FieldType, GroupName, Key, KeyRules, Lane, MessageName,
    MessageType, Metadata, OwnerId, Role, SequentialBy, StateChange,
};
use keyrail_runtime::{Answer, Call, CallHost, InstantiateError};

/// Writes one value for each event, as `itinerary` does.
#[derive(Clone)]
struct Writer {
    metadata: Metadata,
    is_batched: bool,
}

#[async_trait]
impl Handler for Writer {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    fn batch(&self, host: &BatchLimits) -> BatchLimits {
        if self.is_batched { *host } else { BatchLimits::STRICT }
    }
    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl HandlerInstance for Writer {
    async fn call(&mut self, call: &Call<'_>, _: Box<dyn CallHost>) -> Answer {
        let value = Some(Bytes::copy_from_slice(call.event.id.as_bytes()));
        Answer::Done(Effects { state: vec![StateChange { name: "last".into(), value }], emits: vec![] })
    }
    fn is_spent(&self) -> bool {
        false
    }
}

fn writer(is_batched: bool) -> Writer {
    let message = MessageType {
        category: CategoryName::parse("order").unwrap(),
        name: MessageName::parse("Placed").unwrap(),
        version: 1,
        fields: vec![Field { name: "client".into(), kind: FieldType::Text, required: true }],
    };
    let metadata = Metadata {
        name: GroupName::parse("writer").unwrap(),
        version: "1".into(),
        role: Role::EventHandler,
        handles: vec![message],
        sequential_by: SequentialBy::Field("client".into()),
        options: vec![],
    };
    Writer { metadata, is_batched }
}

fn publication(n: usize, keys: usize) -> Publication {
    let event = Event {
        id: format!("e{n}").into(),
        category: CategoryName::parse("order").unwrap(),
        name: MessageName::parse("Placed").unwrap(),
        version: 1,
        key: Some(Key::parse(&format!("k{}", n % keys), &KeyRules::default()).unwrap()),
        headers: vec![],
        data: Bytes::from_static(br#"{"client":"k"}"#),
    };
    Publication { event, key_field: Some("client".into()), lane: Lane::Primary, dedupe_window_ms: 0 }
}

/// A connection of its own, for which the handler is registered.
async fn connected(server: &RedisServer, handler: &Writer) -> Arc<dyn Broker> {
    let broker = RedisBroker::connect(&server.url(), RedisSettings::default()).await.unwrap();
    let (catalog, version) = broker.catalog().await.unwrap();
    let catalog = catalog.register(&handler.metadata, "0", broker.capabilities()).unwrap();
    broker.set_catalog(&catalog, version).await.unwrap().unwrap();
    Arc::new(broker)
}

/// For each event: functions that the owner called, and commands that ran, inside of functions too.
struct Cost {
    functions: f64,
    commands: f64,
}

/// Publishes events, and counts what handling them costs.
async fn cost(events: usize, keys: usize, is_batched: bool) -> Cost {
    let server = RedisServer::start().unwrap();
    let handler = writer(is_batched);
    let broker = connected(&server, &handler).await;
    for first in (0..events).step_by(100) {
        let batch = (first..events.min(first + 100)).map(|n| publication(n, keys)).collect();
        for answer in broker.publish(batch).await.unwrap() {
            answer.unwrap();
        }
    }
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut raw).await.unwrap();
    // Nothing is to come from time passing.
    let config = EngineConfig {
        linger_ms: 0,
        sweep_interval_ms: 600_000,
        housekeeping_interval_ms: 600_000,
        ..EngineConfig::default()
    };
    let engine = Engine::start(broker, vec![Arc::new(handler)], &config, OwnerId::new("counted")).await.unwrap();
    while engine.stats().settled < events as u64 || engine.stats().owned > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut raw).await.unwrap();
    let calls = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<f64>().ok();
    // What the host asks for itself, whatever the events.
    let own =
        ["hget", "hmget|", "info", "config", "subscribe", "ping", "publish", "client", "hello", "function", "select"];
    let of = |line: &&str| !own.iter().any(|name| line["cmdstat_".len()..].starts_with(name));
    let lines: Vec<&str> = stats.lines().filter(|line| line.starts_with("cmdstat_")).filter(of).collect();
    let total = |wanted: &dyn Fn(&str) -> bool| {
        lines.iter().filter(|line| wanted(&line["cmdstat_".len()..])).filter_map(|line| calls(line)).sum::<f64>()
    };
    let functions = total(&|name| name.starts_with("fcall:"));
    engine.shutdown(1_000).await;
    Cost { functions: functions / events as f64, commands: total(&|_| true) / events as f64 }
}

fn within(what: &str, found: f64, bound: f64) {
    println!("{what}: {found:.3} an event, at most {bound}");
    assert!(found <= bound, "{what} are {found:.3} an event; they were at most {bound}");
    assert!(found > bound / 2.0, "{what} are only {found:.3} an event: lower the bound of {bound}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_long_row_costs_one_call_and_a_share_of_a_read() {
    let cost = cost(4_000, 10, false).await;
    within("functions", cost.functions, 1.05);
    within("commands", cost.commands, 5.5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_costs_as_much_as_an_event_did() {
    let cost = cost(4_000, 10, true).await;
    within("functions", cost.functions, 0.04);
    within("commands", cost.commands, 0.25);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_now_and_then_costs_two_calls() {
    let cost = cost(500, 500, true).await;
    within("functions", cost.functions, 2.1);
    within("commands", cost.commands, 22.5);
}

/// Each event of a key that came back soon and lingers: its row is read by plain commands, and nothing is put away.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_key_that_comes_back_costs_one_function() {
    const EVENTS: u64 = 200;
    let server = RedisServer::start().unwrap();
    let handler = writer(true);
    let (broker, publisher) = (connected(&server, &handler).await, connected(&server, &handler).await);
    let config = EngineConfig {
        linger_ms: 600_000,
        sweep_interval_ms: 600_000,
        housekeeping_interval_ms: 600_000,
        ..EngineConfig::default()
    };
    let engine = Engine::start(broker, vec![Arc::new(handler)], &config, OwnerId::new("counted")).await.unwrap();
    let handled = async |from: u64, to: u64| {
        for n in from..to {
            for answer in publisher.publish(vec![publication(n as usize, 1)]).await.unwrap() {
                answer.unwrap();
            }
            while engine.stats().settled <= n {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    // The first event releases the key; with the second it comes back, and is kept.
    handled(0, 2).await;
    assert_eq!(engine.stats().owned, 1);
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut raw).await.unwrap();
    handled(2, 2 + EVENTS).await;
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut raw).await.unwrap();
    let calls = |name: &str| -> f64 {
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        line.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok()).unwrap_or(0.0)
    };
    assert_eq!((engine.stats().owned, engine.stats().acquired), (1, 2), "it was kept");
    // One publishes, one commits.
    within("functions", calls("fcall") / EVENTS as f64, 2.1);
    // Behind the commit both lanes are looked at, and the row is read once; nothing is trimmed.
    within("rows read", calls("xrange") / EVENTS as f64, 3.1);
    within("leases written", calls("set") / EVENTS as f64, 1.1);
    within("trims", (calls("xtrim") + 1.0) / EVENTS as f64, 0.009);
    engine.shutdown(1_000).await;
}

/// A key that is given up and gets an event in the same moment: nobody looks through the ready sets here, so a bell that gets lost would
/// leave its event where it is.
#[tokio::test(flavor = "multi_thread")]
async fn no_bell_is_lost_while_keys_are_given_up() {
    const EVENTS: usize = 3_000;
    const KEYS: usize = 4;
    let server = RedisServer::start().unwrap();
    let handler = writer(true);
    let (broker, publisher) = (connected(&server, &handler).await, connected(&server, &handler).await);
    let config = EngineConfig { linger_ms: 1, sweep_interval_ms: 600_000, ..EngineConfig::default() };
    let engine = Engine::start(broker, vec![Arc::new(handler)], &config, OwnerId::new("heard")).await.unwrap();
    let mut published = 0;
    while published < EVENTS {
        // Rows of different lengths, so that keys are taken over, busy, kept, and given up.
        let row = 1 + published % 7;
        let batch = (published..EVENTS.min(published + row)).map(|n| publication(n, KEYS)).collect();
        published += publisher.publish(batch).await.unwrap().len();
        tokio::time::sleep(Duration::from_micros(published as u64 % 13 * 150)).await;
    }
    let all = async {
        while engine.stats().settled < EVENTS as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let heard = tokio::time::timeout(Duration::from_secs(30), all).await;
    assert!(heard.is_ok(), "an event waits for a bell: {:?}", engine.stats());
    engine.shutdown(1_000).await;
}
