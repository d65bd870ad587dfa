//! The way from a command to a broker: directly, or through the host that holds an embedded file.
//!
//! Commands do not know which of the two it is.

mod deploy;
mod open;
mod operate;

use futures::StreamExt;
use futures::stream::BoxStream;
use keyrail_broker::{Backlog, Error};
use tokio::sync::mpsc;

pub use open::{Need, open, open_broker, redis_settings};

use crate::api::Client;
use crate::service::{
    CatalogView, Cursor, Following, InspectError, OperationError, Outcome, Overview, Page, PublishOptions, RawLine,
    RefusedHandler, RegisterError, Registered, Registration, Report, Row, Search, Service, State, Tailed,
};

/// Rows in one page when the broker is opened directly.
const PAGE_MAX: usize = 1_000;

/// A way to a broker.
pub enum Access {
    /// This process has the broker open.
    Direct(Service),
    /// A host has it open; this is how it is reached.
    Host(Client),
}

/// Why a command could not do its work, by what its user can do.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The broker or the host is away, or cannot be used.
    #[error("{0}")]
    Unavailable(String),
    /// Handlers that the catalog refuses.
    #[error("{}", RegisterError::Refused(.0.clone()))]
    Refused(Vec<RefusedHandler>),
    /// A handler that the rules refuse.
    #[error("{0}")]
    NotAccepted(String),
    /// What was asked for cannot be meant, or not on a broker of that kind.
    #[error("{0}")]
    Usage(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl From<Error> for AccessError {
    fn from(error: Error) -> Self {
        match &error {
            Error::Unavailable(_) | Error::Unusable(_) => Self::Unavailable(error.to_string()),
            Error::Refused(_) | Error::Corrupt(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<RegisterError> for AccessError {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Refused(refused) => Self::Refused(refused),
            RegisterError::Contended => Self::Failed(error.to_string()),
            RegisterError::Broker(error) => error.into(),
        }
    }
}

impl From<InspectError> for AccessError {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::Broker(error) => error.into(),
            InspectError::Usage(text) => Self::Usage(text),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<OperationError> for AccessError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Usage(text) => Self::Usage(text),
            OperationError::Unknown(text) | OperationError::Conflict(text) => Self::Failed(text),
            OperationError::Refused(_) => Self::NotAccepted(error.to_string()),
            OperationError::Broker(error) => error.into(),
        }
    }
}

impl Access {
    /// Puts handlers into the catalog, all or none.
    pub async fn register(&self, handlers: Vec<Registration>) -> Result<Vec<Registered>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.register(&handlers).await?),
            Self::Host(client) => client.register(handlers).await,
        }
    }

    /// Publishes lines until they end or something stops it.
    pub async fn publish(
        &self,
        input: mpsc::Receiver<Vec<RawLine>>,
        options: PublishOptions,
        reports: mpsc::Sender<Report>,
    ) -> Outcome {
        match self {
            Self::Direct(service) => service.publish(input, options, reports).await,
            Self::Host(client) => client.publish(input, options, reports).await,
        }
    }

    /// One page of partitions.
    pub async fn partitions(
        &self,
        search: &Search,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<Row>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.partitions(search, parsed(cursor)?, limit.clamp(1, PAGE_MAX)).await?),
            Self::Host(client) => client.partitions(search, cursor, limit).await,
        }
    }

    /// The whole fleet at one glance.
    pub async fn overview(&self) -> Result<Overview, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.live().await?.overview.clone()),
            Self::Host(client) => client.overview().await,
        }
    }

    /// Follows what is published from now on. `queue_max_bytes` of it wait for a caller that is slow; of a host its own
    /// limit holds.
    pub async fn tail(
        &self,
        following: &Following,
        queue_max_bytes: usize,
    ) -> Result<BoxStream<'static, Result<Tailed, AccessError>>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.tail(following, queue_max_bytes).await?.map(Ok).boxed()),
            Self::Host(client) => client.tail(following).await,
        }
    }

    /// One page of a group's states.
    pub async fn states(&self, group: &str, cursor: Option<&str>) -> Result<Page<State>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.states(group, parsed(cursor)?, PAGE_MAX).await?),
            Self::Host(client) => client.states(group, cursor).await,
        }
    }

    /// What is left to do.
    pub async fn backlog(&self) -> Result<Backlog, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.backlog().await?),
            Self::Host(client) => client.backlog().await,
        }
    }

    /// What is registered.
    pub async fn catalog(&self) -> Result<CatalogView, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.catalog().await?),
            Self::Host(client) => client.catalog().await,
        }
    }
}

fn parsed(cursor: Option<&str>) -> Result<Cursor, AccessError> {
    let cursor = cursor.map_or(Ok(Cursor::default()), str::parse);
    cursor.map_err(|error| AccessError::Usage(error.to_string()))
}
