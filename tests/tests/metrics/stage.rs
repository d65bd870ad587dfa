//! An engine in this process, on a real Redis, with handlers that do as their events say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::config::{EngineConfig, PublishConfig};
use keyrail::engine::{Engine, Handler, HandlerInstance, Surroundings};
use keyrail::service::{Registration, Service};
use keyrail::telemetry::Telemetry;
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{Broker, Publication};
use keyrail_ordering::{
    CategoryName, Effects, Event, Failure, FailureKind, Key, KeyRules, Lane, MessageName, Metadata, OwnerId,
};
use keyrail_runtime::{Answer, Call, CallHost, InstantiateError};
use keyrail_tests::intercept::{Fate, Hook, Intercepted};
use keyrail_tests::native::metadata;
use tokio::sync::Semaphore;

use super::parse;

/// Whatever is waited for comes much sooner.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A handler that fails as its event says: keys `good…`, `flaky…` (the first try), `bad…` (always), `slow…` (waits for leave).
struct Scripted {
    metadata: Metadata,
    leave: Arc<Semaphore>,
}

#[async_trait]
impl Handler for Scripted {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(ScriptedInstance { leave: self.leave.clone() }))
    }
}

struct ScriptedInstance {
    leave: Arc<Semaphore>,
}

#[async_trait]
impl HandlerInstance for ScriptedInstance {
    async fn call(&mut self, call: &Call<'_>, _: Box<dyn CallHost>) -> Answer {
        let key = call.event.key.as_ref().map(ToString::to_string).unwrap_or_default();
        let failed = |kind| Answer::Failed(Failure { kind, error: "as told".into() });
        match key.as_str() {
            key if key.starts_with("bad") => failed(FailureKind::Rejected),
            key if key.starts_with("flaky") && call.attempt == 1 => failed(FailureKind::Trap),
            key if key.starts_with("slow") => {
                self.leave.acquire().await.unwrap().forget();
                Answer::Done(Effects::default())
            }
            _ => Answer::Done(Effects::default()),
        }
    }
    fn is_spent(&self) -> bool {
        false
    }
}

/// A Redis, an engine on it in this process, and what it exports.
pub(crate) struct Stage {
    pub(crate) redis: RedisServer,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) engine: Engine,
    pub(crate) telemetry: Telemetry,
    pub(crate) leave: Arc<Semaphore>,
}

impl Stage {
    pub(crate) async fn new(hook: Hook) -> Self {
        let redis = RedisServer::start().unwrap();
        let broker: Arc<dyn Broker> =
            Arc::new(RedisBroker::connect(&redis.url(), RedisSettings::default()).await.unwrap());
        let telemetry = Telemetry::default();
        let service = Service::new(broker.clone(), PublishConfig::default());
        let names = ["ledger", "saga", "meter"];
        let registrations = names.map(|name| Registration { metadata: metadata(name), content_hash: "00".into() });
        service.register(&registrations).await.unwrap();
        let leave = Arc::new(Semaphore::new(0));
        let handler = |name| Arc::new(Scripted { metadata: metadata(name), leave: leave.clone() }) as Arc<dyn Handler>;
        let config = EngineConfig { heartbeat_interval_ms: 50, linger_ms: 0, pause_ms: 5, ..EngineConfig::default() };
        let surroundings = Surroundings { telemetry: telemetry.clone(), ..Surroundings::default() };
        let engine = Engine::start_in(
            surroundings,
            Intercepted::new(broker.clone(), hook),
            names.map(handler).to_vec(),
            &config,
            OwnerId::new("stage"),
        );
        let engine = engine.await.unwrap();
        Self { redis, broker, engine, telemetry, leave }
    }

    pub(crate) async fn publish(&self, category: &str, keys: &[&str]) {
        let keyed = category != "metrics";
        let publication = |(n, key): (usize, &&str)| Publication {
            event: Event {
                id: format!("{category}-{key}-{n}").into(),
                category: CategoryName::parse(category).unwrap(),
                name: MessageName::parse("Work").unwrap(),
                version: 1,
                key: keyed.then(|| Key::parse(key, &KeyRules::default()).unwrap()),
                headers: vec![],
                data: Bytes::from(format!(r#"{{"client_id":"{key}","n":{n}}}"#)),
            },
            key_field: keyed.then(|| "client_id".into()),
            lane: Lane::Primary,
            dedupe_window_ms: 0,
        };
        for published in self.broker.publish(keys.iter().enumerate().map(publication).collect()).await.unwrap() {
            published.unwrap();
        }
    }

    pub(crate) async fn series(&self) -> BTreeMap<String, f64> {
        parse(&self.telemetry.render().await)
    }

    /// Waits until a series has this value.
    pub(crate) async fn until(&self, series: &str, value: f64) {
        let waited = tokio::time::timeout(DEADLINE, async {
            while self.series().await.get(series).is_none_or(|present| (present - value).abs() > 1e-9) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(waited.await.is_ok(), "waited in vain for {series} {value}:\n{}", self.telemetry.render().await);
    }

    pub(crate) async fn assert(&self, series: &str, value: f64) {
        let text = self.telemetry.render().await;
        let present = parse(&text).get(series).copied();
        assert_eq!(present, Some(value), "{series} in\n{text}");
    }
}

pub(crate) fn no_hook() -> Hook {
    Arc::new(|_| Fate::Answered)
}
