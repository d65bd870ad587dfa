//! The main job on real flights: every aircraft's itinerary is exactly the one its events give in order.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::flights::{EVENTS, KEYS, assert_january, january, january_lines};
use keyrail_tests::host::Host;
use keyrail_tests::{guest, partitions, run, run_with_input, wait_until};
use tempfile::TempDir;

fn publish_january(broker: &str) {
    run(broker, &["register", guest("itinerary").to_str().unwrap()]).ok();
    let published = run(broker, &["publish", january().to_str().unwrap()]).ok();
    assert!(published.err.contains("52,796") || published.out.contains("52,796"), "{published:#?}");
}

/// Keys by the host that settled them last.
fn shares(broker: &str) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for row in partitions(broker, "flight") {
        *shares.entry(row["owner"].as_str().unwrap().to_string()).or_default() += 1;
    }
    shares
}

#[test]
fn two_hosts_on_redis_share_the_work_and_keep_the_order() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    publish_january(&broker);
    let hosts = [(); 2].map(|()| Host::start(&broker, &["itinerary"], &["--until-idle"]));
    for host in hosts {
        assert_eq!(host.wait(), 0);
    }
    assert_january(&broker);
    let shares = shares(&broker);
    assert_eq!(shares.values().sum::<usize>(), KEYS);
    assert_eq!(shares.len(), 2, "{shares:?}");
    assert!(shares.values().all(|keys| *keys > KEYS / 10), "{shares:?}");
}

#[test]
fn events_published_while_two_hosts_run_and_one_is_killed_keep_the_order() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let first = Host::up(&broker, &["itinerary"], &[]);
    let second = Host::up(&broker, &["itinerary"], &[]);
    let publisher = std::thread::spawn({
        let broker = broker.clone();
        move || publish_january(&broker)
    });
    wait_until("some thousand are settled", || settled_count(&broker) >= 5_000);
    first.kill();
    publisher.join().unwrap();
    let third = Host::start(&broker, &["itinerary"], &["--until-idle"]);
    assert_eq!(third.wait(), 0);
    assert_eq!(second.terminate(), 0);
    assert_january(&broker);
}

/// Events that were published and are settled.
fn settled_count(broker: &str) -> u64 {
    let sequence = |row: &serde_json::Value| row["settled"].as_str()?.split_once('-')?.1.parse::<u64>().ok();
    partitions(broker, "flight").iter().filter_map(sequence).map(|sequence| sequence + 1).sum()
}

#[test]
fn a_killed_host_on_the_embedded_broker_goes_on_where_it_was() {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("flights.redb").display());
    publish_january(&broker);
    for kill_at in [5_000, 20_000] {
        let host = Host::up(&broker, &["itinerary"], &[]);
        wait_until("it is in the middle", || settled_count(&broker) >= kill_at);
        host.kill();
        assert!(settled_count(&broker) < EVENTS, "it was killed too late to tell");
    }
    let host = Host::start(&broker, &["itinerary"], &["--until-idle"]);
    assert_eq!(host.wait(), 0);
    assert_january(&broker);
}

#[test]
fn a_publish_that_is_run_again_changes_nothing() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    publish_january(&broker);
    publish_january(&broker);
    let host = Host::start(&broker, &["itinerary"], &["--until-idle"]);
    assert_eq!(host.wait(), 0);
    assert_january(&broker);
}

#[test]
fn c028_a_host_that_was_frozen_past_its_lease_cannot_change_anything() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let lease = ["--set", "engine.lease_ttl_ms=600", "--set", "engine.heartbeat_interval_ms=150"];
    let first = Host::up(&broker, &["itinerary"], &lease);
    let lines = january_lines();
    let mut published = 0;
    for part in lines.chunks(lines.len().div_ceil(3)) {
        run_with_input(&broker, &["publish", "-"], &(part.join("\n") + "\n")).ok();
        published += part.len() as u64;
        first.freeze();
        assert!(settled_count(&broker) < published, "it was frozen too late to tell");
        // With the first asleep only the second can settle what the first had in hand.
        let second = Host::start(&broker, &["itinerary"], &[&["--until-idle"], &lease[..]].concat());
        assert_eq!(second.wait(), 0);
        assert_eq!(settled_count(&broker), published);
        first.thaw();
    }
    assert_eq!(first.terminate(), 0);
    assert_january(&broker);
}
