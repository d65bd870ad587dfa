//! Partitions and states as they are shown: flat, in JSON, each on one line.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use keyrail_broker::{PartitionRow, StateRow, VersionSince};
use keyrail_ordering::{CategoryName, EntryId, Generation, GroupName, HaltRecord, Key, OwnerId, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::operate::EntryName;

/// One partition, flat, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The handler's group.
    pub group: GroupName,
    /// The category; none for a process manager.
    pub category: Option<CategoryName>,
    /// The key, or the correlation value.
    pub key: Key,
    /// The last entry, as `epoch-sequence`.
    pub last: Option<String>,
    /// The last settled entry.
    pub settled: Option<String>,
    /// Entries that are not settled.
    pub waiting: u64,
    /// Who owns it now, or owned it last.
    pub owner: Option<OwnerId>,
    /// Whether the owner holds the lease now.
    pub owned: bool,
    /// At which change of hands.
    pub generation: Option<Generation>,
    /// Failed tries of the head.
    pub attempts: u32,
    /// Why it stands still, if it does.
    pub halted: Option<Halted>,
    /// Whether it is paused, by itself or with its category.
    pub paused: bool,
    /// The versions that handled its events, oldest first, the last eight.
    #[serde(default)]
    pub versions: Vec<VersionView>,
}

/// From where on a version handled the events of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionView {
    /// The version, and the revision that was deployed: `1.4.0#7`.
    pub version: String,
    /// The first entry that it handled.
    pub since: String,
}

/// Why a partition stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Halted {
    /// The category of the entry it stands on.
    pub category: CategoryName,
    /// The entry it stands on, as `--expect` of `keyrail head` takes it.
    pub head: String,
    /// The kind.
    pub cause: String,
    /// Failed tries.
    pub attempts: u32,
    /// What the last one said.
    pub error: String,
    /// The version of the handler that failed.
    pub handler_version: String,
}

/// The state of one key; values as JSON.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// The key, or the correlation value.
    pub key: Key,
    /// The category, where the group consumes several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub category: Option<CategoryName>,
    /// Its values by name: JSON as it is, anything else as `{"base64":…}`.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub state: Values,
}

/// Named JSON values in their order.
#[derive(Debug)]
pub struct Values(pub Vec<(String, Box<RawValue>)>);

impl Row {
    pub(super) fn new(row: PartitionRow, paused: bool) -> Self {
        let text = |id: EntryId| id.to_string();
        let scope = row.partition.scope.clone();
        let (category, key) = match row.partition.scope {
            Scope::Key { category, key } => (Some(category), key),
            Scope::Correlation { value } => (None, value),
        };
        Self {
            group: row.partition.group,
            category,
            key,
            last: row.last.map(text),
            settled: row.settled.map(text),
            waiting: row.waiting,
            owner: row.owner,
            owned: row.owned,
            generation: row.generation,
            // The record of tries ends before the one that halts it.
            attempts: row.halted.as_ref().map_or(row.attempts, |record| record.attempts),
            halted: row.halted.map(|record| Halted::new(record, &scope)),
            paused,
            versions: row.versions.into_iter().map(|since| VersionView::new(since, &scope)).collect(),
        }
    }
}

impl VersionView {
    fn new(since: VersionSince, scope: &Scope) -> Self {
        Self { version: since.version, since: EntryName::of(&since.from, scope).to_string() }
    }
}

impl Halted {
    pub(super) fn new(record: HaltRecord, scope: &Scope) -> Self {
        Self {
            head: EntryName::of(&record.head, scope).to_string(),
            category: record.head.stream.category,
            cause: record.cause.to_string(),
            attempts: record.attempts,
            error: record.error,
            handler_version: record.handler_version,
        }
    }
}

/// `with_category`: the group has several, so that a key alone does not say which.
pub(super) fn shown(row: StateRow, with_category: bool) -> State {
    let values = row.values.into_iter().map(|(name, value)| (name, as_json(&value))).collect();
    State { key: row.key, category: row.category.filter(|_| with_category), state: Values(values) }
}

/// The value on one line: JSON as it is, anything else as base64.
pub(super) fn as_json(value: &Bytes) -> Box<RawValue> {
    let json = serde_json::from_slice::<&RawValue>(value).ok().and_then(|raw| {
        // Within JSON a line break can only be white space between its parts.
        RawValue::from_string(raw.get().replace(['\n', '\r'], " ")).ok()
    });
    json.unwrap_or_else(|| {
        let text = format!("{{\"base64\":\"{}\"}}", STANDARD.encode(value));
        RawValue::from_string(text).unwrap_or_default()
    })
}

impl Serialize for Values {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = vec![];
                while let Some(value) = map.next_entry()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_value_is_shown_as_json_on_one_line_or_as_base64() {
        let show = |bytes: &'static [u8]| as_json(&Bytes::from_static(bytes)).get().to_string();
        assert_eq!(show(b"{\"a\": 12345678901234567890}"), "{\"a\": 12345678901234567890}");
        assert_eq!(show(b"{\n\"a\\n\":1\r\n}"), "{ \"a\\n\":1  }");
        assert_eq!(show(b"\xff\x00"), "{\"base64\":\"/wA=\"}");
        assert_eq!(show(b""), "{\"base64\":\"\"}");
    }

    #[test]
    fn state_goes_over_the_wire_and_back() {
        let text = r#"{"key":"k1","state":{"b":{"x":1.50},"a":[]}}"#;
        let state: State = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
    }
}
