//! Bodies of requests: in time, and within what all of them together may hold in memory.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Memory is counted in units of this many bytes.
const UNIT_BYTES: usize = 1 << 10;

/// Why a body was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFault {
    /// It did not arrive in time.
    #[error("the body of the request took too long (http.body_timeout_ms)")]
    TooSlow,
    /// Other bodies fill the memory.
    #[error("the host holds as many request bodies as it may (http.bodies_max_bytes); try again")]
    NoRoom,
}

/// What a request holds of the common memory, until it is dropped.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Held {
    fn add(&self, permit: OwnedSemaphorePermit) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *held {
            Some(held) => held.merge(permit),
            None => *held = Some(permit),
        }
    }
}

pub(super) fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT_BYTES)
}

/// The same body, which ends with a [`BodyFault`] if it is too slow or there is no room for it.
pub(super) fn guarded(body: Body, room: Arc<Semaphore>, longest: Duration, held: Held) -> Body {
    // Not a lease: what matters is how long somebody waits while this machine runs.
    #[allow(clippy::disallowed_methods)]
    let end = Instant::now() + longest;
    Body::from_stream(stream::unfold(Some(body.into_data_stream()), move |parts| {
        let (room, held) = (room.clone(), held.clone());
        async move {
            let mut parts = parts?;
            let part = match tokio::time::timeout_at(end, parts.next()).await {
                Err(_) => return Some((Err(BodyFault::TooSlow.into()), None)),
                Ok(part) => part?,
            };
            let part: Result<Bytes, axum::BoxError> = match part {
                Err(error) => Err(error.into()),
                Ok(part) => match room.try_acquire_many_owned(units(part.len()) as u32) {
                    Ok(permit) => {
                        held.add(permit);
                        Ok(part)
                    }
                    Err(_) => Err(BodyFault::NoRoom.into()),
                },
            };
            let more = part.is_ok().then_some(parts);
            Some((part, more))
        }
    }))
}

/// The fault that made reading a body fail, if it was one of ours.
pub(super) fn fault_in(error: &(dyn std::error::Error + 'static)) -> Option<BodyFault> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(fault) = error.downcast_ref::<BodyFault>() {
            return Some(*fault);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn read(body: Body) -> Result<Bytes, BodyFault> {
        axum::body::to_bytes(body, usize::MAX).await.map_err(|error| fault_in(&error).unwrap())
    }

    #[tokio::test]
    async fn memory_is_counted_as_long_as_the_request_lives() {
        let room = Arc::new(Semaphore::new(units(10 * UNIT_BYTES)));
        let body = |units: usize| Body::from(vec![1; units * UNIT_BYTES]);
        let (first, second) = (Held::default(), Held::default());
        let long = Duration::from_mins(1);
        assert_eq!(read(guarded(body(6), room.clone(), long, first.clone())).await.unwrap().len(), 6 * UNIT_BYTES);
        assert_eq!(read(guarded(body(5), room.clone(), long, second)).await, Err(BodyFault::NoRoom));
        drop(first);
        assert_eq!(room.available_permits(), 10);
        assert!(read(guarded(body(10), room.clone(), long, Held::default())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up() {
        let room = Arc::new(Semaphore::new(1_000));
        let trickle = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, axum::BoxError>(Bytes::from_static(b"x")), ()))
        });
        let body = guarded(Body::from_stream(trickle), room, Duration::from_millis(2_500), Held::default());
        assert_eq!(read(body).await, Err(BodyFault::TooSlow));
    }
}
