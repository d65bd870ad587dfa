//! `head try`, `record` and `replay`: a head with a candidate, and a key as it was, without a broker.

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{guest, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Author, halted, lines};

fn head(broker: &str) -> String {
    run(broker, &["head", "show", "probe", "k", "--json"]).ok().out
}

fn a_head_is_tried_recorded_and_replayed(broker: &str) {
    let component = guest("probe");
    let component = component.to_str().unwrap();
    let (before, state) = (head(broker), run(broker, &["state", "dump", "probe"]).ok().out);

    // The candidate of these limits fails as well; that of the usual ones does not.
    let attempt = ["head", "try", "probe", "k", "--with", component];
    let low = ["--set", "runtime.state_value_max_bytes=10"];
    let failed = run(broker, &[&attempt[..], &low[..]].concat());
    assert_eq!(failed.code, 1, "{failed:#?}");
    assert!(failed.out.contains("reject") && failed.out.contains("nothing was changed"), "{}", failed.out);
    let tried = run(broker, &attempt).ok();
    assert!(tried.out.contains("+ big = {\"text\":\"xxxxxxxxxxxxxxxxxxxx\"}"), "{}", tried.out);
    let json = run(broker, &[&attempt[..], &["--json"]].concat()).ok().out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["result"], &json["state"][0]["before"]), (&json!("done"), &Value::Null), "{json}");
    let other = guest("conformance-rust");
    let wrong = ["head", "try", "probe", "k", "--with", other.to_str().unwrap()];
    run(broker, &wrong).refused(1, "no handler named \"conformance\"");
    run(broker, &[&wrong[..], &["--group", "probe"]].concat())
        .refused(5, "declares the handler conformance, not probe");
    assert_eq!(head(broker), before, "nothing was changed");
    assert_eq!(run(broker, &["state", "dump", "probe"]).ok().out, state);

    let author = Author::new();
    let file = author.path("k.bundle.jsonl");
    let file = file.to_str().unwrap();
    run(broker, &["record", "probe", "k", "-o", file]).ok();
    let whole = author.path("whole.bundle.jsonl");
    run(broker, &["record", "probe", "k", "--from", "start", "-o", whole.to_str().unwrap()]).ok();
    run(broker, &["record", "probe", "never", "-o", file]).refused(1, "nothing waits");

    // From here on without a broker.
    let replay = |args: &[&str]| author.keyrail(&[&["replay", "--with", component], args].concat());
    let ran = replay(&[file]).ok();
    assert!(ran.out.contains("count = 2"), "on top of the state that was there: {}", ran.out);
    replay(&[file, "--update"]).ok();
    let ran = replay(&[file]).ok();
    assert!(ran.out.contains("as expected"), "{}", ran.out);
    replay(&[&[file], &low[..]].concat()).refused(1, "differs");
    let ran = replay(&["whole.bundle.jsonl", "--json"]).ok();
    let values: Vec<_> = lines(&ran.out).into_iter().filter(|line| line["what"] == "state").collect();
    assert_eq!(values.len(), 2, "{values:?}");
    assert_eq!((&values[1]["name"], &values[1]["value"]), (&json!("count"), &json!(2)), "from no state");
    assert_eq!(author.read("k.bundle.jsonl").lines().filter(|line| line.contains("\"what\":\"entry\"")).count(), 2);

    author.write("bad.jsonl", "nonsense");
    replay(&["bad.jsonl"]).refused(5, "is no bundle");
    let ran = author.keyrail(&["replay", "k.bundle.jsonl", "--with", other.to_str().unwrap()]);
    ran.refused(5, "is of probe");
}

#[test]
fn a_head_is_tried_recorded_and_replayed_on_redis() {
    let redis = RedisServer::start().unwrap();
    halted(&redis.url());
    a_head_is_tried_recorded_and_replayed(&redis.url());
}

#[test]
fn a_head_is_tried_recorded_and_replayed_through_a_host() {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    halted(&broker);
    // It holds the file: the commands go through its socket.
    let _host = Host::up(&broker, &["probe"], &[]);
    a_head_is_tried_recorded_and_replayed(&broker);
}
