//! A connection that many tasks share and that mends itself.
//!
//! Calls of all partitions are pipelined over one socket. A call that times out or breaks answers
//! [`Error::Unavailable`]: it may have happened, and it is never repeated here. The socket is then given up, since a
//! silent network never says that it is gone; the next call opens another, one at a time, and not again right after a
//! failure.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, Value};

use rustix::time::{ClockId, clock_gettime};

use crate::Error;

/// Callers that arrive within this time after a failed attempt to connect share its answer.
const RECONNECT_PAUSE_MS: u64 = 100;
/// Commands that wait to be written; callers wait beyond it.
const PIPELINE_DEPTH: usize = 1_024;

/// How long to wait for the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) connect_ms: u64,
    pub(super) response_ms: u64,
}

/// Why a call failed, before it is told to anybody: function loading looks at the text.
#[derive(Debug)]
pub(super) struct Failure {
    code: Option<String>,
    text: String,
    kind: FailureKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    Away,
    Answer,
    Login,
}

impl Failure {
    fn of(error: &RedisError) -> Self {
        let code = error.code().map(str::to_string);
        let kind = match error.kind() {
            ErrorKind::AuthenticationFailed => FailureKind::Login,
            ErrorKind::Server(_) | ErrorKind::Extension => FailureKind::Answer,
            _ => FailureKind::Away,
        };
        let text = match error.detail() {
            Some(detail) => detail.to_string(),
            None => error.to_string(),
        };
        Self { code, text, kind }.sorted()
    }

    /// Answers that mean "not now", and those that mean "not you".
    fn sorted(mut self) -> Self {
        match self.code.as_deref().unwrap_or_default() {
            "LOADING" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "UNBLOCKED" => {
                self.kind = FailureKind::Away;
                self.text = format!("{} {}", self.code.as_deref().unwrap_or_default(), self.text);
            }
            "NOAUTH" | "WRONGPASS" => self.kind = FailureKind::Login,
            _ => {}
        }
        self
    }

    pub(super) fn is_missing_function(&self) -> bool {
        self.kind == FailureKind::Answer && self.text.contains("Function not found")
    }

    pub(super) fn is_full(&self) -> bool {
        self.code.as_deref() == Some("OOM")
    }

    pub(super) fn is_forbidden(&self) -> bool {
        self.code.as_deref() == Some("NOPERM")
    }

    pub(super) fn is_login(&self) -> bool {
        self.kind == FailureKind::Login
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Away => Self::Unavailable(failure.text),
            FailureKind::Login => Self::Unusable(format!(
                "Redis refuses the login: {}; correct the user and password in the broker's URL",
                failure.text
            )),
            FailureKind::Answer if failure.is_full() => Self::Refused(
                "Redis is full (maxmemory); settle or trim events, or raise maxmemory, and go on".to_string(),
            ),
            FailureKind::Answer => match failure.code.as_deref() {
                Some(code) if code != "ERR" => Self::Refused(format!("{code} {}", failure.text)),
                _ => Self::Refused(failure.text),
            },
        }
    }
}

#[derive(Default)]
struct Open {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure of an earlier one does not close the present one.
    serial: u64,
}

/// See the module.
pub(super) struct Connection {
    client: Client,
    config: AsyncConnectionConfig,
    open: Mutex<Open>,
    /// Held while connecting; holds when that failed last, and how.
    connecting: tokio::sync::Mutex<Option<(u64, String)>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens nothing yet.
    pub(super) fn new(client: Client, timeouts: Timeouts) -> Self {
        // The crate's own limit of 500 ms would cut off calls that a busy server still answers.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_millis(timeouts.connect_ms)))
            .set_response_timeout(Some(Duration::from_millis(timeouts.response_ms)))
            .set_pipeline_buffer_size(PIPELINE_DEPTH);
        Self { client, config, open: Mutex::default(), connecting: tokio::sync::Mutex::default() }
    }

    /// One command, one answer.
    pub(super) async fn call(&self, command: &Cmd) -> Result<Value, Failure> {
        let (mut connection, serial) = self.get().await?;
        let result = connection.send_packed_command(command).await;
        self.judge(result, serial)
    }

    /// Many commands in one go; the answers in order.
    pub(super) async fn call_all(&self, commands: &redis::Pipeline, count: usize) -> Result<Vec<Value>, Failure> {
        if count == 0 {
            return Ok(vec![]);
        }
        let (mut connection, serial) = self.get().await?;
        let values = connection.send_packed_commands(commands, 0, count).await;
        let values = self.judge(values.map(Value::Array), serial)?;
        match values {
            Value::Array(values) => {
                values.into_iter().map(|value| self.judge(Ok(value), serial)).collect::<Result<_, _>>()
            }
            _ => Ok(vec![]),
        }
    }

    fn judge(&self, result: redis::RedisResult<Value>, serial: u64) -> Result<Value, Failure> {
        let error = match result {
            Ok(Value::ServerError(error)) => RedisError::from(error),
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if error.is_io_error() || error.is_unrecoverable_error() {
            let mut open = self.lock();
            if open.serial == serial {
                open.connection = None;
            }
        }
        Err(Failure::of(&error))
    }

    async fn get(&self) -> Result<(MultiplexedConnection, u64), Failure> {
        match self.present() {
            Some(found) => Ok(found),
            // In a box, so that the calls of a connection that is there are small: each owner's call allocates its own.
            None => Box::pin(self.connect()).await,
        }
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, u64), Failure> {
        let mut failed = self.connecting.lock().await;
        if let Some(found) = self.present() {
            return Ok(found);
        }
        if let Some((when, text)) = failed.as_ref()
            && now_ms().saturating_sub(*when) < RECONNECT_PAUSE_MS
        {
            return Err(Failure { code: None, text: text.clone(), kind: FailureKind::Away });
        }
        match self.client.get_multiplexed_async_connection_with_config(&self.config).await {
            Ok(connection) => {
                *failed = None;
                let mut open = self.lock();
                open.serial += 1;
                open.connection = Some(connection.clone());
                Ok((connection, open.serial))
            }
            Err(error) => {
                let failure = Failure::of(&error);
                *failed = Some((now_ms(), failure.text.clone()));
                Err(failure)
            }
        }
    }

    fn present(&self) -> Option<(MultiplexedConnection, u64)> {
        let open = self.lock();
        open.connection.clone().map(|connection| (connection, open.serial))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Nothing panics while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Goes on while the machine is suspended.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}
