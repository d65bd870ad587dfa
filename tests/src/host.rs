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
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new(keyrail());
        command.args(["--broker", broker, "run"]).args(args).current_dir(folder.path());
        for name in guests {
            command.arg("--handler").arg(guest(name));
        }
        let output = File::create(&log).unwrap();
        let child = command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        Self { child, log, _folder: folder }
    }

    /// Starts a host and waits until it is up.
    pub fn up(broker: &str, guests: &[&str], args: &[&str]) -> Self {
        let mut host = Self::start(broker, guests, args);
        wait_until("the host is up", || {
            let ended = host.child.try_wait().unwrap();
            assert!(ended.is_none(), "the host ended with {ended:?}:\n{}", host.log());
            host.log().contains("the host is up")
        });
        host
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

    /// SIGTERM, and the exit code.
    pub fn terminate(self) -> i32 {
        self.signal(Signal::TERM);
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

impl Drop for Host {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
