//! What every request over TCP passes before a route sees it: whose page sent it, whose token it carries, how often, how much.
//!
//! Invariant: nothing is read of the body of a request whose caller is not known and allowed.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::{Semaphore, watch};

use super::super::caller::Caller;
use super::super::tokens::Tokens;
use super::super::wire::ErrorKind;
use super::body::{self, Held};
use super::failed::Failed;
use crate::config::HttpConfig;

/// What guards the routes.
pub(super) struct Gate {
    /// None if no tokens are asked for.
    pub(super) tokens: Option<watch::Receiver<Arc<Tokens>>>,
    limiter: Option<DefaultKeyedRateLimiter<String>>,
    /// Names under which a browser may reach this host; only asked for where there are no tokens.
    hosts: Vec<String>,
    pub(super) bodies: Arc<Semaphore>,
    pub(super) body_timeout: Duration,
}

impl Gate {
    pub(super) fn new(config: &HttpConfig, tokens: Option<watch::Receiver<Arc<Tokens>>>, at: SocketAddr) -> Self {
        let mut hosts: Vec<_> = ["localhost".into(), "127.0.0.1".into(), "[::1]".into(), host_of(at.ip())].into();
        hosts
            .extend(config.allowed_hosts.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_string));
        Self {
            tokens,
            limiter: NonZeroU32::new(config.requests_per_s_max)
                .map(|per_s| RateLimiter::keyed(Quota::per_second(per_s))),
            hosts,
            bodies: Arc::new(Semaphore::new(body::units(config.bodies_max_bytes))),
            body_timeout: Duration::from_millis(config.body_timeout_ms),
        }
    }

    /// Forgets callers that have not been seen for a while.
    pub(super) fn forget_idle_callers(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }

    /// A page of a foreign site can make a browser send requests to a loopback address: with its own name as the host
    /// (DNS rebinding), or with the site named as the origin. Tokens make both harmless, since no page of a foreign site
    /// has one.
    fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let is_own = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(without_port(host)));
        if text(header::HOST).is_some_and(|host| !is_own(host)) {
            return false;
        }
        text(header::ORIGIN).is_none_or(|origin| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            host.is_some_and(|host| is_own(host) && Some(host) == text(header::HOST))
        })
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Failed> {
        let Some(tokens) = &self.tokens else {
            return if self.is_own_page(headers) { Ok(Caller::Local) } else { Err(foreign_page()) };
        };
        let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(Caller::Nobody) };
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let tokens = tokens.borrow().clone();
        match token.and_then(|token| tokens.holder(token)) {
            Some(holder) => Ok(Caller::Holder(holder.clone())),
            None => {
                Err(Failed::unauthorized("the token is unknown or has expired; ask who runs this host for another"))
            }
        }
    }

    /// How long the caller should wait, if it asked too often.
    fn too_often(&self, caller: &Caller, from: SocketAddr) -> Option<Duration> {
        let limiter = self.limiter.as_ref()?;
        let key = caller.name().map_or_else(|| network_of(from.ip()), |name| format!("token {name}"));
        let until = limiter.check_key(&key).err()?;
        Some(until.wait_time_from(DefaultClock::default().now()))
    }
}

/// The layer.
pub(super) async fn pass(
    State(gate): State<Arc<Gate>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match gate.caller(request.headers()) {
        Ok(caller) => caller,
        Err(failed) => {
            // Guessing is limited as well.
            return match gate.too_often(&Caller::Nobody, from) {
                Some(wait) => too_many(wait).into_response(),
                None => failed.into_response(),
            };
        }
    };
    if let Some(wait) = gate.too_often(&caller, from) {
        return too_many(wait).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The layer of routes that take a whole body: it has to arrive in time, and what is in memory of all bodies is bounded.
pub(super) async fn hold_body(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let held = Held::default();
    let request = request.map(|body| body::guarded(body, gate.bodies.clone(), gate.body_timeout, held.clone()));
    let response = next.run(request).await;
    // The bytes are gone with the request.
    drop(held);
    response
}

/// The layer of routes that take a body as it comes, a part at a time: it has to end in time.
pub(super) async fn time_body(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    // Its parts are not kept, so they take no room from others.
    let room = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let request = request.map(|body| body::guarded(body, room, gate.body_timeout, Held::default()));
    next.run(request).await
}

fn too_many(wait: Duration) -> Failed {
    let text = "too many requests; send fewer, with more events in each, or raise http.requests_per_s_max".to_string();
    Failed::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::TooMany, text).retry_after(wait)
}

fn foreign_page() -> Failed {
    let text = "a page of another site cannot use this host; if the name is its own, add it to http.allowed_hosts, or \
                ask for tokens with http.tokens_file";
    Failed::new(StatusCode::FORBIDDEN, ErrorKind::Forbidden, text.into())
}

/// Addresses of one IPv6 network are one caller: each has more than anybody can count.
fn network_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn gate(change: impl FnOnce(&mut HttpConfig)) -> Gate {
        let mut config = HttpConfig::default();
        change(&mut config);
        Gate::new(&config, None, "127.0.0.1:7411".parse().unwrap())
    }

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        headers.extend(origin.map(|origin| (header::ORIGIN, origin.parse().unwrap())));
        headers
    }

    #[test]
    fn a_foreign_page_is_not_answered_without_tokens() {
        let gate = gate(|config| config.allowed_hosts = "keyrail.internal, other".into());
        for (host, origin) in [
            ("127.0.0.1:7411", None),
            ("localhost:9", Some("http://localhost:9")),
            ("[::1]:7411", Some("https://[::1]:7411")),
            ("KEYRAIL.internal", Some("http://KEYRAIL.internal")),
            ("other:80", None),
        ] {
            assert!(gate.is_own_page(&headers(host, origin)), "{host} {origin:?}");
        }
        for (host, origin) in [
            ("evil.example:7411", None),
            ("127.0.0.1:7411", Some("http://evil.example")),
            ("127.0.0.1:7411", Some("http://127.0.0.1:8080")),
            ("127.0.0.1:7411", Some("null")),
            ("127.0.0.1.evil.example", None),
            ("localhost.evil:80", None),
        ] {
            assert!(!gate.is_own_page(&headers(host, origin)), "{host} {origin:?}");
        }
    }

    #[test]
    fn callers_are_limited_each_for_itself() {
        let gate = gate(|config| config.requests_per_s_max = 2);
        let from = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
        for _ in 0..2 {
            assert_eq!(gate.too_often(&Caller::Local, from("10.0.0.1")), None);
            assert_eq!(gate.too_often(&Caller::Local, from("2001:db8::1")), None);
        }
        assert!(gate.too_often(&Caller::Local, from("10.0.0.1")).unwrap() <= Duration::from_secs(1));
        assert!(gate.too_often(&Caller::Local, from("::ffff:10.0.0.1")).is_some());
        assert!(gate.too_often(&Caller::Local, from("2001:db8::2")).is_some());
        assert_eq!(gate.too_often(&Caller::Local, from("10.0.0.2")), None);
    }
}
