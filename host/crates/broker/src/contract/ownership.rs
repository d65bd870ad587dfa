//! Who may act for a partition.

use keyrail_ordering::OwnerId;

use super::Subject;
use super::story::{LONG_TTL_MS, READ_MAX, Story, assert_order, billing, primary};
use crate::AcquireError;

pub async fn a_held_partition_names_its_holder(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    for owner in ["B", "A"] {
        match story.try_acquire(owner, "a").await {
            Err(AcquireError::Held { holder }) => assert_eq!(holder, acquired.lease.token()),
            other => panic!("{other:?}"),
        }
    }
    // Another key, and another group on the same key, are free.
    story.acquire("B", "b").await;
}

pub async fn generations_grow_with_each_change_of_hands(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let first = story.acquire("A", "a").await.lease;
    story.broker.release(&first).await.unwrap();
    let second = story.acquire("A", "a").await.lease;
    let third = story.take_over(&second, "B").await.lease;
    assert!(first.generation < second.generation && second.generation < third.generation);
    assert_eq!(third.owner, OwnerId::new("B"));
}

pub async fn a_released_owner_is_fenced(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let old = story.acquire("A", "a").await;
    story.broker.release(&old.lease).await.unwrap();
    story.assert_fenced(&old.lease, &old.entries[0]).await;
    story.broker.release(&old.lease).await.unwrap();
    // Nothing of what it tried has happened. Nor is the same owner let through with its old generation.
    let new = story.acquire("A", "a").await;
    assert_order(&new.entries, &["e1", "e2"]);
    assert!(new.attempts.is_none());
    story.assert_fenced(&old.lease, &old.entries[0]).await;
    assert_eq!(story.broker.state(&new.lease, "total").await.unwrap(), None);
    assert_eq!(story.backlog().await.outbox, 0);
}

pub async fn an_owner_that_was_taken_over_is_fenced(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let old = story.acquire("A", "a").await;
    let new = story.take_over(&old.lease, "B").await;
    assert_order(&new.entries, &["e1", "e2"]);
    story.assert_fenced(&old.lease, &old.entries[0]).await;
    assert_eq!(story.broker.state(&new.lease, "total").await.unwrap(), None);
    assert_eq!(story.backlog().await.outbox, 0);
    // The new owner goes on as if nothing had been.
    story.commit(&new.lease, &new.entries[0]).await;
    story.assert_fenced(&old.lease, &old.entries[1]).await;
    story.commit(&new.lease, &new.entries[1]).await;
    assert_eq!(story.backlog().await.ready, 0);
}

pub async fn a_late_release_takes_nothing_from_the_next_owner(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let old = story.acquire("A", "a").await;
    let new = story.take_over(&old.lease, "B").await;
    story.broker.release(&old.lease).await.unwrap();
    assert!(matches!(story.try_acquire("A", "a").await, Err(AcquireError::Held { .. })));
    story.commit(&new.lease, &new.entries[0]).await;
}

pub async fn only_held_leases_are_renewed(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let held = story.acquire("A", "a").await.lease;
    let released = story.acquire("A", "b").await.lease;
    story.broker.release(&released).await.unwrap();
    let lost = story.acquire("A", "c").await.lease;
    let won = story.take_over(&lost, "B").await.lease;
    assert_eq!(story.renew(&[held.clone(), released, lost, won]).await, [true, false, false, true]);
    assert_eq!(story.renew(&[]).await, Vec::<bool>::new());
    // It was renewed for long, so it still holds.
    story.broker.take(&held, READ_MAX, false).await.unwrap();
}

pub async fn what_was_read_ahead_goes_back_with_a_release(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let old = story.acquire("A", "a").await;
    story.commit(&old.lease, &old.entries[0]).await;
    story.broker.release(&old.lease).await.unwrap();
    let new = story.acquire("B", "a").await;
    assert_order(&new.entries, &["e2", "e3"]);
    assert!(!new.more);
}

pub async fn acquire_reads_no_more_than_asked(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 2).await.unwrap();
    assert_order(&acquired.entries, &["e1", "e2"]);
    assert!(acquired.more);
    let taken = story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap();
    assert_order(&taken.entries, &["e3"]);
    let empty = story.acquire("A", "b").await;
    assert!(empty.entries.is_empty() && !empty.more && empty.attempts.is_none());
}

pub async fn acquire_tells_where_the_group_stands(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, ..] = story.publish("a", ["e1", "e2"]).await;
    let first = story.acquire("A", "a").await;
    assert_eq!(first.positions, [], "nothing was settled yet");
    story.commit(&first.lease, &first.entries[0]).await;
    story.broker.release(&first.lease).await.unwrap();
    let second = story.acquire("A", "a").await;
    assert_eq!(second.positions, [(primary("a"), e1)]);
    assert!(e1.is_followed_by(second.entries[0].at.id));
}

pub async fn a_crash_counts_and_a_release_does_not(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, _] = story.publish("a", ["e1", "e2"]).await;
    let first = story.acquire("A", "a").await;
    assert!(first.attempts.is_none());
    story.broker.release(&first.lease).await.unwrap();
    let second = story.acquire("A", "a").await;
    assert!(second.attempts.is_none(), "a release is no crash");
    let third = story.take_over(&second.lease, "B").await;
    let record = third.attempts.unwrap();
    assert_eq!((record.head.id, record.crashes, record.attempts, record.wait_ms), (e1, 1, 0, 0));
    let fourth = story.take_over(&third.lease, "C").await;
    assert_eq!(fourth.attempts.unwrap().crashes, 2);
    story.broker.release(&fourth.lease).await.unwrap();
    assert_eq!(story.acquire("D", "a").await.attempts.unwrap().crashes, 2, "a release forgets none, and adds none");
}

pub async fn an_owner_that_dies_with_empty_hands_is_one_crash_at_most(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let first = story.acquire("A", "a").await;
    story.commit(&first.lease, &first.entries[0]).await;
    story.publish("a", ["e2"]).await;
    let second = story.take_over(&first.lease, "B").await;
    assert_order(&second.entries, &["e2"]);
    // It had not read the event. A broker may not know that, and one crash says nothing of an event.
    assert!(second.attempts.is_none_or(|record| (record.crashes, record.attempts) == (1, 0)));
}

pub async fn crashes_and_attempts_are_cleared_when_the_head_is_settled(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let first = story.acquire("A", "a").await;
    story.broker.fail(&first.lease, &first.entries[0].at, 1, "no", 0).await.unwrap();
    let second = story.take_over(&first.lease, "B").await;
    assert_eq!(second.attempts.map(|record| (record.attempts, record.crashes)), Some((1, 1)));
    story.commit(&second.lease, &second.entries[0]).await;
    story.broker.release(&second.lease).await.unwrap();
    let third = story.acquire("C", "a").await;
    assert_order(&third.entries, &["e2"]);
    assert!(third.attempts.is_none());
}
