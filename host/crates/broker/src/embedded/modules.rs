//! The module registry.

use async_trait::async_trait;
use bytes::Bytes;
use redb::ReadableDatabase;

use super::EmbeddedBroker;
use super::records::{modules, storage};
use crate::{Error, ModuleInfo, Modules};

#[async_trait]
impl Modules for EmbeddedBroker {
    async fn put_module(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), Error> {
        let info = info.clone();
        self.writer
            .call(move |batch| {
                batch.writes();
                let mut infos = batch.tables.txn.open_table(modules::TABLE).map_err(storage)?;
                let mut contents = batch.tables.txn.open_table(modules::BYTES).map_err(storage)?;
                modules::put(&mut infos, &mut contents, &info, &bytes)
            })
            .await
    }

    async fn module_info(&self, content_hash: &str) -> Result<Option<ModuleInfo>, Error> {
        let content_hash = content_hash.to_owned();
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            modules::info(&txn.open_table(modules::TABLE).map_err(storage)?, &content_hash)
        })
        .await
    }

    async fn module(&self, content_hash: &str) -> Result<Option<Bytes>, Error> {
        let content_hash = content_hash.to_owned();
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            let table = txn.open_table(modules::BYTES).map_err(storage)?;
            let row = table.get(content_hash.as_str()).map_err(storage)?;
            Ok(row.map(|row| Bytes::copy_from_slice(row.value())))
        })
        .await
    }

    async fn modules(&self) -> Result<Vec<ModuleInfo>, Error> {
        self.read(|shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            modules::list(&txn.open_table(modules::TABLE).map_err(storage)?)
        })
        .await
    }

    async fn drop_module(&self, content_hash: &str) -> Result<(), Error> {
        let content_hash = content_hash.to_owned();
        self.writer
            .call(move |batch| {
                batch.writes();
                for table in [modules::TABLE, modules::BYTES] {
                    let mut table = batch.tables.txn.open_table(table).map_err(storage)?;
                    table.remove(content_hash.as_str()).map_err(storage)?;
                }
                Ok(())
            })
            .await
    }
}
