//! Compiling in a child process, and the cache of compiled code under two hosts.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::small::{Small, metadata_at_64};
use common::{ask, done, guest, settings};
use keyrail_runtime::{Compiler, LoadError, Manifest, Module, Runtime, Settings};

const TOOL: &str = env!("CARGO_BIN_EXE_runtime-tool");

fn in_child(first: &str) -> Settings {
    let command: Vec<OsString> = vec![TOOL.into(), first.into()];
    Settings { compiler: Compiler::Child { command }, ..settings() }
}

async fn load(settings: Settings, bytes: Vec<u8>) -> Result<Arc<Module>, LoadError> {
    Runtime::new(settings).unwrap().load_bytes("x.wasm", bytes, &Manifest::default()).await
}

/// The probe, made so large that it is not compiled in this process.
fn large_probe() -> Vec<u8> {
    let mut bytes = std::fs::read(guest("probe")).unwrap();
    // A custom section: id 0, its size, a name of one letter, zeros.
    let size: u32 = 600 << 10;
    bytes.push(0);
    bytes.extend([(size & 0x7f) as u8 | 0x80, (size >> 7 & 0x7f) as u8 | 0x80, (size >> 14) as u8]);
    bytes.extend([1, b'x']);
    bytes.resize(bytes.len() + size as usize - 2, 0);
    bytes
}

#[tokio::test]
async fn a_large_component_is_compiled_by_a_child_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("compiled");
    let settings = Settings { cache_dir: Some(dir.clone()), ..in_child("compile-component") };
    let module = load(settings.clone(), large_probe()).await.unwrap();
    done(ask("count", 0).of_fresh(&module).await);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "one file, and nothing of the work");
    // A child that cannot work: it is not asked.
    let hanging = Settings { compiler: in_child("hang").compiler, ..settings };
    done(ask("count", 0).of_fresh(&load(hanging, large_probe()).await.unwrap()).await);
}

#[tokio::test]
async fn a_small_component_is_compiled_here() {
    let bytes = std::fs::read(guest("probe")).unwrap();
    load(in_child("hang"), bytes).await.unwrap();
}

#[tokio::test]
async fn what_does_not_compile_is_told_from_the_child() {
    let mut cut = large_probe();
    cut.truncate(580 << 10);
    let error = load(in_child("compile-component"), cut).await.unwrap_err().to_string();
    assert!(error.starts_with("x.wasm does not compile: ") && !error.contains('\n'), "{error}");
}

#[tokio::test]
async fn a_child_that_hangs_is_ended_in_time() {
    let settings = Settings { compile_max_ms: 300, ..in_child("hang") };
    let error = load(settings, large_probe()).await.unwrap_err().to_string();
    assert!(error.contains("more than 300 ms (runtime.compile_max_ms)"), "{error}");
}

#[tokio::test]
async fn a_child_that_is_killed_is_told() {
    let error = load(in_child("abort"), large_probe()).await.unwrap_err().to_string();
    assert!(error.contains("ended by signal 6") && error.contains("compile_memory_max_bytes"), "{error}");
}

/// A child that is of another program, or none at all, must not keep a handler from running.
#[tokio::test]
async fn code_that_is_none_of_ours_is_refused_and_made_here() {
    let module = load(in_child("rubbish"), large_probe()).await.unwrap();
    done(ask("count", 0).of_fresh(&module).await);
    let missing = Compiler::Child { command: vec!["/nowhere/keyrail".into()] };
    load(Settings { compiler: missing, ..settings() }, large_probe()).await.unwrap();
}

#[tokio::test]
async fn the_child_is_nice_limited_and_has_no_environment() {
    let settings = Settings { compile_memory_max_bytes: 512 << 20, ..in_child("report") };
    let mut cut = large_probe();
    cut.truncate(580 << 10);
    let error = load(settings, cut).await.unwrap_err().to_string();
    for part in ["variables 0", "nice Some(\"10\")", &(512 << 20).to_string(), "failed: true"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

/// C062, as far as one process of the runtime shows it: one async thread ticks on while a component compiles.
#[tokio::test]
async fn c062_compiling_leaves_the_async_thread_to_others() {
    let ticks = Arc::new(AtomicU64::new(0));
    let is_loading = Arc::new(AtomicBool::new(true));
    let ticker = tokio::spawn({
        let (ticks, is_loading) = (ticks.clone(), is_loading.clone());
        async move {
            while is_loading.load(Ordering::Relaxed) {
                ticks.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let module = load(in_child("compile-component"), large_probe()).await.unwrap();
    is_loading.store(false, Ordering::Relaxed);
    ticker.await.unwrap();
    // The child alone takes some hundred milliseconds; were the thread held, there would be one tick or two.
    let ticks = ticks.load(Ordering::Relaxed);
    assert!(ticks > 20, "{ticks} ticks while the component compiled");
    done(ask("ok", 0).of_fresh(&module).await);
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Several real hosts on one folder, one of them killed again and again while it writes: all load, all the time.
#[test]
fn hosts_share_a_cache_that_one_of_them_damages() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("compiled");
    let start = |times: &str| {
        let mut command = Command::new(TOOL);
        command.arg("load").arg(guest("itinerary")).arg(&dir).arg(times);
        Ended(command.stderr(std::process::Stdio::piped()).spawn().unwrap())
    };
    let mut hosts = [start("8"), start("8")];
    let mut damages = 0;
    while hosts.iter_mut().any(|host| host.0.try_wait().unwrap().is_none()) {
        for file in compiled(&dir) {
            match damages % 3 {
                0 => drop(std::fs::write(&file, b"rubbish")),
                1 => drop(std::fs::remove_file(&file)),
                _ => drop(std::fs::OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(5_000))),
            }
            damages += 1;
        }
        drop(start("1")); // killed wherever it is
    }
    assert!(damages > 0);
    for host in &mut hosts {
        let status = host.0.wait().unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(host.0.stderr.as_mut().unwrap(), &mut said).unwrap();
        assert!(status.success(), "{said}");
    }
    let mut last = start("1");
    assert!(last.0.wait().unwrap().success());
}

fn compiled(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "compiled")).collect()
}

/// A folder that cannot be used, or goes away, costs time and nothing else.
#[tokio::test]
async fn an_unusable_folder_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let small = Small { describe: "i32.const 64".into(), rest: metadata_at_64("small"), ..Small::default() };
    let below_a_file = Settings { cache_dir: Some(file.join("compiled")), ..settings() };
    load(below_a_file, small.component()).await.unwrap();

    let dir = folder.path().join("compiled");
    let runtime = Runtime::new(Settings { cache_dir: Some(dir.clone()), ..settings() }).unwrap();
    std::fs::remove_dir(&dir).unwrap();
    runtime.load_bytes("x.wasm", small.component(), &Manifest::default()).await.unwrap();
}
