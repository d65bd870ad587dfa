//! Publishing: events on their way in, and what became of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::{LaneName, Outcome};

/// Query of `POST /v1/publish`, whose body is JSON Lines.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PublishQuery {
    /// Leave bad lines out in place of stopping at the first.
    pub skip_bad: bool,
    /// Do not remember ids.
    pub no_dedupe: bool,
    /// The lane of lines that name none.
    pub lane: LaneName,
    /// Number of the body's first line, for reports; 0 and 1 are the same.
    pub first_line: u64,
}

/// A line of the answer of `POST /v1/publish`. The last is [`PublishLine::End`]; an answer without it was cut off.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PublishLine {
    /// Counts so far.
    Progress {
        /// Events that are in their streams now.
        published: u64,
        /// Events that had been published before.
        duplicates: u64,
    },
    /// A bad line that was left out.
    Bad {
        /// Its number.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// What the request came to.
    End(Outcome),
}

/// Query of `POST /v1/events`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventsQuery {
    /// Publish the good events although others are bad.
    pub skip_bad: bool,
    /// The lane of events that name none.
    pub lane: LaneName,
}

/// An event as it is sent to `POST /v1/events`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EventBody {
    /// The category.
    pub category: String,
    /// The message type.
    #[serde(rename = "type")]
    pub name: String,
    /// Up to 256 bytes of text; the same id again is the same event, and changes nothing. Without one the host gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The version of the type; the newest if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Free texts by name; names that begin with `keyrail-` are the host's.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub headers: std::collections::BTreeMap<String, String>,
    /// `primary` or `backfill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// A JSON object with the fields that handlers declare.
    pub data: serde_json::Map<String, serde_json::Value>,
}

/// Answer of `POST /v1/events`: what became of each event, in the order of the request.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventsAnswer {
    /// One for each event.
    pub events: Vec<EventAnswer>,
}

/// What became of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventAnswer {
    /// Its id: the one it was sent with, or the one it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where it is, as `epoch-sequence`; none if it was not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether it had been published before: then nothing was written, and `entry` is the first one's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// Why it was not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
