//! The partition state machine, told as stories, and against a model of a log with random faults.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use keyrail_ordering::{
    AttemptsRecord, BatchLimits, Content, Effect, Entry, EntryId, Failure, FailureKind, HaltCause, Input, Outcome,
    Partition, Policy, ReadAheadLimits, RetryPolicy,
};
use proptest::prelude::*;

use common::{acquired, committed, done, entry, failed, invoked, sequences, stream, with_content};

fn policy() -> Policy {
    Policy {
        retry: RetryPolicy { attempts_max: 3, crashes_max: 2, backoff_base_ms: 100, backoff_cap_ms: 1_000 },
        read_ahead: ReadAheadLimits { entries_max: 4, bytes_max: 1 << 20 },
        batch: BatchLimits::STRICT,
        linger_ms: 50,
        pause_ms: 10,
        handler_version: "1.0.0".into(),
    }
}

fn record(sequence: u64, attempts: u32, crashes: u32, wait_ms: u64) -> AttemptsRecord {
    AttemptsRecord { head: entry(sequence).at.clone(), attempts, crashes, wait_ms, last_error: "before".into() }
}

fn halted(effects: &[Effect]) -> (u64, HaltCause, u32) {
    match effects {
        [Effect::Halt(record)] => (record.head.id.sequence, record.cause, record.attempts),
        other => panic!("expected a halt, got {other:?}"),
    }
}

fn owned(entries: Vec<Arc<Entry>>) -> (Partition, Vec<Effect>) {
    let mut partition = Partition::new(policy());
    let effects = partition.step(0, acquired(entries));
    (partition, effects)
}

#[test]
fn a_sparse_event_is_committed_and_released_in_one_step() {
    let (mut partition, effects) = owned(vec![entry(0)]);
    assert_eq!(invoked(&effects), (0, 1));
    let effects = partition.step(1, done());
    assert!(matches!(effects[..], [Effect::Commit { take_max: 5, release: true, .. }]), "{effects:?}");
    let effects = partition.step(2, Input::Committed { entries: vec![], more: false, released: true });
    assert_eq!(effects, [Effect::End]);
}

#[test]
fn events_run_one_after_the_other_in_order() {
    let (mut partition, mut effects) = owned(vec![entry(0), entry(1), entry(2)]);
    for sequence in 0..3 {
        assert_eq!(invoked(&effects), (sequence, 1));
        let commit = partition.step(1, done());
        assert!(matches!(&commit[..], [Effect::Commit { entries, .. }] if sequences(entries) == [sequence]));
        effects = partition.step(2, committed(vec![]));
    }
    // It was busy, so it is kept for a while, and a bell wakes it.
    assert_eq!(effects, [Effect::WakeAt(52)]);
    assert_eq!(partition.step(10, Input::Belled), [Effect::Take { max: 5, recover: false }]);
    let effects = partition.step(11, Input::Taken { entries: vec![], attempts: None, more: false });
    assert_eq!(effects, [Effect::WakeAt(61)]);
    assert_eq!(partition.step(61, Input::Tick), [Effect::Release]);
    assert_eq!(partition.step(62, Input::Released), [Effect::End]);
}

#[test]
fn one_that_came_back_soon_is_kept_and_released_when_others_wait_for_its_place() {
    let (fresh, back) = (Partition::new(policy()), Partition::new(policy()).come_back());
    for (mut partition, has_room, is_kept) in [(fresh, true, false), (back, true, true)] {
        partition.set_room(has_room);
        partition.step(0, acquired(vec![entry(0)]));
        let effects = partition.step(1, done());
        assert!(matches!(effects[..], [Effect::Commit { release, .. }] if release != is_kept), "{effects:?}");
    }
    let mut crowded = Partition::new(policy()).come_back();
    crowded.set_room(false);
    crowded.step(0, acquired(vec![entry(0), entry(1), entry(2), entry(3)]));
    for _ in 0..3 {
        crowded.step(1, done());
        crowded.step(2, committed(vec![]));
    }
    let effects = crowded.step(3, done());
    assert!(matches!(effects[..], [Effect::Commit { release: true, .. }]), "{effects:?}");
}

#[test]
fn c037_later_events_wait_for_a_failed_head_through_all_its_tries() {
    let (mut partition, mut effects) = owned(vec![entry(1), entry(2)]);
    for (attempt, wait_ms) in [(1, 100), (2, 200)] {
        assert_eq!(invoked(&effects), (1, attempt));
        let fail = partition.step(0, failed(FailureKind::Trap));
        assert!(
            matches!(&fail[..], [Effect::Fail { attempt: a, after_ms, .. }] if *a == attempt && *after_ms == wait_ms)
        );
        assert_eq!(partition.step(0, Input::FailRecorded), [Effect::WakeAt(wait_ms)]);
        assert!(partition.is_waiting());
        assert_eq!(partition.step(wait_ms - 1, Input::Tick), [Effect::WakeAt(wait_ms)]);
        effects = partition.step(wait_ms, Input::Tick);
    }
    assert_eq!(invoked(&effects), (1, 3));
    assert_eq!(halted(&partition.step(0, failed(FailureKind::Timeout))), (1, HaltCause::Poison, 3));
    assert_eq!(partition.step(0, Input::Released), [Effect::End]);
    assert!(partition.step(0, Input::Tick).is_empty());
}

#[test]
fn c041_a_takeover_neither_resets_nor_uses_up_the_budget() {
    let mut partition = Partition::new(policy());
    let input = Input::Acquired {
        entries: vec![entry(1)],
        attempts: Some(record(1, 2, 0, 300)),
        positions: vec![],
        more: false,
    };
    assert_eq!(partition.step(1_000, input), [Effect::WakeAt(1_300)]);
    assert_eq!(invoked(&partition.step(1_300, Input::Tick)), (1, 3));
    assert_eq!(halted(&partition.step(0, failed(FailureKind::Trap))), (1, HaltCause::Poison, 3));
}

#[test]
fn a_record_about_another_head_is_not_counted() {
    let mut partition = Partition::new(policy());
    let attempts = Some(record(1, 2, 2, 0));
    let input = Input::Acquired { entries: vec![entry(2)], attempts, positions: vec![], more: false };
    assert_eq!(invoked(&partition.step(0, input)), (2, 1));
}

#[test]
fn a_rejected_event_halts_at_once() {
    let (mut partition, _) = owned(vec![entry(0), entry(1)]);
    assert_eq!(halted(&partition.step(0, failed(FailureKind::Rejected))), (0, HaltCause::Rejected, 1));
}

#[test]
fn an_event_that_kills_its_hosts_halts() {
    let mut partition = Partition::new(policy());
    let attempts = Some(record(0, 0, 2, 0));
    let input = Input::Acquired { entries: vec![entry(0)], attempts, positions: vec![], more: false };
    assert_eq!(halted(&partition.step(0, input)), (0, HaltCause::Crashed, 0));
}

#[test]
fn an_event_that_hosts_died_on_again_and_again_runs_alone() {
    let policy = Policy { retry: RetryPolicy { crashes_max: 9, ..policy().retry }, ..policy() };
    for (crashes, expected) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut partition = Partition::new(policy.clone());
        let attempts = Some(record(0, 0, crashes, 0));
        let input = Input::Acquired { entries: vec![entry(0), entry(1)], attempts, positions: vec![], more: false };
        let [Effect::Invoke { alone, .. }] = &partition.step(0, input)[..] else { panic!("expected an invoke") };
        assert_eq!(*alone, expected, "{crashes} crashes");
        partition.step(0, done());
        let [Effect::Invoke { alone, .. }] = &partition.step(0, committed(vec![]))[..] else {
            panic!("expected an invoke")
        };
        assert!(!alone, "what comes after it is not suspicious");
    }
}

#[test]
fn c002_what_a_lost_read_handed_out_is_read_again_and_not_waited_for() {
    let (mut partition, _) = owned(vec![entry(0)]);
    partition.step(0, done());
    // A take that was given up ran late and handed out entry 1: the broker has more, and will not say it twice.
    let more = Input::Committed { entries: vec![], more: true, released: false };
    assert_eq!(partition.step(0, more), [Effect::Take { max: 5, recover: false }]);
    let nothing = || Input::Taken { entries: vec![], attempts: None, more: true };
    assert_eq!(partition.step(0, nothing()), [Effect::Take { max: 5, recover: true }]);
    // Even a broker that has nothing to say to that is not asked again at once.
    let effects = partition.step(0, nothing());
    let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
    assert!(due > 0);
    partition.step(due, Input::Tick);
    let input = Input::Taken { entries: vec![entry(1)], attempts: None, more: false };
    assert_eq!(invoked(&partition.step(due, input)), (1, 1));
}

#[test]
fn c005_a_missing_or_unreadable_entry_is_never_handed_to_the_handler() {
    let (_, effects) = owned(vec![with_content(0, Content::Missing), entry(1)]);
    assert_eq!(halted(&effects), (0, HaltCause::Missing, 0));
    let (_, effects) = owned(vec![with_content(0, Content::Undecodable("no id".into()))]);
    assert_eq!(halted(&effects), (0, HaltCause::Undecodable, 0));
}

#[test]
fn c023_a_gap_in_the_sequence_halts() {
    let (mut partition, _) = owned(vec![entry(0), entry(3)]);
    partition.step(0, done());
    assert_eq!(halted(&partition.step(0, committed(vec![]))), (3, HaltCause::Missing, 0));

    let mut partition = Partition::new(policy());
    let positions = vec![(stream("order"), EntryId::new(1, 4))];
    let input = Input::Acquired { entries: vec![entry(6)], attempts: None, positions, more: false };
    assert_eq!(halted(&partition.step(0, input)), (6, HaltCause::Missing, 0));
}

#[test]
fn c001_after_a_call_that_may_have_happened_the_pending_entries_come_first() {
    let (mut partition, _) = owned(vec![entry(0), entry(1)]);
    partition.step(0, done());
    let effects = partition.step(0, Input::Uncertain);
    let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!(partition.step(due, Input::Tick), [Effect::Take { max: 5, recover: true }]);
    // The commit had not happened: the same event runs again.
    let input = Input::Taken { entries: vec![entry(0), entry(1)], attempts: None, more: false };
    assert_eq!(invoked(&partition.step(due, input)), (0, 1));
    // This one had.
    partition.step(due, done());
    let effects = partition.step(due, Input::Uncertain);
    let [Effect::WakeAt(due)] = effects[..] else { panic!("{effects:?}") };
    partition.step(due, Input::Tick);
    let input = Input::Taken { entries: vec![entry(1)], attempts: None, more: false };
    assert_eq!(invoked(&partition.step(due, input)), (1, 1));
}

#[test]
fn after_the_fence_nothing_is_done() {
    let (mut partition, _) = owned(vec![entry(0), entry(1)]);
    assert_eq!(partition.step(0, Input::Fenced), [Effect::End]);
    assert!(partition.step(0, Input::Belled).is_empty());
    assert!(partition.step(0, Input::Drain).is_empty());
}

#[test]
fn no_capacity_uses_no_try() {
    let (mut partition, _) = owned(vec![entry(0)]);
    let effects = partition.step(0, Input::Handled { outcome: Outcome::Deferred, chance: 0.0 });
    assert_eq!(effects, [Effect::WakeAt(10)]);
    assert_eq!(invoked(&partition.step(10, Input::Tick)), (0, 1));
}

#[test]
fn c030_a_drain_lets_the_running_event_finish_and_starts_no_other() {
    let (mut partition, _) = owned(vec![entry(0), entry(1)]);
    assert!(partition.step(0, Input::Drain).is_empty());
    let effects = partition.step(0, done());
    assert!(matches!(effects[..], [Effect::Commit { take_max: 0, release: true, .. }]), "{effects:?}");
    // Entry 1 is read ahead, so the broker does not release by itself.
    assert_eq!(partition.step(0, committed(vec![])), [Effect::Release]);
    assert_eq!(partition.step(0, Input::Released), [Effect::End]);
}

#[test]
fn a_drain_ends_a_waiting_partition_at_once() {
    let (mut partition, _) = owned(vec![entry(0)]);
    partition.step(0, failed(FailureKind::Trap));
    partition.step(0, Input::FailRecorded);
    assert_eq!(partition.step(1, Input::Drain), [Effect::Release]);
}

#[test]
#[should_panic(expected = "was told")]
fn an_answer_to_a_question_that_was_not_asked_is_a_mistake() {
    owned(vec![entry(0)]).0.step(0, committed(vec![]));
}

/// What the model's world does to one effect.
#[derive(Debug, Clone)]
enum Fate {
    Good,
    FailedTry,
    Refused,
    LostBefore,
    LostAfter,
    Bell,
    VersionChanged,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Good),
        1 => Just(Fate::FailedTry),
        1 => Just(Fate::Refused),
        1 => Just(Fate::LostBefore),
        1 => Just(Fate::LostAfter),
        1 => Just(Fate::Bell),
        1 => Just(Fate::VersionChanged),
    ]
}

fn batch() -> impl Strategy<Value = BatchLimits> {
    (1usize..8, 1usize..100).prop_map(|(events_max, bytes_max)| BatchLimits { events_max, bytes_max, ms_max: 5 })
}

proptest! {
    /// A log of `total` entries behind calls that fail before or after they happened: every event is committed once and
    /// in order, none runs past an unsettled one, and the partition ends released or halted.
    #[test]
    fn whatever_gets_lost_effects_land_once_and_in_order(
        total in 0u64..20, read_ahead in 0usize..9, batch in batch(), fates in proptest::collection::vec(fate(), 0..200),
    ) {
        let read_ahead = ReadAheadLimits { entries_max: read_ahead, bytes_max: 1 << 20 };
        let policy = Policy { read_ahead, batch, ..policy() };
        let retry = policy.retry.clone();
        let mut partition = Partition::new(policy);
        let mut fates = fates.into_iter().chain(std::iter::repeat(Fate::Good));
        let (mut settled, mut delivered, mut applied) = (0u64, 0u64, vec![]);
        let (mut attempts, mut now, mut released, mut halted) = (0u32, 0u64, false, false);
        let new = |delivered: &mut u64, max: usize| {
            let upto = total.min(*delivered + max as u64);
            let entries: Vec<_> = (*delivered..upto).map(entry).collect();
            *delivered = upto;
            entries
        };
        let first = new(&mut delivered, read_ahead.first_read());
        let (mut handled, mut largest) = (0u64, 0usize);
        let mut input = Input::Acquired { entries: first, attempts: None, positions: vec![], more: delivered < total };
        for _ in 0..5_000 {
            let mut effects = partition.step(now, input);
            if let Some(Fate::Bell) = fates.next() {
                let more = partition.step(now, Input::Belled);
                if !more.is_empty() { effects = more; }
            }
            prop_assert_eq!(effects.len(), 1);
            let fate = fates.next().unwrap();
            let lost_before = matches!(fate, Fate::LostBefore);
            let lost_after = matches!(fate, Fate::LostAfter);
            input = match effects.into_iter().next().unwrap() {
                Effect::End => break,
                Effect::WakeAt(at) => { now = now.max(at); Input::Tick }
                Effect::Invoke { entry, attempt, .. } => {
                    prop_assert_eq!(entry.at.id.sequence, settled + handled, "runs only the oldest event that is not handled");
                    prop_assert_eq!(attempt, if handled == 0 { attempts + 1 } else { 1 });
                    now += u64::from(entry.at.id.sequence % 3 == 0);
                    let outcome = match fate {
                        Fate::FailedTry => Outcome::Failed(Failure { kind: FailureKind::Trap, error: "no".into() }),
                        Fate::Refused => Outcome::Deferred,
                        Fate::VersionChanged => Outcome::CommitFirst,
                        _ => Outcome::Done { bytes: 10 },
                    };
                    handled += u64::from(matches!(outcome, Outcome::Done { .. }));
                    Input::Handled { outcome, chance: 0.5 }
                }
                _ if lost_before => { handled = 0; Input::Uncertain }
                Effect::Take { max, recover } => {
                    if recover { delivered = settled; }
                    let entries = new(&mut delivered, max);
                    let attempts = recover.then(|| record(settled, attempts, 0, 0));
                    if lost_after { Input::Uncertain } else { Input::Taken { entries, attempts, more: delivered < total } }
                }
                Effect::Commit { entries, take_max, release } => {
                    let expected: Vec<_> = (settled..settled + handled).collect();
                    prop_assert_eq!(sequences(&entries), expected, "all that is handled, from the head on");
                    largest = largest.max(entries.len());
                    applied.extend(sequences(&entries));
                    settled += handled;
                    handled = 0;
                    attempts = 0;
                    let entries = new(&mut delivered, take_max);
                    released = release && settled == total;
                    if lost_after && !released { Input::Uncertain }
                    else { Input::Committed { entries, more: delivered < total, released } }
                }
                Effect::Fail { attempt, .. } => {
                    prop_assert_eq!((handled, attempt), (0, attempts + 1));
                    attempts = attempt;
                    if lost_after { Input::Uncertain } else { Input::FailRecorded }
                }
                Effect::Halt(record) => {
                    prop_assert_eq!((record.head.id.sequence, handled), (settled, 0));
                    prop_assert_eq!(record.attempts, retry.attempts_max);
                    halted = true;
                    Input::Released
                }
                Effect::Release => { released = true; Input::Released }
            };
        }
        prop_assert!(largest <= batch.events_max);
        prop_assert_eq!(&applied, &(0..settled).collect::<Vec<_>>());
        // A lost call while leaving ends ownership without an answer; the next owner goes on.
        prop_assert!(halted || settled == total || released || partition.step(now, Input::Tick).is_empty());
        if released && !halted { prop_assert_eq!(settled, total); }
    }
}
