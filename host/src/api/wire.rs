//! What travels between client and host: JSON, every shape here.

use keyrail_ordering::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::{
    HandlerView, HeadView, LaneName, Outcome, PausedView, RecordFrom, RefusedHandler, Registered, Registration, Status,
    WhoAndWhy,
};

/// Answer of every request that failed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// One line for the operator.
    pub error: String,
    /// What the caller can do.
    pub kind: ErrorKind,
    /// With [`ErrorKind::Refused`] of a registration: who is refused, and every reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedHandler>,
    /// Of a publishing request: what became of each event, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventAnswer>,
}

/// What the caller of a failed request can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The broker is away: try again.
    Unavailable,
    /// What was sent is not accepted: change it.
    Refused,
    /// A handler is refused by the rules: change it, or what it conflicts with.
    NotAccepted,
    /// There is no such thing.
    Unknown,
    /// It is not as it was expected to be; nothing was changed: look again.
    Conflict,
    /// A token is needed, or the one that was shown is unknown.
    Unauthorized,
    /// The token is not good for it.
    Forbidden,
    /// Too much at once: wait as long as `Retry-After` says.
    TooMany,
    /// Anything else.
    Failed,
}

/// Body of `POST /v1/register`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// The handlers, all or none.
    pub handlers: Vec<Registration>,
}

/// Answer of `POST /v1/register`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RegisterAnswer {
    /// In the order of the request.
    pub handlers: Vec<Registered>,
}

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

/// Answer of `GET /v1/heads/{category}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeadsAnswer {
    /// One for each group that has not settled everything.
    pub heads: Vec<HeadView>,
}

/// Body of `POST /v1/heads/{category}/{retry|skip|set-aside}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadRequest {
    /// The key, or the correlation value.
    pub key: String,
    /// Whose head.
    pub group: String,
    /// The entry that must still be the head.
    pub expect: String,
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Body of the other operations: `POST /v1/dead-letters/{category}/{id}/{redrive|purge}`,
/// `POST /v1/categories/{category}/{pause|resume}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationRequest {
    /// The key; none for a category, or for one that is not partitioned.
    #[serde(default)]
    pub key: Option<String>,
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Answer of operations.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperationAnswer {
    /// False if everything was so already.
    pub changed: bool,
    /// The entry that it made, if it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
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

/// Query of `PUT /v1/modules/{hash}`, whose body is the component.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleQuery {
    /// What the component declares, in JSON.
    pub metadata: String,
}

/// Answer of `GET /v1/handlers`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandlersAnswer {
    /// By name.
    pub handlers: Vec<HandlerView>,
}

/// Body of `POST /v1/handlers/{handler}/{promote|undeploy}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByRequest {
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Body of `POST /v1/handlers/{handler}/rollback`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The revision to go to; the one that served before, if there is none.
    #[serde(default)]
    pub to: Option<u64>,
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Body of `POST /v1/handlers/{handler}/revisions/{revision}/abandon`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbandonRequest {
    /// Goes on record.
    pub why: String,
}

macro_rules! path {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }
    };
}

path!(
    /// Path of a category.
    CategoryPath {
        /// The category.
        category: String
    }
);
path!(
    /// Path of an action.
    ActionPath {
        /// The category.
        category: String,
        /// What to do.
        action: String
    }
);
path!(
    /// Path of a dead letter.
    LetterPath {
        /// The category.
        category: String,
        /// Its id, as the listing has it.
        id: String
    }
);
path!(
    /// Path of an action on a dead letter.
    LetterActionPath {
        /// The category.
        category: String,
        /// Its id, as the listing has it.
        id: String,
        /// `redrive` or `purge`.
        action: String
    }
);
path!(
    /// Path of a group.
    GroupPath {
        /// The handler.
        group: String
    }
);
path!(
    /// Path of a handler.
    HandlerPath {
        /// The handler.
        handler: String
    }
);
path!(
    /// Path of a revision.
    RevisionPath {
        /// The handler.
        handler: String,
        /// The number.
        revision: u64
    }
);
path!(
    /// Path of a component.
    HashPath {
        /// SHA-256 of its bytes, in hex.
        hash: String
    }
);

/// Answer of `/health/…`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HealthAnswer {
    /// `live`, `started`, `ready`.
    pub status: String,
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
