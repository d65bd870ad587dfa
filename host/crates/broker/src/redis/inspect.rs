//! Looking without touching.

use async_trait::async_trait;
use keyrail_ordering::{
    Catalog, CategoryName, EntryId, EntryRef, Generation, Key, KeyRules, Lane, OwnerId, PartitionId, Scope, StreamId,
};
use redis::Value;

use super::RedisBroker;
use super::answer::{self, Answer};
use super::decode;
use super::functions::Call;
use super::keyspace::{self, Listing, Name, Part};
use crate::{Backlog, Error, Inspect, PartitionRow, ReadySource, Snapshot, StateRow, VersionSince, wire};

/// Rows of one page; a page may hold a few more, since the server scans whole buckets.
const PAGE_MAX: usize = 200;
/// In a cursor: the server's own cursor below, how many of its answer were shown already above.
const SCAN_BITS: u32 = 40;
const SCAN_PART: u64 = (1 << SCAN_BITS) - 1;
/// In a cursor: the part of a process manager's list that comes from its ready set, by rank.
const READY_PART: u64 = 1 << 63;

#[async_trait]
impl Inspect for RedisBroker {
    async fn partitions(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<PartitionRow>, Option<u64>), Error> {
        let limit = limit.clamp(1, PAGE_MAX);
        let category = match source {
            ReadySource::Category { category, .. } => category,
            ReadySource::ProcessManager { .. } => return self.correlations(source, cursor, limit).await,
            ReadySource::Shared { .. } => return Ok((vec![], None)),
        };
        let (fields, next) = self.scan("HSCAN", &keyspace::index(category), cursor, limit).await?;
        let rules = self.rules();
        let keys = fields.iter().filter_map(|field| keyspace::stored_key(field, &rules)).collect();
        let rows = self.rows(source, keys, std::slice::from_ref(category)).await?;
        Ok((rows.into_iter().map(|(row, _)| row).collect(), next))
    }

    async fn states(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<StateRow>, Option<u64>), Error> {
        if matches!(source, ReadySource::Shared { .. }) {
            return Ok((vec![], None));
        }
        let list = keyspace::listing(source, Listing::States);
        let (members, next) = self.scan("SSCAN", &list, cursor, limit.clamp(1, PAGE_MAX)).await?;
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
            if let ReadySource::Shared { category, .. } = source {
                backlog.ready += self.unsettled(source, category).await?;
            }
        }
        Ok(backlog)
    }
}

impl RedisBroker {
    /// What a group has not settled of a category that is not partitioned: its waiting entries as a row counts them.
    async fn unsettled(&self, source: &ReadySource, category: &CategoryName) -> Result<u64, Error> {
        let stream = StreamId { category: category.clone(), key: None, lane: Lane::Primary };
        let mut call = Call::new("keyrail_3_rows", 0);
        call.arg(keyspace::collection(source))
            .arg(source.group().as_str())
            .arg(1)
            .arg("")
            .arg(keyspace::stream(&stream, &self.rules()));
        let mut row = Answer::of(self.call(&call).await?)?.list()?;
        row.value()?;
        row.value()?;
        row.number()
    }

    /// One page of the members of a set, or of the fields of a hash (`HSCAN`, without their values).
    pub(super) async fn scan(
        &self,
        command: &str,
        name: &str,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<String>, Option<u64>), Error> {
        let (at, skip) = (cursor & SCAN_PART, (cursor & !READY_PART) >> SCAN_BITS);
        let answer = self.connection.call(redis::cmd(command).arg(name).arg(at).arg("COUNT").arg(limit)).await?;
        let mut answer = Answer::of(answer)?;
        let next = answer.number()?;
        let mut list = answer.list()?;
        let mut texts = Vec::with_capacity(list.len());
        while !list.is_empty() {
            texts.push(list.text()?);
            if command == "HSCAN" {
                list.value()?;
            }
        }
        // The server answers with a whole small collection, whatever the count.
        let rest = texts.len().saturating_sub(skip as usize);
        let page: Vec<String> = texts.into_iter().skip(skip as usize).take(limit).collect();
        if rest > limit {
            return Ok((page, Some(at | ((skip + limit as u64) << SCAN_BITS))));
        }
        Ok((page, (next != 0).then_some(next)))
    }

    /// A process manager's correlation values: those that had an owner, then those that are ready and had none yet.
    async fn correlations(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<PartitionRow>, Option<u64>), Error> {
        let (catalog, _): (Catalog, u64) = self.read_catalog().await?;
        let handler = catalog.handlers.get(source.group());
        let categories: Vec<CategoryName> =
            handler.map(|handler| handler.metadata.categories().into_iter().cloned().collect()).unwrap_or_default();
        let rules = self.rules();
        if cursor & READY_PART == 0 {
            let owners = keyspace::listing(source, Listing::Owners);
            let (fields, next) = self.scan("HSCAN", &owners, cursor, limit).await?;
            let keys = fields.iter().filter_map(|field| keyspace::stored_key(field, &rules)).collect();
            let rows = self.rows(source, keys, &categories).await?;
            return Ok((rows.into_iter().map(|(row, _)| row).collect(), next.or(Some(READY_PART))));
        }
        let rank = cursor & !READY_PART;
        let ready = keyspace::listing(source, Listing::Ready);
        let to = rank + limit as u64 - 1;
        let mut listed = Answer::of(self.connection.call(redis::cmd("ZRANGE").arg(ready).arg(rank).arg(to)).await?)?;
        let full = listed.len() == limit;
        let mut keys = vec![];
        while !listed.is_empty() {
            keys.extend(keyspace::stored_key(&listed.text()?, &rules));
        }
        let rows = self.rows(source, keys, &categories).await?;
        let rows = rows.into_iter().filter(|(_, had_owner)| !had_owner).map(|(row, _)| row).collect();
        Ok((rows, full.then_some((to + 1) | READY_PART)))
    }

    /// Rows of these keys, each with whether it ever had an owner. A key's streams are its two lanes; a
    /// correlation's are the two of each category.
    async fn rows(
        &self,
        source: &ReadySource,
        keys: Vec<Key>,
        categories: &[CategoryName],
    ) -> Result<Vec<(PartitionRow, bool)>, Error> {
        if keys.is_empty() {
            return Ok(vec![]);
        }
        let lanes = [Lane::Primary, Lane::Backfill];
        let rules = self.rules();
        let mut call = Call::new("keyrail_3_rows", 0);
        call.arg(keyspace::collection(source)).arg(source.group().as_str()).arg(categories.len() * lanes.len());
        for key in &keys {
            call.arg(key.as_str());
            for category in categories {
                for lane in lanes {
                    let id = StreamId { category: category.clone(), key: Some(key.clone()), lane };
                    call.arg(keyspace::stream(&id, &rules));
                }
            }
        }
        let mut answer = Answer::of(self.call(&call).await?)?;
        keys.into_iter().map(|key| row(partition_of(source, key), answer.list()?, &rules)).collect()
    }
}

/// One line of what `commit.lua` keeps.
fn version_since(line: &str, rules: &KeyRules) -> Option<VersionSince> {
    let (id, rest) = line.split_once('\t')?;
    let (version, stream) = rest.split_once('\t')?;
    let Name::Stream(stream) = keyspace::parse(stream, rules)? else { return None };
    let id = id.parse().ok()?;
    Some(VersionSince { from: EntryRef { stream, id }, version: version.into() })
}

fn row(partition: PartitionId, mut answer: Answer, rules: &KeyRules) -> Result<(PartitionRow, bool), Error> {
    let last = answer::entry_id(&answer.text()?)?;
    let settled = answer::entry_id(&answer.text()?)?;
    let waiting = answer.number()?;
    let lease = answer.text()?;
    let last_owner = answer.text()?;
    let attempts = answer.number()? as u32;
    let record = answer.bytes()?;
    let halted = if record.is_empty() { None } else { Some(wire::decode(&record)?) };
    let versions = answer.text()?.lines().filter_map(|line| version_since(line, rules)).collect();
    let owned = !lease.is_empty();
    let holder = owner(if owned { &lease } else { &last_owner });
    let (owner, generation) = holder.unzip();
    let row = PartitionRow { partition, last, settled, waiting, owner, generation, owned, attempts, halted, versions };
    Ok((row, !last_owner.is_empty()))
}

pub(super) fn owner(token: &str) -> Option<(OwnerId, Generation)> {
    let (owner, generation) = token.rsplit_once(':')?;
    let usable = !owner.is_empty() && !owner.contains(':');
    usable.then_some(())?;
    Some((OwnerId::new(owner), Generation(generation.parse().ok()?)))
}

pub(super) fn partition_of(source: &ReadySource, key: Key) -> PartitionId {
    let scope = match source {
        ReadySource::Category { category, .. } => Scope::Key { category: category.clone(), key },
        ReadySource::ProcessManager { .. } => Scope::Correlation { value: key },
        ReadySource::Shared { .. } => unreachable!("partitions and states answer before: it has no keys"),
    };
    PartitionId { group: source.group().clone(), scope }
}

fn pairs(value: Value) -> Result<Vec<(String, bytes::Bytes)>, Error> {
    let mut answer = Answer::of(value)?;
    let mut pairs = Vec::with_capacity(answer.len() / 2);
    while !answer.is_empty() {
        pairs.push((answer.text()?, answer.bytes()?));
    }
    Ok(pairs)
}
