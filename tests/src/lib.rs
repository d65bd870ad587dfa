//! Helpers of the end-to-end tests: real processes, a real Redis, real kills.
//!
//! They run the binary that `cargo xtask test` built and the components beside it, as a user would.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

pub mod chaos;
pub mod collector;
pub mod flights;
pub mod host;
pub mod http;
pub mod intercept;
pub mod native;
pub mod orders;
pub mod proxy;
pub mod simulation;
pub mod world;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest that any condition is waited for.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// The folder of cargo's profile: where the `keyrail` binary lies, this one if it is none of a test, and `deps` with those.
fn profile_dir() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let folder = this.parent().unwrap();
    let folder = if folder.ends_with("deps") { folder.parent().unwrap() } else { folder };
    folder.to_path_buf()
}

/// The `keyrail` binary.
pub fn keyrail() -> PathBuf {
    present(profile_dir().join("keyrail"))
}

/// The `native-host` binary.
pub fn native_host() -> PathBuf {
    present(profile_dir().join("native-host"))
}

/// A built component, by its name.
pub fn guest(name: &str) -> PathBuf {
    present(profile_dir().parent().unwrap().join("guests").join(format!("{name}.wasm")))
}

fn present(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is not there; run the tests with cargo xtask test", path.display());
    path
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    // As cargo says when it runs this, not when it was built: two checkouts with one target folder may share the binary.
    let built = || PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(built, PathBuf::from).parent().unwrap().join(path)
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Itself, if it succeeded.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// Asserts one clear line on standard error that says this, and a failure.
    pub fn refused(&self, code: i32, says: &str) {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.err.contains(says), "expected {says:?} in {self:#?}");
        assert!(!self.err.contains("panicked") && !self.err.contains("RUST_BACKTRACE"), "{self:#?}");
    }
}

/// Runs `keyrail` in `folder` to its end.
pub fn run_in(folder: &Path, args: &[&str], input: &str) -> Ran {
    let mut command = Command::new(keyrail());
    command.args(args).current_dir(folder).env("RUST_BACKTRACE", "0");
    let piped = Stdio::piped;
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    // A command that refuses early may close its input first.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `keyrail --broker BROKER …` to its end.
pub fn run(broker: &str, args: &[&str]) -> Ran {
    run_with_input(broker, args, "")
}

/// The same with standard input.
pub fn run_with_input(broker: &str, args: &[&str], input: &str) -> Ran {
    let args: Vec<&str> = ["--broker", broker].iter().chain(args).copied().collect();
    run_in(&std::env::temp_dir(), &args, input)
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The states of a group: key → value's name → value.
pub fn states(broker: &str, group: &str) -> BTreeMap<String, Value> {
    let dump = run(broker, &["state", "dump", group]).ok().out;
    let lines = dump.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["key"].as_str().unwrap().to_string(), line["state"].clone())).collect()
}

/// The rows of `keyrail partitions --json`.
pub fn partitions(broker: &str, category: &str) -> Vec<Value> {
    let out = run(broker, &["partitions", category, "--json"]).ok().out;
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
