//! Never two calls of a partition at once whose effects could both land.
//!
//! There is one lease at a time, and whoever does not hold it changes nothing. Within one host two calls never overlap,
//! whatever the leases. Nothing starts on a lease whose time is over; so calls of two hosts overlap only if the earlier one
//! outlives its lease, or an operator took the lease away and its host has not heard of it yet.

use std::collections::BTreeMap;

use super::Check;
use crate::simulation::fact::{CallNumber, Fact, Holder, On};
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Ownership {
    running: BTreeMap<CallNumber, Holder>,
}

impl Check for Ownership {
    fn name(&self) -> &'static str {
        "ownership"
    }

    fn see(&mut self, at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::Acquired { holder, .. } => {
                let lease = ledger.lease(&holder.partition);
                if let Some(held) = lease.filter(|held| at_ms < held.expires_at_ms) {
                    found.push(format!("{holder} was acquired while {} held it", held.holder));
                }
            }
            Fact::Committed { holder, .. } | Fact::Failed { holder, .. } | Fact::Halted { holder, .. }
                if !ledger.holds(holder, at_ms) =>
            {
                found.push(format!("{holder} changed something without holding the lease: {fact}"));
            }
            Fact::Renewed { holder, .. } if !ledger.holds(holder, at_ms) => {
                found.push(format!("{holder} was told that it holds its lease"));
            }
            Fact::CallBegan { call, on: On::Lease(holder), .. } => {
                self.began(at_ms, *call, holder, ledger, found);
            }
            Fact::CallEnded { call, .. } => {
                self.running.remove(call);
            }
            _ => {}
        }
    }
}

impl Ownership {
    fn began(&mut self, at_ms: u64, call: CallNumber, holder: &Holder, ledger: &Ledger, found: &mut Vec<String>) {
        for (other, theirs) in self.running.iter().filter(|(_, theirs)| theirs.partition == holder.partition) {
            if theirs.owner == holder.owner {
                found.push(format!("call {call} of {holder} began within one host while call {other} ran"));
            }
        }
        if ledger.has_lapsed(holder, at_ms) {
            found.push(format!("call {call} of {holder} began after the lease had lapsed"));
        }
        self.running.insert(call, holder.clone());
    }
}
