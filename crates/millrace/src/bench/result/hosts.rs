//! What `millrace bench hosts` measured, and how it is shown.

use super::figures::{Measured, Path};
use super::report::{Figures, Report, bar, micros};
use crate::screen::{Cell, Look, Table, Terminal};
use base::size::print_count;
use serde::{Deserialize, Serialize};

/// All hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Hosts {
    /// What each was told to do.
    pub load: String,
    /// Every host, in order; its name and its report.
    pub hosts: Vec<(String, Report)>,
}

impl Hosts {
    /// All hosts together: rates add up, and each connection of each host is a path. Latencies of different hosts cannot
    /// be merged: of each the worst is shown.
    pub fn together(&self) -> Measured {
        let mut total = Figures::default();
        let mut paths = vec![];
        for (name, report) in &self.hosts {
            let f = &report.total;
            (total.ops, total.bytes) = (total.ops + f.ops, total.bytes + f.bytes);
            (total.iops, total.mb_per_s) = (total.iops + f.iops, total.mb_per_s + f.mb_per_s);
            for (worst, one) in [
                (&mut total.mean_us, f.mean_us),
                (&mut total.p50_us, f.p50_us),
                (&mut total.p90_us, f.p90_us),
                (&mut total.p99_us, f.p99_us),
                (&mut total.p999_us, f.p999_us),
                (&mut total.max_us, f.max_us),
            ] {
                *worst = worst.max(one);
            }
            for c in &report.connections {
                let name = format!("{name}, connection {}.{}", c.session, c.connection);
                paths.push(Path { name, figures: c.figures.clone() });
            }
        }
        let errors = self.hosts.iter().map(|(_, r)| r.errors).sum();
        Measured { total, paths, errors, ..Measured::default() }
    }
    pub fn notes(&self) -> Vec<String> {
        let together = self.together();
        let starved = |path: &&Path| {
            format!(
                "{} is starved: {} IOPS of {}.",
                path.name,
                print_count(path.figures.iops as u64),
                print_count(together.total.iops as u64)
            )
        };
        // Hosts of one target are limited alike.
        let limits = self.hosts.first().map(|(_, r)| r.limits()).unwrap_or_default();
        let mut notes: Vec<String> = limits;
        notes.extend(together.starved().iter().map(starved));
        let rates: Vec<f64> = together.paths.iter().map(|p| p.figures.iops).collect();
        let (least, most) =
            rates.iter().fold((f64::INFINITY, 0.0f64), |(least, most), r| (least.min(*r), most.max(*r)));
        if rates.len() > 1 && most > 0.0 {
            notes.push(format!(
                "The slowest of {} paths had {:.0} % of the fastest.",
                rates.len(),
                least / most * 100.0
            ));
        }
        notes
    }
    /// The result for people.
    pub fn screen(&self, terminal: Terminal) -> String {
        let together = self.together();
        let best = self.hosts.iter().map(|(_, r)| r.total.iops).fold(0.0, f64::max).max(1e-9);
        let head = format!("{} together, {}", crate::screen::count(self.hosts.len(), "host"), self.load);
        let mut out = format!("{}\n\n", terminal.text(Look::Bold, &head));
        let mut table = Table::new(&["", ">IOPS", "", ">MB/S", ">P50", ">P99", ">P99.9", ">SLOWEST PATH"]);
        let slowest =
            |of: &mut dyn Iterator<Item = f64>| print_count(of.fold(f64::INFINITY, f64::min) as u64);
        for (name, report) in &self.hosts {
            let f = &report.total;
            table.row([
                name.clone().into(),
                print_count(f.iops as u64).into(),
                Cell::new(Look::Good, bar(f.iops / best, 20)),
                format!("{:.0}", f.mb_per_s).into(),
                micros(f.p50_us).into(),
                micros(f.p99_us).into(),
                micros(f.p999_us).into(),
                slowest(&mut report.connections.iter().map(|c| c.figures.iops)).into(),
            ]);
        }
        let f = &together.total;
        table.row([
            Cell::new(Look::Bold, "all"),
            Cell::new(Look::Bold, print_count(f.iops as u64)),
            "".into(),
            format!("{:.0}", f.mb_per_s).into(),
            micros(f.p50_us).into(),
            micros(f.p99_us).into(),
            micros(f.p999_us).into(),
            slowest(&mut together.paths.iter().map(|p| p.figures.iops)).into(),
        ]);
        out.push_str(&table.print(terminal, 0));
        out
    }
}
