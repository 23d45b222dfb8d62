//! Caps: how many commands and bytes a volume may start in a second.
//!
//! Virtual scheduling (GCRA): each rate has one instant, the time at which everything that was started would be
//! paid for. A command may start while that is at most `BURST` ahead, and moves it by its cost. There is no counter
//! to refill and nothing to do while nobody comes. The burst is also the lateness of a timer that costs nothing.

use base::{Duration, Instant};
use volume::Caps;

/// What a volume that was quiet may start at once, in time at its rate; after a long silence a second has 1 % more.
pub(crate) const BURST: Duration = Duration::from_millis(10);
/// What commands that do not wait for their bytes may run up for others to pay, in time at the rate.
const DEBT_MAX: Duration = Duration::from_millis(100);
const SECOND: u64 = 1_000_000_000;

/// What is started: some commands, and their data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Commands.
    pub commands: u64,
    /// Bytes of data.
    pub bytes: u64,
}

impl Cost {
    /// Both together.
    pub fn plus(self, o: Cost) -> Cost {
        Cost { commands: self.commands + o.commands, bytes: self.bytes + o.bytes }
    }
    /// What is left of it, if it is enough for `o`.
    pub fn minus(self, o: Cost) -> Option<Cost> {
        let (commands, bytes) = (self.commands.checked_sub(o.commands)?, self.bytes.checked_sub(o.bytes)?);
        Some(Cost { commands, bytes })
    }
}

/// One rate.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// A second; 0 for no cap.
    rate: u64,
    /// When all that was started is paid for, and the part of a nanosecond beyond, in `1/rate`.
    paid_at: Instant,
    rest: u64,
}

impl Rate {
    fn ready_at(&self) -> Instant {
        if self.rate == 0 { Instant(0) } else { self.paid_at - BURST }
    }
    fn charge(&mut self, now: Instant, n: u64) {
        if self.rate == 0 {
            return;
        }
        if self.paid_at < now {
            self.paid_at = now;
            self.rest = 0;
        }
        let cost = u128::from(n) * u128::from(SECOND) + u128::from(self.rest);
        self.rest = (cost % u128::from(self.rate)) as u64;
        self.paid_at = Instant(self.paid_at.0.saturating_add((cost / u128::from(self.rate)) as u64));
    }
    fn worth(&self, n: u64) -> u64 {
        (u128::from(n) * u128::from(SECOND)).checked_div(u128::from(self.rate)).unwrap_or(0) as u64
    }
}

/// The two rates of a volume.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    commands: Rate,
    bytes: Rate,
}

impl Meter {
    /// Keeps these caps from now on. What was started under others is forgiven.
    pub fn set(&mut self, now: Instant, caps: Caps) {
        let rates = [u64::from(caps.iops_max), u64::from(caps.mbps_max) * 1_000_000];
        for (rate, new) in [&mut self.commands, &mut self.bytes].into_iter().zip(rates) {
            if rate.rate != new {
                *rate = Rate { rate: new, paid_at: rate.paid_at.min(now), rest: 0 };
            }
        }
    }
    /// When the next command may start. One that is `prompt` does not wait for its bytes.
    pub fn ready_at(&self, prompt: bool) -> Instant {
        if prompt { self.commands.ready_at() } else { self.commands.ready_at().max(self.bytes.ready_at()) }
    }
    /// It starts.
    pub fn charge(&mut self, now: Instant, prompt: bool, cost: Cost) {
        self.commands.charge(now, cost.commands);
        if !prompt || self.bytes.paid_at < now + DEBT_MAX {
            self.bytes.charge(now, cost.bytes);
        }
    }
    /// What `cost` takes, in time at the slower of the two rates.
    pub fn worth(&self, cost: Cost) -> Duration {
        Duration::from_nanos(self.commands.worth(cost.commands).max(self.bytes.worth(cost.bytes)))
    }
}

/// The two queues of a rate limiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Waits for its bytes, too.
    Data,
    /// Does not.
    Prompt,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(iops_max: u32, mbps_max: u32) -> Meter {
        let mut meter = Meter::default();
        meter.set(Instant(0), Caps { iops_max, mbps_max });
        meter
    }

    /// What starts in ten seconds if somebody always waits, and timers are late by up to `late` ns.
    fn started(mut meter: Meter, bytes: u64, late: u64) -> u64 {
        let (mut now, mut n, mut prng) = (Instant(5 * SECOND), 0, base::Prng::new(3));
        let end = Instant(15 * SECOND);
        while now < end {
            while meter.ready_at(false) <= now {
                meter.charge(now, false, Cost { commands: 1, bytes });
                n += 1;
            }
            now = Instant(meter.ready_at(false).0 + prng.below(late.max(1)));
        }
        n
    }

    #[test]
    fn rates_are_kept_exactly_even_where_timers_are_late() {
        for late in [0, 1000, 3_000_000] {
            for iops in [1_u32, 99, 1000, 77_777, 300_007] {
                let (n, exact) = (started(meter(iops, 0), 4096, late), u64::from(iops) * 10);
                assert!(n.abs_diff(exact) * 500 <= exact.max(500), "{n} of {exact}, {late} ns late");
            }
            for (mbps, bytes) in [(1_u32, 1 << 20), (200, 4096), (10_000, 131_072), (333, 131_072)] {
                let n = started(meter(0, mbps), bytes, late) * bytes;
                let exact = u64::from(mbps) * 10_000_000;
                assert!(n.abs_diff(exact) <= exact / 500 + bytes, "{n} of {exact}, {late} ns late");
            }
            let n = started(meter(1000, 1), 4096, late);
            assert!(n.abs_diff(2441) < 10, "the slower of both rates counts: {n}");
        }
    }

    #[test]
    fn a_volume_that_was_quiet_has_its_burst_and_no_more() {
        let mut meter = meter(1000, 0);
        let now = Instant(100 * SECOND);
        let mut n = 0;
        while meter.ready_at(false) <= now {
            meter.charge(now, false, Cost { commands: 1, bytes: 0 });
            n += 1;
        }
        assert_eq!(n, 11, "ten milliseconds' worth, and the one that is under way");
    }

    #[test]
    fn a_prompt_command_waits_for_no_byte_and_its_bytes_are_paid_by_others_within_bounds() {
        let mut meter = meter(0, 1);
        let now = Instant(SECOND);
        for _ in 0..100 {
            assert!(meter.ready_at(true) <= now);
            meter.charge(now, true, Cost { commands: 1, bytes: 50_000 });
        }
        let wait = meter.ready_at(false).since(now);
        assert!((Duration::from_millis(85)..=Duration::from_millis(145)).contains(&wait), "{wait:?}");
    }

    #[test]
    fn a_new_rate_forgives_what_was_started_under_the_old_one() {
        let mut meter = meter(1, 0);
        meter.charge(Instant(0), false, Cost { commands: 5, bytes: 0 });
        assert_eq!(meter.ready_at(false), Instant(5 * SECOND) - BURST);
        meter.set(Instant(7), Caps { iops_max: 100, mbps_max: 0 });
        assert!(meter.ready_at(false) <= Instant(7));
        meter.set(Instant(7), Caps::default());
        meter.charge(Instant(7), false, Cost { commands: 1 << 40, bytes: 1 << 60 });
        assert_eq!(meter.ready_at(false), Instant(0));
    }
}
