//! The eleven assertions of the ADR ("Mapping each guarantee to the test"), on a real Redis with two host processes. The mark
//! of what is in progress is kept in Redis, so an overlap between processes is seen.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::sync::Arc;

use keyrail::config::PublishConfig;
use keyrail::service::{RegisterError, Registration, Service};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_ordering::{CategoryName, Correlation, MessageName, Metadata, SequentialBy};
use keyrail_tests::native::{Line, Work, metadata};
use keyrail_tests::world::{SHORT_LEASES, World};
use keyrail_tests::{guest, partitions, run, run_with_input, wait_until};

const CLIENTS: [&str; 2] = ["client-A", "client-B"];
const EVENTS: u64 = 40;

/// Events of both clients, in turns.
fn interleaved(count: u64, work_ms: u64) -> impl Iterator<Item = Work> {
    (0..count).flat_map(move |n| CLIENTS.map(|client| Work::new(client, n).taking(work_ms)))
}

fn begins(line: &Line, key: &str, n: u64) -> bool {
    line.what == "begin" && line.key == key && line.n == n
}

#[test]
fn adr_01_strict_per_key_order() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    world.publish("order", interleaved(EVENTS, 2));
    for client in CLIENTS {
        world.wait_until_seen("ledger", client, EVENTS as usize);
        world.assert_in_order("ledger", client, EVENTS);
        // In the handler too, not only in what was committed.
        let begun: Vec<_> = world.log().into_iter().filter(|line| line.what == "begin" && line.key == client).collect();
        assert!(begun.is_sorted_by_key(|line| line.n), "{begun:?}");
    }
    drop(hosts);
}

#[test]
fn adr_02_no_concurrent_entry_for_different_events_of_a_key() {
    let mut world = World::new();
    world.redis("SET test:mark:ledger:client-C another");
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    world.publish("order", interleaved(EVENTS, 5));
    for client in CLIENTS {
        world.wait_until_seen("ledger", client, EVENTS as usize);
    }
    world.assert_no_overlap();
    // The mark bites: this key's is another event's.
    world.publish("order", [Work::new("client-C", 0)]);
    world.wait_until_seen("ledger", "client-C", 1);
    assert!(matches!(world.redis("LLEN test:overlaps"), redis::Value::Int(1)));
    drop(hosts);
}

#[test]
fn adr_03_cross_key_parallelism_preserved() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    world.publish("order", interleaved(2, 700));
    for client in CLIENTS {
        world.wait_until_seen("ledger", client, 2);
    }
    let log = world.log();
    let place = |what: &str, key: &str, n| {
        log.iter().position(|line| line.what == what && line.key == key && line.n == n).unwrap()
    };
    let [a, b] = CLIENTS;
    let overlap = place("begin", a, 0) < place("end", b, 0) && place("begin", b, 0) < place("end", a, 0);
    assert!(overlap, "the two clients waited for each other: {log:?}");
    world.assert_no_overlap();
    drop(hosts);
}

#[test]
fn adr_04_halt_on_poison_is_partition_scoped() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    let [a, b] = CLIENTS;
    world.publish("order", (0..10).map(|n| Work::new(a, n).ending(if n == 3 { "poison" } else { "ok" })));
    world.publish("order", (0..10).map(|n| Work::new(b, n)));
    world.wait_until_seen("ledger", b, 10);
    let url = world.redis.url();
    let row = || partitions(&url, "order").into_iter().find(|row| row["key"] == a).unwrap();
    wait_until("the key is halted", || !row()["halted"].is_null());
    let halted = row();
    assert_eq!(halted["halted"]["cause"], "poison", "{halted}");
    assert_eq!(halted["waiting"], 7, "the head and what is behind it stay: {halted}");
    world.assert_in_order("ledger", a, 3);
    assert!(!world.log().iter().any(|line| line.key == a && line.n > 3), "an event behind the head was begun");
    assert!(matches!(world.redis("EXISTS order:client-A:dlq"), redis::Value::Int(0)), "it was set aside by itself");
    drop(hosts);
}

#[test]
fn adr_05_crash_failover_loses_nothing_and_keeps_the_order() {
    // At every step: before it takes a partition, in the handler, before it commits, renews, or gives a partition up.
    for plan in ["acquire:2:kill", "commit:5:kill", "renew:2:kill", "release:1:kill", "handler"] {
        let mut world = World::new();
        let [a, b] = CLIENTS;
        let mut first = world.host_that(SHORT_LEASES, "ledger", if plan == "handler" { "-" } else { plan });
        world.publish("order", interleaved(EVENTS, 10));
        if plan == "handler" {
            world.wait_for("it is in a handler", |line| begins(line, a, 4));
            first.kill();
        } else {
            if plan.starts_with("release") {
                world.wait_for("it owns something", |line| begins(line, a, 2));
                first.ask_to_end();
            }
            first.wait_until_ended();
        }
        let second = world.host(SHORT_LEASES, "ledger");
        for client in [a, b] {
            world.wait_until_seen("ledger", client, EVENTS as usize);
            world.assert_in_order("ledger", client, EVENTS);
        }
        world.assert_no_overlap();
        drop(second);
    }
}

#[test]
fn adr_06_stall_failover_the_fence_holds() {
    // The owner is stopped at every step for longer than its lease, and wakes when another has gone on.
    for plan in ["commit:4:stop", "renew:1:stop", "handler"] {
        let mut world = World::new();
        let [a, b] = CLIENTS;
        let first = world.host_that(SHORT_LEASES, "ledger", if plan == "handler" { "-" } else { plan });
        world.publish("order", interleaved(EVENTS, 25));
        if plan == "handler" {
            world.wait_for("it is in a handler", |line| begins(line, a, 4));
            first.freeze();
        }
        first.wait_until_stopped();
        let stopped_at = world.log().len();
        let second = world.host(SHORT_LEASES, "ledger");
        let other = second.pid();
        world.wait_for("the other has gone on", |line| line.host == other && line.what == "end");
        first.thaw();
        for client in [a, b] {
            world.wait_until_seen("ledger", client, EVENTS as usize);
            world.assert_in_order("ledger", client, EVENTS);
        }
        // What it was about to do when it was stopped it may still do, in vain: one event a key. It never reaches the next:
        // whatever else it begins after it woke, it begins as an owner anew, above the other's first generation.
        let log = world.log();
        let taken_over = log.iter().find(|line| line.host == other).unwrap().generation;
        let late = log[stopped_at..].iter().filter(|line| line.host == first.pid() && line.what == "begin");
        for client in [a, b] {
            let stale = late.clone().filter(|line| line.key == client && line.generation < taken_over);
            let stale: BTreeSet<_> = stale.map(|line| line.n).collect();
            assert!(stale.len() <= 1, "{plan}: a stale owner went on with {client}: {stale:?}");
        }
        drop((first, second));
    }
}

#[test]
fn adr_07_registration_validation_fails_loud() {
    let world = World::new();
    let refused = run(&world.redis.url(), &["register", guest("probe-lacks-key").to_str().unwrap()]);
    refused.refused(5, "has no field");
}

/// The reasons why a handler is refused on this Redis; none if it is accepted.
fn register(url: &str, metadata: Metadata) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let broker = RedisBroker::connect(url, RedisSettings::default()).await.unwrap();
        let service = Service::new(Arc::new(broker), PublishConfig::default());
        match service.register(&[Registration { metadata, content_hash: "00".into() }]).await {
            Ok(_) => vec![],
            Err(RegisterError::Refused(refused)) => refused.into_iter().flat_map(|handler| handler.reasons).collect(),
            Err(other) => panic!("{other}"),
        }
    })
}

#[test]
fn adr_08_capability_gating_fails_loud() {
    let mut world = World::new();
    // A Redis that lacks what partitioning needs, as far as this user goes.
    world.redis("ACL SETUSER limited on >secret ~* &* +@all -xreadgroup -xclaim");
    let limited = format!("redis://limited:secret@127.0.0.1:{}", world.redis.port());
    let refused = run(&limited, &["register", guest("itinerary").to_str().unwrap()]);
    refused.refused(4, "+xclaim +xreadgroup");
    world.redis("ACL SETUSER nofunctions on >secret ~* &* +@all -function -fcall");
    let none = format!("redis://nofunctions:secret@127.0.0.1:{}", world.redis.port());
    run(&none, &["register", guest("itinerary").to_str().unwrap()]).refused(4, "+fcall");
    // The inline broker of the guest's test harness takes the same handler: `guest-sdk/rust/tests/harness.rs`.
}

#[test]
fn adr_09_one_partition_key_per_category() {
    let world = World::new();
    let url = world.redis.url();
    assert_eq!(register(&url, metadata("ledger")), Vec::<String>::new());
    let mut other = metadata("teller");
    other.handles = metadata("ledger").handles;
    for field in &mut other.handles[0].fields {
        field.required = true;
    }
    other.handles[0].name = MessageName::parse("Other").unwrap();
    other.sequential_by = SequentialBy::Field("n".into());
    let reasons = register(&url, other);
    assert!(reasons.iter().any(|reason| reason.contains("client_id") && reason.contains("ledger")), "{reasons:?}");

    // A process manager that correlates by another field there.
    let mut saga = metadata("saga");
    for message in &mut saga.handles {
        for field in &mut message.fields {
            field.required = true;
        }
        message.name = MessageName::parse("Step").unwrap();
    }
    let correlation = |category: &str| Correlation {
        category: CategoryName::parse(category).unwrap(),
        message: MessageName::parse("Step").unwrap(),
        field: "n".into(),
    };
    saga.sequential_by = SequentialBy::Correlation(vec![correlation("order"), correlation("payment")]);
    let reasons = register(&url, saga);
    assert!(reasons.iter().any(|reason| reason.contains("order") && reason.contains("client_id")), "{reasons:?}");
}

#[test]
fn adr_10_process_manager_serializes_per_instance() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "saga"));
    for n in 0..15 {
        for category in ["order", "payment"] {
            world.publish(category, CLIENTS.map(|client| Work::new(client, n).taking(20)));
        }
    }
    for client in CLIENTS {
        world.wait_until_seen("saga", client, 30);
        let seen = &world.seen("saga")[client];
        for category in ["order", "payment"] {
            // Within a category in the order of publishing, and each event once.
            let of_category: Vec<_> = seen.iter().filter(|name| name.starts_with(category)).cloned().collect();
            assert_eq!(of_category, (0..15).map(|n| format!("{category}-{n}")).collect::<Vec<_>>(), "{seen:?}");
        }
    }
    world.assert_no_overlap();
    let log = world.log();
    let overlap =
        log.windows(2).any(|pair| pair[0].what == "begin" && pair[1].what == "begin" && pair[0].key != pair[1].key);
    assert!(overlap, "different correlation values never ran in parallel");
    drop(hosts);
}

#[test]
fn adr_11_unsafe_key_values_fail_loud_at_record_creation() {
    let mut world = World::new();
    let url = world.redis.url();
    assert_eq!(register(&url, metadata("ledger")), Vec::<String>::new());
    for key in ["", "a:b", "dlq", "backfill", "__partitions__", "{a}", " a", "a\\nb", "e\u{301}"] {
        let line = Work::new(key, 0).line("order").replace("\\\\n", "\\n");
        let ran = run_with_input(&url, &["publish", "-"], &line);
        assert_eq!(ran.code, 5, "{key:?}: {ran:#?}");
    }
    for data in
        [r#"{"n":1}"#, r#"{"client_id":null,"n":1}"#, r#"{"client_id":1.5,"n":1}"#, r#"{"client_id":["a"],"n":1}"#]
    {
        let line = format!(r#"{{"category":"order","type":"Work","data":{data}}}"#);
        assert_eq!(run_with_input(&url, &["publish", "-"], &line).code, 5, "{data}");
    }
    assert!(matches!(world.redis("XLEN __outbox__"), redis::Value::Int(0)));
    assert!(matches!(world.redis("HLEN order:__partitions__"), redis::Value::Int(0)), "a refused event left a trace");
    // What a handler emits is checked at once, inside its call: see `misbehaving.rs`, mode `emit-bad`.
}
