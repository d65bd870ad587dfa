//! Looking through the ready sets: what nobody rang for, or what a bell that was lost told.

use keyrail_broker::ReadySource;
use keyrail_ordering::{Membership, PartitionId};
use tracing::{debug, warn};

use super::{Discovery, REMEMBERED_MAX, is_taker};

/// Least time between two looks that only time asked for.
const LOOK_MIN_MS: u64 = 25;

/// How far one ready set has been looked through.
pub(super) struct Sweep {
    pub(super) source: ReadySource,
    /// Where to go on; none when it need not be.
    pub(super) cursor: Option<u64>,
    /// When this pass began. What is another host's and has been free since before then long enough is taken in it.
    since_ms: u64,
    /// Whether this pass found anything: then another pass follows, since keys shift while they are settled.
    found: bool,
}

impl Sweep {
    pub(super) fn new(source: ReadySource) -> Self {
        Self { source, cursor: Some(0), since_ms: 0, found: false }
    }
}

impl Discovery {
    /// Reads the next page of one ready set. False if the broker failed.
    pub(super) async fn look(&mut self, index: usize) -> bool {
        let now_ms = self.shared.machine.now_ms();
        let sweep = &mut self.sweeps[index];
        let cursor = sweep.cursor.unwrap_or(0);
        if cursor == 0 {
            sweep.since_ms = now_ms;
        }
        let limit = self.shared.config.discovery_batch_max;
        let page = match self.shared.broker.ready(&sweep.source, cursor, limit).await {
            Ok(page) => page,
            Err(error) => {
                self.shared.metrics().broker_failed(&error);
                warn!(%error, "a ready set could not be read");
                self.sweeps[index].cursor = None;
                return false;
            }
        };
        let (source, since_ms) = (sweep.source.clone(), sweep.since_ms);
        if let Some(due_ms) = page.due_ms {
            self.look_by(now_ms + due_ms.max(LOOK_MIN_MS));
        }
        let membership = self.shared.membership();
        let mut found = false;
        for key in page.keys {
            let Some(spec) = self.spec_of(&source, key) else { continue };
            if self.may_take(&membership, &spec.id, since_ms) {
                found |= self.enqueue(spec);
            }
        }
        let sweep = &mut self.sweeps[index];
        sweep.found |= found;
        sweep.cursor = page.next;
        if sweep.cursor.is_none() {
            if std::mem::take(&mut sweep.found) {
                sweep.cursor = Some(0);
            } else {
                self.forget_passed();
            }
        }
        true
    }

    /// Whether this host takes a partition that has no owner: it should have it, or nobody took it for `grace_ms`.
    pub(super) fn may_take(&mut self, membership: &Membership, partition: &PartitionId, now_ms: u64) -> bool {
        if is_taker(membership, &self.shared, partition) {
            return true;
        }
        let grace_ms = self.shared.config.grace_ms;
        let free_since_ms = *self.passed.entry(partition.clone()).or_insert(now_ms);
        if now_ms >= free_since_ms + grace_ms {
            self.passed.remove(partition);
            debug!(%partition, "taken although another host should have it: it was free for the grace period");
            return true;
        }
        self.look_by(free_since_ms + grace_ms);
        false
    }

    /// What was free for the grace period when a pass began, and was not found in it, is not free any more.
    fn forget_passed(&mut self) {
        let begun_ms = self.sweeps.iter().map(|sweep| sweep.since_ms).min().unwrap_or(0);
        let grace_ms = self.shared.config.grace_ms;
        self.passed.retain(|_, free_since_ms| begun_ms < *free_since_ms + grace_ms);
        if self.passed.len() > REMEMBERED_MAX {
            self.passed.clear();
        }
    }

    pub(super) fn sweep(&mut self, source: &ReadySource) {
        if let Some(sweep) = self.sweeps.iter_mut().find(|sweep| sweep.source == *source) {
            sweep.cursor.get_or_insert(0);
        }
    }

    pub(super) fn sweep_all(&mut self) {
        for sweep in &mut self.sweeps {
            sweep.cursor.get_or_insert(0);
        }
        self.look_at_ms = u64::MAX;
        let now_ms = self.shared.machine.now_ms();
        self.cooling.retain(|_, until_ms| now_ms < *until_ms);
    }
}
