//! A stale owner is stopped at every operation; crashes are counted; generations only grow.

use keyrail_broker::{AcquireError, Error, FencedError, Leases, Log, Publish};
use keyrail_ordering::{HaltCause, HaltRecord};

use crate::world::*;

fn halt_record(head: keyrail_ordering::EntryRef) -> HaltRecord {
    HaltRecord { head, cause: HaltCause::Poison, attempts: 5, error: "no".into(), handler_version: "1".into() }
}

#[tokio::test]
async fn c028_a_stale_owner_is_fenced_at_every_operation() {
    let world = World::new().await;
    world.publish("k1", 1..=5).await;
    let stale = world.acquire(&world.a, "k1", "a").await;
    world.lapse("k1").await;
    let present = world.acquire(&world.b, "k1", "b").await;
    assert_eq!(ids(&present.entries), ["k1-1", "k1-2", "k1-3", "k1-4", "k1-5"]);
    assert!(present.lease.generation > stale.lease.generation);

    let (lease, head) = (&stale.lease, &stale.entries[0]);
    let mut with_effects = settle(head);
    with_effects.effects.state.push(put("n", "stale"));
    let fenced = |result: Result<(), FencedError>| assert!(matches!(result, Err(FencedError::Fenced)), "{result:?}");
    fenced(world.a.take(lease, 10, false).await.map(drop));
    fenced(world.a.take(lease, 10, true).await.map(drop));
    fenced(world.a.commit(lease, with_effects).await.map(drop));
    fenced(world.a.fail(lease, &head.at, 1, "stale", 0).await);
    fenced(world.a.halt(lease, &halt_record(head.at.clone())).await);
    fenced(world.a.state(lease, "n").await.map(drop));
    let renewed = world.a.heartbeat().renew(&[stale.lease.clone(), present.lease.clone()], TTL_MS).await.unwrap();
    assert_eq!(renewed, [false, true]);
    world.a.release(lease).await.unwrap();

    assert_eq!(world.b.state(&present.lease, "n").await.unwrap(), None);
    assert_eq!(ids(&world.b.take(&present.lease, 10, true).await.unwrap().entries), ids(&present.entries));
    commit_all(&world.b, &present.lease, &present.entries).await;
}

#[tokio::test]
async fn the_same_owner_at_an_earlier_generation_is_fenced() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let earlier = world.acquire(&world.a, "k1", "a").await;
    world.lapse("k1").await;
    let later = world.acquire(&world.a, "k1", "a").await;
    let refused = world.a.commit(&earlier.lease, settle(&earlier.entries[0])).await;
    assert!(matches!(refused, Err(FencedError::Fenced)));
    commit_all(&world.a, &later.lease, &later.entries).await;
}

#[tokio::test]
async fn only_the_head_is_settled_failed_or_halted() {
    let world = World::new().await;
    world.publish("k1", 1..=3).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let (first, second) = (&held.entries[0], &held.entries[1]);
    let head = |result: Result<(), FencedError>| match result {
        Err(FencedError::NotHead { head, .. }) => head.unwrap(),
        other => panic!("{other:?}"),
    };
    let mut commit = settle(second);
    commit.effects.state.push(put("n", "2"));
    assert_eq!(head(world.a.commit(&held.lease, commit).await.map(drop)), first.at.id);
    assert_eq!(head(world.a.fail(&held.lease, &second.at, 1, "no", 0).await), first.at.id);
    assert_eq!(head(world.a.halt(&held.lease, &halt_record(second.at.clone())).await), first.at.id);
    let mut skipping = settle(first);
    skipping.entries.push(held.entries[2].at.clone());
    assert_eq!(head(world.a.commit(&held.lease, skipping).await.map(drop)), first.at.id);
    assert_eq!(world.a.state(&held.lease, "n").await.unwrap(), None);

    world.a.commit(&held.lease, settle(first)).await.unwrap();
    let again = world.a.commit(&held.lease, settle(first)).await;
    assert!(matches!(again, Err(FencedError::NotHead { head: Some(head), .. }) if head == second.at.id));
}

#[tokio::test]
async fn a_batch_is_settled_from_the_head_on() {
    let world = World::new().await;
    world.publish("k1", 1..=3).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let mut commit = settle(&held.entries[0]);
    commit.entries.push(held.entries[1].at.clone());
    world.a.commit(&held.lease, commit).await.unwrap();
    assert_eq!(ids(&world.a.take(&held.lease, 10, true).await.unwrap().entries), ["k1-3"]);
}

#[tokio::test]
async fn a_lapsed_lease_counts_a_crash_of_the_head_and_a_release_does_not() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let first = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(first.attempts, None);
    world.a.release(&first.lease).await.unwrap();
    let second = world.acquire(&world.b, "k1", "b").await;
    assert_eq!(second.attempts, None);
    world.b.fail(&second.lease, &second.entries[0].at, 1, "boom", 0).await.unwrap();
    for crashes in 1..=3 {
        world.lapse("k1").await;
        let next = world.acquire(&world.a, "k1", "a").await;
        let record = next.attempts.unwrap();
        assert_eq!((record.head, record.attempts, record.crashes), (next.entries[0].at.clone(), 1, crashes));
    }
    // Settling the head forgets it.
    world.lapse("k1").await;
    let last = world.acquire(&world.a, "k1", "a").await;
    world.a.commit(&last.lease, settle(&last.entries[0])).await.unwrap();
    world.lapse("k1").await;
    let record = world.acquire(&world.a, "k1", "a").await.attempts.unwrap();
    assert_eq!((record.head, record.attempts, record.crashes), (last.entries[1].at.clone(), 0, 1));
}

/// Decision 0011: whether a kept key's owner had read its next event is not on record, so it counts once; after a release it does not.
#[tokio::test]
async fn an_owner_that_dies_while_it_keeps_a_key_is_one_crash_and_after_a_release_none() {
    for (is_released, expected) in [(false, Some(1)), (true, None)] {
        let world = World::new().await;
        world.publish("k1", 1..=1).await;
        let held = world.acquire(&world.a, "k1", "a").await;
        world.a.commit(&held.lease, settle(&held.entries[0])).await.unwrap();
        world.publish("k1", 2..=2).await;
        if is_released {
            world.a.release(&held.lease).await.unwrap();
        } else {
            world.lapse("k1").await;
        }
        let next = world.acquire(&world.b, "k1", "b").await;
        assert_eq!(next.attempts.map(|record| record.crashes), expected);
        // It is forgotten with that event.
        world.b.commit(&next.lease, settle(&next.entries[0])).await.unwrap();
        world.b.release(&next.lease).await.unwrap();
        world.publish("k1", 3..=3).await;
        assert_eq!(world.acquire(&world.a, "k1", "a").await.attempts, None);
    }
}

#[tokio::test]
async fn a_lease_ends_by_itself_and_a_renewed_one_does_not() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    let short = world.a.acquire(partition("k1"), &owner("a"), 40, 10).await.unwrap();
    let kept = world.a.acquire(partition("k2"), &owner("a"), 40, 10).await.unwrap();
    assert_eq!(world.a.heartbeat().renew(&[kept.lease], TTL_MS).await.unwrap(), [true]);
    let next = acquire_when_lapsed(&world.b, "k1", "b").await;
    assert!(next.lease.generation > short.lease.generation);
    let held = world.b.acquire(partition("k2"), &owner("b"), TTL_MS, 10).await;
    assert!(matches!(held, Err(AcquireError::Held { holder }) if holder.starts_with("a:")));
}

#[tokio::test]
async fn a_generation_never_begins_again_even_if_the_counter_is_lost() {
    let world = World::new().await;
    let mut last = 0;
    for round in 0..6 {
        let held = world.acquire(&world.a, "k1", "a").await;
        assert!(held.lease.generation.0 > last);
        last = held.lease.generation.0;
        world.a.release(&held.lease).await.unwrap();
        if round == 3 {
            world.cli("DEL __generation__").await;
        }
    }
}

#[tokio::test]
async fn a_try_is_counted_once() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let head = &held.entries[0].at;
    world.a.fail(&held.lease, head, 1, "one", 0).await.unwrap();
    world.a.fail(&held.lease, head, 1, "one again", 0).await.unwrap();
    world.a.fail(&held.lease, head, 2, "two", 3_600_000).await.unwrap();
    let skipped = world.a.fail(&held.lease, head, 4, "four", 0).await;
    assert!(matches!(skipped, Err(FencedError::Broker(Error::Refused(why))) if why.contains("does not follow try 2")));
    let record = world.a.take(&held.lease, 10, true).await.unwrap().attempts.unwrap();
    assert_eq!((record.attempts, record.last_error.as_str()), (2, "two"));
    assert!(record.wait_ms > 3_000_000);
    // Not due, so nobody is sent there; a release keeps that.
    world.a.release(&held.lease).await.unwrap();
    assert_eq!(world.a.ready(&source(), 0, 10).await.unwrap().keys, []);
}

#[tokio::test]
async fn a_halted_partition_stands_still_and_wakes_nobody() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let record = halt_record(held.entries[0].at.clone());
    world.a.halt(&held.lease, &record).await.unwrap();
    let refused = world.b.acquire(partition("k1"), &owner("b"), TTL_MS, 10).await;
    assert!(matches!(refused, Err(AcquireError::Halted(found)) if *found == record));
    world.a.publish(vec![event("order", "k1", "later")]).await.unwrap();
    assert_eq!(world.a.ready(&source(), 0, 10).await.unwrap().keys, []);
    assert!(matches!(world.a.commit(&held.lease, settle(&held.entries[0])).await, Err(FencedError::Fenced)));
}

#[tokio::test]
async fn a_commit_that_reads_an_empty_row_does_not_say_that_nothing_is_left() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let held = world.a.acquire(partition("k1"), &owner("a"), TTL_MS, 2).await.unwrap();
    assert!(held.more, "as many as were asked for");
    let mut all = settle(&held.entries[0]);
    all.entries.push(held.entries[1].at.clone());
    all.take_max = 10;
    let committed = world.a.commit(&held.lease, all).await.unwrap();
    // The key is still in the ready set, so nobody would ring for its next event.
    assert!(committed.entries.is_empty() && committed.more, "{committed:?}");
    let taken = world.a.take(&held.lease, 10, false).await.unwrap();
    assert!(taken.entries.is_empty() && !taken.more);
    assert_eq!(world.number("ZCARD order:__behind__:h").await, 0);
}
