//! What travels between client and host: JSON, every shape here, by what it is for.

mod change;
mod look;
mod paths;
mod publish;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::RefusedHandler;

pub use change::{
    AbandonRequest, ByRequest, HeadRequest, ModuleQuery, OperationAnswer, OperationRequest, RegisterAnswer,
    RegisterRequest, RollbackRequest,
};
pub use look::{
    AuditQuery, DeadLettersQuery, HaltedQuery, HandlersAnswer, HeadsAnswer, HeadsQuery, KeyQuery, MembersAnswer,
    PageQuery, PartitionsQuery, PausedAnswer, RecordingQuery,
};
pub use paths::{
    ActionPath, CategoryPath, GroupPath, HandlerPath, HashPath, LetterActionPath, LetterPath, RevisionPath,
};
pub use publish::{EventAnswer, EventBody, EventsAnswer, EventsQuery, PublishLine, PublishQuery};

/// Answer of every request that failed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// One line for the operator.
    pub error: String,
    /// What the caller can do.
    pub kind: ErrorKind,
    /// With [`ErrorKind::Refused`] of a registration: who is refused, and every reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedHandler>,
    /// Of a publishing request: what became of each event, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventAnswer>,
}

/// What the caller of a failed request can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The broker is away: try again.
    Unavailable,
    /// What was sent is not accepted: change it.
    Refused,
    /// A handler is refused by the rules: change it, or what it conflicts with.
    NotAccepted,
    /// There is no such thing.
    Unknown,
    /// It is not as it was expected to be; nothing was changed: look again.
    Conflict,
    /// A token is needed, or the one that was shown is unknown.
    Unauthorized,
    /// The token is not good for it.
    Forbidden,
    /// Too much at once: wait as long as `Retry-After` says.
    TooMany,
    /// Anything else.
    Failed,
}

/// Answer of `/health/…`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HealthAnswer {
    /// `live`, `started`, `ready`.
    pub status: String,
}
