//! Addresses of the system on this machine: put there while this head leads, kept there, told to the network, taken away.
//!
//! A thread of its own does it, so that neither the state directory nor the Steward nor the API delays it: an address lives in the
//! kernel for `LIFETIME_S` only and is prolonged meanwhile. So a process that is killed or hangs leaves none behind for long.

use base::Address;
use base::view::{Interface, Moving};
use cluster::HeadNo;
use finding::AddressFault;
use head::mail::{Mail, StewardMail};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use uring::address::{self, Found, Wanted};

/// The kernel takes an address away that was not prolonged for so long.
const LIFETIME_S: u32 = 10;
/// How often it is prolonged.
const PROLONG: Duration = Duration::from_secs(2);
/// When neighbours are told, from the moment on at which portals listen: packets may be lost, and until the last of these the
/// address may still be on the machine that led before.
const TELL_AT: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(LIFETIME_S as u64 + 1),
];
/// So many of these times hosts are told that their connections are over.
const TICKLES: usize = 3;
/// The marks (IFA_PROTO) of addresses that head a and head b have put somewhere: two heads may be on one machine.
const MARKS: [u8; 2] = [0x4d, 0x4e];

type Whereabouts = Result<Interface, AddressFault>;
/// What the Steward is told: for which order, where each address is, that the network is not told.
type Told = (u64, Vec<(IpAddr, Whereabouts)>, bool);
/// An order: its number, and what is to go.
type Asked = (u64, Vec<Moving>);
/// That the network is to be told for the nth time, and of which connections.
type Tell = (usize, Vec<(SocketAddr, SocketAddr)>);

#[derive(Default)]
struct Inner {
    number: u64,
    wanted: Vec<Moving>,
    gone: Vec<Moving>,
    /// An order that is not carried out yet.
    news: bool,
    /// Connections that are over, and when neighbours and hosts are told next.
    resets: Vec<(SocketAddr, SocketAddr)>,
    told: usize,
    began: Option<Instant>,
}

/// Addresses that are here by this process.
#[derive(Default)]
struct Held {
    held: BTreeMap<IpAddr, Found>,
    /// The process ends: nothing is put anywhere any more.
    over: bool,
}

/// Addresses of the system.
#[derive(Default)]
pub struct Addresses {
    inner: Mutex<Inner>,
    wake: Condvar,
    held: Mutex<Held>,
    running: OnceLock<()>,
    post: OnceLock<uring::Post<Mail>>,
    head: Mutex<Option<HeadNo>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere does not make it wrong.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Addresses {
    /// The way to the Steward.
    pub fn meets(&self, post: uring::Post<Mail>) {
        let _ = self.post.set(post);
    }
    /// Which head this is; None: one that is alone.
    pub fn is_head(&self, head: Option<HeadNo>) {
        *lock(&self.head) = head;
    }
    /// What is to be here, and what not.
    pub fn order(self: &Arc<Self>, number: u64, here: Vec<Moving>, gone: Vec<Moving>) {
        {
            let mut inner = lock(&self.inner);
            inner.number = number;
            inner.wanted = here;
            inner.gone.extend(gone);
            inner.news = true;
        }
        self.wake.notify_one();
        self.running.get_or_init(|| {
            let addresses = Arc::clone(self);
            let run = std::thread::Builder::new().name("addresses".into());
            if let Err(e) = run.spawn(move || addresses.run()) {
                tracing::error!("addresses cannot be moved: no thread: {e}");
            }
        });
    }
    /// The portals listen.
    pub fn announce(&self, resets: Vec<(SocketAddr, SocketAddr)>) {
        {
            let mut inner = lock(&self.inner);
            inner.resets = resets;
            inner.told = 0;
            inner.began = Some(Instant::now());
        }
        self.wake.notify_one();
    }
    /// The process ends: whatever it put here is taken away at once.
    pub fn let_go(&self) {
        let mut held = lock(&self.held);
        held.over = true;
        for (_, found) in std::mem::take(&mut held.held) {
            let _ = address::remove(&found);
        }
    }

    fn run(&self) {
        let (mut prolong, mut last, mut silent) = (Instant::now(), None, false);
        let mut warned = false;
        loop {
            let (order, tell) = self.wait(prolong);
            let now = Instant::now();
            if let Some((number, gone)) =
                order.or_else(|| (now >= prolong).then(|| (lock(&self.inner).number, vec![])))
            {
                let here = self.settle(&gone);
                prolong = Instant::now() + PROLONG;
                let told = Some((number, here, silent));
                if told != last {
                    last = told;
                    self.tell_steward(&last);
                }
            }
            if let Some((nth, resets)) = tell {
                let failed = self.tell_network(nth, &resets).err();
                let hushed = failed.as_ref().is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
                if let Some((_, _, known)) = last.as_mut().filter(|_| hushed && !silent) {
                    (silent, *known) = (true, true);
                    self.tell_steward(&last);
                }
                // What is not allowed is not allowed the next time either: it is said once.
                let repeated = hushed && warned;
                warned |= hushed;
                if let Some(e) = failed.filter(|_| !repeated) {
                    tracing::warn!("the network was not told of addresses: {e}");
                }
            }
        }
    }
    fn tell_steward(&self, what: &Option<Told>) {
        if let (Some(post), Some((number, here, silent))) = (self.post.get(), what.clone()) {
            let _ = post.send(Address::Steward, StewardMail::Addresses { number, here, silent }.into());
        }
    }
    /// Waits for an order, or for a time at which something is due.
    fn wait(&self, prolong: Instant) -> (Option<Asked>, Option<Tell>) {
        let mut inner = lock(&self.inner);
        loop {
            let now = Instant::now();
            let tell_at = inner.began.and_then(|began| Some(began + *TELL_AT.get(inner.told)?));
            let tell = tell_at.filter(|at| now >= *at).map(|_| {
                inner.told += 1;
                (inner.told - 1, inner.resets.clone())
            });
            let order = inner.news.then(|| (inner.number, std::mem::take(&mut inner.gone)));
            inner.news = false;
            let idle = inner.wanted.is_empty();
            if order.is_some() || tell.is_some() || (now >= prolong && !idle) {
                return (order, tell);
            }
            let next = [tell_at, (!idle).then_some(prolong)].into_iter().flatten().min();
            inner = match next {
                None => self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let waited = self.wake.wait_timeout(inner, at.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
    /// Makes it so.
    fn settle(&self, gone: &[Moving]) -> Vec<(IpAddr, Whereabouts)> {
        let wanted = lock(&self.inner).wanted.clone();
        let mark = MARKS[lock(&self.head).map_or(0, HeadNo::index)];
        let mut held = lock(&self.held);
        if held.over || wanted.is_empty() && gone.is_empty() && held.held.is_empty() {
            return vec![];
        }
        let there = match address::list() {
            Ok(there) => there,
            Err(e) => return wanted.iter().map(|m| (m.ip, Err(why(&e)))).collect(),
        };
        let is_wanted = |ip: IpAddr| wanted.iter().any(|m| m.ip == ip);
        let ours = |f: &&Found| f.mark == mark && !is_wanted(f.ip);
        for found in there
            .iter()
            .filter(ours)
            .filter(|f| held.held.contains_key(&f.ip) || gone.iter().any(|m| m.ip == f.ip))
        {
            if let Err(e) = address::remove(found) {
                tracing::warn!("{} could not be taken away: {e}", found.ip);
            }
        }
        held.held.retain(|ip, _| is_wanted(*ip));
        let mut told = vec![];
        for moving in &wanted {
            let done = have(moving, &there, mark);
            match done {
                Ok((found, _)) => drop(held.held.insert(moving.ip, found)),
                Err(_) => drop(held.held.remove(&moving.ip)),
            }
            told.push((moving.ip, done.map(|(_, interface)| interface)));
        }
        told
    }
    fn tell_network(&self, nth: usize, resets: &[(SocketAddr, SocketAddr)]) -> io::Result<()> {
        let held = lock(&self.held).held.clone();
        let told =
            held.values().map(|found| address::announce(found.index, found.ip)).fold(Ok(()), Result::and);
        if nth < TICKLES {
            let here: Vec<_> =
                resets.iter().filter(|(local, _)| held.contains_key(&local.ip())).copied().collect();
            // One that a host would expect by chance is followed by others that it does not.
            address::tickle(&here, (nth as u32).wrapping_mul(0x5555_5555))?;
        }
        told
    }
}

/// Has an address here.
fn have(moving: &Moving, there: &[Found], mark: u8) -> Result<(Found, Interface), AddressFault> {
    let ip = moving.ip;
    let others = || there.iter().filter(|f| !MARKS.contains(&f.mark) && f.ip != ip && moving.is_beside(f.ip));
    let index = match moving.moves.interface {
        Some(name) => address::index_of(name.as_str()).map_err(|_| AddressFault::NoInterface)?,
        None => others().map(|f| f.index).min().ok_or(AddressFault::NoSubnet)?,
    };
    let wanted = Found { index, ip, prefix: moving.moves.prefix, mark };
    for found in there.iter().filter(|f| f.ip == ip && **f != wanted) {
        if !MARKS.contains(&found.mark) {
            return Err(AddressFault::Foreign);
        }
        // The other head's on the same machine, or one that was configured in another way.
        address::remove(found).map_err(|e| why(&e))?;
    }
    let routed = others().any(|f| f.index == index && f.prefix == wanted.prefix);
    address::put(&Wanted { address: wanted, lifetime_s: LIFETIME_S, routed }).map_err(|e| why(&e))?;
    let name = address::name_of(index).map_err(|e| why(&e))?;
    Ok((wanted, name.parse().map_err(|()| AddressFault::NoInterface)?))
}

fn why(e: &io::Error) -> AddressFault {
    match e.kind() {
        io::ErrorKind::PermissionDenied => AddressFault::NotAllowed,
        _ => AddressFault::Errno { errno: uring::errno(e) },
    }
}
