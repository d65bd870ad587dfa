//! What belongs to one instance: its WASI with what it is granted, its limits, and the call that it is in.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_config::WasiConfigVariables;
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::Settings;
use crate::call::CallHost;
use crate::clock::{EventClock, Meter, monotonic};
use crate::grants::Granted;
use crate::http::Outgoing;
use crate::limiter::Limiter;
use crate::limits::Limits;
use crate::log::{Channel, Log, LogRate, Standard};
use crate::overlay::{Overlay, OverlayLimits};
use crate::random::Random;
use crate::usage::Counters;

/// Streams, pollables and the like that a guest may hold at once.
const RESOURCES_MAX: usize = 1_024;

/// What all instances of a handler have in common.
pub(crate) struct Kit {
    pub(crate) name: Arc<str>,
    pub(crate) content_hash: String,
    pub(crate) limits: Limits,
    pub(crate) granted: Granted,
    pub(crate) counters: Arc<Counters>,
    pub(crate) log_rate: Arc<LogRate>,
}

/// The data of a store.
pub(crate) struct Guest {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) http: WasiHttpCtx,
    pub(crate) outgoing: Outgoing,
    pub(crate) config: WasiConfigVariables,
    pub(crate) clock: EventClock,
    pub(crate) random: Random,
    pub(crate) limiter: Limiter,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    pub(crate) counters: Arc<Counters>,
    /// None while it starts and describes itself: there is no event then.
    pub(crate) call: Option<Running>,
}

/// The call that an instance is in.
pub(crate) struct Running {
    pub(crate) host: Box<dyn CallHost>,
    pub(crate) overlay: Overlay,
    /// How reading the committed state stands.
    pub(crate) reading: Reading,
    reads_left: u64,
    /// Time of the reads that ended.
    waited: Duration,
    limits: Limits,
}

/// Reading the committed state, as far as the host is to blame for the end of a call.
#[derive(Debug, Default)]
pub(crate) enum Reading {
    #[default]
    No,
    /// The guest waits for the host since then.
    Waiting(Duration),
    /// It failed, and the call is given up.
    Failed(String),
}

/// Why a call was stopped that is not the guest's fault.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The host said that it cannot serve the call.
    Told(String),
    /// The host was slow.
    Slow(String),
}

impl Running {
    pub(crate) fn new(host: Box<dyn CallHost>, limits: Limits) -> Self {
        let overlay = Overlay::new(OverlayLimits::from(&limits));
        let reads_left = limits.state_reads_max;
        Self { host, overlay, reading: Reading::No, reads_left, waited: Duration::ZERO, limits }
    }

    /// Before a read of committed state. The error is the limit.
    pub(crate) fn begin_read(&mut self) -> Result<(), u64> {
        self.reads_left = self.reads_left.checked_sub(1).ok_or(self.limits.state_reads_max)?;
        self.reading = Reading::Waiting(monotonic());
        Ok(())
    }

    /// After a read that was answered.
    pub(crate) fn end_read(&mut self) {
        if let Reading::Waiting(since) = std::mem::take(&mut self.reading) {
            self.waited += monotonic().saturating_sub(since);
        }
    }

    /// Why the host, and not the guest, is to blame that the call was stopped. With `timed_out` that it was by the wall clock:
    /// then the host is to blame if most of the time went into waiting for it, since the reads are few (`state_reads_max`).
    pub(crate) fn trouble(self, timed_out: bool) -> Option<Trouble> {
        let waiting = match self.reading {
            Reading::Failed(trouble) => return Some(Trouble::Told(trouble)),
            Reading::Waiting(since) => monotonic().saturating_sub(since),
            Reading::No => Duration::ZERO,
        };
        let waited = (self.waited + waiting).as_millis();
        let wall_max_ms = self.limits.wall_max_ms;
        (timed_out && waited > u128::from(wall_max_ms / 2)).then(|| {
            Trouble::Slow(format!("reading the state took {waited} of the {wall_max_ms} ms that a call may take"))
        })
    }
}

impl Guest {
    /// With `granted`, what the kit grants; without, nothing.
    pub(crate) fn new(kit: &Kit, granted: Option<&Granted>, settings: &Settings) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        let nothing = Granted::default();
        let granted = granted.unwrap_or(&nothing);
        let (config, mask) = granted.values(settings);
        let clock = EventClock::new(granted.clock);
        let log = Log::new(kit.name.clone(), &kit.limits, kit.log_rate.clone(), kit.counters.clone(), mask);
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
        let outgoing = Outgoing::new(granted.http.clone(), kit.limits, kit.counters.clone(), log.clone());
        let seed = [kit.content_hash.as_bytes()];
        Self {
            table,
            wasi,
            http: WasiHttpCtx::new(),
            outgoing,
            config,
            clock,
            random: if granted.random { Random::Real } else { Random::seeded(&seed) },
            limiter: Limiter::new(&kit.limits),
            meter: Meter::default(),
            log,
            counters: kit.counters.clone(),
            call: None,
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.outgoing }
    }
}
