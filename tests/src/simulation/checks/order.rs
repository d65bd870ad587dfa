//! Effects in publish order, per group and stream: what is settled is always the oldest event that was not, ids follow
//! one another, a call is only ever made for the oldest that its owner has not handled, and the digest in the state is that
//! of these events.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyrail_broker::HeadAction;
use keyrail_ordering::{EntryRef, GroupName, StreamId};

use super::{Check, End};
use crate::simulation::fact::{Fact, On};
use crate::simulation::handlers::Digest;
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Order {
    /// The events whose effects were committed.
    digests: BTreeMap<(GroupName, StreamId), Digest>,
    /// The last event of each publisher.
    published: BTreeMap<(StreamId, String), Arc<str>>,
}

impl Order {
    /// A publisher counts its events, and waits for each.
    fn published(&mut self, stream: &StreamId, event_id: &Arc<str>, found: &mut Vec<String>) {
        let Some((publisher, _)) = event_id.split_once('-') else { return };
        let before = self.published.insert((stream.clone(), publisher.to_owned()), event_id.clone());
        if let Some(before) = before.filter(|before| before >= event_id) {
            found.push(format!("{event_id} was published after {before}"));
        }
    }
}

impl Check for Order {
    fn name(&self) -> &'static str {
        "order"
    }

    fn see(&mut self, at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::Published { stream, event_id } => self.published(stream, event_id, found),
            Fact::Committed { holder, entries, .. } => {
                let group = &holder.partition.group;
                for (nth, entry) in entries.iter().enumerate() {
                    if let Some(event_id) = settles_next(group, entry, nth, ledger, found) {
                        let place = (group.clone(), entry.stream.clone());
                        self.digests.entry(place).or_default().add(&event_id);
                    }
                }
            }
            Fact::Acted { partition, head, action } if *action != HeadAction::Retry => {
                settles_next(&partition.group, head, 0, ledger, found);
            }
            Fact::CallBegan { call, on: On::Lease(holder), entry, event_id, .. } => {
                let group = &holder.partition.group;
                // A commit that its sender had given up may have settled it meanwhile: then nothing of this call is kept.
                let is_ahead = !ledger.is_next(holder, &entry.stream, event_id)
                    && !ledger.has_settled(group, &entry.stream, event_id);
                if is_ahead && ledger.holds(holder, at_ms) {
                    let (next, handled) = (ledger.next(group, &entry.stream), ledger.handled(holder));
                    found.push(format!(
                        "call {call} began for {event_id} at {entry}; the oldest unsettled is {next:?}, handled are {handled:?}"
                    ));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, end: &End, _ledger: &Ledger, found: &mut Vec<String>) {
        for ((group, stream), wanted) in &self.digests {
            let Some(key) = &stream.key else { continue };
            let state = end.states.get(&(group.clone(), key.clone(), stream.to_string()));
            if state != Some(wanted) {
                found.push(format!("the state of {group} for {stream} is {state:?}; its events make {wanted:?}"));
            }
        }
    }
}

/// Whether `entry` is the `nth` unsettled one; answers with its event.
fn settles_next(
    group: &GroupName,
    entry: &EntryRef,
    nth: usize,
    ledger: &Ledger,
    found: &mut Vec<String>,
) -> Option<Arc<str>> {
    let progress = ledger.progress(group, &entry.stream);
    if let Some(last) = progress.last.filter(|last| nth == 0 && !last.is_followed_by(entry.id)) {
        found.push(format!("{group} settled {entry} after {last}"));
    }
    let wanted = ledger.streams.get(&entry.stream).and_then(|events| events.get(progress.settled + nth));
    let Some(event_id) = ledger.event_at(entry) else {
        found.push(format!("{group} settled {entry}, which nobody has read"));
        return None;
    };
    if wanted != Some(event_id) {
        found.push(format!("{group} settled {event_id} at {entry}; the oldest unsettled was {wanted:?}"));
    }
    Some(event_id.clone())
}
