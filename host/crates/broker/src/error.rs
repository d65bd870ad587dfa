//! Errors by what the caller can do: stop, report, or take again.

use keyrail_ordering::{EntryId, EntryRef, HaltRecord};

/// What any call can come to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The broker did not answer, or not in time. The call may have happened.
    #[error("the broker does not answer: {0}")]
    Unavailable(String),
    /// The broker answered that it will not: full, a key of the wrong type, no permission. Nothing was changed.
    #[error("the broker refuses: {0}")]
    Refused(String),
    /// What is stored cannot be read by this release.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
    /// The broker cannot be used at all: wrong version, wrong setting, wrong password. The text says what to change.
    #[error("{0}")]
    Unusable(String),
}

/// Why a fenced operation did not happen.
#[derive(Debug, thiserror::Error)]
pub enum FencedError {
    /// The lease is gone or another's. Nothing was changed.
    #[error("the lease is no longer held")]
    Fenced,
    /// The entry is not the head. Nothing was changed.
    #[error("{named} is not the head{}", .head.map(|id| format!("; the head is {id}")).unwrap_or_default())]
    NotHead {
        /// The entry that was named.
        named: EntryRef,
        /// The head's id, where there is one.
        head: Option<EntryId>,
    },
    /// Any other.
    #[error(transparent)]
    Broker(#[from] Error),
}

/// Why a partition was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// Another holds the lease.
    #[error("the partition is held by {holder}")]
    Held {
        /// `{owner}:{generation}`.
        holder: String,
    },
    /// It stands still until an operator decides.
    #[error("the partition is halted at {}: {}", .0.head.id, .0.error)]
    Halted(Box<HaltRecord>),
    /// An operator paused it.
    #[error("the partition is paused")]
    Paused,
    /// Any other.
    #[error(transparent)]
    Broker(#[from] Error),
}

/// Why one event was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The category is partitioned by another field than the publisher thought: its catalog is old.
    #[error("category {category} is partitioned by {actual:?}, not by {expected:?}: the catalog has changed")]
    Stale {
        /// The category.
        category: String,
        /// What the publisher thought.
        expected: Option<String>,
        /// What it is.
        actual: Option<String>,
    },
    /// The broker refused this one: a key of the wrong type, full, too large.
    #[error("the broker refuses the event: {0}")]
    Refused(String),
    /// An earlier event of the batch was refused, so this one was not tried: order within a key is kept.
    #[error("not tried, since an earlier event of the batch was refused")]
    NotTried,
}
