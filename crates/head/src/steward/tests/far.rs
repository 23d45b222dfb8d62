//! Shards of the other head take part in what this one leads, and go.

use super::*;
use crate::mail::Room;
use crate::peer::{PeerNews, PeerWork, SystemSettings};
use crate::steward::context::head::HeadContext;
use crate::steward::far::letters;
use crate::steward::state::Edit;
use crate::steward::system::{Said, Upper};
use base::fence::Process;
use base::front::{ControllerLife, Intervention};
use base::{Ask, ConnectionId, PortalId, Uuid};
use cluster::link::{Do, Heard, Link};
use cluster::message::Message;
use cluster::record::HeadNo;
use cluster::{Heartbeat, Slot, SystemRecord};
use core::net::SocketAddr;
use std::collections::BTreeSet;

const SYSTEM: Uuid = Uuid([7; 16]);
/// Shards of the other head: one more than this one has.
const FAR: u16 = 3;

const NQN: &str = "nqn.2014-08.org.example:host";

/// The other head as the leader knows it: it follows, and its shards obey at once.
pub(super) struct Follower {
    link: Link,
    heartbeats: u64,
    slots: [Option<Slot>; 2],
    known: Option<SystemRecord>,
    offered: bool,
    /// Its shards confirm nothing.
    silent: bool,
    /// Whether drives answer it.
    reaches: bool,
    /// Fences of drives are not tried, or do not hold: it is not given these drives.
    untried: bool,
    /// Mirrors that its shards have memory for.
    mirrors_max: u32,
    /// What was configured last, and all that its shards were told.
    view: Arc<View>,
    layout: Layout,
    log: Vec<String>,
    /// Controllers of hosts that are to be ended there, and the numbers of what its Steward has answered.
    resets: Vec<(u64, ControllerLife)>,
    done: Vec<u64>,
    /// What it was answered to whether drives count.
    looked: Vec<(u64, bool)>,
}

impl Follower {
    fn new() -> Self {
        let mut link = Link::new(SYSTEM, HeadNo::B, 22, 1, 1);
        link.on_up(0);
        Self {
            link,
            heartbeats: 0,
            slots: [None, None],
            known: None,
            offered: false,
            silent: false,
            reaches: true,
            untried: false,
            mirrors_max: 1000,
            view: Arc::default(),
            layout: Layout::default(),
            log: vec![],
            resets: vec![],
            done: vec![],
            looked: vec![],
        }
    }
    fn say(&mut self, message: &Message) {
        self.link.send(message.encode()).expect("the link is empty");
    }
    fn tell(&mut self, upper: &Upper) {
        self.say(&Message::Upper(upper.encode()));
    }
    /// A shard tells the leader.
    fn note(&mut self, shard: u16, mail: &StewardMail) {
        let letter = letters::encode(mail).expect("it travels");
        self.tell(&Upper::FromShard { shard, letter });
    }
    fn applies(&mut self) {
        let generation = self.layout.generation;
        (0..FAR).for_each(|n| self.note(n, &StewardMail::Applied { generation }));
    }
    /// The leader's transport has something for it. What it sends itself.
    pub(super) fn on_work(&mut self, work: PeerWork) -> Vec<Vec<u8>> {
        let Do::Send { bytes, .. } = work.what else { return vec![] };
        self.link.on_bytes(0, &bytes);
        for heard in self.link.heard() {
            match heard {
                Heard::Met { .. } => {}
                Heard::Heartbeat { heartbeat, .. } => {
                    self.heartbeats += 1;
                    let heartbeat =
                        Heartbeat { head: HeadNo::B, life: 22, count: self.heartbeats, ..heartbeat };
                    self.link.send_heartbeat(&heartbeat);
                    if self.heartbeats == 1 {
                        self.say(&Message::Join { name: "b".into() });
                    }
                }
                Heard::Message(bytes) => {
                    let message = Message::decode(HeadNo::A, &bytes).expect("a message");
                    self.on_message(message);
                }
            }
        }
        self.sends()
    }
    pub(super) fn sends(&mut self) -> Vec<Vec<u8>> {
        let bytes = |d| match d {
            Do::Send { bytes, .. } => bytes,
            Do::Close { why, .. } => panic!("{why:?}"),
        };
        self.link.dos().into_iter().map(bytes).collect()
    }
    fn is_in(&self) -> bool {
        self.known.as_ref().is_some_and(|k| k.is_in_as(HeadNo::B, 22))
    }
    fn on_message(&mut self, message: Message) {
        match message {
            Message::Record(record) => {
                self.known = Some(*record);
                if self.is_in() && !self.offered {
                    self.offered = true;
                    self.tell(&Upper::Serves { shards: FAR });
                }
            }
            Message::Vote { round, write } => {
                if let Some(slot) = write {
                    self.slots[0] = Some(*slot);
                }
                let found = Some(Box::new(self.slots.clone()));
                self.say(&Message::Voted { round, found });
            }
            Message::Upper(bytes) => self.on_upper(Upper::decode(&bytes).expect("of a Steward")),
            _ => {}
        }
    }
    fn on_upper(&mut self, upper: Upper) {
        match upper {
            Upper::File { seq, .. } | Upper::All { seq, .. } => self.tell(&Upper::Have { seq }),
            Upper::Configure(configured) => {
                let (view, layout) = letters::configuration(&configured.letter).expect("it is good");
                assert_eq!(configured.numbers.shards, SHARDS);
                assert!(mirrors_of(&layout) <= self.mirrors_max, "shards have memory for their arrays");
                let legs = layout.arrays.iter().flat_map(|a| a.membership.legs.iter().flatten());
                for leg in legs.filter(|l| l.state != LegState::Missing) {
                    let named = configured.numbers.drives.contains_key(&leg.drive);
                    assert!(named || self.untried, "the table names each drive");
                }
                self.log.push(format!("configured {}", layout.arrays.len()));
                (self.view, self.layout) = (Arc::new(view), layout);
                if !self.silent {
                    self.applies();
                }
            }
            Upper::Comes { number, .. } => self.tell(&Upper::Nothing { number }),
            Upper::Reset { number, name, life } if name == NQN => self.resets.push((number, life)),
            Upper::Nothing { number } => self.done.push(number),
            Upper::LetGo { number, drive } => self.tell(&Upper::HasLetGo { number, drive }),
            Upper::Look { number, .. } => self.tell(&Upper::Looked { number, reached: self.reaches }),
            Upper::Looked { number, reached } => self.looked.push((number, reached)),
            // It writes to another drive than the leader sees.
            Upper::Try { number, on: true, .. } => self.tell(&Upper::Tried { number, said: Said::Writes }),
            Upper::Try { number, on: false, .. } => self.tell(&Upper::Tried { number, said: Said::Refused }),
            Upper::ToShard { shard, letter } => {
                assert_eq!(shard, None, "all are told");
                self.log.push(match letters::to_shard(&letter).expect("it is good") {
                    ShardMail::Room { room, .. } => format!("{room:?}"),
                    other => format!("{other:?}"),
                });
                for n in 0..FAR {
                    let letter = letters::to_shard(&letter).expect("it is good");
                    if let Some(answer) = self.answer(letter) {
                        self.note(n, &answer);
                    }
                }
            }
            _ => {}
        }
    }
    fn answer(&self, letter: ShardMail) -> Option<StewardMail> {
        match letter {
            ShardMail::Halt { array, number } => Some(StewardMail::Halted { array, number }),
            ShardMail::Quiesce { array, number } => Some(StewardMail::Quiesced { array, number }),
            ShardMail::Room { number, room } => {
                let mirrors = room.mirrors.min(self.mirrors_max);
                let room = crate::mail::Room { mirrors, ..room };
                Some(StewardMail::HasRoom { number, room, mirrors_max: self.mirrors_max })
            }
            _ => None,
        }
    }
}

impl World {
    fn follower(&mut self) -> &mut Follower {
        self.follower.as_mut().expect("it is there")
    }
    /// What the follower has said meanwhile arrives.
    fn deliver(&mut self) {
        let sent = self.follower().sends();
        self.hear_peer(sent);
        self.run();
    }
    /// This head becomes one of two, and leads.
    fn enters(&mut self) {
        let (times, process) = (cluster::watch::Times::default(), Process { pid: 1, started: 1 });
        let (me, name) = (HeadNo::A, "a".to_string());
        let networks = vec!["10.9.0.1:7400".parse().expect("an address")];
        let settings = SystemSettings {
            system: SYSTEM,
            me,
            name,
            networks,
            process,
            times,
            both_serve: true,
            said: None,
        };
        let procedures = self.steward.procedures.clone();
        let cx = procedures.cx.clone();
        cx.spawn(async move { procedures.enter_system(settings, true).await });
        self.run();
        self.pass(2);
        self.steward.procedures.leads_all();
    }
    /// The other head comes.
    fn comes(&mut self, follower: Follower) {
        self.follower = Some(follower);
        let news = StewardMail::Peer(PeerNews::Up { path: 0, number: 1, secret: [0; 32] });
        self.events.push_back(Event::Mail { from: Address::Manager, mail: news.into() });
        self.run();
        self.deliver();
        self.pass(2);
    }
    /// This head becomes one of two, and the other one is let in.
    fn meets(&mut self, follower: Follower) {
        self.enters();
        self.comes(follower);
        let events = self.events();
        assert!(self.follower().is_in(), "it is let in: {events:#?}");
    }
    /// What shards of the other head had sent to those here is over.
    fn parts(&mut self) {
        for (shard, number) in self.partings.clone() {
            self.mail(shard, StewardMail::Parted { number });
        }
        self.run();
    }
    /// Its pool is the system's from now on, and the fences of its drives are tried.
    fn shares_pool(&mut self) {
        let procedures = self.steward.procedures.clone();
        let pool = procedures.context().pools[0].id;
        let cx = procedures.cx.clone();
        cx.spawn(async move {
            procedures
                .configure(pool, vec![Edit::Shared { system: SYSTEM }])
                .await
                .expect("the drives take it");
        });
        self.run();
    }
    fn recorded(&self) -> usize {
        self.log.iter().filter(|l| l.starts_with("recorded")).count()
    }
}

fn both() -> World {
    let mut w = usual();
    w.meets(Follower::new());
    w
}

#[test]
fn shards_of_the_other_head_get_to_know_every_pool() {
    let mut w = usual();
    let maps: Vec<u32> = w.layout.arrays.iter().map(|a| a.map).collect();
    w.meets(Follower::new());
    let (own, generation) = (w.layout.clone(), w.view.generation);
    assert!(own.arrays.iter().zip(maps).all(|(a, before)| a.map == before + 1), "all were dealt anew");
    let f = w.follower();
    let first: Vec<&str> = f.log.iter().map(String::as_str).take(2).collect();
    assert_eq!(first, ["Room { mirrors: 2, singles: 0 }", "configured 0"]);
    assert_eq!(f.log.iter().filter(|l| l.contains("Halt")).count(), 0, "it did not know them");
    assert_eq!((f.layout.generation, f.layout.arrays.len()), (generation, 2));
    assert!(f.layout.volumes[0].ready && f.view.hosts[0].exports[0].ready && f.view.portals.is_empty());
    for (far, own) in f.layout.arrays.iter().zip(&own.arrays) {
        assert_eq!((far.id, far.map, far.lanes), (own.id, own.map, own.lanes));
        assert!((0..SHARDS).all(|s| far.lanes.has(s)) && !far.lanes.has(SHARDS), "they have no lanes yet");
    }
    // Dealt once more, they come to rest on both heads.
    w.good(Order::LanesTurn);
    let f = w.follower();
    assert_eq!(f.log.iter().filter(|l| l.starts_with("Halt")).count(), 2);
    assert_eq!(f.log.iter().filter(|l| l.starts_with("Quiesce")).count(), 2);
}

#[test]
fn a_pool_that_comes_later_is_known_to_them_soon() {
    let mut w = World::start(four(), 1);
    w.meets(Follower::new());
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    assert!(w.follower().log.iter().any(|l| l.starts_with("Room { mirrors: 1")), "they are asked for room");
    w.pass(5);
    assert_eq!(w.follower().layout.arrays.len(), 1);
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let f = w.follower();
    assert!(f.layout.arrays.is_empty() && f.log.iter().any(|l| l.starts_with("Quiesce")));
}

#[test]
fn a_loss_is_on_record_once_shards_of_both_heads_have_applied_it() {
    let mut w = both();
    let (before, epoch) = (w.recorded(), w.layout.arrays[0].membership.epoch);
    w.follower().silent = true;
    lose(&mut w, 0);
    assert!(w.layout.arrays[0].membership.epoch > epoch);
    assert_eq!(w.recorded(), before, "the other head's shards have not applied it");
    w.follower().silent = false;
    w.follower().applies();
    w.deliver();
    assert_eq!(w.recorded(), before + usize::from(SHARDS));
    let told = w.follower().log.iter().filter(|l| l.starts_with("Recorded")).count();
    assert_eq!(told, 1);
    assert!(w.follower().is_in());
}

/// A shard of the other head gives a leg up.
fn lose_there(w: &mut World) {
    let array = &w.layout.arrays[0];
    let note = Note::LegFailed { leg: 0, epoch: array.membership.epoch, error: DriveError::Gone };
    let note = StewardMail::Note { array: array.id, note };
    w.follower().note(0, &note);
    w.deliver();
    // The answer to whether it reaches the drive.
    w.deliver();
}

#[test]
fn a_follower_without_a_path_is_put_out_and_the_leg_stays() {
    let mut w = both();
    w.follower().reaches = false;
    lose_there(&mut w);
    w.pass(2);
    assert!(!w.follower().is_in(), "it starts over without the drive");
    assert_eq!(w.legs(0), [LegState::InSync; 2]);
    assert!(w.events().iter().any(|e| e.contains("PathLostThere")));
}

/// The drive loses its power, and with it what lay in its cache, and no host asks for anything there before the follower opens it anew.
/// While the follower has it open as it was, the leader has lost its path alone.
#[test]
fn a_drive_that_the_follower_alone_has_opened_anew_is_lost_and_not_handed_over() {
    for opened_anew in [false, true] {
        let mut w = usual();
        w.meets(Follower { untried: true, ..Follower::new() });
        let (first, all): (Uuid, BTreeSet<Uuid>) = {
            let context = w.steward.procedures.context();
            let legs = context.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
            (context.pools[0].arrays[0].legs[0].uuid, legs.map(|l| l.uuid).collect())
        };
        w.follower().tell(&Upper::Reach(all.clone()));
        w.follower().tell(&Upper::Look { number: 1, drive: first });
        w.deliver();
        w.pass(5);
        assert_eq!(w.follower().looked, [(1, true)], "it may take over by it");
        w.rest.drives.get_mut("/f/a").expect("there").fails = Some(DriveError::Gone);
        if opened_anew {
            let others = all.iter().copied().filter(|d| *d != first).collect();
            w.follower().tell(&Upper::Reach(others));
            w.follower().tell(&Upper::Reach(all));
            w.follower().tell(&Upper::Look { number: 2, drive: first });
            w.deliver();
            assert_eq!(w.follower().looked, [(1, true)], "nobody has read there by what was open before");
        }
        lose(&mut w, 0);
        // The answer to whether it reaches the drive.
        w.deliver();
        w.pass(2);
        let hands_over = w.events().iter().any(|e| e.contains("PathLostHere"));
        assert_eq!(hands_over, !opened_anew, "{:#?}", w.events());
        assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync], "nobody has taken over");
    }
}

#[test]
fn a_leg_that_fails_although_both_heads_reach_its_drive_is_lost() {
    let mut w = both();
    lose_there(&mut w);
    w.pass(1);
    assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
    assert!(w.follower().is_in());
}

#[test]
fn a_head_whose_shards_do_not_confirm_is_put_out_and_nobody_waits_for_them() {
    let mut w = both();
    let before = w.recorded();
    w.follower().silent = true;
    lose(&mut w, 0);
    w.pass(3);
    assert!(!w.follower().is_in(), "it was put out");
    assert_eq!(w.recorded(), before + usize::from(SHARDS));
    let told = w.follower().log.len();
    w.good(volume("vm2", 8 * MIB));
    assert_eq!(w.follower().log.len(), told, "it hears nothing more");
}

#[test]
fn a_head_goes_on_when_a_follower_leaves_whose_fences_do_not_hold() {
    let mut rest = four();
    rest.drives.values_mut().for_each(|d| d.fence = base::FenceKind::Scsi);
    let mut w = World::start(rest, 1);
    w.good(tank());
    w.meets(Follower { untried: true, ..Follower::new() });
    w.shares_pool();
    w.pass(5);
    let fails = w.events().iter().filter(|e| e.contains("FenceFails")).count();
    assert_eq!(fails, 4, "{:#?}", w.events());
    assert!(w.follower().is_in());
    w.good(Order::HeadFence { off: false });
    w.pass(1);
    w.good(volume("vm1", 9 * MIB));
}

#[test]
fn a_leg_is_in_sync_once_those_have_copied_it_that_have_lanes() {
    let mut w = both();
    lose(&mut w, 0);
    w.good(Order::DriveReturn { drive: "/f/a".into() });
    assert_eq!(w.legs(0)[0], LegState::Rebuilding);
    synced(&mut w, 0);
    assert_eq!(w.legs(0), [LegState::InSync; 2], "a far shard that does not reach it has nothing to copy");
    let legs = w.layout.arrays[0].membership.legs.clone();
    assert_eq!(w.follower().layout.arrays[0].membership.legs, legs);
}

#[test]
fn shards_without_memory_for_all_pools_take_no_part_until_they_have_some() {
    let mut w = usual();
    w.meets(Follower { mirrors_max: 1, ..Follower::new() });
    assert_eq!(w.follower().log, ["Room { mirrors: 2, singles: 0 }", "Room { mirrors: 2, singles: 0 }"]);
    w.good(volume("vm2", 8 * MIB));
    let told = |w: &mut World| w.events().iter().filter(|e| e.contains("ShardsStayAway")).count();
    w.pass(10);
    assert_eq!(told(&mut w), 1, "it is told once");
    w.follower().mirrors_max = 2;
    w.pass(5);
    assert_eq!(w.follower().layout.arrays.len(), 2);
}

#[test]
fn shards_that_have_met_before_have_not_met_now() {
    let mut w = usual();
    w.late = true;
    w.meets(Follower::new());
    w.pass(12);
    assert!(w.follower().layout.arrays.is_empty(), "{:?}", w.follower().log);
    w.late = false;
    w.pass(8);
    assert_eq!(w.follower().layout.arrays.len(), 2);
}

#[test]
fn room_that_a_shard_had_before_is_no_answer_to_the_next_question() {
    let mut context = HeadContext::new(2, [1, 2, 3, 4], String::new(), vec![]);
    let ask = |context: &mut HeadContext| {
        context.asks_room();
        context.tells_room()
    };
    let (former, now) = (ask(&mut context), ask(&mut context));
    let mut hear = |shard, number, mirrors| {
        let room = Room { mirrors, singles: 0 };
        context.hear(Instant(0), shard, StewardMail::HasRoom { number, room, mirrors_max: 9 });
        context.rooms.iter().flatten().map(|(room, _)| room.mirrors).collect::<Vec<_>>()
    };
    assert!(hear(0, former, 7).is_empty());
    assert_eq!(hear(1, now, 3), [3]);
    assert_eq!(hear(1, former, 7), [3]);
    assert_eq!(hear(0, now, 4), [4, 3]);
}

#[test]
fn a_portal_is_at_its_head_and_an_address_that_moves_at_the_one_that_leads() {
    let mut w = both();
    let prefix = base::view::Moves { prefix: 24, interface: None };
    for (port, moves) in [(3260, None), (3261, Some(prefix))] {
        let address = SocketAddr::from(([10, 1, 0, 5], port));
        w.good(Order::PortalAdd { protocol: Protocol::Iscsi, address, moves, head: Some(1) });
    }
    let at = |view: &View| view.portals.iter().map(|p| p.head).collect::<Vec<_>>();
    assert_eq!((at(&w.view), at(&w.follower().view)), (vec![1, 0], vec![1, 0]));
    w.good(Order::HeadFence { off: false });
    assert_eq!(at(&w.view), [0, 0], "the head that is left has both");
}

/// A host has a controller at this head, by a connection of this slot.
fn controller(w: &mut World, id: u16) -> ControllerLife {
    let (connection, peer) =
        (ConnectionId::new(u32::from(id), 0), "10.0.0.9:40000".parse().expect("an address"));
    let ask = Ask::NvmeAdmin { principal: None, nqn: NQN.into(), host_id: [1; 16], discovery: false };
    w.mail(0, StewardMail::Ask { connection, portal: PortalId(0), local: peer, peer, ask });
    let life = ControllerLife { id, uniquifier: 1, random: 40 + u64::from(id) };
    let what = Intervention::BeginQueues { life };
    w.mail(0, StewardMail::Intervene { connection, key: 0, what });
    w.run();
    w.deliver();
    life
}
/// What shards were told of connections since then.
fn told(w: &World, from: usize) -> Vec<&str> {
    let told = |l: &&str| l.starts_with("done") || l.starts_with("drop");
    w.log[from..].iter().map(String::as_str).filter(told).collect()
}
fn reset(w: &mut World, by: u16, life: ControllerLife) {
    let connection = ConnectionId::new(u32::from(by), 0);
    let what = Intervention::ResetController { life };
    w.mail(0, StewardMail::Intervene { connection, key: 1, what });
    w.run();
    w.deliver();
}
/// A controller of the other head.
const THERE: ControllerLife = ControllerLife { id: 8193, uniquifier: 3, random: 7 };

#[test]
fn a_controller_at_the_other_head_is_ended_by_way_of_this_one() {
    let mut w = both();
    controller(&mut w, 1);
    let from = w.log.len();
    reset(&mut w, 1, THERE);
    let [(number, THERE)] = w.follower().resets[..] else { panic!("{:?}", w.follower().resets) };
    assert_eq!(told(&w, from), [""; 0], "its commands may be at drives");
    w.follower().tell(&Upper::Nothing { number });
    w.deliver();
    assert_eq!(told(&w, from), ["done 1"]);
}

#[test]
fn a_controller_here_is_ended_by_way_of_the_other_head() {
    let mut w = both();
    let (one, two) = (controller(&mut w, 1), controller(&mut w, 2));
    let from = w.log.len();
    let said = |number, name: &str, life| Upper::Reset { number, name: name.into(), life };
    w.follower().tell(&said(4, NQN, two));
    w.follower().tell(&said(5, "nqn.2014-08.org.example:another", one));
    w.deliver();
    assert_eq!(told(&w, from), ["drop 2"], "the other one is not that host's");
    assert_eq!(w.follower().done, [5]);
    w.mail(0, StewardMail::Gone { connection: ConnectionId::new(2, 0), why: None });
    w.run();
    w.deliver();
    assert_eq!(w.follower().done, [5, 4]);
}

#[test]
fn a_controller_of_a_head_that_goes_is_over_once_that_is_shut_out_and_what_it_sent_has_ended() {
    let mut w = both();
    controller(&mut w, 1);
    let from = w.log.len();
    reset(&mut w, 1, THERE);
    w.good(Order::HeadFence { off: false });
    w.pass(5);
    assert_eq!(told(&w, from), [""; 0], "what it had sent to shards here may be at drives");
    w.parts();
    assert_eq!(told(&w, from), ["done 1"]);
}

/// It was waited for to say what of a host is ending there, and no host was let in here.
#[test]
fn a_head_that_is_put_out_before_its_shards_have_met_those_here_is_asked_nothing() {
    let mut w = usual();
    w.enters();
    w.comes(Follower { silent: true, ..Follower::new() });
    w.pass(5);
    assert!(!w.follower().is_in(), "its shards confirm nothing");
    w.parts();
    controller(&mut w, 1);
    let from = w.log.len();
    reset(&mut w, 1, THERE);
    assert_eq!(told(&w, from), ["done 1"]);
}

/// A decision is known a moment before it is carried out: shards here that are just to meet those of a head that is out parted from
/// it once more than was counted, and no host was let in any more.
#[test]
fn a_parting_has_the_number_that_is_waited_for_though_the_record_was_ahead() {
    let mut w = usual();
    w.enters();
    w.steward.procedures.meet_far(FAR, [0; 32]);
    w.run();
    assert_eq!(w.partings, BTreeMap::new(), "nobody parts who has not met");
    w.comes(Follower::new());
    controller(&mut w, 1);
    w.good(Order::HeadFence { off: false });
    w.pass(5);
    let told_of: Vec<u16> = w.partings.keys().copied().collect();
    assert_eq!(told_of, (0..SHARDS).collect::<Vec<_>>());
    w.parts();
    let from = w.log.len();
    reset(&mut w, 1, THERE);
    assert_eq!(told(&w, from), ["done 1"], "nothing of that head is left");
}
