//! Partitions that this host gave up a moment ago: one that comes back so soon is worth keeping the next time it runs dry.

use std::collections::HashMap;

use keyrail_ordering::PartitionId;

/// Beyond this the knowledge of those that are not back in time is dropped, and then all of it.
const REMEMBERED_MAX: usize = 10_000;

pub(super) struct Lately {
    /// For how long it is remembered.
    window_ms: u64,
    /// When each ended.
    ended: HashMap<PartitionId, u64>,
}

impl Lately {
    pub(super) fn new(window_ms: u64) -> Self {
        Self { window_ms, ended: HashMap::new() }
    }

    pub(super) fn ended(&mut self, partition: PartitionId, now_ms: u64) {
        if self.window_ms == 0 {
            return;
        }
        if self.ended.len() >= REMEMBERED_MAX {
            self.ended.retain(|_, at_ms| now_ms < *at_ms + self.window_ms);
        }
        if self.ended.len() >= REMEMBERED_MAX {
            self.ended.clear();
        }
        self.ended.insert(partition, now_ms);
    }

    /// Whether it ended so lately. It is asked once: what follows is another ownership.
    pub(super) fn comes_back(&mut self, partition: &PartitionId, now_ms: u64) -> bool {
        self.ended.remove(partition).is_some_and(|at_ms| now_ms < at_ms + self.window_ms)
    }
}

#[cfg(test)]
mod tests {
    use keyrail_ordering::{CategoryName, GroupName, Key, KeyRules, PartitionSpec};

    use super::*;

    fn partition(key: usize) -> PartitionId {
        let key = Key::parse(&format!("k{key}"), &KeyRules::default()).unwrap();
        PartitionSpec::of_key(GroupName::parse("h").unwrap(), CategoryName::parse("order").unwrap(), key).id
    }

    #[test]
    fn only_what_ended_within_the_window_comes_back_and_only_once() {
        let mut lately = Lately::new(100);
        lately.ended(partition(1), 1_000);
        lately.ended(partition(2), 1_000);
        assert!(lately.comes_back(&partition(1), 1_099));
        assert!(!lately.comes_back(&partition(1), 1_099));
        assert!(!lately.comes_back(&partition(2), 1_100));
        assert!(!lately.comes_back(&partition(3), 1_000));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_latest_stays() {
        let mut lately = Lately::new(100);
        for key in 0..3 * REMEMBERED_MAX {
            lately.ended(partition(key), key as u64);
            assert!(lately.ended.len() <= REMEMBERED_MAX);
        }
        let last = 3 * REMEMBERED_MAX - 1;
        assert!(lately.comes_back(&partition(last), last as u64));
    }
}
