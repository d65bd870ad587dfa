//! What travels between client and host: JSON, every shape here.

use serde::{Deserialize, Serialize};

use crate::service::{Outcome, RefusedHandler, Registered, Registration};

/// Answer of every request that failed.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// One line for the operator.
    pub error: String,
    /// What the caller can do.
    pub kind: ErrorKind,
    /// With [`ErrorKind::Refused`] of a registration: who is refused, and every reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedHandler>,
}

/// What the caller of a failed request can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// The broker is away: try again.
    Unavailable,
    /// What was sent is not accepted: change it.
    Refused,
    /// There is no such thing.
    Unknown,
    /// Anything else.
    Failed,
}

/// Body of `POST /v1/register`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// The handlers, all or none.
    pub handlers: Vec<Registration>,
}

/// Answer of `POST /v1/register`.
#[derive(Debug, Serialize, Deserialize)]
pub struct RegisterAnswer {
    /// In the order of the request.
    pub handlers: Vec<Registered>,
}

/// Query of `POST /v1/publish`, whose body is JSON Lines.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublishQuery {
    /// Leave bad lines out in place of stopping at the first.
    pub skip_bad: bool,
    /// Do not remember ids.
    pub no_dedupe: bool,
    /// Number of the body's first line, for reports; 0 and 1 are the same.
    pub first_line: u64,
}

/// A line of the answer of `POST /v1/publish`. The last is [`PublishLine::End`]; an answer without it was cut off.
#[derive(Debug, Serialize, Deserialize)]
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

/// Query of the listings.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageQuery {
    /// Only this category; of partitions.
    pub category: Option<String>,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}
