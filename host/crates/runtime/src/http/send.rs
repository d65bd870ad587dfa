//! Sending one request that was permitted: look up, check the addresses, connect, ask.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions};

use super::body::ResponseBody;
use super::{Body, Io, Target, io};
use crate::limits::Limits;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How this host speaks TLS: with the certificates of the public authorities.
pub(crate) fn tls() -> Result<Arc<ClientConfig>, String> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The shorter of what the guest asks for and what the host allows.
fn within(wanted: Option<Duration>, max_ms: u64) -> Duration {
    let max = Duration::from_millis(max_ms);
    wanted.map_or(max, |wanted| wanted.clamp(Duration::from_millis(1), max))
}

pub(super) async fn send(
    target: Target,
    tls: &Arc<ClientConfig>,
    limits: Limits,
    mut request: Request<Body>,
    options: RequestOptions,
    under_way: Arc<()>,
) -> Result<(Response<Body>, Io), Error> {
    let connect = within(options.connect_timeout, limits.http_connect_max_ms);
    let stream = timeout(connect, connect_to(&target, tls)).await.map_err(|_| Error::ConnectionTimeout)??;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;

    // The first line of a request to a server, unlike one to a proxy, has no host in it.
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = Uri::try_from(path).map_err(|_| Error::HttpRequestUriInvalid)?;
    // One request a connection.
    request.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));

    let mut connection = Box::pin(connection);
    let wait = within(options.first_byte_timeout, limits.http_wait_max_ms);
    let mut is_over = false;
    let answered = async {
        let mut sent = std::pin::pin!(sender.send_request(request));
        tokio::select! {
            biased;
            answer = &mut sent => answer,
            // The connection works only while it is polled; one that has ended may have brought the answer.
            ended = &mut connection => {
                is_over = true;
                match ended {
                    Ok(()) => sent.await,
                    Err(error) => Err(error),
                }
            }
        }
    };
    let response = timeout(wait, answered).await.map_err(|_| Error::ConnectionReadTimeout)??;

    let between = within(options.between_bytes_timeout, limits.http_wait_max_ms);
    let max_bytes = limits.http_response_max_bytes;
    let rest = under_way.clone();
    let response = response.map(|body| ResponseBody::new(body, max_bytes, between, under_way).boxed_unsync());
    let work = io(async move {
        let ended = if is_over { Ok(()) } else { connection.await.map_err(Error::from) };
        drop(rest);
        ended
    });
    Ok((response, work))
}

async fn connect_to(target: &Target, tls: &Arc<ClientConfig>) -> Result<Box<dyn Stream>, Error> {
    let stream = connect_checked(target).await?;
    if !target.is_tls {
        return Ok(Box::new(stream));
    }
    let bare = target.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|_| Error::HttpRequestUriInvalid)?;
    let stream = TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(Error::Tls)?;
    Ok(Box::new(stream))
}

/// Connects to the first address that answers, of those that the grant reaches.
async fn connect_checked(target: &Target) -> Result<TcpStream, Error> {
    let lookup = format!("{}:{}", target.host, target.port);
    let found = tokio::net::lookup_host(lookup).await.map_err(|_| Error::DnsError { rcode: None, info_code: None })?;
    let mut allowed: Vec<SocketAddr> = found.collect();
    let any = !allowed.is_empty();
    allowed.retain(|address| target.reach.allows(address.ip()));
    if any && allowed.is_empty() {
        return Err(Error::DestinationIpProhibited);
    }
    let mut last = Error::DestinationNotFound;
    for address in allowed {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Error::Connect(error),
        }
    }
    Err(last)
}
