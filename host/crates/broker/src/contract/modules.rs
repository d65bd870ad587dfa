//! The module registry; which version handled what; the audit of what changes the catalog.

use bytes::Bytes;
use futures::StreamExt;
use keyrail_ordering::{Metadata, OwnerId};

use super::Subject;
use super::story::{CommitWords, LONG_TTL_MS, Story, billing, commit, group, listen, source};
use crate::{Bell, By, ModuleInfo, VersionSince};

/// More than any broker moves in one piece.
const LARGE_BYTES: usize = 3 << 20;

async fn info(story: &Story, content_hash: &str, size: usize) -> ModuleInfo {
    let (catalog, _) = story.broker.catalog().await.unwrap();
    let metadata: Metadata = catalog.handlers[&group("billing")].metadata.clone();
    ModuleInfo { content_hash: content_hash.into(), size_bytes: size as u64, metadata }
}

pub async fn a_module_comes_back_as_it_was_stored(subject: Subject) {
    let story = Story::begin(subject).await;
    assert_eq!(story.broker.module("a1").await.unwrap(), None);
    assert_eq!(story.broker.module_info("a1").await.unwrap(), None);
    let large: Bytes = (0..LARGE_BYTES).map(|n| (n * 31 % 251) as u8).collect();
    let (a, b) = (info(&story, "a1", large.len()).await, info(&story, "b2", 3).await);
    story.broker.put_module(&a, large.clone()).await.unwrap();
    story.broker.put_module(&b, Bytes::from_static(b"\0\r\n")).await.unwrap();
    story.broker.put_module(&a, large.clone()).await.unwrap();
    assert!(story.broker.module("a1").await.unwrap() == Some(large), "other bytes came back");
    assert_eq!(story.broker.module("b2").await.unwrap(), Some(Bytes::from_static(b"\0\r\n")));
    assert_eq!(story.broker.module_info("b2").await.unwrap(), Some(b.clone()));
    assert_eq!(story.broker.modules().await.unwrap(), [a, b]);
}

pub async fn a_module_that_is_dropped_is_gone(subject: Subject) {
    let story = Story::begin(subject).await;
    let (a, b) = (info(&story, "a1", 1).await, info(&story, "b2", 1).await);
    story.broker.put_module(&a, Bytes::from_static(b"a")).await.unwrap();
    story.broker.put_module(&b, Bytes::from_static(b"b")).await.unwrap();
    story.broker.drop_module("a1").await.unwrap();
    story.broker.drop_module("a1").await.unwrap();
    assert_eq!(story.broker.module("a1").await.unwrap(), None);
    assert_eq!(story.broker.modules().await.unwrap(), [b]);
}

pub async fn the_bell_rings_when_the_catalog_is_set(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut bells = listen(story.broker.as_ref(), vec![source("billing")]).await;
    story.register("audit", "order", Some("client")).await;
    while bells.next().await.expect("the bells ended") != Bell::Catalog {}
}

pub async fn the_versions_that_handled_a_partition_are_on_record(subject: Subject) {
    let story = Story::begin(subject).await;
    let ids: Vec<String> = (0..12).map(|n| format!("e{n}")).collect();
    for id in &ids {
        story.publish("a", [id.as_str()]).await;
    }
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), LONG_TTL_MS, 20).await.unwrap();
    // 0, 0, then each another; only the last eight are kept.
    let version = |n: usize| if n < 2 { "v0 é".into() } else { format!("v{n}") };
    for (n, entry) in acquired.entries.iter().enumerate() {
        let commit = commit(entry);
        let commit = crate::Commit { version: Some(version(n).as_str().into()), ..commit };
        story.broker.commit(&acquired.lease, commit).await.unwrap();
        if n == 2 {
            let since = |n: usize| VersionSince { from: acquired.entries[n].at.clone(), version: version(n) };
            assert_eq!(versions(&story).await, [since(0), since(2)], "the same version is on record once");
        }
    }
    let kept = versions(&story).await;
    assert_eq!(kept.len(), 8, "{kept:?}");
    assert_eq!(kept[7], VersionSince { from: acquired.entries[11].at.clone(), version: "v11".into() });
    assert_eq!(kept[0].version, "v4");
}

pub async fn a_fenced_commit_leaves_no_version(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    let next = story.take_over(&acquired.lease, "B").await;
    let stale = crate::Commit { version: Some("stale".into()), ..commit(&acquired.entries[0]) };
    assert!(story.broker.commit(&acquired.lease, stale).await.is_err());
    assert_eq!(versions(&story).await, []);
    story.broker.commit(&next.lease, commit(&next.entries[0]).put("n", "1")).await.unwrap();
    assert_eq!(versions(&story).await, [], "none was named");
}

pub async fn what_changes_the_catalog_goes_on_record(subject: Subject) {
    let story = Story::begin(subject).await;
    let by = By { who: "ann".into(), reason: "new rates".into() };
    story.broker.record("deploy", "billing 1.2.0#3", &by).await.unwrap();
    story.broker.record("rollback", "billing 1.1.0#2", &by).await.unwrap();
    let (rows, _) = story.broker.audit(0, 10).await.unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.action.as_str(), row.target.as_str(), row.by == by)).collect();
    assert_eq!(told, [("rollback", "billing 1.1.0#2", true), ("deploy", "billing 1.2.0#3", true)]);
}

async fn versions(story: &Story) -> Vec<VersionSince> {
    let (rows, _) = story.broker.partitions(&source("billing"), 0, 10).await.unwrap();
    rows.into_iter().next().unwrap().versions
}
