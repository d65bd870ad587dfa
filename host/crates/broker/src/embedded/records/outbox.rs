//! Outbox: number → an event that a commit emitted; and the abandoned ones: the same number → reason and event.
//!
//! Life: written by commit, in the order of commits and emits, and moved by route into a stream or to the abandoned, which
//! stay for the operator.

use keyrail_ordering::Outgoing;
use redb::{ReadableTable, Table, TableDefinition};
use serde::Serialize;

use super::storage;
use crate::{Error, wire};

pub(in crate::embedded) const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("outbox");
pub(in crate::embedded) const ABANDONED: TableDefinition<u64, &[u8]> = TableDefinition::new("outbox_abandoned");

/// A record with its number; an error if it cannot be read.
pub(in crate::embedded) type Numbered = (u64, Result<Outgoing, Error>);

#[derive(Serialize)]
struct AbandonedRecord<'a> {
    reason: &'a str,
    outgoing: &'a Outgoing,
}

pub(in crate::embedded) fn put(
    table: &mut Table<u64, &'static [u8]>,
    number: u64,
    outgoing: &Outgoing,
) -> Result<(), Error> {
    table.insert(number, wire::encode(outgoing).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn abandon(
    table: &mut Table<u64, &'static [u8]>,
    number: u64,
    outgoing: &Outgoing,
    reason: &str,
) -> Result<(), Error> {
    table.insert(number, wire::encode(&AbandonedRecord { reason, outgoing }).as_slice()).map_err(storage)?;
    Ok(())
}

/// The oldest `max` records. One that cannot be read is an error in its place: it must not hold back the others.
pub(in crate::embedded) fn oldest(
    table: &impl ReadableTable<u64, &'static [u8]>,
    max: usize,
) -> Result<Vec<Numbered>, Error> {
    let mut records = vec![];
    for row in table.iter().map_err(storage)?.take(max) {
        let (number, bytes) = row.map_err(storage)?;
        records.push((number.value(), wire::decode(bytes.value())));
    }
    Ok(records)
}

/// Copies a record that cannot be read to the abandoned as it is.
pub(in crate::embedded) fn abandon_unread(
    table: &Table<u64, &'static [u8]>,
    abandoned: &mut Table<u64, &'static [u8]>,
    number: u64,
) -> Result<(), Error> {
    if let Some(row) = table.get(number).map_err(storage)? {
        abandoned.insert(number, row.value()).map_err(storage)?;
    }
    Ok(())
}
