//! Which of the keys that a host owns are busy most of the time.
//!
//! A partition's *serial time* is the time in which an event of it is handled or committed: no host can give it more than all
//! of the time. Pure: the time enters as an argument. Memory is bounded: only what worked within the window is remembered.

use std::collections::BTreeMap;

use keyrail_ordering::{Generation, HotKey, Lease, PartitionId, Scope, Share};

const SLICE_MS: u64 = 1_000;
const SLICES: usize = 10;
/// How many are told.
const TOLD_MAX: usize = 8;
/// Least share that is worth telling.
const TOLD_MIN_PERCENT: u16 = 5;
/// From this share on a key is near the limit of what one lane can do.
const WARN_ABOVE_PERCENT: u16 = 80;
/// A key is warned of no more often.
const WARN_INTERVAL_MS: u64 = 60_000;

/// What was seen within the window, which ends with the present slice.
#[derive(Debug, Default)]
pub struct HotKeys {
    /// The number of the present slice.
    slice: u64,
    looked_at_ms: Option<u64>,
    /// For each slice, the time that what was counted in it was spent in: from the look before to its last one.
    slices_ms: [u64; SLICES],
    worked: BTreeMap<PartitionId, Worked>,
}

#[derive(Debug)]
struct Worked {
    generation: Generation,
    /// Of this generation, when it was looked at last.
    total_us: u64,
    slices_us: [u32; SLICES],
    warned_at_ms: Option<u64>,
}

impl Worked {
    fn in_window_us(&self) -> u64 {
        self.slices_us.iter().map(|us| u64::from(*us)).sum()
    }
}

impl HotKeys {
    /// Takes in the serial time of everything that is owned, counted since it was acquired; answers with the busiest keys, the
    /// busiest first.
    pub fn look<'a>(&mut self, now_ms: u64, owned: impl Iterator<Item = (&'a Lease, u64)>) -> Vec<HotKey> {
        self.advance(now_ms);
        let at = (self.slice % SLICES as u64) as usize;
        self.slices_ms[at] += now_ms.saturating_sub(self.looked_at_ms.unwrap_or(now_ms));
        self.looked_at_ms = Some(now_ms);
        for (lease, total_ns) in owned {
            let total_us = total_ns / 1_000;
            match self.worked.get_mut(&lease.partition.id) {
                Some(worked) => {
                    let before_us = if worked.generation == lease.generation { worked.total_us } else { 0 };
                    let more_us = u32::try_from(total_us.saturating_sub(before_us)).unwrap_or(u32::MAX);
                    worked.slices_us[at] = worked.slices_us[at].saturating_add(more_us);
                    (worked.generation, worked.total_us) = (lease.generation, total_us);
                }
                None if total_us > 0 => {
                    let mut slices_us = [0; SLICES];
                    slices_us[at] = u32::try_from(total_us).unwrap_or(u32::MAX);
                    let worked = Worked { generation: lease.generation, total_us, slices_us, warned_at_ms: None };
                    self.worked.insert(lease.partition.id.clone(), worked);
                }
                None => {}
            }
        }
        self.worked.retain(|_, worked| {
            let was_warned = worked.warned_at_ms.is_some_and(|at_ms| now_ms < at_ms + WARN_INTERVAL_MS);
            was_warned || worked.in_window_us() > 0
        });
        self.hottest()
    }

    /// Those of `hot` that are to be warned of now.
    pub fn warnings<'a>(&mut self, now_ms: u64, hot: &'a [HotKey]) -> Vec<&'a HotKey> {
        let mut due = vec![];
        for key in hot.iter().filter(|key| key.share.percent() > WARN_ABOVE_PERCENT) {
            let Some(worked) = self.worked.get_mut(&partition_of(key)) else { continue };
            if worked.warned_at_ms.is_none_or(|at_ms| now_ms >= at_ms + WARN_INTERVAL_MS) {
                worked.warned_at_ms = Some(now_ms);
                due.push(key);
            }
        }
        due
    }

    fn hottest(&self) -> Vec<HotKey> {
        // A host that has just begun to look knows little: nothing is hot at once.
        let window_us = self.slices_ms.iter().sum::<u64>().max((SLICES as u64 - 1) * SLICE_MS) * 1_000;
        let least_us = window_us * u64::from(TOLD_MIN_PERCENT) / 100;
        let busy = self.worked.iter().map(|(partition, worked)| (worked.in_window_us(), partition));
        let mut busy: Vec<_> = busy.filter(|(us, _)| *us >= least_us).collect();
        busy.sort_unstable_by(|one, other| other.cmp(one));
        busy.truncate(TOLD_MAX);
        busy.into_iter().map(|(us, partition)| hot_key(partition, Share::of(us, window_us))).collect()
    }

    /// Empties the slices that are too old for the window.
    fn advance(&mut self, now_ms: u64) {
        let slice = now_ms / SLICE_MS;
        let passed = slice.saturating_sub(self.slice).min(SLICES as u64);
        for number in 0..passed {
            let at = ((slice - number) % SLICES as u64) as usize;
            self.slices_ms[at] = 0;
            for worked in self.worked.values_mut() {
                worked.slices_us[at] = 0;
            }
        }
        self.slice = self.slice.max(slice);
    }
}

fn hot_key(partition: &PartitionId, share: Share) -> HotKey {
    let (category, key) = match &partition.scope {
        Scope::Key { category, key } => (Some(category.clone()), key.clone()),
        Scope::Correlation { value } => (None, value.clone()),
    };
    HotKey { group: partition.group.clone(), category, key, share }
}

fn partition_of(hot: &HotKey) -> PartitionId {
    let scope = match &hot.category {
        Some(category) => Scope::Key { category: category.clone(), key: hot.key.clone() },
        None => Scope::Correlation { value: hot.key.clone() },
    };
    PartitionId { group: hot.group.clone(), scope }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use keyrail_ordering::{CategoryName, GroupName, Key, KeyRules, OwnerId, PartitionSpec};

    use super::*;

    fn lease(key: &str, generation: u64) -> Lease {
        let key = Key::parse(key, &KeyRules::default()).unwrap();
        let (group, category) = (GroupName::parse("ledger").unwrap(), CategoryName::parse("order").unwrap());
        let partition = Arc::new(PartitionSpec::of_key(group, category, key));
        Lease { partition, owner: OwnerId::new("host"), generation: Generation(generation) }
    }

    /// Looks every 750 ms, until `to_ms`; each key is busy for this part of the time.
    fn run(hot: &mut HotKeys, from_ms: u64, to_ms: u64, busy: &[(&Lease, f64)]) -> Vec<HotKey> {
        let (mut told, mut at_ms) = (vec![], from_ms);
        while at_ms < to_ms {
            at_ms += 750;
            let total_ns = |part: f64| ((at_ms - from_ms) as f64 * part * 1e6) as u64;
            told = hot.look(at_ms, busy.iter().map(|(lease, part)| (*lease, total_ns(*part))));
        }
        told
    }

    #[test]
    fn the_busiest_come_first_and_the_idle_are_not_told() {
        let (mut hot, leases) = (HotKeys::default(), ["a", "b", "c", "d"].map(|key| lease(key, 1)));
        let busy = [(&leases[0], 0.3), (&leases[1], 0.9), (&leases[2], 0.01), (&leases[3], 0.0)];
        let told = run(&mut hot, 100_000, 130_000, &busy);
        let told: Vec<_> = told.iter().map(|hot| (hot.key.as_str(), hot.share.percent())).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].0 == "b" && (85..=95).contains(&told[0].1), "{told:?}");
        assert!(told[1].0 == "a" && (27..=33).contains(&told[1].1), "{told:?}");
        assert!(!hot.worked.contains_key(&leases[3].partition.id), "what never worked is not remembered");
    }

    #[test]
    fn a_key_that_is_idle_leaves_with_the_window_and_is_forgotten() {
        let (mut hot, a) = (HotKeys::default(), lease("a", 1));
        assert_eq!(run(&mut hot, 50_000, 65_000, &[(&a, 1.0)]).len(), 1);
        let half = hot.look(70_500, std::iter::empty());
        assert!((40..60).contains(&half[0].share.percent()), "{half:?}");
        assert_eq!(hot.look(77_000, std::iter::empty()), vec![]);
        assert!(hot.worked.is_empty());
        // A clock that stands still, or begins anew, spoils nothing.
        assert_eq!(hot.look(77_000, std::iter::empty()), vec![]);
        assert_eq!(hot.look(0, std::iter::empty()), vec![]);
    }

    #[test]
    fn a_partition_that_was_acquired_again_counts_from_its_new_start() {
        let mut hot = HotKeys::default();
        let second_ns = 1_000_000_000;
        hot.look(20_000, std::iter::once((&lease("a", 1), 2 * second_ns)));
        let told = hot.look(21_000, std::iter::once((&lease("a", 2), second_ns)));
        assert!((30..=34).contains(&told[0].share.percent()), "3 of 9 seconds: {told:?}");
    }

    #[test]
    fn a_hot_key_is_warned_of_once_a_minute() {
        let (mut hot, a, b) = (HotKeys::default(), lease("a", 1), lease("b", 1));
        let told = run(&mut hot, 0, 12_000, &[(&a, 1.0), (&b, 0.5)]);
        let keys = |warnings: Vec<&HotKey>| warnings.iter().map(|hot| hot.key.to_string()).collect::<Vec<_>>();
        assert_eq!(keys(hot.warnings(12_000, &told)), ["a"]);
        assert!(hot.warnings(12_750, &told).is_empty());
        assert!(hot.warnings(71_999, &told).is_empty());
        assert_eq!(keys(hot.warnings(72_000, &told)), ["a"]);
    }

    #[test]
    fn only_a_few_are_told_however_many_there_are() {
        let leases: Vec<_> = (0..50).map(|n| lease(&format!("k{n}"), 1)).collect();
        let busy: Vec<_> = leases.iter().map(|lease| (lease, 0.6)).collect();
        assert_eq!(run(&mut HotKeys::default(), 0, 15_000, &busy).len(), TOLD_MAX);
    }
}
