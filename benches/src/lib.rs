//! What the benchmarks share.
#![allow(clippy::disallowed_methods)]

pub mod bare;
pub mod bench;
pub mod by_hand;
pub mod floor;
pub mod forward;
pub mod report;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use keyrail_broker::Publication;
use keyrail_ordering::{CategoryName, Event, Key, KeyRules, Lane, MessageName};

/// As in the `keyrail` program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The folder of built components: `cargo xtask bench` names it.
pub fn guest(name: &str) -> PathBuf {
    let folder = std::env::var_os("KEYRAIL_GUESTS").expect("run with cargo xtask bench");
    PathBuf::from(folder).join(name).with_extension("wasm")
}

/// A flight event of about 300 bytes on the wire.
pub fn flight(n: usize, key: usize) -> Event {
    let (name, member) =
        if n.is_multiple_of(2) { ("FlightDeparted", "origin") } else { ("FlightArrived", "destination") };
    let other = if member == "origin" { "destination" } else { "origin" };
    let data = format!(
        r#"{{"tail_number":"N{key}","carrier":"UA","flight":{n},"{member}":"EWR","{other}":"IAH","at":"2013-01-01T10:17:00Z","delay_minutes":{}}}"#,
        n % 40
    );
    Event {
        id: Arc::from(format!("UA{n}-EWRIAH-2013-01-01T10:17:00Z-{name}")),
        category: CategoryName::parse("flight").expect("a valid name"),
        name: MessageName::parse(name).expect("a valid name"),
        version: 1,
        key: Some(Key::parse(&format!("N{key}"), &KeyRules::default()).expect("a valid key")),
        headers: vec![],
        data: Bytes::from(data),
    }
}

/// The same, on its way into the primary lane, without dedupe.
pub fn publication(n: usize, key: usize) -> Publication {
    Publication {
        event: flight(n, key),
        key_field: Some("tail_number".into()),
        lane: Lane::Primary,
        dedupe_window_ms: 0,
    }
}
