//! What the tests of this crate share: a host without a broker, and the probe, a real Rust guest that misbehaves as asked.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs)]

pub mod fetcher;
pub mod small;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{
    CategoryName, Effects, EntryId, EntryRef, Event, Failure, FailureKind, Generation, Key, KeyRules, MessageName,
    Outgoing, StreamId,
};
use keyrail_runtime::{Answer, Call, CallHost, Emit, EmitRefusal, Instance, Manifest, Module, Runtime, Settings};

/// Limits that act soon.
pub fn settings() -> Settings {
    Settings {
        cpu_max_ms: 300,
        wall_max_ms: 20_000,
        memory_max_bytes: 32 << 20,
        instances_max: 64,
        ..Settings::default()
    }
}

/// A guest that `cargo xtask guests` built.
pub fn guest(name: &str) -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_path_buf();
    let path = target.join("guests").join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing; run cargo xtask guests", path.display());
    path
}

/// Compiled code is shared by all tests: the probe takes a second otherwise.
pub async fn probe(settings: Settings) -> Arc<Module> {
    probe_with(settings, &Manifest::default()).await
}

/// The probe with a manifest.
pub async fn probe_with(mut settings: Settings, manifest: &Manifest) -> Arc<Module> {
    settings.cache_dir.get_or_insert_with(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    Runtime::new(settings).unwrap().load(&guest("probe"), manifest).await.unwrap()
}

/// Stands in for the broker and the catalog.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub state: HashMap<String, Bytes>,
    /// The broker does not answer.
    pub is_away: bool,
    /// The broker never answers.
    pub hangs: bool,
    /// It answers after so long.
    pub takes_ms: u64,
}

#[async_trait]
impl CallHost for Host {
    async fn state(&mut self, name: &str) -> Result<Option<Bytes>, String> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.takes_ms > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(self.takes_ms)).await;
        }
        if self.is_away { Err("the broker is away".into()) } else { Ok(self.state.get(name).cloned()) }
    }

    fn accept(&mut self, emit: Emit, nth: u32) -> Result<Outgoing, EmitRefusal> {
        if emit.category != "probe" {
            return Err(EmitRefusal::UnknownCategory(format!("no such category: {}", emit.category)));
        }
        let data: serde_json::Value =
            serde_json::from_slice(&emit.data).map_err(|error| EmitRefusal::InvalidData(error.to_string()))?;
        let key = Key::from_json(data.get("key"), &KeyRules::default())
            .map_err(|error| EmitRefusal::InvalidKey(error.to_string()))?;
        let event = Event { id: format!("emit-{nth}").into(), ..event(key.as_str(), &emit.data) };
        Ok(Outgoing { event, key_field: Some("key".into()) })
    }
}

fn event(key: &str, data: &[u8]) -> Event {
    Event {
        id: "event-1".into(),
        category: CategoryName::parse("probe").unwrap(),
        name: MessageName::parse("Probe").unwrap(),
        version: 1,
        key: Some(Key::parse(key, &KeyRules::default()).unwrap()),
        headers: vec![],
        data: Bytes::copy_from_slice(data),
    }
}

/// One event for the probe.
#[derive(Debug, Clone)]
pub struct Ask {
    pub key: &'static str,
    pub mode: &'static str,
    pub n: u64,
    pub sequence: u64,
    pub attempt: u32,
    pub recorded_at_ms: u64,
    pub host: Host,
}

pub fn ask(mode: &'static str, n: u64) -> Ask {
    Ask { key: "k1", mode, n, sequence: 0, attempt: 1, recorded_at_ms: 1_700_000_000_123, host: Host::default() }
}

impl Ask {
    /// Has this instance handle it.
    pub async fn of(self, instance: &mut Instance) -> Answer {
        let data = serde_json::json!({ "key": self.key, "mode": self.mode, "n": self.n }).to_string();
        let event = event(self.key, data.as_bytes());
        let stream = StreamId::primary(event.category.clone(), event.key.clone().unwrap());
        let call = Call {
            entry: &EntryRef { stream, id: EntryId::new(1, self.sequence) },
            event: &event,
            recorded_at_ms: self.recorded_at_ms,
            generation: Generation(7),
            attempt: self.attempt,
            trace_id: None,
        };
        instance.call(&call, Box::new(self.host)).await
    }

    /// Has a fresh instance handle it.
    pub async fn of_fresh(self, module: &Arc<Module>) -> Answer {
        self.of(&mut module.instantiate().await.unwrap()).await
    }
}

#[track_caller]
pub fn done(answer: Answer) -> Effects {
    match answer {
        Answer::Done(effects) => effects,
        other => panic!("not done: {other:?}"),
    }
}

/// The failure, of this kind, with this in its message.
#[track_caller]
pub fn failed(answer: Answer, kind: FailureKind, part: &str) -> Failure {
    match answer {
        Answer::Failed(failure) if failure.kind == kind && failure.error.contains(part) => failure,
        other => panic!("not failed as {kind:?} with {part:?}: {other:?}"),
    }
}

/// The one value that a call wrote under the name, as JSON.
#[track_caller]
pub fn written(effects: &Effects, name: &str) -> serde_json::Value {
    let change = effects.state.iter().find(|change| change.name == name).expect("no such change");
    serde_json::from_slice(change.value.as_ref().expect("it was removed")).unwrap()
}

/// Counts and keeps what is logged, whatever thread logs it.
#[derive(Clone, Default)]
pub struct Captured {
    pub lines: Arc<std::sync::Mutex<Vec<String>>>,
    pub count: Arc<AtomicU64>,
}

impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lines.lock().unwrap().push(String::from_utf8_lossy(bytes).trim().into());
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Captured {
    /// Catches what this thread logs until the guard is dropped.
    pub fn start(&self) -> tracing::subscriber::DefaultGuard {
        // Other tests' subscribers come and go meanwhile, and whether anybody listens to a line is remembered for the whole
        // process: somebody always does.
        let always =
            tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(std::io::sink).finish();
        let _ = tracing::subscriber::set_global_default(always);
        let captured = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .without_time()
            .with_writer(move || captured.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Lines of guests.
    pub fn of_guests(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().filter(|line| line.contains("keyrail::guest")).cloned().collect()
    }
}
