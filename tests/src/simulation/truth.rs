//! The broker as it really is: performs an operation and notes what came of it, whether or not its caller ever learns.

use std::sync::Arc;

use keyrail_broker::embedded::EmbeddedBroker;
use keyrail_broker::{
    AcquireError, Acquired, By, Commit, Committed, DeliveryRef, Error, FencedError, Head, HeadAction, IdleStream,
    Operate as _, OperateError, Publication, PublishError, Published, Routed, Router as _, SharedLog as _,
    SharedSource, SharedTaken, Taken,
};
use keyrail_ordering::{
    CategoryName, Content, Effects, Entry, EntryRef, HaltRecord, Key, Lease, OwnerId, PartitionSpec, StreamId,
};

use super::fact::{Fact, Holder};
use super::mistakes::{Mistake, Saboteur};
use super::notebook::Notebook;

pub(super) struct Truth {
    pub(super) inner: Saboteur,
    pub(super) notebook: Arc<Notebook>,
}

impl Truth {
    pub(super) fn new(store: EmbeddedBroker, mistake: Option<Mistake>, notebook: Arc<Notebook>) -> Self {
        Self { inner: Saboteur::new(store, mistake), notebook }
    }

    pub(super) fn store(&self) -> &EmbeddedBroker {
        &self.inner.store
    }

    fn note(&self, fact: Fact) {
        self.notebook.note(fact);
    }

    fn read(&self, entries: &[Arc<Entry>]) {
        let content = |entry: &Arc<Entry>| match &entry.content {
            Content::Event(event) => Some((entry.at.clone(), event.id.clone())),
            Content::Undecodable(_) | Content::Missing => None,
        };
        let entries: Vec<_> = entries.iter().filter_map(content).collect();
        if !entries.is_empty() {
            self.note(Fact::Read { entries });
        }
    }

    pub(super) async fn publish(&self, batch: Vec<Publication>) -> Result<Vec<Result<Published, PublishError>>, Error> {
        let answers = self.inner.publish(batch.clone()).await?;
        for (Publication { event, lane, .. }, answer) in batch.into_iter().zip(&answers) {
            if answer.as_ref().is_ok_and(|published| !published.duplicate) {
                let stream = StreamId { category: event.category, key: event.key, lane };
                self.note(Fact::Published { stream, event_id: event.id });
            }
        }
        Ok(answers)
    }

    pub(super) async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError> {
        let acquired = self.inner.acquire(partition.clone(), owner, ttl_ms, take_max).await?;
        let holder = Holder::of(&acquired.lease);
        self.note(Fact::Acquired { holder, streams: partition.streams.clone(), ttl_ms });
        self.read(&acquired.entries);
        Ok(acquired)
    }

    pub(super) async fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.inner.release(lease).await?;
        self.note(Fact::Released { holder: Holder::of(lease) });
        Ok(())
    }

    pub(super) async fn renew(&self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error> {
        let held = self.inner.renew(leases, ttl_ms).await?;
        for (lease, _) in leases.iter().zip(&held).filter(|(_, held)| **held) {
            self.note(Fact::Renewed { holder: Holder::of(lease), ttl_ms });
        }
        Ok(held)
    }

    pub(super) async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let taken = self.inner.take(lease, max, recover).await?;
        self.read(&taken.entries);
        Ok(taken)
    }

    pub(super) async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
        let committed = self.inner.commit(lease, commit.clone()).await?;
        let Commit { entries, effects, .. } = commit;
        let (holder, released) = (Holder::of(lease), committed.released);
        self.note(Fact::Committed { holder, entries, emits: effects.emits, released });
        self.read(&committed.entries);
        Ok(committed)
    }

    pub(super) async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        self.inner.fail(lease, head, attempt, error, after_ms).await?;
        self.note(Fact::Failed { holder: Holder::of(lease), head: head.clone(), attempt });
        Ok(())
    }

    pub(super) async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        self.inner.halt(lease, record).await?;
        self.note(Fact::Halted { holder: Holder::of(lease), record: record.clone() });
        Ok(())
    }

    pub(super) async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
        let head = self.store().head(partition).await?;
        self.read(head.as_ref().map(|head| std::slice::from_ref(&head.entry)).unwrap_or_default());
        Ok(head)
    }

    pub(super) async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        self.inner.act_on_head(partition, head, action, by).await?;
        self.note(Fact::Acted { partition: partition.id.clone(), head: head.clone(), action });
        Ok(())
    }

    pub(super) async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let paused = self.inner.pause(category, key, by).await?;
        self.note(Fact::Paused { category: category.clone(), key: key.cloned() });
        Ok(paused)
    }

    pub(super) async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let resumed = self.store().resume(category, key, by).await?;
        self.note(Fact::Resumed { category: category.clone(), key: key.cloned() });
        Ok(resumed)
    }

    pub(super) async fn route(&self, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error> {
        let routed = self.store().route(max, dedupe_window_ms).await?;
        if routed.published > 0 {
            self.note(Fact::Routed { published: routed.published });
        }
        for reason in &routed.abandoned {
            self.notebook.violate("loss", format!("an emitted event was abandoned: {reason}"));
        }
        Ok(routed)
    }

    pub(super) async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error> {
        let gone = self.inner.reap(idle).await?;
        let streams = idle.iter().map(|idle| idle.stream.clone()).collect();
        self.note(Fact::Reaped { streams, gone });
        Ok(gone)
    }

    pub(super) async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        let taken = self.inner.take_shared(source, owner, max, idle_min_ms).await?;
        if !taken.deliveries.is_empty() {
            let (source, owner, deliveries) = (source.clone(), owner.clone(), taken.deliveries.clone());
            self.note(Fact::Delivered { source, owner, deliveries });
        }
        Ok(taken)
    }

    pub(super) async fn commit_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        effects: Effects,
    ) -> Result<(), FencedError> {
        let emits = effects.emits.clone();
        self.inner.commit_shared(source, owner, delivery, effects).await?;
        self.note(Fact::SharedCommitted { source: source.clone(), owner: owner.clone(), delivery, emits });
        Ok(())
    }

    pub(super) async fn set_aside_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
    ) -> Result<(), FencedError> {
        self.store().set_aside_shared(source, owner, delivery, error).await?;
        self.note(Fact::SharedSetAside { source: source.clone(), owner: owner.clone(), delivery });
        Ok(())
    }
}
