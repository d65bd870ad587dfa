//! How many handled events wait for one commit.

use crate::option::{self, OptionError};

/// The largest batch that a handler may ask for.
const EVENTS_MAX: u64 = 1_000;

/// Bounds of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Events in one commit; 1 commits each by itself.
    pub events_max: usize,
    /// Bytes of their effects, from which on no further event joins.
    pub bytes_max: usize,
    /// Time since the first of them began, from which on no further event joins: what a slow handler did is not held back.
    pub ms_max: u64,
}

impl BatchLimits {
    /// Each event by itself.
    pub const STRICT: Self = Self { events_max: 1, bytes_max: 0, ms_max: 0 };

    /// These with what a handler's options say: `commit-batch-max` is at most so many events, 1 for each by itself. Other options
    /// are not looked at.
    pub fn with_options(&self, options: &[(String, String)]) -> Result<Self, OptionError> {
        let mut limits = *self;
        for (name, value) in options.iter().filter(|(name, _)| name == "commit-batch-max") {
            let asked = option::number(name, value, 1, EVENTS_MAX)?;
            limits.events_max = limits.events_max.min(asked as usize);
        }
        Ok(limits)
    }
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { events_max: 64, bytes_max: 64 * 1024, ms_max: 5 }
    }
}

/// The events at the front of the queue that are handled and not committed.
#[derive(Debug, Default)]
pub(super) struct Batch {
    len: usize,
    bytes: usize,
    /// When the first of them began.
    begun_ms: u64,
    /// Events that are still to be committed one by one: a host died on one of these.
    careful: usize,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An event begins.
    pub(super) fn begin(&mut self, now_ms: u64) {
        if self.len == 0 {
            self.begun_ms = now_ms;
        }
    }

    /// It was handled.
    pub(super) fn add(&mut self, bytes: usize) {
        self.len += 1;
        self.bytes += bytes;
    }

    /// Whether no further event may join.
    pub(super) fn is_full(&self, limits: &BatchLimits, now_ms: u64) -> bool {
        self.careful > 0
            || self.len >= limits.events_max
            || self.bytes >= limits.bytes_max
            || now_ms.saturating_sub(self.begun_ms) >= limits.ms_max
    }

    /// They were committed.
    pub(super) fn committed(&mut self) {
        self.careful = self.careful.saturating_sub(self.len);
        self.drop_all();
    }

    /// They are not to be committed.
    pub(super) fn drop_all(&mut self) {
        self.len = 0;
        self.bytes = 0;
    }

    /// A host died, and the crash counts against the first event of what was its batch, whichever it died on. One by one, the
    /// next deaths count against the right one.
    pub(super) fn be_careful(&mut self, limits: &BatchLimits) {
        self.careful = limits.events_max;
    }
}
