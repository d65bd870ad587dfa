//! What a call costs, printed: `cargo run -p keyrail-runtime --example call_cost [PROFILE options]`. Needs `cargo xtask guests`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{
    CategoryName, EntryId, EntryRef, Event, Generation, Key, KeyRules, MessageName, Outgoing, StreamId,
};
use keyrail_runtime::{Answer, Call, CallHost, Emit, EmitRefusal, Instance, Manifest, Module, Runtime, Settings};

struct NoHost;

#[async_trait]
impl CallHost for NoHost {
    async fn state(&mut self, _name: &str) -> Result<Option<Bytes>, String> {
        Ok(None)
    }

    fn accept(&mut self, emit: Emit, _nth: u32) -> Result<Outgoing, EmitRefusal> {
        Err(EmitRefusal::UnknownCategory(emit.category))
    }
}

struct Sample {
    entry: EntryRef,
    event: Event,
}

impl Sample {
    fn new(category: &str, name: &str, key: &str, data: &str) -> Self {
        let category = CategoryName::parse(category).unwrap();
        let key = Key::parse(key, &KeyRules::default()).unwrap();
        let entry = EntryRef { stream: StreamId::primary(category.clone(), key.clone()), id: EntryId::new(1, 1) };
        let event = Event {
            id: "UA1545-EWRIAH-2013-01-01T10:17:00Z-D".into(),
            category,
            name: MessageName::parse(name).unwrap(),
            version: 1,
            key: Some(key),
            headers: vec![],
            data: data.to_owned().into(),
        };
        Self { entry, event }
    }

    async fn of(&self, instance: &mut Instance) {
        let (entry, event) = (&self.entry, &self.event);
        let call = Call { entry, event, recorded_at_ms: 1, generation: Generation(1), attempt: 1, trace_id: None };
        let answer = instance.call(&call, Box::new(NoHost)).await;
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    }
}

async fn measure(what: &str, module: &Arc<Module>, sample: &Sample) {
    const CALLS: u32 = 20_000;
    let mut instance = module.instantiate().await.unwrap();
    sample.of(&mut instance).await;
    let start = Instant::now();
    for _ in 0..CALLS {
        sample.of(&mut instance).await;
    }
    let call = start.elapsed() / CALLS;
    let start = Instant::now();
    for _ in 0..CALLS / 10 {
        sample.of(&mut module.instantiate().await.unwrap()).await;
    }
    let fresh = start.elapsed() / (CALLS / 10);
    println!("{what:<44} call {call:>10.2?}   fresh instance and call {fresh:>10.2?}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // target/PROFILE/examples/call_cost
    let guests: PathBuf = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("guests");
    let runtime = Runtime::new(Settings { instance_calls_max: u32::MAX.into(), ..Settings::default() }).unwrap();
    let load = async |name: &str| {
        let start = Instant::now();
        let module = runtime.load(&guests.join(name), &Manifest::default()).await.unwrap();
        println!("{name:<44} loaded in {:.2?}", start.elapsed());
        module
    };
    let probe = load("probe.wasm").await;
    measure("probe: nothing", &probe, &Sample::new("probe", "Probe", "k1", r#"{"key":"k1","mode":"ok","n":0}"#)).await;
    measure(
        "probe: a read and a write of state",
        &probe,
        &Sample::new("probe", "Probe", "k1", r#"{"key":"k1","mode":"count","n":0}"#),
    )
    .await;
    let flight = r#"{"tail_number":"N14228","carrier":"UA","flight":1545,"origin":"EWR","destination":"IAH","at":"2013-01-01T10:17:00Z","delay_minutes":2}"#;
    let itinerary = load("itinerary.wasm").await;
    measure("itinerary: a departure", &itinerary, &Sample::new("flight", "FlightDeparted", "N14228", flight)).await;
}
