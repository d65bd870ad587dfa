//! Publishing through the host.
//!
//! Chunk after chunk, each a request of its own: the next only when the one before is answered in full, so the order of
//! lines is the order of publishing. A request that breaks off is not repeated here: the caller says how far it got, and
//! publishing the input again is harmless because ids are remembered.

use bytes::Bytes;
use reqwest::Method;
use tokio::sync::mpsc;

use super::super::wire::PublishLine;
use super::Client;
use crate::access::AccessError;
use crate::service::{LaneName, LineSplitter, LineText, Outcome, PublishOptions, RawLine, Report, Stop, StopKind};

/// Lines of an answer are short; a longer one is no answer of ours.
const ANSWER_LINE_MAX_BYTES: usize = 1 << 20;
/// Empty lines are sent along to keep the count, up to this many in a row.
const GAP_MAX: u64 = 1_000;

impl Client {
    /// Publishes lines until they end or something stops it.
    pub async fn publish(
        &self,
        mut input: mpsc::Receiver<Vec<RawLine>>,
        options: PublishOptions,
        reports: mpsc::Sender<Report>,
    ) -> Outcome {
        let mut total = Outcome::default();
        while let Some(mut lines) = input.recv().await {
            let size = |lines: &[RawLine]| lines.iter().map(length).sum::<usize>();
            // Whatever waits already goes into the same requests.
            while size(&lines) < self.chunk_max_bytes
                && let Ok(more) = input.try_recv()
            {
                lines.extend(more);
            }
            let mut rest = &lines[..];
            while !rest.is_empty() && total.stop.is_none() {
                let (chunk, after) = self.next_chunk(rest);
                rest = after;
                match chunk {
                    [RawLine { text: LineText::TooLong { bytes }, .. }] => {
                        let reason = crate::service::LineError::TooLong { bytes: *bytes, max: self.line_max_bytes };
                        bad(&mut total, &chunk[0], reason.to_string(), options, &reports).await;
                    }
                    _ => self.publish_chunk(&mut total, chunk, options, &reports).await,
                }
            }
            if total.stop.is_some() || reports.is_closed() {
                break;
            }
        }
        total
    }

    /// The lines of the next request: up to the limit in bytes, no long run of empty lines, and a line that is too long
    /// alone.
    fn next_chunk<'a>(&self, lines: &'a [RawLine]) -> (&'a [RawLine], &'a [RawLine]) {
        let too_long = |line: &RawLine| matches!(line.text, LineText::TooLong { .. });
        let mut bytes = 0;
        let mut count = 0;
        for line in lines {
            let gap = count > 0 && line.number - lines[count - 1].number > GAP_MAX;
            if count > 0 && (gap || too_long(line) || bytes + length(line) > self.chunk_max_bytes) {
                break;
            }
            bytes += length(line);
            count += 1;
            if too_long(line) {
                break;
            }
        }
        lines.split_at(count)
    }

    async fn publish_chunk(
        &self,
        total: &mut Outcome,
        chunk: &[RawLine],
        options: PublishOptions,
        reports: &mpsc::Sender<Report>,
    ) {
        if let Err(error) = self.try_chunk(total, chunk, options, reports).await {
            let kind = match &error {
                AccessError::Unavailable(_) => StopKind::Unavailable,
                _ => StopKind::Failed,
            };
            let through = format!("{error}; lines from {} on may be published or not", chunk[0].number);
            total.stop = Some(Stop { kind, line: None, reason: through });
        }
    }

    async fn try_chunk(
        &self,
        total: &mut Outcome,
        chunk: &[RawLine],
        options: PublishOptions,
        reports: &mpsc::Sender<Report>,
    ) -> Result<(), AccessError> {
        let before = total.clone();
        let first_line = chunk[0].number.to_string();
        let mut query = vec![("first_line", first_line.as_str())];
        query.extend(options.skip_bad.then_some(("skip_bad", "true")));
        query.extend(options.no_dedupe.then_some(("no_dedupe", "true")));
        query.extend((options.lane != LaneName::default()).then_some(("lane", options.lane.as_str())));
        let request = self.at(Method::POST, &["publish"], &query)?.body(body_of(chunk));
        let mut response = self.send(request).await?;
        let mut splitter = LineSplitter::new(1, ANSWER_LINE_MAX_BYTES);
        while let Some(part) = response.chunk().await.map_err(|error| self.broken(&error))? {
            for line in splitter.push(&part) {
                let LineText::Whole(text) = &line.text else { return Err(self.unreadable("a line is too long")) };
                match serde_json::from_slice(text).map_err(|error| self.unreadable(&error.to_string()))? {
                    PublishLine::Progress { published, duplicates } => {
                        total.published = before.published + published;
                        total.duplicates = before.duplicates + duplicates;
                        let (published, duplicates) = (total.published, total.duplicates);
                        let _ = reports.send(Report::Progress { published, duplicates }).await;
                    }
                    PublishLine::Bad { line, reason } => {
                        let bad = chunk.iter().find(|raw| raw.number == line);
                        let bad = bad.ok_or_else(|| self.unreadable("it names a line that was not sent"))?;
                        total.skipped += 1;
                        let _ = reports.send(Report::Bad { line: bad.clone(), reason }).await;
                    }
                    PublishLine::End(outcome) => {
                        total.published = before.published + outcome.published;
                        total.duplicates = before.duplicates + outcome.duplicates;
                        total.stop = outcome.stop;
                        return Ok(());
                    }
                }
            }
        }
        Err(self.unreadable("it was cut off"))
    }
}

fn length(line: &RawLine) -> usize {
    match &line.text {
        LineText::Whole(text) => text.len() + 1,
        LineText::TooLong { .. } => 1,
    }
}

/// The lines, with the empty ones between them that were left out, so that the host counts alike.
fn body_of(chunk: &[RawLine]) -> Bytes {
    let mut body = Vec::with_capacity(chunk.iter().map(length).sum());
    let mut next = chunk[0].number;
    for line in chunk {
        body.resize(body.len() + (line.number - next) as usize, b'\n');
        if let LineText::Whole(text) = &line.text {
            body.extend_from_slice(text);
        }
        body.push(b'\n');
        next = line.number + 1;
    }
    body.into()
}

async fn bad(
    total: &mut Outcome,
    line: &RawLine,
    reason: String,
    options: PublishOptions,
    reports: &mpsc::Sender<Report>,
) {
    if options.skip_bad {
        total.skipped += 1;
        let _ = reports.send(Report::Bad { line: line.clone(), reason }).await;
    } else {
        total.stop = Some(Stop { kind: StopKind::BadLine, line: Some(line.number), reason });
    }
}
