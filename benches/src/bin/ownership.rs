//! How long keys pause when their owner dies, when a host joins or leaves, and when the server stands still.
//!
//! Real processes with the handlers of `keyrail_tests::native` on a real Redis, all on one machine and one clock. A pause is
//! the time from the last thing that one host did with a key to the first that the next did.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use keyrail::clock::now_ms;
use keyrail_tests::native::{Line, Work};
use keyrail_tests::wait_until;
use keyrail_tests::world::World;

/// The defaults: leases of 3 s, a heartbeat every 750 ms.
const DEFAULTS: &str = "{}";
const LEASE_MS: u64 = 3_000;

fn main() {
    println!(
        "lease {LEASE_MS} ms; all on one machine with {} cores; ms",
        std::thread::available_parallelism().unwrap()
    );
    println!("{:<62} {:>7} {:>7} {:>7} {:>7}", "", "samples", "median", "p99", "max");
    takeover();
    join_and_leave();
    stalled_server();
}

fn row(name: &str, mut samples: Vec<u64>) {
    samples.sort_unstable();
    let at = |share: f64| samples.get(((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1)));
    let [median, p99, max] = [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or(0));
    println!("{name:<62} {:>7} {median:>7} {p99:>7} {max:>7}", samples.len());
}

fn key(n: usize) -> String {
    format!("k{n}")
}

/// Events enough to keep these keys busy: `per_key` each, of `work_ms`.
fn backlog(world: &World, keys: usize, per_key: u64, work_ms: u64) {
    world.publish("order", (0..per_key).flat_map(|n| (0..keys).map(move |k| Work::new(&key(k), n).taking(work_ms))));
}

/// For each key that another host went on with after `at_ms`: how long after.
fn taken_over(log: &[Line], dead: u32, at_ms: u64) -> Vec<u64> {
    let owned: BTreeSet<_> = {
        let mut last: BTreeMap<&str, u32> = BTreeMap::new();
        for line in log.iter().filter(|line| line.at_ms <= at_ms) {
            last.insert(&line.key, line.host);
        }
        last.into_iter().filter(|(_, host)| *host == dead).map(|(key, _)| key).collect()
    };
    let next = |key: &&str| {
        log.iter().find(|line| line.key == **key && line.at_ms > at_ms && line.host != dead && line.what == "begin")
    };
    owned.iter().filter_map(next).map(|line| line.at_ms - at_ms).collect()
}

fn takeover() {
    const KEYS: usize = 40;
    let mut samples = vec![];
    for _ in 0..5 {
        let mut world = World::new();
        let first = world.host(DEFAULTS, "ledger");
        let second = world.host(DEFAULTS, "ledger");
        backlog(&world, KEYS, 400, 20);
        wait_until("both work", || world.log().iter().map(|line| line.host).collect::<BTreeSet<_>>().len() == 2);
        wait_until("all keys run", || {
            let log = world.log();
            log.iter().map(|line| line.key.as_str()).collect::<BTreeSet<_>>().len() == KEYS && log.len() > 40 * KEYS
        });
        let (dead, at_ms) = (first.pid(), now_ms());
        first.kill();
        std::thread::sleep(Duration::from_millis(LEASE_MS + 2_000));
        samples.extend(taken_over(&world.log(), dead, at_ms));
        drop(second);
    }
    row("takeover after SIGKILL, from the kill (aim: p99 <= lease + 250)", samples);
}

/// Pauses of keys that changed hands after `at_ms`, and of those that did not.
fn pauses(log: &[Line], at_ms: u64) -> (Vec<u64>, Vec<u64>) {
    let mut by_key: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in log {
        by_key.entry(&line.key).or_default().push(line);
    }
    let (mut moved, mut stayed) = (vec![], vec![]);
    for lines in by_key.values() {
        let mut longest_stay = 0;
        for pair in lines.windows(2).filter(|pair| pair[1].at_ms > at_ms && pair[0].what == "end") {
            let pause = pair[1].at_ms - pair[0].at_ms;
            if pair[0].host == pair[1].host {
                longest_stay = longest_stay.max(pause);
            } else {
                moved.push(pause);
            }
        }
        stayed.push(longest_stay);
    }
    (moved, stayed)
}

fn join_and_leave() {
    const KEYS: usize = 40;
    let (mut joined, mut left, mut quiet) = (vec![], vec![], vec![]);
    for _ in 0..3 {
        let mut world = World::new();
        let hosts = [(); 2].map(|()| world.host(DEFAULTS, "ledger"));
        backlog(&world, KEYS, 500, 10);
        wait_until("all keys run", || world.log().len() > 40 * KEYS);
        let at_ms = now_ms();
        let third = world.host(DEFAULTS, "ledger");
        std::thread::sleep(Duration::from_secs(2));
        let (moved, stayed) = pauses(&world.log(), at_ms);
        joined.extend(moved);
        quiet.extend(stayed);
        let at_ms = now_ms();
        third.terminate();
        std::thread::sleep(Duration::from_secs(1));
        left.extend(pauses(&world.log(), at_ms).0);
        drop(hosts);
    }
    row("pause of a key that moves when a host joins (aim: < 50)", joined);
    row("pause of a key that moves when a host leaves in order (aim: < 50)", left);
    row("longest pause between two events of a key that stays", quiet);
}

fn stalled_server() {
    const KEYS: usize = 500;
    const STALL_MS: u64 = 5_000;
    let (mut samples, mut all) = (vec![], vec![]);
    for _ in 0..3 {
        let mut world = World::new();
        let hosts = [(); 3].map(|()| world.host(DEFAULTS, "ledger"));
        backlog(&world, KEYS, 40, 5);
        wait_until("all keys run", || {
            world.log().iter().map(|line| line.key.clone()).collect::<BTreeSet<_>>().len() == KEYS
        });
        keyrail_tests::host::freeze(world.redis.pid());
        std::thread::sleep(Duration::from_millis(STALL_MS));
        let at_ms = now_ms();
        keyrail_tests::host::thaw(world.redis.pid());
        wait_until("all is settled", || {
            (0..KEYS).all(|n| world.seen("ledger").get(&key(n)).is_some_and(|s| s.len() == 40))
        });
        let log = world.log();
        let mut first: BTreeMap<&str, u64> = BTreeMap::new();
        for line in log.iter().filter(|line| line.at_ms > at_ms && line.what == "begin") {
            first.entry(&line.key).or_insert(line.at_ms - at_ms);
        }
        all.push(first.values().copied().max().unwrap_or(0));
        samples.extend(first.into_values());
        drop(hosts);
    }
    row("first event of a key after a stall of the server of 5 s", samples);
    row("until all of 500 keys run again, 3 hosts", all);
}
