//! Keeps the store small: drops what retention no longer keeps, forgets partitions that were empty and idle for a whole
//! interval, and warns when a category has more live partitions than its design should have.
//!
//! One host does it for a category, the one that rendezvous hashing names; two at once do no harm.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyrail_broker::{Error, IdleStream};
use keyrail_ordering::{CategoryName, EntryId, Key, KeyRules, PartitionId, StreamId};
use tracing::{info, warn};

use super::shared::Shared;

/// Streams that one pass remembers; the rest is found in later passes.
const REMEMBERED_MAX: usize = 100_000;

pub(super) async fn run(shared: Arc<Shared>) {
    let mut idle: BTreeMap<CategoryName, BTreeMap<StreamId, EntryId>> = BTreeMap::new();
    loop {
        let at_ms = shared.machine.now_ms() + shared.config.housekeeping_interval_ms;
        tokio::select! {
            biased;
            () = shared.stopping.cancelled() => return,
            () = shared.sleep_until(at_ms) => {}
        }
        for category in ours(&shared) {
            let before = idle.remove(&category).unwrap_or_default();
            match pass(&shared, &category, &before).await {
                Ok(now) => {
                    idle.insert(category, now);
                }
                Err(error) => {
                    shared.metrics().broker_failed(&error);
                    warn!(%error, %category, "housekeeping was cut short");
                }
            }
        }
    }
}

/// The partitioned categories that this host looks after.
fn ours(shared: &Shared) -> Vec<CategoryName> {
    let (catalog, membership) = (shared.catalog(), shared.membership());
    let Ok(key) = Key::parse("housekeeping", &KeyRules::default()) else { return vec![] };
    let mine = |category: &CategoryName, group| {
        let chosen = PartitionId::of_key(group, category.clone(), key.clone());
        membership.preferred(&chosen).is_some_and(|owner| *owner == shared.owner)
    };
    let partitioned = catalog.categories.iter().filter(|(_, entry)| entry.key_field.is_some());
    let ours = partitioned.filter(|(name, entry)| {
        // The first group that a live member serves decides who.
        let served = entry
            .groups
            .iter()
            .find(|group| membership.members().any(|member| !member.leaving && member.groups.contains(group)));
        served.is_some_and(|group| mine(name, group.clone()))
    });
    ours.map(|(name, _)| name.clone()).collect()
}

/// Looks through a category; reaps what was idle before already. Answers with what is idle now.
async fn pass(
    shared: &Shared,
    category: &CategoryName,
    before: &BTreeMap<StreamId, EntryId>,
) -> Result<BTreeMap<StreamId, EntryId>, Error> {
    let live = shared.broker.live_partitions(category).await?;
    let warn_at = shared.config.live_partitions_warn;
    if live > warn_at {
        warn!(
            %category, live,
            "category {category} has {live} live partitions, more than engine.live_partitions_warn ({warn_at}): each costs \
             memory in the broker; is its key one of a bounded set?"
        );
    }
    let (mut now, mut cursor, mut reaped) = (BTreeMap::new(), 0, 0);
    loop {
        let (page, next) = shared.broker.idle_streams(category, cursor, shared.config.discovery_batch_max).await?;
        let (old, new): (Vec<_>, Vec<_>) =
            page.into_iter().partition(|idle| before.get(&idle.stream) == Some(&idle.last));
        if !old.is_empty() {
            reaped += shared.broker.reap(&old).await?;
        }
        let room = REMEMBERED_MAX.saturating_sub(now.len());
        now.extend(new.into_iter().take(room).map(|IdleStream { stream, last }| (stream, last)));
        match next {
            Some(next) if !shared.stopping.is_cancelled() => cursor = next,
            _ => break,
        }
    }
    if reaped > 0 {
        shared.metrics().reaped.inc_by(reaped);
        info!(%category, reaped, live, "empty partitions were forgotten");
    }
    Ok(now)
}
