//! Wrong input of every kind: one clear line, nothing half-done, a status that tells.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::Path;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::{Ran, guest, partitions, run, run_in, run_with_input};
use tempfile::TempDir;

const UNUSABLE: i32 = 4;
const REFUSED: i32 = 5;

/// An embedded broker with the probe registered.
struct Embedded {
    folder: TempDir,
}

impl Embedded {
    fn new() -> Self {
        let embedded = Self { folder: TempDir::new().unwrap() };
        run(&embedded.broker(), &["register", guest("probe").to_str().unwrap()]).ok();
        embedded
    }

    fn broker(&self) -> String {
        format!("embedded:{}", self.folder.path().join("k.redb").display())
    }

    fn publish(&self, lines: &str) -> Ran {
        run_with_input(&self.broker(), &["publish", "-"], lines)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    }

    fn events(&self) -> u64 {
        partitions(&self.broker(), "probe").iter().map(|row| row["waiting"].as_u64().unwrap()).sum()
    }
}

fn probe(key: &str) -> String {
    format!(r#"{{"category":"probe","type":"Probe","data":{{"key":{key},"mode":"ok","n":0}}}}"#) + "\n"
}

#[test]
fn c043_unsafe_keys_are_refused_with_the_number_of_the_line() {
    let embedded = Embedded::new();
    let long = format!("\"{}\"", "x".repeat(300));
    let keys = [
        (r#""a:b""#, "contains ':'"),
        (r#""""#, "is empty"),
        ("null", "is null"),
        (r#""dlq""#, "reserved word"),
        (r#""backfill""#, "reserved word"),
        (r#""__x__""#, "reserved word"),
        (long.as_str(), "has 300 bytes"),
        ("1.5", "only text and integers"),
        (r#""e\u0301""#, "normalization form C"),
        (r#"" a""#, "white space"),
        (r#""{a}""#, "contains '{'"),
        (r#""a\nb""#, "contains '\\n'"),
    ];
    for (key, says) in keys {
        let ran = embedded.publish(&(probe(r#""good""#) + &probe(key) + &probe(r#""late""#)));
        ran.refused(REFUSED, says);
        assert!(ran.err.contains("line 2") && ran.err.contains("1 "), "{ran:#?}");
    }
    // The line before each bad one was published, the one after it was not.
    assert_eq!(embedded.events(), keys.len() as u64);
}

#[test]
fn bad_lines_are_refused_by_what_is_wrong() {
    let embedded = Embedded::new();
    let lines = [
        (r#"{"category":"probe","type":"Probe","data":{"mode":"ok","n":0}}"#, "missing"),
        (r#"{"category":"nope","type":"Probe","data":{"key":"a"}}"#, r#"unknown category "nope""#),
        (r#"{"category":"probe","type":"Nope","data":{"key":"a"}}"#, r#"unknown message type "Nope""#),
        (r#"{"category":"probe","type":"Probe","data":{"key":"a","mode":7,"n":0}}"#, r#"field "mode""#),
        (r#"{"category":"probe","type":"Probe","data":[]}"#, "JSON object"),
        (r#"{"category":"probe","type":"Probe"}"#, "data"),
        (r#"{"category":"probe""#, "line 1"),
        ("not json", "line 1"),
    ];
    for (line, says) in lines {
        embedded.publish(line).refused(REFUSED, says);
    }
    assert_eq!(embedded.events(), 0);
}

#[test]
fn skip_bad_writes_bad_lines_aside_and_goes_on() {
    let embedded = Embedded::new();
    let aside = embedded.folder.path().join("bad.jsonl");
    let lines = probe(r#""a""#) + &probe(r#""a:b""#) + "rubbish\n" + &probe(r#""b""#);
    let ran = run_with_input(&embedded.broker(), &["publish", "-", "--skip-bad", aside.to_str().unwrap()], &lines).ok();
    assert!(ran.err.contains("line 2") && ran.err.contains("line 3"), "{ran:#?}");
    assert_eq!(fs::read_to_string(aside).unwrap(), probe(r#""a:b""#) + "rubbish\n");
    assert_eq!(embedded.events(), 2);
}

#[test]
fn files_that_are_not_what_they_seem() {
    let embedded = Embedded::new();
    let broker = embedded.broker();
    let not_gzip = embedded.file("events.jsonl.gz", b"this is not gzip");
    run(&broker, &["publish", &not_gzip]).refused(REFUSED, "gzip");
    run(&broker, &["publish", "/nowhere/events.jsonl"]).refused(1, "/nowhere/events.jsonl");
    let cut = fs::read(keyrail_tests::flights::january()).unwrap();
    let cut = embedded.file("cut.jsonl.gz", &cut[..1_000]);
    assert_ne!(run(&broker, &["publish", &cut]).code, 0);
}

#[test]
fn c060_components_that_cannot_be_run() {
    let embedded = Embedded::new();
    let broker = embedded.broker();
    let core_module = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
    let empty_component = [0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00];
    let files = [
        (embedded.file("random.wasm", b"\x17\x42 rubbish"), "not a WebAssembly component"),
        (embedded.file("empty.wasm", b""), "empty"),
        (embedded.file("core.wasm", &core_module), "core WebAssembly module"),
        (embedded.file("none.wasm", &empty_component), "keyrail:handler/guest@0.1.0"),
        (guest("probe-lacks-key").to_str().unwrap().to_string(), "no field"),
        ("/nowhere/handler.wasm".to_string(), "/nowhere/handler.wasm"),
    ];
    for (file, says) in files {
        for command in [&["register", &file][..], &["run", "--until-idle", "--handler", &file], &["check", &file]] {
            let ran = run(&broker, command);
            assert!(ran.code != 0 && ran.code != 2, "{command:?}: {ran:#?}");
            assert!((ran.err.clone() + &ran.out).contains(says), "{command:?} does not say {says:?}: {ran:#?}");
            assert!(!ran.err.contains("panicked"), "{ran:#?}");
        }
    }
}

#[test]
fn redis_that_cannot_be_used() {
    run("redis://127.0.0.1:1", &["partitions"]).refused(UNUSABLE, "127.0.0.1:1");
    let locked = RedisServer::start_with(&["--requirepass", "secret"]).unwrap();
    run(&locked.url(), &["partitions"]).refused(UNUSABLE, "password");
    let wrong = locked.url().replace("redis://", "redis://:wrong-word@");
    let ran = run(&wrong, &["partitions"]);
    ran.refused(UNUSABLE, "password");
    assert!(!ran.err.contains("wrong-word"), "a password is never printed: {ran:#?}");
    run("carrier-pigeon://x", &["partitions"]).refused(2, "carrier-pigeon");
}

#[test]
fn configuration_that_is_wrong() {
    let folder = TempDir::new().unwrap();
    let config = |text: &str| fs::write(folder.path().join("keyrail.toml"), text).unwrap();
    let partitions = |folder: &Path| run_in(folder, &["partitions"], "");
    config("[engine]\nlease_tt_ms = 5\n");
    partitions(folder.path()).refused(2, "lease_tt_ms");
    config("[engine]\nlease_ttl_ms = \"long\"\n");
    partitions(folder.path()).refused(2, "lease_ttl_ms");
    config("[engine]\nlease_ttl_ms = 1000\nheartbeat_interval_ms = 900\n");
    partitions(folder.path()).refused(2, "heartbeat_interval_ms");
    config("[engine\n");
    partitions(folder.path()).refused(2, "keyrail.toml");
}

#[test]
fn a_file_that_is_not_there_is_named_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let probe = guest("probe");
    let probe = probe.to_str().unwrap();
    let cases: [(&[&str], &str); 12] = [
        (&["publish", "missing"], "give a file of JSON lines, plain or gzip, or - for standard input"),
        (&["test", probe, "missing"], "give a file of JSON lines"),
        (&["test", "missing", "-"], "build it first, or correct the path"),
        (&["test", probe, "-", "--expect", "missing"], "--update writes what comes out there"),
        (&["test", probe, "-", "--grants", "missing"], "correct its path or its mode"),
        (&["register", "missing"], "build it first, or correct the path"),
        (&["deploy", "missing", "--reason", "x"], "build it first, or correct the path"),
        (&["run", "--handler", "missing"], "build it first, or correct the path"),
        (&["run", "--handlers", "missing"], "make it, or give another"),
        (&["replay", "missing", "--with", probe], "keyrail record CATEGORY KEY -o FILE"),
        (&["--config", "missing", "members"], "correct --config or KEYRAIL_CONFIG, or leave it out"),
        (&["--host", "http://127.0.0.1:1", "--token-file", "missing", "members"], "name a file that holds the token"),
    ];
    for (args, next) in cases {
        let ran = run_in(folder.path(), args, "");
        assert!((1..=5).contains(&ran.code), "{args:?}: {ran:#?}");
        ran.refused(ran.code, "missing");
        ran.refused(ran.code, next);
        assert_eq!(ran.err.lines().count(), 1, "{args:?}: {ran:#?}");
    }
    for args in [
        &["new", "a", "--lang", "rust", "--dir", "/proc/a"] as &[&str],
        &["token", "a", "--role", "read", "--file", "none/tokens.toml"],
        &["man", "/proc/a"],
    ] {
        run_in(folder.path(), args, "").refused(1, "is its folder there and yours");
    }
}
