//! Every limit of the embedded broker, with its unit and default.

use std::fmt;

use super::clock::{self, ClockFn};
use crate::Retention;

/// Where operations are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writing {
    /// On one thread of the broker: those that wait are committed together, with one flush of the disk.
    #[default]
    Thread,
    /// In the caller's task, one operation a transaction, without any thread. For a simulation, which wants the same run
    /// twice: nothing but the two clocks then enters from outside. A store in memory is not made durable.
    Inline,
}

/// How an embedded broker runs.
#[derive(Clone)]
pub struct EmbeddedSettings {
    /// Where operations are run.
    pub writing: Writing,
    /// Operations that are committed together, at most.
    pub batch_max: usize,
    /// Operations that wait for the writer, at most; further callers wait.
    pub queue_max: usize,
    /// Bells that a slow listener may be behind before they are lost to it.
    pub bells_max: usize,
    /// Memory for pages of the file.
    pub cache_max_bytes: usize,
    /// How long settled entries are kept.
    pub retention: Retention,
    /// Clock of the leases: only goes forward, also through suspend.
    pub lease_clock: ClockFn,
    /// Clock of what is stored, in milliseconds since 1970: when an entry was recorded, when a retry is due, until when an
    /// event id is remembered.
    pub wall_clock: ClockFn,
}

impl Default for EmbeddedSettings {
    fn default() -> Self {
        Self {
            writing: Writing::default(),
            batch_max: 256,
            queue_max: 1_024,
            bells_max: 8_192,
            cache_max_bytes: 128 << 20,
            retention: Retention::default(),
            lease_clock: clock::lease_clock(),
            wall_clock: clock::wall_clock(),
        }
    }
}

impl fmt::Debug for EmbeddedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedSettings")
            .field("writing", &self.writing)
            .field("batch_max", &self.batch_max)
            .field("queue_max", &self.queue_max)
            .field("bells_max", &self.bells_max)
            .field("cache_max_bytes", &self.cache_max_bytes)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
