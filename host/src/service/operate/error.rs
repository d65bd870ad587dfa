//! Why an operator's action was not taken, by what the operator can do.

use keyrail_broker::{Error, OperateError};

use super::super::InspectError;

/// Why nothing was done or shown.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// What was typed cannot be meant; the text says what can.
    #[error("{0}")]
    Usage(String),
    /// There is no such thing.
    #[error("{0}")]
    Unknown(String),
    /// It is not as it was expected to be: somebody was faster. Nothing was changed.
    #[error("{0}")]
    Conflict(String),
    /// A handler that the rules refuse, with every reason.
    #[error("{}", .0.join("; "))]
    Refused(Vec<String>),
    /// The broker.
    #[error(transparent)]
    Broker(#[from] Error),
}

impl From<InspectError> for OperationError {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::Broker(error) => Self::Broker(error),
            InspectError::Usage(text) => Self::Usage(text),
            InspectError::UnknownCategory { .. } | InspectError::UnknownGroup { .. } => {
                Self::Unknown(error.to_string())
            }
        }
    }
}

impl From<OperateError> for OperationError {
    fn from(error: OperateError) -> Self {
        match error {
            OperateError::Broker(error) => Self::Broker(error),
            OperateError::NoDeadLetter { .. } => Self::Unknown(format!("{error}; see keyrail dlq list")),
            OperateError::NotHead { .. } => Self::Conflict(error.to_string()),
        }
    }
}
