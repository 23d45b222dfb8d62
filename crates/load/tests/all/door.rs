//! One initiator against one target through its door: every operation, aborts, good-bye, discovery,
//! and what the target reports of a volume that changes.

use crate::world::{Disk, Hosted, STAGING_BYTES, World};
use base::memory::PlainMemory;
use base::view::{Host, Portal, Protocol, View};
use base::{
    ConnectionId, Effects, Event, FaultKind, HostCommand, HostDone, HostStatus, Instant, Machine, Op,
    PortalId, Slice,
};
use load::{Config, Down, Initiator, State, Target};

const NQN: &str = "nqn.2026-01.org.example:host";
const IQN: &str = "iqn.2026-01.org.example:host";
const DATA: u64 = STAGING_BYTES + (1 << 20);

/// A machine with one initiator.
struct One {
    memory: PlainMemory,
    initiator: Initiator,
    todo: Vec<HostCommand>,
    aborts: Vec<u32>,
    done: Vec<HostDone>,
    began: bool,
    goodbye: bool,
}

impl Machine for One {
    type Mail = ();
    fn on_event(&mut self, now: Instant, event: Event<()>, fx: &mut Effects<()>) {
        assert!(self.initiator.on_event(now, &event, &mut self.memory, fx), "every event is its own");
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<()>) {
        self.initiator.on_timer(now, fx);
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<()>) {
        if !self.began {
            self.began = true;
            self.initiator.start(now);
        }
        while let Some(command) = self.todo.first() {
            if self.initiator.free() == 0 || !self.initiator.submit(command, &mut self.memory) {
                break;
            }
            self.todo.remove(0);
        }
        for id in self.aborts.drain(..) {
            assert!(self.initiator.abort(id), "it is under way");
        }
        if core::mem::take(&mut self.goodbye) {
            self.initiator.stop(now);
        }
        self.initiator.end_of_turn(now, &mut self.memory, fx);
        while let Some(done) = self.initiator.next_done() {
            self.done.push(done);
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.initiator.next_deadline()
    }
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        self.initiator.segments(connection, max, out);
    }
}

impl Hosted for One {
    fn memory(&mut self) -> &mut PlainMemory {
        &mut self.memory
    }
}

fn host() -> Host {
    Host { name: "h".into(), nqns: vec![NQN.into()], iqns: vec![IQN.into()], ..Host::default() }
}

fn nvme(change: impl FnOnce(&mut nvme::host::Config)) -> Config {
    let mut c = nvme::host::Config::new(NQN, [7; 16], "nqn.2026-01.org.example:target");
    change(&mut c);
    Config { peer: "127.0.0.1:4420".parse().unwrap(), target: Target::Nvme(c) }
}

fn iscsi(change: impl FnOnce(&mut iscsi::initiator::Config)) -> Config {
    let mut c = iscsi::initiator::Config::new(IQN, Some("iqn.2026-01.org.example:target"));
    change(&mut c);
    Config { peer: "127.0.0.1:3260".parse().unwrap(), target: Target::Iscsi(c) }
}

fn world(config: Config, host: Host) -> World<One> {
    let protocol = if matches!(config.target, Target::Nvme(_)) { Protocol::Nvme } else { Protocol::Iscsi };
    let view: View = crate::world::view(host, 4096, 64);
    let one = One {
        memory: PlainMemory::new(0, (DATA + (8 << 20)) as usize),
        initiator: Initiator::new(config, 3, STAGING_BYTES),
        todo: vec![],
        aborts: vec![],
        done: vec![],
        began: false,
        goodbye: false,
    };
    World::new(one, protocol, 5, Disk::new(4096, 64), view)
}

fn ready(w: &mut World<One>) {
    w.run(200_000, |w| {
        assert!(!matches!(w.machine.initiator.state(), State::Down(_)), "{:?}", w.machine.initiator.state());
        w.machine.initiator.state() == State::Ready
    });
}

fn down(w: &mut World<One>) -> Down {
    w.run(200_000, |w| matches!(w.machine.initiator.state(), State::Down(_)));
    let State::Down(why) = w.machine.initiator.state() else { unreachable!("just seen") };
    why
}

/// Submits one command with `byte` all over its data; gives its end and its data.
fn ask(w: &mut World<One>, op: Op, at: u64, blocks: u32, byte: u8) -> (HostStatus, Vec<u8>) {
    let len = if matches!(op, Op::Read | Op::Write | Op::Compare) { blocks * 4096 } else { 0 };
    let data = Slice::new(DATA, len);
    base::Memory::bytes_mut(&mut w.machine.memory, data).fill(byte);
    w.machine.todo.push(HostCommand { id: 9, op, at, blocks, fua: true, data });
    w.run(200_000, |w| !w.machine.done.is_empty());
    let done = w.machine.done.remove(0);
    assert_eq!(done.id, 9);
    (done.status, base::Memory::bytes(&w.machine.memory, data).to_vec())
}

fn fault(status: HostStatus) -> FaultKind {
    match status {
        HostStatus::Failed(f) => f.kind,
        other => panic!("not a failure: {other:?}"),
    }
}

fn every_operation(config: Config) {
    let mut w = world(config, host());
    ready(&mut w);
    let info = w.machine.initiator.info();
    assert_eq!((info.block_bytes, info.blocks, info.transfer_max), (4096, 64, 1 << 20));
    assert_eq!(ask(&mut w, Op::Write, 0, 64, 0xaa).0, HostStatus::Good);
    assert_eq!(ask(&mut w, Op::Flush, 0, 0, 0).0, HostStatus::Good);
    assert_eq!(ask(&mut w, Op::WriteZeroes { deallocate: false }, 4, 2, 0).0, HostStatus::Good);
    assert_eq!(ask(&mut w, Op::WriteZeroes { deallocate: true }, 6, 1, 0).0, HostStatus::Good);
    assert_eq!(ask(&mut w, Op::Deallocate, 8, 3, 0).0, HostStatus::Good);
    let (status, data) = ask(&mut w, Op::Read, 0, 64, 0);
    assert_eq!(status, HostStatus::Good);
    for (block, bytes) in data.chunks(4096).enumerate() {
        let want = if matches!(block, 4..=6 | 8..=10) { 0 } else { 0xaa };
        assert!(bytes.iter().all(|b| *b == want), "block {block}");
    }
    assert_eq!(ask(&mut w, Op::Compare, 12, 2, 0xaa).0, HostStatus::Good);
    assert_eq!(fault(ask(&mut w, Op::Compare, 3, 2, 0xaa).0), FaultKind::Miscompare);
    assert_eq!(fault(ask(&mut w, Op::Read, 63, 2, 0).0), FaultKind::OutOfRange);
    assert_eq!(fault(ask(&mut w, Op::Write, u64::MAX, 1, 0).0), FaultKind::OutOfRange);
    w.machine.goodbye = true;
    assert_eq!(down(&mut w), Down::Stopped);
}

#[test]
fn nvme_every_operation_ends_as_it_should() {
    for (digests, flow) in [(false, true), (true, false)] {
        every_operation(nvme(|c| {
            c.header_digest = digests;
            c.data_digest = digests;
            c.flow_control = flow;
        }));
    }
}

#[test]
fn nvme_an_aborted_command_ends_and_the_session_lives() {
    let mut w = world(nvme(|_| ()), host());
    ready(&mut w);
    let data = Slice::new(DATA, 1 << 18);
    for id in 0..8 {
        w.machine.todo.push(HostCommand { id, op: Op::Write, at: 0, blocks: 64, fua: false, data });
    }
    w.run(1000, |w| w.machine.todo.is_empty());
    w.machine.aborts = vec![5, 7];
    w.run(200_000, |w| w.machine.done.len() == 8);
    for done in w.machine.done.drain(..) {
        assert!(done.status == HostStatus::Good || fault(done.status) == FaultKind::Aborted, "{done:?}");
    }
    assert_eq!(w.machine.initiator.state(), State::Ready);
    assert!(!w.machine.initiator.abort(5), "it is over");
}

#[test]
fn nvme_discovery_lists_the_portals() {
    let mut w = world(nvme(|c| c.subsystem = nvme::spec::DISCOVERY_NQN.into()), host());
    for (id, port) in [(0, 4420), (1, 4421)] {
        let address = format!("10.0.0.1:{port}").parse().unwrap();
        w.view.portals.push(Portal {
            id: PortalId(id),
            protocol: Protocol::Nvme,
            address,
            head: 0,
            moves: None,
        });
    }
    ready(&mut w);
    let found: Vec<_> = w
        .machine
        .initiator
        .nvme_records()
        .iter()
        .filter(|r| r.subtype == 2)
        .map(|r| format!("{} {} {}", r.subsystem, r.address, r.port))
        .collect();
    let nqn = "nqn.2026-01.org.example:target";
    assert_eq!(found, [format!("{nqn} 10.0.0.1 4420"), format!("{nqn} 10.0.0.1 4421")]);
    w.machine.goodbye = true;
    assert_eq!(down(&mut w), Down::Stopped);
}

#[test]
fn nvme_a_volume_that_grows_is_noticed() {
    let mut w = world(nvme(|_| ()), host());
    ready(&mut w);
    assert_eq!(w.machine.initiator.info().blocks, 64);
    w.change_view(|view| view.hosts[0].exports[0].blocks = 128);
    w.run(200_000, |w| w.machine.initiator.info().changes == 1);
    assert_eq!(w.machine.initiator.info().blocks, 128);
    w.change_view(|view| view.hosts[0].exports.clear());
    w.run(200_000, |w| w.machine.initiator.info().changes == 2);
    assert_eq!(w.machine.initiator.info().blocks, 0);
    assert_eq!(fault(ask(&mut w, Op::Read, 0, 1, 0).0), FaultKind::NoVolume);
}

#[test]
fn a_cut_link_ends_every_command_once_and_the_session_begins_anew() {
    let mut w = world(nvme(|_| ()), host());
    ready(&mut w);
    let data = Slice::new(DATA, 1 << 18);
    for id in 0..20 {
        w.machine.todo.push(HostCommand { id, op: Op::Read, at: 0, blocks: 64, fua: false, data });
    }
    w.run(1000, |w| w.machine.todo.is_empty());
    w.cut_every = 1;
    assert_eq!(down(&mut w), Down::Broken);
    let mut ids: Vec<_> = w.machine.done.drain(..).map(|d| d.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    w.cut_every = 0;
    w.machine.began = false;
    ready(&mut w);
    assert_eq!(ask(&mut w, Op::Read, 0, 1, 1).0, HostStatus::Good);
}

#[test]
fn a_silent_target_is_noticed_by_keep_alive() {
    let mut w = world(nvme(|_| ()), host());
    ready(&mut w);
    w.frozen = true;
    let since = w.now;
    assert_eq!(down(&mut w), Down::Nvme(nvme::host::Error::TimedOut("Keep Alive")));
    assert!(w.now.since(since) <= base::Duration::from_secs(10));
}

#[test]
fn iscsi_every_operation_ends_as_it_should() {
    for (digests, r2t) in [(false, false), (true, true)] {
        let config = iscsi(|c| {
            c.header_digest = digests;
            c.data_digest = digests;
            c.initial_r2t = r2t;
            c.immediate_data = !r2t;
        });
        every_operation(config);
    }
}

#[test]
fn iscsi_an_aborted_command_ends_and_the_session_lives() {
    let mut w = world(iscsi(|_| ()), host());
    ready(&mut w);
    let data = Slice::new(DATA, 1 << 18);
    for id in 0..8 {
        w.machine.todo.push(HostCommand { id, op: Op::Write, at: 0, blocks: 64, fua: false, data });
    }
    w.run(1000, |w| w.machine.todo.is_empty());
    w.machine.aborts = vec![5, 7];
    w.run(200_000, |w| w.machine.done.len() == 8);
    assert_eq!(w.machine.initiator.state(), State::Ready, "{:?}", w.close_reasons());
    for done in w.machine.done.drain(..) {
        assert!(done.status == HostStatus::Good || fault(done.status) == FaultKind::Aborted, "{done:?}");
    }
    assert_eq!(w.machine.initiator.state(), State::Ready);
    assert_eq!(ask(&mut w, Op::Write, 0, 64, 1).0, HostStatus::Good);
}

#[test]
fn iscsi_discovery_lists_the_portals() {
    let mut w = world(iscsi(|c| c.target = None), host());
    for (id, port) in [(0, 3260), (1, 3261)] {
        let address = format!("10.0.0.1:{port}").parse().unwrap();
        w.view.portals.push(Portal {
            id: PortalId(id),
            protocol: Protocol::Iscsi,
            address,
            head: 0,
            moves: None,
        });
    }
    ready(&mut w);
    let found = w.machine.initiator.iscsi_targets().to_vec();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "iqn.2026-01.org.example:target");
    assert_eq!(found[0].addresses, ["10.0.0.1:3260,1", "10.0.0.1:3261,2"]);
    w.machine.goodbye = true;
    assert_eq!(down(&mut w), Down::Stopped);
}

#[test]
fn iscsi_a_volume_that_grows_is_noticed() {
    let mut w = world(iscsi(|_| ()), host());
    ready(&mut w);
    assert_eq!(w.machine.initiator.info().blocks, 64);
    w.change_view(|view| view.hosts[0].exports[0].blocks = 128);
    // The unit attention comes with the next command, which is then not carried out.
    let (status, _) = ask(&mut w, Op::Read, 0, 1, 0);
    let HostStatus::Retry { fault, .. } = status else { panic!("{status:?}") };
    assert_eq!((fault.kind, fault.raw & 0xffff), (FaultKind::Changed, 0x2a09));
    w.run(200_000, |w| w.machine.initiator.info().changes == 1);
    assert_eq!(w.machine.initiator.info().blocks, 128);
}

#[test]
fn a_silent_iscsi_target_is_noticed_by_ping() {
    let mut w = world(iscsi(|_| ()), host());
    ready(&mut w);
    w.frozen = true;
    let since = w.now;
    assert_eq!(down(&mut w), Down::Iscsi(iscsi::initiator::Error::TimedOut("NOP-In")));
    assert!(w.now.since(since) <= base::Duration::from_secs(10));
}
