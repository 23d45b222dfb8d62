use super::*;
use crate::pdu::{R2t, RESERVED_TAG, Residual};
use base::Status;

fn write(talk: &mut Talk, at: u32, data: &[u8], immediate: usize, last: bool) -> u32 {
    let blocks = (data.len() / 512) as u16;
    let mut c = talk.command(0, &write10(at, blocks), data.len() as u32);
    c.write = true;
    c.last = last;
    talk.send(c.encode(), &data[..immediate]);
    c.task_tag
}

fn r2t(talk: &mut Talk) -> R2t {
    match talk.hear() {
        Some(Heard { response: Response::R2t(r2t), .. }) => r2t,
        other => panic!("no R2T but {other:?}"),
    }
}

#[test]
fn what_is_written_is_read_however_the_bytes_are_cut() {
    for digests in [false, true] {
        let keys: &[(&str, &str)] =
            if digests { &[("HeaderDigest", "CRC32C"), ("DataDigest", "CRC32C")] } else { &[] };
        for split in [1, 7, 48, 49, 513, usize::MAX] {
            let mut talk = Talk::ready(keys);
            talk.split = split;
            let data = pattern(split as u64, 40 * 512);
            let tag = write(&mut talk, 3, &data, data.len(), true);
            assert_eq!(talk.answer_of(tag).0.status, 0);
            let (response, back) = talk.simple(0, &read10(3, 40), data.len() as u32);
            assert_eq!((response.status, response.residual), (0, Residual::None));
            assert!(back == data, "split {split}");
            talk.no_leaks();
        }
    }
}

#[test]
fn a_whole_conversation_survives_a_cut_at_each_byte() {
    // Login, one write by R2T and its data as one stream: cut in two at every byte.
    let record = |cut: usize| {
        let mut talk = Talk::ready(&[("ImmediateData", "No"), ("DataDigest", "CRC32C")]);
        let data = pattern(1, 512);
        let mut c = talk.command(0, &write10(9, 1), 512);
        c.write = true;
        let mut stream = vec![];
        talk.framing.put(&mut stream, c.encode(), &[]);
        let before = stream.len();
        talk.feed(&stream[..cut.min(before)]);
        talk.feed(&stream[cut.min(before)..]);
        let asked = r2t(&mut talk);
        let mut stream = vec![];
        let pdu = DataOut {
            last: true,
            task_tag: c.task_tag,
            transfer_tag: asked.transfer_tag,
            ..DataOut::default()
        };
        talk.framing.put(&mut stream, pdu.encode(), &data);
        let cut = cut.saturating_sub(before).min(stream.len());
        talk.feed(&stream[..cut]);
        talk.feed(&stream[cut..]);
        assert_eq!(talk.answer_of(c.task_tag).0.status, 0);
        assert_eq!(talk.disks[0][9 * 512..10 * 512], data);
        stream.len() + before
    };
    for cut in 0..record(0) {
        record(cut);
    }
}

#[test]
fn r2ts_come_in_bursts_as_agreed_upon() {
    let mut talk = Talk::ready(&[
        ("ImmediateData", "No"),
        ("MaxBurstLength", "2048"),
        ("FirstBurstLength", "1024"),
        ("MaxOutstandingR2T", "2"),
    ]);
    let data = pattern(4, 7 * 1024);
    let tag = write(&mut talk, 0, &data, 0, true);
    let (first, second) = (r2t(&mut talk), r2t(&mut talk));
    assert_eq!((first.offset, first.desired, first.r2t_sn), (0, 2048, 0));
    assert_eq!((second.offset, second.desired, second.r2t_sn), (2048, 2048, 1));
    assert_eq!(talk.hear(), None, "two at a time");
    talk.data_out(tag, first.transfer_tag, 0, 0, false, &data[..1024]);
    talk.data_out(tag, first.transfer_tag, 1, 1024, true, &data[1024..2048]);
    let third = r2t(&mut talk);
    talk.data_out(tag, second.transfer_tag, 0, 2048, true, &data[2048..4096]);
    let fourth = r2t(&mut talk);
    assert_eq!((fourth.offset, fourth.desired), (6144, 1024));
    talk.data_out(tag, third.transfer_tag, 0, 4096, true, &data[4096..6144]);
    assert_eq!(talk.hear(), None);
    talk.data_out(tag, fourth.transfer_tag, 0, 6144, true, &data[6144..]);
    let (response, _) = talk.answer_of(tag);
    assert_eq!((response.status, response.exp_data_sn), (0, 4));
    assert!(talk.disks[0][..data.len()] == data[..]);
}

#[test]
fn immediate_unsolicited_and_solicited_data_make_one_write() {
    let mut talk = Talk::ready(&[("InitialR2T", "No"), ("FirstBurstLength", "2048")]);
    let data = pattern(5, 4096);
    let tag = write(&mut talk, 0, &data, 1024, false);
    assert_eq!(talk.hear(), None, "unsolicited data come first");
    talk.data_out(tag, RESERVED_TAG, 0, 1024, false, &data[1024..1536]);
    talk.data_out(tag, RESERVED_TAG, 1, 1536, true, &data[1536..2048]);
    let asked = r2t(&mut talk);
    assert_eq!((asked.offset, asked.desired), (2048, 2048));
    talk.data_out(tag, asked.transfer_tag, 0, 2048, true, &data[2048..]);
    assert_eq!(talk.answer_of(tag).0.status, 0);
    assert!(talk.disks[0][..4096] == data[..]);
    talk.no_leaks();
}

#[test]
fn data_that_were_not_agreed_upon_fail_their_command_only() {
    let mut talk = Talk::ready(&[("ImmediateData", "No")]);
    let tag = write(&mut talk, 0, &[1; 512], 512, true);
    let (response, data) = talk.answer_of(tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (0x0b, 0x0c, 0x0c)));
    // Unsolicited data despite InitialR2T: answered once they have ended.
    let tag = write(&mut talk, 0, &[1; 512], 0, false);
    assert_eq!(talk.hear(), None);
    talk.data_out(tag, RESERVED_TAG, 0, 0, true, &[1; 512]);
    let (response, data) = talk.answer_of(tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (0x0b, 0x0c, 0x0c)));
    assert_eq!(talk.disks[0][..512], [0; 512]);
    talk.no_leaks();
}

#[test]
fn a_failed_command_waits_for_its_unsolicited_data() {
    let mut talk = Talk::ready(&[("InitialR2T", "No")]);
    let tag = write(&mut talk, 1 << 20, &[1; 1024], 512, false);
    assert_eq!(talk.hear(), None);
    talk.data_out(tag, RESERVED_TAG, 0, 512, true, &[1; 512]);
    let (response, data) = talk.answer_of(tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (5, 0x21, 0)));
    talk.no_leaks();
}

#[test]
fn reads_come_in_the_pieces_that_the_initiator_takes() {
    let mut talk = Talk::ready(&[("MaxRecvDataSegmentLength", "1024"), ("MaxBurstLength", "1536")]);
    let data = pattern(6, 4096);
    talk.disks[0][..4096].copy_from_slice(&data);
    let mut c = talk.command(0, &read10(0, 8), 4096);
    c.read = true;
    talk.send(c.encode(), &[]);
    let pieces: Vec<_> = talk
        .hear_all()
        .into_iter()
        .map(|h| match h.response {
            Response::DataIn(p) => (p.data_sn, p.offset, h.data.len(), p.last, p.status),
            other => panic!("{other:?}"),
        })
        .collect();
    let want = [
        (0, 0, 1024, false, None),
        (1, 1024, 512, true, None),
        (2, 1536, 1024, false, None),
        (3, 2560, 512, true, None),
        (4, 3072, 1024, true, Some(0)),
    ];
    assert_eq!(pieces, want);
}

#[test]
fn a_small_outbox_delays_answers_and_loses_none() {
    let mut talk = Talk::with(|_| {}, 8192 + 600);
    talk.login(&[("MaxRecvDataSegmentLength", "512"), ("HeaderDigest", "CRC32C"), ("DataDigest", "CRC32C")]);
    talk.clear_attentions();
    let data = pattern(7, 512 * 512);
    talk.disks[0][..data.len()].copy_from_slice(&data);
    let (response, back) = talk.simple(0, &read10(0, 512), data.len() as u32);
    assert_eq!(response.status, 0);
    assert!(back == data);
}

#[test]
fn residuals_count_what_was_announced_against_what_is() {
    let mut talk = Talk::ready(&[]);
    let (r, data) = talk.simple(0, &read10(0, 2), 2048);
    assert_eq!((r.residual, data.len()), (Residual::Underflow(1024), 1024));
    let (r, data) = talk.simple(0, &read10(0, 2), 700);
    assert_eq!((r.residual, data.len()), (Residual::Overflow(324), 700));
    let (r, data) = talk.simple(0, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 255);
    assert_eq!((r.residual, data.len()), (Residual::Underflow(247), 8));
    let (r, data) = talk.simple(0, &[0x12, 0, 0, 0, 5, 0], 255);
    assert_eq!((r.residual, data.len()), (Residual::Underflow(250), 5));
    let (r, _) = talk.simple(0, &read10(1 << 20, 2), 1024);
    assert_eq!((r.status, r.residual), (2, Residual::Underflow(1024)));
    // A write with room for one block of two: one is written, the rest is an overflow.
    let mut c = talk.command(0, &write10(0, 2), 512);
    c.write = true;
    talk.send(c.encode(), &[7; 512]);
    assert_eq!(talk.answer_of(c.task_tag).0.residual, Residual::Overflow(512));
    assert_eq!(talk.disks[0][..1024], [[7; 512], [0; 512]].concat());
    talk.no_leaks();
}

#[test]
fn buffers_that_come_later_hold_back_only_what_needs_them() {
    let mut talk = Talk::ready(&[("ImmediateData", "Yes")]);
    talk.io.withholds_buffers = true;
    // A read waits without stopping the stream.
    let mut read = talk.command(0, &read10(0, 1), 512);
    read.read = true;
    talk.send(read.encode(), &[]);
    let (response, _) = talk.simple(0, &[0; 6], 0);
    assert_eq!(response.status, 0, "a test unit ready passes it");
    // A write with immediate data stops the stream.
    let mut c = talk.command(0, &write10(0, 32), 16384);
    c.write = true;
    talk.send(c.encode(), &pattern(8, 8000));
    assert_eq!(talk.connection.want(), Want::Nothing);
    assert!(!talk.unread.is_empty());
    assert_eq!(talk.connection.next_deadline(), None, "it is not the host who is slow");
    talk.grant_one();
    assert_eq!(talk.answer_of(read.task_tag).0.status, 0);
    talk.grant_one();
    assert_eq!(talk.hear(), None, "the rest waits for memory of the other kind, and the stream goes on");
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    talk.grant_one();
    let asked = r2t(&mut talk);
    assert_eq!((asked.offset, asked.desired), (8000, 8384));
    talk.data_out(c.task_tag, asked.transfer_tag, 0, 8000, true, &pattern(9, 8384));
    assert_eq!(talk.answer_of(c.task_tag).0.status, 0);
    talk.no_leaks();
}

/// Sends a command whose first `immediate` bytes come unasked, and the rest when it is asked for.
fn in_two_parts(talk: &mut Talk, cdb: &[u8], data: &[u8], immediate: usize) -> (u8, Vec<u8>) {
    let mut c = talk.command(0, cdb, data.len() as u32);
    c.write = true;
    talk.send(c.encode(), &data[..immediate]);
    let asked = r2t(talk);
    assert_eq!((asked.offset, asked.desired), (immediate as u32, (data.len() - immediate) as u32));
    assert_eq!(talk.io.inline, [immediate as u32], "what came unasked had no more memory than it needed");
    assert!(talk.io.inline_tags.is_empty(), "and has none while the rest is awaited");
    talk.data_out(c.task_tag, asked.transfer_tag, 0, immediate as u32, true, &data[immediate..]);
    let (response, sense) = talk.answer_of(c.task_tag);
    talk.no_leaks();
    (response.status, sense)
}

#[test]
fn what_came_unasked_is_carried_out_before_the_rest_is_asked_for() {
    for immediate in [100, 512, 8000, 16383] {
        let mut talk = Talk::ready(&[("ImmediateData", "Yes"), ("MaxRecvDataSegmentLength", "65536")]);
        let data = pattern(immediate as u64, 16384);
        assert_eq!(in_two_parts(&mut talk, &write10(0, 32), &data, immediate).0, 0);
        assert!(talk.disks[0][..16384] == data, "{immediate}");
        let blocks: Vec<(u64, u64)> = talk.log.iter().map(|c| (c.at, c.blocks)).collect();
        let first = immediate as u64 / 512;
        let parts = [(0, first), (first, 32 - first)];
        assert_eq!(blocks, parts.into_iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>());
    }
}

#[test]
fn a_comparison_in_two_parts_finds_differences_in_both() {
    let mut cdb = read10(0, 4);
    cdb[0] = 0x2f;
    cdb[1] = 2;
    let right = pattern(3, 2048);
    for (wrong, immediate) in [(None, 700), (Some(100), 700), (Some(600), 700), (Some(1500), 1024)] {
        let mut talk = Talk::ready(&[("ImmediateData", "Yes")]);
        let mut data = right.clone();
        if let Some(at) = wrong {
            data[at] ^= 1;
        }
        talk.disks[0][..2048].copy_from_slice(&right);
        if wrong == Some(100) {
            // Known before the rest is asked for.
            let mut c = talk.command(0, &cdb, 2048);
            c.write = true;
            talk.send(c.encode(), &data[..immediate]);
            let (response, sense) = talk.answer_of(c.task_tag);
            assert_eq!((response.status, Talk::sense(&sense)), (2, (0xe, 0x1d, 0)));
            continue;
        }
        let (status, sense) = in_two_parts_of_compare(&mut talk, &cdb, &data, immediate);
        match wrong {
            None => assert_eq!(status, 0),
            Some(at) => assert_eq!((status, &sense[5..9]), (2, &(at as u32).to_be_bytes()[..])),
        }
    }
}

fn in_two_parts_of_compare(talk: &mut Talk, cdb: &[u8], data: &[u8], immediate: usize) -> (u8, Vec<u8>) {
    let mut c = talk.command(0, cdb, data.len() as u32);
    c.write = true;
    talk.send(c.encode(), &data[..immediate]);
    let asked = r2t(talk);
    assert_eq!(talk.io.inline, [2 * immediate as u32], "and what it is compared with");
    talk.data_out(c.task_tag, asked.transfer_tag, 0, immediate as u32, true, &data[immediate..]);
    let (response, sense) = talk.answer_of(c.task_tag);
    talk.no_leaks();
    (response.status, sense)
}

#[test]
fn a_block_to_be_repeated_may_come_in_two_parts() {
    let mut talk = Talk::ready(&[("ImmediateData", "Yes")]);
    let mut cdb = read10(0, 9);
    cdb[0] = 0x41;
    let block = pattern(4, 512);
    assert_eq!(in_two_parts(&mut talk, &cdb, &block, 99).0, 0);
    assert!(talk.disks[0][..9 * 512] == block.repeat(9));
}

#[test]
fn a_buffer_that_never_comes_fails_the_command_and_the_stream_goes_on() {
    let mut talk = Talk::ready(&[]);
    talk.io.withholds_buffers = true;
    let tag = write(&mut talk, 0, &[1; 512], 512, true);
    let given_up = talk.io.give_up().expect("it waits");
    talk.connection.on_done(talk.now, given_up, Status::Aborted, &mut talk.io);
    talk.settle();
    let (response, data) = talk.answer_of(tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (0x0b, 0, 0)));
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    talk.no_leaks();
}

#[test]
fn large_payloads_are_wanted_in_place() {
    let mut talk = Talk::ready(&[]);
    let data = pattern(10, 64 << 10);
    let mut c = talk.command(0, &write10(0, 128), 64 << 10);
    c.write = true;
    c.data_len = 64 << 10;
    talk.feed(&c.encode());
    let Want::Direct(slice) = talk.connection.want() else { panic!("wanted in place") };
    assert_eq!(slice.len, 64 << 10);
    talk.feed(&data);
    assert_eq!(talk.answer_of(c.task_tag).0.status, 0);
    assert!(talk.disks[0][..data.len()] == data[..]);
}

#[test]
fn a_read_whose_buffer_moved_is_sent_from_the_new_one() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    let mut c = talk.command(0, &read10(0, 1), 512);
    c.read = true;
    talk.send(c.encode(), &[]);
    let (tag, status) = talk.carry_out();
    let other = base::Slice::new(40 << 20, 512);
    talk.io.bytes_mut(other).fill(0x5a);
    talk.connection.on_moved(tag, other);
    talk.connection.on_done(talk.now, tag, status, &mut talk.io);
    assert_eq!(talk.answer_of(c.task_tag).1, [0x5a; 512]);
}

#[test]
fn ends_of_commands_become_sense() {
    for (outcome, write, want) in [
        (Status::Medium, false, (3, 0x11, 0)),
        (Status::Medium, true, (3, 0x0c, 0)),
        (Status::NotReady, false, (2, 4, 1)),
        (Status::NoSpace, true, (7, 0x27, 7)),
        (Status::WriteProtected, true, (7, 0x27, 0)),
        (Status::NoVolume, false, (5, 0x25, 0)),
        (Status::Internal, true, (4, 0x44, 0)),
        (Status::Aborted, true, (0x0b, 0, 0)),
        (Status::OutOfRange, true, (5, 0x21, 0)),
    ] {
        let mut talk = Talk::ready(&[]);
        talk.outcome = Some(outcome);
        let (r, data) = if write {
            let tag = self::write(&mut talk, 0, &[1; 512], 512, true);
            talk.answer_of(tag)
        } else {
            talk.simple(0, &read10(0, 1), 512)
        };
        assert_eq!((r.status, Talk::sense(&data)), (2, want), "{outcome:?}");
        talk.no_leaks();
    }
}

#[test]
fn write_same_unmap_and_verify_go_in_steps_on_one_tag() {
    use base::Op;
    let mut talk = Talk::ready(&[]);
    let mut same = [0; 16];
    same[0] = 0x93;
    same[12] = 3;
    same[13] = 0; // 768 blocks from 0
    let mut c = talk.command(0, &same, 512);
    c.write = true;
    talk.send(c.encode(), &[9; 512]);
    assert_eq!(talk.answer_of(c.task_tag).0.status, 0);
    let counts: Vec<_> = talk.log.drain(..).map(|c| (c.op, c.at, c.blocks)).collect();
    assert_eq!(counts, [(Op::Write, 0, 512), (Op::Write, 512, 256)]);
    assert!(talk.disks[0][..768 * 512].iter().all(|b| *b == 9));
    // Zeroes are not written but made.
    let mut c = talk.command(0, &same, 512);
    c.write = true;
    talk.send(c.encode(), &[0; 512]);
    assert_eq!(talk.answer_of(c.task_tag).0.status, 0);
    assert_eq!(talk.log.drain(..).map(|c| c.op).collect::<Vec<_>>(), [Op::WriteZeroes { deallocate: false }]);
    // Two ranges, one of them empty between.
    let mut list = vec![0, 54, 0, 48, 0, 0, 0, 0];
    for (at, blocks) in [(5u64, 10u32), (7, 0), (100, 1)] {
        list.extend_from_slice(&at.to_be_bytes());
        list.extend_from_slice(&blocks.to_be_bytes());
        list.extend_from_slice(&[0; 4]);
    }
    let mut c = talk.command(0, &[0x42, 0, 0, 0, 0, 0, 0, 0, 56, 0], 56);
    c.write = true;
    talk.send(c.encode(), &list);
    assert_eq!(talk.answer_of(c.task_tag).0.status, 0);
    let ranges: Vec<_> = talk.log.drain(..).map(|c| (c.op, c.at, c.blocks)).collect();
    assert_eq!(ranges, [(Op::Deallocate, 5, 10), (Op::Deallocate, 100, 1)]);
    // VERIFY without data reads the blocks and sends none.
    assert_eq!(talk.simple(0, &[0x2f, 0, 0, 0, 0, 0, 0, 4, 0, 0], 0).0.status, 0);
    assert_eq!(talk.log.iter().map(|c| c.blocks).collect::<Vec<_>>(), [512, 512]);
    talk.no_leaks();
}

#[test]
fn a_long_list_of_units_goes_through_a_buffer() {
    let mut talk = Talk::with(
        |v| {
            let one = v.hosts[0].exports[0].clone();
            v.hosts[0].exports = (0..1000)
                .map(|lun| base::view::Export { lun, nsid: u32::from(lun) + 1, ..one.clone() })
                .collect();
        },
        OUTBOX_BYTES,
    );
    talk.login(&[]);
    for generous in [true, false] {
        talk.io.withholds_buffers = !generous;
        let mut c = talk.command(0, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], 0xffff);
        c.read = true;
        talk.send(c.encode(), &[]);
        if !generous {
            talk.grant_one();
        }
        let (r, data) = talk.answer_of(c.task_tag);
        assert_eq!((r.status, data.len()), (0, 8008));
        assert_eq!(data[8 + 8 * 999..][..2], [0x43, 0xe7]);
        talk.no_leaks();
    }
    assert_eq!(padded(5), 8);
}
