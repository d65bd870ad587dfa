//! Commands, categories that are not partitioned, and the backfill lane, with host processes on a real Redis.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::native::Work;
use keyrail_tests::world::{SHORT_LEASES, World};
use keyrail_tests::{guest, run, run_with_input, wait_until};
use tempfile::TempDir;

#[test]
fn commands_of_a_key_are_carried_out_in_order() {
    let world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "teller"));
    world.publish("transfer", (0..20).flat_map(|n| ["a", "b"].map(|key| Work::new(key, n))));
    for key in ["a", "b"] {
        world.wait_until_seen("teller", key, 20);
        let expected: Vec<_> = (0..20).map(|n| format!("transfer-{n}")).collect();
        assert_eq!(world.seen("teller")[key], expected);
    }
    drop(hosts);
}

const SHARED: &str = r#"{"lease_ttl_ms":900,"heartbeat_interval_ms":200,"shared_idle_min_ms":1000,"shared_executions_max":4,
    "retry":{"attempts_max":3,"backoff_base_ms":20}}"#;

fn is_empty(world: &mut World) -> bool {
    matches!(world.redis("XLEN metrics"), redis::Value::Int(0))
}

#[test]
fn events_without_a_key_are_shared_over_hosts_retried_and_set_aside() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHARED, "meter"));
    let mode = |n| match n {
        7 => "poison",
        11 => "flaky",
        _ => "ok",
    };
    world.publish("metrics", (0..60).map(|n| Work::new("-", n).taking(20).ending(mode(n))));
    wait_until("everything has an outcome", || is_empty(&mut world));
    let mut begun: BTreeMap<u64, u32> = BTreeMap::new();
    for line in world.log().iter().filter(|line| line.what == "begin") {
        *begun.entry(line.n).or_default() += 1;
    }
    let tries = |n| if n == 7 || n == 11 { 3 } else { 1 };
    assert_eq!(begun, (0..60).map(|n| (n, tries(n))).collect());
    let at_work: BTreeSet<_> = world.log().iter().map(|line| line.host).collect();
    assert_eq!(at_work.len(), 2, "one host did everything");
    assert!(matches!(world.redis("XLEN metrics:dlq"), redis::Value::Int(1)));
    drop(hosts);
}

#[test]
fn what_a_dead_host_had_in_hand_is_given_to_another() {
    let mut world = World::new();
    let mut first = world.host_that(SHARED, "meter", "commit:3:kill");
    world.publish("metrics", (0..30).map(|n| Work::new("-", n).taking(30)));
    first.wait_until_ended();
    let second = world.host(SHARED, "meter");
    wait_until("everything has an outcome", || is_empty(&mut world));
    let done: BTreeSet<_> = world.log().iter().filter(|line| line.what == "end").map(|line| line.n).collect();
    assert_eq!(done.len(), 30);
    assert!(matches!(world.redis("XLEN metrics:dlq"), redis::Value::Int(0)));
    drop(second);
}

#[test]
fn a_long_event_without_a_key_stays_with_its_host() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHARED, "meter"));
    world.publish("metrics", [Work::new("-", 0).taking(4_000)]);
    world.wait_for("it has ended", |line| line.what == "end");
    wait_until("it is settled", || is_empty(&mut world));
    assert_eq!(world.log().iter().filter(|line| line.what == "begin").count(), 1);
    drop(hosts);
}

/// A component on a category that nothing partitions.
fn poison_is_set_aside_and_the_rest_goes_on(broker: &str) {
    run(broker, &["register", guest("probe-unordered").to_str().unwrap()]).ok();
    let line =
        |mode: &str| format!(r#"{{"category":"signal","type":"Probe","data":{{"key":"-","mode":"{mode}"}}}}"#) + "\n";
    let lines = line("ok").repeat(20) + &line("trap") + &line("count") + &line("ok");
    run_with_input(broker, &["publish", "-"], &lines).ok();
    let settings = ["--until-idle", "--set", "engine.retry.attempts_max=2", "--set", "engine.retry.backoff_base_ms=10"];
    let host = Host::start(broker, &["probe-unordered"], &settings);
    assert_eq!(host.wait(), 0, "a poison event without a key halts nothing");
    let dead = run(broker, &["dlq", "list", "signal", "--json"]).ok().out;
    let dead: Vec<serde_json::Value> = dead.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dead.len(), 2, "{dead:#?}");
    let errors: Vec<_> = dead.iter().map(|letter| letter["error"].as_str().unwrap()).collect();
    assert!(errors.iter().any(|error| error.contains("nothing orders state")), "{errors:?}");
}

#[test]
fn a_component_without_a_key_on_redis() {
    let redis = RedisServer::start().unwrap();
    poison_is_set_aside_and_the_rest_goes_on(&redis.url());
}

#[test]
fn a_component_without_a_key_on_the_embedded_broker() {
    let folder = TempDir::new().unwrap();
    poison_is_set_aside_and_the_rest_goes_on(&format!("embedded:{}", folder.path().join("signals.redb").display()));
}

#[test]
fn backfill_is_served_when_the_primary_lane_is_empty_and_never_beside_it() {
    let mut world = World::new();
    let first = world.host("{}", "ledger");
    assert_eq!(first.terminate(), 0);
    let url = world.redis.url();
    let lines: String = (100..110).map(|n| Work::new("k1", n).line("order")).collect();
    run_with_input(&url, &["publish", "--lane", "backfill", "-"], &lines).ok();
    world.publish("order", (0..10).map(|n| Work::new("k1", n).taking(10)));
    let hosts = [(); 2].map(|()| world.host("{}", "ledger"));
    world.wait_until_seen("ledger", "k1", 20);
    let expected: Vec<_> = (0..10).chain(100..110).map(|n| format!("order-{n}")).collect();
    assert_eq!(world.seen("ledger")["k1"], expected);
    world.assert_no_overlap();
    drop(hosts);
}
