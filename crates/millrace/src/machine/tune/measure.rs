//! Whether a group of settings helps here: the same load with them and without, in turns, so that what else goes on on the
//! machine meets both alike.

use super::place::Place;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, Terminal};
use serde::Serialize;
use std::collections::BTreeSet;
use topology::tune::{Group, Setting, Verdict};

/// A run of the load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Run {
    /// Operations a second.
    pub iops: f64,
    /// 99 of 100 were faster, microseconds.
    pub p99_us: f64,
}

/// What came of a group's changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Faster in every round, and by more than [`LEAST`] in the middle one: they stay.
    Kept,
    /// No faster: everything is as it was.
    Restored,
    /// Not one of them could be made.
    Refused,
    /// Somebody pressed Ctrl-C before it was known: everything is as it was.
    Stopped,
}

/// A group that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Which.
    pub group: Group,
    /// What was changed for it: name, found and wanted.
    pub changes: Vec<String>,
    /// What could not be changed, and why.
    pub refused: Vec<String>,
    /// Runs without the changes, by round.
    pub without: Vec<Run>,
    /// Runs with them, by round.
    pub with: Vec<Run>,
    /// Operations a second with them in relation to those without, by round, sorted.
    pub ratios: Vec<f64>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a group has to gain in the middle round to be kept: 1 %. Less is not worth a machine that is unlike others.
pub const LEAST: f64 = 1.01;

/// Whether these ratios speak for a change. Where nothing changes, each round is as likely above 1 as below: that all of
/// five are above happens once in 32 times, and the middle one above [`LEAST`] as well is rarer.
fn helps(sorted: &[f64]) -> bool {
    sorted.first().is_some_and(|least| *least > 1.0) && sorted[sorted.len() / 2] >= LEAST
}

/// Changes, measures, and keeps or restores each group that has something to change. What is kept for one group is there
/// while the next is measured. `run` loads the target; None if somebody stopped it.
///
/// Errors: the record, or the load's; the group that was being measured is restored before.
pub fn groups(
    place: &mut Place,
    settings: &[Setting],
    rounds: u32,
    mut run: impl FnMut(&str) -> Result<Option<Run>, Failure>,
) -> Result<Vec<Measured>, Failure> {
    let mut out: Vec<Measured> = Vec::new();
    for group in Group::ALL {
        let changes = |s: &&Setting| s.group == group && matches!(s.verdict, Verdict::Change(_));
        let settings: Vec<Setting> = settings.iter().filter(changes).cloned().collect();
        if settings.is_empty() {
            continue;
        }
        let measured = one(place, group, &settings, rounds, &mut run)?;
        let stopped = measured.outcome == Outcome::Stopped;
        out.push(measured);
        if stopped {
            break;
        }
    }
    Ok(out)
}

fn one(
    place: &mut Place,
    group: Group,
    settings: &[Setting],
    rounds: u32,
    run: &mut impl FnMut(&str) -> Result<Option<Run>, Failure>,
) -> Result<Measured, Failure> {
    let paths: BTreeSet<&str> = settings
        .iter()
        .flat_map(|s| match &s.verdict {
            Verdict::Change(writes) => writes.iter().map(|w| w.path.as_str()).collect(),
            Verdict::Good | Verdict::Advice | Verdict::Shown => Vec::new(),
        })
        .collect();
    let report = place.apply(settings)?;
    let mut me = Measured {
        group,
        changes: report.done,
        refused: report.refused,
        without: Vec::new(),
        with: Vec::new(),
        ratios: Vec::new(),
        outcome: Outcome::Refused,
    };
    if me.changes.is_empty() {
        return Ok(me);
    }
    let taken = take_turns(place, settings, &paths, rounds as usize, &mut me, run);
    me.ratios = me.with.iter().zip(&me.without).map(|(with, without)| with.iops / without.iops).collect();
    me.ratios.sort_by(f64::total_cmp);
    me.outcome = match taken {
        Ok(Some(())) if helps(&me.ratios) => Outcome::Kept,
        Ok(Some(())) => Outcome::Restored,
        Ok(None) | Err(_) => Outcome::Stopped,
    };
    match me.outcome {
        Outcome::Kept => place.apply(settings)?,
        Outcome::Restored | Outcome::Refused | Outcome::Stopped => place.restore(|p| paths.contains(p))?,
    };
    taken.map(|_| me)
}

/// Runs with the changes, which are there at the beginning, and without. None if somebody stopped it.
fn take_turns(
    place: &mut Place,
    settings: &[Setting],
    paths: &BTreeSet<&str>,
    rounds: usize,
    me: &mut Measured,
    run: &mut impl FnMut(&str) -> Result<Option<Run>, Failure>,
) -> Result<Option<()>, Failure> {
    for round in 0..rounds {
        // The first of a round is what the last one ended with: a machine is changed once a round.
        let begins = round.is_multiple_of(2);
        for with in [begins, !begins] {
            if with != begins {
                if with {
                    place.apply(settings)?
                } else {
                    place.restore(|p| paths.contains(p))?
                };
            }
            let word = if with { "with" } else { "without" };
            let figures = run(&format!("{} {word}, {} of {rounds}", me.group.word(), round + 1))?;
            let Some(figures) = figures else { return Ok(None) };
            if with { me.with.push(figures) } else { me.without.push(figures) }
        }
    }
    Ok(Some(()))
}

/// The table of what was measured.
pub fn screen(measured: &[Measured], terminal: Terminal) -> String {
    if measured.is_empty() {
        return "Nothing was measured: nothing has to be changed.\n".into();
    }
    let mut table = Table::new(&["GROUP", ">WITHOUT", ">WITH", ">GAIN", ""]).prose();
    let middle = |runs: &[Run]| {
        let mut all: Vec<f64> = runs.iter().map(|r| r.iops).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).map_or("-".into(), |n| base::size::print_count(*n as u64))
    };
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    for m in measured {
        let gain = m.ratios.get(m.ratios.len() / 2).map_or("-".into(), |r| percent(*r));
        let range = match (m.ratios.first(), m.ratios.last()) {
            (Some(least), Some(most)) => format!(" ({} to {})", percent(*least), percent(*most)),
            _ => String::new(),
        };
        let (look, mut words) = match m.outcome {
            Outcome::Kept => (Look::Good, format!("kept{range}: {}", m.changes.join("; "))),
            Outcome::Restored => (Look::Plain, format!("restored{range}: {}", m.changes.join("; "))),
            Outcome::Refused => (Look::Warn, format!("not changed: {}", m.refused.join("; "))),
            Outcome::Stopped => (Look::Warn, "stopped, and restored".into()),
        };
        if m.outcome != Outcome::Refused && !m.refused.is_empty() {
            words.push_str(&format!("; not changed: {}", m.refused.join("; ")));
        }
        table.row([
            Cell::new(Look::Bold, m.group.word()),
            middle(&m.without).into(),
            middle(&m.with).into(),
            Cell::new(look, gain),
            words.into(),
        ]);
    }
    let mut out = table.print(terminal, 0);
    out.push_str("\nOperations a second in the middle round. Kept is what was faster in every round, and by 1 % or more\nin the middle one.\n",
    );
    let kept: Vec<&str> =
        measured.iter().filter(|m| m.outcome == Outcome::Kept).map(|m| m.group.word()).collect();
    if !kept.is_empty() {
        out.push_str(&terminal.next(&format!(
            "millrace tune --persist --only {}, for the next start too; millrace tune --undo",
            kept.join(",")
        )));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::place::tests::Machinery;
    use super::*;

    /// A load that gains by what a setting of memory is, loses by one of block devices, and does not feel the rest; beside
    /// it the machine gets slower all the time.
    fn load(m: &Machinery) -> impl FnMut(&str) -> Result<Option<Run>, Failure> + '_ {
        let mut n = 0.0;
        move |_| {
            n += 1.0;
            let mut iops = 100_000.0 * (1.0 - n * 0.001);
            if m.text("/proc/sys/vm/swappiness").trim() == "1" {
                iops *= 1.05;
            }
            if m.text("/sys/block/nvme1n1/queue/nomerges").trim() == "2" {
                iops *= 0.97;
            }
            Ok(Some(Run { iops, p99_us: 100.0 }))
        }
    }

    #[test]
    fn what_helps_stays_and_the_rest_is_as_it_was() {
        let m = Machinery::new();
        let before = m.all();
        let measured = groups(&mut m.place(), &m.settings(), 5, load(&m)).expect("measured");
        let outcomes: Vec<(Group, Outcome)> = measured.iter().map(|m| (m.group, m.outcome)).collect();
        assert_eq!(
            outcomes,
            [
                (Group::Cpu, Outcome::Restored),
                (Group::Block, Outcome::Restored),
                (Group::Memory, Outcome::Kept),
                (Group::Network, Outcome::Restored)
            ]
        );
        let changed = |(path, now): &(String, String)| {
            before.iter().any(|(p, was)| p == path && was != now).then(|| path.clone())
        };
        assert_eq!(m.all().iter().filter_map(changed).collect::<Vec<_>>(), ["/proc/sys/vm/swappiness"]);
        let text = screen(&measured, Terminal::plain(100));
        assert!(text.contains("memory") && text.contains("+5.") && text.contains("--only memory,"), "{text}");
        m.place().undo().expect("undone");
        assert_eq!(m.all(), before);
        assert!(!m.place().record.exists(), "nothing is left on record");
    }

    #[test]
    fn a_load_that_fails_or_is_stopped_leaves_its_group_as_it_was() {
        for fails in [true, false] {
            let m = Machinery::new();
            let before = m.all();
            let mut left = 4;
            let run = |_: &str| {
                left -= 1;
                match (left, fails) {
                    (0, true) => Err(Failure::internal("the target is gone")),
                    (0, false) => Ok(None),
                    _ => Ok(Some(Run { iops: 1000.0, p99_us: 1.0 })),
                }
            };
            let done = groups(&mut m.place(), &m.settings(), 3, run);
            match done {
                Err(e) => assert!(fails && e.message.contains("gone"), "{e}"),
                Ok(list) => assert_eq!(list.last().map(|m| m.outcome), Some(Outcome::Stopped)),
            }
            assert_eq!(m.all(), before);
            assert!(!m.place().record.exists(), "nothing is left on record");
        }
    }

    #[test]
    fn one_round_that_is_slower_speaks_against_it() {
        for (ratios, yes) in [
            (&[1.02, 1.03, 1.04][..], true),
            (&[0.99, 1.03, 1.04][..], false),
            (&[1.001, 1.002, 1.2][..], false),
            (&[][..], false),
        ] {
            assert_eq!(helps(ratios), yes, "{ratios:?}");
        }
    }
}
