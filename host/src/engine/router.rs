//! Moves outbox records into their streams. Every host runs one; the broker's step pops and publishes at once, so any
//! number of them keep the order of commit.

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

use super::shared::Shared;

/// Routes when a commit of this host had emits, and now and then what a host that died left.
pub(super) async fn run(shared: Arc<Shared>) {
    let sweep = Duration::from_millis(shared.config.sweep_interval_ms);
    loop {
        let more = step(&shared).await;
        if more {
            continue;
        }
        tokio::select! {
            biased;
            () = shared.outbox_bell.notified() => {}
            () = tokio::time::sleep(sweep) => {}
        }
    }
}

/// Whether there is more to do at once.
async fn step(shared: &Shared) -> bool {
    match shared.broker.route(shared.config.route_batch_max, shared.config.dedupe_window_ms).await {
        Ok(routed) => {
            shared.metrics().routed.inc_by(routed.published as u64);
            shared.metrics().abandoned.inc_by(routed.abandoned.len() as u64);
            for reason in &routed.abandoned {
                error!(reason, "an emitted event cannot be published and was set aside");
            }
            routed.more
        }
        Err(error) => {
            shared.metrics().broker_failed(&error);
            warn!(%error, "the outbox could not be routed");
            false
        }
    }
}
