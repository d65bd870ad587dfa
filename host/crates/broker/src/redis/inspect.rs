//! Looking without touching.

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, Key, PartitionId, StreamId};
use redis::Value;

use super::answer::{self, Answer};
use super::find::{PAGE_MAX, Scan};
use super::keyspace::{self, Listing, Part};
use super::rows::partition_of;
use super::{READ_MAX, RedisBroker, decode};
use crate::{
    Backlog, Error, Inspect, Lag, PartitionRow, ReadFrom, Reading, ReadySource, Rows, Snapshot, StateRow, Wanted,
};

#[async_trait]
impl Inspect for RedisBroker {
    async fn find(&self, source: &ReadySource, wanted: &Wanted, cursor: u64, limit: usize) -> Rows<PartitionRow> {
        self.find_partitions(source, wanted, cursor, limit).await
    }

    async fn waiting_keys(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<Key> {
        if matches!(source, ReadySource::Shared { .. }) {
            return Ok((vec![], None));
        }
        let list = keyspace::listing(source, Listing::Ready);
        let limit = limit.clamp(1, READ_MAX);
        let (members, next) = self.scan(Scan::Ranked, &list, "", cursor, limit, limit).await?;
        let rules = self.rules();
        Ok((members.iter().filter_map(|member| keyspace::stored_key(member, &rules)).collect(), next))
    }

    async fn states(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<StateRow> {
        if matches!(source, ReadySource::Shared { .. }) {
            return Ok((vec![], None));
        }
        let list = keyspace::listing(source, Listing::States);
        let limit = limit.clamp(1, PAGE_MAX);
        let (members, next) = self.scan(Scan::Set, &list, "", cursor, limit, limit).await?;
        let rules = self.rules();
        let keys: Vec<Key> = members.iter().filter_map(|member| keyspace::stored_key(member, &rules)).collect();
        let mut reads = redis::pipe();
        for key in &keys {
            reads.cmd("HGETALL").arg(keyspace::part(&partition_of(source, key.clone()), Part::State));
        }
        let mut rows = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(self.connection.call_all(&reads, keys.len()).await?) {
            let values = pairs(value)?;
            if !values.is_empty() {
                let category = match source {
                    ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => {
                        Some(category.clone())
                    }
                    ReadySource::ProcessManager { .. } => None,
                };
                rows.push(StateRow { category, key: key.clone(), values });
            }
        }
        Ok((rows, next))
    }

    async fn snapshot(
        &self,
        partition: &PartitionId,
        from: &[(StreamId, EntryId)],
        limit: usize,
    ) -> Result<Snapshot, Error> {
        let rules = self.rules();
        let mut reads = redis::pipe();
        // One transaction, so that no commit comes between the state and the entries.
        reads.cmd("MULTI").cmd("HGETALL").arg(keyspace::part(partition, Part::State));
        for (stream, id) in from {
            reads.cmd("XRANGE").arg(keyspace::stream(stream, &rules)).arg(id.to_string()).arg("+");
            reads.arg("COUNT").arg(limit);
        }
        reads.cmd("EXEC");
        // Of a transaction only the last answer says something.
        let executed = self.connection.call_all(&reads, 3 + from.len()).await?.pop().unwrap_or(Value::Nil);
        let mut answers = Answer::of(executed)?.rest();
        let state = answers.next().map_or_else(|| Ok(vec![]), pairs)?;
        let mut entries = vec![];
        for ((stream, _), answer) in from.iter().zip(answers) {
            decode::entries_into(&mut entries, Answer::of(answer)?, stream)?;
        }
        Ok(Snapshot { state, entries })
    }

    async fn read_streams(&self, streams: &[(StreamId, ReadFrom)], limit: usize) -> Result<Reading, Error> {
        let rules = self.rules();
        let limit = limit.clamp(1, READ_MAX);
        let mut reads = redis::pipe();
        reads.cmd("TIME");
        for (stream, from) in streams {
            let name = keyspace::stream(stream, &rules);
            match from {
                ReadFrom::After(id) => reads.cmd("XRANGE").arg(name).arg(format!("({id}")).arg("+"),
                ReadFrom::Since(_) => reads.cmd("XREVRANGE").arg(name).arg("+").arg("-"),
            };
            reads.arg("COUNT").arg(limit);
        }
        let mut answers = self.connection.call_all(&reads, 1 + streams.len()).await?.into_iter();
        let mut time = Answer::of(answers.next().unwrap_or(Value::Nil))?;
        let at_ms = time.number()? * 1_000 + time.number()? / 1_000;
        let mut entries = Vec::with_capacity(streams.len());
        for ((stream, from), answer) in streams.iter().zip(answers) {
            let mut of_stream = vec![];
            decode::entries_into(&mut of_stream, Answer::of(answer)?, stream)?;
            if let ReadFrom::Since(ms) = from {
                of_stream.retain(|entry| entry.recorded_at_ms >= *ms);
                of_stream.reverse();
            }
            entries.push(of_stream);
        }
        Ok(Reading { at_ms, entries })
    }

    async fn backlog(&self, sources: &[ReadySource]) -> Result<Backlog, Error> {
        let mut reads = redis::pipe();
        reads.cmd("XLEN").arg(keyspace::OUTBOX).cmd("XLEN").arg(keyspace::ABANDONED);
        for source in sources {
            reads.cmd("ZCARD").arg(keyspace::listing(source, Listing::Ready));
            reads.cmd("SCARD").arg(keyspace::listing(source, Listing::Halted));
        }
        let counts = self.connection.call_all(&reads, 2 + 2 * sources.len()).await?;
        let counts = counts.iter().map(answer::number).collect::<Result<Vec<_>, _>>()?;
        let mut backlog = Backlog { outbox: counts[0], abandoned: counts[1], ..Backlog::default() };
        for pair in counts[2..].chunks(2) {
            backlog.ready += pair[0];
            backlog.halted += pair[1];
        }
        for source in sources {
            if matches!(source, ReadySource::Shared { .. }) {
                backlog.ready += self.lag(source, 0).await?.events;
            }
        }
        Ok(backlog)
    }

    async fn lag(&self, source: &ReadySource, sample_max: usize) -> Result<Lag, Error> {
        self.lag_of(source, sample_max).await
    }

    async fn published(&self, categories: &[CategoryName]) -> Result<Vec<Option<u64>>, Error> {
        if categories.is_empty() {
            return Ok(vec![]);
        }
        let mut read = redis::cmd("HMGET");
        read.arg(keyspace::PUBLISHED);
        for category in categories {
            read.arg(category.as_str());
        }
        let counts = Answer::of(self.connection.call(&read).await?)?.rest();
        counts.map(|count| if count == Value::Nil { Ok(None) } else { answer::number(&count).map(Some) }).collect()
    }

    async fn letters_kept(&self, categories: &[CategoryName]) -> Result<u64, Error> {
        self.count_letters(categories).await
    }

    async fn live_keys(&self, category: &CategoryName) -> Result<u64, Error> {
        answer::number(&self.connection.call(redis::cmd("HLEN").arg(keyspace::index(category))).await?)
    }
}

fn pairs(value: Value) -> Result<Vec<(String, bytes::Bytes)>, Error> {
    let mut answer = Answer::of(value)?;
    let mut pairs = Vec::with_capacity(answer.len() / 2);
    while !answer.is_empty() {
        pairs.push((answer.text()?, answer.bytes()?));
    }
    Ok(pairs)
}
