//! The parts by themselves: wire, step, invoke.
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use keyrail_benches::{flight, guest};
use keyrail_broker::wire;
use keyrail_ordering::{
    BatchLimits, Content, Entry, EntryId, EntryRef, Generation, HaltCause, HaltRecord, Input, Lane, Outcome, Outgoing,
    Partition, Policy, ReadAheadLimits, RetryPolicy, StreamId,
};
use keyrail_runtime::{Answer, Call, CallHost, Emit, EmitRefusal, Manifest, Runtime, Settings};

fn entry(sequence: u64) -> Arc<Entry> {
    let event = flight(sequence as usize, 1);
    let stream = StreamId { category: event.category.clone(), key: event.key.clone(), lane: Lane::Primary };
    let at = EntryRef { stream, id: EntryId::new(1, sequence) };
    Arc::new(Entry { at, recorded_at_ms: 0, content: Content::Event(event) })
}

fn wire_record(c: &mut Criterion) {
    let record = HaltRecord {
        head: entry(7).at.clone(),
        cause: HaltCause::Poison,
        attempts: 5,
        error: "the handler trapped: unreachable".repeat(8),
        handler_version: "1.0.0".into(),
    };
    let bytes = wire::encode(&record);
    c.bench_function("wire/encode a halt record", |b| b.iter(|| wire::encode(black_box(&record))));
    c.bench_function("wire/decode a halt record", |b| {
        b.iter(|| wire::decode::<HaltRecord>(black_box(&bytes)).expect("just encoded"));
    });
}

fn step(c: &mut Criterion) {
    let policy = Policy {
        retry: RetryPolicy::default(),
        read_ahead: ReadAheadLimits { entries_max: 256, bytes_max: 256 * 1024 },
        batch: BatchLimits::STRICT,
        linger_ms: 50,
        pause_ms: 50,
        handler_version: "1".into(),
    };
    let entries: Vec<_> = (0..100).map(entry).collect();
    c.bench_function("step/100 events from acquire to release", |b| {
        b.iter(|| {
            let mut partition = Partition::new(policy.clone());
            let entries = entries.clone();
            partition.step(0, Input::Acquired { entries, attempts: None, positions: vec![], more: false });
            for _ in 0..100 {
                partition.step(0, Input::Handled { outcome: Outcome::Done { bytes: 0 }, chance: 0.5 });
                partition.step(0, Input::Committed { entries: vec![], more: false, released: false });
            }
            black_box(partition)
        });
    });
}

/// No state, no emits.
struct Nothing;

#[async_trait]
impl CallHost for Nothing {
    async fn state(&mut self, _name: &str) -> Result<Option<Bytes>, String> {
        Ok(None)
    }

    fn accept(&mut self, _emit: Emit, _nth: u32) -> Result<Outgoing, EmitRefusal> {
        Err(EmitRefusal::Other("no emits here".into()))
    }
}

fn invoke(c: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    let module = tokio.block_on(async {
        let runtime = Runtime::new(Settings::default()).expect("default settings");
        runtime.load(&guest("itinerary"), &Manifest::default()).await.expect("built by xtask")
    });
    let entry = entry(0);
    let Content::Event(event) = &entry.content else { unreachable!("made as one") };
    let call =
        Call { entry: &entry.at, event, recorded_at_ms: 0, generation: Generation(1), attempt: 1, trace_id: None };
    c.bench_function("invoke/itinerary, warm instance", |b| {
        let mut instance = tokio.block_on(module.instantiate()).expect("an empty pool");
        b.iter(|| {
            if instance.is_spent() {
                instance = tokio.block_on(module.instantiate()).expect("one at a time");
            }
            let answer = tokio.block_on(instance.call(&call, Box::new(Nothing)));
            assert!(matches!(answer, Answer::Done(_)));
        });
    });
    c.bench_function("invoke/itinerary, fresh instance", |b| {
        b.iter(|| {
            tokio.block_on(async {
                let mut instance = module.instantiate().await.expect("one at a time");
                assert!(matches!(instance.call(&call, Box::new(Nothing)).await, Answer::Done(_)));
            });
        });
    });
}

criterion_group!(benches, wire_record, step, invoke);
criterion_main!(benches);
