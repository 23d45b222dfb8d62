//! The report: one HTML file with everything in it, light or dark as the reader's system is.

mod svg;

use super::result::doc::Doc;
use super::result::drives::Drives;
use super::result::figures::Measured;
use super::result::hosts::Hosts;
use super::result::ladder::{Ladder, Step, title};
use super::result::report::{LARGE, micros, micros_fine};
use super::result::sweep::Sweep;
use base::size::{print, print_count, print_ns};
use std::fmt::Write;
use svg::{Bar, Field, Marks};
use topology::escape;

const STYLE: &str = include_str!("report.css");

/// The page.
pub fn page(docs: &[Doc]) -> String {
    let mut out = String::from("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"/>");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    let _ = write!(out, "<title>Millrace bench</title><style>{STYLE}</style></head><body><main>");
    let at = docs.iter().map(|d| d.at).max().unwrap_or(0);
    let machine = docs.first().map_or(String::new(), |d| escape(&d.machine.line()));
    let _ = write!(
        out,
        "<header><p class=\"mark\">millrace bench</p><h1>{}</h1><p class=\"sub\">{machine}<br/>{}</p></header>",
        escape(&headline(docs)),
        escape(core::str::from_utf8(&base::utc::text(at)).unwrap_or(""))
    );
    for doc in docs {
        section(&mut out, doc);
    }
    machines(&mut out, docs);
    out.push_str("</main></body></html>\n");
    out
}

/// What the report is about, in a line.
fn headline(docs: &[Doc]) -> String {
    let has = |f: fn(&Doc) -> bool| docs.iter().any(f);
    match (has(|d| d.ladder.is_some()), has(|d| d.sweep.is_some()), has(|d| d.drives.is_some())) {
        (true, _, _) => "What each layer costs".into(),
        (_, true, _) => "Where the knee is".into(),
        (_, _, true) => "Whether the drives add up".into(),
        _ => "Measured".into(),
    }
}

fn section(out: &mut String, doc: &Doc) {
    if let Some(ladder) = &doc.ladder {
        climb(out, ladder);
    }
    if let Some(sweep) = &doc.sweep {
        swept(out, sweep);
    }
    if let Some(drives) = &doc.drives {
        grown(out, drives);
    }
    if let Some(hosts) = &doc.hosts {
        together(out, hosts);
    }
    if !doc.notes.is_empty() {
        out.push_str("<ul class=\"notes\">");
        for note in &doc.notes {
            let _ = write!(out, "<li>{}</li>", escape(note));
        }
        out.push_str("</ul>");
    }
    let _ = write!(out, "<pre class=\"command\"><code>$ {}</code></pre>", escape(&doc.command));
}

fn card(out: &mut String, what: &str, value: &str, aside: &str) {
    let [what, value, aside] = [what, value, aside].map(escape);
    let _ = write!(
        out,
        "<div class=\"card\"><p class=\"what\">{what}</p><p class=\"big\">{value}</p><p class=\"aside\">{aside}</p></div>"
    );
}

fn climb(out: &mut String, ladder: &Ladder) {
    let _ = write!(
        out,
        "<section><h2>The ladder</h2><p class=\"lead\">{}. Every step carries the same load; each stands on the ones above it.</p>",
        escape(&ladder.subject())
    );
    out.push_str("<div class=\"cards\">");
    for name in ["drive", "volume", "nvme", "iscsi"] {
        if let Some(step) = ladder.steps.iter().find(|s| s.name == name) {
            let alone = format!("alone {}", micros_fine(step.alone.total.mean_us));
            card(out, title(name), &ladder.rate_text(&step.deep), &alone);
        }
    }
    out.push_str("</div>");
    let class = |name: &str| match name {
        "drive" => "c0",
        "array" => "c1",
        "pool" => "c2",
        "volume" => "c3",
        "nvme" => "c4",
        _ => "c5",
    };
    let bars: Vec<Bar> = ladder
        .steps
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let spent = s.deep.target_ns.map_or(String::new(), |ns| format!("{ns:.0} ns CPU"));
            let added = ladder.added(i).map_or(String::new(), |n| format!(" ({n:+.0})"));
            Bar {
                label: title(&s.name).into(),
                value: ladder.rate(&s.deep),
                text: ladder.rate_text(&s.deep),
                aside: format!("{spent}{added}"),
                class: class(&s.name),
            }
        })
        .collect();
    let unit = if ladder.block_bytes >= LARGE { "MB/s" } else { "Operations a second" };
    let _ = write!(
        out,
        "<figure>{}<figcaption>{unit}, with the CPU time of the target's threads for each operation and what the step adds to the one below it.</figcaption></figure>",
        svg::bars("Rate of each step", &bars)
    );
    let marks: Vec<Marks> = ladder
        .steps
        .iter()
        .map(|s| {
            let t = &s.deep.total;
            let at = [t.p50_us, t.p90_us, t.p99_us, t.p999_us, t.max_us];
            Marks { label: title(&s.name).into(), alone: s.alone.total.mean_us, at }
        })
        .collect();
    out.push_str("<h3>Latency</h3><figure>");
    out.push_str(&svg::latencies("Latency of each step", &marks));
    out.push_str("<figcaption class=\"legend\"><span class=\"k alone\">◆</span> one operation alone, mean &#160; <span class=\"k p0\">●</span> p50 <span class=\"k p1\">●</span> p90 <span class=\"k p2\">●</span> p99 <span class=\"k p3\">●</span> p99.9 <span class=\"k p4\">●</span> slowest, at full depth</figcaption></figure>");
    out.push_str("<div class=\"wide\"><table><thead><tr><th>step</th><th>IOPS</th><th>MB/s</th><th>CPU/op</th><th>alone</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>slowest</th><th>cores busy</th></tr></thead><tbody>");
    for step in &ladder.steps {
        let t = &step.deep.total;
        let _ = write!(out, "<tr><th>{}</th>", escape(title(&step.name)));
        let busy = match (step.deep.target_busy, step.deep.client_busy) {
            (Some(a), Some(b)) => format!("{a:.2} + {b:.2}"),
            (Some(a), None) => format!("{a:.2}"),
            _ => "–".into(),
        };
        for cell in [
            print_count(t.iops as u64),
            format!("{:.0}", t.mb_per_s),
            step.deep.target_ns.map_or("–".into(), |n| format!("{n:.0} ns")),
            micros_fine(step.alone.total.mean_us),
            micros(t.p50_us),
            micros(t.p90_us),
            micros(t.p99_us),
            micros(t.p999_us),
            micros(t.max_us),
            busy,
        ] {
            let _ = write!(out, "<td>{}</td>", escape(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    let staged: Vec<&Step> = ladder.steps.iter().filter(|s| !s.stages.is_empty()).collect();
    if let Some(first) = staged.first() {
        out.push_str(
            "<h3>Where the time goes</h3><div class=\"wide\"><table><thead><tr><th>step</th><th>in all</th>",
        );
        for stage in &first.stages {
            let _ = write!(out, "<th>{}</th>", escape(&stage.stage));
        }
        out.push_str("</tr></thead><tbody>");
        for step in &staged {
            let all: f64 = step.stages.iter().map(|s| s.mean_us).sum();
            let _ = write!(out, "<tr><th>{}</th>", escape(title(&step.name)));
            for us in [all].into_iter().chain(step.stages.iter().map(|s| s.mean_us)) {
                let _ = write!(out, "<td>{}</td>", escape(&print_ns((us * 1e3) as u64)));
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div><p>Mean of the commands that were timed inside the head, one in 64, from their arrival until their answer was gone: waiting for memory and the host's data, for a place at the array, in the array, at the drive, and for the answer to go.</p>");
    }
    for step in ladder.steps.iter().filter(|s| s.deep.paths.len() > 1) {
        paths(out, title(&step.name), &step.deep);
    }
    out.push_str("</section>");
}

/// Heat maps: depth across, connections down.
fn swept(out: &mut String, sweep: &Sweep) {
    let _ = write!(
        out,
        "<section><h2>The sweep</h2><p class=\"lead\">{} on {}. In each field the rate and the latency that 99 of 100 operations did not exceed; the frame is the knee: the least load with 95 % of the best rate.</p>",
        escape(&sweep.rw),
        escape(&sweep.target)
    );
    for block in sweep.blocks() {
        let points = sweep.of(block);
        let sorted = |mut all: Vec<u16>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        let jobs = sorted(points.iter().map(|p| p.jobs).collect());
        let depths = sorted(points.iter().map(|p| p.depth).collect());
        let best = points.iter().map(|p| p.run.total.iops).fold(0.0, f64::max).max(1e-9);
        let knee = sweep.knee(block).map(|p| (p.jobs, p.depth));
        let field = |j: &u16, d: &u16| {
            let point = points.iter().find(|p| (p.jobs, p.depth) == (*j, *d))?;
            Some(Field {
                part: point.run.total.iops / best,
                text: Sweep::rate_text(point),
                aside: format!("p99 {}", micros(point.run.total.p99_us)),
                marked: knee == Some((*j, *d)),
            })
        };
        let fields: Vec<Option<Field>> =
            jobs.iter().flat_map(|j| depths.iter().map(move |d| (j, d))).map(|(j, d)| field(j, d)).collect();
        let rows: Vec<String> = jobs.iter().map(|j| crate::screen::count((*j).into(), "job")).collect();
        let columns: Vec<String> = depths.iter().map(|d| format!("depth {d}")).collect();
        let size = print(block.into());
        let title = format!("Rate by depth and jobs, blocks of {size}");
        let _ = write!(
            out,
            "<h3>Blocks of {}</h3><figure>{}</figure>",
            escape(&size),
            svg::heat(&title, &rows, &columns, &fields)
        );
        for point in points.iter().filter(|p| knee == Some((p.jobs, p.depth)) && p.run.paths.len() > 1) {
            paths(out, &format!("at the knee, {} × {}", point.jobs, point.depth), &point.run);
        }
    }
    out.push_str("</section>");
}

/// 1..n drives.
fn grown(out: &mut String, drives: &Drives) {
    let _ = write!(
        out,
        "<section><h2>The drives</h2><p class=\"lead\">{}. The thin line is their sum.</p>",
        escape(&drives.subject())
    );
    let points: Vec<(f64, f64, f64)> = drives
        .together
        .iter()
        .map(|t| (t.drives as f64, drives.rate(&t.run), drives.sum(t.drives)))
        .collect();
    let words =
        |v: f64| if drives.block_bytes >= LARGE { format!("{v:.0} MB/s") } else { print_count(v as u64) };
    let _ = write!(out, "<figure>{}</figure>", svg::growth("Rate of 1 to n drives", &points, words));
    if !drives.alone.is_empty() {
        let bar = |(name, run): (&String, &Measured)| Bar {
            label: shortened(name),
            value: drives.rate(run),
            text: drives.rate_text(run),
            aside: format!("p99 {}", micros(run.total.p99_us)),
            class: "c0",
        };
        let bars: Vec<Bar> = drives.drives.iter().zip(&drives.alone).map(bar).collect();
        let _ = write!(out, "<h3>Each alone</h3><figure>{}</figure>", svg::bars("Each drive alone", &bars));
    }
    for fio in drives.fio.iter().flatten() {
        let _ = write!(
            out,
            "<p class=\"beside\">{} beside ours: {} IOPS, {:.0} MB/s, p99 {}</p><pre class=\"command\"><code>$ {}</code></pre>",
            escape(&fio.version),
            escape(&print_count(fio.total.iops as u64)),
            fio.total.mb_per_s,
            escape(&micros(fio.total.p99_us)),
            escape(&fio.command)
        );
    }
    if let Some(all) = drives.together.last().filter(|t| t.run.paths.len() > 1) {
        paths(out, "all together", &all.run);
    }
    out.push_str("</section>");
}

/// Several hosts.
fn together(out: &mut String, hosts: &Hosts) {
    let all = hosts.together();
    let _ = write!(
        out,
        "<section><h2>The hosts</h2><p class=\"lead\">{} together: {} IOPS, {:.0} MB/s. Each did {}.</p>",
        escape(&crate::screen::count(hosts.hosts.len(), "host")),
        escape(&print_count(all.total.iops as u64)),
        all.total.mb_per_s,
        escape(&hosts.load)
    );
    let bars: Vec<Bar> = hosts
        .hosts
        .iter()
        .map(|(name, r)| Bar {
            label: shortened(name),
            value: r.total.iops,
            text: format!("{} IOPS", print_count(r.total.iops as u64)),
            aside: format!("p99 {}", micros(r.total.p99_us)),
            class: "c4",
        })
        .collect();
    let _ = write!(out, "<figure>{}</figure>", svg::bars("Rate of each host", &bars));
    paths(out, "every connection", &all);
    out.push_str("</section>");
}

/// The end of a long name, which tells more than its beginning.
fn shortened(name: &str) -> String {
    const MOST: usize = 18;
    let n = name.chars().count();
    if n <= MOST {
        name.into()
    } else {
        format!("…{}", name.chars().skip(n - MOST + 1).collect::<String>())
    }
}

/// Every path apart.
fn paths(out: &mut String, of: &str, run: &Measured) {
    let best = run.paths.iter().map(|p| p.figures.iops).fold(0.0, f64::max).max(1e-9);
    let _ = write!(
        out,
        "<details><summary>{}: {} paths</summary><div class=\"wide\"><table><thead><tr><th>path</th><th>IOPS</th><th></th><th>MB/s</th><th>p50</th><th>p99</th><th>slowest</th></tr></thead><tbody>",
        escape(of),
        run.paths.len()
    );
    for path in &run.paths {
        let f = &path.figures;
        let _ = write!(
            out,
            "<tr><th>{}</th><td>{}</td><td class=\"spark\"><span style=\"width:{:.0}%\"></span></td><td>{:.0}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&path.name),
            escape(&print_count(f.iops as u64)),
            f.iops / best * 100.0,
            f.mb_per_s,
            escape(&micros(f.p50_us)),
            escape(&micros(f.p99_us)),
            escape(&micros(f.max_us)),
        );
    }
    out.push_str("</tbody></table></div></details>");
}

fn machines(out: &mut String, docs: &[Doc]) {
    let Some(m) = docs.first().map(|d| &d.machine) else { return };
    out.push_str("<section><h2>The machine</h2><dl>");
    let kind = if m.virtual_machine { " (virtual machine)" } else { "" };
    for (name, value) in [
        ("processor", format!("{}{kind}", m.cpu)),
        ("cores", m.cores.to_string()),
        ("memory", print(m.memory)),
        ("kernel", m.kernel.clone()),
        ("system", m.system.clone()),
        ("governor", m.governor.clone().unwrap_or_else(|| "not told".into())),
        ("load before", format!("{:.2}", m.load)),
        ("millrace", format!("{} ({})", m.version, m.build)),
    ] {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&value));
    }
    out.push_str("</dl></section>");
}

#[cfg(test)]
mod tests {
    use super::svg::tests::well_formed;
    use super::*;
    use crate::bench::result::figures::Path;
    use crate::bench::result::ladder::StageMean;
    use crate::bench::result::report::Figures;

    /// A ladder with names that would break a page.
    fn doc() -> Doc {
        let run = |iops: f64| Measured {
            total: Figures { iops, p50_us: 3.0, max_us: 900.0, ..Figures::default() },
            paths: ["<a>", "b & c"]
                .map(|n| Path { name: n.into(), figures: Figures { iops, ..Figures::default() } })
                .to_vec(),
            target_ns: Some(1e9 / iops),
            ..Measured::default()
        };
        let step = |(i, name): (usize, &str)| Step {
            name: name.into(),
            deep: run(1e6 / (i + 1) as f64),
            alone: run(1e4),
            stages: vec![StageMean { stage: "drive".into(), mean_us: 2.5 }],
        };
        let names = ["drive", "array", "pool", "volume", "nvme", "iscsi"];
        let ladder = Ladder {
            drives: vec!["file:/x?size=1G&block=512".into()],
            steps: names.into_iter().enumerate().map(step).collect(),
            ..Ladder::default()
        };
        let notes = vec!["1 < 2 & \"quoted\"".into()];
        let point = |depth: u16| crate::bench::result::sweep::Point {
            block_bytes: 4096,
            jobs: 2,
            depth,
            run: run(f64::from(depth)),
        };
        let sweep = Sweep { target: "a<b".into(), rw: "rw".into(), points: [1, 8, 9].map(point).to_vec() };
        let together =
            |drives: usize| crate::bench::result::drives::Together { drives, run: run(drives as f64) };
        let drives = Drives {
            drives: vec!["a & a very long name of a drive".into(), "b".into()],
            alone: vec![run(1.0), run(2.0)],
            together: vec![together(1), together(2)],
            ..Drives::default()
        };
        let (sweep, drives) = (Some(sweep), Some(drives));
        Doc {
            ladder: Some(ladder),
            sweep,
            drives,
            notes,
            command: "millrace '<x>'".into(),
            ..Doc::begin("ladder")
        }
    }

    #[test]
    fn the_page_is_well_formed_and_fetches_nothing() {
        let page = page(&[doc(), Doc::begin("nothing")]);
        well_formed(&page);
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("over NVMe/TCP") && page.contains("&lt;a&gt;"), "escaped, and there");
        well_formed(&super::page(&[]));
    }
}
