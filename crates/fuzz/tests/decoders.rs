//! Every decoder of the product.

use base::codec::{Reader, Writer, unhex};
use base::crc::crc32c;
use fuzz::{Target, limit, run};

fn nothing(_: &mut [u8]) {}

/// A decoder of whole conversations; the first byte of an input chooses how they begin.
fn conversation(name: &'static str, take: fn(&[u8]), starts: &[&str]) {
    talks(name, take, starts.iter().map(|text| unhex(text).expect("hex")).collect());
}

/// The same, from the bytes of the examples.
fn talks(name: &'static str, take: fn(&[u8]), starts: Vec<Vec<u8>>) {
    let begin = |choice: u8| starts.iter().map(move |bytes| [&[choice], bytes.as_slice()].concat());
    let examples = (0..=255u8).step_by(17).flat_map(begin).collect();
    check(&Target { name, run: take, examples, mend: nothing, bytes_max: 4096 });
}

fn check(target: &Target) {
    let inputs = run(target, 1, limit());
    println!("{}: {inputs} inputs", target.name);
}

/// An ICReq, a command capsule of 72 bytes, an H2CData header; zeroes where it does not matter.
const NVME: [&str; 3] = [
    "0000800080000000000000000000000000000000000000000000000000000000",
    "0400480048000000020001000100000000000000000000000000000000000000000000000000000000000000000000000000\
     00000000000000000000000007000000000000000000",
    "06041818180200000200000000000000000200000000000000000000",
];
/// A login request with one pair, a SCSI READ(10), a text request.
const ISCSI: [&str; 3] = [
    "43870000000000104000013700000000000000010000000000000001000000000000000000000000000000000000000049\
     6e69746961746f724e616d653d6100",
    "0181000000000000000000000000000000000002000010000000000200000003280000000000000008000000000000000000",
    "048000000000000f0000000000000000000000030000000000000003000000040000000000000000000000000000000053\
     656e64546172676574733d416c6c00",
];

#[test]
fn fuzz_nvme_pdu_decoders_of_both_ends() {
    conversation("nvme pdu", nvme::fuzz::decoder, &NVME);
}

#[test]
fn fuzz_nvme_target() {
    conversation("nvme target", nvme::fuzz::connection, &NVME);
}

#[test]
fn fuzz_nvme_host() {
    conversation("nvme host", nvme::host::fuzz::session, &NVME);
}

#[test]
fn fuzz_iscsi_initiator() {
    conversation("iscsi initiator", iscsi::initiator::fuzz::session, &ISCSI);
}

/// What an initiator may say once it is logged in: commands with and without data, Data-Out, a ping, a
/// text, task management, Logout.
fn iscsi_conversations() -> Vec<Vec<u8>> {
    use iscsi::pdu::{
        DataOut, Framing, LogoutRequest, NopOut, RESERVED_TAG, ScsiCommand, TaskManagementRequest,
        TextRequest,
    };
    let line = Framing::default();
    let command = |cdb: &[u8], write: bool, expected: u32, task_tag: u32| {
        let mut c = ScsiCommand { last: true, read: !write, write, expected, task_tag, ..Default::default() };
        c.cmd_sn = task_tag + 1;
        c.cdb[..cdb.len()].copy_from_slice(cdb);
        c
    };
    let mut block = vec![];
    line.put(&mut block, command(&[0x12, 0, 0, 0, 96], false, 96, 0).encode(), &[]);
    line.put(&mut block, command(&[0x2a, 0, 0, 0, 0, 8, 0, 0, 2], true, 1024, 1).encode(), &[7; 512]);
    let data = DataOut { last: true, task_tag: 1, transfer_tag: 1 << 18, ..Default::default() };
    line.put(&mut block, data.encode(), &[8; 512]);
    line.put(&mut block, command(&[0x28, 0, 0, 0, 0, 8, 0, 0, 2], false, 1024, 2).encode(), &[]);
    let mut control = vec![];
    let (task_tag, transfer_tag) = (5, RESERVED_TAG);
    let ping = NopOut { task_tag, transfer_tag, cmd_sn: 1, ..Default::default() };
    line.put(&mut control, ping.encode(), b"are you there");
    let text = TextRequest { last: true, task_tag, transfer_tag, cmd_sn: 2, ..Default::default() };
    line.put(&mut control, text.encode(), b"SendTargets=\0");
    let reset =
        TaskManagementRequest { immediate: true, function: 5, task_tag: 6, cmd_sn: 3, ..Default::default() };
    line.put(&mut control, reset.encode(), &[]);
    line.put(&mut control, LogoutRequest { task_tag: 7, cmd_sn: 3, ..Default::default() }.encode(), &[]);
    vec![iscsi::fuzz::login(false), iscsi::fuzz::login(true), block, control]
}

#[test]
fn fuzz_iscsi_target() {
    // Its memory is large, and one will do.
    thread_local!(static HEAD: std::cell::RefCell<iscsi::fuzz::Head> = Default::default());
    let take = |bytes: &[u8]| HEAD.with_borrow_mut(|head| iscsi::fuzz::connection(bytes, head));
    talks("iscsi target", take, iscsi_conversations());
}

#[test]
fn fuzz_iscsi_headers() {
    let examples = iscsi_conversations();
    check(&Target {
        name: "iscsi header",
        run: iscsi::fuzz::header,
        examples,
        mend: nothing,
        bytes_max: 400,
    });
}

#[test]
fn fuzz_iscsi_texts_and_values() {
    let take = |bytes: &[u8]| {
        iscsi::fuzz::text(bytes);
        for pair in iscsi::text::pairs(bytes).map_while(Result::ok) {
            iscsi::text::number(pair.value);
            iscsi::text::boolean(pair.value);
            assert!(iscsi::text::binary(pair.value, 1024).is_none_or(|b| b.len() <= 1024));
            iscsi::text::choose(pair.value, &["CHAP", "None"]);
        }
    };
    let examples = [
        "InitiatorName=iqn.a:b\0HeaderDigest=CRC32C,None\0MaxBurstLength=0x4000\0ImmediateData=Yes\0",
        "CHAP_A=5,7\0CHAP_R=0x0123456789abcdef\0CHAP_C=0bAAECAwQ=\0CHAP_I=255\0",
    ];
    let examples = examples.iter().map(|e| e.as_bytes().to_vec()).collect();
    check(&Target { name: "iscsi text", run: take, examples, mend: nothing, bytes_max: 8192 });
}

// What lies on drives. A record that is read must be written down as the same record.

/// The checksum of a record covers all of it with the field itself as zeroes.
fn seal(bytes: &mut [u8]) {
    if bytes.len() >= 16 {
        bytes[12..16].fill(0);
        let crc = crc32c(bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
}

#[test]
fn fuzz_labels() {
    use array::format::Label;
    let take = |bytes: &[u8]| {
        if let Ok(label) = Label::decode(bytes) {
            assert_eq!(Label::decode(&label.encode()), Ok(label));
        }
    };
    let label = Label {
        pool: base::Uuid([1; 16]),
        drive: base::Uuid([2; 16]),
        legs: 2,
        leg: 1,
        block_bytes: 512,
        bitmap_bytes: 8192,
        bitmap_at: [array::format::BITMAP_AT, array::format::BITMAP_AT + 8192],
        data_at: 5 << 20,
        data_bytes: 50 << 20,
        region_bytes: 4 << 20,
        pool_name: "tank".into(),
        ..Label::usual(64 << 20)
    };
    assert_eq!(Label::decode(&label.encode()).as_ref(), Ok(&label), "the example is good");
    check(&Target { name: "label", run: take, examples: vec![label.encode()], mend: seal, bytes_max: 4096 });
}

#[test]
fn fuzz_membership_records() {
    use array::format::{LegState, MemberLeg, MembershipRecord, RecordArray};
    let take = |bytes: &[u8]| {
        if let Ok(record) = MembershipRecord::decode(bytes) {
            assert_eq!(MembershipRecord::decode(&record.encode()), Ok(record));
        }
    };
    let legs = |n: u8| (1..=n).map(|i| MemberLeg::new(base::Uuid([i; 16]), LegState::InSync)).collect();
    let arrays = vec![
        RecordArray { epoch: 1, rivals: 0, legs: legs(2) },
        RecordArray { epoch: 1, rivals: 0, legs: legs(4) },
    ];
    let first = MembershipRecord::first(base::Uuid([8; 16]), base::Uuid([9; 16]), 1, arrays);
    let examples = vec![first.encode(), first.next(base::Uuid([9; 16]), 2).encode()];
    assert_eq!(MembershipRecord::decode(&examples[0]), Ok(first), "the example is good");
    check(&Target { name: "membership", run: take, examples, mend: seal, bytes_max: 4096 });
}

#[test]
fn fuzz_blocks_and_heartbeats_of_heads() {
    use base::fence::Process;
    use cluster::{HeadNo, HeadRow, HeadState, Heartbeat, Slot, SystemRecord, Voter};
    let take = |bytes: &[u8]| {
        for head in [HeadNo::A, HeadNo::B] {
            if let Ok(slot) = Slot::decode(head, bytes) {
                assert_eq!(Slot::decode(head, &slot.encode()), Ok(slot));
            }
        }
        if let Ok(heartbeat) = Heartbeat::decode(bytes) {
            assert_eq!(Heartbeat::decode(&heartbeat.encode()), Ok(heartbeat));
        }
    };
    let system = base::Uuid([7; 16]);
    let row = |n: u8| HeadRow {
        state: HeadState::In,
        since: u64::from(n),
        life: 5,
        certificate: [n; 32],
        name: format!("head-{n}"),
    };
    let drive = Voter::Drive(base::Uuid([9; 16]));
    let voters = vec![Voter::Directory(HeadNo::A), Voter::Directory(HeadNo::B), drive];
    let heads = [row(1), row(2)];
    let decided = SystemRecord {
        system,
        epoch: 4,
        latest: [true, false],
        changed: 0,
        features: 0,
        leader: HeadNo::A,
        heads,
        voters,
    };
    let accepted = Some((3, decided.without(HeadNo::A)));
    let slot = Slot { head: HeadNo::B, life: 5, sequence: 8, promised: 3, decided, accepted };
    let (head, hosts, process) = (HeadNo::A, true, Process { pid: 4711, started: 99 });
    let heartbeat = Heartbeat {
        system,
        head,
        hosts,
        reaches: 3,
        process,
        life: 5,
        count: 1,
        epoch: 4,
        slack: base::Duration::ZERO,
    };
    assert_eq!(Slot::decode(HeadNo::B, &slot.encode()).as_ref(), Ok(&slot), "the example is good");
    let examples = vec![slot.encode(), heartbeat.encode()];
    check(&Target { name: "system area", run: take, examples, mend: seal, bytes_max: 4096 });
}

#[test]
fn fuzz_configuration_slots() {
    use array::format::{ConfigSlot, config_bytes};
    let take = |bytes: &[u8]| {
        config_bytes(bytes);
        if let Ok(slot) = ConfigSlot::decode(bytes) {
            let again = slot.encode().expect("what was read fits");
            assert_eq!(ConfigSlot::decode(&again), Ok(slot));
        }
    };
    let slot = ConfigSlot { features: Default::default(), generation: 3, body: vec![7; 500] };
    let examples = vec![slot.encode().expect("a small body")];
    assert_eq!(ConfigSlot::decode(&examples[0]), Ok(slot), "the example is good");
    let mend = |bytes: &mut [u8]| {
        let length = bytes.get(48..52).map_or(0, |n| u32::from_le_bytes([n[0], n[1], n[2], n[3]]) as usize);
        let end = length.saturating_add(64).min(bytes.len());
        seal(&mut bytes[..end]);
    };
    check(&Target { name: "configuration", run: take, examples, mend, bytes_max: 8192 });
}

/// Decodes with `T::decode` and holds what it says against what it writes.
macro_rules! round_trip {
    ($name:literal, $type:ty, $use:expr, $example:expr) => {{
        let take = |bytes: &[u8]| {
            if let Ok(value) = <$type>::decode(&mut Reader(bytes)) {
                let mut w = Writer::default();
                value.encode(&mut w);
                assert_eq!(<$type>::decode(&mut Reader(&w.0)).as_ref(), Ok(&value));
                let examine: fn(&$type) = $use;
                examine(&value);
            }
        };
        let mut w = Writer::default();
        $example.encode(&mut w);
        check(&Target { name: $name, run: take, examples: vec![w.0], mend: nothing, bytes_max: 2048 });
    }};
}

fn a_stripe_runs_both_ways(map: &pool::StripeMap) {
    for at in [0, map.bytes() / 2, map.bytes() - 1] {
        let (array, there, run) = map.locate(at);
        assert!(run > 0 && map.locate_back(array, there).map(|(back, _)| back) == Some(at));
    }
}

fn a_volume_runs_both_ways(map: &volume::Map) {
    if map.granules() > 0 {
        assert!(map.locate(0).1 > 0 && map.locate_back(map.locate(0).0).is_some());
    }
}

#[test]
fn fuzz_stripe_maps() {
    let space = |bytes, weight| pool::ArraySpace { bytes, weight };
    let map = pool::StripeMap::new(65536, &[space(1 << 30, 2), space(1 << 29, 1), space(1 << 28, 1)]);
    round_trip!("stripe map", pool::StripeMap, a_stripe_runs_both_ways, map.expect("a good map"));
}

#[test]
fn fuzz_volume_maps_and_catalogues() {
    let run = |first, count| volume::Run { first, count };
    round_trip!(
        "volume map",
        volume::Map,
        a_volume_runs_both_ways,
        volume::Map::new(&[run(3, 5), run(20, 1)]).expect("good")
    );

    let mut all = volume::Catalogue::default();
    let uuid = base::Uuid([7; 16]);
    all.put(volume::Volume {
        uuid,
        naa: volume::naa(uuid),
        name: "vm1".into(),
        block_bytes: 4096,
        bytes: 16 << 20,
        map: volume::Map::new(&[run(0, 4)]).expect("a good map"),
    });
    round_trip!("catalogue", volume::Catalogue, |all| assert!(all.iter().len() <= volume::VOLUMES_MAX), all);
}

#[test]
fn fuzz_grants() {
    let mut grants = access::Grants::default();
    grants.number(base::Uuid([7; 16]), 1);
    round_trip!("grants", access::Grants, |grants| assert!(grants.iter().len() < 65536), grants);
}

#[test]
fn fuzz_secrets_and_names() {
    let take = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(secret) = access::parse_secret(&text) {
            let again = access::parse_secret(&access::print_secret(&secret));
            assert_eq!(again.map(|s| s.0), Ok(secret.0));
        }
        let _ = access::check_nqn(&text);
        let _ = access::normal_iqn(&text);
        let _ = volume::check_name(&text);
    };
    let examples = [
        "0x00112233445566778899aabbcc",
        "correct horse battery",
        "iqn.1998-01.com.vmware:esx1",
        "nqn.2014-08.org.nvmexpress:uuid:8f4c9e3a-0000-4000-8000-000000000001",
        "eui.02004567A425678D",
    ];
    let examples = examples.iter().map(|e| e.as_bytes().to_vec()).collect();
    check(&Target { name: "secrets and names", run: take, examples, mend: nothing, bytes_max: 400 });
}

#[test]
fn fuzz_pool_configurations() {
    let examples = vec![head::steward::fuzz::configuration_example()];
    let take = head::steward::fuzz::configuration;
    check(&Target { name: "pool configuration", run: take, examples, mend: nothing, bytes_max: 2048 });
}

#[test]
fn fuzz_bitmap_blocks() {
    use array::{BITMAP_BLOCK_BYTES, Bitmap, Geometry, decode_block, encode_block};
    fn geometry() -> Geometry {
        Geometry::plan(true, 0, 300 << 20, 65536).expect("fits")
    }
    const ARRAY: base::Uuid = base::Uuid([5; 16]);
    let take = |bytes: &[u8]| {
        let g = geometry();
        // Blocks have one size: what is shorter is what a shortened drive gives, zeroes.
        let mut block = bytes.to_vec();
        block.resize(BITMAP_BLOCK_BYTES as usize, 0);
        for index in 0..g.bitmap_blocks.min(2) {
            let mut dirty = Bitmap::new(g.regions());
            if let Ok(generation) = decode_block(&g, ARRAY, index, &block, &mut dirty) {
                let mut again = vec![0; BITMAP_BLOCK_BYTES as usize];
                let is_set = |bit| g.region_of_bit(index, bit).is_some_and(|r| dirty.get(r));
                encode_block(&g, ARRAY, index, generation, is_set, &mut again);
                let mut second = Bitmap::new(g.regions());
                assert_eq!(decode_block(&g, ARRAY, index, &again, &mut second), Ok(generation));
                assert!(second == dirty, "another set of regions");
            } else {
                assert!(dirty.is_empty(), "a block that does not check says something");
            }
        }
    };
    let g = geometry();
    let mut block = vec![0; BITMAP_BLOCK_BYTES as usize];
    encode_block(&g, ARRAY, 0, 7, |bit| bit % 3 == 0, &mut block);
    let mend = |bytes: &mut [u8]| {
        if bytes.len() == BITMAP_BLOCK_BYTES as usize {
            bytes[60..64].fill(0);
            let crc = crc32c(bytes);
            bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        }
    };
    check(&Target { name: "bitmap block", run: take, examples: vec![block], mend, bytes_max: 4096 });
}

#[test]
fn fuzz_state_files() {
    let examples = head::steward::fuzz::state_file_examples();
    let take = head::steward::fuzz::state_file;
    check(&Target { name: "state files", run: take, examples, mend: nothing, bytes_max: 4096 });
}

#[test]
fn fuzz_recordings_of_machines() {
    use topology::{Machine, Recording};
    let take = |bytes: &[u8]| {
        let Ok(recording) = Recording::decode(bytes) else { return };
        let machine = Machine::of(&recording);
        assert!(machine.devices.iter().all(|d| d.parent.is_none_or(|p| p < machine.devices.len())));
        let again =
            Recording::decode(recording.encode().as_bytes()).expect("what was written is a recording");
        assert_eq!((again.first, again.second), (recording.first, recording.second));
    };
    let guest = include_bytes!("../../topology/machines/guest.rec").to_vec();
    let laptop = include_bytes!("../../topology/machines/laptop.rec").to_vec();
    check(&Target {
        name: "recordings",
        run: take,
        examples: vec![guest, laptop],
        mend: nothing,
        bytes_max: 16384,
    });
}
