//! The outbox: order of a key under several routers, and records that can never go.

use bytes::Bytes;
use keyrail_broker::{Commit, Inspect, Leases, Log, Router};
use keyrail_ordering::{Effects, Outgoing};

use crate::world::*;

const KEYS: usize = 5;
const EVENTS: usize = 200;

fn outgoing(key_text: &str, id: &str) -> Outgoing {
    let publication = event("payment", key_text, id);
    Outgoing { event: publication.event, key_field: publication.key_field }
}

async fn commit_with(world: &World, key_text: &str, emits: Vec<Outgoing>) {
    world.publish(key_text, 1..=1).await;
    let held = world.acquire(&world.a, key_text, "a").await;
    let commit = Commit {
        entries: vec![held.entries[0].at.clone()],
        effects: Effects { state: vec![], emits },
        take_max: 1,
        release: true,
        version: None,
    };
    assert!(world.a.commit(&held.lease, commit).await.unwrap().released);
}

#[tokio::test]
async fn p01_several_routers_keep_the_order_of_each_key() {
    let world = World::new().await;
    register(&world.a, &handler("payer", &["payment"], false)).await;
    let emits = (0..EVENTS).map(|n| outgoing(&format!("x{}", n % KEYS), &format!("e{n:04}"))).collect();
    commit_with(&world, "k1", emits).await;
    let route = |broker: &'static str| {
        let broker = if broker == "a" { &world.a } else { &world.b };
        async move {
            let mut published = 0;
            loop {
                let routed = broker.route(7, 60_000).await.unwrap();
                assert!(routed.abandoned.is_empty());
                published += routed.published;
                if !routed.more {
                    return published;
                }
            }
        }
    };
    let (one, two, three, four) = tokio::join!(route("a"), route("b"), route("a"), route("b"));
    assert_eq!(one + two + three + four, EVENTS);
    for key_text in (0..KEYS).map(|n| format!("x{n}")) {
        let spec = keyrail_ordering::PartitionSpec::of_key(group("payer"), category("payment"), key(&key_text));
        let held = world.a.acquire(spec.into(), &owner("a"), TTL_MS, EVENTS).await.unwrap();
        let found = ids(&held.entries);
        assert_eq!(found.len(), EVENTS / KEYS);
        assert!(found.is_sorted(), "{found:?}");
    }
}

#[tokio::test]
async fn c047_a_record_that_can_never_go_is_set_aside_and_the_rest_goes_on() {
    let world = World::new().await;
    register(&world.a, &handler("payer", &["payment"], false)).await;
    world.cli("SET payment:broken x").await;
    let mut stale = outgoing("x", "stale");
    stale.key_field = Some("region".into());
    let emits = vec![outgoing("broken", "wrong-type"), stale, outgoing("x", "good")];
    commit_with(&world, "k1", emits).await;
    let routed = world.b.route(10, 60_000).await.unwrap();
    assert_eq!((routed.published, routed.more, routed.abandoned.len()), (1, false, 2));
    assert!(routed.abandoned[0].contains("wrong-type") && routed.abandoned[0].contains("payment:broken"));
    assert!(routed.abandoned[1].contains("region"));
    let backlog = world.a.backlog(&[source()]).await.unwrap();
    assert_eq!((backlog.outbox, backlog.abandoned), (0, 2));
}

#[tokio::test]
async fn a_full_server_stops_the_router_and_abandons_nothing() {
    let world = World::new().await;
    register(&world.a, &handler("payer", &["payment"], false)).await;
    commit_with(&world, "k1", vec![outgoing("x", "e1")]).await;
    world.cli("CONFIG SET maxmemory 1").await;
    assert!(world.a.route(10, 0).await.unwrap_err().to_string().contains("full"));
    world.cli("CONFIG SET maxmemory 0").await;
    assert_eq!(world.a.route(10, 0).await.unwrap().published, 1);
}

#[tokio::test]
async fn an_emit_arrives_as_it_was_made() {
    let world = World::new().await;
    register(&world.a, &handler("payer", &["payment"], false)).await;
    let mut emit = outgoing("x", "e1");
    emit.event.headers = vec![("a".into(), "1".into())];
    emit.event.data = Bytes::from_static("{\"é\":\"\u{0}\"}".as_bytes());
    commit_with(&world, "k1", vec![emit.clone()]).await;
    world.a.route(10, 0).await.unwrap();
    let spec = keyrail_ordering::PartitionSpec::of_key(group("payer"), category("payment"), key("x"));
    let held = world.a.acquire(spec.into(), &owner("a"), TTL_MS, 10).await.unwrap();
    assert_eq!(held.entries[0].content, keyrail_ordering::Content::Event(emit.event));
    assert!(held.entries[0].recorded_at_ms > 1_600_000_000_000);
}
