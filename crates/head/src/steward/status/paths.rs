//! Paths of hosts: what each did, how fast it is, and the events of those that come and go.

use crate::order::{Counters, HostPath, PathRates};
use crate::report::{self, PathId};
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::procedures::Procedures;
use crate::steward::sessions::arrivals::{PathAt, PathNews};
use crate::steward::status::times::PathTime;
use base::{Duration, HostId, Instant};
use cluster::HeadNo;
use finding::HostEvent;
use std::collections::BTreeMap;

/// So long after a change it is looked who is there: of a host with many queues, or many hosts, that is one look.
const CALM: Duration = Duration::from_millis(200);

/// What is known of a path from the reports of shards.
#[derive(Clone, Copy, Default)]
pub(crate) struct PathSum {
    open: u32,
    in_flight: u32,
    counters: report::Counters,
}

/// All paths of hosts: those that have connections, and those that had some since the shard started.
pub(crate) fn sums(context: &HeadContext) -> BTreeMap<PathAt, PathSum> {
    let mut sums: BTreeMap<PathAt, PathSum> = BTreeMap::new();
    for report in context.reports.iter().flatten() {
        let head = context.head_with(report.shard);
        for (path, counters) in &report.ended {
            sums.entry((head, *path)).or_default().counters.add(counters);
        }
        for (path, c) in report.connections.iter().filter_map(|c| Some((c.path()?, c))) {
            let sum = sums.entry((head, path)).or_default();
            sum.open += 1;
            sum.in_flight += c.commands;
            sum.counters.add(&c.counters);
        }
    }
    sums
}

/// Notes what each path has done so far, so that its rates are known whenever somebody looks.
pub(crate) fn note_rates(context: &mut HeadContext, now: Instant) {
    let sums = sums(context);
    context.path_speeds.retain(|path, _| sums.contains_key(path));
    context.times.keep_paths(|path| sums.contains_key(&path));
    for (path, sum) in sums {
        let c = &sum.counters;
        let speeds = context.path_speeds.entry(path).or_default();
        for (speed, done) in speeds.iter_mut().zip([c.reads, c.read_bytes, c.writes, c.write_bytes]) {
            speed.note(now, done);
        }
    }
}

/// A host's paths.
pub(crate) fn of_host(
    context: &HeadContext,
    sums: &BTreeMap<PathAt, PathSum>,
    host: HostId,
    now: Instant,
) -> Vec<HostPath> {
    let mine = sums.iter().filter(|((_, path), _)| path.host == host);
    let one = |(path, sum): (&PathAt, &PathSum)| {
        let (head, PathId { portal, .. }) = path;
        let portal = &context.portals.iter().find(|p| p.portal.id == *portal)?.portal;
        let done = |c: &report::Counters| [c.reads, c.read_bytes, c.writes, c.write_bytes];
        let speeds = context.path_speeds.get(path);
        let mut rates = [0; 4];
        for (i, done) in done(&sum.counters).into_iter().enumerate() {
            rates[i] = speeds.map_or(0, |speeds| speeds[i].of(now, done, done).0);
        }
        let [reads, read_bytes, writes, write_bytes] = rates;
        let mut counters = Counters::default();
        super::snapshot::add(&mut counters, &sum.counters);
        let times = |what| context.times.path(*path, what);
        Some(HostPath {
            protocol: portal.protocol.into(),
            portal: portal.address,
            head: letter(context, *head),
            connections: sum.open,
            in_flight: sum.in_flight,
            counters,
            rates: PathRates { reads, read_bytes, writes, write_bytes },
            read_times: times(PathTime::Read),
            write_times: times(PathTime::Write),
            queue_times: times(PathTime::Queue),
        })
    };
    mine.filter_map(one).collect()
}

/// A head of a system of two.
fn letter(context: &HeadContext, head: u8) -> Option<String> {
    let head = HeadNo::from_number(head).filter(|_| context.system.is_some());
    head.map(|h| h.letter().to_string())
}

impl Procedures {
    /// Tells of paths of hosts that come and go, for ever.
    pub(crate) async fn watch_paths(&self) {
        // Hosts that are connected already came while another head led.
        self.context_mut().tell_paths(self.cx.now(), true);
        loop {
            let procedures = self.clone();
            let due = move || {
                let context = procedures.context();
                let over = context.arrivals.next_deadline().is_some_and(|end| end <= procedures.cx.now());
                over || context.arrivals.is_stale()
            };
            let end = self.context().arrivals.next_deadline();
            match end {
                None => self.cx.until(due).await,
                Some(end) => drop(self.cx.until_within(end.since(self.cx.now()), due).await),
            }
            self.cx.sleep(CALM).await;
            self.context_mut().tell_paths(self.cx.now(), false);
        }
    }
}

impl HeadContext {
    fn tell_paths(&mut self, now: Instant, silent: bool) {
        let up = self.paths_up();
        // Of a head that lets its hosts go nobody needs a line for each.
        let mut news = self.arrivals.note(now, &up, silent || self.stop == Stop::Closed);
        news.extend(self.arrivals.on_timer(now));
        for one in news {
            if let Some((what, event)) = self.path_event(one) {
                self.happened(now, what, event);
            }
        }
    }
    /// None if its host or its portal was removed, which is an event of its own.
    fn path_event(&self, news: PathNews) -> Option<(String, HostEvent)> {
        let ((head, path), flaps) = match news {
            PathNews::Others { times, seconds } => {
                return Some(("hosts".into(), HostEvent::HostPathsChanged { times, seconds }));
            }
            PathNews::Came(path) | PathNews::Left(path) => (path, None),
            PathNews::Flaps { path, times, seconds, up } => (path, Some((times, seconds, up))),
        };
        let what = format!("host {}", self.hosts().by_id(path.host)?.name);
        let row = &self.portals.iter().find(|p| p.portal.id == path.portal)?.portal;
        let protocol = api::Protocol::from(row.protocol).word().to_string();
        let (portal, head) = (row.address.to_string(), letter(self, head));
        let event = match (news, flaps) {
            (_, Some((times, seconds, up))) => {
                HostEvent::HostPathFlaps { protocol, portal, head, times, seconds, up }
            }
            (PathNews::Came(_), None) => HostEvent::HostPathConnected { protocol, portal, head },
            (_, None) => {
                let left = self.paths_up().iter().filter(|(_, p)| p.host == path.host).count() as u64;
                HostEvent::HostPathLeft { protocol, portal, head, paths_left: left }
            }
        };
        Some((what, event))
    }
}
