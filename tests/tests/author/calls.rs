//! HTTP calls of a handler that is tried and replayed: made once, kept, and answered without their server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use keyrail_tests::{guest, run, run_with_input};
use serde_json::json;

use super::{Author, fetcher, halted, lines};

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
