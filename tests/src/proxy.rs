//! A TCP proxy between hosts and a server, which cuts, delays and swallows.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a held connection looks whether it may go on.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Bytes passed on at once.
const CHUNK: usize = 16 * 1024;

/// See the module. Everything ends with it.
pub struct Proxy {
    port: u16,
    way: Arc<Way>,
}

#[derive(Default)]
struct Way {
    to: u16,
    /// Nothing passes, in either direction, and nobody is told.
    silent: AtomicBool,
    delay_ms: AtomicU64,
    ended: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// To this port of the loopback interface.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = Arc::new(Way { to, ..Way::default() });
        let accepting = way.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.ended.load(SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                // A server that is down: the connection ends, as it would without us.
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, accepting.to)) else { continue };
                accepting.join(client, server);
            }
        });
        Self { port, way }
    }

    /// As a broker's address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Swallows everything from now on, or no more. What was swallowed is gone, so its connections are cut when it ends.
    pub fn silence(&self, silent: bool) {
        if !silent {
            self.cut();
        }
        self.way.silent.store(silent, SeqCst);
    }

    /// Delays every piece by this.
    pub fn delay(&self, delay_ms: u64) {
        self.way.delay_ms.store(delay_ms, SeqCst);
    }

    /// Cuts every connection; new ones are let through.
    pub fn cut(&self) {
        for stream in self.way.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.way.ended.store(true, SeqCst);
        self.cut();
        // Wakes the accepting thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Way {
    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else { return };
        self.open.lock().unwrap().extend([client.try_clone(), server.try_clone()].into_iter().flatten());
        let (forth, back) = (self.clone(), self.clone());
        std::thread::spawn(move || forth.pass(client, server));
        std::thread::spawn(move || back.pass(server_too, client_too));
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = vec![0; CHUNK];
        loop {
            let read = from.read(&mut piece).unwrap_or(0);
            let delay_ms = self.delay_ms.load(SeqCst);
            if delay_ms > 0 {
                std::thread::sleep(Duration::from_millis(delay_ms));
            }
            if self.silent.load(SeqCst) {
                // Not even an end of the connection is passed on.
                while self.silent.load(SeqCst) && !self.ended.load(SeqCst) {
                    std::thread::sleep(LOOK_EVERY);
                }
                break;
            }
            if read == 0 || to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
