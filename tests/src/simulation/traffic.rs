//! Publishers: each waits for an answer before it goes on, and repeats what was not answered.

use std::sync::Arc;
use std::time::Duration;

use keyrail_broker::{Publication, Publish as _};
use keyrail_ordering::{Event, Key, KeyRules, Lane, MessageName};
use serde_json::json;

use super::dice::Dice;
use super::faulty::{FaultyBroker, Link};
use super::handlers::{self, KEY_FIELD};
use super::plan::Plan;
use super::world::World;

/// Longer than any run: a repeat is always known.
const DEDUPE_WINDOW_MS: u64 = 24 * 3_600 * 1_000;
/// Events that go into the backfill lane.
const BACKFILL: f64 = 0.15;

pub(super) fn key(text: &str) -> Key {
    Key::parse(text, &KeyRules::default()).unwrap()
}

/// Publishes this many batches, one after the other.
pub(super) async fn publisher(world: Arc<World>, number: u64, batches: u64, mut dice: Dice) {
    let broker = FaultyBroker { link: Link::new(world.network.clone(), &format!("p{number}")) };
    let gap_max_ms = dice.pick(&[5, 30, 100, 300, 1_500]);
    let mut events = 0;
    for _ in 0..batches {
        tokio::time::sleep(Duration::from_millis(dice.between(1, gap_max_ms))).await;
        let batch = batch(&world, number, &mut events, &mut dice);
        while broker.publish(batch.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(dice.between(20, 200))).await;
        }
    }
}

fn batch(world: &World, publisher: u64, events: &mut u64, dice: &mut Dice) -> Vec<Publication> {
    let (category, name) =
        dice.pick(&[("order", "placed"), ("order", "placed"), ("payment", "paid"), ("metric", "measured")]);
    let key = (category != "metric").then(|| dice.pick(&world.keys));
    let lane = if key.is_some() && dice.hits(BACKFILL) { Lane::Backfill } else { Lane::Primary };
    let size = dice.pick(&[1, 1, 1, 2, 4]);
    let one = |_| {
        *events += 1;
        let headers = Plan::roll(dice, category, world.slow).iter().map(Plan::header).collect();
        let client = key.as_ref().map_or("all", Key::as_str);
        let event = Event {
            id: format!("p{publisher}-{events:04}").into(),
            category: handlers::category(category),
            name: MessageName::parse(name).unwrap(),
            version: 1,
            key: key.clone(),
            headers,
            data: json!({ KEY_FIELD: client }).to_string().into_bytes().into(),
        };
        let key_field = key.as_ref().map(|_| KEY_FIELD.to_owned());
        Publication { event, key_field, lane, dedupe_window_ms: DEDUPE_WINDOW_MS }
    };
    (0..size).map(one).collect()
}
