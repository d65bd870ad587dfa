//! Operators: they act on halted heads, on heads that run, and pause and resume, over the same faulty network.

use std::sync::Arc;
use std::time::Duration;

use keyrail_broker::{By, HeadAction, Operate as _, ReadySource};
use keyrail_ordering::{EntryRef, Key, PartitionId, PartitionSpec};

use super::dice::Dice;
use super::faulty::{FaultyBroker, Link};
use super::handlers;
use super::world::World;

/// Rows that an operator looks at.
const ROWS_MAX: usize = 16;

struct Operator {
    world: Arc<World>,
    broker: FaultyBroker,
    dice: Dice,
    by: By,
    /// A head that was seen once: acted on later, when it may be another.
    seen: Option<(PartitionSpec, EntryRef)>,
}

/// Acts for so long. What it leaves paused, and pauses that come late, are the world's to end.
pub(super) async fn operator(world: Arc<World>, for_ms: u64, dice: Dice) {
    let broker = FaultyBroker { link: Link::new(world.network.clone(), "op") };
    let by = By { who: "op".into(), reason: "simulated".into() };
    let mut operator = Operator { world, broker, dice, by, seen: None };
    let until_ms = operator.world.clock.elapsed_ms() + for_ms;
    while operator.world.clock.elapsed_ms() < until_ms {
        operator.sleep(1_500).await;
        match operator.dice.between(0, 9) {
            0..=4 => operator.act_on_a_halted_head().await,
            5..=6 => operator.act_on_a_head().await,
            _ => operator.pause().await,
        }
    }
}

impl Operator {
    async fn sleep(&mut self, most_ms: u64) {
        let ms = self.dice.between(1, most_ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn source(&mut self) -> ReadySource {
        self.dice.pick(&self.world.keyed_sources)
    }

    async fn act_on_a_halted_head(&mut self) {
        let source = self.source();
        let Ok((rows, _)) = self.broker.halted(&source, 0, ROWS_MAX).await else { return };
        if rows.is_empty() {
            return;
        }
        let (partition, record) = self.dice.pick(&rows);
        let action = self.dice.pick(&[HeadAction::Retry, HeadAction::Skip, HeadAction::SetAside]);
        self.act(&spec_of(&partition), &record.head, action).await;
    }

    /// On whatever is the head of some partition, or was when it was looked at last.
    async fn act_on_a_head(&mut self) {
        if let Some((partition, head)) = self.seen.take() {
            return self.act(&partition, &head, HeadAction::Skip).await;
        }
        let (source, key) = (self.source(), self.dice.pick(&self.world.keys));
        let Some(partition) = source.partition(&self.world.catalog, key) else { return };
        if let Ok(Some(head)) = self.broker.head(&partition).await {
            self.seen = Some((partition, head.entry.at.clone()));
        }
    }

    async fn act(&self, partition: &PartitionSpec, head: &EntryRef, action: HeadAction) {
        if let Err(error) = self.broker.act_on_head(partition, head, action, &self.by).await {
            self.world.notebook.remark(format!("operator: {action:?} {head} of {}: {error}", partition.id));
        }
    }

    async fn pause(&mut self) {
        let category = handlers::category(self.dice.pick(&["order", "payment", "audit", "metric"]));
        let key: Option<Key> = self.dice.hits(0.5).then(|| self.dice.pick(&self.world.keys));
        let key = key.filter(|_| category.as_str() != "metric");
        let _ = self.broker.pause(&category, key.as_ref(), &self.by).await;
        self.sleep(1_500).await;
        let _ = self.broker.resume(&category, key.as_ref(), &self.by).await;
    }
}

fn spec_of(partition: &PartitionId) -> PartitionSpec {
    match &partition.scope {
        keyrail_ordering::Scope::Key { category, key } => {
            PartitionSpec::of_key(partition.group.clone(), category.clone(), key.clone())
        }
        keyrail_ordering::Scope::Correlation { value } => {
            let fulfil = handlers::all().into_iter().find(|metadata| metadata.name == partition.group);
            let categories = fulfil.iter().flat_map(|metadata| metadata.categories()).collect::<Vec<_>>();
            PartitionSpec::of_correlation(partition.group.clone(), categories, value.clone())
        }
    }
}
