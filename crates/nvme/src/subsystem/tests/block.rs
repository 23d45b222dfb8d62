//! Commands on I/O queues.

use super::*;
use crate::spec::fabrics::CATTR_NO_FLOW_CONTROL;
use crate::spec::nvm;
use crate::subsystem::ASKED_MAX;

/// Writes with an R2T, in H2CData of `part` bytes.
fn write_by_r2t(t: &mut Talk, mut sqe: Sqe, data: &[u8], part: usize) -> StatusField {
    sqe.sgl = Sgl::transport(data.len() as u32);
    let cid = t.start(sqe);
    let r2t = t.r2t();
    assert_eq!((r2t.cccid, r2t.offset, r2t.length as usize), (cid, 0, data.len()));
    send_parts(t, r2t, data, part);
    t.cqe().status()
}

fn send_parts(t: &mut Talk, r2t: Transfer, data: &[u8], part: usize) {
    for (i, piece) in data.chunks(part).enumerate() {
        let offset = i * part;
        let transfer = Transfer { offset: offset as u32, length: piece.len() as u32, ..r2t };
        t.h2c(transfer, offset + piece.len() == data.len(), piece);
    }
}

/// Reads, writes in the capsule and by R2T, compares, in one go; what it leaves must not depend on pieces.
fn exercise(mut t: Talk) -> Vec<u8> {
    let (small, large) = (stamp(8192, 1), stamp(100 * 512, 2));
    assert_eq!(t.write(ranged(nvm::WRITE, 1, 4, 16), &small), StatusField::SUCCESS);
    assert_eq!(write_by_r2t(&mut t, ranged(nvm::WRITE, 1, 100, 100), &large, 20000), StatusField::SUCCESS);
    assert_eq!(t.read(ranged(nvm::READ, 1, 4, 16), 8192), Ok(small.clone()));
    assert_eq!(t.read(ranged(nvm::READ, 1, 100, 100), 51200), Ok(large));
    assert_eq!(t.write(ranged(nvm::COMPARE, 1, 4, 16), &small), StatusField::SUCCESS);
    assert_eq!(t.write(ranged(nvm::COMPARE, 1, 5, 16), &small), StatusField::COMPARE_FAILURE.dnr());
    assert_eq!(t.run(ranged(nvm::WRITE_ZEROES, 1, 4, 8)).status(), StatusField::SUCCESS);
    assert_eq!(t.read(ranged(nvm::READ, 1, 4, 8), 4096), Ok(vec![0; 4096]));
    assert!(t.replies.is_empty() && t.io.closed.is_none());
    assert_eq!(t.io.under_way(), 0);
    t.disk.truncate(1 << 20);
    t.disk
}

#[test]
fn data_survive_any_piecing_any_digest_and_any_alignment() {
    let mut expected = None;
    for (digests, hpda) in [(NONE, 0), (BOTH, 0), (BOTH, 31), (Digests { header: true, data: false }, 3)] {
        for piece in [usize::MAX, 1, 2, 3, 7, 131, 4096, 10000] {
            let mut t = Talk::io(digests, hpda);
            assert_eq!(t.target.digests(), digests, "the head reports what was agreed");
            t.piece = piece;
            let disk = exercise(t);
            assert_eq!(*expected.get_or_insert_with(|| disk.clone()), disk);
        }
    }
}

#[test]
fn a_conversation_may_be_cut_at_any_byte() {
    // What a host sends until its R2T, and after it.
    let mut first = encode::ic_req(IcReq { digests: BOTH, ..IcReq::default() }).to_vec();
    let mut t = Talk::new();
    t.digests = BOTH;
    let mut put = |sqe: &Sqe, data: &[u8]| {
        first.extend_from_slice(&encode::command(sqe, data.len() as u32, BOTH, 0));
        t.add_data(&mut first, data);
    };
    put(&connect(1).sqe(), data(5, NQN, HOST).as_bytes());
    let mut write = ranged(nvm::WRITE, 1, 0, 2);
    write.cid = 1.into();
    write.sgl = Sgl::in_capsule(1024);
    put(&write, &stamp(1024, 5));
    let mut read = ranged(nvm::READ, 1, 0, 1);
    read.cid = 2.into();
    read.sgl = Sgl::transport(512);
    put(&read, &[]);
    let mut long = ranged(nvm::WRITE, 1, 8, 3);
    long.cid = 3.into();
    long.sgl = Sgl::transport(1536);
    put(&long, &[]);
    let second = |t: &Talk, ttag: u16| {
        let transfer = Transfer { cccid: 3, ttag, offset: 0, length: 1536 };
        let mut bytes = encode::h2c_data(transfer, true, BOTH, 0).to_vec();
        t.add_data(&mut bytes, &stamp(1536, 6));
        bytes
    };
    let whole = first.len() + second(&t, 0).len();
    let mut expected: Option<Vec<String>> = None;
    for cut in 0..=whole {
        // Small memory is quickly made.
        let mut t = Talk::sized(usual(), 128, 4096, 1 << 13);
        t.digests = BOTH;
        let a = cut.min(first.len());
        t.send(&first[..a]);
        t.send(&first[a..]);
        let ttag = t.replies.iter().find_map(|r| match r.header {
            Header::R2t(transfer) => Some(transfer.ttag),
            _ => None,
        });
        let second = second(&t, ttag.expect("its data are asked for"));
        let b = cut.saturating_sub(first.len());
        t.send(&second[..b]);
        t.send(&second[b..]);
        assert_eq!(t.io.closed, None, "cut at {cut}");
        // The order of answers (and so SQHD) depends on the cut, what they say does not.
        let mut replies: Vec<String> = t
            .replies
            .drain(..)
            .map(|r| match r.header {
                Header::Response(cqe) => format!("{} {:?}", cqe.cid, cqe.status()),
                // Which tag it has depends on the cut, too.
                Header::R2t(transfer) => format!("{:?}", Transfer { ttag: 0, ..transfer }),
                header => format!("{header:?} {:?}", crc32c(&r.data)),
            })
            .collect();
        replies.sort();
        assert_eq!(*expected.get_or_insert_with(|| replies.clone()), replies, "cut at {cut}");
        assert_eq!(t.disk[8 * 512..11 * 512], stamp(1536, 6));
        assert_eq!(t.io.under_way(), 0);
    }
    assert_eq!(expected.map(|e| e.len()), Some(7));
}

#[test]
fn success_stands_for_the_response_only_without_flow_control() {
    for (cattr, replies) in [(0, 2), (CATTR_NO_FLOW_CONTROL, 1)] {
        let mut t = Talk::initialized(BOTH, 0);
        let mut fields = connect(1);
        fields.cattr = cattr;
        assert_eq!(t.connect(fields, data(5, NQN, HOST)), StatusField::SUCCESS);
        let mut sqe = ranged(nvm::READ, 1, 0, 1);
        sqe.sgl = Sgl::transport(512);
        t.start(sqe);
        assert_eq!(t.replies.len(), replies);
        let Header::Data { success, last, .. } = t.reply().header else { panic!("data first") };
        assert_eq!((success, last), (cattr != 0, true));
        // A read that fails has a response in either case.
        t.replies.clear();
        t.hold = true;
        t.start(sqe);
        assert!(t.complete(Some(Status::Medium)));
        t.settle();
        let cqe = t.cqe();
        assert_eq!(cqe.status(), StatusField::READ_ERROR);
        assert_eq!(cqe.sqhd.get(), if cattr == 0 { 3 } else { 0 });
    }
}

#[test]
fn sqhd_counts_commands_and_wraps() {
    let mut t = Talk::io(NONE, 0);
    for i in 2..100u16 {
        let mut flush = Sqe::new(nvm::FLUSH, 0);
        flush.nsid = 1.into();
        assert_eq!(t.run(flush).sqhd.get(), i % 32);
    }
}

#[test]
fn what_the_host_asks_is_what_the_head_hears() {
    let mut t = Talk::io(NONE, 0);
    let mut write = ranged(nvm::WRITE, 2, 7, 2);
    write.cdw12 = (write.cdw12.get() | nvm::FUA).into();
    assert_eq!(t.write(write, &[1; 8192]), StatusField::SUCCESS);
    let mut zeroes = ranged(nvm::WRITE_ZEROES, 1, 3, 4096 - 3);
    zeroes.cdw12 = (zeroes.cdw12.get() | nvm::DEALLOCATE).into();
    t.run(zeroes);
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 2.into();
    t.run(flush);
    let command = |volume, op, at, blocks, fua| Command { volume: VolumeId(volume), op, at, blocks, fua };
    assert_eq!(
        t.done,
        [
            command(20, Op::Write, 7, 2, true),
            command(10, Op::WriteZeroes { deallocate: true }, 3, 4093, false),
            command(20, Op::Flush, 0, 0, false),
        ]
    );
}

#[test]
fn a_flush_of_all_flushes_one_after_the_other() {
    let mut t = Talk::io(NONE, 0);
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 0xffff_ffff.into();
    assert_eq!(t.run(flush).status(), StatusField::SUCCESS);
    assert_eq!(
        t.done.iter().map(|c| (c.volume.0, c.op)).collect::<Vec<_>>(),
        [(10, Op::Flush), (20, Op::Flush)]
    );
    // The first failure is the answer.
    t.hold = true;
    t.start(flush);
    assert!(t.complete(Some(Status::NotReady)));
    t.settle();
    assert_eq!(t.cqe().status(), StatusField::NAMESPACE_NOT_READY);
    assert_eq!(t.done.len(), 3);
}

fn ranges(ranges: &[(u64, u32)]) -> Vec<u8> {
    ranges.iter().flat_map(|(lba, n)| [&[0; 4][..], &n.to_le_bytes(), &lba.to_le_bytes()].concat()).collect()
}

fn dsm(ranges: u32, attributes: u32) -> Sqe {
    let mut sqe = Sqe::new(nvm::DATASET_MANAGEMENT, 0);
    sqe.nsid = 1.into();
    sqe.cdw10 = (ranges - 1).into();
    sqe.cdw11 = attributes.into();
    sqe
}

#[test]
fn ranges_are_deallocated_one_by_one() {
    let mut t = Talk::io(NONE, 0);
    // Linux sends a page, whatever the number of ranges; what stands behind them counts for nothing.
    let mut page = ranges(&[(5, 2), (0, 0), (9, 1), (1 << 60, 9)]);
    page.resize(4096, 0);
    assert_eq!(t.write(dsm(3, 4), &page), StatusField::SUCCESS);
    assert_eq!(
        t.done.iter().map(|c| (c.op, c.at, c.blocks)).collect::<Vec<_>>(),
        [(Op::Deallocate, 5, 2), (Op::Deallocate, 9, 1)]
    );
    t.done.clear();
    // A range out of range: nothing happens at all.
    assert_eq!(t.write(dsm(4, 4), &page), StatusField::LBA_OUT_OF_RANGE.dnr());
    // Hints alone.
    assert_eq!(t.write(dsm(4, 1), &page), StatusField::SUCCESS);
    assert!(t.done.is_empty());
    assert_eq!(t.write(dsm(4, 4), &page[..48]), StatusField::SGL_LENGTH_INVALID.dnr());
    assert_eq!(t.write(dsm(4, 4), &[0; 4112]), StatusField::SGL_LENGTH_INVALID.dnr());
    // All 256, by R2T.
    let all: Vec<(u64, u32)> = (0..256).map(|i| (i * 2, 1)).collect();
    assert_eq!(write_by_r2t(&mut t, dsm(256, 4), &ranges(&all), 1000), StatusField::SUCCESS);
    assert_eq!(t.done.len(), 256);
}

#[test]
fn every_status_has_its_word_and_only_some_may_be_retried() {
    let cases = [
        (Status::OutOfRange, StatusField::LBA_OUT_OF_RANGE.dnr()),
        (Status::Medium, StatusField::WRITE_FAULT),
        (Status::NotReady, StatusField(0x82)),
        (Status::NoVolume, StatusField::INVALID_NAMESPACE.dnr()),
        (Status::Aborted, StatusField::ABORT_REQUESTED),
        (Status::NoSpace, StatusField::CAPACITY_EXCEEDED.dnr()),
        (Status::WriteProtected, StatusField::WRITE_PROTECTED.dnr()),
        (Status::Internal, StatusField::INTERNAL_ERROR),
    ];
    let mut t = Talk::io(NONE, 0);
    t.hold = true;
    for (status, word) in cases {
        let mut sqe = ranged(nvm::WRITE, 1, 0, 1);
        sqe.cid = 77.into();
        sqe.sgl = Sgl::in_capsule(512);
        t.capsule(&sqe, &[0; 512]);
        assert!(t.complete(Some(status)));
        t.settle();
        assert_eq!(t.cqe().status(), word);
    }
}

#[test]
fn commands_that_make_no_sense_are_refused_and_the_queue_goes_on() {
    let mut t = Talk::io(BOTH, 0);
    let refuse = |t: &mut Talk, sqe: Sqe, word: StatusField| {
        assert_eq!(t.write(sqe, &[1; 512]), word.dnr());
        assert!(t.done.is_empty() && t.io.closed.is_none());
    };
    refuse(&mut t, Sqe::new(0x44, 0), StatusField::INVALID_OPCODE);
    for nsid in [0, 3, 1025, 0xffff_ffff] {
        refuse(&mut t, ranged(nvm::WRITE, nsid, 0, 1), StatusField::INVALID_NAMESPACE);
    }
    refuse(&mut t, ranged(nvm::WRITE, 1, BLOCKS, 1), StatusField::LBA_OUT_OF_RANGE);
    refuse(&mut t, ranged(nvm::WRITE, 1, BLOCKS - 1, 2), StatusField::LBA_OUT_OF_RANGE);
    refuse(&mut t, ranged(nvm::WRITE, 1, u64::MAX, 1), StatusField::LBA_OUT_OF_RANGE);
    refuse(&mut t, ranged(nvm::WRITE_ZEROES, 1, u64::MAX, 2), StatusField::LBA_OUT_OF_RANGE);
    refuse(&mut t, ranged(nvm::READ, 1, 0, 1), StatusField::SGL_TYPE_INVALID);
    refuse(&mut t, ranged(nvm::WRITE, 1, 0, 2), StatusField::SGL_LENGTH_INVALID);
    // 1 MiB is the largest transfer.
    refuse(&mut t, ranged(nvm::WRITE, 1, 0, 2049), StatusField::INVALID_FIELD);
    refuse(&mut t, ranged(nvm::READ, 2, 0, 257), StatusField::INVALID_FIELD);
    for flags in [0, 0x80, 0xc0, 0x41, 0x42] {
        let mut sqe = ranged(nvm::WRITE, 1, 0, 1);
        sqe.flags = flags;
        refuse(&mut t, sqe, StatusField::INVALID_FIELD);
    }
    let with = |kind, address: u64, length: u32| {
        let mut sqe = ranged(nvm::WRITE, 1, 0, 1);
        sqe.sgl = Sgl { address: address.into(), length: length.into(), kind, ..Sgl::default() };
        sqe
    };
    for (kind, address, word) in [
        (0x40, 0, StatusField::SGL_TYPE_INVALID),
        (0x00, 0, StatusField::SGL_TYPE_INVALID),
        (0x20, 0, StatusField::SGL_TYPE_INVALID),
        (0x31, 0, StatusField::SGL_TYPE_INVALID),
        (0x01, 1, StatusField::SGL_OFFSET_INVALID),
        (0x01, u64::MAX, StatusField::SGL_OFFSET_INVALID),
    ] {
        t.cid += 1;
        let mut sqe = with(kind, address, 512);
        sqe.cid = t.cid.into();
        t.capsule(&sqe, &[1; 512]);
        assert_eq!(t.cqe().status(), word.dnr(), "{kind:#x}");
    }
    let mut read = ranged(nvm::READ, 1, 0, 1);
    read.sgl = Sgl::transport(513);
    assert_eq!(t.run(read).status(), StatusField::SGL_LENGTH_INVALID.dnr());
    assert_eq!(t.get_property(property::CAP, 1), Err(StatusField::INVALID_FIELD.dnr()));
    assert_eq!(t.write(ranged(nvm::WRITE, 1, 0, 1), &[1; 512]), StatusField::SUCCESS);
    assert_eq!(t.io.under_way(), 0);
}

#[test]
fn data_may_lie_anywhere_in_the_capsule() {
    let mut t = Talk::io(BOTH, 0);
    let mut sqe = ranged(nvm::WRITE, 1, 0, 1);
    sqe.sgl = Sgl { address: 10.into(), ..Sgl::in_capsule(512) };
    let mut bytes = vec![7; 10];
    bytes.extend_from_slice(&stamp(512, 3));
    bytes.extend_from_slice(&[8; 20]);
    t.capsule(&sqe, &bytes);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    assert_eq!(t.disk[..512], stamp(512, 3));
}

#[test]
fn no_r2t_before_there_is_a_buffer() {
    let mut t = Talk::io(NONE, 0);
    t.io.withholds_buffers = true;
    t.hold_grants = true;
    let mut sqe = ranged(nvm::WRITE, 1, 0, 100);
    sqe.sgl = Sgl::transport(51200);
    t.start(sqe);
    assert!(t.replies.is_empty());
    // Other commands go on.
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 1.into();
    t.run(flush);
    t.hold_grants = false;
    t.settle();
    let r2t = t.r2t();
    send_parts(&mut t, r2t, &stamp(51200, 9), 30000);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    assert_eq!(t.disk[..51200], stamp(51200, 9));
}

#[test]
fn in_capsule_data_wait_for_their_buffer_and_hold_up_what_follows() {
    let mut t = Talk::io(BOTH, 0);
    t.io.withholds_buffers = true;
    t.hold_grants = true;
    let mut sqe = ranged(nvm::WRITE, 1, 0, 16);
    sqe.cid = 900.into();
    sqe.sgl = Sgl::in_capsule(8192);
    t.capsule(&sqe, &stamp(8192, 4));
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 1.into();
    t.start(flush);
    assert_eq!(t.target.want(), Want::Nothing);
    assert!(t.replies.is_empty() && !t.staged.is_empty());
    // That is our fault, not the host's.
    t.later(Duration::from_secs(100));
    assert_eq!(t.io.closed, None);
    t.hold_grants = false;
    t.settle();
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    assert_eq!(t.disk[..8192], stamp(8192, 4));
}

#[test]
fn long_data_are_received_where_they_belong() {
    let mut t = Talk::io(BOTH, 0);
    let data = stamp(65536, 8);
    let mut sqe = ranged(nvm::WRITE, 1, 0, 128);
    sqe.sgl = Sgl::transport(65536);
    t.start(sqe);
    let r2t = t.r2t();
    let mut bytes = encode::h2c_data(r2t, true, BOTH, 0).to_vec();
    t.add_data(&mut bytes, &data);
    t.send(&bytes[..1000]);
    let Want::Direct(slice) = t.target.want() else { panic!("{:?}", t.target.want()) };
    assert_eq!(slice.len as usize, 65536 - (1000 - 28));
    t.send(&bytes[1000..60000]);
    // The last bytes are few: they come with whatever follows.
    assert_eq!(t.target.want(), Want::Staging);
    t.send(&bytes[60000..]);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    assert_eq!(t.disk[..65536], data);
}

#[test]
fn only_so_much_is_asked_for_at_a_time_and_the_rest_in_turn() {
    let mut t = Talk::sized(usual(), 128, 1 << 20, 1 << 21);
    t.initialize(NONE, 0);
    assert_eq!(t.connect(connect(1), data(5, NQN, HOST)), StatusField::SUCCESS);
    let half = (ASKED_MAX / 2) as u32;
    let write = |t: &mut Talk, lba: u64, length: u32| {
        let mut sqe = ranged(nvm::WRITE, 1, lba, length / 512);
        sqe.sgl = Sgl::transport(length);
        t.start(sqe)
    };
    let cids: Vec<u16> = [half, half, half, 512].map(|length| write(&mut t, 0, length)).into();
    let (first, second) = (t.r2t(), t.r2t());
    assert_eq!((first.cccid, second.cccid), (cids[0], cids[1]));
    assert!(t.replies.is_empty(), "the others wait, a small one too: nobody passes another");
    // One that waits can be aborted: nothing was done for it.
    let what = base::front::Intervention::AbortCommand { queue: 1, cid: cids[2] };
    t.target.on_intervention(t.now, 9, &what, &mut t.io);
    t.settle();
    assert_eq!((t.cqe().status(), t.io.obeyed.as_slice()), (StatusField::ABORT_REQUESTED, &[(9, true)][..]));
    send_parts(&mut t, second, &stamp(half as usize, 1), 100_000);
    let small = t.r2t();
    assert_eq!(t.cqe().cid.get(), cids[1]);
    assert_eq!((small.cccid, small.length), (cids[3], 512));
    send_parts(&mut t, first, &stamp(half as usize, 2), 100_000);
    send_parts(&mut t, small, &stamp(512, 3), 512);
    assert_eq!([t.cqe().cid.get(), t.cqe().cid.get()], [cids[0], cids[3]]);
    // What is too much by itself is asked for when nothing else is.
    let all = ASKED_MAX as u32;
    let cids = [write(&mut t, 0, 512), write(&mut t, 0, all)];
    let small = t.r2t();
    assert!(small.cccid == cids[0] && t.replies.is_empty());
    send_parts(&mut t, small, &stamp(512, 4), 512);
    let large = t.r2t();
    assert_eq!(t.cqe().cid.get(), cids[0]);
    send_parts(&mut t, large, &stamp(all as usize, 5), 100_000);
    assert_eq!((t.cqe().cid.get(), t.io.under_way()), (cids[1], 0));
}

#[test]
fn a_wrong_data_digest_costs_the_command_alone() {
    let mut t = Talk::io(BOTH, 0);
    let mut sqe = ranged(nvm::WRITE, 1, 0, 1);
    sqe.cid = 500.into();
    sqe.sgl = Sgl::in_capsule(512);
    let mut bytes = encode::command(&sqe, 512, BOTH, 0).to_vec();
    bytes.extend_from_slice(&[1; 512]);
    bytes.extend_from_slice(&[0; 4]);
    t.send(&bytes);
    assert_eq!(t.cqe().status(), StatusField::TRANSIENT_TRANSPORT);
    // The second of three data PDUs.
    sqe.sgl = Sgl::transport(1536);
    sqe.set_range(0, 3);
    t.capsule(&sqe, &[]);
    let r2t = t.r2t();
    for i in 0..3 {
        let part = Transfer { offset: i * 512, length: 512, ..r2t };
        let mut bytes = encode::h2c_data(part, i == 2, BOTH, 0).to_vec();
        t.add_data(&mut bytes, &[1; 512]);
        bytes[50] ^= u8::from(i == 1);
        t.send(&bytes);
    }
    assert_eq!(t.cqe().status(), StatusField::TRANSIENT_TRANSPORT);
    assert!(t.done.is_empty());
    assert_eq!(t.write(ranged(nvm::WRITE, 1, 0, 1), &[1; 512]), StatusField::SUCCESS);
    assert_eq!(t.io.under_way(), 0);
}

#[test]
fn an_identifier_under_way_is_not_taken_twice() {
    let mut t = Talk::io(NONE, 0);
    t.hold = true;
    let mut sqe = Sqe::new(nvm::FLUSH, 0x1234);
    sqe.nsid = 1.into();
    t.capsule(&sqe, &[]);
    t.capsule(&sqe, &[]);
    assert_eq!(t.cqe().status(), StatusField::COMMAND_ID_CONFLICT.dnr());
    t.hold = false;
    t.settle();
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    t.capsule(&sqe, &[]);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
}

#[test]
fn answers_wait_in_order_while_the_host_does_not_read() {
    let mut t = Talk::sized(usual(), 2048, 4096, 4096);
    t.initialize(BOTH, 31);
    let mut fields = connect(1);
    fields.sqsize = 2047.into();
    assert_eq!(t.connect(fields, data(5, NQN, HOST)), StatusField::SUCCESS);
    t.stuck = true;
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 1.into();
    let first = t.cid + 1;
    // More than the ring holds.
    for _ in 0..2000 {
        t.start(flush);
    }
    assert!(t.io.room() < 400);
    assert_eq!((t.done.len(), t.staged.len()), (2000, 0));
    t.stuck = false;
    t.settle();
    let cids: Vec<u16> = (0..2000).map(|_| t.cqe().cid.get()).collect();
    assert_eq!(cids, (first..first + 2000).collect::<Vec<_>>());
    assert_eq!((t.io.under_way(), &t.io.closed), (0, &None));
}

#[test]
fn a_host_that_presumes_its_answers_is_heard_until_there_is_no_slot() {
    let mut t = Talk::new();
    t.io = Head::new(view(), OUTBOX_BYTES, 100, 512);
    t.initialize(NONE, 0);
    assert_eq!(t.connect(connect(1), data(5, NQN, HOST)), StatusField::SUCCESS);
    t.stuck = true;
    let mut read = ranged(nvm::READ, 1, 0, 1);
    read.sgl = Sgl::transport(512);
    // Two queues full of reads: it has been sent no answer.
    for _ in 0..64 {
        t.start(read);
    }
    // So many as the queue is long were answered, and wait to be sent.
    assert_eq!((t.done.len(), t.target.want()), (32, Want::Nothing));
    t.piece = 3000;
    t.stuck = false;
    t.settle();
    assert_eq!(t.replies.len(), 128);
    assert_eq!((t.io.under_way(), &t.io.closed), (0, &None));
}

#[test]
fn a_namespace_that_goes_takes_its_commands_with_it() {
    let mut t = Talk::io(NONE, 0);
    let mut sqe = ranged(nvm::WRITE, 2, 0, 1);
    sqe.sgl = Sgl::transport(4096);
    t.start(sqe);
    let r2t = t.r2t();
    t.new_view(|v| v.hosts[0].exports.truncate(1));
    t.h2c(r2t, true, &[1; 4096]);
    assert_eq!(t.cqe().status(), StatusField::INVALID_NAMESPACE.dnr());
    let mut read = ranged(nvm::READ, 2, 0, 1);
    read.sgl = Sgl::transport(4096);
    assert_eq!(t.run(read).status(), StatusField::INVALID_NAMESPACE.dnr());
    assert_eq!(t.io.under_way(), 0);
    t.new_view(|v| v.hosts[0].nqns.clear());
    assert!(matches!(t.io.closed, Some(Close::Refused(_))));
}

#[test]
fn disconnect_ends_an_io_queue() {
    let mut t = Talk::io(NONE, 0);
    let mut sqe = Sqe::new(admin::FABRICS, 0);
    sqe.nsid = 8.into();
    assert_eq!(t.run(sqe).status(), StatusField::SUCCESS);
    assert_eq!(t.io.closed, Some(Close::Logout));
}
