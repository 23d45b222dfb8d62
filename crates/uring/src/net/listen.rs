//! Listening: portals shared by the shards of a house, multishot accept, and the sockets' options.

use crate::ring::{Done, Kind, Ring};
use base::PortalId;
use io_uring::{cqueue, opcode, types};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Connections that the kernel holds until we accept them.
const BACKLOG: i32 = 4096;
/// A peer that says nothing for so long is asked whether it lives,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(2);
/// so often,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// and so many times: a path that was cut is given up after 4 s, before a host's own 5 s (KATO) are over and it repeats elsewhere
/// what waits here. Where bytes are under way [`watch`](super::watch) looks instead.
const KEEPALIVE_PROBES: u32 = 2;

/// The portals of a house: every shard listens at each, with a socket of its own.
#[derive(Default)]
pub(crate) struct Portals {
    open: Mutex<BTreeMap<PortalId, (SocketAddr, u32)>>,
}

impl Portals {
    /// A listening socket for one shard.
    pub(crate) fn listen(&self, portal: PortalId, address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Once port 0 has become a port, the other shards take the same.
        let known = open.get(&portal).copied();
        if known.is_none() && address.port() != 0 {
            // SO_REUSEPORT would let us share the port with another daemon in silence: look first.
            drop(listening_socket(address, false)?);
        }
        let socket = listening_socket(known.map_or(address, |(at, _)| at), true)?;
        let local = local_address(&socket)?;
        open.entry(portal).or_insert((local, 0)).1 += 1;
        Ok((socket, local))
    }
    /// A shard's socket is closed.
    pub(crate) fn unlisten(&self, portal: PortalId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, users)) = open.get_mut(&portal) {
            *users -= 1;
            if *users == 0 {
                open.remove(&portal);
            }
        }
    }
}

fn listening_socket(address: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let socket = new_socket(address)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn new_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    // Not SOCK_NONBLOCK: io_uring would then fail with EAGAIN instead of waiting.
    Ok(net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A socket for a connection of our own.
pub(crate) fn socket_to(peer: SocketAddr) -> io::Result<OwnedFd> {
    let socket = new_socket(peer)?;
    set_options(&socket)?;
    Ok(socket)
}

/// Sets a fresh connection's options; its addresses.
pub(crate) fn prepare(socket: &OwnedFd) -> io::Result<(SocketAddr, SocketAddr)> {
    set_options(socket)?;
    let peer = net::getpeername(socket)?;
    let peer = SocketAddr::try_from(peer.ok_or(io::ErrorKind::NotConnected)?)?;
    Ok((local_address(socket)?, peer))
}

fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(net::getsockname(socket)?)?)
}

fn set_options(socket: &OwnedFd) -> io::Result<()> {
    // Answers of a turn leave together; holding them back for more would only add latency.
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    Ok(())
}

/// A socket address as the kernel reads it.
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl RawAddress {
    pub(crate) fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
    pub(crate) fn len(&self) -> libc::socklen_t {
        self.len
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let at = &raw mut storage;
        let len = match address {
            SocketAddr::V4(a) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: a.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(a.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: sockaddr_storage is large and aligned enough for every socket address.
                unsafe { at.cast::<libc::sockaddr_in>().write(raw) };
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(a) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: a.port().to_be(),
                    sin6_flowinfo: a.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: a.ip().octets() },
                    sin6_scope_id: a.scope_id(),
                };
                // SAFETY: as above.
                unsafe { at.cast::<libc::sockaddr_in6>().write(raw) };
                size_of::<libc::sockaddr_in6>()
            }
        };
        Self { storage, len: len as libc::socklen_t }
    }
}

struct Listener {
    portal: PortalId,
    socket: OwnedFd,
    /// An accept is in the kernel.
    armed: bool,
    /// Accepted connections are wanted.
    wanted: bool,
}

/// One reactor's listening sockets.
#[derive(Default)]
pub(crate) struct Listeners {
    items: Vec<Option<Listener>>,
    /// Out of descriptors or memory: to be armed again after a pause.
    pub(crate) pausing: bool,
}

impl Listeners {
    pub(crate) fn add(&mut self, ring: &mut Ring, portal: PortalId, socket: OwnedFd) {
        let listener = Listener { portal, socket, armed: false, wanted: true };
        let index = self.items.iter().position(Option::is_none).unwrap_or_else(|| {
            self.items.push(None);
            self.items.len() - 1
        });
        self.items[index] = Some(listener);
        self.arm(ring, index);
    }

    fn arm(&mut self, ring: &mut Ring, index: usize) {
        let listener = self.items[index].as_mut().expect("a listener that is armed is there");
        listener.armed = true;
        let entry =
            opcode::AcceptMulti::new(types::Fd(listener.socket.as_raw_fd())).flags(libc::SOCK_CLOEXEC);
        // SAFETY: points to no memory of ours.
        unsafe { ring.push(&entry.build().user_data(Kind::Accept.user(index as u32))) };
    }

    /// Listens no more at a portal. False if we did not.
    pub(crate) fn remove(&mut self, ring: &mut Ring, portal: PortalId) -> bool {
        let here = |l: &Option<Listener>| l.as_ref().is_some_and(|l| l.wanted && l.portal == portal);
        let Some(index) = self.items.iter().position(here) else { return false };
        let listener = self.items[index].as_mut().expect("just found");
        listener.wanted = false;
        if listener.armed {
            let entry = opcode::AsyncCancel::new(Kind::Accept.user(index as u32)).build();
            // SAFETY: a cancel points to nothing.
            unsafe { ring.push(&entry.user_data(Kind::Cancel.user(index as u32))) };
        } else {
            self.items[index] = None;
        }
        true
    }

    /// An accept completed; the portal, if the connection (if there is one) is wanted.
    pub(crate) fn on_accept(&mut self, ring: &mut Ring, index: u32, done: Done) -> Option<PortalId> {
        let listener = self.items[index as usize].as_mut().expect("an accept completed for a listener");
        let portal = listener.wanted.then_some(listener.portal);
        if !cqueue::more(done.flags) {
            listener.armed = false;
            match -done.result {
                _ if !listener.wanted => self.items[index as usize] = None,
                // Without a pause this would spin until a descriptor is closed.
                libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS => self.pausing = true,
                _ => self.arm(ring, index as usize),
            }
        }
        portal
    }

    /// The pause is over.
    pub(crate) fn resume(&mut self, ring: &mut Ring) {
        self.pausing = false;
        for index in 0..self.items.len() {
            if self.items[index].as_ref().is_some_and(|l| l.wanted && !l.armed) {
                self.arm(ring, index);
            }
        }
    }
}
