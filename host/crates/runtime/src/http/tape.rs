//! Where the requests go that a guest is permitted: into the network, or to a tape that keeps what is asked and answered, or
//! that answers.
//!
//! Invariant: whatever the route, a request has passed its grants and limits before; and an instance that plays asks nobody.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use wasmtime_wasi_http::Error;

use super::body::{self, KeptBody};
use super::exchange::{HttpAnswer, HttpExchange, HttpFault, HttpRequest, HttpResponse};
use super::{Body, Io, Sending, io};
use crate::grants::Mask;

/// The longest body of a request that is kept, and compared.
pub(super) const REQUEST_KEPT_MAX_BYTES: u64 = 8 << 20;
/// What is shown of a body where it differs.
const SHOWN_MAX_CHARS: usize = 120;

/// How the requests of an instance are answered.
#[derive(Debug, Clone, Default)]
pub enum HttpRoute {
    /// By who is asked.
    #[default]
    Network,
    /// By who is asked, and it is kept. A request is sent when its body is whole, and answered when the answer is.
    Recorded(HttpRecorder),
    /// By what was kept; nobody is asked.
    Played(HttpPlayer),
}

/// Keeps what is asked and answered, in the order in which it was asked. One for each call.
#[derive(Debug, Clone, Default)]
pub struct HttpRecorder(Arc<Mutex<Vec<HttpExchange>>>);

/// Answers with what was kept, in its order. One for each call.
#[derive(Debug, Clone)]
pub struct HttpPlayer(Arc<Mutex<Playing>>);

#[derive(Debug)]
struct Playing {
    kept: Vec<HttpExchange>,
    /// How many requests there were.
    asked: usize,
    differences: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpRecorder {
    /// What was kept. A request that is still under way is without an answer.
    pub fn exchanges(&self) -> Vec<HttpExchange> {
        lock(&self.0).clone()
    }

    /// A request takes its place, before anything is done for it.
    pub(super) fn begin(&self, request: &Request<Body>, mask: &Mask) -> usize {
        let request = HttpRequest::of_request(request, mask);
        let mut kept = lock(&self.0);
        kept.push(HttpExchange { request, answer: HttpAnswer::Unanswered });
        kept.len() - 1
    }

    fn keep(&self, nth: usize, keep: impl FnOnce(&mut HttpExchange)) {
        keep(&mut lock(&self.0)[nth]);
    }

    /// Sends the request at this place.
    pub(super) async fn send(
        self,
        nth: usize,
        sending: Sending,
        request: Request<Body>,
        mask: Arc<Mask>,
    ) -> Result<(Response<Body>, Io), Error> {
        let under_way = sending.under_way.clone();
        let fault = |error: Error| {
            let fault = HttpFault::from(&error);
            self.keep(nth, |exchange| exchange.answer = HttpAnswer::Fault(fault));
            // What a replay will give, so that the two are alike.
            Error::from(fault)
        };
        let (head, asked) = request.into_parts();
        let hint = http_body::Body::size_hint(&asked);
        let asked = body::whole_request(asked, REQUEST_KEPT_MAX_BYTES).await.map_err(fault)?;
        self.keep(nth, |exchange| exchange.request.body = mask.hide_bytes(&asked));
        let request = Request::from_parts(head, KeptBody::of_request(asked, hint).boxed());
        let (response, connection) = sending.send(request).await.map_err(fault)?;
        let (head, answer) = response.into_parts();
        let response = Response::from_parts(head, body::whole(answer, connection).await);
        let answer = HttpAnswer::Response(HttpResponse::of(&response, &mask));
        self.keep(nth, |exchange| exchange.answer = answer);
        let response = response.map(|whole| KeptBody::of_response(whole.bytes, whole.broke_off, under_way).boxed());
        Ok((response, io(async { Ok(()) })))
    }
}

impl HttpPlayer {
    /// With the answers for one call.
    pub fn new(kept: Vec<HttpExchange>) -> Self {
        Self(Arc::new(Mutex::new(Playing { kept, asked: 0, differences: vec![] })))
    }

    /// After the call: what it asked otherwise than what was kept, a sentence each. What it did not ask is a difference too, unless there
    /// was another before it.
    pub fn differences(&self) -> Vec<String> {
        let playing = lock(&self.0);
        let mut differences = playing.differences.clone();
        if differences.is_empty() {
            let left = playing.kept.iter().enumerate().skip(playing.asked);
            differences.extend(
                left.map(|(nth, exchange)| format!("call {}, {}, was not made", nth + 1, name(&exchange.request))),
            );
        }
        differences
    }

    fn differs(&self, difference: String) -> Error {
        let error = Error::InternalError(Some(format!("keyrail replay has no answer for this request: {difference}")));
        lock(&self.0).differences.push(difference);
        error
    }

    /// A request takes its place, and is held against what was kept there.
    pub(super) fn begin(&self, request: &Request<Body>, mask: &Mask) -> Result<(usize, HttpExchange), Error> {
        let asks = HttpRequest::of_request(request, mask);
        let (nth, kept) = {
            let mut playing = lock(&self.0);
            let nth = playing.asked;
            playing.asked += 1;
            (nth + 1, playing.kept.get(nth).cloned())
        };
        match kept {
            None => Err(self.differs(format!("call {nth} is {}, and no such call was recorded", name(&asks)))),
            Some(kept) if kept.request.method != asks.method || kept.request.url != asks.url => {
                let recorded = name(&kept.request);
                Err(self.differs(format!("call {nth} is {}, and {recorded} was recorded", name(&asks))))
            }
            Some(kept) => Ok((nth, kept)),
        }
    }

    /// Answers the request at this place, once its body is there and as it was.
    pub(super) async fn answer(
        self,
        (nth, kept): (usize, HttpExchange),
        request: Request<Body>,
        mask: Arc<Mask>,
        under_way: Arc<()>,
    ) -> Result<(Response<Body>, Io), Error> {
        let body = body::whole_request(request.into_body(), REQUEST_KEPT_MAX_BYTES).await;
        let response = match kept.answer {
            // Whoever waited for it then was ended by its time, or went away by itself, and will again.
            HttpAnswer::Unanswered => return std::future::pending().await,
            // It may have failed because of its body.
            HttpAnswer::Fault(fault) if body.is_err() => return Err(fault.into()),
            HttpAnswer::Fault(fault) => Err(Error::from(fault)),
            HttpAnswer::Response(response) => Ok(response),
        };
        let body = mask.hide_bytes(&body?);
        if body != kept.request.body {
            let what = name(&kept.request);
            return Err(self.differs(format!("call {nth}, {what}, has {}", otherwise(&body, &kept.request.body))));
        }
        Ok((response?.played(under_way)?, io(async { Ok(()) })))
    }
}

fn name(request: &HttpRequest) -> String {
    format!("{} {}", request.method, request.url)
}

/// Two bodies from shortly before where they differ.
fn otherwise(is: &Bytes, was: &Bytes) -> String {
    const BEFORE_BYTES: usize = 20;
    let from = is.iter().zip(was.iter()).take_while(|(is, was)| is == was).count().saturating_sub(BEFORE_BYTES);
    let shown = |bytes: &Bytes| {
        let text = String::from_utf8_lossy(&bytes[from..]);
        let mut shown: String = text.chars().take(SHOWN_MAX_CHARS).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        shown
    };
    let mut text = String::from("another body");
    if from > 0 {
        // Writing to a String never fails.
        let _ = write!(text, ", from byte {from} on");
    }
    text + &format!(": {:?}, and {:?} was recorded", shown(is), shown(was))
}
