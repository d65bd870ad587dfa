//! Reloading while fifty keys are busy: nothing is lost, repeated or swapped, no key changes hands, and nothing grows.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use keyrail::access::{self, Access, Need};
use keyrail::config::{Config, Layers};
use keyrail::service::{DeployRequest, RolloutState, WhoAndWhy};
use keyrail_broker::ModuleInfo;
use keyrail_broker::testing::RedisServer;
use keyrail_ordering::Metadata;
use keyrail_tests::flights::january_lines;
use keyrail_tests::host::Host;
use keyrail_tests::{guest, partitions, run, run_in, run_with_input, states, wait_until};
use serde_json::Value;
use tempfile::TempDir;

const KEYS: usize = 50;
/// Of acceptance; the test takes some 20 s.
const RELOADS: usize = 500;
/// After this many everything that grows once has grown.
const WARM: usize = 200;
/// Keys stay with their owner once they were busy, and leases are short enough to be lost by a host that stands still.
const SETTINGS: [&str; 6] = [
    "--set",
    "engine.linger_ms=600000",
    "--set",
    "engine.lease_ttl_ms=2000",
    "--set",
    "engine.heartbeat_interval_ms=400",
];

/// The events of the busiest aircraft, in order of publishing.
fn busy_lines() -> Vec<String> {
    let lines = january_lines();
    let key = |line: &str| -> String {
        let event: Value = serde_json::from_str(line).unwrap();
        event["data"]["tail_number"].as_str().unwrap().into()
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in &lines {
        *counts.entry(key(line)).or_default() += 1;
    }
    let mut keys: Vec<_> = counts.into_iter().collect();
    keys.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    keys.truncate(KEYS);
    lines.into_iter().filter(|line| keys.iter().any(|(busy, _)| *busy == key(line))).collect()
}

fn by_key(lines: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let event: Value = serde_json::from_str(line).unwrap();
        by_key.entry(event["data"]["tail_number"].as_str().unwrap().into()).or_default().push(line.clone());
    }
    by_key
}

/// What a host that nothing disturbs makes of the same events.
fn undisturbed(lines: &[String]) -> BTreeMap<String, Value> {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    run(&broker, &["register", guest("itinerary").to_str().unwrap()]).ok();
    run_with_input(&broker, &["publish", "-"], &(lines.join("\n") + "\n")).ok();
    assert_eq!(Host::start(&broker, &["itinerary"], &["--until-idle"]).wait(), 0);
    states(&broker, "itinerary")
}

fn generations(broker: &str) -> BTreeMap<String, Value> {
    let rows = partitions(broker, "flight");
    rows.iter().map(|row| (row["key"].as_str().unwrap().to_string(), row["generation"].clone())).collect()
}

/// Resident memory in kB, and memory maps.
fn size(host: &Host) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{}/status", host.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (resident, fs::read_to_string(format!("/proc/{}/maps", host.pid())).unwrap().lines().count())
}

/// Deploys through the library, as the command does, without a process for each.
struct Deployer {
    access: Access,
    module: ModuleInfo,
}

impl Deployer {
    async fn of(broker: &str, metadata: &Metadata, content_hash: &str) -> Self {
        let flags = vec![("--broker".into(), "broker".into(), broker.to_string())];
        let config: Config = keyrail::config::load(&Layers { file: None, environment: vec![], flags }).unwrap();
        let access = access::open(&config, Need::Create).await.unwrap();
        let bytes = fs::read(guest("itinerary")).unwrap();
        let size_bytes = bytes.len() as u64;
        let module = ModuleInfo { content_hash: content_hash.into(), size_bytes, metadata: metadata.clone() };
        access.upload(&module, bytes.into()).await.unwrap();
        Self { access, module }
    }

    async fn deploy(&self) {
        let by = WhoAndWhy { who: "test".into(), reason: "again".into() };
        let request =
            DeployRequest { module: self.module.clone(), manifest: String::new(), canary: None, dry_run: false, by };
        let proposed = self.access.propose(&request).await.unwrap();
        let handler = proposed.handler.as_str();
        loop {
            let rollout = self.access.advance(handler, proposed.revision).await.unwrap();
            match rollout.state {
                RolloutState::Serving if rollout.hosts.iter().all(|host| host.state.has_swapped()) => return,
                RolloutState::Withdrawn(why) => panic!("{why}"),
                _ => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            }
        }
    }
}

/// What the itinerary declares, and its hash, as the command line tells.
fn declared() -> (Metadata, String) {
    let out = run_in(&std::env::temp_dir(), &["check", guest("itinerary").to_str().unwrap(), "--json"], "");
    let verdict: Value = serde_json::from_str(&out.out).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    (serde_json::from_value(verdict["metadata"].clone()).unwrap(), verdict["content_hash"].as_str().unwrap().into())
}

/// A fleet of one with fifty keys that it owns, of whose events the first have been settled; and the rest.
fn owned_keys(broker: &str, lines: &[String]) -> (BTreeMap<String, Value>, Vec<String>) {
    let mut first = vec![];
    let mut rest = vec![];
    for lines in by_key(lines).into_values() {
        first.extend_from_slice(&lines[..4]);
        rest.push(lines[4..].to_vec());
    }
    run_with_input(broker, &["publish", "-"], &(first.join("\n") + "\n")).ok();
    wait_until("every key is kept", || {
        let rows = partitions(broker, "flight");
        rows.len() == KEYS && rows.iter().all(|row| row["owned"] == true && row["waiting"] == 0)
    });
    // One event of each key at a time.
    let longest = rest.iter().map(Vec::len).max().unwrap();
    let rest = (0..longest).flat_map(|n| rest.iter().filter_map(move |lines| lines.get(n).cloned())).collect();
    (generations(broker), rest)
}

#[test]
fn c057_five_hundred_reloads_under_load_lose_nothing_and_nothing_grows() {
    let lines = busy_lines();
    let expected = undisturbed(&lines);
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    run(&broker, &["deploy", guest("itinerary").to_str().unwrap()]).ok();
    let host = Host::up(&broker, &[], &SETTINGS);
    wait_until("it serves", || host.log().contains("serves from here on"));
    let (before, rest) = owned_keys(&broker, &lines);

    let reloading = AtomicBool::new(true);
    let (warm, end) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut published = 0;
            for part in rest.chunks(rest.len().div_ceil(200)) {
                run_with_input(&broker, &["publish", "-"], &(part.join("\n") + "\n")).ok();
                published += usize::from(reloading.load(SeqCst));
            }
            published
        });
        let (metadata, content_hash) = declared();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let sizes = runtime.block_on(async {
            let deployer = Deployer::of(&broker, &metadata, &content_hash).await;
            let mut warm = None;
            for number in 1..=RELOADS {
                deployer.deploy().await;
                if number == WARM {
                    warm = Some(size(&host));
                }
            }
            (warm.unwrap(), size(&host))
        });
        reloading.store(false, SeqCst);
        assert!(publisher.join().unwrap() > 50, "most was published while nothing was reloaded");
        sizes
    });
    wait_until("everything is settled", || partitions(&broker, "flight").iter().all(|row| row["waiting"] == 0));
    assert!(states(&broker, "itinerary") == expected, "an itinerary differs from the undisturbed one");
    assert_eq!(generations(&broker), before, "a key changed hands");
    println!("after {WARM} reloads {warm:?}, after {RELOADS} {end:?} (kB resident, maps)");
    // One component's code for each reload would be 60 MB.
    assert!(end.0 < warm.0 + 20 * 1024, "memory grew from {} to {} kB", warm.0, end.0);
    assert!(end.1 < warm.1 * 11 / 10, "memory maps grew from {} to {}", warm.1, end.1);
    assert_eq!(host.terminate(), 0);
}

#[test]
fn c062_a_large_component_that_compiles_costs_no_lease() {
    let lines = busy_lines();
    let expected = undisturbed(&lines);
    let (redis, cache) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
    let broker = redis.url();
    run(&broker, &["deploy", guest("itinerary").to_str().unwrap()]).ok();
    // Nothing is compiled yet for this host.
    let cold = format!("runtime.cache_dir={}", cache.path().join("compiled").display());
    let host = Host::up(&broker, &[], &[&SETTINGS[..], &["--set", &cold]].concat());
    wait_until("it serves", || host.log().contains("serves from here on"));
    let (before, rest) = owned_keys(&broker, &lines);

    std::thread::scope(|scope| {
        let deployed = scope.spawn(|| run(&broker, &["deploy", guest("conformance-python").to_str().unwrap()]));
        wait_until("the host compiles", || {
            run(&broker, &["handlers", "--json"]).out.contains("\"loading\"") || deployed.is_finished()
        });
        let mut while_compiling = 0;
        for part in rest.chunks(rest.len().div_ceil(40)) {
            run_with_input(&broker, &["publish", "-"], &(part.join("\n") + "\n")).ok();
            while_compiling += usize::from(!deployed.is_finished());
        }
        let deployed = deployed.join().unwrap().ok();
        assert!(while_compiling > 0, "nothing was published while it compiled: {deployed:#?}");
    });
    wait_until("everything is settled", || partitions(&broker, "flight").iter().all(|row| row["waiting"] == 0));
    assert!(states(&broker, "itinerary") == expected, "an itinerary differs from the undisturbed one");
    assert_eq!(generations(&broker), before, "a key changed hands");
    assert!(!host.log().contains("could not be renewed") && !host.log().contains("another's"), "{}", host.log());
    assert_eq!(host.terminate(), 0);
}
