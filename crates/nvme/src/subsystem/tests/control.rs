//! Admin queues: properties, Identify, log pages, features, events, discovery.

use super::*;
use crate::spec::identify as id;
use crate::spec::log::{DiscoveryEntry, DiscoveryHeader};
use base::NvmeFault;
use base::PortalId;

pub(super) fn identify(t: &mut Talk, cns: u32, nsid: u32) -> Result<Vec<u8>, StatusField> {
    let mut sqe = Sqe::new(admin::IDENTIFY, 0);
    sqe.nsid = nsid.into();
    sqe.cdw10 = cns.into();
    t.read(sqe, 4096)
}

pub(super) fn log_sqe(page: u32, offset: u64, bytes: u32) -> Sqe {
    let dwords = bytes / 4 - 1;
    let mut sqe = Sqe::new(admin::GET_LOG_PAGE, 0);
    sqe.cdw10 = (page | dwords << 16).into();
    sqe.cdw11 = (dwords >> 16).into();
    sqe.cdw12 = (offset as u32).into();
    sqe.cdw13 = ((offset >> 32) as u32).into();
    sqe
}
pub(super) fn log(t: &mut Talk, page: u32, offset: u64, bytes: u32) -> Result<Vec<u8>, StatusField> {
    t.read(log_sqe(page, offset, bytes), bytes)
}
pub(super) const RETAIN: u32 = 1 << 15;

pub(super) fn get(t: &mut Talk, id: u32) -> Result<u32, StatusField> {
    feature(t, admin::GET_FEATURES, id, 0)
}
pub(super) fn set(t: &mut Talk, id: u32, value: u32) -> Result<u32, StatusField> {
    feature(t, admin::SET_FEATURES, id, value)
}
pub(super) fn feature(t: &mut Talk, opcode: u8, id: u32, value: u32) -> Result<u32, StatusField> {
    let mut sqe = Sqe::new(opcode, 0);
    sqe.cdw10 = id.into();
    sqe.cdw11 = value.into();
    let cqe = t.run(sqe);
    if cqe.status().is_good() { Ok(cqe.dw0.get()) } else { Err(cqe.status()) }
}
pub(super) const INVALID: StatusField = StatusField::INVALID_FIELD.dnr();

fn ids(list: &[u8]) -> Vec<u32> {
    let all = list.chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")));
    all.take_while(|id| *id != 0).collect()
}

#[test]
fn properties_keep_their_sizes() {
    let mut t = Talk::admin();
    let cap = t.get_property(property::CAP, 1).expect("CAP");
    // MQES 127, CQR, TO 7.5 s, NVM command set, pages of 4 KiB.
    assert_eq!(cap, 127 | 1 << 16 | 15 << 24 | 1 << 37);
    assert_eq!(t.get_property(property::VS, 0), Ok(0x0001_0400));
    assert_eq!(t.get_property(property::CC, 0), Ok(u64::from(property::CC_HOST)));
    for (offset, attrib) in
        [(0, 0), (8, 1), (0x14, 1), (0x1c, 1), (0x20, 0), (4, 0), (0x68, 0), (0, 2), (1, 0)]
    {
        assert_eq!(t.get_property(offset, attrib), Err(INVALID), "{offset:#x}");
    }
    for (offset, attrib) in [(0x14, 1), (0x1c, 0), (0x08, 0), (0x20, 0)] {
        assert_eq!(t.set_property(offset, attrib, 0), INVALID);
    }
}

#[test]
fn a_controller_answers_commands_only_while_it_is_enabled() {
    let mut t = Talk::admin();
    assert!(identify(&mut t, 1, 0).is_ok());
    assert_eq!(t.set_property(property::CC, 0, u64::from(property::CC_HOST) | 1 << 14), StatusField::SUCCESS);
    assert_eq!(t.get_property(property::CSTS, 0), Ok(1 | 2 << 2));
    assert_eq!(t.set_property(property::CC, 0, 0), StatusField::SUCCESS);
    assert_eq!(t.get_property(property::CSTS, 0), Ok(0));
    for opcode in [admin::IDENTIFY, admin::KEEP_ALIVE, admin::ABORT, admin::ASYNC_EVENT, admin::GET_LOG_PAGE]
    {
        assert_eq!(t.run(Sqe::new(opcode, 0)).status(), StatusField::COMMAND_SEQUENCE.dnr());
    }
    // Entry sizes that are not 64 and 16 bytes; a command set that is not ours.
    for cc in [1, 5 << 20 | 6 << 16 | 1, property::CC_HOST | 1 << 4, property::CC_HOST | 1 << 7] {
        assert_eq!(t.set_property(property::CC, 0, u64::from(cc)), StatusField::SUCCESS);
        assert_eq!(t.get_property(property::CSTS, 0), Ok(2), "{cc:#x}");
        t.set_property(property::CC, 0, 0);
    }
    t.enable();
}

#[test]
fn identify_controller_has_its_fields_where_hosts_look() {
    let mut t = Talk::admin();
    let b = identify(&mut t, 1, 0).expect("identify");
    assert_eq!(&b[4..24], b"SERIAL              ");
    assert_eq!(&b[24..32], b"Millrace");
    assert_eq!(&b[64..72], b"0.1     ");
    assert_eq!(b[76], 3, "CMIC");
    assert_eq!(b[77], 8, "MDTS");
    assert_eq!(b[78..80], [5, 0], "CNTLID");
    assert_eq!(b[80..84], [0, 4, 1, 0], "VER");
    assert_eq!(b[92..96], [0, 1, 0, 0], "OAES");
    assert_eq!(b[96..100], [1, 0, 0, 0], "CTRATT: no TBKAS");
    assert_eq!(b[111], 1, "CNTRLTYPE");
    assert_eq!(b[128..130], [100, 0], "CRDT1");
    assert_eq!((b[134], b[135]), (0, 1), "CRCAP, CIU: enabled once");
    assert_ne!(b[136..144], [0; 8], "CIRN");
    assert_eq!(b[386..388], [136, 19], "CQT: 5000 ms");
    assert_eq!((b[1806], b[1807]), (0, 4), "DCTYPE, CCRL");
    assert_eq!((b[258], b[259], b[261]), (3, 3, 6), "ACL, AERL, LPA");
    assert_eq!(b[320..322], [10, 0], "KAS");
    assert_eq!((b[512], b[513]), (0x66, 0x44), "SQES, CQES");
    assert_eq!(b[514..516], [128, 0], "MAXCMD");
    assert_eq!(b[516..520], [0xff, 0xff, 0, 0], "NN");
    assert_eq!(b[520..522], [0b1101, 0], "ONCS");
    assert_eq!(b[522..524], [0, 0], "FUSES");
    assert_eq!(b[525], 7, "VWC");
    assert_eq!(b[536..540], [1, 0, 0x10, 0], "SGLS");
    assert_eq!(&b[768..768 + NQN.len()], NQN.as_bytes());
    assert_eq!(b[768 + NQN.len()], 0);
    assert_eq!(b[1792..1796], 516u32.to_le_bytes(), "IOCCSZ: 64 + 8192 bytes");
    assert_eq!(b[1796..1800], 1u32.to_le_bytes(), "IORCSZ");
    assert_eq!(b[1800..1804], [0, 0, 0, 1], "ICDOFF, FCATT, MSDBD");
}

#[test]
fn identify_namespace_gives_size_and_names() {
    let mut t = Talk::admin();
    let n: id::Namespace = of(&identify(&mut t, 0, 2).expect("active"));
    assert_eq!((n.nsze.get(), n.ncap.get(), n.nuse.get()), (BLOCKS, BLOCKS, BLOCKS));
    assert_eq!((n.nlbaf, n.flbas, n.nmic, n.dlfeat, n.block_bytes()), (0, 0, 1, 9, 4096));
    assert_eq!((n.nguid, n.eui64, n.anagrpid.get()), ([102; 16], [0; 8], 0));
    let n: id::Namespace = of(&identify(&mut t, 0, 1).expect("active"));
    assert_eq!(n.block_bytes(), 512);
    // Valid but not active; not valid.
    assert_eq!(identify(&mut t, 0, 3), Ok(vec![0; 4096]));
    for nsid in [0, 65536, 0xffff_ffff] {
        assert_eq!(identify(&mut t, 0, nsid), Err(StatusField::INVALID_NAMESPACE.dnr()));
    }
    let d = identify(&mut t, 3, 1).expect("active");
    let expected = [&[3, 16, 0, 0][..], &[1; 16], &[2, 16, 0, 0], &[101; 16], &[4, 1, 0, 0, 0]].concat();
    assert_eq!(d[..expected.len()], expected);
    assert!(d[expected.len()..].iter().all(|b| *b == 0));
    assert_eq!(identify(&mut t, 3, 3), Err(StatusField::INVALID_NAMESPACE.dnr()));
    assert_eq!(ids(&identify(&mut t, 2, 0).expect("list")), [1, 2]);
    assert_eq!(ids(&identify(&mut t, 2, 1).expect("list")), [2]);
    assert_eq!(ids(&identify(&mut t, 2, 0xffff_fffd).expect("list")), []);
    assert_eq!(identify(&mut t, 2, 0xffff_fffe), Err(StatusField::INVALID_NAMESPACE.dnr()));
    for cns in [5, 6, 8, 0x10, 0x12, 0x13, 0xff] {
        assert_eq!(identify(&mut t, cns, 1), Err(INVALID));
    }
}

#[test]
fn an_identify_of_another_length_is_refused() {
    let mut t = Talk::admin();
    let mut sqe = Sqe::new(admin::IDENTIFY, 0);
    sqe.cdw10 = 1.into();
    assert_eq!(t.read(sqe, 512), Err(StatusField::SGL_LENGTH_INVALID.dnr()));
    sqe.sgl = Sgl::in_capsule(4096);
    assert_eq!(t.run(sqe).status(), StatusField::SGL_TYPE_INVALID.dnr());
}

#[test]
fn log_pages_are_given_in_parts() {
    let mut t = Talk::sized(usual(), 128, 1 << 20, 0).into_admin();
    let smart = log(&mut t, 2, 0, 512).expect("SMART");
    // 27 °C, spare 100 %, threshold 10 %, not worn.
    assert_eq!(smart[..6], [0, 0x2c, 1, 100, 10, 0]);
    let firmware = log(&mut t, 3, 0, 512).expect("firmware");
    assert_eq!(firmware[0], 1);
    assert_eq!(&firmware[8..16], b"0.1     ");
    assert_eq!(log(&mut t, 3, 8, 8), Ok(b"0.1     ".to_vec()));
    // Behind the end: zeroes; an offset behind it, or one that is no dword: an error.
    assert_eq!(log(&mut t, 3, 512, 4), Ok(vec![0; 4]));
    assert_eq!(log(&mut t, 3, 516, 4), Err(INVALID));
    assert_eq!(log(&mut t, 3, 1 << 40, 4), Err(INVALID));
    assert_eq!(log(&mut t, 3, 2, 4), Err(INVALID));
    // NUMDL and NUMDU together: 0-based dwords.
    assert_eq!(log(&mut t, 1, 0, 1 << 20).map(|l| l.len()), Ok(1 << 20));
    let mut sqe = log_sqe(1, 0, 4);
    sqe.cdw10 = (1 | 0xffff << 16).into();
    sqe.cdw11 = 0xffff.into();
    sqe.sgl = Sgl::transport(0);
    assert_eq!(t.run(sqe).status(), INVALID);
    for page in [0, 6, 0x70, 0x80, 0xff] {
        assert_eq!(log(&mut t, page, 0, 512), Err(StatusField::INVALID_LOG_PAGE.dnr()));
    }
    let mut sqe = log_sqe(2, 0, 512);
    sqe.nsid = 1.into();
    assert_eq!(t.read(sqe, 512), Err(INVALID));
    let effects = log(&mut t, 5, 0, 4096).expect("effects");
    assert_eq!((effects[6 * 4], effects[1024 + 4], effects[1024 + 4 * 4]), (1, 3, 0));
}

#[test]
fn the_error_log_remembers_what_failed_last() {
    let mut t = Talk::admin();
    for _ in 0..20 {
        t.run(Sqe::new(0x55, 0));
    }
    let errors = log(&mut t, 1, 0, 1024).expect("errors");
    assert_eq!(errors[..8], 20u64.to_le_bytes());
    assert_eq!(errors[64..72], 19u64.to_le_bytes());
    assert_eq!(errors[10..12], (t.cid - 1).to_le_bytes());
    assert_eq!(errors[12..14], (StatusField::INVALID_OPCODE.dnr().0 << 1).to_le_bytes());
    assert_eq!(errors[15 * 64..][..8], 5u64.to_le_bytes());
    assert_eq!(log(&mut t, 2, 176, 8), Ok(20u64.to_le_bytes().to_vec()));
}

#[test]
fn features_are_what_was_set() {
    let mut t = Talk::admin();
    assert_eq!(set(&mut t, 7, 3 | 5 << 16), Ok(5 | 5 << 16));
    assert_eq!(set(&mut t, 7, 100 | 100 << 16), Ok(7 | 7 << 16));
    assert_eq!(get(&mut t, 7), Ok(7 | 7 << 16));
    assert_eq!(set(&mut t, 7, 0xffff), Err(INVALID));
    assert_eq!(get(&mut t, 6), Ok(1));
    assert_eq!(set(&mut t, 6, 1), Ok(0));
    assert_eq!(set(&mut t, 6, 0), Err(StatusField::FEATURE_NOT_CHANGEABLE.dnr()));
    assert_eq!(get(&mut t, 15), Ok(5000));
    assert_eq!(set(&mut t, 15, 7001), Ok(0));
    assert_eq!(get(&mut t, 15), Ok(8000));
    assert_eq!(set(&mut t, 11, 0x100), Ok(0));
    assert_eq!(get(&mut t, 11), Ok(0x100));
    assert_eq!(set(&mut t, 11, 0x200), Err(INVALID));
    assert_eq!((set(&mut t, 2, 0), set(&mut t, 2, 1)), (Ok(0), Err(INVALID)));
    assert_eq!((get(&mut t, 4), set(&mut t, 4, 350), get(&mut t, 4)), (Ok(343), Ok(0), Ok(350)));
    assert_eq!(set(&mut t, 4, 1 << 16 | 350), Err(INVALID));
    assert_eq!((set(&mut t, 5, 12), get(&mut t, 5), set(&mut t, 5, 1 << 16)), (Ok(0), Ok(12), Err(INVALID)));
    for unknown in [0, 3, 8, 9, 0x0c, 0x0e, 0x17, 0x82, 0xff] {
        assert_eq!((get(&mut t, unknown), set(&mut t, unknown, 0)), (Err(INVALID), Err(INVALID)));
    }
    // Saved values, other values than the current ones, and values of a namespace.
    assert_eq!(set(&mut t, 11 | 1 << 31, 0), Err(StatusField::FEATURE_NOT_SAVEABLE.dnr()));
    assert_eq!(get(&mut t, 11 | 1 << 8), Err(INVALID));
    let mut sqe = Sqe::new(admin::SET_FEATURES, 0);
    sqe.nsid = 1.into();
    sqe.cdw10 = 11.into();
    assert_eq!(t.run(sqe).status(), StatusField::FEATURE_NOT_NAMESPACE.dnr());
    // A reset forgets all but the keep alive.
    t.set_property(property::CC, 0, 0);
    t.enable();
    assert_eq!((get(&mut t, 11), get(&mut t, 15), get(&mut t, 4)), (Ok(0), Ok(8000), Ok(343)));
}

#[test]
fn host_behavior_is_accepted_and_reported() {
    let mut t = Talk::admin();
    let mut sqe = Sqe::new(admin::SET_FEATURES, 0);
    sqe.cdw10 = 0x16.into();
    let mut wanted = vec![0; 512];
    wanted[0] = 1;
    wanted[2] = 1;
    assert_eq!(t.write(sqe, &wanted), StatusField::SUCCESS);
    let mut ask = Sqe::new(admin::GET_FEATURES, 0);
    ask.cdw10 = 0x16.into();
    assert_eq!(t.read(ask, 512), Ok(wanted.clone()));
    wanted[0] = 2;
    assert_eq!(t.write(sqe, &wanted), INVALID);
    assert_eq!(t.write(sqe, &wanted[..256]), StatusField::SGL_LENGTH_INVALID.dnr());
    // By R2T it works as well.
    sqe.sgl = Sgl::transport(512);
    t.start(sqe);
    let r2t = t.r2t();
    t.h2c(r2t, true, &[0; 512]);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    assert_eq!(t.read(ask, 512), Ok(vec![0; 512]));
    ask.cdw10 = 0x81.into();
    ask.cdw11 = 1.into();
    assert_eq!(t.read(ask, 16), Ok(vec![9; 16]));
    assert_eq!(get(&mut t, 0x81), Err(INVALID));
    assert_eq!(set(&mut t, 0x81, 1), Err(StatusField::COMMAND_SEQUENCE.dnr()));
    assert_eq!(t.io.under_way(), 0);
}

pub(super) fn await_event(t: &mut Talk) -> u16 {
    t.start(Sqe::new(admin::ASYNC_EVENT, 0))
}
pub(super) fn event(t: &mut Talk) -> (u16, u32) {
    let cqe = t.cqe();
    assert_eq!(cqe.status(), StatusField::SUCCESS);
    (cqe.cid.get(), cqe.dw0.get())
}
const NAMESPACE_CHANGED: u32 = 0x0004_0002;

#[test]
fn a_namespace_that_comes_grows_or_goes_is_reported_once_until_the_list_is_read() {
    let mut t = Talk::admin();
    assert_eq!(set(&mut t, 11, 0x100), Ok(0));
    let (first, second) = (await_event(&mut t), await_event(&mut t));
    // Nothing of ours changed.
    t.new_view(|v| v.hosts.push(Host::default()));
    t.new_view(|v| v.hosts[0].exports[0].name = "tank/other".into());
    assert!(t.replies.is_empty());
    t.new_view(|v| v.hosts[0].exports[0].blocks += 1);
    assert_eq!(event(&mut t), (first, NAMESPACE_CHANGED));
    t.new_view(|v| v.hosts[0].exports.push(export(9, 512)));
    assert!(t.replies.is_empty());
    // Reading while retaining keeps it silent.
    assert_eq!(ids(&log(&mut t, 4 | RETAIN, 0, 4096).expect("list")), [1, 9]);
    t.new_view(|v| drop(v.hosts[0].exports.remove(1)));
    assert!(t.replies.is_empty());
    assert_eq!(ids(&log(&mut t, 4, 0, 4096).expect("list")), [1, 2, 9]);
    assert_eq!(ids(&log(&mut t, 4, 0, 4096).expect("list")), []);
    assert!(t.replies.is_empty());
    t.new_view(|v| drop(v.hosts[0].exports.pop()));
    assert_eq!(event(&mut t), (second, NAMESPACE_CHANGED));
    assert_eq!(ids(&identify(&mut t, 2, 0).expect("list")), [1]);
    // An event without a waiting request is kept.
    log(&mut t, 4, 0, 4096).expect("list");
    t.new_view(|v| v.hosts[0].exports.push(export(7, 512)));
    assert!(t.replies.is_empty());
    let late = await_event(&mut t);
    assert_eq!(event(&mut t), (late, NAMESPACE_CHANGED));
}

#[test]
fn a_host_that_asked_for_no_events_gets_none() {
    let mut t = Talk::admin();
    let waiting = await_event(&mut t);
    t.new_view(|v| v.hosts[0].exports.clear());
    assert!(t.replies.is_empty());
    // But it may ask later.
    let mut sqe = Sqe::new(admin::SET_FEATURES, 0);
    sqe.cdw10 = 11.into();
    sqe.cdw11 = 0x100.into();
    t.start(sqe);
    let mut cids = [t.cqe().cid.get(), event(&mut t).0];
    cids.sort();
    assert_eq!(cids, [waiting, t.cid]);
}

#[test]
fn four_events_may_be_waited_for_and_die_with_the_controller() {
    let mut t = Talk::admin();
    let cids: Vec<u16> = (0..4).map(|_| await_event(&mut t)).collect();
    assert!(t.replies.is_empty());
    assert_eq!(t.run(Sqe::new(admin::ASYNC_EVENT, 0)).status(), StatusField::ASYNC_EVENT_LIMIT.dnr());
    // Abort one.
    let mut abort = Sqe::new(admin::ABORT, 0);
    abort.cdw10 = (u32::from(cids[1]) << 16).into();
    t.start(abort);
    let (victim, done) = (t.cqe(), t.cqe());
    assert_eq!((victim.cid.get(), victim.status()), (cids[1], StatusField::ABORT_REQUESTED));
    assert_eq!((done.cid.get(), done.status(), done.dw0.get()), (t.cid, StatusField::SUCCESS, 0));
    await_event(&mut t);
    assert!(t.replies.is_empty());
    t.set_property(property::CC, 0, 0);
    t.enable();
    assert!(t.replies.is_empty());
    for _ in 0..4 {
        await_event(&mut t);
    }
    assert!(t.replies.is_empty());
}

#[test]
fn an_abort_says_whether_it_found_anything() {
    let mut t = Talk::admin();
    let mut abort = |queue: u32, cid: u32| {
        let mut sqe = Sqe::new(admin::ABORT, 0);
        sqe.cdw10 = (queue | cid << 16).into();
        let cqe = t.run(sqe);
        (cqe.status(), cqe.dw0.get())
    };
    assert_eq!(abort(0, 4711), (StatusField::SUCCESS, 1));
    assert_eq!(abort(1, 1), (StatusField::SUCCESS, 1), "the I/O queue does not know it");
    // Itself.
    assert_eq!(abort(0, 6).1, 1);
    t.io.withholds_buffers = true;
    t.hold_grants = true;
    let mut identify = Sqe::new(admin::IDENTIFY, 0);
    identify.cdw10 = 1.into();
    identify.sgl = Sgl::transport(4096);
    let cid = t.start(identify);
    let mut sqe = Sqe::new(admin::ABORT, 0);
    sqe.cdw10 = (u32::from(cid) << 16).into();
    assert_eq!(t.run(sqe).dw0.get(), 0);
    assert_eq!(t.cqe().status(), StatusField::ABORT_REQUESTED);
    assert_eq!(t.io.under_way(), 0);
}

#[test]
fn identify_waits_for_its_buffer() {
    let mut t = Talk::admin();
    t.io.withholds_buffers = true;
    t.hold_grants = true;
    let mut sqe = Sqe::new(admin::IDENTIFY, 0);
    sqe.cdw10 = 1.into();
    sqe.sgl = Sgl::transport(4096);
    t.start(sqe);
    assert!(t.replies.is_empty());
    t.hold_grants = false;
    t.settle();
    assert_eq!(t.reply().data.len(), 4096);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
}

#[test]
fn block_commands_are_not_for_the_admin_queue() {
    let mut t = Talk::admin();
    assert_eq!(
        t.write(ranged(crate::spec::nvm::WRITE, 1, 0, 1), &[0; 512]),
        StatusField::INVALID_OPCODE.dnr()
    );
    let mut sqe = Sqe::new(admin::FABRICS, 0);
    sqe.nsid = 8.into();
    assert_eq!(t.run(sqe).status(), StatusField::INVALID_QUEUE_TYPE.dnr());
    sqe.nsid = 5.into();
    assert_eq!(t.run(sqe).status(), StatusField::INVALID_OPCODE.dnr());
    for flags in [0, 0x80, 0x41] {
        let mut sqe = Sqe::new(admin::KEEP_ALIVE, 0);
        sqe.flags = flags;
        assert_eq!(t.run(sqe).status(), INVALID);
    }
}

#[test]
fn a_host_that_is_removed_loses_its_controller() {
    let mut t = Talk::admin();
    t.new_view(|v| v.hosts.clear());
    assert_eq!(t.io.closed, Some(Close::Refused(NvmeFault::HostRemoved.into())));
}

pub(super) fn discover(t: &mut Talk) -> (DiscoveryHeader, Vec<DiscoveryEntry>) {
    let header: DiscoveryHeader = of(&log(t, 0x70, 0, 1024).expect("header"));
    let n = header.records.get() as u32;
    if n == 0 {
        return (header, vec![]);
    }
    let entries = log(t, 0x70, 1024, n * 1024).expect("entries");
    (header, entries.chunks(1024).map(of).collect())
}

pub(super) fn text(field: &[u8]) -> &str {
    crate::spec::text_of(field).expect("a text")
}

#[test]
fn discovery_shows_a_known_host_where_to_go() {
    let mut t = Talk::discovery(HOST);
    let (header, entries) = discover(&mut t);
    assert_eq!((header.generation.get(), header.recfmt.get()), (7, 0));
    let found: Vec<_> = entries
        .iter()
        .map(|e| (e.subtype, e.portid.get(), text(&e.traddr), text(&e.trsvcid), text(&e.subnqn)))
        .collect();
    // Our address where the portal has none; no loopback for one who came from elsewhere.
    assert_eq!(
        found,
        [
            (2, 1, "192.168.1.1", "4420", NQN),
            (2, 4, "10.1.0.1", "4420", NQN),
            (3, 1, "192.168.1.1", "4420", DISCOVERY_NQN),
        ]
    );
    for e in &entries {
        assert_eq!((e.trtype, e.adrfam, e.treq, e.cntlid.get(), e.asqsz.get()), (3, 1, 4, 0xffff, 128));
        assert_eq!(e.tsas, [0; 256]);
    }
}

#[test]
fn discovery_shows_an_unknown_host_nothing() {
    let mut t = Talk::discovery(STRANGER);
    let (header, entries) = discover(&mut t);
    assert_eq!((header.records.get(), entries.len()), (0, 0));
}

#[test]
fn a_discovery_controller_is_only_that() {
    let mut t = Talk::discovery(STRANGER);
    let b = identify(&mut t, 1, 0).expect("identify");
    assert_eq!((b[111], b[80]), (2, 0));
    assert_eq!(&b[768..768 + DISCOVERY_NQN.len()], DISCOVERY_NQN.as_bytes());
    assert_eq!(b[92..96], [0, 0, 0, 0x80], "OAES");
    for cns in [0, 2, 3] {
        assert_eq!(identify(&mut t, cns, 1), Err(INVALID));
    }
    assert_eq!(log(&mut t, 2, 0, 512), Err(StatusField::INVALID_LOG_PAGE.dnr()));
    assert_eq!(get(&mut t, 7), Err(INVALID));
    assert_eq!(set(&mut t, 11, 0x100), Err(INVALID));
    assert_eq!(get(&mut t, 15), Ok(5000));
    assert_eq!(t.run(Sqe::new(admin::KEEP_ALIVE, 0)).status(), StatusField::SUCCESS);
    assert_eq!(t.run(Sqe::new(admin::ABORT, 0)).status(), StatusField::INVALID_OPCODE.dnr());
}

#[test]
fn discovery_hosts_hear_of_new_ways_and_of_being_let_in() {
    let mut t = Talk::discovery(STRANGER);
    assert_eq!(set(&mut t, 11, 1 << 31), Ok(0));
    let first = await_event(&mut t);
    t.new_view(|v| v.portals.push(portal(9, Protocol::Nvme, "10.9.0.1:4420")));
    assert!(t.replies.is_empty());
    t.new_view(|v| v.hosts[0].nqns.push(STRANGER.into()));
    assert_eq!(event(&mut t), (first, 0x0070_f002));
    let (header, entries) = discover(&mut t);
    assert_eq!((header.generation.get(), entries.len()), (9, 4));
    let second = await_event(&mut t);
    t.new_view(|v| v.portals.retain(|p| p.id != PortalId(9)));
    assert_eq!(event(&mut t), (second, 0x0070_f002));
    t.new_view(|v| v.hosts.clear());
    assert_eq!(discover(&mut t).1.len(), 0);
    assert_eq!(t.io.closed, None);
}

#[test]
fn a_discovery_controller_without_keep_alive_is_not_kept_for_ever() {
    let mut t = Talk::initialized(NONE, 0);
    let mut fields = connect(0);
    fields.kato = 0.into();
    assert_eq!(t.connect(fields, data(0xffff, DISCOVERY_NQN, STRANGER)), StatusField::SUCCESS);
    t.later(Duration::from_secs(121));
    assert_eq!(t.io.closed, None);
    t.later(Duration::from_secs(1));
    assert_eq!(t.io.closed, Some(Close::KeepAlive));
    // An I/O controller may do without.
    let mut t = Talk::initialized(NONE, 0);
    assert_eq!(t.connect(fields, data(0xffff, NQN, HOST)), StatusField::SUCCESS);
    t.later(Duration::from_secs(100_000));
    assert_eq!(t.io.closed, None);
}
