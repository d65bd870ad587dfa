//! Names, events, commits and bells, made in a word.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use keyrail_ordering::{
    Catalog, CategoryName, Content, Effects, Entry, EntryRef, Event, Field, FieldType, GroupName, HaltCause,
    HaltRecord, Key, KeyRules, Lane, MessageName, MessageType, Metadata, Outgoing, PartitionSpec, Role, SequentialBy,
    StateChange, StreamId,
};

use crate::{Bell, Bells, Broker, Commit, Publication, ReadySource};

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a commit does, said in words.
pub trait CommitWords {
    fn put(self, name: &str, value: &str) -> Self;
    fn remove(self, name: &str) -> Self;
    fn emit(self, outgoing: Outgoing) -> Self;
    fn and_take(self, max: usize) -> Self;
    fn and_release(self) -> Self;
}

impl CommitWords for Commit {
    fn put(mut self, name: &str, value: &str) -> Self {
        self.effects
            .state
            .push(StateChange { name: name.into(), value: Some(Bytes::copy_from_slice(value.as_bytes())) });
        self
    }

    fn remove(mut self, name: &str) -> Self {
        self.effects.state.push(StateChange { name: name.into(), value: None });
        self
    }

    fn emit(mut self, outgoing: Outgoing) -> Self {
        self.effects.emits.push(outgoing);
        self
    }

    fn and_take(mut self, max: usize) -> Self {
        self.take_max = max;
        self
    }

    fn and_release(mut self) -> Self {
        self.release = true;
        self
    }
}

pub fn commit(entry: &Entry) -> Commit {
    commit_all(&[entry])
}

pub fn commit_all(entries: &[&Entry]) -> Commit {
    let entries = entries.iter().map(|entry| entry.at.clone()).collect();
    Commit { entries, effects: Effects::default(), take_max: 0, release: false, version: None }
}

pub fn category(name: &str) -> CategoryName {
    CategoryName::parse(name).unwrap()
}

pub fn group(name: &str) -> GroupName {
    GroupName::parse(name).unwrap()
}

pub fn key(text: &str) -> Key {
    Key::parse(text, &KeyRules::default()).unwrap()
}

/// The partition of the group `billing`.
pub fn billing(key_text: &str) -> Arc<PartitionSpec> {
    partition("billing", "order", key_text)
}

pub fn partition(group_name: &str, category_name: &str, key_text: &str) -> Arc<PartitionSpec> {
    Arc::new(PartitionSpec::of_key(group(group_name), category(category_name), key(key_text)))
}

/// The ready set of a group on `order`.
pub fn source(group_name: &str) -> ReadySource {
    source_on(group_name, "order")
}

pub fn source_on(group_name: &str, category_name: &str) -> ReadySource {
    ReadySource::Category { group: group(group_name), category: category(category_name) }
}

pub fn primary(key_text: &str) -> StreamId {
    StreamId::primary(category("order"), key(key_text))
}

/// An event that is published once, whatever its id.
pub fn publication(key: &str, id: &str) -> Publication {
    let key_field = Some("client".into());
    Publication { event: event("order", key, id), key_field, lane: Lane::Primary, dedupe_window_ms: 0 }
}

pub fn event(category_name: &str, key_text: &str, id: &str) -> Event {
    Event {
        id: id.into(),
        category: category(category_name),
        name: MessageName::parse("OrderPlaced").unwrap(),
        version: 1,
        key: Some(key(key_text)),
        headers: vec![],
        data: format!(r#"{{"client":"{key_text}","n":"{id}"}}"#).into(),
    }
}

/// An event of `order` for the outbox.
pub fn outgoing(key: &str, id: &str) -> Outgoing {
    Outgoing { event: event("order", key, id), key_field: Some("client".into()) }
}

pub fn halt_record(head: &EntryRef) -> HaltRecord {
    let (error, handler_version) = ("it is too sour".into(), "1.0".into());
    HaltRecord { head: head.clone(), cause: HaltCause::Poison, attempts: 5, error, handler_version }
}

/// The catalog with one more handler, or one in place of another of this name.
pub fn with_handler(catalog: &Catalog, name: &str, category_name: &str, key_field: Option<&str>) -> Catalog {
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Text, required: true };
    let message = MessageType {
        category: category(category_name),
        name: MessageName::parse("OrderPlaced").unwrap(),
        version: 1,
        fields: vec![field("client"), field("n")],
    };
    let metadata = Metadata {
        name: group(name),
        version: "1.0".into(),
        role: Role::EventHandler,
        handles: vec![message],
        sequential_by: key_field.map_or(SequentialBy::Unordered, |field| SequentialBy::Field(field.into())),
        options: vec![],
    };
    let capabilities = keyrail_ordering::Capabilities { stream_partitioning: true };
    catalog.register(&metadata, "00ff", capabilities).unwrap()
}

pub fn event_of(entry: &Entry) -> &Event {
    match &entry.content {
        Content::Event(event) => event,
        other => panic!("{} holds {other:?}", entry.at),
    }
}

pub fn id_of(entry: &Entry) -> String {
    event_of(entry).id.to_string()
}

pub fn assert_order(entries: &[Arc<Entry>], ids: &[&str]) {
    let found: Vec<_> = entries.iter().map(|entry| id_of(entry)).collect();
    assert_eq!(found, ids);
}

/// The next bell; none that comes is a failure.
pub async fn next_bell(bells: &mut Bells) -> Bell {
    tokio::time::timeout(PATIENCE, bells.next()).await.expect("no bell rang").expect("the bells ended")
}

/// The bells from the start on, which is always [`Bell::Lost`].
pub async fn listen(broker: &dyn Broker, sources: Vec<ReadySource>) -> Bells {
    let mut bells = broker.bells(sources).await.unwrap();
    assert_eq!(next_bell(&mut bells).await, Bell::Lost);
    bells
}

pub fn bell(group_name: &str, key_text: &str) -> Bell {
    Bell::Ready { source: source(group_name), key: key(key_text) }
}

/// Waits for a condition.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut check: impl FnMut() -> F) -> T {
    let wait = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
