//! A real Redis for tests and benchmarks: its own process, port and directory, gone when it is dropped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::Error;

const START_LOOKS_MAX: u64 = 4_000;
const LOOK_EVERY_MS: u64 = 5;
/// A free port can be taken by another between finding it and using it.
const PORTS_TRIED: usize = 5;

static STARTED: AtomicU32 = AtomicU32::new(0);

/// A running redis-server on a port of the loopback interface.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
}

impl RedisServer {
    /// Starts one without persistence.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(&[])
    }

    /// Starts one with further arguments, as redis-server takes them: `--requirepass`, `secret`. They come last, so they
    /// win over the defaults.
    pub fn start_with(arguments: &[&str]) -> Result<Self, Error> {
        let failed = |what: &str, error: std::io::Error| Error::Unusable(format!("cannot {what}: {error}"));
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let mut last = Error::Unusable("redis-server did not start".into());
        for _ in 0..PORTS_TRIED {
            let number = STARTED.fetch_add(1, Ordering::Relaxed);
            let directory = std::env::temp_dir().join(format!("keyrail-redis-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&directory)
                .map_err(|error| failed(&format!("create {}", directory.display()), error))?;
            let port = free_port().map_err(|error| failed("find a free port", error))?;
            let child = match spawn(port, &directory, &arguments) {
                Ok(child) => child,
                Err(error) => {
                    // Empty; nothing is lost if it stays.
                    let _ = std::fs::remove_dir(&directory);
                    return Err(error);
                }
            };
            let mut server = Self { child, port, directory, arguments: arguments.clone() };
            match server.wait_until_up() {
                Ok(()) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process; [`RedisServer::restart`] starts it again. What it did not persist is gone.
    pub fn kill(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it if it runs, and starts it again on the same port and directory.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.child = spawn(self.port, &self.directory, &self.arguments)?;
        self.wait_until_up()
    }

    fn wait_until_up(&mut self) -> Result<(), Error> {
        for _ in 0..START_LOOKS_MAX {
            if answers(self.port) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                let line = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it wrote no log");
                return Err(Error::Unusable(format!("redis-server ended with {status}: {line}")));
            }
            thread::sleep(Duration::from_millis(LOOK_EVERY_MS));
        }
        Err(Error::Unusable(format!("redis-server did not answer within {} ms", START_LOOKS_MAX * LOOK_EVERY_MS)))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(port: u16, directory: &std::path::Path, arguments: &[String]) -> Result<Child, Error> {
    let log = directory.join("log");
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(directory)
        .arg("--logfile")
        .arg(&log)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::Unusable("redis-server not found: apt-get install redis-server".into())
            }
            _ => Error::Unusable(format!("redis-server does not start: {error}")),
        })
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Any answer counts, except that it is still loading: a server with a password answers that it wants one.
fn answers(port: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 64];
        let read = stream.read(&mut answer)?;
        Ok(read > 0 && !answer.starts_with(b"-LOADING"))
    };
    ask().unwrap_or(false)
}
