//! What should be, worked out from the facts alone: which events each stream holds, how far each group has got, who holds
//! which lease. It knows nothing of how engine or broker keep theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keyrail_broker::HeadAction;
use keyrail_ordering::{
    CategoryName, EntryId, EntryRef, Generation, GroupName, HaltRecord, Key, Outgoing, PartitionId, StreamId,
};

use super::fact::{CallEnd, CallNumber, Fact, Holder, On};

/// How far a group has got in a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Events settled.
    pub(super) settled: usize,
    /// The entry of the last one.
    pub(super) last: Option<EntryId>,
}

/// A lease as it should be.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) holder: Holder,
    pub(super) streams: Vec<StreamId>,
    pub(super) expires_at_ms: u64,
}

#[derive(Default)]
pub(super) struct Ledger {
    /// The events of each stream, in order.
    pub(super) streams: BTreeMap<StreamId, Vec<Arc<str>>>,
    /// Which event an entry holds, from what was read.
    contents: BTreeMap<(StreamId, EntryId), Arc<str>>,
    progress: BTreeMap<(GroupName, StreamId), Progress>,
    leases: BTreeMap<PartitionId, Held>,
    /// Ownerships whose time was over before they had ended.
    lapsed: BTreeSet<(PartitionId, Generation)>,
    pub(super) halted: BTreeMap<PartitionId, HaltRecord>,
    paused: BTreeSet<(CategoryName, Option<Key>)>,
    running: BTreeMap<CallNumber, (Holder, EntryRef)>,
    /// What each ownership has handled and not committed, in order.
    handled: BTreeMap<(PartitionId, Generation), Vec<EntryRef>>,
    /// Events of categories without partitions that are settled.
    pub(super) shared_settled: BTreeSet<(GroupName, StreamId, EntryId)>,
}

impl Ledger {
    pub(super) fn progress(&self, group: &GroupName, stream: &StreamId) -> Progress {
        self.progress.get(&(group.clone(), stream.clone())).copied().unwrap_or_default()
    }

    /// The event that should be settled next.
    pub(super) fn next(&self, group: &GroupName, stream: &StreamId) -> Option<&Arc<str>> {
        self.streams.get(stream)?.get(self.progress(group, stream).settled)
    }

    /// Whether this event is among those that are settled.
    pub(super) fn has_settled(&self, group: &GroupName, stream: &StreamId, event_id: &Arc<str>) -> bool {
        let settled = self.progress(group, stream).settled;
        self.streams.get(stream).is_some_and(|events| events.iter().take(settled).any(|event| event == event_id))
    }

    /// What this ownership has handled and not committed, in order.
    pub(super) fn handled(&self, holder: &Holder) -> &[EntryRef] {
        self.handled.get(&(holder.partition.clone(), holder.generation)).map_or(&[], Vec::as_slice)
    }

    /// Whether every unsettled event before this one was handled under this ownership.
    pub(super) fn is_next(&self, holder: &Holder, stream: &StreamId, event_id: &Arc<str>) -> bool {
        let settled = self.progress(&holder.partition.group, stream).settled;
        let unsettled = self.streams.get(stream).into_iter().flatten().skip(settled);
        let handled: Vec<_> = self.handled(holder).iter().filter_map(|at| self.event_at(at)).collect();
        let mut rest = unsettled.skip_while(|event| *event != event_id && handled.contains(event));
        rest.next() == Some(event_id)
    }

    fn handled_mut(&mut self, holder: &Holder) -> &mut Vec<EntryRef> {
        self.handled.entry((holder.partition.clone(), holder.generation)).or_default()
    }

    pub(super) fn event_at(&self, at: &EntryRef) -> Option<&Arc<str>> {
        self.contents.get(&(at.stream.clone(), at.id))
    }

    /// The lease of a partition, whether or not its time is over.
    pub(super) fn lease(&self, partition: &PartitionId) -> Option<&Held> {
        self.leases.get(partition)
    }

    /// Whether this very ownership is the present one and its time is not over.
    pub(super) fn holds(&self, holder: &Holder, now_ms: u64) -> bool {
        self.leases.get(&holder.partition).is_some_and(|held| held.holder == *holder && now_ms < held.expires_at_ms)
    }

    /// Whether the time of this ownership is over, and was before anything else ended it.
    pub(super) fn has_lapsed(&self, holder: &Holder, now_ms: u64) -> bool {
        let present = self.leases.get(&holder.partition).filter(|held| held.holder == *holder);
        present.is_some_and(|held| held.expires_at_ms <= now_ms)
            || self.lapsed.contains(&(holder.partition.clone(), holder.generation))
    }

    /// Whether one of these streams is paused.
    pub(super) fn is_paused<'a>(&self, streams: impl IntoIterator<Item = &'a StreamId>) -> bool {
        streams.into_iter().any(|stream| {
            self.paused.contains(&(stream.category.clone(), None))
                || self.paused.contains(&(stream.category.clone(), stream.key.clone()))
        })
    }

    /// Another's lease stays.
    fn end_lease(&mut self, holder: &Holder) {
        if self.leases.get(&holder.partition).is_some_and(|held| held.holder == *holder) {
            self.leases.remove(&holder.partition);
        }
    }

    fn settle(&mut self, group: &GroupName, entry: &EntryRef) {
        let progress = self.progress.entry((group.clone(), entry.stream.clone())).or_default();
        progress.settled += 1;
        progress.last = Some(entry.id);
    }

    fn emitted(&mut self, emits: &[Outgoing]) {
        for emit in emits {
            let stream = StreamId {
                category: emit.event.category.clone(),
                key: emit.event.key.clone(),
                lane: keyrail_ordering::Lane::Primary,
            };
            self.streams.entry(stream).or_default().push(emit.event.id.clone());
        }
    }

    /// Takes a fact in; to be called after everybody looked at it.
    pub(super) fn apply(&mut self, at_ms: u64, fact: &Fact) {
        match fact {
            Fact::Published { stream, event_id } => {
                self.streams.entry(stream.clone()).or_default().push(event_id.clone());
            }
            Fact::Read { entries } => {
                for (at, event_id) in entries {
                    self.contents.insert((at.stream.clone(), at.id), event_id.clone());
                }
            }
            Fact::Acquired { holder, streams, ttl_ms } => {
                let held = Held { holder: holder.clone(), streams: streams.clone(), expires_at_ms: at_ms + ttl_ms };
                if let Some(before) = self.leases.insert(holder.partition.clone(), held) {
                    self.lapsed.insert((before.holder.partition, before.holder.generation));
                }
            }
            Fact::Renewed { holder, ttl_ms } => {
                if self.holds(holder, at_ms)
                    && let Some(held) = self.leases.get_mut(&holder.partition)
                {
                    held.expires_at_ms = at_ms + ttl_ms;
                }
            }
            Fact::Released { holder } => self.end_lease(holder),
            Fact::Committed { holder, entries, emits, released } => {
                for entry in entries {
                    self.settle(&holder.partition.group, entry);
                }
                self.handled_mut(holder).retain(|at| !entries.contains(at));
                self.emitted(emits);
                if *released {
                    self.end_lease(holder);
                }
            }
            Fact::Halted { holder, record } => {
                self.leases.remove(&holder.partition);
                self.halted.insert(holder.partition.clone(), record.clone());
            }
            Fact::Acted { partition, head, action } => {
                self.leases.remove(partition);
                self.halted.remove(partition);
                if *action != HeadAction::Retry {
                    self.settle(&partition.group, head);
                }
            }
            Fact::Paused { category, key } => {
                let paused = |stream: &StreamId| stream.category == *category && (key.is_none() || stream.key == *key);
                self.leases.retain(|_, held| !held.streams.iter().any(paused));
                self.paused.insert((category.clone(), key.clone()));
            }
            Fact::Resumed { category, key } => {
                self.paused.remove(&(category.clone(), key.clone()));
            }
            Fact::SharedCommitted { source, delivery, emits, .. } => {
                self.shared(source, delivery.id);
                self.emitted(emits);
            }
            Fact::SharedSetAside { source, delivery, .. } => self.shared(source, delivery.id),
            Fact::CallBegan { call, on: On::Lease(holder), entry, .. } => {
                // What was handled before and is handled again was not committed, and what came after it neither.
                let handled = self.handled_mut(holder);
                if let Some(place) = handled.iter().position(|at| at == entry) {
                    handled.truncate(place);
                }
                self.running.insert(*call, (holder.clone(), entry.clone()));
            }
            Fact::CallEnded { call, how } => {
                if let Some((holder, entry)) = self.running.remove(call).filter(|_| *how == CallEnd::Done) {
                    self.handled_mut(&holder).push(entry);
                }
            }
            Fact::Note(_)
            | Fact::Failed { .. }
            | Fact::Delivered { .. }
            | Fact::Routed { .. }
            | Fact::Reaped { .. }
            | Fact::CallBegan { .. } => {}
        }
    }

    fn shared(&mut self, source: &keyrail_broker::SharedSource, id: EntryId) {
        let stream = StreamId { category: source.category.clone(), key: None, lane: keyrail_ordering::Lane::Primary };
        self.shared_settled.insert((source.group.clone(), stream, id));
    }
}
