//! What the demo prints: steps, live figures, a bar, a table.

use super::HEADING;
use crate::bench::{Progress, Report};
use crate::screen::{Cell, Look, Table, Terminal, count};
use api::Resync;
use base::size::{print, print_count};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell as Slot;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Between two lines of figures where no line can be written over.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// A resync that has no rate by then is shown all the same: it may stand still.
const RATE_PATIENCE: Duration = Duration::from_secs(3);

/// The terminal, or a file.
pub struct Show {
    terminal: Terminal,
    /// Lines can be written over.
    live: bool,
    /// The story goes to stderr: stdout is for JSON alone.
    aside: bool,
    bars: MultiProgress,
    load: ProgressBar,
    printed_at: Slot<Option<Instant>>,
}

/// The bar of a resync.
pub struct ResyncBar<'a> {
    show: &'a Show,
    bar: ProgressBar,
    begun: Instant,
    printed_at: Slot<Option<Instant>>,
}

impl Show {
    /// A show on stdout; with `json`, on stderr.
    pub fn new(json: bool) -> Self {
        let live = std::io::stdout().is_terminal() && !json;
        let target = if live { ProgressDrawTarget::stdout() } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let load = bars.add(ProgressBar::new_spinner());
        load.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a good template"));
        Self { terminal: Terminal::for_stdout(), live, aside: json, bars, load, printed_at: Slot::new(None) }
    }
    /// A line above what moves.
    pub fn line(&self, text: &str) {
        // `suspend` takes the bars away while the line is printed. A reader that is gone is no failure
        // of the demo.
        self.bars.suspend(|| {
            if self.aside {
                eprintln!("{text}")
            } else {
                let _ = crate::output::put(&format!("{text}\n"));
            }
        });
    }
    /// A step of the story.
    pub fn say(&self, what: &str, text: &str) {
        self.line(&format!("{}  {text}", self.terminal.text(HEADING, &format!("{what:>8}"))));
    }
    /// The loads as they go.
    pub fn load(&self, all: &[(&str, Progress)]) {
        let one = |(name, p): &(&str, Progress)| match p.phase.as_str() {
            "measuring" => {
                let errors = match p.errors {
                    0 => String::new(),
                    n => format!(" {}", count(n as usize, "error")),
                };
                let (iops, p99) = (print_count(p.iops as u64), crate::bench::micros(p.p99_us));
                format!("{name} {iops} IOPS {:.0} MB/s p99 {p99}{errors}", p.mb_per_s)
            }
            other => {
                let done = p.done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
                let trouble = p.trouble.as_ref().map_or(String::new(), |t| format!(" ({t})"));
                format!("{name} {other}{done}{trouble}")
            }
        };
        let text = all.iter().map(one).collect::<Vec<_>>().join(" │ ");
        if self.live {
            self.load.set_message(text);
            self.load.tick();
        } else if due(&self.printed_at) {
            self.line(&format!("          {text}"));
        }
    }
    /// The loads are over.
    pub fn load_ends(&self) {
        self.load.finish_and_clear();
    }
    /// A bar for a resync.
    pub fn resync_bar(&self) -> ResyncBar<'_> {
        let bar = self.bars.add(ProgressBar::new(0));
        let template = "  resync ▕{bar:20.green}▏ {percent:>3} %  {msg}";
        bar.set_style(
            ProgressStyle::with_template(template).expect("a good template").progress_chars("█▉▊▋▌▍▎▏ "),
        );
        ResyncBar { show: self, bar, begun: Instant::now(), printed_at: Slot::new(None) }
    }
    /// The table of what was done.
    pub fn table(&self, reports: &[Report], what: &str) {
        let heads = [
            "PROTOCOL",
            ">IOPS",
            ">READ MB/S",
            ">WRITE MB/S",
            ">P50",
            ">P99",
            ">MAX",
            ">ERRORS",
            ">VERIFIED",
        ];
        let mut table = Table::new(&heads).optional(&["MAX"]);
        for r in reports {
            let look = |n: u64| if n == 0 { Look::Good } else { Look::Bad };
            table.row([
                Cell::new(Look::Bold, r.protocol.clone()),
                print_count(r.total.iops as u64).into(),
                format!("{:.0}", r.reads.mb_per_s).into(),
                format!("{:.0}", r.writes.mb_per_s).into(),
                crate::bench::micros(r.total.p50_us).into(),
                crate::bench::micros(r.total.p99_us).into(),
                crate::bench::micros(r.total.max_us).into(),
                Cell::new(look(r.errors), r.errors.to_string()),
                print_count(r.verified_blocks).into(),
            ]);
        }
        self.line(&format!("\n{}", table.print(self.terminal, 0)));
        let errors: u64 = reports.iter().map(|r| r.errors).sum();
        let verified: u64 = reports.iter().map(|r| r.verified_blocks).sum();
        let seconds = reports.iter().map(|r| r.seconds).fold(0.0, f64::max);
        let look = if errors == 0 { Look::Good } else { Look::Bad };
        let words = self.terminal.text(look, &format!("errors: {errors}"));
        self.line(&format!("{words}, {verified} blocks verified, {seconds:.0} s, {what}."));
    }
    /// How a host connects; `over`: the demo ends now.
    pub fn connect(&self, lines: &[String], over: bool) {
        if over {
            self.line("\nThis demo ends here, and its daemon with it. Without --once (make demo) it serves until Ctrl-C.");
        }
        let head =
            if over { "While it serves, a Linux host connects with:" } else { "A Linux host connects with:" };
        self.line(&format!("\n{}", self.terminal.text(HEADING, head)));
        for line in lines {
            self.line(&format!("  {line}"));
        }
    }
}

impl ResyncBar<'_> {
    /// How far it is.
    pub fn update(&self, r: &Resync) {
        // Before there is a rate there is nothing to say.
        if r.seconds_left.is_none() && self.begun.elapsed() < RATE_PATIENCE {
            return;
        }
        let pace = crate::cli::status::pace_words(r.done_bytes, r.rate, r.seconds_left);
        let text = format!("{} of {}  {pace}", print(r.done_bytes), print(r.total_bytes));
        if self.show.live {
            self.bar.set_length(r.total_bytes.max(1));
            self.bar.set_position(r.done_bytes.min(r.total_bytes));
            self.bar.set_message(text);
        } else if due(&self.printed_at) {
            self.show
                .line(&format!("  resync  {}  {text}", crate::screen::bar(r.done_bytes, r.total_bytes, 32)));
        }
    }
    /// It is over.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Whether a plain line may be printed again.
fn due(printed_at: &Slot<Option<Instant>>) -> bool {
    let due = printed_at.get().is_none_or(|at| at.elapsed() >= PLAIN_INTERVAL);
    if due {
        printed_at.set(Some(Instant::now()));
    }
    due
}
