//! Which entries an owner gets next.
//!
//! Invariants: what is delivered and not settled is always of one stream, so that a partition has one head. Entries are
//! delivered in order, without a gap, each once under a lease unless the owner recovers. A backfill lane is read only while
//! no primary stream has anything new; streams of the same lane take turns, a read each.

use std::sync::Arc;

use keyrail_ordering::{CategoryName, Entry, EntryId, EntryRef, GroupName, PartitionSpec, StreamId};

use super::live::Serving;
use super::records::cursors::{self, Span};
use super::records::{attempts, entries, halts, leases, streams, turns};
use super::tables::Tables;
use crate::Error;

/// A stream whose entries were delivered before and come first again.
#[derive(Debug, Clone)]
pub(super) struct Pinned {
    pub(super) stream: StreamId,
    /// How many, if another stream waits for its turn.
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

/// What can be read of one stream.
struct Unread<'a> {
    stream: &'a StreamId,
    epoch: u64,
    from: u64,
    next: u64,
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
            unread.push(Unread { stream, epoch: span.epoch, from, next: span.next });
        }
    }
    // Entries of this stream are out, so it has the head, and only it may be read.
    let serving = match serving {
        Some(serving) if head(tables, group, Some(&serving))?.is_some_and(|head| head < serving.end) => Some(serving),
        _ => None,
    };
    let place = |stream: &StreamId| unread.iter().position(|unread| unread.stream == stream);
    let pinned = pinned.and_then(|pinned| Some((place(&pinned.stream)?, pinned.at_most)));
    let choice = match (pinned, &serving) {
        (Some((index, at_most)), _) => Some((index, if is_contested(&unread, index) { max.min(at_most) } else { max })),
        (None, Some(serving)) => {
            place(&serving.stream).filter(|index| !is_contested(&unread, *index)).map(|index| (index, max))
        }
        (None, None) => next_turn(tables, partition, &unread)?.map(|index| (index, max)),
    };
    let Some((index, limit)) = choice.filter(|(_, limit)| *limit > 0) else {
        return Ok(Read { entries: vec![], serving, more: !unread.is_empty() });
    };
    let Unread { stream, epoch, from, next } = unread[index];
    let end = next.min(from.saturating_add(limit as u64));
    let entries = entries::read(&tables.entries, stream, epoch, from..end)?;
    let more = unread.len() > 1 || end < next;
    Ok(Read { entries, serving: Some(Serving { stream: stream.clone(), end: EntryId::new(epoch, end) }), more })
}

/// Whether another stream must not be kept waiting by this one for longer than what is in hand.
fn is_contested(unread: &[Unread<'_>], index: usize) -> bool {
    let lane = unread[index].stream.lane;
    unread.iter().enumerate().any(|(other, unread)| other != index && unread.stream.lane <= lane)
}

/// Which stream is read when nothing is in hand: of the best lane, the one after that which was read last.
fn next_turn(tables: &Tables, partition: &PartitionSpec, unread: &[Unread<'_>]) -> Result<Option<usize>, Error> {
    let Some(lane) = unread.iter().map(|unread| unread.stream.lane).min() else { return Ok(None) };
    let in_lane = |unread: &Unread<'_>| unread.stream.lane == lane;
    let first = unread.iter().position(in_lane);
    if unread.iter().filter(|unread| in_lane(unread)).count() < 2 {
        return Ok(first);
    }
    let Some(last) = turns::get(&tables.turns, &partition.id)? else { return Ok(first) };
    let place = |category: &CategoryName| {
        partition.streams.iter().position(|stream| stream.lane == lane && stream.category == *category)
    };
    let last = place(&last);
    let after = unread.iter().position(|unread| in_lane(unread) && place(&unread.stream.category) > last);
    Ok(after.or(first))
}

/// The entry that is run next, or now: of the stream from which something is in hand or has failed before, or whose turn it
/// is.
pub(super) fn present_head(tables: &Tables, partition: &PartitionSpec) -> Result<Option<EntryRef>, Error> {
    let group = &partition.id.group;
    let halted = halts::get(&tables.halts, &partition.id)?.map(|record| record.head.stream);
    let serving = leases::get(&tables.leases, &partition.id)?.and_then(|record| record.serving);
    let failed = attempts::get(&tables.attempts, &partition.id)?;
    let known = |head: &EntryRef| {
        Ok::<_, Error>(span(tables, group, &head.stream)?.and_then(|span| span.head()) == Some(head.id))
    };
    let failed = match failed {
        Some(record) if known(&record.head)? => Some(record.head.stream),
        _ => None,
    };
    for stream in [halted, serving, failed].into_iter().flatten() {
        if let Some(id) = span(tables, group, &stream)?.and_then(|span| span.head()) {
            return Ok(Some(EntryRef { stream, id }));
        }
    }
    let read = read(tables, partition, None, None, 1)?;
    Ok(read.entries.first().map(|entry| entry.at.clone()))
}
