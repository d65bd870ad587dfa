//! `POST /v1/publish`: JSON Lines in, JSON Lines out, both streamed and bounded.
//!
//! The body is read to its end even after a bad line, so that the answer is not lost with a connection that the client
//! still writes to; what comes after the bad line is dropped unread.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::unfold;
use tokio::sync::mpsc;

use super::server::{Api, Failed, fault_in};
use super::wire::{PublishLine, PublishQuery};
use crate::service::{LineSplitter, PublishOptions, RawLine, Report, Stop, StopKind};

/// Chunks of lines between the connection and the publisher.
const CHUNKS_MAX: usize = 2;
/// Lines of the answer that wait for the connection.
const ANSWER_LINES_MAX: usize = 64;

pub(super) async fn publish(
    State(api): State<Arc<Api>>,
    query: Result<Query<PublishQuery>, QueryRejection>,
    body: Body,
) -> Result<Response, Failed> {
    let Query(query) = query?;
    let (answers, answer_lines) = mpsc::channel(ANSWER_LINES_MAX);
    tokio::spawn(run(api, query, body, answers));
    let lines = unfold(answer_lines, async |mut lines| {
        let line = lines.recv().await?;
        Some((Ok::<_, Infallible>(encoded(&line)), lines))
    });
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], Body::from_stream(lines)).into_response())
}

async fn run(api: Arc<Api>, query: PublishQuery, body: Body, answers: mpsc::Sender<PublishLine>) {
    let Ok(_permit) = api.publishes.acquire().await else { return };
    let (lines, input) = mpsc::channel(CHUNKS_MAX);
    let (reports, mut told) = mpsc::channel(ANSWER_LINES_MAX);
    let splitter = LineSplitter::new(query.first_line.max(1), api.line_max_bytes);
    let reading = tokio::spawn(read(body, splitter, lines));
    let forward = answers.clone();
    // Owns `told`: if the client is gone it is dropped, and the run ends.
    let telling = async move {
        while let Some(report) = told.recv().await {
            if forward.send(line_of(report)).await.is_err() {
                return;
            }
        }
    };
    let options = PublishOptions { skip_bad: query.skip_bad, no_dedupe: query.no_dedupe, lane: query.lane };
    let (mut outcome, ()) = tokio::join!(api.service.publish(input, options, reports), telling);
    // Whoever gets the answer must not take a part for the whole.
    if outcome.stop.is_none()
        && let Ok(Err(reason)) = reading.await
    {
        outcome.stop = Some(Stop { kind: StopKind::Failed, line: None, reason });
    }
    let _ = answers.send(PublishLine::End(outcome)).await;
}

/// Cuts the body into lines. A body that breaks off leaves its last, perhaps half, line out, and answers why it did.
async fn read(body: Body, mut splitter: LineSplitter, lines: mpsc::Sender<Vec<RawLine>>) -> Result<(), String> {
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            let why = fault_in(&error).map_or_else(|| error.to_string(), |fault| fault.to_string());
            format!("the body of the request broke off after line {}: {why}", splitter.next_number() - 1)
        })?;
        if !lines.is_closed() {
            // A closed channel means that the run has ended: the rest is read and dropped.
            let _ = lines.send(splitter.push(&chunk)).await;
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.send(vec![line]).await;
    }
    Ok(())
}

fn line_of(report: Report) -> PublishLine {
    match report {
        Report::Progress { published, duplicates } => PublishLine::Progress { published, duplicates },
        Report::Bad { line, reason } => PublishLine::Bad { line: line.number, reason },
    }
}

fn encoded(line: &PublishLine) -> Bytes {
    // Our own structs of numbers and texts always serialize.
    let mut bytes = serde_json::to_vec(line).unwrap_or_default();
    bytes.push(b'\n');
    bytes.into()
}
