//! What a call of a guest costs here beside the same call on wasmtime alone, what a fresh instance costs, how soon a compiled
//! module is there again, and the memory that an owned partition takes: for guests of three languages.
//!
//! *Alone* is wasmtime as its book begins: a synchronous engine, no limits, host functions that keep nothing. *Here* is all that
//! a handler gets: limits of time and memory, interruption, its own clock and chance, effects that are kept until the commit.
//!
//! `dispatch --memory COMPONENT CACHE INSTANCES` is a process in which nothing was compiled, whose memory tells.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use keyrail_benches::bare::{self, Handler};
use keyrail_benches::bench::own_memory_kb;
use keyrail_benches::report::{Table, median, number};
use keyrail_benches::{flight, guest};
use keyrail_ordering::{EntryId, EntryRef, Event, Generation, Lane, Outgoing, StreamId};
use keyrail_runtime::{Answer, Call, CallHost, Emit, EmitRefusal, Instance, Manifest, Module, Runtime, Settings};
use serde_json::json;

/// Language, component, calls in a round, instances whose memory is measured.
const GUESTS: [(&str, &str, usize, usize); 3] = [
    ("Rust", "itinerary", 5_000, 500),
    ("JavaScript", "itinerary-js", 500, 200),
    ("Python", "itinerary-python", 200, 100),
];
const ROUNDS: usize = 9;

fn main() -> Result<()> {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, component, cache, instances] = arguments.as_slice()
        && flag == "--memory"
    {
        let settings = Settings { cache_dir: Some(cache.into()), ..Settings::default() };
        println!("{}", tokio.block_on(memory_kb(&settings, Path::new(component), instances.parse()?))?);
        return Ok(());
    }
    let mut table = Table::new(
        "dispatch",
        &[
            "guest",
            "a call alone µs",
            "a call here µs",
            "more µs",
            "fresh instance and a call µs",
            "loaded again ms",
            "compiled ms",
            "memory of a partition kB",
        ],
    );
    for (language, name, calls, instances) in GUESTS {
        let component = guest(name);
        let cache = tempfile::tempdir()?;
        let settings = Settings { cache_dir: Some(cache.path().join("compiled")), ..Settings::default() };
        let start = Instant::now();
        let first = tokio.block_on(load(&settings, &component))?;
        let compiled_ms = start.elapsed().as_secs_f64() * 1e3;
        drop(first);
        let (mut again_ms, mut loaded) = (vec![], None);
        for _ in 0..ROUNDS {
            let runtime = Runtime::new(settings.clone())?;
            let start = Instant::now();
            let module = tokio.block_on(runtime.load(&component, &Manifest::default()))?;
            again_ms.push(start.elapsed().as_secs_f64() * 1e3);
            loaded = Some(module);
        }
        let Some(module) = loaded else { continue };
        let mut alone = Handler::load(&component)?;
        let (mut bare_us, mut here_us, mut fresh_us) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            // In turn, so that a noisy moment meets both.
            bare_us.push(alone_many(&mut alone, calls)? / calls as f64);
            here_us.push(tokio.block_on(call_many(&module, calls))? / calls as f64);
            fresh_us.push(tokio.block_on(fresh(&module, calls / 20))?);
        }
        let mut process = Command::new(std::env::current_exe()?);
        process.arg("--memory").arg(&component).arg(cache.path().join("compiled")).arg(instances.to_string());
        let kb = String::from_utf8(process.output()?.stdout)?;
        let more = median(bare_us.iter().zip(&here_us).map(|(bare, here)| here - bare).collect());
        table.row(vec![
            json!(language),
            number(median(bare_us)),
            number(median(here_us)),
            number(more),
            number(median(fresh_us)),
            number(median(again_ms)),
            number(compiled_ms),
            number(kb.trim().parse()?),
        ]);
    }
    table.finish()
}

async fn load(settings: &Settings, component: &Path) -> Result<Arc<Module>> {
    Ok(Runtime::new(settings.clone())?.load(component, &Manifest::default()).await?)
}

/// Microseconds of so many calls on wasmtime alone.
fn alone_many(alone: &mut Handler, calls: usize) -> Result<f64> {
    let event = flight(0, 1);
    let start = Instant::now();
    for n in 0..calls {
        // Made for each call, as a host has to.
        let headers = event.headers.clone();
        let id = EntryId::new(1, n as u64);
        alone.call(&bare::event(&event.id, event.name.as_str(), "N1", headers, event.data.to_vec(), id))?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// No state, no emits.
struct Nothing;

#[async_trait]
impl CallHost for Nothing {
    async fn state(&mut self, _name: &str) -> Result<Option<Bytes>, String> {
        Ok(None)
    }

    fn accept(&mut self, _emit: Emit, _nth: u32) -> Result<Outgoing, EmitRefusal> {
        Err(EmitRefusal::Other("no emits here".into()))
    }
}

async fn one(instance: &mut Instance, event: &Event, n: usize) -> Result<()> {
    let stream = StreamId { category: event.category.clone(), key: event.key.clone(), lane: Lane::Primary };
    let entry = EntryRef { stream, id: EntryId::new(1, n as u64) };
    let call = Call { entry: &entry, event, recorded_at_ms: 0, generation: Generation(1), attempt: 1, trace_id: None };
    let answer = instance.call(&call, Box::new(Nothing)).await;
    ensure!(matches!(answer, Answer::Done(_)), "{answer:?}");
    Ok(())
}

/// Microseconds of so many calls of one instance.
async fn call_many(module: &Arc<Module>, calls: usize) -> Result<f64> {
    let mut instance = module.instantiate().await?;
    let event = flight(0, 1);
    one(&mut instance, &event, 0).await?;
    let start = Instant::now();
    for n in 1..=calls {
        if instance.is_spent() {
            instance = module.instantiate().await?;
        }
        one(&mut instance, &event, n).await?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Microseconds from nothing to the end of the first call, each time on a slot of the pool that another one left.
async fn fresh(module: &Arc<Module>, times: usize) -> Result<f64> {
    let event = flight(0, 1);
    let mut took = vec![];
    for n in 0..times {
        let start = Instant::now();
        let mut instance = module.instantiate().await?;
        one(&mut instance, &event, n).await?;
        drop(instance);
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(took))
}

/// What an instance takes that has handled an event, in a pool that has nothing from before.
async fn memory_kb(settings: &Settings, component: &Path, instances: usize) -> Result<f64> {
    let module = load(settings, component).await?;
    let event = flight(0, 1);
    let mut kept = vec![module.instantiate().await?];
    one(&mut kept[0], &event, 0).await?;
    let before = own_memory_kb(std::process::id());
    for n in 0..instances {
        let mut instance = module.instantiate().await?;
        one(&mut instance, &event, n).await?;
        kept.push(instance);
    }
    Ok((own_memory_kb(std::process::id()) - before) / instances as f64)
}
