//! What one call leaves to the next, what a guest sees of the machine, and what it can change.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::future::Future;
use std::task::{Context, Waker};

use common::small::{Small, WIT, metadata_at_64};
use common::{Ask, ask, done, failed, probe, settings, written};
use keyrail_ordering::FailureKind;
use keyrail_runtime::{Answer, Manifest, Runtime, Settings};

/// C051: one bad event must not make the following ones fail.
#[tokio::test]
async fn c051_a_trap_ends_its_event_and_no_other() {
    let module = probe(settings()).await;
    let (mut of_k1, mut of_k2) = (module.instantiate().await.unwrap(), module.instantiate().await.unwrap());
    done(ask("count", 0).of(&mut of_k1).await);
    let failure = failed(ask("trap", 0).of(&mut of_k1).await, FailureKind::Trap, "unreachable");
    assert!(failure.error.contains("; in <test_guests::Misbehaving"), "no short backtrace: {}", failure.error);
    assert!(of_k1.is_spent());
    done(Ask { key: "k2", ..ask("count", 0) }.of(&mut of_k2).await);
    assert!(!of_k2.is_spent());
    done(ask("count", 0).of_fresh(&module).await);
}

#[tokio::test]
async fn a_panic_is_a_trap_with_its_message() {
    let module = probe(settings()).await;
    let failure = failed(ask("panic", 0).of_fresh(&module).await, FailureKind::Trap, "asked to panic");
    assert!(failure.error.contains("; in <test_guests::") && !failure.error.contains('\n'), "{}", failure.error);
}

#[tokio::test]
async fn leaving_through_exit_is_a_trap() {
    let module = probe(settings()).await;
    failed(ask("exit", 3).of_fresh(&module).await, FailureKind::Trap, "ended itself with status");
}

#[tokio::test]
async fn dispositions_are_told_apart() {
    let module = probe(settings()).await;
    failed(ask("retry", 0).of_fresh(&module).await, FailureKind::Retry { after_ms: None }, "asked to retry");
    failed(ask("retry", 250).of_fresh(&module).await, FailureKind::Retry { after_ms: Some(250) }, "asked to retry");
    failed(ask("reject", 0).of_fresh(&module).await, FailureKind::Rejected, "asked to reject");
    failed(ask("reject-after-write", 0).of_fresh(&module).await, FailureKind::Rejected, "asked to reject");
}

#[tokio::test]
async fn a_refused_emit_fails_the_event_though_the_guest_answers_done() {
    let module = probe(settings()).await;
    for (n, why) in [(1, "EOF"), (2, "a:b"), (3, "no such category: nowhere")] {
        failed(ask("emit-bad", n).of_fresh(&module).await, FailureKind::Refused, why);
    }
}

/// C067: an instance lives for calls that were done, and no longer than its limit.
#[tokio::test]
async fn c067_an_instance_lives_until_a_failure_or_its_last_call() {
    let module = probe(Settings { instance_calls_max: 3, ..settings() }).await;
    let mut instance = module.instantiate().await.unwrap();
    for seen in 1..=3 {
        assert!(!instance.is_spent());
        assert_eq!(written(&done(ask("global", 0).of(&mut instance).await), "global"), seen);
    }
    assert!(instance.is_spent(), "after its last call");

    for mode in ["retry", "reject", "emit-bad", "trap"] {
        let mut instance = module.instantiate().await.unwrap();
        assert_eq!(written(&done(ask("global", 0).of(&mut instance).await), "global"), 1, "fresh");
        assert!(matches!(ask(mode, 1).of(&mut instance).await, Answer::Failed(_)));
        assert!(instance.is_spent(), "after {mode}");
    }
}

#[tokio::test]
#[should_panic(expected = "spent")]
async fn calling_a_spent_instance_is_a_mistake() {
    let module = probe(settings()).await;
    let mut instance = module.instantiate().await.unwrap();
    failed(ask("trap", 0).of(&mut instance).await, FailureKind::Trap, "");
    ask("ok", 0).of(&mut instance).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_spends_its_instance() {
    let module = probe(settings()).await;
    let mut instance = module.instantiate().await.unwrap();
    {
        let mut hanging = ask("count", 0);
        hanging.host.hangs = true;
        let mut call = std::pin::pin!(hanging.of(&mut instance));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(instance.is_spent());
    drop(instance);
    done(ask("count", 0).of_fresh(&module).await);
}

/// No try is used: it was not the handler's fault.
#[tokio::test]
async fn a_broker_that_is_away_defers_the_call() {
    let module = probe(settings()).await;
    let mut instance = module.instantiate().await.unwrap();
    let mut away = ask("count", 0);
    away.host.is_away = true;
    assert_eq!(away.of(&mut instance).await, Answer::Deferred("the broker is away".into()));
    assert!(instance.is_spent());
}

#[tokio::test]
async fn state_is_read_from_the_host_and_written_once_a_name() {
    let module = probe(settings()).await;
    let mut counting = ask("count", 0);
    counting.host.state.insert("count".into(), "41".into());
    let effects = done(counting.of_fresh(&module).await);
    assert_eq!(effects.state.len(), 1);
    assert_eq!(written(&effects, "count"), 42);
}

/// C064: no environment, no arguments, no files, no network.
#[tokio::test]
async fn c064_a_guest_sees_nothing_of_the_machine() {
    let module = probe(settings()).await;
    let seen = written(&done(ask("env", 0).of_fresh(&module).await), "env");
    assert_eq!(seen["variables"], serde_json::json!([]));
    assert_eq!(seen["arguments"], serde_json::json!([]));
    for what in ["file", "folder", "network"] {
        // The network is null where the guest was built without sockets.
        let outcome = seen[what].as_str().unwrap_or_default();
        assert_ne!(outcome, "it worked", "{what}");
    }
}

/// C064 once more, without a libc between: the interfaces are there, since toolchains link them, and refuse. The guest traps
/// unless it is answered `access-denied`, the case after `unknown`.
#[tokio::test]
async fn c064_sockets_are_refused() {
    const SOCKETS: &str = "
        package wasi:sockets@0.2.6 {
            interface network {
                enum error-code { unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout,
                    concurrency-conflict, not-in-progress, would-block, invalid-state, new-socket-limit, address-not-bindable,
                    address-in-use, remote-unreachable, connection-refused, connection-reset, connection-aborted,
                    datagram-too-large, name-unresolvable, temporary-resolver-failure, permanent-resolver-failure }
                enum ip-address-family { ipv4, ipv6 }
            }
            interface tcp { resource tcp-socket; }
            interface udp { resource udp-socket; }
            interface tcp-create-socket {
                use network.{error-code, ip-address-family};
                use tcp.{tcp-socket};
                create-tcp-socket: func(family: ip-address-family) -> result<tcp-socket, error-code>;
            }
            interface udp-create-socket {
                use network.{error-code, ip-address-family};
                use udp.{udp-socket};
                create-udp-socket: func(family: ip-address-family) -> result<udp-socket, error-code>;
            }
        }";
    let both =
        "world handler { import wasi:sockets/tcp-create-socket@0.2.6; import wasi:sockets/udp-create-socket@0.2.6;";
    let denied = "(i32.or (i32.ne (i32.load8_u (i32.const 512)) (i32.const 1)) (i32.ne (i32.load8_u (i32.const 516)) (i32.const 1)))
                  if unreachable end";
    let small = Small {
        wit: WIT.replace("world handler {", both) + SOCKETS,
        describe: format!(
            "(call $tcp (i32.const 0) (i32.const 512)) {denied} (call $udp (i32.const 0) (i32.const 512)) {denied} i32.const 64"
        ),
        rest: metadata_at_64("small"),
        ..Small::importing(
            r#"(import "wasi:sockets/tcp-create-socket@0.2.6" "create-tcp-socket" (func $tcp (param i32 i32)))
               (import "wasi:sockets/udp-create-socket@0.2.6" "create-udp-socket" (func $udp (param i32 i32)))"#,
        )
    };
    let runtime = Runtime::new(settings()).unwrap();
    let module = runtime.load_bytes("x.wasm", small.component(), &Manifest::default()).await.unwrap();
    assert_eq!(module.usage().denied, 2, "attempts are counted");
}

/// Two tries of one event see the same clock and the same random numbers; another event sees others.
#[tokio::test]
async fn clock_and_random_are_those_of_the_event() {
    let module = probe(settings()).await;
    let first = written(&done(ask("clock", 0).of_fresh(&module).await), "clock");
    let again = written(&done(Ask { attempt: 2, ..ask("clock", 0) }.of_fresh(&module).await), "clock");
    let other = written(&done(Ask { sequence: 1, ..ask("clock", 0) }.of_fresh(&module).await), "clock");
    assert_eq!(first["wall_ms"], 1_700_000_000_123_u64);
    assert_eq!(first, again);
    assert_ne!(first["random"], other["random"]);
}

#[cfg(target_os = "linux")]
mod c057 {
    //! Instances and versions come and go for ever, and take no more for it. The number of memory maps is what runs out first.

    use std::sync::{Arc, Mutex};

    use keyrail_runtime::{Module, Settings};

    use super::common::{ask, guest, probe, settings};
    use super::{Manifest, Runtime};

    /// The two measure the process, so not at the same time.
    static ALONE: Mutex<()> = Mutex::new(());

    fn maps() -> usize {
        std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
    }

    fn resident_mb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
        (pages * 4_096) >> 20
    }

    fn assert_flat(before: (usize, u64), what: &str) {
        let after = (maps(), resident_mb());
        // Other tests of this process come and go with their own pools; a leak would show as thousands.
        assert!(after.0 < before.0 + 1_000, "{what}: {} memory maps before, {} after", before.0, after.0);
        assert!(after.1 < before.1 + 200, "{what}: {} MiB before, {} after", before.1, after.1);
    }

    async fn run(module: &Arc<Module>, calls: u64) {
        let mut instance = module.instantiate().await.unwrap();
        for call in 0..calls {
            if instance.is_spent() {
                drop(instance);
                instance = module.instantiate().await.unwrap();
            }
            // Failures and successes, with and without output.
            let mode = ["count", "print", "trap", "emit", "retry"][usize::try_from(call % 5).unwrap()];
            ask(mode, 1).of(&mut instance).await;
        }
    }

    /// The case says 200,000. A fifth of these is a failure with a backtrace, which is what takes time; a leak of one memory map
    /// in 50 calls shows here.
    #[tokio::test]
    async fn c057_50_000_calls_leave_the_process_as_it_was() {
        let _alone = ALONE.lock();
        let limits = Settings { instance_calls_max: 4, log_lines_per_minute_max: 1_000, ..settings() };
        let module = probe(limits).await;
        run(&module, 2_000).await;
        let before = (maps(), resident_mb());
        run(&module, 50_000).await;
        assert_flat(before, "50,000 calls");
    }

    #[tokio::test]
    async fn c057_500_reloads_leave_the_process_as_it_was() {
        let _alone = ALONE.lock();
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::new(Settings { cache_dir: Some(folder.path().join("compiled")), ..settings() }).unwrap();
        let reload = async || {
            let module = runtime.load(&guest("probe"), &Manifest::default()).await.unwrap();
            ask("count", 0).of_fresh(&module).await;
        };
        for _ in 0..20 {
            reload().await;
        }
        let before = (maps(), resident_mb());
        for _ in 0..500 {
            reload().await;
        }
        assert_flat(before, "500 reloads");
    }
}

/// C057: a component that is not used any more is freed.
#[tokio::test]
async fn c057_a_dropped_module_is_freed_with_its_runtime() {
    let module = probe(settings()).await;
    let weak = std::sync::Arc::downgrade(&module);
    let instance = module.instantiate().await.unwrap();
    drop(module);
    assert!(weak.upgrade().is_some(), "its instance still runs");
    drop(instance);
    assert!(weak.upgrade().is_none());
}
