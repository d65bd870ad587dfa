//! What a handled event changes: collected during the call, applied in one commit.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Event;

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
