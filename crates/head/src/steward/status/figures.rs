//! What was done so far, for whoever keeps a history of it. Asked for each second, so it looks at each report once.

use crate::order::{Counters, Figures, Worked};
use crate::report::{self, ShardReport};
use crate::steward::context::head::HeadContext;
use crate::steward::procedures::Procedures;
use crate::steward::status::snapshot::add;
use base::{DriveId, Instant};
use std::collections::BTreeMap;

impl Procedures {
    /// All counters, fresh from the shards if they answer in time.
    pub(crate) async fn figures(&self) -> Figures {
        let fresh = self.ask_reports().await;
        Figures { fresh, ..build(&self.context(), self.cx.now()) }
    }
}

fn build(context: &HeadContext, now: Instant) -> Figures {
    let reports = || context.reports.iter().flatten();
    Figures {
        at: now,
        fresh: false,
        basis: context.reports_basis,
        reads: context.times.total(false).clone(),
        writes: context.times.total(true).clone(),
        volumes: volumes_of(context, reports()),
        drives: drives_of(context, reports()),
    }
}

fn volumes_of<'a>(context: &HeadContext, reports: impl Iterator<Item = &'a ShardReport>) -> Vec<Worked> {
    let mut sums: Vec<Counters> = vec![];
    for (id, counters) in reports.flat_map(|r| &r.volumes) {
        if sums.len() <= id.index() {
            sums.resize(id.index() + 1, Counters::default());
        }
        add(&mut sums[id.index()], counters);
    }
    let mut out = vec![];
    for p in context.shown() {
        for v in p.config.volumes.iter() {
            let Some(id) = p.volume_ids.get(&v.uuid) else { continue };
            out.push(Worked {
                uuid: v.uuid,
                counters: sums.get(id.index()).copied().unwrap_or_default(),
                read_times: context.times.volume_sum(*id, false),
                write_times: context.times.volume_sum(*id, true),
            });
        }
    }
    out
}

fn drives_of<'a>(context: &HeadContext, reports: impl Iterator<Item = &'a ShardReport>) -> Vec<Worked> {
    let mut sums: BTreeMap<DriveId, report::Counters> = BTreeMap::new();
    for report in reports.flat_map(|r| &r.drives) {
        sums.entry(report.drive).or_default().add(&report.counters);
    }
    let legs = context.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
    let worked = |uuid| {
        // Under every number that it has had, as in `status`.
        let ids = || context.lives.get(&uuid).into_iter().flatten();
        let mut counters = Counters::default();
        ids().filter_map(|id| sums.get(id)).for_each(|c| add(&mut counters, c));
        let times = |write| context.times.drive_sum(ids(), write);
        Worked { uuid, counters, read_times: times(false), write_times: times(true) }
    };
    legs.map(|leg| worked(leg.uuid)).collect()
}
