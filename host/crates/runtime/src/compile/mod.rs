//! Compiling components: small ones here, large ones in a child process, which has a lower priority, limits of its own, and
//! none of this process's environment. An interpreter of 12 MB takes seconds of all processors and hundreds of megabytes;
//! here that would make renewals of leases late.

mod child;
mod work;

use std::ffi::OsString;

use wasmtime::Engine;
use wasmtime::component::Component;

pub use work::compile_component;

use crate::cache::Cache;
use crate::engine::Layout;
use crate::{LoadError, Settings, cache};

/// Components up to here are compiled in this process: it takes well under a second, and starting a child as long.
const IN_PROCESS_MAX_BYTES: usize = 512 << 10;

/// Where large components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In this process.
    InProcess,
    /// In a child process.
    Child {
        /// The program and its first arguments; one more is added, which [`compile_component`] takes. It must be this very
        /// program: code of another version is refused.
        command: Vec<OsString>,
    },
}

/// Compiles a component, and keeps the code if there is a cache.
pub(crate) fn compile(
    engine: &Engine,
    layout: Layout,
    settings: &Settings,
    cache: Option<&Cache>,
    name: &str,
    content_hash: &str,
    bytes: &[u8],
) -> Result<Component, LoadError> {
    let failed = |why: String| LoadError::Compile { name: name.into(), why };
    if let Compiler::Child { command } = &settings.compiler
        && bytes.len() > IN_PROCESS_MAX_BYTES
    {
        let job = work::Job::new(layout, settings);
        match child::compile(command, &job, settings, cache.map(Cache::dir), bytes) {
            Ok(code) => match cache::deserialize(engine, &code) {
                Ok(component) => {
                    if let Some(cache) = cache {
                        cache.store(engine, content_hash, &code);
                    }
                    return Ok(component);
                }
                Err(error) => {
                    tracing::warn!(
                        "{name}: the code of the compiling process is refused, it is compiled here: {error:#}"
                    );
                }
            },
            Err(child::Failure::Component(why)) => return Err(failed(why)),
            Err(child::Failure::Process(why)) => {
                tracing::warn!("{name}: no compiling process can be had, it is compiled here: {why}");
            }
        }
    }
    let component = Component::from_binary(engine, bytes).map_err(|error| failed(one_line(&error)))?;
    if let Some(cache) = cache {
        match component.serialize() {
            Ok(code) => cache.store(engine, content_hash, &code),
            Err(error) => tracing::warn!("{name}: compiled code is not kept: {error:#}"),
        }
    }
    Ok(component)
}

fn one_line(error: &wasmtime::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}
