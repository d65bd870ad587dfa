//! Pauses: what is paused is taken from its owners and given to nobody.

use super::Subject;
use super::operate::by;
use super::story::{Story, assert_order, bell, billing, category, commit, key, listen, next_bell, partition, source};
use crate::{AcquireError, Bell, FencedError, HeadAction};

pub async fn a_paused_key_is_taken_from_its_owner_and_offered_to_nobody(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    story.publish("b", ["e3"]).await;
    let held = story.acquire("A", "a").await;
    let (order, a) = (category("order"), key("a"));
    assert!(story.broker.pause(&order, Some(&a), &by("ann")).await.unwrap());
    story.assert_fenced(&held.lease, &held.entries[0]).await;
    assert!(!story.broker.pause(&order, Some(&a), &by("bob")).await.unwrap(), "it was paused already");
    assert!(matches!(story.try_acquire("B", "a").await, Err(AcquireError::Paused)));
    assert_eq!(story.offered(&source("billing"), 10).await, ["b"]);
    assert_eq!(story.backlog().await.ready, 2, "what is paused is left to do");
    let paused = story.broker.paused(&order).await.unwrap();
    assert_eq!((paused.len(), paused[0].key.clone(), &paused[0].by), (1, Some(a.clone()), &by("ann")));
    assert!(paused[0].at_ms > 0);
    assert!(story.broker.head(&billing("a")).await.unwrap().unwrap().paused);
    story.acquire("B", "b").await;

    let mut bells = listen(&*story.broker, vec![source("billing")]).await;
    assert!(!story.broker.resume(&order, None, &by("ann")).await.unwrap(), "not the whole category is paused");
    assert!(story.broker.resume(&order, Some(&a), &by("ann")).await.unwrap());
    let rung = next_bell(&mut bells).await;
    assert!(rung == bell("billing", "a") || rung == Bell::Look { source: source("billing") }, "{rung:?}");
    assert_eq!(story.broker.paused(&order).await.unwrap(), []);
    let next = story.acquire("B", "a").await;
    assert_order(&next.entries, &["e1", "e2"]);
    assert_eq!(next.attempts, None, "a pause is no crash");
}

pub async fn a_paused_category_is_taken_from_all_its_owners(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("mail", "order", Some("client")).await;
    story.register("ship", "parcel", Some("client")).await;
    let keys: Vec<String> = (0..250).map(|n| format!("k{n}")).collect();
    let mut held = vec![];
    for key in &keys {
        story.publish(key, [&format!("{key}-1")]).await;
        held.push(story.acquire("A", key).await.lease);
    }
    let mail = story.acquire_for("M", partition("mail", "order", "k0")).await;
    held.push(mail.lease.clone());
    let other = story.acquire_for("S", partition("ship", "parcel", "k0")).await;
    let order = category("order");
    assert!(story.broker.pause(&order, None, &by("ann")).await.unwrap());
    assert_eq!(story.renew(&held).await, vec![false; held.len()]);
    assert_eq!(story.renew(std::slice::from_ref(&other.lease)).await, [true], "another category goes on");
    let late = story.broker.commit(&mail.lease, commit(&mail.entries[0])).await;
    assert!(matches!(late, Err(FencedError::Fenced)), "{late:?}");
    assert_eq!(story.offered(&source("billing"), 100).await, [] as [String; 0]);
    story.publish("new", ["n1"]).await;
    assert!(matches!(story.try_acquire("B", "new").await, Err(AcquireError::Paused)));
    // A key's own pause outlives the category's.
    assert!(story.broker.pause(&order, Some(&key("k1")), &by("ann")).await.unwrap());
    assert_eq!(story.broker.paused(&order).await.unwrap().len(), 2);
    assert!(story.broker.resume(&order, None, &by("ann")).await.unwrap());
    assert_eq!(story.offered(&source("billing"), 100).await.len(), 250);
    assert!(matches!(story.try_acquire("B", "k1").await, Err(AcquireError::Paused)));
    assert_order(&story.acquire("B", "k2").await.entries, &["k2-1"]);
}

pub async fn an_action_on_a_paused_head_leaves_it_paused(subject: Subject) {
    let story = Story::begin(subject).await;
    let record = story.halted_on_first("a", ["e1", "e2"]).await;
    let (order, a) = (category("order"), key("a"));
    story.broker.pause(&order, Some(&a), &by("ann")).await.unwrap();
    story.act(HeadAction::Skip, &record.head).await.unwrap();
    assert!(matches!(story.try_acquire("B", "a").await, Err(AcquireError::Paused)));
    story.broker.resume(&order, Some(&a), &by("ann")).await.unwrap();
    assert_order(&story.acquire("B", "a").await.entries, &["e2"]);
}
