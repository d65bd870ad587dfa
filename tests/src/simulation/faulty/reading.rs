//! What only looks: the catalog, and rows for operators.

use async_trait::async_trait;
use keyrail_broker::{
    Backlog, CatalogStore, Error, Inspect, Lag, PartitionRow, ReadFrom, Reading, ReadySource, Rows, Snapshot, StateRow,
    Wanted,
};
use keyrail_ordering::{Capabilities, Catalog, CategoryName, EntryId, Key, PartitionId, StreamId};

use super::FaultyBroker;

#[async_trait]
impl CatalogStore for FaultyBroker {
    fn capabilities(&self) -> Capabilities {
        self.truth().store().capabilities()
    }

    async fn catalog(&self) -> Result<(Catalog, u64), Error> {
        self.link.look("catalog").await?;
        self.truth().store().catalog().await
    }

    async fn set_catalog(&self, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error> {
        let catalog = catalog.clone();
        send!(self, "set_catalog", |truth| truth.store().set_catalog(&catalog, expected).await)
    }
}

#[async_trait]
impl Inspect for FaultyBroker {
    async fn find(&self, source: &ReadySource, wanted: &Wanted, cursor: u64, limit: usize) -> Rows<PartitionRow> {
        self.link.look("find").await?;
        self.truth().store().find(source, wanted, cursor, limit).await
    }

    async fn waiting_keys(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<Key> {
        self.link.look("waiting_keys").await?;
        self.truth().store().waiting_keys(source, cursor, limit).await
    }

    async fn states(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<StateRow> {
        self.link.look("states").await?;
        self.truth().store().states(source, cursor, limit).await
    }

    async fn snapshot(
        &self,
        partition: &PartitionId,
        from: &[(StreamId, EntryId)],
        limit: usize,
    ) -> Result<Snapshot, Error> {
        self.link.look("snapshot").await?;
        self.truth().store().snapshot(partition, from, limit).await
    }

    async fn read_streams(&self, streams: &[(StreamId, ReadFrom)], limit: usize) -> Result<Reading, Error> {
        self.link.look("read_streams").await?;
        self.truth().store().read_streams(streams, limit).await
    }

    async fn lag(&self, source: &ReadySource, sample_max: usize) -> Result<Lag, Error> {
        self.link.look("lag").await?;
        self.truth().store().lag(source, sample_max).await
    }

    async fn published(&self, categories: &[CategoryName]) -> Result<Vec<Option<u64>>, Error> {
        self.link.look("published").await?;
        self.truth().store().published(categories).await
    }

    async fn letters_kept(&self, categories: &[CategoryName]) -> Result<u64, Error> {
        self.link.look("letters_kept").await?;
        self.truth().store().letters_kept(categories).await
    }

    async fn live_keys(&self, category: &CategoryName) -> Result<u64, Error> {
        self.link.look("live_keys").await?;
        self.truth().store().live_keys(category).await
    }

    async fn backlog(&self, sources: &[ReadySource]) -> Result<Backlog, Error> {
        self.link.look("backlog").await?;
        self.truth().store().backlog(sources).await
    }
}
