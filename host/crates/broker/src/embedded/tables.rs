//! All tables of one write transaction, opened once, and the memory that the writer keeps beside them.

use redb::{Database, ReadableDatabase, ReadableTable, Table, WriteTransaction};

use super::records::catalog::Topology;
use super::records::counters::{self, Counters, FORMAT, FORMAT_NAME};
use super::records::dead::DeadTables;
use super::records::deliveries::DeliveryTables;
use super::records::entries::EntryKey;
use super::records::halts::HaltOrder;
use super::records::paused::PausedSet;
use super::records::ready::ReadyTables;
use super::records::seen::{self, Hand, SeenKey, SeenValue};
use super::records::state::{self, StateTables};
use super::records::streams::{self, IndexKey, IndexValue, StreamValue};
use super::records::{
    PartitionKey, StreamKey, attempts, audit, catalog, cursors, deliveries, entries, halts, leases, modules, outbox,
    paused, ready, storage, turns, versions,
};
use crate::Error;

type Bytes = &'static [u8];

/// Every table, for writing. Those that are seldom written are opened where they are, from `txn`: opening costs time.
pub(super) struct Tables<'txn> {
    pub(super) txn: &'txn WriteTransaction,
    pub(super) entries: Table<'txn, EntryKey, Bytes>,
    pub(super) streams: Table<'txn, StreamKey, StreamValue>,
    pub(super) index: Table<'txn, IndexKey, IndexValue>,
    pub(super) cursors: Table<'txn, cursors::CursorKey, cursors::CursorValue>,
    pub(super) leases: Table<'txn, PartitionKey, Bytes>,
    pub(super) attempts: Table<'txn, PartitionKey, Bytes>,
    pub(super) halts: Table<'txn, PartitionKey, Bytes>,
    pub(super) state: StateTables<'txn>,
    pub(super) ready: ReadyTables<'txn>,
    pub(super) deliveries: DeliveryTables<'txn>,
    pub(super) turns: Table<'txn, PartitionKey, &'static str>,
    pub(super) outbox: Table<'txn, u64, Bytes>,
    pub(super) abandoned: Table<'txn, u64, Bytes>,
    pub(super) seen: Table<'txn, SeenKey, SeenValue>,
    pub(super) catalog: Table<'txn, &'static str, Bytes>,
    pub(super) counters: Table<'txn, &'static str, u64>,
    pub(super) ready_counts: Table<'txn, (&'static str, &'static str), u64>,
    pub(super) published_counts: Table<'txn, &'static str, u64>,
}

impl<'txn> Tables<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            txn,
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
            deliveries: DeliveryTables {
                pending: txn.open_table(deliveries::TABLE).map_err(storage)?,
                next: txn.open_table(deliveries::NEXT).map_err(storage)?,
            },
            turns: txn.open_table(turns::TABLE).map_err(storage)?,
            outbox: txn.open_table(outbox::TABLE).map_err(storage)?,
            abandoned: txn.open_table(outbox::ABANDONED).map_err(storage)?,
            seen: txn.open_table(seen::TABLE).map_err(storage)?,
            catalog: txn.open_table(catalog::TABLE).map_err(storage)?,
            counters: txn.open_table(counters::TABLE).map_err(storage)?,
            ready_counts: txn.open_table(counters::READY).map_err(storage)?,
            published_counts: txn.open_table(counters::PUBLISHED).map_err(storage)?,
        })
    }
}

/// What the writer keeps in memory: a cache of tables, right as of the last commit plus the batch under way.
pub(super) struct Memory {
    pub(super) counters: Counters,
    pub(super) topology: Topology,
    pub(super) hand: Hand,
    pub(super) paused: PausedSet,
}

impl Memory {
    pub(super) fn load(database: &Database) -> Result<Self, Error> {
        let txn = database.begin_read().map_err(storage)?;
        let counters = Counters::load(
            &txn.open_table(counters::TABLE).map_err(storage)?,
            &txn.open_table(counters::READY).map_err(storage)?,
            &txn.open_table(counters::PUBLISHED).map_err(storage)?,
        )?;
        let (catalog, _) = catalog::get(&txn.open_table(catalog::TABLE).map_err(storage)?)?;
        let paused = PausedSet::load(&txn.open_table(paused::TABLE).map_err(storage)?)?;
        Ok(Self { counters, topology: Topology::of(&catalog), hand: Hand::default(), paused })
    }
}

/// Makes every table, so that readers find them; answers with the format that the store was written in.
pub(super) fn prepare(database: &Database) -> Result<u64, Error> {
    let txn = database.begin_write().map_err(storage)?;
    let mut counters = txn.open_table(counters::TABLE).map_err(storage)?;
    let found = counters.get(FORMAT_NAME).map_err(storage)?.map(|row| row.value());
    if found.is_none() {
        counters.insert(FORMAT_NAME, FORMAT).map_err(storage)?;
    }
    drop(counters);
    if found.is_some_and(|found| found != FORMAT) {
        txn.abort().map_err(storage)?;
    } else {
        // An older release of the same format may not have had all of them.
        let mut tables = Tables::open(&txn)?;
        open_seldom_written(&txn)?;
        number_halts(&mut tables)?;
        drop(tables);
        txn.commit().map_err(storage)?;
    }
    Ok(found.unwrap_or(FORMAT))
}

fn open_seldom_written(txn: &WriteTransaction) -> Result<(), Error> {
    DeadTables::open(txn)?;
    HaltOrder::open(txn)?;
    txn.open_table(audit::TABLE).map_err(storage)?;
    txn.open_table(paused::TABLE).map_err(storage)?;
    txn.open_table(modules::TABLE).map_err(storage)?;
    txn.open_table(modules::BYTES).map_err(storage)?;
    txn.open_table(versions::TABLE).map_err(storage)?;
    Ok(())
}

/// Releases before the audit gave halts no number.
fn number_halts(tables: &mut Tables<'_>) -> Result<(), Error> {
    let mut counters = Counters::load(&tables.counters, &tables.ready_counts, &tables.published_counts)?;
    HaltOrder::open(tables.txn)?.number_all(&tables.halts, &mut counters)?;
    counters.write(&mut tables.counters, &mut tables.ready_counts, &mut tables.published_counts)
}
