//! Publishing in every form, what is refused, and a broker that is away.

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::{freeze, thaw};
use keyrail_tests::http::{Api, url};
use keyrail_tests::wait_until;
use reqwest::Method;
use serde_json::json;

use super::{counted, host, post};

#[test]
fn events_are_published_in_every_form_and_the_same_id_once() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let api = Api::of(&host);

    let one = api.post("/v1/events", &counted("a", "1")).ok();
    assert_eq!(one["events"][0]["id"], "1");
    assert!(one["events"][0]["entry"].as_str().unwrap().ends_with("-0"), "{one}");
    let array = api.post("/v1/events", &json!([counted("a", "2"), counted("b", "3")])).ok();
    assert_eq!(array["events"].as_array().unwrap().len(), 2);
    let lines = format!("{}\n\n{}\n", counted("a", "4"), counted("a", "5"));
    let lines = post(&api, "application/jsonl", lines).ok();
    assert_eq!(lines["events"][1]["id"], "5");

    let cloud = |id: &str| json!({ "specversion": "1.0", "id": id, "source": "/shop", "type": "count.Counted", "data": { "key": "a", "n": 1 } });
    let structured = post(&api, "application/cloudevents+json; charset=utf-8", cloud("6").to_string()).ok();
    assert_eq!(structured["events"][0]["id"], "/shop#6");
    let batch = json!([cloud("7"), cloud("8")]).to_string();
    assert_eq!(post(&api, "application/cloudevents-batch+json", batch).ok()["events"][1]["id"], "/shop#8");
    let binary = api.request(Method::POST, "/v1/events").header("content-type", "application/json");
    let binary = binary.header("ce-specversion", "1.0").header("ce-id", "9%20x").header("ce-source", "/shop");
    let binary = binary.header("ce-type", "count.Counted").body(r#"{"key":"a","n":1}"#);
    assert_eq!(api.send(binary).ok()["events"][0]["id"], "/shop#9 x");

    let again = api.post("/v1/events", &json!([counted("a", "1"), counted("a", "10")])).ok();
    assert_eq!(
        (&again["events"][0]["duplicate"], &again["events"][0]["entry"]),
        (&json!(true), &one["events"][0]["entry"])
    );
    assert_eq!(again["events"][1].get("duplicate"), None);
    let fresh =
        api.post("/v1/events", &json!({ "category": "count", "type": "Counted", "data": { "key": "c", "n": 1 } }));
    assert_eq!(fresh.ok()["events"][0]["id"].as_str().unwrap().len(), 36);
    wait_until("all is settled", || api.get("/v1/backlog").ok()["ready"] == 0);
    let row = api.get("/v1/partitions?category=count").ok();
    let row = row["rows"].as_array().unwrap().iter().find(|row| row["key"] == "a").unwrap().clone();
    // Nine of its own, and the one that was there already.
    assert!(row["last"].as_str().unwrap().ends_with("-8"), "{row}");
    assert_eq!((&row["last"], row["waiting"].as_u64()), (&row["settled"], Some(0)));
}

#[test]
fn one_bad_event_lets_none_be_published_unless_it_is_skipped() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let api = Api::of(&host);
    let bad = json!({ "category": "count", "type": "Counted", "id": "x", "data": { "n": 1 } });
    let mixed = json!([counted("a", "1"), bad, counted("a", "2")]);
    let refused = api.post("/v1/events", &mixed);
    refused.refused(422, "refused", "1 of 3 events");
    assert_eq!((refused.body["events"][0]["id"].as_str(), refused.body["events"][0].get("entry")), (Some("1"), None));
    assert!(refused.body["events"][1]["error"].as_str().unwrap().contains("key"), "{refused:#?}");
    assert_eq!(api.get("/v1/partitions").ok()["rows"], json!([]));

    let partly = api.post("/v1/events?skip_bad=true", &mixed);
    assert_eq!(partly.status.as_u16(), 207);
    let entries: Vec<_> =
        partly.body["events"].as_array().unwrap().iter().map(|event| event.get("entry").is_some()).collect();
    assert_eq!(entries, [true, false, true]);

    for (media, body, status, says) in [
        ("text/plain", "{}", 415, "application/jsonl"),
        ("application/json", "", 400, "no event"),
        ("application/json", "[]", 400, "no event"),
        ("application/json", "[1", 400, "content type"),
        ("application/json", "7", 422, "1 of 1"),
        ("application/json", "{\"category\":\"\\ud800\"}", 422, "1 of 1"),
        ("application/cloudevents+json", "{}", 422, "1 of 1"),
    ] {
        post(&api, media, body).refused(status, "refused", says);
    }
    api.post("/v1/events?skipbad=true", &mixed).refused(400, "refused", "skipbad");
    let none = json!([{ "category": "nothing", "type": "Counted", "data": {} }]);
    let none = api.post("/v1/events", &none);
    assert!(none.body["events"][0]["error"].as_str().unwrap().contains("nothing"), "{none:#?}");
}

#[test]
fn a_broker_that_is_away_is_told_and_the_same_ids_publish_nothing_twice() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &["--set", "publish.tries_max=2", "--set", "redis.response_timeout_ms=300"]);
    let api = Api::of(&host);
    let events = json!([counted("a", "1"), counted("a", "2")]);
    api.post("/v1/events", &json!([counted("b", "0")])).ok();
    freeze(redis.pid());
    let away = api.post("/v1/events", &events);
    away.refused(503, "unavailable", "does not answer");
    assert!(away.headers.contains_key("retry-after"));
    thaw(redis.pid());
    wait_until("it is published", || api.post("/v1/events", &events).status.is_success());
    wait_until("it is settled", || api.get("/v1/backlog").ok()["ready"] == 0);
    let rows = api.get("/v1/partitions").ok();
    let row = rows["rows"].as_array().unwrap().iter().find(|row| row["key"] == "a").unwrap().clone();
    assert!(row["last"].as_str().unwrap().ends_with("-1"), "{row}");
}

#[tokio::test]
async fn the_client_publishes_and_is_told_what_is_refused() {
    let redis = RedisServer::start().unwrap();
    let host = host(&redis.url(), &[]);
    let client = keyrail_client::Client::builder(&url(&host)).build().unwrap();
    let event = |key: &str| keyrail_client::Event::new("count", "Counted", &json!({ "key": key, "n": 1 })).unwrap();
    let published = client.publish(vec![event("a"), event("b").id("x")]).await.unwrap();
    assert_eq!((published.len(), published[1].id.as_str()), (2, "x"));
    let again = client.publish(vec![event("b").id("x")]).await.unwrap();
    assert_eq!((again[0].duplicate, &again[0].entry), (true, &published[1].entry));
    match client.publish(vec![event("a"), event("a:b")]).await.unwrap_err() {
        keyrail_client::Error::Refused { events, .. } => assert_eq!(events[0].index, 1),
        other => panic!("{other:?}"),
    }
}
