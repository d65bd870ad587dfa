//! Where facts are noted: into the trace, past the checks, and into the ledger, in this order.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::checks::{self, Check, End};
use super::clock::Clock;
use super::fact::{CallNumber, Fact};
use super::ledger::Ledger;
use super::trace::Trace;

/// Facts after which a run goes in circles: ten times what the longest one needs.
const FACTS_MAX: u64 = 40_000;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which check.
    pub check: &'static str,
    /// Virtual milliseconds since the start.
    pub at_ms: u64,
    /// What.
    pub what: String,
}

struct Pages {
    trace: Trace,
    ledger: Ledger,
    checks: Vec<Box<dyn Check>>,
    violations: Vec<Violation>,
    calls: CallNumber,
    seen: BTreeSet<Arc<str>>,
    /// The run is over: what falls apart now is no fact.
    closed: bool,
}

pub(super) struct Notebook {
    clock: Clock,
    pages: Mutex<Pages>,
}

impl Notebook {
    pub(super) fn new(clock: Clock, keep_trace: bool) -> Self {
        let pages = Pages {
            trace: Trace::new(keep_trace),
            ledger: Ledger::default(),
            checks: checks::all(),
            violations: vec![],
            calls: 0,
            seen: BTreeSet::new(),
            closed: false,
        };
        Self { clock, pages: Mutex::new(pages) }
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, fact: Fact) {
        let mut pages = self.lock();
        let Pages { trace, ledger, checks, violations, closed, .. } = &mut *pages;
        if *closed {
            return;
        }
        let at_ms = self.clock.elapsed_ms();
        if trace.count() > FACTS_MAX {
            let what = "the run goes in circles".into();
            violations.push(Violation { check: "liveness", at_ms, what });
            *closed = true;
        }
        trace.add(at_ms, &fact);
        let mut found = vec![];
        for check in checks {
            check.see(at_ms, &fact, ledger, &mut found);
            for what in found.drain(..) {
                trace.add(at_ms, &format_args!("!! {}: {what}", check.name()));
                violations.push(Violation { check: check.name(), at_ms, what });
            }
        }
        ledger.apply(at_ms, &fact);
    }

    /// A line for the trace alone.
    pub(super) fn remark(&self, text: impl Into<String>) {
        self.note(Fact::Note(text.into()));
    }

    pub(super) fn next_call(&self) -> CallNumber {
        let mut pages = self.lock();
        pages.calls += 1;
        pages.calls
    }

    /// Whether this is asked for the first time.
    pub(super) fn is_first_time(&self, event_id: &Arc<str>) -> bool {
        self.lock().seen.insert(event_id.clone())
    }

    pub(super) fn violate(&self, check: &'static str, what: String) {
        let at_ms = self.clock.elapsed_ms();
        let mut pages = self.lock();
        pages.trace.add(at_ms, &format_args!("!! {check}: {what}"));
        pages.violations.push(Violation { check, at_ms, what });
    }

    pub(super) fn is_violated(&self) -> bool {
        !self.lock().violations.is_empty()
    }

    /// Everything has come to rest: the last look.
    pub(super) fn end(&self, end: &End) {
        let mut pages = self.lock();
        let Pages { ledger, checks, violations, trace, .. } = &mut *pages;
        let (at_ms, mut found) = (self.clock.elapsed_ms(), vec![]);
        for check in checks {
            check.end(end, ledger, &mut found);
            for what in found.drain(..) {
                trace.add(at_ms, &format_args!("!! {}: {what}", check.name()));
                violations.push(Violation { check: check.name(), at_ms, what });
            }
        }
    }

    /// Nothing is noted any more; answers with what was.
    pub(super) fn close(&self) -> (Vec<Violation>, u64, u64, Vec<String>) {
        let mut pages = self.lock();
        pages.closed = true;
        let lines = pages.trace.take_lines();
        (pages.violations.clone(), pages.trace.hash(), pages.trace.count(), lines)
    }
}
