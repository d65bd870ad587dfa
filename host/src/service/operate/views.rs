//! Heads, dead letters, pauses as they are shown: in JSON, each on one line. Times are RFC 3339 in UTC.

use jiff::Timestamp;
use keyrail_broker::{DeadLetter, Head, Paused};
use keyrail_ordering::{Catalog, CategoryName, Content, GroupName, HaltRecord, Key, OwnerId, PartitionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::rows::{Halted, as_json};
use super::super::{LaneName, rows};
use super::{EntryName, find};

/// Who does something, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhoAndWhy {
    /// A name, an address.
    pub who: String,
    /// Goes on record.
    pub reason: String,
}

/// The oldest unsettled event of a partition.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeadView {
    /// The handler's group.
    pub group: GroupName,
    /// The category of the event; a process manager has several.
    pub category: CategoryName,
    /// The key, or the correlation value.
    pub key: Key,
    /// Its entry, as `--expect` takes it.
    pub entry: String,
    /// Its lane.
    pub lane: LaneName,
    /// When it was recorded; none if that is not known.
    pub recorded_at: Option<String>,
    /// What it holds.
    pub content: ContentView,
    /// Failed tries.
    pub attempts: u32,
    /// Hosts that died while it was the head.
    pub crashes: u32,
    /// When it is tried again.
    pub next_try: NextTry,
    /// What the last failed try said, in full.
    pub last_error: Option<String>,
    /// Why the partition stands still on it, if it does.
    pub halted: Option<Halted>,
    /// Who holds the partition now.
    pub owner: Option<OwnerId>,
    /// Events that wait, this one included.
    pub waiting: u64,
    /// Whether the partition is paused.
    pub paused: bool,
}

/// When a head is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NextTry {
    /// Somebody holds the partition and is at it.
    Running,
    /// As soon as a host takes it.
    Due,
    /// After a wait.
    InMs(u64),
    /// Not before an operator decides, or resumes.
    Never,
}

/// What an entry holds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContentView {
    /// An event.
    Event(EventView),
    /// Bytes that cannot be read as an event, and why.
    Undecodable(String),
    /// It is gone: deleted or trimmed by somebody else.
    Missing,
}

/// An event.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    /// Its own id.
    pub id: String,
    /// The message type.
    #[serde(rename = "type")]
    pub name: String,
    /// Its version.
    pub version: u32,
    /// Free headers, in their order.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub headers: rows::Values,
    /// JSON as it is, anything else as `{"base64":…}`.
    #[schemars(with = "serde_json::Value")]
    pub data: Box<RawValue>,
}

/// An event that was set aside.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterView {
    /// Its id among the dead letters of this category and key.
    pub id: String,
    /// The category.
    pub category: CategoryName,
    /// The key; none in a category that is not partitioned.
    pub key: Option<Key>,
    /// The group that did not handle it.
    pub group: GroupName,
    /// Where it stood.
    pub origin: String,
    /// The lane that it stood in.
    pub lane: LaneName,
    /// The event; id and type are empty if it could not be read.
    pub event: EventView,
    /// Failed tries.
    pub attempts: u32,
    /// What the last one said.
    pub error: String,
    /// Who set it aside.
    pub who: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: String,
}

/// What was paused.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PausedView {
    /// The category.
    pub category: CategoryName,
    /// The key; none for the whole category.
    pub key: Option<Key>,
    /// Who.
    pub who: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: String,
}

/// One action on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditView {
    /// When.
    pub at: String,
    /// What: `retry`, `skip`, `set-aside`, `redrive`, `purge`, `pause`, `resume`.
    pub action: String,
    /// On what.
    pub target: String,
    /// The entry that it named; empty for none.
    pub entry: String,
    /// Who.
    pub who: String,
    /// Why.
    pub reason: String,
}

/// A partition that stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HaltedRow {
    /// The handler's group.
    pub group: GroupName,
    /// The key, or the correlation value.
    pub key: Key,
    /// Where and why.
    #[serde(flatten)]
    pub halted: Halted,
}

impl HaltedRow {
    pub(super) fn new(partition: PartitionId, record: HaltRecord) -> Self {
        let halted = Halted::new(record, &partition.scope);
        Self { key: partition.key().clone(), group: partition.group, halted }
    }
}

impl From<Paused> for PausedView {
    fn from(paused: Paused) -> Self {
        let Paused { category, key, by, at_ms } = paused;
        Self { category, key, who: by.who, reason: by.reason, at: timestamp(at_ms) }
    }
}

pub(super) fn head_view(partition: &PartitionId, head: &Head) -> HeadView {
    let entry = &head.entry;
    let attempts = head.attempts.as_ref();
    let next_try = match attempts.map_or(0, |record| record.wait_ms) {
        _ if head.halted.is_some() || head.paused => NextTry::Never,
        _ if head.owner.is_some() => NextTry::Running,
        0 => NextTry::Due,
        wait_ms => NextTry::InMs(wait_ms),
    };
    let last_error = head.halted.as_ref().map(|record| &record.error).or(attempts.map(|record| &record.last_error));
    HeadView {
        group: partition.group.clone(),
        category: entry.at.stream.category.clone(),
        key: partition.key().clone(),
        entry: EntryName::of(&entry.at, &partition.scope).to_string(),
        lane: entry.at.stream.lane.into(),
        recorded_at: (entry.recorded_at_ms > 0).then(|| timestamp(entry.recorded_at_ms)),
        content: match &entry.content {
            Content::Event(event) => ContentView::Event(EventView {
                id: event.id.to_string(),
                name: event.name.to_string(),
                version: event.version,
                headers: headers(&event.headers),
                data: as_json(&event.data),
            }),
            Content::Undecodable(why) => ContentView::Undecodable(why.clone()),
            Content::Missing => ContentView::Missing,
        },
        attempts: head.halted.as_ref().map(|record| record.attempts).or(attempts.map(|r| r.attempts)).unwrap_or(0),
        crashes: attempts.map_or(0, |record| record.crashes),
        next_try,
        last_error: last_error.filter(|error| !error.is_empty()).cloned(),
        halted: head.halted.clone().map(|record| Halted::new(record, &partition.scope)),
        owner: head.owner.clone(),
        waiting: head.waiting,
        paused: head.paused,
    }
}

pub(super) fn dead_letter_view(catalog: &Catalog, letter: &DeadLetter) -> DeadLetterView {
    let with_category = find::is_process_manager(catalog, &letter.group);
    DeadLetterView {
        id: letter.id.to_string(),
        category: letter.category.clone(),
        key: letter.key.clone(),
        group: letter.group.clone(),
        origin: EntryName::in_stream(&letter.origin.stream, with_category, letter.origin.id).to_string(),
        lane: letter.origin.stream.lane.into(),
        event: EventView {
            id: letter.event_id.clone(),
            name: letter.name.clone(),
            version: letter.version,
            headers: headers(&letter.headers),
            data: as_json(&letter.data),
        },
        attempts: letter.attempts,
        error: letter.error.clone(),
        who: letter.by.who.clone(),
        reason: letter.by.reason.clone(),
        at: timestamp(letter.at_ms),
    }
}

pub(in crate::service) fn headers(headers: &[(String, String)]) -> rows::Values {
    let quoted = |value: &String| serde_json::value::to_raw_value(value).unwrap_or_default();
    rows::Values(headers.iter().map(|(name, value)| (name.clone(), quoted(value))).collect())
}

/// Milliseconds since 1970 as RFC 3339 in UTC.
pub(in crate::service) fn timestamp(at_ms: u64) -> String {
    let known = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    known.map_or_else(|| format!("{at_ms} ms after 1970"), |timestamp| format!("{timestamp:.3}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(timestamp(1_700_000_000_007), "2023-11-14T22:13:20.007Z");
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert!(timestamp(u64::MAX).ends_with("after 1970"));
    }
}
