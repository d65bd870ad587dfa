//! What a handler may reach beyond its own state and outbox.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::HostPattern;

/// What is granted, each by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// Outgoing HTTP: a request is allowed if one of these allows it.
    pub http: Vec<HttpGrant>,
    /// Values, by the name that the handler reads them under.
    pub config: BTreeMap<String, String>,
    /// Where the host finds secrets, by the name that the handler reads them under.
    pub secrets: BTreeMap<String, SecretSource>,
    /// The real time instead of the event's.
    pub clock: bool,
    /// Real randomness instead of the event's.
    pub random: bool,
}

/// Hosts that may be asked, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpGrant {
    /// One of these.
    pub hosts: Vec<HostPattern>,
    /// With one of these.
    pub methods: Vec<HttpMethod>,
}

/// A method of HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpMethod(http::Method);

/// Where the host finds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretSource {
    /// A variable of the host's environment.
    Env(String),
    /// A file of the host, in the folder of secrets; a relative path is taken from there.
    File(PathBuf),
}

impl HttpMethod {
    /// A method in capitals. `CONNECT` is refused: it makes a tunnel to anywhere.
    pub fn parse(text: &str) -> Result<Self, String> {
        match http::Method::from_bytes(text.as_bytes()) {
            Ok(http::Method::CONNECT) => Err("the method CONNECT makes a tunnel, and is never granted".into()),
            Ok(method) if text.bytes().all(|byte| byte.is_ascii_uppercase()) => Ok(Self(method)),
            _ => Err(format!("{text:?} is no HTTP method; write it like \"GET\"")),
        }
    }

    pub(crate) fn is(&self, method: &http::Method) -> bool {
        self.0 == *method
    }
}

impl TryFrom<String> for HttpMethod {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<HttpMethod> for String {
    fn from(method: HttpMethod) -> Self {
        method.0.to_string()
    }
}
