//! What a file adds: it outlives the process, and it can be somebody else's, damaged or no store at all. And what settings do.
#![allow(clippy::unwrap_used, missing_docs)]

mod killed;
mod opened;
mod reopened;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{READ_MAX, Story, billing, publication, source};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use keyrail_broker::{AcquireError, Bell, Broker, Publication, Publish};
use keyrail_ordering::OwnerId;

fn open(path: &Path) -> EmbeddedBroker {
    EmbeddedBroker::open(path, EmbeddedSettings::default()).unwrap()
}

fn story(path: &Path) -> Story {
    Story::empty(Subject::new(Arc::new(open(path))))
}

/// A path in a folder that is removed at the end.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyrail.db");
    (folder, path)
}

#[tokio::test]
async fn time_is_what_the_settings_say() {
    let (lease_ms, wall_ms) = (Arc::new(AtomicU64::new(5)), Arc::new(AtomicU64::new(1_000)));
    let (lease_clock, wall_clock) = (lease_ms.clone(), wall_ms.clone());
    let settings = EmbeddedSettings {
        lease_clock: Arc::new(move || lease_clock.load(SeqCst)),
        wall_clock: Arc::new(move || wall_clock.load(SeqCst)),
        ..EmbeddedSettings::default()
    };
    let story = Story::begin(Subject::new(Arc::new(EmbeddedBroker::memory(settings).unwrap()))).await;
    let window = Publication { dedupe_window_ms: 50, ..publication("a", "e1") };
    story.publish_one(window.clone()).await.unwrap();
    let acquire = async |owner| story.broker.acquire(billing("a"), &OwnerId::new(owner), 100, READ_MAX).await;
    let first = acquire("A").await.unwrap();
    assert_eq!(first.entries[0].recorded_at_ms, 1_000);
    lease_ms.store(104, SeqCst);
    assert!(matches!(acquire("B").await, Err(AcquireError::Held { .. })));
    story.broker.fail(&first.lease, &first.entries[0].at, 1, "no", 30).await.unwrap();
    lease_ms.store(105, SeqCst);
    story.assert_fenced(&first.lease, &first.entries[0]).await;
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, Vec::<String>::new());
    wall_ms.store(1_020, SeqCst);
    let second = acquire("B").await.unwrap();
    assert_eq!(second.attempts.map(|record| record.wait_ms), Some(10));
    wall_ms.store(1_049, SeqCst);
    assert!(story.publish_one(window.clone()).await.unwrap().duplicate);
    wall_ms.store(1_050, SeqCst);
    assert!(!story.publish_one(window).await.unwrap().duplicate);
}

#[tokio::test]
async fn a_slow_listener_is_told_that_bells_were_lost() {
    let settings = EmbeddedSettings { bells_max: 4, ..EmbeddedSettings::default() };
    let story = Story::begin(Subject::new(Arc::new(EmbeddedBroker::memory(settings).unwrap()))).await;
    let mut bells = keyrail_broker::contract::story::listen(story.broker.as_ref(), vec![source("billing")]).await;
    for n in 0..20 {
        story.publish(&format!("k{n}"), ["e1"]).await;
    }
    assert_eq!(keyrail_broker::contract::story::next_bell(&mut bells).await, Bell::Lost);
    assert!(matches!(keyrail_broker::contract::story::next_bell(&mut bells).await, Bell::Ready { .. }));
}

#[tokio::test]
async fn a_batch_of_nothing_is_nothing() {
    let broker = EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap();
    assert!(broker.publish(vec![]).await.unwrap().is_empty());
    assert_eq!(broker.address(), "memory");
}
