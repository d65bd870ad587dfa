//! Handlers run on events with nothing behind them: no broker, no lease, no engine. What comes of it is shown, and goes nowhere.
//!
//! - [`Trial`] runs one handler on one event, over a snapshot of a key's state;
//! - [`Rehearsal`] is a small world in memory: events in the order of their submission, retries without their waits,
//!   emits to handlers that are there.
//!
//! What an event may be, which handler wants it, what an emit must be, and what follows a failed try are decided by the
//! same code as on a host (`keyrail_ordering`, `engine::wants`, `engine::call`). What only a host has is left out: leases,
//! real waits, several keys at once.
//!
//! Invariant: a trial only reads what it was given; it answers with effects, and who asked for it may apply them. Only HTTP calls
//! that a manifest grants go out, and none where they are played ([`Http`]).

mod capture;
mod host;
mod rehearsal;
mod report;
mod tape;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{
    Catalog, Effects, EntryRef, Event, Failure, FailureKind, Generation, HaltCause, Outgoing, PartitionId, RetryPolicy,
    Verdict,
};
use keyrail_runtime::{Answer, Call, HttpExchange, Instance, InstantiateError, Module};
use tracing::instrument::WithSubscriber;

pub use capture::LogLine;
pub use host::Emits;
pub use rehearsal::{Happened, Rehearsal, RehearsalError};
pub use report::{Emitted, Outcome, Record, shown_value};

use crate::engine::call::NO_STATE;
use crate::engine::wants::{Wants, wants_alone};
use capture::Capture;
use host::TrialHost;
use tape::Tape;

/// A key's state: values by name.
pub type State = BTreeMap<String, Bytes>;

/// The longest chance there is: a back-off in full, since nobody waits for it here.
const NO_JITTER: f64 = 1.0;

/// One event as a handler is given it.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Whose state it is; none in a category that is not partitioned.
    pub partition: Option<&'a PartitionId>,
    /// Where the event stands.
    pub entry: &'a EntryRef,
    /// The event.
    pub event: &'a Event,
    /// When it was recorded, in milliseconds since 1970.
    pub recorded_at_ms: u64,
    /// The owner's generation.
    pub generation: Generation,
    /// The number of the first try.
    pub attempt: u32,
    /// The state before it.
    pub state: &'a Arc<State>,
    /// How the HTTP calls that it makes are answered, as far as they are granted.
    pub http: Http<'a>,
}

/// Who answers HTTP calls.
#[derive(Debug, Clone, Copy)]
pub enum Http<'a> {
    /// Who is called.
    Live,
    /// Who is called, and it is kept.
    Recorded,
    /// These, made for the event in this order; nobody is called.
    Played(&'a [HttpCall]),
}

/// An HTTP call that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCall {
    /// The try that made it.
    pub attempt: u32,
    /// What was asked and answered.
    pub exchange: HttpExchange,
}

/// What one try came to.
#[derive(Debug, Clone)]
pub struct Tried {
    /// What it would change, or how it failed.
    pub outcome: Result<Effects, Failure>,
    /// What it logged.
    pub logs: Vec<LogLine>,
    /// What was done for it that a host would not do.
    pub notes: Vec<String>,
    /// The HTTP calls that it made, if they are kept.
    pub calls: Vec<HttpCall>,
    /// In what its HTTP calls are others than those that are played, a sentence each.
    pub differences: Vec<String>,
}

/// What an event came to, after as many tries as it takes.
#[derive(Debug, Clone)]
pub struct Handled {
    /// The end of it.
    pub ending: Ending,
    /// The tries that failed, in order.
    pub failures: Vec<Failure>,
    /// What the last try logged.
    pub logs: Vec<LogLine>,
    /// See [`Tried::notes`].
    pub notes: Vec<String>,
    /// See [`Tried::calls`]; of all tries.
    pub calls: Vec<HttpCall>,
    /// See [`Tried::differences`]; of the first try that has any: what comes after it follows from it.
    pub differences: Vec<String>,
}

/// How an event ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// Done, with these effects.
    Done(Effects),
    /// Another handler's business: settled without a call.
    NotHandled,
    /// The key stands still on it; an event without a key is set aside.
    GivenUp(HaltCause),
    /// The key stands still on an earlier event, so it was not tried.
    Behind,
}

/// Why a trial could not be made. Not the handler's doing.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// No instance could be made.
    #[error("handler {handler} cannot be started: {error}")]
    Instantiate {
        /// The handler.
        handler: String,
        /// Why.
        error: InstantiateError,
    },
    /// The runtime put the event off.
    #[error("handler {handler} could not run: {why}")]
    Deferred {
        /// The handler.
        handler: String,
        /// Why.
        why: String,
    },
}

/// A handler to be tried.
pub struct Trial {
    module: Arc<Module>,
    catalog: Arc<Catalog>,
    emits: Emits,
    retry: RetryPolicy,
    capture: Capture,
    /// Of the partition that was served last: an instance serves one, as on a host.
    instance: Option<(Option<PartitionId>, Instance)>,
}

impl Trial {
    /// A handler with what its emits are checked against. `retry` is the host's; the handler's own options change it.
    pub fn new(module: Arc<Module>, catalog: Arc<Catalog>, emits: Emits, retry: &RetryPolicy) -> Self {
        let retry = retry.with_options(&module.metadata().options).unwrap_or_else(|_| retry.clone());
        Self { module, catalog, emits, retry, capture: Capture::new(), instance: None }
    }

    /// The handler.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Runs it on the event as often as a host would, without the waits.
    pub async fn handle(&mut self, case: &Case<'_>) -> Result<Handled, TrialError> {
        let (mut failures, mut calls, mut differences) = (vec![], vec![], vec![]);
        let mut attempt = case.attempt;
        loop {
            let Some(tried) = self.once(&Case { attempt, ..*case }).await? else {
                return Ok(Handled::without_a_call(Ending::NotHandled));
            };
            let Tried { outcome, logs, notes, .. } = tried;
            calls.extend(tried.calls);
            if differences.is_empty() {
                differences = tried.differences;
            }
            let ending = match outcome {
                Ok(effects) => Ending::Done(effects),
                Err(failure) => {
                    let verdict = self.retry.verdict(attempt, failure.kind, NO_JITTER);
                    failures.push(failure);
                    match verdict {
                        Verdict::Again { .. } => {
                            attempt += 1;
                            continue;
                        }
                        Verdict::GiveUp(cause) => Ending::GivenUp(cause),
                    }
                }
            };
            if differences.is_empty() {
                differences = tape::of_later_tries(&case.http, attempt);
            }
            return Ok(Handled { ending, failures, logs, notes, calls, differences });
        }
    }

    /// Runs it on the event once. None if the event is none of its business.
    pub async fn once(&mut self, case: &Case<'_>) -> Result<Option<Tried>, TrialError> {
        match wants_alone(self.module.metadata(), case.event) {
            Wants::Yes => {}
            Wants::No | Wants::NotYet | Wants::Unknown => return Ok(None),
            Wants::OtherVersion(why) => {
                let failure = Failure { kind: FailureKind::Rejected, error: why };
                return Ok(Some(Tried::without_a_call(failure, vec![])));
            }
        }
        let mut instance = match self.instance.take() {
            Some((partition, instance)) if partition.as_ref() == case.partition && !instance.is_spent() => instance,
            // The old one goes first: there may be room for no other.
            other => {
                drop(other);
                match self.module.instantiate_for(&case.partition.map(ToString::to_string).unwrap_or_default()).await {
                    Ok(instance) => instance,
                    Err(InstantiateError::Failed(error)) => {
                        let failure = Failure { kind: FailureKind::Trap, error };
                        return Ok(Some(Tried::without_a_call(failure, self.capture.take())));
                    }
                    Err(error) => return Err(TrialError::Instantiate { handler: self.name(), error }),
                }
            }
        };
        let host = TrialHost::new(self.module.metadata().name.clone(), &self.catalog, self.emits, case);
        let seen = host.seen();
        let call = Call {
            entry: case.entry,
            event: case.event,
            recorded_at_ms: case.recorded_at_ms,
            generation: case.generation,
            attempt: case.attempt,
            trace_id: None,
        };
        let tape = Tape::new(&case.http, case.attempt);
        instance.route_http(tape.route());
        let answer = instance.call(&call, Box::new(host)).with_subscriber(self.capture.subscriber()).await;
        let seen = seen.take();
        let rejected = || Err(Failure { kind: FailureKind::Rejected, error: NO_STATE.into() });
        let outcome = match answer {
            _ if seen.wanted_state => rejected(),
            Answer::Done(effects) if case.partition.is_none() && !effects.state.is_empty() => rejected(),
            Answer::Done(effects) => Ok(effects),
            Answer::Failed(failure) => Err(failure),
            Answer::Deferred(why) => return Err(TrialError::Deferred { handler: self.name(), why }),
        };
        if !instance.is_spent() && outcome.is_ok() {
            self.instance = Some((case.partition.cloned(), instance));
        }
        let (calls, differences) = tape.end(case.attempt);
        Ok(Some(Tried { outcome, logs: self.capture.take(), notes: seen.notes, calls, differences }))
    }

    fn name(&self) -> String {
        self.module.metadata().name.to_string()
    }
}

impl Tried {
    /// It failed before the handler was asked.
    fn without_a_call(failure: Failure, logs: Vec<LogLine>) -> Self {
        Self { outcome: Err(failure), logs, notes: vec![], calls: vec![], differences: vec![] }
    }
}

impl Handled {
    /// It ended and no handler was asked.
    pub fn without_a_call(ending: Ending) -> Self {
        Self { ending, failures: vec![], logs: vec![], notes: vec![], calls: vec![], differences: vec![] }
    }

    /// What it changes; nothing unless it is done.
    pub fn effects(&self) -> Option<&Effects> {
        match &self.ending {
            Ending::Done(effects) => Some(effects),
            _ => None,
        }
    }

    /// The events that it emits.
    pub fn emits(&self) -> &[Outgoing] {
        self.effects().map_or(&[], |effects| &effects.emits)
    }
}

/// The state after these effects.
pub fn apply(state: &mut State, effects: &Effects) {
    for change in &effects.state {
        match &change.value {
            Some(value) => state.insert(change.name.clone(), value.clone()),
            None => state.remove(&change.name),
        };
    }
}
