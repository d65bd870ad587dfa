//! Reading, failing and halting under a lease.

use keyrail_ordering::{Content, EntryRef, OwnerId};

use super::Subject;
use super::story::{LONG_TTL_MS, READ_MAX, Story, assert_order, billing, halt_record, partition, primary, source};
use crate::{AcquireError, FencedError};

pub async fn take_brings_each_entry_once_in_order(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 1).await.unwrap();
    assert_order(&acquired.entries, &["e1"]);
    let taken = story.broker.take(&acquired.lease, 1, false).await.unwrap();
    assert_order(&taken.entries, &["e2"]);
    assert!(taken.more);
    let taken = story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap();
    assert_order(&taken.entries, &["e3"]);
    let taken = story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap();
    assert!(taken.entries.is_empty() && !taken.more);
    story.publish("a", ["e4"]).await;
    assert_order(&story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries, &["e4"]);
}

pub async fn a_recovering_take_brings_what_is_pending_first(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 2).await.unwrap();
    let taken = story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap();
    assert_order(&taken.entries, &["e1", "e2", "e3"]);
    story.commit(&acquired.lease, &taken.entries[0]).await;
    let taken = story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap();
    assert_order(&taken.entries, &["e2", "e3"]);
    assert!(!taken.more);
    // What came back is delivered: it is not new, and it can be settled.
    assert!(story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries.is_empty());
    story.commit(&acquired.lease, &taken.entries[0]).await;
    story.commit(&acquired.lease, &taken.entries[1]).await;
}

pub async fn a_recovering_take_brings_the_attempts(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1] = story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    assert_eq!(story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().attempts, None);
    story.broker.fail(&acquired.lease, &acquired.entries[0].at, 1, "no", 60_000).await.unwrap();
    let record = story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().attempts.unwrap();
    assert_eq!((record.head.id, record.attempts, record.crashes), (e1, 1, 0));
    assert!(0 < record.wait_ms && record.wait_ms <= 60_000, "{}", record.wait_ms);
}

pub async fn a_try_is_recorded_once(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    let head = &acquired.entries[0].at;
    story.broker.fail(&acquired.lease, head, 1, "first", 0).await.unwrap();
    story.broker.fail(&acquired.lease, head, 1, "repeat", 60_000).await.unwrap();
    let record = story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().attempts.unwrap();
    assert_eq!((record.attempts, record.last_error.as_str(), record.wait_ms), (1, "first", 0));
    story.broker.fail(&acquired.lease, head, 2, "second", 0).await.unwrap();
    let record = story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().attempts.unwrap();
    assert_eq!((record.attempts, record.last_error.as_str()), (2, "second"));
}

pub async fn attempts_survive_a_change_of_hands(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, _] = story.publish("a", ["e1", "e2"]).await;
    let first = story.acquire("A", "a").await;
    story.broker.fail(&first.lease, &first.entries[0].at, 1, "no such colour", 60_000).await.unwrap();
    story.broker.release(&first.lease).await.unwrap();
    let second = story.acquire("B", "a").await;
    let record = second.attempts.unwrap();
    assert_eq!((record.head.id, record.attempts, record.crashes), (e1, 1, 0));
    assert_eq!(record.last_error, "no such colour");
    assert!(0 < record.wait_ms && record.wait_ms <= 60_000, "{}", record.wait_ms);
    let third = story.take_over(&second.lease, "C").await;
    assert_eq!(third.attempts.map(|record| (record.attempts, record.crashes)), Some((1, 1)));
}

pub async fn only_the_head_fails(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, e2] = story.publish("a", ["e1", "e2"]).await;
    let acquired = story.acquire("A", "a").await;
    let second = &acquired.entries[1].at;
    match story.broker.fail(&acquired.lease, second, 1, "no", 0).await {
        Err(FencedError::NotHead { named, head }) => assert_eq!((named.id, head), (e2, Some(e1))),
        other => panic!("{other:?}"),
    }
    let recovered = story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap();
    assert!(recovered.attempts.is_none(), "nothing was recorded");
}

pub async fn a_halted_partition_stands_still_alone(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    story.publish("b", ["b1"]).await;
    let acquired = story.acquire("A", "a").await;
    let record = halt_record(&acquired.entries[0].at);
    story.broker.halt(&acquired.lease, &record).await.unwrap();
    match story.try_acquire("B", "a").await {
        Err(AcquireError::Halted(found)) => assert_eq!(*found, record),
        other => panic!("{other:?}"),
    }
    story.assert_fenced(&acquired.lease, &acquired.entries[0]).await;
    let backlog = story.backlog().await;
    assert_eq!((backlog.halted, backlog.ready), (1, 1), "a stands still and b has work");
    assert_eq!(story.drain("B", billing("b")).await, ["b1"]);
    assert_eq!(story.backlog().await.ready, 0);
}

pub async fn only_the_head_halts(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let acquired = story.acquire("A", "a").await;
    let record = halt_record(&acquired.entries[1].at);
    assert!(matches!(story.broker.halt(&acquired.lease, &record).await, Err(FencedError::NotHead { .. })));
    assert_eq!(story.backlog().await.halted, 0);
    // The lease is still held.
    story.commit(&acquired.lease, &acquired.entries[0]).await;
}

pub async fn two_groups_go_their_own_ways(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("audit", "order", Some("client")).await;
    story.publish("a", ["e1", "e2"]).await;
    let billed = story.acquire("A", "a").await;
    let audited = story.acquire_for("A", partition("audit", "order", "a")).await;
    assert_order(&billed.entries, &["e1", "e2"]);
    assert_order(&audited.entries, &["e1", "e2"]);
    story.commit(&billed.lease, &billed.entries[0]).await;
    story.broker.fail(&audited.lease, &audited.entries[0].at, 1, "no", 0).await.unwrap();
    story.commit(&billed.lease, &billed.entries[1]).await;
    let ready = |source| async { story.broker.backlog(&[source]).await.unwrap().ready };
    assert_eq!((ready(source("billing")).await, ready(source("audit")).await), (0, 1));
    story.broker.halt(&audited.lease, &halt_record(&audited.entries[0].at)).await.unwrap();
    story.publish("a", ["e3"]).await;
    assert_order(&story.broker.take(&billed.lease, READ_MAX, false).await.unwrap().entries, &["e3"]);
}

pub async fn an_unreadable_entry_is_its_partitions_business_alone(subject: Subject) {
    let story = Story::begin(subject).await;
    let Some(spoil) = &story.spoil else { return };
    let [_, e2, _] = story.publish("a", ["e1", "e2", "e3"]).await;
    story.publish("b", ["b1"]).await;
    spoil(EntryRef { stream: primary("a"), id: e2 }).await;
    let acquired = story.acquire("A", "a").await;
    assert_eq!(acquired.entries.len(), 3);
    assert_order(&acquired.entries[..1], &["e1"]);
    assert!(matches!(&acquired.entries[1].content, Content::Undecodable(why) if !why.is_empty()));
    assert_order(&acquired.entries[2..], &["e3"]);
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    let record = halt_record(&acquired.entries[1].at);
    story.broker.halt(&acquired.lease, &record).await.unwrap();
    assert_eq!(story.drain("A", billing("b")).await, ["b1"]);
}
