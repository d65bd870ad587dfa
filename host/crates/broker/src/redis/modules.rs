//! The module registry: `__modules__` says what there is, `__module__:{hash}` holds the bytes.
//!
//! Modules are large, and calls of all partitions share one connection: bytes travel in pieces, so that none waits long.
//! They are written under a name of their own first, and renamed when they are whole.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::answer::{self, Answer};
use super::{RedisBroker, keyspace};
use crate::{Error, ModuleInfo, Modules, wire};

/// One piece of a module.
const PIECE_BYTES: usize = 256 << 10;
/// An upload that was broken off is forgotten after this time.
const UPLOAD_TTL_MS: u64 = 10 * 60 * 1_000;

#[async_trait]
impl Modules for RedisBroker {
    async fn put_module(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), Error> {
        let name = keyspace::module(&info.content_hash);
        // Two that upload the same at once write the same bytes to the same places.
        let partial = format!("{name}:partial");
        for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let write = redis::cmd("SETRANGE").arg(&partial).arg(index * PIECE_BYTES).arg(piece).to_owned();
            self.connection.call(&write).await?;
        }
        self.connection.call(redis::cmd("PEXPIRE").arg(&partial).arg(UPLOAD_TTL_MS)).await?;
        match self.connection.call(redis::cmd("RENAME").arg(&partial).arg(&name)).await {
            Ok(_) => {}
            // The other one was faster.
            Err(_) if self.stored_bytes(&name).await? == info.size_bytes => {}
            Err(failure) => return Err(failure.into()),
        }
        self.connection.call(redis::cmd("PERSIST").arg(&name)).await?;
        let record = wire::encode(info);
        self.connection.call(redis::cmd("HSET").arg(keyspace::MODULES).arg(&info.content_hash).arg(record)).await?;
        Ok(())
    }

    async fn module_info(&self, content_hash: &str) -> Result<Option<ModuleInfo>, Error> {
        let answer = self.connection.call(redis::cmd("HGET").arg(keyspace::MODULES).arg(content_hash)).await?;
        answer::bytes(answer)?.map(|record| wire::decode(&record)).transpose()
    }

    async fn module(&self, content_hash: &str) -> Result<Option<Bytes>, Error> {
        let name = keyspace::module(content_hash);
        let size = self.stored_bytes(&name).await? as usize;
        if size == 0 {
            return Ok(None);
        }
        let mut bytes = BytesMut::with_capacity(size);
        for from in (0..size).step_by(PIECE_BYTES) {
            let read = redis::cmd("GETRANGE").arg(&name).arg(from).arg(from + PIECE_BYTES - 1).to_owned();
            let piece = answer::bytes(self.connection.call(&read).await?)?.unwrap_or_default();
            bytes.extend_from_slice(&piece);
        }
        Ok(Some(bytes.freeze()))
    }

    async fn modules(&self) -> Result<Vec<ModuleInfo>, Error> {
        let mut answer = Answer::of(self.connection.call(redis::cmd("HVALS").arg(keyspace::MODULES)).await?)?;
        let mut modules: Vec<ModuleInfo> = vec![];
        while !answer.is_empty() {
            modules.push(wire::decode(&answer.bytes()?)?);
        }
        modules.sort_by(|a, b| a.content_hash.cmp(&b.content_hash));
        Ok(modules)
    }

    async fn drop_module(&self, content_hash: &str) -> Result<(), Error> {
        self.connection.call(redis::cmd("HDEL").arg(keyspace::MODULES).arg(content_hash)).await?;
        self.connection.call(redis::cmd("DEL").arg(keyspace::module(content_hash))).await?;
        Ok(())
    }
}

impl RedisBroker {
    async fn stored_bytes(&self, name: &str) -> Result<u64, Error> {
        answer::number(&self.connection.call(redis::cmd("STRLEN").arg(name)).await?)
    }
}
