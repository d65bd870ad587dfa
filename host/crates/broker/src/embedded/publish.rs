//! Publishing: the entry, its stream, the memory of its id and the ready sets, in one step.

use async_trait::async_trait;
use keyrail_ordering::{EntryId, Event, Key, Lane, StreamId};

use super::EmbeddedBroker;
use super::records::counters::Counters;
use super::records::streams::StreamRecord;
use super::records::{cursors, entries, halts, partition_key, partition_of, seen, streams};
use super::tables::{Memory, Tables};
use super::writer::Batch;
use crate::{Bell, Error, Publication, Publish, PublishError, Published, ReadySource};

const EVENT_ID_MAX_BYTES: usize = 256;

#[async_trait]
impl Publish for EmbeddedBroker {
    async fn publish(&self, batch: Vec<Publication>) -> Result<Vec<Result<Published, PublishError>>, Error> {
        if batch.is_empty() {
            return Ok(vec![]);
        }
        self.writer
            .call(move |writing| {
                let mut answers: Vec<Result<Published, PublishError>> = Vec::with_capacity(batch.len());
                let mut refused = false;
                for publication in batch {
                    let answer = if refused {
                        Err(PublishError::NotTried)
                    } else {
                        append(
                            writing,
                            &publication.event,
                            publication.key_field.as_deref(),
                            publication.lane,
                            publication.dedupe_window_ms,
                        )?
                    };
                    refused |= answer.is_err();
                    answers.push(answer);
                }
                Ok(answers)
            })
            .await
    }
}

/// Appends one event, if it may be.
pub(super) fn append(
    batch: &mut Batch<'_, '_>,
    event: &Event,
    key_field: Option<&str>,
    lane: Lane,
    dedupe_window_ms: u64,
) -> Result<Result<Published, PublishError>, Error> {
    if let Err(refusal) = check(batch, event, key_field, lane) {
        return Ok(Err(refusal));
    }
    let wall_ms = batch.shared.wall_ms();
    if dedupe_window_ms > 0
        && let Some(id) = seen::get(&batch.tables.seen, &event.category, &event.id, wall_ms)?
    {
        return Ok(Ok(Published { id, duplicate: true }));
    }
    let stream = StreamId { category: event.category.clone(), key: event.key.clone(), lane };
    let existing = streams::get(&batch.tables.streams, &stream)?;

    batch.writes();
    let tables = &mut *batch.tables;
    let mut record = if let Some(record) = existing {
        record
    } else {
        let epoch = batch.memory.counters.next_epoch();
        streams::put_index(&mut tables.index, &stream, epoch)?;
        StreamRecord { epoch, first: 0, next: 0 }
    };
    let id = EntryId::new(record.epoch, record.next);
    record.next += 1;
    streams::put(&mut tables.streams, &stream, record)?;
    entries::put(&mut tables.entries, &stream, id, event, wall_ms)?;
    batch.memory.counters.published(&event.category);
    if dedupe_window_ms > 0 {
        seen::put(&mut tables.seen, &event.category, &event.id, id, wall_ms.saturating_add(dedupe_window_ms))?;
        batch.memory.hand.advance(&mut tables.seen, wall_ms)?;
    }
    let Memory { counters, topology, .. } = &mut *batch.memory;
    for source in topology.sources(&event.category) {
        if let Some(key) = &event.key {
            make_ready(tables, counters, batch.bells, source, key)?;
        } else {
            look(batch.bells, source);
        }
    }
    Ok(Ok(Published { id, duplicate: false }))
}

fn check(batch: &Batch<'_, '_>, event: &Event, key_field: Option<&str>, lane: Lane) -> Result<(), PublishError> {
    let actual = batch.memory.topology.key_field(&event.category);
    if actual != key_field {
        return Err(PublishError::Stale {
            category: event.category.to_string(),
            expected: key_field.map(Into::into),
            actual: actual.map(Into::into),
        });
    }
    let refused = |why: String| Err(PublishError::Refused(why));
    match (&event.key, actual) {
        (None, Some(field)) => {
            return refused(format!("it has no key, and {} is partitioned by {field:?}", event.category));
        }
        (Some(key), None) => {
            return refused(format!("it has the key {key:?}, and {} is not partitioned", event.category));
        }
        (None, None) if lane == Lane::Backfill => {
            return refused(format!("{} is not partitioned, and only keys have a backfill lane", event.category));
        }
        _ => {}
    }
    if event.id.is_empty() || event.id.len() > EVENT_ID_MAX_BYTES {
        let bytes = event.id.len();
        return refused(format!("its id has {bytes} bytes; 1 to {EVENT_ID_MAX_BYTES} are allowed"));
    }
    if !can_be_an_object(&event.data) {
        return refused("the data is not a JSON object: it must begin with `{` and end with `}`".into());
    }
    Ok(())
}

/// As much of it as every broker looks at: reading all of it is what hosts do, before they publish and before they call.
fn can_be_an_object(data: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let first = data.iter().find(|byte| !is_blank(byte));
    let last = data.iter().rfind(|byte| !is_blank(byte));
    (first, last) == (Some(&b'{'), Some(&b'}'))
}

/// Rings for a source that has no keys, once a batch.
pub(super) fn look(bells: &mut Vec<Bell>, source: &ReadySource) {
    let bell = Bell::Look { source: source.clone() };
    if !bells.contains(&bell) {
        bells.push(bell);
    }
}

/// Adds a partition to its ready set, unless it is halted, and rings if it was not in.
pub(super) fn make_ready(
    tables: &mut Tables<'_>,
    counters: &mut Counters,
    bells: &mut Vec<Bell>,
    source: &ReadySource,
    key: &Key,
) -> Result<(), Error> {
    if tables.ready.contains(source, key)? {
        return Ok(());
    }
    let partition = partition_of(source, key.clone());
    if halts::exists(&tables.halts, partition_key(&partition))? {
        return Ok(());
    }
    tables.ready.add(counters, source, key)?;
    bells.push(Bell::Ready { source: source.clone(), key: key.clone() });
    Ok(())
}

/// Drops what every registered group of the category has settled and retention does not keep, up to `max` entries.
pub(super) fn trim(batch: &mut Batch<'_, '_>, stream: &StreamId, max: u64) -> Result<(), Error> {
    let Some(mut record) = streams::get(&batch.tables.streams, stream)? else { return Ok(()) };
    let sources = batch.memory.topology.sources(&stream.category);
    if sources.is_empty() {
        return Ok(());
    }
    let mut upto = record.next;
    for source in sources {
        let settled = cursors::get(&batch.tables.cursors, source.group(), stream)?;
        upto = upto.min(cursors::Span::new(record, settled).from);
    }
    let retention = batch.shared.settings.retention;
    let upto = upto.min(record.first.saturating_add(max)).min(record.next.saturating_sub(retention.entries));
    let upto = if retention.age_ms > 0 { first_young(batch, stream, record, upto, retention.age_ms)? } else { upto };
    if upto <= record.first {
        return Ok(());
    }
    batch.writes();
    for sequence in record.first..upto {
        entries::remove(&mut batch.tables.entries, stream, EntryId::new(record.epoch, sequence))?;
    }
    record.first = upto;
    streams::put(&mut batch.tables.streams, stream, record)
}

/// The first sequence before `upto` whose entry is not older than `age_ms`.
fn first_young(
    batch: &Batch<'_, '_>,
    stream: &StreamId,
    record: StreamRecord,
    upto: u64,
    age_ms: u64,
) -> Result<u64, Error> {
    let now_ms = batch.shared.wall_ms();
    for sequence in record.first..upto {
        let id = EntryId::new(record.epoch, sequence);
        if entries::recorded_at_ms(&batch.tables.entries, stream, id)?.saturating_add(age_ms) >= now_ms {
            return Ok(sequence);
        }
    }
    Ok(upto)
}
