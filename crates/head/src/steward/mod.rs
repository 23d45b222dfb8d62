//! Steward: one per head. Decides who is a member, what is on record, who is let in; carries out the
//! operator's orders. Its procedures are `async fn` on `runtime`, redone from durable state if cut off.
//!
//! ```text
//! start ─▶ identity, hosts, portals, events read ─▶ pools imported ─▶ Ready ─▶ orders, one by one
//!                                                        │
//!                              for each pool a keeper: loss ▶ published ▶ applied ▶ on record ▶ Recorded
//!                                                      return ▶ on record ▶ published … Synced ▶ on record
//! ```
//!
//! Owns everything that is decided once for the head: the context. Does not move hosts' bytes.

mod books;
mod context;
mod dma;
mod far;
pub mod fuzz;
mod health;
mod join;
mod lanes;
mod legs;
mod orders;
mod patience;
mod pools;
mod procedures;
mod publish;
mod record;
pub mod runtime;
pub mod sessions;
mod start;
pub mod state;
mod status;
mod stop;
mod system;
#[cfg(test)]
mod tests;
mod words;

pub use health::shaped::split as split_shape;
pub use record::texts::{check_file, first_files};
pub use record::unknown::unused_rows;

use crate::mail::{Mail, ManagerMail, Room, StewardMail};
use crate::order::{Order, Reply};
use crate::peer::SystemSettings;
use base::front::Close;
use base::machine::Shape;
use base::{Address, Answer, Effects, Event, Instant, Machine, Memory, Slice, Uuid};
use cluster::Part;
use context::head::{HeadContext, Stop};
use procedures::Procedures;
use runtime::Runtime;
use sessions::table::Place;
use std::cell::Ref;
use std::collections::BTreeMap;

/// What a Steward is made from.
pub struct StewardConfig<M> {
    /// Memory for its drive operations: at least 4 MiB.
    pub memory: M,
    /// Number of shards.
    pub shards: u16,
    /// Entropy: names of things that are made.
    pub entropy: [u64; 4],
    /// Version of the program, at most 8 ASCII characters.
    pub version: String,
    /// How often the daemon crashed within a minute, so that no pool shall be imported; None for a usual start.
    pub hold: Option<u64>,
    /// For `status`: what the operating system did not allow.
    pub notices: Vec<finding::Notice>,
    /// That this head is one of two; None for one alone.
    pub system: Option<SystemSettings>,
    /// Where the state directory is, as operators call it.
    pub state_directory: String,
    /// How drives behave that are named so, whenever they are opened, until an order says otherwise (`split_shape`).
    pub shapes: BTreeMap<String, Shape>,
}

/// What a head goes by that leads one of two, for checkers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leads {
    /// The system.
    pub system: Uuid,
    /// The epoch of the newest record that it knows.
    pub epoch: u64,
    /// Whether the other head is in by that record.
    pub other_is_in: bool,
    /// Since which epoch, and whether it has the latest hosts and portals by that record.
    pub other_since: u64,
    /// See `other_since`.
    pub other_has_latest: bool,
    /// The epoch of the last decision that was made because hosts or portals have changed.
    pub changed: u64,
}

/// The machine.
pub struct Steward {
    rt: Runtime,
    procedures: Procedures,
}

impl Steward {
    /// A Steward that begins its work at its first event or turn.
    pub fn new(config: StewardConfig<impl Memory + 'static>) -> Self {
        let rt = Runtime::new(config.memory);
        let mut context = HeadContext::new(config.shards, config.entropy, config.version, config.notices);
        context.shapes_at_start = config.shapes;
        context.state_directory = config.state_directory;
        let procedures = Procedures::new(rt.cx(), context);
        let (o, hold, system) = (procedures.clone(), config.hold, config.system);
        procedures.cx.spawn(async move { o.live(hold, system).await });
        Self { rt, procedures }
    }
    /// From now on it keeps what it decides, for who takes it with `take_journal`.
    pub fn keep_journal(&mut self) {
        self.procedures.context_quietly().journal = state::journal::Journal::kept();
    }
    /// What it has decided since the last call, in order.
    pub fn take_journal(&mut self) -> Vec<state::journal::JournalEntry> {
        self.procedures.context_quietly().journal.take()
    }
    /// All that it has decided.
    pub fn state(&self) -> Ref<'_, state::State> {
        Ref::map(self.procedures.context(), HeadContext::state)
    }
    /// What it goes by, if its head is one of two and leads.
    pub fn leads(&self) -> Option<Leads> {
        let context = self.procedures.context();
        let system = context.system.as_ref().filter(|s| s.part() == Part::Leader)?;
        let (known, other) = (system.member().known(), system.member().me().other());
        Some(Leads {
            system: known.system,
            epoch: known.epoch,
            other_is_in: known.is_in(other),
            other_since: known.head(other).since,
            other_has_latest: known.has_latest(other),
            changed: known.changed,
        })
    }
    /// Bytes of its memory, for worlds that move bytes themselves.
    pub fn dma<R>(&mut self, data: Slice, with: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        self.rt.dma(data, with)
    }
    /// Nothing is under way but waiting for orders: for tests after quiescence.
    pub fn idle(&self) -> bool {
        self.under_way().is_empty()
    }
    /// Names of what is, for tests.
    pub fn under_way(&self) -> Vec<&'static str> {
        let context = self.procedures.context();
        let pools = &context.pools;
        let sharing = context.system.as_ref().is_some_and(|s| s.is_sharing());
        let all = [
            ("its start", context.ready),
            ("orders", context.orders.is_empty() && !context.ordering),
            ("pending changes", pools.iter().all(|p| p.pending.is_empty() && p.keeper_rests())),
            ("dealt lanes", pools.iter().all(|p| !p.dealing)),
            ("files", !context.filing),
            ("shared files", !sharing),
            ("promised room", context.promised == Room::default()),
        ];
        all.into_iter().filter(|(_, idle)| !idle).map(|(what, _)| what).collect()
    }

    fn on_mail(&mut self, from: Address, mut mail: StewardMail, fx: &mut Effects<Mail>) {
        let shard = match from {
            Address::Shard(n) => n,
            Address::Steward | Address::Manager => u16::MAX,
        };
        if let Address::Shard(shard) = from {
            // A follower's shards may tell the leader.
            let Some(own) = self.procedures.pass_on(shard, mail) else { return };
            mail = own;
        }
        let mut context = self.procedures.context_mut();
        match mail {
            StewardMail::Applied { .. }
            | StewardMail::Note { .. }
            | StewardMail::Listening { .. }
            | StewardMail::Halted { .. }
            | StewardMail::Quiesced { .. }
            | StewardMail::HasRoom { .. }
            | StewardMail::FarSilent
            | StewardMail::Reported(_) => context.hear(self.procedures.cx.now(), shard, mail),
            StewardMail::FarMet { meeting } => context.has_met(shard, meeting),
            StewardMail::Parted { number } => {
                context.sessions.has_parted(shard, number, fx);
                drop(context);
                self.procedures.tell_other_head();
            }
            StewardMail::Ask { connection, portal, local, peer, ask } => {
                if context.stop == Stop::Closed {
                    return sessions::table::answer(Place { shard, connection }, Answer::Full, fx);
                }
                context.on_comes(self.procedures.cx.now(), portal, peer, &ask);
                context.addresses.comes(Place { shard, connection }, local, peer);
                context.sessions.on_ask(Place { shard, connection }, portal, ask, fx);
                context.arrivals.may_differ();
                drop(context);
                self.procedures.tell_other_head();
            }
            StewardMail::Intervene { connection, key, what } => {
                context.sessions.on_intervene(Place { shard, connection }, key, what, fx);
                drop(context);
                self.procedures.tell_other_head();
            }
            StewardMail::Obeyed { connection, id, yes } => {
                context.sessions.on_obeyed(Place { shard, connection }, id, yes, fx);
                drop(context);
                self.procedures.tell_other_head();
            }
            StewardMail::Ending { connection, lost } => {
                context.sessions.on_ending(Place { shard, connection }, lost, fx);
            }
            StewardMail::Gone { connection, why } => {
                context.sessions.on_gone(Place { shard, connection }, fx);
                context.arrivals.may_differ();
                context.addresses.goes(Place { shard, connection });
                if let Some(Close::Protocol(what)) = why {
                    context.last_protocol_errors.insert(shard, what);
                }
                drop(context);
                self.procedures.tell_other_head();
            }
            StewardMail::LoginOutcome { fate, portal, peer, name } => {
                context.on_rejection(self.procedures.cx.now(), portal, peer, &name, fate);
            }
            StewardMail::Addresses { number, here, silent } => {
                context.on_addresses(self.procedures.cx.now(), number, here, silent);
            }
            StewardMail::Order { id, order } => match order {
                Order::Status | Order::Events { .. } => {
                    drop(context);
                    let procedures = self.procedures.clone();
                    self.procedures.cx.spawn(async move {
                        let answer = procedures.look(order).await;
                        procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                    });
                }
                Order::Happened { event } => {
                    context.happened(self.procedures.cx.now(), "api", *event);
                    self.procedures.cx.changed();
                    self.procedures.cx.to_manager(ManagerMail::Answered { id, answer: Ok(Reply::Done) });
                }
                // A drive that hangs may be what the order before waits for.
                Order::DriveShape { drive, shape } => {
                    drop(context);
                    let hangs = shape.hang;
                    let answer = self.procedures.drive_shape(&drive, shape);
                    let procedures = self.procedures.clone();
                    self.procedures.cx.spawn(async move {
                        // One that hangs tells nothing at a look, and is not waited for.
                        if hangs {
                            procedures.look_soon()
                        } else {
                            procedures.look_now().await
                        }
                        procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                    });
                }
                Order::System => {
                    drop(context);
                    let answer = self.procedures.system_view().map(|v| Reply::System(Box::new(v)));
                    self.procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                }
                // What must be done although the head leads nothing.
                Order::HeadLead if context.stop == Stop::No => {
                    drop(context);
                    let procedures = self.procedures.clone();
                    self.procedures.cx.spawn(async move {
                        let answer = procedures.head_lead().await;
                        procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                    });
                }
                Order::HeadFence { off } if context.stop == Stop::No => {
                    drop(context);
                    let procedures = self.procedures.clone();
                    self.procedures.cx.spawn(async move {
                        let answer = procedures.head_fence(off).await;
                        procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                    });
                }
                _ if context.stop != Stop::No => {
                    let answer = Err(stop::too_late());
                    self.procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                }
                _ if context.system.as_ref().is_some_and(|s| s.part() != Part::Leader) => {
                    let answer = Err(system::not_leading());
                    self.procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                }
                Order::Figures => {
                    drop(context);
                    let procedures = self.procedures.clone();
                    self.procedures.cx.spawn(async move {
                        let answer = procedures.look(order).await;
                        procedures.cx.to_manager(ManagerMail::Answered { id, answer });
                    });
                }
                order => context.orders.push_back((Some(id), order)),
            },
            StewardMail::Renewed { again, failed } => {
                drop(context);
                self.procedures.on_renewed(again, failed);
            }
            StewardMail::Said { what, event } => {
                let now = self.procedures.cx.now();
                context.happened(now, what, event);
            }
            StewardMail::Peer(news) => {
                context.on_peer(news);
                self.procedures.cx.changed();
            }
            StewardMail::ToPeer(bytes) => {
                drop(context);
                self.procedures.to_peer(bytes);
            }
            StewardMail::Stop => {
                drop(context);
                self.procedures.on_stop();
            }
        }
    }
}

impl Machine for Steward {
    type Mail = Mail;

    fn on_event(&mut self, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        self.rt.on_now(now);
        match event {
            Event::DriveDone { token, result } => self.rt.on_drive_done(token, result),
            Event::DriveOpened { token, result } => {
                if let Some(free) = self.rt.on_drive_opened(token, result) {
                    self.procedures.context_mut().free_drive(free);
                }
            }
            Event::DriveInspected { token, result } => self.rt.on_drive_inspected(token, result),
            Event::Fenced { token, result } => self.rt.on_fenced(token, result),
            Event::DriveClosed { drive } => {
                self.rt.on_drive_closed(drive);
                self.procedures.context_mut().free_drive(drive);
            }
            Event::State { token, result } => self.rt.on_state(token, result),
            Event::Mail { from, mail: Mail::Steward(mail) } => self.on_mail(from, *mail, fx),
            Event::Accepted { .. }
            | Event::Connected { .. }
            | Event::Received { .. }
            | Event::Sent { .. }
            | Event::Broken { .. }
            | Event::Closed { .. }
            | Event::Listening { .. }
            | Event::Mail { .. } => panic!("this event is not for the Steward: {event:?}"),
        }
    }
    fn on_timer(&mut self, now: Instant, _fx: &mut Effects<Mail>) {
        self.rt.on_now(now);
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.rt.on_now(now);
        self.rt.run(fx);
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.rt.next_deadline()
    }
    fn segments(&self, _connection: base::ConnectionId, _max: usize, _out: &mut Vec<Slice>) {}
}
