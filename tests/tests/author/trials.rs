//! `keyrail test`: events run in memory, and what came out is compared.

use keyrail_tests::guest;
use serde_json::json;

use super::{Author, lines, step};

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
