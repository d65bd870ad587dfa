//! Opening the broker that the configuration names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, OpenError};
use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::{Broker, Error};

use super::{Access, AccessError};
use crate::api::Client;
use crate::clock;
use crate::config::{BrokerAddress, Config};
use crate::service::Service;

/// How often a file that another command holds is tried again.
const OPEN_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// What a command needs of an embedded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It must be there: looking at nothing makes no file.
    Existing,
    /// It is made if it is not there.
    Create,
}

/// A way to the broker for a command that is not the host.
pub async fn open(config: &Config, need: Need) -> Result<Access, AccessError> {
    match &config.broker {
        BrokerAddress::Embedded(path) => open_file(config, path, need).await,
        BrokerAddress::Socket(path) => client(config, path),
        BrokerAddress::Host(url) => {
            Ok(Access::Host(Client::at_url(url, &config.client, &config.api, &config.publish)?))
        }
        BrokerAddress::Memory => Err(AccessError::Usage(
            "the memory broker lives inside one keyrail run; give embedded:PATH or redis://…, or socket:PATH of the \
             running host"
                .into(),
        )),
        BrokerAddress::Redis(_) => Ok(Access::Direct(service(config, open_broker(config).await?))),
    }
}

/// The broker itself, for the host.
pub async fn open_broker(config: &Config) -> Result<Arc<dyn Broker>, AccessError> {
    match &config.broker {
        BrokerAddress::Embedded(path) => {
            let deadline = clock::now_ms() + config.api.open_wait_ms;
            loop {
                match open_embedded(config, path).await {
                    Ok(broker) => return Ok(broker),
                    Err(OpenError::InUse(_)) if clock::now_ms() < deadline => {
                        tokio::time::sleep(OPEN_RETRY_INTERVAL).await;
                    }
                    Err(OpenError::InUse(_)) => {
                        return Err(AccessError::Unavailable(format!(
                            "{} is in use by another process; one host holds an embedded file: stop the other, or use Redis \
                             for several hosts",
                            path.display()
                        )));
                    }
                    Err(error) => return Err(AccessError::Unavailable(error.to_string())),
                }
            }
        }
        BrokerAddress::Memory => Ok(Arc::new(EmbeddedBroker::memory(embedded_settings(config)).map_err(Error::from)?)),
        BrokerAddress::Redis(url) => Ok(Arc::new(RedisBroker::connect(url, redis_settings(config)).await?)),
        BrokerAddress::Socket(_) | BrokerAddress::Host(_) => {
            Err(AccessError::Usage("that is another host; give keyrail run embedded:PATH, memory or redis://…".into()))
        }
    }
}

/// The file itself, or the host that holds it. Another command may hold it for a moment: then wait.
async fn open_file(config: &Config, path: &Path, need: Need) -> Result<Access, AccessError> {
    if need == Need::Existing && !path.exists() {
        return Err(AccessError::Unavailable(format!(
            "there is no file {}; make it with keyrail run or keyrail deploy, or name the broker with --broker",
            path.display()
        )));
    }
    let socket = BrokerAddress::socket_beside(path);
    let deadline = clock::now_ms() + config.api.open_wait_ms;
    loop {
        match open_embedded(config, path).await {
            Ok(broker) => return Ok(Access::Direct(service(config, broker))),
            Err(OpenError::InUse(_)) => {}
            Err(error) => return Err(AccessError::Unavailable(error.to_string())),
        }
        if tokio::net::UnixStream::connect(&socket).await.is_ok() {
            return client(config, &socket);
        }
        if clock::now_ms() >= deadline {
            let what = if socket.exists() { "nobody listens on its socket" } else { "there is no socket" };
            return Err(AccessError::Unavailable(format!(
                "{} is in use by another process, and {what} {}; wait for that process, or stop it",
                path.display(),
                socket.display()
            )));
        }
        tokio::time::sleep(OPEN_RETRY_INTERVAL).await;
    }
}

/// Opening reads and may repair the file: off the async threads.
async fn open_embedded(config: &Config, path: &Path) -> Result<Arc<dyn Broker>, OpenError> {
    let path = path.to_path_buf();
    let settings = embedded_settings(config);
    match tokio::task::spawn_blocking(move || EmbeddedBroker::open(&path, settings)).await {
        Ok(opened) => Ok(Arc::new(opened?)),
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

fn embedded_settings(config: &Config) -> EmbeddedSettings {
    EmbeddedSettings { retention: (&config.retention).into(), ..EmbeddedSettings::default() }
}

/// How this configuration talks to Redis.
pub fn redis_settings(config: &Config) -> RedisSettings {
    RedisSettings {
        response_timeout_ms: config.redis.response_timeout_ms,
        connect_timeout_ms: config.redis.connect_timeout_ms,
        retention: (&config.retention).into(),
        generation_floor: config.redis.generation_floor,
    }
}

fn client(config: &Config, socket: &Path) -> Result<Access, AccessError> {
    Ok(Access::Host(Client::new(socket, &config.api, &config.publish)?))
}

fn service(config: &Config, broker: Arc<dyn Broker>) -> Service {
    Service::new(broker, config.publish.clone()).with_view_ttl_ms(config.api.view_ttl_ms)
}
