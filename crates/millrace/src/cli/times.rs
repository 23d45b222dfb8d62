//! Where the time of commands goes, as `status -v` and `bench` show it.

use crate::arguments::drive_name;
use crate::screen::{Cell, Look, Table, Terminal};
use api::{Drive, Stages, Times, Volume};
use base::size::{print_count, print_ns};

/// How to read a quantile.
type Quantile = fn(&Times) -> u64;
/// The two that are shown.
const SHOWN: [(&str, Quantile); 2] = [("p50", |t| t.p50_ns), ("p99", |t| t.p99_ns)];

/// A time; nothing at all is dimmed, so that the eye finds the rest.
pub fn time(ns: u64) -> Cell {
    if ns < 50 { Cell::new(Look::Dim, "0") } else { print_ns(ns).into() }
}

/// Said in place of figures that there were, once nothing was timed for as long as they are of.
const IDLE: &str = "LATENCY  no commands timed in the last two minutes (one in 64 is)";

/// The table, or why there is none although there was.
fn or_idle(table: Option<String>, ever: bool, terminal: Terminal) -> Option<String> {
    table.or_else(|| ever.then(|| format!("{}\n", terminal.text(Look::Dim, IDLE))))
}

/// How long the stages of volumes' commands took lately; None if nothing was ever timed.
pub fn volumes(volumes: &[Volume], terminal: Terminal) -> Option<String> {
    let ways = volumes.iter().flat_map(|v| [(v, "read", &v.read_times), (v, "write", &v.write_times)]);
    let timed = ways.filter_map(|(v, way, times)| Some((&*v.name, way, times.as_ref()?)));
    let ever = timed.clone().next().is_some();
    or_idle(stages(timed, terminal), ever, terminal)
}

/// The same of anything that has stages: a name, `read` or `write`, and its times.
pub fn stages<'a>(
    of: impl Iterator<Item = (&'a str, &'static str, &'a Stages)>,
    terminal: Terminal,
) -> Option<String> {
    let mut table = Table::new(&[
        "LATENCY",
        "",
        "",
        ">ALL",
        ">ADMITTED",
        ">VOLUME",
        ">ARRAY",
        ">DRIVE",
        ">REPLIED",
        ">TIMED",
    ])
    .optional(&["TIMED"])
    .short_names(12);
    for (name, way, times) in of.filter(|(_, _, t)| t.all.timed > 0) {
        for (i, (quantile, read)) in SHOWN.iter().enumerate() {
            let first = i == 0;
            let mut cells: Vec<Cell> = vec![
                if first { name.into() } else { "".into() },
                if first { way.into() } else { "".into() },
                Cell::new(Look::Dim, *quantile),
                time(read(&times.all)),
            ];
            cells.extend(times.parts().map(|(_, part)| time(read(part))));
            cells.push(if first { print_count(times.all.timed).into() } else { "".into() });
            table.row(cells);
        }
    }
    (!table.is_empty()).then(|| table.print(terminal, 0))
}

/// The same of one drive, which says so if nothing was timed lately.
pub fn drive(d: &Drive, terminal: Terminal) -> Option<String> {
    let ever = d.read_times.is_some() || d.write_times.is_some();
    or_idle(drives(core::slice::from_ref(d), terminal), ever, terminal)
}

/// How long drives took lately; None if nothing was timed lately.
pub fn drives(drives: &[Drive], terminal: Terminal) -> Option<String> {
    let mut table = Table::new(&[
        "LATENCY",
        ">READ p50",
        ">p99",
        ">p99.9",
        ">LONGEST",
        ">WRITE p50",
        ">p99",
        ">p99.9",
        ">LONGEST",
    ])
    .optional(&["LONGEST"])
    .optional(&["p99.9"])
    .short_names(16);
    for d in drives {
        let lately = |t: Option<Times>| t.filter(|t| t.timed > 0);
        let (reads, writes) = (lately(d.read_times), lately(d.write_times));
        if reads.is_none() && writes.is_none() {
            continue;
        }
        let of = |t: Option<Times>| match t {
            Some(t) => [t.p50_ns, t.p99_ns, t.p999_ns, t.max_ns].map(time),
            None => core::array::from_fn(|_| Cell::new(Look::Dim, "-")),
        };
        table.row([Cell::from(drive_name(d))].into_iter().chain(of(reads)).chain(of(writes)));
    }
    (!table.is_empty()).then(|| table.print(terminal, 0))
}

#[cfg(test)]
mod tests {
    use super::{IDLE, or_idle, stages};
    use crate::screen::Terminal;
    use api::{Stages, Times};

    /// The table went minutes after the last command, and nothing said why.
    #[test]
    fn figures_that_there_were_do_not_go_without_a_word() {
        let terminal = Terminal::plain(80);
        let table = |timed| {
            let of = Stages { all: Times { timed, p50_ns: 5000, ..Times::default() }, ..Stages::default() };
            stages([("tank/a", "read", &of)].into_iter(), terminal)
        };
        assert_eq!(or_idle(table(0), false, terminal), None, "none was ever used");
        assert_eq!(or_idle(table(0), true, terminal), Some(format!("{IDLE}\n")));
        assert!(or_idle(table(2), true, terminal).is_some_and(|t| t.contains("tank/a")));
        assert!(IDLE.len() <= 80);
    }
}
