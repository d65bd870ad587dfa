//! Renews leases and announces this member, on a thread and a connection of its own: neither a busy guest nor a slow read
//! delays it.
//!
//! A holding whose worker hangs is not renewed. A renewal that was refused ends the holding at once; one that was not
//! answered changes nothing, and the local deadline decides.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use keyrail_broker::Heartbeat;
use keyrail_ordering::Membership;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::holdings::Holding;
use super::machine::Apart;
use super::shared::Shared;
use crate::telemetry::hot_keys::HotKeys;
use crate::telemetry::metrics::LossCause;

pub(super) struct HeartbeatThread {
    stop: CancellationToken,
    thread: Apart,
}

impl HeartbeatThread {
    pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let (stopped, beating) = (stop.clone(), shared.clone());
        let task = Box::pin(async move { beat(&beating, &stopped).await });
        Ok(Self { stop, thread: shared.machine.run_apart("keyrail-heartbeat", task)? })
    }

    /// Ends the thread and waits for it; a call under way is dropped.
    pub(super) fn stop(&mut self) {
        self.stop.cancel();
        if !self.thread.join() {
            error!("the heartbeat had panicked");
        }
    }
}

impl Drop for HeartbeatThread {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn beat(shared: &Shared, stop: &CancellationToken) {
    let mut heartbeat = shared.broker.heartbeat();
    let mut hot_keys = HotKeys::default();
    let interval = Duration::from_millis(shared.config.heartbeat_interval_ms);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
            () = shared.announce_now.notified() => {}
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = beat_once(shared, heartbeat.as_mut(), &mut hot_keys) => {}
        }
    }
}

async fn beat_once(shared: &Shared, heartbeat: &mut dyn Heartbeat, hot_keys: &mut HotKeys) {
    let holdings: Vec<_> = shared.holdings.all().into_iter().filter(|holding| wants_renewal(shared, holding)).collect();
    look_for_hot_keys(shared, &holdings, hot_keys);
    for chunk in holdings.chunks(shared.config.renew_batch_max) {
        renew(shared, heartbeat, chunk).await;
    }
    announce(shared, heartbeat).await;
}

fn wants_renewal(shared: &Shared, holding: &Holding) -> bool {
    let Some(lease) = holding.lease() else { return false };
    if holding.is_lost() {
        return false;
    }
    let hangs = holding.hangs(shared.machine.now_ms());
    if hangs {
        error!(partition = %lease.partition.id, "the worker hangs: its lease is not renewed");
        // Counted here and by the worker not: perhaps it never ends.
        if let Some(metrics) = shared.metrics().of_partition(&lease.partition) {
            metrics.lost(LossCause::Hung);
        }
        holding.lose(LossCause::Hung);
    }
    !hangs
}

/// Which keys are busy most of the time: told to the others with the next announcement.
fn look_for_hot_keys(shared: &Shared, holdings: &[Arc<Holding>], hot_keys: &mut HotKeys) {
    let (now_ms, now_ns) = (shared.machine.now_ms(), shared.machine.now_ns());
    let owned = holdings.iter().filter_map(|holding| Some((holding.lease()?, holding.busy.total_ns(now_ns))));
    let hot = hot_keys.look(now_ms, owned);
    for key in hot_keys.warnings(now_ms, &hot) {
        let category = key.category.as_ref().map(|category| format!("{category}/")).unwrap_or_default();
        warn!(
            handler = %key.group, key = %key.key,
            "{category}{} keeps {} busy {} % of the time, and more hosts cannot help: split the key, or make the handler \
             faster; see docs/operating/alerts.md, hot key",
            key.key, key.group, key.share.percent()
        );
    }
    shared.set_hot(hot);
}

async fn renew(shared: &Shared, heartbeat: &mut dyn Heartbeat, holdings: &[Arc<Holding>]) {
    let leases: Vec<_> = holdings.iter().filter_map(|holding| holding.lease().cloned()).collect();
    let ttl_ms = shared.config.lease_ttl_ms;
    let sent_ms = shared.machine.now_ms();
    match heartbeat.renew(&leases, ttl_ms).await {
        Ok(held) => {
            for (holding, held) in holdings.iter().zip(held) {
                if held {
                    holding.renewed(sent_ms + ttl_ms);
                } else {
                    // Quiet: a lease that was just released is refused as well.
                    holding.lose(LossCause::NotRenewed);
                }
            }
        }
        Err(error) => {
            shared.metrics().broker_failed(&error);
            warn!(%error, leases = leases.len(), "leases could not be renewed");
        }
    }
}

async fn announce(shared: &Shared, heartbeat: &mut dyn Heartbeat) {
    let member = shared.member();
    match heartbeat.announce(&member, shared.config.member_ttl_ms()).await {
        Ok(members) => {
            shared.set_membership(Membership::new(members));
            shared.announced_at(shared.machine.now_ms());
        }
        Err(error) => {
            shared.metrics().broker_failed(&error);
            warn!(%error, "this host could not be announced to the others");
        }
    }
}
