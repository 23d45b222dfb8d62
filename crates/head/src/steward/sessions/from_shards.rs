//! What shards tell the Steward of portals, of who comes, and of arrays: put in the context as it is heard.

use crate::layout::ArrayId;
use crate::mail::StewardMail;
use crate::steward::context::array::{Outlook, PendingChange, outlook};
use crate::steward::context::head::{HeadContext, PortalContext};
use crate::steward::context::system::SystemContext;
use array::{Note, Verdict};
use base::{Ask, Duration, Instant, NetError, PortalId};
use core::net::SocketAddr;
use finding::{LegCause, LegEvent, LoginFate, PortalEvent};

/// A leg that was slow, and that nobody finds slow for so long since nobody reads from it, is slow no longer. Reads that come and
/// go more often than that are no news each time.
const QUIET_TIME: Duration = Duration::from_secs(60);

impl HeadContext {
    /// Something that a shard of either head tells of arrays and of itself.
    pub fn hear(&mut self, now: Instant, shard: u16, mail: StewardMail) {
        match mail {
            StewardMail::Applied { generation } => self.has_applied(shard, generation),
            StewardMail::Note { array, note } => self.on_note(now, shard, array, note),
            StewardMail::Listening { portal, result } => self.on_listening(now, shard, portal, result),
            StewardMail::FarSilent => {
                if let Some(system) = self.system_mut() {
                    system.tell().on_silent();
                }
            }
            StewardMail::Halted { array, number } if self.is_asked(array, number) => {
                self.halted.insert((array, shard));
            }
            StewardMail::Quiesced { array, number } if self.is_asked(array, number) => {
                self.quiesced.insert((array, shard));
            }
            StewardMail::HasRoom { number, room, mirrors_max } => {
                self.has_room(shard, number, (room, mirrors_max));
            }
            StewardMail::Reported(report) => {
                self.times.add(now, self.head_with(shard), &report);
                // Who comes to the other head is known by that alone.
                if shard >= self.own_shards {
                    self.arrivals.may_differ();
                }
                self.has_reported(*report);
            }
            _ => {}
        }
    }
    fn on_listening(
        &mut self,
        now: Instant,
        shard: u16,
        portal: PortalId,
        result: Result<SocketAddr, NetError>,
    ) {
        let (own, me) = (self.own_shards, self.own_number());
        let (head, index) = shard.checked_sub(own).map_or((me, shard), |far| (me ^ 1, far));
        let here = |p: &&mut PortalContext| p.portal.id == portal && p.at == head;
        if !self.portals.iter().any(|p| p.portal.id == portal) && head == me {
            // It was removed meanwhile; or this head is about to lead, and has not read its portals yet.
            self.former_listens.insert((portal, index), result);
        }
        let Some(row) = self.portals.iter_mut().find(here) else { return };
        let was = row.failure();
        row.is_told(index, result);
        let (is, what, tried) = (row.failure(), row.words(), row.tried);
        let is_others = row.portal.head != head && row.portal.moves.is_none();
        let all_open = row.results.iter().all(|r| matches!(r, Some(Ok(_))));
        match (was, is) {
            _ if tried => {}
            (was, Some(e)) if was != Some(e) && e == NetError::NoAddress && is_others => {
                self.happened(now, what, PortalEvent::PortalOfOther);
            }
            (was, Some(e)) if was != Some(e) => {
                let closed = PortalEvent::PortalClosed { why: e.into(), on_other: head != me };
                self.happened(now, what, closed);
            }
            (Some(_), None) if all_open => self.happened(now, what, PortalEvent::PortalOpen),
            _ => {}
        }
    }
    /// A connection was rejected, or the like.
    pub fn on_rejection(
        &mut self,
        now: Instant,
        portal: PortalId,
        peer: SocketAddr,
        name: &str,
        fate: LoginFate,
    ) {
        if let Some(event) = self.rejections.on_rejection(now, peer, name, fate) {
            let row = self.portals.iter().find(|p| p.portal.id == portal);
            let what = row.map_or_else(|| "portals".into(), PortalContext::words);
            self.happened(now, what, event);
        }
    }
    /// A host asks to be let in: worth a word if it will find nothing.
    pub fn on_comes(&mut self, now: Instant, portal: PortalId, peer: SocketAddr, ask: &Ask) {
        let host = ask.host();
        let (name, discovery) = match ask {
            Ask::NvmeAdmin { nqn: name, discovery, .. } | Ask::Iscsi { initiator: name, discovery, .. } => {
                (name, *discovery)
            }
            Ask::NvmeIo { .. } => return,
        };
        if discovery {
            // A wrong name on either side shows nowhere else: the answer is an empty list.
            if host.is_none() {
                self.on_rejection(now, portal, peer, name, LoginFate::FindsNothing);
            }
            return;
        }
        let Some(host) = host.and_then(|id| self.hosts().by_id(id)) else { return };
        if !self.configs().any(|c| c.grants.for_host(host).next().is_some()) {
            let name = host.name.clone();
            self.on_rejection(now, portal, peer, &name, LoginFate::SeesNothing);
        }
    }
    /// An array told something.
    fn on_note(&mut self, now: Instant, shard: u16, array: ArrayId, note: Note) {
        let of_other = || self.system.as_ref().map(SystemContext::other_since);
        let there = if shard < self.own_shards { None } else { of_other() };
        let Some(pool) = self.pools.iter_mut().find(|p| p.arrays.iter().any(|a| a.id == array)) else {
            return;
        };
        let a = pool.arrays.iter().position(|x| x.id == array).expect("found above");
        // Who is none any more is no news either.
        let leg = match note {
            Note::LegFailed { leg, .. }
            | Note::LegAhead { leg, .. }
            | Note::Synced { leg, .. }
            | Note::Judged { leg, .. } => match pool.arrays[a].legs.iter().position(|l| l.place == leg) {
                Some(leg) => leg,
                None => return,
            },
            _ => 0,
        };
        match note {
            // What failed before the leg came back is no news.
            Note::LegFailed { epoch, .. } | Note::LegAhead { epoch, .. }
                if epoch < pool.arrays[a].legs[leg].joined => {}
            Note::LegFailed { leg: _, epoch: _, error } => {
                let open = pool.arrays[a].legs[leg].open.as_ref();
                let fault = open.map_or_else(|| error.into(), |o| o.fault(error));
                let why = LegCause::failed(fault).into();
                pool.pending.push_back(PendingChange::Lost {
                    array: a,
                    leg,
                    why,
                    outlook: outlook(error),
                    there,
                });
            }
            Note::LegAhead { leg: _, epoch: _, last, error } => {
                let last = pool.arrays[a].legs.iter().find(|l| l.place == last);
                let open = last.and_then(|l| l.open.as_ref());
                let fault = error.map(|error| open.map_or_else(|| error.into(), |o| o.fault(error)));
                let source = last.map_or(String::new(), |l| l.path.clone());
                let why = LegCause::LegAheadOfSource { source, fault }.into();
                pool.pending.push_back(PendingChange::Lost {
                    array: a,
                    leg,
                    why,
                    outlook: Outlook::MayReturn,
                    there: None,
                });
            }
            Note::Synced { leg: _, epoch } => {
                let context = &mut pool.arrays[a].legs[leg];
                if epoch >= context.joined {
                    context.synced.insert(shard);
                    if pool.is_synced(a, leg) {
                        pool.pending.push_back(PendingChange::Synced { array: a, leg });
                    }
                }
            }
            Note::CrashClean { epoch: _ } => {
                pool.arrays[a].clean.insert(shard);
            }
            Note::AllDirty { number } => pool.arrays[a].has_marked_all(shard, number),
            Note::Returned { marks } => {
                if marks == pool.arrays[a].marks {
                    pool.arrays[a].marked.insert(shard);
                }
            }
            Note::AllCleared { marks } => {
                if marks == pool.arrays[a].marks {
                    pool.arrays[a].cleared.insert(shard);
                }
            }
            Note::Healed { .. } => pool.arrays[a].was_healed(),
            Note::Heal { .. } => unreachable!("this note goes from shard to shard"),
            Note::Mismatch { .. } | Note::Unreadable { .. } | Note::Scrubbed { .. } => {
                let what = format!("pool {}", pool.config().name);
                for event in pool.on_scrub_note(a, shard, note) {
                    self.happened(now, what.clone(), event);
                }
            }
            Note::MediumLost { .. } => pool.arrays[a].lost_medium(),
            Note::Judged { epoch, .. } if epoch < pool.arrays[a].legs[leg].joined => {}
            Note::Judged { leg: _, verdict, epoch: _ } => {
                let (what, name) = (format!("drive {}", pool.drive_path(a, leg)), pool.config().name.clone());
                let context = &mut pool.arrays[a].legs[leg];
                match verdict {
                    Verdict::Slow => context.slow.insert(shard),
                    Verdict::Well | Verdict::Stale => context.slow.remove(&shard),
                };
                context.is_judged(now);
                // What is forgotten because nobody reads is no event at once, nor is that it is seen again soon.
                match verdict {
                    Verdict::Slow if !context.told_slow => {
                        context.slow_told(true);
                        self.happened(now, what, LegEvent::LegSlow { pool: name });
                    }
                    Verdict::Well if context.told_slow && context.slow.is_empty() => {
                        context.slow_told(false);
                        self.happened(now, what, LegEvent::LegFast { pool: name });
                    }
                    Verdict::Slow | Verdict::Well | Verdict::Stale => {}
                }
            }
        }
    }
    /// Legs that were said to be slow, and that nobody has read from for a while: what was said holds no longer.
    pub fn forget_slow(&mut self, now: Instant) {
        let mut told = vec![];
        for p in &mut self.pools {
            let pool = p.config().name.clone();
            for leg in p.arrays.iter_mut().flat_map(|a| &mut a.legs) {
                let quiet = leg.quiet_since.is_some_and(|since| now.since(since) >= QUIET_TIME);
                if leg.told_slow && quiet {
                    leg.slow_told(false);
                    told.push((format!("drive {}", leg.path), pool.clone()));
                }
            }
        }
        for (what, pool) in told {
            self.happened(now, what, LegEvent::LegHardlyRead { pool });
        }
    }
}
