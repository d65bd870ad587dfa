//! The conformance handler: does what its event says, the same in every language. `tests/tests/conformance.rs` drives it
//! against a host and says what must come of it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

use keyrail_guest::log::{self, Level};
use keyrail_guest::{Context, Error, Event, Outgoing, Result, export, handler};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What to do, and with what.
#[derive(Debug, Clone, Default, Event, Serialize, Deserialize)]
#[event(category = "conformance")]
pub struct Step {
    /// The key.
    pub key: String,
    /// What to do.
    pub action: String,
    /// The name of a state value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
}

/// What is emitted. The category is declared by the handler `conformance-sink`.
#[derive(Debug, Clone, PartialEq, Eq, Event, Serialize, Deserialize)]
#[event(category = "conformance-out")]
pub struct Echo {
    /// The key of the step.
    pub key: String,
    /// The text of the step.
    pub text: String,
    /// Which of its emits, from 0.
    pub nth: i64,
}

/// The handler.
pub struct Conformance;

#[handler(
    name = "conformance",
    version = "1.0.0",
    sequential_by = "key",
    options("retry-attempts-max" = "3", "retry-backoff-base-ms" = "1")
)]
impl Conformance {
    fn step(&self, step: Step, ctx: &mut Context) -> Result<()> {
        let text = step.text.as_deref().unwrap_or_default();
        let name = step.name.as_deref().unwrap_or_default();
        let count = step.count.unwrap_or(0);
        match step.action.as_str() {
            "append" => append(ctx, text),
            "put" => ctx.put_state_bytes(name, text),
            "remove" => ctx.remove_state(name),
            "binary" => binary(ctx),
            "emit" => emit(ctx, &step.key, text, count),
            "emit-bad" => {
                // Whatever is made of the refusal, the event fails.
                let outgoing = Outgoing {
                    category: "nowhere",
                    name: "Nothing",
                    version: 1,
                    headers: &[],
                    data: b"{\"key\":\"k\"}",
                };
                let _ = ctx.emit_raw(outgoing);
                Ok(())
            }
            "retry" if i64::from(ctx.attempt()) <= count => {
                ctx.put_state_bytes("dropped", "x")?;
                Err(Error::retry_after(1, "not yet"))
            }
            "retry" => ctx.put_state_bytes("attempts", ctx.attempt().to_string()),
            "reject" => Err(Error::reject(text)),
            "trap" => panic!("asked to trap"),
            "spin" => loop {
                black_box(());
            },
            "grow" => grow(),
            "log" => {
                log::log(Level::Info, "conformance", text);
                println!("{text}");
                Ok(())
            }
            "context" => context(ctx),
            "clock" => clock(ctx),
            other => Err(Error::reject(format!("unknown action: {other}"))),
        }
    }
}

export!(Conformance);

fn append(ctx: &mut Context, text: &str) -> Result<()> {
    let mut log = ctx.state_bytes("log").unwrap_or_default();
    log.extend_from_slice(text.as_bytes());
    log.push(b'\n');
    ctx.put_state_bytes("log", log)
}

fn binary(ctx: &mut Context) -> Result<()> {
    let mut all: Vec<u8> = (0..=255).collect();
    match ctx.state_bytes("bytes") {
        None => ctx.put_state_bytes("bytes", all),
        Some(kept) if kept == all => {
            all.reverse();
            ctx.put_state_bytes("bytes-again", all)
        }
        Some(_) => Err(Error::reject("bytes differ")),
    }
}

fn emit(ctx: &mut Context, key: &str, text: &str, count: i64) -> Result<()> {
    for nth in 0..count {
        ctx.emit_with_headers(&Echo { key: key.into(), text: text.into(), nth }, &[("conformance", "yes")])?;
    }
    Ok(())
}

fn grow() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn context(ctx: &mut Context) -> Result<()> {
    let event = ctx.event();
    let seen = json!({
        "id": event.id,
        "category": event.category,
        "name": event.name,
        "version": event.version,
        "key": event.key,
        "epoch": event.epoch,
        "sequence": event.sequence,
        "generation": event.generation,
        "attempt": event.attempt,
        "recordedAt": event.recorded_at_ms,
        "headers": event.headers,
    });
    ctx.put_state("context", &seen)
}

fn clock(ctx: &mut Context) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "what the guest's clock shows is what is tested")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    ctx.put_state_bytes("clock", now.as_millis().to_string())?;
    // The standard library seeds its hash maps by chance; it has no other way to ask for it.
    let random = RandomState::new().build_hasher().finish();
    ctx.put_state_bytes("random", format!("{random:016x}"))
}

#[cfg(test)]
mod tests {
    use keyrail_guest::Disposition;
    use keyrail_guest::testing::Harness;

    use super::*;

    fn step(action: &str) -> Step {
        Step { key: "k".into(), action: action.into(), ..Step::default() }
    }

    #[test]
    fn it_does_as_it_is_told() {
        let mut harness = Harness::new(Conformance);
        harness.deliver(&step("binary")).assert_done();
        harness.deliver(&step("binary")).assert_done();
        let emitted = harness.deliver(&Step { count: Some(2), ..step("emit") }).emitted::<Echo>();
        assert_eq!(emitted.iter().map(|echo| echo.nth).collect::<Vec<_>>(), [0, 1]);
        let disposition = harness.deliver(&step("dance")).disposition;
        assert_eq!(disposition, Disposition::Reject("unknown action: dance".into()));
    }
}
