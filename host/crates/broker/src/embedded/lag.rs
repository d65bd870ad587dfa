//! How much waits, and since when: counted over few keys, and reckoned from a sample over many.

use keyrail_ordering::{EntryId, Key};
use redb::{ReadableDatabase, ReadableTable};

use super::Shared;
use super::find::{self, Reader};
use super::records::{counters, deliveries, entries, halts, parse_key, ready, source_key, storage, streams};
use super::shared_log::stream_of;
use crate::{Error, Lag, ReadySource, SharedSource};

/// Spots of a long ready set from which a sample is taken: those that wait longest are first, and not like the others.
const SPOTS: u64 = 16;

pub(super) fn lag(shared: &Shared, source: &ReadySource, sample_max: usize) -> Result<Lag, Error> {
    if let ReadySource::Shared { group, category } = source {
        return shared_lag(shared, &SharedSource { group: group.clone(), category: category.clone() });
    }
    let txn = shared.database.begin_read().map_err(storage)?;
    let counts = txn.open_table(counters::READY).map_err(storage)?;
    let waiting = counts.get(source_key(source)).map_err(storage)?.map_or(0, |row| row.value());
    let halted = halts::count(&txn.open_table(halts::TABLE).map_err(storage)?, source_key(source))?;
    let sample_max = sample_max.max(SPOTS as usize);
    let keys = ready_sample(&txn.open_table(ready::ORDER).map_err(storage)?, source, waiting, sample_max)?;
    let halts = txn.open_table(halts::ORDER).map_err(storage)?;
    let standing = halts::list(&halts, source_key(source), 0, sample_max)?;

    let categories = find::categories_of(&txn, source)?;
    let reader = Reader::new(shared, &txn)?;
    let table = txn.open_table(entries::TABLE).map_err(storage)?;
    let mut oldest_ms: Option<u64> = None;
    let mut events_of = |key: Key| -> Result<u64, Error> {
        let mut events = 0;
        for stream in find::streams_of(&categories, &key) {
            let Some((.., span)) = reader.span(source.group(), &stream)? else { continue };
            events += span.waiting();
            if let Some(head) = span.head() {
                let recorded = entries::recorded_at_ms(&table, &stream, head)?;
                oldest_ms = [oldest_ms, (recorded > 0).then_some(recorded)].into_iter().flatten().min();
            }
        }
        Ok(events)
    };
    let mut events = [0, 0];
    let looked = [keys.len() as u64, standing.len() as u64];
    for (which, (_, key)) in keys.into_iter().map(|row| (0, row)).chain(standing.into_iter().map(|row| (1, row))) {
        events[which] += events_of(parse_key(&key)?)?;
    }
    let all = [waiting, halted];
    let reckoned = |which: usize| match looked[which] {
        0 => 0,
        looked if looked >= all[which] => events[which],
        looked => (u128::from(events[which]) * u128::from(all[which]) / u128::from(looked)) as u64,
    };
    Ok(Lag {
        ready: waiting,
        halted,
        events: reckoned(0) + reckoned(1),
        exact: looked[0] >= waiting && looked[1] >= halted,
        oldest_recorded_at_ms: oldest_ms,
    })
}

fn ready_sample(
    order: &impl ReadableTable<ready::OrderKey, &'static str>,
    source: &ReadySource,
    count: u64,
    sample_max: usize,
) -> Result<Vec<(u64, String)>, Error> {
    if count <= sample_max as u64 {
        return ready::list(order, source, 0, sample_max);
    }
    let (group, category) = source_key(source);
    let bounds = (group, category, 0)..=(group, category, u64::MAX);
    let mut range = order.range(bounds).map_err(storage)?;
    let number = |row: Option<Result<_, redb::StorageError>>| -> Result<u64, Error> {
        let row: Option<(redb::AccessGuard<'_, ready::OrderKey>, redb::AccessGuard<'_, &str>)> =
            row.transpose().map_err(storage)?;
        Ok(row.map_or(0, |(at, _)| at.value().2))
    };
    let first = number(range.next())?;
    let last = number(range.next_back())?;
    let mut keys: Vec<(u64, String)> = vec![];
    for spot in 0..SPOTS {
        let from = first + (u128::from(last - first) * u128::from(spot) / u128::from(SPOTS)) as u64;
        let from = from.max(keys.last().map_or(0, |(number, _)| number + 1));
        keys.extend(ready::list(order, source, from, sample_max / SPOTS as usize)?);
    }
    Ok(keys)
}

/// Of a category that is not partitioned: what was given out and not settled, and what was never given out.
fn shared_lag(shared: &Shared, source: &SharedSource) -> Result<Lag, Error> {
    let nothing = Lag { exact: true, ..Lag::default() };
    let txn = shared.database.begin_read().map_err(storage)?;
    let stream = stream_of(source);
    let Some(record) = streams::get(&txn.open_table(streams::TABLE).map_err(storage)?, &stream)? else {
        return Ok(nothing);
    };
    let next = txn.open_table(deliveries::NEXT).map_err(storage)?;
    let next = deliveries::next(&next, source, record.epoch)?.clamp(record.first, record.next);
    let events = shared.deliveries.count(source) + (record.next - next);
    if events == 0 {
        return Ok(nothing);
    }
    let pending = txn.open_table(deliveries::TABLE).map_err(storage)?;
    let oldest = deliveries::lowest(&pending, source, record.epoch)?.unwrap_or(next);
    let table = txn.open_table(entries::TABLE).map_err(storage)?;
    let recorded = entries::recorded_at_ms(&table, &stream, EntryId::new(record.epoch, oldest))?;
    Ok(Lag { events, oldest_recorded_at_ms: (recorded > 0).then_some(recorded), ..nothing })
}
