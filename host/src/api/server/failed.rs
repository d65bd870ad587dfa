//! Failed requests: a status, and `{"error": …, "kind": …}` by what the caller can do.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keyrail_broker::Error;

use super::super::wire::{ErrorBody, ErrorKind};
use crate::service::{InspectError, OperationError, RegisterError};

/// A failed request.
pub(in crate::api) struct Failed(StatusCode, ErrorBody);

impl Failed {
    pub(in crate::api) fn new(status: StatusCode, kind: ErrorKind, error: String) -> Self {
        Self(status, ErrorBody { error, kind, refused: vec![] })
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let (status, kind) = match &error {
            Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Unavailable),
            Error::Unusable(_) => (StatusCode::BAD_GATEWAY, ErrorKind::Unavailable),
            Error::Refused(_) => (StatusCode::CONFLICT, ErrorKind::Failed),
            Error::Corrupt(_) => (StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Failed),
        };
        Self::new(status, kind, error.to_string())
    }
}

impl From<RegisterError> for Failed {
    fn from(error: RegisterError) -> Self {
        let text = error.to_string();
        match error {
            RegisterError::Refused(refused) => {
                let body = ErrorBody { error: text, kind: ErrorKind::Refused, refused };
                Self(StatusCode::UNPROCESSABLE_ENTITY, body)
            }
            RegisterError::Contended => Self::new(StatusCode::CONFLICT, ErrorKind::Failed, text),
            RegisterError::Broker(error) => error.into(),
        }
    }
}

impl From<InspectError> for Failed {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::Broker(error) => error.into(),
            InspectError::Usage(text) => Self::new(StatusCode::BAD_REQUEST, ErrorKind::Refused, text),
            _ => Self::new(StatusCode::NOT_FOUND, ErrorKind::Unknown, error.to_string()),
        }
    }
}

impl From<OperationError> for Failed {
    fn from(error: OperationError) -> Self {
        let text = error.to_string();
        match error {
            OperationError::Usage(_) => Self::new(StatusCode::BAD_REQUEST, ErrorKind::Refused, text),
            OperationError::Unknown(_) => Self::new(StatusCode::NOT_FOUND, ErrorKind::Unknown, text),
            OperationError::Conflict(_) => Self::new(StatusCode::CONFLICT, ErrorKind::Conflict, text),
            OperationError::Refused(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorKind::NotAccepted, text),
            OperationError::Broker(error) => error.into(),
        }
    }
}

impl From<JsonRejection> for Failed {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), ErrorKind::Refused, rejection.body_text())
    }
}

impl From<QueryRejection> for Failed {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), ErrorKind::Refused, rejection.body_text())
    }
}
