//! Sockets, by toy machines that echo.

use crate::common::{Echo, Note, PATIENCE, config, echo, house};
use base::{Address, Effect, Effects, Event, Machine, NetError, PortalId};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add((i >> 8) as u8) ^ seed).collect()
}

fn connect(at: std::net::SocketAddr) -> TcpStream {
    let s = TcpStream::connect(at).unwrap();
    s.set_read_timeout(Some(PATIENCE)).unwrap();
    s.set_write_timeout(Some(PATIENCE)).unwrap();
    s
}

fn round_trip(stream: &TcpStream, data: &[u8]) {
    let mut writer = stream.try_clone().unwrap();
    thread::scope(|s| {
        s.spawn(move || writer.write_all(data).unwrap());
        let mut back = vec![0; data.len()];
        (&mut &*stream).read_exact(&mut back).unwrap();
        assert!(back == data, "the echo differs");
    });
}

/// Waits until `n` connections have ended.
fn wait_closed(letters: &crate::common::Letters, n: u64) {
    loop {
        if let (_, Note::Closed(closed)) = letters.recv_timeout(PATIENCE).expect("connections end in time")
            && closed == n
        {
            return;
        }
    }
}

#[test]
fn many_connections_are_echoed_while_there_are_fewer_staging_buffers_than_connections() {
    let (house, letters, at) = echo(false, 512);
    let streams: Vec<TcpStream> = (0..200).map(|_| connect(at)).collect();
    for round in 0..3u8 {
        for (i, mut s) in streams.iter().enumerate() {
            s.write_all(&pattern(1000 + i, round)).unwrap();
        }
        for (i, mut s) in streams.iter().enumerate() {
            let mut back = vec![0; 1000 + i];
            s.read_exact(&mut back).unwrap();
            assert!(back == pattern(1000 + i, round), "the echo differs");
        }
    }
    drop(streams);
    wait_closed(&letters, 200);
    house.stop().unwrap();
}

#[test]
fn large_transfers_arrive_whole_through_staging_buffers() {
    let (house, _letters, at) = echo(false, 16);
    let data = pattern(20 << 20, 7);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| round_trip(&connect(at), &data));
        }
    });
    house.stop().unwrap();
}

#[test]
fn large_transfers_arrive_whole_straight_into_the_machines_memory() {
    let (house, _letters, at) = echo(true, 16);
    let data = pattern(10 << 20, 9);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut stream = connect(at);
                stream.set_nodelay(true).unwrap();
                stream.write_all(&(data.len() as u64).to_le_bytes()).unwrap();
                // So that the length comes alone.
                thread::sleep(Duration::from_millis(50));
                round_trip(&stream, &data);
            });
        }
    });
    house.stop().unwrap();
}

#[test]
fn peers_that_reset_leave_nothing_behind() {
    let (house, letters, at) = echo(false, 32);
    for round in 1..=5u64 {
        let streams: Vec<TcpStream> = (0..20).map(|_| connect(at)).collect();
        for mut s in &streams {
            // More than fits anywhere comes back and is not read: sends are under way when it ends.
            s.set_nonblocking(true).unwrap();
            let data = pattern(1 << 20, 1);
            while s.write(&data).is_ok() {}
        }
        // Closing with unread data makes the kernel send RST.
        drop(streams);
        wait_closed(&letters, round * 20);
    }
    house.stop().unwrap();
}

#[test]
fn connections_are_closed_while_sends_and_receives_are_under_way() {
    let (house, letters, at) = echo(false, 64);
    let streams: Vec<TcpStream> = (0..40).map(|_| connect(at)).collect();
    for mut s in streams.iter().take(20) {
        s.set_nonblocking(true).unwrap();
        let data = pattern(1 << 20, 1);
        while s.write(&data).is_ok() {}
    }
    while letters.recv_timeout(Duration::from_millis(100)).is_ok() {}
    assert!(house.post().send(Address::Shard(0), Note::Closed(0)));
    wait_closed(&letters, 40);
    for mut s in streams {
        s.set_nonblocking(false).unwrap();
        let mut rest = vec![0; 1 << 16];
        while matches!(s.read(&mut rest), Ok(n) if n > 0) {}
    }
    // The slots and the staging buffers are whole again.
    round_trip(&connect(at), &pattern(3 << 20, 3));
    house.stop().unwrap();
}

#[test]
fn a_half_closed_peer_still_gets_its_last_answer_or_an_end() {
    let (house, letters, at) = echo(false, 16);
    let mut s = connect(at);
    s.write_all(b"last words").unwrap();
    let mut back = [0; 10];
    s.read_exact(&mut back).unwrap();
    s.shutdown(Shutdown::Write).unwrap();
    assert_eq!(s.read(&mut back).unwrap(), 0);
    wait_closed(&letters, 1);
    house.stop().unwrap();
}

#[test]
fn a_connection_beyond_the_limit_is_closed_at_once_and_the_others_go_on() {
    let (house, letters, at) = echo(false, 4);
    let streams: Vec<TcpStream> = (0..4).map(|_| connect(at)).collect();
    streams.iter().for_each(|s| round_trip(s, b"in"));
    let mut fifth = connect(at);
    assert!(matches!(fifth.read(&mut [0; 1]), Ok(0) | Err(_)), "the fifth connection is closed");
    streams.iter().for_each(|s| round_trip(s, b"still in"));
    drop(streams);
    wait_closed(&letters, 4);
    round_trip(&connect(at), b"room again");
    let refused = &house.counters(Address::Shard(0)).unwrap().refused;
    assert_eq!(refused.load(std::sync::atomic::Ordering::Relaxed), 1);
    house.stop().unwrap();
}

#[test]
fn an_address_in_use_or_of_another_machine_is_refused_by_name() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    for (address, error) in
        [(taken, NetError::InUse), ("203.0.113.7:4420".parse().unwrap(), NetError::NoAddress)]
    {
        let (mut house, letters) = house(config(&[Address::Shard(0)]));
        house.spawn(Address::Shard(0), move |part, _| Echo::new(part, address, false)).unwrap();
        let (_, note) = letters.recv_timeout(PATIENCE).unwrap();
        assert_eq!(note, Note::Listening(Err(error)));
        house.stop().unwrap();
    }
}

#[test]
fn two_houses_do_not_share_a_port_by_accident() {
    let (first, _letters, at) = echo(false, 4);
    let (mut second, letters) = house(config(&[Address::Shard(0)]));
    second.spawn(Address::Shard(0), move |part, _| Echo::new(part, at, false)).unwrap();
    assert_eq!(letters.recv_timeout(PATIENCE).unwrap().1, Note::Listening(Err(NetError::InUse)));
    second.stop().unwrap();
    first.stop().unwrap();
}

#[test]
fn shards_of_a_house_share_a_portal() {
    let shards = [Address::Shard(0), Address::Shard(1)];
    let (mut house, letters) = house(config(&shards));
    let any = "127.0.0.1:0".parse().unwrap();
    let mut ports = Vec::new();
    for shard in shards {
        house.spawn(shard, move |part, _| Echo::new(part, any, false)).unwrap();
        let (_, Note::Listening(Ok(at))) = letters.recv_timeout(PATIENCE).unwrap() else { panic!() };
        ports.push(at);
    }
    assert_eq!(ports[0], ports[1]);
    let streams: Vec<TcpStream> = (0..40).map(|_| connect(ports[0])).collect();
    streams.iter().for_each(|s| round_trip(s, b"hello"));
    for shard in shards {
        assert!(house.post().send(shard, Note::Connections(0)));
        let (_, Note::Connections(n)) = letters.recv_timeout(PATIENCE).unwrap() else { panic!() };
        assert!(0 < n && n < 40, "{n} of 40 connections at {shard:?}");
    }
    house.stop().unwrap();
}

#[test]
fn a_portal_that_is_gone_takes_no_connections_and_keeps_those_it_has() {
    let (house, _letters, at) = echo(false, 16);
    let before = connect(at);
    round_trip(&before, b"before");
    assert!(house.post().send(Address::Shard(0), Note::Unlisten));
    let give_up = Instant::now() + PATIENCE;
    while TcpStream::connect(at).is_ok() {
        assert!(Instant::now() < give_up, "the portal still listens");
    }
    round_trip(&before, b"after");
    house.stop().unwrap();
}

#[test]
fn a_panic_in_a_machine_is_passed_on() {
    let (house, _letters, _) = echo(false, 16);
    assert!(house.post().send(Address::Shard(0), Note::Panic));
    assert_eq!(house.wait(), Address::Shard(0));
    let give_up = Instant::now() + PATIENCE;
    while house.post().send(Address::Shard(0), Note::Panic) {
        assert!(Instant::now() < give_up, "mail to the dead piles up");
    }
    let panicked = house.stop().unwrap_err();
    assert_eq!((panicked[0].address, panicked[0].message.as_str()), (Address::Shard(0), "asked to"));
}

/// Swallows what comes, is never without work, and counts in how many turns how many connections brought something.
struct Swallow {
    listen: Option<std::net::SocketAddr>,
    batch: u32,
    brought: u64,
    turns: [u64; 2],
    bytes: u64,
    wanted: u64,
}

impl Machine for Swallow {
    type Mail = Note;
    fn on_event(&mut self, _now: base::Instant, event: Event<Note>, fx: &mut Effects<Note>) {
        let more = |connection| Effect::Receive { connection, into: None, most: 4096, batch: self.batch };
        match event {
            Event::Accepted { connection, .. } => fx.push(more(connection)),
            Event::Received { connection, data } => {
                fx.push(more(connection));
                fx.push(Effect::Recycle { data });
                self.brought += 1;
                self.bytes += u64::from(data.len);
            }
            Event::Broken { connection } => fx.push(Effect::Close { connection }),
            Event::Closed { .. } => {}
            Event::Listening { result, .. } => {
                fx.push(Effect::Mail { to: Address::Manager, mail: Note::Listening(result) });
                fx.push(Effect::Mail { to: Address::Shard(0), mail: Note::Number(0) });
            }
            Event::Mail { .. } => fx.push(Effect::Mail { to: Address::Shard(0), mail: Note::Number(0) }),
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, _now: base::Instant, _fx: &mut Effects<Note>) {}
    fn end_of_turn(&mut self, _now: base::Instant, fx: &mut Effects<Note>) {
        if let Some(address) = self.listen.take() {
            fx.push(Effect::Listen { portal: PortalId(1), address });
        }
        match std::mem::take(&mut self.brought) {
            0 => {}
            1..=3 => self.turns[0] += 1,
            _ => self.turns[1] += 1,
        }
        if self.bytes >= self.wanted {
            self.wanted = u64::MAX;
            let several = 100 * self.turns[1] / (self.turns[0] + self.turns[1]);
            fx.push(Effect::Mail { to: Address::Manager, mail: Note::Number(several) });
        }
    }
    fn next_deadline(&self) -> Option<base::Instant> {
        None
    }
    fn segments(&self, _connection: base::ConnectionId, _max: usize, _out: &mut Vec<base::Slice>) {
        panic!("nothing is sent")
    }
}

/// Of many connections each brought a few PDUs a turn, and cost a receive, a send and a wake-up of its host for these.
#[test]
fn of_those_that_send_much_at_a_time_a_busy_shard_asks_a_few_each_turn_and_all_in_the_end() {
    const EACH: u64 = 4 << 20;
    const CONNECTIONS: u64 = 12;
    let several = |batch: u32| {
        let (mut house, letters) = house(config(&[Address::Shard(0)]));
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let swallow = move |_, _| Swallow {
            listen,
            batch,
            brought: 0,
            turns: [0; 2],
            bytes: 0,
            wanted: CONNECTIONS * EACH,
        };
        house.spawn(Address::Shard(0), swallow).unwrap();
        let (_, Note::Listening(Ok(at))) = letters.recv_timeout(PATIENCE).unwrap() else {
            panic!("not listening")
        };
        let data = pattern(EACH as usize, 3);
        let several = thread::scope(|s| {
            (0..CONNECTIONS).for_each(|_| drop(s.spawn(|| connect(at).write_all(&data).unwrap())));
            loop {
                if let (_, Note::Number(several)) = letters.recv_timeout(PATIENCE).expect("all of it comes") {
                    return several;
                }
            }
        });
        house.stop().unwrap();
        several
    };
    let (kept, at_once) = (several(40), several(0));
    assert!(kept < 10, "{kept} of 100 turns had more than three connections");
    assert!(at_once > kept, "{at_once} of 100 turns had more than three connections without");
}
