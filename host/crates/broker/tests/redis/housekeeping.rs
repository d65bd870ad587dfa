//! What is kept, and what goes, as it lies on the server.

use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::{Commit, Housekeeping, IdleStream, Leases, Log, Publish, Retention};
use keyrail_ordering::Effects;

use crate::world::*;

async fn with(world: &World, retention: Retention) -> RedisBroker {
    let settings = RedisSettings { retention, ..RedisSettings::default() };
    RedisBroker::connect(&world.server.url(), settings).await.unwrap()
}

async fn drain(broker: &RedisBroker, key_text: &str) {
    let held = broker.acquire(partition(key_text), &owner("d"), TTL_MS, 1_000).await.unwrap();
    let entries = held.entries.iter().map(|entry| entry.at.clone()).collect();
    let all = Commit { entries, effects: Effects::default(), take_max: 1, release: true, version: None };
    assert!(broker.commit(&held.lease, all).await.unwrap().released);
}

async fn idle(broker: &RedisBroker) -> Vec<IdleStream> {
    broker.idle_streams(&category("order"), 0, 100).await.unwrap().0
}

#[tokio::test]
async fn the_newest_settled_entries_are_kept_as_retention_says() {
    let world = World::new().await;
    let keeping = with(&world, Retention { entries: 3, age_ms: 0 }).await;
    world.publish("k1", 1..=10).await;
    drain(&keeping, "k1").await;
    assert_eq!(world.number("XLEN order:k1").await, 3);
    assert_eq!(idle(&keeping).await, []);
    assert_eq!(idle(&world.a).await.len(), 1, "another host keeps nothing");
    assert_eq!(world.number("XLEN order:k1").await, 0);
}

#[tokio::test]
async fn young_settled_entries_are_kept_as_retention_says() {
    let world = World::new().await;
    let keeping = with(&world, Retention { entries: 0, age_ms: 3_600_000 }).await;
    // Two that are old: recorded in 1970.
    for n in 0..2 {
        world.cli(&format!("XADD order:k1 1-* id old-{n} type Placed version 1 at 1 data {{}}")).await;
    }
    world.cli("ZADD order:__behind__:h 0 k1").await;
    world.cli("HSET order:__partitions__ k1 1").await;
    world.publish("k1", 1..=3).await;
    drain(&keeping, "k1").await;
    assert_eq!(world.number("XLEN order:k1").await, 3);
    assert_eq!(idle(&keeping).await, []);
}

#[tokio::test]
async fn retention_never_drops_what_a_group_has_still_to_see() {
    let world = World::new().await;
    register(&world.a, &handler("late", &["order"], false)).await;
    let keeping = with(&world, Retention { entries: 1, age_ms: 0 }).await;
    world.publish("k1", 1..=5).await;
    drain(&keeping, "k1").await;
    assert_eq!(world.number("XLEN order:k1").await, 5);
}

#[tokio::test]
async fn c024_a_reaped_key_leaves_its_state_and_its_dead_letters_alone() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.a.fail(&held.lease, &held.entries[0].at, 1, "no", 0).await.unwrap();
    let mut first = settle(&held.entries[0]);
    first.effects.state.push(put("n", "1"));
    world.a.commit(&held.lease, first).await.unwrap();
    world.a.release(&held.lease).await.unwrap();
    let by = keyrail_broker::By { who: "ann".into(), reason: "why not".into() };
    let second = held.entries[1].at.clone();
    keyrail_broker::Operate::act_on_head(
        &world.a,
        &partition("k1"),
        &second,
        keyrail_broker::HeadAction::SetAside,
        &by,
    )
    .await
    .unwrap();
    let seen = idle(&world.a).await;
    assert_eq!(world.a.reap(&seen).await.unwrap(), 1);
    let redis::Value::Array(keys) = world.cli("KEYS *k1*").await else { panic!() };
    let mut keys: Vec<String> = keys.into_iter().map(|key| redis::from_redis_value(key).unwrap()).collect();
    keys.retain(|key| !key.contains("__seen__"));
    keys.sort();
    assert_eq!(keys, ["order:k1:__state__:h", "order:k1:dlq"]);
    for (list, what) in [("HEXISTS order:__owners__:h k1", "owner"), ("HLEN order:__partitions__", "index")] {
        assert_eq!(world.number(list).await, 0, "{what}");
    }
    assert_eq!(world.number("ZCARD order:__dlqs__").await, 1);
}

#[tokio::test]
async fn a_process_managers_lease_keeps_a_key_and_its_records_go_with_the_last_category() {
    let world = World::new().await;
    register(&world.a, &handler("pm", &["order", "payment"], true)).await;
    world.a.publish(vec![event("payment", "x", "p1"), event("order", "x", "o1")]).await.unwrap();
    drain(&world.a, "x").await;
    let held = world.a.acquire(manager("x"), &owner("m"), TTL_MS, 10).await.unwrap();
    let mut next = held.entries.clone();
    while let Some(entry) = next.first() {
        let mut commit = settle(entry);
        commit.take_max = 1;
        next = world.a.commit(&held.lease, commit).await.unwrap().entries;
    }
    assert_eq!(idle(&world.a).await, [], "the manager holds it");
    world.a.release(&held.lease).await.unwrap();
    let seen = idle(&world.a).await;
    assert_eq!(world.a.reap(&seen).await.unwrap(), 1);
    assert_eq!(world.number("HLEN __pm__:__owners__:pm").await, 1, "payment has x too");
    let (seen, _) = world.a.idle_streams(&category("payment"), 0, 10).await.unwrap();
    assert_eq!(world.a.reap(&seen).await.unwrap(), 1);
    assert_eq!(world.number("HLEN __pm__:__owners__:pm").await, 0);
}

#[tokio::test]
async fn c050_an_index_entry_without_stream_is_found_and_goes() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    world.cli("DEL order:k1").await;
    let seen = idle(&world.a).await;
    assert_eq!((seen.len(), seen[0].last.epoch), (1, 0));
    world.publish("k1", 2..=2).await;
    assert_eq!(world.a.reap(&seen).await.unwrap(), 0, "it began anew meanwhile");
    world.cli("DEL order:k1").await;
    assert_eq!(world.a.reap(&seen).await.unwrap(), 1);
    assert_eq!(world.a.live_partitions(&category("order")).await.unwrap(), 0);
}

#[tokio::test]
async fn generations_begin_above_the_floor() {
    let world = World::new().await;
    let settings = RedisSettings { generation_floor: 5_000, ..RedisSettings::default() };
    let broker = RedisBroker::connect(&world.server.url(), settings).await.unwrap();
    world.publish("k1", 1..=1).await;
    let held = broker.acquire(partition("k1"), &owner("a"), TTL_MS, 1).await.unwrap();
    assert!(held.lease.generation.0 > 5_000);
}
