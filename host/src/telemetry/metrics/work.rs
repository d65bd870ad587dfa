//! What an engine counts, by category and handler.
//!
//! A worker looks its counters up once, when it has acquired a partition; an event then costs a few additions and no look-up.
//! All series of a category and handler are there from the start, at zero: a counter that appears at 1 has not grown for
//! whoever watches it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use keyrail_broker::{Error, FencedError};
use keyrail_ordering::{CategoryName, FailureKind, GroupName, HaltCause, PartitionSpec};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Labels;

/// Upper ends of the buckets of everything that is timed, in seconds.
const BUCKETS_SECONDS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

const FAILURE_KINDS: [FailureKind; 6] = [
    FailureKind::Retry { after_ms: None },
    FailureKind::Rejected,
    FailureKind::Trap,
    FailureKind::Timeout,
    FailureKind::Memory,
    FailureKind::Refused,
];
const HALT_CAUSES: [HaltCause; 5] =
    [HaltCause::Poison, HaltCause::Rejected, HaltCause::Crashed, HaltCause::Missing, HaltCause::Undecodable];

/// How a lease was lost while it was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// A call under it was refused: it is another's.
    Fenced,
    /// It was not prolonged: it had lapsed, or an operator took it away.
    NotRenewed,
    /// Too long without an answer of the broker: it may have lapsed.
    Lapsed,
    /// The worker did not move, so it was not prolonged any more.
    Hung,
    /// The worker panicked.
    Panicked,
}

impl LossCause {
    const ALL: [Self; 5] = [Self::Fenced, Self::NotRenewed, Self::Lapsed, Self::Hung, Self::Panicked];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::NotRenewed => "not-renewed",
            Self::Lapsed => "lapsed",
            Self::Hung => "hung",
            Self::Panicked => "panicked",
        }
    }
}

/// Makes the histograms of a family.
#[derive(Debug, Clone, Copy)]
struct Timed;

impl MetricConstructor<Histogram> for Timed {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BUCKETS_SECONDS)
    }
}

type Counters = Family<Labels, Counter>;
type Histograms = Family<Labels, Histogram, Timed>;

/// All of them.
#[derive(Debug)]
pub struct WorkMetrics {
    families: Families,
    partitions: RwLock<BTreeMap<(GroupName, CategoryName), Arc<PartitionMetrics>>>,
    /// Outbox records that this host published.
    pub routed: Counter,
    /// Outbox records that can never be published, and were set aside.
    pub abandoned: Counter,
    /// Empty partitions that were forgotten.
    pub reaped: Counter,
    broker_failures: Counters,
}

#[derive(Debug)]
struct Families {
    settled: Counters,
    failed: Counters,
    retried: Counters,
    halted: Counters,
    set_aside: Counters,
    emitted: Counters,
    acquired: Counters,
    takeovers: Counters,
    lost: Counters,
    fenced: Counters,
    handler: Histograms,
    commit: Histograms,
}

/// Those of one category and handler.
#[derive(Debug)]
pub struct PartitionMetrics {
    /// Events settled.
    pub settled: Counter,
    /// Failed tries that are tried again.
    pub retried: Counter,
    /// Events of categories without partitions that were set aside.
    pub set_aside: Counter,
    /// Events emitted.
    pub emitted: Counter,
    /// Times that a partition was acquired.
    pub acquired: Counter,
    /// Of these, after a host that died while it had events.
    pub takeovers: Counter,
    /// Calls that the fence refused.
    pub fenced: Counter,
    failed: [Counter; FAILURE_KINDS.len()],
    halted: [Counter; HALT_CAUSES.len()],
    lost: [Counter; LossCause::ALL.len()],
    /// From the start of a call to its answer; a new instance, if one was needed, included.
    pub handler: Histogram,
    /// From sending a commit to its answer.
    pub commit: Histogram,
}

impl PartitionMetrics {
    /// A try failed.
    pub fn failed(&self, kind: FailureKind) {
        let at = FAILURE_KINDS.iter().position(|other| other.as_str() == kind.as_str());
        at.map(|at| self.failed[at].inc());
    }

    /// The partition stands still.
    pub fn halted(&self, cause: HaltCause) {
        HALT_CAUSES.iter().position(|other| *other == cause).map(|at| self.halted[at].inc());
    }

    /// A lease was lost.
    pub fn lost(&self, cause: LossCause) {
        self.lost[cause as usize].inc();
    }
}

/// Since the start, of all categories and handlers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) settled: u64,
    pub(crate) failed: u64,
    pub(crate) halted: u64,
    pub(crate) emitted: u64,
    pub(crate) acquired: u64,
    pub(crate) lost: u64,
    pub(crate) set_aside: u64,
}

impl WorkMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let mut counters = |name: &str, help: &str| {
            let family = Counters::default();
            registry.register(name, help, family.clone());
            family
        };
        let settled = counters("settled", "Events settled");
        let failed = counters("failed_tries", "Tries of an event that failed, by how");
        let retried = counters("retried", "Failed tries after which the event is tried again");
        let halted = counters("halted", "Times that a partition halted on its head, by why");
        let set_aside = counters("set_aside", "Events of categories without partitions that used up their tries");
        let emitted = counters("emitted", "Events that handlers emitted");
        let acquired = counters("acquired", "Times that this host acquired a partition");
        let takeovers =
            counters("takeovers", "Acquired partitions whose head had been in the hands of a host that died");
        let lost = counters("lost_leases", "Leases that were lost while this host held them, by how");
        let fenced = counters("fenced", "Calls to the broker that the fence refused: the partition is another's");
        let broker_failures = counters("broker_failures", "Calls to the broker that failed, by how");
        let mut histograms = |name: &str, help: &str| {
            let family = Histograms::new_with_constructor(Timed);
            registry.register(name, help, family.clone());
            family
        };
        let handler = histograms("handler_seconds", "Time of a handler call, a new instance included");
        let commit = histograms("commit_seconds", "Time of a commit");
        let mut single = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let routed = single("routed", "Emitted events that this host moved from the outbox into their streams");
        let abandoned = single("abandoned", "Emitted events that this host found cannot be published, and set aside");
        let reaped = single("reaped", "Empty partitions that this host forgot");
        for cause in ["unavailable", "refused", "corrupt", "unusable"] {
            let _at_zero = broker_failures.get_or_create_owned(&vec![("cause", cause.to_string())]);
        }
        let families = Families {
            settled,
            failed,
            retried,
            halted,
            set_aside,
            emitted,
            acquired,
            takeovers,
            lost,
            fenced,
            handler,
            commit,
        };
        Self { families, partitions: RwLock::default(), routed, abandoned, reaped, broker_failures }
    }

    /// The counters of a category and handler.
    pub fn of(&self, group: &GroupName, category: &CategoryName) -> Arc<PartitionMetrics> {
        let name = (group.clone(), category.clone());
        if let Some(present) = self.partitions.read().unwrap_or_else(PoisonError::into_inner).get(&name) {
            return present.clone();
        }
        let mut partitions = self.partitions.write().unwrap_or_else(PoisonError::into_inner);
        partitions.entry(name).or_insert_with(|| Arc::new(self.families.of(group, category))).clone()
    }

    /// Those of a partition as a whole: a process manager's are its first category's.
    pub fn of_partition(&self, partition: &PartitionSpec) -> Option<Arc<PartitionMetrics>> {
        let first = partition.streams.first()?;
        Some(self.of(&partition.id.group, &first.category))
    }

    /// A call to the broker failed.
    pub fn broker_failed(&self, error: &Error) {
        let cause = match error {
            Error::Unavailable(_) => "unavailable",
            Error::Refused(_) => "refused",
            Error::Corrupt(_) => "corrupt",
            Error::Unusable(_) => "unusable",
        };
        self.broker_failures.get_or_create(&vec![("cause", cause.to_string())]).inc();
    }

    /// The same of a fenced call; a refusal of the fence is no failure of the broker.
    pub fn fenced_call_failed(&self, error: &FencedError) {
        if let FencedError::Broker(error) = error {
            self.broker_failed(error);
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let sum = |counters: &[Counter]| counters.iter().map(Counter::get).sum::<u64>();
        for of in self.partitions.read().unwrap_or_else(PoisonError::into_inner).values() {
            totals.settled += of.settled.get();
            totals.failed += sum(&of.failed);
            totals.halted += sum(&of.halted);
            totals.emitted += of.emitted.get();
            totals.acquired += of.acquired.get();
            totals.lost += sum(&of.lost);
            totals.set_aside += of.set_aside.get();
        }
        totals
    }
}

impl Families {
    fn of(&self, group: &GroupName, category: &CategoryName) -> PartitionMetrics {
        let labels = vec![("category", category.to_string()), ("group", group.to_string())];
        let by_cause = |family: &Counters, cause: &str| {
            let mut labels = labels.clone();
            labels.push(("cause", cause.to_string()));
            family.get_or_create_owned(&labels)
        };
        PartitionMetrics {
            settled: self.settled.get_or_create_owned(&labels),
            retried: self.retried.get_or_create_owned(&labels),
            set_aside: self.set_aside.get_or_create_owned(&labels),
            emitted: self.emitted.get_or_create_owned(&labels),
            acquired: self.acquired.get_or_create_owned(&labels),
            takeovers: self.takeovers.get_or_create_owned(&labels),
            fenced: self.fenced.get_or_create_owned(&labels),
            failed: FAILURE_KINDS.map(|kind| by_cause(&self.failed, kind.as_str())),
            halted: HALT_CAUSES.map(|cause| by_cause(&self.halted, &cause.to_string())),
            lost: LossCause::ALL.map(|cause| by_cause(&self.lost, cause.as_str())),
            handler: self.handler.get_or_create_owned(&labels),
            commit: self.commit.get_or_create_owned(&labels),
        }
    }
}
