//! All tables of one write transaction, opened once, and the memory that the writer keeps beside them.

use redb::{Database, ReadableDatabase, Table, WriteTransaction};

use super::records::catalog::Topology;
use super::records::counters::{self, Counters, FORMAT, FORMAT_NAME};
use super::records::entries::EntryKey;
use super::records::ready::ReadyTables;
use super::records::seen::{self, Hand, SeenKey, SeenValue};
use super::records::state::{self, StateTables};
use super::records::streams::{self, IndexKey, IndexValue, StreamValue};
use super::records::{
    PartitionKey, StreamKey, attempts, catalog, cursors, entries, halts, leases, outbox, ready, storage,
};
use crate::Error;

type Bytes = &'static [u8];

/// Every table, for writing.
pub(super) struct Tables<'txn> {
    pub(super) entries: Table<'txn, EntryKey, Bytes>,
    pub(super) streams: Table<'txn, StreamKey, StreamValue>,
    pub(super) index: Table<'txn, IndexKey, IndexValue>,
    pub(super) cursors: Table<'txn, cursors::CursorKey, cursors::CursorValue>,
    pub(super) leases: Table<'txn, PartitionKey, Bytes>,
    pub(super) attempts: Table<'txn, PartitionKey, Bytes>,
    pub(super) halts: Table<'txn, PartitionKey, Bytes>,
    pub(super) state: StateTables<'txn>,
    pub(super) ready: ReadyTables<'txn>,
    pub(super) outbox: Table<'txn, u64, Bytes>,
    pub(super) abandoned: Table<'txn, u64, Bytes>,
    pub(super) seen: Table<'txn, SeenKey, SeenValue>,
    pub(super) catalog: Table<'txn, &'static str, Bytes>,
    pub(super) counters: Table<'txn, &'static str, u64>,
    pub(super) ready_counts: Table<'txn, (&'static str, &'static str), u64>,
}

impl<'txn> Tables<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            entries: txn.open_table(entries::TABLE).map_err(storage)?,
            streams: txn.open_table(streams::TABLE).map_err(storage)?,
            index: txn.open_table(streams::INDEX).map_err(storage)?,
            cursors: txn.open_table(cursors::TABLE).map_err(storage)?,
            leases: txn.open_table(leases::TABLE).map_err(storage)?,
            attempts: txn.open_table(attempts::TABLE).map_err(storage)?,
            halts: txn.open_table(halts::TABLE).map_err(storage)?,
            state: StateTables {
                values: txn.open_table(state::TABLE).map_err(storage)?,
                numbers: txn.open_table(state::NUMBERS).map_err(storage)?,
                list: txn.open_table(state::LIST).map_err(storage)?,
            },
            ready: ReadyTables {
                set: txn.open_table(ready::TABLE).map_err(storage)?,
                order: txn.open_table(ready::ORDER).map_err(storage)?,
            },
            outbox: txn.open_table(outbox::TABLE).map_err(storage)?,
            abandoned: txn.open_table(outbox::ABANDONED).map_err(storage)?,
            seen: txn.open_table(seen::TABLE).map_err(storage)?,
            catalog: txn.open_table(catalog::TABLE).map_err(storage)?,
            counters: txn.open_table(counters::TABLE).map_err(storage)?,
            ready_counts: txn.open_table(counters::READY).map_err(storage)?,
        })
    }
}

/// What the writer keeps in memory: a cache of tables, right as of the last commit plus the batch under way.
pub(super) struct Memory {
    pub(super) counters: Counters,
    pub(super) topology: Topology,
    pub(super) hand: Hand,
}

impl Memory {
    pub(super) fn load(database: &Database) -> Result<Self, Error> {
        let txn = database.begin_read().map_err(storage)?;
        let counters = Counters::load(
            &txn.open_table(counters::TABLE).map_err(storage)?,
            &txn.open_table(counters::READY).map_err(storage)?,
        )?;
        let (catalog, _) = catalog::get(&txn.open_table(catalog::TABLE).map_err(storage)?)?;
        Ok(Self { counters, topology: Topology::of(&catalog), hand: Hand::default() })
    }
}

/// Makes every table, so that readers find them; answers with the format that the store was written in.
pub(super) fn prepare(database: &Database) -> Result<u64, Error> {
    let txn = database.begin_write().map_err(storage)?;
    let mut tables = Tables::open(&txn)?;
    let found = {
        use redb::ReadableTable;
        tables.counters.get(FORMAT_NAME).map_err(storage)?.map(|row| row.value())
    };
    if found.is_none() {
        tables.counters.insert(FORMAT_NAME, FORMAT).map_err(storage)?;
    }
    drop(tables);
    if found.is_none() {
        txn.commit().map_err(storage)?;
    } else {
        txn.abort().map_err(storage)?;
    }
    Ok(found.unwrap_or(FORMAT))
}
