//! The checks, each a story about a language's component.

use std::collections::BTreeMap;

use keyrail_ordering::{Field, FieldType, HaltCause, Role, SequentialBy};
use serde_json::{Value, json};

use crate::log;
use crate::world::{Component, World, step, text_of};

/// Some moment.
const NOW_MS: u64 = 1_700_000_000_123;

pub async fn it_says_what_it_is(component: &Component) {
    let metadata = component.module().await.metadata();
    assert_eq!((metadata.name.as_str(), metadata.version.as_str()), ("conformance", "1.0.0"));
    assert_eq!(metadata.role, Role::EventHandler);
    assert_eq!(metadata.sequential_by, SequentialBy::Field("key".into()));
    let options: BTreeMap<_, _> =
        metadata.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(options, BTreeMap::from([("retry-attempts-max", "3"), ("retry-backoff-base-ms", "1")]));
    let [message] = &metadata.handles[..] else { panic!("it handles {:?}", metadata.handles) };
    let name = (message.category.as_str(), message.name.as_str(), message.version);
    assert_eq!(name, ("conformance", "Step", 1));
    let mut fields = message.fields.clone();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required };
    assert_eq!(
        fields,
        [
            field("action", FieldType::Text, true),
            field("count", FieldType::Integer, false),
            field("key", FieldType::Text, true),
            field("name", FieldType::Text, false),
            field("text", FieldType::Text, false),
        ]
    );
}

pub async fn events_of_a_key_run_in_order_and_keys_apart(component: &Component) {
    const KEYS: usize = 4;
    let mut world = World::new(component).await;
    let key = |n: usize| format!("k{}", n % KEYS);
    world.run((0..120).map(|n| step(&key(n), "append").text(&n.to_string()))).await;
    for of in 0..KEYS {
        let expected: Vec<_> = (0..120).filter(|n| n % KEYS == of).map(|n| n.to_string()).collect();
        let log = world.text(&key(of), "log").await;
        assert_eq!(log.lines().collect::<Vec<_>>(), expected, "key {of}");
    }
}

pub async fn state_is_put_replaced_and_removed(component: &Component) {
    let mut world = World::new(component).await;
    world
        .run([
            step("k", "put").name("a").text("one"),
            step("k", "put").name("b").text("two"),
            step("k", "put").name("a").text("three"),
            step("k", "put").name("empty").text(""),
            step("k", "put").name("gone").text("x"),
            step("k", "remove").name("gone"),
            step("k", "remove").name("never-was"),
        ])
        .await;
    let state = world.state("k").await;
    let texts: Vec<_> = state.keys().map(|name| (name.as_str(), text_of(&state, name))).collect();
    assert_eq!(texts, [("a", "three".into()), ("b", "two".into()), ("empty", String::new())]);
}

pub async fn binary_state_comes_back_as_it_was(component: &Component) {
    let mut world = World::new(component).await;
    // In two runs: the second reads what a broker kept, not what an instance remembers.
    world.run([step("k", "binary")]).await;
    world.run([step("k", "binary")]).await;
    assert_eq!(world.halted("k").await, None);
    let state = world.state("k").await;
    assert_eq!(state["bytes"], (0..=255).collect::<Vec<u8>>());
    assert_eq!(state["bytes-again"], (0..=255).rev().collect::<Vec<u8>>());
}

pub async fn emits_arrive_in_order_with_their_headers(component: &Component) {
    let mut world = World::new(component).await;
    world.run([step("k", "emit").text("first").count(3), step("k", "emit").text("second").count(2)]).await;
    let expected = ["0 first yes", "1 first yes", "2 first yes", "0 second yes", "1 second yes"];
    assert_eq!(world.received("k").await, expected);
    world.run([step("none", "emit").text("x").count(0)]).await;
    assert_eq!(world.received("none").await, [""; 0]);
}

pub async fn a_refused_emit_fails_the_event_whatever_the_handler_answers(component: &Component) {
    let mut world = World::new(component).await;
    world.run([step("k", "emit-bad")]).await;
    let halted = world.halted("k").await.expect("it stands still");
    assert_eq!((halted.cause, halted.attempts), (HaltCause::Poison, 3));
    assert!(halted.error.contains("nowhere"), "{}", halted.error);
}

pub async fn nothing_of_a_failed_try_is_kept(component: &Component) {
    let mut world = World::new(component).await;
    world.run([step("k", "retry").count(2), step("k", "append").text("after")]).await;
    let state = world.state("k").await;
    let texts: Vec<_> = state.keys().map(|name| (name.as_str(), text_of(&state, name))).collect();
    assert_eq!(texts, [("attempts", "3".into()), ("log", "after\n".into())]);
}

pub async fn tries_run_out(component: &Component) {
    let mut world = World::new(component).await;
    world.run([step("k", "retry").count(9), step("k", "append").text("after")]).await;
    let halted = world.halted("k").await.expect("it stands still");
    assert_eq!((halted.cause, halted.attempts, halted.error.as_str()), (HaltCause::Poison, 3, "not yet"));
    assert_eq!(world.state("k").await, BTreeMap::new(), "and nothing after it runs");
}

pub async fn a_reject_stands_still_at_once(component: &Component) {
    let mut world = World::new(component).await;
    let reason = "no such client: Zoë 🚂";
    world
        .run([
            step("k", "append").text("before"),
            step("k", "reject").text(reason),
            step("k", "append").text("after"),
            step("unknown", "dance"),
            step("other", "append").text("goes on"),
        ])
        .await;
    let halted = world.halted("k").await.expect("it stands still");
    assert_eq!((halted.cause, halted.attempts, halted.error.as_str()), (HaltCause::Rejected, 1, reason));
    assert_eq!(world.text("k", "log").await, "before\n");
    let halted = world.halted("unknown").await.expect("it stands still");
    assert_eq!((halted.cause, halted.error.as_str()), (HaltCause::Rejected, "unknown action: dance"));
    assert_eq!(world.text("other", "log").await, "goes on\n");
}

pub async fn a_trap_is_a_failed_try(component: &Component) {
    stands_still_after_three_tries(component, "trap", "").await;
}

pub async fn an_endless_loop_is_stopped(component: &Component) {
    stands_still_after_three_tries(component, "spin", "ms of CPU time").await;
}

pub async fn memory_without_end_is_stopped(component: &Component) {
    stands_still_after_three_tries(component, "grow", "memory").await;
}

/// The event fails three times by what it does, its key stands still on it, and another key goes on.
async fn stands_still_after_three_tries(component: &Component, action: &str, says: &str) {
    let mut world = World::new(component).await;
    world
        .run([
            step("k", "append").text("before"),
            step("k", action),
            step("k", "append").text("after"),
            step("other", "append").text("goes on"),
        ])
        .await;
    let halted = world.halted("k").await.expect("it stands still");
    assert_eq!((halted.cause, halted.attempts), (HaltCause::Poison, 3), "{}", halted.error);
    assert!(!halted.error.is_empty() && halted.error.contains(says), "{}", halted.error);
    assert_eq!(world.text("k", "log").await, "before\n");
    assert_eq!(world.text("other", "log").await, "goes on\n");
}

pub async fn text_passes_through_unchanged(component: &Component) {
    let long = "𝔎eyrail ✓ ".repeat(100_000 / 13);
    let texts = [
        "Zoë",
        "e\u{301} is not \u{e9}",
        "𝒳 🚂 👩‍👩‍👧 \u{10ffff}",
        "right to left: שלום",
        "zero \u{0} inside",
        "\u{feff}a mark at the start",
        "\"quoted\" back\\slash \t tab \r\n break \u{2028} separator \u{7f}",
        "",
        &long,
    ];
    let mut world = World::new(component).await;
    let key = |n: usize| format!("schlüssel-{n}");
    let steps = texts.iter().enumerate().flat_map(|(n, text)| {
        [step(&key(n), "put").name("text").text(text), step(&key(n), "emit").text(text).count(1)]
    });
    world.run(steps).await;
    for (n, text) in texts.iter().enumerate() {
        assert_eq!(world.halted(&key(n)).await, None);
        assert!(world.text(&key(n), "text").await == *text, "the state of {:?}", &text[..text.len().min(80)]);
        // The sink keeps a line each, and some of these texts have breaks of their own.
        let received = world.received(&key(n)).await.join("\n");
        let expected = format!("0 {text} yes").lines().collect::<Vec<_>>().join("\n");
        assert!(received == expected, "the emit of {:?} is {received:?}", &text[..text.len().min(80)]);
    }
}

pub async fn the_event_is_shown_as_it_is(component: &Component) {
    let mut world = World::at(component, NOW_MS).await;
    let ids = world
        .run([
            step("k-1", "append").text("first"),
            step("k-1", "context").header("traceparent", "00-ab-cd-01").header("näme", "välue"),
        ])
        .await;
    let text = world.text("k-1", "context").await;
    let mut seen: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let generation = seen["generation"].take();
    assert!(generation.as_u64().is_some_and(|generation| generation > 0), "{text}");
    let mut headers = seen["headers"].as_array().cloned().unwrap_or_default();
    headers.sort_by_key(ToString::to_string);
    seen["headers"] = headers.into();
    assert_eq!(
        seen,
        json!({
            "id": ids[1], "category": "conformance", "name": "Step", "version": 1, "key": "k-1", "epoch": 1,
            "sequence": 1, "generation": null, "attempt": 1, "recordedAt": NOW_MS,
            "headers": [["näme", "välue"], ["traceparent", "00-ab-cd-01"]],
        })
    );
}

pub async fn lines_reach_the_log(component: &Component) {
    let mut world = World::new(component).await;
    let ids = world.run([step("k", "log").text("Zoë was here 🚂")]).await;
    let lines = log::of_event(&ids[0]);
    for expected in ["conformance: Zoë was here 🚂", "stdout: Zoë was here 🚂"] {
        assert!(lines.contains(&("INFO".into(), expected.into())), "{expected:?} is not in {lines:?}");
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
}

pub async fn two_runs_are_equal(component: &Component) {
    let mut runs = vec![];
    for _ in 0..2 {
        let mut world = World::at(component, NOW_MS).await;
        world.run([step("a", "clock")]).await;
        world.run([step("b", "clock")]).await;
        runs.push((world.state("a").await, world.state("b").await));
    }
    let (a, b) = &runs[0];
    assert_eq!(text_of(a, "clock"), NOW_MS.to_string(), "the clock shows when the event was recorded");
    assert_eq!(text_of(a, "random").len(), 16, "{}", text_of(a, "random"));
    assert_ne!(text_of(a, "random"), text_of(b, "random"), "events differ in what is random to them");
    assert_eq!(runs[0], runs[1]);
}
