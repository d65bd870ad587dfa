//! Owning partitions, and finding those that need an owner.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use keyrail_ordering::{Generation, Lease, Member, OwnerId, PartitionSpec};

use super::answer::{Answer, Status};
use super::connection::Connection;
use super::decode;
use super::functions::{self, Call};
use super::keyspace::{self, Listing, Part};
use super::reading::{ROWS_ALONG, Reading, inside, is_first_of_a_key};
use super::{READ_MAX, RedisBroker, TIME_MAX_MS, bells, members};
use crate::{AcquireError, Acquired, Bells, Error, Heartbeat, Leases, ReadySet, ReadySource, Retention, wire};

/// Leases in one call.
const RENEW_MAX: usize = 200;

#[async_trait]
impl Leases for RedisBroker {
    async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError> {
        let names = self.stream_names(&partition);
        let take_max = take_max.clamp(1, READ_MAX);
        // A stream of which nothing settled is kept begins with what is not: then its first rows can be on their way behind the call.
        let reads_along = is_first_of_a_key(&partition, 1) && self.settings.retention == Retention::default();
        let read_inside = if reads_along { 0 } else { inside(&partition, take_max) };
        let mut call = Self::partition_call("keyrail_6_acquire", &partition, &names);
        call.arg(owner.as_str())
            .arg(ttl_ms.clamp(1, TIME_MAX_MS))
            .arg(read_inside)
            .arg(self.highest.load(Ordering::Relaxed))
            .arg(self.kept());
        let along = async {
            if reads_along { Some(self.read_rows(&names[0], "-", ROWS_ALONG.min(take_max)).await) } else { None }
        };
        let (answer, along) = futures::join!(self.call(&call), along);
        let mut answer = Answer::of(answer.map_err(Error::from)?)?;
        match answer.status()? {
            Status::Ok => {
                let first = FirstRead { max: take_max, inside: read_inside.max(1), along };
                Ok(self.acquired(partition, owner, names, answer, first).await?)
            }
            Status::Held => Err(AcquireError::Held { holder: answer.text()? }),
            Status::Halted => Err(AcquireError::Halted(Box::new(wire::decode(&answer.bytes()?)?))),
            Status::Paused => Err(AcquireError::Paused),
            Status::Refused => Err(Error::Refused(answer.text()?).into()),
            other => Err(Error::Corrupt(format!("acquire answered {other:?}")).into()),
        }
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let names = self.stream_names(&lease.partition);
        let mut call = Self::partition_call("keyrail_6_release", &lease.partition, &names);
        call.arg(lease.token()).arg(self.kept());
        self.readings.forget(lease);
        self.call(&call).await?;
        Ok(())
    }

    fn heartbeat(&self) -> Box<dyn Heartbeat> {
        Box::new(RedisHeartbeat { connection: Connection::new(self.client.clone(), self.timeouts()) })
    }

    async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
        let mut call = Call::new("keyrail_6_ready", 1);
        call.arg(keyspace::listing(source, Listing::Ready))
            .arg(keyspace::collection(source))
            .arg(source.group().as_str())
            .arg(cursor)
            .arg(limit.max(1));
        let mut answer = Answer::of(self.call(&call).await?)?;
        let next = answer.optional_number()?;
        let due_ms = answer.optional_number()?;
        let rules = self.rules();
        let mut listed = answer.list()?;
        let mut keys = Vec::with_capacity(listed.len());
        while !listed.is_empty() {
            keys.extend(keyspace::stored_key(&listed.text()?, &rules));
        }
        Ok(ReadySet { keys, next, due_ms })
    }

    async fn bells(&self, sources: Vec<ReadySource>) -> Result<Bells, Error> {
        Ok(bells::listen(self.client.clone(), self.timeouts(), &sources, self.rules()))
    }
}

/// How the first entries of an ownership were asked for.
struct FirstRead {
    max: usize,
    /// How many the function reads itself, if it has to look.
    inside: usize,
    /// Rows of the first stream that came along, from its beginning.
    along: Option<Result<Answer, Error>>,
}

impl RedisBroker {
    async fn acquired(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        names: Arc<[String]>,
        mut answer: Answer,
        first: FirstRead,
    ) -> Result<Acquired, Error> {
        let text = answer.text()?;
        let lease = Lease { generation: generation_of(&text, owner)?, partition, owner: owner.clone() };
        self.saw_generation(lease.generation.0);
        let attempts = decode::attempts(answer.optional_list()?, &lease.partition.streams, &names)?;
        let state = match answer.optional_list()? {
            None => None,
            Some(mut listed) => {
                let mut state = Vec::with_capacity(listed.len() / 2);
                while !listed.is_empty() {
                    state.push((listed.text()?, listed.bytes()?));
                }
                Some(state)
            }
        };
        let Some(mut reading) = Reading::of_lease(&lease, &text, names)? else {
            return Err(Error::Corrupt(format!("acquire answered with the lease {text}")));
        };
        reading.has_failed = attempts.is_some();
        // Of epoch 0 is what stands for nothing.
        let positions = lease.partition.streams.iter().cloned().zip(reading.settled.iter().copied());
        let positions = positions.filter(|(_, id)| id.epoch > 0).collect();
        let inside = answer.list()?;
        let (entries, more) = if let Some(rows) = first.along.filter(|_| reading.serving == 1) {
            self.rows_along(&lease, reading, rows, first.max).await?
        } else {
            reading.more = inside.len() == first.inside;
            self.first_rows(&lease, reading, inside, first.max).await?
        };
        Ok(Acquired { lease, entries, attempts, positions, more, state })
    }
}

/// The generation in the text of this owner's lease.
fn generation_of(text: &str, owner: &OwnerId) -> Result<Generation, Error> {
    let rest = text.strip_prefix(owner.as_str()).and_then(|rest| rest.strip_prefix(':'));
    let number = rest.and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.map(Generation).ok_or_else(|| Error::Corrupt(format!("acquire answered with the lease {text}")))
}

/// Renews over a connection of its own, which opens at the first call, on the thread that makes it.
struct RedisHeartbeat {
    connection: Connection,
}

#[async_trait]
impl Heartbeat for RedisHeartbeat {
    async fn renew(&mut self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error> {
        let mut held = Vec::with_capacity(leases.len());
        for some in leases.chunks(RENEW_MAX) {
            let mut call = Call::new("keyrail_6_renew", some.len());
            for lease in some {
                call.arg(keyspace::part(&lease.partition.id, Part::Lease));
            }
            call.arg(ttl_ms.clamp(1, TIME_MAX_MS));
            for lease in some {
                call.arg(lease.token());
            }
            let mut answer = Answer::of(functions::call(&self.connection, &call).await?)?;
            for _ in some {
                held.push(answer.flag()?);
            }
        }
        Ok(held)
    }

    async fn announce(&mut self, member: &Member, ttl_ms: u64) -> Result<Vec<Member>, Error> {
        let call = members::announcement(member, ttl_ms);
        members::decode(functions::call(&self.connection, &call).await?)
    }
}
