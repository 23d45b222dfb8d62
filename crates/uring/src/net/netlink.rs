//! Messages of rtnetlink as bytes: list addresses and interfaces, add and remove an address.

use std::io;
use std::net::IpAddr;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const IFA_PROTO: u16 = 11;
const IFA_F_NODAD: u32 = 2;
const IFA_F_NOPREFIXROUTE: u32 = 0x200;
const IFLA_ADDRESS: u16 = 1;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const HEADER: usize = 16;

/// An address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The interface.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// Length of its prefix.
    pub prefix: u8,
    /// Who put it there (IFA_PROTO), as far as that was said.
    pub mark: u8,
}

/// An address to be configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// What and where.
    pub address: Found,
    /// The kernel takes it away by itself after so many seconds.
    pub lifetime_s: u32,
    /// Its subnet is reached by the route of another address.
    pub routed: bool,
}

fn message(kind: u16, flags: u16, body: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out.extend_from_slice(body);
    for (kind, value) in attributes {
        out.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let len = out.len() as u32;
    out[..4].copy_from_slice(&len.to_ne_bytes());
    out[4..6].copy_from_slice(&kind.to_ne_bytes());
    out[6..8].copy_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
    out
}

/// Asks for all addresses.
pub(crate) fn ask_addresses() -> Vec<u8> {
    message(RTM_GETADDR, NLM_F_DUMP, &[0; 8], &[])
}

/// Asks for all interfaces.
pub(crate) fn ask_links() -> Vec<u8> {
    message(RTM_GETLINK, NLM_F_DUMP, &[0; 16], &[])
}

fn octets(ip: IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, ip.octets().to_vec()),
    }
}

fn address_body(family: u8, a: &Found) -> Vec<u8> {
    [&[family, a.prefix, 0, 0][..], &a.index.to_ne_bytes()].concat()
}

/// Configures an address, or gives one that is there another lifetime.
pub(crate) fn put_address(wanted: &Wanted) -> Vec<u8> {
    let Wanted { address, lifetime_s, routed } = wanted;
    let (family, bytes) = octets(address.ip);
    // Preferred for 0 s: never the source of what this machine begins itself.
    let cache = [0_u32.to_ne_bytes(), lifetime_s.to_ne_bytes(), [0; 4], [0; 4]].concat();
    let route = if *routed && family == AF_INET6 { IFA_F_NOPREFIXROUTE } else { 0 };
    let flags = (IFA_F_NODAD | route).to_ne_bytes();
    let body = address_body(family, address);
    let attributes: [(u16, &[u8]); 5] = [
        (IFA_LOCAL, &bytes),
        (IFA_ADDRESS, &bytes),
        (IFA_FLAGS, &flags),
        (IFA_CACHEINFO, &cache),
        (IFA_PROTO, &[address.mark]),
    ];
    message(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &body, &attributes)
}

/// Takes an address away.
pub(crate) fn remove_address(address: &Found) -> Vec<u8> {
    let (family, bytes) = octets(address.ip);
    message(
        RTM_DELADDR,
        NLM_F_ACK,
        &address_body(family, address),
        &[(IFA_LOCAL, &bytes), (IFA_ADDRESS, &bytes)],
    )
}

/// What the kernel says, message by message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Address(Found),
    /// An interface: its number, its type (ARPHRD), its hardware address.
    Link(u32, u16, Vec<u8>),
    /// The end; an errno, or 0.
    End(i32),
    Other,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Takes a datagram apart. None: it is cut off, or contradicts itself.
pub(crate) fn parse(mut bytes: &[u8]) -> Option<Vec<Said>> {
    let mut all = vec![];
    while !bytes.is_empty() {
        let len = word(bytes, 0)? as usize;
        if len < HEADER {
            return None;
        }
        let one = bytes.get(..len)?;
        all.push(said(half(one, 4)?, &one[HEADER..])?);
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(all)
}

fn said(kind: u16, body: &[u8]) -> Option<Said> {
    Some(match kind {
        NLMSG_DONE => Said::End(0),
        NLMSG_ERROR => Said::End(word(body, 0)?.cast_signed().checked_neg()?),
        RTM_NEWADDR => {
            let (family, prefix) = (*body.first()?, *body.get(1)?);
            let (mut ip, mut mark) = (None, 0);
            attributes(body.get(8..)?, |kind, value| match kind {
                // Of a link between two points IFA_ADDRESS is the other end.
                IFA_LOCAL => ip = address(family, value).or(ip),
                IFA_ADDRESS => ip = ip.or(address(family, value)),
                IFA_PROTO => mark = value.first().copied().unwrap_or(0),
                _ => {}
            })?;
            let index = word(body, 4)?;
            ip.map_or(Said::Other, |ip| Said::Address(Found { index, ip, prefix, mark }))
        }
        RTM_NEWLINK => {
            let mut mac = vec![];
            attributes(body.get(16..)?, |kind, value| {
                if kind == IFLA_ADDRESS {
                    mac = value.to_vec();
                }
            })?;
            Said::Link(word(body, 4)?, half(body, 2)?, mac)
        }
        _ => Said::Other,
    })
}

fn address(family: u8, value: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => Some(<[u8; 4]>::try_from(value).ok()?.into()),
        AF_INET6 => Some(<[u8; 16]>::try_from(value).ok()?.into()),
        _ => None,
    }
}

fn attributes(mut bytes: &[u8], mut with: impl FnMut(u16, &[u8])) -> Option<()> {
    while bytes.len() >= 4 {
        let (len, kind) = (usize::from(half(bytes, 0)?), half(bytes, 2)?);
        with(kind & 0x3fff, bytes.get(4..len)?);
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(())
}

/// What the kernel answers to one request, up to its end.
pub(crate) fn request(message: &[u8]) -> io::Result<Vec<Said>> {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
    };
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    // A kernel that does not answer is no reason to wait for ever.
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(std::time::Duration::from_secs(2)),
    )?;
    send(&socket, message, SendFlags::empty())?;
    let (mut all, mut buffer) = (vec![], vec![0; 64 << 10]);
    loop {
        let (n, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let said = parse(&buffer[..n]).ok_or(io::ErrorKind::InvalidData)?;
        for one in said {
            match one {
                Said::End(0) => return Ok(all),
                Said::End(errno) => return Err(io::Error::from_raw_os_error(errno)),
                one => all.push(one),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ip: &str, prefix: u8) -> Found {
        Found { index: 7, ip: ip.parse().expect("one"), prefix, mark: 0x4d }
    }

    #[test]
    fn an_address_that_is_put_is_laid_out_as_the_kernel_reads_it() {
        let bytes = put_address(&Wanted { address: found("10.1.0.5", 24), lifetime_s: 10, routed: true });
        let expect: Vec<u8> = [
            &76_u32.to_ne_bytes()[..],
            &20_u16.to_ne_bytes(),
            &0x505_u16.to_ne_bytes(),
            &[0; 8],
            &[2, 24, 0, 0],
            &7_u32.to_ne_bytes(),
            &[8, 0, 2, 0, 10, 1, 0, 5],
            &[8, 0, 1, 0, 10, 1, 0, 5],
            &[8, 0, 8, 0, 2, 0, 0, 0],
            &[20, 0, 6, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[5, 0, 11, 0, 0x4d, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes.len(), expect.len());
        assert_eq!(bytes, expect);
        let v6 = put_address(&Wanted { address: found("fd00::5", 64), lifetime_s: 10, routed: true });
        assert!(v6.windows(8).any(|w| w == [8, 0, 8, 0, 2, 2, 0, 0]), "no route of its own: {v6:?}");
    }

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_not() {
        for address in [found("10.1.0.5", 24), found("fd00::5", 64)] {
            let bytes = put_address(&Wanted { address, lifetime_s: 1, routed: false });
            assert_eq!(parse(&bytes), Some(vec![Said::Address(address)]));
            for cut in 1..bytes.len() {
                assert_eq!(parse(&bytes[..cut]), None, "cut at {cut}");
            }
        }
        let mut short = remove_address(&found("10.1.0.5", 24));
        short[0] = 8;
        assert_eq!(parse(&short), None);
        assert_eq!(parse(&message(NLMSG_ERROR, 0, &(-17_i32).to_ne_bytes(), &[])), Some(vec![Said::End(17)]));
    }
}
