//! What the cases are told with: one category `order`, partitioned by `client`, and the group `billing` on it.

use std::any::Any;
use std::sync::Arc;

use keyrail_ordering::{Entry, EntryId, Lane, Lease, OwnerId, PartitionSpec};

pub use super::words::*;
use super::{Spoil, Subject};
use crate::{
    AcquireError, Acquired, Backlog, Broker, Committed, FencedError, Publication, PublishError, Published, ReadySource,
};

/// A lease that no case outlives.
pub const LONG_TTL_MS: u64 = 600_000;
/// Entries that an acquire or a take asks for, if the case does not say.
pub const READ_MAX: usize = 10;

pub struct Story {
    pub broker: Arc<dyn Broker>,
    pub spoil: Option<Spoil>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Story {
    /// With `billing` registered.
    pub async fn begin(subject: Subject) -> Self {
        let story = Self::empty(subject);
        story.register("billing", "order", Some("client")).await;
        story
    }

    pub fn empty(subject: Subject) -> Self {
        Self { broker: subject.broker, spoil: subject.spoil, _keep: subject.keep }
    }

    pub async fn register(&self, group: &str, category_name: &str, key_field: Option<&str>) {
        let (catalog, version) = self.broker.catalog().await.unwrap();
        let next = with_handler(&catalog, group, category_name, key_field);
        assert_eq!(self.broker.set_catalog(&next, version).await.unwrap(), Some(version + 1));
    }

    /// Publishes events of one key, whose ids are as given.
    pub async fn publish<const N: usize>(&self, key: &str, ids: [&str; N]) -> [EntryId; N] {
        self.publish_to(Lane::Primary, key, ids).await
    }

    pub async fn publish_to<const N: usize>(&self, lane: Lane, key: &str, ids: [&str; N]) -> [EntryId; N] {
        let batch = ids.map(|id| Publication { lane, ..publication(key, id) });
        let answers = self.broker.publish(batch.into()).await.unwrap();
        let ids: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().id).collect();
        ids.try_into().unwrap()
    }

    pub async fn publish_one(&self, publication: Publication) -> Result<Published, PublishError> {
        self.broker.publish(vec![publication]).await.unwrap().remove(0)
    }

    pub async fn try_acquire(&self, owner: &str, key: &str) -> Result<Acquired, AcquireError> {
        self.broker.acquire(billing(key), &OwnerId::new(owner), LONG_TTL_MS, READ_MAX).await
    }

    pub async fn acquire(&self, owner: &str, key: &str) -> Acquired {
        self.acquire_for(owner, billing(key)).await
    }

    pub async fn acquire_for(&self, owner: &str, partition: Arc<PartitionSpec>) -> Acquired {
        self.broker.acquire(partition, &OwnerId::new(owner), LONG_TTL_MS, READ_MAX).await.unwrap()
    }

    /// The owner dies: its lease lapses, and `next` takes over.
    pub async fn take_over(&self, from: &Lease, next: &str) -> Acquired {
        let renewed = self.broker.heartbeat().renew(std::slice::from_ref(from), 1).await.unwrap();
        assert_eq!(renewed, [true], "the lease was held until now");
        let acquire = || async {
            let acquired =
                self.broker.acquire(from.partition.clone(), &OwnerId::new(next), LONG_TTL_MS, READ_MAX).await;
            match acquired {
                Ok(acquired) => Some(acquired),
                Err(AcquireError::Held { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        };
        eventually("the lease lapses", acquire).await
    }

    /// Settles the entry, changes nothing else, reads nothing.
    pub async fn commit(&self, lease: &Lease, entry: &Entry) -> Committed {
        self.broker.commit(lease, commit(entry)).await.unwrap()
    }

    pub async fn renew(&self, leases: &[Lease]) -> Vec<bool> {
        self.broker.heartbeat().renew(leases, LONG_TTL_MS).await.unwrap()
    }

    pub async fn backlog(&self) -> Backlog {
        self.broker.backlog(&[source("billing")]).await.unwrap()
    }

    /// All that the ready set offers, page by page, in any order.
    pub async fn offered(&self, source: &ReadySource, limit: usize) -> Vec<String> {
        let (mut keys, mut cursor) = (vec![], 0);
        loop {
            let page = self.broker.ready(source, cursor, limit).await.unwrap();
            assert!(page.keys.len() <= limit, "{} keys where {limit} were asked for", page.keys.len());
            keys.extend(page.keys.iter().map(ToString::to_string));
            match page.next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        keys.sort_unstable();
        keys
    }

    /// Handles everything of a key, one entry at a time, and answers with the events' ids in the order in which they came.
    pub async fn drain(&self, owner: &str, partition: Arc<PartitionSpec>) -> Vec<String> {
        let Acquired { lease, mut entries, .. } = self.acquire_for(owner, partition).await;
        let mut ids = vec![];
        loop {
            while !entries.is_empty() {
                let entry = entries.remove(0);
                ids.push(id_of(&entry));
                entries.extend(self.broker.commit(&lease, commit(&entry).and_take(2)).await.unwrap().entries);
            }
            let taken = self.broker.take(&lease, READ_MAX, false).await.unwrap();
            if taken.entries.is_empty() {
                assert!(!taken.more, "nothing was read, and more was promised");
                self.broker.release(&lease).await.unwrap();
                return ids;
            }
            entries = taken.entries;
        }
    }

    /// Every operation of an owner is refused, and none changes anything.
    pub async fn assert_fenced(&self, lease: &Lease, entry: &Entry) {
        let broker = &self.broker;
        let head = &entry.at;
        let is_fenced = |what: &str, refused: bool| assert!(refused, "{what} went past the fence");
        is_fenced("take", matches!(broker.take(lease, READ_MAX, false).await, Err(FencedError::Fenced)));
        is_fenced("recovery", matches!(broker.take(lease, READ_MAX, true).await, Err(FencedError::Fenced)));
        is_fenced("state", matches!(broker.state(lease, "total").await, Err(FencedError::Fenced)));
        let commit = commit(entry).put("total", "stale").emit(outgoing("stray", "stray")).and_take(READ_MAX);
        is_fenced("commit", matches!(broker.commit(lease, commit).await, Err(FencedError::Fenced)));
        is_fenced("fail", matches!(broker.fail(lease, head, 1, "stale", 60_000).await, Err(FencedError::Fenced)));
        is_fenced("halt", matches!(broker.halt(lease, &halt_record(head)).await, Err(FencedError::Fenced)));
        assert_eq!(self.renew(std::slice::from_ref(lease)).await, [false], "renew went past the fence");
    }
}
