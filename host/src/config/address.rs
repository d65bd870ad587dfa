//! Where a broker is, as an operator writes it. Never shows a password.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a broker is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BrokerAddress {
    /// `embedded:PATH`: a file that one process holds.
    Embedded(PathBuf),
    /// `memory`: in one process, gone with it.
    Memory,
    /// `redis://…`: Redis 7 or Valkey.
    Redis(String),
    /// `socket:PATH`: whatever broker the running host behind this socket has.
    Socket(PathBuf),
    /// `http://…`, `https://…`: whatever broker the running host there has.
    Host(String),
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Another form.
    #[error(
        "{0:?} is not the address of a broker; give embedded:PATH, memory, redis://HOST[:PORT][/DB], or socket:PATH or http[s]://HOST:PORT of a running host"
    )]
    Unknown(String),
    /// An URL that says more than where a host is.
    #[error(
        "{0:?} is not the address of a host; give http://HOST:PORT or https://HOST:PORT, without user, path or query"
    )]
    NotAHost(String),
    /// A form that needs a path.
    #[error("{0:?} has no path; give {0}PATH")]
    NoPath(String),
    /// TLS.
    #[error(
        "rediss:// (TLS) is not supported by this release; give redis://, through a tunnel if the network is not yours"
    )]
    Tls,
}

impl BrokerAddress {
    /// The socket that a host serves beside an embedded file.
    pub fn socket_beside(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push(".sock");
        name.into()
    }

    /// The text that gives this address when parsed, password and all.
    fn to_text(&self) -> String {
        match self {
            Self::Embedded(path) => format!("embedded:{}", path.display()),
            Self::Memory => "memory".into(),
            Self::Redis(url) => url.clone(),
            Self::Socket(path) => format!("socket:{}", path.display()),
            Self::Host(url) => url.clone(),
        }
    }
}

impl Default for BrokerAddress {
    fn default() -> Self {
        Self::Embedded("keyrail.redb".into())
    }
}

impl FromStr for BrokerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let path = |prefix: &str, path: &str| {
            if path.is_empty() { Err(AddressError::NoPath(prefix.into())) } else { Ok(PathBuf::from(path)) }
        };
        if let Some(rest) = text.strip_prefix("embedded:") {
            return path("embedded:", rest).map(Self::Embedded);
        }
        if let Some(rest) = text.strip_prefix("socket:") {
            return path("socket:", rest).map(Self::Socket);
        }
        if text == "memory" {
            return Ok(Self::Memory);
        }
        if text.starts_with("rediss://") {
            return Err(AddressError::Tls);
        }
        if text.strip_prefix("redis://").is_some_and(|rest| !rest.is_empty()) {
            return Ok(Self::Redis(text.into()));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return host(text).map(Self::Host).ok_or_else(|| AddressError::NotAHost(without_password(text)));
        }
        Err(AddressError::Unknown(without_password(text)))
    }
}

/// The URL of a host, if it is one and says nothing else. A password in it would be shown; tokens have a place of their own.
fn host(text: &str) -> Option<String> {
    let url = reqwest::Url::parse(text).ok()?;
    let is_plain = url.host_str().is_some_and(|host| !host.is_empty())
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    is_plain.then(|| text.trim_end_matches('/').to_string())
}

impl TryFrom<String> for BrokerAddress {
    type Error = AddressError;
    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<BrokerAddress> for String {
    fn from(address: BrokerAddress) -> String {
        address.to_text()
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.to_text()))
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// `redis://user:secret@host` becomes `redis://user:***@host`.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let Some((userinfo, host)) = rest.rsplit_once('@') else { return url.into() };
    let user = userinfo.split_once(':').map_or(userinfo, |(user, _)| user);
    format!("{scheme}://{user}:***@{host}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in
            ["embedded:a/b.redb", "memory", "redis://127.0.0.1:6379/2", "socket:/run/k.sock", "https://k.example:7411"]
        {
            let address: BrokerAddress = text.parse().unwrap();
            assert_eq!(String::from(address), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_forms() {
        for text in ["", "kafka://x", "embedded", "redis://", "Memory"] {
            let error = text.parse::<BrokerAddress>().unwrap_err().to_string();
            assert!(error.contains("embedded:PATH"), "{error}");
        }
        assert_eq!("embedded:".parse::<BrokerAddress>(), Err(AddressError::NoPath("embedded:".into())));
        assert_eq!("rediss://a".parse::<BrokerAddress>(), Err(AddressError::Tls));
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in ["redis://:s3cret@h:1", "redis://u:s3cret@h:1", "redis://u:s3@cret@h:1"] {
            let address: BrokerAddress = url.parse().unwrap();
            for shown in [address.to_string(), format!("{address:?}")] {
                assert!(!shown.contains("cret") && shown.contains("@h:1"), "{shown}");
            }
        }
        let error = "reddis://u:s3cret@h".parse::<BrokerAddress>().unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
