//! What is shown: two looks at the fleet, and what the time between them makes of their totals.

use jiff::Timestamp;
use keyrail::access::{Access, AccessError};
use keyrail::service::{CategoryOverview, GroupOverview, HaltedRow, Overview};
use serde::Serialize;

/// One look.
pub(super) struct Look {
    pub(super) overview: Overview,
    /// The first page.
    pub(super) halted: Vec<HaltedRow>,
}

impl Look {
    pub(super) async fn take(access: &Access) -> Result<Self, AccessError> {
        let overview = access.overview().await?;
        let halted = match overview.halted {
            0 => vec![],
            _ => access.halted(None, None, None).await?.rows,
        };
        Ok(Self { overview, halted })
    }

    fn at(&self) -> Option<Timestamp> {
        self.overview.at.parse().ok()
    }
}

/// A handler on a category, with what it does a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Flow<'a> {
    pub(super) category: &'a str,
    /// None for a category that no handler reads.
    pub(super) group: Option<&'a str>,
    pub(super) published_per_s: Option<f64>,
    pub(super) settled_per_s: Option<f64>,
    #[serde(skip)]
    pub(super) of: (&'a CategoryOverview, Option<&'a GroupOverview>),
}

/// A line for each category and handler.
pub(super) fn flows<'a>(now: &'a Look, before: Option<&Look>) -> Vec<Flow<'a>> {
    let seconds = before.and_then(|before| {
        let passed = now.at()?.duration_since(before.at()?);
        (passed.as_secs_f64() > 0.0).then(|| passed.as_secs_f64())
    });
    // A total that shrank was begun anew: a host went, or a handler was loaded again.
    let rate = |old: Option<u64>, new: Option<u64>| {
        let grown = new?.checked_sub(old.unwrap_or(0))?;
        Some(grown as f64 / seconds?)
    };
    let mut flows = vec![];
    for category in &now.overview.categories {
        let old = before.and_then(|it| it.overview.categories.iter().find(|old| old.category == category.category));
        let published_per_s = old.and_then(|old| rate(old.published, category.published));
        let flow = |group: Option<&'a GroupOverview>| {
            let old = group.and_then(|group| old?.groups.iter().find(|old| old.group == group.group));
            Flow {
                category: category.category.as_str(),
                group: group.map(|group| group.group.as_str()),
                published_per_s,
                settled_per_s: group.zip(old).and_then(|(new, old)| rate(Some(old.settled), Some(new.settled))),
                of: (category, group),
            }
        };
        if category.groups.is_empty() {
            flows.push(flow(None));
        }
        flows.extend(category.groups.iter().map(|group| flow(Some(group))));
    }
    flows
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    pub(crate) fn look(at: &str, published: u64, settled: u64) -> Look {
        let overview = json!({
            "at": at, "broker": "redis://10.0.0.5:6379/0", "release": "0.1.0", "halted": 1, "dead_letters": 2,
            "hosts": [{
                "owner": "host-1", "groups": ["billing"], "capacity": 256, "owned": 17, "running": 3,
                "settled": settled, "release": "0.1.0", "leaving": false, "held": []
            }],
            "outbox": {"records": 0, "abandoned": 0},
            "categories": [
                {
                    "category": "order", "key_field": "client", "published": published, "keys": 100_000,
                    "paused": false, "groups": [{
                        "group": "billing", "role": "event-handler", "ready": 12, "halted": 1, "settled": settled,
                        "lag": {"events": 5_000, "exact": false, "oldest_ms": 65_000}
                    }]
                },
                {"category": "unread", "key_field": null, "published": null, "keys": 0, "paused": true, "groups": []}
            ]
        });
        let halted = json!([{
            "group": "billing", "key": "it's k1", "category": "order", "head": "3-41", "cause": "poison", "attempts": 5,
            "error": "too\u{1b}[31m sour", "handler_version": "1.0"
        }]);
        Look { overview: serde_json::from_value(overview).unwrap(), halted: serde_json::from_value(halted).unwrap() }
    }

    #[test]
    fn rates_are_what_the_totals_grew_by() {
        let before = look("2026-11-30T14:00:00.000Z", 1_000, 900);
        let now = look("2026-11-30T14:00:02.000Z", 1_500, 800);
        let flows = flows(&now, Some(&before));
        assert_eq!(flows[0].published_per_s, Some(250.0));
        assert_eq!(flows[0].settled_per_s, None, "it shrank: a host went");
        assert_eq!((flows[1].group, flows[1].published_per_s), (None, None));
        assert_eq!(super::flows(&now, None)[0].published_per_s, None);
        assert_eq!(super::flows(&now, Some(&now))[0].published_per_s, None, "no time has passed");
    }
}
