//! Versions: partition → from which entries on which versions of its handler handled it.
//!
//! Life: a commit adds one when the version is another than the last on record; the oldest goes when there are more than
//! [`KEEP_MAX`]; removed when the partition is forgotten. Absence means that nothing of it was ever settled.

use keyrail_ordering::PartitionId;
use redb::{ReadableTable, Table, TableDefinition};

use super::{PartitionKey, partition_key, storage};
use crate::{Error, VersionSince, wire};

pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, &[u8]> = TableDefinition::new("versions");

const KEEP_MAX: usize = 8;

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<Vec<VersionSince>, Error> {
    let row = table.get(partition_key(partition)).map_err(storage)?;
    row.map_or(Ok(vec![]), |row| wire::decode(row.value()))
}

/// Adds one, unless it is the version that is on record last.
pub(in crate::embedded) fn add(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
    since: VersionSince,
) -> Result<(), Error> {
    let mut versions = get(table, partition)?;
    if versions.last().is_some_and(|last| last.version == since.version) {
        return Ok(());
    }
    if versions.len() == KEEP_MAX {
        versions.remove(0);
    }
    versions.push(since);
    table.insert(partition_key(partition), wire::encode(&versions).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<(), Error> {
    table.remove(partition_key(partition)).map_err(storage)?;
    Ok(())
}
