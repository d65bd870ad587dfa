//! Rubbish for every route: whatever is sent is answered with what is wrong about it, never with a fault of the host.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::http::{Method, Request, header};
use keyrail_broker::CatalogStore;
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings};
use proptest::prelude::*;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::super::caller::Caller;
use super::super::health::{Health, Stage};
use super::{Api, router};
use crate::config::Config;
use crate::service::{Service, test_catalog};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

/// Over a broker that knows a handler and holds nothing.
static ROUTES: LazyLock<Router> = LazyLock::new(|| {
    RUNTIME.block_on(async {
        let config = Config::default();
        let broker = Arc::new(EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap());
        assert!(broker.set_catalog(&test_catalog(), 0).await.unwrap().is_some());
        let health = Health::default();
        health.enter(Stage::Serving);
        let api = Api::new(Service::new(broker, config.publish.clone()), &config, health, CancellationToken::new());
        router(Arc::new(api), &config, None).layer(Extension(Caller::Local))
    })
});

/// Method and path of every operation, from the document.
static OPERATIONS: LazyLock<Vec<(Method, String)>> = LazyLock::new(|| {
    let routes = ROUTES.clone();
    let document = RUNTIME.block_on(async {
        let request = Request::get("/openapi.json").body(Body::empty()).unwrap();
        let answer = routes.oneshot(request).await.unwrap();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()
    });
    let paths = document["paths"].as_object().unwrap().iter();
    let each = paths.flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(move |method| (method, path)));
    // It never ends.
    let each = each.filter(|(_, path)| !["/v1/live", "/v1/tail"].contains(&path.as_str()));
    each.map(|(method, path)| (method.to_uppercase().parse().unwrap(), path.clone())).collect()
});

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        any::<String>(),
        Just("order".to_string()),
        Just("retry".to_string()),
        Just("..".to_string()),
        Just("a\0b".to_string()),
        "[0-9]{1,25}-[0-9]{1,25}",
        "x{200,300}",
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        piece().prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("key"),
        Just("group"),
        Just("expect"),
        Just("by"),
        Just("who"),
        Just("reason"),
        Just("category"),
        Just("type"),
        Just("id"),
        Just("data"),
        Just("headers"),
        Just("handlers"),
        Just("module"),
        Just("canary"),
        Just("to"),
        Just("specversion"),
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name.clone().prop_map(String::from), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        json().prop_map(|json| json.to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..200),
        Just("[".repeat(10_000).into_bytes()),
    ]
}

const MEDIA: [&str; 6] = [
    "application/json",
    "application/jsonl",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "text/plain",
    "",
];

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02x}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_sent_is_answered_with_what_is_wrong_about_it(
        which in any::<prop::sample::Index>(),
        pieces in proptest::collection::vec(piece(), 8),
        names in proptest::collection::vec(prop_oneof![
            Just("key"), Just("cursor"), Just("limit"), Just("category"), Just("group"), Just("skip_bad"), Just("metadata"), Just("zz"),
        ], 0..4),
        media in prop::sample::select(&MEDIA[..]),
        body in body(),
        cloud in proptest::option::of(piece()),
    ) {
        let (method, path) = which.get(&OPERATIONS);
        RUNTIME.block_on(async {
            let mut pieces = pieces.iter();
            let mut next = || escaped(pieces.next().map_or("x", String::as_str));
            let path: Vec<_> = path.split('/').map(|part| if part.starts_with('{') { next() } else { part.into() }).collect();
            let query: Vec<_> = names.iter().map(|name| format!("{name}={}", next())).collect();
            let uri = format!("{}?{}", path.join("/"), query.join("&"));
            let mut request = Request::builder().method(method).uri(&uri).header(header::CONTENT_TYPE, media);
            if let Some(value) = cloud.as_ref().filter(|value| axum::http::HeaderValue::from_str(value).is_ok()) {
                request = request.header("ce-specversion", value).header("ce-type", value).header("traceparent", value);
            }
            let Ok(request) = request.body(Body::from(body.clone())) else { return };
            let answer = ROUTES.clone().oneshot(request).await.unwrap();
            let status = answer.status();
            assert!(status.is_success() || status.is_client_error(), "{method} {uri}: {status}");
            // All of it can be read.
            axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        });
    }
}
