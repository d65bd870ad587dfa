//! The wasmtime engine as this host sets it up, and the thread that ticks it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails};

use crate::limits::Limits;
use crate::{Settings, SetupError, room};

/// Components that are compiled and described at the same time, beside the instances of `instances_max`.
pub(crate) const LOADS_MAX: u32 = 2;
/// Stack for host functions, below the guest's own. A guest that used up its stack may still be in one of them.
const HOST_STACK_BYTES: usize = 1 << 20;
/// Core instances that one component may have, beside all that the room counts.
const CORE_INSTANCES_MAX: u32 = 64;
/// What one component takes of the pool.
const MEMORIES_EACH: u32 = 2;
const TABLES_EACH: u32 = 8;
/// The address space that one memory takes in the pool, guard regions included.
const MEMORY_SLOT_BYTES: u64 = 4 << 30;
/// What a memory and a table of the pool keep of the system's memory from one instance to the next. What an instance touched is put back to what it
/// was, instead of being given back and faulted in again, which cost more than all else of a fresh instance. The pool keeps 100 such slots.
const MEMORY_KEPT_BYTES: usize = 256 << 10;
const TABLE_KEPT_BYTES: usize = 16 << 10;
/// What the pool may reserve of the 128 TiB of a process.
const POOL_SPACE_MAX_BYTES: u64 = 64 << 40;
const PAGE_BYTES: usize = 64 << 10;

/// How memories lie; compiled code depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layout {
    Pooled,
    OnDemand,
}

/// An engine with a pool for the instances, or without one where the system does not give the address space.
pub(crate) fn start(settings: &Settings) -> Result<(Engine, Layout), SetupError> {
    let engine = Engine::new(&pooled(settings)).map(|engine| (engine, Layout::Pooled)).or_else(|error| {
        tracing::warn!("the pool of instances cannot be set up, they are made one by one: {error:#}");
        Ok((Engine::new(&on_demand(settings))?, Layout::OnDemand))
    });
    let (engine, layout) = engine.map_err(|error: wasmtime::Error| SetupError::Engine(format!("{error:#}")))?;
    tick(&engine, Duration::from_millis(settings.epoch_tick_ms))?;
    Ok((engine, layout))
}

/// An engine that makes code for the other one, and never runs any. It has no pool: that changes no code.
pub(crate) fn for_compiling(settings: &Settings, layout: Layout) -> wasmtime::Result<Engine> {
    Engine::new(&match layout {
        Layout::Pooled => common(settings),
        Layout::OnDemand => on_demand(settings),
    })
}

fn common(settings: &Settings) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        // At most 64 MiB, which is checked.
        .max_wasm_stack(settings.stack_max_bytes as usize)
        .async_stack_size(settings.stack_max_bytes as usize + HOST_STACK_BYTES)
        // The environment of the host must not change how it works.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_memory64(false)
        // An event that is tried again on another machine gives the same bits.
        .relaxed_simd_deterministic(true)
        .cranelift_nan_canonicalization(true);
    config
}

fn pooled(settings: &Settings) -> Config {
    let components = settings.instances_max + LOADS_MAX;
    let memories_max = u32::try_from(POOL_SPACE_MAX_BYTES / MEMORY_SLOT_BYTES).unwrap_or(u32::MAX);
    let ceiling = Limits::ceiling(settings);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(components)
        .total_stacks(components)
        .total_core_instances(room::core_instances_max(settings.instances_max) + (1 + LOADS_MAX) * CORE_INSTANCES_MAX)
        .total_memories((components * MEMORIES_EACH).min(memories_max))
        .total_tables(components * TABLES_EACH)
        .linear_memory_keep_resident(MEMORY_KEPT_BYTES)
        .table_keep_resident(TABLE_KEPT_BYTES)
        // Where the kernel cannot tell what was touched, all that is kept is put back.
        .pagemap_scan(Enabled::Auto)
        .max_memories_per_component(MEMORIES_EACH * 4)
        .max_memory_size((ceiling.memory_max_bytes as usize).next_multiple_of(PAGE_BYTES))
        .table_elements(ceiling.table_elements_max as usize);
    let mut config = common(settings);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Memories that move as they grow take no more address space than they use.
fn on_demand(settings: &Settings) -> Config {
    let mut config = common(settings);
    config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(1 << 20);
    config
}

/// Ticks on a thread of its own, so that guests are interrupted however busy the async threads are. It ends with the
/// engine.
fn tick(engine: &Engine, every: Duration) -> Result<(), SetupError> {
    let engine = engine.weak();
    let ticker = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(every);
        }
    };
    let thread = std::thread::Builder::new().name("keyrail-ticker".into()).spawn(ticker);
    thread.map(drop).map_err(|error| SetupError::Engine(format!("no thread for the ticker: {error}")))
}
