//! What happened is counted, once, and no key is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use keyrail::telemetry::metrics::LABELS;
use keyrail_tests::intercept::{Fate, Hook, Step};

use super::stage::{DEADLINE, Stage, no_hook};
use super::{labels, name};

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_is_counted_and_no_key_is_told() {
    let stage = Stage::new(no_hook()).await;
    stage.assert(r#"keyrail_halted_total{category="order",group="ledger",cause="rejected"}"#, 0.0).await;
    stage.publish("order", &["good-1", "good-1", "flaky-1", "bad-1", "bad-1"]).await;
    stage.publish("metrics", &["good-1", "good-2"]).await;
    let of = |name: &str, group: &str, category: &str, cause: &str| {
        format!(r#"keyrail_{name}{{category="{category}",group="{group}"{cause}}}"#)
    };
    let ledger = |name: &str, cause: &str| of(name, "ledger", "order", cause);
    stage.until(&ledger("settled_total", ""), 3.0).await;
    stage.until(&of("settled_total", "saga", "order", ""), 3.0).await;
    stage.until(&of("settled_total", "meter", "metrics", ""), 2.0).await;
    stage.until(&ledger("halted_total", r#",cause="rejected""#), 1.0).await;
    stage.assert(&ledger("failed_tries_total", r#",cause="trap""#), 1.0).await;
    stage.assert(&ledger("failed_tries_total", r#",cause="reject""#), 1.0).await;
    stage.assert(&ledger("retried_total", ""), 1.0).await;
    stage.assert(&ledger("commit_seconds_count", ""), 3.0).await;
    stage.assert(&ledger("handler_seconds_count", ""), 5.0).await;
    stage.until(&ledger("owned_partitions", ""), 0.0).await;
    // Three keys were each acquired once, or more often if one ran dry between two events.
    let series = stage.series().await;
    assert!(series[&ledger("acquired_total", "")] >= 3.0, "{series:?}");
    assert!(series.iter().filter(|(series, _)| name(series) == "keyrail_lost_leases_total").all(|(_, n)| *n == 0.0));
    assert!(series["keyrail_execution_slots"] > 0.0 && series["keyrail_process_resident_memory_bytes"] > 1e6);
    for series in series.keys() {
        for (label, value) in labels(series) {
            assert!(LABELS.contains(&label.as_str()) || label == "le", "{series}");
            assert!(!["good", "bad", "flaky"].iter().any(|key| value.contains(key)), "a key is told: {series}");
        }
    }
    let stats = stage.engine.stats();
    assert_eq!((stats.settled, stats.failed, stats.halted, stats.lost), (8, 4, 2, 0), "{stats:?}");
    drop(stage.redis);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_crosses_the_end_of_an_ownership_is_no_lost_lease() {
    // The heartbeat has looked at what is owned, and sends its renewals only after the lease was given back.
    let (renewals, ended) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
    let hook: Hook = {
        let (renewals, ended) = (renewals.clone(), ended.clone());
        Arc::new(move |step| {
            if step == Step::Renew {
                renewals.fetch_add(1, SeqCst);
                let start_ms = keyrail::clock::now_ms();
                // It has its own thread, which may wait.
                while !ended.load(SeqCst) && keyrail::clock::now_ms() < start_ms + DEADLINE.as_millis() as u64 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            Fate::Answered
        })
    };
    let stage = Stage::new(hook).await;
    stage.publish("order", &["slow-1"]).await;
    until("a renewal is on its way", || renewals.load(SeqCst) > 0).await;
    stage.leave.add_permits(2);
    until("all was given back", || stage.engine.stats().settled == 2 && stage.engine.stats().owned == 0).await;
    ended.store(true, SeqCst);
    // A later renewal is sent after the refused one was answered.
    stage.publish("order", &["slow-2"]).await;
    until("later renewals were sent", || renewals.load(SeqCst) > 2).await;
    assert_eq!(stage.engine.stats().lost, 0, "{:?}", stage.engine.stats());
    stage.leave.add_permits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_gone_is_counted_once_and_the_event_is_handled_again() {
    let stage = Stage::new(no_hook()).await;
    stage.publish("order", &["slow-1"]).await;
    until("both own it", || stage.engine.stats().acquired == 2).await;
    let mut redis = redis::Client::open(stage.redis.url()).unwrap().get_connection().unwrap();
    let gone: u64 = redis::cmd("DEL").arg("order:slow-1:__lease__:ledger").query(&mut redis).unwrap();
    assert_eq!(gone, 1);
    stage.until(r#"keyrail_lost_leases_total{category="order",group="ledger",cause="not-renewed"}"#, 1.0).await;
    stage.leave.add_permits(2);
    stage.until(r#"keyrail_settled_total{category="order",group="ledger"}"#, 1.0).await;
    assert_eq!(stage.engine.stats().lost, 1, "{:?}", stage.engine.stats());
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(DEADLINE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}
