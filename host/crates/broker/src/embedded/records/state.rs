//! State: (group, category, key, name) → a value as it is; and which keys have any: partition → number, and
//! (group, category, number) → key, by which pages are cut.
//!
//! Life: written and removed by commit. A key whose last value goes leaves the list.

use bytes::Bytes;
use keyrail_ordering::{PartitionId, StateChange};
use redb::{ReadableTable, Table, TableDefinition};

use super::counters::Counters;
use super::{PartitionKey, partition_key, storage};
use crate::Error;

pub(in crate::embedded) type StateKey = (&'static str, &'static str, &'static str, &'static str);
pub(in crate::embedded) type ListKey = (&'static str, &'static str, u64);
pub(in crate::embedded) const TABLE: TableDefinition<StateKey, &[u8]> = TableDefinition::new("state");
pub(in crate::embedded) const NUMBERS: TableDefinition<PartitionKey, u64> = TableDefinition::new("state_numbers");
pub(in crate::embedded) const LIST: TableDefinition<ListKey, &str> = TableDefinition::new("state_list");

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<StateKey, &'static [u8]>,
    partition: &PartitionId,
    name: &str,
) -> Result<Option<Bytes>, Error> {
    let (group, category, key) = partition_key(partition);
    let row = table.get((group, category, key, name)).map_err(storage)?;
    Ok(row.map(|row| Bytes::copy_from_slice(row.value())))
}

/// All values of a partition; none if they are larger than `max_bytes` together.
pub(in crate::embedded) fn all(
    table: &impl ReadableTable<StateKey, &'static [u8]>,
    (group, category, key): (&str, &str, &str),
    max_bytes: usize,
) -> Result<Option<Vec<(String, Bytes)>>, Error> {
    let (mut values, mut bytes) = (vec![], 0);
    for row in table.range((group, category, key, "")..).map_err(storage)? {
        let (at, value) = row.map_err(storage)?;
        let (its_group, its_category, its_key, name) = at.value();
        if (its_group, its_category, its_key) != (group, category, key) {
            break;
        }
        bytes += name.len() + value.value().len();
        if bytes > max_bytes {
            return Ok(None);
        }
        values.push((name.to_owned(), Bytes::copy_from_slice(value.value())));
    }
    Ok(Some(values))
}

/// Up to `max` keys that have state, from a number on: number, key.
pub(in crate::embedded) fn list(
    table: &impl ReadableTable<ListKey, &'static str>,
    (group, category): (&str, &str),
    from: u64,
    max: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let mut keys = vec![];
    for row in table.range((group, category, from)..=(group, category, u64::MAX)).map_err(storage)?.take(max) {
        let (at, key) = row.map_err(storage)?;
        keys.push((at.value().2, key.value().to_owned()));
    }
    Ok(keys)
}

/// The tables that hold state, for writing.
pub(in crate::embedded) struct StateTables<'txn> {
    pub(in crate::embedded) values: Table<'txn, StateKey, &'static [u8]>,
    pub(in crate::embedded) numbers: Table<'txn, PartitionKey, u64>,
    pub(in crate::embedded) list: Table<'txn, ListKey, &'static str>,
}

impl StateTables<'_> {
    pub(in crate::embedded) fn apply(
        &mut self,
        counters: &mut Counters,
        partition: &PartitionId,
        changes: &[StateChange],
    ) -> Result<(), Error> {
        let (group, category, key) = partition_key(partition);
        let (mut put, mut removed) = (false, false);
        for change in changes {
            let at = (group, category, key, change.name.as_str());
            if let Some(value) = &change.value {
                self.values.insert(at, value.as_ref()).map_err(storage)?;
                put = true;
            } else {
                removed |= self.values.remove(at).map_err(storage)?.is_some();
            }
        }
        let number = self.numbers.get((group, category, key)).map_err(storage)?.map(|row| row.value());
        match number {
            None if put => {
                let number = counters.next_state();
                self.numbers.insert((group, category, key), number).map_err(storage)?;
                self.list.insert((group, category, number), key).map_err(storage)?;
            }
            Some(number) if removed && !put && self.is_empty((group, category, key))? => {
                self.numbers.remove((group, category, key)).map_err(storage)?;
                self.list.remove((group, category, number)).map_err(storage)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn is_empty(&self, partition: (&str, &str, &str)) -> Result<bool, Error> {
        let all = all(&self.values, partition, 0)?;
        Ok(all.is_some_and(|values| values.is_empty()))
    }
}
