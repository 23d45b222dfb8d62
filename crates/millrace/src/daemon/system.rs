//! A daemon that is one of two heads: the file `link` of the state directory, the transport of the link, and requests that go on to the
//! head that leads.
//!
//! ```text
//! Steward ◀── bytes of the link, what happened to it ── Link (a thread of its own) ── the other head
//!         ─── bytes, closes ────────────────────────▶
//! API of a follower ── request ─▶ Steward ─▶ link ─▶ Steward ─▶ API of the leader, and back
//! ```

use crate::access::Asking;
use crate::failure::Failure;
use crate::http::Asked;
use crate::link::{
    Connection, Connects, Fingerprint, Happened, Identity, Invitation, LIFE_S, Limits, Link, Listens,
    Newcomer, Settings, Side, Token, Why, join,
};
use crate::state;
use crate::words::{
    self,
    parts::{file_fault, link_fault},
};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use base::codec::{hex, unhex};
use base::machine::{StateError, StateOp};
use base::{Address, Uuid};
use cluster::HeadNo;
use cluster::link::{Do, Fault};
use cluster::record::{NAME_MAX, short_name};
use cluster::watch::{End, Times};
use finding::{Refusal, RequestRefusal, SystemRefusal, UnreachedFault};
use head::mail::{Mail, StewardMail};
use head::order::{Event, Weight};
use head::peer::{PeerNews, PeerWork, SystemSettings, is_left_behind};
use head::steward::first_files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tower::ServiceExt;
use uring::errno;

/// The file of the state directory.
pub const LINK: &str = "link";
/// What a process that is out has said, for the one in its place.
pub const SAID: &str = "MILLRACE_SAID";
/// A request that goes on to the other head is answered within this.
const REQUEST_PATIENCE: Duration = Duration::from_secs(90);
/// A network that is refused again within this is refused as before.
const REFUSED_AGAIN: Duration = Duration::from_secs(10);
/// Longest body of a request that goes by the link.
pub(super) const BODY_MAX: usize = 900 << 10;
/// Longest body of an answer, which goes in parts: a week of minutes has 2 MB. Twice as much finds room on the link.
const ANSWER_MAX: usize = 4 << 20;
/// Longest part of it: with all that JSON adds, it is a message of the link.
const PART_MAX: usize = 256 << 10;

/// Why a request that went on to the other head has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unanswered {
    /// It is not reached, and was asked nothing.
    NotSent,
    /// It was asked, and may have carried it out.
    Lost,
}

/// The file `link`: which of two heads this is, and how it meets the other one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkFile {
    /// `a` or `b`.
    head: String,
    system: String,
    name: String,
    /// Of head a: where it listens. Of head b: from where it connects; ports are not looked at.
    own: Vec<SocketAddr>,
    /// The other head's certificate, once it is known.
    peer: Option<String>,
    /// Of head a: from where the other one connects. Of head b: where it listens.
    peer_addresses: Vec<SocketAddr>,
    /// The token that was given out last, as it is kept.
    invitation: Option<String>,
    /// This head leaves: nothing of the system is kept at the next start.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    leaving: bool,
}

impl LinkFile {
    /// That of a head, for tests.
    #[cfg(test)]
    fn sample(head: &str) -> Self {
        Self {
            head: head.into(),
            system: Uuid([7; 16]).to_string(),
            name: head.into(),
            own: vec![],
            peer: None,
            peer_addresses: vec![],
            invitation: None,
            leaving: false,
        }
    }
    /// What the state directory says; None: this head is alone.
    pub fn load(dir: &Path) -> Result<Option<Self>, Failure> {
        let path = dir.join(LINK).display().to_string();
        let wrong =
            |why: String| Failure::usage(why).with_next("put the file back from a backup of this head");
        match state::read::<Self>(dir, LINK) {
            Err(why) => Err(wrong(file_fault(&path, &why))),
            Ok(None) => Ok(None),
            Ok(Some(mut file)) => {
                file.name = short_name(&file.name);
                let good = file.me().is_some() && file.uuid().is_some();
                if good {
                    Ok(Some(file))
                } else {
                    Err(wrong(format!("{path} does not say which head this is")))
                }
            }
        }
    }
    /// The same at the start of a daemon. A head that was leaving a system has none of it any more, and neither has one that is alone.
    pub fn start(dir: &Path) -> Result<Option<Self>, Failure> {
        let file = Self::load(dir)?;
        let (leaving, alone) = (file.as_ref().is_some_and(|f| f.leaving), file.is_none());
        let failed = |e: io::Error| Failure::internal(format!("{}: {e}", dir.display()));
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let left = leaving && is_left_behind(&name) || alone && name.starts_with("system-");
            if left && entry.file_type().is_ok_and(|t| t.is_file()) {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        if leaving {
            // The log of events stays. Beside it a name is only missed by a head that has lost its own.
            for (name, contents) in first_files(System::new_uuid()?) {
                state::put(dir, name, contents).map_err(|e| Failure::internal(state::unwritten(name, &e)))?;
            }
            // Last: what is cut off before is done again.
            std::fs::remove_file(dir.join(LINK)).map_err(failed)?;
            std::fs::File::open(dir).and_then(|d| d.sync_all()).map_err(failed)?;
        }
        Ok(file.filter(|_| !leaving))
    }
    /// Replaces the file, durably.
    fn save(&self, dir: &Path) -> Result<(), StateError> {
        state::write(dir, LINK, self)
    }
    fn me(&self) -> Option<HeadNo> {
        match self.head.as_str() {
            "a" => Some(HeadNo::A),
            "b" => Some(HeadNo::B),
            _ => None,
        }
    }
    fn uuid(&self) -> Option<Uuid> {
        self.system.parse().ok()
    }
    fn fingerprint(&self) -> Option<Fingerprint> {
        let bytes = unhex(self.peer.as_ref()?)?;
        Some(Fingerprint(bytes.try_into().ok()?))
    }
    /// What the Steward is told.
    pub fn settings(&self, times: Times) -> SystemSettings {
        SystemSettings {
            system: self.uuid().unwrap_or_default(),
            me: self.me().unwrap_or(HeadNo::A),
            name: self.name.clone(),
            networks: if self.me() == Some(HeadNo::B) {
                self.peer_addresses.clone()
            } else {
                self.own.clone()
            },
            process: uring::process::identity(),
            times,
            both_serve: true,
            said: std::env::var(SAID).ok().map(|line| Event::from_line(Weight::Error, &line)),
        }
    }
    fn side(&self) -> Option<Side> {
        let peer = self.fingerprint();
        Some(match self.me()? {
            HeadNo::A => {
                let from = |n: usize| self.peer_addresses.get(n).map(SocketAddr::ip);
                let networks = self.own.iter().enumerate();
                Side::Listens {
                    networks: networks.map(|(n, own)| Listens { own: *own, peer: from(n) }).collect(),
                    peer,
                    invitation: self.invitation.as_ref().and_then(|i| Invitation::decode(&unhex(i)?)),
                }
            }
            HeadNo::B => {
                let networks = self.own.iter().zip(&self.peer_addresses);
                Side::Connects {
                    networks: networks.map(|(own, peer)| Connects { own: own.ip(), peer: *peer }).collect(),
                    peer: peer?,
                }
            }
        })
    }
}

/// A request that goes by the link, and its answer.
#[derive(Serialize, Deserialize)]
enum Carried {
    Request {
        id: u64,
        method: String,
        uri: String,
        body: String,
        /// Who asked the other head; None: that head itself.
        #[serde(default)]
        asking: Option<Asking>,
    },
    /// The next bytes of the body of an answer, if one message has no room for it. `Answer` follows with the last ones.
    Part {
        id: u64,
        body: String,
    },
    Answer {
        id: u64,
        status: u16,
        content_type: String,
        body: String,
    },
}

/// Who waits for the other head's answer, and what has come of the answer so far.
struct Waiter {
    to: tokio::sync::oneshot::Sender<(u16, String, String)>,
    body: String,
}

#[derive(Default)]
struct Inner {
    file: Option<LinkFile>,
    link: Option<Link>,
    /// What the Steward calls a connection by.
    paths: BTreeMap<usize, Connection>,
    /// Networks that were closed for a reason that lasts, and when: each is tried again every second, and that is said once.
    refused: BTreeMap<usize, (Fault, Instant)>,
    leads: bool,
    asked: BTreeMap<u64, Waiter>,
    asks: u64,
}

impl Inner {
    /// Whether a network was closed a moment ago for a reason that lasts.
    fn is_refused(&self, path: usize) -> bool {
        self.refused.get(&path).is_some_and(|(_, at)| at.elapsed() < REFUSED_AGAIN)
    }
}

/// The daemon's part in a system, if it is in one.
pub struct System {
    dir: PathBuf,
    times: Times,
    post: OnceLock<uring::Post<Mail>>,
    router: OnceLock<Router>,
    runtime: OnceLock<tokio::runtime::Handle>,
    again: Box<dyn Fn() + Send + Sync>,
    inner: Mutex<Inner>,
}

impl System {
    /// Of this state directory; `again` has the daemon start anew.
    pub fn new(
        dir: &Path,
        file: Option<LinkFile>,
        times: Times,
        again: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let inner = Mutex::new(Inner { file, ..Inner::default() });
        Arc::new(Self {
            dir: dir.to_path_buf(),
            times,
            post: OnceLock::new(),
            router: OnceLock::new(),
            runtime: OnceLock::new(),
            again: Box::new(again),
            inner,
        })
    }
    /// Head a of a system, for tests.
    #[cfg(test)]
    pub fn of_two(dir: &Path) -> Arc<Self> {
        Self::new(dir, Some(LinkFile::sample("a")), Times::default(), || {})
    }
    /// The way to the Steward, and the routes that requests of the other head take.
    pub fn meets(&self, post: uring::Post<Mail>) {
        let _ = self.post.set(post);
    }
    /// The routes that requests of the other head take.
    pub fn serves(&self, router: Router) {
        let _ = self.router.set(router);
    }
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere does not make it wrong.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What the Steward is told at the start, if this head is one of two.
    pub fn settings(&self) -> Option<SystemSettings> {
        self.inner().file.as_ref().map(|f| f.settings(self.times))
    }
    /// A thread of its own for the link, so that no request of the API delays a heartbeat.
    fn runtime(&self) -> Result<tokio::runtime::Handle, SystemRefusal> {
        if let Some(handle) = self.runtime.get() {
            return Ok(handle.clone());
        }
        let failed = |e: io::Error| SystemRefusal::LinkNotStarted { errno: errno(&e) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let body = move || runtime.block_on(core::future::pending::<()>());
        std::thread::Builder::new().name("link".into()).spawn(body).map_err(failed)?;
        Ok(self.runtime.get_or_init(|| handle).clone())
    }
    /// Begins to make connections to the other head, if this one is one of two.
    pub fn start_link(self: &Arc<Self>) -> Result<(), SystemRefusal> {
        let Some(side) = self.inner().file.as_ref().and_then(LinkFile::side) else { return Ok(()) };
        let identity = Identity::load_or_make(&self.dir)?;
        let (system, settings) = (Arc::clone(self), Settings { identity, side, limits: Limits::default() });
        let runtime = self.runtime()?;
        let link = Link::start(settings, &runtime, move |happened| system.on_link(happened))?;
        self.inner().link = Some(link);
        Ok(())
    }
    fn tell(&self, news: PeerNews) {
        if let Some(post) = self.post.get() {
            let _ = post.send(Address::Steward, StewardMail::Peer(news).into());
        }
    }
    fn on_link(self: &Arc<Self>, happened: Happened) {
        match happened {
            Happened::Up { on, peer_address, secret } => {
                let mut inner = self.inner();
                if !inner.is_refused(on.path) {
                    tracing::info!("network {} of the link is up, to {peer_address}", on.path);
                }
                inner.paths.insert(on.path, on);
                drop(inner);
                self.tell(PeerNews::Up { path: on.path, number: on.number, secret: *secret.bytes() });
            }
            Happened::Bytes { on, bytes } => {
                self.tell(PeerNews::Bytes { path: on.path, number: on.number, bytes });
            }
            Happened::Down { on, why } => {
                if !self.inner().is_refused(on.path) {
                    tracing::warn!("network {} of the link is down: {}", on.path, words::link::down(&why));
                }
                self.is_down(on);
                let end = match why {
                    Why::Closed | Why::Ended | Why::Reset => End::Closed,
                    _ => End::Lost,
                };
                self.tell(PeerNews::Down { path: on.path, end });
            }
            Happened::Unreached { path, why } => {
                tracing::info!("network {path} of the link: {}", words::link::unreached(&why));
                if why == UnreachedFault::Nobody {
                    self.tell(PeerNews::Down { path, end: End::Refused });
                }
            }
            Happened::Refused { from, why, unreported } => {
                tracing::warn!(
                    "{from} was not let in at the link: {} ({unreported} others since the last line)",
                    words::link::refused(&why)
                );
            }
            Happened::Joined { newcomer, answer } => match self.keep_newcomer(newcomer) {
                Ok(()) => answer.accept(),
                Err(e) => {
                    tracing::error!("a head that joins was not let in: {}", state::unwritten(LINK, &e));
                }
            },
        }
    }
    fn is_down(&self, on: Connection) {
        let mut inner = self.inner();
        if inner.paths.get(&on.path).is_some_and(|up| up.number == on.number) {
            inner.paths.remove(&on.path);
        }
        if inner.paths.is_empty() {
            // Nobody answers what went on to the other head.
            inner.asked.clear();
        }
    }
    fn keep_newcomer(&self, newcomer: Newcomer) -> Result<(), StateError> {
        let Newcomer { fingerprint, addresses, invitation } = newcomer;
        let mut inner = self.inner();
        let Some(mut file) = inner.file.clone() else { return Ok(()) };
        file.peer = Some(hex(&fingerprint.0));
        file.peer_addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
        file.invitation = Some(hex(&invitation.encode()));
        file.save(&self.dir)?;
        inner.file = Some(file);
        Ok(())
    }
    /// What the Steward wants done by the link.
    pub fn work(&self, work: PeerWork) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let Some(link) = &inner.link else { return };
        let (Do::Send { path, .. } | Do::Close { path, .. }) = &work.what;
        let Some(on) = inner.paths.get(path).filter(|on| on.number == work.number) else { return };
        match work.what {
            Do::Send { bytes, .. } => drop(link.send(*on, bytes)),
            Do::Close { why, .. } => {
                let path = on.path;
                let again = inner.refused.get(&path).filter(|(_, at)| at.elapsed() < REFUSED_AGAIN);
                if again.is_none_or(|(before, _)| *before != why) {
                    tracing::warn!(
                        "network {path} of the link is closed: {}",
                        link_fault(&head::peer::link_fault(why))
                    );
                }
                if why.lasts() {
                    inner.refused.insert(path, (why, Instant::now()));
                }
                link.close(*on);
            }
        }
    }
    /// This head leads, or does not.
    pub fn leads(&self, leads: bool) {
        let mut inner = self.inner();
        inner.leads = leads;
        if leads {
            // The other one, which was asked, led before.
            inner.asked.clear();
        }
    }

    /// Whether requests go on to the other head: not as long as a system is only being made, and there is none.
    pub fn goes_on(&self) -> bool {
        let inner = self.inner();
        inner.file.is_some() && inner.link.is_some() && !inner.leads
    }
    /// Something from the other head's daemon.
    pub fn on_peer(self: &Arc<Self>, bytes: &[u8]) {
        match serde_json::from_slice(bytes) {
            Ok(Carried::Request { id, method, uri, body, asking }) => {
                let (Some(router), Ok(runtime)) = (self.router.get().cloned(), self.runtime()) else {
                    return;
                };
                let system = Arc::clone(self);
                let asked = self.inner().file.as_ref().and_then(LinkFile::me).map(|me| Asked(me.other()));
                runtime.spawn(async move {
                    let answer = answer_of(router, (asked, asking), (&method, &uri), body).await;
                    let (status, content_type, body) = answer;
                    let mut rest = body.as_str();
                    while rest.len() > PART_MAX {
                        let (part, more) = rest.split_at(rest.floor_char_boundary(PART_MAX));
                        system.carry(&Carried::Part { id, body: part.into() });
                        rest = more;
                    }
                    system.carry(&Carried::Answer { id, status, content_type, body: rest.into() });
                });
            }
            Ok(Carried::Part { id, body }) => {
                let mut inner = self.inner();
                let waiter = inner.asked.get_mut(&id);
                if let Some(waiter) = waiter.filter(|w| w.body.len() + body.len() <= ANSWER_MAX) {
                    waiter.body.push_str(&body);
                } else {
                    inner.asked.remove(&id);
                }
            }
            Ok(Carried::Answer { id, status, content_type, body }) => {
                if let Some(mut waiter) = self.inner().asked.remove(&id) {
                    waiter.body.push_str(&body);
                    let _ = waiter.to.send((status, content_type, waiter.body));
                }
            }
            Err(e) => tracing::warn!("the other head said what is not understood: {e}"),
        }
    }
    fn carry(&self, what: &Carried) {
        let bytes = serde_json::to_vec(what).expect("plain data");
        if let Some(post) = self.post.get() {
            let _ = post.send(Address::Steward, StewardMail::ToPeer(bytes).into());
        }
    }
    /// Sends a request on to the head that leads.
    pub(super) async fn ask_other(
        &self,
        method: String,
        uri: String,
        body: String,
        asking: Option<Asking>,
    ) -> Result<(u16, String, String), Unanswered> {
        let (answer, id) = {
            let mut inner = self.inner();
            if inner.paths.is_empty() {
                return Err(Unanswered::NotSent);
            }
            inner.asks += 1;
            let (id, (send, receive)) = (inner.asks, tokio::sync::oneshot::channel());
            inner.asked.insert(id, Waiter { to: send, body: String::new() });
            (receive, id)
        };
        self.carry(&Carried::Request { id, method, uri, body, asking });
        let answer = tokio::time::timeout(REQUEST_PATIENCE, answer).await;
        self.inner().asked.remove(&id);
        answer.ok().and_then(Result::ok).ok_or(Unanswered::Lost)
    }

    /// Makes a system of this head, or a new token for one that it made. The file is there before the Steward acts; `undo` takes it
    /// away again.
    pub fn prepare(
        &self,
        uuid: Uuid,
        link: &[SocketAddr],
        name: String,
    ) -> Result<(Token, SystemSettings), SystemRefusal> {
        let identity = Identity::load_or_make(&self.dir)?;
        let now_s = now_s();
        let mut inner = self.inner();
        let mut file = match inner.file.clone() {
            Some(file) if file.peer.is_some() => return Err(SystemRefusal::SystemComplete),
            Some(file) if file.head == "a" && (link.is_empty() || file.own == link) => file,
            Some(_) => return Err(SystemRefusal::HeadInSystem),
            None => LinkFile {
                head: "a".into(),
                system: uuid.to_string(),
                name,
                own: link.to_vec(),
                peer: None,
                peer_addresses: vec![],
                invitation: None,
                leaving: false,
            },
        };
        let sides = Side::Listens {
            networks: file.own.iter().map(|own| Listens { own: *own, peer: None }).collect(),
            peer: None,
            invitation: None,
        };
        let fingerprint = identity.fingerprint();
        Settings { identity, side: sides, limits: Limits::default() }.check()?;
        if inner.link.is_none() {
            for own in &file.own {
                std::net::TcpListener::bind(own).map_err(|e| {
                    let address = own.to_string();
                    SystemRefusal::LinkAddressNotBound { address, errno: errno(&e) }
                })?;
            }
        }
        let system = file.uuid().unwrap_or(uuid);
        let (token, invitation) = Token::make(system, &file.own, fingerprint, now_s, LIFE_S)?;
        file.invitation = Some(hex(&invitation.encode()));
        file.save(&self.dir).map_err(not_written)?;
        if let Some(link) = &inner.link {
            link.invite(Some(invitation));
        }
        let settings = file.settings(self.times);
        inner.file = Some(file);
        Ok((token, settings))
    }
    /// All addresses of the link, of both heads.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let inner = self.inner();
        let all = inner.file.iter().flat_map(|f| f.own.iter().chain(&f.peer_addresses));
        all.map(SocketAddr::ip).collect()
    }
    /// Where the heads meet, if this is an address of theirs: on each network head a listens at one port, and its shards, of which there
    /// are so many, at those behind it.
    pub fn meets_at(&self, address: SocketAddr, shards: u16) -> Option<SocketAddr> {
        let inner = self.inner();
        let file = inner.file.as_ref()?;
        let all = if file.me() == Some(HeadNo::B) { &file.peer_addresses } else { &file.own };
        let here = |at: &&SocketAddr| {
            let ports = at.port()..=at.port().saturating_add(shards);
            (at.ip() == address.ip() || address.ip().is_unspecified()) && ports.contains(&address.port())
        };
        all.iter().find(here).copied()
    }
    /// The link is there: this head has become one of a system.
    pub fn has_link(&self) -> bool {
        self.inner().link.is_some()
    }
    /// Which head this is, `a` or `b`.
    pub fn letter(&self) -> Option<String> {
        self.inner().file.as_ref().map(|f| f.head.clone())
    }
    /// This head's addresses on the networks of the link.
    pub fn link_addresses(&self) -> Vec<IpAddr> {
        self.inner().file.as_ref().map_or(vec![], |f| f.own.iter().map(SocketAddr::ip).collect())
    }
    /// The name of a new system.
    pub fn new_uuid() -> Result<Uuid, SystemRefusal> {
        let mut bytes = [0; 16];
        crate::link::random(&mut bytes)?;
        let [high, low] = [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")));
        Ok(Uuid::from_random(high, low))
    }
    /// The Steward has refused.
    pub fn undo(&self) {
        let mut inner = self.inner();
        if inner.link.is_none() {
            match remove(&self.dir) {
                Ok(()) => inner.file = None,
                Err(e) => tracing::error!(
                    "this head is in no system, and its file says that it is: {}; remove {}",
                    state::unwritten(LINK, &e),
                    self.dir.join(LINK).display()
                ),
            }
        }
    }
    /// Refuses what only a head that is in no system can do.
    pub fn is_alone(&self) -> Result<(), SystemRefusal> {
        if self.inner().file.is_none() { Ok(()) } else { Err(SystemRefusal::HeadInSystem) }
    }
    /// Joins a system; then the daemon starts anew, as its head b.
    pub async fn join(&self, token: &str, own: &[IpAddr], name: String) -> Result<(), SystemRefusal> {
        self.is_alone()?;
        let token = Token::decode(token).map_err(|why| SystemRefusal::TokenUnusable { why })?;
        let identity = Identity::load_or_make(&self.dir)?;
        join(&token, &identity, own, Limits::default()).await?;
        let file = LinkFile {
            head: "b".into(),
            system: token.system.to_string(),
            name,
            own: own.iter().map(|ip| SocketAddr::new(*ip, 0)).collect(),
            peer: Some(hex(&token.fingerprint.0)),
            peer_addresses: token.addresses,
            invitation: None,
            leaving: false,
        };
        file.save(&self.dir).map_err(not_written)?;
        self.inner().file = Some(file);
        (self.again)();
        Ok(())
    }
    /// Asks the head that leads to let this one go, and has the daemon start anew without a system. With `force` nobody is asked.
    pub async fn leave(&self, force: bool) -> Result<(), SystemRefusal> {
        self.note_leaving(true)?;
        if !force {
            let path = format!("{}/system/release", api::BASE);
            let answer = self.ask_other("POST".into(), path, String::new(), None).await;
            if !matches!(answer, Ok((200..=299, ..))) {
                self.note_leaving(false)?;
                let why = answer.ok().map(|(_, _, body)| Box::new(why_of(&body)));
                return Err(SystemRefusal::HeadNotReleased { why });
            }
        }
        (self.again)();
        Ok(())
    }
    fn note_leaving(&self, leaving: bool) -> Result<(), SystemRefusal> {
        let mut inner = self.inner();
        let Some(mut file) = inner.file.clone() else { return Ok(()) };
        file.leaving = leaving;
        file.save(&self.dir).map_err(not_written)?;
        inner.file = Some(file);
        Ok(())
    }
    /// The other head is let go: it makes no connection any more, and another one may join by a new token.
    pub fn forget_peer(&self) -> Result<(), SystemRefusal> {
        let mut inner = self.inner();
        let Some(file) = inner.file.clone() else { return Ok(()) };
        let file = LinkFile { peer: None, peer_addresses: vec![], invitation: None, ..file };
        file.save(&self.dir).map_err(not_written)?;
        inner.file = Some(file);
        if let Some(link) = &inner.link {
            link.forget();
        }
        Ok(())
    }
    /// The Steward has taken the system apart: the daemon starts anew, as a head that is alone.
    pub fn ends(&self) -> Result<(), SystemRefusal> {
        // Whoever would write the file again waits here, and finds that there is none.
        let mut inner = self.inner();
        remove(&self.dir).map_err(|e| SystemRefusal::LinkFileNotRemoved { errno: state::errno_of(&e) })?;
        inner.file = None;
        (self.again)();
        Ok(())
    }
    /// What to call this head: what somebody said, or else the machine's name.
    pub fn name(said: Option<String>) -> Result<String, SystemRefusal> {
        match said {
            Some(name) if name.len() > NAME_MAX => {
                Err(SystemRefusal::HeadNameTooLong { bytes: name.len(), bytes_max: NAME_MAX })
            }
            Some(name) => Ok(name),
            None => {
                let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
                Ok(short_name(name.trim()))
            }
        }
    }
}

impl From<SystemRefusal> for Failure {
    fn from(refusal: SystemRefusal) -> Self {
        words::refusal(&Refusal::from(refusal)).into()
    }
}

fn not_written(error: StateError) -> SystemRefusal {
    SystemRefusal::LinkFileNotWritten { errno: state::errno_of(&error) }
}

/// Removes the file, durably.
fn remove(dir: &Path) -> Result<(), StateError> {
    uring::on_state(dir, StateOp::Remove { name: LINK.into() }).map(drop)
}

/// What the other head answered instead of a success: a code that this program does not know is kept as it is.
fn why_of(body: &str) -> finding::Why {
    #[derive(Deserialize)]
    struct Body {
        error: finding::Why,
    }
    match serde_json::from_str(body) {
        Ok(Body { error }) => error,
        Err(_) => RequestRefusal::AnswerOfAnother.into(),
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// What this daemon's own routes say to a request that the other head was asked.
async fn answer_of(
    router: Router,
    (asked, asking): (Option<Asked>, Option<Asking>),
    (method, uri): (&str, &str),
    body: String,
) -> (u16, String, String) {
    let bad = |what: &str| (StatusCode::BAD_GATEWAY.as_u16(), "text/plain".to_string(), what.to_string());
    let request = Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, "application/json");
    let Ok(mut request) = request.body(Body::from(body)) else { return bad("no request") };
    if let Some(asked) = asked {
        request.extensions_mut().insert(asked);
    }
    if let Some(asking) = asking {
        request.extensions_mut().insert(asking);
    }
    let Ok(response) = router.oneshot(request).await;
    let status = response.status().as_u16();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = kind.unwrap_or("application/json").to_string();
    match axum::body::to_bytes(response.into_body(), ANSWER_MAX).await {
        Ok(bytes) => (status, kind, String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => bad("the answer is too long for the link: ask the head that leads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_left_begins_with_a_name_of_its_own_wherever_that_was_cut_off() {
        let file = LinkFile { leaving: true, ..LinkFile::sample("b") };
        let shared = ["identity", "hosts", "portals", "pools", "system-record", "config-x", "witness-x"];
        for gone in 0..=shared.len() {
            let dir = tempfile::tempdir().expect("a folder");
            let path = |name: &str| dir.path().join(name);
            for name in shared.iter().skip(gone).chain(&["events", "link-identity"]) {
                std::fs::write(path(name), "of the system").expect("written");
            }
            file.save(dir.path()).expect("written");
            assert_eq!(LinkFile::start(dir.path()).expect("good"), None);
            let mut there: Vec<String> = std::fs::read_dir(dir.path())
                .expect("a folder")
                .map(|e| e.expect("there").file_name().to_string_lossy().into_owned())
                .collect();
            there.sort();
            assert_eq!(there, ["events", "hosts", "identity", "link-identity", "pools", "portals"], "{gone}");
            let name = std::fs::read_to_string(path("identity")).expect("there");
            assert!(name.contains("nqn = \"nqn.2014-08.org.nvmexpress:uuid:"), "{name}");
            // From now on it is its own.
            assert_eq!(LinkFile::start(dir.path()).expect("good"), None);
            assert_eq!(std::fs::read_to_string(path("identity")).expect("there"), name);
        }
    }

    #[test]
    fn the_ports_of_the_link_and_of_the_shards_behind_it_are_its_own() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let file = |head: &str| LinkFile {
            own: vec![at("10.9.0.1:7400")],
            peer_addresses: vec![at("10.9.0.2:7400")],
            ..LinkFile::sample(head)
        };
        for (head, ours) in [("a", "10.9.0.1:7400"), ("b", "10.9.0.2:7400")] {
            let system = System::new(dir.path(), Some(file(head)), Times::default(), || {});
            for port in 7399..7405 {
                let is = (7400..=7402).contains(&port);
                for ip in [at(ours).ip(), at("0.0.0.0:1").ip()] {
                    assert_eq!(
                        system.meets_at(SocketAddr::new(ip, port), 2),
                        is.then_some(at(ours)),
                        "{port}"
                    );
                }
            }
            assert_eq!(system.meets_at(at("10.9.0.3:7400"), 2), None);
        }
    }

    #[test]
    fn what_the_other_head_refused_is_said_in_words() {
        let refusal = RequestRefusal::ParameterTwice { parameter: "wait".into() };
        let refused = |why: finding::Why| {
            let error = words::refusal(&Refusal::from(why));
            serde_json::to_string(&api::ErrorBody { error }).expect("plain data")
        };
        for why in [finding::Why::from(refusal), SystemRefusal::ReleaseNotLeading.into()] {
            assert_eq!(why_of(&refused(why.clone())), why);
        }
        let later = r#"{"error":{"kind":"conflict","code":"from_the_future","message":"no"}}"#;
        assert_eq!(why_of(later).code(), "from_the_future");
        assert_eq!(why_of("no JSON"), finding::Why::from(RequestRefusal::AnswerOfAnother));
        let why = Some(Box::new(SystemRefusal::ReleaseNotLeading.into()));
        let failure = Failure::from(SystemRefusal::HeadNotReleased { why });
        assert_eq!(
            failure.message,
            "this head was not let go: this head does not lead, and only the one that does can release the other one"
        );
        assert_eq!(failure.code.as_deref(), Some("head_not_released"));
        assert_eq!(failure.fields["why"]["code"], "release_not_leading");
        let failure = Failure::from(SystemRefusal::HeadNotReleased { why: None });
        assert_eq!(failure.message, "this head was not let go: the head that leads is not reached");
        assert_eq!(failure.next.as_deref(), Some("millrace head ls; or millrace system leave --force"));
    }

    #[test]
    fn a_name_that_no_record_holds_is_refused_and_one_in_the_file_is_cut() {
        let long = "n".repeat(NAME_MAX + 1);
        let refused = System::name(Some(long.clone())).expect_err("too long");
        let message = words::why(&refused.into()).message;
        assert_eq!(message, "the name of a head has at most 64 bytes, and this one has 65");
        assert_eq!(System::name(Some("n".repeat(NAME_MAX))).expect("it fits").len(), NAME_MAX);
        assert!(System::name(None).expect("the machine's").len() <= NAME_MAX);
        // A file of before this was looked at.
        let dir = tempfile::tempdir().expect("a folder");
        let file = LinkFile {
            head: "a".into(),
            system: Uuid([7; 16]).to_string(),
            name: long,
            own: vec![],
            peer: None,
            peer_addresses: vec![],
            invitation: None,
            leaving: false,
        };
        file.save(dir.path()).expect("written");
        let read = LinkFile::load(dir.path()).expect("good").expect("there");
        assert_eq!(read.settings(Times::default()).name, "n".repeat(NAME_MAX));
    }
}
