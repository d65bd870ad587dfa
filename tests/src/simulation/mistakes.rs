//! Brokers with a planted mistake: what the checks must find. They stand where the simulation hands operations on, so that
//! no product code holds a switch for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyrail_broker::embedded::EmbeddedBroker;
use keyrail_broker::{
    AcquireError, Acquired, Bell, By, Commit, Committed, DeliveryRef, Error, FencedError, HeadAction,
    Housekeeping as _, IdleStream, Leases as _, Log as _, Operate as _, OperateError, Publication, Publish as _,
    PublishError, Published, ReadySet, ReadySource, SharedLog as _, SharedSource, SharedTaken, Taken,
};
use keyrail_ordering::{
    CategoryName, Effects, Entry, EntryId, EntryRef, GroupName, HaltRecord, Key, Lease, OwnerId, PartitionId,
    PartitionSpec, StreamId,
};

use super::handlers::Digest;

/// How long a reaper with two steps takes between them.
const REAP_GAP: Duration = Duration::from_millis(1_500);
/// Of emits that are written after the commit and not with it, every so many are lost.
const LOST_EVERY: u64 = 5;

/// One planted mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Mistake {
    /// A commit passes whoever holds the lease.
    CommitIgnoresFence,
    /// A commit passes if the owner holds the lease, whatever the generation.
    CommitIgnoresGeneration,
    /// A commit of what is not the head is answered as done.
    CommitIgnoresHead,
    /// Of a commit of several entries the last one stays unsettled.
    CommitLeavesTheLast,
    /// A commit settles the entry that follows as well.
    CommitSettlesOneMore,
    /// The state of a commit is applied twice.
    CommitAppliesTwice,
    /// Emits are written after the commit, and some never.
    EmitsOutsideCommit,
    /// An entry of what a commit reads is left out.
    CommitSkipsAnEntry,
    /// An acquire does not bring what is pending.
    AcquireLeavesPending,
    /// An acquire takes a lease that is held.
    AcquireStealsHeld,
    /// A take does not begin with what is pending.
    TakeForgetsPending,
    /// A release ends whoever's lease.
    ReleaseIgnoresOwner,
    /// A released partition is not ready, whatever is left in it.
    ReleaseKeepsNothingReady,
    /// Every renewal is granted.
    RenewAlwaysHeld,
    /// A failed try is not put on record.
    FailForgotten,
    /// A halt is a release.
    HaltForgotten,
    /// A skip takes whatever is the head.
    SkipIgnoresHead,
    /// A pause is answered and not made.
    PauseForgotten,
    /// A repeated publish is another event.
    PublishForgetsIds,
    /// What is published while a stream is reaped goes with it.
    ReapInTwoSteps,
    /// Nobody looks through the ready sets, and bells can get lost.
    SweepsOff,
    /// A delivery of a category without partitions is settled by whoever had it.
    SharedIgnoresDelivery,
}

#[derive(Default)]
struct Memory {
    leases: BTreeMap<PartitionId, Lease>,
    read: BTreeSet<(GroupName, StreamId, EntryId)>,
    hidden: BTreeSet<(GroupName, Key)>,
    deliveries: BTreeMap<(SharedSource, EntryId), (OwnerId, u64)>,
    reaping: BTreeSet<StreamId>,
    emits: u64,
}

/// The store, with a mistake or none.
pub(super) struct Saboteur {
    pub(super) store: EmbeddedBroker,
    mistake: Option<Mistake>,
    memory: Mutex<Memory>,
}

impl Saboteur {
    pub(super) fn new(store: EmbeddedBroker, mistake: Option<Mistake>) -> Self {
        Self { store, mistake, memory: Mutex::default() }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what was read; answers with what had been read before.
    fn has_read(&self, partition: &PartitionId, entries: &[Arc<Entry>]) -> Vec<EntryRef> {
        let mut memory = self.memory();
        let place = |at: &EntryRef| (partition.group.clone(), at.stream.clone(), at.id);
        let again = entries.iter().map(|entry| entry.at.clone()).filter(|at| !memory.read.insert(place(at)));
        again.collect()
    }

    pub(super) async fn publish(
        &self,
        mut batch: Vec<Publication>,
    ) -> Result<Vec<Result<Published, PublishError>>, Error> {
        for publication in &mut batch {
            if self.makes(Mistake::PublishForgetsIds) {
                publication.dedupe_window_ms = 0;
            }
            let Publication { event, lane, .. } = &*publication;
            let stream = StreamId { category: event.category.clone(), key: event.key.clone(), lane: *lane };
            if self.memory().reaping.contains(&stream) {
                let gone = |_| Ok(Published { id: EntryId::new(1, 0), duplicate: false });
                return Ok(batch.iter().map(gone).collect());
            }
            if let Some(key) = &event.key {
                self.memory().hidden.retain(|(_, hidden)| hidden != key);
            }
        }
        self.store.publish(batch).await
    }

    pub(super) async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError> {
        let mut answer = self.store.acquire(partition.clone(), owner, ttl_ms, take_max).await;
        let held = self.memory().leases.get(&partition.id).cloned();
        if let (Err(AcquireError::Held { .. }), Some(held), true) =
            (&answer, held, self.makes(Mistake::AcquireStealsHeld))
        {
            self.store.release(&held).await?;
            answer = self.store.acquire(partition.clone(), owner, ttl_ms, take_max).await;
        }
        let mut acquired = answer?;
        self.memory().leases.insert(partition.id.clone(), acquired.lease.clone());
        let again = self.has_read(&partition.id, &acquired.entries);
        if self.makes(Mistake::AcquireLeavesPending) {
            acquired.entries.retain(|entry| !again.contains(&entry.at));
            for at in again {
                acquired.positions.retain(|(stream, _)| *stream != at.stream);
                acquired.positions.push((at.stream, at.id));
            }
        }
        Ok(acquired)
    }

    pub(super) async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let partition = &lease.partition.id;
        if self.makes(Mistake::ReleaseKeepsNothingReady) {
            self.memory().hidden.insert((partition.group.clone(), partition.key().clone()));
        }
        let present = self.memory().leases.get(partition).cloned();
        match present.filter(|_| self.makes(Mistake::ReleaseIgnoresOwner)) {
            Some(present) => self.store.release(&present).await,
            None => self.store.release(lease).await,
        }
    }

    pub(super) async fn renew(&self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error> {
        let held = self.store.heartbeat().renew(leases, ttl_ms).await?;
        Ok(held.into_iter().map(|held| held || self.makes(Mistake::RenewAlwaysHeld)).collect())
    }

    pub(super) async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
        if self.makes(Mistake::SweepsOff) {
            return Ok(ReadySet { keys: vec![], next: None, due_ms: None });
        }
        let mut page = self.store.ready(source, cursor, limit).await?;
        let memory = self.memory();
        page.keys.retain(|key| !memory.hidden.contains(&(source.group().clone(), key.clone())));
        Ok(page)
    }

    /// Whether a bell is heard at all.
    pub(super) fn rings(&self, bell: &Bell) -> bool {
        let Bell::Ready { source, key } = bell else { return true };
        !self.memory().hidden.contains(&(source.group().clone(), key.clone()))
    }

    pub(super) async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let recover = recover && !self.makes(Mistake::TakeForgetsPending);
        let taken = self.store.take(lease, max, recover).await?;
        self.has_read(&lease.partition.id, &taken.entries);
        Ok(taken)
    }

    pub(super) async fn commit(&self, lease: &Lease, mut commit: Commit) -> Result<Committed, FencedError> {
        let partition = &lease.partition.id;
        if self.makes(Mistake::CommitAppliesTwice) {
            for change in &mut commit.effects.state {
                let twice = change.value.as_ref().and_then(|value| Digest::from_bytes(value)).map(|mut digest| {
                    digest.add("again");
                    digest.to_bytes()
                });
                change.value = twice;
            }
        }
        if self.makes(Mistake::EmitsOutsideCommit) {
            let mut memory = self.memory();
            memory.emits += commit.effects.emits.len() as u64;
            if memory.emits.is_multiple_of(LOST_EVERY) {
                commit.effects.emits.clear();
            }
        }
        if self.makes(Mistake::CommitLeavesTheLast) && commit.entries.len() > 1 {
            commit.entries.pop();
        }
        if self.makes(Mistake::CommitSettlesOneMore) {
            let last = &commit.entries[commit.entries.len() - 1];
            let next = EntryRef { id: EntryId::new(last.id.epoch, last.id.sequence + 1), stream: last.stream.clone() };
            if self.memory().read.contains(&(partition.group.clone(), next.stream.clone(), next.id)) {
                commit.entries.push(next);
            }
        }
        let mut answer = self.store.commit(lease, commit.clone()).await;
        if let Err(FencedError::Fenced) = answer {
            let present = self.memory().leases.get(partition).cloned();
            let passes = |present: &Lease| {
                self.makes(Mistake::CommitIgnoresFence)
                    || (self.makes(Mistake::CommitIgnoresGeneration) && present.owner == lease.owner)
            };
            if let Some(present) = present.filter(passes) {
                answer = self.store.commit(&present, commit).await;
            }
        }
        if matches!(answer, Err(FencedError::NotHead { .. })) && self.makes(Mistake::CommitIgnoresHead) {
            answer = Ok(Committed::default());
        }
        let mut committed = answer?;
        self.has_read(partition, &committed.entries);
        if self.makes(Mistake::CommitSkipsAnEntry) && committed.entries.len() > 1 {
            committed.entries.remove(0);
        }
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
        if self.makes(Mistake::FailForgotten) {
            return self.store.take(lease, 0, false).await.map(drop);
        }
        self.store.fail(lease, head, attempt, error, after_ms).await
    }

    pub(super) async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        if self.makes(Mistake::HaltForgotten) {
            self.store.take(lease, 0, false).await?;
            return Ok(self.store.release(lease).await?);
        }
        self.store.halt(lease, record).await
    }

    pub(super) async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        match self.store.act_on_head(partition, head, action, by).await {
            Err(OperateError::NotHead { head: Some(other), .. }) if self.makes(Mistake::SkipIgnoresHead) => {
                self.store.act_on_head(partition, &other, action, by).await
            }
            other => other,
        }
    }

    pub(super) async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        if self.makes(Mistake::PauseForgotten) { Ok(true) } else { self.store.pause(category, key, by).await }
    }

    pub(super) async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error> {
        if !self.makes(Mistake::ReapInTwoSteps) {
            return self.store.reap(idle).await;
        }
        self.memory().reaping.extend(idle.iter().map(|idle| idle.stream.clone()));
        tokio::time::sleep(REAP_GAP).await;
        self.memory().reaping.clear();
        self.store.reap(idle).await
    }

    pub(super) async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        let taken = self.store.take_shared(source, owner, max, idle_min_ms).await?;
        for delivery in &taken.deliveries {
            let place = (source.clone(), delivery.entry.at.id);
            self.memory().deliveries.insert(place, (owner.clone(), delivery.count));
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
        let answer = self.store.commit_shared(source, owner, delivery, effects.clone()).await;
        let present = self.memory().deliveries.get(&(source.clone(), delivery.id)).cloned();
        match (answer, present) {
            (Err(FencedError::Fenced), Some((owner, count))) if self.makes(Mistake::SharedIgnoresDelivery) => {
                self.store.commit_shared(source, &owner, DeliveryRef { id: delivery.id, count }, effects).await
            }
            (answer, _) => answer,
        }
    }
}
