//! What a call has changed so far. Kept only if the guest answers `done`; then it is the effects of the event.
//!
//! Invariant: at most one change a name, and never more bytes or emits than the limits.

use std::collections::BTreeMap;

use bytes::Bytes;
use keyrail_ordering::{Effects, Outgoing, StateChange};

use crate::call::{CallHost, Emit, EmitRefusal};
use crate::limits::Limits;

const STATE_NAME_MAX_BYTES: usize = 128;

/// Why a state write was refused. The guest is told, and decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteRefusal {
    /// The name is not one, and what is allowed.
    InvalidName(String),
    /// Over this limit, in bytes.
    TooLarge(u64),
}

/// The limits that an overlay keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverlayLimits {
    value_max_bytes: u64,
    changes_max_bytes: u64,
    emit_max_bytes: u64,
    emits_max: u64,
}

impl From<&Limits> for OverlayLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            value_max_bytes: limits.state_value_max_bytes,
            changes_max_bytes: limits.state_changes_max_bytes,
            emit_max_bytes: limits.emit_max_bytes,
            emits_max: limits.emits_max,
        }
    }
}

/// The changes of one call.
#[derive(Debug)]
pub(crate) struct Overlay {
    limits: OverlayLimits,
    changes: BTreeMap<String, Option<Bytes>>,
    changes_bytes: u64,
    emits: Vec<Outgoing>,
    /// The first refused emit: it fails the event whatever the guest answers.
    refused_emit: Option<String>,
}

impl Overlay {
    pub(crate) fn new(limits: OverlayLimits) -> Self {
        Self { limits, changes: BTreeMap::new(), changes_bytes: 0, emits: Vec::new(), refused_emit: None }
    }

    /// What the call itself wrote under the name: a value, or its removal.
    pub(crate) fn get(&self, name: &str) -> Option<&Option<Bytes>> {
        self.changes.get(name)
    }

    /// Writes a value, or removes it.
    pub(crate) fn set(&mut self, name: String, value: Option<Bytes>) -> Result<(), WriteRefusal> {
        check_state_name(&name).map_err(WriteRefusal::InvalidName)?;
        let bytes_of = |value: &Option<Bytes>| (name.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
        if value.as_ref().is_some_and(|value| value.len() as u64 > self.limits.value_max_bytes) {
            return Err(WriteRefusal::TooLarge(self.limits.value_max_bytes));
        }
        let before = self.changes.get(&name).map_or(0, bytes_of);
        let total = self.changes_bytes - before + bytes_of(&value);
        if total > self.limits.changes_max_bytes {
            return Err(WriteRefusal::TooLarge(self.limits.changes_max_bytes));
        }
        self.changes_bytes = total;
        self.changes.insert(name, value);
        Ok(())
    }

    /// Adds an event; answers with its id.
    pub(crate) fn emit(&mut self, emit: Emit, host: &mut dyn CallHost) -> Result<String, EmitRefusal> {
        let outcome = self.accept(emit, host);
        match outcome {
            Ok(outgoing) => {
                let id = outgoing.event.id.as_ref().into();
                self.emits.push(outgoing);
                Ok(id)
            }
            Err(refusal) => {
                self.refused_emit.get_or_insert_with(|| format!("an emit was refused: {refusal}"));
                Err(refusal)
            }
        }
    }

    fn accept(&mut self, emit: Emit, host: &mut dyn CallHost) -> Result<Outgoing, EmitRefusal> {
        let limits = self.limits;
        if self.emits.len() as u64 >= limits.emits_max {
            return Err(EmitRefusal::Other(format!("one event emits at most {} others", limits.emits_max)));
        }
        let headers: usize = emit.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = emit.category.len() + emit.name.len() + headers + emit.data.len();
        if bytes as u64 > limits.emit_max_bytes {
            return Err(EmitRefusal::TooLarge(limits.emit_max_bytes));
        }
        host.accept(emit, self.emits.len() as u32)
    }

    /// Everything that the call changes, or why it must not change anything.
    pub(crate) fn into_effects(self) -> Result<Effects, String> {
        if let Some(refusal) = self.refused_emit {
            return Err(refusal);
        }
        let state = self.changes.into_iter().map(|(name, value)| StateChange { name, value }).collect();
        Ok(Effects { state, emits: self.emits })
    }
}

/// Whether a state value may have this name; otherwise what is allowed.
pub(crate) fn check_state_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
    if (1..=STATE_NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        Ok(())
    } else {
        let shown = &name[..name.floor_char_boundary(STATE_NAME_MAX_BYTES + 1)];
        Err(format!("state name {shown:?} is not 1 to {STATE_NAME_MAX_BYTES} bytes of [A-Za-z0-9_.:-]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay() -> Overlay {
        let limits = OverlayLimits { value_max_bytes: 10, changes_max_bytes: 20, emit_max_bytes: 10, emits_max: 1 };
        Overlay::new(limits)
    }

    #[test]
    fn the_last_write_of_a_name_counts_and_is_seen() {
        let mut overlay = overlay();
        assert_eq!(overlay.get("a"), None);
        overlay.set("a".into(), Some("1".into())).unwrap();
        overlay.set("b".into(), Some("1".into())).unwrap();
        overlay.set("a".into(), Some("2".into())).unwrap();
        overlay.set("b".into(), None).unwrap();
        assert_eq!(overlay.get("a"), Some(&Some("2".into())));
        assert_eq!(overlay.get("b"), Some(&None), "removed, not unknown");
        let state = overlay.into_effects().unwrap().state;
        assert_eq!(
            state,
            [StateChange { name: "a".into(), value: Some("2".into()) }, StateChange { name: "b".into(), value: None }]
        );
    }

    #[test]
    fn a_replaced_value_does_not_count_twice() {
        let mut overlay = overlay();
        for _ in 0..100 {
            overlay.set("a".into(), Some("123456789".into())).unwrap();
        }
        overlay.set("b".into(), Some("12345678".into())).unwrap();
        assert_eq!(overlay.set("c".into(), Some("1".into())), Err(WriteRefusal::TooLarge(20)));
        overlay.set("a".into(), None).unwrap();
        overlay.set("c".into(), Some("1".into())).unwrap();
        assert_eq!(overlay.set("d".into(), Some("12345678901".into())), Err(WriteRefusal::TooLarge(10)));
    }

    #[test]
    fn names_of_the_form_are_accepted_and_no_others() {
        for name in ["a", "A-1_b.c:d", &"x".repeat(128)] {
            assert_eq!(check_state_name(name), Ok(()));
        }
        for name in ["", "a b", "ä", "a/b", "a\0", &"x".repeat(129), &"é".repeat(1_000)] {
            assert!(check_state_name(name).unwrap_err().contains("[A-Za-z0-9_.:-]"), "{name}");
        }
    }
}
