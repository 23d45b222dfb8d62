//! All files, and whose each of them is in a system of two heads.

/// Whose a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// The system's: it lies in the directories of both heads. A head that leaves the system does not keep it.
    System,
    /// A head's, about its system: the other head never gets it. A head that leaves the system does not keep it.
    Member,
    /// A head's, whatever system it is in: the other head never gets it, and the head keeps it.
    Head,
}

/// How a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Sealed TOML, for people.
    Toml,
    /// Sealed JSON, for programs.
    Json,
    /// Lines that are appended one by one.
    Lines,
    /// Blocks with checksums of their own.
    Blocks,
    /// What it holds decides nothing.
    Plain,
}

impl Shape {
    /// Whether a file of this shape has a version, an end and a checksum.
    pub fn is_sealed(self) -> bool {
        matches!(self, Shape::Toml | Shape::Json)
    }
}

/// A file, or several whose names begin alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Its name. Of a name that ends with `-`, there are several, and something follows.
    pub name: &'static str,
    /// Whose it is.
    pub whose: Whose,
    /// How it is written.
    pub shape: Shape,
    /// The comment at its beginning, of sealed TOML.
    pub title: &'static str,
}

const fn toml(name: &'static str, whose: Whose, title: &'static str) -> Kind {
    Kind { name, whose, shape: Shape::Toml, title }
}

const fn other(name: &'static str, whose: Whose, shape: Shape) -> Kind {
    Kind { name, whose, shape, title: "" }
}

/// All files.
pub const FILES: [Kind; 21] = [
    toml("format", Whose::Head, "This directory has files of this format alone: do not remove."),
    toml("identity", Whose::System, "Who this system is, for life: hosts know it by these names."),
    toml(
        "hosts",
        Whose::System,
        "Who may come. Secrets stand here in the clear: keep this file to yourself.",
    ),
    toml(
        "portals",
        Whose::System,
        "Where this head listens, under which numbers, and the number given last.",
    ),
    toml("pools", Whose::System, "Pools of this head, and where their drives were seen last."),
    toml("released", Whose::System, "Pools that this head let go of, and where their drives lay."),
    toml("creating", Whose::System, "Pools that are being made, and where their drives lie."),
    other("witness-", Whose::System, Shape::Json),
    other("config-", Whose::System, Shape::Json),
    other("system-record", Whose::Member, Shape::Json),
    other("system-slot-", Whose::Member, Shape::Json),
    other("link", Whose::Head, Shape::Json),
    other("link-identity", Whose::Head, Shape::Json),
    toml(
        "tokens",
        Whose::Head,
        "Tokens of the API. The daemon writes this file: millrace token add, millrace token rm.",
    ),
    toml(
        "api-certificate",
        Whose::Head,
        "The certificate of the API over TCP, and its key: keep this file to yourself.",
    ),
    other("alarms", Whose::Head, Shape::Json),
    other("history", Whose::Head, Shape::Blocks),
    other("events", Whose::Head, Shape::Lines),
    other("crashes", Whose::Head, Shape::Lines),
    other("lock", Whose::Head, Shape::Plain),
    other("probe", Whose::Head, Shape::Plain),
];

/// Which file the one of this name is; None: it is none of ours, and stays where it is.
pub fn kind(name: &str) -> Option<Kind> {
    let is = |kind: &&Kind| match name.strip_prefix(kind.name) {
        Some("") => !kind.name.ends_with('-'),
        Some(_) => kind.name.ends_with('-'),
        None => false,
    };
    FILES.iter().find(is).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn secrets_and_figures_of_a_head_stay_there_and_what_a_takeover_needs_does_not() {
        let whose = |name: &str| kind(name).map(|k| k.whose);
        for name in ["identity", "hosts", "portals", "pools", "released", "creating", "witness-1", "config-1"]
        {
            assert_eq!(whose(name), Some(Whose::System), "{name}");
        }
        for name in
            ["tokens", "history", "api-certificate", "alarms", "link", "link-identity", "events", "format"]
        {
            assert_eq!(whose(name), Some(Whose::Head), "{name}");
        }
        assert_eq!(whose("system-record"), Some(Whose::Member));
        for name in ["tokens.new", "history.new", "link-", "notes", "", "configuration", "witness-"] {
            assert_eq!(whose(name), None, "{name}");
        }
    }

    #[test]
    fn the_documentation_names_all_files_and_whose_they_are_and_how_they_are_written() {
        let text = include_str!("../../../docs/formats/state.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
        let documented: BTreeSet<(String, String, String)> = rows
            .flat_map(|(names, rest)| {
                let mut cells = rest.split(" | ").map(str::to_string);
                let (whose, shape) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
                let names = names.trim_end_matches('`').split("`, `");
                names.map(move |name| {
                    // Of `witness-UUID` and `system-slot-0` the kind counts.
                    let several = FILES.iter().find(|k| k.name.ends_with('-') && name.starts_with(k.name));
                    let name = several.map_or(name, |k| k.name).to_string();
                    (name, whose.clone(), shape.clone())
                })
            })
            .collect();
        let whose = |whose| match whose {
            Whose::System => "system",
            Whose::Member => "member",
            Whose::Head => "head",
        };
        let shape = |shape| match shape {
            Shape::Toml => "TOML",
            Shape::Json => "JSON",
            Shape::Lines => "lines",
            Shape::Blocks => "blocks",
            Shape::Plain => "–",
        };
        let known: BTreeSet<(String, String, String)> = FILES
            .iter()
            .map(|k| (k.name.to_string(), whose(k.whose).into(), shape(k.shape).into()))
            .collect();
        assert_eq!(documented, known);
    }
}
