//! Leases: partition → who owns it, or owned it last, and from which stream it has entries in hand.
//!
//! Life: written by acquire, kept after release, so that an operator sees who did the work, and removed by reap. The time at which a lease
//! lapses is kept in memory only (see `live.rs`): the leases of an earlier process have lapsed. `serving` without a live
//! lease therefore says that the owner died on an event.

use keyrail_ordering::{Generation, OwnerId, PartitionId, StreamId};
use redb::{ReadableTable, Table, TableDefinition};
use serde::{Deserialize, Serialize};

use super::{PartitionKey, partition_key, storage};
use crate::{Error, wire};

pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, &[u8]> = TableDefinition::new("leases");

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::embedded) struct LeaseRecord {
    pub(in crate::embedded) owner: OwnerId,
    pub(in crate::embedded) generation: Generation,
    /// The stream of which entries were delivered under the lease that are neither settled nor given back.
    pub(in crate::embedded) serving: Option<StreamId>,
}

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<Option<LeaseRecord>, Error> {
    let row = table.get(partition_key(partition)).map_err(storage)?;
    row.map(|row| wire::decode(row.value())).transpose()
}

pub(in crate::embedded) fn put(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
    record: &LeaseRecord,
) -> Result<(), Error> {
    table.insert(partition_key(partition), wire::encode(record).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<(), Error> {
    table.remove(partition_key(partition)).map_err(storage)?;
    Ok(())
}
