//! Dead letters: events that were set aside, as fields that redis-cli can read.
//!
//! Invariant: a letter never changes; publishing it again and dropping it are one step.

use bytes::Bytes;
use keyrail_ordering::{CategoryName, EntryId, EntryRef, GroupName, Key, Lane};
use redis::Value;

use super::RedisBroker;
use super::answer::{self, Answer, Status};
use super::decode::{decode_headers, encode_headers};
use super::functions::Call;
use super::keyspace::{self, Name};
use super::operate::place;
use crate::{By, DeadLetter, Error, OperateError, REDRIVEN_FOR, Rows};

/// In a cursor: the sequence within a key below, the rank of the key above.
const SEQUENCE_BITS: u32 = 40;
const SEQUENCE_PART: u64 = (1 << SEQUENCE_BITS) - 1;

/// Keys of a category whose letters are counted.
const COUNTED_KEYS_MAX: usize = 64;

impl RedisBroker {
    pub(super) async fn letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        limit: usize,
    ) -> Rows<DeadLetter> {
        let mut call = Call::new("keyrail_6_letters", 0);
        call.arg(category.as_str())
            .arg(if key.is_some() { "one" } else { "all" })
            .arg(key.map_or("", Key::as_str))
            .arg(cursor >> SEQUENCE_BITS)
            .arg(cursor & SEQUENCE_PART)
            .arg(limit);
        let mut answer = Answer::of(self.call(&call).await?)?;
        let (rank, sequence) = (answer.optional_number()?, answer.optional_number()?);
        let next = rank.zip(sequence).map(|(rank, sequence)| (rank << SEQUENCE_BITS) | sequence);
        let mut listed = answer.list()?;
        let mut letters = vec![];
        while !listed.is_empty() {
            let key = listed.text()?;
            for value in listed.list()?.rest() {
                match self.letter(category, &key, value) {
                    Ok(letter) => letters.push(letter),
                    Err(error) => tracing::warn!("a dead letter of {category} {key} is passed over: {error}"),
                }
            }
        }
        Ok((letters, next))
    }

    /// Letters of these categories: those of each one's first keys are counted, and of the rest one a key.
    pub(super) async fn count_letters(&self, categories: &[CategoryName]) -> Result<u64, Error> {
        if categories.is_empty() {
            return Ok(0);
        }
        let mut listed = redis::pipe();
        for category in categories {
            let keys = keyspace::dlqs(category);
            listed.cmd("ZCARD").arg(&keys).cmd("ZRANGE").arg(&keys).arg(0).arg(COUNTED_KEYS_MAX - 1);
        }
        let mut answers = self.connection.call_all(&listed, categories.len() * 2).await?.into_iter();
        let (mut letters, mut lengths, rules) = (0, vec![], self.rules());
        for category in categories {
            let (Some(keys), Some(first)) = (answers.next(), answers.next()) else { break };
            let mut first = Answer::of(first)?;
            letters += answer::number(&keys)?.saturating_sub(first.len() as u64);
            while !first.is_empty() {
                let key = first.text()?;
                lengths.push(keyspace::dlq(category, keyspace::stored_key(&key, &rules).as_ref()));
            }
        }
        if lengths.is_empty() {
            return Ok(letters);
        }
        let mut counts = redis::pipe();
        for dlq in &lengths {
            counts.cmd("XLEN").arg(dlq);
        }
        for count in self.connection.call_all(&counts, lengths.len()).await? {
            letters += answer::number(&count)?;
        }
        Ok(letters)
    }

    pub(super) async fn purge_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<(), OperateError> {
        let call = letter_call("keyrail_6_purge", category, key, id, by);
        let answer = Answer::of(self.call(&call).await.map_err(Error::from)?)?;
        judged(answer, category, key, id).map(drop)
    }

    pub(super) async fn redrive_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError> {
        let Some(letter) = self.letter_of(category, key, id).await? else {
            return Err(OperateError::NoDeadLetter { place: place(category, key), id });
        };
        if letter.event_id.is_empty() {
            let why =
                format!("the dead letter {id} of {} is no event that could be read; purge it", place(category, key));
            return Err(Error::Refused(why).into());
        }
        let mut headers = letter.headers;
        headers.retain(|(name, _)| name != REDRIVEN_FOR);
        headers.push((REDRIVEN_FOR.into(), letter.group.to_string()));
        let mut call = letter_call("keyrail_6_redrive", category, key, id, by);
        call.arg(letter.event_id)
            .arg(letter.name)
            .arg(letter.version)
            .arg(encode_headers(&headers))
            .arg(&letter.data[..])
            .arg(letter.group.as_str())
            .flag(letter.origin.stream.lane == Lane::Backfill);
        let answer = Answer::of(self.call(&call).await.map_err(Error::from)?)?;
        let published = judged(answer, category, key, id)?.text()?;
        let published = answer::entry_id(&published)?;
        Ok(published.ok_or_else(|| Error::Corrupt("an entry was published without id".into()))?)
    }

    pub(super) async fn letter_of(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        let dlq = keyspace::dlq(category, key);
        let read = self.connection.call(redis::cmd("XRANGE").arg(dlq).arg(id.to_string()).arg(id.to_string())).await?;
        let value = Answer::of(read)?.rest().next();
        value.map(|value| self.letter(category, key.map_or("", Key::as_str), value)).transpose()
    }

    /// What lies under an id of the dead letters of a category and key (nothing for none).
    fn letter(&self, category: &CategoryName, key: &str, value: Value) -> Result<DeadLetter, Error> {
        let lacks = |what: &str| Error::Corrupt(format!("it has no usable field `{what}`"));
        let rules = self.rules();
        let mut row = Answer::of(value)?;
        let id = answer::entry_id(&row.text()?)?.ok_or_else(|| lacks("id"))?;
        let mut fields = Fields::default();
        let mut list = row.list()?;
        while !list.is_empty() {
            let (name, value) = (list.text()?, list.bytes()?);
            fields.put(&name, value);
        }
        let Some(Name::Stream(stream)) = keyspace::parse(&fields.text("stream"), &rules) else {
            return Err(lacks("stream"));
        };
        let entry = answer::entry_id(&fields.text("entry"))?.ok_or_else(|| lacks("entry"))?;
        let version: Option<u32> = fields.text("version").parse().ok();
        // An event that cannot be read has no id here, whatever of it there was.
        let readable = !fields.text("id").is_empty() && !fields.text("type").is_empty() && version.is_some();
        let only_readable = |text: String| if readable { text } else { String::new() };
        Ok(DeadLetter {
            id,
            category: category.clone(),
            key: if key.is_empty() { None } else { keyspace::stored_key(key, &rules) },
            group: GroupName::parse(&fields.text("group")).map_err(|_| lacks("group"))?,
            origin: EntryRef { stream, id: entry },
            event_id: only_readable(fields.text("id")),
            name: only_readable(fields.text("type")),
            version: version.filter(|_| readable).unwrap_or(0),
            headers: decode_headers(&fields.bytes("headers")).unwrap_or_default(),
            data: fields.bytes("data"),
            attempts: fields.text("attempts").parse().unwrap_or(0),
            error: fields.text("error"),
            by: By { who: fields.text("who"), reason: fields.text("reason") },
            at_ms: fields.text("at").parse().unwrap_or(0),
        })
    }
}

#[derive(Default)]
struct Fields(Vec<(String, Bytes)>);

impl Fields {
    fn put(&mut self, name: &str, value: Bytes) {
        self.0.push((name.into(), value));
    }

    fn bytes(&self, name: &str) -> Bytes {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }
}

fn letter_call(function: &'static str, category: &CategoryName, key: Option<&Key>, id: EntryId, by: &By) -> Call {
    let mut call = Call::new(function, 1);
    call.arg(keyspace::dlq(category, key))
        .arg(category.as_str())
        .arg(key.map_or("", Key::as_str))
        .arg(id.to_string())
        .arg(&by.who)
        .arg(&by.reason)
        .arg(place(category, key));
    call
}

fn judged(mut answer: Answer, category: &CategoryName, key: Option<&Key>, id: EntryId) -> Result<Answer, OperateError> {
    match answer.status()? {
        Status::Ok => Ok(answer),
        Status::NotHead => Err(OperateError::NoDeadLetter { place: place(category, key), id }),
        Status::Refused => Err(Error::Refused(answer.text()?).into()),
        other => Err(Error::Corrupt(format!("an action on a dead letter answered {other:?}")).into()),
    }
}
