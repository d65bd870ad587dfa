//! Every limit of the embedded broker, with its unit and default.

use std::fmt;

use super::clock::{self, ClockFn};

/// How an embedded broker runs.
#[derive(Clone)]
pub struct EmbeddedSettings {
    /// Operations that are committed together, at most.
    pub batch_max: usize,
    /// Operations that wait for the writer, at most; further callers wait.
    pub queue_max: usize,
    /// Bells that a slow listener may be behind before they are lost to it.
    pub bells_max: usize,
    /// Memory for pages of the file.
    pub cache_max_bytes: usize,
    /// Clock of the leases: only goes forward, also through suspend.
    pub lease_clock: ClockFn,
    /// Clock of what is stored, in milliseconds since 1970: when an entry was recorded, when a retry is due, until when an
    /// event id is remembered.
    pub wall_clock: ClockFn,
}

impl Default for EmbeddedSettings {
    fn default() -> Self {
        Self {
            batch_max: 256,
            queue_max: 1_024,
            bells_max: 8_192,
            cache_max_bytes: 128 << 20,
            lease_clock: clock::lease_clock(),
            wall_clock: clock::wall_clock(),
        }
    }
}

impl fmt::Debug for EmbeddedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedSettings")
            .field("batch_max", &self.batch_max)
            .field("queue_max", &self.queue_max)
            .field("bells_max", &self.bells_max)
            .field("cache_max_bytes", &self.cache_max_bytes)
            .finish_non_exhaustive()
    }
}
