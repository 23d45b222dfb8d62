//! A mirror of two on block devices in memory, through io_uring, beside the bare devices: one shard on one core that has no time left.

use crate::Line;
use judge::binary;
use judge::measure::{CLIENT_CORE, Shown, TARGET_CORE, middle};
use serde_json::Value;
use std::fs;
use std::io::{Error, ErrorKind};
use std::process::Command;

/// Bytes of a device.
const BYTES: u64 = 1 << 30;
const CONTROL: &str = "/sys/class/zram-control";

/// A device of its own, gone with the value.
struct Device(u32);

impl Device {
    fn new() -> Result<Self, Error> {
        let number = fs::read_to_string(format!("{CONTROL}/hot_add"))?;
        let number = number.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
        let device = Self(number);
        fs::write(format!("/sys/block/zram{number}/disksize"), BYTES.to_string())?;
        Ok(device)
    }
    fn path(&self) -> String {
        format!("/dev/zram{}", self.0)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        fs::write(format!("/sys/block/zram{}/reset", self.0), "1").ok();
        fs::write(format!("{CONTROL}/hot_remove"), self.0.to_string()).ok();
    }
}

/// Rates of the volume, as parts of the bare devices'. Errors: the machine gives no such devices.
pub fn mirror(rounds: usize) -> Result<Vec<Line>, Error> {
    let devices = [Device::new()?, Device::new()?];
    let line = |(rw, name): (&str, &str)| {
        let rates: Vec<[f64; 2]> = (0..rounds).map(|_| climb(&devices, rw)).collect();
        let of = |at: usize| middle(&rates.iter().map(|r| r[at]).collect::<Vec<_>>()) / 1e3;
        let name = format!("mirror of two on zram, {name} × 128: {:.0} K, bare {:.0} K", of(1), of(0));
        let ratios: Vec<f64> = rates.iter().map(|[bare, ours]| ours / bare).collect();
        Line::least(name, middle(&ratios), 0.90, Shown::Ratio)
    };
    Ok([("randread", "4K reads"), ("randwrite", "4K writes")].into_iter().map(line).collect())
}

/// Operations a second on the bare devices, and on the volume.
fn climb(devices: &[Device; 2], rw: &str) -> [f64; 2] {
    let mut ladder = Command::new(binary());
    ladder.args(["bench", "ladder", "--json", "--force", "--mirror", "2", "--bs", "4k", "--qd", "128"]);
    ladder.args(["--rw", rw, "--seconds", "1", "--cores", &format!("{TARGET_CORE},{CLIENT_CORE}")]);
    for device in devices {
        ladder.args(["--drive", &device.path()]);
    }
    let output = ladder.output().expect("the ladder runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let steps = report["ladder"]["steps"].as_array().expect("steps");
    ["drive", "volume"].map(|name| {
        let step = steps.iter().find(|step| step["name"] == name).expect("a step of that name");
        step["deep"]["total"]["iops"].as_f64().expect("a rate")
    })
}
