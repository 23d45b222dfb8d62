//! What a terminal shows: colours that can be off, and tables whose columns line up.

use api::State;
use owo_colors::Style;
use std::io::IsTerminal;

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

/// Whether colours are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint(bool);

impl Paint {
    /// Without colours.
    #[cfg(test)]
    pub const OFF: Paint = Paint(false);

    /// Colours, if stdout is a terminal and NO_COLOR (no-color.org) is unset or empty.
    pub fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Self(std::io::stdout().is_terminal() && !refused && !dumb)
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
        if self.0 { style.style(text).to_string() } else { text.to_string() }
    }
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
    /// A state's word in its colour.
    pub fn state(state: State) -> Self {
        Self::new(look_of(state), state.word())
    }
    /// A number of errors: red unless zero.
    pub fn errors(count: u64) -> Self {
        Self::new(if count == 0 { Look::Dim } else { Look::Bad }, api::size::print_count(count))
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Look::Plain, text)
    }
}

/// A table without lines: a heading, rows, two spaces between columns.
#[derive(Clone, Debug, Default)]
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table. Columns whose heading begins with `>` are flush right.
    pub fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }
    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().collect();
        assert!(row.len() <= self.heads.len(), "a row has more cells than there are columns");
        row.resize(self.heads.len(), Cell::default());
        self.rows.push(row);
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The table as lines, each ending with a line break.
    pub fn print(&self, paint: Paint, indent: usize) -> String {
        let width = |text: &str| text.chars().count();
        let name = |head: &'static str| head.strip_prefix('>').unwrap_or(head);
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|i| self.rows.iter().map(|r| width(&r[i].text)).chain([width(name(self.heads[i]))]).max())
            .map(|w| w.unwrap_or(0))
            .collect();
        let head: Vec<Cell> = self.heads.iter().map(|h| Cell::new(Look::Dim, name(h))).collect();
        let shows_head = head.iter().any(|h| !h.text.is_empty());
        let mut out = String::new();
        for row in shows_head.then_some(&head).into_iter().chain(&self.rows) {
            // Cells at the end of a line are not padded: no blanks before a line break.
            let last = row.iter().rposition(|c| !c.text.is_empty()).unwrap_or(0);
            out.push_str(&" ".repeat(indent));
            for (i, cell) in row.iter().enumerate().take(last + 1) {
                let pad = " ".repeat(widths[i] - width(&cell.text));
                let text = paint.text(cell.look, &cell.text);
                match (self.heads[i].starts_with('>'), i == last) {
                    (true, _) => out.push_str(&format!("{pad}{text}")),
                    (false, true) => out.push_str(&text),
                    (false, false) => out.push_str(&format!("{text}{pad}")),
                }
                out.push_str(if i == last { "" } else { "  " });
            }
            out.push('\n');
        }
        out
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
        let text = table.print(Paint::OFF, 1);
        assert_eq!(text, " NAME         SIZE  NOTE\n tank         3.6T\n a-long-name   64K  é\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Cell::state(State::Failed), "x".into()]);
        table.row([Cell::state(State::Optimal), "y".into()]);
        let plain = table.print(Paint::OFF, 0);
        let painted = table.print(Paint(true), 0);
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
