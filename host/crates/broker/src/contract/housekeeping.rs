//! Dropping what is settled, and forgetting what is empty.

use keyrail_ordering::{EntryId, Lane};

use super::Subject;
use super::story::{CommitWords, Story, assert_order, billing, category, commit, halt_record, partition, publication};
use crate::{IdleStream, Publication};

impl Story {
    async fn idle(&self, limit: usize) -> Vec<IdleStream> {
        let (mut all, mut cursor) = (vec![], Some(0));
        while let Some(at) = cursor {
            let (page, next) = self.broker.idle_streams(&category("order"), at, limit).await.unwrap();
            all.extend(page);
            cursor = next;
        }
        all.sort_by(|a, b| a.stream.cmp(&b.stream));
        all
    }

    async fn live(&self) -> u64 {
        self.broker.live_partitions(&category("order")).await.unwrap()
    }
}

fn names(idle: &[IdleStream]) -> Vec<String> {
    idle.iter().map(|idle| idle.stream.to_string()).collect()
}

pub async fn c024_what_all_groups_settled_is_dropped_and_then_forgotten(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("mail", "order", Some("client")).await;
    let [_, last] = story.publish("a", ["e1", "e2"]).await;
    assert_eq!(story.live().await, 1);
    assert_eq!(story.drain("A", billing("a")).await, ["e1", "e2"]);
    assert_eq!(story.idle(10).await, [], "mail has still to see it");
    assert_eq!(story.drain("M", partition("mail", "order", "a")).await, ["e1", "e2"]);
    let idle = story.idle(10).await;
    assert_eq!((names(&idle), idle[0].last), (vec!["order/a".to_string()], last));
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 1);
    assert_eq!(story.live().await, 0);
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 0, "once is enough");
    assert_eq!(story.idle(10).await, []);
    // The key begins anew, above what was.
    let [again] = story.publish("a", ["e3"]).await;
    assert!(again > last, "{again} after {last}");
    assert_eq!(story.drain("A", billing("a")).await, ["e3"]);
    assert_eq!(story.drain("M", partition("mail", "order", "a")).await, ["e3"]);
}

pub async fn what_was_published_after_the_look_is_not_forgotten(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    story.publish("b", ["e2"]).await;
    story.drain("A", billing("a")).await;
    story.drain("A", billing("b")).await;
    let idle = story.idle(10).await;
    assert_eq!(idle.len(), 2);
    story.publish("a", ["e3"]).await;
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 1, "b alone");
    assert_eq!(story.drain("A", billing("a")).await, ["e3"]);
    // Published and settled since: empty again, and not as it was seen.
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 0);
    assert_eq!(story.live().await, 1);
}

pub async fn what_is_owned_or_stands_still_is_not_idle(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let held = story.acquire("A", "a").await;
    story.broker.commit(&held.lease, commit(&held.entries[0]).and_take(1)).await.unwrap();
    assert_eq!(story.idle(10).await, [], "it is owned");
    story.broker.release(&held.lease).await.unwrap();
    let seen = story.idle(10).await;
    assert_eq!(seen.len(), 1);
    let held = story.acquire("A", "a").await;
    assert_eq!(story.broker.reap(&seen).await.unwrap(), 0, "it is owned again");
    story.broker.release(&held.lease).await.unwrap();

    story.publish("b", ["e2"]).await;
    let held = story.acquire("A", "b").await;
    story.broker.halt(&held.lease, &halt_record(&held.entries[0].at)).await.unwrap();
    assert_eq!(names(&story.idle(10).await), ["order/a"]);
}

pub async fn both_lanes_of_a_key_are_forgotten_together(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    story.publish_to(Lane::Backfill, "a", ["b1"]).await;
    assert_eq!(story.live().await, 1, "two lanes are one partition");
    let held = story.acquire("A", "a").await;
    story.commit(&held.lease, &held.entries[0]).await;
    story.broker.release(&held.lease).await.unwrap();
    let before = story.idle(10).await;
    assert_eq!(story.broker.reap(&before).await.unwrap(), 0, "the backfill has an entry");
    assert_eq!(story.drain("A", billing("a")).await, ["b1"]);
    let idle = story.idle(1).await;
    assert_eq!(names(&idle), ["order/a", "order/a (backfill)"]);
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 2);
    assert_eq!(story.live().await, 0);
}

pub async fn state_outlives_its_stream(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let held = story.acquire("A", "a").await;
    let done = commit(&held.entries[0]).put("total", "7").and_take(1).and_release();
    assert!(story.broker.commit(&held.lease, done).await.unwrap().released);
    let idle = story.idle(10).await;
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 1);
    story.publish("a", ["e2"]).await;
    let held = story.acquire("B", "a").await;
    assert_order(&held.entries, &["e2"]);
    assert_eq!(held.attempts, None);
    assert_eq!(story.broker.state(&held.lease, "total").await.unwrap().as_deref(), Some(b"7".as_slice()));
}

pub async fn idle_streams_are_paged_without_loss_or_repeat(subject: Subject) {
    let story = Story::begin(subject).await;
    let batch: Vec<Publication> = (0..250).map(|n| publication(&format!("k{n}"), &format!("e{n}"))).collect();
    for answer in story.broker.publish(batch).await.unwrap() {
        answer.unwrap();
    }
    for n in 0..250 {
        story.drain("A", billing(&format!("k{n}"))).await;
    }
    assert_eq!(story.live().await, 250);
    let idle = story.idle(7).await;
    assert_eq!(idle.len(), 250);
    assert!(idle.windows(2).all(|pair| pair[0].stream < pair[1].stream));
    assert!(idle.iter().all(|idle| idle.last > EntryId::new(0, 0)));
    assert_eq!(story.broker.reap(&idle).await.unwrap(), 250);
    assert_eq!(story.live().await, 0);
}
