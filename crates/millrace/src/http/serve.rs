//! The API's connections: how many, and how long each may take.
//!
//! Promise: a client that says nothing, little or much costs a bounded amount of memory for a bounded time.
//! Each listener has its own connections: who fills the one over TCP does not lock out the local socket.

use axum::Router;
use axum::serve::Listener;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

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

/// Serves for ever.
pub async fn serve<L: Listener>(mut listener: L, router: Router, limits: Limits) {
    let free = Arc::new(Semaphore::new(limits.connections));
    loop {
        let permit = Arc::clone(&free).acquire_owned().await.expect("it is never closed");
        let (stream, _) = listener.accept().await;
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEADER_MAX);
            let connection = http.serve_connection(TokioIo::new(stream), service);
            // How a connection ends is the client's affair.
            let _ = tokio::time::timeout(limits.life, connection).await;
            drop(permit);
        });
    }
}
