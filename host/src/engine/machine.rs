//! What an engine asks of the machine that it runs on: the time, chance, and a thread for the heartbeat.
//!
//! A simulation is another machine: its time is virtual, its chance comes from a seed, and it can stop a host's tasks
//! between any two polls. Nothing in the engine asks for time or chance in any other way, or makes a task without
//! [`Machine::hosted`].

use std::io;
use std::thread::JoinHandle;

use futures::future::BoxFuture;

use crate::clock;

/// See the module.
pub trait Machine: Send + Sync {
    /// Milliseconds on a clock that only goes forward and runs on through suspend.
    fn now_ms(&self) -> u64;

    /// The same clock in nanoseconds, to time things by; as fine as the machine's clock is.
    fn now_ns(&self) -> u64 {
        self.now_ms() * 1_000_000
    }

    /// Uniform in 0..1.
    fn chance(&self) -> f64;

    /// The task as it is to be spawned: one that this host's stalls and its end hold up.
    fn hosted(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()>;

    /// Runs a task apart from all others, so that no busy thread delays it.
    fn run_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> io::Result<Apart>;
}

/// A task that runs apart.
pub struct Apart(Option<JoinHandle<()>>);

impl Apart {
    /// One that runs on a thread of its own, or among the others.
    pub fn new(thread: Option<JoinHandle<()>>) -> Self {
        Self(thread)
    }

    /// Waits for its end. False if it had panicked.
    pub fn join(&mut self) -> bool {
        self.0.take().is_none_or(|thread| thread.join().is_ok())
    }
}

/// The real one.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemMachine;

impl Machine for SystemMachine {
    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn chance(&self) -> f64 {
        clock::chance()
    }

    fn hosted(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        task
    }

    fn run_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> io::Result<Apart> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || runtime.block_on(task))?;
        Ok(Apart::new(Some(thread)))
    }
}
