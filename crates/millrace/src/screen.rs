//! What a terminal shows: colours that can be off, sentences and tables that fit.

use api::State;
use owo_colors::Style;
use std::io::IsTerminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a piece of text looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Look {
    /// As it is.
    #[default]
    Plain,
    /// A heading.
    Bold,
    /// Less important.
    Dim,
    /// All is well.
    Good,
    /// Somebody should look.
    Warn,
    /// Something is broken.
    Bad,
}

/// A line in pieces, each in its look.
pub type Line = Vec<(Look, String)>;

/// What a screen must know of the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminal {
    colours: bool,
    /// Columns; nothing but a command to be copied is longer.
    width: usize,
    /// Lines, if it is a terminal.
    height: usize,
    /// Names may lose their middle. In a file or a pipe they must not: somebody looks for them there.
    shortens: bool,
}

/// Columns of a screen that goes to a file or a pipe, unless COLUMNS says otherwise.
const PIPE_WIDTH: usize = 80;
/// Screens are not made narrower than this.
const WIDTH_MIN: usize = 60;

impl Terminal {
    /// Without colours.
    pub fn plain(width: usize) -> Self {
        Self { colours: false, width, height: usize::MAX, shortens: true }
    }

    /// For a file: names keep their middle.
    pub fn for_file(width: usize) -> Self {
        Self { colours: false, width, height: usize::MAX, shortens: false }
    }

    /// Stdout's width, and colours if it is a terminal and NO_COLOR (no-color.org) is unset or empty.
    pub fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        let terminal = std::io::stdout().is_terminal();
        let size = terminal_size::terminal_size_of(std::io::stdout());
        let size = size.map(|(w, h)| (usize::from(w.0), usize::from(h.0))).filter(|(w, h)| *w > 0 && *h > 0);
        let told = || std::env::var("COLUMNS").ok()?.parse().ok();
        let width = size.map(|s| s.0).or_else(told).unwrap_or(PIPE_WIDTH).max(WIDTH_MIN);
        let height = size.map_or(usize::MAX, |s| s.1);
        Self { colours: terminal && !refused && !dumb, width, height, shortens: terminal }
    }
    /// Columns.
    pub fn width(self) -> usize {
        self.width
    }
    /// As much of `text` as there are lines for, one kept free; the last one says what is missing.
    pub fn cut(self, text: &str) -> String {
        let (all, room) = (text.lines().count(), self.height.saturating_sub(1).max(2));
        if all <= room {
            return text.to_string();
        }
        let mut out: String = text.lines().take(room - 1).map(|l| format!("{l}\n")).collect();
        out.push_str(&self.text(Look::Dim, &format!("… {} more lines", all - room + 1)));
        out + "\n"
    }
    /// What is left of it behind `indent` columns.
    pub fn indented(self, indent: usize) -> Self {
        Self { width: self.width.saturating_sub(indent), ..self }
    }
    /// `text` in this look.
    pub fn text(self, look: Look, text: &str) -> String {
        let style = match look {
            Look::Plain => return text.to_string(),
            Look::Bold => Style::new().bold(),
            Look::Dim => Style::new().dimmed(),
            Look::Good => Style::new().green(),
            Look::Warn => Style::new().yellow(),
            Look::Bad => Style::new().red().bold(),
        };
        if self.colours { style.style(text).to_string() } else { text.to_string() }
    }
    /// A line's pieces, each in its look.
    pub fn line(self, line: &Line) -> String {
        line.iter().map(|(look, text)| self.text(*look, text)).collect()
    }
    /// Whether colours are wanted.
    pub fn has_colours(self) -> bool {
        self.colours
    }
    /// Facts behind a head of `first` columns, as many in a line as fit, none left out; what goes on does so below them.
    pub fn facts(self, first: usize, facts: &[String]) -> String {
        let room = self.width.saturating_sub(first);
        let mut lines = vec![String::new()];
        for fact in facts {
            let line = lines.last_mut().expect("never empty");
            if line.is_empty() {
                line.push_str(fact);
            } else if columns(line) + 3 + columns(fact) <= room {
                line.push_str(&format!(" · {fact}"));
            } else {
                lines.push(fact.clone());
            }
        }
        let below = format!("\n{}", " ".repeat(first));
        lines.iter().map(|l| self.text(Look::Dim, l)).collect::<Vec<_>>().join(&below)
    }
    /// A paragraph that begins with `head` and goes on indented by `indent`.
    pub fn paragraph(self, look: Look, head: &str, text: &str, indent: usize) -> String {
        let first = columns(head);
        let lines = wrapped(text, self.width.saturating_sub(first), self.width.saturating_sub(indent));
        let mut out = self.text(look, head);
        for (i, line) in lines.iter().enumerate() {
            if i > 0 {
                out.push_str(&" ".repeat(indent));
            }
            out.push_str(line);
            out.push('\n');
        }
        out
    }
    /// What to do next.
    pub fn next(self, next: &str) -> String {
        self.steps(Look::Bold, ["Next: ", "  or: ", "then: "], next)
    }
    /// Steps, below each other if they do not fit beside each other. `heads`: before the first one, before another
    /// choice, before what comes after it. Commands stay in one piece, so that they can be copied.
    pub fn steps(self, look: Look, heads: [&str; 3], next: &str) -> String {
        let [first, or, then] = heads;
        if columns(first) + columns(next) <= self.width {
            return format!("{}{next}\n", self.text(look, first));
        }
        let mut out = String::new();
        for (i, choice) in next.split(", or ").enumerate() {
            for (j, step) in choice.split(", then ").enumerate() {
                let head = match (i, j) {
                    (0, 0) => first,
                    (_, 0) => or,
                    (_, _) => then,
                };
                let look = if (i, j) == (0, 0) { look } else { Look::Plain };
                out.push_str(&self.paragraph(look, head, &whole_command(step), columns(first)));
            }
        }
        out
    }
}

/// A step whose command, if it is one, is not broken.
fn whole_command(step: &str) -> String {
    if !step.starts_with("millrace ") {
        return step.to_string();
    }
    let end = [" (", ", "].iter().filter_map(|s| step.find(s)).min().unwrap_or(step.len());
    let (command, rest) = step.split_at(end);
    command.replace(' ', "\u{a0}") + rest
}

/// Columns that a text takes. A path may hold characters of two columns, or of none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// `text` in lines of at most `first` and then `rest` columns, broken at blanks, but for U+00A0, which
/// becomes one. A longer word has a line of its own.
fn wrapped(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let room = if lines.len() == 1 { first } else { rest };
        let line = lines.last_mut().expect("never empty");
        let used = columns(line);
        if used > 0 && used + 1 + columns(word) > room {
            lines.push(word.to_string());
        } else {
            if used > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.into_iter().map(|l| l.replace('\u{a0}', " ")).collect()
}

/// `text` without its middle, in `room` columns: `/dev/disk/…_S64GNE0R501`. The end tells more than the beginning.
fn shortened(text: &str, room: usize) -> String {
    if columns(text) <= room || room < 4 {
        return text.to_string();
    }
    let all: Vec<char> = text.chars().collect();
    // What stands before the name is a tree, and its blanks are not to be cut.
    let stem = all.iter().take_while(|c| "├└│─ ".contains(**c)).count();
    let keep = room.saturating_sub(stem + 1);
    // As many characters as fit, from both ends.
    let fitting = |room: usize, chars: &mut dyn Iterator<Item = &char>| {
        let mut used = 0;
        let fits = |c: &&char| {
            used += c.width().unwrap_or(0);
            used <= room
        };
        chars.take_while(fits).count()
    };
    let front = stem + fitting(keep / 3, &mut all[stem..].iter());
    let back = fitting(keep - keep / 3, &mut all.iter().rev());
    let cut: String = all[..front].iter().chain(&['…']).chain(&all[all.len() - back..]).collect();
    cut
}

/// How a state looks.
pub fn look_of(state: State) -> Look {
    match state {
        State::Optimal => Look::Good,
        State::Rebuilding | State::Degraded => Look::Warn,
        State::Offline | State::Failed => Look::Bad,
    }
}

/// A cell of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// A cell in this look.
    pub fn new(look: Look, text: impl Into<String>) -> Self {
        Self { text: text.into(), look }
    }
    /// The same behind `head`, which has no look of its own.
    pub fn headed(&self, head: &str) -> Self {
        Self { text: format!("{head}{}", self.text), look: self.look }
    }
    /// A state's word in its colour.
    pub fn state(state: State) -> Self {
        Self::new(look_of(state), state.word())
    }
    /// A number of errors: red unless zero.
    pub fn errors(count: u64) -> Self {
        Self::new(if count == 0 { Look::Dim } else { Look::Bad }, base::size::print_count(count))
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Look::Plain, text)
    }
}

/// A table without lines: a heading, rows, two spaces between columns. It fits the terminal: see `print`.
#[derive(Clone, Debug, Default)]
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Row>,
    optional: Vec<&'static [&'static str]>,
    prose: bool,
    name_min: usize,
}

#[derive(Clone, Debug)]
struct Row {
    cells: Vec<Cell>,
    /// What stands before a note that goes on below the row: the branches of a tree.
    stem: String,
}

/// A name is not made shorter than this, unless the table says so.
const NAME_MIN: usize = 40;
/// A note that has less room than this beside its row goes below it.
const NOTE_MIN: usize = 24;

impl Table {
    /// An empty table. Columns whose heading begins with `>` are flush right.
    pub fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), name_min: NAME_MIN, ..Self::default() }
    }
    /// Columns that go, all of them, when there is no room; what is named first goes first.
    pub fn optional(mut self, heads: &'static [&'static str]) -> Self {
        self.optional.push(heads);
        self
    }
    /// The last column holds sentences: they are broken, or go below the row.
    pub fn prose(mut self) -> Self {
        self.prose = true;
        self
    }
    /// Names are made as short as `columns` before anything else goes.
    pub fn short_names(mut self, columns: usize) -> Self {
        self.name_min = columns;
        self
    }
    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.branch(cells, String::new());
    }
    /// Adds a row of a tree; `stem` goes on below it.
    pub fn branch(&mut self, cells: impl IntoIterator<Item = Cell>, stem: String) {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        assert!(cells.len() <= self.heads.len(), "a row has more cells than there are columns");
        cells.resize(self.heads.len(), Cell::default());
        self.rows.push(Row { cells, stem });
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, each ending with a line break. What is optional goes until the rest fits; then names lose
    /// their middle; notes are broken.
    pub fn print(&self, terminal: Terminal, indent: usize) -> String {
        self.lines(terminal, indent).iter().map(|line| terminal.line(line) + "\n").collect()
    }

    /// The same, one by one, for a screen with colours of its own.
    pub fn lines(&self, terminal: Terminal, indent: usize) -> Vec<Line> {
        let name = |i: usize| self.heads[i].trim_start_matches('>');
        let fixed = self.heads.len() - usize::from(self.prose);
        let natural: Vec<usize> = (0..fixed)
            .map(|i| self.rows.iter().map(|r| columns(&r.cells[i].text)).chain([columns(name(i))]).max())
            .map(|w| w.unwrap_or(0))
            .collect();
        let least =
            |i: usize| if i == 0 && terminal.shortens { natural[0].min(self.name_min) } else { natural[i] };
        let total = |shown: &[usize]| indent + shown.iter().map(|i| least(*i) + 2).sum::<usize>() - 2;
        let mut shown: Vec<usize> = (0..fixed).collect();
        for group in &self.optional {
            if total(&shown) > terminal.width {
                shown.retain(|i| !group.contains(&name(*i)));
            }
        }
        let mut widths = natural.clone();
        if terminal.shortens && fixed > 0 {
            let room = terminal.width.saturating_sub(total(&shown) - least(0));
            widths[0] = natural[0].min(room.max(least(0)));
        }
        let used = indent + shown.iter().map(|i| widths[*i] + 2).sum::<usize>();
        let layout = Layout { terminal, indent, shown, widths, room: terminal.width.saturating_sub(used) };
        let mut out = Vec::new();
        if self.heads.iter().any(|h| !h.is_empty()) {
            let mut cells: Vec<Cell> = (0..self.heads.len()).map(|i| Cell::new(Look::Dim, name(i))).collect();
            // A heading is no note: it is beside the others or not at all.
            if let Some(note) = cells.last_mut().filter(|c| self.prose && columns(&c.text) > layout.room) {
                *note = Cell::default();
            }
            self.line(&layout, &Row { cells, stem: String::new() }, &mut out);
        }
        self.rows.iter().for_each(|row| self.line(&layout, row, &mut out));
        out
    }

    fn line(&self, layout: &Layout, row: &Row, out: &mut Vec<Line>) {
        let terminal = layout.terminal;
        let note = row.cells.last().filter(|c| self.prose && !c.text.is_empty());
        let longest = |c: &Cell| c.text.split(' ').map(columns).max().unwrap_or(0);
        let beside = note.filter(|c| {
            columns(&c.text) <= layout.room || (layout.room >= NOTE_MIN && longest(c) <= layout.room)
        });
        let plain = |text: String| (Look::Plain, text);
        // Cells at the end of a line are not padded: no blanks before a line break.
        let shown = &layout.shown;
        let last = shown.iter().rposition(|i| !row.cells[*i].text.is_empty()).unwrap_or(0);
        let mut line = vec![plain(" ".repeat(layout.indent))];
        for (at, &i) in shown.iter().enumerate() {
            if at > last && beside.is_none() {
                break;
            }
            let cell = &row.cells[i];
            let text = if i == 0 { shortened(&cell.text, layout.widths[0]) } else { cell.text.clone() };
            let pad = plain(" ".repeat(layout.widths[i].saturating_sub(columns(&text))));
            let text = (cell.look, text);
            let ends = at == last && beside.is_none();
            match (self.heads[i].starts_with('>'), ends) {
                (true, _) => line.extend([pad, text]),
                (false, true) => line.push(text),
                (false, false) => line.extend([text, pad]),
            }
            line.push(plain(if ends { String::new() } else { "  ".into() }));
        }
        let (text, begin, room) = match (beside, note) {
            (Some(cell), _) => (cell, layout.indent + layout.used(), layout.room),
            (None, Some(cell)) => {
                out.push(line);
                let begin = layout.indent + columns(&row.stem) + 4;
                line = vec![plain(format!("{}{}    ", " ".repeat(layout.indent), row.stem))];
                (cell, begin, terminal.width.saturating_sub(begin))
            }
            (None, None) => {
                out.push(line);
                return;
            }
        };
        for (n, piece) in wrapped(&text.text, room, room).into_iter().enumerate() {
            if n > 0 {
                let stem = format!("{}{}", " ".repeat(layout.indent), row.stem);
                line = vec![plain(format!("{stem}{}", " ".repeat(begin - columns(&stem))))];
            }
            line.push((text.look, piece));
            out.push(core::mem::take(&mut line));
        }
    }
}

/// Where the columns of a table are, on this terminal.
struct Layout {
    terminal: Terminal,
    indent: usize,
    shown: Vec<usize>,
    widths: Vec<usize>,
    /// Columns for the note beside a row.
    room: usize,
}

impl Layout {
    /// Columns before a note.
    fn used(&self) -> usize {
        self.shown.iter().map(|i| self.widths[*i] + 2).sum()
    }
}

/// A bar of `width` characters, `part` of `whole` filled.
pub fn bar(part: u64, whole: u64, width: u32) -> String {
    let part = u128::from(part.min(whole));
    let eighths = (part * u128::from(width) * 8).checked_div(u128::from(whole)).unwrap_or(0) as u32;
    let full = (eighths / 8) as usize;
    let mut out = "█".repeat(full);
    if full < width as usize {
        out.push([' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][(eighths % 8) as usize]);
    }
    let filled = out.chars().count();
    out.push_str(&" ".repeat(width as usize - filled));
    format!("▕{out}▏")
}

/// `n` things: `1 drive`, `2 drives`.
pub fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ => format!("{n} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_no_line_ends_in_blanks() {
        let mut table = Table::new(&["NAME", ">SIZE", "NOTE"]);
        table.row(["tank".into(), "3.6T".into()]);
        table.row(["a-long-name".into(), "64K".into(), "é".into()]);
        let text = table.print(Terminal::plain(80), 1);
        assert_eq!(text, " NAME         SIZE  NOTE\n tank         3.6T\n a-long-name   64K  é\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Cell::state(State::Failed), "x".into()]);
        table.row([Cell::state(State::Optimal), "y".into()]);
        let plain = table.print(Terminal::plain(80), 0);
        let painted = table.print(Terminal { colours: true, ..Terminal::plain(80) }, 0);
        assert_ne!(plain, painted);
        let mut bare = String::new();
        let mut in_escape = false;
        for c in painted.chars() {
            in_escape |= c == '\u{1b}';
            if !in_escape {
                bare.push(c);
            }
            in_escape &= c != 'm';
        }
        assert_eq!(bare, plain);
    }

    fn wide() -> Table {
        let mut table = Table::new(&["DRIVE", "STATE", ">READS", "NOTE"]).optional(&["READS"]).prose();
        table.branch(
            [
                "├─ /dev/disk/by-id/nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0R501".into(),
                "failed".into(),
                "81.2M".into(),
                "did not answer within 5 s, three times in a row, and was taken out".into(),
            ],
            "│".into(),
        );
        table
    }

    #[test]
    fn a_table_fits_the_terminal() {
        for width in 60..140 {
            let text = wide().print(Terminal::plain(width), 0);
            assert!(text.lines().all(|l| columns(l) <= width && !l.ends_with(' ')), "{width}:\n{text}");
            assert!(text.contains("R501"), "the end of a name is kept: {text}");
        }
        expect_test::expect![[r#"
            DRIVE                                                    STATE   READS
            ├─ /dev/disk/by-id/n…UNG_MZQL21T9HCJR-00A07_S64GNE0R501  failed  81.2M
            │    did not answer within 5 s, three times in a row, and was taken
            │    out
        "#]]
        .assert_eq(&wide().print(Terminal::plain(70), 0));
    }

    #[test]
    fn characters_of_two_columns_keep_the_table_straight() {
        let mut table = Table::new(&["DRIVE", "STATE"]);
        table.row(["/srv/磁盘/一号.img".into(), "free".into()]);
        table.row(["/srv/disk".into(), "free".into()]);
        assert_eq!(
            table.print(Terminal::plain(80), 0),
            "DRIVE               STATE\n/srv/磁盘/一号.img  free\n/srv/disk           free\n"
        );
        for room in 4..30 {
            let short = shortened("├─ /srv/磁盘/一号的磁盘/的很长的名字.img", room);
            assert!(columns(&short) <= room.max(6), "{room}: {short}");
        }
    }

    #[test]
    fn a_name_in_a_pipe_keeps_its_middle() {
        let pipe = Terminal { shortens: false, ..Terminal::plain(80) };
        assert!(wide().print(pipe, 0).contains("nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0R501"));
    }

    #[test]
    fn paragraphs_are_broken_and_commands_are_not() {
        let t = Terminal::plain(30);
        assert_eq!(
            t.paragraph(Look::Plain, "note  ", "a sentence that is longer than the line", 6),
            "note  a sentence that is\n      longer than the line\n"
        );
        assert_eq!(
            t.next("millrace drive return /dev/nvme3n1, or millrace drive ls"),
            "Next: millrace drive return /dev/nvme3n1\n  or: millrace drive ls\n"
        );
        assert_eq!(t.next("a, or b"), "Next: a, or b\n");
        assert_eq!(
            t.next("attach /dev/nvme3n1 and /dev/nvme4n1, then millrace pool import tank, or millrace pool import tank --force (if nobody had it)"),
            "Next: attach /dev/nvme3n1 and\n      /dev/nvme4n1\nthen: millrace pool import tank\n  or: millrace pool import tank --force\n      (if nobody had it)\n"
        );
    }

    #[test]
    fn a_screen_that_is_too_high_says_what_is_missing() {
        let t = Terminal { height: 4, ..Terminal::plain(30) };
        assert_eq!(t.cut("1\n2\n3\n"), "1\n2\n3\n");
        assert_eq!(t.cut("1\n2\n3\n4\n5\n"), "1\n2\n… 3 more lines\n");
    }

    #[test]
    fn a_bar_has_its_width_whatever_is_asked() {
        for (part, whole) in
            [(0, 0), (0, 10), (5, 10), (10, 10), (20, 10), (u64::MAX, u64::MAX), (1, u64::MAX)]
        {
            assert_eq!(bar(part, whole, 20).chars().count(), 22, "{part} of {whole}");
        }
        assert_eq!(bar(1, 2, 4), "▕██  ▏");
    }
}
