//! Words of a command line that are not ours but nearly are: `list` for `ls`, `stauts`, `help pool`.
//!
//! A word that means one of our commands is taken as it (an alias); what may mean several, or is misspelled, is answered
//! with the command lines that were probably meant.

use crate::failure::Failure;
use crate::spelling::nearest;
use crate::words::topology::quoted;
use clap::Command;
use finding::CommandFault;
use std::ffi::OsString;

/// Our verbs, and what they are called elsewhere.
const SYNONYMS: [(&str, &[&str]); 14] = [
    ("ls", &["list"]),
    ("rm", &["remove", "delete", "del"]),
    ("destroy", &["remove", "delete", "del"]),
    ("create", &["make", "new", "add"]),
    ("add", &["create", "new"]),
    ("show", &["info", "describe", "get"]),
    ("rename", &["mv"]),
    ("resize", &["grow", "extend", "expand"]),
    ("release", &["export"]),
    ("set", &["modify", "change", "edit"]),
    ("fail", &["offline"]),
    ("return", &["online"]),
    ("events", &["log", "logs"]),
    ("alarm", &["alarms", "alert", "alerts"]),
];

/// The command's name and its aliases.
fn is_called(command: &Command, word: &str) -> bool {
    command.get_name() == word || command.get_all_aliases().any(|a| a == word)
}

/// The commands of `noun` that `word` may mean elsewhere.
fn meant<'a>(noun: &'a Command, word: &str) -> Vec<&'a Command> {
    let ours = SYNONYMS.iter().filter(|(_, others)| others.contains(&word));
    ours.filter_map(|(ours, _)| noun.find_subcommand(ours)).collect()
}

/// The definition of the command line in which words from elsewhere are taken as ours, where they can mean one command only.
pub fn with_aliases(command: Command) -> Command {
    let words = SYNONYMS.iter().flat_map(|(_, others)| others.iter().copied());
    let mut aliases: Vec<(String, &'static str)> = Vec::new();
    for word in words {
        if let (None, [one]) = (command.find_subcommand(word), &meant(&command, word)[..]) {
            aliases.push((one.get_name().to_string(), word));
        }
    }
    aliases.sort_unstable();
    aliases.dedup();
    command.mut_subcommands(|verb| {
        let its = aliases.iter().filter(|(name, _)| name == verb.get_name()).map(|(_, alias)| *alias);
        let its: Vec<&'static str> = its.collect();
        with_aliases(verb).aliases(its)
    })
}

/// How far the words of a command line lead into the definition.
pub struct Way<'a> {
    /// The commands, by their own names.
    pub names: Vec<&'a str>,
    /// The last of them.
    pub at: &'a Command,
    /// Where the first word is that is neither a command nor an option.
    pub next: Option<usize>,
}

impl<'a> Way<'a> {
    /// The way of `words`, the program's name first.
    pub fn of(root: &'a Command, words: &[OsString]) -> Self {
        let mut way = Self { names: Vec::new(), at: root, next: None };
        let mut is_value = false;
        for (i, word) in words.iter().enumerate().skip(1) {
            let word = word.to_string_lossy();
            if std::mem::replace(&mut is_value, *word == *"--socket") || word.starts_with('-') {
                continue;
            }
            match way.at.get_subcommands().find(|c| is_called(c, &word)) {
                Some(found) => {
                    way.names.push(found.get_name());
                    way.at = found;
                }
                None => {
                    way.next = Some(i);
                    break;
                }
            }
        }
        way
    }
    /// The command as it is typed: `millrace pool create`.
    pub fn command(&self) -> String {
        std::iter::once("millrace").chain(self.names.iter().copied()).collect::<Vec<_>>().join(" ")
    }
}

/// `millrace help pool create` means `millrace pool create --help`.
pub fn help_as_option(root: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let way = Way::of(root, &words);
    match way.next {
        Some(i) if words[i] == "help" && way.at.has_subcommands() => {
            let others = words.iter().enumerate().filter(|(n, _)| *n != i).map(|(_, w)| w.clone());
            others.chain([OsString::from("--help")]).collect()
        }
        _ => words,
    }
}

/// The names of a command's commands, and `help`.
fn names(at: &Command) -> Vec<&str> {
    let all = at.get_subcommands().filter(|c| !c.is_hide_set());
    let aliases = at.get_subcommands().flat_map(Command::get_all_aliases);
    all.map(Command::get_name).chain(aliases).chain(["help"]).collect()
}

/// Words as they are typed, `from` of them replaced.
fn line(words: &[OsString], from: usize, count: usize, with: &[&str]) -> String {
    let typed = |w: &OsString| quoted(&w.to_string_lossy());
    let before = words[1..from].iter().map(typed);
    let after = words[(from + count).min(words.len())..].iter().map(typed);
    let with = with.iter().map(|w| w.to_string());
    std::iter::once("millrace".to_string())
        .chain(before)
        .chain(with)
        .chain(after)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The same words with the option `wrong` spelled as `right`.
pub fn with_option(words: &[OsString], wrong: &str, right: &str) -> Option<String> {
    let at = words.iter().position(|w| w.to_string_lossy().split('=').next() == Some(wrong))?;
    let word = words[at].to_string_lossy();
    let value = word.split_once('=').map_or(String::new(), |(_, value)| format!("={value}"));
    Some(line(words, at, 1, &[&format!("{right}{value}")]))
}

/// What is said of a word that is no command, and which command lines were probably meant. None if the words lead to a
/// command that has none below it.
pub fn unknown_command(root: &Command, words: &[OsString]) -> Option<Failure> {
    let way = Way::of(root, words);
    let at = way.next.filter(|_| way.at.has_subcommands())?;
    let word = words[at].to_string_lossy();
    let command = way.command();
    let failure = |more: &str| {
        Failure::usage(format!("{command} has no command {word}{more}"))
            .with_code(CommandFault::UnknownCommand)
    };
    let elsewhere = meant(way.at, &word);
    if !elsewhere.is_empty() {
        let one = |c: &&Command| {
            let about = c.get_about().map_or(String::new(), |a| format!(" ({a})"));
            line(words, at, 1, &[c.get_name()]) + &about
        };
        return Some(
            failure("; did you mean one of these?")
                .with_next(elsewhere.iter().map(one).collect::<Vec<_>>().join(", or ")),
        );
    }
    if way.names.is_empty()
        && let Some(next) = noun_first(root, words, at)
    {
        return Some(failure("; the kind of object comes first").with_next(next));
    }
    if let Some(near) = nearest(&word, names(way.at)) {
        let next = match near {
            "help" => format!("{command} --help"),
            near => {
                let name = way.at.find_subcommand(near).map_or(near, Command::get_name);
                line(words, at, 1, &[name])
            }
        };
        let near = way.at.find_subcommand(near).map_or(near, Command::get_name);
        return Some(failure(&format!("; did you mean {near}?")).with_next(next));
    }
    let all = way.at.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name);
    let all = all.collect::<Vec<_>>().join(", ");
    Some(failure(&format!("; its commands are {all}")).with_next(format!("{command} --help")))
}

/// `create pool tank …` means `millrace pool create tank …`; `create` alone is the verb of several.
fn noun_first(root: &Command, words: &[OsString], at: usize) -> Option<String> {
    let verb = words[at].to_string_lossy();
    let nouns = || root.get_subcommands().filter(|c| c.has_subcommands());
    let verb_of = |noun: &Command| {
        let found = noun.get_subcommands().find(|c| is_called(c, &verb))?;
        Some(found.get_name().to_string())
    };
    if let Some(word) = words.get(at + 1).map(|w| w.to_string_lossy())
        && let Some(noun) = nearest(&word, nouns().map(Command::get_name))
        && let Some(verb) = verb_of(root.find_subcommand(noun)?)
    {
        return Some(line(words, at, 2, &[noun, &verb]));
    }
    let all: Vec<String> =
        nouns().filter_map(|n| Some(format!("millrace {} {}", n.get_name(), verb_of(n)?))).collect();
    (!all.is_empty()).then(|| all.join(", or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn root() -> Command {
        with_aliases(crate::cli::Cli::command())
    }
    fn words(line: &str) -> Vec<OsString> {
        std::iter::once("millrace").chain(line.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn words_from_elsewhere_are_taken_as_ours_at_every_noun() {
        let root = root();
        root.clone().debug_assert();
        for (line, command) in [
            ("pool list", "millrace pool ls"),
            ("volume list", "millrace volume ls"),
            ("volume delete tank/a", "millrace volume rm"),
            ("volume add tank/a", "millrace volume create"),
            ("host create esx1", "millrace host add"),
            ("host remove esx1", "millrace host rm"),
            ("portal new nvme", "millrace portal add"),
            ("pool export tank", "millrace pool release"),
            ("--json drive info sda", "millrace drive show"),
            ("--socket pool volume grow tank/a", "millrace volume resize"),
            ("logs", "millrace events"),
        ] {
            assert_eq!(Way::of(&root, &words(line)).command(), command, "{line}");
        }
    }

    #[test]
    fn help_is_an_option_of_what_follows_it() {
        let root = root();
        let said = |line: &str| {
            let words = help_as_option(&root, words(line));
            words.iter().skip(1).map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said("help"), "--help");
        assert_eq!(said("help pool create"), "pool create --help");
        assert_eq!(said("pool help create"), "pool create --help");
        assert_eq!(said("bench help"), "bench --help");
        // A pool may have that name.
        assert_eq!(said("pool show help"), "pool show help");
    }

    #[test]
    fn a_misspelled_command_is_answered_with_the_command_line_that_was_meant() {
        let root = root();
        for (line, next) in [
            ("hlep", "millrace --help"),
            ("pool hlep", "millrace pool --help"),
            ("stauts", "millrace status"),
            ("volum create tank/a --size 1G", "millrace volume create tank/a --size 1G"),
            ("pools ls", "millrace pool ls"),
            ("pool crate tank mirror a b", "millrace pool create tank mirror a b"),
            ("pool lst", "millrace pool ls"),
            ("bench swep --jobs 4", "millrace bench sweep --jobs 4"),
            ("system jion x", "millrace system join x"),
            ("create pool tank a", "millrace pool create tank a"),
            ("list volumes", "millrace volume ls"),
            ("show pool 'a", "millrace pool show ''\\''a'"),
        ] {
            let failure = unknown_command(&root, &words(line)).expect(line);
            assert_eq!(failure.next.as_deref(), Some(next), "{line}: {failure}");
            assert_eq!(failure.code.as_deref(), Some("unknown_command"));
        }
        let failure = unknown_command(&root, &words("stauts")).expect("a sentence");
        assert_eq!(failure.message, "millrace has no command stauts; did you mean status?");
    }

    #[test]
    fn a_word_that_may_mean_several_names_them_all() {
        let root = root();
        let next = |line: &str| unknown_command(&root, &words(line)).expect(line).next.expect("a command");
        let both = next("pool delete tank");
        assert!(
            both.contains("millrace pool rm tank (") && both.contains("millrace pool destroy tank ("),
            "{both}"
        );
        let all = next("ls");
        for noun in ["pool", "volume", "host", "drive", "portal", "head"] {
            assert!(all.contains(&format!("millrace {noun} ls")), "{all}");
        }
        let none = unknown_command(&root, &words("pool frobnicate")).expect("a sentence");
        assert!(none.message.contains("; its commands are create, add, rm, ls"), "{none}");
        assert_eq!(none.next.as_deref(), Some("millrace pool --help"));
        assert!(unknown_command(&root, &words("pool show tank")).is_none());
    }
}
