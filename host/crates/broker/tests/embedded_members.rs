//! Who is there, on an embedded broker whose clock the test turns.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use keyrail_broker::contract::story::{group, listen, next_bell};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{Bell, Leases, Members};
use keyrail_ordering::{Member, OwnerId};

const TTL_MS: u64 = 100;

fn member(name: &str) -> Member {
    Member {
        owner: OwnerId::new(name),
        groups: vec![group("billing")],
        capacity: 10,
        owned: 0,
        running: 0,
        settled: 0,
        release: "1.0".into(),
        leaving: false,
        held: vec![],
        hot: vec![],
    }
}

#[tokio::test]
async fn members_are_there_until_their_time_is_over_or_they_leave() {
    let clock = Arc::new(AtomicU64::new(0));
    let now = clock.clone();
    let settings = EmbeddedSettings { lease_clock: Arc::new(move || now.load(SeqCst)), ..EmbeddedSettings::default() };
    let broker = EmbeddedBroker::memory(settings).unwrap();
    let (mut a, mut b) = (broker.heartbeat(), broker.heartbeat());
    assert_eq!(a.announce(&member("A"), TTL_MS).await.unwrap(), [member("A")]);
    clock.store(50, SeqCst);
    assert_eq!(b.announce(&member("B"), TTL_MS).await.unwrap(), [member("A"), member("B")]);
    clock.store(99, SeqCst);
    assert_eq!(broker.members().await.unwrap().len(), 2);
    clock.store(100, SeqCst);
    assert_eq!(broker.members().await.unwrap(), [member("B")]);
    assert_eq!(a.announce(&member("A"), TTL_MS).await.unwrap().len(), 2, "it is back");
    broker.leave(&OwnerId::new("B")).await.unwrap();
    broker.leave(&OwnerId::new("B")).await.unwrap();
    assert_eq!(broker.members().await.unwrap(), [member("A")]);
}

#[tokio::test]
async fn a_bell_rings_for_what_changes_who_owns_what_and_for_nothing_else() {
    let broker = EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap();
    let mut heart = broker.heartbeat();
    let mut bells = listen(&broker, vec![]).await;
    let marker = async || {
        // Whatever rang before this has been heard before it.
        broker.heartbeat().announce(&member("marker"), 1_000_000).await.unwrap();
        broker.leave(&OwnerId::new("marker")).await.unwrap();
    };
    let mut rings = async |expected: usize, what: &str| {
        marker().await;
        for n in 0..expected + 2 {
            assert_eq!(next_bell(&mut bells).await, Bell::Members, "{what}: {n}");
        }
        let more = tokio::time::timeout(std::time::Duration::ZERO, next_bell(&mut bells)).await;
        assert!(more.is_err(), "{what} rang more than {expected} times");
    };
    let mut announce = async |member: Member| heart.announce(&member, 1_000_000).await.map(drop).unwrap();
    announce(member("A")).await;
    rings(1, "a new member").await;
    announce(Member { owned: 5, settled: 9, ..member("A") }).await;
    rings(0, "another load").await;
    announce(Member { groups: vec![group("audit"), group("billing")], ..member("A") }).await;
    rings(1, "another group").await;
    announce(Member { groups: vec![group("billing"), group("audit")], ..member("A") }).await;
    rings(0, "the same groups in another order").await;
    announce(Member { groups: vec![group("billing"), group("audit")], leaving: true, ..member("A") }).await;
    rings(1, "leaving").await;
    broker.leave(&OwnerId::new("A")).await.unwrap();
    rings(1, "gone").await;
    broker.leave(&OwnerId::new("A")).await.unwrap();
    rings(0, "gone already").await;
}

#[tokio::test]
async fn a_ready_set_tells_when_to_look_again() {
    use keyrail_broker::contract::Subject;
    use keyrail_broker::contract::story::{READ_MAX, Story, billing, source};
    let clock = Arc::new(AtomicU64::new(1_000));
    let (now, wall) = (clock.clone(), clock.clone());
    let settings = EmbeddedSettings {
        lease_clock: Arc::new(move || now.load(SeqCst)),
        wall_clock: Arc::new(move || wall.load(SeqCst)),
        ..EmbeddedSettings::default()
    };
    let story = Story::begin(Subject::new(Arc::new(EmbeddedBroker::memory(settings).unwrap()))).await;
    let due_ms = async || story.broker.ready(&source("billing"), 0, READ_MAX).await.unwrap().due_ms;
    for key in ["free", "held", "waits"] {
        story.publish(key, ["e1"]).await;
    }
    assert_eq!(due_ms().await, None);
    let owner = OwnerId::new("A");
    let held = story.broker.acquire(billing("held"), &owner, 500, READ_MAX).await.unwrap();
    assert_eq!(due_ms().await, Some(500), "unless it is renewed");
    let waits = story.broker.acquire(billing("waits"), &owner, 400, READ_MAX).await.unwrap();
    story.broker.fail(&waits.lease, &waits.entries[0].at, 1, "no", 450).await.unwrap();
    assert_eq!(due_ms().await, Some(450), "its lease lapses before it is due");
    story.broker.release(&waits.lease).await.unwrap();
    clock.store(1_100, SeqCst);
    assert_eq!(due_ms().await, Some(350));
    story.broker.heartbeat().renew(&[held.lease], 100).await.unwrap();
    assert_eq!(due_ms().await, Some(100));
    clock.store(1_450, SeqCst);
    assert_eq!(due_ms().await, None);
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["free", "held", "waits"]);
}
