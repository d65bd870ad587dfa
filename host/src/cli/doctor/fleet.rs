//! What the fleet as a whole shows: releases, how long events wait, dead letters.

use std::collections::BTreeSet;

use keyrail::access::Access;
use keyrail::service::Overview;

use super::super::numbers::{count, grouped};
use super::super::text;
use super::Finding;
use super::checks::unusable;

/// A key that is busier has little room left.
const HOT_WARN_PERCENT: u16 = 80;
/// An event that waits longer deserves a look.
const WAITING_WARN_MS: u64 = 60_000;

pub(super) async fn all(access: &Access) -> Vec<Finding> {
    let mut findings = match access.overview().await {
        Ok(overview) => vec![releases(&overview), waiting(&overview), hot_key(&overview)],
        Err(error) => vec![unusable("fleet", &error)],
    };
    findings.push(dead_letters(access).await);
    findings
}

/// Two releases side by side are for the time of an upgrade.
fn releases(overview: &Overview) -> Finding {
    const NAME: &str = "releases";
    let releases: BTreeSet<&str> = overview.hosts.iter().map(|host| host.release.as_str()).collect();
    let shown = releases.iter().copied().collect::<Vec<_>>().join(", ");
    match releases.len() {
        0 => Finding::ok(NAME, format!("no host is up; this is {}", overview.release)),
        1 => Finding::ok(NAME, format!("all hosts run {shown}")),
        _ => Finding::warning(
            NAME,
            format!("the hosts run different releases: {shown}"),
            "end the upgrade: replace the older hosts; keyrail members says which they are",
        ),
    }
}

/// How long the oldest event has waited. What is paused waits on purpose.
fn waiting(overview: &Overview) -> Finding {
    const NAME: &str = "waiting";
    let lags = overview
        .categories
        .iter()
        .filter(|category| !category.paused)
        .flat_map(|category| category.groups.iter().filter_map(move |group| Some((category, group, group.lag?))));
    let events: u64 = lags.clone().map(|(.., lag)| lag.events).sum();
    let about = if lags.clone().all(|(.., lag)| lag.exact) { "" } else { "about " };
    let Some((category, group, lag)) = lags.max_by_key(|(.., lag)| lag.oldest_ms) else {
        return Finding::ok(NAME, "nothing");
    };
    match lag.oldest_ms {
        Some(oldest_ms) if oldest_ms > WAITING_WARN_MS => Finding::warning(
            NAME,
            format!(
                "{about}{}; the oldest, of {} for {}, for {} s",
                count(events, "event"),
                category.category,
                group.group,
                grouped(oldest_ms / 1_000)
            ),
            format!(
                "keyrail partitions {} --group {} --status waiting --limit 20; more hosts help if many keys wait, and \
                 keyrail halted if one stands still",
                text::word(category.category.as_str()),
                text::word(group.group.as_str())
            ),
        ),
        Some(oldest_ms) => {
            Finding::ok(NAME, format!("{about}{}, the oldest for {oldest_ms} ms", count(events, "event")))
        }
        None => Finding::ok(NAME, "nothing"),
    }
}

/// A key runs one event at a time, so one that is busy all the time cannot go faster, however many hosts there are.
fn hot_key(overview: &Overview) -> Finding {
    const NAME: &str = "hot keys";
    let Some(hottest) = overview.hot_keys.first() else { return Finding::ok(NAME, "none") };
    let percent = hottest.share.percent();
    let category = hottest.category.as_ref().map(|category| format!("{category}/")).unwrap_or_default();
    let found = format!("{category}{} of {} is busy {percent} % of the time", hottest.key, hottest.group);
    if percent <= HOT_WARN_PERCENT {
        return Finding::ok(NAME, found);
    }
    Finding::warning(NAME, found, "make its handler quicker, or partition the category by a field that has more values")
}

async fn dead_letters(access: &Access) -> Finding {
    const NAME: &str = "dead letters";
    let mut cursor = None;
    let found = loop {
        match access.dead_letters(None, None, cursor.as_deref()).await {
            // There may be some of the next category.
            Ok(page) if page.rows.is_empty() && page.next.is_some() => cursor = page.next,
            found => break found,
        }
    };
    match found {
        Ok(page) if page.rows.is_empty() => Finding::ok(NAME, "none"),
        Ok(page) => {
            let more = if page.next.is_some() { " or more" } else { "" };
            let found = format!("{}{more} set aside", count(page.rows.len() as u64, "event"));
            Finding::warning(NAME, found, "keyrail dlq list: publish them again, or drop them")
        }
        Err(error) => unusable(NAME, &error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Outcome;
    use super::*;
    use serde_json::json;

    fn overview(releases: &[&str], oldest_ms: Option<u64>, paused: bool) -> Overview {
        let hosts: Vec<_> = releases
            .iter()
            .map(|release| {
                json!({
                    "owner": format!("h-{release}"), "groups": ["billing"], "capacity": 1, "owned": 0, "running": 0,
                    "settled": 0, "release": release, "leaving": false, "held": []
                })
            })
            .collect();
        serde_json::from_value(json!({
            "at": "2026-11-30T14:00:00.000Z", "broker": "x", "release": "0.1.0", "hosts": hosts, "halted": 0,
            "outbox": {"records": 0, "abandoned": 0},
            "categories": [{
                "category": "order", "key_field": "client", "published": 1, "keys": 1, "paused": paused,
                "groups": [{
                    "group": "billing", "role": "event-handler", "ready": 1, "halted": 0, "settled": 0,
                    "lag": {"events": 7, "exact": true, "oldest_ms": oldest_ms}
                }]
            }]
        }))
        .unwrap()
    }

    #[test]
    fn what_should_be_looked_at_is_a_warning() {
        assert_eq!(releases(&overview(&[], None, false)).outcome, Outcome::Ok);
        assert_eq!(releases(&overview(&["0.1.0", "0.1.0"], None, false)).outcome, Outcome::Ok);
        let two = releases(&overview(&["0.2.0", "0.1.0"], None, false));
        assert!(two.outcome == Outcome::Warning && two.found.contains("0.1.0, 0.2.0"), "{two:?}");
        assert_eq!(waiting(&overview(&[], None, false)).outcome, Outcome::Ok);
        assert_eq!(waiting(&overview(&[], Some(59_000), false)).outcome, Outcome::Ok);
        let long = waiting(&overview(&[], Some(61_000), false));
        assert!(long.outcome == Outcome::Warning && long.found.contains("7 events") && long.found.contains("61 s"));
        assert_eq!(waiting(&overview(&[], Some(61_000), true)).outcome, Outcome::Ok, "on purpose");
        let hot = |share: f64| {
            let keys = json!([{"group": "billing", "category": "order", "key": "k1", "share": share}]);
            let hot_keys = serde_json::from_value(keys).unwrap();
            hot_key(&Overview { hot_keys, ..overview(&[], None, false) })
        };
        assert_eq!(hot_key(&overview(&[], None, false)).outcome, Outcome::Ok);
        assert_eq!(hot(0.8).outcome, Outcome::Ok);
        let busy = hot(0.93);
        assert!(
            busy.outcome == Outcome::Warning && busy.found.contains("order/k1 of billing is busy 93 %"),
            "{busy:?}"
        );
    }
}
