//! The ready set and its bells: how a key finds an owner.

use keyrail_ordering::Lane;

use super::Subject;
use super::story::{
    CommitWords, READ_MAX, Story, assert_order, bell, commit, halt_record, listen, next_bell, partition, publication,
    source,
};
use crate::{Bell, Publication};

pub async fn a_key_is_ready_while_it_has_unsettled_entries(subject: Subject) {
    let story = Story::begin(subject).await;
    assert_eq!(story.backlog().await.ready, 0);
    story.publish("a", ["e1", "e2"]).await;
    story.publish("b", ["b1"]).await;
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["a", "b"]);
    let acquired = story.acquire("A", "a").await;
    assert_eq!(story.backlog().await.ready, 2, "owned, and not settled");
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    assert_eq!(story.backlog().await.ready, 2);
    story.broker.commit(&acquired.lease, commit(&acquired.entries[1]).and_take(1)).await.unwrap();
    assert_eq!(story.backlog().await.ready, 1);
    story.broker.release(&acquired.lease).await.unwrap();
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["b"]);
}

pub async fn a_take_that_finds_nothing_leaves_the_ready_set(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    // A take that finds nothing new while something is pending changes nothing.
    assert!(story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries.is_empty());
    assert_eq!(story.backlog().await.ready, 1);
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    assert!(story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries.is_empty());
    assert_eq!(story.backlog().await.ready, 0);
}

pub async fn a_bell_rings_when_a_key_becomes_ready_and_only_then(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    story.publish("a", ["e1", "e2"]).await;
    story.publish("a", ["e3"]).await;
    story.publish_to(Lane::Backfill, "a", ["e4"]).await;
    story.publish("b", ["b1"]).await;
    assert_eq!(next_bell(&mut bells).await, bell("billing", "a"));
    assert_eq!(next_bell(&mut bells).await, bell("billing", "b"), "a was in already");
}

pub async fn a_bell_rings_for_an_owner_that_had_caught_up(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    story.broker.commit(&acquired.lease, commit(&acquired.entries[0]).and_take(1)).await.unwrap();
    story.publish("a", ["e2"]).await;
    assert_eq!(next_bell(&mut bells).await, bell("billing", "a"));
    assert_order(&story.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries, &["e2"]);
    assert_eq!(story.backlog().await.ready, 1);
}

pub async fn bells_are_heard_by_those_who_asked(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("audit", "order", Some("client")).await;
    let mut billing = listen(story.broker.as_ref(), vec![source("billing")]).await;
    let mut audit = listen(story.broker.as_ref(), vec![source("audit")]).await;
    let mut both = listen(story.broker.as_ref(), vec![source("audit"), source("billing")]).await;
    story.publish("a", ["e1"]).await;
    story.publish("b", ["e1"]).await;
    for (bells, group) in [(&mut billing, "billing"), (&mut audit, "audit")] {
        assert_eq!(next_bell(bells).await, bell(group, "a"));
        assert_eq!(next_bell(bells).await, bell(group, "b"));
    }
    let mut heard = vec![];
    for _ in 0..4 {
        heard.push(format!("{:?}", next_bell(&mut both).await));
    }
    heard.sort();
    heard.dedup();
    assert_eq!(heard.len(), 4, "{heard:?}");
}

pub async fn a_release_rings_if_work_is_left(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let with_work = story.acquire("A", "a").await;
    let without = story.acquire("A", "c").await;
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    story.broker.release(&without.lease).await.unwrap();
    story.broker.release(&with_work.lease).await.unwrap();
    assert_eq!(next_bell(&mut bells).await, bell("billing", "a"));
}

pub async fn owned_keys_are_not_offered(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    story.publish("b", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["b"]);
    // Only that group's partition is owned.
    story.register("audit", "order", Some("client")).await;
    assert_eq!(story.offered(&source("audit"), READ_MAX).await, ["a", "b"]);
    story.broker.release(&acquired.lease).await.unwrap();
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["a", "b"]);
}

pub async fn a_key_whose_retry_is_not_due_is_not_offered(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    story.publish("b", ["b1"]).await;
    for (key, after_ms) in [("a", 600_000), ("b", 0)] {
        let acquired = story.acquire("A", key).await;
        story.broker.fail(&acquired.lease, &acquired.entries[0].at, 1, "no", after_ms).await.unwrap();
        story.broker.release(&acquired.lease).await.unwrap();
    }
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["b"]);
    assert_eq!(story.backlog().await.ready, 2, "it is still to be done");
    // An owner may settle it before it is due; the next event has not failed.
    let acquired = story.acquire("A", "a").await;
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    story.publish("a", ["e2"]).await;
    story.broker.release(&acquired.lease).await.unwrap();
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["a", "b"]);
}

pub async fn a_halted_key_does_not_become_ready(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("audit", "order", Some("client")).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    story.broker.halt(&acquired.lease, &halt_record(&acquired.entries[0].at)).await.unwrap();
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    story.publish("a", ["e2"]).await;
    story.publish("b", ["b1"]).await;
    assert_eq!(next_bell(&mut bells).await, bell("billing", "b"));
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["b"]);
    assert_eq!(story.backlog().await.ready, 1);
    // The other group is not concerned.
    assert_eq!(story.drain("A", partition("audit", "order", "a")).await, ["e1", "e2"]);
}

pub async fn a_large_ready_set_is_read_in_parts(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut keys: Vec<_> = (0..25).map(|n| format!("k{n}")).collect();
    let batch: Vec<Publication> = keys.iter().map(|key| publication(key, "e1")).collect();
    for answer in story.broker.publish(batch).await.unwrap() {
        answer.unwrap();
    }
    keys.sort();
    for limit in [1, 10, 25, 26] {
        assert_eq!(story.offered(&source("billing"), limit).await, keys, "in parts of {limit}");
    }
    let first = story.broker.ready(&source("billing"), 0, 10).await.unwrap();
    assert_eq!(first.keys.len(), 10);
    assert!(first.next.is_some());
    // Bells and pages tell of the same keys.
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    story.publish("k0", ["e2"]).await;
    story.publish("new", ["e1"]).await;
    assert!(matches!(next_bell(&mut bells).await, Bell::Ready { key, .. } if key.as_str() == "new"));
}
