//! The HTTP API of a host over TCP: where, for whom, and every limit of it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::zeros;

/// Where `auto` listens if nobody else does.
pub const DEFAULT_PORT: u16 = 7411;

/// The HTTP API over TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Where a host listens: `auto` is port 7411 of 127.0.0.1, or any free port of it if that is taken; `off`; or
    /// `ADDRESS:PORT`. Any address that is not loopback needs `http.tokens_file`.
    pub listen: String,
    /// File of tokens; see `keyrail token`. Empty: whoever reaches the loopback address may do everything.
    pub tokens_file: String,
    /// Certificate chain in PEM; with it and `http.tls_key_file` the host speaks HTTPS only.
    pub tls_cert_file: String,
    /// The certificate's private key in PEM.
    pub tls_key_file: String,
    /// Names and addresses besides the one of `http.listen` under which browsers may reach a host without tokens,
    /// separated by commas: a page of any other name is not answered.
    pub allowed_hosts: String,
    /// How often the files of tokens and certificates are looked at for changes.
    pub files_check_interval_ms: u64,
    /// Connections at once; further ones are closed.
    pub connections_max: usize,
    /// How long a connection may take for a TLS handshake, for the head of a request, and between two requests.
    pub head_timeout_ms: u64,
    /// How long the body of a request may take to arrive.
    pub body_timeout_ms: u64,
    /// Bytes of request bodies in memory, of all connections together.
    pub bodies_max_bytes: usize,
    /// Requests a second of one caller (a token, or an address where there are none); 0 for no limit.
    pub requests_per_s_max: u32,
    /// Size of a publishing request.
    pub events_max_bytes: usize,
    /// Events in a publishing request.
    pub events_max: usize,
    /// Publishing requests that are worked on at once.
    pub events_requests_max: usize,
    /// How long a publishing request waits for its turn before it is answered with 429.
    pub events_wait_ms: u64,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: "auto".into(),
            tokens_file: String::new(),
            tls_cert_file: String::new(),
            tls_key_file: String::new(),
            allowed_hosts: String::new(),
            files_check_interval_ms: 2_000,
            connections_max: 1_024,
            head_timeout_ms: 30_000,
            body_timeout_ms: 30_000,
            bodies_max_bytes: 128 << 20,
            requests_per_s_max: 1_000,
            events_max_bytes: 8 << 20,
            events_max: 10_000,
            events_requests_max: 16,
            events_wait_ms: 1_000,
        }
    }
}

/// How commands reach a host at `http://…` or `https://…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// File that holds a token and nothing else. The variable `KEYRAIL_TOKEN` does as well.
    pub token_file: String,
    /// Certificates in PEM that are trusted in place of the system's.
    pub ca_file: String,
    /// How long a connection may take.
    pub connect_timeout_ms: u64,
    /// From the environment.
    #[serde(skip)]
    pub(super) token: Option<Token>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self { token_file: String::new(), ca_file: String::new(), connect_timeout_ms: 5_000, token: None }
    }
}

/// A token. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub(super) fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// The token itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl ClientConfig {
    /// The token to show, if there is one.
    pub fn token(&self) -> Result<Option<Token>, String> {
        if self.token_file.is_empty() {
            return Ok(self.token.clone());
        }
        let text = std::fs::read_to_string(&self.token_file).map_err(|error| {
            format!(
                "client.token_file {}: {error}; name a file that holds the token, or set KEYRAIL_TOKEN",
                self.token_file
            )
        })?;
        Ok(Some(Token::new(&text)))
    }

    /// The certificates that are trusted in place of the system's.
    pub fn ca_file(&self) -> Option<&Path> {
        (!self.ca_file.is_empty()).then(|| Path::new(&self.ca_file))
    }

    pub(super) fn problems(&self) -> Vec<String> {
        zeros("client", &[("connect_timeout_ms", self.connect_timeout_ms)])
    }
}

/// Where a host listens over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// The default port of loopback, or another if it is taken.
    Auto,
    /// There and nowhere else.
    At(SocketAddr),
}

/// How a host proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl HttpConfig {
    /// Where to listen. None if the setting cannot be read; [`HttpConfig::problems`] says so.
    pub fn listen(&self) -> Option<Listen> {
        match self.listen.as_str() {
            "off" | "" => Some(Listen::Off),
            "auto" => Some(Listen::Auto),
            address => parsed(address).map(Listen::At),
        }
    }

    /// The file of tokens, if there is one.
    pub fn tokens_file(&self) -> Option<&Path> {
        (!self.tokens_file.is_empty()).then(|| Path::new(&self.tokens_file))
    }

    /// The files for TLS, if it is on.
    pub fn tls_files(&self) -> Option<TlsFiles> {
        let both = !self.tls_cert_file.is_empty() && !self.tls_key_file.is_empty();
        both.then(|| TlsFiles { cert: self.tls_cert_file.clone().into(), key: self.tls_key_file.clone().into() })
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let values = [
            ("files_check_interval_ms", self.files_check_interval_ms),
            ("connections_max", self.connections_max as u64),
            ("head_timeout_ms", self.head_timeout_ms),
            ("body_timeout_ms", self.body_timeout_ms),
            ("bodies_max_bytes", self.bodies_max_bytes as u64),
            ("events_max_bytes", self.events_max_bytes as u64),
            ("events_max", self.events_max as u64),
            ("events_requests_max", self.events_requests_max as u64),
        ];
        let mut problems = zeros("http", &values);
        match self.listen() {
            None => problems.push(format!(
                "http.listen is {:?}; give auto, off, or an address with a port, as 127.0.0.1:7411 or [::]:7411",
                self.listen
            )),
            Some(Listen::At(address)) if !address.ip().is_loopback() && self.tokens_file.is_empty() => {
                problems.push(format!(
                    "http.listen is {address}, which others can reach, and nobody needs a token; make one with keyrail \
                     token NAME --role read --file tokens.toml, and name the file in http.tokens_file"
                ));
            }
            Some(_) => {}
        }
        if self.tls_cert_file.is_empty() != self.tls_key_file.is_empty() {
            problems.push("http.tls_cert_file and http.tls_key_file go together; give both or neither".into());
        }
        if self.events_max_bytes > self.bodies_max_bytes {
            problems.push(format!(
                "http.events_max_bytes is {}; it cannot be more than http.bodies_max_bytes ({})",
                self.events_max_bytes, self.bodies_max_bytes
            ));
        }
        problems
    }
}

/// `localhost` is the one name: it is loopback everywhere.
fn parsed(address: &str) -> Option<SocketAddr> {
    match address.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port.parse().ok()?)),
        None => address.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut HttpConfig)) -> String {
        let mut config = HttpConfig::default();
        change(&mut config);
        config.problems().join("; ")
    }

    #[test]
    fn only_loopback_does_without_tokens() {
        for open in ["auto", "off", "127.0.0.1:80", "[::1]:80", "localhost:80", "127.8.8.8:1"] {
            assert_eq!(problems(|config| config.listen = open.into()), "", "{open}");
        }
        for others in ["0.0.0.0:80", "[::]:80", "10.0.0.5:80", "[::ffff:10.0.0.5]:80"] {
            let problems = problems(|config| config.listen = others.into());
            assert!(problems.contains("keyrail token"), "{others}: {problems}");
        }
        assert_eq!(
            problems(|config| {
                config.listen = "0.0.0.0:80".into();
                config.tokens_file = "tokens.toml".into();
            }),
            ""
        );
    }

    #[test]
    fn what_is_no_address_is_said() {
        for listen in ["7411", "example.com:80", "127.0.0.1", ":80", "http://127.0.0.1:80"] {
            let problems = problems(|config| config.listen = listen.into());
            assert!(problems.contains("give auto, off, or an address"), "{listen}: {problems}");
        }
        assert!(problems(|config| config.tls_cert_file = "x".into()).contains("go together"));
        assert!(problems(|config| config.events_max_bytes = usize::MAX).contains("events_max_bytes"));
    }
}
