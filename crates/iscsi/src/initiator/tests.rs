use super::{fuzz, status_of};
use crate::pdu::{
    self, Counters, DataIn, Framing, LoginResponse, R2t, ScsiResponse, Stage, TaskManagementResponse,
};
use base::{FaultKind, HostStatus, Prng};

/// Plausible target bytes: a login that succeeds, the bring-up's answers, then a mixture.
fn plausible(rng: &mut Prng) -> Vec<u8> {
    let choice = rng.next_u64() as u8;
    let mut out = vec![choice];
    let mut sn = 5;
    let mut next = |advance: bool| {
        let c = Counters { stat_sn: sn, exp_cmd_sn: 1, max_cmd_sn: 64 };
        sn += u32::from(advance);
        c
    };
    let mut framing = Framing::default();
    let security = LoginResponse {
        transit: true,
        next: Stage::Operational,
        counters: next(true),
        ..LoginResponse::default()
    };
    framing.put(&mut out, security.encode(), b"AuthMethod=None\0");
    let last = LoginResponse {
        transit: true,
        current: Stage::Operational,
        next: Stage::FullFeature,
        tsih: 1,
        counters: next(true),
        ..LoginResponse::default()
    };
    let mut text = b"MaxRecvDataSegmentLength=8192\0InitialR2T=No\0".to_vec();
    framing = Framing { header_digest: choice & 2 != 0, data_digest: choice & 4 != 0 };
    if framing.header_digest {
        text.extend_from_slice(b"HeaderDigest=CRC32C\0");
    }
    if framing.data_digest {
        text.extend_from_slice(b"DataDigest=CRC32C\0");
    }
    Framing::default().put(&mut out, last.encode(), &text);
    let mut capacity = [0; 32];
    capacity[6] = 1;
    capacity[10] = 2;
    for data in [&[0u8; 16][..], &[0; 36], &[0, 0x83, 0, 0], &[0, 0xb0, 0, 0], &[], &capacity] {
        let d = DataIn { last: true, status: Some(0), counters: next(true), ..DataIn::default() };
        if data.is_empty() {
            let r = ScsiResponse { counters: d.counters, ..ScsiResponse::default() };
            framing.put(&mut out, r.encode(), &[]);
        } else {
            framing.put(&mut out, d.encode(), data);
        }
    }
    for _ in 0..rng.below(20) {
        let task_tag = rng.below(4) as u32;
        let status = rng.chance(1, 2);
        let mut data = vec![0; [512, 8192, 131_072, rng.below(3000) as usize][rng.below(4) as usize]];
        match rng.below(4) {
            0 => {
                let counters = next(true);
                let r = ScsiResponse { task_tag, status: 2, counters, ..ScsiResponse::default() };
                framing.put(&mut out, r.encode(), &[0, 18, 0x70, 0, 6, 0, 0, 0, 0, 10]);
            }
            1 => {
                let (offset, desired) = (rng.below(70_000) as u32, 1 + rng.below(70_000) as u32);
                let offset = if rng.chance(1, 2) { 65_536 } else { offset };
                let r = R2t {
                    task_tag,
                    transfer_tag: 7,
                    counters: next(false),
                    offset,
                    desired,
                    ..R2t::default()
                };
                framing.put(&mut out, r.encode(), &[]);
            }
            2 => {
                // An abort's, or that of a function that ends all tasks.
                let task_tag = *rng.pick(&[0x4000_0000 | task_tag, 0x6000_0000]);
                let r = TaskManagementResponse { response: 0, task_tag, counters: next(true) };
                framing.put(&mut out, r.encode(), &[]);
            }
            _ => {
                let status_byte = status.then_some(0);
                let counters = next(status);
                let d = DataIn { last: true, task_tag, status: status_byte, counters, ..DataIn::default() };
                rng.fill(&mut data);
                framing.put(&mut out, d.encode(), &data);
            }
        }
    }
    out
}

#[test]
fn no_bytes_from_a_target_make_the_initiator_panic() {
    let mut rng = Prng::new(5);
    for round in 0..10_000 {
        let mut bytes = plausible(&mut rng);
        for _ in 0..rng.below(3) * (round & 1) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        if round % 8 == 0 {
            rng.fill(&mut bytes);
        }
        fuzz::session(&bytes);
    }
}

#[test]
fn sense_says_whether_to_try_again() {
    let sense = |key: u8, asc: u8, ascq: u8| {
        let mut s = [0; 18];
        s[0] = 0x70;
        s[2] = key;
        s[12] = asc;
        s[13] = ascq;
        s
    };
    let kind = |s: HostStatus| match s {
        HostStatus::Failed(f) => (f.kind, false),
        HostStatus::Retry { fault, .. } => (fault.kind, true),
        HostStatus::Good | HostStatus::ConnectionLost => panic!("an error"),
    };
    assert_eq!(status_of(0, &[]), HostStatus::Good);
    assert_eq!(kind(status_of(2, &sense(2, 4, 1))), (FaultKind::NotReady, true));
    assert_eq!(kind(status_of(2, &sense(2, 0x3a, 0))), (FaultKind::NotReady, false));
    assert_eq!(kind(status_of(2, &sense(6, 0x29, 0))), (FaultKind::Changed, true));
    assert_eq!(kind(status_of(2, &[0x72, 0xe, 0x1d, 0])), (FaultKind::Miscompare, false));
    assert_eq!(kind(status_of(2, &sense(7, 0x27, 7))), (FaultKind::NoSpace, false));
    assert_eq!(kind(status_of(2, &sense(7, 0x27, 0))), (FaultKind::WriteProtected, false));
    assert_eq!(kind(status_of(0x28, &[])), (FaultKind::Busy, true));
    assert_eq!(kind(status_of(2, &[])), (FaultKind::Other, false));
    let HostStatus::Failed(f) = status_of(2, &sense(5, 0x21, 0)) else { panic!("final") };
    assert_eq!((f.kind, f.raw), (FaultKind::OutOfRange, 0x0205_2100));
    assert_eq!(pdu::RESERVED_TAG, u32::MAX);
}
