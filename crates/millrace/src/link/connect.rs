//! The head that connects: its paths, and how it joined.

use super::happened::{Happened, Unreached};
use super::identity::{Fingerprint, Identity};
use super::invitation::Denied;
use super::path::{Hub, Ready, prepare, run, stopped};
use super::settings::{Connects, Limits};
use super::tls::{Metered, PathSecret, Purpose, client, random};
use super::token::Token;
use super::wire::{self, Greeting, Request, SHORT_BYTES, Unwelcome, VERSIONS};
use crate::failure::{Exit, Failure};
use crate::words::link as words;
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

async fn dial_path(hub: &Hub, path: usize, network: Connects, peer: Fingerprint) -> Result<Ready, Unreached> {
    let whole = async {
        let mut stream = dial(&hub.identity, Purpose::Path, network, peer, hub.limits).await?;
        let greeting = Greeting { versions: VERSIONS, path: path as u8 };
        let mut bytes = [0; SHORT_BYTES];
        ask(&mut stream, &greeting.encode(), &mut bytes).await?;
        match wire::decode_welcome(&bytes) {
            Some(Ok(_version)) => {}
            Some(Err(Unwelcome::Version)) => return Err(Unreached::Version),
            Some(Err(Unwelcome::Network)) => return Err(Unreached::OtherNetwork),
            Some(Err(Unwelcome::Malformed)) | None => {
                return Err(Unreached::Handshake("the greeting is not understood".into()));
            }
        }
        let secret = PathSecret::of(&stream, path).map_err(|e| Unreached::Handshake(e.to_string()))?;
        if let TlsStream::Client(client) = &mut stream {
            client.get_mut().0.lift();
        }
        Ok(Ready { stream, peer_address: network.peer, secret })
    };
    timeout(hub.limits.handshake, whole).await.unwrap_or(Err(Unreached::Slow))
}

/// Connects from the own address, and makes sure who answers.
async fn dial(
    identity: &Identity,
    purpose: Purpose,
    network: Connects,
    peer: Fingerprint,
    limits: Limits,
) -> Result<TlsStream<Metered>, Unreached> {
    let own = |e: io::Error| Unreached::Own(e.to_string());
    let socket = match network.peer {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(own)?;
    socket.bind(SocketAddr::new(network.own, 0)).map_err(own)?;
    let tcp = socket.connect(network.peer).await.map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => Unreached::Nobody,
        _ => Unreached::Network(e.to_string()),
    })?;
    prepare(&tcp, limits.silence).map_err(own)?;
    let metered = Metered::new(tcp, limits.handshake_bytes);
    let name = ServerName::IpAddress(network.peer.ip().into());
    let connector = TlsConnector::from(client(identity, purpose, peer));
    let stream = connector.connect(name, metered).await.map_err(|e| unreached(&e))?;
    Ok(TlsStream::Client(stream))
}

/// Says `question`, hears the answer.
async fn ask(stream: &mut TlsStream<Metered>, question: &[u8], answer: &mut [u8]) -> Result<(), Unreached> {
    let said = async {
        stream.write_all(question).await?;
        stream.flush().await?;
        stream.read_exact(answer).await
    };
    // Of TLS 1.3 whoever connects is done first, and hears only here whether its own certificate is taken.
    said.await.map(|_| ()).map_err(|e| unreached(&e))
}

/// Why a handshake failed.
fn unreached(e: &io::Error) -> Unreached {
    match e.get_ref().and_then(|e| e.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_)) => Unreached::NotThePeer,
        Some(Error::AlertReceived(
            AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError,
        )) => Unreached::NotKnownThere,
        Some(other) => Unreached::Handshake(other.to_string()),
        None => Unreached::Network(e.to_string()),
    }
}

/// Why a head did not join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// The token is of another number of networks than this head has.
    Networks {
        /// Addresses of this head.
        own: usize,
        /// Addresses in the token.
        token: usize,
    },
    /// None of the addresses led to the creating head: of each, why.
    Unreached(Vec<(SocketAddr, Unreached)>),
    /// The creating head said no.
    Denied(Denied),
    /// The creating head took the request, and its answer did not arrive: it may have let this one in. To ask again does no harm.
    NoAnswer(SocketAddr, Unreached),
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Networks { own, token } => Failure::usage(format!(
                "the token names {token} link addresses of the other head, and this head has {own}: each network needs both"
            ))
            .with_next("give this head one link address for each, then `millrace system join` again"),
            JoinError::Unreached(tried) => {
                let tried: Vec<String> = tried.iter().map(|(to, why)| format!("{to}: {}", words::unreached(why))).collect();
                Failure::new(Exit::Unreachable, format!("no head to join is reached: {}", tried.join("; ")))
                    .with_next("on the other head: `millrace status`; then `millrace system join` again here")
            }
            JoinError::Denied(denied) => Failure::new(Exit::Refused, denied.to_string()).with_next(denied.next()),
            JoinError::NoAnswer(to, why) => Failure::new(
                Exit::Unreachable,
                format!("{to} took the request to join, and its answer did not arrive: {}", words::unreached(&why)),
            )
            .with_next("the same `millrace system join` again: a head that was let in is let in again"),
        }
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
) -> Result<(), JoinError> {
    if own.len() != token.addresses.len() {
        return Err(JoinError::Networks { own: own.len(), token: token.addresses.len() });
    }
    let request =
        Request { versions: VERSIONS, system: token.system, secret: token.secret, addresses: own.to_vec() };
    let mut tried = Vec::new();
    for (own, peer) in own.iter().zip(&token.addresses) {
        let network = Connects { own: *own, peer: *peer };
        let dialled = dial(identity, Purpose::Join, network, token.fingerprint, limits);
        match timeout(limits.handshake, dialled).await.unwrap_or(Err(Unreached::Slow)) {
            Ok(stream) => return request_to_join(stream, &request, *peer, limits).await,
            Err(why) => tried.push((*peer, why)),
        }
    }
    Err(JoinError::Unreached(tried))
}

async fn request_to_join(
    mut stream: TlsStream<Metered>,
    request: &Request,
    peer: SocketAddr,
    limits: Limits,
) -> Result<(), JoinError> {
    let mut bytes = [0; SHORT_BYTES];
    let asked =
        timeout(limits.record + limits.handshake, ask(&mut stream, &request.encode(), &mut bytes)).await;
    asked.unwrap_or(Err(Unreached::Slow)).map_err(|why| JoinError::NoAnswer(peer, why))?;
    let _ = timeout(limits.handshake, stream.shutdown()).await;
    match wire::decode_answer(&bytes) {
        Some(answer) => answer.map_err(JoinError::Denied),
        None => {
            Err(JoinError::NoAnswer(peer, Unreached::Handshake("the answer is of a newer version".into())))
        }
    }
}
