//! The target of the tests and the hosts that may see it; crates/iscsi/tests uses it too.

use base::view::{Export, Host, Portal, Protocol, System, View};
use base::{HostId, PortalId, Uuid, VolumeId};

pub const IQN: &str = "iqn.2026-01.org.example:system";
pub const INITIATOR: &str = "iqn.2026-01.org.example:host";

/// Volume 0: 512-byte blocks, LUN 0; volume 1: 4096, LUN 300.
pub fn view(blocks: u64) -> View {
    let export = |lun: u16, block_bytes: u32| Export {
        nsid: u32::from(lun) + 1,
        lun,
        volume: VolumeId(u32::from(lun > 0)),
        name: format!("tank/v{lun}"),
        uuid: Uuid::from_random(7, u64::from(lun)),
        nguid: [7; 16],
        naa: [0x3a, 1, 2, 3, 4, 5, lun as u8, (lun >> 8) as u8, 0, 0, 0, 0, 0, 0, 0, 0],
        block_bytes,
        blocks: blocks * 512 / u64::from(block_bytes),
        deallocate: true,
        ready: true,
    };
    View {
        generation: 1,
        system: System {
            iqn: IQN.into(),
            serial: "1234".into(),
            model: "array".into(),
            firmware: "0.1".into(),
            ..System::default()
        },
        portals: vec![portal()],
        hosts: vec![Host {
            id: HostId(4),
            name: "h".into(),
            iqns: vec![INITIATOR.into()],
            exports: vec![export(0, 512), export(300, 4096)],
            ..Host::default()
        }],
        ..View::default()
    }
}

pub fn portal() -> Portal {
    Portal {
        id: PortalId(0),
        protocol: Protocol::Iscsi,
        address: "0.0.0.0:3260".parse().expect("an address"),
        head: 0,
        moves: None,
    }
}
