//! Publishing and registering, directly and through a host's socket, on a broker that goes wrong as planned.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{Catalog, Metadata, SequentialBy};
use tokio::sync::mpsc;

use super::fake::{FakeBroker, Fault};
use super::line::tests::{catalog, metadata};
use super::*;
use crate::access::{Access, AccessError};
use crate::api::{Client, Health, Server};
use crate::config::{ApiConfig, ClientConfig, Config, HttpConfig, PublishConfig};

fn quick() -> PublishConfig {
    PublishConfig { batch_max: 7, in_flight_max: 4, retry_base_ms: 1, retry_cap_ms: 1, ..PublishConfig::default() }
}

/// A broker with the handler `billing`, and every way to it.
struct Stage {
    broker: Arc<FakeBroker>,
    ways: Vec<Access>,
    _server: Server,
    _folder: tempfile::TempDir,
}

async fn stage(config: PublishConfig) -> Stage {
    let broker = FakeBroker::new(catalog());
    let service = Service::new(broker.clone(), config.clone());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.sock");
    let api = ApiConfig { chunk_max_bytes: 2_000, ..ApiConfig::default() };
    let http = HttpConfig { listen: "127.0.0.1:0".into(), ..HttpConfig::default() };
    let host = Config { api: api.clone(), http, publish: config.clone(), ..Config::default() };
    let server = Server::start(service.clone(), Some(&path), &host, Health::default()).await.unwrap();
    let socket = Client::new(&path, &api, &config).unwrap();
    let tcp = Client::at_url(&server.url().unwrap(), &ClientConfig::default(), &api, &config).unwrap();
    let ways = vec![Access::Direct(service), Access::Host(socket), Access::Host(tcp)];
    Stage { broker, ways, _server: server, _folder: folder }
}

fn event(id: &str, key: &str) -> String {
    format!(r#"{{"id":"{id}","category":"order","type":"OrderPlaced","data":{{"client":"{key}"}}}}"#)
}

/// `count` events over `keys` keys, ids `{prefix}-{n}`.
fn events(prefix: &str, count: usize, keys: usize) -> String {
    (0..count).map(|n| event(&format!("{prefix}-{n}"), &format!("k{}", n % keys)) + "\n").collect()
}

async fn publish(access: &Access, text: &str, options: PublishOptions) -> (Outcome, Vec<String>) {
    let (lines, input) = mpsc::channel(4);
    let (reports, mut told) = mpsc::channel(4);
    let chunks: Vec<_> = text.as_bytes().chunks(1_000).map(Bytes::copy_from_slice).collect();
    let feed = async move {
        let mut splitter = LineSplitter::new(1, PublishConfig::default().line_max_bytes);
        for chunk in chunks {
            if lines.send(splitter.push(&chunk)).await.is_err() {
                return;
            }
        }
        let _ = lines.send(splitter.finish().into_iter().collect()).await;
    };
    let listen = async {
        let mut bad = vec![];
        while let Some(report) = told.recv().await {
            if let Report::Bad { line, reason } = report {
                let LineText::Whole(text) = line.text else { panic!("too long") };
                bad.push(format!("{}: {reason} in {}", line.number, String::from_utf8_lossy(&text)));
            }
        }
        bad
    };
    let (outcome, (), bad) = tokio::join!(access.publish(input, options, reports), feed, listen);
    (outcome, bad)
}

fn assert_order(broker: &FakeBroker, prefix: &str, count: usize, keys: usize) {
    for key in 0..keys {
        let expected: Vec<_> = (key..count).step_by(keys).map(|n| format!("{prefix}-{n}")).collect();
        let found = broker.stream(&format!("k{key}"));
        let found: Vec<_> = found.into_iter().filter(|id| id.starts_with(&format!("{prefix}-"))).collect();
        assert_eq!(found, expected, "key k{key}");
    }
}

#[tokio::test]
async fn events_of_a_key_stay_in_order_whatever_fails() {
    let stage = stage(quick()).await;
    for (way, access) in stage.ways.iter().enumerate() {
        let prefix = format!("w{way}");
        let faults = [Fault::None, Fault::AnswerLost, Fault::NotArrived, Fault::None, Fault::NotArrived];
        stage.broker.plan(faults.into_iter().cycle().take(60));
        let (outcome, _) = publish(access, &events(&prefix, 1_000, 13), PublishOptions::default()).await;
        assert_eq!(outcome.stop, None);
        assert_eq!(outcome.published, 1_000);
        assert_order(&stage.broker, &prefix, 1_000, 13);
    }
}

#[tokio::test]
async fn publishing_again_adds_nothing() {
    let stage = stage(quick()).await;
    for (way, access) in stage.ways.iter().enumerate() {
        let text = events(&format!("w{way}"), 100, 3);
        publish(access, &text, PublishOptions::default()).await;
        let (outcome, _) = publish(access, &text, PublishOptions::default()).await;
        assert_eq!((outcome.published, outcome.duplicates), (0, 100));
        assert_eq!(stage.broker.published(), 100 * (way + 1));
    }
    let no_dedupe = PublishOptions { no_dedupe: true, ..PublishOptions::default() };
    let (outcome, _) = publish(&stage.ways[0], &events("w0", 100, 3), no_dedupe).await;
    assert_eq!((outcome.published, outcome.duplicates), (100, 0));
}

#[tokio::test]
async fn a_bad_line_stops_after_everything_before_it() {
    let stage = stage(quick()).await;
    for (way, access) in stage.ways.iter().enumerate() {
        let prefix = format!("w{way}");
        // Empty lines count.
        let text = format!("\n{}\n{}{}", events(&prefix, 50, 3), "nonsense\n", events("never", 50, 3));
        let (outcome, _) = publish(access, &text, PublishOptions::default()).await;
        assert_eq!(outcome.published, 50);
        let stop = outcome.stop.unwrap();
        assert_eq!((stop.kind, stop.line), (StopKind::BadLine, Some(53)));
        assert_order(&stage.broker, &prefix, 50, 3);
        assert_order(&stage.broker, "never", 0, 3);
    }
}

#[tokio::test]
async fn bad_lines_are_left_out_with_their_text_on_request() {
    let stage = stage(quick()).await;
    for (way, access) in stage.ways.iter().enumerate() {
        let prefix = format!("w{way}");
        let text = format!("nonsense\n{}\n\n{}\n", events(&prefix, 100, 3), event("x", "a:b"));
        let skip = PublishOptions { skip_bad: true, ..PublishOptions::default() };
        let (outcome, bad) = publish(access, &text, skip).await;
        assert_eq!((outcome.published, outcome.skipped, outcome.stop), (100, 2, None));
        assert!(bad[0].starts_with("1: not an event") && bad[0].ends_with("in nonsense"), "{bad:?}");
        assert!(bad[1].starts_with("104: ") && bad[1].ends_with(&event("x", "a:b")), "{bad:?}");
        assert_order(&stage.broker, &prefix, 100, 3);
    }
}

#[tokio::test]
async fn a_refusal_of_the_broker_stops_and_names_the_line() {
    let stage = stage(quick()).await;
    for (way, access) in stage.ways.iter().enumerate() {
        stage.broker.plan([Fault::ThirdRefused]);
        let (outcome, _) = publish(access, &events(&format!("w{way}"), 10, 1), PublishOptions::default()).await;
        let stop = outcome.stop.unwrap();
        assert_eq!((outcome.published, stop.kind, stop.line), (2, StopKind::Refused, Some(3)));
    }
}

#[tokio::test]
async fn a_broker_that_stays_away_ends_it_and_without_ids_nothing_is_repeated() {
    let stage = stage(quick()).await;
    for (way, access) in stage.ways.iter().enumerate() {
        let text = events(&format!("w{way}"), 5, 1);
        stage.broker.plan([Fault::NotArrived; 8]);
        let (outcome, _) = publish(access, &text, PublishOptions::default()).await;
        assert_eq!(outcome.stop.unwrap().kind, StopKind::Unavailable);
        let calls = stage.broker.calls();
        stage.broker.plan([Fault::AnswerLost]);
        let no_dedupe = PublishOptions { no_dedupe: true, ..PublishOptions::default() };
        let (outcome, _) = publish(access, &text, no_dedupe).await;
        assert!(outcome.stop.unwrap().reason.contains("may or may not be published"));
        assert_eq!(stage.broker.calls(), calls + 1);
    }
}

#[tokio::test]
async fn a_catalog_that_changes_under_way_is_read_again() {
    let broker = FakeBroker::new(catalog());
    let service = Service::new(broker.clone(), quick());
    let (lines, input) = mpsc::channel(1);
    let (reports, mut told) = mpsc::channel(64);
    let split = |text: String| LineSplitter::new(1, 1_000).push(&Bytes::from(text));
    let run = tokio::spawn(async move { service.publish(input, PublishOptions::default(), reports).await });
    lines.send(split(events("a", 4, 1))).await.unwrap();
    told.recv().await.unwrap();
    // The category is emptied and partitioned anew: the old key field is stale, the new one is in the data as well.
    let mut handler = metadata("note");
    handler.handles[0].fields[1].required = true;
    broker.set(Catalog::default().register(&handler, "00", broker_capabilities()).unwrap());
    let later = |n: usize| {
        format!(r#"{{"id":"b-{n}","category":"order","type":"OrderPlaced","data":{{"client":"k0","note":"new"}}}}"#)
            + "\n"
    };
    lines.send(split((0..20).map(later).collect())).await.unwrap();
    drop(lines);
    while told.recv().await.is_some() {}
    let outcome = run.await.unwrap();
    assert_eq!((outcome.published, outcome.stop), (24, None));
    assert_eq!(broker.stream("new"), (0..20).map(|n| format!("b-{n}")).collect::<Vec<_>>());
}

fn broker_capabilities() -> keyrail_ordering::Capabilities {
    keyrail_ordering::Capabilities { stream_partitioning: true }
}

fn registration(metadata: Metadata) -> Registration {
    Registration { metadata, content_hash: "00".into() }
}

#[tokio::test]
async fn registering_is_all_or_none_and_writes_only_what_changes() {
    let stage = stage(quick()).await;
    for access in &stage.ways {
        let version = stage.broker.version();
        let same = access.register(vec![registration(metadata("client"))]).await.unwrap();
        assert_eq!((same[0].change, stage.broker.version()), (Change::Unchanged, version));

        let mut good = metadata("client");
        good.name = "other".parse().unwrap();
        let mut bad = metadata("nope");
        bad.name = "bad".parse().unwrap();
        let refused = access.register(vec![registration(good.clone()), registration(bad)]).await.unwrap_err();
        let AccessError::Refused(refused) = refused else { panic!("{refused}") };
        assert_eq!((refused[0].handler.as_str(), refused[0].reasons.len()), ("bad", 2));
        assert_eq!(stage.broker.version(), version);

        stage.broker.lose_sets(3);
        assert_eq!(access.register(vec![registration(good.clone())]).await.unwrap()[0].change, Change::New);
        good.sequential_by = SequentialBy::Unordered;
        assert_eq!(access.register(vec![registration(good)]).await.unwrap()[0].change, Change::Updated);
        stage.broker.set(catalog());
        stage.broker.lose_sets(100);
        let mut another = metadata("client");
        another.name = "another".parse().unwrap();
        assert!(access.register(vec![registration(another)]).await.unwrap_err().to_string().contains("try again"));
        stage.broker.lose_sets(0);
    }
}

#[tokio::test]
async fn unknown_names_are_told_with_the_known_ones() {
    let stage = stage(quick()).await;
    let of = |category: &str| Search { category: Some(category.into()), ..Search::default() };
    for access in &stage.ways {
        let error = access.states("itinerary", None).await.unwrap_err().to_string();
        assert_eq!(error, "no handler named \"itinerary\" is registered; there are: billing");
        let error = access.partitions(&of("a/b?c"), None, 10).await.unwrap_err().to_string();
        assert_eq!(error, "unknown category \"a/b?c\"; there are: order");
        assert!(access.partitions(&of("order"), Some("x"), 10).await.unwrap_err().to_string().contains("not a cursor"));
        assert_eq!(access.catalog().await.unwrap().catalog, catalog());
    }
}

#[tokio::test]
async fn a_dead_socket_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.sock");
    let client = Client::new(&path, &ApiConfig::default(), &quick()).unwrap();
    let access = Access::Host(client);
    let error = access.backlog().await.unwrap_err();
    assert!(matches!(&error, AccessError::Unavailable(text) if text.contains("no host answers")), "{error}");
    let (outcome, _) = publish(&access, &events("a", 3, 1), PublishOptions::default()).await;
    assert_eq!(outcome.stop.unwrap().kind, StopKind::Unavailable);
}
