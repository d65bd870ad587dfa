//! Virtual time: milliseconds of tokio's paused clock, which moves on by itself when every task waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use keyrail_broker::embedded::ClockFn;
use tokio::time::Instant;

/// What the lease clock shows at the start: not 0, so that nothing can mistake a time for a duration.
const LEASE_START_MS: u64 = 1_000_000;
/// What the wall clock shows at the start.
const WALL_START_MS: i64 = 1_700_000_000_000;

/// The clocks of one world. To be asked only within its runtime.
#[derive(Clone)]
pub(super) struct Clock {
    start: Instant,
    /// How far the wall clock was set forward or back.
    wall_jump_ms: Arc<AtomicI64>,
}

#[expect(clippy::disallowed_methods, reason = "the paused clock of the simulation is the time here")]
fn now() -> Instant {
    Instant::now()
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: now(), wall_jump_ms: Arc::default() }
    }

    /// Virtual milliseconds since the start.
    pub(super) fn elapsed_ms(&self) -> u64 {
        (now() - self.start).as_millis() as u64
    }

    /// The clock of leases.
    pub(super) fn lease_ms(&self) -> u64 {
        LEASE_START_MS + self.elapsed_ms()
    }

    /// Sets the wall clock forward, or back.
    pub(super) fn jump(&self, by_ms: i64) {
        self.wall_jump_ms.fetch_add(by_ms, Relaxed);
    }

    fn wall_ms(&self) -> u64 {
        (WALL_START_MS + self.elapsed_ms().cast_signed() + self.wall_jump_ms.load(Relaxed)).cast_unsigned()
    }

    pub(super) fn lease_clock(&self) -> ClockFn {
        let clock = self.clone();
        Arc::new(move || clock.lease_ms())
    }

    pub(super) fn wall_clock(&self) -> ClockFn {
        let clock = self.clone();
        Arc::new(move || clock.wall_ms())
    }
}
