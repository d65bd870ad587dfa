//! What is looked through: the sources of everything that is served, which changes while the host runs.

use keyrail_broker::{Bells, ReadySource};
use keyrail_ordering::PartitionSpec;
use tracing::warn;

use super::{Discovery, Sweep};

impl Discovery {
    /// What is served may have changed: listens for what is new, gives up what is gone.
    pub(super) async fn refresh_sources(&mut self, bells: &mut Bells) {
        for holding in self.shared.holdings.all() {
            if holding.lease().is_some_and(|lease| self.outdated(&lease.partition).is_some()) {
                holding.drain();
            }
        }
        let sources = self.shared.sources();
        if sources == self.sources {
            return;
        }
        match self.shared.broker.bells(sources.clone()).await {
            Ok(listening) => *bells = listening,
            Err(error) => {
                // The next look tries again.
                self.shared.metrics().broker_failed(&error);
                warn!(%error, "bells of new handlers cannot be heard");
                return;
            }
        }
        self.set_sources(sources);
        self.shared.announce_now.notify_one();
    }

    /// What a partition spans now, if that is not what it spanned when it was acquired: its handler reads other categories.
    pub(super) fn outdated(&self, spec: &PartitionSpec) -> Option<PartitionSpec> {
        let source = self.sources.iter().find(|source| match source {
            ReadySource::ProcessManager { group } => *group == spec.id.group,
            _ => false,
        })?;
        self.spec_of(source, spec.id.key().clone()).filter(|present| present != spec)
    }

    pub(super) fn set_sources(&mut self, sources: Vec<ReadySource>) {
        self.sweeps.retain(|sweep| sources.contains(&sweep.source));
        for source in sources.iter().filter(|source| !matches!(source, ReadySource::Shared { .. })) {
            if !self.sweeps.iter().any(|sweep| sweep.source == *source) {
                self.sweeps.push(Sweep::new(source.clone()));
            }
        }
        self.shared.prepare_metrics();
        self.pools.set(&self.shared, &sources);
        self.sources = sources;
        let served = self.shared.served.groups();
        self.candidates.retain(|spec| served.contains(&spec.id.group));
        self.queued = self.candidates.iter().map(|spec| spec.id.clone()).collect();
        for holding in self.shared.holdings.all() {
            if holding.lease().is_some_and(|lease| !served.contains(&lease.partition.id.group)) {
                holding.drain();
            }
        }
    }
}
