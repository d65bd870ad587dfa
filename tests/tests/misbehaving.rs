//! Handlers that trap, loop for ever or take all memory: the event fails by its kind, other keys go on, the host lives.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{guest, partitions, run, run_with_input, states};

/// One bad event on its own key, good ones before and after it and on other keys.
fn events() -> String {
    let line = |key: &str, mode: &str, n: u64| {
        format!(r#"{{"category":"probe","type":"Probe","data":{{"key":"{key}","mode":"{mode}","n":{n}}}}}"#) + "\n"
    };
    let mut lines = String::new();
    for mode in ["trap", "loop", "alloc", "recurse", "sleep", "reject", "emit-bad"] {
        lines += &line(mode, "count", 0);
        lines += &line(mode, mode, 0);
        lines += &line(mode, "count", 0);
    }
    for key in ["good-1", "good-2", "good-3"] {
        for _ in 0..20 {
            lines += &line(key, "count", 0);
        }
    }
    lines
}

#[test]
fn the_event_fails_by_its_kind_and_other_keys_go_on() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    run(&broker, &["register", guest("probe").to_str().unwrap()]).ok();
    run_with_input(&broker, &["publish", "-"], &events()).ok();
    let settings = [
        "--until-idle",
        "--set",
        "engine.retry.attempts_max=2",
        "--set",
        "engine.retry.backoff_base_ms=10",
        "--set",
        "runtime.cpu_max_ms=300",
        "--set",
        "runtime.wall_max_ms=1500",
    ];
    let host = Host::start(&broker, &["probe"], &settings);
    assert_eq!(host.wait(), 3, "halted partitions are told by the exit code");
    let states = states(&broker, "probe");
    for key in ["good-1", "good-2", "good-3"] {
        assert_eq!(states[key]["count"], 20, "{key}");
    }
    let rows = partitions(&broker, "probe");
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
    for (key, cause, attempts) in [
        ("trap", "poison", 2),
        ("loop", "poison", 2),
        ("alloc", "poison", 2),
        ("recurse", "poison", 2),
        ("sleep", "poison", 2),
        ("emit-bad", "poison", 2),
        ("reject", "rejected", 1),
    ] {
        // The one before it counted; the one after it has not run.
        assert_eq!(states[key]["count"], 1, "{key}");
        let row = row(key);
        assert_eq!(row["waiting"], 2, "{row}");
        assert_eq!(row["halted"]["cause"], cause, "{row}");
        assert_eq!(row["attempts"], attempts, "{row}");
    }
}
