//! The overview as what the metrics of the fleet are taken from.

use async_trait::async_trait;
use keyrail_ordering::Role;

use super::Service;
use super::overview::{CategoryOverview, GroupOverview, Overview};
use crate::telemetry::metrics::{Fleet, FleetCategory, FleetGroup, FleetView};

#[async_trait]
impl FleetView for Service {
    async fn look(&self) -> Result<Fleet, String> {
        let live = self.live().await.map_err(|error| error.to_string())?;
        Ok(Fleet::from(&live.overview))
    }
}

impl From<&Overview> for Fleet {
    fn from(overview: &Overview) -> Self {
        Self {
            hosts: overview.hosts.len() as u64,
            halted: overview.halted,
            outbox: overview.outbox.records,
            abandoned: overview.outbox.abandoned,
            categories: overview.categories.iter().map(FleetCategory::from).collect(),
        }
    }
}

impl From<&CategoryOverview> for FleetCategory {
    fn from(category: &CategoryOverview) -> Self {
        Self {
            category: category.category.to_string(),
            published: category.published,
            keys: category.keys,
            paused: category.paused,
            groups: category.groups.iter().map(FleetGroup::from).collect(),
        }
    }
}

impl From<&GroupOverview> for FleetGroup {
    fn from(group: &GroupOverview) -> Self {
        let role = match group.role {
            Role::EventHandler => "event-handler",
            Role::CommandHandler => "command-handler",
            Role::ProcessManager => "process-manager",
        };
        Self {
            group: group.group.to_string(),
            role: role.into(),
            ready: group.ready,
            halted: group.halted,
            lag: group.lag.map(|lag| (lag.events, lag.oldest_ms)),
        }
    }
}
