//! What belongs to one instance: its WASI with nothing granted, its limits, and the call that it is in.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::Settings;
use crate::call::CallHost;
use crate::clock::{EventClock, Meter};
use crate::limiter::Limiter;
use crate::log::{Channel, Log, Standard};
use crate::overlay::{Overlay, OverlayLimits};
use crate::random::Random;

/// Streams, pollables and the like that a guest may hold at once.
const RESOURCES_MAX: usize = 1_024;

/// The data of a store.
pub(crate) struct Guest {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) clock: EventClock,
    pub(crate) random: Random,
    pub(crate) limiter: Limiter,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    /// None while it starts and describes itself: there is no event then.
    pub(crate) call: Option<Running>,
}

/// The call that an instance is in.
pub(crate) struct Running {
    pub(crate) host: Box<dyn CallHost>,
    pub(crate) overlay: Overlay,
    /// How reading the committed state stands.
    pub(crate) reading: Reading,
}

/// Reading the committed state, as far as the host is to blame for the end of a call.
#[derive(Debug, Default)]
pub(crate) enum Reading {
    #[default]
    No,
    /// The guest waits for the host. A call that ends now ends because of that.
    Waiting,
    /// It failed, and the call is given up.
    Failed(String),
}

impl Running {
    pub(crate) fn new(host: Box<dyn CallHost>, settings: &Settings) -> Self {
        Self { host, overlay: Overlay::new(OverlayLimits::from(settings)), reading: Reading::No }
    }

    /// Why the host, and not the guest, is to blame that the call was stopped.
    pub(crate) fn trouble(self) -> Option<String> {
        match self.reading {
            Reading::No => None,
            Reading::Waiting => Some("the state could not be read in the time that a call may take".into()),
            Reading::Failed(trouble) => Some(trouble),
        }
    }
}

impl Guest {
    pub(crate) fn new(handler: Arc<str>, content_hash: &str, settings: &Settings) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        let clock = EventClock::default();
        let log = Log::new(handler, settings.log_lines_max, settings.log_line_max_bytes);
        let standard = |channel| Standard { log: log.clone(), channel };
        // A builder's defaults are: no files, no environment, no arguments, closed input, no address that may be reached.
        // Said again where it can be, so that a default that changes shows in a test and not in production.
        let wasi = WasiCtx::builder()
            .stdout(standard(Channel::Stdout))
            .stderr(standard(Channel::Stderr))
            .wall_clock(clock.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        Self {
            table,
            wasi,
            clock,
            random: Random::new(&[content_hash.as_bytes()]),
            limiter: Limiter::new(settings.memory_max_bytes, settings.table_elements_max),
            meter: Meter::default(),
            log,
            call: None,
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
