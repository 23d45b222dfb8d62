//! The simulated drive.

use base::{DriveError, DriveOpKind, Prng};
use sim::disk::{Disk, DiskOp};

const SECTOR: u64 = 4096;

fn write(at: u64, byte: u8, fua: bool) -> DiskOp<'static> {
    let data = match byte {
        0..=1 => &[1; SECTOR as usize],
        2 => &[2; SECTOR as usize],
        _ => &[3; SECTOR as usize],
    };
    DiskOp { kind: DriveOpKind::Write, at, len: SECTOR, data, fua }
}

#[test]
fn a_power_cut_spares_what_was_flushed_and_what_was_forced() {
    let mut lost = 0;
    for seed in 0..64 {
        let mut rng = Prng::new(seed);
        let mut disk = Disk::new("d".into(), 1 << 20, true);
        disk.complete(&write(0, 1, false), &mut [], &mut rng).expect("written");
        let flush = DiskOp { kind: DriveOpKind::Flush, at: 0, len: 0, data: &[], fua: false };
        disk.complete(&flush, &mut [], &mut rng).expect("flushed");
        disk.complete(&write(SECTOR, 2, true), &mut [], &mut rng).expect("forced");
        disk.complete(&write(2 * SECTOR, 3, false), &mut [], &mut rng).expect("cached");
        disk.power_cut(&mut rng);
        let mut out = vec![0; 3 * SECTOR as usize];
        disk.read(0, &mut out);
        assert_eq!((out[0], out[SECTOR as usize]), (1, 2));
        lost += u32::from(out[2 * SECTOR as usize] == 0);
    }
    assert!(lost > 10 && lost < 54, "cached writes are lost sometimes: {lost} of 64");
}

#[test]
fn sectors_that_are_not_uniform_survive_too() {
    let mut disk = Disk::new("d".into(), 1 << 20, false);
    let mut op = write(0, 0, false);
    let data: Vec<u8> = (0..SECTOR).map(|i| (i % 251) as u8).collect();
    op.data = &data;
    disk.complete(&op, &mut [], &mut Prng::new(1)).expect("written");
    let mut out = vec![0; SECTOR as usize];
    disk.read(0, &mut out);
    assert_eq!(out, op.data);
    let beyond = disk.complete(&write(1 << 20, 1, false), &mut [], &mut Prng::new(1));
    assert_eq!(beyond, Err(DriveError::Other(22)));
}
