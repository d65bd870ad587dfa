//! How late events are while handlers are replaced under load: the pause of a key whose handler changes, and the lateness of all
//! others, beside what they are when nothing changes.
//!
//! One host on a real Redis, fifty keys, an event of each every 100 ms. Lateness is from publishing to the start of the call.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::config::EngineConfig;
use keyrail::engine::{Engine, Handler, HandlerInstance, Serving, Version, WasmHandler};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{Broker, Publication};
use keyrail_ordering::{Capabilities, Catalog, Event, Key, KeyRules, Lane, Metadata, OwnerId};
use keyrail_runtime::{Answer, Call, CallHost, Compiler, InstantiateError, Manifest, Module, Runtime, Settings};
use keyrail_tests::{guest, keyrail};

const KEYS: usize = 50;
const RELOADS: usize = 40;
const RELOAD_EVERY: Duration = Duration::from_millis(500);
/// What begins this soon after a reload is counted as its neighbour.
const NEAR: Duration = Duration::from_millis(50);

/// What happened to the events: when published, when begun, under which version.
#[derive(Default)]
struct Diary {
    published: BTreeMap<String, Instant>,
    begun: Vec<(String, String, Instant, u64)>,
    reloads: Vec<Instant>,
}

type Shared = Arc<Mutex<Diary>>;

/// A handler that writes down when its calls begin.
struct Timed {
    inner: WasmHandler,
    number: u64,
    diary: Shared,
}

#[async_trait]
impl Handler for Timed {
    fn metadata(&self) -> &Metadata {
        self.inner.metadata()
    }
    async fn instantiate(&self, seed: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        let inner = self.inner.instantiate(seed).await?;
        Ok(Box::new(TimedInstance { inner, number: self.number, diary: self.diary.clone() }))
    }
}

struct TimedInstance {
    inner: Box<dyn HandlerInstance>,
    number: u64,
    diary: Shared,
}

#[async_trait]
impl HandlerInstance for TimedInstance {
    async fn call(&mut self, call: &Call<'_>, host: Box<dyn CallHost>) -> Answer {
        let now = Instant::now();
        let key = call.event.key.as_ref().unwrap().to_string();
        self.diary.lock().unwrap().begun.push((key, call.event.id.to_string(), now, self.number));
        self.inner.call(call, host).await
    }
    fn is_spent(&self) -> bool {
        self.inner.is_spent()
    }
}

fn version(module: Arc<Module>, number: u64, diary: &Shared) -> Version {
    Version::local(Arc::new(Timed { inner: WasmHandler(module), number, diary: diary.clone() }))
}

async fn publish_one(broker: &dyn Broker, diary: &Shared, key: usize, n: usize) {
    let id = format!("{key}-{n}");
    let data = format!(
        r#"{{"tail_number":"K{key}","carrier":"XX","flight":1,"origin":"AAA","destination":"BBB","at":"2013-01-01T10:00:00Z","delay_minutes":0}}"#
    );
    let event = Event {
        id: id.as_str().into(),
        category: "flight".parse().unwrap(),
        name: "FlightDeparted".parse().unwrap(),
        version: 1,
        key: Some(Key::parse(&format!("K{key}"), &KeyRules::default()).unwrap()),
        headers: vec![],
        data: Bytes::from(data),
    };
    diary.lock().unwrap().published.insert(id, Instant::now());
    let publication =
        Publication { event, key_field: Some("tail_number".into()), lane: Lane::Primary, dedupe_window_ms: 0 };
    broker.publish(vec![publication]).await.unwrap().remove(0).unwrap();
}

fn row(name: &str, mut samples: Vec<Duration>) {
    samples.sort_unstable();
    let at = |share: f64| samples.get(((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1)));
    let [median, p99, max] = [0.5, 0.99, 1.0].map(|share| at(share).map_or(0.0, |it| it.as_secs_f64() * 1e3));
    println!("{name:<66} {:>7} {median:>8.2} {p99:>8.2} {max:>8.2}", samples.len());
}

#[tokio::main]
async fn main() {
    let redis = RedisServer::start().unwrap();
    let connect = || async { RedisBroker::connect(&redis.url(), RedisSettings::default()).await.unwrap() };
    let (broker, publisher): (Arc<dyn Broker>, Arc<dyn Broker>) =
        (Arc::new(connect().await), Arc::new(connect().await));
    let cache = std::env::temp_dir().join(format!("keyrail-bench-{}", std::process::id()));
    let compiler = Compiler::Child { command: vec![keyrail().into(), keyrail::config::COMPILE_COMMAND.into()] };
    let settings = Settings { cache_dir: Some(cache.clone()), compiler, ..Settings::default() };
    let runtime = Runtime::new(settings).unwrap();
    let load = || runtime.load(&KNOWN, &NOTHING);
    let module = load().await.unwrap();
    let capabilities = Capabilities { stream_partitioning: true };
    let catalog = Catalog::default().register(module.metadata(), module.content_hash(), capabilities).unwrap();
    broker.set_catalog(&catalog, 0).await.unwrap().unwrap();

    let diary = Shared::default();
    let config = EngineConfig { linger_ms: 600_000, ..EngineConfig::default() };
    let engine = Engine::start(broker.clone(), vec![], &config, OwnerId::new("bench")).await.unwrap();
    let (handlers, group) = (engine.handlers(), module.metadata().name.clone());
    handlers.set(&group, Serving::all(version(module, 0, &diary)));
    let load_task = tokio::spawn({
        let (publisher, diary) = (publisher.clone(), diary.clone());
        async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(2));
            for n in 0.. {
                ticks.tick().await;
                publish_one(publisher.as_ref(), &diary, n % KEYS, n / KEYS).await;
            }
        }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    diary.lock().unwrap().begun.clear();

    for number in 1..=RELOADS as u64 {
        tokio::time::sleep(RELOAD_EVERY).await;
        let module = load().await.unwrap();
        diary.lock().unwrap().reloads.push(Instant::now());
        handlers.set(&group, Serving::all(version(module, number, &diary)));
    }
    tokio::time::sleep(RELOAD_EVERY).await;
    let (quiet, near, first) = lateness(&diary);
    println!("{KEYS} keys, {RELOADS} reloads of a compiled module; ms from publishing to the start of the call");
    println!("{:<66} {:>7} {:>8} {:>8} {:>8}", "", "samples", "median", "p99", "max");
    row("events when nothing is reloaded", quiet);
    row("events within 50 ms of a reload", near);
    row("the first event of a key on a new version (aim: 10 ms)", first);

    diary.lock().unwrap().begun.clear();
    let began = Instant::now();
    let large = guest("itinerary-python");
    let size = std::fs::metadata(&large).unwrap().len() / 1_000_000;
    runtime.load(&large, &NOTHING).await.unwrap();
    println!(
        "a component of {size} MB compiles in {:.1} s, in a child process at low priority",
        began.elapsed().as_secs_f64()
    );
    let (all, ..) = lateness(&diary);
    row("events while it compiles", all);
    load_task.abort();
    engine.shutdown(1_000).await;
    let _ = std::fs::remove_dir_all(cache);
}

static KNOWN: std::sync::LazyLock<std::path::PathBuf> = std::sync::LazyLock::new(|| guest("itinerary"));
static NOTHING: std::sync::LazyLock<Manifest> = std::sync::LazyLock::new(Manifest::default);

/// Of events far from a reload, of those near one, and of the first of each key on each version.
fn lateness(diary: &Shared) -> (Vec<Duration>, Vec<Duration>, Vec<Duration>) {
    let diary = diary.lock().unwrap();
    let (mut quiet, mut near, mut first) = (vec![], vec![], vec![]);
    let mut seen = BTreeSet::new();
    for (key, id, begun, number) in &diary.begun {
        let late = begun.duration_since(diary.published[id]);
        let is_near = diary.reloads.iter().any(|at| *begun >= *at && begun.duration_since(*at) < NEAR);
        if is_near {
            near.push(late);
        } else {
            quiet.push(late);
        }
        if seen.insert((key.clone(), *number)) && *number > 0 {
            first.push(late);
        }
    }
    (quiet, near, first)
}
