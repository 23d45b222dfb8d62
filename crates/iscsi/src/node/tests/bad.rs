use super::*;
use crate::pdu::{RESERVED_TAG, Snack};
use base::front::Close;

fn broken(talk: &Talk) -> bool {
    matches!(talk.io.closed, Some(Close::Protocol(_)))
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let mut talk = Talk::ready(&[("HeaderDigest", "CRC32C")]);
    let c = talk.command(0, &[0; 6], 0);
    let mut bytes = vec![];
    talk.framing.put(&mut bytes, c.encode(), &[]);
    bytes[50] ^= 1;
    talk.feed(&bytes);
    assert!(broken(&talk));
}

#[test]
fn a_wrong_data_digest_fails_the_command_and_not_the_connection() {
    let mut talk = Talk::ready(&[("DataDigest", "CRC32C")]);
    assert_eq!(talk.connection.digests(), (false, true), "the head reports what was agreed");
    let mut c = talk.command(0, &write10(0, 1), 512);
    c.write = true;
    let mut bytes = vec![];
    talk.framing.put(&mut bytes, c.encode(), &[1; 512]);
    bytes[48] ^= 1;
    talk.feed(&bytes);
    let Some(Heard { response: Response::Reject(r), data }) = talk.hear() else { panic!("no reject") };
    assert_eq!((r.reason, &data[..], talk.io.closed), (2, &bytes[..48], None));
    let (response, data) = talk.answer_of(c.task_tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (0x0b, 0x47, 5)));
    assert_eq!(talk.disks[0][..512], [0; 512]);
    talk.no_leaks();
}

#[test]
fn a_wrong_digest_of_a_data_out_fails_its_command_after_the_sequence() {
    let mut talk = Talk::ready(&[("DataDigest", "CRC32C"), ("ImmediateData", "No")]);
    let mut c = talk.command(0, &write10(0, 2), 1024);
    c.write = true;
    talk.send(c.encode(), &[]);
    let Some(Heard { response: Response::R2t(r2t), .. }) = talk.hear() else { panic!("no R2T") };
    let mut bytes = vec![];
    let pdu = DataOut { task_tag: c.task_tag, transfer_tag: r2t.transfer_tag, ..DataOut::default() };
    talk.framing.put(&mut bytes, pdu.encode(), &[1; 512]);
    *bytes.last_mut().expect("bytes") ^= 1;
    talk.feed(&bytes);
    assert!(matches!(talk.hear(), Some(Heard { response: Response::Reject(_), .. })));
    assert_eq!(talk.hear(), None, "the sequence has not ended");
    talk.data_out(c.task_tag, r2t.transfer_tag, 1, 512, true, &[1; 512]);
    let (response, data) = talk.answer_of(c.task_tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (0x0b, 0x47, 5)));
    talk.no_leaks();
}

#[test]
fn data_for_nobody_too_much_data_and_wrong_ends_break_the_connection() {
    let mut talk = Talk::ready(&[]);
    talk.data_out(4711, 1, 0, 0, true, &[1; 512]);
    assert!(broken(&talk));
    for (offset, last, len) in [(0, true, 1024), (0, false, 512), (0, true, 100)] {
        let mut talk = Talk::ready(&[("ImmediateData", "No")]);
        let mut c = talk.command(0, &write10(0, 1), 512);
        c.write = true;
        talk.send(c.encode(), &[]);
        let Some(Heard { response: Response::R2t(r2t), .. }) = talk.hear() else { panic!("no R2T") };
        talk.data_out(c.task_tag, r2t.transfer_tag, 0, offset, last, &vec![1; len]);
        assert!(broken(&talk), "{last} {len}");
    }
}

#[test]
fn a_gap_in_the_data_fails_the_command_once_they_have_ended() {
    let mut talk = Talk::ready(&[("ImmediateData", "No")]);
    let mut c = talk.command(0, &write10(0, 2), 1024);
    c.write = true;
    talk.send(c.encode(), &[]);
    let Some(Heard { response: Response::R2t(r2t), .. }) = talk.hear() else { panic!("no R2T") };
    talk.data_out(c.task_tag, r2t.transfer_tag, 1, 512, false, &[1; 512]);
    assert_eq!(talk.hear(), None);
    talk.data_out(c.task_tag, r2t.transfer_tag, 0, 0, true, &[1; 512]);
    let (response, data) = talk.answer_of(c.task_tag);
    assert_eq!((response.status, Talk::sense(&data)), (2, (0x0b, 0x47, 5)));
    talk.no_leaks();
}

#[test]
fn segments_longer_than_agreed_upon_break_the_connection() {
    let mut talk = Talk::new();
    let mut bhs = LoginRequest::default().encode();
    crate::pdu::set_data_len(&mut bhs, 8193);
    talk.feed(&bhs);
    assert!(broken(&talk));
    let mut talk = Talk::ready(&[]);
    let mut c = talk.command(0, &write10(0, 1), 1 << 20);
    c.write = true;
    c.data_len = (256 << 10) + 1;
    talk.feed(&c.encode());
    assert!(broken(&talk));
}

#[test]
fn unknown_operation_codes_and_snacks_are_rejected() {
    let mut talk = Talk::ready(&[]);
    let mut bhs = [0; BHS_BYTES];
    bhs[0] = 0x1c;
    talk.send(bhs, &[1, 2, 3]);
    let Some(Heard { response: Response::Reject(r), data }) = talk.hear() else { panic!("no reject") };
    assert_eq!((r.reason, data[0]), (5, 0x1c));
    talk.send(Snack { task_tag: 1, ..Snack::default() }.encode(), &[]);
    let Some(Heard { response: Response::Reject(r), .. }) = talk.hear() else { panic!("no reject") };
    assert_eq!(r.reason, 3);
    talk.send(LoginRequest::default().encode(), &[]);
    let Some(Heard { response: Response::Reject(r), .. }) = talk.hear() else { panic!("no reject") };
    assert_eq!(r.reason, 4);
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
}

#[test]
fn commands_that_contradict_themselves_are_rejected() {
    let mut talk = Talk::ready(&[]);
    // Data without the W bit.
    let c = talk.command(0, &write10(0, 1), 512);
    talk.send(c.encode(), &[1; 512]);
    assert!(matches!(talk.hear(), Some(Heard { response: Response::Reject(_), .. })));
    // The reserved task tag.
    let mut c = talk.command(0, &[0; 6], 0);
    c.task_tag = RESERVED_TAG;
    talk.send(c.encode(), &[]);
    assert!(matches!(talk.hear(), Some(Heard { response: Response::Reject(_), .. })));
    // Bidirectional.
    let mut c = talk.command(0, &write10(0, 1), 512);
    c.read = true;
    c.write = true;
    talk.send(c.encode(), &[1; 512]);
    let (r, data) = talk.answer_of(c.task_tag);
    assert_eq!((r.status, Talk::sense(&data)), (2, (5, 0x20, 0)));
    // A command that wants data of a host that has none.
    let c = talk.command(0, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], 0);
    talk.send(c.encode(), &[]);
    let (r, data) = talk.answer_of(c.task_tag);
    assert_eq!((r.status, Talk::sense(&data)), (2, (0x0b, 0x0c, 0x0d)));
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    talk.no_leaks();
}

#[test]
fn additional_headers_are_read_and_not_obeyed() {
    let mut talk = Talk::ready(&[]);
    let mut c = talk.command(0, &[0x7f], 0).encode();
    c[4] = 2;
    talk.feed(&[&c[..], &[0, 5, 1, 0, 0, 0, 0, 0]].concat());
    let (r, data) = talk.answer_of(talk.tag - 1);
    assert_eq!((r.status, Talk::sense(&data)), (2, (5, 0x20, 0)));
    let mut c = talk.command(0, &[0], 0).encode();
    c[4] = 1;
    talk.feed(&[&c[..], &[0xff, 0, 1, 0]].concat());
    assert!(broken(&talk));
}
