//! `keyrail health`: a host asked by itself, for images that have no other program to ask with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use keyrail::config::{BrokerAddress, Config, DEFAULT_PORT, Listen};

use super::failure::{Away, Exit, Usage, one_line};

/// Shorter than whoever asks waits: three seconds are usual.
const WAIT: Duration = Duration::from_millis(2_500);
/// Of an answer that is shown.
const ANSWER_MAX_CHARS: usize = 200;

/// Ask the host of these settings whether it is well
///
/// The host is the one that --host names, or the one that http.listen puts on this machine; `auto` is port 7411. Its
/// certificate is not looked at, and no token is sent.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail health\n  keyrail health ready --host http://10.0.0.7:7411\n\n\
    Ends with 4 if the host does not answer, or answers no.")]
pub(crate) struct Args {
    /// What to ask: does the process answer, has it loaded what is deployed, does it serve and its broker answer
    #[arg(value_enum, default_value_t)]
    question: Question,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Question {
    #[default]
    Live,
    Start,
    Ready,
}

impl Question {
    fn path(self) -> &'static str {
        match self {
            Self::Live => "/health/live",
            Self::Start => "/health/start",
            Self::Ready => "/health/ready",
        }
    }
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let url = format!("{}{}", base(config)?, args.question.path());
    // It is asked on this machine by an address that no certificate names, and is told nothing.
    let client = keyrail::tls::client(&url).timeout(WAIT).tls_danger_accept_invalid_certs(true).no_proxy().build()?;
    let answer = client.get(&url).send().await.map_err(|error| {
        let why = anyhow::Error::from(error.without_url()).root_cause().to_string();
        Away(one_line(&format!("{url} does not answer: {why}; is a host running, and does http.listen say where")))
    })?;
    if answer.status().is_success() {
        return Ok(Exit::Done);
    }
    let status = answer.status();
    let text: String = one_line(&answer.text().await.unwrap_or_default()).chars().take(ANSWER_MAX_CHARS).collect();
    Err(Away(format!("{url} answers {status}: {text}")).into())
}

/// Scheme, address and port.
fn base(config: &Config) -> Result<String, Usage> {
    if let BrokerAddress::Host(url) = &config.broker {
        return Ok(url.trim_end_matches('/').to_string());
    }
    let address = match config.http.listen() {
        Some(Listen::At(address)) => reachable(address),
        Some(Listen::Auto) => SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
        Some(Listen::Off) | None => return Err(Usage("http.listen is off, so there is nobody to ask".into())),
    };
    let scheme = if config.http.tls_files().is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{address}"))
}

/// Where a host that listens on all addresses is found on its own machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn base_of(change: impl FnOnce(&mut Config)) -> Result<String, String> {
        let mut config = Config::default();
        change(&mut config);
        base(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_host_is_asked_where_it_listens() {
        assert_eq!(base_of(|_| ()).unwrap(), "http://127.0.0.1:7411");
        assert_eq!(base_of(|c| c.http.listen = "0.0.0.0:80".into()).unwrap(), "http://127.0.0.1:80");
        assert_eq!(base_of(|c| c.http.listen = "[::]:80".into()).unwrap(), "http://[::1]:80");
        assert_eq!(base_of(|c| c.http.listen = "10.0.0.5:80".into()).unwrap(), "http://10.0.0.5:80");
        let secure = base_of(|c| {
            c.http.tls_cert_file = "c".into();
            c.http.tls_key_file = "k".into();
        });
        assert_eq!(secure.unwrap(), "https://127.0.0.1:7411");
        assert_eq!(base_of(|c| c.broker = "https://h:1/".parse().unwrap()).unwrap(), "https://h:1");
        assert!(base_of(|c| c.http.listen = "off".into()).is_err());
    }
}
