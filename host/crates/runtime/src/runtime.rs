//! Loading components: read, compile or take from the cache, check, describe.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio_rustls::rustls::ClientConfig;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::bindings::HandlerPre;
use crate::cache::{self, Cache};
use crate::contract::Wants;
use crate::engine::{LOADS_MAX, Layout};
use crate::grants::Granted;
use crate::guest::{Guest, Kit};
use crate::limits::Limits;
use crate::log::LogRate;
use crate::module::{Loaded, Module};
use crate::room::Room;
use crate::{LoadError, Manifest, Settings, SetupError, compile, contract, describe, engine, http, imports, parts};

/// The largest component that is read: an interpreter inside makes some 40 MB.
pub(crate) const COMPONENT_MAX_BYTES: u64 = 256 << 20;
/// How every WebAssembly file begins, and how it goes on in a core module and in a component.
const WASM: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = b"\0asm\x01\x00\x00\x00";

/// The engine and everything that its modules share.
pub struct Runtime {
    pub(crate) settings: Settings,
    pub(crate) engine: Engine,
    layout: Layout,
    linker: Linker<Guest>,
    cache: Option<Cache>,
    tls: Arc<ClientConfig>,
    pub(crate) room: Room,
    loads: Semaphore,
    cached: AtomicU64,
    compiled: AtomicU64,
}

/// How a runtime stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuntimeLoad {
    /// Instances that there are.
    pub instances: u64,
    /// Instances that there may be.
    pub instances_max: u64,
    /// Components whose compiled code was in the cache, since the start.
    pub cache_hits: u64,
    /// Components that had to be compiled.
    pub cache_misses: u64,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts the engine. Settings that cannot work, or with which a guest could end the process, are refused.
    pub fn new(settings: Settings) -> Result<Arc<Self>, SetupError> {
        settings.check()?;
        let cache = settings.cache_dir.as_deref().map(Cache::open).transpose()?.flatten();
        let (engine, layout) = engine::start(&settings)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker).map_err(|error| SetupError::Engine(format!("{error:#}")))?;
        let tls = http::tls().map_err(SetupError::Engine)?;
        let (room, loads) = (Room::new(settings.instances_max), Semaphore::new(LOADS_MAX as usize));
        let (cached, compiled) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Arc::new(Self { settings, engine, layout, linker, cache, tls, room, loads, cached, compiled }))
    }

    /// How it stands now.
    pub fn load_now(&self) -> RuntimeLoad {
        RuntimeLoad {
            instances: self.room.taken(self.settings.instances_max),
            instances_max: u64::from(self.settings.instances_max),
            cache_hits: self.cached.load(Relaxed),
            cache_misses: self.compiled.load(Relaxed),
        }
    }

    /// Loads a component from a file, with the limits and grants of a manifest. Not to be called from a thread without tokio.
    pub async fn load(self: &Arc<Self>, source: &Path, manifest: &Manifest) -> Result<Arc<Module>, LoadError> {
        let path = source.to_path_buf();
        let bytes = blocking(move || read(&path)).await?;
        self.load_bytes(&source.display().to_string(), bytes, manifest).await
    }

    /// Loads a component from its bytes; `name` is for messages.
    pub async fn load_bytes(
        self: &Arc<Self>,
        name: &str,
        bytes: Vec<u8>,
        manifest: &Manifest,
    ) -> Result<Arc<Module>, LoadError> {
        // The semaphore lives as long as the runtime and is never closed.
        let _turn = self.loads.acquire().await.ok();
        let (runtime, owned) = (self.clone(), name.to_owned());
        let compiled = blocking(move || runtime.compile(&owned, &bytes)).await?;
        let Compiled { component, content_hash, core_instances } = compiled;

        let imports = contract::imports(&self.engine, &component);
        let mut misfits = contract::misfits(&self.engine, &component, &manifest.grants);
        let limits = manifest.limits.limits(&self.settings).unwrap_or_else(|refused| {
            misfits.extend(refused);
            Limits::defaults(&self.settings)
        });
        let granted = Granted::new(&manifest.grants, &self.settings, &self.tls).unwrap_or_else(|refused| {
            misfits.extend(refused);
            Granted::default()
        });
        if !misfits.is_empty() {
            return Err(LoadError::Refused(misfits));
        }
        let wants = Wants::of(&imports);
        let handler = self.link(&component, wants);
        let handler = handler.map_err(|error| LoadError::Refused(vec![format!("it does not link: {error:#}")]))?;

        let mut kit = Kit {
            name: format!("component {}", &content_hash[..8]).into(),
            content_hash,
            limits,
            granted,
            counters: Arc::default(),
            log_rate: Arc::new(LogRate::new(limits.log_lines_per_minute_max)),
        };
        let described = Module::describe(self, &handler, &kit).await;
        let said = described.map_err(|why| LoadError::Describe { name: name.into(), why })?;
        let metadata = describe::parse(said).map_err(LoadError::Declaration)?;
        kit.name = metadata.name.as_str().into();
        let warnings = contract::unused(&imports, &manifest.grants);
        for warning in &warnings {
            tracing::warn!("{name}: {warning}");
        }
        let manifest = manifest.clone();
        let loaded = Loaded { handler, kit, core_instances, metadata, manifest, imports, wants, warnings };
        Ok(Arc::new(Module::new(self.clone(), loaded)))
    }

    fn link(&self, component: &Component, wants: Wants) -> wasmtime::Result<HandlerPre<Guest>> {
        let mut linker = self.linker.clone();
        imports::link_granted(&mut linker, wants)?;
        linker.instantiate_pre(component).and_then(HandlerPre::new)
    }

    fn compile(&self, name: &str, bytes: &[u8]) -> Result<Compiled, LoadError> {
        check_kind(name, bytes)?;
        let content_hash = cache::hex(&Sha256::digest(bytes));
        let kept = self.cache.as_ref().and_then(|cache| cache.load(&self.engine, &content_hash));
        let component = if let Some(component) = kept {
            self.cached.fetch_add(1, Relaxed);
            component
        } else {
            self.compiled.fetch_add(1, Relaxed);
            let cache = self.cache.as_ref();
            compile::compile(&self.engine, self.layout, &self.settings, cache, name, &content_hash, bytes)?
        };
        Ok(Compiled { component, content_hash, core_instances: parts::core_instances(bytes) })
    }
}

/// A component with its code.
struct Compiled {
    component: Component,
    content_hash: String,
    core_instances: u32,
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error| LoadError::Unreadable { path: path.into(), error };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(COMPONENT_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Tells what is not a component before a compiler does it less clearly.
fn check_kind(name: &str, bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.is_empty() {
        Err(LoadError::Empty(name.into()))
    } else if bytes.len() as u64 > COMPONENT_MAX_BYTES {
        Err(LoadError::TooLarge { name: name.into(), limit_bytes: COMPONENT_MAX_BYTES })
    } else if bytes.starts_with(CORE_MODULE) {
        Err(LoadError::CoreModule(name.into()))
    } else if !bytes.starts_with(WASM) {
        Err(LoadError::NotWasm(name.into()))
    } else {
        Ok(())
    }
}

/// Off the async threads: compiling takes seconds.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // A task that has begun cannot be cancelled; before that only a runtime that shuts down does it, and then
            // nobody waits here.
            Err(error) => panic!("the async runtime shut down while a component was loaded: {error}"),
        },
    }
}
