//! Order per key whatever fails: cases of kind c of `docs/cases.md`, with host processes on a real Redis.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_tests::native::{Line, Work};
use keyrail_tests::world::World;
use keyrail_tests::{partitions, run, wait_until};

fn begins(line: &Line, key: &str, n: u64) -> bool {
    line.what == "begin" && line.key == key && line.n == n
}

#[test]
fn c037_nothing_behind_a_failed_event_runs_before_it_is_settled() {
    let mut world = World::new();
    let host = world.host(r#"{"retry":{"backoff_base_ms":50}}"#, "ledger");
    world.publish("order", (0..5).map(|n| Work::new("k1", n).ending(if n == 1 { "flaky" } else { "ok" })));
    world.wait_until_seen("ledger", "k1", 5);
    world.assert_in_order("ledger", "k1", 5);
    let begun: Vec<_> =
        world.log().iter().filter(|line| line.what == "begin").map(|line| (line.n, line.attempt)).collect();
    assert_eq!(begun, [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (4, 1)]);
    drop(host);
}

#[test]
fn c037_an_entry_that_cannot_be_read_stops_its_key_alone() {
    let mut world = World::new();
    let host = world.host("{}", "ledger");
    world.publish("order", [Work::new("k1", 0)]);
    world.wait_until_seen("ledger", "k1", 1);
    // Somebody writes into the stream by hand.
    let redis::Value::BulkString(epoch) = world.redis("HGET order:__partitions__ k1") else { panic!() };
    let epoch = String::from_utf8(epoch).unwrap();
    world.redis(&format!("XADD order:k1 {epoch}-* nonsense 1"));
    world.publish("order", [Work::new("k1", 2), Work::new("k2", 0)]);
    world.wait_until_seen("ledger", "k2", 1);
    let url = world.redis.url();
    let row = || partitions(&url, "order").into_iter().find(|row| row["key"] == "k1").unwrap();
    wait_until("the key is halted", || !row()["halted"].is_null());
    assert_eq!(row()["halted"]["cause"], "undecodable");
    assert!(!world.log().iter().any(|line| begins(line, "k1", 2)));
    drop(host);
}

#[test]
fn c038_keys_that_wait_hold_no_slot() {
    let mut world = World::new();
    let settings = r#"{"executions_max":4,"retry":{"backoff_base_ms":600000,"backoff_cap_ms":600000}}"#;
    let host = world.host(settings, "ledger");
    world.publish("order", (0..4).map(|key| Work::new(&format!("bad-{key}"), 0).ending("poison")));
    for key in 0..4 {
        world.wait_for("it has failed once", |line| line.what == "end" && line.key == format!("bad-{key}"));
    }
    world.publish("order", (0..50).flat_map(|key| (0..3).map(move |n| Work::new(&format!("good-{key}"), n))));
    for key in 0..50 {
        world.wait_until_seen("ledger", &format!("good-{key}"), 3);
        world.assert_in_order("ledger", &format!("good-{key}"), 3);
    }
    assert_eq!(world.log().iter().filter(|line| line.what == "begin" && line.key.starts_with("bad")).count(), 4);
    drop(host);
}

#[test]
fn c038_a_key_with_a_long_backlog_gets_no_more_than_its_share() {
    let mut world = World::new();
    // Room for two partitions at once, and a hundred that want to run.
    let settings = r#"{"partitions_max":2,"quantum_events":50}"#;
    let first = world.host(settings, "ledger");
    assert_eq!(first.terminate(), 0);
    world.publish("order", (0..3_000).map(|n| Work::new("hot", n)));
    world.publish("order", (0..100).map(|key| Work::new(&format!("quiet-{key}"), 0)));
    let host = world.host(settings, "ledger");
    world.wait_until_seen("ledger", "hot", 3_000);
    world.assert_in_order("ledger", "hot", 3_000);
    let log = world.log();
    let last_quiet = log.iter().rposition(|line| line.key.starts_with("quiet")).unwrap();
    let hot_before = log[..last_quiet].iter().filter(|line| line.what == "end" && line.key == "hot").count();
    assert!(hot_before < 2_950, "the quiet keys waited for the hot one: {hot_before}");
    assert_eq!(log.iter().filter(|line| line.what == "end" && line.key.starts_with("quiet")).count(), 100);
    drop(host);
}

#[test]
fn p06_settled_entries_are_dropped_once_all_groups_settled_them() {
    let mut world = World::new();
    let first = world.host("{}", "ledger,saga");
    assert_eq!(first.terminate(), 0);
    let one = world.host("{}", "ledger");
    world.publish("order", (0..20).map(|n| Work::new("k1", n)));
    world.wait_until_seen("ledger", "k1", 20);
    assert!(matches!(world.redis("XLEN order:k1"), redis::Value::Int(20)), "the other group has not seen them");
    let both = world.host("{}", "saga");
    world.wait_until_seen("saga", "k1", 20);
    wait_until("all are dropped", || matches!(world.redis("XLEN order:k1"), redis::Value::Int(0)));
    drop((one, both));
}

#[test]
fn p07_a_busy_key_costs_one_step_an_event() {
    let mut world = World::new();
    let first = world.host("{}", "ledger");
    assert_eq!(first.terminate(), 0);
    world.publish("order", (0..1_000).map(|n| Work::new("k1", n)));
    world.redis("CONFIG RESETSTAT");
    let host = world.host("{}", "ledger");
    // Not by looking at the state, which calls functions too.
    wait_until("all is settled and dropped", || matches!(world.redis("XLEN order:k1"), redis::Value::Int(0)));
    let redis::Value::VerbatimString { text, .. } = world.redis("INFO commandstats") else {
        let redis::Value::BulkString(text) = world.redis("INFO commandstats") else { panic!() };
        return assert_calls(&String::from_utf8(text).unwrap());
    };
    assert_calls(&text);
    drop(host);
}

fn assert_calls(stats: &str) {
    let line = stats.lines().find(|line| line.starts_with("cmdstat_fcall:")).unwrap();
    let calls: u64 = line.split("calls=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    // One for each event; starting, discovery and the look at the states besides.
    assert!((1_000..1_200).contains(&calls), "{line}");
}

#[test]
fn c041_a_halt_outlives_its_host_and_a_retry_gives_a_full_budget() {
    let settings =
        r#"{"lease_ttl_ms":900,"heartbeat_interval_ms":200,"retry":{"attempts_max":3,"backoff_base_ms":10}}"#;
    let mut world = World::new();
    let url = world.redis.url();
    let first = world.host(settings, "ledger");
    world.publish("order", (0..4).map(|n| Work::new("k1", n).ending(if n == 1 { "poison" } else { "ok" })));
    let row = || partitions(&url, "order").into_iter().find(|row| row["key"] == "k1").unwrap();
    wait_until("the key is halted", || !row()["halted"].is_null());
    first.kill();
    let second = world.host(settings, "ledger");
    world.publish("order", [Work::new("k2", 0)]);
    world.wait_until_seen("ledger", "k2", 1);
    let tries = |world: &mut World| world.log().iter().filter(|line| begins(line, "k1", 1)).count();
    assert_eq!(tries(&mut world), 3, "the new host tried a halted event");
    assert!(!row()["halted"].is_null());

    // It is still poison: three more tries, and it halts again.
    let head = row()["halted"]["head"].as_str().unwrap().to_string();
    run(&url, &["head", "retry", "order", "k1", "--reason", "the handler was mended"]).ok();
    wait_until("it has been tried again", || tries(&mut world) == 6);
    wait_until("the key is halted again", || !row()["halted"].is_null());
    assert!(!world.log().iter().any(|line| line.key == "k1" && line.n > 1), "a later event slipped through");
    let wrong = run(&url, &["head", "skip", "order", "k1", "--expect", "9-9", "--reason", "wrong"]);
    assert_ne!(wrong.code, 0);
    run(&url, &["head", "skip", "order", "k1", "--expect", &head, "--reason", "it cannot be mended"]).ok();
    world.wait_until_seen("ledger", "k1", 3);
    assert_eq!(world.seen("ledger")["k1"], ["order-0", "order-2", "order-3"]);
    let audit = run(&url, &["audit", "--json"]).ok().out;
    assert!(audit.contains("it cannot be mended") && audit.contains("the handler was mended"), "{audit}");
    drop(second);
}

#[test]
fn a_paused_key_stands_still_for_every_host_and_goes_on_where_it_was() {
    let mut world = World::new();
    let url = world.redis.url();
    let hosts = [(); 2].map(|()| world.host("{}", "ledger"));
    world.publish("order", (0..200).flat_map(|n| ["k1", "k2"].map(|key| Work::new(key, n).taking(5))));
    world.wait_until_seen("ledger", "k1", 20);
    run(&url, &["pause", "order", "k1", "--reason", "its supplier is down"]).ok();
    let stood_at = world.seen("ledger")["k1"].len();
    world.wait_until_seen("ledger", "k2", 200);
    assert_eq!(world.seen("ledger")["k1"].len(), stood_at, "it went on though it was paused");
    run(&url, &["resume", "order", "k1"]).ok();
    world.wait_until_seen("ledger", "k1", 200);
    world.assert_in_order("ledger", "k1", 200);
    world.assert_no_overlap();
    drop(hosts);
}
