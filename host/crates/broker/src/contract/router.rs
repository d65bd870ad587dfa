//! From the outbox into the streams: in order, once, and nothing holds back the rest.

use std::sync::Arc;

use keyrail_ordering::Outgoing;

use super::Subject;
use super::story::{CommitWords, Story, bell, billing, commit, event, listen, next_bell, outgoing, source};
use crate::{Bell, Commit};

const ALL: usize = 100;
const WINDOW_MS: u64 = 600_000;

/// Settles one event of the key `cause` with these emits.
async fn emit(story: &Story, emits: Vec<Outgoing>) {
    story.publish("cause", ["cause"]).await;
    let acquired = story.acquire("A", "cause").await;
    let commit: Commit = emits.into_iter().fold(commit(&acquired.entries[0]), CommitWords::emit);
    assert!(story.broker.commit(&acquired.lease, commit.and_release()).await.unwrap().released);
}

pub async fn records_are_routed_in_the_order_of_their_commits(subject: Subject) {
    let story = Story::begin(subject).await;
    emit(&story, vec![outgoing("a", "x1"), outgoing("b", "y1"), outgoing("a", "x2")]).await;
    emit(&story, vec![outgoing("a", "x3"), outgoing("b", "y2")]).await;
    assert_eq!(story.backlog().await.outbox, 5);
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    let routed = story.broker.route(ALL, 0).await.unwrap();
    assert_eq!((routed.published, routed.abandoned.len(), routed.more), (5, 0, false));
    assert_eq!(next_bell(&mut bells).await, bell("billing", "a"));
    assert_eq!(next_bell(&mut bells).await, bell("billing", "b"));
    assert_eq!(story.backlog().await.outbox, 0);
    assert_eq!(story.drain("A", billing("a")).await, ["x1", "x2", "x3"]);
    assert_eq!(story.drain("A", billing("b")).await, ["y1", "y2"]);
}

pub async fn a_record_that_cannot_be_published_is_abandoned_and_the_rest_goes_on(subject: Subject) {
    let story = Story::begin(subject).await;
    let stale = Outgoing { key_field: Some("customer".into()), ..outgoing("a", "x2") };
    let gone = Outgoing { event: event("nowhere", "a", "x3"), key_field: Some("client".into()) };
    emit(&story, vec![outgoing("a", "x1"), stale, gone, outgoing("a", "x4")]).await;
    let routed = story.broker.route(ALL, 0).await.unwrap();
    assert_eq!((routed.published, routed.abandoned.len(), routed.more), (2, 2, false));
    assert!(routed.abandoned[0].contains("customer"), "{:?}", routed.abandoned);
    assert!(routed.abandoned[1].contains("nowhere"), "{:?}", routed.abandoned);
    let backlog = story.backlog().await;
    assert_eq!((backlog.outbox, backlog.abandoned), (0, 2));
    assert_eq!(story.drain("A", billing("a")).await, ["x1", "x4"]);
    assert_eq!(story.broker.route(ALL, 0).await.unwrap().abandoned.len(), 0, "each is reported once");
}

pub async fn routing_says_whether_there_is_more(subject: Subject) {
    let story = Story::begin(subject).await;
    let nothing = story.broker.route(ALL, 0).await.unwrap();
    assert_eq!((nothing.published, nothing.more), (0, false));
    emit(&story, vec![outgoing("a", "x1"), outgoing("a", "x2"), outgoing("a", "x3")]).await;
    let first = story.broker.route(2, 0).await.unwrap();
    assert_eq!((first.published, first.more), (2, true));
    let second = story.broker.route(2, 0).await.unwrap();
    assert_eq!((second.published, second.more), (1, false));
}

pub async fn an_emit_that_repeats_is_published_once(subject: Subject) {
    let story = Story::begin(subject).await;
    emit(&story, vec![outgoing("a", "x1"), outgoing("a", "x1"), outgoing("a", "x2")]).await;
    let routed = story.broker.route(ALL, WINDOW_MS).await.unwrap();
    assert!(routed.abandoned.is_empty() && !routed.more);
    emit(&story, vec![outgoing("a", "x2")]).await;
    story.broker.route(ALL, WINDOW_MS).await.unwrap();
    assert_eq!(story.drain("A", billing("a")).await, ["x1", "x2"]);
}

pub async fn many_routers_keep_the_order(subject: Subject) {
    let story = Story::begin(subject).await;
    let ids: Vec<_> = (0..60).map(|n| format!("x{n:02}")).collect();
    for part in ids.chunks(20) {
        emit(&story, part.iter().map(|id| outgoing("a", id)).collect()).await;
    }
    let routers: Vec<_> = (0..4)
        .map(|_| {
            let broker = Arc::clone(&story.broker);
            tokio::spawn(async move { while broker.route(3, 0).await.unwrap().more {} })
        })
        .collect();
    for router in routers {
        router.await.unwrap();
    }
    assert_eq!(story.backlog().await.outbox, 0);
    assert_eq!(story.drain("A", billing("a")).await, ids);
}

pub async fn emits_ring_the_bell_of_the_outbox(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("cause", ["e1", "e2"]).await;
    let acquired = story.acquire("A", "cause").await;
    let mut bells = listen(story.broker.as_ref(), vec![]).await;
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    story.broker.commit(&acquired.lease, commit(&acquired.entries[1]).emit(outgoing("a", "x"))).await.unwrap();
    assert_eq!(next_bell(&mut bells).await, Bell::Outbox);
}
