//! The catalog as it is stored, and what publishers see of it.

use async_trait::async_trait;
use keyrail_ordering::{Capabilities, Catalog, CategoryName, GroupName, SequentialBy};
use redis::Value;

use super::RedisBroker;
use super::answer::{self, Answer, Status};
use super::functions::Call;
use super::keyspace::{self, Listing};
use crate::{CatalogStore, Error, ReadySource, wire};

#[async_trait]
impl CatalogStore for RedisBroker {
    fn capabilities(&self) -> Capabilities {
        Capabilities { stream_partitioning: true }
    }

    async fn catalog(&self) -> Result<(Catalog, u64), Error> {
        self.read_catalog().await
    }

    async fn set_catalog(&self, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error> {
        let mut call = Call::new("keyrail_6_catalog", 1);
        call.arg(keyspace::CATALOG)
            .arg(expected)
            .arg(wire::encode(catalog))
            .arg(&catalog.key_rules.backfill_word)
            .arg(catalog.categories.len());
        for (category, entry) in &catalog.categories {
            call.arg(category.as_str()).arg(entry.key_field.as_deref().unwrap_or_default()).arg(entry.groups.len());
            for group in &entry.groups {
                call.arg(group.as_str()).arg(keyspace::listing(&source_of(catalog, group, category), Listing::Ready));
            }
        }
        let mut answer = Answer::of(self.call(&call).await?)?;
        match answer.status()? {
            Status::Ok => {
                self.set_rules(&catalog.key_rules);
                Ok(Some(answer.number()?))
            }
            Status::Held => Ok(None),
            Status::Refused => Err(Error::Refused(answer.text()?)),
            other => Err(Error::Corrupt(format!("the catalog answered {other:?}"))),
        }
    }
}

impl RedisBroker {
    /// The catalog and its version; keeps the key rules, which name the backfill lane.
    pub(super) async fn read_catalog(&self) -> Result<(Catalog, u64), Error> {
        let answer =
            self.connection.call(redis::cmd("HMGET").arg(keyspace::CATALOG).arg("version").arg("bytes")).await?;
        let mut answer = Answer::of(answer)?;
        let version = answer.value()?;
        if version == Value::Nil {
            return Ok((Catalog::default(), 0));
        }
        let version = answer::number(&version)?;
        let catalog: Catalog = wire::decode(&answer.bytes()?)?;
        self.set_rules(&catalog.key_rules);
        Ok((catalog, version))
    }
}

/// Where a group's ready partitions of a category are listed: a process manager has one list for all its categories.
fn source_of(catalog: &Catalog, group: &GroupName, category: &CategoryName) -> ReadySource {
    let correlated = catalog
        .handlers
        .get(group)
        .is_some_and(|handler| matches!(handler.metadata.sequential_by, SequentialBy::Correlation(_)));
    if correlated {
        ReadySource::ProcessManager { group: group.clone() }
    } else {
        ReadySource::Category { group: group.clone(), category: category.clone() }
    }
}
