//! What is looked at by instruments and by people who search: how much waits, what was published, who stands how.

use std::collections::BTreeSet;
use std::sync::Arc;

use keyrail_ordering::{Entry, Event, Lane, OwnerId};

use super::Subject;
use super::story::{
    CommitWords, READ_MAX, Story, billing, category, commit, event, group, halt_record, id_of, key, outgoing,
    partition, primary, publication, source, source_on,
};
use crate::{Lag, Publication, ReadFrom, ReadySource, Standing, Wanted, WantedKey};

const SAMPLE_MAX: usize = 1_000;

async fn lag(story: &Story) -> Lag {
    story.broker.lag(&source("billing"), SAMPLE_MAX).await.unwrap()
}

pub async fn the_lag_counts_what_waits_and_since_when(subject: Subject) {
    let story = Story::begin(subject).await;
    let nothing = lag(&story).await;
    assert_eq!(nothing, Lag { exact: true, ..Lag::default() });
    story.publish("a", ["e1", "e2", "e3"]).await;
    story.publish_to(Lane::Backfill, "b", ["b1"]).await;
    let acquired = story.acquire("A", "a").await;
    let at = acquired.entries[0].recorded_at_ms;
    assert!(at > 0, "an entry says when it was recorded");
    let all = Lag { ready: 2, halted: 0, events: 4, exact: true, oldest_recorded_at_ms: Some(at) };
    assert_eq!(lag(&story).await, all, "what was read ahead is not settled");
    story.register("audit", "order", Some("client")).await;
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    let left = lag(&story).await;
    assert_eq!((left.ready, left.events), (2, 3));
    assert!(left.oldest_recorded_at_ms >= Some(at), "{left:?}");
    // Another group has settled nothing.
    assert_eq!(story.broker.lag(&source("audit"), SAMPLE_MAX).await.unwrap().events, 4);
}

pub async fn what_stands_still_counts_in_the_lag(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    story.publish("b", ["b1"]).await;
    let acquired = story.acquire("A", "a").await;
    story.broker.halt(&acquired.lease, &halt_record(&acquired.entries[0].at)).await.unwrap();
    let found = lag(&story).await;
    assert_eq!((found.ready, found.halted, found.events, found.exact), (1, 1, 3, true));
    assert_eq!(found.oldest_recorded_at_ms, Some(acquired.entries[0].recorded_at_ms));
}

pub async fn the_lag_of_many_keys_is_reckoned_from_a_sample(subject: Subject) {
    let story = Story::begin(subject).await;
    let keys: Vec<String> = (0..200).map(|n| format!("k{n}")).collect();
    let batch = keys.iter().flat_map(|key| [publication(key, "e1"), publication(key, "e2")]).collect();
    for answer in story.broker.publish(batch).await.unwrap() {
        answer.unwrap();
    }
    let sampled = story.broker.lag(&source("billing"), 64).await.unwrap();
    assert_eq!((sampled.ready, sampled.events, sampled.exact), (200, 400, false));
    assert!(sampled.oldest_recorded_at_ms.is_some());
    let counted = lag(&story).await;
    assert_eq!((counted.events, counted.exact), (400, true));
}

pub async fn the_lag_of_a_category_without_keys_is_its_unsettled_entries(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("tally", "metric", None).await;
    let tally = ReadySource::Shared { group: group("tally"), category: category("metric") };
    assert_eq!(story.broker.lag(&tally, SAMPLE_MAX).await.unwrap(), Lag { exact: true, ..Lag::default() });
    for id in ["m1", "m2", "m3"] {
        let event = Event { key: None, ..event("metric", "x", id) };
        story.publish_one(Publication { event, key_field: None, ..publication("x", id) }).await.unwrap();
    }
    let shared = crate::SharedSource { group: group("tally"), category: category("metric") };
    let taken = story.broker.take_shared(&shared, &OwnerId::new("A"), 2, 600_000).await.unwrap();
    let found = story.broker.lag(&tally, SAMPLE_MAX).await.unwrap();
    assert_eq!((found.ready, found.events, found.exact), (0, 3, true), "what is out is not settled");
    assert_eq!(found.oldest_recorded_at_ms, Some(taken.deliveries[0].entry.recorded_at_ms));
}

pub async fn what_was_published_is_counted_for_each_category(subject: Subject) {
    let story = Story::begin(subject).await;
    let of = async |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| category(name)).collect();
        story.broker.published(&names).await.unwrap()
    };
    assert_eq!(of(&["order", "nowhere"]).await, [None, None]);
    assert_eq!(of(&[]).await, []);
    story.publish("a", ["e1", "e2"]).await;
    let once = || Publication { dedupe_window_ms: 600_000, ..publication("b", "b1") };
    story.publish_one(once()).await.unwrap();
    assert!(story.publish_one(once()).await.unwrap().duplicate);
    let refused = Publication { key_field: Some("customer".into()), ..publication("a", "e3") };
    story.publish_one(refused).await.unwrap_err();
    assert_eq!(of(&["order", "nowhere"]).await, [Some(3), None], "neither a repeat nor what was refused");
    let acquired = story.acquire("A", "a").await;
    let emits = commit(&acquired.entries[0]).emit(outgoing("c", "c1")).emit(outgoing("c", "c2"));
    story.broker.commit(&acquired.lease, emits).await.unwrap();
    assert_eq!(of(&["order"]).await, [Some(3)], "not yet in a stream");
    assert_eq!(story.broker.route(10, 0).await.unwrap().published, 2);
    assert_eq!(of(&["order"]).await, [Some(5)]);
    assert_eq!(story.broker.live_keys(&category("order")).await.unwrap(), 3);
    assert_eq!(story.broker.live_keys(&category("nowhere")).await.unwrap(), 0);
}

async fn found(story: &Story, wanted: &Wanted, limit: usize) -> Vec<String> {
    let (mut keys, mut cursor) = (vec![], Some(0));
    while let Some(at) = cursor {
        let (rows, next) = story.broker.find(&source("billing"), wanted, at, limit).await.unwrap();
        keys.extend(rows.into_iter().map(|row| row.partition.key().to_string()));
        cursor = next;
    }
    keys.sort();
    keys
}

fn standing(standing: Standing) -> Wanted {
    Wanted { standing, ..Wanted::default() }
}

pub async fn partitions_are_found_by_key(subject: Subject) {
    let story = Story::begin(subject).await;
    let keys = ["client-1", "client-10", "client-2", "a*b", "a1b", "x[1]"];
    for key in keys {
        story.publish(key, ["e1"]).await;
    }
    let of = |key| Wanted { key, ..Wanted::default() };
    let starts = |text: &str| of(WantedKey::StartsWith(text.into()));
    for limit in [1, 2, 100] {
        assert_eq!(found(&story, &starts("client-1"), limit).await, ["client-1", "client-10"], "by {limit}");
        assert_eq!(found(&story, &starts("a*"), limit).await, ["a*b"], "a prefix is no pattern");
        assert_eq!(found(&story, &starts("x[1"), limit).await, ["x[1]"]);
        assert_eq!(found(&story, &starts(""), limit).await.len(), keys.len());
        assert_eq!(found(&story, &starts("nobody"), limit).await, [] as [&str; 0]);
    }
    assert_eq!(found(&story, &of(WantedKey::Is(key("client-1"))), 10).await, ["client-1"]);
    assert_eq!(found(&story, &of(WantedKey::Is(key("nobody"))), 10).await, [] as [&str; 0]);
    let both = Wanted { key: WantedKey::StartsWith("client".into()), standing: Standing::Owned };
    assert_eq!(found(&story, &both, 10).await, [] as [&str; 0]);
    story.acquire("A", "client-2").await;
    story.acquire("A", "a1b").await;
    assert_eq!(found(&story, &both, 10).await, ["client-2"]);
}

pub async fn partitions_are_found_by_how_they_stand(subject: Subject) {
    let story = Story::begin(subject).await;
    for key in ["done", "halted", "owned", "waits"] {
        story.publish(key, ["e1"]).await;
    }
    assert_eq!(story.drain("A", billing("done")).await, ["e1"]);
    let acquired = story.acquire("A", "halted").await;
    story.broker.halt(&acquired.lease, &halt_record(&acquired.entries[0].at)).await.unwrap();
    story.acquire("A", "owned").await;
    for limit in [1, 2, 100] {
        assert_eq!(found(&story, &standing(Standing::Waiting), limit).await, ["owned", "waits"], "by {limit}");
        assert_eq!(found(&story, &standing(Standing::Owned), limit).await, ["owned"]);
        assert_eq!(found(&story, &standing(Standing::Halted), limit).await, ["halted"]);
        assert_eq!(found(&story, &Wanted::default(), limit).await, ["done", "halted", "owned", "waits"]);
    }
    let one = |standing| Wanted { key: WantedKey::Is(key("halted")), standing };
    assert_eq!(found(&story, &one(Standing::Halted), 10).await, ["halted"]);
    assert_eq!(found(&story, &one(Standing::Waiting), 10).await, [] as [&str; 0]);
}

pub async fn a_search_among_many_keys_goes_through_all_of_them(subject: Subject) {
    let story = Story::begin(subject).await;
    for from in (0..3_000).step_by(500) {
        let batch = (from..from + 500).map(|n| publication(&format!("{}-{n}", n % 100), "e1")).collect();
        for answer in story.broker.publish(batch).await.unwrap() {
            answer.unwrap();
        }
    }
    let starts = Wanted { key: WantedKey::StartsWith("42-".into()), ..Wanted::default() };
    let keys: BTreeSet<String> = found(&story, &starts, 7).await.into_iter().collect();
    assert_eq!(keys.len(), 30, "{keys:?}");
    for owned in ["7-7", "99-2999"] {
        story.acquire("A", owned).await;
    }
    assert_eq!(found(&story, &standing(Standing::Owned), 50).await, ["7-7", "99-2999"]);
    let (mut waiting, mut cursor) = (BTreeSet::new(), Some(0));
    while let Some(at) = cursor {
        let (keys, next) = story.broker.waiting_keys(&source("billing"), at, 100).await.unwrap();
        waiting.extend(keys);
        cursor = next;
    }
    assert_eq!(waiting.len(), 3_000, "owned ones too");
}

pub async fn a_process_manager_is_searched_too(subject: Subject) {
    let story = super::managers::begin(subject).await;
    let saga = super::managers::source();
    super::managers::publish(&story, Lane::Primary, "order", "never-owned", &["e1"]).await;
    super::managers::publish(&story, Lane::Primary, "payment", "owned", &["e2"]).await;
    story.acquire_for("A", super::managers::saga("owned")).await;
    let search = async |wanted: Wanted| {
        let (mut keys, mut cursor) = (vec![], Some(0));
        while let Some(at) = cursor {
            let (rows, next) = story.broker.find(&saga, &wanted, at, 10).await.unwrap();
            keys.extend(rows.into_iter().map(|row| row.partition.key().to_string()));
            cursor = next;
        }
        keys.sort();
        keys
    };
    assert_eq!(search(Wanted::default()).await, ["never-owned", "owned"]);
    assert_eq!(search(standing(Standing::Waiting)).await, ["never-owned", "owned"]);
    assert_eq!(search(standing(Standing::Owned)).await, ["owned"]);
    let key_is = Wanted { key: WantedKey::Is(key("never-owned")), ..Wanted::default() };
    assert_eq!(search(key_is).await, ["never-owned"]);
    let starts = Wanted { key: WantedKey::StartsWith("never".into()), ..Wanted::default() };
    assert_eq!(search(starts).await, ["never-owned"]);
    let lag = story.broker.lag(&saga, SAMPLE_MAX).await.unwrap();
    assert_eq!((lag.ready, lag.events), (2, 2));
}

pub async fn streams_are_read_by_one_who_owns_nothing(subject: Subject) {
    let story = Story::begin(subject).await;
    let [e1, e2, _] = story.publish("a", ["e1", "e2", "e3"]).await;
    story.publish("b", ["b1"]).await;
    let read = async |streams: &[(&str, ReadFrom)], limit| {
        let streams: Vec<_> = streams.iter().map(|(key, from)| (primary(key), *from)).collect();
        let reading = story.broker.read_streams(&streams, limit).await.unwrap();
        assert!(reading.at_ms > 0);
        let ids = |entries: &Vec<Arc<Entry>>| entries.iter().map(|entry| id_of(entry)).collect();
        reading.entries.iter().map(ids).collect::<Vec<Vec<String>>>()
    };
    let from = [("a", ReadFrom::After(e1)), ("nobody", ReadFrom::After(e1)), ("b", ReadFrom::Since(0))];
    assert_eq!(read(&from, 10).await, [vec!["e2", "e3"], vec![], vec!["b1"]]);
    assert_eq!(read(&[("a", ReadFrom::After(e1))], 1).await, [["e2"]], "the next");
    assert_eq!(read(&[("a", ReadFrom::Since(0))], 2).await, [["e2", "e3"]], "the newest");
    assert_eq!(read(&[], 2).await, [] as [Vec<String>; 0]);
    let later = story.broker.read_streams(&[], 1).await.unwrap().at_ms + 600_000;
    assert_eq!(read(&[("a", ReadFrom::Since(later))], 10).await, [[] as [&str; 0]]);
    // It takes nothing from the owner.
    let acquired = story.broker.acquire(billing("a"), &OwnerId::new("A"), 600_000, READ_MAX).await.unwrap();
    assert_eq!((acquired.entries.len(), acquired.entries[1].at.id), (3, e2));
    // Another category, another stream.
    let elsewhere = partition("audit", "parcel", "a").streams[0].clone();
    let nothing = story.broker.read_streams(&[(elsewhere, ReadFrom::Since(0))], 10).await.unwrap();
    assert_eq!(nothing.entries, [vec![]]);
    assert_eq!(story.broker.lag(&source_on("billing", "parcel"), 10).await.unwrap().events, 0);
}
