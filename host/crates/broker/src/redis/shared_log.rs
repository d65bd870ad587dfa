//! Categories that are not partitioned: deliveries in place of leases.
//!
//! Invariant: every operation names entry, owner and count, and the functions compare all three before they write.

use async_trait::async_trait;
use keyrail_ordering::{Effects, Lane, OwnerId, StreamId};

use super::answer::{Answer, Status};
use super::decode;
use super::functions::Call;
use super::log::{cut, emits};
use super::{RedisBroker, TIME_MAX_MS, keyspace};
use crate::{Delivery, DeliveryRef, Error, FencedError, SharedLog, SharedSource, SharedTaken};

/// Entries in one take: they are claimed by one command, whose arguments have a limit.
const TAKE_MAX: usize = 500;
/// Deliveries named in one call.
const NAMED_MAX: usize = 200;

#[async_trait]
impl SharedLog for RedisBroker {
    async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        let mut call = self.shared_call("keyrail_6_shared_take", source);
        call.arg(owner.as_str()).arg(max.clamp(1, TAKE_MAX)).arg(idle_min_ms.min(TIME_MAX_MS));
        let mut answer = ok(Answer::of(self.call(&call).await?)?)?;
        let (more, due_ms) = (answer.flag()?, answer.optional_number()?);
        let stream = stream_of(source);
        let mut deliveries = Vec::with_capacity(answer.len() / 4);
        while !answer.is_empty() {
            let entry = decode::entry(&stream, answer.value()?)?;
            let count = answer.number()?;
            let (attempts, crashes) = (answer.number()? as u32, answer.number()? as u32);
            deliveries.push(Delivery { entry, count, attempts, crashes });
        }
        Ok(SharedTaken { deliveries, more, due_ms })
    }

    async fn keep_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        self.with_deliveries("keyrail_6_shared_keep", source, owner, deliveries).await
    }

    async fn commit_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        effects: Effects,
    ) -> Result<(), FencedError> {
        if !effects.state.is_empty() {
            let why = format!("{} is not partitioned, so nothing orders state; keep none there", source.category);
            return Err(Error::Refused(why).into());
        }
        let mut call = self.delivery_call("keyrail_6_shared_commit", source, owner, delivery);
        call.arg(self.kept());
        emits(&mut call, &effects.emits);
        self.delivered(&call).await
    }

    async fn fail_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let mut call = self.delivery_call("keyrail_6_shared_fail", source, owner, delivery);
        call.arg(after_ms.min(TIME_MAX_MS)).arg(cut(error));
        self.delivered(&call).await
    }

    async fn return_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        self.with_deliveries("keyrail_6_shared_return", source, owner, deliveries).await
    }

    async fn set_aside_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
    ) -> Result<(), FencedError> {
        let mut call = self.delivery_call("keyrail_6_shared_aside", source, owner, delivery);
        call.arg(self.kept()).arg(cut(error));
        self.delivered(&call).await
    }
}

impl RedisBroker {
    /// Gives back what everybody has of a paused category.
    pub(super) async fn evict_shared(&self, source: &SharedSource) -> Result<(), Error> {
        loop {
            let call = self.shared_call("keyrail_6_shared_evict", source);
            if !ok(Answer::of(self.call(&call).await?)?)?.flag()? {
                return Ok(());
            }
        }
    }

    fn shared_call(&self, function: &'static str, source: &SharedSource) -> Call {
        let mut call = Call::new(function, 1);
        call.arg(keyspace::stream(&stream_of(source), &self.rules())).arg(source.group.as_str());
        call
    }

    fn delivery_call(
        &self,
        function: &'static str,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
    ) -> Call {
        let mut call = self.shared_call(function, source);
        call.arg(owner.as_str()).arg(delivery.id.to_string()).arg(delivery.count);
        call
    }

    async fn delivered(&self, call: &Call) -> Result<(), FencedError> {
        let mut answer = Answer::of(self.call(call).await.map_err(Error::from)?)?;
        match answer.status()? {
            Status::Ok => Ok(()),
            Status::Fenced => Err(FencedError::Fenced),
            Status::Refused => Err(Error::Refused(answer.text()?).into()),
            other => Err(Error::Corrupt(format!("an operation on a delivery answered {other:?}")).into()),
        }
    }

    async fn with_deliveries(
        &self,
        function: &'static str,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        for some in deliveries.chunks(NAMED_MAX) {
            let mut call = self.shared_call(function, source);
            call.arg(owner.as_str());
            for delivery in some {
                call.arg(delivery.id.to_string()).arg(delivery.count);
            }
            ok(Answer::of(self.call(&call).await?)?)?;
        }
        Ok(())
    }
}

fn stream_of(source: &SharedSource) -> StreamId {
    StreamId { category: source.category.clone(), key: None, lane: Lane::Primary }
}

fn ok(mut answer: Answer) -> Result<Answer, Error> {
    match answer.status()? {
        Status::Ok => Ok(answer),
        Status::Refused => Err(Error::Refused(answer.text()?)),
        other => Err(Error::Corrupt(format!("a shared category answered {other:?}"))),
    }
}
