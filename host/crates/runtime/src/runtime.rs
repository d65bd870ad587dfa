//! Loading components: read, compile or take from the cache, check, describe.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::bindings::HandlerPre;
use crate::cache::{self, Cache};
use crate::engine::LOADS_MAX;
use crate::guest::Guest;
use crate::instance::Room;
use crate::module::Module;
use crate::{LoadError, Settings, SetupError, contract, describe, engine, imports};

/// The largest component that is read: an interpreter inside makes some 40 MB.
const COMPONENT_MAX_BYTES: u64 = 256 << 20;
/// How every WebAssembly file begins, and how it goes on in a core module and in a component.
const WASM: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = b"\0asm\x01\x00\x00\x00";

/// The engine and everything that its modules share.
pub struct Runtime {
    pub(crate) settings: Settings,
    pub(crate) engine: Engine,
    linker: Linker<Guest>,
    cache: Option<Cache>,
    /// One permit for each instance that may live.
    pub(crate) room: Room,
    loads: Semaphore,
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
        let cache = settings.cache_dir.as_deref().map(Cache::open).transpose()?;
        let engine = engine::start(&settings)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker).map_err(|error| SetupError::Engine(format!("{error:#}")))?;
        let room = Arc::new(Semaphore::new(settings.instances_max as usize));
        Ok(Arc::new(Self { settings, engine, linker, cache, room, loads: Semaphore::new(LOADS_MAX as usize) }))
    }

    /// Loads a component from a file. Not to be called from a thread without tokio.
    pub async fn load(self: &Arc<Self>, source: &Path) -> Result<Arc<Module>, LoadError> {
        let path = source.to_path_buf();
        let bytes = blocking(move || read(&path)).await?;
        self.load_bytes(&source.display().to_string(), bytes).await
    }

    /// Loads a component from its bytes; `name` is for messages.
    pub async fn load_bytes(self: &Arc<Self>, name: &str, bytes: Vec<u8>) -> Result<Arc<Module>, LoadError> {
        // The semaphore lives as long as the runtime and is never closed.
        let _turn = self.loads.acquire().await.ok();
        let (runtime, owned) = (self.clone(), name.to_owned());
        let (component, content_hash) = blocking(move || runtime.compile(&owned, &bytes)).await?;

        let misfits = contract::misfits(&self.engine, &component);
        if !misfits.is_empty() {
            return Err(LoadError::Refused(misfits));
        }
        let linked = self.linker.instantiate_pre(&component).and_then(HandlerPre::new);
        let handler = linked.map_err(|error| LoadError::Refused(vec![format!("it does not link: {error:#}")]))?;
        let imports = contract::imports(&self.engine, &component);

        let described = Module::describe(self, &handler, &content_hash).await;
        let said = described.map_err(|why| LoadError::Describe { name: name.into(), why })?;
        let metadata = describe::parse(said).map_err(LoadError::Declaration)?;
        Ok(Arc::new(Module::new(self.clone(), handler, metadata, content_hash, imports)))
    }

    fn compile(&self, name: &str, bytes: &[u8]) -> Result<(Component, String), LoadError> {
        check_kind(name, bytes)?;
        let content_hash = cache::hex(&Sha256::digest(bytes));
        if let Some(component) = self.cache.as_ref().and_then(|cache| cache.load(&self.engine, &content_hash)) {
            return Ok((component, content_hash));
        }
        let component = Component::from_binary(&self.engine, bytes)
            .map_err(|error| LoadError::Compile { name: name.into(), why: one_line(&error) })?;
        if let Some(cache) = &self.cache {
            cache.store(&self.engine, &content_hash, &component);
        }
        Ok((component, content_hash))
    }
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

fn one_line(error: &wasmtime::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
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
