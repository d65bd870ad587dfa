//! The machine that one host runs on: every task of the host passes through a gate.
//!
//! **Freeze** is what SIGSTOP does: nothing of the host runs, the clocks go on, and a sleep that ended meanwhile ends late.
//! **Crash** is what SIGKILL does: at the gate's next poll its task is gone, wherever it waited. What the host had sent to
//! the broker before is on its way and not the host's any more.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use keyrail::engine::{Apart, Machine};

use super::clock::Clock;
use super::dice::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Power {
    #[default]
    Running,
    Frozen,
    Crashed,
}

#[derive(Default)]
struct Gates {
    power: Power,
    next: u64,
    /// Of each gate that waits, in the order of their making: the order in which a thaw wakes them.
    wakers: BTreeMap<u64, Waker>,
}

/// The power switch of one host.
#[derive(Clone, Default)]
pub(super) struct Switch(Arc<Mutex<Gates>>);

impl Switch {
    fn lock(&self) -> MutexGuard<'_, Gates> {
        // Each operation leaves the gates whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, power: Power) {
        let wakers: Vec<_> = {
            let mut gates = self.lock();
            if gates.power == Power::Crashed {
                return;
            }
            gates.power = power;
            gates.wakers.values().cloned().collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The task behind a gate.
    pub(super) fn gate(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let mut gates = self.lock();
        gates.next += 1;
        Box::pin(Gate { number: gates.next, switch: self.clone(), task: Some(task) })
    }
}

struct Gate {
    number: u64,
    switch: Switch,
    task: Option<BoxFuture<'static, ()>>,
}

impl Future for Gate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let power = {
            let mut gates = self.switch.lock();
            gates.wakers.insert(self.number, context.waker().clone());
            gates.power
        };
        match power {
            Power::Frozen => Poll::Pending,
            Power::Crashed => {
                self.task = None;
                Poll::Ready(())
            }
            Power::Running => match self.task.as_mut() {
                Some(task) => task.as_mut().poll(context),
                None => Poll::Ready(()),
            },
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.switch.lock().wakers.remove(&self.number);
    }
}

/// A host's machine.
pub(super) struct SimMachine {
    pub(super) clock: Clock,
    pub(super) dice: Mutex<Dice>,
    pub(super) switch: Switch,
}

impl Machine for SimMachine {
    fn now_ms(&self) -> u64 {
        self.clock.lease_ms()
    }

    fn chance(&self) -> f64 {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).unit()
    }

    fn hosted(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.switch.gate(task)
    }

    fn run_apart(&self, _name: &str, task: BoxFuture<'static, ()>) -> io::Result<Apart> {
        tokio::spawn(self.switch.gate(task));
        Ok(Apart::new(None))
    }
}
