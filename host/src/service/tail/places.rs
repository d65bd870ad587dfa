//! Where a follower is in each stream.
//!
//! Invariant: an entry that was shown is never read again: its stream's place is behind it, or, once the place was
//! forgotten, the time from which unknown streams are read is later than the entry.

use std::collections::HashMap;

use keyrail_broker::ReadFrom;
use keyrail_ordering::{EntryId, StreamId};

/// Streams whose places are known.
const PLACES_MAX: usize = 20_000;
/// A stream in which nothing came for so long is forgotten, if there are many.
const IDLE_MS: u64 = 30_000;
/// A stream in which something came so lately is read again before others.
const ACTIVE_MS: u64 = 2_000;

#[derive(Debug)]
struct Place {
    last: EntryId,
    /// When that entry was recorded.
    recorded_at_ms: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Places {
    known: HashMap<StreamId, Place>,
    since_ms: u64,
}

impl Places {
    /// Nothing before this time is shown.
    pub(super) fn since(ms: u64) -> Self {
        Self { known: HashMap::new(), since_ms: ms }
    }

    /// Where a stream is to be read.
    pub(super) fn of(&self, stream: &StreamId) -> ReadFrom {
        self.known.get(stream).map_or(ReadFrom::Since(self.since_ms), |place| ReadFrom::After(place.last))
    }

    /// The last entry that is known of a stream.
    pub(super) fn last(&self, stream: &StreamId) -> Option<EntryId> {
        self.known.get(stream).map(|place| place.last)
    }

    pub(super) fn reached(&mut self, stream: &StreamId, last: EntryId, recorded_at_ms: u64) {
        if let Some(place) = self.known.get_mut(stream) {
            *place = Place { last, recorded_at_ms };
            return;
        }
        if self.known.len() >= PLACES_MAX {
            self.forget(recorded_at_ms);
        }
        self.known.insert(stream.clone(), Place { last, recorded_at_ms });
    }

    /// Streams in which something came lately.
    pub(super) fn active(&self, now_ms: u64) -> Vec<StreamId> {
        let is_active = |place: &Place| place.recorded_at_ms + ACTIVE_MS > now_ms;
        self.known.iter().filter(|(_, place)| is_active(place)).map(|(stream, _)| stream.clone()).collect()
    }

    /// Makes room: what was idle goes; if nothing was, everything, and what comes before now in such a stream is missed.
    fn forget(&mut self, now_ms: u64) {
        let idle_before = now_ms.saturating_sub(IDLE_MS);
        self.known.retain(|_, place| place.recorded_at_ms >= idle_before);
        if self.known.len() >= PLACES_MAX {
            let latest = self.known.values().map(|place| place.recorded_at_ms).max().unwrap_or(now_ms);
            self.known.clear();
            self.since_ms = self.since_ms.max(latest + 1);
        } else {
            self.since_ms = self.since_ms.max(idle_before);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use keyrail_ordering::{Key, KeyRules};

    fn stream(n: usize) -> StreamId {
        let key = Key::parse(&format!("k{n}"), &KeyRules::default()).unwrap();
        StreamId::primary("order".parse().unwrap(), key)
    }

    #[test]
    fn a_forgotten_stream_is_read_from_after_what_was_shown() {
        let mut places = Places::since(1_000);
        assert_eq!(places.of(&stream(0)), ReadFrom::Since(1_000));
        places.reached(&stream(0), EntryId::new(1, 5), 2_000);
        assert_eq!(places.of(&stream(0)), ReadFrom::After(EntryId::new(1, 5)));
        for n in 1..=PLACES_MAX {
            places.reached(&stream(n), EntryId::new(1, 0), 2_000 + IDLE_MS + 1);
        }
        assert_eq!(places.of(&stream(0)), ReadFrom::Since(2_001), "idle for long, and later than what was shown");
        assert_eq!(places.of(&stream(1)), ReadFrom::After(EntryId::new(1, 0)));
        places.reached(&stream(PLACES_MAX + 1), EntryId::new(1, 0), 2_000 + IDLE_MS + 2);
        assert_eq!(places.of(&stream(1)), ReadFrom::Since(2_000 + IDLE_MS + 2), "all were active: all went");
    }

    #[test]
    fn what_came_lately_is_active() {
        let mut places = Places::since(0);
        places.reached(&stream(0), EntryId::new(1, 5), 2_000);
        assert_eq!(places.active(2_001), [stream(0)]);
        assert_eq!(places.active(2_000 + ACTIVE_MS), []);
    }
}
