//! Events go in, in order, once.

use keyrail_ordering::{Event, Lane};

use super::Subject;
use super::story::{Story, assert_order, event, event_of, publication};
use crate::{Publication, PublishError};

/// Longer than any case runs.
const WINDOW_MS: u64 = 600_000;

fn remembered(key: &str, id: &str) -> Publication {
    Publication { dedupe_window_ms: WINDOW_MS, ..publication(key, id) }
}

pub async fn entries_come_in_publish_order_with_contiguous_ids(subject: Subject) {
    let story = Story::begin(subject).await;
    let [a1, a2] = story.publish("a", ["a1", "a2"]).await;
    let [b1] = story.publish("b", ["b1"]).await;
    let [a3] = story.publish("a", ["a3"]).await;
    assert_eq!((a1.sequence, b1.sequence), (0, 0), "each key counts for itself");
    assert!(a1.is_followed_by(a2) && a2.is_followed_by(a3), "{a1} {a2} {a3}");
    let acquired = story.acquire("A", "a").await;
    assert_order(&acquired.entries, &["a1", "a2", "a3"]);
    assert_eq!(acquired.entries.iter().map(|entry| entry.at.id).collect::<Vec<_>>(), [a1, a2, a3]);
    assert_order(&story.acquire("A", "b").await.entries, &["b1"]);
}

pub async fn an_event_comes_back_as_it_was_published(subject: Subject) {
    let story = Story::begin(subject).await;
    let headers =
        vec![("trace".into(), "é\n\"x\"".into()), ("empty".into(), String::new()), ("trace".into(), "2".into())];
    let data = "{\"client\":\"a b\",\"n\":\"\u{1F980}\\u0000\",\"x\":12345678901234567890}".as_bytes().into();
    let event = Event { headers, data, version: u32::MAX, ..event("order", "a b", "é-1") };
    let published = story.publish_one(Publication { event: event.clone(), ..publication("a b", "é-1") }).await.unwrap();
    assert!(!published.duplicate);
    let acquired = story.acquire("A", "a b").await;
    assert_eq!(event_of(&acquired.entries[0]), &event);
    assert_eq!(acquired.entries[0].at.id, published.id);
    assert_eq!(acquired.entries[0].at.stream.lane, Lane::Primary);
    assert_ne!(acquired.entries[0].recorded_at_ms, 0);
}

pub async fn a_repeated_id_is_answered_with_its_first_entry(subject: Subject) {
    let story = Story::begin(subject).await;
    let first = story.publish_one(remembered("a", "e1")).await.unwrap();
    story.publish("a", ["e2"]).await;
    let again = story.publish_one(remembered("a", "e1")).await.unwrap();
    assert!(!first.duplicate && again.duplicate);
    assert_eq!(first.id, again.id);
    let acquired = story.acquire("A", "a").await;
    assert_order(&acquired.entries, &["e1", "e2"]);
    // It is remembered after it was settled, too.
    story.commit(&acquired.lease, &acquired.entries[0]).await;
    assert!(story.publish_one(remembered("a", "e1")).await.unwrap().duplicate);
}

pub async fn an_id_that_repeats_within_a_batch_is_one_event(subject: Subject) {
    let story = Story::begin(subject).await;
    let batch = vec![remembered("a", "e1"), remembered("a", "e1"), remembered("a", "e2")];
    let answers = story.broker.publish(batch).await.unwrap();
    let duplicates: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().duplicate).collect();
    assert_eq!(duplicates, [false, true, false]);
    assert_order(&story.acquire("A", "a").await.entries, &["e1", "e2"]);
}

pub async fn a_window_of_zero_remembers_nothing(subject: Subject) {
    let story = Story::begin(subject).await;
    let first = story.publish_one(publication("a", "e1")).await.unwrap();
    let again = story.publish_one(publication("a", "e1")).await.unwrap();
    assert!(!again.duplicate && first.id.is_followed_by(again.id));
}

pub async fn ids_are_remembered_for_each_category_alone(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("shipping", "parcel", Some("client")).await;
    assert!(!story.publish_one(remembered("a", "e1")).await.unwrap().duplicate);
    let other = Publication { event: event("parcel", "a", "e1"), ..remembered("a", "e1") };
    assert!(!story.publish_one(other).await.unwrap().duplicate);
}

pub async fn an_old_key_field_is_stale(subject: Subject) {
    let story = Story::begin(subject).await;
    for key_field in [Some("customer".to_owned()), None] {
        let old = Publication { key_field: key_field.clone(), ..publication("a", "e1") };
        match story.publish_one(old).await {
            Err(PublishError::Stale { category, expected, actual }) => {
                assert_eq!((category.as_str(), actual.as_deref()), ("order", Some("client")));
                assert_eq!(expected, key_field);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(story.backlog().await.ready, 0, "nothing was written");
}

pub async fn the_first_refusal_ends_the_batch(subject: Subject) {
    let story = Story::begin(subject).await;
    let stale = Publication { key_field: Some("customer".into()), ..publication("a", "e2") };
    let batch = vec![publication("a", "e1"), stale, publication("a", "e3"), publication("b", "e4")];
    let answers = story.broker.publish(batch).await.unwrap();
    assert!(answers[0].is_ok());
    assert!(matches!(answers[1], Err(PublishError::Stale { .. })));
    assert!(matches!(answers[2], Err(PublishError::NotTried)));
    assert!(matches!(answers[3], Err(PublishError::NotTried)));
    assert_order(&story.acquire("A", "a").await.entries, &["e1"]);
    assert_eq!(story.backlog().await.ready, 1, "only that of the first event");
}

pub async fn data_that_is_no_object_is_refused(subject: Subject) {
    let story = Story::begin(subject).await;
    let with = |data: &'static str| {
        let mut publication = publication("a", "e1");
        publication.event.data = data.into();
        publication
    };
    for data in ["", " ", "7", "null", "[1]", "\"text\"", "{", "}", "}{", "{} x", "x {}"] {
        match story.publish_one(with(data)).await {
            Err(PublishError::Refused(why)) => assert!(why.contains("not a JSON object"), "{data:?}: {why}"),
            other => panic!("{data:?}: {other:?}"),
        }
    }
    assert_eq!(story.backlog().await.ready, 0, "nothing was written");
    for data in ["{}", " \r\n\t{ }\n "] {
        story.publish_one(with(data)).await.unwrap();
    }
    let entries = story.acquire("A", "a").await.entries;
    assert_eq!(
        entries.iter().map(|entry| &event_of(entry).data[..]).collect::<Vec<_>>(),
        [&b"{}"[..], b" \r\n\t{ }\n "]
    );
}
