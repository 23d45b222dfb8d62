//! The API's connections: how many, and how long each may take.
//!
//! Promise: a client that says nothing, little or much costs a bounded amount of memory for a bounded time.
//! Each listener has its own connections: who fills the one over TCP does not lock out the local socket.

use crate::access::{Access, Peer, Stream};
use axum::Router;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// What one listener grants.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time; more wait in the kernel's queue.
    pub connections: usize,
    /// Until the header of a request is there, the first one or the next.
    pub header: Duration,
    /// Life of a connection: longer than any request takes.
    pub life: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, header: Duration::from_secs(10), life: Duration::from_secs(600) }
    }
}

/// Largest header of a request, bytes.
const HEADER_MAX: usize = 16 << 10;

/// What is done with a connection before its first request.
pub trait Greet<Io, Addr>: Send + Sync + 'static {
    /// The stream of requests, and whose it is; None: it is closed.
    fn greet(&self, io: Io, at: Addr) -> impl Future<Output = Option<(Box<dyn Stream>, Peer)>> + Send;
}

/// At the socket: the kernel says who it is.
pub struct Local;

impl Greet<UnixStream, tokio::net::unix::SocketAddr> for Local {
    async fn greet(
        &self,
        io: UnixStream,
        _: tokio::net::unix::SocketAddr,
    ) -> Option<(Box<dyn Stream>, Peer)> {
        let uid = io.peer_cred().ok()?.uid();
        Some((Box::new(io), Peer::User(uid)))
    }
}

/// Over TCP: with TLS, if the head has a certificate.
pub struct Remote(pub Arc<Access>);

impl Greet<TcpStream, SocketAddr> for Remote {
    async fn greet(&self, io: TcpStream, at: SocketAddr) -> Option<(Box<dyn Stream>, Peer)> {
        let peer = Peer::Address(at.ip());
        match &self.0.certificate {
            None => Some((Box::new(io), peer)),
            Some(certificate) => {
                // What is no TLS is closed; so is who does not like the certificate.
                let stream = TlsAcceptor::from(certificate.config()).accept(io).await.ok()?;
                Some((Box::new(stream), peer))
            }
        }
    }
}

/// Serves for ever.
pub async fn serve<L: Listener>(
    mut listener: L,
    router: Router,
    limits: Limits,
    greet: impl Greet<L::Io, L::Addr>,
) {
    let (free, greet) = (Arc::new(Semaphore::new(limits.connections)), Arc::new(greet));
    loop {
        let permit = Arc::clone(&free).acquire_owned().await.expect("it is never closed");
        let (stream, at) = listener.accept().await;
        let (routes, greet) = (TowerToHyperService::new(router.clone()), Arc::clone(&greet));
        tokio::spawn(async move {
            let greeted = tokio::time::timeout(limits.header, greet.greet(stream, at)).await;
            let Ok(Some((stream, peer))) = greeted else { return };
            let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(peer.clone());
                routes.call(request)
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEADER_MAX);
            let connection = http.serve_connection(TokioIo::new(stream), service);
            // How a connection ends is the client's affair.
            let _ = tokio::time::timeout(limits.life, connection).await;
            drop(permit);
        });
    }
}
