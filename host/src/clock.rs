//! The only place that asks the machine for the time or for chance.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds on a clock that only goes forward and runs on through suspend (`CLOCK_BOOTTIME`): a host that slept past
/// its lease must know. Comparable within one boot of one machine only.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// The same clock in nanoseconds, to time things by.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How long until `at_ms`; nothing if it has passed.
pub fn until(at_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms()))
}

/// Milliseconds since 1970, for what people read: machines do not agree on it, so nothing is decided by it.
pub fn wall_ms() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// Uniform in 0..1, for jitter.
pub fn chance() -> f64 {
    rand::random()
}

/// Bits by chance, for names that nobody else has.
pub fn random_bits() -> u128 {
    rand::random()
}

/// Bytes that nobody can guess, for tokens.
pub fn secret<const N: usize>() -> [u8; N] {
    // The thread's generator is a cryptographic one, seeded by the system.
    rand::random()
}
