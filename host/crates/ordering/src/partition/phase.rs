//! What an ownership is at.

use crate::Failure;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    New,
    Taking {
        recover: bool,
    },
    Invoking,
    Committing {
        then: Then,
    },
    Failing {
        after_ms: u64,
    },
    /// The head waits for its next try.
    Waiting {
        until_ms: u64,
    },
    /// Nothing to do; kept for a while because it was busy.
    Lingering {
        until_ms: u64,
    },
    /// A broker call failed; the truth is read again after a pause.
    Recovering {
        until_ms: u64,
    },
    Leaving,
    Ended,
}

/// What follows a commit.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    /// Whatever comes next.
    Next,
    /// The try of the entry after the batch is put on record.
    Fail(Failure, f64),
    /// The entry after the batch could not be started: a pause.
    Pause,
}
