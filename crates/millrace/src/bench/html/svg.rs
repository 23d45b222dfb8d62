//! Plots as inline SVG. Colours are those of the page (CSS variables), so that both of its looks fit.

use crate::bench::result::report::micros_fine;
use std::fmt::Write;
use topology::escape;

/// One bar of a chart.
pub struct Bar {
    /// Beside it, on the left.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// Behind its end.
    pub text: String,
    /// Dim, behind the text.
    pub aside: String,
    /// Its colour: a class of the page.
    pub class: &'static str,
}

const WIDTH: f64 = 880.0;

/// Bars below each other, all from zero.
pub fn bars(title: &str, bars: &[Bar]) -> String {
    const LEFT: f64 = 150.0;
    const RIGHT: f64 = 270.0;
    const STEP: f64 = 40.0;
    let best = bars.iter().map(|b| b.value).fold(0.0, f64::max).max(1e-9);
    let height = bars.len() as f64 * STEP + 8.0;
    let mut out = open(title, height);
    for (i, bar) in bars.iter().enumerate() {
        let y = i as f64 * STEP + 6.0;
        let width = (bar.value / best * (WIDTH - LEFT - RIGHT)).max(2.0);
        let middle = y + 17.0;
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{middle:.1}\" class=\"label end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"26\" rx=\"3\" class=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{middle:.1}\" class=\"value\">{}<tspan class=\"aside\" dx=\"10\">{}</tspan></text>",
            LEFT - 12.0,
            escape(&bar.label),
            bar.class,
            LEFT + width + 10.0,
            escape(&bar.text),
            escape(&bar.aside),
        );
    }
    out + "</svg>"
}

/// A row of a latency plot: marks on a logarithmic scale of microseconds.
pub struct Marks {
    /// Beside it, on the left.
    pub label: String,
    /// One operation alone.
    pub alone: f64,
    /// p50, p90, p99, p99.9, the slowest.
    pub at: [f64; 5],
}

/// Latencies: for each row a line from the median to the slowest, with a mark for each percentile.
pub fn latencies(title: &str, rows: &[Marks]) -> String {
    const LEFT: f64 = 150.0;
    const RIGHT: f64 = 40.0;
    const STEP: f64 = 36.0;
    let all = || rows.iter().flat_map(|r| r.at.into_iter().chain([r.alone])).filter(|v| *v > 0.0);
    let low = 10f64.powf(all().fold(f64::INFINITY, f64::min).clamp(1e-3, 1e9).log10().floor());
    let high = 10f64.powf(all().fold(0.0, f64::max).clamp(1e-3, 1e9).log10().ceil()).max(low * 10.0);
    let span = (high / low).log10();
    let x = |us: f64| LEFT + (us.max(low) / low).log10() / span * (WIDTH - LEFT - RIGHT);
    let bottom = rows.len() as f64 * STEP + 6.0;
    let mut out = open(title, bottom + 34.0);
    let mut tick = low;
    while tick <= high * 1.001 {
        let at = x(tick);
        let _ = write!(
            out,
            "<line x1=\"{at:.1}\" y1=\"0\" x2=\"{at:.1}\" y2=\"{bottom:.1}\" class=\"grid\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" class=\"tick\">{}</text>",
            bottom + 18.0,
            escape(&decade(tick)),
        );
        tick *= 10.0;
    }
    for (i, row) in rows.iter().enumerate() {
        let y = i as f64 * STEP + 20.0;
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"label end\">{}</text>",
            LEFT - 12.0,
            y + 4.5,
            escape(&row.label)
        );
        let shown: Vec<f64> = row.at.into_iter().filter(|v| *v > 0.0).collect();
        if let (Some(first), Some(last)) = (shown.first(), shown.last()) {
            let _ = write!(
                out,
                "<line x1=\"{:.1}\" y1=\"{y}\" x2=\"{:.1}\" y2=\"{y}\" class=\"whisker\"/>",
                x(*first),
                x(*last)
            );
        }
        if row.alone > 0.0 {
            let at = x(row.alone);
            let _ = write!(
                out,
                "<path d=\"M{at:.1} {:.1} l6 7 l-6 7 l-6 -7 z\" class=\"alone\"><title>alone, mean {}</title></path>",
                y - 7.0,
                escape(&micros_fine(row.alone))
            );
        }
        for (j, (us, name)) in row.at.iter().zip(["p50", "p90", "p99", "p99.9", "slowest"]).enumerate() {
            if *us > 0.0 {
                let _ = write!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"5.5\" class=\"p{j}\"><title>{name} {}</title></circle>",
                    x(*us),
                    escape(&micros_fine(*us))
                );
            }
        }
    }
    out + "</svg>"
}

/// A field of a heat map.
pub struct Field {
    /// Warmth, 0 to 1.
    pub part: f64,
    /// In the field.
    pub text: String,
    /// Below the text, smaller.
    pub aside: String,
    /// It has a frame.
    pub marked: bool,
}

/// A map of `rows` by `columns`; `fields` row by row, None where nothing was measured.
pub fn heat(title: &str, rows: &[String], columns: &[String], fields: &[Option<Field>]) -> String {
    const LEFT: f64 = 110.0;
    const TOP: f64 = 28.0;
    const TALL: f64 = 54.0;
    let wide = ((WIDTH - LEFT) / columns.len().max(1) as f64).min(170.0);
    let mut out = open(title, TOP + rows.len() as f64 * TALL + 4.0);
    for (i, column) in columns.iter().enumerate() {
        let x = LEFT + (i as f64 + 0.5) * wide;
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"16\" class=\"tick\">{}</text>", escape(column));
    }
    for (j, row) in rows.iter().enumerate() {
        let y = TOP + j as f64 * TALL;
        let (x, middle) = (LEFT - 12.0, y + TALL / 2.0 + 4.0);
        let _ = write!(out, "<text x=\"{x}\" y=\"{middle:.1}\" class=\"label end\">{}</text>", escape(row));
    }
    // What is framed comes last, so that its neighbours do not cover the frame.
    let at = |i: usize| (LEFT + (i % columns.len()) as f64 * wide, TOP + (i / columns.len()) as f64 * TALL);
    let known = || fields.iter().enumerate().filter_map(|(i, f)| Some((i, f.as_ref()?)));
    for (i, field) in known().filter(|(_, f)| !f.marked).chain(known().filter(|(_, f)| f.marked)) {
        let ((x, y), middle) = (at(i), at(i).0 + wide / 2.0);
        let part = field.part.clamp(0.0, 1.0);
        let warm = if part > 0.75 { "warm" } else { "cool" };
        let frame = if field.marked { " marked" } else { "" };
        let _ = write!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\" class=\"field{frame}\" fill-opacity=\"{:.2}\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" class=\"middle {warm}\">{}</text>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" class=\"middle small {warm}\">{}</text>",
            x + 2.0,
            y + 2.0,
            wide - 4.0,
            TALL - 4.0,
            0.06 + 0.94 * part * part,
            y + TALL / 2.0,
            escape(&field.text),
            y + TALL / 2.0 + 16.0,
            escape(&field.aside),
        );
    }
    out + "</svg>"
}

/// A curve over counts, beside the straight line that it would be.
pub fn growth(title: &str, points: &[(f64, f64, f64)], words: impl Fn(f64) -> String) -> String {
    const LEFT: f64 = 96.0;
    const TALL: f64 = 260.0;
    let best = points.iter().map(|p| p.1.max(p.2)).fold(0.0, f64::max).max(1e-9);
    let last = points.iter().map(|p| p.0).fold(1.0, f64::max);
    let x = |n: f64| LEFT + n / last * (WIDTH - LEFT - 40.0);
    let y = |v: f64| 14.0 + (1.0 - v / best) * (TALL - 14.0);
    let mut out = open(title, TALL + 30.0);
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y(best * part);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"tick end\">{}</text>",
            WIDTH - 40.0,
            LEFT - 10.0,
            at + 4.0,
            escape(&words(best * part))
        );
    }
    let line = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
        let all: Vec<String> = points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(of(p)))).collect();
        format!("{:.1},{:.1} {}", x(0.0), y(0.0), all.join(" "))
    };
    let _ = write!(
        out,
        "<polyline points=\"{}\" class=\"ideal\"/><polyline points=\"{}\" class=\"curve\"/>",
        line(&|p| p.2),
        line(&|p| p.1)
    );
    for (n, value, _) in points {
        let _ = write!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" class=\"c3\"><title>{n}: {}</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{n}</text>",
            x(*n),
            y(*value),
            escape(&words(*value)),
            x(*n),
            TALL + 20.0
        );
    }
    out + "</svg>"
}

fn decade(us: f64) -> String {
    match us {
        ..0.9 => format!("{:.0} ns", us * 1e3),
        ..900.0 => format!("{us:.0} µs"),
        ..900_000.0 => format!("{:.0} ms", us / 1e3),
        _ => format!("{:.0} s", us / 1e6),
    }
}

fn open(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>"
    )
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Panics unless every tag is closed in order, attributes are quoted, and nothing is fetched.
    pub fn well_formed(text: &str) {
        let mut open: Vec<String> = vec![];
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            assert!(!rest[..at].contains('>'), "a bare > before {:.60}", &rest[at..]);
            let end = rest.find('>').unwrap_or_else(|| panic!("a tag without end: {:.60}", &rest[at..]));
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if tag.starts_with('!') {
                continue;
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
            let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name").to_string();
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(closed), "closed out of order");
            } else if !tag.ends_with('/') && !["meta", "br", "link"].contains(&&name[..]) {
                if name == "style" {
                    let end = rest.find("</style>").expect("a style ends");
                    rest = &rest[end + "</style>".len()..];
                } else {
                    open.push(name);
                }
            }
        }
        assert_eq!(open, Vec::<String>::new(), "left open");
        for fetched in ["http://", "https://", "url(", "@import", "<script", "src="] {
            assert!(!text.contains(fetched), "{fetched} in the report");
        }
    }

    #[test]
    fn plots_are_well_formed_whatever_they_are_called() {
        let bar = |value: f64| Bar {
            label: "<a & 'b'>".into(),
            value,
            text: "\"1\"".into(),
            aside: String::new(),
            class: "c0",
        };
        well_formed(&bars("x < y", &[bar(3.0), bar(0.0)]));
        well_formed(&bars("nothing", &[]));
        let marks = |at: [f64; 5]| Marks { label: "&".into(), alone: 0.4, at };
        well_formed(&latencies("l", &[marks([1.0, 2.0, 3.0, 4.0, 5e6]), marks([0.0; 5])]));
        well_formed(&latencies("none", &[]));
        let field = || Field { part: 0.7, text: "<".into(), aside: "&".into(), marked: true };
        well_formed(&heat("h", &["1".into()], &["a<b".into(), "c".into()], &[Some(field()), None]));
        well_formed(&heat("none", &[], &[], &[]));
        well_formed(&growth("g", &[(1.0, 5.0, 5.0), (2.0, 7.0, 10.0)], |v| format!("<{v}>")));
        well_formed(&growth("none", &[], |_| String::new()));
    }

    #[test]
    fn the_longest_bar_fills_its_room_and_the_others_are_in_proportion() {
        let bar = |value: f64| Bar {
            label: String::new(),
            value,
            text: String::new(),
            aside: String::new(),
            class: "c0",
        };
        let text = bars("t", &[bar(10.0), bar(5.0)]);
        assert!(text.contains("width=\"460.0\"") && text.contains("width=\"230.0\""), "{text}");
    }
}
