//! Operators and housekeeping on the embedded broker: what its contract cases do not say.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{
    CommitWords, READ_MAX, Story, assert_order, billing, category, commit, event, event_of, group, halt_record, id_of,
    key, listen, next_bell, partition, primary, publication, source,
};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{
    AcquireError, Bell, Broker, By, DeliveryRef, FencedError, HeadAction, IdleStream, OperateError, Publication,
    REDRIVEN_FOR, ReadySource, Retention, SharedSource,
};
use keyrail_ordering::{Effects, EntryId, EntryRef, Event, Lane, OwnerId};

fn by() -> By {
    By { who: "ann".into(), reason: "a fire".into() }
}

async fn begin() -> Story {
    begin_with(EmbeddedSettings::default()).await.0
}

async fn begin_with(settings: EmbeddedSettings) -> (Story, Arc<EmbeddedBroker>) {
    let broker = Arc::new(EmbeddedBroker::memory(settings).unwrap());
    (Story::begin(Subject::new(broker.clone() as Arc<dyn Broker>)).await, broker)
}

async fn actions(story: &Story) -> Vec<String> {
    story.broker.audit(0, READ_MAX).await.unwrap().0.into_iter().map(|row| row.action).collect()
}

/// The key `a`, halted on the first of `e1` and `e2`.
async fn halted() -> (Story, EntryRef) {
    let story = begin().await;
    story.publish("a", ["e1", "e2"]).await;
    let acquired = story.acquire("A", "a").await;
    let head = acquired.entries[0].at.clone();
    story.broker.halt(&acquired.lease, &halt_record(&head)).await.unwrap();
    (story, head)
}

/// The contract allows one crash; here it is known that nothing was in hand.
#[tokio::test]
async fn an_owner_that_dies_with_empty_hands_is_no_crash() {
    let story = begin().await;
    story.publish("a", ["e1"]).await;
    let first = story.acquire("A", "a").await;
    story.commit(&first.lease, &first.entries[0]).await;
    story.publish("a", ["e2"]).await;
    let second = story.take_over(&first.lease, "B").await;
    assert!(second.attempts.is_none(), "it had not read the event");
}

#[tokio::test]
async fn a_halted_head_is_retried_skipped_or_set_aside() {
    for action in [HeadAction::Retry, HeadAction::Skip, HeadAction::SetAside] {
        let (story, head) = halted().await;
        let shown = story.broker.head(&billing("a")).await.unwrap().unwrap();
        assert_eq!((&shown.entry.at, shown.waiting, shown.owner), (&head, 2, None));
        assert_eq!(shown.halted, Some(halt_record(&head)));
        assert_eq!(story.broker.halted(&source("billing"), 0, 10).await.unwrap().0.len(), 1);
        let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
        story.broker.act_on_head(&billing("a"), &head, action, &by()).await.unwrap();
        assert!(matches!(next_bell(&mut bells).await, Bell::Ready { key: found, .. } if found == key("a")));
        assert!(story.broker.halted(&source("billing"), 0, 10).await.unwrap().0.is_empty());
        let next = story.acquire("B", "a").await;
        assert!(next.attempts.is_none(), "a full budget");
        let expected: &[&str] = if action == HeadAction::Retry { &["e1", "e2"] } else { &["e2"] };
        assert_order(&next.entries, expected);
        let letters = story.broker.dead_letters(&category("order"), Some(&key("a")), 0, 10).await.unwrap().0;
        assert_eq!(letters.len(), usize::from(action == HeadAction::SetAside));
        if let Some(letter) = letters.first() {
            assert_eq!((letter.event_id.as_str(), letter.attempts, letter.error.as_str()), ("e1", 5, "it is too sour"));
        }
        // It is not the head any more, or it is owned anew: the second one changes nothing.
        if action != HeadAction::Retry {
            let again = story.broker.act_on_head(&billing("a"), &head, action, &by()).await;
            let e2 = next.entries[0].at.clone();
            assert!(matches!(&again, Err(OperateError::NotHead { head: Some(head), .. }) if *head == e2), "{again:?}");
            story.commit(&next.lease, &next.entries[0]).await;
        }
        assert_eq!(actions(&story).await.len(), 1);
    }
}

#[tokio::test]
async fn an_action_fences_the_owner_and_counts_no_crash() {
    let story = begin().await;
    story.publish("a", ["e1", "e2"]).await;
    let old = story.acquire("A", "a").await;
    story.broker.fail(&old.lease, &old.entries[0].at, 1, "no", 600_000).await.unwrap();
    let shown = story.broker.head(&billing("a")).await.unwrap().unwrap();
    assert_eq!((shown.owner, shown.attempts.map(|record| record.attempts)), (Some(OwnerId::new("A")), Some(1)));
    story.broker.act_on_head(&billing("a"), &old.entries[0].at, HeadAction::Retry, &by()).await.unwrap();
    story.assert_fenced(&old.lease, &old.entries[0]).await;
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["a"], "it does not wait any more");
    let new = story.acquire("B", "a").await;
    assert_order(&new.entries, &["e1", "e2"]);
    assert!(new.attempts.is_none());
    story.broker.act_on_head(&billing("a"), &new.entries[0].at, HeadAction::Skip, &by()).await.unwrap();
    story.assert_fenced(&new.lease, &new.entries[0]).await;
    assert_eq!(story.drain("C", billing("a")).await, ["e2"]);
    assert!(story.broker.head(&billing("a")).await.unwrap().is_none());
    let nothing = story.broker.act_on_head(&billing("a"), &new.entries[0].at, HeadAction::Skip, &by()).await;
    assert!(matches!(nothing, Err(OperateError::NotHead { head: None, .. })));
    assert_eq!(actions(&story).await, ["skip", "retry"]);
}

#[tokio::test]
async fn the_last_head_that_is_skipped_leaves_nothing_ready() {
    let story = begin().await;
    story.publish("a", ["e1"]).await;
    let head = story.broker.head(&billing("a")).await.unwrap().unwrap().entry.at.clone();
    story.broker.act_on_head(&billing("a"), &head, HeadAction::Skip, &by()).await.unwrap();
    assert_eq!(story.backlog().await.ready, 0);
    story.publish("a", ["e2"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e2"]);
}

#[tokio::test]
async fn a_dead_letter_is_published_again_for_its_group_or_purged() {
    let (story, head) = halted().await;
    story.broker.act_on_head(&billing("a"), &head, HeadAction::SetAside, &by()).await.unwrap();
    let order = category("order");
    let letter = story.broker.dead_letters(&order, None, 0, 10).await.unwrap().0.remove(0);
    let wrong = EntryId::new(letter.id.epoch, letter.id.sequence + 1);
    for answer in [
        story.broker.redrive(&order, Some(&key("a")), wrong, &by()).await.map(drop),
        story.broker.redrive(&order, Some(&key("b")), letter.id, &by()).await.map(drop),
        story.broker.purge(&order, Some(&key("b")), letter.id, &by()).await,
    ] {
        assert!(matches!(answer, Err(OperateError::NoDeadLetter { .. })), "{answer:?}");
    }
    let again = story.broker.redrive(&order, Some(&key("a")), letter.id, &by()).await.unwrap();
    assert!(again > head.id);
    let acquired = story.acquire("A", "a").await;
    assert_order(&acquired.entries, &["e2", "e1"]);
    let headers = &event_of(&acquired.entries[1]).headers;
    assert_eq!(*headers, [(REDRIVEN_FOR.to_owned(), "billing".to_owned())]);
    let twice = story.broker.redrive(&order, Some(&key("a")), letter.id, &by()).await;
    assert!(matches!(twice, Err(OperateError::NoDeadLetter { .. })));

    story.broker.act_on_head(&billing("a"), &acquired.entries[0].at, HeadAction::SetAside, &by()).await.unwrap();
    let letter = story.broker.dead_letters(&order, None, 0, 10).await.unwrap().0.remove(0);
    story.broker.purge(&order, Some(&key("a")), letter.id, &by()).await.unwrap();
    assert!(story.broker.dead_letters(&order, None, 0, 10).await.unwrap().0.is_empty());
    assert_eq!(actions(&story).await, ["purge", "set-aside", "redrive", "set-aside"]);
}

#[tokio::test]
async fn a_pause_takes_everything_away_until_it_is_resumed() {
    for paused_key in [None, Some(key("a"))] {
        let story = begin().await;
        story.publish("a", ["e1"]).await;
        story.publish("b", ["b1"]).await;
        let order = category("order");
        let a = story.acquire("A", "a").await;
        let b = story.acquire("A", "b").await;
        assert!(story.broker.pause(&order, paused_key.as_ref(), &by()).await.unwrap());
        assert!(!story.broker.pause(&order, paused_key.as_ref(), &by()).await.unwrap(), "it is already");
        story.assert_fenced(&a.lease, &a.entries[0]).await;
        assert!(matches!(story.try_acquire("B", "a").await, Err(AcquireError::Paused)));
        let committed = story.broker.commit(&b.lease, commit(&b.entries[0]).and_release()).await;
        if paused_key.is_none() {
            assert!(matches!(committed, Err(FencedError::Fenced)));
            assert!(story.offered(&source("billing"), READ_MAX).await.is_empty());
        } else {
            committed.unwrap();
        }
        let rows = story.broker.paused(&order).await.unwrap();
        assert_eq!((rows.len(), &rows[0].key, &rows[0].by), (1, &paused_key, &by()));
        story.publish("a", ["e2"]).await;
        assert!(story.broker.head(&billing("a")).await.unwrap().unwrap().paused);
        assert!(story.backlog().await.ready > 0, "it is still to be done");
        let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
        assert!(!story.broker.resume(&order, Some(&key("b")), &by()).await.unwrap());
        assert!(story.broker.resume(&order, paused_key.as_ref(), &by()).await.unwrap());
        assert!(matches!(next_bell(&mut bells).await, Bell::Look { .. } | Bell::Ready { .. }));
        let again = story.acquire("B", "a").await;
        assert_order(&again.entries, &["e1", "e2"]);
        assert!(again.attempts.is_none(), "a pause is no crash");
        assert_eq!(actions(&story).await, ["resume", "pause"]);
    }
}

#[tokio::test]
async fn what_operators_did_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyrail.db");
    let open = || {
        let broker = EmbeddedBroker::open(&path, EmbeddedSettings::default()).unwrap();
        Story::empty(Subject::new(Arc::new(broker)))
    };
    let first = open();
    first.register("billing", "order", Some("client")).await;
    first.publish("a", ["e1", "e2"]).await;
    let head = first.broker.head(&billing("a")).await.unwrap().unwrap().entry.at.clone();
    first.broker.act_on_head(&billing("a"), &head, HeadAction::SetAside, &by()).await.unwrap();
    first.broker.pause(&category("order"), Some(&key("a")), &by()).await.unwrap();
    drop(first);
    let second = open();
    assert!(matches!(second.try_acquire("A", "a").await, Err(AcquireError::Paused)));
    assert_eq!(second.broker.dead_letters(&category("order"), None, 0, 10).await.unwrap().0.len(), 1);
    assert_eq!(actions(&second).await, ["pause", "set-aside"]);
    second.broker.resume(&category("order"), Some(&key("a")), &by()).await.unwrap();
    assert_eq!(second.drain("A", billing("a")).await, ["e2"]);
}

#[tokio::test]
async fn lists_of_operators_are_paged() {
    let story = begin().await;
    for name in ["a", "b", "c"] {
        story.publish(name, ["e1", "e2"]).await;
        let acquired = story.acquire("A", name).await;
        story.broker.act_on_head(&billing(name), &acquired.entries[0].at, HeadAction::SetAside, &by()).await.unwrap();
        let acquired = story.acquire("A", name).await;
        story.broker.halt(&acquired.lease, &halt_record(&acquired.entries[0].at)).await.unwrap();
    }
    let (mut letters, mut audit, mut halts, mut cursors) = (vec![], vec![], vec![], [Some(0), Some(0), Some(0)]);
    while let Some(cursor) = cursors[0] {
        let (page, next) = story.broker.dead_letters(&category("order"), None, cursor, 2).await.unwrap();
        letters.extend(page.into_iter().map(|letter| letter.key.unwrap().to_string()));
        cursors[0] = next;
    }
    while let Some(cursor) = cursors[1] {
        let (page, next) = story.broker.audit(cursor, 2).await.unwrap();
        audit.extend(page.into_iter().map(|row| row.target));
        cursors[1] = next;
    }
    while let Some(cursor) = cursors[2] {
        let (page, next) = story.broker.halted(&source("billing"), cursor, 2).await.unwrap();
        halts.extend(page.into_iter().map(|(partition, _)| partition.key().to_string()));
        cursors[2] = next;
    }
    assert_eq!(letters, ["a", "b", "c"]);
    assert_eq!(audit, ["order/c (billing)", "order/b (billing)", "order/a (billing)"]);
    assert_eq!(halts, ["a", "b", "c"]);
}

#[tokio::test]
async fn an_empty_stream_is_forgotten_and_begins_anew() {
    let story = begin().await;
    story.register("audit", "order", Some("client")).await;
    let [e1] = story.publish("a", ["e1"]).await;
    let order = category("order");
    let idle = async || story.broker.idle_streams(&order, 0, 10).await.unwrap().0;
    let acquired = story.acquire("A", "a").await;
    story.broker.commit(&acquired.lease, commit(&acquired.entries[0]).put("total", "1")).await.unwrap();
    assert_eq!(idle().await, [], "audit has not seen it");
    story.drain("A", partition("audit", "order", "a")).await;
    assert_eq!(idle().await, [], "billing is owned");
    story.broker.release(&acquired.lease).await.unwrap();
    let seen = idle().await;
    assert_eq!(seen, [IdleStream { stream: primary("a"), last: e1 }]);
    assert_eq!(story.broker.live_partitions(&order).await.unwrap(), 1);

    // A publisher that comes in between is seen.
    let [e2] = story.publish("a", ["e2"]).await;
    assert_eq!(e2, EntryId::new(e1.epoch, 1));
    assert_eq!(story.broker.reap(&seen).await.unwrap(), 0);
    assert_eq!(story.drain("A", billing("a")).await, ["e2"]);
    story.drain("A", partition("audit", "order", "a")).await;
    assert_eq!(story.broker.reap(&seen).await.unwrap(), 0, "it is empty again, and has moved on since");
    assert_eq!(story.broker.reap(&idle().await).await.unwrap(), 1);
    assert_eq!(story.broker.live_partitions(&order).await.unwrap(), 0);
    assert!(story.broker.partitions(&source("billing"), 0, 10).await.unwrap().0.is_empty());

    let [e3] = story.publish("a", ["e3"]).await;
    assert!(e3.epoch > e1.epoch && e3.sequence == 0, "{e3}");
    let again = story.acquire("B", "a").await;
    assert_order(&again.entries, &["e3"]);
    assert_eq!(again.positions, []);
    assert_eq!(again.state.unwrap(), [("total".to_owned(), "1".into())], "state stays");
    assert!(again.lease.generation > acquired.lease.generation);
    assert_eq!(story.drain("B", partition("audit", "order", "a")).await, ["e3"]);
}

#[tokio::test]
async fn both_lanes_of_a_key_are_one_partition() {
    let story = begin().await;
    story.publish_to(Lane::Backfill, "a", ["b1"]).await;
    story.publish("a", ["e1"]).await;
    story.publish_to(Lane::Backfill, "b", ["b2"]).await;
    assert_eq!(story.broker.live_partitions(&category("order")).await.unwrap(), 2);
    story.drain("A", billing("a")).await;
    let (idle, next) = story.broker.idle_streams(&category("order"), 0, 2).await.unwrap();
    assert_eq!((idle.len(), next.is_some()), (2, true));
    assert_eq!(story.broker.reap(&idle[..1]).await.unwrap(), 1);
    assert_eq!(story.broker.live_partitions(&category("order")).await.unwrap(), 2, "the other lane is left");
    let (rows, _) = story.broker.partitions(&source("billing"), 0, 10).await.unwrap();
    assert!(rows.iter().any(|row| *row.partition.key() == key("a") && row.owner.is_some()), "{rows:?}");
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 1);
    assert_eq!(story.broker.live_partitions(&category("order")).await.unwrap(), 1);
}

#[tokio::test]
async fn retention_keeps_the_newest_and_the_young() {
    let wall_ms = Arc::new(AtomicU64::new(1_000));
    let clock = wall_ms.clone();
    let settings = EmbeddedSettings {
        retention: Retention { entries: 1, age_ms: 100 },
        wall_clock: Arc::new(move || clock.load(SeqCst)),
        ..EmbeddedSettings::default()
    };
    let (story, broker) = begin_with(settings).await;
    let order = category("order");
    story.publish("a", ["e1"]).await;
    wall_ms.store(1_050, SeqCst);
    story.publish("a", ["e2", "e3"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e1", "e2", "e3"]);
    assert_eq!(broker.entries_stored().unwrap(), 3);
    let sweep = async |at_ms: u64| {
        wall_ms.store(at_ms, SeqCst);
        assert_eq!(story.broker.idle_streams(&order, 0, 10).await.unwrap().0, [], "something is kept");
        broker.entries_stored().unwrap()
    };
    assert_eq!(sweep(1_100).await, 3, "none is older than it may be");
    assert_eq!(sweep(1_101).await, 2);
    assert_eq!(sweep(9_000).await, 1, "the newest is kept whatever its age");
    story.register("late", "order", Some("client")).await;
    assert_eq!(story.drain("A", partition("late", "order", "a")).await, ["e3"]);
}

#[tokio::test]
async fn deliveries_of_a_process_that_died_are_crashes_and_waits_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyrail.db");
    let open = || {
        let (lease_clock, wall_clock) = (Arc::new(|| 7), Arc::new(|| 1_000));
        let settings = EmbeddedSettings { lease_clock, wall_clock, ..EmbeddedSettings::default() };
        Story::empty(Subject::new(Arc::new(EmbeddedBroker::open(&path, settings).unwrap())))
    };
    let metric = SharedSource { group: group("tally"), category: category("metric") };
    let first = open();
    first.register("tally", "metric", None).await;
    for id in ["held", "waits", "returned", "settled", "new"] {
        let event = Event { key: None, ..event("metric", "x", id) };
        first.publish_one(Publication { event, key_field: None, ..publication("x", id) }).await.unwrap();
    }
    let a = OwnerId::new("A");
    let taken = first.broker.take_shared(&metric, &a, 4, 600_000).await.unwrap().deliveries;
    let at = |n: usize| DeliveryRef { id: taken[n].entry.at.id, count: taken[n].count };
    first.broker.fail_shared(&metric, &a, at(1), "no", 600_000).await.unwrap();
    first.broker.return_shared(&metric, &a, &[at(2)]).await.unwrap();
    first.broker.commit_shared(&metric, &a, at(3), Effects::default()).await.unwrap();
    drop(first);

    let second = open();
    let source = ReadySource::Shared { group: group("tally"), category: category("metric") };
    assert_eq!(second.broker.backlog(&[source]).await.unwrap().ready, 4);
    let stale = second.broker.commit_shared(&metric, &a, at(0), Effects::default()).await;
    assert!(matches!(stale, Err(FencedError::Fenced)), "{stale:?}");
    let taken = second.broker.take_shared(&metric, &a, READ_MAX, 600_000).await.unwrap();
    let mut found: Vec<_> =
        taken.deliveries.iter().map(|one| (id_of(&one.entry), one.count, one.attempts, one.crashes)).collect();
    found.sort();
    assert_eq!(found, [("held".into(), 2, 0, 1), ("new".into(), 1, 0, 0), ("returned".into(), 2, 0, 0)]);
    assert_eq!(taken.due_ms, Some(600_000));
}
