//! What happens, as it happens: server-sent events.
//!
//! Invariant: the number of followers is bounded, what waits for each is too, and all of them end when the server stops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aide::NoApi;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::super::wire::ErrorKind;
use super::openapi::answers;
use super::{Api, Failed};
use crate::service::{Following, Live, Service, Tailed};

/// The media type of server-sent events.
const EVENTS: &str = "text/event-stream";
/// How often it is looked whether anything changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a silent connection says that it is there.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Everybody who follows.
pub(super) struct Followers {
    places: Arc<Semaphore>,
    queue_max_bytes: usize,
    stopping: CancellationToken,
}

impl Followers {
    /// Up to `max`; all of them end when `stopping` is cancelled.
    pub(super) fn new(max: usize, queue_max_bytes: usize, stopping: CancellationToken) -> Self {
        Self { places: Arc::new(Semaphore::new(max)), queue_max_bytes, stopping }
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Failed> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            Failed::new(
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorKind::Unavailable,
                "too many follow what happens on this host; close one, or raise api.followers_max".into(),
            )
        })
    }

    /// As server-sent events, until the server stops.
    fn sse<S>(
        &self,
        place: OwnedSemaphorePermit,
        events: S,
    ) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<S>>
    where
        S: Stream<Item = Event> + Send + 'static,
    {
        let stopping = self.stopping.clone().cancelled_owned();
        let events = events.take_until(stopping).map(move |event| {
            let _held = &place;
            Ok(event)
        });
        Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL))
    }
}

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route(
            "/v1/live",
            get_with(live, |operation| {
                answers(
                    operation.summary("What a dashboard shows, as it changes: server-sent events"),
                    EVENTS,
                    "`overview`: as `/v1/overview`, at most once a second; `halted`: the first page of `/v1/halted`. Each \
                     comes at the start, and when it has changed.",
                )
            }),
        )
        .api_route(
            "/v1/tail",
            get_with(tail, |operation| {
                answers(
                    operation.summary("Events as they are published: server-sent events"),
                    EVENTS,
                    "`entry`: an event; `missed`: `{\"count\"}` of events that were handled and dropped before they could be \
                     read, or came too fast.",
                )
            }),
        )
}

type Answer<S> = Result<NoApi<Sse<S>>, Failed>;

async fn live(State(api): State<Arc<Api>>) -> Answer<impl Stream<Item = Result<Event, Infallible>>> {
    let place = api.followers.place()?;
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watching = Watching { service: api.service.clone(), looks, overview: vec![], halted: vec![] };
    let events = stream::unfold(watching, |mut watching| async {
        let events = watching.changed().await;
        Some((stream::iter(events), watching))
    });
    Ok(NoApi(api.followers.sse(place, events.flatten().boxed())))
}

async fn tail(
    State(api): State<Arc<Api>>,
    query: Result<Query<Following>, QueryRejection>,
) -> Answer<impl Stream<Item = Result<Event, Infallible>>> {
    let Query(following) = query?;
    let place = api.followers.place()?;
    let tail = api.service.tail(&following, api.followers.queue_max_bytes).await?;
    let events = tail.filter_map(async |tailed| match tailed {
        Tailed::Entry(entry) => event("entry", &entry),
        Tailed::Missed { count } => event("missed", &Missed { count }),
    });
    Ok(NoApi(api.followers.sse(place, events.boxed())))
}

#[derive(Serialize)]
struct Missed {
    count: u64,
}

/// What a dashboard was told, without the time of the look.
struct Watching {
    service: Service,
    looks: tokio::time::Interval,
    overview: Vec<u8>,
    halted: Vec<u8>,
}

impl Watching {
    /// The events of the next look at which something had changed.
    async fn changed(&mut self) -> Vec<Event> {
        loop {
            self.looks.tick().await;
            // A broker that is away says so in every other answer; here the last picture stays.
            let Ok(live) = self.service.live().await else { continue };
            let events = self.differences(&live);
            if !events.is_empty() {
                return events;
            }
        }
    }

    fn differences(&mut self, live: &Live) -> Vec<Event> {
        let mut undated = live.overview.clone();
        undated.at.clear();
        let mut events = vec![];
        if replaced(&mut self.overview, &undated) {
            events.extend(event("overview", &live.overview));
        }
        if replaced(&mut self.halted, &live.halted) {
            events.extend(event("halted", &live.halted));
        }
        events
    }
}

fn replaced(old: &mut Vec<u8>, new: &impl Serialize) -> bool {
    let new = serde_json::to_vec(new).unwrap_or_default();
    let changed = *old != new;
    *old = new;
    changed
}

fn event(name: &str, data: &impl Serialize) -> Option<Event> {
    match Event::default().event(name).json_data(data) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::error!(%error, name, "an event for a follower cannot be written");
            None
        }
    }
}
