//! A handler on the harness: what is kept, what is not, and what errors become.
#![allow(missing_docs, clippy::unwrap_used)]

use keyrail_guest::log::Level;
use keyrail_guest::testing::{Harness, Submission};
use keyrail_guest::{Context, Disposition, Error, Event, OrReject, Outgoing, Result, handler, info, warn};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Event, Serialize, Deserialize)]
#[event(category = "work")]
struct Asked {
    key: String,
    what: String,
}

#[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(category = "work")]
struct Counted {
    key: String,
    n: u64,
}

struct Worker;

#[handler(name = "worker", sequential_by = "key")]
impl Worker {
    fn asked(&self, event: Asked, ctx: &mut Context) -> Result<()> {
        let n = ctx.state::<u64>("n")?.unwrap_or(0) + 1;
        ctx.put_state("n", &n)?;
        assert_eq!(ctx.state::<u64>("n")?, Some(n), "a call sees its own writes");
        ctx.emit_with_headers(&Counted { key: event.key, n }, &[("from", "worker")])?;
        info!("a literal");
        warn!("{} as {n}", event.what);
        match event.what.as_str() {
            "parse" => drop("x".parse::<u64>()?),
            "reject" => drop("x".parse::<u64>().or_reject()?),
            "later" => return Err(Error::retry_after(5, "not yet")),
            "forget" => ctx.remove_state("n")?,
            "bad name" => ctx.put_state("a b", &1)?,
            "bad emit" => {
                let message = Outgoing { category: "work", name: "Counted", version: 1, headers: &[], data: b"[]" };
                assert!(ctx.emit_raw(message).is_err());
            }
            "who" => {
                let seen = (ctx.event_id(), ctx.key(), ctx.sequence(), ctx.attempt(), ctx.header("h"));
                ctx.put_state("who", &json!(seen))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn counted(&self, event: Counted, ctx: &mut Context) -> Result<()> {
        ctx.put_state("counted", &event.n)
    }
}

fn asked(key: &str, what: &str) -> Asked {
    Asked { key: key.into(), what: what.into() }
}

#[test]
fn done_keeps_state_per_key_emits_and_logs() {
    let mut work = Harness::new(Worker);
    let delivery = work.deliver(&asked("a", "")).assert_done();
    work.deliver(&asked("a", "")).assert_done();
    work.deliver(&asked("b", "")).assert_done();

    assert_eq!(work.state::<u64>("a", "n"), Some(2));
    assert_eq!(work.state::<u64>("b", "n"), Some(1));
    assert_eq!(delivery.emitted::<Counted>(), [Counted { key: "a".into(), n: 1 }]);
    assert_eq!(delivery.emits[0].headers, [("from".to_owned(), "worker".to_owned())]);
    assert_eq!(delivery.logs[0].message, "a literal");
    assert_eq!((delivery.logs[1].level, delivery.logs[1].message.as_str()), (Level::Warn, " as 1"));
    assert_eq!(delivery.logs[1].context, "harness", "the module's path");
}

#[test]
fn any_error_is_a_retry_and_keeps_nothing() {
    let mut work = Harness::new(Worker);
    let delivery = work.deliver(&asked("a", "parse"));
    let reason = "invalid digit found in string".to_owned();
    assert_eq!(delivery.disposition, Disposition::Retry { reason, after_ms: None });
    assert_eq!(delivery.emits, []);
    assert_eq!(delivery.logs.len(), 2, "logs are outside the commit");
    assert_eq!(work.state::<u64>("a", "n"), None);

    let delivery = work.deliver(&asked("a", "later"));
    assert_eq!(delivery.disposition, Disposition::Retry { reason: "not yet".into(), after_ms: Some(5) });
}

#[test]
fn a_rejection_says_why() {
    let mut work = Harness::new(Worker);
    let mut reject = |event: Submission| match work.deliver(event).disposition {
        Disposition::Reject(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reject(Submission::of(&asked("a", "reject"))), "invalid digit found in string");
    assert_eq!(
        reject(Submission::json("work", "Asked", &json!({"key": "a"}))),
        "work/Asked version 1 does not parse: missing field `what` at line 1 column 11"
    );
    assert_eq!(
        reject(Submission::of(&asked("a", "bad name"))),
        "state a b was refused: names are 1 to 128 bytes of [A-Za-z0-9_.:-]"
    );
    let reason = reject(Submission::of(&asked("a", "bad emit")));
    assert!(reason.starts_with("an emit was refused: the data is not a JSON object"), "{reason}");
}

#[test]
fn state_can_be_removed() {
    let mut work = Harness::new(Worker);
    work.deliver(&asked("a", "")).assert_done();
    work.deliver(&asked("a", "forget")).assert_done();
    assert_eq!(work.state_bytes("a", "n"), None);
}

#[test]
fn the_handler_sees_what_the_host_says_of_the_event() {
    let mut work = Harness::new(Worker);
    work.deliver(&asked("a", "")).assert_done();
    let _ = work.deliver(Submission::of(&asked("a", "parse")).id("e-7"));
    work.deliver(Submission::of(&asked("a", "who")).id("e-7").header("h", "1")).assert_done();
    assert_eq!(work.state("a", "who"), Some(json!(["e-7", "a", 2, 2, "1"])));
}

#[test]
fn a_run_delivers_what_was_emitted() {
    let mut work = Harness::new(Worker);
    let deliveries = work.run(&asked("a", ""));
    assert_eq!(deliveries.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["event-1", "event-1.1"]);
    assert_eq!(work.state::<u64>("a", "counted"), Some(1));
}

#[test]
fn lines_of_a_file_are_submissions() {
    let mut work = Harness::new(Worker);
    let line = r#"{"category":"work","type":"Asked","id":"l-1","headers":{"h":"2"},"data":{"key":"a","what":"who"}}"#;
    work.deliver(Submission::from_line(line).unwrap()).assert_done();
    assert_eq!(work.state("a", "who"), Some(json!(["l-1", "a", 1, 1, "2"])));
}

#[test]
#[should_panic(expected = "the handler worker does not handle order/OrderPlaced version 1")]
fn an_undeclared_type_is_a_mistake_of_the_test() {
    let _ = Harness::new(Worker).deliver(Submission::json("order", "OrderPlaced", &json!({})));
}

#[derive(Event, Serialize)]
#[event(category = "work", name = "Asked")]
struct Misdeclared {
    key: String,
    /// Declared an object, for want of better knowledge.
    what: Status,
}

#[derive(Serialize)]
enum Status {
    Open,
}

#[test]
#[should_panic(expected = r#"Asked declares "what" as object, but it serialises to "Open""#)]
fn a_type_that_serialises_otherwise_is_found() {
    let _ = Harness::new(Worker).deliver(&Misdeclared { key: "a".into(), what: Status::Open });
}
