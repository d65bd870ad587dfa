//! Random operations of two groups and three owners on the embedded broker, beside a model that is a few lists.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{
    READ_MAX, Story, commit_all, halt_record, id_of, partition, publication, source,
};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{AcquireError, Acquired, Broker, FencedError, Publication};
use keyrail_ordering::{Entry, Lane, Lease, OwnerId};
use proptest::prelude::*;

const GROUPS: [&str; 2] = ["billing", "audit"];
const KEYS: [&str; 2] = ["a", "b"];
const TTL_MS: u64 = 100;

#[derive(Debug, Clone)]
enum Step {
    Publish {
        key: usize,
        backfill: bool,
        count: usize,
    },
    Acquire {
        group: usize,
        key: usize,
        owner: usize,
        max: usize,
    },
    Take {
        group: usize,
        key: usize,
        max: usize,
        recover: bool,
    },
    Commit {
        group: usize,
        key: usize,
        count: usize,
        take_max: usize,
        release: bool,
    },
    Fail {
        group: usize,
        key: usize,
    },
    Halt {
        group: usize,
        key: usize,
    },
    Release {
        group: usize,
        key: usize,
    },
    /// Time passes: every lease lapses.
    Lapse,
    /// The process ends without a word and starts again.
    Reopen,
}

fn steps() -> impl Strategy<Value = Step> {
    let (group, key) = (0..2usize, 0..2usize);
    let max = 0..4usize;
    prop_oneof![
        6 => (key.clone(), any::<bool>(), 1..4usize)
            .prop_map(|(key, backfill, count)| Step::Publish { key, backfill, count }),
        6 => (group.clone(), key.clone(), 0..3usize, max.clone())
            .prop_map(|(group, key, owner, max)| Step::Acquire { group, key, owner, max }),
        4 => (group.clone(), key.clone(), max.clone(), any::<bool>())
            .prop_map(|(group, key, max, recover)| Step::Take { group, key, max, recover }),
        12 => (group.clone(), key.clone(), 1..3usize, max, any::<bool>())
            .prop_map(|(group, key, count, take_max, release)| Step::Commit { group, key, count, take_max, release }),
        2 => (group.clone(), key.clone()).prop_map(|(group, key)| Step::Fail { group, key }),
        1 => (group.clone(), key.clone()).prop_map(|(group, key)| Step::Halt { group, key }),
        3 => (group, key).prop_map(|(group, key)| Step::Release { group, key }),
        1 => Just(Step::Lapse),
        1 => Just(Step::Reopen),
    ]
}

/// What one group knows of one key.
#[derive(Default)]
struct Model {
    /// Ids settled, per lane.
    settled: [Vec<String>; 2],
    lease: Option<Lease>,
    /// Delivered and not settled, in the order of delivery.
    in_hand: Vec<Arc<Entry>>,
    attempts: u32,
    halted: bool,
}

struct Run {
    story: Story,
    folder: tempfile::TempDir,
    clock: Arc<AtomicU64>,
    /// Ids published, per key and lane.
    published: BTreeMap<(usize, usize), Vec<String>>,
    models: BTreeMap<(usize, usize), Model>,
    /// Leases that are over.
    old: Vec<(Lease, Arc<Entry>)>,
}

fn open(folder: &tempfile::TempDir, clock: &Arc<AtomicU64>) -> Arc<dyn Broker> {
    let clock = clock.clone();
    let settings =
        EmbeddedSettings { lease_clock: Arc::new(move || clock.load(SeqCst)), ..EmbeddedSettings::default() };
    Arc::new(EmbeddedBroker::open(folder.path().join("keyrail.db"), settings).unwrap())
}

impl Run {
    async fn start() -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::default());
        let story = Story::begin(Subject::new(open(&folder, &clock))).await;
        story.register("audit", "order", Some("client")).await;
        let models = (0..2).flat_map(|group| (0..2).map(move |key| ((group, key), Model::default()))).collect();
        Self { story, folder, clock, published: BTreeMap::new(), models, old: vec![] }
    }

    fn lose_leases(&mut self) {
        for model in self.models.values_mut() {
            if let (Some(lease), Some(entry)) = (model.lease.take(), model.in_hand.first()) {
                self.old.push((lease, entry.clone()));
            }
            model.in_hand.clear();
        }
    }

    /// What is delivered goes on where the group stands, in each lane without a gap, and one lane at a time.
    fn deliver(&mut self, at: (usize, usize), entries: Vec<Arc<Entry>>) {
        let model = self.models.get_mut(&at).unwrap();
        for entry in entries {
            let lane = entry.at.stream.lane as usize;
            let before = model.in_hand.iter().filter(|held| held.at.stream.lane == entry.at.stream.lane).count();
            assert_eq!(before, model.in_hand.len(), "entries of both lanes in hand");
            let next = &self.published[&(at.1, lane)][model.settled[lane].len() + before];
            assert_eq!(&id_of(&entry), next, "out of order");
            assert_eq!(entry.at.id.sequence, (model.settled[lane].len() + before) as u64);
            model.in_hand.push(entry);
        }
    }

    async fn step(&mut self, step: Step) {
        let broker = self.story.broker.clone();
        match step {
            Step::Publish { key, backfill, count } => {
                let lane = if backfill { Lane::Backfill } else { Lane::Primary };
                let ids = self.published.entry((key, usize::from(backfill))).or_default();
                let mut batch = vec![];
                for _ in 0..count {
                    let id = format!("{lane:?}-{}", ids.len());
                    batch.push(Publication { lane, ..publication(KEYS[key], &id) });
                    ids.push(id);
                }
                for answer in broker.publish(batch).await.unwrap() {
                    answer.unwrap();
                }
            }
            Step::Acquire { group, key, owner, max } => {
                let spec = partition(GROUPS[group], "order", KEYS[key]);
                let owner = OwnerId::new(["A", "B", "C"][owner]);
                let model = self.models.get_mut(&(group, key)).unwrap();
                match broker.acquire(spec, &owner, TTL_MS, max).await {
                    Err(AcquireError::Held { .. }) => assert!(model.lease.is_some()),
                    Err(AcquireError::Halted(_)) => assert!(model.halted),
                    Err(error) => panic!("{error}"),
                    Ok(Acquired { lease, entries, .. }) => {
                        assert!(model.lease.is_none() && !model.halted);
                        model.lease = Some(lease);
                        self.deliver((group, key), entries);
                    }
                }
            }
            Step::Take { group, key, max, recover } => {
                let model = self.models.get_mut(&(group, key)).unwrap();
                let Some(lease) = model.lease.clone() else { return };
                let taken = broker.take(&lease, max, recover).await.unwrap();
                if recover {
                    let held = model.in_hand.iter().take(max);
                    assert!(held.zip(&taken.entries).all(|(held, entry)| held.at == entry.at), "pending ones first");
                    assert!(taken.entries.len() >= model.in_hand.len().min(max));
                    model.in_hand.clear();
                }
                self.deliver((group, key), taken.entries);
            }
            Step::Commit { group, key, count, take_max, release } => {
                let model = self.models.get_mut(&(group, key)).unwrap();
                let Some(lease) = model.lease.clone() else { return };
                let count = count.min(model.in_hand.len());
                if count == 0 {
                    return;
                }
                let settled: Vec<_> = model.in_hand.drain(..count).collect();
                let settled: Vec<&Entry> = settled.iter().map(AsRef::as_ref).collect();
                let mut commit = commit_all(&settled);
                (commit.take_max, commit.release) = (take_max, release);
                for entry in &settled {
                    model.settled[entry.at.stream.lane as usize].push(id_of(entry));
                }
                model.attempts = 0;
                let committed = broker.commit(&lease, commit).await.unwrap();
                if committed.released {
                    assert!(release && committed.entries.is_empty());
                    model.lease = None;
                }
                self.deliver((group, key), committed.entries);
                let left = self.left((group, key));
                assert_eq!(committed.released, release && left == 0);
            }
            Step::Fail { group, key } => {
                let model = self.models.get_mut(&(group, key)).unwrap();
                let (Some(lease), Some(head)) = (&model.lease, model.in_hand.first()) else { return };
                model.attempts += 1;
                broker.fail(lease, &head.at, model.attempts, "no", 0).await.unwrap();
                if let Some(second) = model.in_hand.get(1) {
                    let refused = broker.fail(lease, &second.at, 1, "no", 0).await;
                    assert!(matches!(refused, Err(FencedError::NotHead { .. })));
                }
            }
            Step::Halt { group, key } => {
                let model = self.models.get_mut(&(group, key)).unwrap();
                let (Some(lease), Some(head)) = (&model.lease, model.in_hand.first()) else { return };
                broker.halt(lease, &halt_record(&head.at)).await.unwrap();
                model.lease = None;
                model.in_hand.clear();
                model.halted = true;
            }
            Step::Release { group, key } => {
                let model = self.models.get_mut(&(group, key)).unwrap();
                let Some(lease) = model.lease.take() else { return };
                broker.release(&lease).await.unwrap();
                if let Some(entry) = model.in_hand.first() {
                    self.old.push((lease, entry.clone()));
                }
                model.in_hand.clear();
            }
            Step::Lapse => {
                self.clock.fetch_add(TTL_MS, SeqCst);
                self.lose_leases();
            }
            Step::Reopen => {
                drop(broker);
                self.story =
                    Story::empty(Subject::new(Arc::new(EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap())));
                self.story = Story::empty(Subject::new(open(&self.folder, &self.clock)));
                self.lose_leases();
            }
        }
    }

    /// Entries of a partition that are not settled.
    fn left(&self, at: (usize, usize)) -> usize {
        let of_lane =
            |lane| self.published.get(&(at.1, lane)).map_or(0, Vec::len) - self.models[&at].settled[lane].len();
        of_lane(0) + of_lane(1)
    }

    async fn check(&self) {
        for (group, name) in GROUPS.iter().enumerate() {
            let ready = (0..2).filter(|key| self.left((group, *key)) > 0 && !self.models[&(group, *key)].halted);
            let expected: Vec<_> = ready.clone().map(|key| KEYS[key].to_owned()).collect();
            let offered: Vec<_> = ready
                .filter(|key| self.models[&(group, *key)].lease.is_none())
                .map(|key| KEYS[key].to_owned())
                .collect();
            let backlog = self.story.broker.backlog(&[source(name)]).await.unwrap();
            assert_eq!(backlog.ready as usize, expected.len(), "{name}: the ready set");
            assert_eq!(self.story.offered(&source(name), READ_MAX).await, offered, "{name}: what is offered");
            let (rows, _) = self.story.broker.partitions(&source(name), 0, 10).await.unwrap();
            for row in rows {
                let key = KEYS.iter().position(|key| *key == row.partition.key().as_str()).unwrap();
                assert_eq!(row.waiting as usize, self.left((group, key)));
                assert_eq!(row.owned, self.models[&(group, key)].lease.is_some());
                assert_eq!(row.halted.is_some(), self.models[&(group, key)].halted);
            }
        }
        if let Some((lease, entry)) = self.old.last() {
            self.story.assert_fenced(lease, entry).await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_broker_agrees_with_a_few_lists(steps in proptest::collection::vec(steps(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut run = Run::start().await;
            for step in steps {
                run.step(step).await;
                run.check().await;
            }
        });
    }
}
