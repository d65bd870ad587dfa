//! How many events a second a host takes in over HTTP while it works on them: the January flights, in batches, from a few
//! clients, to one real host on a real Redis, all on this machine. Every itinerary is compared at the end.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use keyrail_broker::testing::RedisServer;
use keyrail_tests::flights::{EVENTS, assert_january, january_lines};
use keyrail_tests::host::Host;
use keyrail_tests::http::{Api, url};
use keyrail_tests::wait_until;

/// All events of an aircraft go through one client, which waits for each answer: so they keep their order.
const CLIENTS: usize = 4;
const RUNS: usize = 3;

fn main() {
    println!("{:<52} {:>10} {:>12} {:>10}", "", "events/s", "settled/s", "host MB");
    for batch in [1_000, 100, 10] {
        let mut runs: Vec<_> = (0..RUNS).map(|_| run(batch)).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (published, settled, memory_mb) = runs[RUNS / 2];
        println!(
            "{:<52} {published:>10.0} {settled:>12.0} {memory_mb:>10}",
            format!("{batch} events a request, {CLIENTS} clients")
        );
    }
}

/// Events published and settled a second, and the host's peak memory.
fn run(batch: usize) -> (f64, f64, u64) {
    let redis = RedisServer::start().unwrap();
    let host = Host::up(
        &redis.url(),
        &["itinerary"],
        &["--set", "http.listen=127.0.0.1:0", "--set", "http.requests_per_s_max=0"],
    );
    let address = url(&host);
    let mut shares: Vec<Vec<String>> = vec![vec![]; CLIENTS];
    for line in january_lines() {
        let tail = line.split("\"tail_number\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let share = tail.bytes().fold(0, |sum: usize, byte| sum * 31 + usize::from(byte)) % CLIENTS;
        shares[share].push(line);
    }
    let start = Instant::now();
    std::thread::scope(|scope| {
        for share in &shares {
            let address = &address;
            scope.spawn(move || {
                let api = Api::new(address);
                for lines in share.chunks(batch) {
                    let body = lines.join("\n");
                    let request =
                        api.request(reqwest::Method::POST, "/v1/events").header("content-type", "application/jsonl");
                    api.send(request.body(body)).ok();
                }
            });
        }
    });
    let published = start.elapsed();
    let api = Api::new(&address);
    wait_until("all is settled", || api.get("/v1/backlog").ok()["ready"] == 0);
    let settled = start.elapsed();
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert_january(&redis.url());
    let rate = |took: Duration| EVENTS as f64 / took.as_secs_f64();
    (rate(published), rate(settled), peak_kb >> 10)
}
