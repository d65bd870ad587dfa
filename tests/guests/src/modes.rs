//! The modes of the probe, each a function or a line.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyrail_guest::{Context, Error, Outgoing, Result, info};
use serde::Serialize;

use crate::Probe;

const MIB: usize = 1024 * 1024;

/// Does what the event asks.
pub(crate) fn run(probe: &Probe, ctx: &mut Context) -> Result<()> {
    let n = |default: u64| if probe.n == 0 { default } else { probe.n };
    match probe.mode.as_str() {
        // Done, with no effect.
        "ok" => Ok(()),
        // State `count` grows by one.
        "count" => count(ctx),
        // State `global` is how many events of this mode the instance has seen: what one call leaves to the next.
        "global" => global(ctx),
        // State `clock` is the wall clock and a random number.
        "clock" => clock(ctx),
        // State `env` is what the guest sees of the machine.
        "env" => environment(ctx),
        // Emits n events of mode `count` with its own key.
        "emit" => emit(probe, ctx, n(1)),
        // Emits what must be refused, and answers Ok all the same: 1 no JSON object, 2 a bad key, else no such category.
        "emit-bad" => {
            emit_bad(probe, ctx);
            Ok(())
        }
        // Tries again, not before n ms.
        "retry" if probe.n == 0 => Err(Error::retry("asked to retry")),
        "retry" => Err(Error::retry_after(probe.n, "asked to retry")),
        // Retries until attempt n, which is done.
        "flaky" if u64::from(ctx.attempt()) < n(2) => Err(Error::retry("asked to be flaky")),
        "flaky" => count(ctx),
        // Writes state, then fails: nothing of it may stay.
        "reject-after-write" => {
            count(ctx)?;
            Err(Error::reject("asked to reject"))
        }
        "reject" => Err(Error::reject("asked to reject")),
        // An `unreachable` instruction.
        "trap" => std::process::abort(),
        // The same, with a message on standard error.
        "panic" => panic!("asked to panic"),
        // Leaves through `wasi:cli/exit`: 1 by default.
        "exit" => std::process::exit(i32::try_from(n(1)).unwrap_or(1)),
        // Never ends.
        "loop" => loop {
            black_box(());
        },
        // Computes for a while: n million rounds.
        "spin" => {
            (0..n(1) * 1_000_000).for_each(|round| {
                black_box(round);
            });
            Ok(())
        }
        // Takes n MiB, 5 GiB by default, and touches it.
        "alloc" => {
            allocate(n(5 * 1024));
            Ok(())
        }
        // Recurses n deep and logs there; without end by default.
        "recurse" => {
            black_box(deeper(n(u64::MAX)));
            Ok(())
        }
        // Waits n ms, 60,000 by default, in a host call.
        "sleep" => {
            std::thread::sleep(Duration::from_millis(n(60_000)));
            Ok(())
        }
        // Logs n lines, 100,000 by default.
        "log-flood" => {
            (0..n(100_000)).for_each(|line| info!("flood {line}"));
            Ok(())
        }
        // Prints n lines to standard output and error, 1 by default.
        "print" => {
            (0..n(1)).for_each(|line| {
                println!("out {line}");
                eprintln!("err {line}");
            });
            Ok(())
        }
        // Writes a value of n bytes, 64 MiB by default.
        "state-big" => ctx.put_state_bytes("big", vec![b'x'; usize::try_from(n(64 * MIB as u64))?]),
        // Writes under a name that must be refused.
        "state-bad" => ctx.put_state("not a name", &probe.n),
        other => Err(Error::reject(format!("no such mode: {other}"))),
    }
}

fn count(ctx: &mut Context) -> Result<()> {
    let count: u64 = ctx.state("count")?.unwrap_or(0);
    ctx.put_state("count", &(count + 1))
}

fn global(ctx: &mut Context) -> Result<()> {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let seen = SEEN.fetch_add(1, Ordering::Relaxed) + 1;
    ctx.put_state("global", &seen)
}

fn clock(ctx: &mut Context) -> Result<()> {
    #[derive(Serialize)]
    struct Seen {
        wall_ms: u64,
        random: u64,
    }
    #[expect(clippy::disallowed_methods, reason = "what the guest's clock shows is what is tested")]
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let random = RandomState::new().build_hasher().finish();
    ctx.put_state("clock", &Seen { wall_ms: u64::try_from(wall.as_millis())?, random })
}

fn environment(ctx: &mut Context) -> Result<()> {
    #[derive(Serialize)]
    struct Seen {
        variables: Vec<String>,
        arguments: Vec<String>,
        file: String,
        folder: String,
        /// None without the feature `network`.
        network: Option<String>,
    }
    fn outcome<T>(result: std::io::Result<T>) -> String {
        result.map_or_else(|error| error.to_string(), |_| "it worked".to_owned())
    }
    #[cfg(feature = "network")]
    let network = Some(outcome(std::net::TcpStream::connect(("127.0.0.1", 6379))));
    #[cfg(not(feature = "network"))]
    let network = None;
    let seen = Seen {
        variables: std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect(),
        arguments: std::env::args_os().map(|one| one.to_string_lossy().into_owned()).collect(),
        file: outcome(std::fs::read("/etc/passwd")),
        folder: outcome(std::fs::read_dir(".")),
        network,
    };
    ctx.put_state("env", &seen)
}

fn emit(probe: &Probe, ctx: &mut Context, n: u64) -> Result<()> {
    for _ in 0..n {
        ctx.emit(&Probe { key: probe.key.clone(), mode: "count".to_owned(), n: 0 })?;
    }
    Ok(())
}

fn emit_bad(probe: &Probe, ctx: &mut Context) {
    let (category, data): (_, &[u8]) = match probe.n {
        1 => ("probe", b"[1, 2"),
        2 => ("probe", br#"{"key":"a:b","mode":"ok"}"#),
        _ => ("nowhere", br#"{"key":"k1","mode":"ok"}"#),
    };
    let refused = ctx.emit_raw(Outgoing { category, name: "Probe", version: 1, headers: &[], data });
    info!("the emit answered {refused:?}");
}

fn allocate(mib: u64) {
    let mut held = Vec::new();
    for _ in 0..mib {
        held.push(black_box(vec![1_u8; MIB]));
    }
    info!("took {} MiB", held.len());
}

/// No loop and no memory of its own: what fills up is the stack of calls, not the guest's stack in linear memory.
#[inline(never)]
fn deeper(left: u64) -> u64 {
    if left == 0 {
        info!("the bottom");
        return 1;
    }
    deeper(left - 1).rotate_left(7) ^ left
}
