//! What `keyrail deploy` shows while it waits: a line for each change.

use std::collections::BTreeMap;

use anyhow::Result;
use keyrail::service::{DeployRequest, HostState, Proposed, Rollout, RolloutState};
use keyrail_broker::ModuleInfo;
use keyrail_ordering::OwnerId;

use super::super::failure::one_line;
use super::super::numbers::{count, grouped};
use super::{Step, json_line, line, state_text};

pub(super) struct Progress {
    json: bool,
    /// What was shown of each host.
    shown: BTreeMap<OwnerId, HostState>,
    last: Option<Rollout>,
}

impl Progress {
    pub(super) fn new(json: bool) -> Self {
        Self { json, shown: BTreeMap::new(), last: None }
    }

    pub(super) fn checked(&self, info: &ModuleInfo, warnings: &[String]) -> Result<()> {
        let (handler, version) = (info.metadata.name.as_str(), one_line(&info.metadata.version));
        if self.json {
            let (content_hash, size_bytes) = (info.content_hash.as_str(), info.size_bytes);
            return json_line(&Step::Checked { handler, version: &version, content_hash, size_bytes, warnings });
        }
        for warning in warnings {
            line(&format!("warning: {}", one_line(warning)))?;
        }
        let kilobytes = grouped(info.size_bytes.div_ceil(1_000));
        line(&format!(
            "{handler} {version}: checked, {kilobytes} kB, sha256 {}",
            &info.content_hash[..12.min(info.content_hash.len())]
        ))
    }

    pub(super) fn would_be(&self, proposed: &Proposed) -> Result<()> {
        if self.json {
            return json_line(&Step::Proposed(proposed));
        }
        line(&format!(
            "it would be deployed as revision {}; {}; nothing was changed",
            proposed.revision,
            serving(proposed)
        ))
    }

    pub(super) fn proposed(&self, proposed: &Proposed) -> Result<()> {
        if self.json {
            return json_line(&Step::Proposed(proposed));
        }
        line(&format!("revision {}: stored; {}", proposed.revision, serving(proposed)))
    }

    pub(super) fn hosts(&mut self, rollout: &Rollout) -> Result<()> {
        if self.json {
            if self.last.as_ref() != Some(rollout) {
                self.last = Some(rollout.clone());
                json_line(&Step::Rollout(rollout))?;
            }
            return Ok(());
        }
        for host in &rollout.hosts {
            if self.shown.get(&host.host) != Some(&host.state) {
                if host.state != HostState::Waiting {
                    line(&format!("  {} {}", host.host, state_text(&host.state)))?;
                }
                self.shown.insert(host.host.clone(), host.state.clone());
            }
        }
        Ok(())
    }

    pub(super) fn ended(&self, rollout: &Rollout, request: &DeployRequest) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let name = format!("{} {}", rollout.handler, one_line(&rollout.version));
        let swapped = rollout.hosts.iter().filter(|host| host.state == HostState::Serving).count() as u64;
        let hosts = count(rollout.hosts.len() as u64, "host");
        match &rollout.state {
            RolloutState::Serving if rollout.hosts.is_empty() => {
                line(&format!("{name} is deployed; no host is up: those that start will serve it, with keyrail run"))
            }
            RolloutState::Serving => line(&format!("{name} serves on {swapped} of {hosts}")),
            RolloutState::Canary => {
                let keys = request.canary.as_ref().map(ToString::to_string).unwrap_or_default();
                line(&format!(
                    "{name} serves {keys} on {swapped} of {hosts}, and is taken back by itself if one of its keys halts; go on with \
                     keyrail promote {0}, or back with keyrail rollback {0} --reason TEXT",
                    rollout.handler
                ))
            }
            // The error says it.
            RolloutState::Loading | RolloutState::Withdrawn(_) => Ok(()),
        }
    }
}

fn serving(proposed: &Proposed) -> String {
    match &proposed.serving {
        Some(version) => format!("{version} serves until it is ready everywhere"),
        None => "nothing is deployed of this handler yet".into(),
    }
}
