//! The inline broker.

use std::collections::{BTreeMap, VecDeque};

use serde::de::DeserializeOwned;

use super::{Emitted, LogLine, Submission};
use crate::host::{Host, capture};
use crate::{Context, Disposition, Event, Handler, Incoming, Metadata, SequentialBy};

/// How many deliveries [`Harness::run`] makes before it calls the handler endless.
const RUN_DELIVERIES_MAX: usize = 10_000;
/// 2026-01-01T00:00:00Z: the harness has a clock of its own, one second an event.
const FIRST_RECORDED_AT_MS: u64 = 1_767_225_600_000;

/// Runs one handler: single-threaded, in submission order.
pub struct Harness<H> {
    handler: H,
    metadata: Metadata,
    states: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// Last sequence by category and key.
    sequences: BTreeMap<(String, String), u64>,
    /// Events that failed and were not done since, by id.
    failed: BTreeMap<String, Failed>,
    submitted: u64,
}

/// What stays the same, and what grows, when an event is delivered again.
struct Failed {
    sequence: u64,
    tries: u32,
}

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The event's id.
    pub id: String,
    /// What the host was told.
    pub disposition: Disposition,
    /// What it emitted; nothing unless it is done.
    pub emits: Vec<Emitted>,
    /// What it logged, also when it failed.
    pub logs: Vec<LogLine>,
}

impl Delivery {
    /// Panics with the reason unless the event was handled.
    #[allow(clippy::must_use_candidate, reason = "the check is what it is called for")]
    pub fn assert_done(self) -> Self {
        assert_eq!(self.disposition, Disposition::Done, "event {}", self.id);
        self
    }

    /// The emitted events of one type, in order.
    pub fn emitted<E: Event + DeserializeOwned>(&self) -> Vec<E> {
        self.emits
            .iter()
            .filter(|one| one.category == E::CATEGORY && one.name == E::NAME && one.version == E::VERSION)
            .map(|one| serde_json::from_slice(&one.data).expect("an emitted event parses as its type"))
            .collect()
    }
}

impl<H: Handler> Harness<H> {
    /// A harness with nothing delivered and no state.
    pub fn new(handler: H) -> Self {
        Self {
            handler,
            metadata: H::metadata(),
            states: BTreeMap::new(),
            sequences: BTreeMap::new(),
            failed: BTreeMap::new(),
            submitted: 0,
        }
    }

    /// What the handler declares.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Delivers one event: `&event`, or a [`Submission`].
    ///
    /// Panics if the handler does not declare the event's type: no host would deliver it.
    #[must_use = "look at the disposition, or call `assert_done`"]
    pub fn deliver(&mut self, event: impl Into<Submission>) -> Delivery {
        let submission = event.into();
        assert!(
            self.takes(&submission.category, &submission.name, submission.version),
            "the handler {} does not handle {}/{} version {}",
            self.metadata.name,
            submission.category,
            submission.name,
            submission.version,
        );
        let event = self.incoming(submission);
        let (id, sequence) = (event.id.clone(), event.sequence);
        let state_key = event.key.clone().unwrap_or_default();
        let state = self.states.get(&state_key).cloned().unwrap_or_default();
        let mut ctx = Context::new(event, Host::new(&id, state));

        let (answer, logs) = capture(|| self.handler.handle(&mut ctx));
        let host = ctx.host;
        let disposition = match (Disposition::from(answer), host.refused) {
            (Disposition::Done, Some(why)) => Disposition::Reject(format!("an emit was refused: {why}")),
            (disposition, _) => disposition,
        };
        let mut emits = Vec::new();
        if disposition == Disposition::Done {
            self.failed.remove(&id);
            self.states.insert(state_key, host.state);
            emits = host.emits;
        } else {
            self.failed.entry(id.clone()).or_insert(Failed { sequence, tries: 0 }).tries += 1;
        }
        Delivery { id, disposition, emits, logs }
    }

    /// Delivers an event, then whatever it emitted and this handler handles, until nothing is left.
    pub fn run(&mut self, event: impl Into<Submission>) -> Vec<Delivery> {
        let mut waiting = VecDeque::from([event.into()]);
        let mut deliveries = Vec::new();
        while let Some(next) = waiting.pop_front() {
            assert!(deliveries.len() < RUN_DELIVERIES_MAX, "still emitting after {RUN_DELIVERIES_MAX} deliveries");
            let delivery = self.deliver(next);
            let handled = delivery.emits.iter().filter(|one| self.takes(&one.category, &one.name, one.version));
            waiting.extend(handled.cloned().map(Submission::from));
            deliveries.push(delivery);
        }
        deliveries
    }

    /// A value of a key's state. For events without a key, the key is empty.
    ///
    /// Panics if the value is there but is not a `T`.
    pub fn state<T: DeserializeOwned>(&self, key: &str, name: &str) -> Option<T> {
        let bytes = self.state_bytes(key, name)?;
        Some(serde_json::from_slice(bytes).expect("the state parses as its type"))
    }

    /// A value's bytes.
    pub fn state_bytes(&self, key: &str, name: &str) -> Option<&[u8]> {
        self.states.get(key)?.get(name).map(Vec::as_slice)
    }

    /// The keys that have been handled, in order of their text.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.states.keys().map(String::as_str)
    }

    fn takes(&self, category: &str, name: &str, version: u32) -> bool {
        self.metadata.handles.iter().any(|one| one.category == category && one.name == name && one.version == version)
    }

    fn incoming(&mut self, submission: Submission) -> Incoming {
        let key = submission.key.clone().or_else(|| self.key_of(&submission));
        self.submitted += 1;
        let id = submission.id.unwrap_or_else(|| format!("event-{}", self.submitted));
        let stream = (submission.category.clone(), key.clone().unwrap_or_default());
        let (sequence, tries) = if let Some(failed) = self.failed.get(&id) {
            (failed.sequence, failed.tries)
        } else {
            let last = self.sequences.entry(stream).or_default();
            *last += 1;
            (*last, 0)
        };
        Incoming {
            attempt: submission.attempt.unwrap_or(tries + 1),
            id,
            category: submission.category,
            name: submission.name,
            version: submission.version,
            key,
            epoch: 1,
            sequence,
            generation: 1,
            recorded_at_ms: FIRST_RECORDED_AT_MS + 1000 * self.submitted,
            headers: submission.headers,
            data: submission.data,
        }
    }

    /// The value of the key field; none if there is no such field, or it cannot be a key.
    fn key_of(&self, submission: &Submission) -> Option<String> {
        let field = match &self.metadata.sequential_by {
            SequentialBy::Unordered => return None,
            SequentialBy::Field(field) => field,
            SequentialBy::Correlation(list) => {
                let of =
                    |one: &&crate::Correlation| one.category == submission.category && one.message == submission.name;
                list.iter().find(of)?.field
            }
        };
        let data: serde_json::Value = serde_json::from_slice(&submission.data).ok()?;
        match data.get(field)? {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
            _ => None,
        }
    }
}
