//! What a handled event changes: collected during the call, applied in one commit.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Event;

/// What an emit takes besides its data: names, ids and headers.
const EMIT_BYTES: usize = 200;

/// A write to the partition's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// The value's name.
    pub name: String,
    /// The new value; none removes it.
    pub value: Option<Bytes>,
}

/// A validated event for the outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The event.
    pub event: Event,
    /// The field its key came from: the broker compares it with the category's when it is routed.
    pub key_field: Option<String>,
}

/// Everything that a call changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// At most one change a name.
    pub state: Vec<StateChange>,
    /// In the order of the emits.
    pub emits: Vec<Outgoing>,
}

impl Effects {
    /// Adds those of the next event: of two writes to one name the later one stands.
    pub fn append(&mut self, later: Self) {
        self.state.retain(|change| !later.state.iter().any(|other| other.name == change.name));
        self.state.extend(later.state);
        self.emits.extend(later.emits);
    }

    /// About how many bytes they are.
    pub fn bytes(&self) -> usize {
        let state = self.state.iter().map(|change| change.name.len() + change.value.as_ref().map_or(0, Bytes::len));
        let emits = self.emits.iter().map(|emit| EMIT_BYTES + emit.event.data.len());
        state.sum::<usize>() + emits.sum::<usize>()
    }
}
