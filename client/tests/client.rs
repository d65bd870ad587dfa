//! The client against a server that answers as it is told.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use keyrail_client::{Client, Error, Event, Refusal};
use serde_json::{Value, json};

type Requests = Arc<Mutex<Vec<(HeaderMap, Value)>>>;
type Answers = Arc<Mutex<VecDeque<(StatusCode, Value)>>>;

async fn server(answers: Vec<(u16, Value)>) -> (String, Requests) {
    let answers = answers.into_iter().map(|(status, body)| (StatusCode::from_u16(status).unwrap(), body));
    let (requests, answers): (Requests, Answers) = (Requests::default(), Arc::new(Mutex::new(answers.collect())));
    let routes = Router::new().route("/v1/events", post(answer)).with_state((requests.clone(), answers));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    (url, requests)
}

async fn answer(
    State((requests, answers)): State<(Requests, Answers)>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    requests.lock().unwrap().push((headers, body));
    let (status, body) = answers.lock().unwrap().pop_front().unwrap();
    (status, [("retry-after", "0")], Json(body)).into_response()
}

fn event(id: &str) -> Event {
    Event::new("order", "OrderPlaced", &json!({ "order_id": id })).unwrap().id(id)
}

#[tokio::test]
async fn what_is_busy_or_away_is_asked_again_with_the_same_events() {
    let good = json!({ "events": [{ "id": "a", "entry": "3-1", "duplicate": true }] });
    let busy = json!({ "error": "busy", "kind": "too-many" });
    let (url, requests) = server(vec![(429, busy.clone()), (503, busy), (200, good)]).await;
    let client = Client::builder(&url).token("secret").build().unwrap();
    let published = client.publish(vec![event("a").version(2).header("h", "1").backfill()]).await.unwrap();
    assert_eq!((published[0].entry.as_str(), published[0].duplicate), ("3-1", true));
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    let sent = json!([{ "category": "order", "type": "OrderPlaced", "id": "a", "version": 2, "headers": { "h": "1" },
        "lane": "backfill", "data": { "order_id": "a" } }]);
    for (headers, body) in &*requests {
        assert_eq!((&headers["authorization"], body), (&"Bearer secret".parse().unwrap(), &sent));
    }
}

#[tokio::test]
async fn what_asking_again_does_not_help_is_told_at_once() {
    let refused = json!({ "error": "1 of 2", "kind": "refused", "events": [{ "id": "a" }, { "error": "no client" }] });
    let (url, requests) = server(vec![
        (422, refused),
        (401, json!({ "error": "a token is needed" })),
        (500, json!("rubbish")),
        (503, json!({ "error": "away" })),
        (503, json!({ "error": "away" })),
    ])
    .await;
    let client = Client::builder(&url).tries_max(2).build().unwrap();
    let two = || client.publish(vec![event("a"), event("b")]);
    match two().await.unwrap_err() {
        Error::Refused { events, .. } => assert_eq!(events, [Refusal { index: 1, error: "no client".into() }]),
        other => panic!("{other:?}"),
    }
    assert!(matches!(two().await.unwrap_err(), Error::NotAllowed(text) if text == "a token is needed"));
    assert!(matches!(two().await.unwrap_err(), Error::Failed(_)));
    assert!(matches!(two().await.unwrap_err(), Error::Unavailable(text) if text == "away"));
    assert_eq!(requests.lock().unwrap().len(), 5);
    assert!(client.publish(vec![]).await.unwrap().is_empty());
}

#[tokio::test]
async fn wrong_use_is_told_before_anything_is_sent() {
    assert!(matches!(Event::new("order", "X", &[1]).unwrap_err(), Error::Data(_)));
    assert!(matches!(Client::builder("nowhere").build().unwrap_err(), Error::Setup(_)));
    assert!(matches!(Client::builder("http://h").token("a\nb").build().unwrap_err(), Error::Setup(_)));
    let nobody = Client::builder("http://127.0.0.1:1").tries_max(1).build().unwrap();
    assert!(matches!(nobody.publish(vec![event("a")]).await.unwrap_err(), Error::Unavailable(_)));
}
