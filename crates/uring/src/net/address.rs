//! Addresses of this machine that come and go with the head that leads, and how they are announced on the network.

use super::frames;
use super::netlink::{self, Said};
pub use super::netlink::{Found, Wanted};
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, netdevice, sendto};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

/// All addresses of this machine.
pub fn list() -> io::Result<Vec<Found>> {
    let said = netlink::request(&netlink::ask_addresses())?;
    Ok(said
        .into_iter()
        .filter_map(|s| if let Said::Address(found) = s { Some(found) } else { None })
        .collect())
}

/// Configures an address, or prolongs the life of one. Errors: the kernel's.
pub fn put(wanted: &Wanted) -> io::Result<()> {
    netlink::request(&netlink::put_address(wanted)).map(drop)
}

/// Takes an address away. Errors: the kernel's.
pub fn remove(address: &Found) -> io::Result<()> {
    netlink::request(&netlink::remove_address(address)).map(drop)
}

/// The name of an interface.
pub fn name_of(index: u32) -> io::Result<String> {
    let socket = any_socket()?;
    Ok(netdevice::index_to_name(&socket, index)?)
}

/// The number of an interface.
pub fn index_of(name: &str) -> io::Result<u32> {
    let socket = any_socket()?;
    Ok(netdevice::name_to_index(&socket, name)?)
}

fn any_socket() -> io::Result<OwnedFd> {
    Ok(net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Tells everybody on the cable of an interface that an address is here. Interfaces other than Ethernet say nothing.
///
/// Errors: the kernel's; without CAP_NET_RAW, `PermissionDenied`.
pub fn announce(index: u32, ip: IpAddr) -> io::Result<()> {
    const ETHERNET: u16 = 1;
    let links = netlink::request(&netlink::ask_links())?;
    let mac = links.into_iter().find_map(|s| match s {
        Said::Link(i, ETHERNET, mac) if i == index => <[u8; 6]>::try_from(mac).ok(),
        _ => None,
    });
    let Some(mac) = mac else { return Ok(()) };
    match ip {
        IpAddr::V4(ip) => {
            let broadcast = [0xff; 6];
            send_frame(index, libc::ETH_P_ARP as u16, broadcast, &frames::arp(mac, ip, false))?;
            send_frame(index, libc::ETH_P_ARP as u16, broadcast, &frames::arp(mac, ip, true))
        }
        IpAddr::V6(ip) => {
            let all_nodes = [0x33, 0x33, 0, 0, 0, 1];
            send_frame(index, libc::ETH_P_IPV6 as u16, all_nodes, &frames::advertisement(mac, ip))
        }
    }
}

fn send_frame(index: u32, protocol: u16, to: [u8; 6], packet: &[u8]) -> io::Result<()> {
    let socket = net::socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index.cast_signed();
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&to);
    // SAFETY: both pointers are to values that live beyond the call, with their lengths; the kernel only reads them.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes hosts notice that connections are over which nobody has here: from our address, to theirs. `seq` is of no meaning, and
/// should differ from call to call. One that cannot be reached is left out.
///
/// Errors: the kernel's; without CAP_NET_RAW, `PermissionDenied`.
pub fn tickle(connections: &[(SocketAddr, SocketAddr)], seq: u32) -> io::Result<()> {
    for (local, peer) in connections {
        // A socket for each, and only for the call: a raw socket gets a copy of whatever comes to its address.
        let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
        let segment = frames::tickle(*local, *peer, seq);
        let (from, to) = (SocketAddr::new(local.ip(), 0), SocketAddr::new(peer.ip(), 0));
        if net::bind(&socket, &from).is_ok() {
            let _ = sendto(&socket, &segment, SendFlags::DONTWAIT, &to);
        }
    }
    Ok(())
}
