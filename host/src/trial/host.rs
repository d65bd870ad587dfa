//! What a call asks of the host, answered from a snapshot.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{Catalog, CategoryName, EntryRef, Event, GroupName, MessageName, Outgoing};
use keyrail_runtime::{CallHost, Emit, EmitRefusal};

use super::{Case, State};
use crate::engine::call::{NO_STATE, accept, emit_id};

/// What becomes of an emit to a category that the catalog does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emits {
    /// It is refused, as on a host.
    Checked,
    /// It is accepted with a note, if it could be an event at all: who tests one handler alone need not have the others.
    ToAnywhere,
}

/// What was noticed during a call.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// It asked for state where there is none.
    pub(super) wanted_state: bool,
    pub(super) notes: Vec<String>,
}

/// Shared by a call and who looks at it afterwards.
#[derive(Debug, Clone, Default)]
pub(super) struct SeenCell(Arc<Mutex<Seen>>);

impl SeenCell {
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

pub(super) struct TrialHost {
    group: GroupName,
    catalog: Arc<Catalog>,
    emits: Emits,
    cause: EntryRef,
    cause_id: Arc<str>,
    /// None in a category that is not partitioned.
    state: Option<Arc<State>>,
    seen: SeenCell,
}

impl TrialHost {
    pub(super) fn new(group: GroupName, catalog: &Arc<Catalog>, emits: Emits, case: &Case<'_>) -> Self {
        Self {
            group,
            catalog: catalog.clone(),
            emits,
            cause: case.entry.clone(),
            cause_id: case.event.id.clone(),
            state: case.partition.map(|_| case.state.clone()),
            seen: SeenCell::default(),
        }
    }

    pub(super) fn seen(&self) -> SeenCell {
        self.seen.clone()
    }

    /// An event for a category that nobody here declares: its names and its data are checked, nothing else can be.
    fn unchecked(&self, emit: Emit, nth: u32) -> Result<Outgoing, EmitRefusal> {
        let category =
            CategoryName::parse(&emit.category).map_err(|error| EmitRefusal::UnknownCategory(error.to_string()))?;
        let name = MessageName::parse(&emit.name).map_err(|error| EmitRefusal::UnknownMessage(error.to_string()))?;
        serde_json::from_slice::<serde_json::Map<_, _>>(&emit.data)
            .map_err(|error| EmitRefusal::InvalidData(format!("the data is not a JSON object: {error}")))?;
        let note = format!("no handler here declares {category}/{name}: the emit was accepted unchecked");
        self.seen.with(|seen| {
            if !seen.notes.contains(&note) {
                seen.notes.push(note);
            }
        });
        let event = Event {
            id: emit_id(&self.group, &self.cause, &self.cause_id, nth),
            category,
            name,
            version: emit.version,
            key: None,
            headers: emit.headers,
            data: emit.data,
        };
        Ok(Outgoing { event, key_field: None })
    }
}

#[async_trait]
impl CallHost for TrialHost {
    async fn state(&mut self, name: &str) -> Result<Option<Bytes>, String> {
        let Some(state) = &self.state else {
            self.seen.with(|seen| seen.wanted_state = true);
            return Err(NO_STATE.into());
        };
        Ok(state.get(name).cloned())
    }

    fn accept(&mut self, emit: Emit, nth: u32) -> Result<Outgoing, EmitRefusal> {
        let accepted = accept(&self.catalog, &self.group, &self.cause, &self.cause_id, emit.clone(), nth);
        match accepted {
            Err(EmitRefusal::UnknownCategory(_)) if self.emits == Emits::ToAnywhere => self.unchecked(emit, nth),
            accepted => accepted,
        }
    }
}
