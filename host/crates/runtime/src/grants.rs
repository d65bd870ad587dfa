//! Grants as this host gives them: held against what the operator allows, secrets read, all of it ready for instances.
//!
//! Invariant: what a secret is, is in no error, no `Debug` and no log line; only the guest gets it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio_rustls::rustls::ClientConfig;
use wasmtime_wasi_config::WasiConfigVariables;

use crate::Settings;
use crate::http::HttpAccess;
use crate::manifest::{Grants, SecretSource};

/// The longest secret.
const SECRET_MAX_BYTES: u64 = 64 << 10;
/// Shorter ones are not looked for in what a guest says: they would be found everywhere.
const MASKED_MIN_BYTES: usize = 6;

/// What stands in place of a secret.
pub(crate) const HIDDEN: &str = "***";

/// What instances of one handler get.
#[derive(Default)]
pub(crate) struct Granted {
    pub(crate) http: Option<Arc<HttpAccess>>,
    config: BTreeMap<String, String>,
    sources: BTreeMap<String, SecretSource>,
    /// As they were read last.
    secrets: Mutex<BTreeMap<String, String>>,
    pub(crate) clock: bool,
    pub(crate) random: bool,
}

/// Secrets that must not be seen in what a guest says. A guest that changes one before it says it is not caught.
#[derive(Default)]
pub(crate) struct Mask(Vec<String>);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask of {}", self.0.len())
    }
}

impl Mask {
    #[cfg(test)]
    pub(crate) fn of(secret: &str) -> Self {
        Self(vec![secret.into()])
    }

    /// The bytes without secrets, whether they are text or not.
    pub(crate) fn hide_bytes(&self, bytes: &Bytes) -> Bytes {
        self.0.iter().fold(bytes.clone(), |bytes, secret| replaced(bytes, secret.as_bytes()))
    }

    /// The text without secrets.
    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.iter().fold(Cow::Borrowed(text), |text, secret| {
            if text.contains(secret.as_str()) { Cow::Owned(text.replace(secret.as_str(), HIDDEN)) } else { text }
        })
    }
}

/// `secret` is not empty: a mask has no short ones.
fn replaced(bytes: Bytes, secret: &[u8]) -> Bytes {
    let mut rest = &bytes[..];
    let mut without = Vec::new();
    while let Some(at) = rest.windows(secret.len()).position(|window| window == secret) {
        without.extend_from_slice(&rest[..at]);
        without.extend_from_slice(HIDDEN.as_bytes());
        rest = &rest[at + secret.len()..];
    }
    if without.is_empty() {
        return bytes;
    }
    without.extend_from_slice(rest);
    without.into()
}

impl Granted {
    /// Holds the grants against what the operator allows, and reads the secrets. The errors are every reason.
    pub(crate) fn new(grants: &Grants, settings: &Settings, tls: &Arc<ClientConfig>) -> Result<Self, Vec<String>> {
        let mut refused = Vec::new();
        if let Some(allowed) = &settings.http_hosts {
            let wanted = grants.http.iter().flat_map(|grant| &grant.hosts);
            let over = wanted.filter(|host| !allowed.iter().any(|allowed| allowed.covers(host)));
            refused.extend(over.map(|host| {
                format!("the manifest grants HTTP to {host}, which this host's runtime.http_hosts does not allow")
            }));
        }
        let mut secrets = BTreeMap::new();
        for (name, source) in &grants.secrets {
            match read_secret(source, settings) {
                Ok(secret) => drop(secrets.insert(name.clone(), secret)),
                Err(why) => refused.push(format!("the manifest's grants.secrets.{name}: {why}")),
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        let http =
            (!grants.http.is_empty()).then(|| Arc::new(HttpAccess { grants: grants.http.clone(), tls: tls.clone() }));
        Ok(Self {
            http,
            config: grants.config.clone(),
            sources: grants.secrets.clone(),
            secrets: Mutex::new(secrets),
            clock: grants.clock,
            random: grants.random,
        })
    }

    /// Configuration and secrets for a new instance, and what must not be seen of them. Secrets are read again; one that
    /// cannot be is as it was.
    pub(crate) fn values(&self, settings: &Settings) -> (WasiConfigVariables, Arc<Mask>) {
        let mut values = WasiConfigVariables::new();
        for (name, value) in &self.config {
            values.insert(name, value);
        }
        if self.sources.is_empty() {
            return (values, Arc::default());
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, source) in &self.sources {
            match read_secret(source, settings) {
                Ok(secret) => drop(secrets.insert(name.clone(), secret)),
                Err(why) => tracing::warn!("the secret {name} is as it was read before: {why}"),
            }
        }
        for (name, secret) in secrets.iter() {
            values.insert(name, secret);
        }
        let mut masked: Vec<_> = secrets.values().filter(|secret| secret.len() >= MASKED_MIN_BYTES).cloned().collect();
        // One may be a part of another.
        masked.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        (values, Arc::new(Mask(masked)))
    }
}

fn read_secret(source: &SecretSource, settings: &Settings) -> Result<String, String> {
    match source {
        SecretSource::Env(variable) => {
            let prefix = &settings.secrets_env_prefix;
            if prefix.is_empty() {
                return Err("this host gives no variable as a secret (runtime.secrets_env_prefix is empty)".into());
            }
            if !variable.starts_with(prefix.as_str()) {
                return Err(format!("{variable} does not start with {prefix} (runtime.secrets_env_prefix)"));
            }
            let secret = std::env::var(variable);
            secret.map_err(|_| format!("the host has no variable {variable}, or it is no text"))
        }
        SecretSource::File(path) => {
            let Some(dir) = &settings.secrets_dir else {
                return Err("this host gives no file as a secret (runtime.secrets_dir is not set)".into());
            };
            read_within(dir, path).map_err(|why| format!("{}: {why}", path.display()))
        }
    }
}

fn read_within(dir: &Path, path: &Path) -> Result<String, String> {
    let dir = fs::canonicalize(dir).map_err(|error| format!("the folder of runtime.secrets_dir: {error}"))?;
    // Links are followed first: they are how secrets are mounted, and how one would get out.
    let file = fs::canonicalize(dir.join(path)).map_err(|error| error.to_string())?;
    if !file.starts_with(&dir) {
        return Err("it is not in the folder of runtime.secrets_dir".into());
    }
    if !fs::metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    let opened = File::open(&file).map_err(|error| error.to_string())?;
    opened.take(SECRET_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > SECRET_MAX_BYTES {
        return Err(format!("it has more than {SECRET_MAX_BYTES} bytes"));
    }
    let mut secret = String::from_utf8(bytes).map_err(|_| "it is no text")?;
    // Editors and `echo` end a file with a line end.
    if secret.ends_with('\n') {
        secret.pop();
        if secret.ends_with('\r') {
            secret.pop();
        }
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("secrets");
        fs::create_dir_all(dir.join("..data")).unwrap();
        fs::write(dir.join("..data/token"), "hunter2\r\n").unwrap();
        fs::write(folder.path().join("outside"), "no").unwrap();
        std::os::unix::fs::symlink("..data/token", dir.join("token")).unwrap();
        std::os::unix::fs::symlink("../outside", dir.join("link")).unwrap();
        assert_eq!(read_within(&dir, Path::new("token")).unwrap(), "hunter2");
        assert_eq!(read_within(&dir, &dir.join("token")).unwrap(), "hunter2");
        for out in ["../outside", "link", "/etc/passwd", "..data", "/dev/zero"] {
            assert!(read_within(&dir, Path::new(out)).is_err(), "{out}");
        }
    }

    #[test]
    fn a_mask_hides_the_longer_secret_first() {
        let mask = Mask(vec!["secret-longer".into(), "secret".into()]);
        assert_eq!(mask.hide("a secret-longer b secret c"), "a *** b *** c");
        assert!(matches!(mask.hide("nothing"), Cow::Borrowed(_)));
        assert_eq!(&mask.hide_bytes(&Bytes::from_static(b"a secret-longersecret c\xff"))[..], b"a ****** c\xff");
        assert_eq!(&mask.hide_bytes(&Bytes::from_static(b"nothing\xff"))[..], b"nothing\xff");
    }
}
