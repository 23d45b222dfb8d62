//! Text of the copy.

use crate::place::{Edit, Part, Place};
use core::ops::Range;

/// A file of the copy.
#[derive(Default)]
pub struct Rendered {
    /// Its text.
    pub text: String,
    /// What each edit became, by the index of its place. Inner ones come first.
    pub regions: Vec<(Range<usize>, usize)>,
}

/// An edit, its place, and the number of that place's first mutant.
type Numbered<'a> = (&'a Edit, usize, u32);

/// The source with all places, whose first mutants have these numbers. Edits lie within each other or apart.
pub fn render(source: &str, places: &[(&Place, u32)]) -> Rendered {
    let mut edits: Vec<Numbered<'_>> = vec![];
    for (at, (place, first)) in places.iter().enumerate() {
        edits.extend(place.edits.iter().map(|edit| (edit, at, *first)));
    }
    // Outer ones first. Of two of the same range, the one that was found first is the outer one.
    edits.sort_by_key(|(edit, ..)| (edit.span.start, core::cmp::Reverse(edit.span.end)));
    let mut out = Rendered::default();
    put(source, 0..source.len(), &edits, &mut out);
    out
}

fn put(source: &str, range: Range<usize>, mut edits: &[Numbered<'_>], out: &mut Rendered) {
    let mut at = range.start;
    while let [(edit, place, first), rest @ ..] = edits {
        assert!(at <= edit.span.start && edit.span.end <= range.end, "edits lie within each other or apart");
        let inner = rest.iter().take_while(|(inner, ..)| inner.span.start < edit.span.end).count();
        let (inner, behind) = rest.split_at(inner);
        out.text.push_str(&source[at..edit.span.start]);
        let begin = out.text.len();
        let mut left = inner;
        for part in &edit.parts {
            match part {
                Part::Text(text) => out.text.push_str(text),
                Part::Number(n) => out.text.push_str(&(first + n).to_string()),
                Part::Plain(range) => out.text.push_str(&source[range.clone()]),
                Part::Source(range) => {
                    let within = left.iter().take_while(|(e, ..)| e.span.end <= range.end).count();
                    let (within, after) = left.split_at(within);
                    put(source, range.clone(), within, out);
                    left = after;
                }
            }
        }
        assert!(left.is_empty(), "an edit lies in no source of the one around it");
        out.regions.push((begin..out.text.len(), *place));
        at = edit.span.end;
        edits = behind;
    }
    out.text.push_str(&source[at..range.end]);
}
