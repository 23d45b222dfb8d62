//! Where the time of commands goes, as `status -v` and `bench` show it.

use super::drive_name;
use crate::screen::{Cell, Look, Table, Terminal};
use api::size::{print_count, print_ns};
use api::{Drive, Stages, Times, Volume};

/// How to read a quantile.
type Quantile = fn(&Times) -> u64;
/// The two that are shown.
const SHOWN: [(&str, Quantile); 2] = [("p50", |t| t.p50_ns), ("p99", |t| t.p99_ns)];

/// A time; nothing at all is dimmed, so that the eye finds the rest.
pub fn time(ns: u64) -> Cell {
    if ns < 50 { Cell::new(Look::Dim, "0") } else { print_ns(ns).into() }
}

/// How long the stages of volumes' commands took lately; None if nothing was timed lately.
pub fn volumes(volumes: &[Volume], terminal: Terminal) -> Option<String> {
    let ways = volumes.iter().flat_map(|v| [(v, "read", &v.read_times), (v, "write", &v.write_times)]);
    let timed = ways.filter_map(|(v, way, times)| Some((&*v.name, way, times.as_ref()?)));
    stages(timed, terminal)
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
