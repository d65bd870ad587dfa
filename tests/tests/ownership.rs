//! Who owns a key, and when: cases of kind b of `docs/cases.md`, and P02 to P05, with host processes on a real Redis.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use keyrail_tests::host::Host;
use keyrail_tests::native::{Line, Work};
use keyrail_tests::proxy::Proxy;
use keyrail_tests::world::{SHORT_LEASES, World};
use keyrail_tests::{guest, partitions, run, run_with_input, states, wait_until};

/// Leases that no test waits for.
const LONG_LEASES: &str = r#"{"lease_ttl_ms":600000,"heartbeat_interval_ms":500,"shutdown_grace_ms":60000}"#;

fn begins(line: &Line, key: &str, n: u64) -> bool {
    line.what == "begin" && line.key == key && line.n == n
}

fn int(value: redis::Value) -> i64 {
    let redis::Value::Int(number) = value else { panic!("{value:?}") };
    number
}

#[test]
fn c002_a_lease_whose_answer_was_lost_is_given_back_at_once() {
    let world = World::new();
    // Nobody waits for this lease to lapse.
    let host = world.host_that(LONG_LEASES, "ledger", "acquire:1:lose");
    world.publish("order", (0..3).map(|n| Work::new("k1", n)));
    world.wait_until_seen("ledger", "k1", 3);
    world.assert_in_order("ledger", "k1", 3);
    drop(host);
}

#[test]
fn c026_a_worker_that_hangs_or_panics_loses_its_lease_and_the_event_goes_on() {
    for (mode, says) in [("hang-once", "the worker hangs"), ("panic-once", "the worker panicked")] {
        let mut world = World::new();
        let settings = r#"{"lease_ttl_ms":900,"heartbeat_interval_ms":200,"worker_stall_max_ms":1000}"#;
        let host = world.host(settings, "ledger");
        world.publish("order", (0..5).map(|n| Work::new("k1", n).ending(if n == 2 { mode } else { "ok" })));
        world.wait_until_seen("ledger", "k1", 5);
        world.assert_in_order("ledger", "k1", 5);
        let told = host.log().matches(says).count();
        assert_eq!(told, 1, "{mode}: {}", host.log());
        let begun = world.log().iter().filter(|line| begins(line, "k1", 2)).count();
        assert_eq!(begun, 2, "{mode}");
    }
}

#[test]
fn c027_handlers_that_hog_the_processor_lose_no_lease() {
    let world = World::new();
    let url = world.redis.url();
    let settings = [
        "--set",
        "engine.lease_ttl_ms=900",
        "--set",
        "engine.heartbeat_interval_ms=200",
        "--set",
        "runtime.cpu_max_ms=60000",
        "--set",
        "runtime.wall_max_ms=120000",
        "--set",
        "engine.worker_stall_max_ms=150000",
    ];
    let host = Host::up(&url, &["probe"], &settings);
    let second = Host::up(&url, &["probe"], &settings);
    let mut lines = String::new();
    for key in 0..6 {
        for mode in ["spin", "count"] {
            let n = if mode == "spin" { 1_500 } else { 0 };
            let data = format!(r#"{{"key":"k{key}","mode":"{mode}","n":{n}}}"#);
            writeln!(lines, r#"{{"category":"probe","type":"Probe","data":{data}}}"#).unwrap();
        }
    }
    run_with_input(&url, &["publish", "-"], &lines).ok();
    wait_until("all have counted", || {
        let states = states(&url, "probe");
        (0..6).all(|key| states.get(&format!("k{key}")).is_some_and(|state| state["count"] == 1))
    });
    for host in [&host, &second] {
        assert!(!host.log().contains("lease"), "{}", host.log());
    }
    let rows = partitions(&url, "probe");
    assert!(rows.iter().all(|row| row["attempts"] == 0), "{rows:?}");
}

#[test]
fn c030_an_orderly_end_gives_every_lease_back() {
    let mut world = World::new();
    let first = world.host(LONG_LEASES, "ledger");
    // One idle key, one with an event that takes a while.
    world.publish("order", [Work::new("idle", 0), Work::new("busy", 0).taking(1_500), Work::new("busy", 1)]);
    world.wait_for("the event runs", |line| begins(line, "busy", 0));
    first.ask_to_end();
    // Nothing new is taken meanwhile.
    let first_pid = first.pid();
    world.publish("order", [Work::new("new", 0)]);
    assert_eq!(first.terminate(), 0);
    assert!(!world.log().iter().any(|line| line.key == "new"), "a host that ends took a new key");
    assert!(world.log().iter().any(|line| line.what == "end" && line.key == "busy" && line.n == 0), "it was cut short");
    for key in ["idle", "busy", "new"] {
        assert_eq!(int(world.redis(&format!("EXISTS order:{key}:__lease__:ledger"))), 0, "{key} is leased to nobody");
    }
    let second = world.host(LONG_LEASES, "ledger");
    world.wait_until_seen("ledger", "busy", 2);
    world.wait_until_seen("ledger", "new", 1);
    world.assert_in_order("ledger", "busy", 2);
    let late = world.log().into_iter().find(|line| begins(line, "busy", 1)).unwrap();
    assert_ne!(late.host, first_pid);
    drop(second);
}

#[test]
fn c030_an_event_longer_than_the_grace_is_dropped_and_its_lease_given_back() {
    let mut world = World::new();
    let settings = r#"{"lease_ttl_ms":600000,"heartbeat_interval_ms":500,"shutdown_grace_ms":200}"#;
    let first = world.host(settings, "ledger");
    world.publish("order", [Work::new("k1", 0).taking(100_000)]);
    world.wait_for("the event runs", |line| begins(line, "k1", 0));
    assert_eq!(first.terminate(), 0);
    assert_eq!(int(world.redis("EXISTS order:k1:__lease__:ledger")), 0);
    let second = world.host(settings, "ledger");
    let other = second.pid();
    let again = world.wait_for("it runs again", |line| line.host == other && begins(line, "k1", 0));
    assert_eq!(again.attempt, 1, "an orderly end uses up no try");
    drop(second);
}

#[test]
fn c030_as_process_1_it_ends_in_order_too() {
    let mut world = World::new();
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(keyrail_tests::native_host());
    command.args([&world.redis.url(), LONG_LEASES, "ledger", "-"]);
    let mut host = Host::spawn(command);
    host.wait_until_up();
    world.publish("order", [Work::new("k1", 0).taking(1_000)]);
    world.wait_for("the event runs", |line| begins(line, "k1", 0) && line.host == 1);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", host.pid())).unwrap();
    keyrail_tests::host::ask_to_end(children.trim().parse().unwrap());
    host.wait_until_ended();
    world.assert_in_order("ledger", "k1", 1);
    assert_eq!(int(world.redis("EXISTS order:k1:__lease__:ledger")), 0);
}

/// Which hosts began events of each key from this line of the log on.
fn owners(log: &[Line]) -> BTreeMap<String, BTreeSet<u32>> {
    let mut owners: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for line in log.iter().filter(|line| line.what == "begin") {
        owners.entry(line.key.clone()).or_default().insert(line.host);
    }
    owners
}

const KEYS: usize = 60;

/// Publishes `rounds` events for each of 60 keys and waits for them; answers with what was told meanwhile.
fn rounds(world: &mut World, next: &mut u64, rounds: u64) -> Vec<Line> {
    let from = world.log().len();
    for _ in 0..rounds {
        let n = *next;
        world.publish("order", (0..KEYS).map(|key| Work::new(&format!("k{key}"), n).taking(2)));
        *next += 1;
        wait_until("the round is over", || {
            world.log().iter().filter(|line| line.what == "end" && line.n == n).count() >= KEYS
        });
    }
    world.log().split_off(from)
}

#[test]
fn c031_shares_are_even_and_nothing_moves_once_members_are_steady() {
    let mut world = World::new();
    let mut next = 0;
    let mut hosts = vec![];
    for _ in 0..3 {
        hosts.push(world.host(SHORT_LEASES, "ledger"));
        rounds(&mut world, &mut next, 1);
    }
    wait_until("all members are known", || int(world.redis("HLEN __members__")) == 3);
    rounds(&mut world, &mut next, 2);
    let steady = owners(&rounds(&mut world, &mut next, 6));
    assert!(steady.values().all(|hosts| hosts.len() == 1), "a key moved though nobody joined or left: {steady:?}");
    let mut shares: BTreeMap<u32, usize> = BTreeMap::new();
    for hosts in steady.values() {
        *shares.entry(*hosts.first().unwrap()).or_default() += 1;
    }
    assert_eq!(shares.len(), 3, "{shares:?}");
    assert!(shares.values().all(|share| (6..=38).contains(share)), "{shares:?}");

    // One goes and another comes: only what was the first one's, and what is the new one's, moves.
    let gone = hosts.remove(0);
    let gone_pid = gone.pid();
    gone.kill();
    hosts.push(world.host(SHORT_LEASES, "ledger"));
    let new_pid = hosts[2].pid();
    rounds(&mut world, &mut next, 4);
    wait_until("the dead one is forgotten", || int(world.redis("HLEN __members__")) == 3);
    let after = owners(&rounds(&mut world, &mut next, 4));
    for (key, hosts) in &after {
        let (before, now) = (*steady[key].first().unwrap(), *hosts.first().unwrap());
        assert_eq!(hosts.len(), 1, "{key} moved though nobody joined or left");
        assert!(before == now || before == gone_pid || now == new_pid, "{key} moved from {before} to {now}");
    }
    for key in 0..KEYS {
        world.assert_in_order("ledger", &format!("k{key}"), next);
    }
    world.assert_no_overlap();
}

#[test]
fn p02_a_handler_that_takes_longer_than_the_lease_runs_once() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    world.publish("order", [Work::new("k1", 0).taking(3_000), Work::new("k1", 1)]);
    world.wait_until_seen("ledger", "k1", 2);
    assert_eq!(world.log().iter().filter(|line| begins(line, "k1", 0)).count(), 1);
    drop(hosts);
}

#[test]
fn p03_and_c012_idle_keys_cost_nothing() {
    let mut world = World::new();
    let host = world.host(SHORT_LEASES, "ledger");
    world.publish("order", (0..1_000).map(|key| Work::new(&format!("k{key}"), 0)));
    wait_until("all are settled", || {
        world.log().iter().filter(|line| line.what == "end").count() == 1_000
            && int(world.redis("ZCARD order:__behind__:ledger")) == 0
    });
    wait_until("no key is held", || {
        let redis::Value::Array(leases) = world.redis("KEYS *__lease__*") else { panic!() };
        leases.is_empty()
    });
    // A handful of connections, whatever the number of keys.
    let connected = |world: &mut World| {
        let redis::Value::BulkString(text) = world.redis("CLIENT LIST") else { panic!() };
        String::from_utf8(text).unwrap().lines().count()
    };
    assert!(connected(&mut world) <= 8, "{} connections", connected(&mut world));
    assert!(!host.log().contains("lease"), "{}", host.log());
}

#[test]
fn p04_different_keys_run_in_parallel_in_one_process() {
    let mut world = World::new();
    let host = world.host(SHORT_LEASES, "ledger");
    world.publish("order", (0..2).flat_map(|n| (0..4).map(move |key| Work::new(&format!("k{key}"), n).taking(500))));
    for key in 0..4 {
        world.wait_until_seen("ledger", &format!("k{key}"), 2);
    }
    let log = world.log();
    let first_end = log.iter().position(|line| line.what == "end").unwrap();
    let begun: BTreeSet<_> = log[..first_end].iter().map(|line| line.key.clone()).collect();
    assert_eq!(begun.len(), 4, "they waited for each other: {log:?}");
    drop(host);
}

#[test]
fn p05_a_new_key_is_taken_by_its_bell_and_not_by_a_sweep() {
    let mut world = World::new();
    let settings = r#"{"sweep_interval_ms":3600000,"grace_ms":3600000}"#;
    let hosts = [(); 2].map(|()| world.host(settings, "ledger"));
    wait_until("both members are known", || int(world.redis("HLEN __members__")) == 2);
    for n in 0..3 {
        world.publish("order", (0..20).map(|key| Work::new(&format!("k{key}"), n)));
    }
    for key in 0..20 {
        world.wait_until_seen("ledger", &format!("k{key}"), 3);
        world.assert_in_order("ledger", &format!("k{key}"), 3);
    }
    drop(hosts);
}

#[test]
fn c015_a_host_behind_a_silent_network_starts_nothing_and_comes_back() {
    let mut world = World::new();
    let proxy = Proxy::start(world.redis.port());
    let mut command = std::process::Command::new(keyrail_tests::native_host());
    command.args([&proxy.url(), SHORT_LEASES, "ledger", "-"]);
    let mut first = Host::spawn(command);
    first.wait_until_up();
    world.publish("order", (0..60).map(|n| Work::new("k1", n).taking(40)));
    world.wait_for("it works", |line| begins(line, "k1", 5));
    proxy.silence(true);
    let second = world.host(SHORT_LEASES, "ledger");
    let (one, other) = (first.pid(), second.pid());
    world.wait_for("the other goes on", |line| line.host == other && line.what == "end");
    let silent_from = world.log().len();
    world.wait_until_seen("ledger", "k1", 60);
    let during = world.log().split_off(silent_from);
    assert!(!during.iter().any(|line| line.host == one), "it started events though its lease had lapsed: {during:?}");
    world.assert_in_order("ledger", "k1", 60);
    world.assert_no_overlap();
    // It comes back by itself, and gets its share again.
    proxy.silence(false);
    wait_until("it is a member again", || int(world.redis("HLEN __members__")) == 2);
    let mut n = 0;
    wait_until("it works again", || {
        world.publish("order", (0..20).map(|key| Work::new(&format!("again-{key}"), n)));
        n += 1;
        world.log().iter().any(|line| line.host == one && line.key.starts_with("again"))
    });
    drop((first, second));
}

#[test]
fn c015_a_server_that_stood_still_is_worked_on_again() {
    let mut world = World::new();
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    let keys = ["k1", "k2", "k3", "k4"];
    world.publish("order", (0..40).flat_map(|n| keys.map(|key| Work::new(key, n).taking(15))));
    world.wait_for("they work", |line| begins(line, "k1", 4));
    let server = world.redis.pid();
    keyrail_tests::host::freeze(server);
    // Longer than a lease: nothing can be known of the server, so nothing can be waited for.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    keyrail_tests::host::thaw(server);
    for key in keys {
        world.wait_until_seen("ledger", key, 40);
        world.assert_in_order("ledger", key, 40);
    }
    world.assert_no_overlap();
    drop(hosts);
}

#[test]
fn c008_a_group_sees_what_was_published_before_it_came() {
    let mut world = World::new();
    let url = world.redis.url();
    run(&url, &["register", guest("itinerary").to_str().unwrap()]).ok();
    // `ledger` is registered by a host that ends at once; the next one is the first that runs.
    let registrar = world.host(SHORT_LEASES, "ledger");
    assert_eq!(registrar.terminate(), 0);
    world.publish("order", (0..5).map(|n| Work::new("k77", n)));
    let hosts = [(); 2].map(|()| world.host(SHORT_LEASES, "ledger"));
    world.wait_until_seen("ledger", "k77", 5);
    world.assert_in_order("ledger", "k77", 5);
    // A handler that is added later begins at the first entry that is kept: here, all are settled and dropped when the key is given
    // up, so with the next one. Both hosts say the same.
    wait_until("settled events are dropped", || int(world.redis("XLEN order:k77")) == 0);
    let late = world.host(SHORT_LEASES, "saga");
    world.publish("order", [Work::new("k77", 5)]);
    world.wait_until_seen("ledger", "k77", 6);
    world.wait_until_seen("saga", "k77", 1);
    assert_eq!(world.seen("saga")["k77"], ["order-5"]);
    drop((hosts, late));
}
