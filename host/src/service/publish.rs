//! Publishing a stream of lines.
//!
//! Lines are read against the catalog in order, put into lanes by key, and sent in batches, several at once. Memory is
//! bounded: reading waits while too much is queued. A bad line ends reading; what came before it is published and
//! confirmed first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use keyrail_broker::{Error, PublishError};
use keyrail_ordering::Catalog;
use tokio::sync::mpsc;

use super::Service;
use super::lane::{Lane, Sent, lane_of, send};
use super::line::{Draft, LaneName, LineLimits};
use super::lines::RawLine;
use super::report::{Outcome, Report, Stop, StopKind};
use crate::clock;
use crate::telemetry::metrics::Tally;
use crate::telemetry::traces::Publishing;

/// A line that the catalog does not know has it read again, but not more often than this.
const CATALOG_REFRESH_MIN_MS: u64 = 1_000;
/// Reads of the catalog in a row, without an event published in between, before a stale answer is final.
const STALE_MAX: u32 = 2;

/// How to publish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// Leave bad lines out, with a report each, in place of stopping.
    pub skip_bad: bool,
    /// Do not remember ids: events that were published before are published again.
    pub no_dedupe: bool,
    /// The lane of lines that name none.
    pub lane: LaneName,
}

impl Service {
    /// Publishes lines until they end or something stops it. Ends early if nobody takes the reports any more.
    pub async fn publish(
        &self,
        mut input: mpsc::Receiver<Vec<RawLine>>,
        options: PublishOptions,
        reports: mpsc::Sender<Report>,
    ) -> Outcome {
        let catalog = match self.broker.catalog().await {
            Ok((catalog, _)) => catalog,
            Err(error) => return Outcome { stop: Some(stop_of(error, false)), ..Outcome::default() },
        };
        let dedupe_window_ms = if options.no_dedupe { 0 } else { self.publish.dedupe_window_ms };
        let mut run = Run {
            service: self,
            options,
            limits: LineLimits {
                payload_max_bytes: self.publish.payload_max_bytes,
                line_max_bytes: self.publish.line_max_bytes,
                dedupe_window_ms,
                lane: options.lane,
            },
            reports,
            catalog,
            catalog_read_at_ms: clock::now_ms(),
            lanes: (0..self.publish.in_flight_max).map(|_| Lane::default()).collect(),
            in_flight: FuturesUnordered::new(),
            away: Arc::default(),
            queued_bytes: 0,
            stale: Stale::No,
            stale_reads: 0,
            outcome: Outcome::default(),
            reading: true,
            abandoned: false,
            tally: Tally::new(self.telemetry.published()),
            spans: BTreeMap::new(),
        };
        run.drive(&mut input).await;
        run.outcome
    }
}

/// Whether the catalog was found to be old.
#[derive(PartialEq, Eq)]
enum Stale {
    No,
    /// Nothing is sent until every call has ended and the catalog was read again.
    Yes {
        line: u64,
        reason: String,
    },
}

struct Run<'a> {
    service: &'a Service,
    options: PublishOptions,
    limits: LineLimits,
    reports: mpsc::Sender<Report>,
    catalog: Catalog,
    catalog_read_at_ms: u64,
    lanes: Vec<Lane>,
    in_flight: FuturesUnordered<BoxFuture<'a, Sent>>,
    /// The broker did not answer a call, and none since.
    away: Arc<AtomicBool>,
    queued_bytes: usize,
    stale: Stale,
    stale_reads: u32,
    outcome: Outcome,
    /// False once the input has ended or a line stopped it.
    reading: bool,
    /// Nothing more is sent: the broker failed or refused, or nobody listens.
    abandoned: bool,
    tally: Tally,
    /// Of events that are traced, by line, until they are published.
    spans: BTreeMap<u64, Publishing>,
}

impl Run<'_> {
    async fn drive(&mut self, input: &mut mpsc::Receiver<Vec<RawLine>>) {
        loop {
            self.dispatch();
            let room = self.queued_bytes < self.service.publish.queue_max_bytes;
            let reads = self.reading && room && !self.abandoned && self.stale == Stale::No;
            tokio::select! {
                Some(sent) = self.in_flight.next(), if !self.in_flight.is_empty() => self.settle(sent).await,
                lines = input.recv(), if reads => match lines {
                    Some(lines) => self.read(lines).await,
                    None => self.reading = false,
                },
                else => {
                    if !self.refresh_if_stale().await {
                        return;
                    }
                }
            }
        }
    }

    /// Starts a call for every lane that has events and none under way.
    fn dispatch(&mut self) {
        if self.abandoned || self.stale != Stale::No {
            return;
        }
        let service = self.service;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.busy || lane.waiting.is_empty() {
                continue;
            }
            lane.busy = true;
            let batch = lane.next_batch(&service.publish);
            let away = self.away.clone();
            self.in_flight.push(Box::pin(send(service.broker.as_ref(), &service.publish, away, index, batch)));
        }
    }

    /// Puts lines into their lanes, up to the first bad one.
    async fn read(&mut self, lines: Vec<RawLine>) {
        for line in lines {
            let mut draft = Draft::read(&line, &self.catalog, &self.limits);
            if let Err(error) = &draft
                && error.may_be_an_old_catalog()
                && clock::now_ms() >= self.catalog_read_at_ms + CATALOG_REFRESH_MIN_MS
                && self.read_catalog().await
            {
                draft = Draft::read(&line, &self.catalog, &self.limits);
            }
            match draft {
                Ok(mut draft) => {
                    let span = self.service.telemetry.traces().publishing(&mut draft.publication.event);
                    self.spans.extend(span.map(|span| (draft.line, span)));
                    self.enqueue(draft);
                }
                Err(error) => {
                    if !self.bad(line, error.to_string()).await {
                        return;
                    }
                }
            }
        }
    }

    fn enqueue(&mut self, draft: Draft) {
        self.queued_bytes += draft.bytes();
        let lane = lane_of(&draft.publication, self.lanes.len());
        self.lanes[lane].waiting.push_back(draft);
    }

    /// Leaves a bad line out, or ends reading at it.
    async fn bad(&mut self, line: RawLine, reason: String) -> bool {
        self.tally.refused();
        if self.options.skip_bad {
            self.outcome.skipped += 1;
            self.report(Report::Bad { line, reason }).await;
        } else {
            self.reading = false;
            self.stop(Stop { kind: StopKind::BadLine, line: Some(line.number), reason });
        }
        self.reading
    }

    /// Counts what a call published; what it did not goes back.
    async fn settle(&mut self, sent: Sent) {
        let Sent { lane, batch, tries, answers } = sent;
        self.lanes[lane].busy = false;
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                self.abandoned = true;
                self.stop(stop_of(error, self.limits.dedupe_window_ms == 0));
                return;
            }
        };
        let mut unpublished = vec![];
        for (draft, answer) in batch.into_iter().zip(answers) {
            match answer {
                Ok(published) => {
                    self.queued_bytes = self.queued_bytes.saturating_sub(draft.bytes());
                    self.stale_reads = 0;
                    self.spans.remove(&draft.line);
                    // After a repeat nobody can tell whose the first was; the event is there because of this run or before it.
                    let is_duplicate = published.duplicate && tries == 1;
                    self.tally.published(&draft.publication.event.category, is_duplicate);
                    if is_duplicate {
                        self.outcome.duplicates += 1;
                    } else {
                        self.outcome.published += 1;
                    }
                }
                Err(PublishError::NotTried) => unpublished.push(draft),
                Err(error @ PublishError::Stale { .. }) => {
                    self.stale = Stale::Yes { line: draft.line, reason: error.to_string() };
                    unpublished.push(draft);
                }
                Err(PublishError::Refused(reason)) => {
                    self.abandoned = true;
                    self.stop(Stop { kind: StopKind::Refused, line: Some(draft.line), reason });
                }
            }
        }
        self.lanes[lane].put_back(unpublished.into_iter());
        let (published, duplicates) = (self.outcome.published, self.outcome.duplicates);
        self.report(Report::Progress { published, duplicates }).await;
    }

    /// With no call under way: reads the catalog again if it was found to be old, and the keys of all that waits. Answers
    /// whether there is anything to go on with.
    async fn refresh_if_stale(&mut self) -> bool {
        let Stale::Yes { line, reason } = std::mem::replace(&mut self.stale, Stale::No) else { return false };
        if self.abandoned {
            return false;
        }
        self.stale_reads += 1;
        if self.stale_reads > STALE_MAX {
            self.abandoned = true;
            self.stop(Stop { kind: StopKind::Refused, line: Some(line), reason });
            return false;
        }
        if !self.read_catalog().await {
            return false;
        }
        let mut drafts: Vec<_> = self.lanes.iter_mut().flat_map(|lane| lane.waiting.drain(..)).collect();
        drafts.sort_by_key(|draft| draft.line);
        self.queued_bytes = 0;
        for draft in drafts {
            match draft.accept_again(&self.catalog) {
                Ok(draft) => self.enqueue(draft),
                Err((line, error)) => {
                    self.reading = false;
                    self.stop(Stop { kind: StopKind::BadLine, line: Some(line), reason: error.to_string() });
                    break;
                }
            }
        }
        true
    }

    async fn read_catalog(&mut self) -> bool {
        match self.service.broker.catalog().await {
            Ok((catalog, _)) => {
                self.catalog = catalog;
                self.catalog_read_at_ms = clock::now_ms();
                true
            }
            Err(error) => {
                self.abandoned = true;
                self.stop(stop_of(error, false));
                false
            }
        }
    }

    /// The first reason stands, unless a failure of the broker overrules a bad line.
    fn stop(&mut self, stop: Stop) {
        let overruled = |before: &Stop| before.kind == StopKind::BadLine && stop.kind != StopKind::BadLine;
        if self.outcome.stop.as_ref().is_none_or(overruled) {
            self.outcome.stop = Some(stop);
        }
    }

    async fn report(&mut self, report: Report) {
        if self.reports.send(report).await.is_err() {
            self.abandoned = true;
            self.reading = false;
        }
    }
}

fn stop_of(error: Error, uncertain: bool) -> Stop {
    let kind = match &error {
        Error::Unavailable(_) => StopKind::Unavailable,
        Error::Refused(_) => StopKind::Refused,
        Error::Corrupt(_) | Error::Unusable(_) => StopKind::Failed,
    };
    let mut reason = error.to_string();
    if uncertain && kind == StopKind::Unavailable {
        reason.push_str("; ids are not remembered, so lines that were under way may or may not be published");
    }
    Stop { kind, line: None, reason }
}
