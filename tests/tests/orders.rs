//! Events that cause events: each order ends shipped exactly once, whatever is killed.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::orders::{assert_completed_once, assert_shipped_once, placed};
use keyrail_tests::{guest, partitions, run, run_with_input, wait_until};
use tempfile::TempDir;

const ORDERS: usize = 10_000;

fn publish(broker: &str) {
    run(broker, &["register", guest("order-fulfilment").to_str().unwrap()]).ok();
    run_with_input(broker, &["publish", "-"], &placed(ORDERS)).ok();
}

fn shipped(broker: &str) -> usize {
    partitions(broker, "shipment").len()
}

#[test]
fn on_redis_with_hosts_that_are_killed() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    publish(&broker);
    let mut hosts: Vec<_> = (0..2).map(|_| Host::up(&broker, &["order-fulfilment"], &[])).collect();
    for enough in [1_000, 3_000, 6_000] {
        wait_until("more are shipped", || shipped(&broker) >= enough);
        hosts.remove(0).kill();
        hosts.push(Host::up(&broker, &["order-fulfilment"], &[]));
    }
    let last = Host::start(&broker, &["order-fulfilment"], &["--until-idle"]);
    assert_eq!(last.wait(), 0);
    for host in hosts {
        assert_eq!(host.terminate(), 0);
    }
    assert_shipped_once(&broker, ORDERS);
}

#[test]
fn on_the_embedded_broker_with_a_host_that_is_killed() {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("orders.redb").display());
    publish(&broker);
    for enough in [1_000, 5_000] {
        let host = Host::up(&broker, &["order-fulfilment"], &[]);
        wait_until("more are shipped", || shipped(&broker) >= enough);
        host.kill();
    }
    let last = Host::start(&broker, &["order-fulfilment"], &["--until-idle"]);
    assert_eq!(last.wait(), 0);
    assert_shipped_once(&broker, ORDERS);
}

#[test]
fn a_process_manager_completes_each_order_once_with_hosts_that_are_killed() {
    const ORDERS: usize = 1_500;
    const GUESTS: [&str; 2] = ["order-fulfilment", "order-process"];
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    for name in GUESTS {
        run(&broker, &["register", guest(name).to_str().unwrap()]).ok();
    }
    run_with_input(&broker, &["publish", "-"], &placed(ORDERS)).ok();
    let mut hosts: Vec<_> = (0..2).map(|_| Host::up(&broker, &GUESTS, &[])).collect();
    for enough in [200, 800] {
        wait_until("more are shipped", || shipped(&broker) >= enough);
        hosts.remove(0).kill();
        hosts.push(Host::up(&broker, &GUESTS, &[]));
    }
    let last = Host::start(&broker, &GUESTS, &["--until-idle"]);
    assert_eq!(last.wait(), 0);
    assert_shipped_once(&broker, ORDERS);
    assert_completed_once(&broker, ORDERS);
}
