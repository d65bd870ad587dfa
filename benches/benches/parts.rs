//! The parts by themselves: wire and step. A call of a guest is measured by the program `dispatch`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use keyrail_benches::flight;
use keyrail_broker::wire;
use keyrail_ordering::{
    BatchLimits, Content, Entry, EntryId, EntryRef, HaltCause, HaltRecord, Input, Lane, Outcome, Partition, Policy,
    ReadAheadLimits, RetryPolicy, StreamId,
};

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

criterion_group!(benches, wire_record, step);
criterion_main!(benches);
