//! The real engine in a simulated world: several hosts in one process, on one embedded broker, over a network that loses,
//! delays and repeats, on a clock that moves on by itself. One seed decides everything: the same seed gives the same run.
//!
//! - [`machine`] is what a host runs on: it can be frozen and killed between any two polls;
//! - [`faulty`] is the network between hosts and broker, [`truth`] the broker at its other end, which notes what it really
//!   did, [`mistakes`] the same with a planted mistake;
//! - [`fact`] is what is noted, [`ledger`] what should follow from it, [`checks`] what must hold;
//! - [`host`], [`traffic`], [`operators`] and [`chaos`] are who acts; [`world`] is one run of them all.
//!
//! What is not simulated: threads, the file, Redis, WebAssembly.

mod chaos;
mod checks;
mod clock;
mod dice;
mod fact;
mod faulty;
mod handlers;
mod host;
mod ledger;
mod machine;
mod mistakes;
mod notebook;
mod operators;
mod panics;
mod plan;
mod trace;
mod traffic;
mod truth;
mod world;

pub use mistakes::Mistake;
pub use notebook::Violation;

/// What to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Decides everything.
    pub seed: u64,
    /// Planted in the broker.
    pub mistake: Option<Mistake>,
    /// Keep the lines of the trace.
    pub trace: bool,
}

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Of the whole trace.
    pub hash: u64,
    /// Lines of the trace.
    pub facts: u64,
    /// How long it was, in virtual time.
    pub virtual_ms: u64,
    /// What the checks found; empty is well.
    pub violations: Vec<Violation>,
    /// The trace, if it was to be kept.
    pub lines: Vec<String>,
}

/// Runs one seed on this thread.
pub fn run(options: Options) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    panics::keep();
    let report = runtime.block_on(world::run(options));
    drop(runtime);
    panics::release();
    report
}

/// Runs many seeds on some threads; `tell` is called with each report as it comes. Answers with those that found something,
/// by seed.
pub fn run_many(
    seeds: std::ops::Range<u64>,
    threads: u64,
    options: impl Fn(u64) -> Options + Sync,
    tell: impl Fn(&Report) + Sync,
) -> Vec<Report> {
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let found = std::sync::Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    let report = run(options(seed));
                    tell(&report);
                    if !report.violations.is_empty() {
                        found.lock().unwrap().push(report);
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|report: &Report| report.seed);
    found
}
