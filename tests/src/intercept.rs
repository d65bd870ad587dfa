//! A broker between an engine and the real one, which tells a hook before each call of an owner.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_broker::{
    AcquireError, Acquired, AuditRow, Backlog, Bells, Broker, By, CatalogStore, Commit, Committed, DeadLetter,
    DeliveryRef, Error, FencedError, Head, HeadAction, Heartbeat, Housekeeping, IdleStream, Inspect, Lag, Leases, Log,
    Members, ModuleInfo, Modules, Operate, OperateError, PartitionRow, Paused, Publication, Publish, PublishError,
    Published, ReadFrom, Reading, ReadySet, ReadySource, Routed, Router, Rows, SharedLog, SharedSource, SharedTaken,
    Snapshot, StateRow, Taken, Wanted,
};
use keyrail_ordering::{
    Capabilities, Catalog, CategoryName, Effects, EntryId, EntryRef, HaltRecord, Key, Lease, Member, OwnerId,
    PartitionId, PartitionSpec, StreamId,
};

/// What an owner is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Take a partition.
    Acquire,
    /// Read entries.
    Take,
    /// Settle the head.
    Commit,
    /// Put a failed try on record.
    Fail,
    /// Stand still.
    Halt,
    /// Give a partition up.
    Release,
    /// Prolong leases; only when there are some.
    Renew,
    /// Move outbox records.
    Route,
}

/// What becomes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is done, and answered.
    Answered,
    /// It is done, and its answer is lost. Acquire only.
    AnswerLost,
}

/// Called before each step.
pub type Hook = Arc<dyn Fn(Step) -> Fate + Send + Sync>;

/// Called with what was settled.
pub type Committing = Arc<dyn Fn(&[EntryRef]) + Send + Sync>;

/// See the module.
pub struct Intercepted {
    inner: Arc<dyn Broker>,
    hook: Hook,
    committed: Option<Committing>,
}

impl Intercepted {
    /// In front of this broker.
    pub fn new(inner: Arc<dyn Broker>, hook: Hook) -> Arc<Self> {
        Arc::new(Self { inner, hook, committed: None })
    }

    /// In front of this broker, only to hear of commits that were answered.
    pub fn hearing(inner: Arc<dyn Broker>, committed: Committing) -> Arc<Self> {
        Arc::new(Self { inner, hook: Arc::new(|_| Fate::Answered), committed: Some(committed) })
    }
}

struct InterceptedHeartbeat {
    inner: Box<dyn Heartbeat>,
    hook: Hook,
}

#[async_trait]
impl Heartbeat for InterceptedHeartbeat {
    async fn renew(&mut self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error> {
        if !leases.is_empty() {
            let _ = (self.hook)(Step::Renew);
        }
        self.inner.renew(leases, ttl_ms).await
    }
    async fn announce(&mut self, member: &Member, ttl_ms: u64) -> Result<Vec<Member>, Error> {
        self.inner.announce(member, ttl_ms).await
    }
}

#[async_trait]
impl Publish for Intercepted {
    async fn publish(&self, batch: Vec<Publication>) -> Result<Vec<Result<Published, PublishError>>, Error> {
        self.inner.publish(batch).await
    }
}

#[async_trait]
impl Leases for Intercepted {
    async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError> {
        let fate = (self.hook)(Step::Acquire);
        let acquired = self.inner.acquire(partition, owner, ttl_ms, take_max).await;
        if fate == Fate::AnswerLost { Err(Error::Unavailable("the answer was lost".into()).into()) } else { acquired }
    }
    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let _ = (self.hook)(Step::Release);
        self.inner.release(lease).await
    }
    fn heartbeat(&self) -> Box<dyn Heartbeat> {
        Box::new(InterceptedHeartbeat { inner: self.inner.heartbeat(), hook: self.hook.clone() })
    }
    async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
        self.inner.ready(source, cursor, limit).await
    }
    async fn bells(&self, sources: Vec<ReadySource>) -> Result<Bells, Error> {
        self.inner.bells(sources).await
    }
}

#[async_trait]
impl Log for Intercepted {
    async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let _ = (self.hook)(Step::Take);
        self.inner.take(lease, max, recover).await
    }
    async fn state(&self, lease: &Lease, name: &str) -> Result<Option<Bytes>, FencedError> {
        self.inner.state(lease, name).await
    }
    async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
        let _ = (self.hook)(Step::Commit);
        let entries = self.committed.as_ref().map(|_| commit.entries.clone());
        let committed = self.inner.commit(lease, commit).await?;
        if let (Some(hear), Some(entries)) = (&self.committed, entries) {
            hear(&entries);
        }
        Ok(committed)
    }
    async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let _ = (self.hook)(Step::Fail);
        self.inner.fail(lease, head, attempt, error, after_ms).await
    }
    async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        let _ = (self.hook)(Step::Halt);
        self.inner.halt(lease, record).await
    }
}

#[async_trait]
impl SharedLog for Intercepted {
    async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        let _ = (self.hook)(Step::Take);
        self.inner.take_shared(source, owner, max, idle_min_ms).await
    }
    async fn keep_shared(&self, source: &SharedSource, owner: &OwnerId, kept: &[DeliveryRef]) -> Result<(), Error> {
        self.inner.keep_shared(source, owner, kept).await
    }
    async fn commit_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        effects: Effects,
    ) -> Result<(), FencedError> {
        let _ = (self.hook)(Step::Commit);
        self.inner.commit_shared(source, owner, delivery, effects).await
    }
    async fn fail_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let _ = (self.hook)(Step::Fail);
        self.inner.fail_shared(source, owner, delivery, error, after_ms).await
    }
    async fn return_shared(&self, source: &SharedSource, owner: &OwnerId, back: &[DeliveryRef]) -> Result<(), Error> {
        self.inner.return_shared(source, owner, back).await
    }
    async fn set_aside_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
    ) -> Result<(), FencedError> {
        self.inner.set_aside_shared(source, owner, delivery, error).await
    }
}

#[async_trait]
impl CatalogStore for Intercepted {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    async fn catalog(&self) -> Result<(Catalog, u64), Error> {
        self.inner.catalog().await
    }
    async fn set_catalog(&self, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error> {
        self.inner.set_catalog(catalog, expected).await
    }
}

#[async_trait]
impl Router for Intercepted {
    async fn route(&self, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error> {
        let _ = (self.hook)(Step::Route);
        self.inner.route(max, dedupe_window_ms).await
    }
}

#[async_trait]
impl Inspect for Intercepted {
    async fn find(&self, source: &ReadySource, wanted: &Wanted, cursor: u64, limit: usize) -> Rows<PartitionRow> {
        self.inner.find(source, wanted, cursor, limit).await
    }
    async fn waiting_keys(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<Key> {
        self.inner.waiting_keys(source, cursor, limit).await
    }
    async fn states(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<StateRow> {
        self.inner.states(source, cursor, limit).await
    }
    async fn snapshot(
        &self,
        partition: &PartitionId,
        from: &[(StreamId, EntryId)],
        limit: usize,
    ) -> Result<Snapshot, Error> {
        self.inner.snapshot(partition, from, limit).await
    }
    async fn read_streams(&self, streams: &[(StreamId, ReadFrom)], limit: usize) -> Result<Reading, Error> {
        self.inner.read_streams(streams, limit).await
    }
    async fn lag(&self, source: &ReadySource, sample_max: usize) -> Result<Lag, Error> {
        self.inner.lag(source, sample_max).await
    }
    async fn published(&self, categories: &[CategoryName]) -> Result<Vec<Option<u64>>, Error> {
        self.inner.published(categories).await
    }
    async fn letters_kept(&self, categories: &[CategoryName]) -> Result<u64, Error> {
        self.inner.letters_kept(categories).await
    }
    async fn live_keys(&self, category: &CategoryName) -> Result<u64, Error> {
        self.inner.live_keys(category).await
    }
    async fn backlog(&self, sources: &[ReadySource]) -> Result<Backlog, Error> {
        self.inner.backlog(sources).await
    }
}

#[async_trait]
impl Modules for Intercepted {
    async fn put_module(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), Error> {
        self.inner.put_module(info, bytes).await
    }
    async fn module_info(&self, content_hash: &str) -> Result<Option<ModuleInfo>, Error> {
        self.inner.module_info(content_hash).await
    }
    async fn module(&self, content_hash: &str) -> Result<Option<Bytes>, Error> {
        self.inner.module(content_hash).await
    }
    async fn modules(&self) -> Result<Vec<ModuleInfo>, Error> {
        self.inner.modules().await
    }
    async fn drop_module(&self, content_hash: &str) -> Result<(), Error> {
        self.inner.drop_module(content_hash).await
    }
}

#[async_trait]
impl Members for Intercepted {
    async fn members(&self) -> Result<Vec<Member>, Error> {
        self.inner.members().await
    }
    async fn leave(&self, owner: &OwnerId) -> Result<(), Error> {
        self.inner.leave(owner).await
    }
}

#[async_trait]
impl Operate for Intercepted {
    async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
        self.inner.head(partition).await
    }
    async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        self.inner.act_on_head(partition, head, action, by).await
    }
    async fn halted(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<(PartitionId, HaltRecord)> {
        self.inner.halted(source, cursor, limit).await
    }
    async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        self.inner.pause(category, key, by).await
    }
    async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        self.inner.resume(category, key, by).await
    }
    async fn paused(&self, category: &CategoryName) -> Result<Vec<Paused>, Error> {
        self.inner.paused(category).await
    }
    async fn dead_letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        limit: usize,
    ) -> Rows<DeadLetter> {
        self.inner.dead_letters(category, key, cursor, limit).await
    }
    async fn dead_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        self.inner.dead_letter(category, key, id).await
    }
    async fn redrive(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError> {
        self.inner.redrive(category, key, id, by).await
    }
    async fn purge(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<(), OperateError> {
        self.inner.purge(category, key, id, by).await
    }
    async fn record(&self, action: &str, target: &str, by: &By) -> Result<(), Error> {
        self.inner.record(action, target, by).await
    }
    async fn audit(&self, cursor: u64, limit: usize) -> Rows<AuditRow> {
        self.inner.audit(cursor, limit).await
    }
}

#[async_trait]
impl Housekeeping for Intercepted {
    async fn idle_streams(&self, category: &CategoryName, cursor: u64, limit: usize) -> Rows<IdleStream> {
        self.inner.idle_streams(category, cursor, limit).await
    }
    async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error> {
        self.inner.reap(idle).await
    }
    async fn live_partitions(&self, category: &CategoryName) -> Result<u64, Error> {
        self.inner.live_partitions(category).await
    }
}

impl Broker for Intercepted {
    fn address(&self) -> String {
        self.inner.address()
    }
}
