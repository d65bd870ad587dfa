//! Sending in several lanes without changing the order of a key.
//!
//! An event's lane follows from its key, and a lane has one call to the broker under way at a time. So whatever fails
//! and is repeated, two events of one key are never under way in two calls, and the later never overtakes.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use keyrail_broker::{Broker, Error, Publication, PublishError, Published};

use super::line::Draft;
use crate::config::PublishConfig;

/// Events that wait, in order, and whether a call is under way.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) waiting: VecDeque<Draft>,
    pub(super) busy: bool,
}

impl Lane {
    /// The next events of the lane, as one call takes them.
    pub(super) fn next_batch(&mut self, config: &PublishConfig) -> Vec<Draft> {
        let mut batch = vec![];
        let mut bytes = 0;
        while batch.len() < config.batch_max
            && let Some(draft) = self.waiting.front()
        {
            bytes += draft.bytes();
            if !batch.is_empty() && bytes > config.batch_max_bytes {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        batch
    }

    /// Puts events back that were not published.
    pub(super) fn put_back(&mut self, drafts: impl DoubleEndedIterator<Item = Draft>) {
        for draft in drafts.rev() {
            self.waiting.push_front(draft);
        }
    }
}

/// Which lane an event goes to.
pub(super) fn lane_of(publication: &Publication, lanes: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    publication.event.category.hash(&mut hasher);
    publication.event.key.hash(&mut hasher);
    (hasher.finish() % lanes as u64) as usize
}

/// What a call came to.
pub(super) struct Sent {
    pub(super) lane: usize,
    pub(super) batch: Vec<Draft>,
    /// More than 1 if the broker did not answer at first: then an earlier try may have published some.
    pub(super) tries: u32,
    pub(super) answers: Result<Vec<Result<Published, PublishError>>, Error>,
}

/// Publishes a batch. A call that the broker did not answer is repeated if ids are remembered: it may have happened, and
/// then the repeat changes nothing.
///
/// `away` is common to all lanes, so that the log says once that the broker is away, and once that it is back.
pub(super) async fn send(
    broker: &dyn Broker,
    config: &PublishConfig,
    away: Arc<AtomicBool>,
    lane: usize,
    batch: Vec<Draft>,
) -> Sent {
    let repeatable = batch.iter().all(|draft| draft.publication.dedupe_window_ms > 0);
    let mut wait_ms = config.retry_base_ms;
    let mut tries = 0;
    loop {
        tries += 1;
        let publications = batch.iter().map(|draft| draft.publication.clone()).collect();
        let answers = broker.publish(publications).await;
        match &answers {
            Err(Error::Unavailable(error)) if repeatable && tries < config.tries_max => {
                if !away.swap(true, Relaxed) {
                    tracing::warn!(error, "the broker does not answer; trying again");
                }
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                wait_ms = (wait_ms * 2).min(config.retry_cap_ms);
            }
            _ => {
                if answers.is_ok() && away.swap(false, Relaxed) {
                    tracing::warn!("the broker answers again");
                }
                return Sent { lane, batch, tries, answers };
            }
        }
    }
}
