//! Events that are committed together, told as stories. `partition.rs` has the model that runs them against random faults.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{
    AttemptsRecord, BatchLimits, Content, Effect, Effects, Entry, EntryId, FailureKind, HaltCause, Input, Outcome,
    Partition, Policy, ReadAheadLimits, RetryPolicy, StateChange,
};

use common::{acquired, committed, done, done_of, entry, entry_of, failed, sequences, stream};

const BATCH: BatchLimits = BatchLimits { events_max: 4, bytes_max: 1_000, ms_max: 5 };

fn policy() -> Policy {
    Policy {
        retry: RetryPolicy { attempts_max: 3, crashes_max: 9, backoff_base_ms: 100, backoff_cap_ms: 1_000 },
        read_ahead: ReadAheadLimits { entries_max: 64, bytes_max: 1 << 20 },
        batch: BATCH,
        linger_ms: 50,
        pause_ms: 10,
        handler_version: "1.0.0".into(),
    }
}

fn owned(entries: Vec<Arc<Entry>>) -> (Partition, Vec<Effect>) {
    let mut partition = Partition::new(policy());
    let effects = partition.step(0, acquired(entries));
    (partition, effects)
}

#[track_caller]
fn invoked(effects: &[Effect]) -> u64 {
    common::invoked(effects).0
}

#[track_caller]
fn commits(effects: &[Effect]) -> Vec<u64> {
    match effects {
        [Effect::Commit { entries, .. }] => sequences(entries),
        other => panic!("expected a commit, got {other:?}"),
    }
}

#[test]
fn what_is_there_is_handled_one_after_the_other_and_committed_at_once() {
    let (mut partition, effects) = owned((0..6).map(entry).collect());
    assert_eq!(invoked(&effects), 0);
    for next in 1..4 {
        assert_eq!(invoked(&partition.step(0, done())), next);
    }
    assert_eq!(commits(&partition.step(0, done())), [0, 1, 2, 3], "as many as a batch may have");
    assert_eq!(invoked(&partition.step(0, committed(vec![]))), 4);
    assert_eq!(invoked(&partition.step(0, done())), 5);
    assert_eq!(commits(&partition.step(0, done())), [4, 5], "nobody waits for events that are not there");
}

#[test]
fn a_batch_ends_by_size_and_by_time() {
    let (mut partition, _) = owned((0..4).map(entry).collect());
    assert_eq!(invoked(&partition.step(0, done_of(999))), 1);
    assert_eq!(commits(&partition.step(0, done_of(1))), [0, 1]);
    // Of the second batch the first event takes long.
    assert_eq!(invoked(&partition.step(10, committed(vec![]))), 2);
    assert_eq!(commits(&partition.step(15, done())), [2]);
}

#[test]
fn a_failure_inside_a_batch_keeps_what_came_before_it_and_counts_against_its_own_event() {
    let (mut partition, _) = owned((0..4).map(entry).collect());
    partition.step(0, done());
    partition.step(0, done());
    let effects = partition.step(0, failed(FailureKind::Trap));
    assert_eq!(commits(&effects), [0, 1]);
    assert!(
        matches!(effects[..], [Effect::Commit { release: false, .. }]),
        "a try is to be put on record: {effects:?}"
    );
    let effects = partition.step(0, committed(vec![]));
    let [Effect::Fail { entry, attempt: 1, after_ms: 100, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(entry.at.id.sequence, 2);
    assert_eq!(partition.step(0, Input::FailRecorded), [Effect::WakeAt(100)]);
    let effects = partition.step(100, Input::Tick);
    assert!(matches!(&effects[..], [Effect::Invoke { attempt: 2, .. }]), "{effects:?}");
    assert_eq!(invoked(&partition.step(100, done())), 3, "the next one may join it");
}

#[test]
fn a_rejected_event_inside_a_batch_halts_behind_it() {
    let (mut partition, _) = owned((0..2).map(entry).collect());
    partition.step(0, done());
    assert_eq!(commits(&partition.step(0, failed(FailureKind::Rejected))), [0]);
    let effects = partition.step(0, committed(vec![]));
    let [Effect::Halt(record)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((record.head.id.sequence, record.cause, record.attempts), (1, HaltCause::Rejected, 1));
}

#[test]
fn a_try_whose_batch_was_lost_is_not_counted() {
    let (mut partition, _) = owned((0..2).map(entry).collect());
    partition.step(0, done());
    partition.step(0, failed(FailureKind::Trap));
    let effects = partition.step(0, Input::Uncertain);
    let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
    partition.step(due, Input::Tick);
    let again = Input::Taken { entries: (0..2).map(entry).collect(), attempts: None, more: false };
    assert_eq!(invoked(&partition.step(due, again)), 0);
    let effects = partition.step(due, done());
    assert!(matches!(&effects[..], [Effect::Invoke { attempt: 1, .. }]), "{effects:?}");
}

/// What a commit without an answer settled is all of it or nothing; anything else is a loss.
#[test]
fn c001_a_batch_without_an_answer_was_committed_as_a_whole_or_not_at_all() {
    for (head, is_good) in [(0, true), (3, true), (1, false), (2, false), (4, false)] {
        let mut partition = Partition::new(policy());
        let positions = vec![(stream("order"), EntryId::new(0, 7))];
        let entries = (0..3).map(entry).collect();
        partition.step(0, Input::Acquired { entries, attempts: None, positions, more: false });
        partition.step(0, done());
        partition.step(0, done());
        assert_eq!(commits(&partition.step(0, done())), [0, 1, 2]);
        let effects = partition.step(0, Input::Uncertain);
        let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
        partition.step(due, Input::Tick);
        let taken = Input::Taken { entries: vec![entry(head)], attempts: None, more: false };
        let effects = partition.step(due, taken);
        match &effects[..] {
            [Effect::Invoke { .. }] if is_good => {}
            [Effect::Halt(record)] if !is_good => assert_eq!(record.cause, HaltCause::Missing),
            other => panic!("head {head}: {other:?}"),
        }
    }
}

#[test]
fn two_commits_without_an_answer_one_after_the_other_are_no_gap() {
    let mut partition = Partition::new(policy());
    let positions = vec![(stream("order"), EntryId::new(0, 7))];
    partition.step(0, Input::Acquired { entries: vec![entry(0), entry(1)], attempts: None, positions, more: false });
    partition.step(0, done());
    assert_eq!(commits(&partition.step(0, done())), [0, 1]);
    // The first happened, the second did not.
    for head in [2, 2] {
        let effects = partition.step(0, Input::Uncertain);
        let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
        partition.step(due, Input::Tick);
        let taken = Input::Taken { entries: vec![entry(head)], attempts: None, more: false };
        assert_eq!(invoked(&partition.step(due, taken)), 2);
        partition.step(due, done());
    }
}

/// A commit that nobody waits for any more can arrive late, after its head was read and handled again.
#[test]
fn a_commit_that_arrives_late_is_no_gap() {
    let mut partition = Partition::new(policy());
    let positions = vec![(stream("order"), EntryId::new(0, 7))];
    let all = || (0..2).map(entry).collect();
    partition.step(0, Input::Acquired { entries: all(), attempts: None, positions, more: false });
    partition.step(0, done());
    assert_eq!(commits(&partition.step(0, done())), [0, 1]);
    let again = |partition: &mut Partition, entries| {
        let effects = partition.step(0, Input::Uncertain);
        let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
        partition.step(due, Input::Tick);
        partition.step(due, Input::Taken { entries, attempts: None, more: false })
    };
    assert_eq!(invoked(&again(&mut partition, all())), 0);
    // Now only the first is committed, by a commit without an answer as well; and the first commit arrives.
    assert_eq!(commits(&partition.step(90, done())), [0]);
    assert_eq!(invoked(&again(&mut partition, vec![entry(2)])), 2);
}

#[test]
fn an_event_of_another_stream_or_behind_a_gap_or_that_is_none_waits_for_the_commit() {
    let missing = Arc::new(Entry { content: Content::Missing, ..entry(1).as_ref().clone() });
    for second in [entry_of("payment", 1, b"{}"), entry(2), missing] {
        let (mut partition, _) = owned(vec![entry(0), second]);
        assert_eq!(commits(&partition.step(0, done())), [0]);
    }
}

#[test]
fn another_version_begins_after_a_commit() {
    let (mut partition, _) = owned((0..3).map(entry).collect());
    partition.step(0, done());
    let first = || Input::Handled { outcome: Outcome::CommitFirst, chance: 0.0 };
    assert_eq!(commits(&partition.step(0, first())), [0]);
    assert_eq!(invoked(&partition.step(0, committed(vec![]))), 1);
    assert_eq!(invoked(&partition.step(0, first())), 1, "with nothing to commit it begins at once");
}

#[test]
fn an_event_that_could_not_start_pauses_behind_a_commit() {
    let (mut partition, _) = owned((0..2).map(entry).collect());
    partition.step(0, done());
    let deferred = Input::Handled { outcome: Outcome::Deferred, chance: 0.0 };
    assert_eq!(commits(&partition.step(0, deferred)), [0]);
    assert_eq!(partition.step(0, committed(vec![])), [Effect::WakeAt(10)]);
    assert_eq!(invoked(&partition.step(10, Input::Tick)), 1);
}

#[test]
fn c030_a_drain_commits_what_is_handled_and_starts_nothing() {
    let (mut partition, _) = owned((0..3).map(entry).collect());
    partition.step(0, done());
    assert!(partition.step(0, Input::Drain).is_empty());
    let effects = partition.step(0, done());
    assert_eq!(commits(&effects), [0, 1]);
    assert!(matches!(effects[..], [Effect::Commit { take_max: 0, release: true, .. }]));
    assert_eq!(partition.step(0, committed(vec![])), [Effect::Release]);
}

/// A death counts against the first event of its batch, whichever was the cause: from there on they go one by one.
#[test]
fn after_a_crash_events_are_committed_one_by_one_for_as_long_as_a_batch_may_be() {
    let mut partition = Partition::new(policy());
    let head = entry(0).at.clone();
    let attempts = Some(AttemptsRecord { head, attempts: 0, crashes: 1, wait_ms: 0, last_error: String::new() });
    let entries = (0..8).map(entry).collect();
    partition.step(0, Input::Acquired { entries, attempts, positions: vec![], more: false });
    for sequence in 0..4 {
        assert_eq!(commits(&partition.step(0, done())), [sequence]);
        partition.step(0, committed(vec![]));
    }
    for _ in 0..3 {
        partition.step(0, done());
    }
    assert_eq!(commits(&partition.step(0, done())), [4, 5, 6, 7]);
}

#[test]
fn reading_ahead_grows_with_the_backlog_and_not_beyond_its_bytes() {
    let asked = |partition: &mut Partition, next: &mut u64, data: &'static [u8]| {
        // Handles whatever is there until the partition asks for more.
        let mut effects = partition.step(0, done());
        loop {
            effects = match effects.into_iter().next().unwrap() {
                Effect::Invoke { .. } => partition.step(0, done()),
                Effect::Commit { take_max: 0, .. } => partition.step(0, committed(vec![])),
                Effect::Commit { take_max, .. } => {
                    let entries = (*next..*next + take_max as u64).map(|n| entry_of("order", n, data)).collect();
                    *next += take_max as u64;
                    partition.step(0, Input::Committed { entries, more: true, released: false });
                    return take_max;
                }
                other => panic!("{other:?}"),
            };
        }
    };
    let (mut partition, _) = owned((0..33).map(entry).collect());
    let mut next = 33;
    let grown: Vec<_> = (0..6).map(|_| asked(&mut partition, &mut next, b"{}")).collect();
    assert!(grown.iter().all(|asked| *asked <= 65) && grown.iter().any(|asked| *asked > 32), "{grown:?}");

    static LARGE: [u8; 1 << 18] = [b' '; 1 << 18];
    let (mut partition, _) = owned((0..33).map(entry).collect());
    let mut next = 33;
    asked(&mut partition, &mut next, &LARGE);
    let after: Vec<_> = (0..3).map(|_| asked(&mut partition, &mut next, &LARGE)).collect();
    assert!(after.iter().all(|asked| *asked <= 4), "four of these are a megabyte: {after:?}");
}

#[test]
fn of_two_writes_to_one_name_the_later_one_stands() {
    let put =
        |name: &str, value: &'static [u8]| StateChange { name: name.into(), value: Some(Bytes::from_static(value)) };
    let removed = StateChange { name: "a".into(), value: None };
    let mut effects = Effects { state: vec![put("a", b"1"), put("b", b"2")], emits: vec![] };
    assert_eq!(effects.bytes(), 4);
    effects.append(Effects { state: vec![removed.clone(), put("c", b"3")], emits: vec![] });
    assert_eq!(effects.state, [put("b", b"2"), removed, put("c", b"3")]);
}
