//! What the parser of the command line has to say, in the words and in the style of all other failures.

mod commands;

use crate::failure::Failure;
use crate::spelling::nearest;
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use finding::CommandFault;
use std::error::Error as _;
use std::ffi::OsString;

pub use commands::{Way, help_as_option, with_aliases};
use commands::{unknown_command, with_option};

/// The failure that `error` is; None if it is what was asked for: help, or the version.
pub fn failure(error: &Error, root: &Command, words: &[OsString]) -> Option<Failure> {
    let is_asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_asked_for {
        return None;
    }
    let way = Way::of(root, words);
    // What the parser says of anything that is not known here: its first paragraph.
    let plain = || {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or(&text).trim_start_matches("error: ");
        Failure::usage(first.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let said = in_our_words(error, root, &way, words).unwrap_or_else(plain);
    Some(if said.next.is_some() { said } else { said.with_next(format!("{} --help", way.command())) })
}

fn in_our_words(error: &Error, root: &Command, way: &Way<'_>, words: &[OsString]) -> Option<Failure> {
    let failure = |message: String, code| Failure::usage(message).with_code(code);
    match error.kind() {
        ErrorKind::InvalidSubcommand => unknown_command(root, words),
        // A command that works without one of those below it takes a misspelled one for a word too many.
        ErrorKind::UnknownArgument => {
            let wrong = text(error, ContextKind::InvalidArg)?;
            let is_command = way.next.is_some_and(|i| words[i].to_string_lossy() == wrong);
            let command = is_command.then(|| unknown_command(root, words)).flatten();
            Some(command.unwrap_or_else(|| unknown_argument(&wrong, way, words)))
        }
        ErrorKind::MissingRequiredArgument => missing(error, &way.command()),
        ErrorKind::InvalidValue => invalid_value(error),
        ErrorKind::ValueValidation => {
            let option = text(error, ContextKind::InvalidArg)?;
            Some(failure(format!("{}: {}", bare(&option), error.source()?), CommandFault::InvalidValue))
        }
        ErrorKind::ArgumentConflict => {
            let one = text(error, ContextKind::InvalidArg)?;
            let other = text(error, ContextKind::PriorArg)?;
            let (one, other) = (bare(&one), bare(&other));
            Some(if one == other {
                failure(format!("{one} is given twice"), CommandFault::RepeatedOption)
            } else {
                failure(
                    format!("{one} and {other} cannot be used together"),
                    CommandFault::ConflictingOptions,
                )
            })
        }
        _ => None,
    }
}

/// What the parser noted of its error, in words.
fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(all) => Some(all.iter().map(|a| bare(a)).collect::<Vec<_>>().join(" or ")),
        _ => None,
    }
}

/// `--size` of `--size <SIZE>`, `VOLUME` of `<VOLUME>`.
fn bare(argument: &str) -> &str {
    match argument.split_once(" <") {
        Some((option, _)) => option,
        None => argument.trim_start_matches(['<', '[']).trim_end_matches("...").trim_end_matches(['>', ']']),
    }
}

/// The options of a command, but for those that all commands have.
fn options(at: &Command) -> Vec<String> {
    let own = at.get_arguments().filter(|a| !a.is_hide_set() && !a.is_global_set());
    let long =
        own.filter_map(|a| a.get_long()).filter(|l| !["help", "version", "socket", "json"].contains(l));
    long.map(|l| format!("--{l}")).collect()
}

/// An option that there is not, or a word too many.
fn unknown_argument(wrong: &str, way: &Way<'_>, words: &[OsString]) -> Failure {
    let command = way.command();
    let options = options(way.at);
    let all =
        if options.is_empty() { String::new() } else { format!("; its options are {}", options.join(", ")) };
    if !wrong.starts_with('-') {
        let message = format!("{command} does not take the word {wrong}{all}");
        return Failure::usage(message).with_code(CommandFault::ExtraArgument);
    }
    let failure = |more: &str| {
        Failure::usage(format!("{command} has no option {wrong}{more}"))
            .with_code(CommandFault::UnknownOption)
    };
    let known = options.iter().map(String::as_str).chain(["--help", "--json", "--socket"]);
    match nearest(wrong, known) {
        Some(near) => {
            Failure { next: with_option(words, wrong, near), ..failure(&format!("; did you mean {near}?")) }
        }
        None => failure(&all),
    }
}

/// What must be there and is not, with all that may stand for it.
fn missing(error: &Error, command: &str) -> Option<Failure> {
    let ContextValue::Strings(all) = error.get(ContextKind::InvalidArg)? else { return None };
    let one = |argument: &String| match argument.strip_prefix('<').and_then(|a| a.strip_suffix('>')) {
        // A group: `<--on|--off>`.
        Some(group) if group.starts_with("--") => {
            let any: Vec<&str> = group.split('|').collect();
            match &any[..] {
                [some @ .., last] if !some.is_empty() => format!("{} or {last}", some.join(", ")),
                _ => group.to_string(),
            }
        }
        Some(word) => word.to_string(),
        // A list takes one value, too: `--link <ADDRESS,...>`.
        None => argument.replace(",...", "").trim_end_matches("...").replace(['<', '>'], ""),
    };
    let all = all.iter().map(|a| one(a).replace(['<', '>'], "")).collect::<Vec<_>>().join(" and ");
    Some(Failure::usage(format!("{command} needs {all}")).with_code(CommandFault::MissingArgument))
}

/// A value that is none of those there are, or none at all.
fn invalid_value(error: &Error) -> Option<Failure> {
    let option = text(error, ContextKind::InvalidArg)?;
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let valid = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) => valid.clone(),
        _ => vec![],
    };
    let listed = match &valid[..] {
        [] => String::new(),
        [one] => format!(": write {one}"),
        [some @ .., last] => format!(": write {} or {last}", some.join(", ")),
    };
    let near = nearest(&value, valid.iter().map(String::as_str));
    let near = near.map_or(String::new(), |n| format!("; did you mean {n}?"));
    let message = if value.is_empty() {
        format!("{} needs a value{listed}", bare(&option))
    } else {
        format!("{}: \"{value}\" is not one of its values{listed}{near}", bare(&option))
    };
    Some(Failure::usage(message).with_code(CommandFault::InvalidValue))
}

#[cfg(test)]
mod tests {
    use super::super::parsed;
    use super::*;
    use clap::CommandFactory;

    fn said(line: &str) -> (String, String, String) {
        let words: Vec<OsString> =
            std::iter::once("millrace").chain(line.split_whitespace()).map(OsString::from).collect();
        let error = parsed(&words).expect_err(line);
        let root = with_aliases(super::super::Cli::command());
        let failure = failure(&error, &root, &words).expect(line);
        assert!(
            !failure.message.contains('\n') && failure.to_string().lines().count() == 2,
            "{line}: {failure}"
        );
        (failure.code.expect("a code"), failure.message, failure.next.expect("a command"))
    }

    #[test]
    fn errors_of_the_parser_have_the_style_of_all_others() {
        for (line, code, message, next) in [
            (
                "volume create",
                "missing_argument",
                "millrace volume create needs --size SIZE and VOLUME",
                "millrace volume create --help",
            ),
            (
                "volume create tank/a",
                "missing_argument",
                "millrace volume create needs --size SIZE",
                "millrace volume create --help",
            ),
            (
                "volume create tank/a --sise 1G",
                "unknown_option",
                "millrace volume create has no option --sise; did you mean --size?",
                "millrace volume create tank/a --size 1G",
            ),
            (
                "volume set tank/a --iops-mx=5k",
                "unknown_option",
                "millrace volume set has no option --iops-mx; did you mean --iops-max?",
                "millrace volume set tank/a --iops-max=5k",
            ),
            (
                "volume set tank/a",
                "missing_argument",
                "millrace volume set needs --iops-max N, --mbps-max N or --weight N",
                "millrace volume set --help",
            ),
            (
                "system join TOKEN",
                "missing_argument",
                "millrace system join needs --link ADDRESS",
                "millrace system join --help",
            ),
            (
                "volume set tank/a --cap 5",
                "unknown_option",
                "millrace volume set has no option --cap; its options are --iops-max, --mbps-max, --weight",
                "millrace volume set --help",
            ),
            (
                "volume set tank/a iops=5",
                "extra_argument",
                "millrace volume set does not take the word iops=5; its options are --iops-max, --mbps-max, --weight",
                "millrace volume set --help",
            ),
            (
                "pool ls tank",
                "extra_argument",
                "millrace pool ls does not take the word tank",
                "millrace pool ls --help",
            ),
            (
                "volume create tank/a --size ten",
                "invalid_value",
                "--size: \"ten\" is not a size: write a number with K, M, G, T or P, such as 400G",
                "millrace volume create --help",
            ),
            (
                "completions fihs",
                "invalid_value",
                "SHELL: \"fihs\" is not one of its values: write bash, zsh or fish; did you mean fish?",
                "millrace completions --help",
            ),
            (
                "volume create tank/a --size",
                "invalid_value",
                "--size needs a value",
                "millrace volume create --help",
            ),
            (
                "pool create tank a --weights 1 --measure",
                "conflicting_options",
                "--weights and --measure cannot be used together",
                "millrace pool create --help",
            ),
            (
                "volume create tank/a --size 1G --size 2G",
                "repeated_option",
                "--size is given twice",
                "millrace volume create --help",
            ),
            (
                "drive locate sda",
                "missing_argument",
                "millrace drive locate needs --on or --off",
                "millrace drive locate --help",
            ),
        ] {
            assert_eq!(said(line), (code.into(), message.into(), next.into()), "{line}");
        }
        // The word behind an option is no command.
        let (code, message, _) = said("bench --target nvme://10.0.0.1:4420/nqn.a/1 --depth 4");
        assert!(
            code == "unknown_option" && message.starts_with("millrace bench has no option --depth"),
            "{message}"
        );
        assert_eq!(said("hlep").0, "unknown_command");
        assert_eq!(said("bench swep").2, "millrace bench sweep");
    }
}
