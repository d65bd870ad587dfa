//! What operators do. Pauses are in `pausing`, dead letters in `letters`.

use std::sync::Arc;

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, EntryRef, HaltRecord, Key, PartitionId, PartitionSpec};
use redis::Value;

use super::answer::{self, Answer, Status};
use super::decode;
use super::find::Scan;
use super::functions::Call;
use super::keyspace::{self, Listing};
use super::rows::{owner, partition_of};
use super::{RedisBroker, pausing};
use crate::{
    AuditRow, By, DeadLetter, Error, Head, HeadAction, Operate, OperateError, Paused, ReadySource, Rows, wire,
};

/// Rows of one page.
pub(super) const PAGE_MAX: usize = 200;

#[async_trait]
impl Operate for RedisBroker {
    async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
        let names = self.stream_names(partition);
        let call = Self::partition_call("keyrail_6_head", partition, &names);
        let mut answer = Answer::of(self.call(&call).await?)?;
        if answer.is_empty() {
            return Ok(None);
        }
        let place = answer.number()? as usize;
        let stream = place.checked_sub(1).and_then(|place| partition.streams.get(place));
        let stream = stream.ok_or_else(|| Error::Corrupt(format!("the head is in the stream number {place}")))?;
        let mut entries = vec![];
        decode::entries_into(&mut entries, answer.list()?, stream)?;
        let attempts = decode::attempts(answer.optional_list()?, &partition.streams, &names)?;
        let record = answer.bytes()?;
        let halted = if record.is_empty() { None } else { Some(wire::decode(&record)?) };
        let owner = owner(&answer.text()?).map(|(owner, _)| owner);
        let (waiting, paused) = (answer.number()?, answer.flag()?);
        let entry: Arc<_> = entries.pop().ok_or_else(|| Error::Corrupt("the head has no entry".into()))?;
        Ok(Some(Head { entry, attempts, halted, owner, waiting, paused }))
    }

    async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        let names = self.stream_names(partition);
        let named = || head.clone();
        let Some(place) = partition.streams.iter().position(|stream| *stream == head.stream) else {
            return Err(OperateError::NotHead { named: named(), head: None });
        };
        let mut call = Self::partition_call("keyrail_6_act", partition, &names);
        call.arg(match action {
            HeadAction::Retry => "retry",
            HeadAction::Skip => "skip",
            HeadAction::SetAside => "set-aside",
        });
        call.arg(place + 1).arg(head.id.to_string()).arg(&by.who).arg(&by.reason);
        call.arg(partition.id.to_string()).arg(self.kept());
        let mut answer = Answer::of(self.call(&call).await.map_err(Error::from)?)?;
        match answer.status()? {
            Status::Ok => Ok(()),
            Status::NotHead => {
                let place = answer.number()? as usize;
                let stream = place.checked_sub(1).and_then(|place| partition.streams.get(place));
                let id = answer::entry_id(&answer.text()?)?;
                let present = stream.zip(id).map(|(stream, id)| EntryRef { stream: stream.clone(), id });
                Err(OperateError::NotHead { named: named(), head: present })
            }
            Status::Refused => Err(Error::Refused(answer.text()?).into()),
            other => Err(Error::Corrupt(format!("an operator's action answered {other:?}")).into()),
        }
    }

    async fn halted(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<(PartitionId, HaltRecord)> {
        if matches!(source, ReadySource::Shared { .. }) {
            return Ok((vec![], None));
        }
        let list = keyspace::listing(source, Listing::Halted);
        let limit = limit.clamp(1, PAGE_MAX);
        let (members, next) = self.scan(Scan::Set, &list, "", cursor, limit, limit).await?;
        let rules = self.rules();
        let keys: Vec<Key> = members.iter().filter_map(|member| keyspace::stored_key(member, &rules)).collect();
        let partitions: Vec<_> = keys.into_iter().map(|key| partition_of(source, key)).collect();
        let mut reads = redis::pipe();
        for partition in &partitions {
            reads.cmd("HGET").arg(keyspace::part(partition, keyspace::Part::Halt)).arg("record");
        }
        let records = self.connection.call_all(&reads, partitions.len()).await?;
        let mut rows = Vec::with_capacity(partitions.len());
        for (partition, record) in partitions.into_iter().zip(records) {
            // One that was freed between the two reads has no record any more.
            if let Some(record) = answer::bytes(record)? {
                rows.push((partition, wire::decode(&record)?));
            }
        }
        Ok((rows, next))
    }

    async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let newly = self.set_pause(category, key, "pause", by).await?;
        // Also when it was paused already: whoever paused it may have died before all owners were sent away.
        self.evict(category, key).await?;
        Ok(newly)
    }

    async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        self.set_pause(category, key, "resume", by).await
    }

    async fn paused(&self, category: &CategoryName) -> Result<Vec<Paused>, Error> {
        let answer = self.connection.call(redis::cmd("HGETALL").arg(keyspace::paused(category))).await?;
        pausing::decode(category, answer, &self.rules())
    }

    async fn dead_letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        limit: usize,
    ) -> Rows<DeadLetter> {
        self.letters(category, key, cursor, limit.clamp(1, PAGE_MAX)).await
    }

    async fn dead_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        Ok(self.letter_of(category, key, id).await?)
    }

    async fn redrive(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError> {
        self.redrive_letter(category, key, id, by).await
    }

    async fn purge(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<(), OperateError> {
        self.purge_letter(category, key, id, by).await
    }

    async fn record(&self, action: &str, target: &str, by: &By) -> Result<(), Error> {
        let mut call = Call::new("keyrail_6_record", 0);
        call.arg(action).arg(target).arg(&by.who).arg(&by.reason);
        let mut answer = Answer::of(self.call(&call).await?)?;
        match answer.status()? {
            Status::Ok => Ok(()),
            Status::Refused => Err(Error::Refused(answer.text()?)),
            other => Err(Error::Corrupt(format!("the audit answered {other:?}"))),
        }
    }

    async fn audit(&self, cursor: u64, limit: usize) -> Rows<AuditRow> {
        // The ids are 1-0, 1-1, …; the cursor is the sequence that was shown last.
        let from = if cursor == 0 { "+".into() } else { format!("(1-{cursor}") };
        let limit = limit.clamp(1, PAGE_MAX);
        let mut read = redis::cmd("XREVRANGE");
        read.arg(keyspace::AUDIT).arg(from).arg("-").arg("COUNT").arg(limit);
        let listed = Answer::of(self.connection.call(&read).await?)?;
        let full = listed.len() == limit;
        let (mut rows, mut last) = (Vec::with_capacity(listed.len()), 0);
        for value in listed.rest() {
            let (id, row) = audit_row(value)?;
            last = id.sequence;
            rows.push(row);
        }
        Ok((rows, (full && last > 0).then_some(last)))
    }
}

/// `order`, or `order/client-7`.
pub(super) fn place(category: &CategoryName, key: Option<&Key>) -> String {
    key.map_or_else(|| category.to_string(), |key| format!("{category}/{key}"))
}

fn audit_row(value: Value) -> Result<(EntryId, AuditRow), Error> {
    let mut answer = Answer::of(value)?;
    let id = answer::entry_id(&answer.text()?)?.ok_or_else(|| Error::Corrupt("an entry has no id".into()))?;
    let mut fields = answer.list()?;
    let by = By { who: String::new(), reason: String::new() };
    let mut row = AuditRow { at_ms: 0, action: String::new(), target: String::new(), entry: String::new(), by };
    while !fields.is_empty() {
        let name = fields.text()?;
        let text = String::from_utf8_lossy(&fields.bytes()?).into_owned();
        match name.as_str() {
            "at" => row.at_ms = text.parse().unwrap_or(0),
            "action" => row.action = text,
            "target" => row.target = text,
            "entry" => row.entry = text,
            "who" => row.by.who = text,
            "reason" => row.by.reason = text,
            _ => {}
        }
    }
    Ok((id, row))
}
