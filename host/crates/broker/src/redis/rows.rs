//! Rows: where partitions stand, as operators see it.

use keyrail_ordering::{
    CategoryName, EntryRef, Generation, Key, KeyRules, Lane, OwnerId, PartitionId, Scope, StreamId,
};

use super::RedisBroker;
use super::answer::{self, Answer};
use super::functions::Call;
use super::keyspace::{self, Name};
use crate::{Error, PartitionRow, ReadySource, VersionSince, wire};

/// A key's lanes, in the order in which they are read.
pub(super) const LANES: [Lane; 2] = [Lane::Primary, Lane::Backfill];

impl RedisBroker {
    /// Rows of these keys, each with whether it ever had an owner. A key's streams are its two lanes; a
    /// correlation's are the two of each category.
    pub(super) async fn rows(
        &self,
        source: &ReadySource,
        keys: Vec<Key>,
        categories: &[CategoryName],
    ) -> Result<Vec<(PartitionRow, bool)>, Error> {
        if keys.is_empty() {
            return Ok(vec![]);
        }
        let rules = self.rules();
        let mut call = Call::new("keyrail_6_rows", 0);
        call.arg(keyspace::collection(source)).arg(source.group().as_str()).arg(categories.len() * LANES.len());
        for key in &keys {
            call.arg(key.as_str());
            for category in categories {
                for lane in LANES {
                    let id = StreamId { category: category.clone(), key: Some(key.clone()), lane };
                    call.arg(keyspace::stream(&id, &rules));
                }
            }
        }
        let mut answer = Answer::of(self.call(&call).await?)?;
        keys.into_iter().map(|key| row(partition_of(source, key), answer.list()?, &rules)).collect()
    }

    /// The categories whose streams a source's partitions have.
    pub(super) async fn categories_of(&self, source: &ReadySource) -> Result<Vec<CategoryName>, Error> {
        match source {
            ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => Ok(vec![category.clone()]),
            ReadySource::ProcessManager { group } => {
                let (catalog, _) = self.read_catalog().await?;
                let handler = catalog.handlers.get(group);
                Ok(handler.map(|it| it.metadata.categories().into_iter().cloned().collect()).unwrap_or_default())
            }
        }
    }
}

/// One line of what `commit.lua` keeps.
fn version_since(line: &str, rules: &KeyRules) -> Option<VersionSince> {
    let (id, rest) = line.split_once('\t')?;
    let (version, stream) = rest.split_once('\t')?;
    let Name::Stream(stream) = keyspace::parse(stream, rules)? else { return None };
    let id = id.parse().ok()?;
    Some(VersionSince { from: EntryRef { stream, id }, version: version.into() })
}

fn row(partition: PartitionId, mut answer: Answer, rules: &KeyRules) -> Result<(PartitionRow, bool), Error> {
    let last = answer::entry_id(&answer.text()?)?;
    let settled = answer::entry_id(&answer.text()?)?;
    let waiting = answer.number()?;
    let lease = answer.text()?;
    let last_owner = answer.text()?;
    let attempts = answer.number()? as u32;
    let record = answer.bytes()?;
    let halted = if record.is_empty() { None } else { Some(wire::decode(&record)?) };
    let versions = answer.text()?.lines().filter_map(|line| version_since(line, rules)).collect();
    let owned = !lease.is_empty();
    let holder = owner(if owned { &lease } else { &last_owner });
    let (owner, generation) = holder.unzip();
    let row = PartitionRow { partition, last, settled, waiting, owner, generation, owned, attempts, halted, versions };
    Ok((row, !last_owner.is_empty()))
}

pub(super) fn owner(token: &str) -> Option<(OwnerId, Generation)> {
    let (owner, generation) = token.rsplit_once(':')?;
    let usable = !owner.is_empty() && !owner.contains(':');
    usable.then_some(())?;
    Some((OwnerId::new(owner), Generation(generation.parse().ok()?)))
}

pub(super) fn partition_of(source: &ReadySource, key: Key) -> PartitionId {
    let scope = match source {
        ReadySource::Category { category, .. } => Scope::Key { category: category.clone(), key },
        ReadySource::ProcessManager { .. } => Scope::Correlation { value: key },
        ReadySource::Shared { .. } => unreachable!("partitions and states answer before: it has no keys"),
    };
    PartitionId { group: source.group().clone(), scope }
}
