//! One path while it is up: bytes in, bytes out, and why it ends.

use super::backlog::{BATCH_BYTES, Backlog};
use super::happened::{Connection, Happened, Why};
use super::identity::Identity;
use super::settings::Limits;
use super::tls::{Metered, PathSecret};
use rustix::net::sockopt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_rustls::TlsStream;

/// Most bytes of one `Bytes`.
const READ_BYTES: usize = 64 << 10;

/// How long the word that a path is closed may take.
const GOODBYE: Duration = Duration::from_millis(200);

/// What all parts of a link share.
pub struct Hub {
    pub identity: Identity,
    pub limits: Limits,
    /// Of each path.
    pub backlogs: Vec<Backlog>,
    pub events: Box<dyn Fn(Happened) + Send + Sync>,
}

/// A connection whose peer is authenticated and has greeted.
pub struct Ready {
    pub stream: TlsStream<Metered>,
    pub peer_address: SocketAddr,
    pub secret: PathSecret,
}

/// Whether the link stops.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say so is gone: that is as good.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Carries bytes until the connection ends; the newer one if that is why. All of a path is reported by one task, so that nothing of an
/// older connection can follow a newer one's `Up`.
pub async fn run(
    hub: &Hub,
    path: usize,
    ready: Ready,
    newer: &mut mpsc::Receiver<Ready>,
    stop: &mut watch::Receiver<bool>,
) -> Option<Ready> {
    let Ready { stream, peer_address, secret } = ready;
    let backlog = &hub.backlogs[path];
    let on = Connection { path, number: backlog.open() };
    (hub.events)(Happened::Up { on, peer_address, secret });
    let (mut reader, mut writer) = split(stream);
    // In no fixed order: under a flood of bytes the one that is asked first would leave nothing of the task's turn to the others.
    let (why, next) = tokio::select! {
        () = stopped(stop) => (Why::Stopped, None),
        Some(next) = newer.recv() => (Why::Replaced, Some(next)),
        why = backlog.ended() => (why, None),
        why = read(hub, on, &mut reader) => (why, None),
        why = write(backlog, &mut writer) => (why, None),
    };
    backlog.shut();
    if matches!(why, Why::Stopped | Why::Asked) {
        let _ = timeout(GOODBYE, writer.shutdown()).await;
    }
    drop((reader, writer));
    (hub.events)(Happened::Down { on, why });
    next
}

async fn read(hub: &Hub, on: Connection, reader: &mut ReadHalf<TlsStream<Metered>>) -> Why {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return Why::Closed,
            Ok(n) => (hub.events)(Happened::Bytes { on, bytes: buffer[..n].to_vec() }),
            Err(e) => return why(&e),
        }
    }
}

async fn write(backlog: &Backlog, writer: &mut WriteHalf<TlsStream<Metered>>) -> Why {
    let mut batch = Vec::with_capacity(BATCH_BYTES);
    loop {
        backlog.next(&mut batch).await;
        let written = match writer.write_all(&batch).await {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        if let Err(e) = written {
            return why(&e);
        }
        backlog.written(batch.len());
        batch.clear();
        batch.shrink_to(BATCH_BYTES);
    }
}

/// How a connection ended, by what the operating system or TLS said.
fn why(e: &io::Error) -> Why {
    use io::ErrorKind as Kind;
    match e.kind() {
        Kind::UnexpectedEof => Why::Ended,
        Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => Why::Reset,
        Kind::TimedOut => Why::Silent,
        Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => Why::Unreachable,
        _ => Why::Broken(e.to_string()),
    }
}

/// Small pieces leave at once, and a silent peer is noticed: unanswered bytes by the user timeout, an idle path by keep-alives.
pub fn prepare(tcp: &TcpStream, silence: Duration) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    sockopt::set_socket_keepalive(tcp, true)?;
    // The kernel counts these in whole seconds, and gives up by the user timeout.
    let between = Duration::from_secs((silence.as_secs() / 3).max(1));
    sockopt::set_tcp_keepidle(tcp, between)?;
    sockopt::set_tcp_keepintvl(tcp, between)?;
    sockopt::set_tcp_user_timeout(tcp, silence.as_millis().min(u32::MAX.into()) as u32)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_sends_small_pieces_at_once_and_asks_a_silent_peer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let tcp =
                TcpStream::connect(listener.local_addr().expect("an address")).await.expect("it listens");
            prepare(&tcp, Duration::from_millis(3500)).expect("set");
            assert!(tcp.nodelay().expect("asked"));
            assert!(sockopt::socket_keepalive(&tcp).expect("asked"));
            assert_eq!(sockopt::tcp_keepidle(&tcp).expect("asked"), Duration::from_secs(1));
            assert_eq!(sockopt::tcp_keepintvl(&tcp).expect("asked"), Duration::from_secs(1));
            assert_eq!(sockopt::tcp_user_timeout(&tcp).expect("asked"), 3500);
        });
    }

    #[test]
    fn how_a_connection_ended_is_told_by_the_kernels_word() {
        use io::ErrorKind as Kind;
        for (kind, expected) in [
            (Kind::UnexpectedEof, Why::Ended),
            (Kind::ConnectionReset, Why::Reset),
            (Kind::BrokenPipe, Why::Reset),
            (Kind::TimedOut, Why::Silent),
            (Kind::HostUnreachable, Why::Unreachable),
        ] {
            assert_eq!(why(&kind.into()), expected);
        }
        assert!(matches!(why(&io::Error::other("bad record")), Why::Broken(words) if words == "bad record"));
    }
}
