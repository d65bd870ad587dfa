//! Calling the handler with one event.

use std::sync::Arc;

use keyrail_ordering::{Content, Effects, Entry, Event, Failure, FailureKind, Input, Outcome};
use keyrail_runtime::{Answer, Call, InstantiateError};
use tracing::{debug, warn};

use super::Worker;
use crate::engine::call::EventCall;
use crate::engine::wants::Wants;
use crate::telemetry::metrics::LossCause;
use crate::telemetry::traces::{Handling, Try, hex};

impl Worker {
    pub(super) async fn invoke(&mut self, entry: &Arc<Entry>, attempt: u32, alone: bool) -> Input {
        let Content::Event(event) = &entry.content else { unreachable!("only events are invoked") };
        self.handling = Handling::default();
        if !self.uncommitted.is_empty() && self.sees_change() {
            // A commit is of one version.
            return self.handled(Outcome::CommitFirst);
        }
        if !self.choose_version() {
            return self.put_off(event, "the handler was undeployed");
        }
        // Asking for the catalog takes a moment.
        match self.shared.wants(&self.version, event).await {
            Wants::Yes => {}
            Wants::No | Wants::Unknown => return self.done(Effects::default()),
            Wants::NotYet => return self.wait_for_version(event),
            Wants::OtherVersion(why) => {
                return self.failed(entry, event, attempt, Failure { kind: FailureKind::Rejected, error: why });
            }
        }
        let shared = self.shared.clone();
        let holding = self.holding.clone();
        let lease = &self.session.lease;
        self.handling = shared.telemetry.traces().handling(&Try {
            event,
            group: &lease.partition.id.group,
            version: &self.version.label,
            entry: entry.at.id,
            attempt,
            generation: lease.generation,
        });
        let answer = async {
            // Who waits for a slot does not hang.
            holding.expect_by(u64::MAX);
            let slots = if alone { shared.config.executions_max as u32 } else { 1 };
            let Ok(_slots) = shared.slots.acquire_many(slots).await else {
                return Answer::Deferred("the engine is stopping".into());
            };
            if holding.has_lapsed(shared.machine.now_ms()) {
                holding.lose(LossCause::Lapsed);
                return Answer::Deferred("the lease may have lapsed".into());
            }
            holding.expect_by(shared.machine.now_ms() + shared.config.worker_stall_max_ms);
            holding.busy.begin(shared.machine.now_ns());
            self.call(entry, event, attempt).await
        };
        let answer = tokio::select! {
            biased;
            () = holding.lost() => None,
            () = shared.cancelled.cancelled() => Some(Answer::Deferred("the host is stopping".into())),
            answer = answer => Some(answer),
        };
        if let Some(seconds) = holding.busy.end(shared.machine.now_ns()) {
            self.metrics.of(&entry.at).handler.observe(seconds);
        }
        match answer {
            None => {
                self.instance = None;
                self.handling.failed("lost", "the lease was lost");
                Input::Fenced
            }
            Some(Answer::Done(effects)) => self.done(effects),
            Some(Answer::Failed(failure)) => self.failed(entry, event, attempt, failure),
            Some(Answer::Deferred(why)) => self.put_off(event, &why),
        }
    }

    pub(super) fn put_off(&mut self, event: &Event, why: &str) -> Input {
        let mut handling = std::mem::take(&mut self.handling);
        let partition = &self.session.lease.partition.id;
        debug!(%partition, event = %event.id, trace_id = handling.trace_id().map(hex), why, "the event was put off");
        handling.put_off(why);
        self.instance = None;
        if self.holding.is_lost() { Input::Fenced } else { self.handled(Outcome::Deferred) }
    }

    async fn call(&mut self, entry: &Arc<Entry>, event: &Event, attempt: u32) -> Answer {
        if self.instance.as_ref().is_none_or(|instance| instance.is_spent()) {
            self.instance = None;
            match self.version.handler.instantiate(&self.session.lease.partition.id.to_string()).await {
                Ok(instance) => self.instance = Some(instance),
                Err(InstantiateError::NoCapacity) => return Answer::Deferred("the instance pool is full".into()),
                Err(error) => {
                    return Answer::Failed(Failure { kind: FailureKind::Trap, error: error.to_string() });
                }
            }
        }
        let Some(instance) = self.instance.as_mut() else { unreachable!("made above") };
        let call = Call {
            entry: &entry.at,
            event,
            recorded_at_ms: entry.recorded_at_ms,
            generation: self.session.lease.generation,
            attempt,
            trace_id: self.handling.trace_id(),
        };
        let host = EventCall {
            session: self.session.clone(),
            entry: entry.clone(),
            event_id: event.id.clone(),
            trace: self.handling.context(),
        };
        let answer = instance.call(&call, Box::new(host)).await;
        if !matches!(answer, Answer::Done(_)) {
            // Nothing of a failed call reaches the next.
            self.instance = None;
        }
        answer
    }

    fn done(&mut self, effects: Effects) -> Input {
        let bytes = effects.bytes();
        self.session.wrote(&effects.state);
        self.uncommitted.add(effects, std::mem::take(&mut self.handling));
        self.handled(Outcome::Done { bytes })
    }

    fn handled(&self, outcome: Outcome) -> Input {
        Input::Handled { outcome, chance: self.shared.machine.chance() }
    }

    fn failed(&mut self, entry: &Entry, event: &Event, attempt: u32, failure: Failure) -> Input {
        self.metrics.of(&entry.at).failed(failure.kind);
        let mut handling = std::mem::take(&mut self.handling);
        handling.failed(failure.kind.as_str(), &failure.error);
        warn!(
            partition = %self.session.lease.partition.id, entry = %entry.at.id, event = %event.id,
            trace_id = handling.trace_id().map(hex), attempt,
            kind = failure.kind.as_str(), error = failure.error, "a try failed"
        );
        self.handled(Outcome::Failed(failure))
    }
}
