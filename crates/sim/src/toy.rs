//! A Steward that decides nothing but what a test needs: a fixed pool on fixed drives.

use array::{Bitmap, Geometry, Leg, LegState, Membership, Note};
use base::view::{Export, Host, Portal, Protocol, System, View};
use base::{
    Address, Answer, Ask, Dma, DriveId, Effect, Effects, Event, HostId, Instant, Machine, PortalId, Slice,
    Token, Uuid, VolumeId,
};
use head::layout::{ArrayId, ArrayLayout, Layout, PoolId, PoolLayout, VolumeLayout};
use head::mail::Mail;
use std::sync::Arc;

/// The toy.
pub struct Toy {
    shards: u16,
    disks: Vec<String>,
    legs: usize,
    opened: usize,
    view: View,
    layout: Layout,
    applied: u16,
    recording: Vec<(ArrayId, u64)>,
    next_id: u16,
    began: bool,
}

impl Toy {
    /// Arrays of `legs` drives each.
    pub fn new(shards: u16, disks: Vec<String>, legs: usize, hosts: Vec<Host>) -> Self {
        let portals = vec![
            Portal { id: PortalId(0), protocol: Protocol::Nvme, address: "10.0.0.254:4420".parse().unwrap() },
            Portal {
                id: PortalId(1),
                protocol: Protocol::Iscsi,
                address: "10.0.0.254:3260".parse().unwrap(),
            },
        ];
        let system = System {
            nqn: "nqn.2026-01.test:sys".into(),
            iqn: "iqn.2026-01.test:sys".into(),
            uuid: Uuid([7; 16]),
            serial: "S1".into(),
            model: "Millrace".into(),
            firmware: "1".into(),
        };
        let view = View { generation: 0, system, portals, hosts };
        Self {
            shards,
            disks,
            legs,
            opened: 0,
            view,
            layout: Layout::default(),
            applied: 0,
            recording: vec![],
            next_id: 1,
            began: false,
        }
    }
    fn publish(&mut self, fx: &mut Effects<Mail>) {
        self.view.generation += 1;
        self.layout.generation = self.view.generation;
        self.applied = 0;
        for s in 0..self.shards {
            let (view, layout) = (Arc::new(self.view.clone()), Arc::new(self.layout.clone()));
            fx.push(Effect::Mail { to: Address::Shard(s), mail: Mail::Configure { view, layout } });
        }
    }
    fn build(&mut self, fx: &mut Effects<Mail>) {
        let bytes = 64 << 20;
        let geometry = Geometry::plan(self.legs > 1, 4 << 20, bytes, 64 << 10).expect("fits");
        let arrays = self.disks.len() / self.legs;
        for a in 0..arrays {
            let legs = (0..self.legs).map(|l| {
                Some(Leg {
                    drive: DriveId((a * self.legs + l) as u16),
                    state: LegState::InSync,
                    volatile_cache: true,
                    deallocate_zeroes: true,
                })
            });
            self.layout.arrays.push(ArrayLayout {
                id: ArrayId(a as u16),
                uuid: Uuid([a as u8 + 1; 16]),
                geometry,
                membership: Membership { epoch: 1, legs: legs.collect() },
                dirty: Arc::new(Bitmap::new(geometry.regions())),
                unclean: false,
            });
        }
        let spaces: Vec<_> =
            (0..arrays).map(|_| pool::ArraySpace { bytes: geometry.data_bytes, weight: 1 }).collect();
        let map = Arc::new(pool::StripeMap::new(64 << 10, &spaces).expect("a map"));
        let ids = (0..arrays).map(|a| ArrayId(a as u16)).collect();
        self.layout.pools.push(PoolLayout { id: PoolId(0), uuid: Uuid([9; 16]), map, arrays: ids });
        let run = volume::Run { first: 0, count: 2 };
        let map = Arc::new(volume::Map::new(&[run]).expect("a map"));
        self.layout.volumes.push(VolumeLayout {
            id: VolumeId(0),
            pool: PoolId(0),
            block_bytes: 4096,
            blocks: 2048,
            map,
            ready: true,
        });
        for host in &mut self.view.hosts {
            host.exports = vec![Export {
                nsid: 1,
                lun: 0,
                volume: VolumeId(0),
                name: "p/v".into(),
                uuid: Uuid([3; 16]),
                nguid: [3; 16],
                naa: [0x33; 16],
                block_bytes: 4096,
                blocks: 2048,
                deallocate: true,
                ready: true,
            }];
        }
        self.publish(fx);
    }
}

impl Machine for Toy {
    type Mail = Mail;
    fn on_event(&mut self, _now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        match event {
            Event::DriveOpened { result, .. } => {
                result.expect("drives open");
                self.opened += 1;
                if self.opened == self.disks.len() {
                    self.build(fx);
                }
            }
            Event::Mail { from, mail } => match mail {
                Mail::Ask { connection, ask, .. } => {
                    let id = match ask {
                        Ask::NvmeIo { controller, .. } => controller,
                        _ => {
                            self.next_id += 1;
                            self.next_id
                        }
                    };
                    let mail = Mail::Answer { connection, answer: Answer::Admitted { id } };
                    fx.push(Effect::Mail { to: from, mail });
                }
                Mail::Applied { generation } if generation == self.view.generation => {
                    self.applied += 1;
                    if self.applied == self.shards {
                        for (array, epoch) in core::mem::take(&mut self.recording) {
                            for s in 0..self.shards {
                                fx.push(Effect::Mail {
                                    to: Address::Shard(s),
                                    mail: Mail::Recorded { array, epoch },
                                });
                            }
                        }
                        if self.view.generation == 1 {
                            fx.push(Effect::Mail {
                                to: Address::Manager,
                                mail: Mail::Ready { notices: vec![] },
                            });
                        }
                    }
                }
                Mail::Note { array, note: Note::LegFailed { leg, epoch, .. } } => {
                    let a = self.layout.arrays.iter_mut().find(|a| a.id == array).expect("known");
                    if a.membership.epoch == epoch {
                        a.membership.epoch += 1;
                        if let Some(l) = &mut a.membership.legs[leg] {
                            l.state = LegState::Missing;
                        }
                        self.recording.push((array, epoch + 1));
                        self.publish(fx);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    fn on_timer(&mut self, _: Instant, _: &mut Effects<Mail>) {}
    fn end_of_turn(&mut self, _: Instant, fx: &mut Effects<Mail>) {
        if !self.began {
            self.began = true;
            for (i, spec) in self.disks.iter().enumerate() {
                let (token, drive) = (Token(i as u64), DriveId(i as u16));
                fx.push(Effect::OpenDrive { token, drive, spec: spec.clone() });
            }
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn segments(&self, _: base::ConnectionId, _: usize, _: &mut Vec<Slice>) {}
}

impl Dma for Toy {
    fn dma(&mut self, _: Slice) -> Option<&mut [u8]> {
        None
    }
}

/// A host that may come in by both protocols.
pub fn host(id: u32) -> Host {
    Host {
        id: HostId(id),
        name: format!("h{id}"),
        nqns: vec![format!("nqn.2014-08.org.nvmexpress:uuid:h{id}")],
        iqns: vec![format!("iqn.1994-05.test:h{id}")],
        ..Host::default()
    }
}
