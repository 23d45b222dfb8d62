//! How figures look: as lines, in a pipe or on a terminal.

use super::figures::{By, Column, Figures, Row, Unit, Value, matches};
use super::view::View;
use crate::cli::times::time;
use crate::screen::{Cell, Line, Look, Table, Terminal, columns, count, look_of};
use base::size::{print, print_count, print_ns, print_rate, print_seconds};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// What a table calls the things that it has rows of.
fn heading(by: By) -> &'static str {
    match by {
        By::Volume => "VOLUME",
        By::Host => "HOST",
        By::Path => "PATH",
        By::Connection => "CONNECTION",
        By::Drive => "DRIVE",
        By::Shard => "SHARD",
        By::Head => "HEAD",
    }
}

/// Rows in their order, without those that the filter leaves out.
pub fn rows(figures: &Figures, view: &View) -> Vec<Row> {
    let mut rows = figures.rows(view.by);
    rows.retain(|row| matches(row, &view.filter));
    view.sort.sort(view.by, &mut rows);
    rows
}

/// The table of rows.
pub fn table(by: By, rows: &[Row]) -> Table {
    let heads: Vec<&'static str> = by
        .columns()
        .iter()
        .map(|column| if *column == Column::Name { heading(by) } else { column.heading() })
        .collect();
    let mut table = Table::new(&heads).short_names(14);
    for group in optional(by) {
        table = table.optional(group);
    }
    for row in rows {
        table.row(by.columns().iter().zip(&row.0).map(|(column, value)| cell(column.unit(), value)));
    }
    table
}

/// What goes first when there is no room.
fn optional(by: By) -> &'static [&'static [&'static str]] {
    match by {
        By::Volume | By::Drive => {
            &[&["READ p99", "WRITE p99"], &["COMMANDS/S"], &["ERRORS"], &["DEPTH"], &["STATE"]]
        }
        By::Shard => &[&["LONGEST TURN"], &["BUFFERS"]],
        By::Head => &[&["LANES"], &["ERRORS"], &["DRIVE OPS"], &["HOSTS"]],
        By::Connection => &[&["QUEUE"], &["SHARD"]],
        By::Path => &[
            &["READ p99", "WRITE p99"],
            &["QUEUE MEAN"],
            &["READ/S", "WRITTEN/S"],
            &["CONNECTIONS"],
            &["COMMANDS/S"],
        ],
        By::Host => &[&["READ p99", "WRITE p99"], &["QUEUE MEAN"], &["READ/S", "WRITTEN/S"], &["COMMANDS/S"]],
    }
}

fn cell(unit: Unit, value: &Value) -> Cell {
    let n = match value {
        Value::None => return Cell::new(Look::Dim, "-"),
        Value::Word(word) => return word.as_str().into(),
        Value::State(state) => return Cell::state(*state),
        Value::Number(n) => *n,
    };
    let whole = n.round() as u64;
    let text = match unit {
        Unit::Ns => return time(whole),
        Unit::Errors => return Cell::errors(whole),
        Unit::Word | Unit::Count | Unit::Rate => print_count(whole),
        Unit::Mean if n < 9.95 => format!("{n:.1}"),
        Unit::Mean => print_count(whole),
        Unit::Bytes => print(whole),
        Unit::ByteRate => print_rate(whole),
        Unit::Share => format!("{:.0} %", n * 100.0),
    };
    // Nothing at all is dimmed, so that the eye finds the rest.
    Cell::new(if whole == 0 && unit != Unit::Share { Look::Dim } else { Look::Plain }, text)
}

/// What is above the table: health, what all volumes do, and the first thing that is wrong.
pub fn head(figures: &Figures, terminal: Terminal) -> Vec<Line> {
    let status = figures.status();
    let health = (look_of(status.health), format!("● {}", crate::words::health(status)));
    let facts = format!("  up {} · {}", print_seconds(status.uptime_seconds), status.at);
    let first =
        vec![(Look::Bold, "millrace".to_string()), (Look::Plain, "  ".into()), health, (Look::Dim, facts)];
    let t = figures.totals();
    let rate = |n: f64| print_rate(n.round() as u64);
    let known = [
        t.commands.map(|n| format!("{} IOPS", print_count(n.round() as u64))),
        t.read_bytes.map(|n| format!("read {}", rate(n))),
        t.write_bytes.map(|n| format!("written {}", rate(n))),
        t.mean_ns.map(|ns| format!("mean {}", print_ns(ns.round() as u64))),
        t.p50_ns.map(|ns| format!("p50 up to {}", print_ns(ns))),
        t.p99_ns.map(|ns| format!("p99 up to {}", print_ns(ns))),
        t.cpu.map(|(busy, cores)| format!("cpu {busy:.1} of {}", count(cores, "core"))),
    ];
    let mut second = String::from(" ");
    for fact in known.into_iter().flatten() {
        let joint = if second.len() > 1 { " · " } else { " " };
        if columns(&second) + columns(joint) + columns(&fact) <= terminal.width() {
            second = second + joint + &fact;
        }
    }
    if second.len() == 1 {
        second.push_str(" no rates yet");
    }
    let mut lines = vec![first, vec![(Look::Plain, second)]];
    if let Some(reason) = status.reasons.first() {
        let what = (look_of(reason.state), format!("  {}: ", reason.what));
        lines.push(vec![what, (Look::Plain, reason.message.clone())]);
    }
    lines
}

/// What is shown, beside what could be, and its order.
fn choices(view: &View) -> Line {
    let mut line = vec![];
    for by in By::ALL {
        let (look, open, close) = if by == view.by { (Look::Bold, "[", "]") } else { (Look::Dim, " ", " ") };
        line.push((look, format!("{open}{}s{close}", by.word())));
    }
    let column = view.sort.column_of(view.by).word();
    let way = if view.sort.reverse { ", reversed" } else { "" };
    line.push((Look::Dim, format!("  by {column}{way}")));
    if !view.filter.is_empty() && !view.is_typing {
        line.push((Look::Warn, format!("  with \"{}\"", view.filter)));
    }
    line
}

/// Keys, as far as there is room.
const HELP: &str =
    "v h p c d s n: what is shown · < >: sort · r: reverse · /: filter · ↑ ↓: scroll · q: quit";
const SHORT_HELP: &str = "v h p c d s n: show · < > r: sort · / filter · ↑ ↓ scroll · q quit";

/// The screen. `trouble`: why the figures are old.
pub fn draw(
    figures: &Figures,
    view: &View,
    trouble: Option<&str>,
    colours: bool,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let terminal = Terminal::plain(width);
    let mut lines = head(figures, terminal);
    if let Some(trouble) = trouble {
        lines.push(vec![(Look::Bad, format!("  {trouble}"))]);
    }
    lines.push(vec![]);
    lines.push(choices(view));
    let rows = rows(figures, view);
    let mut table = table(view.by, &rows).lines(terminal, 0).into_iter();
    lines.extend(table.next());
    // The last line is for keys.
    let room = height.saturating_sub(lines.len() + 1);
    let scroll = view.scroll.min(rows.len().saturating_sub(room));
    lines.extend(table.skip(scroll).take(room));
    if rows.is_empty() {
        lines.push(vec![(Look::Dim, "none".into())]);
    }
    lines.truncate(height.saturating_sub(1));
    lines.resize(height.saturating_sub(1), vec![]);
    let help = if columns(HELP) <= width { HELP } else { SHORT_HELP };
    let keys = if view.is_typing {
        (Look::Bold, format!("/{}_", view.filter))
    } else {
        (Look::Dim, help.to_string())
    };
    lines.push(vec![keys]);
    for (y, line) in (area.y..area.bottom()).zip(&lines) {
        let mut x = area.x;
        for (look, text) in line {
            let left = usize::from(area.right().saturating_sub(x));
            (x, _) = buffer.set_stringn(x, y, text, left, style(*look, colours));
        }
    }
}

/// How a look is shown. Without colours every word is still there; what matters is bold.
fn style(look: Look, colours: bool) -> Style {
    let colour = |style: Style, colour| if colours { style.fg(colour) } else { style };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match look {
        Look::Plain => Style::new(),
        Look::Bold => bold,
        Look::Dim => Style::new().add_modifier(Modifier::DIM),
        Look::Good => colour(Style::new(), Color::Green),
        Look::Warn => colour(bold, Color::Yellow),
        Look::Bad => colour(bold, Color::Red),
    }
}

/// The same for a pipe: one table, and what is above it.
pub fn plain(figures: &Figures, view: &View, terminal: Terminal) -> String {
    let rows = rows(figures, view);
    let mut out: String = head(figures, terminal).iter().map(|line| terminal.line(line) + "\n").collect();
    out.push_str(&table(view.by, &rows).print(terminal, 0));
    out + "\n"
}
