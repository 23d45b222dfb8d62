//! What a person has chosen to see, and what keys change of it.

use super::figures::{By, Column, Sort};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What is shown, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// What there is a row for each of.
    pub by: By,
    /// In which order.
    pub sort: Sort,
    /// Only rows with this word.
    pub filter: String,
    /// The filter is being typed.
    pub is_typing: bool,
    /// Rows above the first one shown.
    pub scroll: usize,
}

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// To go on.
    Go,
    /// To end.
    End,
}

/// Rows of a page.
const PAGE: usize = 10;

impl View {
    /// A key was pressed.
    pub fn on_key(&mut self, key: KeyEvent) -> After {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return After::End,
            _ if self.is_typing => self.on_typed(key.code),
            KeyCode::Char('q') => return After::End,
            KeyCode::Char('v') => self.show(By::Volume),
            KeyCode::Char('h') => self.show(By::Host),
            KeyCode::Char('p') => self.show(By::Path),
            KeyCode::Char('c') => self.show(By::Connection),
            KeyCode::Char('d') => self.show(By::Drive),
            KeyCode::Char('s') => self.show(By::Shard),
            KeyCode::Char('n') => self.show(By::Head),
            KeyCode::Char('r') => self.sort.reverse = !self.sort.reverse,
            KeyCode::Char('<' | ',') | KeyCode::Left => self.sort_beside(-1),
            KeyCode::Char('>' | '.') | KeyCode::Right => self.sort_beside(1),
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.filter.clear();
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::PageDown => self.scroll += PAGE,
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
        After::Go
    }

    fn on_typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(c) => self.filter.push(c),
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
        self.scroll = 0;
    }

    fn show(&mut self, by: By) {
        self.by = by;
        self.scroll = 0;
    }

    /// Sorts by the column that lies `step` to the right.
    fn sort_beside(&mut self, step: isize) {
        let columns = self.by.columns();
        let now = self.sort.column_of(self.by);
        let at = columns.iter().position(|c| *c == now).unwrap_or(0);
        let next: Option<&Column> = at.checked_add_signed(step).and_then(|at| columns.get(at));
        self.sort.column = next.copied().or(Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(view: &mut View, text: &str) -> After {
        text.chars().fold(After::Go, |_, c| {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\u{8}' => KeyCode::Backspace,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            view.on_key(KeyEvent::new(code, KeyModifiers::NONE))
        })
    }

    #[test]
    fn keys_choose_what_is_shown_and_in_which_order() {
        let mut view = View::default();
        for (key, by) in ["v", "h", "p", "c", "d", "s", "n"].into_iter().zip(By::ALL) {
            typed(&mut view, key);
            assert_eq!(view.by, by);
        }
        typed(&mut view, "d>");
        assert_eq!(view.sort.column, Some(Column::Reads));
        typed(&mut view, "<<<<<<<");
        assert_eq!(view.sort.column, Some(Column::Name), "there is none before the first");
        typed(&mut view, "r");
        assert!(view.sort.reverse);
        assert_eq!(typed(&mut view, "q"), After::End);
    }

    #[test]
    fn a_filter_may_hold_the_letters_of_other_keys() {
        let mut view = View { scroll: 7, ..View::default() };
        assert_eq!(typed(&mut view, "/qvhx\u{8}"), After::Go);
        assert_eq!(
            (view.filter.as_str(), view.is_typing, view.scroll, view.by),
            ("qvh", true, 0, By::Volume)
        );
        assert_eq!(typed(&mut view, "\nq"), After::End);
        assert_eq!(view.filter, "qvh");
        typed(&mut view, "\u{1b}");
        assert_eq!(view.filter, "");
        view.is_typing = true;
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.on_key(interrupt), After::End, "whatever is being typed");
    }

    #[test]
    fn nothing_is_above_the_first_row() {
        let mut view = View::default();
        view.on_key(KeyEvent::new(KeyCode::PageUp, KeyModifiers::NONE));
        view.on_key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));
        assert_eq!(view.scroll, 0);
    }
}
