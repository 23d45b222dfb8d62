//! The head that connects: its paths, and how it joined.

use super::happened::Happened;
use super::identity::{Fingerprint, Identity};
use super::path::{Hub, Ready, prepare, run, stopped};
use super::settings::{Connects, Limits};
use super::tls::{Metered, PathSecret, Purpose, client, random};
use super::token::Token;
use super::wire::{self, Greeting, Request, SHORT_BYTES, Unwelcome, VERSIONS};
use finding::{SystemRefusal, TriedAddress, UnreachedFault};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, Error};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::{TlsConnector, TlsStream};
use uring::errno;

/// Keeps a path to `network.peer` until the link stops.
pub async fn keep(
    hub: Arc<Hub>,
    path: usize,
    network: Connects,
    peer: Fingerprint,
    mut stop: watch::Receiver<bool>,
) {
    // Nobody connects to this side, so that no newer connection ever comes.
    let (_nobody, mut newer) = mpsc::channel(1);
    let (first, most) = hub.limits.reconnect;
    let (mut wait, mut reported) = (first, None);
    loop {
        let dialled = tokio::select! {
            () = stopped(&mut stop) => return,
            dialled = dial_path(&hub, path, network, peer) => dialled,
        };
        match dialled {
            Ok(ready) => {
                let began = Instant::now();
                reported = None;
                run(&hub, path, ready, &mut newer, &mut stop).await;
                // One that comes up and ends at once is not to be made in a tight circle.
                if began.elapsed() >= most {
                    wait = first;
                }
            }
            Err(why) => {
                if reported.as_ref() != Some(&why) {
                    (hub.events)(Happened::Unreached { path, why: why.clone() });
                    reported = Some(why);
                }
            }
        }
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = sleep(varied(wait)) => {}
        }
        wait = most.min(wait * 2);
    }
}

/// A quarter more or less, so that the paths of a link, and of many, are not tried in step.
fn varied(wait: Duration) -> Duration {
    let mut byte = [128];
    // Without entropy all in step: slower, not wrong.
    let _ = random(&mut byte);
    wait * 3 / 4 + wait * u32::from(byte[0]) / 512
}

async fn dial_path(
    hub: &Hub,
    path: usize,
    network: Connects,
    peer: Fingerprint,
) -> Result<Ready, UnreachedFault> {
    let whole = async {
        let mut stream = dial(&hub.identity, Purpose::Path, network, peer, hub.limits).await?;
        let greeting = Greeting { versions: VERSIONS, path: path as u8 };
        let mut bytes = [0; SHORT_BYTES];
        ask(&mut stream, &greeting.encode(), &mut bytes).await?;
        match wire::decode_welcome(&bytes) {
            Some(Ok(_version)) => {}
            Some(Err(Unwelcome::Version)) => return Err(UnreachedFault::Version),
            Some(Err(Unwelcome::Network)) => return Err(UnreachedFault::OtherNetwork),
            Some(Err(Unwelcome::Malformed)) | None => return Err(UnreachedFault::Greeting),
        }
        let secret =
            PathSecret::of(&stream, path).map_err(|e| UnreachedFault::Handshake { error: e.to_string() })?;
        if let TlsStream::Client(client) = &mut stream {
            client.get_mut().0.lift();
        }
        Ok(Ready { stream, peer_address: network.peer, secret })
    };
    timeout(hub.limits.handshake, whole).await.unwrap_or(Err(UnreachedFault::Slow))
}

/// Connects from the own address, and makes sure who answers.
async fn dial(
    identity: &Identity,
    purpose: Purpose,
    network: Connects,
    peer: Fingerprint,
    limits: Limits,
) -> Result<TlsStream<Metered>, UnreachedFault> {
    let own = |e: io::Error| UnreachedFault::OwnAddress { errno: errno(&e) };
    let socket = match network.peer {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(own)?;
    socket.bind(SocketAddr::new(network.own, 0)).map_err(own)?;
    let tcp = socket.connect(network.peer).await.map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => UnreachedFault::Nobody,
        _ => UnreachedFault::Network { error: e.to_string() },
    })?;
    prepare(&tcp, limits.silence).map_err(own)?;
    let metered = Metered::new(tcp, limits.handshake_bytes);
    let name = ServerName::IpAddress(network.peer.ip().into());
    let connector = TlsConnector::from(client(identity, purpose, peer));
    let stream = connector.connect(name, metered).await.map_err(|e| unreached(&e))?;
    Ok(TlsStream::Client(stream))
}

/// Says `question`, hears the answer.
async fn ask(
    stream: &mut TlsStream<Metered>,
    question: &[u8],
    answer: &mut [u8],
) -> Result<(), UnreachedFault> {
    let said = async {
        stream.write_all(question).await?;
        stream.flush().await?;
        stream.read_exact(answer).await
    };
    // Of TLS 1.3 whoever connects is done first, and hears only here whether its own certificate is taken.
    said.await.map(|_| ()).map_err(|e| unreached(&e))
}

/// Why a handshake failed.
fn unreached(e: &io::Error) -> UnreachedFault {
    match e.get_ref().and_then(|e| e.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_)) => UnreachedFault::NotThePeer,
        Some(Error::AlertReceived(
            AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError,
        )) => UnreachedFault::NotKnownThere,
        Some(other) => UnreachedFault::Handshake { error: other.to_string() },
        None => UnreachedFault::Network { error: e.to_string() },
    }
}

/// Joins the system of `token` from the own addresses, one for each address of the token and in its order. What has to be durable
/// before the first path: the peer is `token.fingerprint`, and `token.addresses` are its addresses. Takes `Limits::handshake` for each
/// address that does not answer, and `Limits::record` once it is asked.
pub async fn join(
    token: &Token,
    identity: &Identity,
    own: &[IpAddr],
    limits: Limits,
) -> Result<(), SystemRefusal> {
    if own.len() != token.addresses.len() {
        return Err(SystemRefusal::JoinNetworksDiffer { own: own.len(), token: token.addresses.len() });
    }
    let request =
        Request { versions: VERSIONS, system: token.system, secret: token.secret, addresses: own.to_vec() };
    let mut tried = Vec::new();
    for (own, peer) in own.iter().zip(&token.addresses) {
        let network = Connects { own: *own, peer: *peer };
        let dialled = dial(identity, Purpose::Join, network, token.fingerprint, limits);
        match timeout(limits.handshake, dialled).await.unwrap_or(Err(UnreachedFault::Slow)) {
            Ok(stream) => return request_to_join(stream, &request, *peer, limits).await,
            Err(why) => tried.push(TriedAddress { address: peer.to_string(), why }),
        }
    }
    Err(SystemRefusal::HeadUnreached { tried })
}

async fn request_to_join(
    mut stream: TlsStream<Metered>,
    request: &Request,
    peer: SocketAddr,
    limits: Limits,
) -> Result<(), SystemRefusal> {
    let mut bytes = [0; SHORT_BYTES];
    let asked =
        timeout(limits.record + limits.handshake, ask(&mut stream, &request.encode(), &mut bytes)).await;
    let unanswered = |why| SystemRefusal::JoinUnanswered { address: peer.to_string(), why };
    asked.unwrap_or(Err(UnreachedFault::Slow)).map_err(unanswered)?;
    let _ = timeout(limits.handshake, stream.shutdown()).await;
    match wire::decode_answer(&bytes) {
        Some(answer) => answer.map_err(|why| SystemRefusal::JoinDenied { why }),
        None => Err(unanswered(UnreachedFault::AnswerNewer)),
    }
}
