//! Which entries an owner gets next.
//!
//! Invariants: what is delivered and not settled is always of one stream, so that a partition has one head. Entries are
//! delivered in order, without a gap, each once under a lease unless the owner recovers. A stream is read only while those
//! that are preferred to it have nothing new.

use std::sync::Arc;

use keyrail_ordering::{Entry, EntryId, GroupName, PartitionSpec, StreamId};

use super::live::Serving;
use super::records::cursors::{self, Span};
use super::records::{entries, streams};
use super::tables::Tables;
use crate::Error;

/// A stream whose entries were delivered before and come first again.
#[derive(Debug, Clone)]
pub(super) struct Pinned {
    pub(super) stream: StreamId,
    /// How many, if a preferred stream has new entries meanwhile.
    pub(super) at_most: usize,
}

/// What a read came to.
pub(super) struct Read {
    pub(super) entries: Vec<Arc<Entry>>,
    /// What is delivered now.
    pub(super) serving: Option<Serving>,
    /// Whether there are entries that are not delivered.
    pub(super) more: bool,
}

impl Read {
    /// Whether every entry of the partition is settled.
    pub(super) fn nothing_left(&self) -> bool {
        self.serving.is_none() && !self.more
    }
}

/// A group's span in a stream; none if the stream never had an entry.
pub(super) fn span(tables: &Tables, group: &GroupName, stream: &StreamId) -> Result<Option<Span>, Error> {
    let Some(record) = streams::get(&tables.streams, stream)? else { return Ok(None) };
    Ok(Some(Span::new(record, cursors::get(&tables.cursors, group, stream)?)))
}

/// The head: the first unsettled entry of the stream that is served.
pub(super) fn head(tables: &Tables, group: &GroupName, serving: Option<&Serving>) -> Result<Option<EntryId>, Error> {
    let Some(serving) = serving else { return Ok(None) };
    Ok(span(tables, group, &serving.stream)?.and_then(|span| span.head()))
}

/// Reads up to `max` entries beyond what is delivered. Writes nothing.
pub(super) fn read(
    tables: &Tables,
    partition: &PartitionSpec,
    serving: Option<Serving>,
    pinned: Option<Pinned>,
    max: usize,
) -> Result<Read, Error> {
    let group = &partition.id.group;
    let mut unread = vec![];
    for stream in &partition.streams {
        let Some(span) = span(tables, group, stream)? else { continue };
        let delivered = serving.as_ref().filter(|serving| serving.stream == *stream && serving.end.epoch == span.epoch);
        let from = delivered.map_or(span.from, |serving| span.from.max(serving.end.sequence));
        if from < span.next {
            unread.push((stream, span.epoch, from, span.next));
        }
    }
    // Entries of this stream are out, so it has the head, and only it may be read.
    let serving = match serving {
        Some(serving) if head(tables, group, Some(&serving))?.is_some_and(|head| head < serving.end) => Some(serving),
        _ => None,
    };
    let preferred = unread.first().map(|(stream, ..)| *stream);
    let pinned = pinned.and_then(|pinned| {
        let index = unread.iter().position(|(stream, ..)| **stream == pinned.stream)?;
        let limit = if preferred == Some(&pinned.stream) { max } else { max.min(pinned.at_most) };
        Some((index, limit))
    });
    let choice = match (pinned, &serving) {
        (Some(pinned), _) => Some(pinned),
        (None, Some(serving)) if preferred != Some(&serving.stream) => None,
        (None, _) => preferred.map(|_| (0, max)),
    };
    let Some((index, limit)) = choice.filter(|(_, limit)| *limit > 0) else {
        return Ok(Read { entries: vec![], serving, more: !unread.is_empty() });
    };
    let (stream, epoch, from, next) = unread[index];
    let end = next.min(from.saturating_add(limit as u64));
    let entries = entries::read(&tables.entries, stream, epoch, from..end)?;
    let more = unread.len() > 1 || end < next;
    Ok(Read { entries, serving: Some(Serving { stream: stream.clone(), end: EntryId::new(epoch, end) }), more })
}
