//! Writes the sentences into what the API answers: the head says what it found, this says it in English.

use super::{cause, notice, reason};
use api::{Cause, Drive, Event, Importable, Noticed, Pool, Status};

/// The sentence of a cause; empty if there is none.
fn of(found: &Option<Cause>) -> String {
    found.as_ref().map(|c| cause(c).message).unwrap_or_default()
}

/// The head, as the API answers it.
pub fn status(status: Status) -> Status {
    let portal = |p: api::Portal| api::Portal { reason: of(&p.cause), ..p };
    let shard = |s: api::Shard| api::Shard {
        last_protocol_error: s
            .last_protocol_fault
            .map(super::connection_fault::fault)
            .unwrap_or_default()
            .into(),
        ..s
    };
    let noticed = |n: Noticed| Noticed { message: notice(&n.notice), ..n };
    Status {
        reasons: status.reasons.into_iter().map(reason).collect(),
        drives: status.drives.into_iter().map(drive).collect(),
        pools: status.pools.into_iter().map(pool).collect(),
        portals: status.portals.into_iter().map(portal).collect(),
        events: status.events.into_iter().map(event).collect(),
        notices: status.notices.into_iter().map(noticed).collect(),
        shards: status.shards.into_iter().map(shard).collect(),
        ..status
    }
}

/// A drive.
pub fn drive(d: Drive) -> Drive {
    Drive { reason: of(&d.cause), ..d }
}

fn pool(p: Pool) -> Pool {
    let leg = |l: api::Leg| api::Leg { reason: of(&l.cause), ..l };
    let array =
        |a: api::Array| api::Array { reason: of(&a.cause), legs: a.legs.into_iter().map(leg).collect(), ..a };
    let spare = |s: api::Spare| api::Spare {
        reason: of(&s.cause),
        fits: s.fit.as_ref().map(super::leg::spare_fit).unwrap_or_default(),
        ..s
    };
    let finding = |f: api::Finding| api::Finding {
        what: f.difference.as_ref().map(super::difference).unwrap_or_default(),
        ..f
    };
    let scrub = api::Scrub { findings: p.scrub.findings.into_iter().map(finding).collect(), ..p.scrub };
    Pool {
        scrub,
        reason: of(&p.cause),
        arrays: p.arrays.into_iter().map(array).collect(),
        spares: p.spares.into_iter().map(spare).collect(),
        ..p
    }
}

/// A pool that could be imported.
pub fn importable(p: Importable) -> Importable {
    let said = p.cause.as_ref().map(cause);
    let import = (!p.name.is_empty()).then(|| format!("millrace pool import {}", p.name));
    let next = said.as_ref().and_then(|said| said.next.clone()).or(import);
    Importable { reason: said.map(|said| said.message).unwrap_or_default(), next, ..p }
}

/// An event.
pub fn event(e: Event) -> Event {
    Event { message: super::event(&e.event), ..e }
}
