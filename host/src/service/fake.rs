//! A broker for tests of what is above brokers: keeps streams and a catalog in memory, and goes wrong as planned.

mod operate;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_broker::*;
use keyrail_ordering::{
    Capabilities, Catalog, CategoryName, Effects, EntryId, EntryRef, HaltRecord, Key, Lease, OwnerId, PartitionId,
    PartitionSpec, StreamId,
};

/// How one call to publish goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Well.
    None,
    /// The call does not arrive.
    NotArrived,
    /// The call arrives and its answer does not.
    AnswerLost,
    /// The third event is refused.
    ThirdRefused,
}

#[derive(Default)]
struct Inner {
    catalog: Catalog,
    version: u64,
    /// Event ids by key.
    streams: BTreeMap<String, Vec<Arc<str>>>,
    seen: BTreeMap<Arc<str>, EntryId>,
    faults: VecDeque<Fault>,
    lose_sets: u32,
    calls: usize,
    desk: operate::Desk,
    modules: BTreeMap<String, (ModuleInfo, Bytes)>,
}

#[derive(Default)]
pub(crate) struct FakeBroker(Mutex<Inner>);

impl FakeBroker {
    pub(crate) fn new(catalog: Catalog) -> Arc<Self> {
        let broker = Self::default();
        broker.set(catalog);
        Arc::new(broker)
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Somebody else changes the catalog.
    pub(crate) fn set(&self, catalog: Catalog) {
        let mut inner = self.inner();
        inner.catalog = catalog;
        inner.version += 1;
    }

    /// The next calls to publish go so.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.inner().faults.extend(faults);
    }

    /// This many times somebody else sets the catalog first.
    pub(crate) fn lose_sets(&self, times: u32) {
        self.inner().lose_sets = times;
    }

    pub(crate) fn version(&self) -> u64 {
        self.inner().version
    }

    pub(crate) fn calls(&self) -> usize {
        self.inner().calls
    }

    /// The ids in a key's stream, in order.
    pub(crate) fn stream(&self, key: &str) -> Vec<String> {
        self.inner().streams.get(key).into_iter().flatten().map(ToString::to_string).collect()
    }

    pub(crate) fn published(&self) -> usize {
        self.inner().streams.values().map(Vec::len).sum()
    }
}

impl Inner {
    fn publish(&mut self, publication: Publication) -> Result<Published, PublishError> {
        let event = publication.event;
        let entry = &self.catalog.categories[&event.category];
        if entry.key_field != publication.key_field {
            return Err(PublishError::Stale {
                category: event.category.to_string(),
                expected: publication.key_field,
                actual: entry.key_field.clone(),
            });
        }
        if publication.dedupe_window_ms > 0
            && let Some(id) = self.seen.get(&event.id)
        {
            return Ok(Published { id: *id, duplicate: true });
        }
        let key = event.key.map(|key| key.to_string()).unwrap_or_default();
        let stream = self.streams.entry(key).or_default();
        stream.push(event.id.clone());
        let id = EntryId::new(1, stream.len() as u64 - 1);
        self.seen.insert(event.id, id);
        Ok(Published { id, duplicate: false })
    }
}

#[async_trait]
impl Publish for FakeBroker {
    async fn publish(&self, batch: Vec<Publication>) -> Result<Vec<Result<Published, PublishError>>, Error> {
        // Calls that are under way at once end in another order than they began.
        for _ in 0..batch.len() % 7 {
            tokio::task::yield_now().await;
        }
        let mut inner = self.inner();
        inner.calls += 1;
        let fault = inner.faults.pop_front().unwrap_or(Fault::None);
        if fault == Fault::NotArrived {
            return Err(Error::Unavailable("not arrived".into()));
        }
        let mut stopped = false;
        let mut answers = vec![];
        for (index, publication) in batch.into_iter().enumerate() {
            let answer = if stopped {
                Err(PublishError::NotTried)
            } else if fault == Fault::ThirdRefused && index == 2 {
                Err(PublishError::Refused("wrong type".into()))
            } else {
                inner.publish(publication)
            };
            stopped |= answer.is_err();
            answers.push(answer);
        }
        if fault == Fault::AnswerLost { Err(Error::Unavailable("answer lost".into())) } else { Ok(answers) }
    }
}

#[async_trait]
impl CatalogStore for FakeBroker {
    fn capabilities(&self) -> Capabilities {
        Capabilities { stream_partitioning: true }
    }
    async fn catalog(&self) -> Result<(Catalog, u64), Error> {
        let inner = self.inner();
        Ok((inner.catalog.clone(), inner.version))
    }
    async fn set_catalog(&self, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error> {
        let mut inner = self.inner();
        if inner.lose_sets > 0 {
            inner.lose_sets -= 1;
            inner.version += 1;
        }
        if inner.version != expected {
            return Ok(None);
        }
        inner.catalog = catalog.clone();
        inner.version += 1;
        Ok(Some(inner.version))
    }
}

fn not_here() -> Error {
    Error::Unusable("not part of this fake".into())
}

#[async_trait]
impl Leases for FakeBroker {
    async fn acquire(&self, _: Arc<PartitionSpec>, _: &OwnerId, _: u64, _: usize) -> Result<Acquired, AcquireError> {
        Err(not_here().into())
    }
    async fn release(&self, _: &Lease) -> Result<(), Error> {
        Err(not_here())
    }
    fn heartbeat(&self) -> Box<dyn Heartbeat> {
        unreachable!("not part of this fake")
    }
    async fn ready(&self, _: &ReadySource, _: u64, _: usize) -> Result<ReadySet, Error> {
        Err(not_here())
    }
    async fn bells(&self, _: Vec<ReadySource>) -> Result<Bells, Error> {
        Err(not_here())
    }
}

#[async_trait]
impl Log for FakeBroker {
    async fn take(&self, _: &Lease, _: usize, _: bool) -> Result<Taken, FencedError> {
        Err(not_here().into())
    }
    async fn state(&self, _: &Lease, _: &str) -> Result<Option<Bytes>, FencedError> {
        Err(not_here().into())
    }
    async fn commit(&self, _: &Lease, _: Commit) -> Result<Committed, FencedError> {
        Err(not_here().into())
    }
    async fn fail(&self, _: &Lease, _: &EntryRef, _: u32, _: &str, _: u64) -> Result<(), FencedError> {
        Err(not_here().into())
    }
    async fn halt(&self, _: &Lease, _: &HaltRecord) -> Result<(), FencedError> {
        Err(not_here().into())
    }
}

#[async_trait]
impl Router for FakeBroker {
    async fn route(&self, _: usize, _: u64) -> Result<Routed, Error> {
        Err(not_here())
    }
}

#[async_trait]
impl Inspect for FakeBroker {
    async fn find(&self, _: &ReadySource, _: &Wanted, _: u64, _: usize) -> Rows<PartitionRow> {
        Ok((vec![], None))
    }
    async fn waiting_keys(&self, _: &ReadySource, _: u64, _: usize) -> Rows<Key> {
        Ok((vec![], None))
    }
    async fn states(&self, _: &ReadySource, _: u64, _: usize) -> Rows<StateRow> {
        Ok((vec![], None))
    }
    async fn snapshot(&self, _: &PartitionId, _: &[(StreamId, EntryId)], _: usize) -> Result<Snapshot, Error> {
        Ok(Snapshot { state: vec![], entries: vec![] })
    }
    async fn read_streams(&self, streams: &[(StreamId, ReadFrom)], _: usize) -> Result<Reading, Error> {
        Ok(Reading { at_ms: 0, entries: vec![vec![]; streams.len()] })
    }
    async fn lag(&self, _: &ReadySource, _: usize) -> Result<Lag, Error> {
        Ok(Lag::default())
    }
    async fn published(&self, categories: &[CategoryName]) -> Result<Vec<Option<u64>>, Error> {
        Ok(vec![None; categories.len()])
    }
    async fn letters_kept(&self, _: &[CategoryName]) -> Result<u64, Error> {
        Ok(self.letters_laid_down())
    }
    async fn live_keys(&self, _: &CategoryName) -> Result<u64, Error> {
        Ok(0)
    }
    async fn backlog(&self, _: &[ReadySource]) -> Result<Backlog, Error> {
        Ok(Backlog::default())
    }
}

#[async_trait]
impl SharedLog for FakeBroker {
    async fn take_shared(
        &self,
        _source: &SharedSource,
        _owner: &OwnerId,
        _max: usize,
        _idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        unreachable!("not part of this fake")
    }
    async fn keep_shared(
        &self,
        _source: &SharedSource,
        _owner: &OwnerId,
        _deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        unreachable!("not part of this fake")
    }
    async fn commit_shared(
        &self,
        _source: &SharedSource,
        _owner: &OwnerId,
        _delivery: DeliveryRef,
        _effects: Effects,
    ) -> Result<(), FencedError> {
        unreachable!("not part of this fake")
    }
    async fn fail_shared(
        &self,
        _source: &SharedSource,
        _owner: &OwnerId,
        _delivery: DeliveryRef,
        _error: &str,
        _after_ms: u64,
    ) -> Result<(), FencedError> {
        unreachable!("not part of this fake")
    }
    async fn return_shared(
        &self,
        _source: &SharedSource,
        _owner: &OwnerId,
        _deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        unreachable!("not part of this fake")
    }
    async fn set_aside_shared(
        &self,
        _source: &SharedSource,
        _owner: &OwnerId,
        _delivery: DeliveryRef,
        _error: &str,
    ) -> Result<(), FencedError> {
        unreachable!("not part of this fake")
    }
}
#[async_trait]
impl Modules for FakeBroker {
    async fn put_module(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), Error> {
        self.inner().modules.insert(info.content_hash.clone(), (info.clone(), bytes));
        Ok(())
    }
    async fn module_info(&self, content_hash: &str) -> Result<Option<ModuleInfo>, Error> {
        Ok(self.inner().modules.get(content_hash).map(|(info, _)| info.clone()))
    }
    async fn module(&self, content_hash: &str) -> Result<Option<Bytes>, Error> {
        Ok(self.inner().modules.get(content_hash).map(|(_, bytes)| bytes.clone()))
    }
    async fn modules(&self) -> Result<Vec<ModuleInfo>, Error> {
        Ok(self.inner().modules.values().map(|(info, _)| info.clone()).collect())
    }
    async fn drop_module(&self, content_hash: &str) -> Result<(), Error> {
        self.inner().modules.remove(content_hash);
        Ok(())
    }
}
#[async_trait]
impl Housekeeping for FakeBroker {
    async fn idle_streams(
        &self,
        _category: &CategoryName,
        _cursor: u64,
        _limit: usize,
    ) -> Result<(Vec<IdleStream>, Option<u64>), Error> {
        unreachable!("not part of this fake")
    }
    async fn reap(&self, _idle: &[IdleStream]) -> Result<u64, Error> {
        unreachable!("not part of this fake")
    }
    async fn live_partitions(&self, _category: &CategoryName) -> Result<u64, Error> {
        unreachable!("not part of this fake")
    }
}

impl Broker for FakeBroker {
    fn address(&self) -> String {
        "fake".into()
    }
}
