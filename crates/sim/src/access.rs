//! An operator who takes from hosts what they log in by, or a volume, and gives it back, while they log in and work.
//!
//! ```text
//! Idle ─order─▶ Taking ─answered─▶ Taken ─order─▶ Giving ─answered─▶ the host is told its secret ─▶ Idle
//!                        (nothing is carried out for the host that it may not have)
//! ```

use crate::host::Ledger;
use crate::operator::{iqn, nqn};
use base::view::{Protocol, Secret};
use base::{Duration, Instant, Prng};
use head::order::{HostSettings, Order};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The volume of the hosts.
const VOLUME: &str = "tank/v";
/// Answers that were on their way when an order was answered have come after this, where nothing ails.
pub const SLACK: Duration = Duration::from_millis(50);
/// The same where heads of two fall: one that is out may pass on what it has read for so long.
pub const SLACK_OUT: Duration = Duration::from_millis(2500);

/// What is taken from a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// Its secret: it must prove another one.
    Secret,
    /// Its CHAP user name: it has another one.
    User,
    /// Its name: it has another one.
    Name,
    /// All: it is removed.
    Host,
    /// The volume alone: it may log in.
    Volume,
}

#[derive(Clone, Debug)]
enum Phase {
    Idle { until: Instant },
    Taking(What),
    Taken { until: Instant },
    Giving(VecDeque<Order>),
}

/// What a host must not have any more.
#[derive(Debug)]
struct Taken {
    what: What,
    /// From then on nothing of it may come to the host.
    since: Instant,
    /// Sessions that it had had by then.
    sessions: Option<u64>,
}

/// The operator.
pub struct Access {
    rng: Prng,
    /// Hosts by their protocol.
    hosts: Vec<Protocol>,
    ledgers: Vec<Rc<RefCell<Ledger>>>,
    slack: Duration,
    host: usize,
    phase: Phase,
    taken: Option<Taken>,
    /// The secrets that hosts must prove.
    secrets: Vec<Option<u64>>,
    last_secret: u64,
    /// What is given back waits for a head that takes orders.
    hold_until: Instant,
    /// Things that are still to be taken, and those that were.
    left: u32,
    count: u32,
}

/// A secret by its number.
fn secret(number: u64) -> Secret {
    Secret(format!("secret number {number}").into_bytes())
}

impl Access {
    /// An operator who takes something from these hosts so many times.
    pub fn new(
        seed: u64,
        hosts: Vec<Protocol>,
        ledgers: Vec<Rc<RefCell<Ledger>>>,
        slack: Duration,
        times: u32,
    ) -> Self {
        Self {
            rng: Prng::new(seed ^ 0x6163_6365_7373),
            secrets: vec![None; hosts.len()],
            hosts,
            ledgers,
            slack,
            host: 0,
            phase: Phase::Idle { until: Instant(0) },
            taken: None,
            last_secret: 0,
            hold_until: Instant(0),
            left: times,
            count: 0,
        }
    }

    /// How often something was taken.
    pub fn taken(&self) -> u32 {
        self.count
    }

    /// Every host has what it needs, and nothing more is to be taken.
    pub fn is_done(&self) -> bool {
        self.left == 0 && matches!(self.phase, Phase::Idle { .. })
    }

    /// Nothing more is to be taken.
    pub fn calm(&mut self) {
        self.left = 0;
    }

    /// When the next order is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Idle { .. } if self.left == 0 => None,
            Phase::Idle { until } | Phase::Taken { until } => Some(until),
            Phase::Giving(_) => Some(self.hold_until),
            Phase::Taking(_) => None,
        }
    }

    /// The next order, if one is due. It is answered (`answered`), or nobody knows what became of it (`is_unknown`).
    pub fn next(&mut self, now: Instant) -> Option<Order> {
        if self.next_deadline().is_none_or(|due| now < due) {
            return None;
        }
        match &mut self.phase {
            Phase::Idle { .. } => {
                self.left -= 1;
                self.host = self.rng.below(self.hosts.len() as u64) as usize;
                let what = self.choose();
                self.phase = Phase::Taking(what);
                Some(self.takes(what))
            }
            Phase::Taken { .. } => {
                self.begin_to_give();
                self.next(now)
            }
            Phase::Giving(orders) => orders.front().cloned(),
            Phase::Taking(_) => None,
        }
    }

    /// The order was carried out, or refused. A host may have what is given to it already.
    ///
    /// # Errors
    /// What may be taken was refused.
    pub fn answered(&mut self, now: Instant, good: bool) -> Result<(), String> {
        match &mut self.phase {
            Phase::Taking(what) if good => {
                let what = *what;
                self.count += 1;
                let longer = self.rng.below(4 * self.slack.as_micros() as u64);
                self.taken = Some(Taken { what, since: now + self.slack, sessions: None });
                let until = now + self.slack + Duration::from_micros(longer);
                self.phase = Phase::Taken { until };
            }
            Phase::Taking(what) => {
                return Err(format!("access: {what:?} of host {} is not taken", self.host));
            }
            Phase::Giving(orders) => {
                orders.pop_front();
                if orders.is_empty() {
                    self.ledgers[self.host].borrow_mut().secret = self.secrets[self.host].map(secret);
                    let pause = self.rng.below(2 * SLACK.as_micros() as u64);
                    self.phase = Phase::Idle { until: now + Duration::from_micros(pause) };
                }
            }
            Phase::Idle { .. } | Phase::Taken { .. } => unreachable!("nothing was ordered"),
        }
        Ok(())
    }

    /// A head that falls, or has lost the other one, carries nothing out.
    pub fn is_refused(&mut self, now: Instant) {
        self.is_unknown();
        if let Phase::Giving(_) = self.phase {
            self.hold_until = now + SLACK;
        }
    }

    /// The head that was asked has fallen: it has carried the order out, or not.
    pub fn is_unknown(&mut self) {
        if matches!(self.phase, Phase::Taking(_) | Phase::Giving(_)) {
            self.begin_to_give();
        }
    }

    /// What hosts have seen.
    ///
    /// # Errors
    /// One was let in by what was taken from it before, or a command of it was carried out.
    pub fn check(&mut self, now: Instant) -> Result<(), String> {
        let Some(taken) = self.taken.as_mut().filter(|t| now > t.since) else { return Ok(()) };
        let ledger = self.ledgers[self.host].borrow();
        let before = *taken.sessions.get_or_insert(ledger.sessions);
        let (what, host) = (taken.what, self.host);
        if ledger.sessions > before && what != What::Volume {
            return Err(format!("access: host {host} is let in by the {what:?} that was taken from it"));
        }
        if ledger.last_good.is_some_and(|at| at > taken.since) {
            return Err(format!("access: host {host} is answered well after its {what:?} was taken from it"));
        }
        Ok(())
    }

    fn choose(&mut self) -> What {
        let mut all = vec![What::Name, What::Host, What::Volume];
        if self.hosts[self.host] == Protocol::Iscsi {
            all.extend([What::Secret; 3]);
            if self.secrets[self.host].is_some() {
                all.push(What::User);
            }
        }
        *self.rng.pick(&all)
    }

    fn takes(&mut self, what: What) -> Order {
        let host = self.host;
        let mut settings = HostSettings::default();
        match what {
            What::Secret => settings.chap_secret = Some(Some(secret(self.new_secret()))),
            What::User => settings.chap_user = Some("another".into()),
            What::Name if self.hosts[host] == Protocol::Iscsi => {
                settings.iqns = Some(vec![iqn(host + 5)]);
            }
            What::Name => settings.nqns = Some(vec![nqn(host + 5)]),
            What::Host => {
                return Order::HostRemove { name: format!("h{host}"), force: true, disconnect: true };
            }
            What::Volume => {
                return Order::Unexport { volume: VOLUME.into(), host: format!("h{host}"), disconnect: true };
            }
        }
        Order::HostSet { name: format!("h{host}"), settings, disconnect: true }
    }

    fn new_secret(&mut self) -> u64 {
        self.last_secret += 1;
        self.last_secret
    }

    /// Whatever the host lacks, and a secret of its own, or none.
    fn begin_to_give(&mut self) {
        self.taken = None;
        let host = self.host;
        let proves = self.hosts[host] == Protocol::Iscsi && self.rng.chance(2, 3);
        self.secrets[host] = proves.then(|| self.new_secret());
        let name = format!("h{host}");
        let settings = HostSettings {
            nqns: Some(vec![nqn(host)]),
            iqns: Some(vec![iqn(host)]),
            chap_secret: Some(self.secrets[host].map(secret)),
            chap_user: Some(String::new()),
            mutual_secret: None,
        };
        self.phase = Phase::Giving(VecDeque::from([
            Order::HostAdd { name: name.clone(), settings: settings.clone() },
            Order::HostSet { name: name.clone(), settings, disconnect: true },
            Order::Export { volume: VOLUME.into(), host: name, lun: Some(0) },
        ]));
    }
}
