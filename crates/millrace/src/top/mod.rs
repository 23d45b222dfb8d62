//! `millrace top`: live figures of a head, on a terminal, in a pipe, or as JSON.

mod figures;
mod live;
mod reading;
mod screen;
mod view;

use crate::arguments::count_in;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::put;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use figures::{By, Column, Figures, Sort};
use reading::Reader;
use std::io::IsTerminal;
use std::time::Duration;
use view::View;

/// `millrace top`.
#[derive(Args, Debug)]
#[command(after_help = "\
On a terminal, keys switch between volumes (v), hosts (h), paths (p), connections (c), drives (d), shards (s) and heads (n); < and > choose the column to sort by, r reverses, / filters, q ends. A path is all that a host has over one portal.

Means are of the last interval; percentiles are of the last one to two minutes. One command in 64 is timed. Of all volumes together, the highest percentile of any is shown.

Examples:
  millrace top
  millrace top --by drive --sort read-mean  # the slowest reads first
  millrace top --by host --filter esx
  millrace top --plain --interval 5s | tee top.txt
  millrace top --count 1 --json | jq .total")]
pub struct TopArgs {
    /// What to show one row each for
    #[arg(long, value_name = "WHAT", default_value = "volume", value_parser = by_parser())]
    by: By,
    /// Sort by this column [default: commands]
    #[arg(long, value_name = "COLUMN", value_parser = column_parser())]
    sort: Option<Column>,
    /// Reverse the order, which is largest first, and of words alphabetical
    #[arg(long)]
    reverse: bool,
    /// Show only rows with this text in a name, state or protocol
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Time between two readings
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print one table each interval, as in a pipe
    #[arg(long)]
    plain: bool,
    /// Print so many tables, then end
    #[arg(long, value_name = "NUMBER", value_parser = count_in::<u64>(1..=1_000_000_000))]
    count: Option<u64>,
}

fn by_parser() -> impl TypedValueParser<Value = By> {
    PossibleValuesParser::new(By::ALL.map(By::word)).map(|word| By::of(&word).expect("one of them"))
}

fn column_parser() -> impl TypedValueParser<Value = Column> {
    PossibleValuesParser::new(Column::ALL.map(Column::word))
        .map(|word| Column::of(&word).expect("one of them"))
}

/// `500ms`, `1s`, `0.5`: seconds without a unit.
fn interval(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not a time from 100ms to 3600s, such as 1s or 500ms");
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * scale;
    if (0.1..=3600.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}

/// Carries it out.
pub fn run(args: &TopArgs, context: Context) -> Result<(), Failure> {
    let columns = args.by.columns();
    if let Some(column) = args.sort.filter(|c| !columns.contains(c)) {
        let words: Vec<&str> = columns.iter().map(|c| c.word()).collect();
        let (by, column) = (args.by.word(), column.word());
        let what = format!("a {by} has no column {column}: it has {}", words.join(", "));
        return Err(Failure::usage(what).with_next(format!("millrace top --by {by}")));
    }
    let view = View {
        by: args.by,
        sort: Sort { column: args.sort, reverse: args.reverse },
        filter: args.filter.clone().unwrap_or_default(),
        ..View::default()
    };
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && !dumb;
    if terminal && !args.plain && !context.json && args.count.is_none() {
        let colours = context.terminal.has_colours();
        return live::run(view, args.interval, colours, Reader::new(context.client));
    }
    let (json, terminal) = (context.json, context.terminal);
    let reader = Reader::new(context.client);
    let mut before = reader.read()?;
    let mut left = args.count;
    loop {
        std::thread::sleep(args.interval);
        let now = reader.read()?;
        let figures = Figures::new(Some(&before), &now);
        let text = if json {
            format!("{}\n", figures.json(view.by, &screen::rows(&figures, &view)))
        } else {
            screen::plain(&figures, &view, terminal)
        };
        put(&text)?;
        before = now;
        left = left.map(|n| n - 1);
        if left == Some(0) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
