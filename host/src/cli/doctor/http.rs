//! The HTTP API as it is configured: who reaches it, and whether its secrets are safe.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use keyrail::config::{HttpConfig, Listen};

use super::Finding;

/// Others than the owner may read or write.
const OTHERS: u32 = 0o077;

pub(super) fn all(http: &HttpConfig) -> Vec<Finding> {
    let mut findings = vec![listen(http)];
    findings.extend(http.tokens_file().map(|file| secret("tokens", "http.tokens_file", file)));
    findings.extend(http.tls_files().map(|files| secret("certificate", "http.tls_key_file", &files.key)));
    findings
}

fn listen(http: &HttpConfig) -> Finding {
    const NAME: &str = "http";
    let tokens = if http.tokens_file().is_some() { "with tokens" } else { "without tokens" };
    match http.listen() {
        None | Some(Listen::Off) => Finding::ok(NAME, "a host serves no HTTP over TCP"),
        Some(Listen::Auto) => Finding::ok(NAME, format!("a host listens on loopback, {tokens}")),
        Some(Listen::At(at)) if !at.ip().is_loopback() && http.tls_files().is_none() => Finding::warning(
            NAME,
            format!("a host listens on {at} without TLS: whoever sees the traffic has the tokens"),
            "set http.tls_cert_file and http.tls_key_file, or let a proxy that speaks TLS be the only one that reaches it",
        ),
        Some(Listen::At(at)) => Finding::ok(NAME, format!("a host listens on {at}, {tokens}")),
    }
}

/// Whether a file that is secret can be read, and by its owner alone.
fn secret(check: &str, setting: &str, file: &Path) -> Finding {
    let shown = file.display();
    let mode = match fs::File::open(file).and_then(|opened| opened.metadata()) {
        Ok(found) => found.permissions().mode(),
        Err(error) => {
            return Finding::failed(check, format!("{setting} {shown}: {error}"), "name a file that a host can read");
        }
    };
    if mode & OTHERS != 0 {
        return Finding::warning(
            check,
            format!("{setting} {shown} can be read or changed by others ({:o})", mode & 0o777),
            format!("chmod 600 {shown}"),
        );
    }
    Finding::ok(check, format!("{shown} is its owner's alone"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Outcome;
    use super::*;

    #[test]
    fn what_others_could_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        let http = |listen: &str| HttpConfig {
            listen: listen.into(),
            tokens_file: file.display().to_string(),
            ..HttpConfig::default()
        };
        let outcomes = |listen: &str| all(&http(listen)).iter().map(|finding| finding.outcome).collect::<Vec<_>>();
        assert_eq!(outcomes("auto"), [Outcome::Ok, Outcome::Failed], "there is no file");
        fs::write(&file, "x").unwrap();
        for (mode, outcome) in [(0o644, Outcome::Warning), (0o660, Outcome::Warning), (0o600, Outcome::Ok)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(outcomes("0.0.0.0:7411"), [Outcome::Warning, outcome], "{mode:o}");
        }
        assert_eq!(outcomes("127.0.0.1:7411"), [Outcome::Ok, Outcome::Ok]);
    }
}
