//! Tests of what happens when the store or the writer fails.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use redb::backends::InMemoryBackend;
use redb::{Database, StorageBackend};

use super::{EmbeddedBroker, EmbeddedSettings, Store, Writing};
use crate::contract::story::{LONG_TTL_MS, READ_MAX, billing, commit, publication};
use crate::{AcquireError, Error, FencedError, Leases, Log, Publish};
use keyrail_ordering::OwnerId;

/// A disk that stops taking anything.
#[derive(Debug)]
struct Disk {
    memory: InMemoryBackend,
    full: Arc<AtomicBool>,
}

impl Disk {
    fn check(&self) -> std::io::Result<()> {
        if self.full.load(SeqCst) { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.check()?;
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.check()?;
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.check()?;
        self.memory.write(offset, data)
    }
}

fn broker_on(full: &Arc<AtomicBool>) -> EmbeddedBroker {
    let disk = Disk { memory: InMemoryBackend::new(), full: full.clone() };
    let database = Database::builder().create_with_backend(disk).unwrap();
    EmbeddedBroker::start(database, Store::File, EmbeddedSettings::default(), Path::new("disk"), "disk".into()).unwrap()
}

fn event(id: &str) -> crate::Publication {
    crate::Publication {
        key_field: None,
        event: keyrail_ordering::Event { key: None, ..publication("a", id).event },
        ..publication("a", id)
    }
}

#[tokio::test]
async fn a_full_disk_makes_every_call_unavailable_and_nothing_hangs() {
    let full = Arc::new(AtomicBool::new(false));
    let broker = Arc::new(broker_on(&full));
    broker.publish(vec![event("e0")]).await.unwrap().remove(0).unwrap();
    let owner = OwnerId::new("A");
    let acquired = broker.acquire(billing("a"), &owner, LONG_TTL_MS, READ_MAX).await.unwrap();
    full.store(true, SeqCst);
    let calls: Vec<_> = (0..50)
        .map(|n| {
            let broker = broker.clone();
            tokio::spawn(async move { broker.publish(vec![event(&format!("e{n}"))]).await })
        })
        .collect();
    for call in calls {
        let answer = call.await.unwrap();
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    }
    let acquire = broker.acquire(billing("b"), &owner, LONG_TTL_MS, READ_MAX).await;
    assert!(matches!(acquire, Err(AcquireError::Broker(Error::Unavailable(_)))), "{acquire:?}");
    // Whoever owned something knows that it may not go on.
    let entry = keyrail_ordering::Entry {
        at: keyrail_ordering::EntryRef {
            stream: acquired.lease.partition.streams[0].clone(),
            id: keyrail_ordering::EntryId::new(1, 0),
        },
        recorded_at_ms: 0,
        content: keyrail_ordering::Content::Missing,
    };
    let answer = broker.commit(&acquired.lease, commit(&entry)).await;
    assert!(matches!(answer, Err(FencedError::Fenced | FencedError::Broker(Error::Unavailable(_)))), "{answer:?}");
    assert_eq!(broker.heartbeat().renew(&[acquired.lease], LONG_TTL_MS).await.unwrap(), [false]);
}

#[tokio::test]
async fn an_operation_that_fails_undoes_its_batch_and_the_writer_goes_on() {
    for writing in [Writing::Thread, Writing::Inline] {
        let settings = EmbeddedSettings { writing, ..EmbeddedSettings::default() };
        let broker = EmbeddedBroker::memory(settings).unwrap();
        let answer: Result<(), Error> = broker
            .writer
            .call(|batch| {
                batch.writes();
                batch.memory.counters.next_epoch();
                Err(Error::Corrupt("a row is not what it should be".into()))
            })
            .await;
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{writing:?}");
        let id = broker.publish(vec![event("e1")]).await.unwrap().remove(0).unwrap().id;
        assert_eq!(id.epoch, 1, "{writing:?}: the number that was drawn is undone");
    }
}

#[tokio::test]
async fn when_the_writer_has_died_every_call_is_unavailable() {
    let broker = EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap();
    let answer: Result<(), Error> = broker.writer.call(|_| panic!("on purpose")).await;
    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    let answer = broker.publish(vec![event("e1")]).await;
    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
}
