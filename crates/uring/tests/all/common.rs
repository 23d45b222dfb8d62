//! Toy machines and a house to put them in.

use base::{
    Address, ConnectionId, Effect, Effects, Event, Instant, Machine, Memory, NetError, PortalId, Slice,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use uring::{Config, House, MachineConfig, RegionPart};

pub const PATIENCE: Duration = Duration::from_secs(10);

/// What toy machines and the tests send each other.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Note {
    Listening(Result<SocketAddr, NetError>),
    Connections(usize),
    Closed(u64),
    Number(u64),
    Unlisten,
    Panic,
}

/// Echoes everything; holds a staging buffer until it is sent. After the first 8 bytes, which are a
/// length, `direct` machines receive that many bytes straight into their own memory.
pub struct Echo {
    pub part: RegionPart,
    pub direct: bool,
    listen: Option<SocketAddr>,
    connections: BTreeMap<ConnectionId, Flow>,
    closed: u64,
}

#[derive(Default)]
struct Flow {
    /// To be sent, and whether it is staging memory.
    out: Option<(Slice, Slice, bool)>,
    /// Bytes of a direct transfer still to come.
    expect: u64,
    closing: bool,
}

impl Echo {
    pub fn new(part: RegionPart, listen: SocketAddr, direct: bool) -> Self {
        Self { part, direct, listen: Some(listen), connections: BTreeMap::new(), closed: 0 }
    }
    fn receive(&mut self, connection: ConnectionId, fx: &mut Effects<Note>) {
        let direct = self.direct;
        let (start, len) = self.part.extent();
        let flow = self.connections.get_mut(&connection).unwrap();
        let into = (direct && flow.expect > 0).then(|| {
            let room = len / 16;
            let at = start + connection.slot() as u64 % 16 * room;
            Slice::new(at, flow.expect.min(room).min(1 << 20) as u32)
        });
        // Every other one is said to send much at a time.
        let batch = connection.slot() as u32 % 2 * 40;
        fx.push(Effect::Receive { connection, into, most: u32::MAX, batch });
    }
}

impl Machine for Echo {
    type Mail = Note;
    fn on_event(&mut self, _now: Instant, event: Event<Note>, fx: &mut Effects<Note>) {
        match event {
            Event::Accepted { connection, .. } => {
                self.connections.insert(connection, Flow::default());
                self.receive(connection, fx);
            }
            Event::Received { connection, data } => {
                let own = data.at >= self.part.extent().0;
                let flow = self.connections.get_mut(&connection).unwrap();
                if self.direct && flow.expect == 0 {
                    assert_eq!(data.len, 8, "the client sends the length alone first");
                    flow.expect = u64::from_le_bytes(self.part.bytes(data).try_into().unwrap());
                    fx.push(Effect::Recycle { data });
                    if flow.expect > 0 {
                        self.receive(connection, fx);
                    }
                    return;
                }
                if own {
                    flow.expect -= u64::from(data.len);
                }
                flow.out = Some((data, data, !own));
                fx.push(Effect::Send { connection });
            }
            Event::Sent { connection, bytes } => {
                let flow = self.connections.get_mut(&connection).unwrap();
                let (whole, rest, staging) = flow.out.take().unwrap();
                let rest = rest.tail(bytes);
                if rest.len > 0 {
                    flow.out = Some((whole, rest, staging));
                    fx.push(Effect::Send { connection });
                } else {
                    if staging {
                        fx.push(Effect::Recycle { data: whole });
                    }
                    self.receive(connection, fx);
                }
            }
            Event::Broken { connection } => {
                let flow = self.connections.get_mut(&connection).unwrap();
                assert!(!std::mem::replace(&mut flow.closing, true), "Broken comes once");
                fx.push(Effect::Close { connection });
            }
            Event::Closed { connection } => {
                let flow = self.connections.remove(&connection).expect("Closed comes once");
                if let Some((whole, _, true)) = flow.out {
                    fx.push(Effect::Recycle { data: whole });
                }
                self.closed += 1;
                fx.push(Effect::Mail { to: Address::Manager, mail: Note::Closed(self.closed) });
            }
            Event::Listening { result, .. } => {
                fx.push(Effect::Mail { to: Address::Manager, mail: Note::Listening(result) });
            }
            Event::Mail { mail: Note::Connections(_), .. } => {
                let n = self.connections.len();
                fx.push(Effect::Mail { to: Address::Manager, mail: Note::Connections(n) });
            }
            // Close everything, whatever is under way.
            Event::Mail { mail: Note::Closed(_), .. } => {
                for (connection, flow) in &mut self.connections {
                    if !std::mem::replace(&mut flow.closing, true) {
                        fx.push(Effect::Close { connection: *connection });
                    }
                }
            }
            Event::Mail { mail: Note::Unlisten, .. } => fx.push(Effect::Unlisten { portal: PortalId(1) }),
            Event::Mail { mail: Note::Panic, .. } => panic!("asked to"),
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, _now: Instant, _fx: &mut Effects<Note>) {
        panic!("no timer was asked for");
    }
    fn end_of_turn(&mut self, _now: Instant, fx: &mut Effects<Note>) {
        if let Some(address) = self.listen.take() {
            fx.push(Effect::Listen { portal: PortalId(1), address });
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn segments(&self, connection: ConnectionId, _max: usize, out: &mut Vec<Slice>) {
        let (_, rest, _) = self.connections[&connection].out.unwrap();
        // In pieces, so that there is more than one.
        let half = rest.len / 2;
        if half > 0 {
            out.push(rest.head(half));
        }
        out.push(rest.tail(half));
    }
}

pub fn config(machines: &[Address]) -> Config {
    let machine = |a: &Address| MachineConfig {
        connections_max: 512,
        staging_buffers: 8,
        ..MachineConfig::new(*a, 4 << 20)
    };
    Config { machines: machines.iter().map(machine).collect(), state_dir: None }
}

pub type Letters = Receiver<(Address, Note)>;

/// A house and what its machines write to the manager.
pub fn house(config: Config) -> (House<Note>, Letters) {
    let (to, letters) = channel();
    let house = House::build(config, move |from, note| {
        let _ = to.send((from, note));
    });
    (house.unwrap(), letters)
}

/// A house with one echo machine; its address.
pub fn echo(direct: bool, connections_max: u32) -> (House<Note>, Letters, SocketAddr) {
    let mut config = config(&[Address::Shard(0)]);
    config.machines[0].connections_max = connections_max;
    let (mut house, letters) = house(config);
    let any = "127.0.0.1:0".parse().unwrap();
    house.spawn(Address::Shard(0), move |part, _| Echo::new(part, any, direct)).unwrap();
    let (_, Note::Listening(Ok(at))) = letters.recv_timeout(PATIENCE).unwrap() else {
        panic!("not listening")
    };
    (house, letters, at)
}
