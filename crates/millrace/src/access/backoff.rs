//! How often an address may show a wrong token.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Failures that cost nothing.
const FREE: u32 = 5;
/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(30);
/// After so long without a failure, an address begins anew.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Addresses that are kept.
const SOURCES_MAX: usize = 1024;
/// Events about delays come no closer, however many addresses fail.
const TOLD_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
struct Source {
    failures: u32,
    last: Instant,
}

impl Source {
    /// How long requests are refused after the last failure.
    fn delay(self) -> Duration {
        match self.failures.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(more) => Duration::from_secs(1 << more.min(10)).min(DELAY_MAX),
        }
    }
}

/// Failures by address.
#[derive(Default)]
pub struct Backoff {
    sources: BTreeMap<IpAddr, Source>,
    told: Option<Instant>,
}

/// Who owns an address of IPv6 has a whole /64 of them.
fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) >> 64 << 64).into(),
        v4 => v4,
    }
}

impl Backoff {
    /// How much longer requests of `ip` are refused unread, if they are.
    pub fn left(&self, ip: IpAddr, now: Instant) -> Option<Duration> {
        let found = self.sources.get(&source(ip))?;
        let left = found.delay().saturating_sub(now.saturating_duration_since(found.last));
        (!left.is_zero()).then_some(left)
    }
    /// `ip` showed a wrong token; the number of failures if that is to be told.
    pub fn failed(&mut self, ip: IpAddr, now: Instant) -> Option<u32> {
        let age = |s: &Source| now.saturating_duration_since(s.last);
        self.sources.retain(|_, s| age(s) < FORGOTTEN);
        let ip = source(ip);
        if !self.sources.contains_key(&ip)
            && self.sources.len() >= SOURCES_MAX
            && let Some(oldest) = self.sources.iter().min_by_key(|(_, s)| s.last).map(|(ip, _)| *ip)
        {
            self.sources.remove(&oldest);
        }
        let found = self.sources.entry(ip).or_insert(Source { failures: 0, last: now });
        found.failures = found.failures.saturating_add(1);
        found.last = now;
        let told = self.told.is_some_and(|at| now.saturating_duration_since(at) < TOLD_EVERY);
        if found.failures != FREE || told {
            return None;
        }
        self.told = Some(now);
        Some(FREE)
    }
    /// `ip` showed a right one.
    pub fn passed(&mut self, ip: IpAddr) {
        self.sources.remove(&source(ip));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn delays_grow_to_half_a_minute_and_end() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        let guesser = ip("192.0.2.7");
        for n in 1..FREE {
            assert_eq!((backoff.failed(guesser, now), backoff.left(guesser, now)), (None, None), "{n}");
        }
        assert_eq!(backoff.failed(guesser, now), Some(FREE));
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let left = backoff.left(guesser, now).expect("refused");
            assert_eq!(left.as_secs(), seconds);
            assert_eq!(backoff.left(ip("192.0.2.8"), now), None, "others are not");
            now += left;
            assert_eq!(backoff.left(guesser, now), None);
            assert_eq!(backoff.failed(guesser, now), None, "told once");
        }
        backoff.passed(guesser);
        assert_eq!(backoff.left(guesser, now), None);
    }

    #[test]
    fn memory_is_bounded_and_a_network_of_ipv6_is_one_source() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        for n in 0..FREE {
            backoff.failed(ip(&format!("2001:db8::{n}")), now);
        }
        assert!(backoff.left(ip("2001:db8::ffff"), now).is_some());
        for n in 0..5000u32 {
            backoff.failed(IpAddr::from(n.to_be_bytes()), now + Duration::from_millis(u64::from(n)));
        }
        assert_eq!(backoff.sources.len(), SOURCES_MAX);
        backoff.failed(ip("192.0.2.7"), now + 2 * FORGOTTEN);
        assert_eq!(backoff.sources.len(), 1, "the others are forgotten");
    }
}
