//! An engine on an embedded broker in memory, with a language's conformance handler and the sink of what it emits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use keyrail::config::{EngineConfig, PublishConfig};
use keyrail::engine::{Engine, Handler, WasmHandler};
use keyrail::service::{LineSplitter, PublishOptions, Registration, Service};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{Broker, ReadySource};
use keyrail_ordering::{CategoryName, GroupName, HaltRecord, OwnerId};
use keyrail_runtime::{Manifest, Module, Runtime, Settings};
use keyrail_tests::guest;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, mpsc};

use crate::log;

/// A key's state, by the names of its values.
pub type State = BTreeMap<String, Bytes>;

/// Of what a guest may compute in a call: enough for an interpreter that starts, short for an endless loop.
const CPU_MAX_MS: u64 = 1_000;

static RUNTIME: LazyLock<Arc<Runtime>> = LazyLock::new(|| {
    // An interpreter's component takes many seconds to compile, so what was compiled is kept from run to run.
    let cache_dir = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conformance-compiled"));
    Runtime::new(Settings { cpu_max_ms: CPU_MAX_MS, instances_max: 200, cache_dir, ..Settings::default() }).unwrap()
});

static SINK: Component = Component::new("conformance-sink");

/// A component, loaded once in a process.
pub struct Component {
    name: &'static str,
    module: OnceCell<Arc<Module>>,
}

impl Component {
    /// Of the folder `guests` of the target folder.
    pub const fn new(name: &'static str) -> Self {
        Self { name, module: OnceCell::const_new() }
    }

    /// The loaded component.
    pub async fn module(&self) -> &Arc<Module> {
        let load = || async {
            let path = guest(self.name);
            RUNTIME
                .load(&path, &Manifest::default())
                .await
                .unwrap_or_else(|error| panic!("{} does not load: {error}", path.display()))
        };
        self.module.get_or_init(load).await
    }
}

/// One event for the handler.
#[derive(Debug, Clone)]
pub struct Step {
    key: String,
    data: Value,
    headers: Value,
}

/// A step for a key.
pub fn step(key: &str, action: &str) -> Step {
    Step { key: key.into(), data: json!({ "key": key, "action": action }), headers: json!({}) }
}

impl Step {
    pub fn name(mut self, name: &str) -> Self {
        self.data["name"] = name.into();
        self
    }

    pub fn text(mut self, text: &str) -> Self {
        self.data["text"] = text.into();
        self
    }

    pub fn count(mut self, count: i64) -> Self {
        self.data["count"] = count.into();
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers[name] = value.into();
        self
    }
}

/// See the module.
pub struct World {
    broker: Arc<dyn Broker>,
    service: Service,
    handlers: Vec<Arc<Module>>,
    published: usize,
}

impl World {
    /// An empty one.
    pub async fn new(component: &Component) -> Self {
        Self::with(component, EmbeddedSettings::default()).await
    }

    /// One whose clock stands still.
    pub async fn at(component: &Component, now_ms: u64) -> Self {
        Self::with(component, EmbeddedSettings { wall_clock: Arc::new(move || now_ms), ..EmbeddedSettings::default() })
            .await
    }

    async fn with(component: &Component, settings: EmbeddedSettings) -> Self {
        log::listen();
        let handlers = vec![component.module().await.clone(), SINK.module().await.clone()];
        let broker: Arc<dyn Broker> = Arc::new(EmbeddedBroker::memory(settings).unwrap());
        let service = Service::new(broker.clone(), PublishConfig::default());
        let registrations = handlers.iter().map(|module| Registration {
            metadata: module.metadata().clone(),
            content_hash: module.content_hash().into(),
        });
        service.register(&registrations.collect::<Vec<_>>()).await.unwrap();
        Self { broker, service, handlers, published: 0 }
    }

    /// Publishes the steps, in this order, and runs until all of them are settled or stand still. Answers with their ids.
    pub async fn run(&mut self, steps: impl IntoIterator<Item = Step>) -> Vec<String> {
        let ids = self.publish(steps).await;
        let handlers = self.handlers.iter().map(|module| Arc::new(WasmHandler(module.clone())) as Arc<dyn Handler>);
        let config = EngineConfig::default();
        let engine =
            Engine::start(self.broker.clone(), handlers.collect(), &config, OwnerId::new("conformance")).await.unwrap();
        let idle = tokio::time::timeout(keyrail_tests::DEADLINE, engine.until_idle()).await.expect("it settles");
        engine.shutdown(config.shutdown_grace_ms).await;
        assert_eq!(idle.abandoned, 0);
        ids
    }

    async fn publish(&mut self, steps: impl IntoIterator<Item = Step>) -> Vec<String> {
        let (mut text, mut ids) = (String::new(), vec![]);
        for Step { key, data, headers } in steps {
            self.published += 1;
            // Unique in the process, since the log is one for all tests: the address of the broker is its world's.
            let id = format!("{key}-{}-{:p}", self.published, Arc::as_ptr(&self.broker));
            let line = json!({
                "id": id, "category": "conformance", "type": "Step", "data": data, "headers": headers,
            });
            text += &line.to_string();
            text.push('\n');
            ids.push(id);
        }
        let lines = LineSplitter::new(1, self.service.line_max_bytes()).push(&Bytes::from(text));
        let (sender, input) = mpsc::channel(1);
        let (reports, mut told) = mpsc::channel(16);
        let (outcome, sent, ()) = tokio::join!(
            self.service.publish(input, PublishOptions::default(), reports),
            async move { sender.send(lines).await },
            async { while told.recv().await.is_some() {} },
        );
        sent.unwrap();
        assert_eq!((outcome.published, outcome.stop), (ids.len() as u64, None));
        ids
    }

    /// The state of a key of the conformance handler.
    pub async fn state(&self, key: &str) -> State {
        self.state_of("conformance", "conformance", key).await
    }

    /// A value of it as text; empty if there is none.
    pub async fn text(&self, key: &str, name: &str) -> String {
        text_of(&self.state(key).await, name)
    }

    /// What the sink received for a key, a line each.
    pub async fn received(&self, key: &str) -> Vec<String> {
        let state = self.state_of("conformance-sink", "conformance-out", key).await;
        text_of(&state, "received").lines().map(str::to_string).collect()
    }

    async fn state_of(&self, group: &str, category: &str, key: &str) -> State {
        let (rows, next) = self.broker.states(&source(group, category), 0, 1_000).await.unwrap();
        assert_eq!(next, None, "more keys than a check should have");
        let row = rows.into_iter().find(|row| row.key.as_str() == key);
        row.map(|row| row.values.into_iter().collect()).unwrap_or_default()
    }

    /// Why a key stands still, if it does.
    pub async fn halted(&self, key: &str) -> Option<HaltRecord> {
        let (rows, _) = self.broker.halted(&source("conformance", "conformance"), 0, 1_000).await.unwrap();
        rows.into_iter().find(|(partition, _)| partition.key().as_str() == key).map(|(_, record)| record)
    }
}

/// A value as text; empty if there is none.
pub fn text_of(state: &State, name: &str) -> String {
    state.get(name).map(|value| String::from_utf8(value.to_vec()).unwrap()).unwrap_or_default()
}

fn source(group: &str, category: &str) -> ReadySource {
    ReadySource::Category { group: GroupName::parse(group).unwrap(), category: CategoryName::parse(category).unwrap() }
}
