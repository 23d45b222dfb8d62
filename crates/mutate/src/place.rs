//! A place of the code, and what its mutants do there.

use core::ops::Range;

/// What a mutant does otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// A comparison takes its bound in, or leaves it out.
    Beside,
    /// A comparison is its opposite.
    Flip,
    /// One of two conditions that both must hold is not asked.
    Half,
    /// A call is left out.
    Call,
    /// A resource is not given back.
    Keep,
    /// A wait is left out.
    Wait,
    /// A function or a round of a loop goes on where it should end early.
    Guard,
    /// A message is sent, or a record written, before what should come first.
    Early,
    /// The first of several elements is skipped.
    Skip,
    /// The first of several elements stands for all.
    First,
    /// The last of several elements stands for all.
    Last,
    /// An epoch, a generation, an incarnation is the former one.
    Former,
}

/// All of them, in the order of tables.
pub const RULES: [Rule; 12] = [
    Rule::Beside,
    Rule::Flip,
    Rule::Half,
    Rule::Call,
    Rule::Keep,
    Rule::Wait,
    Rule::Guard,
    Rule::Early,
    Rule::Skip,
    Rule::First,
    Rule::Last,
    Rule::Former,
];

impl Rule {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beside => "beside",
            Self::Flip => "flip",
            Self::Half => "half",
            Self::Call => "call",
            Self::Keep => "keep",
            Self::Wait => "wait",
            Self::Guard => "guard",
            Self::Early => "early",
            Self::Skip => "skip",
            Self::First => "first",
            Self::Last => "last",
            Self::Former => "former",
        }
    }
}

/// A piece of what stands at a place in the copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// This text.
    Text(String),
    /// The number of the place's mutant that is so far behind its first one.
    Number(u32),
    /// The source of this range, with what other places change in it.
    Source(Range<usize>),
    /// The source of this range as it is: no other mutant is chosen where it is carried out.
    Plain(Range<usize>),
}

/// What stands in the copy instead of a range of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The range.
    pub span: Range<usize>,
    /// What stands there.
    pub parts: Vec<Part>,
}

/// A place: mutants that are made by one change of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// A rule for each of its mutants, in the order of their numbers.
    pub rules: Vec<Rule>,
    /// Ranges that do not overlap.
    pub edits: Vec<Edit>,
    /// Modules, types and functions around it, outermost first.
    pub item: String,
    /// What is mutated.
    pub span: Range<usize>,
}

/// A mutant of the whole copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutant {
    /// Its name: the same as long as file, item, rule and text are.
    pub id: String,
    /// Its file, below the repository.
    pub file: String,
    /// Line of the source.
    pub line: usize,
    /// See `Place`.
    pub item: String,
    /// What it does.
    pub rule: Rule,
    /// What it mutates, on one line.
    pub text: String,
}

/// A name for each mutant of the places of a file. Equal ones in one item are counted.
pub fn named(file: &str, source: &str, places: &[Place]) -> Vec<Vec<Mutant>> {
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    let mut name = |place: &Place, rule: Rule| {
        let text = source[place.span.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let key = format!("{file}\n{}\n{}\n{text}", place.item, rule.name());
        let nth = seen.entry(key.clone()).or_default();
        *nth += 1;
        Mutant {
            id: format!("{:012x}", hash(&format!("{key}\n{nth}")) >> 16),
            file: file.into(),
            line: 1 + source[..place.span.start].matches('\n').count(),
            item: place.item.clone(),
            rule,
            text,
        }
    };
    places.iter().map(|p| p.rules.iter().map(|r| name(p, *r)).collect()).collect()
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}
