//! What owners do: publishing, leases, the fenced log, categories without partitions, the outbox.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use keyrail_broker::{
    AcquireError, Acquired, Bells, Commit, Committed, DeliveryRef, Error, FencedError, Heartbeat, Leases, Log,
    Publication, Publish, PublishError, Published, ReadySet, ReadySource, Routed, Router, SharedLog, SharedSource,
    SharedTaken, Taken,
};
use keyrail_ordering::{Effects, EntryRef, HaltRecord, Lease, Member, OwnerId, PartitionSpec};

use super::{FaultyBroker, Link};

#[async_trait]
impl Publish for FaultyBroker {
    async fn publish(&self, batch: Vec<Publication>) -> Result<Vec<Result<Published, PublishError>>, Error> {
        send!(self, "publish", |truth| truth.publish(batch).await)
    }
}

#[async_trait]
impl Leases for FaultyBroker {
    async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError> {
        let owner = owner.clone();
        send!(self, "acquire", |truth| truth.acquire(partition, &owner, ttl_ms, take_max).await)
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let lease = lease.clone();
        send!(self, "release", |truth| truth.release(&lease).await)
    }

    fn heartbeat(&self) -> Box<dyn Heartbeat> {
        Box::new(FaultyHeartbeat { link: self.link.clone() })
    }

    async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
        self.link.look("ready").await?;
        self.truth().inner.ready(source, cursor, limit).await
    }

    async fn bells(&self, sources: Vec<ReadySource>) -> Result<Bells, Error> {
        self.link.look("bells").await?;
        let truth = self.truth().clone();
        let heard = self.truth().store().bells(sources).await?;
        let link = self.link.clone();
        let heard = heard.filter(move |bell| futures::future::ready(truth.inner.rings(bell)));
        let heard = heard.then(move |bell| {
            let network = link.network.clone();
            async move {
                let (times, later_ms) = network.bell();
                if later_ms > 0 {
                    tokio::time::sleep(std::time::Duration::from_millis(later_ms)).await;
                }
                stream::iter(vec![bell; times as usize])
            }
        });
        Ok(heard.flatten().boxed())
    }
}

struct FaultyHeartbeat {
    link: Link,
}

#[async_trait]
impl Heartbeat for FaultyHeartbeat {
    async fn renew(&mut self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error> {
        let leases = leases.to_vec();
        send!(self, "renew", |truth| truth.renew(&leases, ttl_ms).await)
    }

    async fn announce(&mut self, member: &Member, ttl_ms: u64) -> Result<Vec<Member>, Error> {
        let member = member.clone();
        send!(self, "announce", |truth| truth.store().heartbeat().announce(&member, ttl_ms).await)
    }
}

#[async_trait]
impl Log for FaultyBroker {
    async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let lease = lease.clone();
        send!(self, "take", |truth| truth.take(&lease, max, recover).await)
    }

    async fn state(&self, lease: &Lease, name: &str) -> Result<Option<Bytes>, FencedError> {
        self.link.look("state").await?;
        self.truth().store().state(lease, name).await
    }

    async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
        let lease = lease.clone();
        send!(self, "commit", |truth| truth.commit(&lease, commit).await)
    }

    async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let (lease, head, error) = (lease.clone(), head.clone(), error.to_owned());
        send!(self, "fail", |truth| truth.fail(&lease, &head, attempt, &error, after_ms).await)
    }

    async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        let (lease, record) = (lease.clone(), record.clone());
        send!(self, "halt", |truth| truth.halt(&lease, &record).await)
    }
}

#[async_trait]
impl SharedLog for FaultyBroker {
    async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        let (source, owner) = (source.clone(), owner.clone());
        send!(self, "take_shared", |truth| truth.take_shared(&source, &owner, max, idle_min_ms).await)
    }

    async fn keep_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        let (source, owner, deliveries) = (source.clone(), owner.clone(), deliveries.to_vec());
        send!(self, "keep_shared", |truth| truth.store().keep_shared(&source, &owner, &deliveries).await)
    }

    async fn commit_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        effects: Effects,
    ) -> Result<(), FencedError> {
        let (source, owner) = (source.clone(), owner.clone());
        send!(self, "commit_shared", |truth| truth.commit_shared(&source, &owner, delivery, effects).await)
    }

    async fn fail_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let (source, owner, error) = (source.clone(), owner.clone(), error.to_owned());
        send!(self, "fail_shared", |truth| truth.store().fail_shared(&source, &owner, delivery, &error, after_ms).await)
    }

    async fn return_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        let (source, owner, deliveries) = (source.clone(), owner.clone(), deliveries.to_vec());
        send!(self, "return_shared", |truth| truth.store().return_shared(&source, &owner, &deliveries).await)
    }

    async fn set_aside_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
    ) -> Result<(), FencedError> {
        let (source, owner, error) = (source.clone(), owner.clone(), error.to_owned());
        send!(self, "set_aside_shared", |truth| truth.set_aside_shared(&source, &owner, delivery, &error).await)
    }
}

#[async_trait]
impl Router for FaultyBroker {
    async fn route(&self, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error> {
        send!(self, "route", |truth| truth.route(max, dedupe_window_ms).await)
    }
}
