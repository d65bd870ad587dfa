//! What each owner knows of its partition: how far it is settled, and what of it is in hand.
//!
//! Reading changes nothing on the server, so how far it went is known here alone. How far a partition is settled stands in its
//! lease, which nobody but its owner changes; so the owner knows that text, and a commit that sends it is fenced and checked by
//! one comparison. A call that may have happened makes all of it worth nothing: it is forgotten, and asked for again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyrail_ordering::{EntryId, EntryRef, Generation, Lease, PartitionSpec, Scope};

use crate::Error;

/// Entries that a function reads itself: enough for a partition that has an event now and then. A longer row is read by a
/// command of its own, since what passes through a function costs the server five times as much.
pub(super) const READ_INSIDE: usize = 4;

/// Rows that come along with an acquire: as many as a partition has now and then, and few, since those that its group has settled already
/// are read for nothing.
pub(super) const ROWS_ALONG: usize = 8;

/// Ownerships that are known. One that was lost leaves its own behind; beyond so many all are forgotten.
const KNOWN_MAX: usize = 100_000;

/// One ownership.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// The names of the partition's streams.
    pub(super) names: Arc<[String]>,
    /// The place of the stream that has the head, from 1; 0 for none.
    pub(super) serving: usize,
    /// How far each stream is settled.
    pub(super) settled: Vec<EntryId>,
    /// The last entry in hand, of the stream that has the head.
    pub(super) last: Option<EntryId>,
    /// Whether the last answer may not have been all.
    pub(super) more: bool,
    /// Whether failures of the head are on record.
    pub(super) has_failed: bool,
}

impl Reading {
    /// From the text of a lease. None if it is not this owner's.
    pub(super) fn of_lease(lease: &Lease, text: &str, names: Arc<[String]>) -> Result<Option<Self>, Error> {
        let rest = text.strip_prefix(lease.token().as_str()).and_then(|rest| rest.strip_prefix(' '));
        let Some(rest) = rest else { return Ok(None) };
        let mut words = rest.split(' ');
        let wrong = || Error::Corrupt(format!("a lease does not tell how far its streams are settled: {text}"));
        let serving = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
        let settled = words.map(|word| word.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        Ok(Some(Self { names, serving, settled, last: None, more: true, has_failed: true }))
    }

    /// The text of the lease, as `common.lua` writes it.
    pub(super) fn lease_text(&self, token: &str) -> String {
        let mut text = String::with_capacity(token.len() + 2 + 8 * self.settled.len());
        let mut digits = itoa::Buffer::new();
        text.push_str(token);
        text.push(' ');
        text.push_str(digits.format(self.serving));
        for id in &self.settled {
            text.push(' ');
            text.push_str(digits.format(id.epoch));
            text.push('-');
            text.push_str(digits.format(id.sequence));
        }
        text
    }

    /// Whether these entries of one stream are the head and what follows it, and in hand.
    pub(super) fn begins_with(&self, place: usize, entries: &[EntryRef]) -> bool {
        let Some(settled) = self.settled.get(place - 1).filter(|_| self.serving == place) else { return false };
        let mut before = *settled;
        let follows = |entry: &EntryRef| std::mem::replace(&mut before, entry.id).is_followed_by(entry.id);
        entries.iter().all(follows) && self.last.is_none_or(|last| before <= last)
    }

    /// What is in hand of the stream that has the head, beyond what is settled.
    pub(super) fn in_hand(&self) -> Option<EntryId> {
        let settled = self.settled.get(self.serving.wrapping_sub(1))?;
        self.last.filter(|last| last > settled)
    }
}

/// By generation, of which no two ownerships have the same.
#[derive(Debug, Default)]
pub(super) struct Readings(Mutex<HashMap<Generation, Reading>>);

impl Readings {
    fn lock(&self) -> MutexGuard<'_, HashMap<Generation, Reading>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what is known of this ownership, for a call that changes it; nothing after a call that failed.
    pub(super) fn take(&self, lease: &Lease) -> Option<Reading> {
        self.lock().remove(&lease.generation)
    }

    pub(super) fn set(&self, lease: &Lease, reading: Reading) {
        let mut readings = self.lock();
        if readings.len() >= KNOWN_MAX {
            readings.clear();
        }
        readings.insert(lease.generation, reading);
    }

    /// Failures of the head are on record now.
    pub(super) fn failed(&self, lease: &Lease) {
        if let Some(reading) = self.lock().get_mut(&lease.generation) {
            reading.has_failed = true;
        }
    }

    pub(super) fn forget(&self, lease: &Lease) {
        self.lock().remove(&lease.generation);
    }
}

/// Whether a row of one stream may be read without asking which stream has its turn: the primary lane of a key.
pub(super) fn is_first_of_a_key(partition: &PartitionSpec, place: usize) -> bool {
    place == 1 && matches!(partition.id.scope, Scope::Key { .. })
}

/// How many entries the function itself reads of so many: where the turn decides which stream is next, all of them.
pub(super) fn inside(partition: &PartitionSpec, max: usize) -> usize {
    if is_first_of_a_key(partition, 1) { max.min(READ_INSIDE) } else { max }
}

/// Whether these entries complete another so many of their stream: then one that never runs dry is trimmed.
pub(super) fn is_time_to_trim(first: EntryId, last: EntryId) -> bool {
    const TRIM_EVERY: u64 = 256;
    (last.sequence + 1) / TRIM_EVERY != first.sequence / TRIM_EVERY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_trimmed_once_in_so_many_entries_however_they_are_committed() {
        let id = |sequence| EntryId::new(1, sequence);
        for batch in [1, 3, 64, 1_000] {
            let trims = (0..1_024).step_by(batch).filter(|first| {
                let last = (first + batch as u64 - 1).min(1_023);
                is_time_to_trim(id(*first), id(last))
            });
            let most = 1_024_usize.div_ceil(batch).min(4);
            assert!((1..=most).contains(&trims.count()), "{batch} a commit");
        }
        assert!(!is_time_to_trim(id(0), id(0)) && is_time_to_trim(id(255), id(255)));
    }

    #[test]
    fn a_lease_is_read_as_it_is_written_and_another_owners_is_not_read() {
        let partition = PartitionSpec::of_key(
            keyrail_ordering::GroupName::parse("h").unwrap(),
            keyrail_ordering::CategoryName::parse("order").unwrap(),
            keyrail_ordering::Key::parse("k", &keyrail_ordering::KeyRules::default()).unwrap(),
        );
        let owner = keyrail_ordering::OwnerId::new("a");
        let lease = Lease { partition: Arc::new(partition), owner, generation: Generation(7) };
        let names: Arc<[String]> = Arc::new(["order:k".into(), "order:k:backfill".into()]);
        let read = |text: &str| Reading::of_lease(&lease, text, names.clone());
        let reading = read("a:7 1 3-41 0-1").unwrap().unwrap();
        assert_eq!(
            (reading.serving, reading.settled.as_slice()),
            (1, [EntryId::new(3, 41), EntryId::new(0, 1)].as_slice())
        );
        assert_eq!(reading.lease_text("a:7"), "a:7 1 3-41 0-1");
        for other in ["", "a:71 1 3-41 0-1", "b:7 1 3-41 0-1", "a:7", "a:7x"] {
            assert!(read(other).unwrap().is_none(), "{other}");
        }
        assert!(read("a:7 one 3-41").is_err());
    }
}
