//! What a guest can call: `state`, `outbox` and `logging`, and the base interfaces of WASI.

use bytes::Bytes;
use tracing::Level as Severity;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::{random as wasi_random, sockets};
use wasmtime_wasi_config::WasiConfig;

use crate::bindings::keyrail::handler::logging::{self, Level};
use crate::bindings::keyrail::handler::outbox::{self, EmitError, Outgoing};
use crate::bindings::keyrail::handler::state::{self, StateError};
use crate::bindings::keyrail::handler::types;
use crate::call::{Emit, EmitRefusal};
use crate::contract::Wants;
use crate::denied::{Denied, HasDenied};
use crate::guest::{Guest, Reading, Running};
use crate::overlay::{WriteRefusal, check_state_name};
use crate::random::HasRandom;

/// Links everything that every guest may import. What is not here is refused when a component is loaded, never stubbed: a
/// stub would hide an interface of the same name.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    // Ours in place of the real randomness.
    linker.allow_shadowing(true);
    wasi_random::random::add_to_linker::<Guest, HasRandom>(linker, |guest| &mut guest.random)?;
    wasi_random::insecure::add_to_linker::<Guest, HasRandom>(linker, |guest| &mut guest.random)?;
    wasi_random::insecure_seed::add_to_linker::<Guest, HasRandom>(linker, |guest| &mut guest.random)?;
    // And in place of sockets that are refused without being counted.
    sockets::tcp_create_socket::add_to_linker::<Guest, HasDenied>(linker, |guest| Denied(guest))?;
    sockets::udp_create_socket::add_to_linker::<Guest, HasDenied>(linker, |guest| Denied(guest))?;
    linker.allow_shadowing(false);
    types::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    state::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    outbox::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    logging::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)
}

/// Links what this guest is granted beside it.
pub(crate) fn link_granted(linker: &mut Linker<Guest>, wants: Wants) -> wasmtime::Result<()> {
    if wants.http {
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    }
    if wants.config {
        wasmtime_wasi_config::add_to_linker(linker, |guest: &mut Guest| WasiConfig::from(&guest.config))?;
    }
    Ok(())
}

impl Guest {
    fn running(&mut self, function: &str) -> wasmtime::Result<&mut Running> {
        match &mut self.call {
            Some(running) => Ok(running),
            None => wasmtime::bail!(
                "{function} was called while the component starts or describes itself; no event is there yet"
            ),
        }
    }

    fn write(
        &mut self,
        function: &str,
        name: String,
        value: Option<Bytes>,
    ) -> wasmtime::Result<Result<(), StateError>> {
        Ok(self.running(function)?.overlay.set(name, value).map_err(|refusal| match refusal {
            WriteRefusal::InvalidName(why) => StateError::InvalidName(why),
            WriteRefusal::TooLarge(limit) => StateError::TooLarge(limit),
        }))
    }
}

impl types::Host for Guest {}

impl state::Host for Guest {
    async fn get(&mut self, name: String) -> wasmtime::Result<Option<Vec<u8>>> {
        let running = self.running("state.get")?;
        if let Err(why) = check_state_name(&name) {
            // `get` has no error to answer with.
            wasmtime::bail!("{why}");
        }
        if let Some(written) = running.overlay.get(&name) {
            return Ok(written.as_ref().map(|value| value.to_vec()));
        }
        if let Err(max) = running.begin_read() {
            wasmtime::bail!("the handler read state more than {max} times in one call (state_reads_max)");
        }
        match running.host.state(&name).await {
            Ok(value) => {
                running.end_read();
                Ok(value.map(Vec::from))
            }
            Err(trouble) => {
                running.reading = Reading::Failed(trouble.clone());
                wasmtime::bail!("the state could not be read: {trouble}")
            }
        }
    }

    fn put(&mut self, name: String, value: Vec<u8>) -> wasmtime::Result<Result<(), StateError>> {
        self.write("state.put", name, Some(value.into()))
    }

    fn remove(&mut self, name: String) -> wasmtime::Result<Result<(), StateError>> {
        self.write("state.remove", name, None)
    }
}

impl outbox::Host for Guest {
    fn emit(&mut self, message: Outgoing) -> wasmtime::Result<Result<String, EmitError>> {
        let Outgoing { category, name, version, headers, data } = message;
        let emit = Emit { category, name, version, headers, data: data.into() };
        let Running { host, overlay, .. } = self.running("outbox.emit")?;
        Ok(overlay.emit(emit, host.as_mut()).map_err(|refusal| match refusal {
            EmitRefusal::UnknownCategory(why) => EmitError::UnknownCategory(why),
            EmitRefusal::UnknownMessage(why) => EmitError::UnknownMessage(why),
            EmitRefusal::InvalidKey(why) => EmitError::InvalidKey(why),
            EmitRefusal::InvalidData(why) => EmitError::InvalidData(why),
            EmitRefusal::TooLarge(limit) => EmitError::TooLarge(limit),
            EmitRefusal::Other(why) => EmitError::Other(why),
        }))
    }
}

impl logging::Host for Guest {
    fn log(&mut self, level: Level, context: String, message: String) -> wasmtime::Result<()> {
        let severity = match level {
            Level::Trace => Severity::TRACE,
            Level::Debug => Severity::DEBUG,
            Level::Info => Severity::INFO,
            Level::Warn => Severity::WARN,
            Level::Error | Level::Critical => Severity::ERROR,
        };
        self.log.line(severity, &context, &message);
        Ok(())
    }
}
