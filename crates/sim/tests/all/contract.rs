//! The simulated drive passes the same tests as real ones (`crates/uring/tests/all/drives.rs`), so that it is never more
//! reliable than a kernel.

#[path = "../../../uring/tests/all/contract.rs"]
mod rules;

use base::{DriveInfo, DriveOpKind, Fence, FenceAct, FenceError, FenceKind, NoFence, Prng};
use rules::{DriveHarness, Job, Outcome};
use sim::disk::{Disk, DiskOp};

struct Bench {
    disk: Disk,
    rng: Prng,
}

impl DriveHarness for Bench {
    fn info(&self) -> DriveInfo {
        self.disk.info()
    }
    /// What is side by side ends in any order.
    fn run(&mut self, jobs: Vec<Job>) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = jobs.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..jobs.len()).collect();
        while !left.is_empty() {
            let i = left.swap_remove(self.rng.below(left.len() as u64) as usize);
            let job = &jobs[i];
            let mut out = vec![0xee; if job.kind == DriveOpKind::Read { job.len as usize } else { 0 }];
            let op = DiskOp { kind: job.kind, at: job.at, len: job.len, data: &job.data, fua: job.fua };
            let result = self.disk.complete(&op, &mut out, &mut self.rng);
            outcomes[i] = Some((result, out));
        }
        outcomes.into_iter().map(|o| o.expect("every job ran")).collect()
    }
    fn fence(&mut self, act: FenceAct) -> Result<Fence, FenceError> {
        self.disk.carry_out_fence(0, act)
    }
}

#[test]
fn every_kind_of_simulated_drive_keeps_the_contract_of_real_ones() {
    for (seed, (sector, volatile)) in
        (0..).zip([(4096, false), (4096, true), (512, false), (512, true)].into_iter().cycle().take(16))
    {
        let mut disk = Disk::new("d".into(), 16 << 20, volatile);
        disk.sector = sector;
        disk.deallocate_zeroes = seed % 3 != 0;
        disk.fence = match seed % 5 {
            0 => FenceKind::File,
            1 => FenceKind::None(NoFence::Partition),
            _ => FenceKind::Scsi,
        };
        rules::check(&mut Bench { disk, rng: Prng::new(seed) }, true);
    }
}
