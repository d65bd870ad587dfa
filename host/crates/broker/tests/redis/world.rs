//! A server, two hosts on it, one category `order` with the key field `client` and the group `h`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use keyrail_broker::redis::keyspace::{self, Part};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{
    AcquireError, Acquired, CatalogStore, Commit, Leases, Log, Publication, Publish, Published, ReadySource,
};
use keyrail_ordering::{
    Catalog, CategoryName, Content, Correlation, Effects, Entry, EntryRef, Event, Field, FieldType, GroupName, Key,
    KeyRules, Lane, Lease, MessageName, MessageType, Metadata, OwnerId, PartitionSpec, Role, SequentialBy, StateChange,
    StreamId,
};
use redis::Value;

pub(crate) const TTL_MS: u64 = 60_000;

pub(crate) struct World {
    pub(crate) a: RedisBroker,
    pub(crate) b: RedisBroker,
    pub(crate) raw: redis::aio::MultiplexedConnection,
    pub(crate) server: RedisServer,
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text, &KeyRules::default()).unwrap()
}

pub(crate) fn category(name: &str) -> CategoryName {
    CategoryName::parse(name).unwrap()
}

pub(crate) fn group(name: &str) -> GroupName {
    GroupName::parse(name).unwrap()
}

pub(crate) fn partition(key_text: &str) -> Arc<PartitionSpec> {
    Arc::new(PartitionSpec::of_key(group("h"), category("order"), key(key_text)))
}

/// A partition of the process manager `pm` over `order` and `payment`.
pub(crate) fn manager(value: &str) -> Arc<PartitionSpec> {
    let categories = [category("order"), category("payment")];
    Arc::new(PartitionSpec::of_correlation(group("pm"), &categories, key(value)))
}

pub(crate) fn source() -> ReadySource {
    ReadySource::Category { group: group("h"), category: category("order") }
}

pub(crate) fn owner(name: &str) -> OwnerId {
    OwnerId::new(name)
}

pub(crate) fn event(category_name: &str, key_text: &str, id: &str) -> Publication {
    Publication {
        event: Event {
            id: id.into(),
            category: category(category_name),
            name: MessageName::parse("Placed").unwrap(),
            version: 1,
            key: Some(key(key_text)),
            headers: vec![],
            data: Bytes::from(format!("{{\"client\":\"{key_text}\",\"n\":\"{id}\"}}")),
        },
        key_field: Some("client".into()),
        lane: Lane::Primary,
        dedupe_window_ms: 60_000,
    }
}

pub(crate) fn handler(name: &str, categories: &[&str], correlated: bool) -> Metadata {
    let handles: Vec<_> = categories
        .iter()
        .map(|name| MessageType {
            category: category(name),
            name: MessageName::parse("Placed").unwrap(),
            version: 1,
            fields: vec![Field { name: "client".into(), kind: FieldType::Text, required: true }],
        })
        .collect();
    let sequential_by = if correlated {
        let correlation = |m: &MessageType| Correlation {
            category: m.category.clone(),
            message: m.name.clone(),
            field: "client".into(),
        };
        SequentialBy::Correlation(handles.iter().map(correlation).collect())
    } else {
        SequentialBy::Field("client".into())
    };
    let role = if correlated { Role::ProcessManager } else { Role::EventHandler };
    Metadata { name: group(name), version: "1".into(), role, handles, sequential_by, options: vec![] }
}

/// A handler of `metrics`, which is not partitioned.
pub(crate) fn unordered(name: &str) -> Metadata {
    Metadata { sequential_by: SequentialBy::Unordered, ..handler(name, &["metrics"], false) }
}

/// An event of `metrics`.
pub(crate) fn metric(id: &str) -> Publication {
    let mut publication = event("metrics", "m", id);
    (publication.event.key, publication.key_field) = (None, None);
    publication
}

pub(crate) async fn register(broker: &RedisBroker, handler: &Metadata) {
    let (catalog, version): (Catalog, u64) = broker.catalog().await.unwrap();
    let catalog = catalog.register(handler, "00", broker.capabilities()).unwrap();
    assert_eq!(broker.set_catalog(&catalog, version).await.unwrap(), Some(version + 1));
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(arguments: &[&str]) -> Self {
        let server = RedisServer::start_with(arguments).unwrap();
        let settings = RedisSettings { response_timeout_ms: 20_000, ..RedisSettings::default() };
        let a = RedisBroker::connect(&server.url(), settings.clone()).await.unwrap();
        let b = RedisBroker::connect(&server.url(), settings).await.unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
        let raw = client.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
        register(&a, &handler("h", &["order"], false)).await;
        Self { a, b, raw, server }
    }

    /// A command, as redis-cli would send it.
    pub(crate) async fn cli(&self, line: &str) -> Value {
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.raw.clone()).await.unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) async fn number(&self, line: &str) -> i64 {
        match self.cli(line).await {
            Value::Int(number) => number,
            Value::BulkString(text) => String::from_utf8(text).unwrap().parse().unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Publishes `{key}-{n}` for each n.
    pub(crate) async fn publish(&self, key_text: &str, numbers: std::ops::RangeInclusive<u32>) -> Vec<Published> {
        let batch = numbers.map(|n| event("order", key_text, &format!("{key_text}-{n}"))).collect();
        self.a.publish(batch).await.unwrap().into_iter().map(Result::unwrap).collect()
    }

    pub(crate) async fn acquire(&self, broker: &RedisBroker, key_text: &str, owner_name: &str) -> Acquired {
        broker.acquire(partition(key_text), &owner(owner_name), TTL_MS, 10).await.unwrap()
    }

    /// The lease runs out.
    pub(crate) async fn lapse(&self, key_text: &str) {
        let name = keyspace::part(&partition(key_text).id, Part::Lease);
        assert_eq!(self.number(&format!("DEL {name}")).await, 1);
    }
}

pub(crate) fn ids(entries: &[Arc<Entry>]) -> Vec<String> {
    let id = |entry: &Arc<Entry>| match &entry.content {
        Content::Event(event) => event.id.to_string(),
        Content::Missing => "missing".into(),
        Content::Undecodable(_) => "undecodable".into(),
    };
    entries.iter().map(id).collect()
}

pub(crate) fn settle(entry: &Entry) -> Commit {
    Commit { entries: vec![entry.at.clone()], effects: Effects::default(), take_max: 0, release: false, version: None }
}

pub(crate) fn put(name: &str, value: &str) -> StateChange {
    StateChange { name: name.into(), value: Some(Bytes::from(value.to_string())) }
}

pub(crate) fn at(key_text: &str, id: &str) -> EntryRef {
    EntryRef { stream: StreamId::primary(category("order"), key(key_text)), id: id.parse().unwrap() }
}

/// Commits all entries of a take in order.
pub(crate) async fn commit_all(broker: &RedisBroker, lease: &Lease, entries: &[Arc<Entry>]) {
    for entry in entries {
        broker.commit(lease, settle(entry)).await.unwrap();
    }
}

/// Acquires as soon as the present lease has lapsed.
pub(crate) async fn acquire_when_lapsed(broker: &RedisBroker, key_text: &str, owner_name: &str) -> Acquired {
    eventually("the lease lapses", async || {
        match broker.acquire(partition(key_text), &owner(owner_name), TTL_MS, 10).await {
            Ok(acquired) => Some(acquired),
            Err(AcquireError::Held { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

/// Waits for a condition.
pub(crate) async fn eventually<T>(what: &str, check: impl AsyncFn() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}
