//! Entries for stories of a partition.
#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{
    CategoryName, Content, Effect, Entry, EntryId, EntryRef, Event, Failure, FailureKind, Input, Key, KeyRules,
    MessageName, Outcome, StreamId,
};

pub(crate) fn stream(category: &str) -> StreamId {
    StreamId::primary(CategoryName::parse(category).unwrap(), Key::parse("k1", &KeyRules::default()).unwrap())
}

pub(crate) fn entry_of(category: &str, sequence: u64, data: &'static [u8]) -> Arc<Entry> {
    let stream = stream(category);
    let event = Event {
        id: format!("event-{sequence}").into(),
        category: stream.category.clone(),
        name: MessageName::parse("Placed").unwrap(),
        version: 1,
        key: stream.key.clone(),
        headers: vec![],
        data: Bytes::from_static(data),
    };
    let at = EntryRef { stream, id: EntryId::new(1, sequence) };
    Arc::new(Entry { at, recorded_at_ms: 0, content: Content::Event(event) })
}

/// Of the stream `order`.
pub(crate) fn entry(sequence: u64) -> Arc<Entry> {
    entry_of("order", sequence, b"{}")
}

pub(crate) fn with_content(sequence: u64, content: Content) -> Arc<Entry> {
    Arc::new(Entry { content, ..entry(sequence).as_ref().clone() })
}

pub(crate) fn sequences(entries: &[Arc<Entry>]) -> Vec<u64> {
    entries.iter().map(|entry| entry.at.id.sequence).collect()
}

pub(crate) fn acquired(entries: Vec<Arc<Entry>>) -> Input {
    Input::Acquired { entries, attempts: None, positions: vec![], more: false }
}

pub(crate) fn done_of(bytes: usize) -> Input {
    Input::Handled { outcome: Outcome::Done { bytes }, chance: 1.0 }
}

pub(crate) fn done() -> Input {
    done_of(10)
}

pub(crate) fn failed(kind: FailureKind) -> Input {
    Input::Handled { outcome: Outcome::Failed(Failure { kind, error: "no".into() }), chance: 1.0 }
}

pub(crate) fn committed(entries: Vec<Arc<Entry>>) -> Input {
    Input::Committed { entries, more: false, released: false }
}

/// The one event that is to be handled, and which try it is.
#[track_caller]
pub(crate) fn invoked(effects: &[Effect]) -> (u64, u32) {
    match effects {
        [Effect::Invoke { entry, attempt, .. }] => (entry.at.id.sequence, *attempt),
        other => panic!("expected an invoke, got {other:?}"),
    }
}
