//! A category that is not partitioned, as it lies on the server.

use keyrail_broker::{By, Delivery, DeliveryRef, FencedError, Operate, Publish, SharedLog, SharedSource, SharedTaken};
use keyrail_ordering::Effects;

use crate::world::*;

const LONG_IDLE_MS: u64 = 600_000;

fn source() -> SharedSource {
    SharedSource { group: group("tally"), category: category("metrics") }
}

async fn begin(ids: &[&str]) -> World {
    let world = World::new().await;
    register(&world.a, &unordered("tally")).await;
    for answer in world.a.publish(ids.iter().map(|id| metric(id)).collect()).await.unwrap() {
        answer.unwrap();
    }
    world
}

async fn take(world: &World, name: &str, max: usize, idle_min_ms: u64) -> SharedTaken {
    world.a.take_shared(&source(), &owner(name), max, idle_min_ms).await.unwrap()
}

fn at(delivery: &Delivery) -> DeliveryRef {
    DeliveryRef { id: delivery.entry.at.id, count: delivery.count }
}

fn named(deliveries: &[Delivery]) -> Vec<String> {
    ids(&deliveries.iter().map(|delivery| delivery.entry.clone()).collect::<Vec<_>>())
}

async fn commit(world: &World, name: &str, delivery: &Delivery) -> Result<(), FencedError> {
    world.a.commit_shared(&source(), &owner(name), at(delivery), Effects::default()).await
}

#[tokio::test]
async fn c009_hosts_that_are_gone_leave_no_name_and_no_record_behind() {
    let world = begin(&["m1"]).await;
    let mut last = take(&world, "h0", 10, LONG_IDLE_MS).await.deliveries;
    for n in 1..50 {
        let host = format!("h{n}");
        last = take(&world, &host, 10, 0).await.deliveries;
        assert_eq!((named(&last), last[0].count), (vec!["m1".to_string()], n + 1));
        assert_eq!(u64::from(last[0].crashes), n);
    }
    commit(&world, "h49", &last[0]).await.unwrap();
    take(&world, "h50", 10, 0).await;
    let redis::Value::Array(consumers) = world.cli("XINFO CONSUMERS metrics tally").await else { panic!() };
    assert!(consumers.len() <= 1, "{consumers:?}");
    for gone in ["metrics:__attempts__:tally", "metrics:__waiting__:tally"] {
        assert_eq!(world.number(&format!("EXISTS {gone}")).await, 0, "{gone}");
    }
    assert_eq!(world.number("XLEN metrics").await, 0, "settled by the only group");
}

#[tokio::test]
async fn an_entry_that_was_deleted_in_somebodys_hands_becomes_a_dead_letter() {
    let world = begin(&["m1", "m2", "m3"]).await;
    let taken = take(&world, "a", 10, LONG_IDLE_MS).await.deliveries;
    for delivery in &taken[..2] {
        world.cli(&format!("XDEL metrics {}", delivery.entry.at.id)).await;
    }
    // Its host may still commit one; a claim of the other finds it gone.
    world.a.keep_shared(&source(), &owner("a"), &[at(&taken[0])]).await.unwrap();
    commit(&world, "a", &taken[0]).await.unwrap();
    assert_eq!(named(&take(&world, "b", 10, 0).await.deliveries), ["m3"]);
    let (letters, _) = world.a.dead_letters(&category("metrics"), None, 0, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].origin.id, letters[0].event_id.as_str()), (taken[1].entry.at.id, ""));
    assert!(letters[0].error.contains("deleted"), "{}", letters[0].error);
}

#[tokio::test]
async fn a_pause_takes_deliveries_away_and_gives_them_out_again_without_a_crash() {
    let world = begin(&["m1", "m2"]).await;
    let taken = take(&world, "a", 1, LONG_IDLE_MS).await.deliveries;
    let by = By { who: "ann".into(), reason: "why not".into() };
    assert!(world.a.pause(&category("metrics"), None, &by).await.unwrap());
    assert!(matches!(commit(&world, "a", &taken[0]).await, Err(FencedError::Fenced)));
    assert_eq!(named(&take(&world, "b", 10, 0).await.deliveries), [] as [String; 0]);
    assert!(world.a.resume(&category("metrics"), None, &by).await.unwrap());
    let again = take(&world, "b", 10, LONG_IDLE_MS).await.deliveries;
    assert_eq!(named(&again), ["m1", "m2"]);
    assert_eq!((again[0].count, again[0].attempts, again[0].crashes), (2, 0, 0));
}

#[tokio::test]
async fn what_waits_is_told_and_never_trimmed() {
    let world = begin(&["m1", "m2"]).await;
    let taken = take(&world, "a", 10, LONG_IDLE_MS).await.deliveries;
    world.a.fail_shared(&source(), &owner("a"), at(&taken[0]), "no", 60_000).await.unwrap();
    commit(&world, "a", &taken[1]).await.unwrap();
    let none = take(&world, "b", 10, 0).await;
    assert!(none.deliveries.is_empty() && none.due_ms.is_some_and(|due| due > 30_000 && due <= 60_000), "{none:?}");
    assert!(world.number("XLEN metrics").await >= 1);
    world.cli(&format!("ZADD metrics:__waiting__:tally 0 {}", taken[0].entry.at.id)).await;
    let again = take(&world, "b", 10, LONG_IDLE_MS).await.deliveries;
    assert_eq!((named(&again), again[0].attempts, again[0].crashes), (vec!["m1".to_string()], 1, 0));
}

#[tokio::test]
async fn a_key_of_another_type_refuses_before_anything_is_written() {
    let world = begin(&["m1"]).await;
    let taken = take(&world, "a", 10, LONG_IDLE_MS).await.deliveries;
    world.cli("SET metrics:dlq x").await;
    let refused = world.a.set_aside_shared(&source(), &owner("a"), at(&taken[0]), "no").await.unwrap_err();
    assert!(refused.to_string().contains("metrics:dlq"), "{refused}");
    world.cli("DEL metrics:dlq").await;
    commit(&world, "a", &taken[0]).await.unwrap();
}

#[tokio::test]
async fn the_same_host_at_an_earlier_delivery_is_fenced() {
    let world = begin(&["m1"]).await;
    let earlier = take(&world, "a", 1, LONG_IDLE_MS).await.deliveries;
    let later = take(&world, "a", 1, 0).await.deliveries;
    assert_eq!((earlier[0].count, later[0].count, later[0].crashes), (1, 2, 1));
    assert!(matches!(commit(&world, "a", &earlier[0]).await, Err(FencedError::Fenced)));
    world.a.return_shared(&source(), &owner("a"), &[at(&earlier[0])]).await.unwrap();
    commit(&world, "a", &later[0]).await.unwrap();
    assert!(matches!(commit(&world, "a", &later[0]).await, Err(FencedError::Fenced)), "it is settled");
}
