//! Serving routes over TCP, with TLS or without.
//!
//! Connections are counted, and each is given up that takes too long to say what it wants.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tower_http::add_extension::AddExtension;

use super::ServeError;
use crate::config::{DEFAULT_PORT, HttpConfig, Listen, TlsFiles};

/// Listens where the configuration says; none if nowhere.
pub(super) fn bind(config: &HttpConfig) -> Result<Option<(TcpListener, SocketAddr)>, ServeError> {
    let at = match config.listen() {
        None | Some(Listen::Off) => return Ok(None),
        Some(Listen::Auto) => SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
        Some(Listen::At(at)) => at,
    };
    let listener = TcpListener::bind(at).or_else(|error| match config.listen() {
        // Another host on this machine has it.
        Some(Listen::Auto) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        _ => Err(error),
    });
    let bound = listener.and_then(|listener| listener.local_addr().map(|at| (listener, at)));
    bound.map(Some).map_err(|error| ServeError::Address { at, error })
}

/// The certificate and its key, checked.
pub(super) async fn tls(files: &TlsFiles) -> Result<RustlsConfig, ServeError> {
    crate::tls::choose_cryptography();
    let read = RustlsConfig::from_pem_file(&files.cert, &files.key).await;
    let read = read.map_err(|error| ServeError::Certificate { files: files.clone(), error })?;
    // What is read so offers HTTP/2 as well, which is not spoken here: a client that took it would be cut off.
    let mut config = rustls::ServerConfig::clone(&read.get_inner());
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    read.reload_from_config(Arc::new(config));
    Ok(read)
}

/// A server that was started.
pub(super) struct Listening {
    pub(super) at: SocketAddr,
    handle: Handle<SocketAddr>,
    task: JoinHandle<()>,
}

impl Listening {
    pub(super) fn start(
        (listener, at): (TcpListener, SocketAddr),
        tls: Option<RustlsConfig>,
        routes: Router,
        config: &HttpConfig,
    ) -> Result<Self, ServeError> {
        let handle = Handle::new();
        let head_timeout = Duration::from_millis(config.head_timeout_ms);
        let mut server = axum_server::from_tcp(listener)
            .map_err(|error| ServeError::Address { at, error })?
            .handle(handle.clone())
            .http1_only()
            .first_request_timeout(head_timeout);
        server.http_builder().http1().header_read_timeout(head_timeout);
        let counted = Counted(Arc::new(Semaphore::new(config.connections_max)));
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let serving: BoxFuture<'static, io::Result<()>> = match tls {
            Some(tls) => {
                let acceptor = RustlsAcceptor::new(tls).handshake_timeout(head_timeout).acceptor(counted);
                Box::pin(server.acceptor(acceptor).serve(service))
            }
            None => Box::pin(server.acceptor(counted).serve(service)),
        };
        let task = tokio::spawn(async {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the HTTP API ended");
            }
        });
        Ok(Self { at, handle, task })
    }

    /// Takes nothing new, and lets requests under way end for a moment.
    pub(super) async fn stop(mut self, grace: Duration) {
        self.handle.graceful_shutdown(Some(grace));
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handle.shutdown();
        self.task.abort();
    }
}

/// Closes connections beyond the limit at once: a queue of them would only hide that the host is full.
#[derive(Clone)]
struct Counted(Arc<Semaphore>);

impl<S: Send + 'static> Accept<TcpStream, S> for Counted {
    type Stream = TcpStream;
    /// The permit lives as long as the service of the connection.
    type Service = AddExtension<S, Arc<OwnedSemaphorePermit>>;
    type Future = std::future::Ready<io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepted = self.0.clone().try_acquire_owned().map_err(|_| {
            io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "there are as many connections as http.connections_max allows",
            )
        });
        let accepted = accepted.and_then(|permit| {
            stream.set_nodelay(true)?;
            Ok((stream, AddExtension::new(service, Arc::new(permit))))
        });
        std::future::ready(accepted)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn tls_offers_what_is_spoken() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        assert_eq!(tls(&files).await.unwrap().get_inner().alpn_protocols, [b"http/1.1".to_vec()]);
        std::fs::write(&files.key, "rubbish").unwrap();
        assert!(matches!(tls(&files).await, Err(ServeError::Certificate { .. })));
    }
}
