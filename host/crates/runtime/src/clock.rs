//! Time: how much a guest used, and what it is shown.
//!
//! A guest's CPU time is measured from outside: the time that its future is being polled, which leaves out every wait for
//! the host. Up to the first tick the cheap monotonic clock does (a call is much shorter than a tick as a rule); from
//! then on the thread's own CPU clock, so that a busy machine does not make a guest look busy.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime_wasi::HostWallClock;

/// A clock that only goes forward, counted from anywhere.
pub(crate) fn monotonic() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Counts the CPU time of one call at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<Reading>>);

#[derive(Debug, Default)]
struct Reading {
    limit_ms: u64,
    tick: Duration,
    /// Of the polls that ended.
    used: Duration,
    /// When the present poll began, by `clock`.
    since: Duration,
    /// Whether the call has seen a tick, and the CPU clock is read.
    exact: bool,
    /// Between polls, and when the last one ended.
    waited: Duration,
    idle_since: Option<Duration>,
}

impl Reading {
    fn now(&self) -> Duration {
        read(if self.exact { ClockId::ThreadCPUTime } else { ClockId::Monotonic })
    }

    fn in_poll(&self) -> Duration {
        let elapsed = self.now().saturating_sub(self.since);
        // By the monotonic clock a guest that ran less than a tick may have been preempted for long.
        if self.exact { elapsed } else { elapsed.min(self.tick) }
    }

    fn begin_poll(&mut self) {
        if let Some(since) = self.idle_since.take() {
            self.waited += monotonic().saturating_sub(since);
        }
        self.since = self.now();
    }

    fn end_poll(&mut self) {
        self.used += self.in_poll();
    }
}

impl Meter {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call, counting the CPU time of its polls from zero.
    pub(crate) async fn measure<F: Future>(&self, limit_ms: u64, tick_ms: u64, call: F) -> F::Output {
        *self.reading() = Reading { limit_ms, tick: Duration::from_millis(tick_ms), ..Reading::default() };
        let mut call = pin!(call);
        poll_fn(|context| {
            self.reading().begin_poll();
            let answer = call.as_mut().poll(context);
            let mut reading = self.reading();
            reading.end_poll();
            if answer.is_pending() {
                reading.idle_since = Some(monotonic());
            }
            answer
        })
        .await
    }

    /// What the last call that was measured used of the processor, and how long it waited.
    pub(crate) fn spent(&self) -> (Duration, Duration) {
        let reading = self.reading();
        // A call that was ended in a wait never came back from it.
        let last = reading.idle_since.map_or(Duration::ZERO, |since| monotonic().saturating_sub(since));
        (reading.used, reading.waited + last)
    }

    /// Asked from within a poll, at each tick: the limit in milliseconds, if the call has used it up.
    pub(crate) fn exceeded(&self) -> Option<u64> {
        let mut reading = self.reading();
        if !reading.exact {
            reading.end_poll();
            reading.exact = true;
            reading.begin_poll();
        }
        let used = reading.used + reading.in_poll();
        (used >= Duration::from_millis(reading.limit_ms)).then_some(reading.limit_ms)
    }
}

/// The wall clock that a guest sees: it stands still at the time that the event was recorded at, so that a handler answers
/// the same in every try.
#[derive(Debug, Clone)]
pub(crate) enum EventClock {
    Event(Arc<AtomicU64>),
    /// By grant: the machine's.
    Real,
}

impl EventClock {
    pub(crate) fn new(is_real: bool) -> Self {
        if is_real { Self::Real } else { Self::Event(Arc::default()) }
    }

    /// Shows this time from now on, in milliseconds since 1970, unless it is the machine's.
    pub(crate) fn set(&self, now_ms: u64) {
        if let Self::Event(time_ms) = self {
            time_ms.store(now_ms, Ordering::Relaxed);
        }
    }
}

impl HostWallClock for EventClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        match self {
            Self::Event(time_ms) => Duration::from_millis(time_ms.load(Ordering::Relaxed)),
            Self::Real => read(ClockId::Realtime),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_call_that_computes_uses_up_its_limit_at_last() {
        let meter = Meter::default();
        block_on(meter.measure(5, 1, async {
            while meter.exceeded().is_none() {
                tokio::task::yield_now().await;
            }
        }));
    }

    #[test]
    fn a_call_starts_from_zero() {
        let meter = Meter::default();
        block_on(meter.measure(0, 10, async { assert_eq!(meter.exceeded(), Some(0)) }));
        block_on(meter.measure(86_400_000, 10, async { assert_eq!(meter.exceeded(), None) }));
    }
}
