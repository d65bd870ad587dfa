//! The fenced operations of an owner.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{Effects, Entry, EntryId, EntryRef, HaltRecord, Lease, Outgoing, StreamId};

use super::answer::{self, Answer, Status};
use super::decode::{self, encode_headers};
use super::functions::Call;
use super::keyspace::{self, Part};
use super::reading::{ROWS_ALONG, Reading, inside, is_first_of_a_key, is_time_to_trim};
use super::{READ_MAX, RedisBroker, TIME_MAX_MS};
use crate::{Commit, Committed, Error, FencedError, Log, Operate as _, Taken, wire};

/// How much of an error is kept.
const ERROR_MAX_BYTES: usize = 4 * 1024;

#[async_trait]
impl Log for RedisBroker {
    async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let max = max.clamp(1, READ_MAX);
        let mut known = self.readings.take(lease).filter(|_| !recover);
        if let Some(reading) = known.take_if(|known| is_first_of_a_key(&lease.partition, known.serving)) {
            // Whatever follows in the stream of the head comes first, and reading it changes nothing.
            let after = reading.in_hand().unwrap_or(reading.settled[0]);
            let row = self.row(lease, &reading.names, reading.serving, after, max);
            let (text, row) = futures::join!(self.lease_text(lease), row);
            let ((entries, more), is_as_known) = (row?, text? == reading.lease_text(&lease.token()));
            if let Some(last) = entries.last().filter(|_| is_as_known) {
                self.readings.set(lease, Reading { last: Some(last.at.id), more, ..reading });
                return Ok(Taken { entries, attempts: None, more });
            }
            known = Some(reading);
        }
        let hand = known.as_ref().and_then(|known| Some((known.serving, known.in_hand()?)));
        let names = known.as_ref().map_or_else(|| self.stream_names(&lease.partition), |known| known.names.clone());
        let mut call = Self::partition_call("keyrail_6_take", &lease.partition, &names);
        call.arg(lease.token())
            .arg(hand.map_or(0, |(place, _)| place))
            .arg(hand.map(|(_, id)| id.to_string()).unwrap_or_default())
            .arg(inside(&lease.partition, max))
            .flag(recover)
            .arg(self.kept());
        let mut answer = self.fenced(&call, None).await?;
        let more = answer.flag()?;
        let attempts = decode::attempts(answer.optional_list()?, &lease.partition.streams, &names)?;
        let settled = decode::settled(answer.list()?)?;
        let serving = answer.number()? as usize;
        let has_failed = attempts.is_some() || known.is_some_and(|known| known.has_failed);
        let last = hand.map(|(_, id)| id);
        let reading = Reading { names, serving, settled, last, more, has_failed };
        let (entries, more) = self.first_rows(lease, reading, answer.list()?, max).await?;
        Ok(Taken { entries, attempts, more })
    }

    async fn state(&self, lease: &Lease, name: &str) -> Result<Option<Bytes>, FencedError> {
        let id = &lease.partition.id;
        let mut call = Call::new("keyrail_6_state", 1);
        call.arg(keyspace::part(id, Part::State))
            .arg(keyspace::scope(id))
            .arg(id.group.as_str())
            .arg(lease.token())
            .arg(name);
        let mut answer = self.fenced(&call, None).await?;
        Ok(answer::bytes(answer.value()?)?)
    }

    async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
        let (Some(first), Some(last)) = (commit.entries.first(), commit.entries.last()) else {
            return Err(Error::Refused("a commit names no entry".into()).into());
        };
        if commit.entries.iter().any(|entry| entry.stream != first.stream) {
            return Err(Error::Refused("a commit names entries of two streams".into()).into());
        }
        let place = place_of(lease, &first.stream)?;
        let Some(mut reading) = self.reading(lease).await? else { return Err(FencedError::Fenced) };
        if !reading.begins_with(place, &commit.entries) {
            return Err(Box::pin(self.not_head(lease, reading, first)).await?);
        }
        let token = lease.token();
        let expected = reading.lease_text(&token);
        reading.settled[place - 1] = last.id;
        let in_hand = reading.in_hand();
        let take_max = commit.take_max.min(READ_MAX);
        let reads_on = take_max > 0 && reading.more && is_first_of_a_key(&lease.partition, place);
        let goes_on = in_hand.is_some() || reads_on;
        let trims = is_time_to_trim(first.id, last.id);
        let effects = &commit.effects;
        let only_settles = goes_on
            && !(trims || reading.has_failed || commit.version.is_some() || !effects.emits.is_empty())
            && effects.state.iter().all(|change| change.value.is_some());
        let mut call;
        if only_settles {
            call = Call::new("keyrail_6_settle", 1);
            call.arg(&reading.names[place - 1])
                .arg(keyspace::scope(&lease.partition.id))
                .arg(lease.partition.id.group.as_str())
                .arg(expected)
                .arg(reading.lease_text(&token))
                .arg(place)
                .arg(last.id.to_string())
                .arg(last.id.sequence + 1);
            puts(&mut call, effects);
        } else {
            call = Self::partition_call("keyrail_6_commit", &lease.partition, &reading.names);
            call.arg(&token)
                .arg(expected)
                .arg(reading.lease_text(&token))
                .arg(place)
                .arg(first.id.to_string())
                .arg(last.id.to_string())
                .arg(last.id.sequence + 1)
                .flag(trims)
                .flag(reading.has_failed)
                .flag(!goes_on)
                .arg(if take_max == 0 { 0 } else { inside(&lease.partition, take_max) })
                .flag(commit.release)
                .arg(self.kept())
                .arg(commit.version.as_deref().unwrap_or_default());
            all_effects(&mut call, effects);
        }
        let committing = self.fenced_status(&call, Some(first));
        if reads_on {
            // On its way behind the commit, on the same connection.
            let after = in_hand.unwrap_or(last.id);
            // In a box, since most commits read nothing, and each allocates room for all that it may do.
            let row = Box::pin(self.row(lease, &reading.names, place, after, take_max));
            let (answer, row) = futures::join!(committing, row);
            answer?;
            // Without its rows the commit is one that read nothing: they are asked for again.
            let (entries, more) = row.unwrap_or_else(|_| (vec![], true));
            reading.last = Some(entries.last().map_or(after, |entry| entry.at.id));
            (reading.more, reading.has_failed) = (more, false);
            self.readings.set(lease, reading);
            // A row that is empty says nothing of the other lanes, nor does it take the key out of the ready set.
            let more = more || entries.is_empty();
            return Ok(Committed { entries, more, released: false });
        }
        let (status, mut answer) = committing.await?;
        reading.has_failed = false;
        let mut committed = Committed { entries: vec![], more: false, released: status == Status::Released };
        match status {
            Status::Released => return Ok(committed),
            // It stays with its stream.
            Status::Dry => (reading.last, reading.more) = (None, false),
            // What is behind that which is in hand was not looked at.
            _ if goes_on => committed.more = true,
            _ => {
                committed.more = answer.flag()?;
                let from = answer.number()? as usize;
                if let Some(stream) = lease.partition.streams.get(from.wrapping_sub(1)) {
                    let settled = Some(reading.settled[from - 1]);
                    committed.entries = decode::entries_after(settled, answer.list()?, stream)?;
                }
                reading.serving = from;
                reading.last = committed.entries.last().map(|entry| entry.at.id);
                reading.more = committed.more;
            }
        }
        self.readings.set(lease, reading);
        Ok(committed)
    }

    async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let place = place_of(lease, &head.stream)?;
        let names = self.stream_names(&lease.partition);
        let mut call = Self::partition_call("keyrail_6_fail", &lease.partition, &names);
        call.arg(lease.token())
            .arg(place)
            .arg(head.id.to_string())
            .arg(attempt)
            .arg(after_ms.min(TIME_MAX_MS))
            .arg(cut(error));
        self.fenced(&call, Some(head)).await?;
        self.readings.failed(lease);
        Ok(())
    }

    async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        let names = self.stream_names(&lease.partition);
        let mut call = Self::partition_call("keyrail_6_halt", &lease.partition, &names);
        let record = HaltRecord { error: cut(&record.error).into(), ..record.clone() };
        call.arg(lease.token())
            .arg(place_of(lease, &record.head.stream)?)
            .arg(record.head.id.to_string())
            .arg(wire::encode(&record))
            .arg(record.attempts)
            .arg(&record.error);
        self.fenced(&call, Some(&record.head)).await?;
        self.readings.forget(lease);
        Ok(())
    }
}

impl RedisBroker {
    /// Calls, and turns every answer but OK into its error. `named` is the entry that the call names.
    async fn fenced(&self, call: &Call, named: Option<&EntryRef>) -> Result<Answer, FencedError> {
        self.fenced_status(call, named).await.map(|(_, answer)| answer)
    }

    /// The same of a call that succeeds in several ways.
    async fn fenced_status(&self, call: &Call, named: Option<&EntryRef>) -> Result<(Status, Answer), FencedError> {
        let mut answer = Answer::of(self.call(call).await.map_err(Error::from)?)?;
        match (answer.status()?, named) {
            (status @ (Status::Ok | Status::Dry | Status::Released), _) => Ok((status, answer)),
            (Status::Fenced, _) => Err(FencedError::Fenced),
            (Status::NotHead, Some(named)) => {
                Err(FencedError::NotHead { named: named.clone(), head: answer::entry_id(&answer.text()?)? })
            }
            (Status::Refused, _) => Err(Error::Refused(answer.text()?).into()),
            (other, _) => Err(Error::Corrupt(format!("a fenced operation answered {other:?}")).into()),
        }
    }

    /// What is known of this ownership, asked for if need be. None: it is another's.
    async fn reading(&self, lease: &Lease) -> Result<Option<Reading>, Error> {
        if let Some(known) = self.readings.take(lease) {
            return Ok(Some(known));
        }
        Reading::of_lease(lease, &self.lease_text(lease).await?, self.stream_names(&lease.partition))
    }

    /// What the lease says, whoever holds it; empty if nobody does.
    async fn lease_text(&self, lease: &Lease) -> Result<String, Error> {
        let name = keyspace::part(&lease.partition.id, Part::Lease);
        let text = answer::bytes(self.connection.call(redis::cmd("GET").arg(name)).await?)?;
        Ok(text.as_deref().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default())
    }

    /// A commit that names other entries than those in hand, from the head on. Whether the lease is held at all comes first.
    async fn not_head(&self, lease: &Lease, reading: Reading, named: &EntryRef) -> Result<FencedError, Error> {
        let asked = self.reading(lease).await?;
        self.readings.set(lease, reading);
        if asked.is_none() {
            return Ok(FencedError::Fenced);
        }
        let head = self.head(&lease.partition).await?.map(|head| head.entry.at.id);
        Ok(FencedError::NotHead { named: named.clone(), head })
    }

    /// The rows of an answer that reads. Reads on, up to `max`, what the function left.
    pub(super) async fn first_rows(
        &self,
        lease: &Lease,
        reading: Reading,
        rows: Answer,
        max: usize,
    ) -> Result<(Vec<Arc<Entry>>, bool), Error> {
        let place = reading.serving;
        let mut entries = vec![];
        if let Some(stream) = lease.partition.streams.get(place.wrapping_sub(1)) {
            let settled = reading.settled.get(place - 1).copied();
            entries = decode::entries_after(reading.in_hand().or(settled), rows, stream)?;
        }
        self.read_on(lease, reading, entries, max).await
    }

    /// The rows of the first stream that came along with acquire. They end before anything that is not settled where another group is
    /// behind; and where they could not be read, it is an acquire that read nothing.
    pub(super) async fn rows_along(
        &self,
        lease: &Lease,
        mut reading: Reading,
        rows: Result<Answer, Error>,
        max: usize,
    ) -> Result<(Vec<Arc<Entry>>, bool), Error> {
        let mut entries = vec![];
        if let Ok(rows) = rows {
            reading.more = rows.len() == ROWS_ALONG.min(max);
            entries = decode::entries_after(Some(reading.settled[0]), rows, &lease.partition.streams[0])?;
        }
        reading.more |= entries.is_empty();
        self.read_on(lease, reading, entries, max).await
    }

    /// Puts on record what was read, and reads the rest of up to `max` entries where it may be read without asking.
    async fn read_on(
        &self,
        lease: &Lease,
        mut reading: Reading,
        mut entries: Vec<Arc<Entry>>,
        max: usize,
    ) -> Result<(Vec<Arc<Entry>>, bool), Error> {
        let place = reading.serving;
        if reading.more && entries.len() < max && is_first_of_a_key(&lease.partition, place) {
            let known = reading.in_hand().unwrap_or(reading.settled[0]);
            let after = entries.last().map_or(known, |entry| entry.at.id);
            let (rest, more) = self.row(lease, &reading.names, place, after, max - entries.len()).await?;
            entries.extend(rest);
            // A row that is empty says nothing of the other lanes.
            reading.more = more || entries.is_empty();
        }
        reading.last = entries.last().map(|entry| entry.at.id).or(reading.last);
        let more = reading.more;
        self.readings.set(lease, reading);
        Ok((entries, more))
    }

    /// Entries of one stream behind an id, and whether there may be more. Not fenced: it changes nothing.
    async fn row(
        &self,
        lease: &Lease,
        names: &[String],
        place: usize,
        after: EntryId,
        max: usize,
    ) -> Result<(Vec<Arc<Entry>>, bool), Error> {
        let list = self.read_rows(&names[place - 1], &format!("({after}"), max).await?;
        let is_full = list.len() == max;
        Ok((decode::entries_after(Some(after), list, &lease.partition.streams[place - 1])?, is_full))
    }

    /// Rows of a stream from an id on.
    pub(super) async fn read_rows(&self, stream: &str, from: &str, max: usize) -> Result<Answer, Error> {
        let mut read = redis::cmd("XRANGE");
        read.arg(stream).arg(from).arg("+").arg("COUNT").arg(max);
        Answer::of(self.connection.call(&read).await?)
    }
}

/// Where a stream stands among the partition's, from 1, as Lua counts.
fn place_of(lease: &Lease, stream: &StreamId) -> Result<usize, Error> {
    let place = lease.partition.streams.iter().position(|of| of == stream);
    place
        .map(|place| place + 1)
        .ok_or_else(|| Error::Refused(format!("{stream} is no stream of {}", lease.partition.id)))
}

/// State that is written: names and values.
fn puts(call: &mut Call, effects: &Effects) {
    for (name, value) in effects.state.iter().filter_map(|change| Some((&change.name, change.value.as_ref()?))) {
        call.arg(name).arg(&value[..]);
    }
}

/// State that is written, state that is removed, events; how many of each comes first.
fn all_effects(call: &mut Call, effects: &Effects) {
    let removals = || effects.state.iter().filter(|change| change.value.is_none());
    call.arg(effects.state.len() - removals().count());
    puts(call, effects);
    call.arg(removals().count());
    for change in removals() {
        call.arg(&change.name);
    }
    emits(call, &effects.emits);
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
