//! Files that change while a host runs: tokens and certificates. Looked at now and then; what is wrong in a new one leaves
//! the old one in force, and is said in the log once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use tokio::sync::watch;
use tracing::{error, info};

use super::super::tokens::Tokens;
use super::gate::Gate;
use super::{ServeError, listener};
use crate::config::TlsFiles;

/// The file of tokens, read and checked.
pub(super) async fn read_tokens(path: &Path) -> Result<(Tokens, Vec<u8>), ServeError> {
    let wrong = |why: String| ServeError::Tokens { path: path.into(), why };
    let bytes = tokio::fs::read(path).await.map_err(|error| wrong(error.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong("it is not UTF-8".into()))?;
    let tokens = Tokens::parse(text).map_err(|error| wrong(error.to_string()))?;
    Ok((tokens, bytes))
}

/// What is followed.
pub(super) struct Follower {
    pub(super) interval: Duration,
    pub(super) tokens: Option<FollowedTokens>,
    pub(super) tls: Option<FollowedTls>,
    pub(super) gate: Arc<Gate>,
}

pub(super) struct FollowedTokens {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) current: watch::Sender<Arc<Tokens>>,
}

pub(super) struct FollowedTls {
    pub(super) files: TlsFiles,
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) current: RustlsConfig,
}

impl Follower {
    pub(super) async fn run(mut self) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(tokens) = &mut self.tokens {
                tokens.look().await;
            }
            if let Some(tls) = &mut self.tls {
                tls.look().await;
            }
            self.gate.forget_idle_callers();
        }
    }
}

impl FollowedTokens {
    async fn look(&mut self) {
        // A file that is being replaced may be away for a moment.
        let Ok(bytes) = tokio::fs::read(&self.path).await else { return };
        if bytes == self.bytes {
            return;
        }
        self.bytes = bytes;
        match read_tokens(&self.path).await {
            Ok((tokens, bytes)) => {
                info!(tokens = tokens.len(), file = %self.path.display(), "the tokens were read again");
                self.bytes = bytes;
                self.current.send_replace(Arc::new(tokens));
            }
            Err(error) => error!("{error}; the tokens that were read before stay in force"),
        }
    }
}

impl FollowedTls {
    pub(super) async fn new(files: TlsFiles, current: RustlsConfig) -> Self {
        let bytes = both(&files).await;
        Self { files, bytes, current }
    }

    async fn look(&mut self) {
        let bytes = both(&self.files).await;
        if bytes.is_none() || bytes == self.bytes {
            return;
        }
        self.bytes = bytes;
        match listener::tls(&self.files).await {
            Ok(fresh) => {
                self.current.reload_from_config(fresh.get_inner());
                info!(file = %self.files.cert.display(), "the certificate was read again");
            }
            Err(error) => error!("{error}; the certificate that was read before stays in force"),
        }
    }
}

/// What stands in both files; none while one of them is away.
async fn both(files: &TlsFiles) -> Option<Vec<u8>> {
    let mut bytes = tokio::fs::read(&files.cert).await.ok()?;
    bytes.extend(tokio::fs::read(&files.key).await.ok()?);
    Some(bytes)
}
