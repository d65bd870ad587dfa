//! Sockets, which no handler gets: refused as WASI refuses them, and counted.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::{network, tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{Network, SocketError, SocketResult, TcpSocket, UdpSocket};

use crate::guest::Guest;
use crate::usage::count;

/// How the linker reaches it.
pub(crate) struct HasDenied;

/// What answers in place of WASI's own.
pub(crate) struct Denied<'a>(pub(crate) &'a mut Guest);

impl wasmtime::component::HasData for HasDenied {
    type Data<'a> = Denied<'a>;
}

impl Denied<'_> {
    fn deny<T>(&mut self, what: &str) -> SocketResult<T> {
        count(&self.0.counters.denied);
        self.0.log.denied(what);
        Err(ErrorCode::AccessDenied.into())
    }
}

// What an answer of `access-denied` takes; nobody makes a network here.
impl network::HostNetwork for Denied<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        self.0.table.delete(network)?;
        Ok(())
    }
}

impl network::Host for Denied<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(&mut self, _: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl tcp_create_socket::Host for Denied<'_> {
    fn create_tcp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.deny("a TCP socket is not granted")
    }
}

impl udp_create_socket::Host for Denied<'_> {
    async fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.deny("a UDP socket is not granted")
    }
}
