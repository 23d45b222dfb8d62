//! Verified I/O of a kernel host.

use lab::{Job, Vm};
use serde_json::Value;
use std::time::Duration;

/// How long one run of a paced load writes, s; what it wrote is read back then, and the next run begins.
const RUN_SECONDS: u32 = 10;
/// What a paced load prints before each run.
const RUN: &str = "-- a run of fio";
/// How long the last run may take to its end, and the guest for a word about that, s. A run outlasts a takeover.
const END: u64 = 600;

/// Shell words in a guest for an fio that writes known blocks all over `disk` and reads them back.
pub fn fio_verify(disk: &str, size_mb: u32) -> String {
    format!(
        "fio --name=v --filename={disk} --size={size_mb}M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio \
         --direct=1 --verify=crc32c --verify_fatal=1 --minimal"
    )
}

/// The same at so many blocks of 4 KiB a second, each written once and then read back. Each run has a seed of its own:
/// with that of the run before, a block that was lost would be read as it was written then, and look right.
fn fio_paced(disk: &str, rate: u32) -> String {
    let blocks = RUN_SECONDS * rate;
    let pace = format!("--number_ios={blocks} --rate_iops=4000,{rate} --output-format=json");
    let seed = "--randseed=$(date +%s)";
    // Each block of its part of the disk once, and some are left.
    fio_verify(disk, blocks.div_ceil(256) + 1).replace("--minimal", &format!("{seed} {pace}"))
}

/// Verified I/O of a guest at a pace, which goes on until what it is to outlast is over.
pub struct Paced {
    vm: Vm,
    job: Job,
    /// The file that says so.
    over: String,
}

impl Paced {
    /// Starts to write to a disk, at so many blocks a second.
    pub fn start(vm: &Vm, disk: &str, rate: u32) -> Paced {
        let over = format!("/run/over-{}", disk.rsplit('/').next().unwrap_or_default());
        let fio = fio_paced(disk, rate);
        let script = format!(
            "rm -f {over}; while :; do echo '{RUN}'; {fio} || exit 1; [ ! -e {over} ] || exit 0; done"
        );
        let job = vm.spawn(&script).expect("fio");
        Paced { vm: vm.clone(), job, over }
    }

    /// Panics if it has ended: nobody has told it to.
    pub fn must_run(&self) {
        assert!(!self.job.done(), "a load ended before anybody said so: {}", self.job.so_far());
    }

    /// Ends loads, each with the run that it is in, and says what they saw. `logs` is shown if one had an error.
    pub fn end<const N: usize>(loads: [Paced; N], what: &str, logs: impl Fn() -> String) -> [Seen; N] {
        for load in &loads {
            let told = load.vm.run(&format!("touch {}", load.over), END);
            told.unwrap_or_else(|e| panic!("{what}: {e:#}\n{}", logs()));
        }
        loads.map(|load| {
            let done = load.job.wait(Duration::from_secs(END)).and_then(|o| o.good(what));
            Seen::of(&done.unwrap_or_else(|e| panic!("{e:#}\n{}", logs())).stdout)
        })
    }
}

/// What a host saw.
pub struct Seen {
    /// The longest command, s.
    pub stall_s: f64,
    /// Blocks that were read back.
    pub blocks: u64,
}

impl Seen {
    /// From what the runs of a paced load printed; panics if there was an error.
    fn of(said: &str) -> Seen {
        let mut seen = Seen { stall_s: 0.0, blocks: 0 };
        for run in said.split(RUN).skip(1) {
            let json = run.find('{').map_or("", |at| &run[at..]);
            let report: Value = serde_json::from_str(json).expect("JSON of fio");
            let job = &report["jobs"][0];
            assert_eq!(job["error"], 0, "{job}");
            let number = |way: &str, key: &str| job[way][key].as_u64().expect("a count");
            let (wrote, read) = (number("write", "total_ios"), number("read", "total_ios"));
            assert!(wrote > 0 && wrote <= read, "it wrote {wrote} blocks and read {read} back");
            let longest = |way: &str| job[way]["lat_ns"]["max"].as_f64().expect("a time");
            seen.stall_s = seen.stall_s.max(longest("read").max(longest("write")) / 1e9);
            seen.blocks += read;
        }
        assert!(seen.blocks > 0, "a load did nothing: {said}");
        seen
    }
}
