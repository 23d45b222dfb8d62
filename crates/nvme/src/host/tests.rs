mod guest;

use super::fuzz;
use crate::pdu::{Digests, IcResp, Transfer, encode};
use crate::spec::{Cqe, StatusField};
use base::{Duration, FaultKind, HostStatus, Prng};

/// Plausible target bytes: ICResp, then answers and data PDUs with small random fields.
fn plausible(rng: &mut Prng) -> Vec<u8> {
    let choice = rng.next_u64() as u8;
    let digests = Digests { header: choice & 1 != 0, data: choice & 2 != 0 };
    let mut out = vec![choice];
    let resp = IcResp { pfv: 0, cpda: 0, digests, maxh2cdata: 4096 << rng.below(6) };
    out.extend_from_slice(&encode::ic_resp(resp));
    for _ in 0..rng.below(60) {
        let cid = if rng.chance(9, 10) { 30 - rng.below(2) as u16 } else { rng.below(40) as u16 };
        match rng.below(10) {
            0..=4 => {
                let status = if rng.chance(1, 20) { rng.next_u64() as u16 } else { 0 };
                let dw0 = if rng.chance(1, 2) { 1u32 } else { rng.below(4) as u32 };
                let cqe = Cqe { dw0: dw0.into(), cid: cid.into(), status: status.into(), ..Cqe::default() };
                out.extend_from_slice(&encode::response(&cqe, digests));
            }
            5..=8 => {
                let length = [4096, 1024, 512, rng.below(9000) as u32][rng.below(4) as usize];
                let t = Transfer { cccid: cid, ttag: 0, offset: 0, length };
                let (last, success) = (rng.chance(1, 2), rng.chance(1, 4));
                out.extend_from_slice(&encode::c2h_data(t, last, success, digests, 0));
                let mut data = vec![0; length as usize];
                rng.fill(&mut data);
                let crc = base::crc::crc32c(&data);
                out.extend_from_slice(&data);
                if digests.data && length > 0 {
                    out.extend_from_slice(&crc.to_le_bytes());
                }
            }
            _ => {
                let (offset, length) = (rng.below(9000) as u32, rng.below(70_000) as u32);
                let t = Transfer { cccid: cid, ttag: 3, offset, length };
                out.extend_from_slice(&encode::r2t(t, digests));
            }
        }
    }
    out
}

#[test]
fn no_bytes_from_a_target_make_the_host_panic() {
    let mut rng = Prng::new(11);
    for round in 0..20_000 {
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
fn statuses_say_whether_to_try_again_and_when() {
    let crdt = [100, 0, 0];
    let waits = |s: StatusField| match super::block_status(s, crdt) {
        HostStatus::Retry { after, .. } => Some(after),
        _ => None,
    };
    assert_eq!(super::block_status(StatusField::SUCCESS, crdt), HostStatus::Good);
    assert_eq!(waits(StatusField::NAMESPACE_NOT_READY.crd(1)), Some(Duration::from_secs(10)));
    assert_eq!(waits(StatusField::NAMESPACE_NOT_READY), Some(Duration::from_millis(20)));
    assert_eq!(waits(StatusField::NAMESPACE_NOT_READY.dnr()), None);
    assert_eq!(waits(StatusField::LBA_OUT_OF_RANGE), None);
    let HostStatus::Failed(fault) = super::block_status(StatusField::COMPARE_FAILURE.dnr(), crdt) else {
        panic!("a miscompare is final");
    };
    assert_eq!((fault.kind, fault.raw), (FaultKind::Miscompare, 0x285));
    let full = super::block_status(StatusField::CAPACITY_EXCEEDED.dnr(), crdt);
    let HostStatus::Failed(fault) = full else { panic!("no space stays so") };
    assert_eq!((fault.kind, fault.raw), (FaultKind::NoSpace, 0x81));
}
