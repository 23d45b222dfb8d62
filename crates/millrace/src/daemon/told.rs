//! Events that a head tells which does not lead: those of the head that leads, and what it said itself of the system, by time.
//!
//! Each head counts its own lines: `since` is of the head that leads, `own` of the one that is asked.

use api::{Event, Events};

/// What a request for events asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    since: u64,
    own: Option<u64>,
    /// So many of both are wanted, the latest.
    last: Option<usize>,
    /// What is not `own`, as it came.
    rest: Vec<String>,
}

impl Asked {
    /// Of a query. What is wrong with it the routes say.
    pub fn of(query: Option<&str>) -> Self {
        let mut asked = Self::default();
        for part in query.unwrap_or_default().split('&').filter(|p| !p.is_empty()) {
            match part.split_once('=') {
                Some(("last", n)) if n.parse::<usize>().is_ok() => {
                    asked.last = n.parse().ok();
                    asked.rest.push(part.into());
                }
                Some(("own", n)) if n.parse::<u64>().is_ok() => asked.own = n.parse().ok(),
                Some(("since", n)) => {
                    asked.since = n.parse().unwrap_or_default();
                    asked.rest.push(part.into());
                }
                _ => asked.rest.push(part.into()),
            }
        }
        asked
    }
    /// What the head that leads is asked.
    pub fn of_other(&self) -> String {
        format!("{}/events?{}", api::BASE, self.rest.join("&"))
    }
    /// What this head asks itself; one that is not told by the other when something happens waits here.
    pub fn of_this(&self, alone: bool) -> String {
        let since = format!("since={}", self.own.unwrap_or_default());
        // This one's list is cut once it is known which of its own are told.
        let filters = |p: &&String| p.starts_with("level=") || p.starts_with("from=");
        let waits = self
            .rest
            .iter()
            .filter(|p| filters(p) || alone && !["since=", "last="].iter().any(|n| p.starts_with(n)));
        let all: Vec<String> = core::iter::once(since).chain(waits.cloned()).collect();
        format!("{}/events?{}", api::BASE, all.join("&"))
    }
    /// Both, oldest first. `theirs` is None if the head that leads is not reached: then this one tells all that it knows.
    pub fn merge(&self, theirs: Option<Events>, ours: Events, me: &str) -> Events {
        let other = if me == "a" { "b" } else { "a" };
        let named = |all: Vec<Event>, head: &str| -> Vec<Event> {
            all.into_iter().map(|e| Event { head: Some(head.into()), ..e }).collect()
        };
        let (next, next_own) = (theirs.as_ref().map_or(self.since, |t| t.next), Some(ours.next));
        let alone = theirs.is_none();
        let mut events = named(theirs.map_or(vec![], |t| t.events), other);
        // Whoever names no number of this head's means the time at which the other's begin.
        let from = match (self.own, self.since) {
            (None, 1..) if !alone => Some(events.first().map(|e| e.at)),
            _ => None,
        };
        let wanted = |e: &Event| match &from {
            None => alone || e.what == "system",
            Some(from) => e.what == "system" && from.as_ref().is_some_and(|from| e.at >= *from),
        };
        events.extend(named(ours.events.into_iter().filter(wanted).collect(), me));
        events.sort_by_key(|a| a.at);
        events.drain(..events.len().saturating_sub(self.last.unwrap_or(usize::MAX)));
        Events { events, next, next_own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(all: &[(u64, &str, &str, &str)]) -> Events {
        let one = |(number, at, what, message): &(u64, &str, &str, &str)| Event {
            number: *number,
            at: format!("2026-11-20{at}").parse().expect("a time"),
            monotonic_ms: None,
            weight: api::Weight::Note,
            head: None,
            what: (*what).into(),
            event: finding::Event::from_line(api::Weight::Note, message),
            message: (*message).into(),
        };
        let next = all.last().map_or(0, |e| e.0 + 1);
        Events { events: all.iter().map(one).collect(), next, next_own: None }
    }
    fn told(all: &Events) -> Vec<String> {
        let one = |e: &Event| format!("{} {} {}", e.head.as_deref().unwrap_or("-"), e.number, e.message);
        all.events.iter().map(one).collect()
    }

    #[test]
    fn what_both_heads_said_of_the_system_is_told_by_time() {
        let theirs = || {
            events(&[(7, "T14:02:11Z", "system", "b is out"), (8, "T14:02:20Z", "pool tank", "it is well")])
        };
        let ours = || {
            events(&[
                (3, "T14:02:10Z", "system", "I follow"),
                (4, "T14:02:12Z", "system", "I am out"),
                (5, "T14:02:13Z", "head", "I started"),
            ])
        };
        let all = Asked::of(Some("since=0")).merge(Some(theirs()), ours(), "b");
        assert_eq!(told(&all), ["b 3 I follow", "a 7 b is out", "b 4 I am out", "a 8 it is well"]);
        assert_eq!((all.next, all.next_own), (9, Some(6)));
        // From some number of the other's on.
        let all = Asked::of(Some("since=7")).merge(Some(theirs()), ours(), "b");
        assert_eq!(told(&all), ["a 7 b is out", "b 4 I am out", "a 8 it is well"]);
        // What comes next, of both.
        let asked = Asked::of(Some("since=9&own=6&wait=30"));
        assert_eq!(asked.of_other(), "/api/v1/events?since=9&wait=30");
        assert_eq!(asked.of_this(false), "/api/v1/events?since=6");
        assert_eq!(asked.of_this(true), "/api/v1/events?since=6&wait=30");
        // The latest of both.
        let last = Asked::of(Some("since=0&last=2&level=warning"));
        assert_eq!(last.of_other(), "/api/v1/events?since=0&last=2&level=warning");
        assert_eq!(last.of_this(false), "/api/v1/events?since=0&level=warning");
        let all = last.merge(Some(theirs()), ours(), "b");
        assert_eq!(told(&all), ["b 4 I am out", "a 8 it is well"]);
        assert_eq!((all.next, all.next_own), (9, Some(6)));
        // The other one is not reached.
        let all = asked.merge(None, ours(), "b");
        assert_eq!(told(&all), ["b 3 I follow", "b 4 I am out", "b 5 I started"]);
        assert_eq!((all.next, all.next_own), (9, Some(6)));
    }
}
