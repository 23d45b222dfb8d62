//! Letters to a shard, from the Steward and from other shards: its part of the view and of the arrays, and its report.

use super::{Shard, set};
use crate::admission::lines::Place;
use crate::layout::{ArrayId, Layout};
use crate::mail::{Mail, ShardMail, StewardMail, to_steward};
use crate::path::far::is_far;
use crate::path::link::{Front, Io};
use crate::path::request::Parked;
use crate::report::{ConnectionReport, Counters, DriveReport, ShardReport};
use base::front::{Answer, Close};
use base::view::View;
use base::{Address, Effect, Effects, Instant, Memory};
use std::sync::Arc;

impl<M: Memory> Shard<M> {
    fn configure(&mut self, now: Instant, view: Arc<View>, layout: Arc<Layout>, fx: &mut Effects<Mail>) {
        let core = &mut self.core;
        core.view = view;
        core.layout = layout.clone();
        core.volumes.clear();
        for volume in &layout.volumes {
            set(&mut core.volumes, volume.id.index(), volume.clone());
            if core.volume_counters.len() <= volume.id.index() {
                core.volume_counters.resize(volume.id.index() + 1, Counters::default());
            }
        }
        core.pools.clear();
        for pool in &layout.pools {
            set(&mut core.pools, usize::from(pool.id.0), pool.clone());
        }
        core.apply_arrays(now, &layout, fx);
        core.set_limiters(now, fx);
        let view = &core.view;
        core.ended.retain(|path, _| view.host(path.host).is_some() && view.has_portal(path.portal));

        self.listen(fx);
        let view = self.core.view.clone();
        self.listening.retain(|id| {
            let stays = view.listens(*id);
            if !stays {
                fx.push(Effect::Unlisten { portal: *id });
            }
            stays
        });
        let all: Vec<u32> = self.connections.iter().map(|(i, _)| i).collect();
        for index in all {
            self.with(now, index, fx, |front, io| {
                let portal = io.link.portal;
                if is_far(portal) || view.has_portal(portal) {
                    front.on_view(now, io);
                } else {
                    base::FrontIo::close(io, Close::Replaced);
                }
            });
        }
        fx.push(to_steward(StewardMail::Applied { generation: layout.generation }));
    }

    /// Opens portals of this head that are not open.
    pub(super) fn listen(&mut self, fx: &mut Effects<Mail>) {
        let view = &self.core.view;
        for portal in view.portals.iter().filter(|p| p.head == view.head) {
            if !self.listening.contains(&portal.id) {
                self.listening.push(portal.id);
                fx.push(Effect::Listen { portal: portal.id, address: portal.address });
            }
        }
    }

    /// Apart from other events: arrays are made here, whose room on the stack each command would pay for.
    #[inline(never)]
    pub(super) fn on_mail(&mut self, now: Instant, from: Address, mail: ShardMail, fx: &mut Effects<Mail>) {
        match mail {
            ShardMail::Configure { view, layout } => self.configure(now, view, layout, fx),
            ShardMail::Recorded { array, epoch } => {
                self.core.with_array(now, array, fx, |a, io| a.on_recorded(now, epoch, io));
            }
            ShardMail::Sight { until } => self.core.sight.sees(until, &mut self.core.completed),
            ShardMail::LossNotOnRecord { array } => {
                self.core.with_array(now, array, fx, |a, io| a.on_loss_not_on_record(now, io))
            }
            ShardMail::Clean { array } => self.core.with_array(now, array, fx, |a, io| a.on_clean(now, io)),
            ShardMail::MarkAll { array, number } => {
                self.core.with_array(now, array, fx, |a, io| a.mark_all_dirty(now, number, io))
            }
            ShardMail::AddDirty { array, dirty } => {
                self.core.with_array(now, array, fx, |a, io| a.add_dirty(now, &dirty, io));
            }
            ShardMail::Unmark { array } => self.core.with_array(now, array, fx, |a, _| a.unmark()),
            ShardMail::Scrub { array, order } => {
                self.core.with_array(now, array, fx, |a, io| a.scrub(now, order, io));
            }
            ShardMail::Pace { array, pace } => self.core.with_array(now, array, fx, |a, _| a.pace(pace)),
            ShardMail::Answer { connection, answer } => {
                if let Some(index) = self.index_of(connection) {
                    if let Answer::Admitted { id } = answer {
                        self.connections[index].link.login.session = Some(id);
                    }
                    self.with(now, index, fx, |front, io| front.on_answer(now, answer, io));
                    // A connection that was let in is in its class by now.
                    self.core.limits.on_refused(&mut self.connections[index].link);
                }
            }
            ShardMail::Obey { connection, id, what } => {
                if let Some(index) = self.index_of(connection) {
                    self.with(now, index, fx, |front, io| front.on_intervention(now, id, &what, io));
                }
            }
            ShardMail::Intervened { connection, key, yes } => {
                if let Some(index) = self.index_of(connection) {
                    self.with(now, index, fx, |front, io| front.on_intervened(now, key, yes, io));
                }
            }
            ShardMail::Drop { connection, why } => {
                // One that ends already may have to hurry now.
                if let Some(index) = self.index_of(connection) {
                    let link = &mut self.connections[index].link;
                    base::FrontIo::close(&mut Io { now, core: &mut self.core, link, fx }, why);
                }
            }
            ShardMail::Quiesce { array, number } => self.core.quiesce(now, array, number, fx),
            ShardMail::Room { number, room } => {
                let (room, mirrors_max) = self.core.keep_scratch(room);
                fx.push(to_steward(StewardMail::HasRoom { number, room, mirrors_max }));
            }
            ShardMail::Returned { array, life, marks, ranges } => {
                self.core.with_array(now, array, fx, |a, io| a.on_returned(now, (life, marks), &ranges, io));
            }
            ShardMail::AllCleared { array, marks } => {
                self.core.with_array(now, array, fx, |a, _| a.on_all_cleared(marks));
            }
            ShardMail::Cleared { array, map, region, marks } => {
                self.core.with_array_of(now, (array, map), fx, |a, _| a.on_region_cleared(region, marks));
            }
            ShardMail::Halt { array, number } => self.core.halt(array, number),
            ShardMail::Leave { array, number } => self.core.leave(now, array, number, fx),
            ShardMail::Resume { array } => self.core.resume(now, array, fx),
            ShardMail::PathLost { drive } => self.core.loses_path(drive),
            ShardMail::Far(setup) => self.set_far(now, setup, fx),
            ShardMail::FarGone { number } => self.part_from_far(now, number, fx),
            ShardMail::Report => {
                let report = Box::new(self.report());
                fx.push(to_steward(StewardMail::Reported(report)));
            }
            ShardMail::Run { flight, array, map, command, whose } => {
                let Address::Shard(shard) = from else { panic!("only shards ask shards") };
                self.core.send_cleared(shard, array, &command, fx);
                self.core.park(Parked {
                    shard,
                    flight,
                    array,
                    map,
                    command,
                    whose,
                    place: Place::default(),
                    line: 0,
                });
            }
            ShardMail::Load(load) => {
                let Address::Shard(peer) = from else { panic!("only shards ask shards") };
                self.core.on_load(now, peer, load, fx);
            }
            ShardMail::Credits(load) => self.core.on_credits(load),
            ShardMail::Ran { flight, status, issued, zeroes } => {
                self.core.fill_zeroes(zeroes);
                self.core.flight_landed(now, flight.0, status, issued, fx);
            }
            ShardMail::Abort { flight, array } => {
                let Address::Shard(shard) = from else { panic!("only shards ask shards") };
                self.core.abort_for_peer(now, shard, flight, array, fx);
            }
            ShardMail::Lease { volume, kind, cost } => {
                let Address::Shard(peer) = from else { panic!("only shards ask shards") };
                self.core.on_lease(now, peer, volume, kind, cost, fx);
            }
            ShardMail::Leased { volume, kind, cost } => self.core.on_leased(now, volume, kind, cost),
            ShardMail::Hold { data } => {
                self.core.buffers.hold(data);
                self.core.buffers.keep(now, data);
            }
            ShardMail::Unhold { data } => self.core.let_go_here(data),
            ShardMail::Heal { array, map, at, len, leg } => {
                self.core.with_array_of(now, (array, map), fx, |a, io| a.on_heal(now, leg, at, len, io));
            }
        }
    }

    fn report(&mut self) -> ShardReport {
        let (timed, timed_ops) = self.core.timing.take();
        let core = &self.core;
        let hosts = self.connections.iter().filter(|(_, c)| !matches!(c.front, Front::Far(_)));
        let connections = hosts.map(|(_, c)| ConnectionReport {
            connection: c.link.id,
            portal: c.link.portal,
            peer: c.link.peer,
            host: c.link.host,
            login: c.link.login,
            commands: c.link.live,
            digests: c.front.digests(),
            counters: c.link.counters,
        });
        let volumes = core.layout.volumes.iter().map(|v| (v.id, core.volume_counters[v.id.index()]));
        let arrays = core.arrays.iter().enumerate();
        ShardReport {
            shard: core.id,
            connections: connections.collect(),
            ended: core.ended.iter().map(|(path, counters)| (*path, *counters)).collect(),
            volumes: volumes.collect(),
            drives: core.drives.iter().filter(|d| used(d)).copied().collect(),
            arrays: arrays
                .filter_map(|(i, a)| a.as_ref().map(|a| (ArrayId(i as u16), a.array.progress())))
                .collect(),
            buffers_used: core.buffers.used(),
            buffers_bytes: core.buffers.bytes(),
            waiting: core.quota.waiting(),
            protocol_errors: self.protocol_errors,
            timed,
            timed_ops,
        }
    }
}

/// Whether there is anything to report about a drive.
fn used(drive: &DriveReport) -> bool {
    *drive != DriveReport { drive: drive.drive, ..DriveReport::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::accept::tests::{IQN, ISCSI, NOW, NQN, NVME, World};
    use base::view::{Portal, Protocol};
    use base::{ConnectionId, Event, Machine, PortalId};

    fn configured(world: &mut World, view: View) -> (Vec<u32>, Vec<u32>) {
        let mail = ShardMail::Configure { view: view.into(), layout: Layout::default().into() };
        let mut fx = vec![];
        world.shard.on_event(NOW, Event::Mail { from: Address::Steward, mail: mail.into() }, &mut fx);
        let (mut opened, mut closed) = (vec![], vec![]);
        for effect in fx {
            match effect {
                Effect::Listen { portal, .. } => opened.push(portal.0),
                Effect::Unlisten { portal } => closed.push(portal.0),
                _ => {}
            }
        }
        (opened, closed)
    }

    #[test]
    fn a_shard_listens_at_its_own_heads_portals_and_leaves_those_that_go_to_the_other() {
        let portal = |id, head| {
            let address = "10.0.0.1:4420".parse().expect("an address");
            Portal { id: PortalId(id), protocol: Protocol::Nvme, address, head, moves: None }
        };
        for own in [0, 1] {
            let other = 1 - own;
            let view = |portals: &[(u32, u8)]| View {
                portals: portals.iter().map(|(id, head)| portal(*id, *head)).collect(),
                head: own,
                ..View::default()
            };
            let mut world = World::with_turns(64 << 20, crate::TURN_PDUS);
            configured(&mut world, view(&[]));
            assert_eq!(configured(&mut world, view(&[(5, own), (6, other), (7, own)])), (vec![5, 7], vec![]));
            assert_eq!(configured(&mut world, view(&[(5, own), (6, other), (7, own)])), (vec![], vec![]));
            assert_eq!(configured(&mut world, view(&[(5, other), (6, own), (7, own)])), (vec![6], vec![5]));
            // A connection on its way to a portal that moved away is closed.
            let connection = ConnectionId::new(0, 0);
            let address = "10.0.0.1:4420".parse().expect("an address");
            for (id, leaves) in [(5, true), (6, false)] {
                let mut fx = vec![];
                let event =
                    Event::Accepted { connection, portal: PortalId(id), local: address, peer: address };
                world.shard.on_event(NOW, event, &mut fx);
                assert_eq!(fx.iter().any(|e| matches!(e, Effect::Close { .. })), leaves, "portal {id}");
            }
        }
    }

    /// A session stays until what it was let in by is taken away, and no longer.
    #[test]
    fn a_view_ends_the_sessions_that_it_admits_no_longer() {
        type Order = fn(&mut View);
        let orders: [(&str, Order, [bool; 2]); 8] = [
            ("nothing", |_| {}, [true, true]),
            ("a secret is set", |v| v.hosts[0].proof_generation = 2, [true, false]),
            ("another host gets a secret", |v| v.hosts[1].proof_generation = 2, [true, true]),
            ("the NQN is taken away", |v| v.hosts[0].nqns.clear(), [false, true]),
            (
                "the IQN is another host's",
                |v| v.hosts[1].iqns = core::mem::take(&mut v.hosts[0].iqns),
                [true, false],
            ),
            ("the host is removed", |v| drop(v.hosts.remove(0)), [false, false]),
            ("a portal is removed", |v| v.portals.retain(|p| p.id != ISCSI), [true, false]),
            ("the head closes its portals", |v| v.portals.clear(), [true, true]),
        ];
        for (what, order, stay) in orders {
            let mut world = World::new();
            let sessions = [world.log_in(NVME, NQN, 32), world.log_in(ISCSI, IQN, 0)];
            let mut view = View::clone(&world.shard.core.view);
            order(&mut view);
            let mail = ShardMail::Configure { view: view.into(), layout: Layout::default().into() };
            world.on(Event::Mail { from: Address::Steward, mail: mail.into() });
            assert_eq!(sessions.map(|s| world.is_here(s)), stay, "{what}");
        }
    }

    /// A login by a portal that is removed meanwhile goes with it.
    #[test]
    fn a_login_under_way_ends_with_its_portal() {
        let mut world = World::new();
        let [nvme, iscsi] = [NVME, ISCSI].map(|portal| world.accept(portal));
        let mut view = View::clone(&world.shard.core.view);
        view.portals.retain(|p| p.id != ISCSI);
        let mail = ShardMail::Configure { view: view.into(), layout: Layout::default().into() };
        world.on(Event::Mail { from: Address::Steward, mail: mail.into() });
        assert_eq!([nvme, iscsi].map(|c| world.is_here(c)), [true, false]);
    }
}
