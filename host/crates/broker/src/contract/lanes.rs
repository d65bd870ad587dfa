//! The backfill is served only while the primary lane is empty, and a head stays the head.

use keyrail_ordering::{Lane, OwnerId};

use super::Subject;
use super::story::{CommitWords, LONG_TTL_MS, READ_MAX, Story, assert_order, billing, commit};

pub async fn the_backfill_is_served_after_the_primary(subject: Subject) {
    let story = Story::begin(subject).await;
    let [b1, _] = story.publish_to(Lane::Backfill, "a", ["b1", "b2"]).await;
    let [p1, _] = story.publish("a", ["p1", "p2"]).await;
    assert_eq!((b1.sequence, p1.sequence), (0, 0), "each lane counts for itself");
    assert_eq!(story.backlog().await.ready, 1, "both lanes are one partition");
    assert_eq!(story.drain("A", billing("a")).await, ["p1", "p2", "b1", "b2"]);
    assert_eq!(story.backlog().await.ready, 0);
}

pub async fn a_backfill_head_stays_the_head(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish_to(Lane::Backfill, "a", ["b1", "b2"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 1).await.unwrap();
    let lease = &acquired.lease;
    assert_order(&acquired.entries, &["b1"]);
    assert_eq!(acquired.entries[0].at.stream.lane, Lane::Backfill);
    story.publish("a", ["p1"]).await;
    // While b1 is in hand it is the head; an answer that was lost brings it back first.
    let recovered = story.broker.take(lease, READ_MAX, true).await.unwrap();
    assert_order(&recovered.entries[..1], &["b1"]);
    let committed = story.broker.commit(lease, commit(&acquired.entries[0]).and_take(1)).await.unwrap();
    let next = recovered.entries.get(1).or(committed.entries.first()).unwrap();
    assert_order(std::slice::from_ref(next), &["p1"]);
    story.commit(lease, next).await;
    let last = story.broker.take(lease, READ_MAX, false).await.unwrap();
    assert_order(&last.entries, &["b2"]);
    story.commit(lease, &last.entries[0]).await;
    assert_eq!(story.backlog().await.ready, 0);
}

pub async fn a_backfill_head_that_failed_stays_the_head_for_the_next_owner(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish_to(Lane::Backfill, "a", ["b1"]).await;
    let first = story.acquire("A", "a").await;
    story.broker.fail(&first.lease, &first.entries[0].at, 1, "no", 0).await.unwrap();
    story.publish("a", ["p1"]).await;
    story.broker.release(&first.lease).await.unwrap();
    let second = story.acquire("B", "a").await;
    assert_order(&second.entries[..1], &["b1"]);
    assert_eq!(second.attempts.map(|record| record.attempts), Some(1));
    let third = story.take_over(&second.lease, "C").await;
    assert_order(&third.entries[..1], &["b1"]);
    assert_eq!(third.attempts.map(|record| (record.attempts, record.crashes)), Some((1, 1)));
    story.commit(&third.lease, &third.entries[0]).await;
    story.broker.release(&third.lease).await.unwrap();
    assert_eq!(story.drain("D", billing("a")).await, ["p1"]);
}
