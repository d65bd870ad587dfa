//! A host process that can be killed, frozen and ended.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{guest, keyrail, wait_until};

/// `keyrail run`. Killed when dropped.
pub struct Host {
    child: Child,
    log: PathBuf,
    _folder: TempDir,
}

impl Host {
    /// Starts a host with these components and further arguments.
    pub fn start(broker: &str, guests: &[&str], args: &[&str]) -> Self {
        let mut command = Command::new(keyrail());
        command.args(["--broker", broker, "run"]).args(args);
        for name in guests {
            command.arg("--handler").arg(guest(name));
        }
        Self::spawn(command)
    }

    /// Starts any command as a host.
    pub fn spawn(mut command: Command) -> Self {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("log");
        let output = File::create(&log).unwrap();
        command.current_dir(folder.path()).stdin(Stdio::null());
        let child = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        Self { child, log, _folder: folder }
    }

    /// Starts a host and waits until it is up.
    pub fn up(broker: &str, guests: &[&str], args: &[&str]) -> Self {
        let mut host = Self::start(broker, guests, args);
        host.wait_until_up();
        host
    }

    /// Waits until it says that it is up.
    pub fn wait_until_up(&mut self) {
        wait_until("the host is up", || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the host ended with {ended:?}:\n{}", self.log());
            self.log().contains("the host is up")
        });
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it was stopped by a signal.
    pub fn wait_until_stopped(&self) {
        let stat = format!("/proc/{}/stat", self.pid());
        wait_until("the host has stopped", || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        });
    }

    /// Waits until it has ended, by whatever.
    pub fn wait_until_ended(&mut self) {
        wait_until("the host has ended", || self.child.try_wait().unwrap().is_some());
    }

    /// What it printed so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL, at once.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// SIGSTOP.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// SIGCONT, if it still runs.
    pub fn thaw_if_there(&self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
    }

    /// SIGTERM.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGTERM, and the exit code.
    pub fn terminate(self) -> i32 {
        self.ask_to_end();
        self.wait()
    }

    /// Waits for its end; the exit code.
    pub fn wait(mut self) -> i32 {
        let mut code = None;
        wait_until("the host ends", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.and_then(|status| status.code()).unwrap_or(-1)
    }
}

/// SIGTERM to any process.
pub fn ask_to_end(pid: u32) {
    send(pid, Signal::TERM);
}

/// SIGSTOP to any process.
pub fn freeze(pid: u32) {
    send(pid, Signal::STOP);
}

/// SIGCONT to any process.
pub fn thaw(pid: u32) {
    send(pid, Signal::CONT);
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

impl Drop for Host {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
