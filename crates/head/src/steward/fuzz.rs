//! Entry points for arbitrary bytes: what the Steward reads from drives and from the state directory.
//! They must not panic, and what is read must be written down as the same.

use crate::steward::record::kept::KeptFile;
use crate::steward::record::texts;
use crate::steward::state::config::{ArrayRow, LegRow, PoolConfig};
use array::format::feature;
use base::Uuid;
use std::sync::Arc;

/// The features of [`configuration_example`].
const EXAMPLE_HAS: u64 = feature::EXTRAS
    | feature::CAPS
    | feature::WEIGHTS
    | feature::UNCLEARED
    | feature::SHARED
    | feature::FAILED;

/// A pool's configuration as it lies on drives.
pub fn configuration(bytes: &[u8]) {
    for incompat in [feature::EXTRAS, EXAMPLE_HAS] {
        let Ok(config) = PoolConfig::decode(bytes, incompat) else { continue };
        let kept = KeptFile { slot: config.slot(1), deallocates: true };
        assert!(KeptFile::parse("config-x", &kept.bytes("config-x")) == Ok(kept), "another kept file");
        assert!(PoolConfig::of_slot(&config.slot(1)) == Ok(config), "another configuration");
    }
}

/// A configuration that is good.
pub fn configuration_example() -> Vec<u8> {
    let leg = |n: u8| LegRow { drive: Uuid([n; 16]), path: format!("/dev/d{n}") };
    let row = |a: u8| ArrayRow {
        mirror: true,
        weight: 1,
        data_bytes: 64 << 20,
        region_bytes: 1 << 20,
        legs: vec![leg(2 * a), leg(2 * a + 1)],
    };
    let space = pool::ArraySpace { bytes: 64 << 20, weight: 1 };
    let (mut volumes, mut grants) = (volume::Catalogue::default(), access::Grants::default());
    let (uuid, run) = (Uuid([7; 16]), volume::Run { first: 3, count: 2 });
    let map = volume::Map::new(&[run]).expect("a good map");
    let naa = volume::naa(uuid);
    volumes.put(volume::Volume { uuid, naa, name: "vm1".into(), block_bytes: 4096, bytes: 5 << 20, map });
    grants.number(uuid, 1);
    let scrub = crate::steward::state::extras::ScrubRow { every_days: 7, ..Default::default() };
    let new = crate::steward::state::extras::Replacement {
        old: Uuid([6; 16]),
        old_path: "/dev/o".into(),
        new: Uuid([1; 16]),
    };
    let caps = volume::Caps { iops_max: 1000, mbps_max: 50 };
    let capped = crate::steward::state::extras::CapsRow { volume: uuid, caps };
    let heavy = crate::steward::state::extras::WeightRow { volume: uuid, weight: 300 };
    let config = PoolConfig {
        extras: crate::steward::state::extras::Extras {
            scrub,
            spares: vec![],
            replacements: vec![new],
            caps: vec![capped],
            weights: vec![heavy],
            uncleared: Some(crate::steward::state::extras::Returned {
                life: 3,
                all_free: false,
                runs: vec![volume::Run { first: 12, count: 2 }],
            }),
            failed: vec![crate::steward::state::extras::FailedRow {
                drive: Uuid([3; 16]),
                path: "/dev/f".into(),
                why: "{}".into(),
                ..Default::default()
            }],
        },
        accounted: true,
        newer_compat: 0,
        shared: Some(Uuid([7; 16])),
        uuid: Uuid([9; 16]),
        name: "tank".into(),
        block_bytes: 4096,
        drive_block_bytes: 512,
        holder: Uuid([8; 16]),
        created: 5,
        arrays: vec![row(0), row(1)],
        map: Arc::new(pool::StripeMap::new(65536, &[space, space]).expect("a good map")),
        volumes,
        grants,
    };
    let bytes = config.encode();
    assert!(PoolConfig::of_slot(&config.slot(1)) == Ok(config), "the example is good");
    bytes
}

/// Any file of the state directory: each of its readers is given the bytes, as they are and as an operator accepts them, and so is the
/// conversion of old files.
pub fn state_file(bytes: &[u8]) {
    for kind in files::FILES.iter().filter(|k| k.shape.is_sealed()) {
        let name = if kind.name.ends_with('-') { format!("{}x", kind.name) } else { kind.name.to_string() };
        if let Ok(signed) = files::sign(&name, bytes) {
            assert!(files::check(&name, &signed).is_ok(), "{name} is accepted and not whole");
            texts::read_any(&name, &signed);
        }
        texts::read_any(&name, bytes);
        if let Ok(converted) = files::converted(&name, bytes) {
            assert!(files::check(&name, &converted).is_ok(), "{name} is converted and not whole");
            texts::read_any(&name, &converted);
        }
    }
    texts::read_any_log(bytes);
}

/// Files that are good, one of each kind: in the format, and as former versions wrote them.
pub fn state_file_examples() -> Vec<Vec<u8>> {
    let leg = array::format::MemberLeg::new(Uuid([3; 16]), array::format::LegState::InSync);
    let row = array::format::RecordArray { epoch: 1, rivals: 0, legs: vec![leg] };
    let record = array::format::MembershipRecord::first(Uuid([1; 16]), Uuid([2; 16]), 5, vec![row]).encode();
    let old = [
        (
            "identity",
            "# Who\nuuid = 36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\nnqn = nqn.2014-08.org.nvmexpress:uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\niqn = iqn.2026-01.org.millrace:a\nserial = 0123456789\n",
        ),
        (
            "hosts",
            "[host esx1]\niqn = iqn.1998-01.com.example:a\nchap_secret = twelve-bytes!\nchap_user = me\nmutual_secret = 0x00112233445566778899aabb\n",
        ),
        (
            "portals",
            "portal = iscsi 10.0.0.1:3260\nportal = nvme [::1]:4420 7\nportal = nvme [fd00::5]:4420 8 /64 eth1\nlast = 9\n",
        ),
        (
            "pools",
            "[pool 36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2]\nname = tank\ndrive = /dev/a b\ndrive = ram:1G\n",
        ),
        ("tokens", "ansible full 1 - 3 0000000000000000000000000000000000000000000000000000000000000000\n"),
        ("link", "{\"head\": \"a\"}"),
        ("alarms", "{\"version\":1,\"receivers\":{}}"),
        ("witness-x", "record = 00ff\n"),
        ("config-x", "deallocate = yes\nconfig = 00ff\n"),
    ];
    let good =
        |(name, text): &(&str, &str)| files::converted(name, text.as_bytes()).expect("a good old file");
    let mut all: Vec<Vec<u8>> = old.iter().map(good).collect();
    all.extend(old.iter().map(|(_, text)| text.as_bytes().to_vec()));
    all.push(
        b"7\t1700000000\twarning\tdrive /dev/a\tit is gone\n8\t1700000001\tnote\thead\tthe head serves\n"
            .to_vec(),
    );
    all.push(texts::witness_file("witness-x", &record));
    let config = PoolConfig::decode(&configuration_example(), EXAMPLE_HAS).expect("the example is good");
    all.push(KeptFile { slot: config.slot(1), deallocates: false }.bytes("config-x"));
    all
}
