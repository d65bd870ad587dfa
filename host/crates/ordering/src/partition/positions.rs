//! What is settled of each stream, to tell a loss: sequences are contiguous.

use std::collections::BTreeMap;

use crate::{EntryId, EntryRef, StreamId};

#[derive(Debug, Default)]
pub(super) struct Positions {
    /// Per stream the last entry that is settled.
    settled: BTreeMap<StreamId, EntryId>,
    /// Per stream the last entries of commits without an answer. One of them may have settled everything up to there, or may
    /// still do so, however often the same head is read again meanwhile.
    unsure: BTreeMap<StreamId, Vec<EntryId>>,
}

impl Positions {
    pub(super) fn of(settled: Vec<(StreamId, EntryId)>) -> Self {
        Self { settled: settled.into_iter().collect(), unsure: BTreeMap::new() }
    }

    /// Everything up to and with this entry. Other commits of the same head cannot happen any more.
    pub(super) fn settled(&mut self, last: &EntryRef) {
        self.settled.insert(last.stream.clone(), last.id);
        self.unsure.remove(&last.stream);
    }

    /// The same, or not.
    pub(super) fn maybe_settled(&mut self, last: &EntryRef) {
        let unsure = self.unsure.entry(last.stream.clone()).or_default();
        if !unsure.contains(&last.id) {
            unsure.push(last.id);
        }
    }

    /// What is missing before the oldest unsettled entry, if anything is. A gap is told of again and again until somebody
    /// settles it.
    pub(super) fn gap_before(&mut self, head: &EntryRef) -> Option<String> {
        let settled = *self.settled.get(&head.stream)?;
        if settled.is_followed_by(head.id) {
            return None;
        }
        let unsure = self.unsure.get(&head.stream).into_iter().flatten();
        if let Some(last) = unsure.copied().find(|last| last.is_followed_by(head.id)) {
            self.settled(&EntryRef { stream: head.stream.clone(), id: last });
            return None;
        }
        Some(format!("entries between {settled} and {} were deleted or trimmed by somebody else", head.id))
    }
}
