//! Outgoing HTTP, as far as a manifest grants it.
//!
//! A request passes three gates: the grant (host, port, method), the number that a call may send, and the addresses that the
//! host's name leads to. The connection goes to an address that was checked; the name is not looked up twice. Redirects are
//! not followed: the guest gets them, and asks for the next host by itself.
//!
//! What is permitted takes a route: into the network, unless who made the instance has said otherwise ([`HttpRoute`]).

mod body;
mod exchange;
mod send;
mod tape;
#[cfg(test)]
mod tape_tests;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use tokio_rustls::rustls;
use wasmtime_wasi_http::{Error, RequestOptions, WasiHttpHooks};

use crate::limits::Limits;
use crate::log::Log;
use crate::manifest::{HttpGrant, Reach};
use crate::usage::{Counters, count};

pub use exchange::{HttpAnswer, HttpExchange, HttpFault, HttpRequest, HttpResponse};
pub(crate) use send::tls;
pub use tape::{HttpPlayer, HttpRecorder, HttpRoute};

type Body = UnsyncBoxBody<Bytes, Error>;
type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// What all instances of a handler share.
pub(crate) struct HttpAccess {
    pub(crate) grants: Vec<HttpGrant>,
    pub(crate) tls: Arc<rustls::ClientConfig>,
}

/// One instance's way out.
pub(crate) struct Outgoing {
    access: Option<Arc<HttpAccess>>,
    limits: Limits,
    counters: Arc<Counters>,
    log: Log,
    route: HttpRoute,
    /// Requests that the present call may still send; none while there is no call.
    left: u64,
    /// Cloned into each request: how many are still under way.
    under_way: Arc<()>,
}

/// Where a request goes.
#[derive(Debug, Clone)]
struct Target {
    host: String,
    port: u16,
    is_tls: bool,
    reach: Reach,
}

impl Outgoing {
    pub(crate) fn new(access: Option<Arc<HttpAccess>>, limits: Limits, counters: Arc<Counters>, log: Log) -> Self {
        Self { access, limits, counters, log, route: HttpRoute::Network, left: 0, under_way: Arc::new(()) }
    }

    /// Where what is permitted goes from now on.
    pub(crate) fn set_route(&mut self, route: HttpRoute) {
        self.route = route;
    }

    /// A call begins: it may send its number of requests.
    pub(crate) fn begin(&mut self) {
        self.left = self.limits.http_requests_max;
    }

    /// A call ends. Answers whether requests of it are still under way: then its instance must not get another event.
    pub(crate) fn end(&mut self) -> bool {
        self.left = 0;
        Arc::strong_count(&self.under_way) > 1
    }

    /// Where the request goes, or why it must not.
    fn permit(&mut self, request: &Request<Body>) -> Result<(Target, Arc<HttpAccess>), String> {
        let uri = request.uri();
        let is_tls = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let standard_port = if is_tls { 443 } else { 80 };
        let authority = uri.authority().ok_or("the request names no host")?;
        if authority.as_str().contains('@') {
            return Err("the request has a user name in its host".into());
        }
        let (host, port) = (authority.host().to_owned(), authority.port_u16().unwrap_or(standard_port));
        let asked = format!("{} to {host}:{port}", request.method());
        let access = self.access.clone().ok_or_else(|| format!("{asked} is not granted"))?;
        let of_method = access.grants.iter().filter(|grant| grant.methods.iter().any(|m| m.is(request.method())));
        let reaches =
            of_method.flat_map(|grant| &grant.hosts).filter_map(|host_| host_.admits(&host, port, standard_port));
        let reach = reaches.max().ok_or_else(|| format!("{asked} is not granted"))?;
        if self.left == 0 {
            let max = self.limits.http_requests_max;
            return Err(format!(
                "{asked} is over the {max} requests of one call (http_requests_max), or there is no call"
            ));
        }
        self.left -= 1;
        Ok((Target { host, port, is_tls, reach }, access))
    }

    fn sending(&self, target: Target, access: Arc<HttpAccess>, options: Option<RequestOptions>) -> Sending {
        self.counters.http_requests.fetch_add(1, Relaxed);
        Sending {
            target,
            access,
            limits: self.limits,
            options: options.unwrap_or_default(),
            log: self.log.clone(),
            counters: self.counters.clone(),
            under_way: self.under_way.clone(),
        }
    }
}

impl WasiHttpHooks for Outgoing {
    fn send_request(
        &mut self,
        request: Request<Body>,
        options: Option<RequestOptions>,
        _processed: Io,
    ) -> Box<dyn Future<Output = Result<(Response<Body>, Io), Error>> + Send> {
        let (target, access) = match self.permit(&request) {
            Ok(permitted) => permitted,
            Err(why) => {
                count(&self.counters.denied);
                self.log.denied(&why);
                return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
            }
        };
        match self.route.clone() {
            HttpRoute::Network => Box::new(self.sending(target, access, options).send(request)),
            HttpRoute::Recorded(recorder) => {
                let mask = self.log.mask();
                let nth = recorder.begin(&request, &mask);
                Box::new(recorder.send(nth, self.sending(target, access, options), request, mask))
            }
            HttpRoute::Played(player) => {
                let mask = self.log.mask();
                match player.begin(&request, &mask) {
                    Ok(kept) => Box::new(player.answer(kept, request, mask, self.under_way.clone())),
                    Err(differs) => Box::new(std::future::ready(Err(differs))),
                }
            }
        }
    }
}

/// A request that was permitted, on its way into the network.
struct Sending {
    target: Target,
    access: Arc<HttpAccess>,
    limits: Limits,
    options: RequestOptions,
    log: Log,
    counters: Arc<Counters>,
    under_way: Arc<()>,
}

impl Sending {
    async fn send(self, request: Request<Body>) -> Result<(Response<Body>, Io), Error> {
        let Self { target, access, limits, options, log, counters, under_way } = self;
        let sent = send::send(target, &access.tls, limits, request, options, under_way).await;
        if let Err(Error::DestinationIpProhibited) = &sent {
            count(&counters.denied);
            log.denied("a granted host's name leads only to addresses that its grant does not reach");
        }
        sent
    }
}

/// Boxes a future of what a connection still has to do.
fn io(future: impl Future<Output = Result<(), Error>> + Send + 'static) -> Io {
    Box::new(Pin::from(Box::new(future)))
}
