//! The files of the state directory (docs/formats/state.md), and whose each of them is in a system of two heads.

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

/// All files. Of a name that ends with `-`, there are several, and something follows.
pub const FILES: [(&str, Whose); 19] = [
    ("identity", Whose::System),
    ("hosts", Whose::System),
    ("portals", Whose::System),
    ("pools", Whose::System),
    ("released", Whose::System),
    ("creating", Whose::System),
    ("witness-", Whose::System),
    ("config-", Whose::System),
    ("system-", Whose::Member),
    ("link", Whose::Head),
    ("link-identity", Whose::Head),
    ("tokens", Whose::Head),
    ("api-certificate", Whose::Head),
    ("alarms", Whose::Head),
    ("history", Whose::Head),
    ("events", Whose::Head),
    ("crashes", Whose::Head),
    ("lock", Whose::Head),
    ("probe", Whose::Head),
];

/// Whose the file of this name is; None: it is none of ours, and stays where it is.
pub fn whose(name: &str) -> Option<Whose> {
    let is = |known: &str| name == known || known.ends_with('-') && name.starts_with(known);
    FILES.iter().find(|(known, _)| is(known)).map(|(_, whose)| *whose)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn secrets_and_figures_of_a_head_stay_there_and_what_a_takeover_needs_does_not() {
        for name in ["identity", "hosts", "portals", "pools", "released", "creating", "witness-1", "config-1"]
        {
            assert_eq!(whose(name), Some(Whose::System), "{name}");
        }
        for name in ["tokens", "history", "api-certificate", "alarms", "link", "link-identity", "events"] {
            assert_eq!(whose(name), Some(Whose::Head), "{name}");
        }
        assert_eq!(whose("system-record"), Some(Whose::Member));
        for name in ["tokens.new", "history.new", "link-", "notes", "", "configuration"] {
            assert_eq!(whose(name), None, "{name}");
        }
    }

    #[test]
    fn the_documentation_names_all_files_and_whose_they_are() {
        let text = include_str!("../../../docs/formats/state.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
        let documented: BTreeSet<(String, &str)> = rows
            .flat_map(|(names, rest)| {
                let whose = rest.split(' ').next().unwrap_or_default();
                let names = names.trim_end_matches('`').split("`, `");
                names.map(move |name| {
                    // Of `witness-UUID` and `system-slot-0` the kind counts.
                    let several = FILES.iter().find(|(n, _)| n.ends_with('-') && name.starts_with(n));
                    (several.map_or(name, |(n, _)| *n).to_string(), whose)
                })
            })
            .collect();
        let word = |whose| match whose {
            Whose::System => "system",
            Whose::Member => "member",
            Whose::Head => "head",
        };
        let known: BTreeSet<(String, &str)> =
            FILES.iter().map(|(name, whose)| (name.to_string(), word(*whose))).collect();
        assert_eq!(documented, known);
    }
}
