//! Settings of the driver of a network port: how long it gathers packets before it interrupts, and how many queues it has.
//! The kernel offers them only by an ioctl (SIOCETHTOOL, `linux/ethtool.h`), not as files.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A value of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knob {
    /// Microseconds between a packet that came and its interrupt, at most.
    RxUsecs,
    /// 1: the driver chooses that time by itself.
    AdaptiveRx,
    /// Queues for both directions; can only be read here (setting it takes the link down).
    Queues,
    /// Most queues that the hardware has; can only be read.
    QueuesMax,
}

impl Knob {
    /// All of them.
    pub const ALL: [Knob; 4] = [Knob::RxUsecs, Knob::AdaptiveRx, Knob::Queues, Knob::QueuesMax];

    /// Its name, as the `ethtool` program has it for the first two.
    pub fn word(self) -> &'static str {
        match self {
            Knob::RxUsecs => "rx-usecs",
            Knob::AdaptiveRx => "adaptive-rx",
            Knob::Queues => "queues",
            Knob::QueuesMax => "queues-max",
        }
    }
}

const GET_COALESCE: u32 = 0x0e;
const SET_COALESCE: u32 = 0x0f;
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_coalesce`, as the words that it consists of.
type Coalesce = [u32; 23];
/// `struct ethtool_channels`, likewise.
type Channels = [u32; 9];

/// Places in [`Coalesce`].
const RX_USECS: usize = 1;
const ADAPTIVE_RX: usize = 10;
/// Places in [`Channels`].
const MAX_RX: usize = 1;
const MAX_COMBINED: usize = 4;
const RX: usize = 5;
const COMBINED: usize = 8;

/// Reads a value of a port.
///
/// Errors: there is no such port, or its driver has no such value (`EOPNOTSUPP`).
pub fn get(port: &str, knob: Knob) -> io::Result<u32> {
    match knob {
        Knob::RxUsecs | Knob::AdaptiveRx => {
            let mut words: Coalesce = [0; 23];
            words[0] = GET_COALESCE;
            ask(port, &mut words)?;
            Ok(words[if knob == Knob::RxUsecs { RX_USECS } else { ADAPTIVE_RX }])
        }
        Knob::Queues | Knob::QueuesMax => {
            let mut words: Channels = [0; 9];
            words[0] = GET_CHANNELS;
            ask(port, &mut words)?;
            // A queue serves both directions, or there are some for each.
            let (both, rx) = if knob == Knob::Queues { (COMBINED, RX) } else { (MAX_COMBINED, MAX_RX) };
            Ok(words[both].saturating_add(words[rx]))
        }
    }
}

/// Sets a value of a port and leaves its others as they are.
///
/// Errors: as [`get`]; not allowed; not this value; a value that can only be read (`InvalidInput`).
pub fn set(port: &str, knob: Knob, value: u32) -> io::Result<()> {
    let place = match knob {
        Knob::RxUsecs => RX_USECS,
        Knob::AdaptiveRx => ADAPTIVE_RX,
        Knob::Queues | Knob::QueuesMax => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let mut words: Coalesce = [0; 23];
    words[0] = GET_COALESCE;
    ask(port, &mut words)?;
    words[0] = SET_COALESCE;
    words[place] = value;
    ask(port, &mut words)
}

/// One SIOCETHTOOL on `words`, whose first says what is asked.
fn ask<const N: usize>(port: &str, words: &mut [u32; N]) -> io::Result<()> {
    let name = port.as_bytes();
    // SAFETY: an ifreq is plain data, for which zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(&0) {
        return Err(io::ErrorKind::NotFound.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    // SAFETY: `request` points to `words`, which is as long as the structure of the command in its first word and lives
    // beyond the call; the kernel reads and writes no more than that.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCETHTOOL, &mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_not_there_or_have_no_such_value_are_errors() {
        for name in ["", "nosuchport", "a-name-far-too-long-for-a-port", "a\0b"] {
            for knob in Knob::ALL {
                assert!(get(name, knob).is_err(), "{name} {knob:?}");
            }
        }
        // The loopback's driver has neither.
        for knob in Knob::ALL {
            assert!(get("lo", knob).is_err(), "{knob:?}");
        }
        assert!(set("lo", Knob::RxUsecs, 8).is_err());
        assert_eq!(set("lo", Knob::Queues, 8).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
    }
}
