//! This process as the system sees it, and which release it is.

use std::fs;

use async_trait::async_trait;
use rustix::time::{ClockId, clock_gettime};

use super::{Page, Source};
use crate::clock;

/// See the module.
#[derive(Debug)]
pub struct Process {
    started_at_ms: u64,
}

impl Process {
    /// Started now.
    pub(crate) fn new() -> Self {
        Self { started_at_ms: clock::wall_ms() }
    }
}

#[async_trait]
impl Source for Process {
    async fn fill(&self, page: &mut Page) {
        let release = vec![("version", env!("CARGO_PKG_VERSION").to_string())];
        page.gauge("build_info", "The release of this host; always 1", release, 1.0);
        let started = self.started_at_ms as f64 / 1_000.0;
        page.gauge("process_start_time_seconds", "When this host started, in seconds since 1970", vec![], started);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        page.counter("process_cpu_seconds", "CPU time of this host", vec![], cpu_seconds);
        if let Some(status) = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(Status::parse) {
            page.gauge("process_resident_memory_bytes", "Memory of this host", vec![], status.resident_bytes);
            page.gauge("process_threads", "Threads of this host", vec![], status.threads);
        }
        // The folder is open while it is read.
        let open = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1));
        page.gauge("process_open_fds", "Files and sockets that this host has open", vec![], open as f64);
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        page.gauge(
            "process_max_fds",
            "Files and sockets that this host may open",
            vec![],
            most.map_or(f64::INFINITY, |most| most as f64),
        );
    }
}

struct Status {
    threads: f64,
    resident_bytes: f64,
}

impl Status {
    /// `/proc/[pid]/status`, see proc(5).
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        // Given in kB, which are 1,024 bytes.
        Some(Self { threads: field("Threads")?, resident_bytes: field("VmRSS")? * 1_024.0 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_status_of_a_process_is_read_and_rubbish_is_not() {
        let status = Status::parse("Name:\tThreads: 9\nVmRSS:\t     300 kB\nThreads:\t7\n").unwrap();
        assert_eq!((status.threads as u64, status.resident_bytes as u64), (7, 307_200));
        assert!(Status::parse("VmRSS:\tmuch\nThreads:\t7\n").is_none() && Status::parse("").is_none());
        assert!(Status::parse(&fs::read_to_string("/proc/self/status").unwrap()).unwrap().threads >= 1.0);
    }
}
