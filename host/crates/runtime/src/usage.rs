//! What a handler has used on this host since it was loaded.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Counted from loading. A reading is not one moment: calls go on while it is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Calls that ended.
    pub calls: u64,
    /// Of these, the ones that failed.
    pub failures: u64,
    /// Of these, the ones that were put off, because the host could not serve them.
    pub deferred: u64,
    /// CPU time of guest code, in microseconds.
    pub cpu_us: u64,
    /// Time that calls waited for the host, in microseconds: for state, for HTTP, asleep.
    pub host_us: u64,
    /// The most linear memory that one instance has had, in bytes.
    pub memory_high_bytes: u64,
    /// Log lines that were dropped, over a limit of the call or of the minute.
    pub log_lines_dropped: u64,
    /// HTTP requests that were sent.
    pub http_requests: u64,
    /// Attempts to reach what is not granted: HTTP requests and sockets.
    pub denied: u64,
}

/// The same, as it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) deferred: AtomicU64,
    cpu_ns: AtomicU64,
    host_ns: AtomicU64,
    memory_high_bytes: AtomicU64,
    pub(crate) log_lines_dropped: AtomicU64,
    pub(crate) http_requests: AtomicU64,
    pub(crate) denied: AtomicU64,
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Counters {
    pub(crate) fn spend(&self, cpu: Duration, host: Duration, memory_bytes: u64) {
        // Centuries fit.
        self.cpu_ns.fetch_add(cpu.as_nanos() as u64, Relaxed);
        self.host_ns.fetch_add(host.as_nanos() as u64, Relaxed);
        self.memory_high_bytes.fetch_max(memory_bytes, Relaxed);
    }

    pub(crate) fn read(&self) -> Usage {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        Usage {
            calls: get(&self.calls),
            failures: get(&self.failures),
            deferred: get(&self.deferred),
            cpu_us: get(&self.cpu_ns) / 1_000,
            host_us: get(&self.host_ns) / 1_000,
            memory_high_bytes: get(&self.memory_high_bytes),
            log_lines_dropped: get(&self.log_lines_dropped),
            http_requests: get(&self.http_requests),
            denied: get(&self.denied),
        }
    }
}
