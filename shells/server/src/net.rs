//! The real network: the only module that names it.
#![allow(clippy::disallowed_types)] // this is the module that the lint points to

use std::io;
use std::net::SocketAddr;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};

/// A TCP port to serve on. Frames are small and wanted at once, so delayed sending is off.
#[derive(Debug)]
pub struct TcpPort(TcpListener);

impl TcpPort {
    /// Binds a port. Port 0 takes a free one; ask [`Listener::local_addr`] which.
    ///
    /// # Errors
    /// As the system says: in use, not permitted, no such address.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self)
    }
}

impl Listener for TcpPort {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (stream, peer) = Listener::accept(&mut self.0).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no delayed sending could not be set; the socket works all the same");
        }
        (stream, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
