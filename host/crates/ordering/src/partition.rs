//! What the owner of a partition does next.
//!
//! [`Partition::step`] takes what happened and answers with what to do; the worker does it and feeds the outcome back.
//! At most one effect that waits for the outside is under way at any time, so at most one event of the partition runs.
//!
//! Invariants: the head of the queue is the oldest unsettled entry that is known here, and the only one that is ever
//! failed or halted. A batch of entries from the head on is handled one after the other and committed at once, all of it or
//! nothing; only the entry that follows it is ever invoked. The queue is a cache: after any call that may or may not have
//! happened it is dropped and read again.

mod batch;
mod phase;
mod positions;
mod read_ahead;

use std::collections::VecDeque;
use std::sync::Arc;

pub use batch::BatchLimits;
pub use read_ahead::ReadAheadLimits;

use batch::Batch;
use phase::{Phase, Then};
use positions::Positions;
use read_ahead::ReadAhead;

use crate::{
    AttemptsRecord, Content, Effect, Entry, Failure, HaltCause, HaltRecord, Input, Outcome, RetryPolicy, Verdict,
};

/// Deaths of hosts on one event in a row from which on it may be their cause. One death finds many events under way, and
/// says nothing of any of them.
const SUSPICIOUS_CRASHES: u32 = 2;
/// Events of one ownership from which on it counts as busy, see [`Policy::linger_ms`].
const BUSY_EVENTS: u64 = 3;

/// How a partition of this handler is run.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Tries and waits.
    pub retry: RetryPolicy,
    /// What to hold beyond the head.
    pub read_ahead: ReadAheadLimits,
    /// How many events are committed at once: one, if a call can change the world outside the commit.
    pub batch: BatchLimits,
    /// How long a partition is kept once it has run dry, if it was busy, or came back so soon that keeping it would have paid. Any
    /// other is released by the commit that settles its events, which costs nothing more.
    pub linger_ms: u64,
    /// Least wait after a broker call that failed, and after an event that could not be started.
    pub pause_ms: u64,
    /// The version of the handler, for the halt record.
    pub handler_version: String,
}

/// One ownership of one partition, from acquire to release.
#[derive(Debug)]
pub struct Partition {
    policy: Policy,
    phase: Phase,
    /// The batch, then what was read ahead.
    queue: VecDeque<Arc<Entry>>,
    batch: Batch,
    read_ahead: ReadAhead,
    positions: Positions,
    /// Failed tries of the head.
    attempts: u32,
    /// Hosts that died on the head.
    crashes: u32,
    /// The broker may hold entries that are not in the queue.
    more: bool,
    draining: bool,
    settled: u64,
    /// It was owned here a moment ago.
    came_back: bool,
    /// It may be kept when it has nothing to do.
    has_room: bool,
    /// Broker failures in a row.
    failures: u32,
}

impl Partition {
    /// A partition that is about to be told that it is owned.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            phase: Phase::New,
            queue: VecDeque::new(),
            batch: Batch::default(),
            read_ahead: ReadAhead::new(),
            positions: Positions::default(),
            attempts: 0,
            crashes: 0,
            more: false,
            draining: false,
            settled: 0,
            came_back: false,
            has_room: true,
            failures: 0,
        }
    }

    /// It was owned here until less than [`Policy::linger_ms`] ago.
    #[must_use]
    pub fn come_back(self) -> Self {
        Self { came_back: true, ..self }
    }

    /// Whether it may be kept when it has nothing to do: nothing else waits for its place.
    pub fn set_room(&mut self, has_room: bool) {
        self.has_room = has_room;
    }

    /// Runs it so from here on: another version of the handler serves. Tries that were made count on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Whether the next [`Effect::Invoke`] needs an execution slot now. A partition that waits holds none.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. } | Phase::Lingering { .. } | Phase::Recovering { .. })
    }

    /// Whether it has nothing to do, and is kept only in case that more comes.
    pub fn is_lingering(&self) -> bool {
        matches!(self.phase, Phase::Lingering { .. })
    }

    /// Takes what happened at `now_ms` and answers with what to do. An input that does not answer the effect under way is
    /// a mistake of the caller's.
    pub fn step(&mut self, now_ms: u64, input: Input) -> Vec<Effect> {
        if self.phase == Phase::Ended {
            return vec![];
        }
        match (self.phase.clone(), input) {
            (_, Input::Fenced) => self.end(),
            (_, Input::Uncertain) => self.recover(now_ms),
            (phase, Input::Drain) => {
                self.draining = true;
                match phase {
                    Phase::Waiting { .. } | Phase::Lingering { .. } | Phase::Recovering { .. } => self.leave(),
                    _ => vec![],
                }
            }
            (phase, Input::Belled) => {
                self.more = true;
                if matches!(phase, Phase::Lingering { .. }) { self.advance(now_ms) } else { vec![] }
            }
            (phase, Input::Tick) => self.tick(now_ms, phase),
            (Phase::New, Input::Acquired { entries, attempts, positions, more }) => {
                self.positions = Positions::of(positions);
                self.enqueue(entries, more);
                let wait_ms = self.recall(attempts);
                self.resume(now_ms, wait_ms)
            }
            (Phase::Taking { recover }, Input::Taken { entries, attempts, more }) => {
                self.failures = 0;
                self.enqueue(entries, more);
                if self.queue.is_empty() && self.more && !self.draining {
                    // What comes next was handed out in an answer that never came: only a recovering take brings it again.
                    return if recover { self.recover(now_ms) } else { self.take(true) };
                }
                let wait_ms = if recover { self.recall(attempts) } else { 0 };
                self.resume(now_ms, wait_ms)
            }
            (Phase::Invoking, Input::Handled { outcome, chance }) => self.handled(now_ms, outcome, chance),
            (Phase::Committing { then }, Input::Committed { entries, more, released }) => {
                self.settle_batch();
                if released {
                    return self.end();
                }
                self.enqueue(entries, more);
                match then {
                    Then::Next => self.advance(now_ms),
                    Then::Fail(failure, chance) => self.fail(failure, chance),
                    Then::Pause => self.wait(now_ms + self.policy.pause_ms),
                }
            }
            (Phase::Failing { after_ms }, Input::FailRecorded) => {
                self.attempts += 1;
                self.failures = 0;
                self.wait(now_ms + after_ms)
            }
            (Phase::Leaving, Input::Released) => self.end(),
            (phase, input) => panic!("a partition in {phase:?} was told {input:?}"),
        }
    }

    fn tick(&mut self, now_ms: u64, phase: Phase) -> Vec<Effect> {
        match phase {
            Phase::Waiting { until_ms } | Phase::Lingering { until_ms } | Phase::Recovering { until_ms }
                if now_ms < until_ms =>
            {
                vec![Effect::WakeAt(until_ms)]
            }
            Phase::Waiting { .. } => self.advance(now_ms),
            Phase::Lingering { .. } => self.leave(),
            Phase::Recovering { .. } => self.take(true),
            _ => vec![],
        }
    }

    fn handled(&mut self, now_ms: u64, outcome: Outcome, chance: f64) -> Vec<Effect> {
        match outcome {
            Outcome::Done { bytes } => {
                self.batch.add(bytes);
                if self.may_join(now_ms) { self.invoke(now_ms) } else { self.commit(Then::Next) }
            }
            Outcome::Failed(failure) if self.batch.is_empty() => self.fail(failure, chance),
            Outcome::Failed(failure) => self.commit(Then::Fail(failure, chance)),
            Outcome::CommitFirst if self.batch.is_empty() => self.advance(now_ms),
            Outcome::CommitFirst => self.commit(Then::Next),
            Outcome::Deferred if !self.batch.is_empty() => self.commit(Then::Pause),
            Outcome::Deferred if self.draining => self.leave(),
            Outcome::Deferred => self.wait(now_ms + self.policy.pause_ms),
        }
    }

    /// The try of the head has failed; nothing else is handled and not committed.
    fn fail(&mut self, failure: Failure, chance: f64) -> Vec<Effect> {
        let attempt = self.attempts + 1;
        let after_ms = match self.policy.retry.verdict(attempt, failure.kind, chance) {
            Verdict::Again { after_ms } => after_ms,
            Verdict::GiveUp(cause) => {
                self.attempts = attempt;
                return self.halt(cause, failure.error);
            }
        };
        self.phase = Phase::Failing { after_ms };
        vec![Effect::Fail { entry: self.head(), attempt, error: failure.error, after_ms }]
    }

    /// Whether the entry after the batch may be handled before the batch is committed: an event that surely comes next.
    fn may_join(&self, now_ms: u64) -> bool {
        if self.draining || self.batch.is_full(&self.policy.batch, now_ms) {
            return false;
        }
        let (Some(last), Some(next)) = (self.last_of_batch(), self.queue.get(self.batch.len())) else { return false };
        let (last, at) = (&last.at, &next.at);
        matches!(next.content, Content::Event(_)) && at.stream == last.stream && last.id.is_followed_by(at.id)
    }

    /// After entries were read: waits if the head is not due yet.
    fn resume(&mut self, now_ms: u64, wait_ms: u64) -> Vec<Effect> {
        if wait_ms > 0 && !self.queue.is_empty() && !self.draining {
            return self.wait(now_ms + wait_ms);
        }
        self.advance(now_ms)
    }

    /// Whatever comes next when nothing is under way.
    fn advance(&mut self, now_ms: u64) -> Vec<Effect> {
        if self.draining {
            return self.leave();
        }
        let Some(head) = self.queue.front().cloned() else {
            if self.more {
                return self.take(false);
            }
            if self.lingers(self.settled) {
                let until_ms = now_ms + self.policy.linger_ms;
                self.phase = Phase::Lingering { until_ms };
                return vec![Effect::WakeAt(until_ms)];
            }
            return self.leave();
        };
        let gap = self.positions.gap_before(&head.at);
        match &head.content {
            Content::Missing => {
                self.halt(HaltCause::Missing, "the entry was deleted or trimmed by somebody else".into())
            }
            _ if gap.is_some() => self.halt(HaltCause::Missing, gap.unwrap_or_default()),
            Content::Undecodable(why) => self.halt(HaltCause::Undecodable, why.clone()),
            Content::Event(_) if self.crashes >= self.policy.retry.crashes_max => {
                let error = format!("{} hosts died while they handled this event", self.crashes);
                self.halt(HaltCause::Crashed, error)
            }
            Content::Event(_) => self.invoke(now_ms),
        }
    }

    /// The event after the batch. Failures are only known of the head, so of any other this is the first try.
    fn invoke(&mut self, now_ms: u64) -> Vec<Effect> {
        let entry = self.queue[self.batch.len()].clone();
        let (attempts, crashes) = if self.batch.is_empty() { (self.attempts, self.crashes) } else { (0, 0) };
        self.batch.begin(now_ms);
        self.phase = Phase::Invoking;
        vec![Effect::Invoke { entry, attempt: attempts + 1, alone: crashes >= SUSPICIOUS_CRASHES }]
    }

    fn commit(&mut self, then: Then) -> Vec<Effect> {
        let entries: Vec<_> = self.queue.iter().take(self.batch.len()).cloned().collect();
        let held = self.queue.len() - entries.len();
        let refill = !self.draining && self.read_ahead.is_due(&self.policy.read_ahead, held);
        let take_max = if refill { self.read_ahead.missing(&self.policy.read_ahead, held) } else { 0 };
        let lingers = self.lingers(self.settled + entries.len() as u64);
        let release = then == Then::Next && (self.draining || (held == 0 && !lingers));
        self.phase = Phase::Committing { then };
        vec![Effect::Commit { entries, take_max, release }]
    }

    /// The batch is committed.
    fn settle_batch(&mut self) {
        if let Some(last) = self.queue.drain(..self.batch.len()).next_back() {
            self.positions.settled(&last.at);
        }
        self.settled += self.batch.len() as u64;
        self.batch.committed();
        self.failures = 0;
        self.attempts = 0;
        self.crashes = 0;
    }

    fn halt(&mut self, cause: HaltCause, error: String) -> Vec<Effect> {
        self.phase = Phase::Leaving;
        vec![Effect::Halt(HaltRecord {
            head: self.head().at.clone(),
            cause,
            attempts: self.attempts,
            error,
            handler_version: self.policy.handler_version.clone(),
        })]
    }

    fn take(&mut self, recover: bool) -> Vec<Effect> {
        self.phase = Phase::Taking { recover };
        vec![Effect::Take { max: self.read_ahead.missing(&self.policy.read_ahead, 0), recover }]
    }

    fn wait(&mut self, until_ms: u64) -> Vec<Effect> {
        if self.draining {
            return self.leave();
        }
        self.phase = Phase::Waiting { until_ms };
        vec![Effect::WakeAt(until_ms)]
    }

    fn leave(&mut self) -> Vec<Effect> {
        self.phase = Phase::Leaving;
        vec![Effect::Release]
    }

    fn end(&mut self) -> Vec<Effect> {
        self.phase = Phase::Ended;
        self.queue.clear();
        self.batch.drop_all();
        vec![Effect::End]
    }

    /// A call may or may not have happened: what is held here is worth nothing any more.
    fn recover(&mut self, now_ms: u64) -> Vec<Effect> {
        if self.phase == Phase::Leaving || self.draining {
            // The lease lapses by itself; whatever was pending is claimed by the next owner.
            return self.end();
        }
        if let (Phase::Committing { .. }, Some(last)) = (&self.phase, self.queue.get(self.batch.len().wrapping_sub(1)))
        {
            self.positions.maybe_settled(&last.at);
        }
        self.queue.clear();
        self.batch.drop_all();
        self.attempts = 0;
        self.crashes = 0;
        self.failures = self.failures.saturating_add(1);
        let pause_ms = self.policy.pause_ms.saturating_mul(1 << self.failures.min(5));
        let until_ms = now_ms + pause_ms;
        self.phase = Phase::Recovering { until_ms };
        vec![Effect::WakeAt(until_ms)]
    }

    fn enqueue(&mut self, entries: Vec<Arc<Entry>>, more: bool) {
        self.read_ahead.came(&entries, more);
        self.more = more;
        self.queue.extend(entries);
    }

    /// Takes over what is on record about the head; answers with how long it still has to wait.
    fn recall(&mut self, record: Option<AttemptsRecord>) -> u64 {
        let head = self.queue.front().map(|entry| &entry.at);
        let record = record.filter(|record| Some(&record.head) == head);
        self.attempts = record.as_ref().map_or(0, |record| record.attempts);
        self.crashes = record.as_ref().map_or(0, |record| record.crashes);
        if self.crashes > 0 {
            self.batch.be_careful(&self.policy.batch);
        }
        record.map_or(0, |record| record.wait_ms)
    }

    fn head(&self) -> Arc<Entry> {
        self.queue.front().expect("only called with a head in the queue").clone()
    }

    fn last_of_batch(&self) -> Option<&Arc<Entry>> {
        self.queue.get(self.batch.len().checked_sub(1)?)
    }

    /// Whether it is kept for a while when it has run dry after so many events.
    fn lingers(&self, settled: u64) -> bool {
        self.policy.linger_ms > 0 && self.has_room && (self.came_back || settled >= BUSY_EVENTS)
    }
}
