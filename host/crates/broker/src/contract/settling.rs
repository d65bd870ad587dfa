//! A commit: the settlement and its effects, all or nothing.

use std::sync::Arc;

use keyrail_ordering::{Entry, EntryId, EntryRef, OwnerId};

use super::Subject;
use super::story::{
    CommitWords, LONG_TTL_MS, READ_MAX, Story, assert_order, billing, commit, commit_all, outgoing, partition,
};
use crate::FencedError;

pub async fn another_than_the_head_is_not_settled(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, e2, _] = story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.acquire("A", "a").await;
    let wrong =
        commit(&acquired.entries[1]).put("total", "9").emit(outgoing("b", "x")).and_take(READ_MAX).and_release();
    match story.broker.commit(&acquired.lease, wrong).await {
        Err(FencedError::NotHead { named, head }) => assert_eq!((named.id, head), (e2, Some(e1))),
        other => panic!("{other:?}"),
    }
    assert_eq!(story.broker.state(&acquired.lease, "total").await.unwrap(), None);
    assert_eq!(story.backlog().await.outbox, 0);
    // A settled one is not the head any more, either: a repeated commit is noticed.
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    let again = story.broker.commit(&acquired.lease, commit(&acquired.entries[0]).put("total", "9")).await;
    assert!(matches!(again, Err(FencedError::NotHead { .. })), "{again:?}");
    assert_order(&story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().entries, &["e2", "e3"]);
    assert_eq!(story.broker.state(&acquired.lease, "total").await.unwrap(), None);
}

pub async fn an_entry_that_was_not_delivered_is_not_settled(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 1).await.unwrap();
    let at = &acquired.entries[0].at;
    let next = EntryRef { id: EntryId::new(at.id.epoch, at.id.sequence + 1), ..at.clone() };
    let unread = Entry { at: next, ..acquired.entries[0].as_ref().clone() };
    let both = commit_all(&[&acquired.entries[0], &unread]);
    let answer = story.broker.commit(&acquired.lease, both).await;
    assert!(matches!(answer, Err(FencedError::NotHead { .. })), "{answer:?}");
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    let answer = story.broker.commit(&acquired.lease, commit(&unread)).await;
    assert!(matches!(answer, Err(FencedError::NotHead { .. })), "{answer:?}");
    assert_order(&story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries, &["e2"]);
}

pub async fn state_and_emits_land_with_the_settlement(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let acquired = story.acquire("A", "a").await;
    assert_eq!(acquired.state.as_deref(), Some(&[][..]), "no state is a small state");
    let first = commit(&acquired.entries[0]).put("total", "1").put("note", "").emit(outgoing("b", "x"));
    story.broker.commit(&acquired.lease, first).await.unwrap();
    let lease = &acquired.lease;
    assert_eq!(story.broker.state(lease, "total").await.unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(story.broker.state(lease, "note").await.unwrap().as_deref(), Some(&b""[..]), "empty is a value");
    assert_eq!(story.broker.state(lease, "other").await.unwrap(), None);
    assert_eq!(story.backlog().await.outbox, 1);
    // State is a key's and a group's own.
    let other = story.acquire("A", "b").await;
    assert_eq!(story.broker.state(&other.lease, "total").await.unwrap(), None);
    let audit = story.acquire_for("A", partition("audit", "order", "a")).await;
    assert_eq!(story.broker.state(&audit.lease, "total").await.unwrap(), None);
    // And it outlives its owner.
    let next = story.take_over(lease, "B").await;
    assert_eq!(story.broker.state(&next.lease, "total").await.unwrap().as_deref(), Some(&b"1"[..]));
}

pub async fn a_fenced_commit_lands_nothing(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let old = story.acquire("A", "a").await;
    let new = story.take_over(&old.lease, "B").await;
    let late = commit(&old.entries[0]).put("total", "9").emit(outgoing("b", "x")).and_release();
    assert!(matches!(story.broker.commit(&old.lease, late).await, Err(FencedError::Fenced)));
    assert_eq!(story.backlog().await.outbox, 0);
    let good = commit(&new.entries[0]).put("total", "1");
    story.broker.commit(&new.lease, good).await.unwrap();
    assert_eq!(story.broker.state(&new.lease, "total").await.unwrap().as_deref(), Some(&b"1"[..]));
}

pub async fn small_state_comes_with_acquire_and_large_does_not(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let first = story.acquire("A", "a").await;
    let small = commit(&first.entries[0]).put("total", "1").put("name", "é");
    story.broker.commit(&first.lease, small).await.unwrap();
    story.broker.release(&first.lease).await.unwrap();
    let second = story.acquire("A", "a").await;
    let mut state = second.state.unwrap();
    state.sort();
    assert_eq!(state, [("name".into(), "é".into()), ("total".into(), "1".into())]);
    let large = "x".repeat(20 << 10);
    story.broker.commit(&second.lease, commit(&second.entries[0]).put("large", &large)).await.unwrap();
    story.broker.release(&second.lease).await.unwrap();
    let third = story.acquire("A", "a").await;
    assert_eq!(third.state, None);
    assert_eq!(story.broker.state(&third.lease, "large").await.unwrap().map(|value| value.len()), Some(large.len()));
    assert_eq!(story.broker.state(&third.lease, "total").await.unwrap().as_deref(), Some(&b"1"[..]));
}

pub async fn removed_state_is_gone(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.acquire("A", "a").await;
    let lease = &acquired.lease;
    story.broker.commit(lease, commit(&acquired.entries[0]).put("total", "1").put("other", "2")).await.unwrap();
    story.broker.commit(lease, commit(&acquired.entries[1]).remove("total").remove("never")).await.unwrap();
    assert_eq!(story.broker.state(lease, "total").await.unwrap(), None);
    assert_eq!(story.broker.state(lease, "other").await.unwrap().as_deref(), Some(&b"2"[..]));
    story.broker.commit(lease, commit(&acquired.entries[2]).remove("other")).await.unwrap();
    story.broker.release(lease).await.unwrap();
    assert_eq!(story.acquire("A", "a").await.state.as_deref(), Some(&[][..]));
}

pub async fn a_commit_brings_the_next_entries(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3", "e4"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 1).await.unwrap();
    let committed = story.broker.commit(&acquired.lease, commit(&acquired.entries[0]).and_take(2)).await.unwrap();
    assert_order(&committed.entries, &["e2", "e3"]);
    assert!(committed.more && !committed.released);
    let committed = story.broker.commit(&acquired.lease, commit(&committed.entries[0])).await.unwrap();
    assert!(committed.entries.is_empty(), "nothing was asked for");
    let [.., e5] = story.publish("a", ["e5"]).await;
    let taken = story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap();
    assert_order(&taken.entries, &["e4", "e5"]);
    assert_eq!(taken.entries[1].at.id, e5);
}

pub async fn several_entries_are_settled_at_once(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.acquire("A", "a").await;
    let [e1, e2, e3]: [Arc<Entry>; 3] = acquired.entries.try_into().unwrap();
    let two = commit_all(&[&e1, &e2]).put("total", "2").emit(outgoing("b", "x"));
    story.broker.commit(&acquired.lease, two).await.unwrap();
    assert_order(&story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().entries, &["e3"]);
    story.commit(&acquired.lease, &e3).await;
    assert_eq!(story.backlog().await.ready, 0);
}

pub async fn several_entries_with_a_gap_are_not_settled(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.acquire("A", "a").await;
    let [e1, e2, e3]: [Arc<Entry>; 3] = acquired.entries.try_into().unwrap();
    for wrong in [[&*e1, &*e3], [&*e2, &*e3], [&*e1, &*e1], [&*e2, &*e1]] {
        let answer = story.broker.commit(&acquired.lease, commit_all(&wrong).put("total", "9")).await;
        assert!(matches!(answer, Err(FencedError::NotHead { .. })), "{answer:?}");
    }
    assert_order(&story.broker.take(&acquired.lease, READ_MAX, true).await.unwrap().entries, &["e1", "e2", "e3"]);
    assert_eq!(story.broker.state(&acquired.lease, "total").await.unwrap(), None);
}

pub async fn the_lease_goes_only_when_nothing_is_left(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 2).await.unwrap();
    let lease = &acquired.lease;
    let committed = story.broker.commit(lease, commit(&acquired.entries[0]).and_release()).await.unwrap();
    assert!(!committed.released, "e2 is pending");
    let committed = story.broker.commit(lease, commit(&acquired.entries[1]).and_release()).await.unwrap();
    assert!(!committed.released, "e3 is not read yet");
    let e3 = story.broker.take(lease, READ_MAX, false).await.unwrap().entries.remove(0);
    let committed = story.broker.commit(lease, commit(&e3).and_take(1).and_release()).await.unwrap();
    assert!(committed.released && committed.entries.is_empty());
    story.assert_fenced(lease, &e3).await;
    assert_eq!(story.backlog().await.ready, 0);
    story.publish("a", ["e4"]).await;
    let next = story.acquire("B", "a").await;
    assert_order(&next.entries, &["e4"]);
    assert!(next.attempts.is_none());
}

pub async fn settled_entries_stay_for_the_other_group(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("audit", "order", Some("client")).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e1", "e2", "e3"]);
    story.publish("a", ["e4"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e4"]);
    let audit = partition("audit", "order", "a");
    assert_eq!(story.drain("A", audit.clone()).await, ["e1", "e2", "e3", "e4"]);
    // Now that all have settled all, sequences still go on.
    let [e5] = story.publish("a", ["e5"]).await;
    assert_eq!(e5.sequence, 4);
    assert_eq!(story.drain("A", audit).await, ["e5"]);
    assert_eq!(story.drain("A", billing("a")).await, ["e5"]);
}
