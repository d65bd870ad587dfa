//! One trace over publisher, hosts, handlers and the outbox, told to a collector over its real protocol; and that no event
//! depends on it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::collector::{Collector, Told};
use keyrail_tests::host::Host;
use keyrail_tests::{guest, run, run_with_input, states, wait_until};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The publisher's span.
const ABOVE: &str = "00f067aa0ba902b7";

fn trace(n: usize) -> String {
    format!("{:032x}", 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_0000_u128 + n as u128)
}

fn traceparent(n: usize, flags: &str) -> String {
    format!("00-{}-{ABOVE}-{flags}", trace(n))
}

fn order(n: usize, headers: &Value) -> String {
    let data = json!({"order_id": format!("o{n}"), "customer": "ada", "amount_cents": 500});
    json!({"id": format!("e{n}"), "category": "order", "type": "OrderPlaced", "headers": headers, "data": data})
        .to_string()
        + "\n"
}

fn probe(key: &str, mode: &str, headers: &Value) -> String {
    let data = json!({"key": key, "mode": mode, "n": 0});
    json!({"category": "probe", "type": "Probe", "headers": headers, "data": data}).to_string() + "\n"
}

fn host(broker: &str, guests: &[&str], settings: &[&str]) -> Host {
    // What is settled is kept, so that its headers can be looked at.
    let settings = settings.iter().chain(&["retention.entries=1000"]);
    let settings: Vec<&str> = settings.flat_map(|setting| ["--set", setting]).collect();
    Host::up(broker, guests, &settings)
}

fn publish(broker: &str, lines: &str) {
    run_with_input(broker, &["publish", "-"], lines).ok();
}

fn shipped(broker: &str) -> usize {
    states(broker, "order-fulfilment").values().filter(|state| state["shipment"]["shipped"] == 1).count()
}

/// The headers of the one event of a stream.
fn headers(redis: &RedisServer, stream: &str) -> Vec<(String, String)> {
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    let entries: Vec<(String, Vec<String>)> =
        redis::cmd("XRANGE").arg(stream).arg("-").arg("+").query(&mut connection).unwrap();
    let fields = entries.first().map(|(_, fields)| fields.as_slice()).unwrap_or_default();
    let headers = fields.chunks(2).find(|pair| pair[0] == "headers").map(|pair| pair[1].as_str());
    headers.map(|headers| serde_json::from_str(headers).unwrap()).unwrap_or_default()
}

fn header(headers: &[(String, String)], name: &str) -> Option<String> {
    headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_goes_over_hosts_handlers_and_the_outbox() {
    const ORDERS: usize = 40;
    let (redis, collector, folder) = (RedisServer::start().unwrap(), Collector::start().await, TempDir::new().unwrap());
    let (broker, endpoint) = (redis.url(), format!("traces.endpoint={}", collector.endpoint()));
    let socket = folder.path().join("socket");
    let serves = format!("api.socket={}", socket.display());
    let first = host(&broker, &["order-fulfilment"], &[&endpoint, &serves]);
    let second = host(&broker, &["order-fulfilment"], &[&endpoint]);
    let lines: String = (0..ORDERS)
        .map(|n| order(n, &json!({"traceparent": traceparent(n, "01"), "tracestate": "vendor=x"})))
        .collect();
    publish(&format!("socket:{}", socket.display()), &lines);
    wait_until("all are shipped", || shipped(&broker) == ORDERS);
    assert_eq!((first.terminate(), second.terminate()), (0, 0), "what waits is sent before a host ends");
    let one = |trace: &str, name: &str| -> Told {
        let spans = collector.spans(trace, name);
        assert_eq!(spans.len(), 1, "{name} of {trace}: {spans:?}");
        spans[0].clone()
    };
    for n in 0..ORDERS {
        let trace = trace(n);
        let published = one(&trace, "publish order");
        assert_eq!((published.parent.as_str(), published.kind), (ABOVE, SpanKind::Producer));
        let mut above = published;
        for category in ["order", "payment", "shipment"] {
            let handled = one(&trace, &format!("process {category}"));
            assert_eq!((&handled.parent, handled.kind, &handled.error), (&above.id, SpanKind::Consumer, &None));
            let says = |name: &str| handled.attributes[name].as_str();
            assert_eq!(says("messaging.destination.name"), category);
            assert_eq!((says("keyrail.group"), says("keyrail.attempt")), ("order-fulfilment", "1"));
            assert!(!handled.attributes.values().any(|value| value == &format!("o{n}")), "the key: {handled:?}");
            above = handled;
        }
        let told = collector.told();
        let spans: Vec<_> = told.iter().filter(|span| span.trace == trace).collect();
        let commits: Vec<_> = spans.iter().filter(|span| span.name == "commit").collect();
        assert!(
            commits.iter().all(|commit| {
                spans.iter().any(|span| span.id == commit.parent && span.name.starts_with("process "))
            })
        );
        assert_eq!((commits.len(), spans.len()), (3, 7), "{spans:?}");
    }
    let hosts: BTreeSet<_> = collector.told().into_iter().map(|span| span.host).collect();
    assert_eq!(hosts.len(), 2, "both handled some");
    let kept = headers(&redis, "shipment:o0");
    assert_eq!(header(&kept, "tracestate").as_deref(), Some("vendor=x"), "{kept:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_try_is_a_span_and_log_lines_name_event_and_trace() {
    let (redis, collector) = (RedisServer::start().unwrap(), Collector::start().await);
    let (broker, endpoint) = (redis.url(), format!("traces.endpoint={}", collector.endpoint()));
    let settings = [&endpoint, "log.format=json", "engine.retry.backoff_base_ms=10", "traces.with_keys=true"];
    let host = host(&broker, &["probe"], &settings);
    let lines = [("flaky", "flaky", 0), ("logs", "log-flood", 1)];
    let lines = lines.map(|(key, mode, n)| probe(key, mode, &json!({"traceparent": traceparent(n, "01")})));
    publish(&broker, &lines.concat());
    let tries = || {
        let mut tries = collector.spans(&trace(0), "process probe");
        tries.sort_by_key(|span| span.attributes["keyrail.attempt"].clone());
        tries
    };
    wait_until("both tries were told", || tries().len() == 2);
    let [failed, done] = &tries()[..] else { unreachable!("two") };
    assert_eq!((failed.parent.as_str(), done.parent.as_str()), (ABOVE, ABOVE));
    assert!(failed.error.as_ref().is_some_and(|error| error.contains("asked to be flaky")), "{failed:?}");
    assert_eq!((failed.attributes["error.type"].as_str(), &done.error), ("retry", &None));
    assert_eq!(done.attributes["keyrail.key"], "flaky");
    let told = |what: &str, trace: &str| {
        let lines = host.log();
        let mut lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.any(|line| {
            line["message"].as_str().is_some_and(|message| message.contains(what))
                && line["trace_id"] == trace
                && line["event"].is_string()
        })
    };
    wait_until("the failed try is in the log, with its trace", || told("a try failed", &trace(0)));
    wait_until("the guest's lines are in the log, with their trace", || told("flood 0", &trace(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_recorded_is_handed_on_and_rubbish_is_dropped() {
    let (redis, collector) = (RedisServer::start().unwrap(), Collector::start().await);
    let (broker, endpoint) = (redis.url(), format!("traces.endpoint={}", collector.endpoint()));
    let huge = "0".repeat(1 << 20);
    let lines = [
        order(0, &json!({"traceparent": traceparent(0, "00"), "tracestate": "a=1"})),
        order(1, &json!({"traceparent": "rubbish", "tracestate": "a=1"})),
        order(2, &json!({"traceparent": huge})),
        order(3, &json!({})),
    ];
    // A collector, and nothing that begins a trace: what is decided here is told to whoever comes after.
    let traced = host(&broker, &["order-fulfilment"], &[&endpoint, "traces.sample_ratio=0"]);
    publish(&broker, &lines.concat());
    wait_until("all are shipped", || shipped(&broker) == lines.len());
    assert_eq!(traced.terminate(), 0);
    assert_eq!(collector.told().len(), 0, "{:?}", collector.told());
    let kept = headers(&redis, "shipment:o0");
    assert_eq!(header(&kept, "traceparent"), Some(traceparent(0, "00")), "{kept:?}");
    assert_eq!(header(&kept, "tracestate").as_deref(), Some("a=1"));
    for n in 1..=3 {
        let (first, last) = (headers(&redis, &format!("payment:o{n}")), headers(&redis, &format!("shipment:o{n}")));
        let begun = header(&first, "traceparent").unwrap();
        assert!(begun.len() == 55 && begun.ends_with("-00"), "{begun}");
        assert_eq!((header(&last, "traceparent"), header(&last, "tracestate")), (Some(begun), None));
    }
    // Without a collector.
    let plain = host(&broker, &["order-fulfilment"], &[]);
    let headers_of = json!({"traceparent": traceparent(9, "01"), "tracestate": "b=2"});
    publish(&broker, &[order(4, &headers_of), order(5, &json!({"traceparent": "rubbish"}))].concat());
    wait_until("both are shipped", || shipped(&broker) == lines.len() + 2);
    let kept = headers(&redis, "shipment:o4");
    assert_eq!(header(&kept, "traceparent"), Some(traceparent(9, "01")));
    assert_eq!(header(&kept, "tracestate").as_deref(), Some("b=2"));
    assert_eq!(header(&headers(&redis, "payment:o5"), "traceparent"), None);
    drop(plain);
}

#[test]
fn a_collector_that_is_down_or_never_answers_holds_up_no_event_and_no_end() {
    // Takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in silent.incoming() {
            std::thread::spawn(move || connection.unwrap().read_to_end(&mut vec![]));
        }
    });
    // Nobody listens there, and no other test can come to.
    let gone: SocketAddr = "127.0.0.1:1".parse().unwrap();
    for (address, says) in [(address, "the last spans"), (gone, "traces cannot be sent")] {
        const ORDERS: usize = 500;
        let redis = RedisServer::start().unwrap();
        let broker = redis.url();
        let endpoint = format!("traces.endpoint=http://{address}");
        // An answer that is waited for to the end would be waited for longer than this test runs.
        let settings = [
            &endpoint,
            "traces.timeout_ms=3600000",
            "traces.flush_max_ms=300",
            "traces.queue_max=64",
            "traces.batch_max=16",
        ];
        let host = host(&broker, &["order-fulfilment"], &settings);
        let lines: String = (0..ORDERS).map(|n| order(n, &json!({"traceparent": traceparent(n, "01")}))).collect();
        publish(&broker, &lines);
        wait_until("all are shipped", || shipped(&broker) == ORDERS);
        // One that refuses is tried a few times before it is told of.
        wait_until("it is told", || address != gone || host.log().contains(says));
        host.ask_to_end();
        let log = log_at_the_end(host);
        assert!(log.contains(says), "{log}");
    }
}

/// Waits for a host to end well; what it said.
fn log_at_the_end(mut host: Host) -> String {
    host.wait_until_ended();
    let log = host.log();
    assert_eq!(host.wait(), 0, "{log}");
    log
}

#[test]
fn settings_of_traces_that_cannot_work_are_refused_in_a_line() {
    let at = |setting: &str| run("memory", &["run", "--until-idle", "--set", setting]);
    at("traces.endpoint=collector:4318").refused(2, "give the URL of a collector");
    at("traces.sample_ratio=2").refused(2, "from 0 to 1");
    at("traces.headers=authorization").refused(2, "name=value");
    assert!(Path::new(&guest("probe")).exists());
}
