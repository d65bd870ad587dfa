//! What came of a rehearsal, as lines of JSON: what `keyrail test` prints with `--json` and compares with `--expect`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyrail_ordering::{
    CategoryName, FailureKind, GroupName, HaltCause, Key, MessageName, Outgoing, PartitionId, Scope,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Ending, Happened, State};
use crate::engine::call::HOST_HEADER_PREFIX;

/// One line.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Record {
    /// What became of an event.
    Event {
        /// The line that it stands on, or that it followed from.
        line: u64,
        /// The handler that emitted it.
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted_by: Option<GroupName>,
        /// Who handled it.
        handler: GroupName,
        /// The event's category.
        category: CategoryName,
        /// Its key.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<Key>,
        /// Its type.
        #[serde(rename = "type")]
        name: MessageName,
        /// How it ended.
        result: Outcome,
        /// How often it was tried.
        tries: usize,
        /// What each failed try said. Only what the handler itself said: the rest differs from build to build.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        failures: Vec<String>,
    },
    /// An event that was emitted.
    Emit {
        /// By whom.
        handler: GroupName,
        /// For which category; none for a process manager.
        #[serde(skip_serializing_if = "Option::is_none")]
        category: Option<CategoryName>,
        /// For which key.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<Key>,
        /// What, in the form of a line of `keyrail publish`.
        emits: Emitted,
    },
    /// A value of a key's state at the end.
    State {
        /// Whose.
        handler: GroupName,
        /// Of which category; none for a process manager.
        #[serde(skip_serializing_if = "Option::is_none")]
        category: Option<CategoryName>,
        /// Of which key.
        key: Key,
        /// Its name.
        name: String,
        /// JSON as it is, other text as `{"text":…}`, anything else as `{"base64":…}`.
        value: Box<RawValue>,
    },
}

/// How an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its effects are kept.
    Done,
    /// The handler does not handle the type.
    NotHandled,
    /// The handler rejected it.
    Rejected,
    /// It used up its tries.
    Poison,
    /// Its key stands still on an earlier event.
    Behind,
}

/// An emitted event.
#[derive(Debug, Clone, Serialize)]
pub struct Emitted {
    category: CategoryName,
    #[serde(rename = "type")]
    name: MessageName,
    version: u32,
    data: Box<RawValue>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    headers: serde_json::Map<String, serde_json::Value>,
}

impl From<&Outgoing> for Emitted {
    fn from(outgoing: &Outgoing) -> Self {
        let event = &outgoing.event;
        let own = event.headers.iter().filter(|(name, _)| !name.starts_with(HOST_HEADER_PREFIX));
        Self {
            category: event.category.clone(),
            name: event.name.clone(),
            version: event.version,
            data: shown_value(&event.data),
            headers: own.map(|(name, value)| (name.clone(), value.clone().into())).collect(),
        }
    }
}

impl Record {
    /// What became of an event.
    pub fn of_event(line: u64, happened: &Happened) -> Self {
        let handled = &happened.handled;
        let (result, last) = match &handled.ending {
            Ending::Done(_) => (Outcome::Done, 1),
            Ending::NotHandled => (Outcome::NotHandled, 0),
            Ending::Behind => (Outcome::Behind, 0),
            Ending::GivenUp(HaltCause::Rejected) => (Outcome::Rejected, 0),
            Ending::GivenUp(_) => (Outcome::Poison, 0),
        };
        let failures = handled.failures.iter().map(|failure| match failure.kind {
            FailureKind::Retry { .. } | FailureKind::Rejected => {
                format!("{}: {}", failure.kind.as_str(), failure.error)
            }
            kind => kind.as_str().into(),
        });
        Self::Event {
            line,
            emitted_by: happened.emitted_by.clone(),
            handler: happened.handler.clone(),
            category: happened.event.category.clone(),
            key: happened.event.key.clone(),
            name: happened.event.name.clone(),
            result,
            tries: handled.failures.len() + last,
            failures: failures.collect(),
        }
    }

    /// What an event emitted.
    pub fn of_emits(happened: &Happened) -> impl Iterator<Item = Self> {
        let (category, key) = happened.partition.as_ref().map_or((None, None), |partition| {
            let (category, key) = place(partition);
            (category, Some(key))
        });
        happened.handled.emits().iter().map(move |outgoing| Self::Emit {
            handler: happened.handler.clone(),
            category: category.clone(),
            key: key.clone(),
            emits: outgoing.into(),
        })
    }

    /// A key's state.
    pub fn of_state(partition: &PartitionId, state: &State) -> impl Iterator<Item = Self> {
        let (category, key) = place(partition);
        state.iter().map(move |(name, value)| Self::State {
            handler: partition.group.clone(),
            category: category.clone(),
            key: key.clone(),
            name: name.clone(),
            value: shown_value(value),
        })
    }
}

fn place(partition: &PartitionId) -> (Option<CategoryName>, Key) {
    match &partition.scope {
        Scope::Key { category, key } => (Some(category.clone()), key.clone()),
        Scope::Correlation { value } => (None, value.clone()),
    }
}

/// A value on one line: JSON as it is, other text as `{"text":…}`, anything else as `{"base64":…}`.
pub fn shown_value(value: &[u8]) -> Box<RawValue> {
    if let Ok(json) = serde_json::from_slice::<&RawValue>(value) {
        // Within JSON a line break can only be white space between its parts.
        let on_one_line = json.get().replace(['\n', '\r'], " ");
        if let Ok(json) = RawValue::from_string(on_one_line) {
            return json;
        }
    }
    let shown = match std::str::from_utf8(value) {
        Ok(text) => serde_json::json!({ "text": text }),
        Err(_) => serde_json::json!({ "base64": STANDARD.encode(value) }),
    };
    RawValue::from_string(shown.to_string()).unwrap_or_default()
}
