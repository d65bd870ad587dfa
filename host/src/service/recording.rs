//! A partition as it was, to be tried elsewhere: what the catalog says, the state of the key, its events.
//!
//! The state before an event is known only while the event is the head: a broker keeps one state a key. So what is recorded
//! begins at the head; or at the begin of the streams, if they are whole, without state.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use keyrail_broker::Head;
use keyrail_ordering::{
    Catalog, CategoryEntry, CategoryName, Content, Entry, EntryId, EntryRef, Event, GroupName, Key, KeyRules, Lane,
    MessageName, Metadata, PartitionId, PartitionSpec, Scope, StreamId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::operate::find;
use super::{EntryName, LaneName, OperationError, Service};

/// How often a key is looked at that is being worked on: its head must be the same before and after.
const LOOKS_MAX: usize = 5;

/// Where a recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordFrom {
    /// At the head, with the state as it is.
    #[default]
    Head,
    /// At the begin of the streams, without state.
    Start,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The handler.
    pub group: GroupName,
    /// Its version when this was recorded.
    pub handler_version: String,
    /// What the partition spans.
    pub scope: Scope,
    /// What a key must not be.
    pub key_rules: KeyRules,
    /// What was registered.
    pub categories: BTreeMap<CategoryName, CategoryEntry>,
    /// The state before the first entry.
    #[schemars(with = "Vec<(String, Written)>")]
    pub state: Vec<(String, Value)>,
    /// The events, in order.
    pub entries: Vec<RecordedEntry>,
    /// Tries of the first entry that failed, if it does not stand still: then it will have all its tries again.
    pub failed_tries: u32,
}

/// An event as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedEntry {
    /// Its place in its stream.
    pub entry: String,
    /// Its lane.
    pub lane: LaneName,
    /// When it was recorded, in milliseconds since 1970.
    pub recorded_at_ms: u64,
    /// The event's id.
    pub id: String,
    /// Its category.
    pub category: CategoryName,
    /// Its type.
    #[serde(rename = "type")]
    pub name: MessageName,
    /// The version of its type.
    pub version: u32,
    /// Its key.
    pub key: Option<Key>,
    /// Its headers, the host's too.
    pub headers: Vec<(String, String)>,
    /// Its data.
    #[schemars(with = "Written")]
    pub data: Value,
}

/// Bytes, exactly, but readable where they can be: `{"json":…}`, `{"text":…}` or `{"base64":…}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(pub Bytes);

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Written {
    Json(#[schemars(with = "serde_json::Value")] Box<RawValue>),
    Text(String),
    Base64(String),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match (serde_json::from_slice::<&RawValue>(&self.0), std::str::from_utf8(&self.0)) {
            // A reader gives back the text between the braces, without space around it; and it must stay on one line.
            (Ok(json), Ok(text)) if json.get() == text && !text.contains(['\n', '\r']) => {
                Written::Json(json.to_owned())
            }
            (_, Ok(text)) => Written::Text(text.into()),
            (_, Err(_)) => Written::Base64(STANDARD.encode(&self.0)),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::Json(json) => Bytes::copy_from_slice(json.get().as_bytes()),
            Written::Text(text) => text.into(),
            Written::Base64(text) => STANDARD.decode(text).map_err(serde::de::Error::custom)?.into(),
        }))
    }
}

impl Recording {
    /// The partition.
    pub fn partition(&self) -> PartitionId {
        PartitionId { group: self.group.clone(), scope: self.scope.clone() }
    }

    /// What was registered, with what this handler declares beyond it.
    pub fn catalog(&self, handler: &Metadata) -> Catalog {
        let mut categories = self.categories.clone();
        for message in &handler.handles {
            let category = categories.entry(message.category.clone()).or_default();
            let versions = category.messages.entry(message.name.clone()).or_default();
            versions.insert(message.version, message.fields.clone());
        }
        Catalog { key_rules: self.key_rules.clone(), categories, ..Catalog::default() }
    }
}

impl RecordedEntry {
    fn of(entry: &Entry, scope: &Scope) -> Result<Self, OperationError> {
        let why = match &entry.content {
            Content::Event(event) => {
                return Ok(Self {
                    entry: entry.at.id.to_string(),
                    lane: entry.at.stream.lane.into(),
                    recorded_at_ms: entry.recorded_at_ms,
                    id: event.id.to_string(),
                    category: event.category.clone(),
                    name: event.name.clone(),
                    version: event.version,
                    key: event.key.clone(),
                    headers: event.headers.clone(),
                    data: Value(event.data.clone()),
                });
            }
            Content::Undecodable(why) => format!("cannot be read as an event: {why}"),
            Content::Missing => "is gone from the broker".into(),
        };
        Err(OperationError::Conflict(format!(
            "{} {why}; no handler is ever called with it",
            EntryName::of(&entry.at, scope)
        )))
    }

    /// Where it stood.
    pub fn at(&self) -> Result<EntryRef, String> {
        let id: EntryId = self.entry.parse().map_err(|error: keyrail_ordering::ParseEntryIdError| error.to_string())?;
        let lane = Lane::from(self.lane);
        Ok(EntryRef { stream: StreamId { category: self.category.clone(), key: self.key.clone(), lane }, id })
    }

    /// The event.
    pub fn event(&self) -> Event {
        Event {
            id: self.id.as_str().into(),
            category: self.category.clone(),
            name: self.name.clone(),
            version: self.version,
            key: self.key.clone(),
            headers: self.headers.clone(),
            data: self.data.0.clone(),
        }
    }
}

impl Service {
    /// Records what a handler has on a key: up to `limit` events of each stream. Changes nothing.
    pub async fn recording(
        &self,
        (category, key, group): (&str, &str, Option<&str>),
        from: RecordFrom,
        limit: usize,
    ) -> Result<Recording, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let partitions = find::partitions(&catalog, category, key, group)?;
        let place = format!("{category}/{key}");
        let [partition] = &partitions[..] else {
            let groups: Vec<_> = partitions.iter().map(|partition| partition.id.group.to_string()).collect();
            let groups = groups.join(", ");
            return Err(OperationError::Usage(format!(
                "several handlers read {place}: {groups}; say which with --group"
            )));
        };
        let (state, entries, failed_tries) = match from {
            RecordFrom::Head => self.since_head(partition, limit).await?,
            RecordFrom::Start => (vec![], self.since_start(partition, limit).await?, 0),
        };
        let version = catalog.handlers.get(&partition.id.group).map(|handler| handler.metadata.version.clone());
        let scope = &partition.id.scope;
        Ok(Recording {
            group: partition.id.group.clone(),
            handler_version: version.unwrap_or_default(),
            scope: scope.clone(),
            key_rules: catalog.key_rules,
            categories: catalog.categories,
            state: state.into_iter().map(|(name, value)| (name, Value(value))).collect(),
            entries: entries.iter().map(|entry| RecordedEntry::of(entry, scope)).collect::<Result<_, _>>()?,
            failed_tries,
        })
    }

    async fn since_head(
        &self,
        partition: &PartitionSpec,
        limit: usize,
    ) -> Result<(Vec<(String, Bytes)>, Vec<Arc<Entry>>, u32), OperationError> {
        for _ in 0..LOOKS_MAX {
            let Some(head) = self.broker.head(partition).await? else {
                return Err(OperationError::Unknown(format!(
                    "nothing waits in {}: every event there is settled, and the state before it is not kept; --from start \
                     begins at the first event, if all are still there",
                    partition.id
                )));
            };
            let at = &head.entry.at;
            let mut snapshot = self.broker.snapshot(&partition.id, &[(at.stream.clone(), at.id)], limit).await?;
            let still = self.broker.head(partition).await?.is_some_and(|now| now.entry.at == *at);
            if still {
                snapshot.state.sort();
                // A head that is gone from its stream is not in the snapshot.
                if snapshot.entries.first().is_none_or(|first| first.at != *at) {
                    snapshot.entries.insert(0, head.entry.clone());
                }
                return Ok((snapshot.state, snapshot.entries, failed_tries(&head)));
            }
        }
        Err(OperationError::Conflict(format!(
            "{} is being worked on: its head moved {LOOKS_MAX} times; see keyrail pause",
            partition.id
        )))
    }

    async fn since_start(&self, partition: &PartitionSpec, limit: usize) -> Result<Vec<Arc<Entry>>, OperationError> {
        let streams: Vec<_> = partition.streams.iter().map(|stream| (stream.clone(), EntryId::new(0, 0))).collect();
        let mut entries = self.broker.snapshot(&partition.id, &streams, limit).await?.entries;
        for stream in entries.chunk_by(|one, next| one.at.stream == next.at.stream) {
            let whole =
                stream[0].at.id.sequence == 0 && stream.windows(2).all(|two| two[0].at.id.is_followed_by(two[1].at.id));
            if !whole {
                return Err(OperationError::Conflict(format!(
                    "the first event that is kept of {} is {}: what came before it is gone, and with it what the state was; \
                     record from the head, or have hosts keep settled events (retention.entries)",
                    partition.id,
                    EntryName::of(&stream[0].at, &partition.id.scope)
                )));
            }
        }
        if entries.is_empty() {
            return Err(OperationError::Unknown(format!("no event of {} is kept", partition.id)));
        }
        // Stable: within a stream the order stays.
        entries.sort_by_key(|entry| entry.recorded_at_ms);
        Ok(entries)
    }
}

fn failed_tries(head: &Head) -> u32 {
    match &head.halted {
        Some(_) => 0,
        None => head.attempts.as_ref().map_or(0, |record| record.attempts),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_readable_where_it_can_be() {
        let write = |bytes: &'static [u8]| serde_json::to_string(&Value(Bytes::from_static(bytes))).unwrap();
        assert_eq!(write(b"{\"a\": 1.50}"), r#"{"json":{"a": 1.50}}"#);
        assert_eq!(write(b" 1"), r#"{"text":" 1"}"#);
        assert_eq!(write(b"[1,\n2]"), r#"{"text":"[1,\n2]"}"#);
        assert_eq!(write(b"one\n"), r#"{"text":"one\n"}"#);
        assert_eq!(write(b"\xff"), r#"{"base64":"/w=="}"#);
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were(bytes: Vec<u8>, json in "[ \\[\\]0-9,\n]{0,8}") {
            for bytes in [bytes, json.into_bytes()] {
                let value = Value(bytes.into());
                let text = serde_json::to_string(&value).unwrap();
                prop_assert!(!text.contains('\n'));
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            }
        }
    }
}
