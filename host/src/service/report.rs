//! What a publish run tells while it goes on, and what it came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines::RawLine;

/// News of a publish run, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Counts so far.
    Progress {
        /// Events that are in their streams now.
        published: u64,
        /// Events that had been published before.
        duplicates: u64,
    },
    /// A bad line that was left out. Only when bad lines are skipped.
    Bad {
        /// The line.
        line: RawLine,
        /// What is wrong.
        reason: String,
    },
}

/// What a publish run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Events that this run put into their streams.
    pub published: u64,
    /// Events whose id was there already; nothing was written for them.
    pub duplicates: u64,
    /// Bad lines that were left out.
    pub skipped: u64,
    /// Why it ended before the input did.
    pub stop: Option<Stop>,
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// By what the caller can do.
    pub kind: StopKind,
    /// The line that stopped it, where one did.
    pub line: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

/// Kinds of early ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopKind {
    /// The line is bad. Every line before it is published, nothing after it.
    BadLine,
    /// The broker refuses the event of the line. Every line of its key before it is published; of other keys some
    /// lines after it may be.
    Refused,
    /// The broker does not answer. Lines that were under way may be published or not.
    Unavailable,
    /// The broker cannot be used.
    Failed,
}
