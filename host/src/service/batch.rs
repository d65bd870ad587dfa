//! Publishing a list of events at once: what one request holds. Answers for each event what became of it.
//!
//! Checked as a whole before anything is sent. Then as in [`super::publish`]: events of one key go one call after the other, in
//! order; a call that the broker did not answer is repeated, which changes nothing as long as ids are remembered.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use keyrail_broker::{Error, PublishError};
use keyrail_ordering::{Catalog, EntryId};

use super::incoming::Incoming;
use super::lane::{Lane, Sent, lane_of, send};
use super::line::{Draft, LineLimits};
use super::{PublishOptions, Service, ids};
use crate::telemetry::metrics::Tally;

/// How often the catalog is read again when a key was found to come from another field.
const STALE_MAX: u32 = 2;
/// The header that names the trace of an event.
const TRACE_PARENT: &str = "traceparent";

/// What became of one event, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemOutcome {
    /// Its id; none if it could not be read.
    pub id: Option<Arc<str>>,
    /// What became of it.
    pub state: ItemState,
}

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemState {
    /// It is in its stream.
    Published {
        /// There.
        entry: EntryId,
        /// It had been before.
        duplicate: bool,
    },
    /// It is no event that can be published.
    Bad(String),
    /// The broker refused it.
    Refused(String),
    /// Nothing was done, because of another one.
    NotTried,
    /// The broker did not answer: it is published or not. The same id can be published again.
    Unknown(String),
}

/// What became of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// One for each event.
    pub items: Vec<ItemOutcome>,
    /// How it went as a whole.
    pub verdict: Verdict,
}

/// How it went as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every event is in its stream.
    Published,
    /// Some are, others are bad or were refused.
    Partly,
    /// Some are bad, so nothing was published.
    Bad,
    /// The broker refused: it is full, or what it holds under these names is not ours.
    Refused,
    /// The broker did not answer.
    Unavailable,
}

impl Service {
    /// Publishes these events. With `skip_bad` those that are good, otherwise all or, if one is bad, none. `trace` are the
    /// headers that an event gets which belongs to no trace of its own.
    pub async fn publish_batch(
        &self,
        incoming: Vec<Incoming>,
        trace: &[(String, String)],
        options: PublishOptions,
    ) -> Result<Batch, Error> {
        let mut catalog = self.recent_catalog(Duration::from_secs(1)).await?;
        let limits = LineLimits {
            payload_max_bytes: self.publish.payload_max_bytes,
            line_max_bytes: self.publish.line_max_bytes,
            dedupe_window_ms: if options.no_dedupe { 0 } else { self.publish.dedupe_window_ms },
            lane: options.lane,
        };
        let mut read = drafts(&incoming, &catalog, &limits);
        if read.iter().any(|draft| draft.as_ref().is_err_and(super::LineError::may_be_an_old_catalog)) {
            catalog = self.recent_catalog(Duration::ZERO).await?;
            read = drafts(&incoming, &catalog, &limits);
        }
        drop(incoming);
        let mut items = Vec::with_capacity(read.len());
        let (mut good, mut spans) = (vec![], vec![]);
        let mut tally = Tally::new(self.telemetry.published());
        for draft in read {
            items.push(match draft {
                Ok(mut draft) => {
                    continue_trace(&mut draft, trace);
                    spans.extend(self.telemetry.traces().publishing(&mut draft.publication.event));
                    let id = Some(draft.publication.event.id.clone());
                    good.push(draft);
                    ItemOutcome { id, state: ItemState::NotTried }
                }
                Err(error) => {
                    tally.refused();
                    ItemOutcome { id: None, state: ItemState::Bad(error.to_string()) }
                }
            });
        }
        let any_bad = good.len() < items.len();
        if any_bad && (!options.skip_bad || good.is_empty()) {
            return Ok(Batch { items, verdict: Verdict::Bad });
        }
        let mut away = false;
        for _ in 0..=STALE_MAX {
            let stale = self.send_all(good, &mut items, &mut tally, &mut away).await;
            if stale.is_empty() {
                break;
            }
            catalog = self.recent_catalog(Duration::ZERO).await?;
            good = vec![];
            for draft in stale {
                match draft.accept_again(&catalog) {
                    Ok(draft) => good.push(draft),
                    Err((line, error)) => items[line as usize].state = ItemState::Bad(error.to_string()),
                }
            }
        }
        let verdict = verdict(&items, away);
        drop(spans);
        Ok(Batch { items, verdict })
    }

    /// Sends what is good, and answers with what was checked against an old catalog.
    async fn send_all(
        &self,
        good: Vec<Draft>,
        items: &mut [ItemOutcome],
        tally: &mut Tally,
        away: &mut bool,
    ) -> Vec<Draft> {
        let config = &self.publish;
        let mut lanes: Vec<_> = (0..config.in_flight_max).map(|_| Lane::default()).collect();
        for draft in good {
            let lane = lane_of(&draft.publication, config.in_flight_max);
            lanes[lane].waiting.push_back(draft);
        }
        let broker = self.broker.as_ref();
        let told_away = Arc::default();
        let next = |lane: &mut Lane, index| {
            let batch = lane.next_batch(config);
            (!batch.is_empty()).then(|| send(broker, config, Arc::clone(&told_away), index, batch))
        };
        let mut calls: FuturesUnordered<_> =
            lanes.iter_mut().enumerate().filter_map(|(index, lane)| next(lane, index)).collect();
        let mut stale = vec![];
        while let Some(Sent { lane: index, batch, tries, answers }) = calls.next().await {
            match answers {
                Ok(answers) => {
                    let mut after = After::Next;
                    for (draft, answer) in batch.into_iter().zip(answers) {
                        let state = &mut items[draft.line as usize].state;
                        match answer {
                            // After a repeat nobody can tell whose the first was; it is there because of this request or before.
                            Ok(published) => {
                                let duplicate = published.duplicate && tries == 1;
                                tally.published(&draft.publication.event.category, duplicate);
                                *state = ItemState::Published { entry: published.id, duplicate };
                            }
                            Err(PublishError::Stale { .. }) => {
                                after = After::Again;
                                stale.push(draft);
                            }
                            Err(PublishError::Refused(reason)) => {
                                after = After::Nothing;
                                *state = ItemState::Refused(reason);
                            }
                            Err(PublishError::NotTried) if after == After::Again => stale.push(draft),
                            Err(PublishError::NotTried) => {}
                        }
                    }
                    match after {
                        After::Next => calls.extend(next(&mut lanes[index], index)),
                        After::Again => stale.extend(std::mem::take(&mut lanes[index].waiting)),
                        After::Nothing => {}
                    }
                }
                Err(error) => {
                    let unknown = matches!(error, Error::Unavailable(_));
                    *away |= unknown;
                    for draft in batch {
                        items[draft.line as usize].state = if unknown {
                            ItemState::Unknown(error.to_string())
                        } else {
                            ItemState::Refused(error.to_string())
                        };
                    }
                }
            }
        }
        stale.sort_by_key(|draft| draft.line);
        stale
    }
}

fn continue_trace(draft: &mut Draft, trace: &[(String, String)]) {
    let headers = &mut draft.publication.event.headers;
    if !headers.iter().any(|(name, _)| name == TRACE_PARENT) {
        headers.extend_from_slice(trace);
    }
}

/// What becomes of the events that wait behind a call: of the same keys, perhaps.
#[derive(PartialEq)]
enum After {
    /// They are next.
    Next,
    /// They are to be checked against a newer catalog, with those that were found to be old.
    Again,
    /// One before them was refused: they would overtake it.
    Nothing,
}

/// Each event, checked; its line is its place in the list.
fn drafts(incoming: &[Incoming], catalog: &Catalog, limits: &LineLimits) -> Vec<Result<Draft, super::LineError>> {
    let read = |(place, incoming): (usize, &Incoming)| {
        let mut draft = match incoming {
            Incoming::Line(line) => Draft::read(line, catalog, limits),
            Incoming::Parts(parts) => Draft::accept(parts.as_ref().clone(), 0, catalog, limits, ids::fresh),
            Incoming::Bad(error) => Err(error.clone()),
        }?;
        draft.line = place as u64;
        Ok(draft)
    };
    incoming.iter().enumerate().map(read).collect()
}

fn verdict(items: &[ItemOutcome], away: bool) -> Verdict {
    let published = items.iter().filter(|item| matches!(item.state, ItemState::Published { .. })).count();
    match published {
        _ if away => Verdict::Unavailable,
        all if all == items.len() => Verdict::Published,
        0 if items.iter().all(|item| matches!(item.state, ItemState::Bad(_))) => Verdict::Bad,
        0 => Verdict::Refused,
        _ => Verdict::Partly,
    }
}
