//! Dashboard, alert rules and the page of metrics speak of metrics that there are.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use keyrail::telemetry::metrics::{Fleet, FleetCategory, FleetGroup, FleetSource, FleetView, Guests};
use keyrail_ordering::{CategoryName, Held, HeldState, Usage};
use keyrail_runtime::{Runtime, Settings};
use keyrail_tests::native::metadata;
use keyrail_tests::repository;

use super::stage::{Stage, no_hook};
use super::{check_format, name, parse, promtool};

/// How a rule names its chapter: `docs/operating/alerts.md` tells how this becomes a link.
const CHAPTER: &str = "docs: 'the page Alerts of Keyrail: docs/operating/alerts.md#";

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
        assert!(rules.contains(&format!("{CHAPTER}{}'\n", alert.to_lowercase())), "{alert} names no chapter");
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
