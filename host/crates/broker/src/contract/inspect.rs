//! What an operator sees.

use std::collections::BTreeSet;

use keyrail_ordering::OwnerId;

use super::Subject;
use super::story::{CommitWords, Story, billing, category, commit, halt_record, partition, publication, source};
use crate::{PartitionRow, Publication, Snapshot};

async fn row(story: &Story, key: &str) -> PartitionRow {
    let (rows, _) = story.broker.partitions(&source("billing"), 0, 1_000).await.unwrap();
    let mut rows: Vec<_> = rows.into_iter().filter(|row| row.partition.key().as_str() == key).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

pub async fn a_row_shows_where_a_partition_stands(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, _, e3] = story.publish("a", ["e1", "e2", "e3"]).await;
    let fresh = row(&story, "a").await;
    assert_eq!(fresh.partition, billing("a").id);
    assert_eq!((fresh.last, fresh.settled, fresh.waiting), (Some(e3), None, 3));
    assert_eq!((fresh.owner, fresh.generation, fresh.owned), (None, None, false));
    let acquired = story.acquire("A", "a").await;
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    let owned = row(&story, "a").await;
    assert_eq!((owned.last, owned.settled, owned.waiting), (Some(e3), Some(e1), 2));
    assert_eq!((owned.owner, owned.owned), (Some(OwnerId::new("A")), true));
    assert_eq!(owned.generation, Some(acquired.lease.generation));
    story.broker.release(&acquired.lease).await.unwrap();
    assert_eq!(story.drain("B", billing("a")).await, ["e2", "e3"]);
    let done = row(&story, "a").await;
    assert_eq!((done.last, done.settled, done.waiting), (Some(e3), Some(e3), 0));
    assert_eq!((done.owner, done.owned), (Some(OwnerId::new("B")), false), "who did it is remembered");
    assert_eq!((done.attempts, done.halted), (0, None));
}

pub async fn a_row_shows_attempts_and_why_it_stands_still(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let acquired = story.acquire("A", "a").await;
    let head = &acquired.entries[0].at;
    story.broker.fail(&acquired.lease, head, 1, "no", 0).await.unwrap();
    assert_eq!(row(&story, "a").await.attempts, 1);
    let record = halt_record(head);
    story.broker.halt(&acquired.lease, &record).await.unwrap();
    let halted = row(&story, "a").await;
    assert_eq!((halted.waiting, halted.owned), (1, false));
    assert_eq!(halted.halted, Some(record));
}

pub async fn partitions_are_paged_without_loss_or_repeat(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("shipping", "parcel", Some("client")).await;
    let keys: BTreeSet<_> = (0..25).map(|n| format!("k{n}")).collect();
    let mut batch: Vec<Publication> = keys.iter().map(|key| publication(key, "e1")).collect();
    // Both lanes of a key are one partition.
    batch.push(Publication { lane: keyrail_ordering::Lane::Backfill, ..publication("k7", "e2") });
    for answer in story.broker.publish(batch).await.unwrap() {
        answer.unwrap();
    }
    let (mut found, mut cursor, mut pages) = (vec![], 0, 0);
    loop {
        let (rows, next) = story.broker.partitions(&source("billing"), cursor, 10).await.unwrap();
        found.extend(rows.into_iter().map(|row| row.partition.key().to_string()));
        pages += 1;
        match next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    assert!(pages > 1, "25 keys in one page of 10");
    assert_eq!(found.len(), 25, "{found:?}");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), keys);
    assert_eq!(row(&story, "k7").await.waiting, 2);
}

pub async fn states_are_paged_without_loss_or_repeat(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("audit", "order", Some("client")).await;
    let keys: BTreeSet<_> = (0..25).map(|n| format!("k{n}")).collect();
    for key in &keys {
        story.publish(key, ["e1"]).await;
        let acquired = story.acquire("A", key).await;
        let commit = commit(&acquired.entries[0]).put("name", key).put("n", "1").and_release();
        story.broker.commit(&acquired.lease, commit).await.unwrap();
    }
    // State of another group, and a key without state.
    let other = story.acquire_for("A", partition("audit", "order", "k1")).await;
    story.broker.commit(&other.lease, commit(&other.entries[0]).put("audit", "x")).await.unwrap();
    story.publish("stateless", ["e1"]).await;
    // A key whose last value was removed has no state any more.
    story.publish("emptied", ["e1", "e2"]).await;
    let emptied = story.acquire("A", "emptied").await;
    story.broker.commit(&emptied.lease, commit(&emptied.entries[0]).put("n", "1")).await.unwrap();
    story.broker.commit(&emptied.lease, commit(&emptied.entries[1]).remove("n")).await.unwrap();
    let (mut found, mut cursor) = (vec![], 0);
    loop {
        let (rows, next) = story.broker.states(&source("billing"), cursor, 10).await.unwrap();
        for row in rows {
            assert_eq!(row.category, Some(category("order")));
            let mut values = row.values;
            values.sort();
            let key = row.key.to_string();
            assert_eq!(values, [("n".into(), "1".into()), ("name".into(), key.clone().into())]);
            found.push(key);
        }
        match next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    assert_eq!(found.len(), 25, "{found:?}");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), keys);
}

pub async fn a_snapshot_has_the_state_and_the_entries_from_one_on(subject: Subject) {
    let story = Story::begin(subject).await;
    let [_, e2, e3] = story.publish("a", ["e1", "e2", "e3"]).await;
    story.publish("b", ["other"]).await;
    let acquired = story.acquire("A", "a").await;
    let first = commit(&acquired.entries[0]).put("n", "1").put("empty", "");
    story.broker.commit(&acquired.lease, first).await.unwrap();
    let spec = billing("a");
    let from = |id| vec![(spec.streams[0].clone(), id)];
    let snapshot = story.broker.snapshot(&spec.id, &from(e2), 10).await.unwrap();
    let ids: Vec<_> = snapshot.entries.iter().map(|entry| entry.at.id).collect();
    assert_eq!(ids, [e2, e3]);
    assert_eq!(snapshot.entries[0], acquired.entries[1], "whole, as an owner gets it");
    let mut state = snapshot.state;
    state.sort();
    assert_eq!(state, [("empty".into(), "".into()), ("n".into(), "1".into())]);
    let one = story.broker.snapshot(&spec.id, &from(e2), 1).await.unwrap();
    assert_eq!(one.entries.len(), 1);
    let nothing = story.broker.snapshot(&billing("never").id, &[(billing("never").streams[0].clone(), e2)], 10).await;
    assert_eq!(nothing.unwrap(), Snapshot { state: vec![], entries: vec![] });
}
