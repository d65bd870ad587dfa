//! Process managers: one partition over the streams of several categories.

use std::sync::Arc;

use keyrail_ordering::{
    Capabilities, CategoryName, Correlation, Event, Field, FieldType, HaltCause, HaltRecord, Lane, MessageName,
    MessageType, Metadata, OwnerId, PartitionSpec, Role, SequentialBy,
};

use super::Subject;
use super::story::{
    CommitWords, LONG_TTL_MS, READ_MAX, Story, assert_order, billing, category, commit, event, group, id_of, key,
    listen, next_bell, publication,
};
use crate::{AcquireError, Bell, FencedError, Publication, ReadySource};

const CATEGORIES: [&str; 3] = ["order", "payment", "shipment"];

/// With `saga`, which correlates all three by `client`, and `billing`, which handles `order` alone.
pub(super) async fn begin(subject: Subject) -> Story {
    let story = Story::begin(subject).await;
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Text, required: true };
    let message = MessageName::parse("OrderPlaced").unwrap();
    let handles = CATEGORIES.map(|name| MessageType {
        category: category(name),
        name: message.clone(),
        version: 1,
        fields: vec![field("client"), field("n")],
    });
    let correlations = CATEGORIES.map(|name| Correlation {
        category: category(name),
        message: message.clone(),
        field: "client".into(),
    });
    let metadata = Metadata {
        name: group("saga"),
        version: "1.0".into(),
        role: Role::ProcessManager,
        handles: handles.into(),
        sequential_by: SequentialBy::Correlation(correlations.into()),
        options: vec![],
    };
    let (catalog, version) = story.broker.catalog().await.unwrap();
    let next = catalog.register(&metadata, "00ff", Capabilities { stream_partitioning: true }).unwrap();
    assert_eq!(story.broker.set_catalog(&next, version).await.unwrap(), Some(version + 1));
    story
}

pub(super) fn saga(value: &str) -> Arc<PartitionSpec> {
    let categories: Vec<CategoryName> = CATEGORIES.iter().map(|name| category(name)).collect();
    Arc::new(PartitionSpec::of_correlation(group("saga"), &categories, key(value)))
}

pub(super) fn source() -> ReadySource {
    ReadySource::ProcessManager { group: group("saga") }
}

pub(super) async fn publish(story: &Story, lane: Lane, category_name: &str, value: &str, ids: &[&str]) {
    for id in ids {
        let event: Event = event(category_name, value, id);
        story.publish_one(Publication { event, lane, ..publication(value, id) }).await.unwrap();
    }
}

pub async fn a_manager_reads_every_stream_of_its_value_each_in_order(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1", "p2"]).await;
    publish(&story, Lane::Primary, "order", "a", &["o1", "o2"]).await;
    publish(&story, Lane::Primary, "order", "b", &["other"]).await;
    let ids = story.drain("A", saga("a")).await;
    let of = |letter: char| ids.iter().filter(|id| id.starts_with(letter)).cloned().collect::<Vec<_>>();
    assert_eq!((ids.len(), of('o'), of('p')), (4, vec!["o1".into(), "o2".into()], vec!["p1".into(), "p2".into()]));
    assert_eq!(story.drain("A", saga("b")).await, ["other"]);
}

pub async fn a_manager_has_one_head_whatever_the_streams(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "order", "a", &["o1", "o2"]).await;
    let acquired = story.acquire_for("A", saga("a")).await;
    let (lease, o1) = (&acquired.lease, &acquired.entries[0]);
    assert_order(&acquired.entries, &["o1", "o2"]);
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    // While something is in hand no other stream is read.
    assert!(story.broker.take(lease, READ_MAX, false).await.unwrap().entries.is_empty());
    let mut of_payment = o1.at.clone();
    of_payment.stream.category = category("payment");
    let failed = story.broker.fail(lease, &of_payment, 1, "no", 0).await;
    assert!(matches!(failed, Err(FencedError::NotHead { .. })), "the id alone does not name the head: {failed:?}");
    let mut wrong = commit(o1);
    wrong.entries[0] = of_payment;
    assert!(matches!(story.broker.commit(lease, wrong).await, Err(FencedError::NotHead { .. })));
    story.commit(lease, o1).await;
    let committed = story.broker.commit(lease, commit(&acquired.entries[1]).and_take(READ_MAX)).await.unwrap();
    assert_order(&committed.entries, &["p1"]);
    assert!(!committed.more);
}

pub async fn streams_of_a_manager_take_turns(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "order", "a", &["o1", "o2", "o3", "o4", "o5", "o6"]).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    publish(&story, Lane::Primary, "shipment", "a", &["s1"]).await;
    let acquired = story.broker.acquire(saga("a"), &OwnerId::new("A"), LONG_TTL_MS, 1).await.unwrap();
    let (mut entries, mut ids) = (acquired.entries, vec![]);
    while let Some(entry) = entries.pop() {
        ids.push(id_of(&entry));
        entries = story.broker.commit(&acquired.lease, commit(&entry).and_take(1)).await.unwrap().entries;
    }
    assert_eq!(ids.len(), 8);
    for waited in ["p1", "s1"] {
        let place = ids.iter().position(|id| id == waited).unwrap();
        assert!(place <= 3, "{waited} had to wait for {place} others: {ids:?}");
    }
}

pub async fn a_stream_that_is_read_ahead_starves_no_other(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "order", "a", &["o1", "o2", "o3", "o4", "o5", "o6"]).await;
    let acquired = story.broker.acquire(saga("a"), &OwnerId::new("A"), LONG_TTL_MS, 2).await.unwrap();
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    // The owner always has one more in hand than it is at.
    let (mut entries, mut ids) = (acquired.entries, vec![]);
    while !entries.is_empty() {
        let entry = entries.remove(0);
        ids.push(id_of(&entry));
        entries.extend(story.broker.commit(&acquired.lease, commit(&entry).and_take(1)).await.unwrap().entries);
    }
    assert_eq!(ids.len(), 7);
    assert_ne!(ids[6], "p1", "it had to wait for all others: {ids:?}");
}

pub async fn a_managers_turns_go_on_with_the_next_owner(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "order", "a", &["o1", "o2", "o3", "o4"]).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    let mut ids = vec![];
    for owner in ["A", "B"] {
        let acquired = story.broker.acquire(saga("a"), &OwnerId::new(owner), LONG_TTL_MS, 1).await.unwrap();
        ids.push(id_of(&acquired.entries[0]));
        story.commit(&acquired.lease, &acquired.entries[0]).await;
        story.broker.release(&acquired.lease).await.unwrap();
    }
    ids.sort();
    assert_eq!(ids, ["o1", "p1"], "each stream had its turn");
}

pub async fn a_managers_backfill_comes_when_every_primary_is_empty(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Backfill, "order", "a", &["b1", "b2"]).await;
    publish(&story, Lane::Backfill, "payment", "a", &["c1"]).await;
    publish(&story, Lane::Primary, "shipment", "a", &["s1", "s2"]).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    let mut ids = story.drain("A", saga("a")).await;
    let mut last = ids.split_off(3);
    ids.sort();
    last.sort();
    assert_eq!(ids, ["p1", "s1", "s2"]);
    assert_eq!(last, ["b1", "b2", "c1"]);
}

pub async fn a_manager_takes_over_what_was_pending_whatever_the_stream(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "shipment", "a", &["s1", "s2"]).await;
    let first = story.acquire_for("A", saga("a")).await;
    assert_order(&first.entries, &["s1", "s2"]);
    publish(&story, Lane::Primary, "order", "a", &["o1"]).await;
    let second = story.take_over(&first.lease, "B").await;
    assert_order(&second.entries[..1], &["s1"]);
    assert_eq!(
        second.attempts.as_ref().map(|record| (record.head.clone(), record.crashes)),
        Some((first.entries[0].at.clone(), 1))
    );
    assert!(matches!(story.broker.commit(&first.lease, commit(&first.entries[0])).await, Err(FencedError::Fenced)));
    story.broker.fail(&second.lease, &second.entries[0].at, 1, "no", 0).await.unwrap();
    story.broker.release(&second.lease).await.unwrap();
    // The failed one stays the head, although another stream has the next turn.
    let third = story.acquire_for("C", saga("a")).await;
    assert_order(&third.entries[..1], &["s1"]);
    assert_eq!(third.attempts.map(|record| record.attempts), Some(1));
    story.commit(&third.lease, &third.entries[0]).await;
    story.broker.release(&third.lease).await.unwrap();
    let mut rest = story.drain("D", saga("a")).await;
    rest.sort();
    assert_eq!(rest, ["o1", "s2"]);
}

pub async fn a_manager_halts_by_stream_and_entry(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    let acquired = story.acquire_for("A", saga("a")).await;
    let head = acquired.entries[0].at.clone();
    let (error, handler_version) = ("too sour".into(), "1.0".into());
    let record = HaltRecord { head, cause: HaltCause::Poison, attempts: 5, error, handler_version };
    story.broker.halt(&acquired.lease, &record).await.unwrap();
    publish(&story, Lane::Primary, "order", "a", &["o1"]).await;
    match story.broker.acquire(saga("a"), &OwnerId::new("B"), LONG_TTL_MS, READ_MAX).await {
        Err(AcquireError::Halted(found)) => assert_eq!(*found, record),
        other => panic!("{other:?}"),
    }
    assert!(story.offered(&source(), READ_MAX).await.is_empty(), "all its streams stand still");
    publish(&story, Lane::Primary, "payment", "b", &["p2"]).await;
    assert_eq!(story.offered(&source(), READ_MAX).await, ["b"]);
    assert_eq!(story.drain("B", saga("b")).await, ["p2"]);
}

pub async fn a_managers_ready_set_has_its_values(subject: Subject) {
    let story = begin(subject).await;
    let mut bells = listen(story.broker.as_ref(), vec![source()]).await;
    publish(&story, Lane::Primary, "order", "a", &["o1"]).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    publish(&story, Lane::Primary, "payment", "b", &["p2"]).await;
    let bell = |value| Bell::Ready { source: source(), key: key(value) };
    assert_eq!(next_bell(&mut bells).await, bell("a"));
    assert_eq!(next_bell(&mut bells).await, bell("b"), "a was in already");
    assert_eq!(story.offered(&source(), READ_MAX).await, ["a", "b"]);
    assert_eq!(story.broker.backlog(&[source()]).await.unwrap().ready, 2);
    story.drain("A", saga("a")).await;
    assert_eq!(story.offered(&source(), READ_MAX).await, ["b"]);
}

pub async fn another_group_goes_its_own_way_on_a_managers_stream(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "order", "a", &["o1", "o2"]).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    let held = story.acquire_for("A", saga("a")).await;
    assert_eq!(story.drain("B", billing("a")).await, ["o1", "o2"], "another owns the same key for another group");
    assert_eq!(story.backlog().await.ready, 0);
    story.broker.release(&held.lease).await.unwrap();
    assert_eq!(story.drain("A", saga("a")).await.len(), 3, "nothing was dropped that it had still to see");
}

pub async fn a_managers_state_is_of_the_value(subject: Subject) {
    let story = begin(subject).await;
    publish(&story, Lane::Primary, "order", "a", &["o1"]).await;
    publish(&story, Lane::Primary, "payment", "a", &["p1"]).await;
    publish(&story, Lane::Primary, "payment", "b", &["p2"]).await;
    let first = story.acquire_for("A", saga("a")).await;
    story.broker.commit(&first.lease, commit(&first.entries[0]).put("step", "1")).await.unwrap();
    let next = story.broker.take(&first.lease, READ_MAX, false).await.unwrap();
    assert_ne!(next.entries[0].at.stream, first.entries[0].at.stream);
    assert_eq!(story.broker.state(&first.lease, "step").await.unwrap().as_deref(), Some(b"1".as_slice()));
    story.broker.release(&first.lease).await.unwrap();
    let other = story.acquire_for("A", saga("b")).await;
    assert_eq!(story.broker.state(&other.lease, "step").await.unwrap(), None, "another value");
    let same = story.acquire("A", "a").await;
    assert_eq!(story.broker.state(&same.lease, "step").await.unwrap(), None, "another group");
    let again = story.acquire_for("B", saga("a")).await;
    assert_eq!(again.state.unwrap(), [("step".to_owned(), "1".into())]);
    let (rows, _) = story.broker.states(&source(), 0, READ_MAX).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].category.clone(), rows[0].key.clone()), (None, key("a")));
}
