//! The fenced operations of an owner.

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{EntryRef, HaltRecord, Lease, Outgoing, StreamId};

use super::answer::{self, Answer, Status};
use super::decode::{self, encode_headers};
use super::functions::Call;
use super::keyspace::{self, Part};
use super::{READ_MAX, RedisBroker, TIME_MAX_MS};
use crate::{Commit, Committed, Error, FencedError, Log, Taken, wire};

/// How much of an error is kept.
const ERROR_MAX_BYTES: usize = 4 * 1024;

#[async_trait]
impl Log for RedisBroker {
    async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let names = self.stream_names(&lease.partition);
        let mut call = Self::partition_call("keyrail_4_take", &lease.partition, &names);
        call.arg(lease.token()).arg(max.clamp(1, READ_MAX)).flag(recover).arg(self.kept());
        let mut answer = self.fenced(&call, None).await?;
        let more = answer.flag()?;
        let streams = &lease.partition.streams;
        let attempts = decode::attempts(answer.optional_list()?, streams, &names)?;
        Ok(Taken { entries: decode::segments(answer.list()?, streams)?, attempts, more })
    }

    async fn state(&self, lease: &Lease, name: &str) -> Result<Option<Bytes>, FencedError> {
        let id = &lease.partition.id;
        let mut call = Call::new("keyrail_4_state", 1);
        call.arg(keyspace::part(id, Part::State))
            .arg(keyspace::scope(id))
            .arg(id.group.as_str())
            .arg(lease.token())
            .arg(name);
        let mut answer = self.fenced(&call, None).await?;
        Ok(answer::bytes(answer.value()?)?)
    }

    async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
        let Some(first) = commit.entries.first() else {
            return Err(Error::Refused("a commit names no entry".into()).into());
        };
        let partition = &lease.partition;
        let names = self.stream_names(partition);
        let mut call = Self::partition_call("keyrail_4_commit", partition, &names);
        call.arg(lease.token())
            .arg(place_of(lease, &first.stream)?)
            .arg(commit.take_max.min(READ_MAX))
            .flag(commit.release)
            .arg(self.kept())
            .arg(commit.version.as_deref().unwrap_or_default())
            .arg(commit.entries.len());
        for entry in &commit.entries {
            if entry.stream != first.stream {
                return Err(Error::Refused("a commit names entries of two streams".into()).into());
            }
            call.arg(entry.id.to_string());
        }
        let state = &commit.effects.state;
        let puts = || state.iter().filter_map(|change| Some((&change.name, change.value.as_ref()?)));
        let removals = || state.iter().filter(|change| change.value.is_none());
        call.arg(puts().count());
        for (name, value) in puts() {
            call.arg(name).arg(&value[..]);
        }
        call.arg(removals().count());
        for change in removals() {
            call.arg(&change.name);
        }
        emits(&mut call, &commit.effects.emits);
        let mut answer = self.fenced(&call, Some(first)).await?;
        let more = answer.flag()?;
        let released = answer.flag()?;
        let place = answer.number()? as usize;
        let list = answer.list()?;
        let mut entries = Vec::with_capacity(list.len());
        if let Some(stream) = place.checked_sub(1).and_then(|place| partition.streams.get(place)) {
            decode::entries_into(&mut entries, list, stream)?;
        }
        Ok(Committed { entries, more, released })
    }

    async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        place_of(lease, &head.stream)?;
        let names = [keyspace::stream(&head.stream, &self.rules())];
        let mut call = Self::partition_call("keyrail_4_fail", &lease.partition, &names);
        call.arg(lease.token()).arg(head.id.to_string()).arg(attempt).arg(after_ms.min(TIME_MAX_MS)).arg(cut(error));
        self.fenced(&call, Some(head)).await?;
        Ok(())
    }

    async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        let names = self.stream_names(&lease.partition);
        let mut call = Self::partition_call("keyrail_4_halt", &lease.partition, &names);
        let record = HaltRecord { error: cut(&record.error).into(), ..record.clone() };
        call.arg(lease.token())
            .arg(place_of(lease, &record.head.stream)?)
            .arg(record.head.id.to_string())
            .arg(wire::encode(&record))
            .arg(record.attempts)
            .arg(&record.error);
        self.fenced(&call, Some(&record.head)).await?;
        Ok(())
    }
}

impl RedisBroker {
    /// Calls, and turns every answer but OK into its error. `named` is the entry that the call names.
    async fn fenced(&self, call: &Call, named: Option<&EntryRef>) -> Result<Answer, FencedError> {
        let mut answer = Answer::of(self.call(call).await.map_err(Error::from)?)?;
        match (answer.status()?, named) {
            (Status::Ok, _) => Ok(answer),
            (Status::Fenced, _) => Err(FencedError::Fenced),
            (Status::NotHead, Some(named)) => {
                Err(FencedError::NotHead { named: named.clone(), head: answer::entry_id(&answer.text()?)? })
            }
            (Status::Refused, _) => Err(Error::Refused(answer.text()?).into()),
            (other, _) => Err(Error::Corrupt(format!("a fenced operation answered {other:?}")).into()),
        }
    }
}

/// Where a stream stands among the partition's, from 1, as Lua counts.
fn place_of(lease: &Lease, stream: &StreamId) -> Result<usize, Error> {
    let place = lease.partition.streams.iter().position(|of| of == stream);
    place
        .map(|place| place + 1)
        .ok_or_else(|| Error::Refused(format!("{stream} is no stream of {}", lease.partition.id)))
}

/// Events for the outbox: their number, and eight values of each.
pub(super) fn emits(call: &mut Call, emits: &[Outgoing]) {
    call.arg(emits.len());
    for emit in emits {
        let event = &emit.event;
        call.arg(event.category.as_str())
            .arg(event.key.as_ref().map_or("", |key| key.as_str()))
            .arg(emit.key_field.as_deref().unwrap_or_default())
            .arg(&*event.id)
            .arg(event.name.as_str())
            .arg(event.version)
            .arg(encode_headers(&event.headers))
            .arg(&event.data[..]);
    }
}

pub(super) fn cut(error: &str) -> &str {
    &error[..error.floor_char_boundary(ERROR_MAX_BYTES)]
}
