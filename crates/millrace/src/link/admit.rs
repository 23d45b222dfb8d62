//! Who connects: the other head, somebody who was invited, or anybody else.

use super::happened::{Answer, Happened, LinkRefusal, Newcomer};
use super::identity::Fingerprint;
use super::invitation::Invitation;
use super::path::{Hub, Ready, prepare};
use super::settings::{Listens, is_link_address};
use super::tls::{Metered, PathSecret, Purpose, TooMuch, server, shown};
use super::wire::{self, Greeting, REQUEST_BYTES, Request, SHORT_BYTES, Unwelcome};
use finding::JoinDenial;
use rustls::server::Acceptor;
use rustls::{CertificateError, Error};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::{LazyConfigAcceptor, TlsStream};

/// Who may come in.
pub struct Door(Mutex<State>);

struct State {
    peer: Option<Fingerprint>,
    networks: Vec<Listens>,
    invitation: Option<Invitation>,
}

/// A connection whose peer showed its key.
enum Arrived {
    Path(Ready),
    Join(TlsStream<Metered>, [u8; REQUEST_BYTES], Fingerprint),
}

impl Door {
    pub fn new(networks: Vec<Listens>, peer: Option<Fingerprint>, invitation: Option<Invitation>) -> Self {
        Self(Mutex::new(State { peer, networks, invitation }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds this")
    }

    /// From now on this invitation counts, and no other.
    pub fn invite(&self, invitation: Option<Invitation>) {
        self.state().invitation = invitation;
    }

    /// From now on there is no peer, and nobody is invited.
    pub fn forget(&self) {
        let mut state = self.state();
        (state.peer, state.invitation) = (None, None);
        state.networks.iter_mut().for_each(|network| network.peer = None);
    }

    /// Whether somebody from `ip` is listened to on this network at all. An invited head is not known by its address.
    pub fn hears(&self, path: usize, ip: IpAddr) -> Result<(), LinkRefusal> {
        if self.state().invitation.is_some() { Ok(()) } else { self.peer(path, ip).map(|_| ()) }
    }

    /// Whose paths are accepted on this network.
    fn peer(&self, path: usize, ip: IpAddr) -> Result<Fingerprint, LinkRefusal> {
        let state = self.state();
        let peer = state.peer.ok_or(LinkRefusal::NoPeer)?;
        match state.networks[path].peer {
            Some(address) if address != ip => Err(LinkRefusal::Address),
            _ => Ok(peer),
        }
    }

    /// What a request to join leads to: the newcomer, and the invitation as it was before.
    fn decide(
        &self,
        request: &[u8; REQUEST_BYTES],
        fingerprint: Fingerprint,
        now_s: u64,
    ) -> Result<(Newcomer, Invitation), JoinDenial> {
        // These two lie at the same place in all versions.
        wire::common((request[4], request[5])).ok_or(JoinDenial::Version)?;
        let request = Request::decode(request).ok_or(JoinDenial::Malformed)?;
        let mut state = self.state();
        let before = state.invitation.clone().ok_or(JoinDenial::NotInvited)?;
        let used = before.decide(&request.attempt(fingerprint), now_s)?;
        if state.peer.is_some_and(|peer| peer != fingerprint) {
            return Err(JoinDenial::Taken);
        }
        let fits = |(own, theirs): (&Listens, &IpAddr)| {
            own.own.is_ipv4() == theirs.is_ipv4() && is_link_address(*theirs)
        };
        if request.addresses.len() != state.networks.len()
            || !state.networks.iter().zip(&request.addresses).all(fits)
        {
            return Err(JoinDenial::Networks);
        }
        state.invitation = Some(used.clone());
        Ok((Newcomer { fingerprint, addresses: request.addresses, invitation: used }, before))
    }

    /// The newcomer is durable, or is not.
    fn conclude(&self, newcomer: &Newcomer, before: Invitation, durable: bool) -> Result<(), JoinDenial> {
        let mut state = self.state();
        if durable {
            state.peer = Some(newcomer.fingerprint);
            for (network, address) in state.networks.iter_mut().zip(&newcomer.addresses) {
                network.peer = Some(*address);
            }
            return Ok(());
        }
        // Unless there is another one by now.
        if state.invitation.as_ref() == Some(&newcomer.invitation) {
            state.invitation = Some(before);
        }
        Err(JoinDenial::NotRecorded)
    }
}

/// Finds out who connects. A path that may be used, or None after a join. Takes `Limits::handshake` at most before the peer has
/// shown its key, and reads `Limits::handshake_bytes` at most.
pub async fn admit(
    hub: &Arc<Hub>,
    door: &Arc<Door>,
    path: usize,
    tcp: TcpStream,
    from: SocketAddr,
) -> Result<Option<Ready>, LinkRefusal> {
    let arrived = timeout(hub.limits.handshake, arrive(hub, door, path, tcp, from)).await;
    match arrived.map_err(|_| LinkRefusal::Slow)?? {
        Arrived::Path(ready) => Ok(Some(ready)),
        Arrived::Join(stream, request, fingerprint) => {
            join(hub, door, stream, request, fingerprint).await.map(|()| None)
        }
    }
}

async fn arrive(
    hub: &Hub,
    door: &Door,
    path: usize,
    tcp: TcpStream,
    from: SocketAddr,
) -> Result<Arrived, LinkRefusal> {
    prepare(&tcp, hub.limits.silence).map_err(|e| left(&e))?;
    let metered = Metered::new(tcp, hub.limits.handshake_bytes);
    let hello = LazyConfigAcceptor::new(Acceptor::default(), metered).await.map_err(|e| refusal(&e))?;
    let purpose = {
        let offered: Vec<&[u8]> = hello.client_hello().alpn().into_iter().flatten().collect();
        let wanted = |purpose: &Purpose| offered.contains(&purpose.protocol());
        [Purpose::Path, Purpose::Join].into_iter().find(wanted)
    };
    let purpose = purpose.ok_or_else(|| LinkRefusal::NotTls("it names no protocol of the link".into()))?;
    let peer = match purpose {
        Purpose::Path => Some(door.peer(path, from.ip())?),
        Purpose::Join => None,
    };
    let stream = hello.into_stream(server(&hub.identity, purpose, peer)).await.map_err(|e| refusal(&e))?;
    let mut stream = TlsStream::Server(stream);
    match purpose {
        Purpose::Path => greet(path, stream, from).await.map(Arrived::Path),
        Purpose::Join => {
            let fingerprint = shown(&stream).ok_or(LinkRefusal::Unproven)?;
            let mut request = [0; REQUEST_BYTES];
            stream.read_exact(&mut request).await.map_err(|e| refusal(&e))?;
            Ok(Arrived::Join(stream, request, fingerprint))
        }
    }
}

/// Hears what path it is, and says welcome.
async fn greet(
    path: usize,
    mut stream: TlsStream<Metered>,
    peer_address: SocketAddr,
) -> Result<Ready, LinkRefusal> {
    let mut bytes = [0; SHORT_BYTES];
    stream.read_exact(&mut bytes).await.map_err(|e| refusal(&e))?;
    // Where versions lie is the same in all of them.
    let answer = match Greeting::decode(&bytes) {
        None => Err(Unwelcome::Malformed),
        Some(greeting) => match wire::common(greeting.versions) {
            None => Err(Unwelcome::Version),
            Some(_) if usize::from(greeting.path) != path => Err(Unwelcome::Network),
            Some(version) => Ok(version),
        },
    };
    stream.write_all(&wire::encode_welcome(answer)).await.map_err(|e| left(&e))?;
    stream.flush().await.map_err(|e| left(&e))?;
    if let Err(unwelcome) = answer {
        let _ = stream.shutdown().await;
        return Err(match unwelcome {
            Unwelcome::Version => LinkRefusal::Version,
            Unwelcome::Network => LinkRefusal::OtherNetwork(bytes[6]),
            Unwelcome::Malformed => LinkRefusal::Malformed,
        });
    }
    let secret = PathSecret::of(&stream, path).map_err(|e| LinkRefusal::NotTls(e.to_string()))?;
    if let TlsStream::Server(server) = &mut stream {
        server.get_mut().0.lift();
    }
    Ok(Ready { stream, peer_address, secret })
}

async fn join(
    hub: &Arc<Hub>,
    door: &Arc<Door>,
    mut stream: TlsStream<Metered>,
    request: [u8; REQUEST_BYTES],
    fingerprint: Fingerprint,
) -> Result<(), LinkRefusal> {
    // A task of its own: what was begun is brought to its end, even if this connection is closed in favour of others.
    let decided = tokio::spawn(record(hub.clone(), door.clone(), request, fingerprint)).await;
    let answer = decided.unwrap_or(Err(JoinDenial::NotRecorded));
    let answered = async {
        stream.write_all(&wire::encode_answer(&answer)).await?;
        stream.shutdown().await?;
        // Until it has read the answer and closed: a reset would take the answer away.
        stream.read(&mut [0]).await
    };
    let _ = timeout(hub.limits.handshake, answered).await;
    answer.map_err(LinkRefusal::Denied)
}

/// Lets the layer above write down who joins.
async fn record(
    hub: Arc<Hub>,
    door: Arc<Door>,
    request: [u8; REQUEST_BYTES],
    fingerprint: Fingerprint,
) -> Result<(), JoinDenial> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (newcomer, before) = door.decide(&request, fingerprint, since.as_secs())?;
    let (answer, answered) = oneshot::channel();
    (hub.events)(Happened::Joined { newcomer: newcomer.clone(), answer: Answer(answer) });
    let durable = matches!(timeout(hub.limits.record, answered).await, Ok(Ok(())));
    door.conclude(&newcomer, before, durable)
}

fn left(e: &io::Error) -> LinkRefusal {
    LinkRefusal::Left(e.to_string())
}

/// Why a handshake failed.
fn refusal(e: &io::Error) -> LinkRefusal {
    let inner = e.get_ref();
    if inner.is_some_and(|e| e.is::<TooMuch>()) {
        return LinkRefusal::TooMuch;
    }
    match inner.and_then(|e| e.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => {
            LinkRefusal::Certificate
        }
        Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented) => LinkRefusal::Unproven,
        Some(Error::AlertReceived(_)) => left(e),
        Some(other) => LinkRefusal::NotTls(other.to_string()),
        None => left(e),
    }
}
