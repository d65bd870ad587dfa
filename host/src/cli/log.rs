//! Logs to standard error.

use std::io::{self, IsTerminal};

use anyhow::{Result, anyhow};
use keyrail::config::{LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

/// Starts logging, once. A host tells what it does; other commands only what is wrong.
pub(crate) fn start(config: &LogConfig, host: bool) -> Result<()> {
    let filter = match config.filter.as_str() {
        "auto" if host => "info",
        // What a host warns of at start would only be repeated by every command, and what is wrong with a certificate is in
        // the command's own message.
        "auto" => "warn,keyrail_broker::redis::checks=error,rustls_platform_verifier=off",
        filter => filter,
    };
    let filter = EnvFilter::builder().parse(filter)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    let started = match config.format {
        LogFormat::Text => subscriber.compact().try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}
