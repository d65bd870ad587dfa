//! The `keyrail` binary: the command line and nothing else.

mod cli;

/// Handling an event allocates often, on one thread, what another frees: that of glibc took a tenth of the host's time more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
