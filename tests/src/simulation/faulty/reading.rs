//! What only looks: the catalog, and rows for operators.

use async_trait::async_trait;
use keyrail_broker::{Backlog, CatalogStore, Error, Inspect, PartitionRow, ReadySource, Snapshot, StateRow};
use keyrail_ordering::{Capabilities, Catalog, EntryId, PartitionId, StreamId};

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
    async fn partitions(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<PartitionRow>, Option<u64>), Error> {
        self.link.look("partitions").await?;
        self.truth().store().partitions(source, cursor, limit).await
    }

    async fn states(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<StateRow>, Option<u64>), Error> {
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

    async fn backlog(&self, sources: &[ReadySource]) -> Result<Backlog, Error> {
        self.link.look("backlog").await?;
        self.truth().store().backlog(sources).await
    }
}
