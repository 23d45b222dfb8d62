//! Who was turned away: one line at once, then a count for each interval, however many come.
//!
//! A host with a wrong secret tries again for ever, and a scanner tries everything: neither may fill the
//! event log. What is kept is bounded: `KINDS_MAX` kinds (address, name, reason) in an interval, all others
//! as one count. An interval in which somebody goes on is followed by one twice as long, up to an hour.

use crate::mail::LoginOutcome;
use base::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};

/// The first interval.
const INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The longest one.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Kinds that are told apart in one interval.
const KINDS_MAX: usize = 20;
/// Characters of a name that are told: an iSCSI or NVMe name has at most 223.
const NAME_MAX: usize = 223;

struct Kind {
    address: IpAddr,
    name: String,
    outcome: (LoginOutcome, &'static str),
    /// Times since it was told last.
    more: u64,
}

/// Those turned away in this interval.
#[derive(Default)]
pub(crate) struct TurnedAway {
    kinds: Vec<Kind>,
    /// Beyond `KINDS_MAX`.
    others: u64,
    interval: Option<(Instant, Duration)>,
}

impl TurnedAway {
    /// What became of somebody, and why. A sentence if it is to be told now.
    pub fn on_turned(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        name: &str,
        outcome: (LoginOutcome, &'static str),
    ) -> Option<String> {
        let name = printable(name);
        self.interval.get_or_insert((now + INTERVAL_MIN, INTERVAL_MIN));
        let same = |k: &&mut Kind| k.address == peer.ip() && k.name == name && k.outcome == outcome;
        if let Some(kind) = self.kinds.iter_mut().find(same) {
            kind.more += 1;
            return None;
        }
        if self.kinds.len() >= KINDS_MAX {
            self.others += 1;
            return None;
        }
        let sentence = format!("{} {}: {}", who(&name, &peer.to_string()), words(outcome.0), outcome.1);
        self.kinds.push(Kind { address: peer.ip(), name, outcome, more: 0 });
        Some(sentence)
    }
    /// When `on_timer` is to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.interval.map(|(end, _)| end)
    }
    /// The interval is over: sentences to be told.
    pub fn on_timer(&mut self, now: Instant) -> Vec<String> {
        let Some((_, length)) = self.interval.filter(|(end, _)| *end <= now) else { return vec![] };
        let seconds = length.as_secs();
        let mut out = vec![];
        self.kinds.retain(|k| k.more > 0);
        for k in &mut self.kinds {
            let who = who(&k.name, &k.address.to_string());
            let times = crate::steward::words::count_of(k.more, "more time");
            out.push(format!("{who} {} {times} in {seconds} s: {}", words(k.outcome.0), k.outcome.1));
            k.more = 0;
        }
        if self.others > 0 {
            out.push(format!("{} further logins were turned away in {seconds} s", self.others));
            self.others = 0;
        }
        let next = (length + length).min(INTERVAL_MAX);
        self.interval = (!out.is_empty()).then_some((now + next, next));
        out
    }
}

fn words(outcome: LoginOutcome) -> &'static str {
    match outcome {
        LoginOutcome::Rejected => "was turned away",
        LoginOutcome::CutOff => "was cut off",
        LoginOutcome::SeesNothing => "was let in and sees nothing",
        LoginOutcome::FindsNothing => "asked for discovery and finds nothing",
    }
}

fn who(name: &str, address: &str) -> String {
    if name.is_empty() { address.to_string() } else { format!("{name} ({address})") }
}

/// What a stranger calls himself, fit for a log.
fn printable(name: &str) -> String {
    name.chars().take(NAME_MAX).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], port))
    }
    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_login_loop_is_one_line_and_then_a_count_for_each_longer_interval() {
        let mut t = TurnedAway::default();
        let mut told = vec![];
        for i in 0..3600u64 * 1000 {
            let now = Instant(i * 1_000_000);
            told.extend(t.on_turned(
                now,
                peer(1, i as u16),
                "iqn.2026-01.test:a",
                (LoginOutcome::Rejected, "a wrong secret"),
            ));
            if t.next_deadline().is_some_and(|d| d <= now) {
                told.extend(t.on_timer(now));
            }
        }
        assert_eq!(told[0], "iqn.2026-01.test:a (10.0.0.1:0) was turned away: a wrong secret");
        assert_eq!(
            told[1],
            "iqn.2026-01.test:a (10.0.0.1) was turned away 60000 more times in 60 s: a wrong secret"
        );
        assert_eq!(told.len(), 6, "after 1, 3, 7, 15 and 31 minutes: {told:?}");
    }

    #[test]
    fn each_kind_is_told_at_once_and_too_many_kinds_are_one_count() {
        let mut t = TurnedAway::default();
        let told: Vec<String> = (0..1000)
            .filter_map(|i| {
                t.on_turned(at(1), peer(1, 1), &format!("name{i}"), (LoginOutcome::Rejected, "unknown"))
            })
            .collect();
        assert_eq!(told.len(), KINDS_MAX);
        assert_eq!(t.on_timer(at(60)), Vec::<String>::new(), "not yet");
        assert_eq!(t.on_timer(at(61)), ["980 further logins were turned away in 60 s"]);
        assert!(
            t.on_turned(at(62), peer(1, 1), "name0", (LoginOutcome::Rejected, "unknown")).is_some(),
            "a quiet kind is new again"
        );
    }

    #[test]
    fn it_comes_to_rest_and_the_next_interval_is_short_again() {
        let mut t = TurnedAway::default();
        assert!(
            t.on_turned(at(0), peer(1, 1), "", (LoginOutcome::Rejected, "garbage"))
                .is_some_and(|s| s.starts_with("10.0.0.1:1 "))
        );
        assert!(t.on_timer(at(60)).is_empty());
        assert_eq!(t.next_deadline(), None);
        assert!(t.on_turned(at(100), peer(1, 2), "", (LoginOutcome::Rejected, "garbage")).is_some());
        assert_eq!(t.next_deadline(), Some(at(160)));
    }

    #[test]
    fn a_name_cannot_forge_lines() {
        let mut t = TurnedAway::default();
        let told = t
            .on_turned(at(0), peer(1, 1), "a\nb\t\u{1b}[31m\u{e4}", (LoginOutcome::Rejected, "x"))
            .expect("told");
        assert!(told.starts_with("a?b??[31m? ("), "{told}");
        let long = t
            .on_turned(at(0), peer(1, 1), &"n".repeat(100_000), (LoginOutcome::Rejected, "x"))
            .expect("told");
        assert!(long.len() < 300);
    }
}
