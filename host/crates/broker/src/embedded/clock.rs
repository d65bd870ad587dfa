//! Where the embedded broker gets the time from. A simulation puts its own clocks in.

use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

/// Answers with milliseconds.
pub type ClockFn = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A clock that only goes forward and runs on through suspend: a host that slept past its lease must know. Its zero
/// differs from boot to boot, so what is measured by it is never stored.
pub(super) fn lease_clock() -> ClockFn {
    Arc::new(|| read(ClockId::Boottime))
}

/// Milliseconds since 1970. What is stored is measured by it; it may jump.
pub(super) fn wall_clock() -> ClockFn {
    Arc::new(|| read(ClockId::Realtime))
}

fn read(id: ClockId) -> u64 {
    let now = clock_gettime(id);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}
