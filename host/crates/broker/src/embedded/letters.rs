//! Dead letters: events that were set aside, and what operators do with them.

use bytes::Bytes;
use keyrail_ordering::{CategoryName, Content, Entry, EntryId, Event, GroupName, Key, MessageName};
use redb::ReadableDatabase;

use super::Shared;
use super::operate::record;
use super::publish::append;
use super::records::dead::DeadTables;
use super::records::{dead, entries, storage};
use super::writer::Batch;
use crate::{By, DeadLetter, Error, OperateError, REDRIVEN_FOR, Rows};

/// An entry as a dead letter, with a number of its own. To be called when the operation writes.
pub(super) fn dead_letter(
    batch: &mut Batch<'_, '_>,
    group: &GroupName,
    entry: &Entry,
    (attempts, error): (u32, String),
    by: By,
) -> Result<DeadLetter, Error> {
    let unread = Bytes::new();
    let (event_id, name, version, headers, data) = match &entry.content {
        Content::Event(event) => {
            (event.id.to_string(), event.name.to_string(), event.version, event.headers.clone(), event.data.clone())
        }
        Content::Undecodable(_) => {
            (String::new(), String::new(), 0, vec![], entries::raw(&batch.tables.entries, &entry.at)?)
        }
        Content::Missing => (String::new(), String::new(), 0, vec![], unread),
    };
    Ok(DeadLetter {
        id: dead::id(batch.memory.counters.next_dead()),
        category: entry.at.stream.category.clone(),
        key: entry.at.stream.key.clone(),
        group: group.clone(),
        origin: entry.at.clone(),
        event_id,
        name,
        version,
        headers,
        data,
        attempts,
        error,
        by,
        at_ms: batch.shared.wall_ms(),
    })
}

pub(super) fn one(
    shared: &Shared,
    category: &CategoryName,
    key: Option<&Key>,
    id: EntryId,
) -> Result<Option<DeadLetter>, Error> {
    let txn = shared.database.begin_read().map_err(storage)?;
    dead::get(&txn.open_table(dead::TABLE).map_err(storage)?, category, key, id)
}

pub(super) fn list(
    shared: &Shared,
    category: &CategoryName,
    key: Option<&Key>,
    cursor: u64,
    limit: usize,
) -> Rows<DeadLetter> {
    let txn = shared.database.begin_read().map_err(storage)?;
    let letters = txn.open_table(dead::TABLE).map_err(storage)?;
    let by_key = txn.open_table(dead::BY_KEY).map_err(storage)?;
    let found = dead::list(&letters, &by_key, (category, key), cursor, limit)?;
    let next = found.last().filter(|_| found.len() == limit).map(|letter| letter.id.sequence + 1);
    Ok((found, next))
}

pub(super) fn redrive(
    batch: &mut Batch<'_, '_>,
    category: &CategoryName,
    key: Option<&Key>,
    id: EntryId,
    by: By,
) -> Result<EntryId, OperateError> {
    let letter = find(batch, category, key, id)?;
    let Ok(name) = MessageName::parse(&letter.name) else {
        let why =
            format!("dead letter {id} could not be read as an event, so it cannot be published; it can be purged");
        return Err(Error::Refused(why).into());
    };
    let mut headers = letter.headers.clone();
    headers.retain(|(name, _)| name != REDRIVEN_FOR);
    headers.push((REDRIVEN_FOR.into(), letter.group.to_string()));
    let event = Event {
        id: letter.event_id.as_str().into(),
        category: category.clone(),
        name,
        version: letter.version,
        key: letter.key.clone(),
        headers,
        data: letter.data.clone(),
    };
    let key_field = batch.memory.topology.key_field(category).map(ToOwned::to_owned);
    // Its id may still be remembered, and it is meant to come a second time.
    let published = append(batch, &event, key_field.as_deref(), letter.origin.stream.lane, 0)?
        .map_err(|refusal| Error::Refused(refusal.to_string()))?;
    DeadTables::open(batch.tables.txn)?.remove(&letter)?;
    record(batch, "redrive", place(category, key), id.to_string(), by)?;
    Ok(published.id)
}

pub(super) fn purge(
    batch: &mut Batch<'_, '_>,
    category: &CategoryName,
    key: Option<&Key>,
    id: EntryId,
    by: By,
) -> Result<(), OperateError> {
    let letter = find(batch, category, key, id)?;
    batch.writes();
    DeadTables::open(batch.tables.txn)?.remove(&letter)?;
    Ok(record(batch, "purge", place(category, key), id.to_string(), by)?)
}

fn find(
    batch: &Batch<'_, '_>,
    category: &CategoryName,
    key: Option<&Key>,
    id: EntryId,
) -> Result<DeadLetter, OperateError> {
    let letter = DeadTables::open(batch.tables.txn)?.get(category, key, id)?;
    letter.ok_or_else(|| OperateError::NoDeadLetter { place: place(category, key), id })
}

/// A category, or a key of it, as text.
pub(super) fn place(category: &CategoryName, key: Option<&Key>) -> String {
    key.map_or_else(|| category.to_string(), |key| format!("{category}/{key}"))
}
