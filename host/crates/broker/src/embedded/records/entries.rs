//! Entries: (category, key, lane, epoch, sequence) → header length, header, the event's data as it is.
//!
//! Life: written by publish and route, removed once every registered group has settled it. Category and key are in the
//! table's key only. The data is not encoded, so that it is copied once.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{Content, Entry, EntryId, EntryRef, Event, MessageName, StreamId};
use redb::{ReadableTable, Table, TableDefinition};
use serde::{Deserialize, Serialize};

use super::{storage, stream_key};
use crate::{Error, wire};

pub(in crate::embedded) type EntryKey = (&'static str, &'static str, u8, u64, u64);
pub(in crate::embedded) const TABLE: TableDefinition<EntryKey, &[u8]> = TableDefinition::new("entries");

const LENGTH_BYTES: usize = 4;

#[derive(Serialize)]
struct HeaderRef<'a> {
    id: &'a str,
    name: &'a MessageName,
    version: u32,
    headers: &'a [(String, String)],
    recorded_at_ms: u64,
}

/// The same fields as [`HeaderRef`], in the same order.
#[derive(Deserialize)]
struct Header {
    id: Arc<str>,
    name: MessageName,
    version: u32,
    headers: Vec<(String, String)>,
    recorded_at_ms: u64,
}

pub(in crate::embedded) fn key(stream: &StreamId, id: EntryId) -> (&str, &str, u8, u64, u64) {
    let (category, key, lane) = stream_key(stream);
    (category, key, lane, id.epoch, id.sequence)
}

fn encode(event: &Event, recorded_at_ms: u64) -> Vec<u8> {
    let header = wire::encode(&HeaderRef {
        id: &event.id,
        name: &event.name,
        version: event.version,
        headers: &event.headers,
        recorded_at_ms,
    });
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + header.len() + event.data.len());
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(&event.data);
    bytes
}

/// Whatever the bytes are, there is an entry: one that cannot be read is poison, and its partition's business alone.
fn decode(stream: &StreamId, id: EntryId, bytes: &[u8]) -> Entry {
    let at = EntryRef { stream: stream.clone(), id };
    match parse(bytes) {
        Ok((header, data)) => {
            let event = Event {
                id: header.id,
                category: stream.category.clone(),
                name: header.name,
                version: header.version,
                key: stream.key.clone(),
                headers: header.headers,
                data: Bytes::copy_from_slice(data),
            };
            Entry { at, recorded_at_ms: header.recorded_at_ms, content: Content::Event(event) }
        }
        Err(why) => Entry { at, recorded_at_ms: 0, content: Content::Undecodable(why) },
    }
}

fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
    let short = || format!("the entry has only {} bytes", bytes.len());
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>().ok_or_else(short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    Ok((wire::decode(header).map_err(|error| error.to_string())?, data))
}

pub(in crate::embedded) fn put(
    table: &mut Table<EntryKey, &'static [u8]>,
    stream: &StreamId,
    id: EntryId,
    event: &Event,
    recorded_at_ms: u64,
) -> Result<(), Error> {
    table.insert(key(stream, id), encode(event, recorded_at_ms).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<EntryKey, &'static [u8]>,
    stream: &StreamId,
    id: EntryId,
) -> Result<(), Error> {
    table.remove(key(stream, id)).map_err(storage)?;
    Ok(())
}

/// The entries of these sequences of one epoch. One that is not there is [`Content::Missing`]: nobody but trim removes any,
/// and never one that is due.
pub(in crate::embedded) fn read(
    table: &impl ReadableTable<EntryKey, &'static [u8]>,
    stream: &StreamId,
    epoch: u64,
    sequences: Range<u64>,
) -> Result<Vec<Arc<Entry>>, Error> {
    let missing = |sequence| {
        let at = EntryRef { stream: stream.clone(), id: EntryId::new(epoch, sequence) };
        Arc::new(Entry { at, recorded_at_ms: 0, content: Content::Missing })
    };
    let mut entries = vec![];
    let mut due = sequences.start;
    let bounds = key(stream, EntryId::new(epoch, sequences.start))..key(stream, EntryId::new(epoch, sequences.end));
    for row in table.range(bounds).map_err(storage)? {
        let (at, value) = row.map_err(storage)?;
        let (.., sequence) = at.value();
        entries.extend((due..sequence).map(missing));
        entries.push(Arc::new(decode(stream, EntryId::new(epoch, sequence), value.value())));
        due = sequence + 1;
    }
    entries.extend((due..sequences.end).map(missing));
    Ok(entries)
}

/// Up to `max` entries that are there, from an id on, whatever their epochs.
pub(in crate::embedded) fn kept(
    table: &impl ReadableTable<EntryKey, &'static [u8]>,
    stream: &StreamId,
    from: EntryId,
    max: usize,
) -> Result<Vec<Arc<Entry>>, Error> {
    let to = EntryId::new(u64::MAX, u64::MAX);
    let mut entries = vec![];
    for row in table.range(key(stream, from)..=key(stream, to)).map_err(storage)?.take(max) {
        let (at, value) = row.map_err(storage)?;
        let (.., epoch, sequence) = at.value();
        entries.push(Arc::new(decode(stream, EntryId::new(epoch, sequence), value.value())));
    }
    Ok(entries)
}

/// The newest `max` entries that are there and were recorded at a time or later, lowest id first.
pub(in crate::embedded) fn newest(
    table: &impl ReadableTable<EntryKey, &'static [u8]>,
    stream: &StreamId,
    since_ms: u64,
    max: usize,
) -> Result<Vec<Arc<Entry>>, Error> {
    let to = EntryId::new(u64::MAX, u64::MAX);
    let mut entries = vec![];
    for row in table.range(key(stream, EntryId::new(0, 0))..=key(stream, to)).map_err(storage)?.rev().take(max) {
        let (at, value) = row.map_err(storage)?;
        let (.., epoch, sequence) = at.value();
        let entry = decode(stream, EntryId::new(epoch, sequence), value.value());
        if entry.recorded_at_ms < since_ms {
            break;
        }
        entries.push(Arc::new(entry));
    }
    entries.reverse();
    Ok(entries)
}

/// One entry.
pub(in crate::embedded) fn one(
    table: &impl ReadableTable<EntryKey, &'static [u8]>,
    at: &EntryRef,
) -> Result<Arc<Entry>, Error> {
    let row = table.get(key(&at.stream, at.id)).map_err(storage)?;
    Ok(Arc::new(match row {
        Some(row) => decode(&at.stream, at.id, row.value()),
        None => Entry { at: at.clone(), recorded_at_ms: 0, content: Content::Missing },
    }))
}

/// An entry's bytes as they are, for one that cannot be read otherwise; empty if it is not there.
pub(in crate::embedded) fn raw(
    table: &impl ReadableTable<EntryKey, &'static [u8]>,
    at: &EntryRef,
) -> Result<Bytes, Error> {
    let row = table.get(key(&at.stream, at.id)).map_err(storage)?;
    Ok(row.map_or_else(Bytes::new, |row| Bytes::copy_from_slice(row.value())))
}

/// When an entry was recorded; 0 if that cannot be told.
pub(in crate::embedded) fn recorded_at_ms(
    table: &impl ReadableTable<EntryKey, &'static [u8]>,
    stream: &StreamId,
    id: EntryId,
) -> Result<u64, Error> {
    let row = table.get(key(stream, id)).map_err(storage)?;
    Ok(row.and_then(|row| Some(parse(row.value()).ok()?.0.recorded_at_ms)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyrail_ordering::{CategoryName, Key, KeyRules};
    use proptest::prelude::*;

    fn stream() -> StreamId {
        StreamId::primary(CategoryName::parse("order").unwrap(), Key::parse("k1", &KeyRules::default()).unwrap())
    }

    proptest! {
        #[test]
        fn entries_round_trip(
            id in "\\PC{1,20}", version: u32, headers: Vec<(String, String)>, data: Vec<u8>, at: u64,
        ) {
            let stream = stream();
            let event = Event {
                id: id.as_str().into(),
                category: stream.category.clone(),
                name: MessageName::parse("OrderPlaced").unwrap(),
                version,
                key: stream.key.clone(),
                headers,
                data: data.into(),
            };
            let entry = decode(&stream, EntryId::new(1, 2), &encode(&event, at));
            prop_assert_eq!(entry.recorded_at_ms, at);
            prop_assert_eq!(entry.content, Content::Event(event));
        }

        #[test]
        fn whatever_bytes_come_there_is_an_entry(bytes: Vec<u8>) {
            let entry = decode(&stream(), EntryId::new(1, 2), &bytes);
            prop_assert_eq!(entry.at.id, EntryId::new(1, 2));
        }
    }
}
