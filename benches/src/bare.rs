//! A handler on wasmtime alone, as its book begins: a synchronous engine, no limits, host functions that do the least.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use keyrail_ordering::EntryId;
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({ path: "../wit", world: "handler" });
}
/// The guest's types.
pub use bindings::keyrail::handler::types;
use bindings::keyrail::handler::{logging, outbox, state};

struct Host {
    wasi: WasiCtx,
    table: ResourceTable,
    state: Option<HashMap<String, Vec<u8>>>,
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl types::Host for Host {}

impl state::Host for Host {
    fn get(&mut self, name: String) -> Option<Vec<u8>> {
        self.state.as_ref()?.get(&name).cloned()
    }

    fn put(&mut self, name: String, value: Vec<u8>) -> Result<(), state::StateError> {
        self.state.as_mut().map(|state| state.insert(name, value));
        Ok(())
    }

    fn remove(&mut self, name: String) -> Result<(), state::StateError> {
        self.state.as_mut().map(|state| state.remove(&name));
        Ok(())
    }
}

impl outbox::Host for Host {
    fn emit(&mut self, _: outbox::Outgoing) -> Result<String, outbox::EmitError> {
        Ok(String::new())
    }
}

impl logging::Host for Host {
    fn log(&mut self, _: logging::Level, _: String, _: String) {}
}

/// One instance.
pub struct Handler {
    store: Store<Host>,
    handler: bindings::Handler,
}

impl Handler {
    /// Compiles and instantiates a component. It has no state, and keeps none.
    pub fn load(component: &Path) -> Result<Self> {
        let load = || -> wasmtime::Result<Self> {
            let engine = Engine::default();
            let component = Component::from_file(&engine, component)?;
            let mut linker = Linker::<Host>::new(&engine);
            wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
            bindings::Handler::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
            let host = Host { wasi: WasiCtx::builder().build(), table: ResourceTable::new(), state: None };
            let mut store = Store::new(&engine, host);
            let handler = bindings::Handler::instantiate(&mut store, &component, &linker)?;
            Ok(Self { store, handler })
        };
        load().map_err(|error| anyhow::anyhow!("{error:#}"))
    }

    /// Handles one event.
    pub fn call(&mut self, event: &types::Event) -> Result<()> {
        match self.handler.keyrail_handler_guest().call_handle(&mut self.store, event) {
            Ok(answer) => ensure!(matches!(answer, types::Disposition::Done), "{answer:?}"),
            Err(error) => bail!("{error:#}"),
        }
        Ok(())
    }

    /// The same with a key's state, which is written to.
    pub fn call_with(&mut self, event: &types::Event, state: &mut HashMap<String, Vec<u8>>) -> Result<()> {
        self.store.data_mut().state = Some(std::mem::take(state));
        let called = self.call(event);
        *state = self.store.data_mut().state.take().unwrap_or_default();
        called
    }
}

/// A flight as the guest is given it.
pub fn event(
    id: &str,
    name: &str,
    key: &str,
    headers: Vec<(String, String)>,
    data: Vec<u8>,
    at: EntryId,
) -> types::Event {
    types::Event {
        id: id.into(),
        category: "flight".into(),
        name: name.into(),
        version: 1,
        key: Some(key.into()),
        epoch: at.epoch,
        sequence: at.sequence,
        generation: 1,
        attempt: 1,
        recorded_at: 0,
        headers,
        data,
    }
}
