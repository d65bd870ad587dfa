//! Acquiring a partition: asked again when there is no answer, and a lease of our own that nobody works under is given back.

use std::sync::Arc;

use keyrail_broker::{AcquireError, Acquired, Error};
use keyrail_ordering::{Generation, Lease, OwnerId, PartitionSpec};
use tracing::{debug, warn};

use super::shared::Shared;
use super::worker::Ending;

/// How often a partition is asked for when there is no answer.
const TRIES_MAX: u32 = 4;

/// What was acquired, and until when the lease surely holds.
///
/// A call without an answer may have happened. Then nobody works under that lease: left alone it would lapse, and be counted as
/// a crash of the head. So it is asked again, and a lease of our own that turns up is given back in order.
pub(super) async fn acquire(shared: &Shared, spec: &Arc<PartitionSpec>) -> Result<(Acquired, u64), Ending> {
    let config = &shared.config;
    let mut tries = 0;
    loop {
        let sent_ms = shared.machine.now_ms();
        let take_max = config.read_ahead().first_read();
        let acquired = shared.broker.acquire(spec.clone(), &shared.owner, config.lease_ttl_ms, take_max).await;
        let error = match acquired {
            Ok(acquired) => return Ok((acquired, sent_ms + config.lease_ttl_ms)),
            Err(AcquireError::Halted(_) | AcquireError::Paused) => return Err(Ending::NotOurs),
            Err(AcquireError::Held { holder }) => {
                // Only after a call without an answer: the lease of a worker that hung or panicked lapses, and is a crash.
                let own = own_generation(&holder, &shared.owner).filter(|_| tries > 0);
                let Some(generation) = own else { return Err(Ending::NotOurs) };
                let lease = Lease { partition: spec.clone(), owner: shared.owner.clone(), generation };
                match shared.broker.release(&lease).await {
                    Ok(()) => {
                        debug!(partition = %spec.id, %generation, "a lease that nobody worked under was given back");
                        Error::Unavailable("the lease was our own".into())
                    }
                    Err(error) => error,
                }
            }
            Err(AcquireError::Broker(error)) => error,
        };
        shared.metrics().broker_failed(&error);
        tries += 1;
        if tries >= TRIES_MAX || !matches!(error, Error::Unavailable(_)) || shared.stopping.is_cancelled() {
            warn!(partition = %spec.id, %error, "the partition could not be acquired");
            return Err(Ending::Failed);
        }
        shared.sleep_until(shared.machine.now_ms() + config.pause_ms).await;
    }
}

/// The generation of a lease that `holder` names, if it is this owner's.
fn own_generation(holder: &str, owner: &OwnerId) -> Option<Generation> {
    let (name, generation) = holder.rsplit_once(':')?;
    if name == owner.as_str() { generation.parse().ok().map(Generation) } else { None }
}
