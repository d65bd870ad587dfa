//! Categories that are not partitioned: one stream that all hosts of a group share.

use std::collections::BTreeSet;

use keyrail_ordering::{Effects, Event, OwnerId, StateChange};

use super::Subject;
use super::story::{
    READ_MAX, Story, category, event, eventually, group, id_of, listen, next_bell, outgoing, publication,
};
use crate::{Bell, By, Delivery, DeliveryRef, FencedError, Publication, ReadySource, SharedSource, SharedTaken};

/// An idle time that no case outlives.
const LONG_IDLE_MS: u64 = 600_000;
const SHORT_IDLE_MS: u64 = 20;

/// With `tally` on `metric`, which has no key.
async fn begin(subject: Subject) -> Story {
    let story = Story::begin(subject).await;
    story.register("tally", "metric", None).await;
    story
}

fn source(group_name: &str) -> SharedSource {
    SharedSource { group: group(group_name), category: category("metric") }
}

fn ready_source(group_name: &str) -> ReadySource {
    ReadySource::Shared { group: group(group_name), category: category("metric") }
}

async fn publish(story: &Story, ids: &[&str]) {
    for id in ids {
        let event = Event { key: None, ..event("metric", "x", id) };
        story.publish_one(Publication { event, key_field: None, ..publication("x", id) }).await.unwrap();
    }
}

async fn take_as(story: &Story, group_name: &str, owner: &str, max: usize, idle_min_ms: u64) -> SharedTaken {
    story.broker.take_shared(&source(group_name), &OwnerId::new(owner), max, idle_min_ms).await.unwrap()
}

async fn take(story: &Story, owner: &str) -> Vec<Delivery> {
    take_as(story, "tally", owner, READ_MAX, LONG_IDLE_MS).await.deliveries
}

fn at(delivery: &Delivery) -> DeliveryRef {
    DeliveryRef { id: delivery.entry.at.id, count: delivery.count }
}

async fn commit(story: &Story, owner: &str, delivery: &Delivery) -> Result<(), FencedError> {
    story.broker.commit_shared(&source("tally"), &OwnerId::new(owner), at(delivery), Effects::default()).await
}

fn ids(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| id_of(&delivery.entry)).collect()
}

async fn waiting(story: &Story, group_name: &str) -> u64 {
    story.broker.backlog(&[ready_source(group_name)]).await.unwrap().ready
}

pub async fn each_entry_goes_to_one_of_two_owners(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1", "m2", "m3", "m4", "m5"]).await;
    assert_eq!(waiting(&story, "tally").await, 5);
    let first = take_as(&story, "tally", "A", 2, LONG_IDLE_MS).await;
    assert!(first.more && first.deliveries.len() == 2);
    let mut seen: BTreeSet<String> = ids(&first.deliveries).into_iter().collect();
    for (owner, deliveries) in [("A", first.deliveries), ("B", take(&story, "B").await)] {
        seen.extend(ids(&deliveries));
        for delivery in &deliveries {
            assert_eq!((delivery.count, delivery.attempts, delivery.crashes), (1, 0, 0));
            commit(&story, owner, delivery).await.unwrap();
        }
    }
    assert_eq!(seen.len(), 5);
    let last = take_as(&story, "tally", "A", READ_MAX, LONG_IDLE_MS).await;
    assert!(last.deliveries.is_empty() && !last.more && last.due_ms.is_none());
    assert_eq!(waiting(&story, "tally").await, 0);
}

pub async fn anothers_delivery_is_fenced_and_lands_nothing(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1"]).await;
    let held = take(&story, "A").await.remove(0);
    let (broker, source) = (&story.broker, source("tally"));
    let other_count = DeliveryRef { count: held.count + 1, ..at(&held) };
    for (owner, delivery) in [("B", at(&held)), ("A", other_count)] {
        let owner = OwnerId::new(owner);
        let effects = Effects { emits: vec![outgoing("stray", "stray")], ..Effects::default() };
        let committed = broker.commit_shared(&source, &owner, delivery, effects).await;
        assert!(matches!(committed, Err(FencedError::Fenced)), "{committed:?}");
        let failed = broker.fail_shared(&source, &owner, delivery, "no", 0).await;
        assert!(matches!(failed, Err(FencedError::Fenced)), "{failed:?}");
        let set_aside = broker.set_aside_shared(&source, &owner, delivery, "no").await;
        assert!(matches!(set_aside, Err(FencedError::Fenced)), "{set_aside:?}");
        broker.return_shared(&source, &owner, &[delivery]).await.unwrap();
    }
    assert!(take(&story, "B").await.is_empty(), "nothing came back");
    assert_eq!((story.backlog().await.outbox, waiting(&story, "tally").await), (0, 1));
    assert!(broker.dead_letters(&category("metric"), None, 0, READ_MAX).await.unwrap().0.is_empty());
    commit(&story, "A", &held).await.unwrap();
    let again = commit(&story, "A", &held).await;
    assert!(matches!(again, Err(FencedError::Fenced)), "it is settled: {again:?}");
}

pub async fn a_delivery_that_was_not_kept_goes_to_another_and_counts_a_crash(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1"]).await;
    let first = take(&story, "A").await.remove(0);
    let due_ms = take_as(&story, "tally", "B", READ_MAX, LONG_IDLE_MS).await.due_ms;
    assert!(due_ms.is_some_and(|due_ms| due_ms > 0 && due_ms <= LONG_IDLE_MS), "{due_ms:?}");
    let second = eventually("the delivery is idle", || async {
        take_as(&story, "tally", "B", READ_MAX, SHORT_IDLE_MS).await.deliveries.pop()
    })
    .await;
    assert_eq!((second.count, second.attempts, second.crashes), (first.count + 1, 0, 1));
    assert!(matches!(commit(&story, "A", &first).await, Err(FencedError::Fenced)));
    commit(&story, "B", &second).await.unwrap();
    assert_eq!(waiting(&story, "tally").await, 0);
}

pub async fn a_delivery_that_is_kept_stays(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["kept", "left"]).await;
    let deliveries = take(&story, "A").await;
    let (source, owner) = (source("tally"), OwnerId::new("A"));
    let kept = deliveries.iter().find(|delivery| id_of(&delivery.entry) == "kept").unwrap();
    let stale = DeliveryRef { count: kept.count + 1, ..at(kept) };
    // The idle time is long beside the steps of this loop; the one that is not kept shows that it passes.
    let idle_ms = 400;
    let found = eventually("the other one is idle", || async {
        story.broker.keep_shared(&source, &owner, &[at(kept), stale]).await.unwrap();
        story.broker.keep_shared(&source, &OwnerId::new("B"), &[at(&deliveries[1])]).await.unwrap();
        let taken = take_as(&story, "tally", "B", READ_MAX, idle_ms).await.deliveries;
        (!taken.is_empty()).then_some(taken)
    })
    .await;
    assert_eq!(ids(&found), ["left"], "another's keeping is passed over");
    commit(&story, "A", kept).await.unwrap();
}

pub async fn a_failed_try_comes_again_when_it_is_due_for_any_owner(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1", "m2"]).await;
    let deliveries = take(&story, "A").await;
    let (broker, source, owner) = (&story.broker, source("tally"), OwnerId::new("A"));
    broker.fail_shared(&source, &owner, at(&deliveries[0]), "no", 600_000).await.unwrap();
    broker.fail_shared(&source, &owner, at(&deliveries[1]), "no", 0).await.unwrap();
    assert!(matches!(commit(&story, "A", &deliveries[1]).await, Err(FencedError::Fenced)), "the try is over");
    let next = take_as(&story, "tally", "B", READ_MAX, LONG_IDLE_MS).await;
    assert_eq!(ids(&next.deliveries), ["m2"]);
    let again = &next.deliveries[0];
    assert_eq!((again.count, again.attempts, again.crashes), (2, 1, 0));
    assert!(next.due_ms.is_some_and(|due_ms| due_ms > 0 && due_ms <= 600_000), "{:?}", next.due_ms);
    assert_eq!(waiting(&story, "tally").await, 2);
    commit(&story, "B", again).await.unwrap();
    assert_eq!(waiting(&story, "tally").await, 1, "the other one waits");
}

pub async fn a_short_wait_ends(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1"]).await;
    let first = take(&story, "A").await.remove(0);
    story.broker.fail_shared(&source("tally"), &OwnerId::new("A"), at(&first), "no", 30).await.unwrap();
    let again = eventually("the wait ends", || async { take(&story, "B").await.pop() }).await;
    assert_eq!((again.count, again.attempts), (2, 1));
}

pub async fn what_is_returned_counts_nothing(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1", "m2"]).await;
    let deliveries = take(&story, "A").await;
    let refs: Vec<_> = deliveries.iter().map(at).collect();
    story.broker.return_shared(&source("tally"), &OwnerId::new("A"), &refs).await.unwrap();
    assert!(matches!(commit(&story, "A", &deliveries[0]).await, Err(FencedError::Fenced)));
    let mut again = take(&story, "B").await;
    again.sort_by_key(|delivery| delivery.entry.at.id);
    assert_eq!(ids(&again), ["m1", "m2"]);
    for delivery in &again {
        assert_eq!((delivery.count, delivery.attempts, delivery.crashes), (2, 0, 0));
        commit(&story, "B", delivery).await.unwrap();
    }
}

pub async fn poison_is_set_aside_and_the_rest_goes_on(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["bad", "good"]).await;
    let deliveries = take(&story, "A").await;
    let (broker, source, owner) = (&story.broker, source("tally"), OwnerId::new("A"));
    broker.fail_shared(&source, &owner, at(&deliveries[0]), "once", 0).await.unwrap();
    let again = take(&story, "A").await.remove(0);
    broker.set_aside_shared(&source, &owner, at(&again), "twice").await.unwrap();
    commit(&story, "A", &deliveries[1]).await.unwrap();
    assert_eq!(waiting(&story, "tally").await, 0);
    let (letters, next) = broker.dead_letters(&category("metric"), None, 0, READ_MAX).await.unwrap();
    assert_eq!((letters.len(), next), (1, None));
    let letter = &letters[0];
    assert_eq!((letter.event_id.as_str(), letter.name.as_str(), letter.version), ("bad", "OrderPlaced", 1));
    assert_eq!((letter.attempts, letter.error.as_str()), (2, "twice"));
    assert_eq!((letter.key.as_ref(), &letter.group, &letter.origin), (None, &group("tally"), &again.entry.at));
    let by = By { who: "ann".into(), reason: "mended".into() };
    broker.redrive(&category("metric"), None, letter.id, &by).await.unwrap();
    assert_eq!(ids(&take(&story, "B").await), ["bad"]);
}

pub async fn emits_land_with_a_shared_settlement(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1"]).await;
    let delivery = take(&story, "A").await.remove(0);
    let effects = Effects { emits: vec![outgoing("a", "x")], ..Effects::default() };
    story.broker.commit_shared(&source("tally"), &OwnerId::new("A"), at(&delivery), effects).await.unwrap();
    assert_eq!((story.backlog().await.outbox, waiting(&story, "tally").await), (1, 0));
    assert_eq!(story.broker.route(READ_MAX, 0).await.unwrap().published, 1);
    assert_eq!(story.drain("A", super::story::billing("a")).await, ["x"]);
}

pub async fn state_has_no_place_in_a_shared_settlement(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1"]).await;
    let delivery = take(&story, "A").await.remove(0);
    let state = vec![StateChange { name: "total".into(), value: Some("1".into()) }];
    let effects = Effects { state, emits: vec![outgoing("a", "x")] };
    let answer = story.broker.commit_shared(&source("tally"), &OwnerId::new("A"), at(&delivery), effects).await;
    assert!(matches!(answer, Err(FencedError::Broker(crate::Error::Refused(_)))), "{answer:?}");
    assert_eq!((story.backlog().await.outbox, waiting(&story, "tally").await), (0, 1));
    commit(&story, "A", &delivery).await.unwrap();
}

pub async fn two_groups_each_get_every_shared_entry(subject: Subject) {
    let story = begin(subject).await;
    story.register("graph", "metric", None).await;
    publish(&story, &["m1", "m2"]).await;
    for delivery in take(&story, "A").await {
        commit(&story, "A", &delivery).await.unwrap();
    }
    assert_eq!((waiting(&story, "tally").await, waiting(&story, "graph").await), (0, 2));
    let graph = take_as(&story, "graph", "A", READ_MAX, LONG_IDLE_MS).await.deliveries;
    assert_eq!(ids(&graph), ["m1", "m2"], "they are kept until every group has settled them");
    for delivery in graph.iter().rev() {
        story
            .broker
            .commit_shared(&source("graph"), &OwnerId::new("A"), at(delivery), Effects::default())
            .await
            .unwrap();
    }
    publish(&story, &["m3"]).await;
    assert_eq!(ids(&take(&story, "A").await), ["m3"]);
    assert_eq!(ids(&take_as(&story, "graph", "B", READ_MAX, LONG_IDLE_MS).await.deliveries), ["m3"]);
}

pub async fn what_is_settled_out_of_order_takes_nothing_else_with_it(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1", "m2", "m3"]).await;
    let deliveries = take(&story, "A").await;
    commit(&story, "A", &deliveries[2]).await.unwrap();
    let refs: Vec<_> = deliveries[..2].iter().map(at).collect();
    story.broker.return_shared(&source("tally"), &OwnerId::new("A"), &refs).await.unwrap();
    let mut again = take(&story, "B").await;
    again.sort_by_key(|delivery| delivery.entry.at.id);
    assert_eq!(ids(&again), ["m1", "m2"]);
}

pub async fn a_group_that_comes_late_gets_the_shared_entries_that_are_kept(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1", "m2"]).await;
    let deliveries = take(&story, "A").await;
    story.register("graph", "metric", None).await;
    assert_eq!(ids(&take_as(&story, "graph", "A", READ_MAX, LONG_IDLE_MS).await.deliveries), ["m1", "m2"]);
    for delivery in &deliveries {
        commit(&story, "A", delivery).await.unwrap();
    }
}

pub async fn a_paused_category_gives_nothing_and_fences_what_is_out(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, &["m1", "m2"]).await;
    let held = take_as(&story, "tally", "A", 1, LONG_IDLE_MS).await.deliveries.remove(0);
    let by = By { who: "ann".into(), reason: "a fire".into() };
    assert!(story.broker.pause(&category("metric"), None, &by).await.unwrap());
    let taken = take_as(&story, "tally", "B", READ_MAX, 0).await;
    assert!(taken.deliveries.is_empty() && !taken.more, "{taken:?}");
    assert!(matches!(commit(&story, "A", &held).await, Err(FencedError::Fenced)));
    assert_eq!(waiting(&story, "tally").await, 2);
    let mut bells = listen(story.broker.as_ref(), vec![ready_source("tally")]).await;
    assert!(story.broker.resume(&category("metric"), None, &by).await.unwrap());
    assert_eq!(next_bell(&mut bells).await, Bell::Look { source: ready_source("tally") });
    let mut again = take(&story, "B").await;
    again.sort_by_key(|delivery| delivery.entry.at.id);
    assert_eq!(ids(&again), ["m1", "m2"]);
    assert_eq!(again[0].crashes, 0, "a pause is no crash");
}

pub async fn a_bell_says_to_look_at_a_shared_source(subject: Subject) {
    let story = begin(subject).await;
    let mut bells = listen(story.broker.as_ref(), vec![ready_source("tally")]).await;
    story.publish("a", ["of-another-source"]).await;
    publish(&story, &["m1"]).await;
    assert_eq!(next_bell(&mut bells).await, Bell::Look { source: ready_source("tally") });
    let held = take(&story, "A").await.remove(0);
    let mut bells = listen(story.broker.as_ref(), vec![ready_source("tally")]).await;
    story.broker.return_shared(&source("tally"), &OwnerId::new("A"), &[at(&held)]).await.unwrap();
    assert_eq!(next_bell(&mut bells).await, Bell::Look { source: ready_source("tally") });
    let set = story.broker.ready(&ready_source("tally"), 0, READ_MAX).await.unwrap();
    assert!(set.keys.is_empty() && set.next.is_none(), "it has no keys");
}
