//! What is there when the file is opened again, and what is not kept.

use std::sync::Arc;

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{
    CommitWords, READ_MAX, Story, assert_order, billing, commit, halt_record, outgoing, partition, publication, source,
};
use keyrail_broker::{AcquireError, Publication};
use keyrail_ordering::Lane;

use super::{open, place, story};

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let (_folder, path) = place();
    let first = Story::begin(Subject::new(Arc::new(open(&path)))).await;
    first.register("audit", "order", Some("client")).await;
    let [_, e2, _] = first.publish("a", ["e1", "e2", "e3"]).await;
    first.publish_to(Lane::Backfill, "a", ["back"]).await;
    first.publish_one(Publication { dedupe_window_ms: 600_000, ..publication("b", "once") }).await.unwrap();
    first.publish("h", ["h1"]).await;
    let acquired = first.acquire("A", "a").await;
    let effects = commit(&acquired.entries[0]).put("total", "1").emit(outgoing("c", "x"));
    first.broker.commit(&acquired.lease, effects).await.unwrap();
    first.broker.fail(&acquired.lease, &acquired.entries[1].at, 1, "no", 600_000).await.unwrap();
    first.broker.release(&acquired.lease).await.unwrap();
    let halting = first.acquire("A", "h").await;
    let record = halt_record(&halting.entries[0].at);
    first.broker.halt(&halting.lease, &record).await.unwrap();
    let catalog = first.broker.catalog().await.unwrap();
    let backlog = first.backlog().await;
    let rows = first.broker.partitions(&source("billing"), 0, 100).await.unwrap();
    drop(first);

    let second = story(&path);
    assert_eq!(second.broker.catalog().await.unwrap(), catalog);
    assert_eq!(second.backlog().await, backlog);
    assert_eq!(second.broker.partitions(&source("billing"), 0, 100).await.unwrap(), rows);
    assert_eq!(second.offered(&source("billing"), READ_MAX).await, ["b"], "a waits for its retry, h stands still");
    let again =
        second.publish_one(Publication { dedupe_window_ms: 600_000, ..publication("b", "once") }).await.unwrap();
    assert!(again.duplicate);
    match second.try_acquire("B", "h").await {
        Err(AcquireError::Halted(found)) => assert_eq!(*found, record),
        other => panic!("{other:?}"),
    }
    let next = second.acquire("B", "a").await;
    assert!(next.lease.generation > acquired.lease.generation);
    assert_order(&next.entries, &["e2", "e3"]);
    let attempts = next.attempts.unwrap();
    assert_eq!((attempts.head.id, attempts.attempts, attempts.crashes), (e2, 1, 0));
    assert!(attempts.wait_ms > 0);
    assert_eq!(next.state.unwrap(), [("total".to_owned(), "1".into())]);
    second.commit(&next.lease, &next.entries[0]).await;
    second.commit(&next.lease, &next.entries[1]).await;
    second.broker.release(&next.lease).await.unwrap();
    assert_eq!(second.drain("B", billing("a")).await, ["back"]);
    assert_eq!(second.broker.route(READ_MAX, 0).await.unwrap().published, 1);
    assert_eq!(second.drain("B", billing("c")).await, ["x"]);
    assert_eq!(second.drain("B", partition("audit", "order", "a")).await, ["e1", "e2", "e3", "back"]);
    let [e4] = second.publish("a", ["e4"]).await;
    assert!(e4 > e2 && e4.epoch == e2.epoch, "sequences go on");
}

#[tokio::test]
async fn a_process_that_died_owning_entries_is_a_crash_and_holds_nothing() {
    let (_folder, path) = place();
    let first = Story::begin(Subject::new(Arc::new(open(&path)))).await;
    for key in ["held", "released", "caught-up"] {
        first.publish(key, ["e1"]).await;
    }
    first.acquire("A", "held").await;
    let released = first.acquire("A", "released").await;
    first.broker.release(&released.lease).await.unwrap();
    let caught_up = first.acquire("A", "caught-up").await;
    first.commit(&caught_up.lease, &caught_up.entries[0]).await;
    first.publish("caught-up", ["e2"]).await;
    drop(first);

    let second = story(&path);
    let crashes = async |key| second.acquire("B", key).await.attempts.map(|record| record.crashes);
    assert_eq!(crashes("held").await, Some(1));
    assert_eq!(crashes("released").await, None);
    assert_eq!(crashes("caught-up").await, None, "it died with empty hands");
    drop(second);
    let third = story(&path);
    assert_eq!(third.acquire("C", "held").await.attempts.map(|record| record.crashes), Some(2));
}

#[tokio::test]
async fn a_crash_counts_for_the_backfill_head_that_was_running() {
    let (_folder, path) = place();
    let first = Story::begin(Subject::new(Arc::new(open(&path)))).await;
    first.publish_to(Lane::Backfill, "a", ["back"]).await;
    first.acquire("A", "a").await;
    first.publish("a", ["e1"]).await;
    drop(first);
    let second = story(&path).acquire("B", "a").await;
    assert_order(&second.entries, &["back"]);
    assert_eq!(second.attempts.map(|record| (record.head.stream.lane, record.crashes)), Some((Lane::Backfill, 1)));
}

#[tokio::test]
async fn what_every_group_has_settled_is_dropped() {
    let (_folder, path) = place();
    let broker = Arc::new(open(&path));
    let story = Story::begin(Subject::new(broker.clone())).await;
    story.register("audit", "order", Some("client")).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    story.drain("A", billing("a")).await;
    assert_eq!(broker.entries_stored().unwrap(), 3, "audit has still to see them");
    let audit = story.acquire_for("A", partition("audit", "order", "a")).await;
    story.commit(&audit.lease, &audit.entries[0]).await;
    assert_eq!(broker.entries_stored().unwrap(), 2);
    story.broker.release(&audit.lease).await.unwrap();
    story.drain("A", partition("audit", "order", "a")).await;
    assert_eq!(broker.entries_stored().unwrap(), 0);
    // A group that comes late starts from what is kept, and takes what was dropped for no gap.
    story.publish("a", ["e4"]).await;
    story.register("late", "order", Some("client")).await;
    let late = story.acquire_for("A", partition("late", "order", "a")).await;
    assert_order(&late.entries, &["e4"]);
    let (_, before) = late.positions.first().unwrap();
    assert!(before.is_followed_by(late.entries[0].at.id));
}
