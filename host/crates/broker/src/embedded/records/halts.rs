//! Halts: partition → why it stands still.
//!
//! Life: written by halt, removed by an operator's decision only. While there is one the partition is in no ready set and
//! nobody acquires it.

use keyrail_ordering::{HaltRecord, PartitionId};
use redb::{ReadableTable, Table, TableDefinition};

use super::{PartitionKey, partition_key, storage};
use crate::{Error, wire};

pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, &[u8]> = TableDefinition::new("halts");

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<Option<HaltRecord>, Error> {
    let row = table.get(partition_key(partition)).map_err(storage)?;
    row.map(|row| wire::decode(row.value())).transpose()
}

pub(in crate::embedded) fn exists(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: (&str, &str, &str),
) -> Result<bool, Error> {
    Ok(table.get(partition).map_err(storage)?.is_some())
}

pub(in crate::embedded) fn put(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
    record: &HaltRecord,
) -> Result<(), Error> {
    table.insert(partition_key(partition), wire::encode(record).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn count(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    (group, category): (&str, &str),
) -> Result<u64, Error> {
    let mut count = 0;
    for row in table.range((group, category, "")..).map_err(storage)? {
        let (at, _) = row.map_err(storage)?;
        let (its_group, its_category, _) = at.value();
        if (its_group, its_category) != (group, category) {
            break;
        }
        count += 1;
    }
    Ok(count)
}
