//! What operators and housekeepers do.

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_broker::{
    AuditRow, By, DeadLetter, Error, Head, HeadAction, Housekeeping, IdleStream, Members, ModuleInfo, Modules, Operate,
    OperateError, Paused, ReadySource, Rows,
};
use keyrail_ordering::{CategoryName, EntryId, EntryRef, HaltRecord, Key, Member, OwnerId, PartitionId, PartitionSpec};

use super::FaultyBroker;

#[async_trait]
impl Members for FaultyBroker {
    async fn members(&self) -> Result<Vec<Member>, Error> {
        self.link.look("members").await?;
        self.truth().store().members().await
    }

    async fn leave(&self, owner: &OwnerId) -> Result<(), Error> {
        let owner = owner.clone();
        send!(self, "leave", |truth| truth.store().leave(&owner).await)
    }
}

#[async_trait]
impl Modules for FaultyBroker {
    async fn put_module(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), Error> {
        let info = info.clone();
        send!(self, "put_module", |truth| truth.store().put_module(&info, bytes).await)
    }

    async fn module_info(&self, content_hash: &str) -> Result<Option<ModuleInfo>, Error> {
        self.link.look("module_info").await?;
        self.truth().store().module_info(content_hash).await
    }

    async fn module(&self, content_hash: &str) -> Result<Option<Bytes>, Error> {
        self.link.look("module").await?;
        self.truth().store().module(content_hash).await
    }

    async fn modules(&self) -> Result<Vec<ModuleInfo>, Error> {
        self.link.look("modules").await?;
        self.truth().store().modules().await
    }

    async fn drop_module(&self, content_hash: &str) -> Result<(), Error> {
        let content_hash = content_hash.to_owned();
        send!(self, "drop_module", |truth| truth.store().drop_module(&content_hash).await)
    }
}

#[async_trait]
impl Housekeeping for FaultyBroker {
    async fn idle_streams(
        &self,
        category: &CategoryName,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<IdleStream>, Option<u64>), Error> {
        let category = category.clone();
        send!(self, "idle_streams", |truth| truth.store().idle_streams(&category, cursor, limit).await)
    }

    async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error> {
        let idle = idle.to_vec();
        send!(self, "reap", |truth| truth.reap(&idle).await)
    }

    async fn live_partitions(&self, category: &CategoryName) -> Result<u64, Error> {
        self.link.look("live_partitions").await?;
        self.truth().store().live_partitions(category).await
    }
}

#[async_trait]
impl Operate for FaultyBroker {
    async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
        self.link.look("head").await?;
        self.truth().head(partition).await
    }

    async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        let (partition, head, by) = (partition.clone(), head.clone(), by.clone());
        send!(self, "act_on_head", |truth| truth.act_on_head(&partition, &head, action, &by).await)
    }

    async fn halted(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<(PartitionId, HaltRecord)> {
        self.link.look("halted").await?;
        self.truth().store().halted(source, cursor, limit).await
    }

    async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        send!(self, "pause", |truth| truth.pause(&category, key.as_ref(), &by).await)
    }

    async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        send!(self, "resume", |truth| truth.resume(&category, key.as_ref(), &by).await)
    }

    async fn paused(&self, category: &CategoryName) -> Result<Vec<Paused>, Error> {
        self.link.look("paused").await?;
        self.truth().store().paused(category).await
    }

    async fn dead_letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        limit: usize,
    ) -> Rows<DeadLetter> {
        self.link.look("dead_letters").await?;
        self.truth().store().dead_letters(category, key, cursor, limit).await
    }

    async fn dead_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        self.link.look("dead_letter").await?;
        self.truth().store().dead_letter(category, key, id).await
    }

    async fn redrive(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        send!(self, "redrive", |truth| truth.store().redrive(&category, key.as_ref(), id, &by).await)
    }

    async fn purge(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<(), OperateError> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        send!(self, "purge", |truth| truth.store().purge(&category, key.as_ref(), id, &by).await)
    }

    async fn record(&self, action: &str, target: &str, by: &By) -> Result<(), Error> {
        let (action, target, by) = (action.to_owned(), target.to_owned(), by.clone());
        send!(self, "record", |truth| truth.store().record(&action, &target, &by).await)
    }

    async fn audit(&self, cursor: u64, limit: usize) -> Rows<AuditRow> {
        self.link.look("audit").await?;
        self.truth().store().audit(cursor, limit).await
    }
}
