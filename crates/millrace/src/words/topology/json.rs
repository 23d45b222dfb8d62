//! The JSON of `explain`, `tune`, `plan` and `topology`: findings as they are, each with its sentence as `message`, and
//! with `next` where something helps.

use super::{figure, full, gain, gap, limit, load, next_limit, seat_reason, setting, unknown};
use crate::words::Said;
use serde_json::{Value, json};
use topology::Machine;
use topology::explain::Explanation;
use topology::plan::{Better, Plan, Prediction, Seats};
use topology::tune::Setting;

fn plain(what: &impl serde::Serialize) -> Value {
    serde_json::to_value(what).expect("plain data")
}

/// The same, with its sentence.
fn say(value: &mut Value, said: impl Into<Said>) {
    let said = said.into();
    value["message"] = said.message.into();
    if let Some(next) = said.next {
        value["next"] = next.into();
    }
}

/// The same, each with its sentence.
fn say_all<T>(list: &mut Value, of: &[T], words: impl Fn(&T) -> String) {
    let values = list.as_array_mut().into_iter().flatten();
    values.zip(of).for_each(|(value, one)| say(value, words(one)));
}

/// What limits.
pub fn explained(e: &Explanation) -> Value {
    let mut out = plain(e);
    say(&mut out["load"], load(&e.load));
    for (value, finding) in out["findings"].as_array_mut().into_iter().flatten().zip(&e.findings) {
        say(value, limit(&finding.limit));
        say_all(&mut value["arithmetic"], &finding.arithmetic, figure);
    }
    if let Some(next) = &e.next_limit {
        say(&mut out["next_limit"], next_limit(next));
    }
    out
}

/// What is set.
pub fn tuned(settings: &[Setting]) -> Value {
    let one = |s: &Setting| {
        let (mut out, words) = (plain(s), setting(s));
        say(&mut out, Said { message: words.name, next: words.how });
        say(&mut out["found"], words.found);
        say(&mut out["wanted"], words.wanted);
        out["why"] = words.why.into();
        out["risk"] = words.risk.into();
        out
    };
    settings.iter().map(one).collect()
}

fn predicted(list: &mut Value, predictions: &[Prediction]) {
    for (value, p) in list.as_array_mut().into_iter().flatten().zip(predictions) {
        if let Some(limit) = &p.limit {
            say(&mut value["limit"], full(limit));
        }
        if let Some((then, _)) = &p.then {
            say(&mut value["then"][0], full(then));
        }
    }
}

/// What a layout will give.
pub fn planned(plan: &Plan, seats: Option<&Seats>) -> Value {
    let mut out = plain(plan);
    predicted(&mut out["predictions"], &plan.predictions);
    say_all(&mut out["gaps"], &plan.gaps, unknown);
    if let Some(Better { why, predictions, .. }) = &plan.better {
        say_all(&mut out["better"]["why"], why, gain);
        predicted(&mut out["better"]["predictions"], predictions);
    }
    out["seats"] = json!(seats);
    if let Some(seats) = seats {
        say_all(&mut out["seats"]["why"], &seats.why, seat_reason);
    }
    out
}

/// What a machine is made of.
pub fn found(m: &Machine) -> Value {
    let mut out = plain(m);
    say_all(&mut out["gaps"], &m.gaps, gap);
    for (value, drive) in out["drives"].as_array_mut().into_iter().flatten().zip(&m.drives) {
        if let Some(wear) = drive.health.as_ref().and_then(|h| h.worn()) {
            value["health"]["wear"] = plain(&wear);
            say(&mut value["health"]["wear"], super::wear(&wear));
        }
    }
    out
}
