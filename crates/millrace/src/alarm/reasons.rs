//! Reasons of the head's health over time: what stands, and since when. One that comes and goes within a moment is nobody's
//! alarm.

use super::now::Now;
use api::{Alarm, AlarmState, Reason, State, Time, Weight};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a reason must be there, or gone, before that counts.
pub const SETTLE: Duration = Duration::from_secs(2);

/// Fields that say what a reason is about. Others, such as a count, may change, and it is the same reason.
const NAMES: [&str; 13] = [
    "pool", "volume", "host", "drive", "path", "leg", "spare", "address", "array", "mirror", "head", "file",
    "protocol",
];

/// How weighty something is that is in such a state.
fn level(state: State) -> Weight {
    match state {
        State::Optimal => Weight::Note,
        State::Rebuilding | State::Degraded => Weight::Warning,
        State::Offline | State::Failed => Weight::Error,
    }
}

/// How weighty a reason is: even beside a health that is optimal it is there to be dealt with.
fn level_of_reason(state: State) -> Weight {
    level(state).max(Weight::Warning)
}

/// How weighty what ails the head is.
pub fn level_of(status: &api::Status) -> Weight {
    let worst = status.reasons.iter().map(|r| level_of_reason(r.state)).max();
    level(status.health).max(worst.unwrap_or(Weight::Note))
}

/// What makes a reason this one: its code, its subject, and the names in it.
pub fn key(alarm: &Alarm) -> String {
    let names = NAMES.iter().filter_map(|name| alarm.fields.get(name)?.as_str());
    [alarm.code.as_str(), alarm.subject.as_str()].into_iter().chain(names).collect::<Vec<_>>().join("\u{1f}")
}

/// A reason as an alarm that is raised.
fn alarm_of(reason: &Reason, at: Time) -> Alarm {
    let json = serde_json::to_value(&reason.cause).expect("plain data");
    Alarm {
        state: AlarmState::Raised,
        level: level_of_reason(reason.state),
        at,
        since: Some(at),
        subject: reason.what.clone(),
        code: reason.cause.code(),
        fields: json.get("fields").cloned().unwrap_or_default(),
        message: reason.message.clone(),
        next: reason.next.clone(),
    }
}

/// A reason that was seen.
struct Seen {
    alarm: Alarm,
    /// It was there at the last look.
    there: bool,
    /// Since when it is, or is not.
    turned: Duration,
    /// It counts.
    stands: bool,
}

/// The reasons that were seen.
#[derive(Default)]
pub struct Reasons(BTreeMap<String, Seen>);

impl Reasons {
    /// Those that somebody was told of before a restart. One that is not seen again is over.
    pub fn from_before(told: impl Iterator<Item = Alarm>, now: Now) -> Self {
        let seen = |alarm: Alarm| {
            (key(&alarm), Seen { alarm, there: false, turned: now.run + SETTLE, stands: true })
        };
        Self(told.map(seen).collect())
    }

    /// The health as it is now.
    pub fn look(&mut self, now: Now, reasons: &[Reason]) {
        let mut found: BTreeMap<String, Alarm> = BTreeMap::new();
        for alarm in reasons.iter().map(|r| alarm_of(r, now.at)) {
            let worst = found.entry(key(&alarm)).or_insert_with(|| alarm.clone());
            if alarm.level > worst.level {
                *worst = alarm;
            }
        }
        for (key, seen) in &mut self.0 {
            let there = found.get(key);
            if seen.there != there.is_some() {
                (seen.there, seen.turned) = (there.is_some(), now.run);
            }
            if let Some(alarm) = there {
                seen.alarm = Alarm { since: seen.alarm.since, ..alarm.clone() };
            }
        }
        for (key, alarm) in found {
            self.0.entry(key).or_insert(Seen { alarm, there: true, turned: now.run, stands: false });
        }
        for seen in self.0.values_mut() {
            if now.run >= seen.turned + SETTLE {
                seen.stands = seen.there;
            }
        }
        self.0.retain(|_, seen| seen.there || seen.stands);
    }

    /// Those that count, by key.
    pub fn standing(&self) -> BTreeMap<&str, &Alarm> {
        self.0.iter().filter(|(_, s)| s.stands).map(|(key, s)| (key.as_str(), &s.alarm)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, reason};
    use super::*;

    fn standing(reasons: &Reasons) -> Vec<(String, Weight)> {
        reasons.standing().values().map(|a| (a.code.clone(), a.level)).collect()
    }

    #[test]
    fn a_reason_counts_once_it_stays() {
        let mut all = Reasons::default();
        let lost = [reason("tank", "/dev/a", State::Degraded)];
        all.look(at(0), &lost);
        assert!(standing(&all).is_empty());
        all.look(at(1), &[]);
        all.look(at(2), &lost);
        all.look(at(3), &lost);
        assert!(standing(&all).is_empty(), "it went in between");
        all.look(at(4), &lost);
        assert_eq!(standing(&all), [("leg_not_optimal".to_string(), Weight::Warning)]);
        assert_eq!(all.standing().values().next().expect("one").since, Some(at(2).at));
        // It is over once it stays away.
        all.look(at(5), &[]);
        all.look(at(6), &lost);
        all.look(at(7), &[]);
        all.look(at(8), &[]);
        assert_eq!(standing(&all).len(), 1);
        all.look(at(9), &[]);
        assert!(standing(&all).is_empty() && all.0.is_empty());
    }

    #[test]
    fn a_reason_beside_an_optimal_health_is_a_warning_all_the_same() {
        let used_up = reason("tank", "/dev/a", State::Optimal);
        assert_eq!(alarm_of(&used_up, at(0).at).level, Weight::Warning);
        let status = api::Status { reasons: vec![used_up], ..api::Status::default() };
        assert_eq!(level_of(&status), Weight::Warning);
        assert_eq!(level_of(&api::Status::default()), Weight::Note);
    }

    #[test]
    fn names_make_a_reason_another_and_the_state_does_not() {
        let mut all = Reasons::default();
        let two = [reason("tank", "/dev/a", State::Rebuilding), reason("tank", "/dev/b", State::Failed)];
        all.look(at(0), &two);
        all.look(at(3), &two);
        assert_eq!(standing(&all).iter().map(|s| s.1).collect::<Vec<_>>(), [Weight::Warning, Weight::Error]);
        let worse = [reason("tank", "/dev/a", State::Failed), reason("tank", "/dev/b", State::Failed)];
        all.look(at(4), &worse);
        assert_eq!(standing(&all).iter().map(|s| s.1).collect::<Vec<_>>(), [Weight::Error, Weight::Error]);
        let twice = [reason("tank", "/dev/a", State::Degraded), reason("tank", "/dev/a", State::Offline)];
        all.look(at(5), &twice);
        assert_eq!(standing(&all)[0].1, Weight::Error, "the worse one counts");
    }

    #[test]
    fn what_was_told_before_a_restart_stands_until_it_is_looked_for() {
        let mut before = Reasons::default();
        let lost = [reason("tank", "/dev/a", State::Degraded)];
        before.look(at(0), &lost);
        before.look(at(3), &lost);
        let told: Vec<Alarm> = before.standing().into_values().cloned().collect();
        let mut after = Reasons::from_before(told.clone().into_iter(), at(100));
        after.look(at(101), &lost);
        assert_eq!(after.standing().into_values().next().expect("it stands").since, Some(at(0).at));
        let mut gone = Reasons::from_before(told.into_iter(), at(100));
        gone.look(at(101), &[]);
        assert_eq!(standing(&gone).len(), 1);
        gone.look(at(106), &[]);
        assert!(standing(&gone).is_empty());
    }
}
