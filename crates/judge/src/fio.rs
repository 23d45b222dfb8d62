//! Verified I/O of a kernel host.

use serde_json::Value;

/// Shell words in a guest for an fio that writes known blocks all over `disk` and reads them back.
pub fn fio_verify(disk: &str, size_mb: u32) -> String {
    format!(
        "fio --name=v --filename={disk} --size={size_mb}M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio \
         --direct=1 --verify=crc32c --verify_fatal=1 --minimal"
    )
}

/// The same for so many seconds, at so many blocks of 4 KiB a second, each written once and then read back; [`Seen::of`] reads what it says.
pub fn fio_paced(disk: &str, seconds: u32, rate: u32) -> String {
    let blocks = seconds * rate;
    let pace = format!("--number_ios={blocks} --rate_iops=4000,{rate} --output-format=json");
    // Each block of its part of the disk once, and some are left.
    fio_verify(disk, blocks.div_ceil(256) + 1).replace("--minimal", &pace)
}

/// What a host saw.
pub struct Seen {
    /// The longest command, s.
    pub stall_s: f64,
    /// Blocks that were read back.
    pub blocks: u64,
}

impl Seen {
    /// From what [`fio_paced`] printed; panics if there was an error.
    pub fn of(said: &str) -> Seen {
        let json = said.find('{').map_or("", |at| &said[at..]);
        let report: Value = serde_json::from_str(json).expect("JSON of fio");
        let job = &report["jobs"][0];
        assert_eq!(job["error"], 0, "{job}");
        let number = |way: &str, key: &str| job[way][key].as_u64().expect("a count");
        let (wrote, read) = (number("write", "total_ios"), number("read", "total_ios"));
        assert!(wrote > 0 && wrote <= read, "it wrote {wrote} blocks and read {read} back");
        let longest = |way: &str| job[way]["lat_ns"]["max"].as_f64().expect("a time");
        Seen { stall_s: longest("read").max(longest("write")) / 1e9, blocks: read }
    }
}
