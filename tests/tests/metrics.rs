//! What a host exports: that it counts what happened and no more, with bounded labels, and that dashboard, alert rules and
//! pages speak of metrics that there are.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::config::{EngineConfig, PublishConfig};
use keyrail::engine::{Engine, Handler, HandlerInstance, Surroundings};
use keyrail::service::{Registration, Service};
use keyrail::telemetry::Telemetry;
use keyrail::telemetry::metrics::{Fleet, FleetCategory, FleetGroup, FleetSource, FleetView, Guests, LABELS};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::testing::RedisServer;
use keyrail_broker::{Broker, Publication};
use keyrail_ordering::{
    CategoryName, Effects, Event, Failure, FailureKind, Held, HeldState, Key, KeyRules, Lane, MessageName, Metadata,
    OwnerId, Usage,
};
use keyrail_runtime::{Answer, Call, CallHost, InstantiateError, Runtime, Settings};
use keyrail_tests::host::Host;
use keyrail_tests::intercept::{Fate, Hook, Intercepted, Step};
use keyrail_tests::native::metadata;
use keyrail_tests::{repository, run, run_with_input, wait_until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// Whatever is waited for comes much sooner.
const DEADLINE: Duration = Duration::from_mins(1);

/// A handler that fails as its event says: keys `good…`, `flaky…` (the first try), `bad…` (always), `slow…` (waits for leave).
struct Scripted {
    metadata: Metadata,
    leave: Arc<Semaphore>,
}

#[async_trait]
impl Handler for Scripted {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(ScriptedInstance { leave: self.leave.clone() }))
    }
}

struct ScriptedInstance {
    leave: Arc<Semaphore>,
}

#[async_trait]
impl HandlerInstance for ScriptedInstance {
    async fn call(&mut self, call: &Call<'_>, _: Box<dyn CallHost>) -> Answer {
        let key = call.event.key.as_ref().map(ToString::to_string).unwrap_or_default();
        let failed = |kind| Answer::Failed(Failure { kind, error: "as told".into() });
        match key.as_str() {
            key if key.starts_with("bad") => failed(FailureKind::Rejected),
            key if key.starts_with("flaky") && call.attempt == 1 => failed(FailureKind::Trap),
            key if key.starts_with("slow") => {
                self.leave.acquire().await.unwrap().forget();
                Answer::Done(Effects::default())
            }
            _ => Answer::Done(Effects::default()),
        }
    }
    fn is_spent(&self) -> bool {
        false
    }
}

/// A Redis, an engine on it in this process, and what it exports.
struct Stage {
    redis: RedisServer,
    broker: Arc<dyn Broker>,
    engine: Engine,
    telemetry: Telemetry,
    leave: Arc<Semaphore>,
}

impl Stage {
    async fn new(hook: Hook) -> Self {
        let redis = RedisServer::start().unwrap();
        let broker: Arc<dyn Broker> =
            Arc::new(RedisBroker::connect(&redis.url(), RedisSettings::default()).await.unwrap());
        let telemetry = Telemetry::default();
        let service = Service::new(broker.clone(), PublishConfig::default());
        let names = ["ledger", "saga", "meter"];
        let registrations = names.map(|name| Registration { metadata: metadata(name), content_hash: "00".into() });
        service.register(&registrations).await.unwrap();
        let leave = Arc::new(Semaphore::new(0));
        let handler = |name| Arc::new(Scripted { metadata: metadata(name), leave: leave.clone() }) as Arc<dyn Handler>;
        let config = EngineConfig { heartbeat_interval_ms: 50, linger_ms: 0, pause_ms: 5, ..EngineConfig::default() };
        let surroundings = Surroundings { telemetry: telemetry.clone(), ..Surroundings::default() };
        let engine = Engine::start_in(
            surroundings,
            Intercepted::new(broker.clone(), hook),
            names.map(handler).to_vec(),
            &config,
            OwnerId::new("stage"),
        );
        let engine = engine.await.unwrap();
        Self { redis, broker, engine, telemetry, leave }
    }

    async fn publish(&self, category: &str, keys: &[&str]) {
        let keyed = category != "metrics";
        let publication = |(n, key): (usize, &&str)| Publication {
            event: Event {
                id: format!("{category}-{key}-{n}").into(),
                category: CategoryName::parse(category).unwrap(),
                name: MessageName::parse("Work").unwrap(),
                version: 1,
                key: keyed.then(|| Key::parse(key, &KeyRules::default()).unwrap()),
                headers: vec![],
                data: Bytes::from(format!(r#"{{"client_id":"{key}","n":{n}}}"#)),
            },
            key_field: keyed.then(|| "client_id".into()),
            lane: Lane::Primary,
            dedupe_window_ms: 0,
        };
        for published in self.broker.publish(keys.iter().enumerate().map(publication).collect()).await.unwrap() {
            published.unwrap();
        }
    }

    async fn series(&self) -> BTreeMap<String, f64> {
        parse(&self.telemetry.render().await)
    }

    /// Waits until a series has this value.
    async fn until(&self, series: &str, value: f64) {
        let waited = tokio::time::timeout(DEADLINE, async {
            while self.series().await.get(series).is_none_or(|present| (present - value).abs() > 1e-9) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(waited.await.is_ok(), "waited in vain for {series} {value}:\n{}", self.telemetry.render().await);
    }

    async fn assert(&self, series: &str, value: f64) {
        let text = self.telemetry.render().await;
        let present = parse(&text).get(series).copied();
        assert_eq!(present, Some(value), "{series} in\n{text}");
    }
}

fn no_hook() -> Hook {
    Arc::new(|_| Fate::Answered)
}

/// Each line of a page that is no comment: series and value.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap_or_else(|| panic!("not a sample: {line:?}")));
    pairs.map(|(series, value)| (series.to_string(), value.parse().unwrap())).collect()
}

/// `{name="value",…}` of a series.
fn labels(series: &str) -> Vec<(String, String)> {
    let Some((_, inside)) = series.split_once('{') else { return vec![] };
    let inside = inside.strip_suffix('}').unwrap();
    let pairs = inside.split("\",").map(|pair| pair.split_once("=\"").unwrap());
    pairs.map(|(name, value)| (name.to_string(), value.trim_end_matches('"').to_string())).collect()
}

fn name(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_is_counted_and_no_key_is_told() {
    let stage = Stage::new(no_hook()).await;
    stage.assert(r#"keyrail_halted_total{category="order",group="ledger",cause="rejected"}"#, 0.0).await;
    stage.publish("order", &["good-1", "good-1", "flaky-1", "bad-1", "bad-1"]).await;
    stage.publish("metrics", &["good-1", "good-2"]).await;
    let of = |name: &str, group: &str, category: &str, cause: &str| {
        format!(r#"keyrail_{name}{{category="{category}",group="{group}"{cause}}}"#)
    };
    let ledger = |name: &str, cause: &str| of(name, "ledger", "order", cause);
    stage.until(&ledger("settled_total", ""), 3.0).await;
    stage.until(&of("settled_total", "saga", "order", ""), 3.0).await;
    stage.until(&of("settled_total", "meter", "metrics", ""), 2.0).await;
    stage.until(&ledger("halted_total", r#",cause="rejected""#), 1.0).await;
    stage.assert(&ledger("failed_tries_total", r#",cause="trap""#), 1.0).await;
    stage.assert(&ledger("failed_tries_total", r#",cause="reject""#), 1.0).await;
    stage.assert(&ledger("retried_total", ""), 1.0).await;
    stage.assert(&ledger("commit_seconds_count", ""), 3.0).await;
    stage.assert(&ledger("handler_seconds_count", ""), 5.0).await;
    stage.until(&ledger("owned_partitions", ""), 0.0).await;
    // Three keys were each acquired once, or more often if one ran dry between two events.
    let series = stage.series().await;
    assert!(series[&ledger("acquired_total", "")] >= 3.0, "{series:?}");
    assert!(series.iter().filter(|(series, _)| name(series) == "keyrail_lost_leases_total").all(|(_, n)| *n == 0.0));
    assert!(series["keyrail_execution_slots"] > 0.0 && series["keyrail_process_resident_memory_bytes"] > 1e6);
    for series in series.keys() {
        for (label, value) in labels(series) {
            assert!(LABELS.contains(&label.as_str()) || label == "le", "{series}");
            assert!(!["good", "bad", "flaky"].iter().any(|key| value.contains(key)), "a key is told: {series}");
        }
    }
    let stats = stage.engine.stats();
    assert_eq!((stats.settled, stats.failed, stats.halted, stats.lost), (8, 4, 2, 0), "{stats:?}");
    drop(stage.redis);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_crosses_the_end_of_an_ownership_is_no_lost_lease() {
    // The heartbeat has looked at what is owned, and sends its renewals only after the lease was given back.
    let (renewals, ended) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
    let hook: Hook = {
        let (renewals, ended) = (renewals.clone(), ended.clone());
        Arc::new(move |step| {
            if step == Step::Renew {
                renewals.fetch_add(1, SeqCst);
                let start_ms = keyrail::clock::now_ms();
                // It has its own thread, which may wait.
                while !ended.load(SeqCst) && keyrail::clock::now_ms() < start_ms + DEADLINE.as_millis() as u64 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            Fate::Answered
        })
    };
    let stage = Stage::new(hook).await;
    stage.publish("order", &["slow-1"]).await;
    until("a renewal is on its way", || renewals.load(SeqCst) > 0).await;
    stage.leave.add_permits(2);
    until("all was given back", || stage.engine.stats().settled == 2 && stage.engine.stats().owned == 0).await;
    ended.store(true, SeqCst);
    // A later renewal is sent after the refused one was answered.
    stage.publish("order", &["slow-2"]).await;
    until("later renewals were sent", || renewals.load(SeqCst) > 2).await;
    assert_eq!(stage.engine.stats().lost, 0, "{:?}", stage.engine.stats());
    stage.leave.add_permits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_gone_is_counted_once_and_the_event_is_handled_again() {
    let stage = Stage::new(no_hook()).await;
    stage.publish("order", &["slow-1"]).await;
    until("both own it", || stage.engine.stats().acquired == 2).await;
    let mut redis = redis::Client::open(stage.redis.url()).unwrap().get_connection().unwrap();
    let gone: u64 = redis::cmd("DEL").arg("order:slow-1:__lease__:ledger").query(&mut redis).unwrap();
    assert_eq!(gone, 1);
    stage.until(r#"keyrail_lost_leases_total{category="order",group="ledger",cause="not-renewed"}"#, 1.0).await;
    stage.leave.add_permits(2);
    stage.until(r#"keyrail_settled_total{category="order",group="ledger"}"#, 1.0).await;
    assert_eq!(stage.engine.stats().lost, 1, "{:?}", stage.engine.stats());
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(DEADLINE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

/// A fleet as it could be, so that everything is exported that there is.
struct SomeFleet;

#[async_trait]
impl FleetView for SomeFleet {
    async fn look(&self) -> Result<Fleet, String> {
        let group = FleetGroup {
            group: "ledger".into(),
            role: "event-handler".into(),
            lag: Some((3, None)),
            ..Default::default()
        };
        let category =
            FleetCategory { category: "order".into(), published: Some(9), groups: vec![group], ..Default::default() };
        Ok(Fleet { hosts: 1, categories: vec![category], ..Fleet::default() })
    }
}

/// The names of all metrics that a host can export.
async fn exported() -> BTreeSet<String> {
    let stage = Stage::new(no_hook()).await;
    stage.telemetry.show(Arc::new(FleetSource::new(Arc::new(SomeFleet))));
    stage.telemetry.show(Arc::new(Guests(Runtime::new(Settings::default()).unwrap())));
    stage.telemetry.published().of(&CategoryName::parse("order").unwrap());
    stage.engine.handlers().tell(vec![Held {
        group: metadata("ledger").name,
        revision: None,
        version: "1".into(),
        state: HeldState::Serving,
        usage: Usage::default(),
    }]);
    stage.publish("order", &["good"]).await;
    stage.until(r#"keyrail_settled_total{category="order",group="ledger"}"#, 1.0).await;
    stage.until("keyrail_known_hosts", 1.0).await;
    let text = stage.telemetry.render().await;
    check_format(&text);
    parse(&text).keys().map(|series| name(series).to_string()).collect()
}

/// As Prometheus reads it.
fn check_format(text: &str) {
    let checked = promtool(&["check", "metrics"], text);
    assert!(checked.is_empty(), "{checked}\n{text}");
}

/// What promtool has to say; nothing if all is well.
fn promtool(args: &[&str], input: &str) -> String {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn();
    let mut child = child.expect("promtool cannot be started; install Prometheus, e.g. apt-get install prometheus");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if output.status.success() && args[..2] != ["check", "metrics"] { String::new() } else { said }
}

/// All words of a text that are names of our metrics.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.strip_prefix("keyrail_").is_some_and(|rest| !rest.is_empty()))
        .map(ToString::to_string)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_rules_and_page_speak_of_metrics_that_there_are() {
    let exported = exported().await;
    let read = |path: &str| std::fs::read_to_string(repository(path)).unwrap();
    for path in ["deploy/grafana/keyrail.json", "deploy/alerts/keyrail.yml"] {
        let unknown: Vec<_> = names_in(&read(path)).difference(&exported).cloned().collect();
        assert_eq!(unknown, Vec::<String>::new(), "{path}");
    }
    serde_json::from_str::<serde_json::Value>(&read("deploy/grafana/keyrail.json")).unwrap();
    let families = exported.iter().map(|name| {
        let suffix = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        suffix.unwrap_or(name).to_string()
    });
    assert_eq!(
        names_in(&read("docs/operating/metrics.md")),
        families.collect(),
        "the page has other metrics than a host"
    );
}

#[test]
fn the_rules_fire_when_they_should_and_each_has_its_chapter() {
    let rules = repository("deploy/alerts/keyrail.yml");
    let tests = repository("deploy/alerts/keyrail_test.yml");
    for args in [["check", "rules", rules.to_str().unwrap()], ["test", "rules", tests.to_str().unwrap()]] {
        let said = promtool(&args, "");
        assert!(said.is_empty(), "{said}");
    }
    let read = |path: &str| std::fs::read_to_string(repository(path)).unwrap();
    let (rules, tests, page) =
        (read("deploy/alerts/keyrail.yml"), read("deploy/alerts/keyrail_test.yml"), read("docs/operating/alerts.md"));
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in &alerts {
        assert!(page.contains(&format!("\n## {alert}\n")), "{alert} has no chapter");
        assert!(
            rules.contains(&format!("docs: operating/alerts.html#{}\n", alert.to_lowercase())),
            "{alert} names no chapter"
        );
        assert!(
            tests.contains(&format!("alertname: {alert} }}")) && tests.contains(&format!("alertname: {alert}\n")),
            "{alert} is not tested"
        );
    }
    let chapters = page.lines().filter_map(|line| line.strip_prefix("## "));
    assert_eq!(chapters.collect::<Vec<_>>(), alerts, "chapters in the order of the rules");
    let annotations = |name: &str| rules.matches(&format!("\n          {name}: ")).count();
    assert_eq!((annotations("summary"), annotations("action")), (alerts.len(), alerts.len()));
}

/// What a host answers to `GET PATH` on its socket: head and body.
fn get(socket: &Path, path: &str) -> (String, String) {
    let mut connection = UnixStream::connect(socket).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: keyrail\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

#[test]
fn a_host_serves_them_and_tells_its_busiest_key() {
    let (redis, folder) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
    let (broker, socket) = (redis.url(), folder.path().join("socket"));
    let serves = format!("api.socket={}", socket.display());
    let host = Host::up(&broker, &["probe"], &["--set", &serves]);
    let line = |n: u64| {
        format!(r#"{{"category":"probe","type":"Probe","data":{{"key":"busy","mode":"spin","n":{n}}}}}"#) + "\n"
    };
    let lines: String = (0..200).map(|_| line(50)).collect();
    run_with_input(&format!("socket:{}", socket.display()), &["publish", "-"], &lines).ok();
    let hot = || {
        let members = run(&broker, &["members", "--json"]).ok().out;
        let members: Vec<Value> = members.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        members[0]["hot"][0].clone()
    };
    let series = || parse(&get(&socket, "/metrics").1);
    wait_until("the busiest key is told to the others, and its share to all", || {
        let hot = hot();
        let is_told = hot["key"] == "busy" && hot["category"] == "probe" && hot["group"] == "probe";
        is_told && series()[r#"keyrail_hottest_key_share{category="probe",group="probe"}"#] > 0.0
    });
    wait_until("guest code is counted", || {
        let series = series();
        let cpu =
            series.iter().find(|(series, _)| series.starts_with("keyrail_guest_cpu_seconds_total{group=\"probe\""));
        cpu.is_some_and(|(_, seconds)| *seconds > 0.0)
    });
    let (head, body) = get(&socket, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    check_format(&body);
    let series = series();
    assert_eq!(series.get(r#"keyrail_published_total{category="probe",result="new"}"#), Some(&200.0), "{body}");
    assert!(series.contains_key("keyrail_guest_instances"), "{body}");
    assert!(!body.contains("busy"), "the key is told: {body}");
    drop(host);
}
