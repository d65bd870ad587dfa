//! The counters of one ownership, looked up once.

use std::sync::Arc;

use keyrail_broker::Acquired;
use keyrail_ordering::{CategoryName, EntryRef};

use crate::telemetry::metrics::{PartitionMetrics, WorkMetrics};

/// One for each category that the partition spans; a key's partition has one, a process manager's a few.
pub(super) struct Measured(Vec<(CategoryName, Arc<PartitionMetrics>)>);

impl Measured {
    /// Of what was just acquired, which is counted.
    pub(super) fn of_acquired(metrics: &WorkMetrics, acquired: &Acquired) -> Self {
        let partition = &acquired.lease.partition;
        let mut found: Vec<(CategoryName, _)> = vec![];
        for stream in &partition.streams {
            if !found.iter().any(|(category, _)| *category == stream.category) {
                found.push((stream.category.clone(), metrics.of(&partition.id.group, &stream.category)));
            }
        }
        let measured = Self(found);
        measured.whole().acquired.inc();
        // What a dead owner leaves is that its head has a crash on record, until the head is settled.
        if acquired.attempts.as_ref().is_some_and(|attempts| attempts.crashes > 0) {
            measured.whole().takeovers.inc();
        }
        measured
    }

    /// Those of the partition as a whole.
    pub(super) fn whole(&self) -> &PartitionMetrics {
        &self.0[0].1
    }

    /// Those of an entry's category.
    pub(super) fn of(&self, entry: &EntryRef) -> &PartitionMetrics {
        let found = self.0.iter().skip(1).find(|(category, _)| *category == entry.stream.category);
        found.map_or_else(|| self.whole(), |(_, metrics)| metrics)
    }
}
