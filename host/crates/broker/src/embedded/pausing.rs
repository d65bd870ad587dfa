//! Pausing: nobody owns what is paused, and what was in hand goes back.
//!
//! Invariant: from the step that pauses on, no lease on anything paused holds, and acquire gives none.

use keyrail_ordering::{CategoryName, Key, PartitionId, Scope};

use super::letters::place;
use super::operate::{record, take_lease_away};
use super::records::paused;
use super::records::storage;
use super::shared_log;
use super::writer::Batch;
use crate::{Bell, By, Error, Paused, ReadySource, SharedSource};

pub(super) fn pause(
    batch: &mut Batch<'_, '_>,
    category: &CategoryName,
    key: Option<&Key>,
    by: By,
) -> Result<bool, Error> {
    if batch.memory.paused.contains(category, key) {
        return Ok(false);
    }
    let affected = batch.shared.live.held(batch.shared.now_ms(), |id| reads(batch, id, category, key));
    batch.writes();
    let row = Paused { category: category.clone(), key: key.cloned(), by: by.clone(), at_ms: batch.shared.wall_ms() };
    paused::put(&mut batch.tables.txn.open_table(paused::TABLE).map_err(storage)?, &row)?;
    batch.memory.paused.insert(category, key);
    for (id, ..) in affected {
        take_lease_away(batch, &id)?;
    }
    if key.is_none() {
        for source in sources(batch, category) {
            if let ReadySource::Shared { group, category } = source {
                shared_log::take_away(batch, &SharedSource { group, category })?;
            }
        }
    }
    record(batch, "pause", place(category, key), String::new(), by)?;
    Ok(true)
}

pub(super) fn resume(
    batch: &mut Batch<'_, '_>,
    category: &CategoryName,
    key: Option<&Key>,
    by: By,
) -> Result<bool, Error> {
    if !batch.memory.paused.contains(category, key) {
        return Ok(false);
    }
    batch.writes();
    paused::remove(&mut batch.tables.txn.open_table(paused::TABLE).map_err(storage)?, category, key)?;
    batch.memory.paused.remove(category, key);
    for source in sources(batch, category) {
        match key {
            None => batch.bells.push(Bell::Look { source }),
            Some(key) if batch.tables.ready.contains(&source, key)? => {
                batch.bells.push(Bell::Ready { source, key: key.clone() });
            }
            Some(_) => {}
        }
    }
    record(batch, "resume", place(category, key), String::new(), by)?;
    Ok(true)
}

fn sources(batch: &Batch<'_, '_>, category: &CategoryName) -> Vec<ReadySource> {
    batch.memory.topology.sources(category).to_vec()
}

/// Whether a partition reads from this category, or from this key of it.
fn reads(batch: &Batch<'_, '_>, partition: &PartitionId, category: &CategoryName, key: Option<&Key>) -> bool {
    let reads_category = match &partition.scope {
        Scope::Key { category: its, .. } => its == category,
        Scope::Correlation { .. } => {
            let categories = batch.memory.topology.managers.get(&partition.group);
            categories.is_some_and(|categories| categories.contains(category))
        }
    };
    reads_category && key.is_none_or(|key| partition.key() == key)
}
