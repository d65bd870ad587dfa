//! Failed requests: a status, and `{"error": …, "kind": …}` by what the caller can do.

use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{self, Operation};
use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keyrail_broker::Error;

use super::super::wire::{ErrorBody, ErrorKind, EventAnswer};
use super::body::{BodyFault, fault_in};
use crate::service::{InspectError, OperationError, RegisterError};

/// When to come back after a failure that passes by itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A failed request.
pub(in crate::api) struct Failed {
    status: StatusCode,
    body: ErrorBody,
    retry_after: Option<Duration>,
}

impl Failed {
    pub(in crate::api) fn new(status: StatusCode, kind: ErrorKind, error: String) -> Self {
        let passes = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        Self {
            status,
            body: ErrorBody { error, kind, refused: vec![], events: vec![] },
            retry_after: passes.then_some(RETRY_AFTER),
        }
    }

    /// When the caller may come back.
    pub(in crate::api) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// What became of each event of a publishing request.
    pub(in crate::api) fn with_events(mut self, events: Vec<EventAnswer>) -> Self {
        self.body.events = events;
        self
    }

    pub(in crate::api) fn unauthorized(error: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorKind::Unauthorized, error.into())
    }

    /// A request body that could not be read: why is somewhere in what the extractor says.
    fn unreadable(error: &(dyn std::error::Error + 'static), status: StatusCode, text: String) -> Self {
        match fault_in(error) {
            Some(fault @ BodyFault::TooSlow) => {
                Self::new(StatusCode::REQUEST_TIMEOUT, ErrorKind::Refused, fault.to_string())
            }
            Some(fault @ BodyFault::NoRoom) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::TooMany, fault.to_string())
            }
            None if status == StatusCode::PAYLOAD_TOO_LARGE => {
                let text = "the body is larger than a request of this kind may be (http.events_max_bytes, \
                            api.request_max_bytes, api.module_max_bytes); send several requests";
                Self::new(status, ErrorKind::Refused, text.into())
            }
            None => Self::new(status, ErrorKind::Refused, text),
        }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never "at once".
            let seconds = wait.as_millis().div_ceil(1_000).max(1) as u64;
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl OperationOutput for Failed {
    type Inner = ErrorBody;

    fn operation_response(ctx: &mut GenContext, operation: &mut Operation) -> Option<openapi::Response> {
        let mut response = Json::<ErrorBody>::operation_response(ctx, operation)?;
        response.description = "What is wrong, and what to do next".into();
        Some(response)
    }

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Vec<(Option<u16>, openapi::Response)> {
        Self::operation_response(ctx, operation).into_iter().map(|response| (None, response)).collect()
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
                let mut failed = Self::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorKind::Refused, text);
                failed.body.refused = refused;
                failed
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
        Self::unreadable(&rejection, rejection.status(), rejection.body_text())
    }
}

impl From<BytesRejection> for Failed {
    fn from(rejection: BytesRejection) -> Self {
        Self::unreadable(&rejection, rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Failed {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), ErrorKind::Refused, rejection.body_text())
    }
}
