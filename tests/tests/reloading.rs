//! Changing what an engine serves while it owns keys, with handlers that the test holds in its hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::config::EngineConfig;
use keyrail::engine::{Engine, Handler, HandlerInstance, Serving, Version};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{Broker, Publication, ReadySource};
use keyrail_ordering::{
    Capabilities, Catalog, CategoryName, Correlation, Effects, Event, Field, FieldType, GroupName, Key, KeyRules, Lane,
    MessageName, MessageType, Metadata, OwnerId, Role, Selection, SequentialBy,
};
use keyrail_runtime::{Answer, Call, CallHost, InstantiateError};
use tokio::sync::Semaphore;

/// Whatever is waited for comes much sooner.
const DEADLINE: Duration = Duration::from_mins(1);

/// What every version tells: which of them handled which event.
type Story = Arc<Mutex<Vec<(String, String)>>>;

/// A version that tells what it handles, and waits for leave to end.
struct Telling {
    metadata: Metadata,
    story: Story,
    leave: Arc<Semaphore>,
}

#[async_trait]
impl Handler for Telling {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        let (version, story, leave) = (self.metadata.version.clone(), self.story.clone(), self.leave.clone());
        Ok(Box::new(TellingInstance { version, story, leave }))
    }
}

struct TellingInstance {
    version: String,
    story: Story,
    leave: Arc<Semaphore>,
}

#[async_trait]
impl HandlerInstance for TellingInstance {
    async fn call(&mut self, call: &Call<'_>, _: Box<dyn CallHost>) -> Answer {
        self.story.lock().unwrap().push((self.version.clone(), call.event.id.to_string()));
        self.leave.acquire().await.unwrap().forget();
        Answer::Done(Effects::default())
    }
    fn is_spent(&self) -> bool {
        false
    }
}

fn message(category: &str, name: &str) -> MessageType {
    MessageType {
        category: CategoryName::parse(category).unwrap(),
        name: MessageName::parse(name).unwrap(),
        version: 1,
        fields: vec![Field { name: "key".into(), kind: FieldType::Text, required: true }],
    }
}

fn metadata(version: &str, handles: &[(&str, &str)]) -> Metadata {
    Metadata {
        name: GroupName::parse("teller").unwrap(),
        version: version.into(),
        role: Role::EventHandler,
        handles: handles.iter().map(|(category, name)| message(category, name)).collect(),
        sequential_by: SequentialBy::Field("key".into()),
        options: vec![],
    }
}

fn manager(version: &str, categories: &[&str]) -> Metadata {
    let correlation = |category: &&str| Correlation {
        category: CategoryName::parse(category).unwrap(),
        message: MessageName::parse("Said").unwrap(),
        field: "key".into(),
    };
    let handles: Vec<_> = categories.iter().map(|category| (*category, "Said")).collect();
    Metadata {
        role: Role::ProcessManager,
        sequential_by: SequentialBy::Correlation(categories.iter().map(correlation).collect()),
        ..metadata(version, &handles)
    }
}

/// A broker in memory, an engine on it, and what the handlers told.
struct Stage {
    broker: Arc<dyn Broker>,
    engine: Engine,
    story: Story,
    leave: Arc<Semaphore>,
}

impl Stage {
    async fn with(first: Metadata) -> Self {
        let broker: Arc<dyn Broker> = Arc::new(EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap());
        register(&broker, &first).await;
        let (story, leave) = (Story::default(), Arc::new(Semaphore::new(0)));
        let config = EngineConfig { linger_ms: 600_000, pause_ms: 5, ..EngineConfig::default() };
        let handler = Arc::new(Telling { metadata: first, story: story.clone(), leave: leave.clone() });
        let engine = Engine::start(broker.clone(), vec![handler], &config, OwnerId::new("stage")).await.unwrap();
        Self { broker, engine, story, leave }
    }

    fn version(&self, metadata: Metadata) -> Version {
        Version::local(Arc::new(Telling { metadata, story: self.story.clone(), leave: self.leave.clone() }))
    }

    fn serve(&self, metadata: Metadata) {
        let group = metadata.name.clone();
        assert!(self.engine.handlers().set(&group, Serving::all(self.version(metadata))));
    }

    async fn publish(&self, category: &str, name: &str, key: &str, ids: &[&str]) {
        let event = |id: &&str| Publication {
            event: Event {
                id: (*id).into(),
                category: CategoryName::parse(category).unwrap(),
                name: MessageName::parse(name).unwrap(),
                version: 1,
                key: Some(Key::parse(key, &KeyRules::default()).unwrap()),
                headers: vec![],
                data: Bytes::from(format!(r#"{{"key":"{key}"}}"#)),
            },
            key_field: Some("key".into()),
            lane: Lane::Primary,
            dedupe_window_ms: 0,
        };
        for published in self.broker.publish(ids.iter().map(event).collect()).await.unwrap() {
            published.unwrap();
        }
    }

    fn told(&self) -> Vec<(String, String)> {
        self.story.lock().unwrap().clone()
    }

    async fn until(&self, what: &str, condition: impl Fn(&[(String, String)]) -> bool) {
        let waited = tokio::time::timeout(DEADLINE, async {
            while !condition(&self.told()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        assert!(waited.await.is_ok(), "waited in vain until {what}: {:?}", self.told());
    }

    async fn generations(&self) -> BTreeMap<String, u64> {
        let (catalog, _) = self.broker.catalog().await.unwrap();
        let mut generations = BTreeMap::new();
        for source in ReadySource::of_handler(&catalog, &GroupName::parse("teller").unwrap()) {
            let (rows, _) = self.broker.partitions(&source, 0, 100).await.unwrap();
            generations.extend(rows.into_iter().map(|row| (row.partition.to_string(), row.generation.unwrap().0)));
        }
        generations
    }
}

async fn register(broker: &Arc<dyn Broker>, metadata: &Metadata) {
    let (catalog, version) = broker.catalog().await.unwrap();
    let capabilities = Capabilities { stream_partitioning: true };
    let next: Catalog = catalog.register(metadata, metadata.version.as_str(), capabilities).unwrap();
    broker.set_catalog(&next, version).await.unwrap().unwrap();
}

fn said(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(version, event)| ((*version).into(), (*event).into())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn c069_an_event_that_runs_ends_on_its_version_and_the_next_begins_on_the_new_one() {
    let said_only = [("talk", "Said")];
    let stage = Stage::with(metadata("1", &said_only)).await;
    stage.publish("talk", "Said", "k", &["a", "b", "c"]).await;
    stage.until("a runs", |told| told.len() == 1).await;
    let before = stage.generations().await;
    stage.serve(metadata("2", &said_only));
    stage.leave.add_permits(1);
    stage.until("b runs", |told| told.len() == 2).await;
    stage.serve(metadata("3", &said_only));
    stage.leave.add_permits(2);
    stage.until("c runs", |told| told.len() == 3).await;
    assert_eq!(stage.told(), said(&[("1", "a"), ("2", "b"), ("3", "c")]));
    assert_eq!(stage.generations().await, before, "the key changed hands");
    stage.engine.shutdown(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c069_many_reloads_in_a_row_repeat_and_lose_nothing() {
    let stage = Stage::with(metadata("0", &[("talk", "Said")])).await;
    stage.leave.add_permits(10_000);
    let ids: Vec<_> = (0..200).map(|n| format!("e{n}")).collect();
    for (version, ids) in ids.chunks(10).enumerate() {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        stage.publish("talk", "Said", "k", &ids).await;
        stage.serve(metadata(&format!("{}", version + 1), &[("talk", "Said")]));
    }
    stage.until("all ran", |told| told.len() >= 200).await;
    let told = stage.told();
    assert_eq!(told.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>(), ids);
    let versions: Vec<u32> = told.iter().map(|(version, _)| version.parse().unwrap()).collect();
    assert!(versions.is_sorted(), "an older version came after a newer one: {versions:?}");
    stage.engine.shutdown(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_only_the_registered_version_handles_waits_for_it() {
    let stage = Stage::with(metadata("1", &[("talk", "Said")])).await;
    stage.leave.add_permits(100);
    // As when a publisher is faster than this host: its catalog is still the old one.
    register(&stage.broker, &metadata("2", &[("talk", "Said"), ("talk", "Sung")])).await;
    stage.publish("talk", "Said", "k", &["a"]).await;
    stage.publish("talk", "Sung", "k", &["b"]).await;
    stage.publish("talk", "Said", "k", &["c"]).await;
    stage.until("a ran", |told| told.len() == 1).await;
    // Long enough for many a look, were it passed over.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.told(), said(&[("1", "a")]));
    stage.serve(metadata("2", &[("talk", "Said"), ("talk", "Sung")]));
    stage.until("all ran", |told| told.len() == 3).await;
    assert_eq!(stage.told(), said(&[("1", "a"), ("2", "b"), ("2", "c")]));
    stage.engine.shutdown(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_is_not_served_any_more_gives_its_keys_up_and_takes_them_again() {
    let stage = Stage::with(metadata("1", &[("talk", "Said")])).await;
    stage.publish("talk", "Said", "k", &["a", "b"]).await;
    stage.until("a runs", |told| told.len() == 1).await;
    assert!(stage.engine.handlers().remove(&GroupName::parse("teller").unwrap()));
    stage.leave.add_permits(100);
    let given_up = tokio::time::timeout(DEADLINE, async {
        while stage.engine.stats().owned > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    given_up.await.unwrap();
    assert_eq!(stage.told(), said(&[("1", "a")]), "what ran has ended, and no more began");
    stage.serve(metadata("2", &[("talk", "Said")]));
    stage.until("b ran", |told| told.len() == 2).await;
    assert_eq!(stage.told(), said(&[("1", "a"), ("2", "b")]));
    stage.engine.shutdown(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_serves_the_keys_that_it_is_for() {
    let stage = Stage::with(metadata("1", &[("talk", "Said")])).await;
    stage.leave.add_permits(1_000);
    let group = GroupName::parse("teller").unwrap();
    let active = stage.version(metadata("1", &[("talk", "Said")]));
    let canary = stage.version(metadata("2", &[("talk", "Said")]));
    let selection = Selection::Percent(30);
    stage.engine.handlers().set(&group, Serving { active, canary: Some((selection.clone(), canary)) });
    let keys: Vec<_> = (0..40).map(|n| format!("k{n}")).collect();
    for key in &keys {
        stage.publish("talk", "Said", key, &[&format!("{key}-1"), &format!("{key}-2")]).await;
    }
    stage.until("all ran", |told| told.len() == 80).await;
    let chosen = |key: &str| selection.contains(&group, &Key::parse(key, &KeyRules::default()).unwrap());
    let on_canary = keys.iter().filter(|key| chosen(key)).count();
    assert!((4..=20).contains(&on_canary), "{on_canary} of 40 keys at 30 %");
    for (version, id) in stage.told() {
        let key = id.split_once('-').unwrap().0;
        assert_eq!(version, if chosen(key) { "2" } else { "1" }, "{id}");
    }
    stage.engine.shutdown(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_manager_that_reads_another_category_finds_what_was_there() {
    let stage = Stage::with(manager("1", &["talk"])).await;
    stage.leave.add_permits(100);
    // Somebody else's category, with events of the same value.
    let other = Metadata { name: GroupName::parse("other").unwrap(), ..metadata("1", &[("song", "Said")]) };
    register(&stage.broker, &other).await;
    stage.publish("song", "Said", "k", &["s1"]).await;
    stage.publish("talk", "Said", "k", &["t1", "t2"]).await;
    stage.until("the first category ran", |told| told.len() == 2).await;
    register(&stage.broker, &manager("2", &["song", "talk"])).await;
    stage.serve(manager("2", &["song", "talk"]));
    stage.until("the other one ran too", |told| told.len() == 3).await;
    assert_eq!(stage.told()[2], ("2".into(), "s1".into()));
    stage.engine.shutdown(1_000).await;
}
