//! Deploying to hosts that run: real processes, real components.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{Ran, guest, partitions, run, run_with_input, states, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

const REFUSED: i32 = 5;

fn deploy(broker: &str, name: &str, args: &[&str]) -> Ran {
    let file = guest(name);
    let args: Vec<_> = ["deploy", file.to_str().unwrap()].iter().chain(args).copied().collect();
    run(broker, &args)
}

fn counted(key: &str, id: &str, n: u64) -> String {
    format!(r#"{{"id":"{id}","category":"count","type":"Counted","data":{{"key":"{key}","n":{n}}}}}"#) + "\n"
}

fn publish(broker: &str, lines: &str) {
    run_with_input(broker, &["publish", "-"], lines).ok();
}

fn handler(broker: &str, name: &str) -> Value {
    serde_json::from_str(&run(broker, &["handlers", name, "--json"]).ok().out).unwrap()
}

/// The versions that handled a key's events, in order.
fn handled_by(broker: &str, key: &str) -> Vec<String> {
    let states = states(broker, "counter");
    let by = states.get(key).and_then(|state| state.get("by")).cloned().unwrap_or(json!([]));
    serde_json::from_value(by).unwrap()
}

fn wait_for_count(broker: &str, key: &str, count: usize) {
    wait_until(&format!("{key} has {count}"), || handled_by(broker, key).len() == count);
}

#[test]
fn a_handler_is_deployed_replaced_and_rolled_back_on_a_fleet_without_a_change_of_owners() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let kept = ["--set", "engine.linger_ms=600000"];
    let hosts = [(); 3].map(|()| Host::up(&broker, &[], &kept));

    let first = deploy(&broker, "counter-1", &["--reason", "the first"]).ok();
    assert_eq!(first.out.matches("serves it").count(), 3, "{first:#?}");
    assert!(first.out.contains("counter 1.0.0 serves on 3 of 3 hosts"), "{first:#?}");
    let keys: Vec<_> = (0..9).map(|n| format!("k{n}")).collect();
    // A key is kept once it had several events at a time.
    let mut handled = BTreeMap::new();
    wait_until("every key is kept", || {
        for key in &keys {
            let sent: &mut usize = handled.entry(key.clone()).or_default();
            let several = (0..4).map(|nth| counted(key, &format!("{key}-{sent}-{nth}"), 0));
            publish(&broker, &several.collect::<String>());
            *sent += 4;
        }
        for key in &keys {
            wait_for_count(&broker, key, handled[key]);
        }
        partitions(&broker, "count").iter().all(|row| row["owned"] == true)
    });
    let more = |key: &str, n: usize| wait_for_count(&broker, key, handled[key] + n);
    let owners = || -> BTreeMap<String, (Value, Value)> {
        let rows = partitions(&broker, "count");
        let owner =
            |row: &Value| (row["key"].as_str().unwrap().into(), (row["owner"].clone(), row["generation"].clone()));
        rows.iter().map(owner).collect()
    };
    let before = owners();
    assert_eq!(before.len(), keys.len());

    deploy(&broker, "counter-2", &["--reason", "clears"]).ok();
    let cleared = r#"{"id":"c","category":"count","type":"Cleared","data":{"key":"k0"}}"#;
    publish(
        &broker,
        &(keys.iter().map(|key| counted(key, &format!("{key}-next"), 0)).collect::<String>() + cleared + "\n"),
    );
    for key in &keys {
        more(key, 1);
    }
    wait_until("k0 was cleared", || states(&broker, "counter")["k0"]["count"] == json!(0));
    for key in &keys {
        let by = handled_by(&broker, key);
        assert!(
            by.ends_with(&["1.0.0".into(), "2.0.0".into()]) && by.iter().filter(|it| *it == "2.0.0").count() == 1,
            "{by:?}"
        );
    }
    assert_eq!(owners(), before, "a key changed its owner");

    run(&broker, &["rollback", "counter", "--reason", "back"]).ok();
    wait_until("every host is back", || {
        let view = handler(&broker, "counter");
        let hosts = view["hosts"].as_array().unwrap();
        hosts.len() == 3 && hosts.iter().all(|host| host["version"] == "1.0.0" && host["state"] == "serving")
    });
    publish(&broker, &counted("k1", "k1-last", 0));
    more("k1", 2);
    assert_eq!(handled_by(&broker, "k1").last().unwrap(), "1.0.0");
    assert_eq!(owners(), before, "a key changed its owner");
    let row = partitions(&broker, "count").into_iter().find(|row| row["key"] == "k1").unwrap();
    let versions: Vec<_> = row["versions"].as_array().unwrap().iter().map(|it| it["version"].clone()).collect();
    assert_eq!(versions, ["1.0.0#1", "2.0.0#2", "1.0.0#1"], "{row}");
    let audit = run(&broker, &["audit"]).ok().out;
    for action in ["deploy    counter 1.0.0#1", "deploy    counter 2.0.0#2", "rollback  counter 1.0.0#1"] {
        assert!(audit.contains(action), "{audit}");
    }
    for host in hosts {
        assert_eq!(host.terminate(), 0);
    }
}

#[test]
fn a_refused_component_changes_nothing_and_every_reason_is_given() {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    let host = Host::up(&broker, &[], &[]);
    deploy(&broker, "counter-1", &[]).ok();
    deploy(&broker, "probe-lacks-key", &[]).refused(REFUSED, "has no field \"key\"");
    let text = folder.path().join("text.wasm");
    fs::write(&text, "no component").unwrap();
    run(&broker, &["deploy", text.to_str().unwrap()]).refused(REFUSED, "not");
    deploy(&broker, "counter-2", &["--canary", "50%"]).refused(REFUSED, "a canary must handle the same message types");
    let dry = deploy(&broker, "counter-2", &["--dry-run"]).ok();
    assert!(dry.out.contains("nothing was changed"), "{dry:#?}");
    let view = handler(&broker, "counter");
    assert_eq!(
        (&view["serving"]["version"], view["revisions"].as_array().unwrap().len()),
        (&json!("1.0.0"), 1),
        "{view}"
    );
    run(&broker, &["promote", "counter"]).refused(1, "has no canary");
    run(&broker, &["rollback", "counter", "--reason", "x"]).refused(1, "no earlier revision");
    run(&broker, &["rollback", "counter", "--to", "7", "--reason", "x"]).refused(1, "there are: 1");
    run(&broker, &["rollback", "nobody", "--reason", "x"]).refused(1, "these are: counter");
    publish(&broker, &counted("k", "1", 0));
    wait_for_count(&broker, "k", 1);
    drop(host);
}

#[test]
fn c060_a_host_that_cannot_run_it_keeps_the_old_version_serving_everywhere() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let able = Host::up(&broker, &[], &[]);
    deploy(&broker, "counter-1", &[]).ok();
    // Too little memory for any component.
    let unable = Host::up(&broker, &[], &["--set", "runtime.memory_max_bytes=1048576"]);
    let refused = deploy(&broker, "counter-2", &[]);
    refused.refused(REFUSED, "cannot run it");
    assert!(refused.err.contains("1.0.0#1 serves on"), "{refused:#?}");
    let view = handler(&broker, "counter");
    assert_eq!(view["serving"]["version"], "1.0.0", "{view}");
    assert!(view["revisions"][0]["withdrawn"].as_str().unwrap().contains("cannot run it"), "{view}");
    publish(&broker, &counted("k", "1", 0));
    wait_for_count(&broker, "k", 1);
    assert_eq!(handled_by(&broker, "k"), ["1.0.0"]);
    drop((able, unable));
}

#[test]
fn a_canary_serves_its_keys_and_is_promoted() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let host = Host::up(&broker, &[], &[]);
    deploy(&broker, "counter-1", &[]).ok();
    let canary = deploy(&broker, "counter-3", &["--canary", "k1"]).ok();
    assert!(canary.out.contains("keyrail --broker"), "the next command is named as it is to be typed: {canary:#?}");
    publish(&broker, &(counted("k1", "a", 0) + &counted("k2", "b", 0)));
    wait_for_count(&broker, "k1", 1);
    wait_for_count(&broker, "k2", 1);
    assert_eq!((handled_by(&broker, "k1"), handled_by(&broker, "k2")), (vec!["3.0.0".into()], vec!["1.0.0".into()]));
    run(&broker, &["promote", "counter"]).ok();
    wait_until("the promoted version serves", || {
        publish(&broker, &counted("k2", &format!("b-{}", handled_by(&broker, "k2").len()), 0));
        handled_by(&broker, "k2").last().unwrap() == "3.0.0"
    });
    drop(host);
}

#[test]
fn c069_a_canary_whose_key_halts_is_taken_back_and_the_key_goes_on() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let hosts = [(); 2].map(|()| Host::up(&broker, &[], &[]));
    deploy(&broker, "counter-1", &[]).ok();
    deploy(&broker, "counter-3", &["--canary", "50%"]).ok();
    let lines: String = (0..20).map(|n| counted(&format!("k{n}"), &format!("e{n}"), 13)).collect();
    publish(&broker, &lines);
    for n in 0..20 {
        wait_for_count(&broker, &format!("k{n}"), 1);
        assert_eq!(handled_by(&broker, &format!("k{n}")), ["1.0.0"]);
    }
    let view = handler(&broker, "counter");
    assert_eq!((&view["serving"]["version"], &view["candidate"]), (&json!("1.0.0"), &Value::Null), "{view}");
    assert!(view["revisions"][0]["withdrawn"].as_str().unwrap().contains("13 is too much"), "{view}");
    assert_eq!(run(&broker, &["halted", "--json"]).ok().out, "");
    assert!(run(&broker, &["audit"]).ok().out.contains("withdraw  counter 3.0.0#2"));
    drop(hosts);
}

#[test]
fn a_handler_that_is_undeployed_leaves_its_events_waiting() {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    let host = Host::up(&broker, &[], &[]);
    deploy(&broker, "counter-1", &[]).ok();
    publish(&broker, &counted("k", "1", 0));
    wait_for_count(&broker, "k", 1);
    run(&broker, &["undeploy", "counter", "--reason", "x"]).ok();
    wait_until("the host gave it up", || host.log().contains("nothing of it is deployed any more"));
    publish(&broker, &(counted("k", "2", 0) + &counted("k", "3", 0)));
    assert_eq!(host.terminate(), 0);
    // What is deployed is there after a new start: nothing, until it is deployed again.
    let host = Host::up(&broker, &[], &[]);
    assert_eq!(handled_by(&broker, "k"), ["1.0.0"]);
    run(&broker, &["rollback", "counter", "--reason", "again"]).ok();
    wait_for_count(&broker, "k", 3);
    drop(host);
}

#[test]
fn a_host_that_starts_serves_what_is_deployed() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let deployed = deploy(&broker, "counter-1", &[]).ok();
    assert!(deployed.out.contains("no host is up"), "{deployed:#?}");
    publish(&broker, &counted("k", "1", 0));
    let host = Host::start(&broker, &[], &["--until-idle"]);
    assert_eq!(host.wait(), 0);
    assert_eq!(handled_by(&broker, "k"), ["1.0.0"]);
}

#[test]
fn a_host_with_a_file_of_its_own_goes_on_with_it() {
    let redis = RedisServer::start().unwrap();
    let broker = redis.url();
    let own = Host::up(&broker, &["counter-1"], &[]);
    let deployed = deploy(&broker, "counter-2", &[]).ok();
    assert!(deployed.out.contains("serves a file of its own"), "{deployed:#?}");
    publish(&broker, &counted("k", "1", 0));
    wait_for_count(&broker, "k", 1);
    assert_eq!(handled_by(&broker, "k"), ["1.0.0"]);
    // What only the deployed version handles waits for a host that has it.
    publish(&broker, "{\"id\":\"c\",\"category\":\"count\",\"type\":\"Cleared\",\"data\":{\"key\":\"k\"}}\n");
    wait_until("it says so", || own.log().contains("waits for the version of its handler that is registered"));
    let able = Host::up(&broker, &[], &[]);
    assert_eq!(own.terminate(), 0);
    wait_until("it was handled", || states(&broker, "counter")["k"]["count"] == json!(0));
    drop(able);
}

#[test]
fn a_manifest_travels_with_its_component() {
    let (redis, folder) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
    let broker = redis.url();
    let host = Host::up(&broker, &[], &[]);
    let grants = folder.path().join("clock.toml");
    let clock = |id: &str| {
        let data = r#"{"key":"k","action":"clock"}"#;
        publish(&broker, &format!(r#"{{"id":"{id}","category":"conformance","type":"Step","data":{data}}}{}"#, "\n"));
    };
    // Milliseconds since 1970, as the handler sees them.
    let seen = || -> Option<u64> {
        let states = states(&broker, "conformance");
        let clock = states.get("k")?.get("clock")?;
        clock.as_u64().or_else(|| clock.as_str()?.parse().ok())
    };
    fs::write(&grants, "[grants]\nclok = true\n").unwrap();
    deploy(&broker, "conformance-rust", &["--grants", grants.to_str().unwrap()]).refused(REFUSED, "clock");
    let conformance = guest("conformance-sink");
    run(&broker, &["register", conformance.to_str().unwrap()]).ok();
    fs::write(&grants, "[grants]\nclock = true\n").unwrap();
    deploy(&broker, "conformance-rust", &["--grants", grants.to_str().unwrap()]).ok();
    let before = keyrail::clock::wall_ms();
    clock("granted");
    wait_until("it was handled", || seen().is_some());
    assert!(seen().unwrap() >= before, "the real clock was granted");
    // Without the grant the clock shows when the event was recorded.
    deploy(&broker, "conformance-rust", &[]).ok();
    let granted = seen();
    clock("deterministic");
    wait_until("it was handled again", || seen() != granted);
    drop(host);
}

/// Puts a component into a folder in one step.
fn place(from: &str, to: &Path) {
    let partial = to.with_extension("partial");
    fs::copy(guest(from), &partial).unwrap();
    fs::rename(partial, to).unwrap();
}

#[test]
fn c058_a_watched_folder_takes_whole_files_only_and_loses_nothing() {
    let (folder, handlers) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    let file = handlers.path().join("counter.wasm");
    place("counter-1", &file);
    let watched = handlers.path().to_str().unwrap();
    let host = Host::up(&broker, &[], &["--handlers", watched, "--set", "modules.watch_interval_ms=100"]);
    let mut sent = 0;
    let mut count = || {
        publish(&broker, &counted("k", &format!("e{sent}"), 0));
        sent += 1;
        wait_for_count(&broker, "k", sent);
    };
    wait_until("it serves", || host.log().contains("serves from here on"));
    count();
    assert_eq!(handled_by(&broker, "k"), ["1.0.0"]);

    // In pieces: a look in between finds it changing, or not whole.
    let bytes = fs::read(guest("counter-2")).unwrap();
    fs::write(&file, b"").unwrap();
    for piece in bytes.chunks(bytes.len().div_ceil(10)) {
        use std::io::Write as _;
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(piece).unwrap();
        count();
    }
    wait_until("the new version serves", || host.log().matches("serves from here on").count() == 2);

    let refusals = || host.log().matches("what served before goes on").count();
    for (step, rubbish) in [&b""[..], b"rubbish", b"\0asm\x01\0\0\0", &bytes[..bytes.len() / 2]].iter().enumerate() {
        let before = refusals();
        fs::write(&file, rubbish).unwrap();
        wait_until(&format!("rubbish {step} is reported"), || refusals() > before);
    }
    fs::remove_file(&file).unwrap();
    wait_until("the loss is reported", || host.log().contains("the file is gone"));
    publish(&broker, &counted("k", "last", 0));
    wait_until("it was handled", || handled_by(&broker, "k").last().is_some_and(|by| by == "2.0.0"));
    assert_eq!(host.log().matches("serves from here on").count(), 2, "{}", host.log());
    assert_eq!(host.terminate(), 0);
}
