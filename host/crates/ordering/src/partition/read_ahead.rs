//! How far a partition reads ahead: further while there is a backlog, and never more than fits.

use std::sync::Arc;

use crate::{Content, Entry};

/// Entries read at first.
const START: usize = 32;
/// What an entry takes besides its event's data.
const ENTRY_BYTES: usize = 200;

/// Bounds of what is held beyond the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAheadLimits {
    /// Entries; 0 reads one at a time.
    pub entries_max: usize,
    /// Bytes, as far as the size of the last entries tells that of the next.
    pub bytes_max: usize,
}

impl ReadAheadLimits {
    /// How many entries a partition asks for that knows nothing yet.
    pub fn first_read(&self) -> usize {
        self.entries_max.min(START) + 1
    }
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    window: usize,
    /// Of an entry, by the last that came.
    entry_bytes: usize,
}

impl ReadAhead {
    pub(super) fn new() -> Self {
        Self { window: START, entry_bytes: ENTRY_BYTES }
    }

    /// What was asked for has come; `more` is whether there may be more of it.
    pub(super) fn came(&mut self, entries: &[Arc<Entry>], more: bool) {
        if !entries.is_empty() {
            let bytes: usize = entries.iter().map(|entry| size(entry)).sum();
            self.entry_bytes = (bytes / entries.len()).max(1);
        }
        self.window = if more { self.window.saturating_mul(2) } else { START };
    }

    /// How many to ask for when `held` are held beyond the head.
    pub(super) fn missing(&self, limits: &ReadAheadLimits, held: usize) -> usize {
        (self.wanted(limits) + 1).saturating_sub(held).max(1)
    }

    /// Whether so few are held that it is time to ask.
    pub(super) fn is_due(&self, limits: &ReadAheadLimits, held: usize) -> bool {
        held <= self.wanted(limits) / 2
    }

    fn wanted(&self, limits: &ReadAheadLimits) -> usize {
        self.window.min(limits.entries_max).min(limits.bytes_max / self.entry_bytes)
    }
}

fn size(entry: &Entry) -> usize {
    let data = match &entry.content {
        Content::Event(event) => event.data.len(),
        Content::Undecodable(_) | Content::Missing => 0,
    };
    data + ENTRY_BYTES
}
