//! The host's side of one handler call: state reads and emits.
//!
//! The owner of a partition is the only writer of its state, so what was read once is kept for as long as the lease is,
//! within a bound. What handled events wrote is seen by the next ones before it is committed; any call that may or may not have
//! happened empties all of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_broker::FencedError;
use keyrail_ordering::{
    Catalog, Content, Entry, EntryRef, Event, EventError, GroupName, Lease, Outgoing, StateChange, TraceContext,
};
use keyrail_runtime::{CallHost, Emit, EmitRefusal};
use sha2::{Digest, Sha256};

use super::holdings::Holding;
use super::shared::Shared;
use crate::telemetry::metrics::LossCause;
use crate::telemetry::traces::hand_on;

/// Headers of this prefix are the host's.
pub(crate) const HOST_HEADER_PREFIX: &str = "keyrail-";
/// The header that names the event which caused an emit.
const CAUSE_HEADER: &str = "keyrail-cause";

/// Why a handler of a category without partitions gets no state.
pub(crate) const NO_STATE: &str =
    "the category is not partitioned, so nothing orders state; declare sequential-by, or keep no state";

/// One ownership, as its calls see it.
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) holding: Arc<Holding>,
    pub(super) lease: Lease,
    state: Mutex<StateCache>,
}

#[derive(Default)]
struct StateCache {
    values: HashMap<String, Option<Bytes>>,
    /// Written by events that are handled and not committed.
    uncommitted: HashMap<String, Option<Bytes>>,
    /// Whether a name that is not in `values` has no value.
    complete: bool,
    bytes: usize,
}

/// What the cache knows of a name.
enum Known {
    Value(Option<Bytes>),
    Nothing,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        holding: Arc<Holding>,
        lease: Lease,
        prefetched: Option<Vec<(String, Bytes)>>,
    ) -> Self {
        let mut state = StateCache { complete: prefetched.is_some(), ..StateCache::default() };
        for (name, value) in prefetched.into_iter().flatten() {
            state.set(name, Some(value));
        }
        Self { shared, holding, lease, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, StateCache> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By an event that is handled and not committed yet.
    pub(super) fn wrote(&self, changes: &[StateChange]) {
        if !changes.is_empty() {
            self.lock().uncommitted.extend(changes.iter().map(|change| (change.name.clone(), change.value.clone())));
        }
    }

    /// All of that is committed.
    pub(super) fn committed(&self) {
        let mut state = self.lock();
        let mut written = std::mem::take(&mut state.uncommitted);
        for (name, value) in written.drain() {
            state.set(name, value);
        }
        // With the room that it has, for the next.
        state.uncommitted = written;
        if state.bytes > self.shared.config.state_cache_max_bytes {
            *state = StateCache::default();
        }
    }

    /// What is kept may be wrong.
    pub(super) fn forget(&self) {
        *self.lock() = StateCache::default();
    }
}

impl StateCache {
    fn get(&self, name: &str) -> Known {
        match self.uncommitted.get(name).or_else(|| self.values.get(name)) {
            Some(value) => Known::Value(value.clone()),
            None if self.complete => Known::Value(None),
            None => Known::Nothing,
        }
    }

    fn set(&mut self, name: String, value: Option<Bytes>) {
        let size = |name: &str, value: &Option<Bytes>| name.len() + value.as_ref().map_or(0, Bytes::len);
        self.bytes += size(&name, &value);
        let name_bytes = name.len();
        if let Some(before) = self.values.insert(name, value) {
            self.bytes -= name_bytes + before.map_or(0, |before| before.len());
        }
    }
}

/// The call for one event.
pub(super) struct EventCall {
    pub(super) session: Arc<Session>,
    pub(super) entry: Arc<Entry>,
    /// The id of the event in `entry`.
    pub(super) event_id: Arc<str>,
    /// What emitted events come from, see [`hand_on`].
    pub(super) trace: Option<TraceContext>,
}

#[async_trait]
impl CallHost for EventCall {
    async fn state(&mut self, name: &str) -> Result<Option<Bytes>, String> {
        if let Known::Value(value) = self.session.lock().get(name) {
            return Ok(value);
        }
        let session = &self.session;
        match session.shared.broker.state(&session.lease, name).await {
            Ok(value) => {
                session.lock().set(name.into(), value.clone());
                Ok(value)
            }
            Err(error) => {
                session.shared.metrics().fenced_call_failed(&error);
                if matches!(error, FencedError::Fenced) {
                    session.holding.lose(LossCause::Fenced);
                }
                Err(error.to_string())
            }
        }
    }

    fn accept(&mut self, emit: Emit, nth: u32) -> Result<Outgoing, EmitRefusal> {
        let (catalog, group) = (self.session.shared.catalog(), &self.session.lease.partition.id.group);
        let accepted = accept(&catalog, group, &self.entry.at, &self.event_id, emit, nth);
        accepted.map(|outgoing| traced(outgoing, &self.entry, self.trace))
    }
}

/// The call for one event of a category that is not partitioned.
pub(super) struct SharedCall {
    pub(super) shared: Arc<Shared>,
    pub(super) group: GroupName,
    pub(super) entry: Arc<Entry>,
    /// The id of the event in `entry`.
    pub(super) event_id: Arc<str>,
    /// Set when the guest asks for state: there is none, since nothing orders it.
    pub(super) wanted_state: Arc<AtomicBool>,
    /// What emitted events come from, see [`hand_on`].
    pub(super) trace: Option<TraceContext>,
}

#[async_trait]
impl CallHost for SharedCall {
    async fn state(&mut self, _: &str) -> Result<Option<Bytes>, String> {
        self.wanted_state.store(true, Relaxed);
        Err(NO_STATE.into())
    }

    fn accept(&mut self, emit: Emit, nth: u32) -> Result<Outgoing, EmitRefusal> {
        let accepted = accept(&self.shared.catalog(), &self.group, &self.entry.at, &self.event_id, emit, nth);
        accepted.map(|outgoing| traced(outgoing, &self.entry, self.trace))
    }
}

/// The emitted event goes on in the trace of the event that caused it.
fn traced(mut outgoing: Outgoing, cause: &Entry, trace: Option<TraceContext>) -> Outgoing {
    if let Content::Event(event) = &cause.content {
        hand_on(&mut outgoing.event.headers, event, trace);
    }
    outgoing
}

/// Checks what a call emits, and makes an event of it.
pub(crate) fn accept(
    catalog: &Catalog,
    group: &GroupName,
    cause: &EntryRef,
    cause_id: &str,
    emit: Emit,
    nth: u32,
) -> Result<Outgoing, EmitRefusal> {
    if let Some((name, _)) = emit.headers.iter().find(|(name, _)| name.starts_with(HOST_HEADER_PREFIX)) {
        let why = format!("the header {name:?}: names that start with {HOST_HEADER_PREFIX} are the host's");
        return Err(EmitRefusal::InvalidData(why));
    }
    let accepted =
        catalog.accept(&emit.category, &emit.name, Some(emit.version), &emit.data).map_err(|error| refusal(&error))?;
    let mut headers = emit.headers;
    headers.push((CAUSE_HEADER.into(), cause_id.to_string()));
    let event = Event {
        id: emit_id(group, cause, cause_id, nth),
        category: accepted.category,
        name: accepted.name,
        version: accepted.version,
        key: accepted.key,
        headers,
        data: emit.data,
    };
    Ok(Outgoing { event, key_field: accepted.key_field })
}

/// The same for the n-th emit of this entry by this group in every try, and different for every other.
pub(crate) fn emit_id(group: &GroupName, cause: &EntryRef, cause_id: &str, nth: u32) -> Arc<str> {
    let digest = Sha256::digest(format!("{group}\n{cause}\n{cause_id}\n{nth}").as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    format!("{:032x}", u128::from_be_bytes(id)).into()
}

fn refusal(error: &EventError) -> EmitRefusal {
    let text = error.to_string();
    match error {
        EventError::Name(_) | EventError::UnknownCategory { .. } => EmitRefusal::UnknownCategory(text),
        EventError::UnknownMessage { .. } | EventError::UnknownVersion { .. } => EmitRefusal::UnknownMessage(text),
        EventError::Key { .. } => EmitRefusal::InvalidKey(text),
        EventError::NotAnObject { .. } | EventError::FieldMissing { .. } | EventError::FieldType { .. } => {
            EmitRefusal::InvalidData(text)
        }
    }
}
