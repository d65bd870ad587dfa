//! The itinerary in five languages over the January flights, side by side in one fleet: a host for each, one Redis.
//!
//! All run at once, so the rate of each is what it gets beside the others; CPU time is what it costs alone. A host's own share
//! (reading, committing) is in every row: the first row, Rust, shows about how much that is.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use keyrail_broker::testing::RedisServer;
use keyrail_tests::flights::{EVENTS, KEYS, assert_itineraries, january};
use keyrail_tests::host::Host;
use keyrail_tests::{guest, repository, run};

const HANDLERS: [(&str, &str); 5] = [
    ("Rust", "itinerary"),
    ("C", "itinerary-c"),
    ("Go", "itinerary-go"),
    ("JavaScript", "itinerary-js"),
    ("Python", "itinerary-python"),
];
const LOOK_EVERY: Duration = Duration::from_millis(100);

struct Cost {
    seconds: f64,
    cpu_seconds: f64,
    memory_kb: u64,
}

fn main() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let files = HANDLERS.map(|(_, name)| guest(name).to_str().unwrap().to_string());
    // Compiles all, so that no host does.
    let register: Vec<_> = std::iter::once("register").chain(files.iter().map(String::as_str)).collect();
    run(&broker, &register).ok();
    run(&broker, &["publish", january().to_str().unwrap()]).ok();

    let began = Instant::now();
    let mut running: Vec<_> =
        HANDLERS.iter().map(|(language, name)| (*language, Host::start(&broker, &[name], &["--until-idle"]))).collect();
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    while !running.is_empty() {
        running.retain_mut(|(language, host)| {
            if let Some((cpu_seconds, memory_kb)) = used(host.pid()) {
                costs.insert(language, Cost { seconds: began.elapsed().as_secs_f64(), cpu_seconds, memory_kb });
            }
            !host.has_ended()
        });
        std::thread::sleep(LOOK_EVERY);
    }
    let expected = repository("tests/data/flights/january.itinerary.jsonl");
    for (_, name) in HANDLERS {
        assert_itineraries(&broker, name, &expected);
    }
    println!("{EVENTS} events of {KEYS} aircraft, five groups, all itineraries right");
    println!(
        "{:<12} {:>10} {:>10} {:>14} {:>12} {:>14}",
        "", "seconds", "events/s", "cpu us/event", "peak MB", "component kB"
    );
    for (language, name) in HANDLERS {
        let Cost { seconds, cpu_seconds, memory_kb } = costs[language];
        println!(
            "{language:<12} {seconds:>10.1} {:>10.0} {:>14.0} {:>12} {:>14}",
            EVENTS as f64 / seconds,
            cpu_seconds * 1e6 / EVENTS as f64,
            memory_kb / 1_000,
            fs::metadata(guest(name)).unwrap().len() / 1_000
        );
    }
}

/// CPU time and peak memory of a process; none if it has ended.
fn used(pid: u32) -> Option<(f64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').map(String::from).collect();
    // After the name: state, … user and system ticks are the 12th and 13th.
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    // Linux counts in hundredths of a second, whatever the machine.
    Some((ticks / 100.0, peak.trim().trim_end_matches(" kB").parse().ok()?))
}
