//! What the tests of this crate start as processes of their own. `runtime-tool compile-component JOB` is a compiling process, as
//! `keyrail compile-component` is; `runtime-tool load FILE CACHE_DIR TIMES` loads a component so often, each time with an engine
//! of its own; the others are compilers that go wrong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use keyrail_runtime::{Compiler, Manifest, Runtime, Settings, compile_component};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["compile-component", job] => compile_component(job),
        ["hang", ..] => {
            std::thread::sleep(Duration::from_hours(1));
            Ok(())
        }
        ["rubbish", ..] => {
            println!("this is no code");
            Ok(())
        }
        ["abort", ..] => std::process::abort(),
        // What a compiling process has of its parent: variables, and how nice it is.
        ["report", job] => report(job),
        ["load", file, dir, times] => load(Path::new(file), dir.into(), times.parse().unwrap_or(1)),
        _ => Err("see the source".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn report(job: &str) -> Result<(), String> {
    // With nothing on standard input it restricts itself and then fails.
    let failed = compile_component(job).err();
    let nice = std::fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    let nice = nice.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(16).map(str::to_owned));
    let limits = std::fs::read_to_string("/proc/self/limits").map_err(|error| error.to_string())?;
    let data = limits.lines().find(|line| line.starts_with("Max data size")).unwrap_or_default().to_owned();
    let variables = std::env::vars_os().count();
    Err(format!("variables {variables}, nice {nice:?}, {data}, failed: {}", failed.is_some()))
}

fn load(file: &Path, dir: PathBuf, times: u32) -> Result<(), String> {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())?;
    for _ in 0..times {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let compiler = Compiler::Child { command: vec![own.into(), "compile-component".into()] };
        let settings = Settings { cache_dir: Some(dir.clone()), instances_max: 4, compiler, ..Settings::default() };
        let runtime = Runtime::new(settings).map_err(|error| error.to_string())?;
        let loaded = tokio.block_on(runtime.load(file, &Manifest::default()));
        let module = loaded.map_err(|error| error.to_string())?;
        tokio.block_on(module.instantiate()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
