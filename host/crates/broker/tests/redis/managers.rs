//! Process managers: two lanes of each category under one lease, and what is kept of them.

use keyrail_broker::{Inspect, Leases, Log, Publication, Publish, ReadySource};
use keyrail_ordering::{HaltCause, HaltRecord, Lane, Lease};

use crate::world::*;

async fn begin() -> World {
    let world = World::new().await;
    register(&world.a, &handler("pm", &["order", "payment"], true)).await;
    world
}

async fn publish(world: &World, events: &[(&str, &str, Lane)]) {
    let publication = |(name, id, lane): &(&str, &str, Lane)| Publication { lane: *lane, ..event(name, "x", id) };
    for answer in world.a.publish(events.iter().map(publication).collect()).await.unwrap() {
        answer.unwrap();
    }
}

/// Settles one entry after the other, each with the next read of one, and answers with the order in which they came.
async fn drain(world: &World, lease: &Lease, mut next: Vec<std::sync::Arc<keyrail_ordering::Entry>>) -> Vec<String> {
    let mut order = vec![];
    while let Some(entry) = next.first() {
        order.extend(ids(std::slice::from_ref(entry)));
        let mut commit = settle(entry);
        commit.take_max = 1;
        next = world.a.commit(lease, commit).await.unwrap().entries;
    }
    order
}

#[tokio::test]
async fn primaries_take_turns_and_every_backfill_comes_after_all_of_them() {
    use Lane::{Backfill, Primary};
    let world = begin().await;
    let events = [
        ("order", "bo1", Backfill),
        ("payment", "bp1", Backfill),
        ("order", "bo2", Backfill),
        ("order", "o1", Primary),
        ("order", "o2", Primary),
        ("order", "o3", Primary),
        ("payment", "p1", Primary),
        ("payment", "p2", Primary),
    ];
    publish(&world, &events).await;
    let pm = ReadySource::ProcessManager { group: group("pm") };
    let (rows, next) = world.a.partitions(&pm, 0, 10).await.unwrap();
    assert!(rows.is_empty(), "nobody owned it yet");
    let (rows, _) = world.a.partitions(&pm, next.unwrap(), 10).await.unwrap();
    assert_eq!(rows[0].waiting, 8, "both lanes of all categories");
    let held = world.a.acquire(manager("x"), &owner("a"), TTL_MS, 1).await.unwrap();
    let order = drain(&world, &held.lease, held.entries.clone()).await;
    assert_eq!(order, ["o1", "p1", "o2", "p2", "o3", "bo1", "bp1", "bo2"]);
}

#[tokio::test]
async fn a_primary_event_goes_before_the_rest_of_the_backfill() {
    use Lane::{Backfill, Primary};
    let world = begin().await;
    publish(&world, &[("order", "bo1", Backfill), ("order", "bo2", Backfill)]).await;
    let held = world.a.acquire(manager("x"), &owner("a"), TTL_MS, 1).await.unwrap();
    publish(&world, &[("payment", "p1", Primary)]).await;
    assert_eq!(drain(&world, &held.lease, held.entries.clone()).await, ["bo1", "p1", "bo2"]);
}

#[tokio::test]
async fn a_stream_that_begins_anew_frees_the_process_manager_that_stood_on_it() {
    let world = begin().await;
    publish(&world, &[("payment", "p1", Lane::Primary)]).await;
    let held = world.a.acquire(manager("x"), &owner("a"), TTL_MS, 1).await.unwrap();
    world.a.fail(&held.lease, &held.entries[0].at, 1, "no", 0).await.unwrap();
    let record = HaltRecord {
        head: held.entries[0].at.clone(),
        cause: HaltCause::Poison,
        attempts: 1,
        error: "no".into(),
        handler_version: "1".into(),
    };
    world.a.halt(&held.lease, &record).await.unwrap();
    world.cli("DEL payment:x").await;
    publish(&world, &[("payment", "p2", Lane::Primary)]).await;
    let pm = ReadySource::ProcessManager { group: group("pm") };
    assert_eq!(world.a.ready(&pm, 0, 10).await.unwrap().keys, [key("x")], "it is woken");
    let next = world.a.acquire(manager("x"), &owner("b"), TTL_MS, 1).await.unwrap();
    assert_eq!((ids(&next.entries), next.attempts), (vec!["p2".to_string()], None));
}

#[tokio::test]
async fn a_take_reads_no_other_stream_while_one_is_in_hand() {
    use Lane::{Backfill, Primary};
    let world = begin().await;
    publish(&world, &[("order", "o1", Primary)]).await;
    let held = world.a.acquire(manager("x"), &owner("a"), TTL_MS, 10).await.unwrap();
    publish(&world, &[("payment", "p1", Primary), ("order", "o2", Primary), ("order", "b1", Backfill)]).await;
    assert_eq!(world.a.take(&held.lease, 10, false).await.unwrap().entries, []);
    // A key's own events may join what is in hand; its backfill may not.
    let key = world.acquire(&world.a, "x", "a").await;
    assert_eq!(ids(&key.entries), ["o1", "o2"]);
    publish(&world, &[("order", "o3", Primary)]).await;
    assert_eq!(ids(&world.a.take(&key.lease, 10, false).await.unwrap().entries), ["o3"]);
    assert_eq!(world.a.take(&key.lease, 10, false).await.unwrap().entries, []);
}
