//! The catalog: compared and set, and what follows from it for publishers and ready sets.

use keyrail_ordering::Catalog;

use super::Subject;
use super::story::{READ_MAX, Story, billing, partition, publication, source, with_handler};
use crate::{Error, Publication, PublishError};

pub async fn the_catalog_is_set_only_over_the_version_that_was_read(subject: Subject) {
    let story = Story::empty(subject);
    assert!(story.broker.capabilities().stream_partitioning);
    assert_eq!(story.broker.catalog().await.unwrap(), (Catalog::default(), 0));
    let first = with_handler(&Catalog::default(), "billing", "order", Some("client"));
    assert_eq!(story.broker.set_catalog(&first, 1).await.unwrap(), None);
    assert_eq!(story.broker.set_catalog(&first, 0).await.unwrap(), Some(1));
    let other = with_handler(&Catalog::default(), "audit", "order", Some("client"));
    assert_eq!(story.broker.set_catalog(&other, 0).await.unwrap(), None, "somebody else was faster");
    assert_eq!(story.broker.catalog().await.unwrap(), (first.clone(), 1));
    let both = with_handler(&first, "audit", "order", Some("client"));
    assert_eq!(story.broker.set_catalog(&both, 1).await.unwrap(), Some(2));
    assert_eq!(story.broker.catalog().await.unwrap(), (both, 2));
}

pub async fn a_key_field_does_not_change_under_entries(subject: Subject) {
    let story = Story::begin(subject).await;
    let (catalog, version) = story.broker.catalog().await.unwrap();
    let changed = with_handler(&Catalog::default(), "billing", "order", Some("n"));
    // Nothing is published yet, so it may still change, and back.
    assert_eq!(story.broker.set_catalog(&changed, version).await.unwrap(), Some(version + 1));
    let old = story.publish_one(publication("a", "e1")).await;
    assert!(matches!(old, Err(PublishError::Stale { .. })), "publishers see it at once: {old:?}");
    assert_eq!(story.broker.set_catalog(&catalog, version + 1).await.unwrap(), Some(version + 2));
    story.publish("a", ["e1"]).await;
    match story.broker.set_catalog(&changed, version + 2).await {
        Err(Error::Refused(why)) => assert!(why.contains("order"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(story.broker.catalog().await.unwrap(), (catalog, version + 2), "nothing was set");
    story.publish("a", ["e2"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e1", "e2"]);
}

pub async fn a_new_group_sees_what_is_there(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    story.publish("b", ["b1"]).await;
    story.register("audit", "order", Some("client")).await;
    assert_eq!(story.offered(&source("audit"), READ_MAX).await, ["a", "b"]);
    assert_eq!(story.drain("A", partition("audit", "order", "a")).await, ["e1", "e2"]);
    assert_eq!(story.offered(&source("audit"), READ_MAX).await, ["b"]);
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, ["a", "b"], "it is no concern of the others");
    // And from now on it hears of new ones.
    story.publish("c", ["c1"]).await;
    assert_eq!(story.offered(&source("audit"), READ_MAX).await, ["b", "c"]);
}

pub async fn a_group_that_is_registered_again_starts_nothing_anew(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e1"]);
    story.register("billing", "order", Some("client")).await;
    assert_eq!(story.backlog().await.ready, 0);
    story.publish("a", ["e2"]).await;
    assert_eq!(story.drain("A", billing("a")).await, ["e2"]);
    let unordered = Publication { key_field: None, ..publication("a", "e3") };
    assert!(matches!(story.publish_one(unordered).await, Err(PublishError::Stale { .. })));
}
