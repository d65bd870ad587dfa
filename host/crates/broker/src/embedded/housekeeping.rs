//! Dropping what is settled, and forgetting what is empty.

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, Lane, PartitionId, StreamId};
use redb::ReadableDatabase;

use super::EmbeddedBroker;
use super::publish::trim;
use super::records::streams::StreamRecord;
use super::records::{
    attempts, cursors, lane_of, leases, parse_key, partition_of, source_of, storage, streams, turns, versions,
};
use super::writer::Batch;
use crate::{Error, Housekeeping, IdleStream, ReadySource};

/// Entries that one look at a stream drops, at most; the next look drops the rest.
const SWEEP_MAX: u64 = 10_000;

#[async_trait]
impl Housekeeping for EmbeddedBroker {
    async fn idle_streams(
        &self,
        category: &CategoryName,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<IdleStream>, Option<u64>), Error> {
        let category = category.clone();
        self.writer.call(move |batch| idle_streams(batch, &category, cursor, limit)).await
    }

    async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error> {
        let idle = idle.to_vec();
        self.writer
            .call(move |batch| {
                let mut reaped = 0;
                for idle in &idle {
                    reaped += u64::from(reap(batch, idle)?);
                }
                Ok(reaped)
            })
            .await
    }

    async fn live_partitions(&self, category: &CategoryName) -> Result<u64, Error> {
        let category = category.clone();
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            let records = txn.open_table(streams::TABLE).map_err(storage)?;
            let index = txn.open_table(streams::INDEX).map_err(storage)?;
            let mut live = 0;
            for row in streams::rows(&index, category.as_str())? {
                let (_, key, lane) = row?;
                // A key that has both lanes is one partition.
                let counts = !key.is_empty()
                    && (lane_of(lane)? == Lane::Primary || {
                        let primary = StreamId::primary(category.clone(), parse_key(&key)?);
                        streams::get(&records, &primary)?.is_none()
                    });
                live += u64::from(counts);
            }
            Ok(live)
        })
        .await
    }
}

fn idle_streams(
    batch: &mut Batch<'_, '_>,
    category: &CategoryName,
    cursor: u64,
    limit: usize,
) -> Result<(Vec<IdleStream>, Option<u64>), Error> {
    let listed = streams::list(&batch.tables.index, category.as_str(), cursor, limit)?;
    let next = listed.last().filter(|_| listed.len() == limit).map(|(epoch, ..)| epoch + 1);
    let mut idle = vec![];
    for (_, key, lane) in listed {
        let key = if key.is_empty() { None } else { Some(parse_key(&key)?) };
        let stream = StreamId { category: category.clone(), key, lane: lane_of(lane)? };
        trim(batch, &stream, SWEEP_MAX)?;
        let record = streams::get(&batch.tables.streams, &stream)?;
        let Some(record) = record else { continue };
        if let Some(last) = record.last()
            && is_idle(batch, &stream, record)?
        {
            idle.push(IdleStream { stream, last });
        }
    }
    Ok((idle, next))
}

/// Whether nothing is left in the stream and in the key's other lane, and nobody owns a partition of it. The one stream of a
/// category without keys is never idle: there is nothing to gain.
fn is_idle(batch: &Batch<'_, '_>, stream: &StreamId, record: StreamRecord) -> Result<bool, Error> {
    if stream.key.is_none() || record.first != record.next {
        return Ok(false);
    }
    let lane = if stream.lane == Lane::Primary { Lane::Backfill } else { Lane::Primary };
    let other = streams::get(&batch.tables.streams, &StreamId { lane, ..stream.clone() })?;
    if other.is_some_and(|other| other.first != other.next) {
        return Ok(false);
    }
    let now_ms = batch.shared.now_ms();
    Ok(partitions(batch, stream).iter().all(|partition| batch.shared.live.holder(partition, now_ms).is_none()))
}

/// The partitions of all groups that read the stream.
fn partitions(batch: &Batch<'_, '_>, stream: &StreamId) -> Vec<PartitionId> {
    let Some(key) = &stream.key else { return vec![] };
    let sources = batch.memory.topology.sources(&stream.category).iter();
    let with_keys = sources.filter(|source| !matches!(source, ReadySource::Shared { .. }));
    with_keys.map(|source| partition_of(source, key.clone())).collect()
}

/// Forgets a stream that is as it was seen.
fn reap(batch: &mut Batch<'_, '_>, idle: &IdleStream) -> Result<bool, Error> {
    let stream = &idle.stream;
    let Some(record) = streams::get(&batch.tables.streams, stream)? else { return Ok(false) };
    if record.last() != Some(idle.last) || !is_idle(batch, stream, record)? {
        return Ok(false);
    }
    let partitions = partitions(batch, stream);
    batch.writes();
    streams::remove(&mut batch.tables.streams, &mut batch.tables.index, stream, record.epoch)?;
    for partition in &partitions {
        cursors::remove(&mut batch.tables.cursors, &partition.group, stream)?;
        if !has_stream(batch, partition)? {
            attempts::remove(&mut batch.tables.attempts, partition)?;
            leases::remove(&mut batch.tables.leases, partition)?;
            turns::remove(&mut batch.tables.turns, partition)?;
            versions::remove(&mut batch.tables.txn.open_table(versions::TABLE).map_err(storage)?, partition)?;
        }
    }
    Ok(true)
}

/// Whether any stream of the partition is left.
fn has_stream(batch: &Batch<'_, '_>, partition: &PartitionId) -> Result<bool, Error> {
    let categories = match source_of(partition) {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => vec![category],
        ReadySource::ProcessManager { group } => {
            batch.memory.topology.managers.get(&group).cloned().unwrap_or_default()
        }
    };
    for category in categories {
        for lane in [Lane::Primary, Lane::Backfill] {
            let stream = StreamId { category: category.clone(), key: Some(partition.key().clone()), lane };
            if streams::get(&batch.tables.streams, &stream)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
