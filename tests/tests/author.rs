//! The tools of a handler's author: a project that builds, events run in memory, a head tried with a candidate, a bundle replayed.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code, unreachable_pub)]
#[path = "../../host/crates/runtime/tests/common/fetcher.rs"]
mod fetcher;
#[allow(dead_code, unreachable_pub)]
#[path = "../../host/crates/runtime/tests/common/small.rs"]
mod small;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{Ran, guest, repository, run, run_in, run_with_input};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An event for the conformance handler.
fn step(key: &str, action: &str, more: Value) -> String {
    let mut data = json!({ "key": key, "action": action });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "category": "conformance", "type": "Step", "data": data }).to_string() + "\n"
}

/// An event for the probe.
fn probe(mode: &str, n: u64) -> String {
    json!({ "category": "probe", "type": "Probe", "data": { "key": "k", "mode": mode, "n": n } }).to_string() + "\n"
}

struct Author {
    folder: TempDir,
}

impl Author {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `keyrail` in the folder; no broker is there.
    fn keyrail(&self, args: &[&str]) -> Ran {
        run_in(self.folder.path(), args, "")
    }

    /// `keyrail test` of the conformance handler.
    fn test(&self, args: &[&str]) -> Ran {
        let component = guest("conformance-rust");
        let args: Vec<_> = ["test", component.to_str().unwrap()].into_iter().chain(args.iter().copied()).collect();
        self.keyrail(&args)
    }
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_run_in_memory_in_their_order_and_two_runs_are_equal() {
    let author = Author::new();
    let events = [
        step("a", "append", json!({ "text": "one" })),
        step("b", "retry", json!({ "count": 2 })),
        step("a", "clock", json!({})),
        step("c", "reject", json!({ "text": "no such client" })),
        step("c", "append", json!({ "text": "after" })),
        step("a", "emit", json!({ "text": "hello", "count": 2 })),
    ];
    author.write("events.jsonl", &events.concat());
    let sink = guest("conformance-sink");
    let args = ["events.jsonl", "--json", "--with", sink.to_str().unwrap()];
    let ran = author.test(&args);
    assert_eq!(ran.code, 3, "a key stands still: {ran:#?}");
    assert_eq!(ran.out, author.test(&args).out);

    let lines = lines(&ran.out);
    let of = |what: &str| lines.iter().filter(|line| line["what"] == what).collect::<Vec<_>>();
    let results: Vec<_> =
        of("event").iter().map(|line| (line["line"].as_u64().unwrap(), line["result"].as_str().unwrap())).collect();
    let expected =
        [(1, "done"), (2, "done"), (3, "done"), (4, "rejected"), (5, "behind"), (6, "done"), (6, "done"), (6, "done")];
    assert_eq!(results, expected);
    assert_eq!(of("event")[1]["tries"], 3);
    assert_eq!(of("event")[1]["failures"], json!(["retry: not yet", "retry: not yet"]));
    assert_eq!(of("event")[3]["failures"], json!(["reject: no such client"]));
    assert_eq!(of("event")[7]["emitted_by"], "conformance");
    assert_eq!(of("emit")[1]["emits"]["data"], json!({ "key": "a", "text": "hello", "nth": 1 }));
    let received = of("state").into_iter().find(|line| line["name"] == "received").unwrap();
    assert_eq!(received["value"]["text"], "0 hello yes\n1 hello yes\n");

    // The same for people, and without the sink: then its events go nowhere, and that is said.
    let shown = author.test(&["events.jsonl"]);
    for part in [
        "done at try 3",
        "rejected: the key stands still",
        "not run",
        "emits conformance-out Echo",
        "accepted unchecked",
    ] {
        assert!(shown.out.contains(part), "{part:?} is not in {}", shown.out);
    }
}

#[test]
fn what_came_out_is_compared_with_what_was_expected() {
    let author = Author::new();
    author.write("events.jsonl", &step("a", "put", json!({ "name": "n", "text": "1" })));
    let expect = ["events.jsonl", "--expect", "expected.jsonl"];
    author.test(&expect).refused(1, "--update writes");
    author.test(&["events.jsonl", "--expect", "expected.jsonl", "--update"]).ok();
    let ran = author.test(&expect).ok();
    assert!(ran.out.contains("as expected: 2 lines"), "{ran:#?}");

    author.write("events.jsonl", &step("a", "put", json!({ "name": "n", "text": "2" })));
    let ran = author.test(&expect);
    ran.refused(1, "expected.jsonl differs");
    assert!(ran.err.contains("- {\"what\":\"state\"") && ran.err.contains("\"value\":2}"), "{ran:#?}");

    // A line names what it cares for; kinds that the file does not have do not matter.
    author.write("expected.jsonl", "// the state alone\n{\"what\":\"state\",\"key\":\"a\",\"value\":2}\n");
    author.test(&expect).ok();
    author.write("expected.jsonl", "{\"what\":\"state\",\"key\":\"b\"}\n");
    author.test(&expect).refused(1, "differs");
    for (text, says) in [("", "no line"), ("nonsense\n", "line 1"), ("{\"key\":\"a\"}\n", "needs a member")] {
        author.write("expected.jsonl", text);
        author.test(&expect).refused(5, says);
    }
}

#[test]
fn rubbish_is_refused_by_its_line() {
    let author = Author::new();
    for (text, says) in [
        ("nonsense\n", "events.jsonl line 1"),
        ("\n{\"category\":\"nope\",\"type\":\"Step\",\"data\":{}}\n", "line 2: unknown category"),
        ("{\"category\":\"conformance\",\"type\":\"Step\",\"data\":{\"action\":\"x\"}}\n", "the key is missing"),
    ] {
        author.write("events.jsonl", text);
        author.test(&["events.jsonl"]).refused(5, says);
    }
    author.test(&["not-there.jsonl"]).refused(1, "not-there.jsonl");
    author.write("no.wasm", "nonsense");
    author.keyrail(&["test", "no.wasm", "events.jsonl"]).refused(5, "no.wasm");
}

#[test]
fn a_new_project_builds_and_passes_its_test() {
    let author = Author::new();
    let made = author.keyrail(&["new", "order-counter", "--lang", "rust"]).ok();
    assert!(made.out.contains("cargo build --release --target wasm32-wasip2"), "{}", made.out);
    let project = author.path("order-counter");
    assert!(!files(&project).iter().any(|file| file.to_str().unwrap().contains(".tmpl")));

    // What the README says: its tests, ...
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("projects");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--target-dir"]).arg(&target).current_dir(&project);
    let tested = cargo.output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    // ... and the component, by whichever toolchain is here.
    let component = project.join("handler.wasm");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["xtask", "component"]).args([&project, &component]).current_dir(repository(""));
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let in_project = |args: &[&str]| run_in(&project, args, "");
    let component = component.to_str().unwrap();
    let checked = in_project(&["check", component]).ok();
    assert!(
        checked.out.contains("order-counter 0.1.0") && checked.out.contains("order/OrderPlaced"),
        "{}",
        checked.out
    );
    in_project(&["test", component, "events.jsonl", "--expect", "expected.jsonl"]).ok();
    let bad = r#"{"category":"order","type":"OrderPlaced","data":{"order_id":"o-1","amount_cents":-1}}"#;
    fs::write(project.join("bad.jsonl"), bad).unwrap();
    let ran = in_project(&["test", component, "bad.jsonl"]);
    assert!(ran.code == 3 && ran.out.contains("an order cannot cost less than nothing"), "{ran:#?}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_language_has_a_whole_project_and_no_folder_is_overwritten() {
    let author = Author::new();
    for language in LANGUAGES {
        author.keyrail(&["new", "order-counter", "--lang", language, "--dir", language]).ok();
        let project = author.path(language);
        for file in ["README.md", "events.jsonl", "expected.jsonl", "keyrail/wit/keyrail.wit"] {
            assert!(project.join(file).exists(), "{language} has no {file}");
        }
        assert!(project.join("keyrail/sdk").is_dir(), "{language} has no SDK");
        // What is ours goes in as it is; the rest is filled in.
        let own = files(&project).into_iter().filter(|file| !file.starts_with(project.join("keyrail")));
        for file in own {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains("{{name"), "{} is not filled in", file.display());
        }
        let again = author.keyrail(&["new", "order-counter", "--lang", language, "--dir", language]);
        again.refused(2, "is not empty");
    }
    author.write("file", "");
    author.keyrail(&["new", "a", "--lang", "rust", "--dir", "file"]).refused(2, "is a file");
    author.keyrail(&["new", "Order Counter", "--lang", "rust"]).refused(2, "cannot be the name");
    author.keyrail(&["new", "a", "--lang", "cobol"]).refused(2, "invalid value");
}

/// Those that have a template.
const LANGUAGES: [&str; 6] = ["rust", "ts", "js", "python", "go", "c"];

/// Two events: one that counts, and one that a host with a low limit rejects.
fn halted(broker: &str) {
    let component = guest("probe");
    let component = component.to_str().unwrap();
    run(broker, &["register", component]).ok();
    run_with_input(broker, &["publish", "-"], &(probe("count", 0) + &probe("state-big", 20) + &probe("count", 0))).ok();
    let ran = run(
        broker,
        &[
            "run",
            "--handler",
            component,
            "--until-idle",
            "--set",
            "runtime.state_value_max_bytes=10",
            "--set",
            "retention.entries=100",
        ],
    );
    assert_eq!(ran.code, 3, "{ran:#?}");
}

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

/// Answers one connection after the other with these, and gives itself back.
fn server(answers: &'static [(u16, &'static str)]) -> (String, std::thread::JoinHandle<TcpListener>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = format!("localhost:{}", listener.local_addr().unwrap().port());
    let serve = move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4_096];
            assert!(stream.read(&mut asked).unwrap() > 0);
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} X\r\nx-n: 1\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        }
        listener
    };
    (authority, std::thread::spawn(serve))
}

#[test]
fn http_calls_are_kept_once_and_replayed_without_their_server() {
    let author = Author::new();
    // One of the candidate; of the bundle a try that fails, its second, and the second event.
    let (authority, served) = server(&[(200, "zero"), (500, "down"), (200, "one"), (200, "two")]);
    fs::write(author.path("fetch.wasm"), fetcher::fetcher(&authority, "/rate")).unwrap();
    fs::write(author.path("other.wasm"), fetcher::fetcher(&authority, "/other")).unwrap();
    author.write("fetch.manifest.toml", &format!("grants.http = [{{ hosts = ['{authority}'], methods = ['GET'] }}]"));

    let broker = format!("embedded:{}", author.path("k.redb").display());
    let component = author.path("fetch.wasm");
    run(&broker, &["register", component.to_str().unwrap()]).ok();
    let event = json!({ "category": "fetch", "type": "fetch", "data": { "key": "k" } }).to_string() + "\n";
    run_with_input(&broker, &["publish", "-"], &event.repeat(2)).ok();
    let tried = run(&broker, &["head", "try", "fetch", "k", "--with", component.to_str().unwrap()]).ok();
    assert!(tried.err.contains(&format!("made for real, and can have effects: GET to {authority}")), "{tried:#?}");
    assert!(tried.out.contains("+ answer = {\"text\":\"zero\"}"), "{tried:#?}");
    let file = author.path("k.jsonl");
    run(&broker, &["record", "fetch", "k", "-o", file.to_str().unwrap()]).ok();

    // Nothing was recorded: nothing is asked.
    let replay = |args: &[&str]| author.keyrail(&[&["replay", "k.jsonl", "--with"], args].concat());
    let asks = format!("GET http://{authority}/rate");
    replay(&["fetch.wasm"]).refused(1, &format!("event 1, try 1, call 1 is {asks}, and no such call was recorded"));
    let component = guest("probe");
    let wrong = author.keyrail(&["replay", "k.jsonl", "--live", "--with", component.to_str().unwrap()]);
    wrong.refused(5, "declares the handler probe");

    let live = replay(&["fetch.wasm", "--live"]).ok();
    assert!(live.err.contains(&format!("made for real, and can have effects: GET to {authority}")), "{live:#?}");
    assert!(live.out.contains("done at try 2") && live.out.contains("answer = {\"text\":\"two\"}"), "{live:#?}");
    let bundle = author.read("k.jsonl");
    let calls: Vec<_> = lines(&bundle).into_iter().filter(|line| line["what"] == "http-call").collect();
    let found: Vec<_> = calls
        .iter()
        .map(|call| {
            let response = &call["answer"]["response"];
            (call["event"].as_u64(), call["try"].as_u64(), response["status"].as_u64(), response["body"].to_string())
        })
        .collect();
    let text = |text: &str| json!({ "text": text }).to_string();
    let expected = [
        (Some(1), Some(1), Some(500), text("down")),
        (Some(1), Some(2), Some(200), text("one")),
        (Some(2), Some(1), Some(200), text("two")),
    ];
    assert_eq!(found, expected);

    // The server answers nobody any more, and nobody comes.
    let server = served.join().unwrap();
    server.set_nonblocking(true).unwrap();
    let again = replay(&["fetch.wasm"]).ok();
    assert_eq!(again.out, live.out);
    replay(&["fetch.wasm", "--update"]).ok();
    let bundle = author.read("k.jsonl");
    assert!(replay(&["fetch.wasm"]).ok().out.contains("as expected"));

    // A handler that asks otherwise fails, and the bundle is not changed for it.
    let grants = ["other.wasm", "--grants", "fetch.manifest.toml"];
    let differs = format!("event 1, try 1, call 1 is GET http://{authority}/other, and {asks} was recorded");
    replay(&grants).refused(1, &differs);
    let ran = replay(&[&grants[..], &["--update"]].concat());
    ran.refused(1, &differs);
    assert!(ran.err.contains("nothing was written"), "{ran:#?}");
    assert_eq!(author.read("k.jsonl"), bundle);
    // One that may not ask is denied before any answer is looked for.
    author.write("none.toml", "grants.http = [{ hosts = ['localhost:1'], methods = ['GET'] }]");
    let ran = replay(&["fetch.wasm", "--grants", "none.toml"]);
    ran.refused(1, "call 1, GET");
    assert!(ran.out.contains(&format!("GET to {authority} is not granted")), "{ran:#?}");

    // Bundles that somebody spoiled.
    let kept: Vec<&str> = bundle.lines().collect();
    let of = |what: &str| kept.iter().copied().filter(|line| line.contains(what)).collect::<Vec<_>>();
    let third = of("\"what\":\"http-call\"")[2];
    for (from, to, code, says) in [
        ("/rate", "/rates", 1, "and GET"),
        ("\"event\":2", "\"event\":3", 5, "a call of event 3"),
        ("{\"what\":\"http-call\"", "{third}\n{\"what\":\"http-call\"", 1, "event 2, try 1, call 2, GET"),
        ("\"try\":1", "\"try\":2", 1, "event 2, try 1, call 1"),
        ("\"status\":200", "\"status\":404", 1, "differs"),
        ("\"status\":200", "\"status\":\"200\"", 5, "line"),
        ("\"body\":{\"text\":\"two\"}", "\"body\":{\"text\":\"three\"}", 1, "three"),
    ] {
        assert!(third.contains(from), "{from} is not in {third}");
        author.write("k.jsonl", &bundle.replace(third, &third.replace(from, to).replace("{third}", third)));
        replay(&["fetch.wasm"]).refused(code, says);
    }
    author.write("k.jsonl", &bundle.replace(third, &format!("{third}\n{}", third.replace("\"try\":1", "\"try\":2"))));
    replay(&["fetch.wasm"]).refused(1, "event 2, try 2, GET");
    assert!(server.accept().is_err(), "a replay connected to the server");
}

#[test]
fn live_calls_need_a_handler_that_may_make_some() {
    let author = Author::new();
    let broker = format!("embedded:{}", author.path("k.redb").display());
    halted(&broker);
    let file = author.path("k.jsonl");
    run(&broker, &["record", "probe", "k", "-o", file.to_str().unwrap()]).ok();
    let component = guest("probe");
    let ran = author.keyrail(&["replay", "k.jsonl", "--live", "--with", component.to_str().unwrap()]);
    ran.refused(2, "makes none or is granted none; see --grants");
}
