//! Each limit acts, ends one event and nothing else.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use common::small::{Small, metadata_at_64};
use common::{Ask, Captured, ask, done, failed, probe, settings, written};
use keyrail_ordering::FailureKind;
use keyrail_runtime::{Answer, InstantiateError, Manifest, Module, Runtime, Settings};

/// The answer to the ask, and that a fresh instance of the same module works after it.
async fn and_then_works(settings: Settings, ask_for: Ask) -> Answer {
    let module = probe(settings).await;
    let mut instance = module.instantiate().await.unwrap();
    let answer = ask_for.of(&mut instance).await;
    assert!(instance.is_spent(), "{answer:?}");
    drop(instance);
    done(ask("count", 0).of_fresh(&module).await);
    answer
}

#[tokio::test]
async fn c055_five_gigabytes_are_a_memory_failure() {
    let answer = and_then_works(settings(), ask("alloc", 0)).await;
    failed(answer, FailureKind::Memory, "33554432 are allowed");
}

#[tokio::test]
async fn c055_ten_that_grow_at_once_are_each_stopped() {
    let module = probe(settings()).await;
    let grow = || {
        let module = module.clone();
        tokio::spawn(async move { ask("alloc", 0).of_fresh(&module).await })
    };
    let growing: Vec<_> = (0..10).map(|_| grow()).collect();
    for grown in growing {
        failed(grown.await.unwrap(), FailureKind::Memory, "are allowed");
    }
}

#[tokio::test]
async fn a_memory_under_the_limit_is_given() {
    let module = probe(settings()).await;
    done(ask("alloc", 8).of_fresh(&module).await);
}

#[tokio::test]
async fn c053_an_endless_loop_is_a_timeout() {
    let answer = and_then_works(settings(), ask("loop", 0)).await;
    failed(answer, FailureKind::Timeout, "more than 300 ms of CPU time");
}

/// One async thread: if a spinning guest held it, the other task would never run, and the test would hang.
#[tokio::test]
async fn c053_spinning_guests_leave_the_async_thread_to_others() {
    let module = probe(Settings { cpu_max_ms: 60_000, wall_max_ms: 60_000, ..settings() }).await;
    let spin = |module: std::sync::Arc<_>| tokio::spawn(async move { ask("loop", 0).of_fresh(&module).await });
    let spinners = [spin(module.clone()), spin(module.clone())];
    for _ in 0..10 {
        done(ask("ok", 0).of_fresh(&module).await);
    }
    assert!(spinners.iter().all(|spinner| !spinner.is_finished()));
    spinners.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Asleep in a host call it uses no CPU time, so the wall clock must end it.
#[tokio::test]
async fn c053_a_sleeping_guest_is_a_timeout() {
    let answer = and_then_works(Settings { wall_max_ms: 200, ..settings() }, ask("sleep", 600_000)).await;
    failed(answer, FailureKind::Timeout, "took more than 200 ms");
}

#[tokio::test]
async fn waiting_for_the_host_is_not_cpu_time() {
    let module = probe(Settings { cpu_max_ms: 50, ..settings() }).await;
    done(ask("sleep", 300).of_fresh(&module).await);
}

/// Not the handler's fault, so no try is used.
#[tokio::test]
async fn a_host_that_never_answers_ends_at_the_wall_limit() {
    let mut hanging = ask("count", 0);
    hanging.host.hangs = true;
    let answer = and_then_works(Settings { wall_max_ms: 200, ..settings() }, hanging).await;
    assert!(matches!(&answer, Answer::Deferred(why) if why.contains("state")), "{answer:?}");
}

#[tokio::test]
async fn c066_endless_recursion_is_a_trap() {
    let answer = and_then_works(settings(), ask("recurse", 0)).await;
    failed(answer, FailureKind::Trap, "call stack exhausted");
}

/// The host function at the bottom has stack of its own, however deep the guest is.
#[tokio::test]
async fn c066_a_host_call_at_the_bottom_of_a_deep_recursion_works() {
    let module = probe(settings()).await;
    let (mut deepest, mut too_deep) = (0, None);
    for depth in (1..200).map(|step| step * 500) {
        match ask("recurse", depth).of_fresh(&module).await {
            Answer::Done(_) => deepest = depth,
            Answer::Failed(failure) if failure.kind == FailureKind::Trap => {
                too_deep = Some(depth);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(deepest > 0 && too_deep.is_some(), "{deepest}, {too_deep:?}");
}

/// The guest stops at its own check of the answer, with the limit in it.
#[tokio::test]
async fn a_state_value_over_the_limit_is_refused() {
    let limits = Settings { state_value_max_bytes: 1_000, ..settings() };
    let module = probe(limits).await;
    assert_eq!(done(ask("state-big", 1_000).of_fresh(&module).await).state.len(), 1);
    match ask("state-big", 1_001).of_fresh(&module).await {
        Answer::Failed(failure) => assert!(failure.error.contains("1000"), "{failure:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn state_changes_over_the_limit_are_refused() {
    let module = probe(Settings { state_changes_max_bytes: 1_000, ..settings() }).await;
    done(ask("state-big", 997).of_fresh(&module).await); // and the name, of 3 bytes
    assert!(matches!(ask("state-big", 998).of_fresh(&module).await, Answer::Failed(_)));
}

#[tokio::test]
async fn a_bad_state_name_is_refused() {
    let module = probe(settings()).await;
    match ask("state-bad", 0).of_fresh(&module).await {
        Answer::Failed(failure) => assert!(failure.error.contains("[A-Za-z0-9_.:-]"), "{failure:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn emits_over_the_limit_fail_the_event() {
    let module = probe(Settings { emits_max: 10, ..settings() }).await;
    let effects = done(ask("emit", 10).of_fresh(&module).await);
    let ids: Vec<_> = effects.emits.iter().map(|emit| emit.event.id.to_string()).collect();
    assert_eq!(ids, (0..10).map(|nth| format!("emit-{nth}")).collect::<Vec<_>>());
    failed(ask("emit", 11).of_fresh(&module).await, FailureKind::Refused, "at most 10");
}

#[tokio::test]
async fn an_emit_over_the_limit_fails_the_event() {
    let module = probe(Settings { emit_max_bytes: 20, ..settings() }).await;
    failed(ask("emit", 1).of_fresh(&module).await, FailureKind::Refused, "more than 20 bytes");
}

#[tokio::test]
async fn a_flood_of_log_lines_is_cut() {
    let module = probe(Settings { log_lines_max: 50, log_line_max_bytes: 8, cpu_max_ms: 20_000, ..settings() }).await;
    let captured = Captured::default();
    let guard = captured.start();
    let mut instance = module.instantiate().await.unwrap();
    done(ask("log-flood", 10_000).of(&mut instance).await);
    let lines = captured.of_guests();
    assert_eq!(lines.len(), 51, "50 and the one that says that there were more");
    assert!(lines[49].contains("flood 49 "), "{}", lines[49]);
    assert!(lines[50].contains("dropped"), "{}", lines[50]);

    // The next call has its own count.
    done(ask("log-flood", 1).of(&mut instance).await);
    assert_eq!(captured.of_guests().len(), 52);
    drop(guard);
}

#[tokio::test]
async fn standard_output_and_error_are_log_lines() {
    let module = probe(settings()).await;
    let captured = Captured::default();
    let guard = captured.start();
    done(ask("print", 2).of_fresh(&module).await);
    drop(guard);
    let lines = captured.of_guests();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains("out 0") && lines[1].contains("err 0"), "{lines:?}");
}

#[tokio::test]
async fn a_full_pool_says_so_and_recovers() {
    let module = probe(Settings { instances_max: 3, ..settings() }).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(module.instantiate().await.unwrap());
    }
    let refused = module.instantiate().await.unwrap_err();
    assert!(matches!(refused, keyrail_runtime::InstantiateError::NoCapacity), "{refused}");
    for instance in &mut held {
        done(ask("ok", 0).of(instance).await);
    }
    held.pop();
    done(ask("ok", 0).of_fresh(&module).await);
}

#[test]
fn c066_settings_that_cannot_work_are_refused() {
    let refused = |settings: Settings| keyrail_runtime::Runtime::new(settings).unwrap_err().to_string();
    let defaults = Settings::default;
    assert!(refused(Settings { stack_max_bytes: 1 << 30, ..defaults() }).contains("stack_max_bytes is 1073741824"));
    assert!(refused(Settings { stack_max_bytes: 0, ..defaults() }).contains("stack_max_bytes"));
    assert!(refused(Settings { memory_max_bytes: 0, ..defaults() }).contains("memory_max_bytes"));
    assert!(refused(Settings { instances_max: 0, ..defaults() }).contains("instances_max"));
    assert!(refused(Settings { epoch_tick_ms: 0, ..defaults() }).contains("epoch_tick_ms"));
}

/// The largest stack that may be set is overflown without harm.
#[tokio::test]
async fn c066_the_largest_stack_overflows_as_a_trap() {
    let module = probe(Settings { stack_max_bytes: 64 << 20, cpu_max_ms: 60_000, ..settings() }).await;
    failed(ask("recurse", 0).of_fresh(&module).await, FailureKind::Trap, "call stack exhausted");
    assert_eq!(written(&done(ask("count", 0).of_fresh(&module).await), "count"), 1);
}

/// A handler of a few lines: what `handle` does, and what is beside it in the module.
async fn handler(settings: Settings, handle: &str, rest: &str) -> Arc<Module> {
    let small = Small {
        describe: "i32.const 64".into(),
        handle: handle.into(),
        rest: format!("{} (data (i32.const 300) \"a\") {rest}", metadata_at_64("small")),
        ..Small::importing(r#"(import "keyrail:handler/state@0.1.0" "get" (func $get (param i32 i32 i32)))"#)
    };
    let runtime = Runtime::new(settings).unwrap();
    runtime.load_bytes("x.wasm", small.component(), &Manifest::default()).await.unwrap()
}

const READ_FOR_EVER: &str = "(loop $l (call $get (i32.const 300) (i32.const 1) (i32.const 400)) (br $l)) i32.const 600";
/// Computes between its reads, most of the time.
const COMPUTE_AND_READ: &str = "(local $i i32)
    (loop $l
        (local.set $i (i32.const 3000000))
        (loop $c (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $c (local.get $i)))
        (call $get (i32.const 300) (i32.const 1) (i32.const 400)) (br $l)) i32.const 600";

#[tokio::test]
async fn c055_a_table_that_grows_for_ever_is_a_memory_failure() {
    let grow = "(loop $l (if (i32.ge_s (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 0)) (then (br $l)))) unreachable";
    let module = handler(settings(), grow, "(table $t 1 funcref)").await;
    failed(ask("", 0).of_fresh(&module).await, FailureKind::Memory, "20000 are allowed");
}

#[tokio::test]
async fn c055_memory_that_grows_for_ever_is_a_memory_failure() {
    let grow = "(loop $l (if (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)) (then (br $l)))) unreachable";
    let module = handler(settings(), grow, "").await;
    failed(ask("", 0).of_fresh(&module).await, FailureKind::Memory, "33554432 are allowed");
    assert!(module.usage().memory_high_bytes > 31 << 20, "{:?}", module.usage());
}

/// As many spinners as threads, and more: each ends by its limit, and a well-behaved one beside them is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c053_as_many_spinners_as_threads_all_end() {
    let module = probe(settings()).await;
    let spin = || {
        let module = module.clone();
        tokio::spawn(async move { ask("loop", 0).of_fresh(&module).await })
    };
    let spinners: Vec<_> = (0..4).map(|_| spin()).collect();
    done(ask("count", 0).of_fresh(&module).await);
    for spinner in spinners {
        failed(spinner.await.unwrap(), FailureKind::Timeout, "more than 300 ms of CPU time");
    }
}

#[tokio::test]
async fn reads_over_the_limit_end_the_call() {
    let module = handler(Settings { state_reads_max: 10, ..settings() }, READ_FOR_EVER, "").await;
    failed(ask("", 0).of_fresh(&module).await, FailureKind::Trap, "more than 10 times");
}

/// A broker that is slow uses up no try, but not for ever: an event that never gets its state has to halt at last.
#[tokio::test]
async fn a_slow_broker_puts_an_event_off_but_not_for_ever() {
    let module = handler(Settings { wall_max_ms: 100, ..settings() }, READ_FOR_EVER, "").await;
    let slow = |sequence| {
        let mut slow = Ask { sequence, ..ask("", 0) };
        slow.host.takes_ms = 20;
        slow
    };
    for _ in 0..4 {
        let answer = slow(1).of_fresh(&module).await;
        assert!(matches!(&answer, Answer::Deferred(why) if why.contains("of the 100 ms")), "{answer:?}");
    }
    assert!(matches!(slow(2).of_fresh(&module).await, Answer::Deferred(_)), "another event has its own count");
    failed(slow(1).of_fresh(&module).await, FailureKind::Timeout, "several times");
    assert!(matches!(slow(1).of_fresh(&module).await, Answer::Deferred(_)), "the next try starts from zero");
    let usage = module.usage();
    assert_eq!((usage.calls, usage.failures, usage.deferred), (7, 1, 6));
    assert!(usage.host_us > 7 * 50_000 && usage.cpu_us < usage.host_us, "{usage:?}");
}

/// The limit may well come while it reads; it is the handler's time all the same.
#[tokio::test]
async fn a_handler_that_computes_too_long_is_to_blame_though_it_reads() {
    let limits = Settings { wall_max_ms: 200, cpu_max_ms: 20_000, state_reads_max: 1_000_000, ..settings() };
    let module = handler(limits, COMPUTE_AND_READ, "").await;
    failed(ask("", 0).of_fresh(&module).await, FailureKind::Timeout, "took more than 200 ms");
}

#[tokio::test]
async fn an_instance_that_has_grown_large_is_replaced() {
    let module = probe(Settings { instance_memory_max_bytes: 4 << 20, ..settings() }).await;
    let mut instance = module.instantiate().await.unwrap();
    done(ask("ok", 0).of(&mut instance).await);
    assert!(!instance.is_spent());
    done(ask("alloc", 8).of(&mut instance).await);
    assert!(instance.is_spent());
}

#[tokio::test]
async fn a_handler_has_its_lines_of_a_minute() {
    let module = probe(Settings { log_lines_per_minute_max: 20, ..settings() }).await;
    let captured = Captured::default();
    let guard = captured.start();
    // Two calls, two instances: the minute may change between them once, which gives 20 more lines.
    for _ in 0..2 {
        done(ask("log-flood", 90).of_fresh(&module).await);
    }
    drop(guard);
    let lines = captured.of_guests();
    assert!(lines.len() <= 42 && lines.iter().any(|line| line.contains("log_lines_per_minute_max")), "{lines:?}");
    assert!(module.usage().log_lines_dropped >= 140);
}

#[tokio::test]
async fn lines_have_handler_key_and_event() {
    let module = probe(settings()).await;
    let captured = Captured::default();
    let guard = captured.start();
    done(ask("log-flood", 1).of_fresh(&module).await);
    done(ask("print", 1).of_fresh(&module).await);
    drop(guard);
    for line in captured.of_guests() {
        for part in ["handler=\"probe\"", "key=\"k1\"", "event=\"event-1\""] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
}

#[tokio::test]
async fn a_handler_has_its_own_share_of_the_instances() {
    let runtime = Runtime::new(settings()).unwrap();
    let component = std::fs::read(common::guest("itinerary")).unwrap();
    let two = Manifest::parse("limits.handler_instances_max = 2").unwrap();
    let few = runtime.load_bytes("few", component.clone(), &two).await.unwrap();
    let many = runtime.load_bytes("many", component, &Manifest::default()).await.unwrap();
    let held = [few.instantiate().await.unwrap(), few.instantiate().await.unwrap()];
    assert!(matches!(few.instantiate().await, Err(InstantiateError::NoCapacity)));
    many.instantiate().await.unwrap();
    drop(held);
    few.instantiate().await.unwrap();
}

#[tokio::test]
async fn usage_is_counted() {
    let module = probe(Settings { cpu_max_ms: 20_000, ..settings() }).await;
    assert_eq!(module.usage(), keyrail_runtime::Usage::default());
    done(ask("sleep", 50).of_fresh(&module).await);
    let slept = module.usage();
    assert!(slept.host_us >= 50_000, "{slept:?}");
    done(ask("spin", 50).of_fresh(&module).await);
    let spun = module.usage();
    assert!(spun.cpu_us > slept.cpu_us, "{spun:?}");
    failed(ask("trap", 0).of_fresh(&module).await, FailureKind::Trap, "");
    assert_eq!((module.usage().calls, module.usage().failures), (3, 1));
    assert!(spun.memory_high_bytes > 65_536, "{spun:?}");
}
