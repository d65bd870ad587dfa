//! Renews leases, on a thread and a connection of its own: neither a busy guest nor a slow read delays it.
//!
//! A holding whose worker hangs is not renewed. A renewal that was refused ends the holding at once; one that was not
//! answered changes nothing, and the local deadline decides.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use keyrail_broker::Heartbeat;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::holdings::Holding;
use super::shared::Shared;
use super::stats::count;
use crate::clock;

pub(super) struct HeartbeatThread {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl HeartbeatThread {
    pub(super) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name("keyrail-heartbeat".into())
            .spawn(move || runtime.block_on(beat(&shared, &stopped)))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the thread and waits for it; a call under way is dropped.
    pub(super) fn stop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
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
    let mut renewer = shared.broker.heartbeat();
    let interval = Duration::from_millis(shared.config.heartbeat_interval_ms);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let holdings: Vec<_> = shared.holdings.all().into_iter().filter(|holding| wants_renewal(holding)).collect();
        for chunk in holdings.chunks(shared.config.renew_batch_max) {
            tokio::select! {
                () = stop.cancelled() => return,
                () = renew(shared, renewer.as_mut(), chunk) => {}
            }
        }
    }
}

fn wants_renewal(holding: &Holding) -> bool {
    let Some(lease) = holding.lease() else { return false };
    if holding.lost.is_cancelled() {
        return false;
    }
    let hangs = holding.hangs(clock::now_ms());
    if hangs {
        error!(partition = %lease.partition.id, "the worker hangs: its lease is not renewed");
        holding.lost.cancel();
    }
    !hangs
}

async fn renew(shared: &Shared, renewer: &mut dyn Heartbeat, holdings: &[Arc<Holding>]) {
    let leases: Vec<_> = holdings.iter().filter_map(|holding| holding.lease().cloned()).collect();
    let ttl_ms = shared.config.lease_ttl_ms;
    let sent_ms = clock::now_ms();
    match renewer.renew(&leases, ttl_ms).await {
        Ok(held) => {
            for (holding, held) in holdings.iter().zip(held) {
                if held {
                    holding.renewed(sent_ms + ttl_ms);
                } else if !holding.lost.is_cancelled() {
                    // Quiet: a lease that was just released is refused as well.
                    count(&shared.stats.lost);
                    holding.lost.cancel();
                }
            }
        }
        Err(error) => warn!(%error, leases = leases.len(), "leases could not be renewed"),
    }
}
