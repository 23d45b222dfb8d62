//! Network ports.

use crate::pci::is_address;
use crate::recording::{Clock, Recording};
use serde::Serialize;

/// A network port.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Port {
    /// Its name, `eth0`.
    pub name: String,
    /// The PCI device that it is of.
    pub device: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// `up`, `down`, `unknown`.
    pub state: String,
    /// Megabits a second, None if it does not tell.
    pub speed_mbit: Option<u64>,
    /// Largest packet, bytes.
    pub mtu: Option<u64>,
    /// Queues for what comes in.
    pub rx_queues: u32,
    /// Queues for what goes out.
    pub tx_queues: u32,
    /// Bytes a second in, between the readings.
    pub rx_bytes: Option<f64>,
    /// Bytes a second out.
    pub tx_bytes: Option<f64>,
    /// Packets a second in.
    pub rx_packets: Option<f64>,
    /// Packets a second out.
    pub tx_packets: Option<f64>,
    /// Packets dropped a second, both ways.
    pub dropped: Option<f64>,
}

/// What of a port's line rate carries data, over Ethernet and TCP with time stamps: 52 bytes of headers in each packet,
/// and 38 on the wire around it.
pub fn payload_share(mtu: u64) -> f64 {
    let mtu = mtu.clamp(576, 65_535) as f64;
    (mtu - 52.0) / (mtu + 38.0)
}

impl Port {
    /// What data passes in each direction, bytes a second; None if the speed is not known.
    pub fn payload_bytes(&self) -> Option<f64> {
        Some(self.speed_mbit? as f64 * 125_000.0 * payload_share(self.mtu.unwrap_or(1500)))
    }
}

pub(crate) fn ports(from: &Recording) -> Vec<Port> {
    let base = "/sys/class/net";
    let mut out = Vec::new();
    for name in from.list(base) {
        let file = |file: &str| format!("{base}/{name}/{file}");
        // Ethernet and InfiniBand; not the loopback, tunnels and the like.
        if !matches!(from.number(&file("type")), Some(1 | 32)) {
            continue;
        }
        let path = from.link(&format!("{base}/{name}")).unwrap_or("");
        let device = path.split('/').rfind(|part| is_address(part)).map(String::from);
        let queues =
            |stem: &str| from.list(&file("queues")).iter().filter(|q| q.starts_with(stem)).count() as u32;
        let rate = |counter: &str| rate(from, &file(&format!("statistics/{counter}")));
        out.push(Port {
            driver: device
                .as_ref()
                .and_then(|d| from.link_name(&format!("/sys/bus/pci/devices/{d}/driver")))
                .map(String::from),
            device,
            state: from.text(&file("operstate")).unwrap_or("unknown").into(),
            // A port without a link tells -1, some tell 2^32 - 1.
            speed_mbit: from.number(&file("speed")).filter(|s| (1..10_000_000).contains(s)),
            mtu: from.number(&file("mtu")).filter(|m| *m > 0),
            rx_queues: queues("rx-"),
            tx_queues: queues("tx-"),
            rx_bytes: rate("rx_bytes"),
            tx_bytes: rate("tx_bytes"),
            rx_packets: rate("rx_packets"),
            tx_packets: rate("tx_packets"),
            dropped: rate("rx_dropped").zip(rate("tx_dropped")).map(|(a, b)| a + b),
            name,
        });
    }
    out
}

/// How fast a counter rose between the readings.
fn rate(from: &Recording, path: &str) -> Option<f64> {
    let after: u64 = from.later(path)?.trim().parse().ok()?;
    Some(after.saturating_sub(from.number(path)?) as f64 / from.seconds_of(Clock::Counters)?)
}
