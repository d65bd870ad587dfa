//! What must hold, one file each. A check is told every fact before the [`Ledger`] takes it in, and looks at the store once
//! more at the end. It never asks engine or broker what they think.

mod halts;
mod handled;
mod loss;
mod order;
mod ownership;
mod pauses;
mod repeats;
mod shared;
mod tries;

use std::collections::BTreeMap;

use keyrail_ordering::{GroupName, HaltRecord, Key, PartitionId};

use super::fact::Fact;
use super::handlers::Digest;
use super::ledger::Ledger;

/// The store at the end, read from the broker.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Per group and key, and the stream's name: what the handler has put into the state.
    pub(super) states: BTreeMap<(GroupName, Key, String), Digest>,
    pub(super) halted: BTreeMap<PartitionId, HaltRecord>,
}

pub(super) trait Check: Send {
    fn name(&self) -> &'static str;

    /// A fact, before the ledger has it.
    fn see(&mut self, at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>);

    /// Everything has come to rest.
    fn end(&mut self, _end: &End, _ledger: &Ledger, _found: &mut Vec<String>) {}
}

pub(super) fn all() -> Vec<Box<dyn Check>> {
    vec![
        Box::<ownership::Ownership>::default(),
        Box::<order::Order>::default(),
        Box::<loss::Loss>::default(),
        Box::<repeats::Repeats>::default(),
        Box::<handled::Handled>::default(),
        Box::<halts::Halts>::default(),
        Box::<pauses::Pauses>::default(),
        Box::<tries::Tries>::default(),
        Box::<shared::Shared>::default(),
    ]
}
