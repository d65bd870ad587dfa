//! Looking: what is asked for, and lists that are an answer of their own.

use keyrail_ordering::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::{HandlerView, HeadView, PausedView, RecordFrom, Status};

/// Query of `GET /v1/states/{group}`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PageQuery {
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

/// Query of `GET /v1/partitions`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionsQuery {
    /// Only partitions that read this category; process managers too.
    pub category: Option<String>,
    /// Only this group's.
    pub group: Option<String>,
    /// Only this key's.
    pub key: Option<String>,
    /// Only those whose key begins so.
    pub prefix: Option<String>,
    /// Only those that stand so.
    pub status: Option<Status>,
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// Rows wanted; the host's own limit holds as well.
    pub limit: Option<usize>,
}

/// Query of `GET /v1/heads/{category}`. Keys are never part of a path: `..` is a key.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadsQuery {
    /// The key, or the correlation value.
    pub key: String,
    /// Only this group's head.
    pub group: Option<String>,
}

/// Answer of `GET /v1/heads/{category}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeadsAnswer {
    /// One for each group that has not settled everything.
    pub heads: Vec<HeadView>,
}

/// Query of `GET /v1/recordings/{category}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingQuery {
    /// The key, or the correlation value.
    pub key: String,
    /// Whose; needed where several handlers read the category.
    pub group: Option<String>,
    /// Where it begins.
    #[serde(default)]
    pub from: RecordFrom,
    /// Events of a stream, at most.
    pub limit: Option<usize>,
}

/// Query of `GET /v1/halted`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HaltedQuery {
    /// Only partitions that read this category.
    pub category: Option<String>,
    /// Only this group's.
    pub group: Option<String>,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

/// Query of `GET /v1/dead-letters`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadLettersQuery {
    /// Only this category.
    pub category: Option<String>,
    /// Only this key of it.
    pub key: Option<String>,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

/// Query of `GET /v1/dead-letters/{category}/{id}`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyQuery {
    /// The key; none in a category that is not partitioned.
    pub key: Option<String>,
}

/// Query of `GET /v1/audit`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuditQuery {
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// Rows wanted; the host's own limit holds as well.
    pub limit: Option<usize>,
}

/// Answer of `GET /v1/paused`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PausedAnswer {
    /// All of it.
    pub paused: Vec<PausedView>,
}

/// Answer of `GET /v1/members`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MembersAnswer {
    /// By owner.
    pub members: Vec<Member>,
}

/// Answer of `GET /v1/handlers`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandlersAnswer {
    /// By name.
    pub handlers: Vec<HandlerView>,
}
