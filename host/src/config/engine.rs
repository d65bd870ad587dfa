//! Limits and times of the engine.

use keyrail_ordering::{BatchLimits, ReadAheadLimits, RetryPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a host owns partitions and works on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// How long a lease lasts unless it is renewed: the longest pause of a key whose host died, and the longest a host
    /// may be cut off from the broker before its keys go to others.
    pub lease_ttl_ms: u64,
    /// How often leases are renewed. At most a third of `lease_ttl_ms`.
    pub heartbeat_interval_ms: u64,
    /// Leases renewed in one call.
    pub renew_batch_max: usize,
    /// Partitions owned at once.
    pub partitions_max: usize,
    /// Events that run in a guest at once.
    pub executions_max: usize,
    /// Entries read ahead of the one that runs, per partition: as many while there is a backlog, fewer otherwise.
    pub read_ahead_max: usize,
    /// The bytes that these may be, as far as the size of the last ones tells that of the next.
    pub read_ahead_max_bytes: usize,
    /// Events of a key that are committed at once while it has a backlog; 1 commits each by itself. A handler that is granted
    /// outgoing HTTP is always committed event by event.
    pub commit_batch_max: usize,
    /// Bytes of effects from which on no further event joins a commit.
    pub commit_batch_max_bytes: usize,
    /// How long after a batch began no further event joins it.
    pub commit_batch_max_ms: u64,
    /// How long a partition that was busy, or comes back within this time, is kept once it has run dry, unless others wait for its place.
    pub linger_ms: u64,
    /// Least wait after a broker call that failed.
    pub pause_ms: u64,
    /// How often ready sets, outbox and catalog are looked through without a bell.
    pub sweep_interval_ms: u64,
    /// How long a key without an owner is left to the host that should have it, before another takes it.
    pub grace_ms: u64,
    /// How often empty partitions are looked for. One that stays empty and untouched this long is forgotten.
    pub housekeeping_interval_ms: u64,
    /// Live partitions of a category above which to warn.
    pub live_partitions_warn: u64,
    /// Events of one category without partitions that a handler runs at once.
    pub shared_executions_max: usize,
    /// How long an event of such a category is left with a host that says nothing of it, before another is given it.
    pub shared_idle_min_ms: u64,
    /// Keys read from a ready set in one call.
    pub discovery_batch_max: usize,
    /// Keys that wait for room in memory; further ones are found again in the ready set.
    pub candidates_max: usize,
    /// Events settled in one ownership before it makes room, while other keys wait for some.
    pub quantum_events: u64,
    /// Outbox records routed in one call.
    pub route_batch_max: usize,
    /// How long the ids of emitted events are remembered against a repeat; 0 for not at all.
    pub dedupe_window_ms: u64,
    /// State kept in memory per owned partition.
    pub state_cache_max_bytes: usize,
    /// How long a worker may be at one step before it counts as hung and loses its lease. More than the longest call.
    pub worker_stall_max_ms: u64,
    /// On shutdown: how long running events may go on.
    pub shutdown_grace_ms: u64,
    /// On shutdown: how long stopping and releasing may take after that.
    pub stop_max_ms: u64,
    /// Tries and waits of failed events.
    #[serde(with = "RetryFields")]
    pub retry: RetryPolicy,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            lease_ttl_ms: 3_000,
            heartbeat_interval_ms: 750,
            renew_batch_max: 200,
            partitions_max: 256,
            executions_max: 64,
            read_ahead_max: 256,
            read_ahead_max_bytes: 256 * 1024,
            commit_batch_max: BatchLimits::default().events_max,
            commit_batch_max_bytes: BatchLimits::default().bytes_max,
            commit_batch_max_ms: BatchLimits::default().ms_max,
            linger_ms: 500,
            pause_ms: 50,
            sweep_interval_ms: 2_000,
            grace_ms: 500,
            housekeeping_interval_ms: 60_000,
            live_partitions_warn: 5_000,
            shared_executions_max: 16,
            shared_idle_min_ms: 5_000,
            discovery_batch_max: 256,
            candidates_max: 4_096,
            quantum_events: 256,
            route_batch_max: 100,
            dedupe_window_ms: 24 * 3_600 * 1_000,
            state_cache_max_bytes: 1 << 20,
            worker_stall_max_ms: 60_000,
            shutdown_grace_ms: 5_000,
            stop_max_ms: 2_000,
            retry: RetryPolicy::default(),
        }
    }
}

impl EngineConfig {
    /// How long a member counts as there after it was announced. A little less than a lease, so that when the leases of a
    /// dead host lapse nobody thinks any more that it should have them.
    pub fn member_ttl_ms(&self) -> u64 {
        self.lease_ttl_ms.saturating_sub(self.heartbeat_interval_ms / 2).max(1)
    }

    /// How far a partition reads ahead.
    pub fn read_ahead(&self) -> ReadAheadLimits {
        ReadAheadLimits { entries_max: self.read_ahead_max, bytes_max: self.read_ahead_max_bytes }
    }

    /// How many events are committed at once, if the handler allows it.
    pub fn commit_batch(&self) -> BatchLimits {
        BatchLimits {
            events_max: self.commit_batch_max,
            bytes_max: self.commit_batch_max_bytes,
            ms_max: self.commit_batch_max_ms,
        }
    }

    /// What does not fit together, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = vec![];
        if self.heartbeat_interval_ms == 0 || self.heartbeat_interval_ms * 3 > self.lease_ttl_ms {
            problems.push(format!(
                "engine.heartbeat_interval_ms is {}; it must be at least 1 and at most a third of engine.lease_ttl_ms ({})",
                self.heartbeat_interval_ms, self.lease_ttl_ms
            ));
        }
        if self.shared_idle_min_ms <= self.heartbeat_interval_ms * 2 {
            problems.push(format!(
                "engine.shared_idle_min_ms is {}; it must be more than twice engine.heartbeat_interval_ms ({})",
                self.shared_idle_min_ms, self.heartbeat_interval_ms
            ));
        }
        let at_least_one = [
            ("renew_batch_max", self.renew_batch_max as u64),
            ("partitions_max", self.partitions_max as u64),
            ("executions_max", self.executions_max as u64),
            ("commit_batch_max", self.commit_batch_max as u64),
            ("pause_ms", self.pause_ms),
            ("sweep_interval_ms", self.sweep_interval_ms),
            ("discovery_batch_max", self.discovery_batch_max as u64),
            ("route_batch_max", self.route_batch_max as u64),
            ("quantum_events", self.quantum_events),
            ("housekeeping_interval_ms", self.housekeeping_interval_ms),
            ("shared_executions_max", self.shared_executions_max as u64),
            ("retry.attempts_max", u64::from(self.retry.attempts_max)),
            ("retry.crashes_max", u64::from(self.retry.crashes_max)),
        ];
        for (name, value) in at_least_one {
            if value == 0 {
                problems.push(format!("engine.{name} is 0; it must be at least 1"));
            }
        }
        problems
    }
}

/// [`RetryPolicy`] as a section: single values may be left out, other names are refused.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RetryFields {
    /// Tries that an event gets in all.
    attempts_max: u32,
    /// Hosts that may die on an event before it halts its key.
    crashes_max: u32,
    /// Wait after the first failed try; doubles with each further one.
    backoff_base_ms: u64,
    /// The longest wait between two tries, whatever the handler wishes.
    backoff_cap_ms: u64,
}

impl Default for RetryFields {
    fn default() -> Self {
        (&RetryPolicy::default()).into()
    }
}

impl From<&RetryPolicy> for RetryFields {
    fn from(policy: &RetryPolicy) -> Self {
        let RetryPolicy { attempts_max, crashes_max, backoff_base_ms, backoff_cap_ms } = *policy;
        Self { attempts_max, crashes_max, backoff_base_ms, backoff_cap_ms }
    }
}

impl RetryFields {
    fn serialize<S: serde::Serializer>(policy: &RetryPolicy, serializer: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(&Self::from(policy), serializer)
    }

    fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<RetryPolicy, D::Error> {
        let Self { attempts_max, crashes_max, backoff_base_ms, backoff_cap_ms } =
            Deserialize::deserialize(deserializer)?;
        Ok(RetryPolicy { attempts_max, crashes_max, backoff_base_ms, backoff_cap_ms })
    }
}
