//! Packets that a head builds itself after a takeover: which port has an address now, and resets of connections that are over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Gratuitous ARP (RFC 5227, 3): everybody learns that `ip` is at `mac`. As a request, or as a reply.
pub(crate) fn arp(mac: [u8; 6], ip: Ipv4Addr, reply: bool) -> Vec<u8> {
    let target = if reply { mac } else { [0; 6] };
    let operation = if reply { 2 } else { 1 };
    [&[0, 1, 8, 0, 6, 4, 0, operation], &mac[..], &ip.octets(), &target, &ip.octets()].concat()
}

/// Unsolicited neighbour advertisement (RFC 4861, 7.2.6) with its IPv6 header, to all nodes, which is to replace what they know.
pub(crate) fn advertisement(mac: [u8; 6], ip: Ipv6Addr) -> Vec<u8> {
    const OVERRIDE: u8 = 0x20;
    let to = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let mut body = [&[136, 0, 0, 0, OVERRIDE, 0, 0, 0], &ip.octets()[..], &[2, 1], &mac].concat();
    let sum = checksum(ip.into(), to.into(), 58, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let len = (body.len() as u16).to_be_bytes();
    // A hop limit of 255 shows that no router has passed it on.
    [&[0x60, 0, 0, 0, len[0], len[1], 58, 255], &ip.octets()[..], &to.octets(), &body].concat()
}

/// A TCP segment without data that its receiver does not expect, and answers with what it does: an acknowledgement with its real
/// numbers. Where no socket takes that, the answer is a reset that it believes.
pub(crate) fn tickle(from: SocketAddr, to: SocketAddr, seq: u32) -> Vec<u8> {
    const ACK: u8 = 0x10;
    let (source, target) = (from.port().to_be_bytes(), to.port().to_be_bytes());
    let mut out = [&source[..], &target, &seq.to_be_bytes(), &[0; 4], &[5 << 4, ACK, 4, 0], &[0; 4]].concat();
    let sum = checksum(from.ip(), to.ip(), 6, &out);
    out[16..18].copy_from_slice(&sum.to_be_bytes());
    out
}

/// The Internet checksum (RFC 1071) with the pseudo header of TCP or ICMPv6.
fn checksum(from: IpAddr, to: IpAddr, protocol: u8, body: &[u8]) -> u16 {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let length = (body.len() as u32).to_be_bytes();
    let all = [&octets(from)[..], &octets(to), &length, &[0, 0, 0, protocol], body].concat();
    let mut sum: u32 =
        all.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

    #[test]
    fn arp_is_as_the_standard_draws_it() {
        let ip = Ipv4Addr::new(10, 1, 0, 5);
        let request = arp(MAC, ip, false);
        assert_eq!(
            request,
            [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 1, 0, 5, 0, 0, 0, 0, 0, 0, 10, 1, 0, 5]
        );
        let reply = arp(MAC, ip, true);
        assert_eq!((reply[7], &reply[18..24], reply.len()), (2, &MAC[..], 28));
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 sums to ddf2.
        let zero = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let sum = checksum(zero, zero, 0, &[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]);
        // The length, 8, is in the pseudo header.
        assert_eq!(sum, !(0xddf2 + 8));
        // One's complement over what was summed, the sum in its place, is zero.
        for (from, to) in [("10.1.0.5:4420", "10.1.0.9:50000"), ("[fd00::5]:3260", "[fd00::9]:50001")] {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().expect("one"), to.parse().expect("one"));
            let segment = tickle(from, to, 0x1234_5678);
            assert_eq!((segment.len(), segment[13]), (20, 0x10));
            assert_eq!(checksum(from.ip(), to.ip(), 6, &segment), 0);
            let mut other = segment.clone();
            other[5] ^= 1;
            assert_ne!(checksum(from.ip(), to.ip(), 6, &other), 0);
        }
        let packet = advertisement(MAC, "fd00::5".parse().expect("one"));
        assert_eq!((packet.len(), packet[7], packet[40], packet[44]), (72, 255, 136, 0x20));
        let all: IpAddr = "ff02::1".parse().expect("one");
        assert_eq!(checksum("fd00::5".parse().expect("one"), all, 58, &packet[40..]), 0);
    }
}
