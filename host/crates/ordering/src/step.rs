//! What the owner of a partition is told, and what it answers: the two sides of [`Partition::step`](crate::Partition::step).

use std::sync::Arc;

use crate::{AttemptsRecord, Entry, EntryId, Failure, HaltRecord, StreamId};

/// What a call of the handler came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The handler is done: its effects are to be committed.
    Done {
        /// The size of the effects.
        bytes: usize,
    },
    /// A try failed.
    Failed(Failure),
    /// The call could not start, or was cut short by the host for its own reasons. Uses no try.
    Deferred,
    /// The call was not started: what was handled before it must be committed first. Uses no try.
    CommitFirst,
}

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// The lease is held. First input, once.
    Acquired {
        /// The first entries: everything pending, lowest first, then new ones.
        entries: Vec<Arc<Entry>>,
        /// What is known about the head's failures.
        attempts: Option<AttemptsRecord>,
        /// Per stream the id before the first of `entries`; none where the stream had no settled entry.
        positions: Vec<(StreamId, EntryId)>,
        /// Whether the broker may hold more.
        more: bool,
    },
    /// The broker says that there is work for this partition.
    Belled,
    /// Answer to [`Effect::Take`].
    Taken {
        /// The entries. After a recovering take: everything pending, lowest first, then new ones.
        entries: Vec<Arc<Entry>>,
        /// What is known about the head's failures; only read after a recovering take.
        attempts: Option<AttemptsRecord>,
        /// Whether the broker may hold more.
        more: bool,
    },
    /// Answer to [`Effect::Invoke`].
    Handled {
        /// What it came to.
        outcome: Outcome,
        /// Uniform in 0..=1, for the jitter.
        chance: f64,
    },
    /// Answer to [`Effect::Commit`].
    Committed {
        /// New entries, if some were asked for.
        entries: Vec<Arc<Entry>>,
        /// Whether the broker may hold more.
        more: bool,
        /// Whether the lease went in the same step.
        released: bool,
    },
    /// Answer to [`Effect::Fail`]: the attempt is on record.
    FailRecorded,
    /// Answer to [`Effect::Halt`] or [`Effect::Release`]: the lease is gone.
    Released,
    /// The lease is another's, or its time is up. Nothing may be done for the partition any more.
    Fenced,
    /// A broker call failed or timed out: it may have happened.
    Uncertain,
    /// Time has passed.
    Tick,
    /// The partition is to be given up as soon as no event runs.
    Drain,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Read entries.
    Take {
        /// At most this many.
        max: usize,
        /// Read what is pending for this owner first, and the attempts record: an earlier answer was lost.
        recover: bool,
    },
    /// Call the handler.
    Invoke {
        /// With this event.
        entry: Arc<Entry>,
        /// 1 for the first try.
        attempt: u32,
        /// Let nothing else run on this host meanwhile: hosts died on this event again and again, and another death must
        /// not be counted against events that had nothing to do with it.
        alone: bool,
    },
    /// Settle entries with the effects of their calls.
    Commit {
        /// Those that were invoked since the last commit and are done: the head and what follows it, of one stream.
        entries: Vec<Arc<Entry>>,
        /// Read up to this many new entries in the same step.
        take_max: usize,
        /// Give the lease up in the same step if nothing is left.
        release: bool,
    },
    /// Put a failed try on record.
    Fail {
        /// The head.
        entry: Arc<Entry>,
        /// Which try failed.
        attempt: u32,
        /// What it said.
        error: String,
        /// When the next is due.
        after_ms: u64,
    },
    /// Let the partition stand still until an operator decides, and give the lease up.
    Halt(HaltRecord),
    /// Give the lease up, handing back what was read ahead.
    Release,
    /// Send [`Input::Tick`] at this time, unless something else happens before.
    WakeAt(u64),
    /// Ownership is over.
    End,
}
