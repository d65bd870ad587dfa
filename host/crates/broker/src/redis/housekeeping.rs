//! Dropping what is settled, and forgetting what is empty.
//!
//! Invariant: a key goes with all its lanes or not at all, and only in the step that finds it as it was seen.

use std::collections::BTreeMap;

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, Key, Lane, Role, StreamId};

use super::answer::{self, Answer};
use super::find::Scan;
use super::functions::Call;
use super::{RedisBroker, keyspace};
use crate::{Error, Housekeeping, IdleStream};

/// Keys, and streams, in one step: it holds the whole server up while it runs.
const PAGE_MAX: usize = 100;
/// Fields in one look at the index, where only their names count.
const COUNT_PAGE: usize = 1_000;

#[async_trait]
impl Housekeeping for RedisBroker {
    async fn idle_streams(
        &self,
        category: &CategoryName,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<IdleStream>, Option<u64>), Error> {
        let index = keyspace::index(category);
        let limit = limit.clamp(1, PAGE_MAX);
        let (fields, next) = self.scan(Scan::Fields, &index, "", cursor, limit, limit).await?;
        let rules = self.rules();
        // A lane is looked at with its key; no name at all is the one stream of a category without keys.
        let wanted = |field: &&String| field.is_empty() || keyspace::stored_key(field, &rules).is_some();
        let keys: Vec<&String> = fields.iter().filter(wanted).collect();
        if keys.is_empty() {
            return Ok((vec![], next));
        }
        let mut call = Call::new("keyrail_6_idle", 0);
        call.arg(category.as_str()).arg(self.kept());
        for key in keys {
            call.arg(key);
        }
        let mut answer = Answer::of(self.call(&call).await?)?;
        let mut idle = Vec::with_capacity(answer.len() / 3);
        while !answer.is_empty() {
            let key = answer.text()?;
            let lane = if answer.flag()? { Lane::Backfill } else { Lane::Primary };
            let last = answer::entry_id(&answer.text()?)?;
            if let (Some(key), Some(last)) = (keyspace::stored_key(&key, &rules), last) {
                idle.push(IdleStream { stream: StreamId { category: category.clone(), key: Some(key), lane }, last });
            }
        }
        Ok((idle, next))
    }

    async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error> {
        // All lanes of a key are in one call.
        let mut by_category: BTreeMap<&CategoryName, BTreeMap<&Key, Vec<&IdleStream>>> = BTreeMap::new();
        for stream in idle {
            if let Some(key) = &stream.stream.key {
                by_category.entry(&stream.stream.category).or_default().entry(key).or_default().push(stream);
            }
        }
        if by_category.is_empty() {
            return Ok(0);
        }
        let (catalog, _) = self.read_catalog().await?;
        let mut gone = 0;
        for (category, keys) in by_category {
            let managers: Vec<_> = catalog
                .handlers
                .values()
                .map(|handler| &handler.metadata)
                .filter(|of| of.role == Role::ProcessManager && of.categories().contains(&category))
                .collect();
            let keys: Vec<_> = keys.into_values().collect();
            for some in keys.chunks(PAGE_MAX) {
                let mut call = Call::new("keyrail_6_reap", 0);
                call.arg(category.as_str()).arg(managers.len());
                for manager in &managers {
                    let reads = manager.categories();
                    call.arg(manager.name.as_str()).arg(reads.len());
                    for name in reads {
                        call.arg(name.as_str());
                    }
                }
                for IdleStream { stream, last } in some.iter().flatten() {
                    call.arg(stream.key.as_ref().map_or("", Key::as_str))
                        .flag(stream.lane == Lane::Backfill)
                        .arg(last.to_string());
                }
                gone += answer::number(&self.call(&call).await?)?;
            }
        }
        Ok(gone)
    }

    async fn live_partitions(&self, category: &CategoryName) -> Result<u64, Error> {
        // The index counts lanes too, so its length is not the answer.
        let (index, rules) = (keyspace::index(category), self.rules());
        let (mut live, mut cursor) = (0, Some(0));
        while let Some(at) = cursor {
            let (fields, next) = self.scan(Scan::Fields, &index, "", at, COUNT_PAGE, COUNT_PAGE).await?;
            live += fields.iter().filter(|field| keyspace::stored_key(field, &rules).is_some()).count() as u64;
            cursor = next;
        }
        Ok(live)
    }
}
