//! Ready sets: partition → number, and (group, category, number) → key in the order in which keys became ready.
//!
//! Invariant: a partition is in its set exactly when its group has unsettled entries and it is not halted.
//! Life: added by publish and route, removed when the last entry is settled or the partition halts.

use keyrail_ordering::Key;
use redb::{ReadableTable, Table, TableDefinition};

use super::counters::Counters;
use super::{PartitionKey, source_key, storage};
use crate::{Error, ReadySource};

pub(in crate::embedded) type OrderKey = (&'static str, &'static str, u64);
pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, u64> = TableDefinition::new("ready");
pub(in crate::embedded) const ORDER: TableDefinition<OrderKey, &str> = TableDefinition::new("ready_order");

/// Both tables, for writing.
pub(in crate::embedded) struct ReadyTables<'txn> {
    pub(in crate::embedded) set: Table<'txn, PartitionKey, u64>,
    pub(in crate::embedded) order: Table<'txn, OrderKey, &'static str>,
}

impl ReadyTables<'_> {
    pub(in crate::embedded) fn contains(&self, source: &ReadySource, key: &Key) -> Result<bool, Error> {
        let (group, category) = source_key(source);
        Ok(self.set.get((group, category, key.as_str())).map_err(storage)?.is_some())
    }

    /// Whether it was not in the set.
    pub(in crate::embedded) fn add(
        &mut self,
        counters: &mut Counters,
        source: &ReadySource,
        key: &Key,
    ) -> Result<bool, Error> {
        if self.contains(source, key)? {
            return Ok(false);
        }
        let (group, category) = source_key(source);
        let number = counters.next_ready();
        self.set.insert((group, category, key.as_str()), number).map_err(storage)?;
        self.order.insert((group, category, number), key.as_str()).map_err(storage)?;
        counters.ready_added(source);
        Ok(true)
    }

    pub(in crate::embedded) fn remove(
        &mut self,
        counters: &mut Counters,
        source: &ReadySource,
        key: &Key,
    ) -> Result<(), Error> {
        let (group, category) = source_key(source);
        let number = self.set.remove((group, category, key.as_str())).map_err(storage)?.map(|row| row.value());
        if let Some(number) = number {
            self.order.remove((group, category, number)).map_err(storage)?;
            counters.ready_removed(source);
        }
        Ok(())
    }
}

/// Up to `max` keys of a set, from a number on: number, key.
pub(in crate::embedded) fn list(
    order: &impl ReadableTable<OrderKey, &'static str>,
    source: &ReadySource,
    from: u64,
    max: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let (group, category) = source_key(source);
    let mut keys = vec![];
    for row in order.range((group, category, from)..=(group, category, u64::MAX)).map_err(storage)?.take(max) {
        let (at, key) = row.map_err(storage)?;
        keys.push((at.value().2, key.value().to_owned()));
    }
    Ok(keys)
}
