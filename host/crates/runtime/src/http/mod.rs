//! Outgoing HTTP, as far as a manifest grants it.
//!
//! A request passes three gates: the grant (host, port, method), the number that a call may send, and the addresses that the
//! host's name leads to. The connection goes to an address that was checked; the name is not looked up twice. Redirects are
//! not followed: the guest gets them, and asks for the next host by itself.

mod body;
mod send;
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

pub(crate) use send::tls;

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
        Self { access, limits, counters, log, left: 0, under_way: Arc::new(()) }
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
        self.counters.http_requests.fetch_add(1, Relaxed);
        let (limits, log, counters) = (self.limits, self.log.clone(), self.counters.clone());
        let under_way = self.under_way.clone();
        Box::new(async move {
            let sent = send::send(target, &access.tls, limits, request, options.unwrap_or_default(), under_way).await;
            if let Err(Error::DestinationIpProhibited) = &sent {
                count(&counters.denied);
                log.denied("a granted host's name leads only to addresses that its grant does not reach");
            }
            sent
        })
    }
}

/// Boxes a future of what a connection still has to do.
fn io(future: impl Future<Output = Result<(), Error>> + Send + 'static) -> Io {
    Box::new(Pin::from(Box::new(future)))
}
