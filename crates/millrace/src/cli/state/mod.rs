//! `millrace state`: whether the files of the state directory are whole, and what an operator accepts.

use crate::checked::{checked, fault_of, unused_rows};
use crate::config::Config;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::screen::Table;
use crate::state::{self, bytes};
use crate::words::parts::file_fault;
use crate::words::topology::quoted;
use clap::{Args, Subcommand};
use finding::{FileFault, RecordCause};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Files that a running daemon reads again once they change, and does not write over while they are not whole.
const LIVE: [&str; 2] = ["tokens", "alarms"];

/// Check the files of the state directory, and accept one that was edited.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace state check
  millrace state check --sign hosts")]
pub enum StateCommand {
    /// Say of each file whether it is whole; with --sign, accept one as it is
    #[command(after_help = "\
Each file of the state directory ends with a checksum. One that was damaged or
edited by hand is not used until an operator has looked at it and accepts it, by
its name or path. Stop the daemon first: it writes over what is edited or
damaged while it runs. Rows with fields of a newer version are accepted, too,
and are not used.

Examples:
  millrace state check
  millrace state check --json
  millrace state check --sign hosts")]
    Check(CheckArgs),
}

/// Which directory, and which file of it.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Accept this file, by its name or path, as it is
    #[arg(long, value_name = "FILE")]
    sign: Option<String>,
    /// Configuration file of the daemon [default: /etc/millrace/head.toml, if it exists]
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The state directory [default: that of the configuration]
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
}

/// What was found of a file: the shape stays, keys may be added.
#[derive(Serialize)]
struct Checked {
    file: String,
    path: String,
    /// Its reader takes it.
    whole: bool,
    /// Why it does not, one sentence.
    why: Option<String>,
    fault: Option<FileFault>,
    /// Rows that are not used, as they have a field that this version does not know: a sentence each.
    unused: Vec<String>,
}

/// The file that is meant, and the folder that it is in, where its path was given.
fn named(sign: &str) -> (&str, Option<PathBuf>) {
    match sign.rsplit_once('/') {
        None => (sign, None),
        Some(("", name)) => (name, Some("/".into())),
        Some((folder, name)) => (name, Some(folder.into())),
    }
}

/// The command that checks the same directory.
fn again(config: Option<&Path>, state_dir: Option<&Path>) -> String {
    let mut words = "millrace state check".to_string();
    for (option, value) in [("-c", config), ("--state-dir", state_dir)] {
        if let Some(value) = value {
            words += &format!(" {option} {}", quoted(&value.display().to_string()));
        }
    }
    words
}

/// Carries it out. It works on files: the daemon need not run.
pub fn run(command: StateCommand, context: &Context) -> Result<String, Failure> {
    let StateCommand::Check(CheckArgs { sign, config: file, state_dir }) = command;
    let mut config = Config::load(file.as_deref())?;
    let sign = sign.as_deref().map(named);
    let state_dir = sign.as_ref().and_then(|(_, folder)| folder.clone()).or(state_dir);
    if let Some(dir) = &state_dir {
        config.state_dir.clone_from(dir);
    }
    if let Some((name, _)) = sign {
        let next = again(file.as_deref(), state_dir.as_deref());
        let said =
            accept(&config, name).map_err(|f| if f.next.is_none() { f.with_next(&*next) } else { f })?;
        return Ok(context.done(said, &next));
    }
    let found = all(&config.state_dir)?;
    let shown = context.show(&found, |found| list(found).print(context.terminal, 0));
    let Some(bad) = found.iter().find(|c| !c.whole) else { return Ok(shown) };
    crate::output::put(&shown)?;
    let failure = Failure::new(Exit::Internal, bad.why.clone().unwrap_or_default());
    Err(match next_of(bad) {
        Some(next) => failure.with_next(next),
        None => failure,
    })
}

/// What helps against a file that is not whole, as `status` says it.
fn next_of(bad: &Checked) -> Option<String> {
    let (file, path, why) = (bad.file.clone(), bad.path.clone(), bad.fault.clone()?);
    crate::words::cause(&RecordCause::FileUnreadable { file, path, why }.into()).next
}

fn list(found: &[Checked]) -> Table {
    let mut table = Table::new(&["FILE", "WHOLE", ""]);
    for c in found {
        let whole = if c.whole { "yes" } else { "no" };
        let said = c.why.clone().unwrap_or_else(|| c.unused.join("; "));
        table.row([c.file.clone().into(), whole.into(), said.into()]);
    }
    table
}

/// What is so of each file that has an end.
fn all(dir: &Path) -> Result<Vec<Checked>, Failure> {
    let unread = |e: std::io::Error| Failure::usage(format!("{}: {e}", dir.display()));
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .and_then(|all| all.map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned())).collect())
        .map_err(unread)?;
    names.retain(|name| files::kind(name).is_some_and(|k| k.shape.is_sealed()));
    if names.is_empty() {
        let message = format!("{} is no state directory: it has none of its files", dir.display());
        return Err(Failure::usage(message).with_next("millrace state check --state-dir FOLDER"));
    }
    names.sort();
    let one = |file: String| {
        let path = dir.join(&file).display().to_string();
        let fault = fault_of(dir, &file);
        let why = fault.as_ref().map(|fault| file_fault(&path, fault));
        let there = bytes(dir, &file).ok().flatten().unwrap_or_default();
        let unused = unused(&file, &path, &there);
        Checked { whole: fault.is_none(), file, path, why, fault, unused }
    };
    Ok(names.into_iter().map(one).collect())
}

/// What is said of rows that are not used.
fn unused(name: &str, path: &str, bytes: &[u8]) -> Vec<String> {
    let said = |(row, field)| {
        let (file, path) = (name.to_string(), path.to_string());
        crate::words::cause(&RecordCause::RowNotUnderstood { file, path, row, field }.into()).message
    };
    unused_rows(name, bytes).into_iter().map(said).collect()
}

/// Accepts a file as it is, and says which rows of it are not used. In an old format, it is converted.
fn accept(config: &Config, name: &str) -> Result<String, Failure> {
    let dir = &config.state_dir;
    if !files::kind(name).is_some_and(|k| k.shape.is_sealed()) {
        return Err(Failure::usage(format!("{name} is no file of the state directory that has a checksum")));
    }
    let path = dir.join(name).display().to_string();
    let none = || Failure::usage(format!("there is no file {path}"));
    // A claim would make the folder.
    if !dir.join(name).exists() {
        return Err(none());
    }
    // Held until the file is written.
    let _claim = match crate::daemon::claim(config) {
        Ok(claim) => Some(claim),
        Err(_) if LIVE.contains(&name) => None,
        Err(failure) => return Err(failure.with_next("systemctl stop millrace, then the same again")),
    };
    let wrong = |fault: &FileFault| {
        Failure::usage(file_fault(&path, fault)).with_next("repair what is said, then the same again")
    };
    let bytes = bytes(dir, name).map_err(|e| wrong(&e))?;
    let bytes = bytes.ok_or_else(none)?;
    let told = |done: &str, bytes: &[u8]| {
        let first = format!("{path} is {done}");
        core::iter::once(first).chain(unused(name, &path, bytes)).collect::<Vec<_>>().join("; ") + "."
    };
    if checked(name, &bytes).is_ok() {
        return Ok(told("whole already", &bytes));
    }
    // What cannot be understood as it is may be of a former version. An empty file says nothing that anybody could accept.
    let signed = files::sign(name, &bytes)
        .or_else(|fault| match fault {
            FileFault::Empty => Err(fault),
            fault => files::converted(name, &bytes).map_err(|_| fault),
        })
        .map_err(|e| wrong(&e))?;
    checked(name, &signed).map_err(|e| wrong(&e))?;
    let said = told("accepted as it is", &signed);
    state::put(dir, name, signed).map_err(|e| Failure::usage(state::unwritten(name, &e)))?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_accepts_by_name_what_is_understood_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().to_path_buf(), ..Config::default() };
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("written");
        let whole = || all(folder.path()).expect("a folder").iter().map(|c| c.whole).collect::<Vec<_>>();
        let host = "[[host]]\nname = \"a\" # by hand\niqn = [\"iqn.1998-01.com.example:a\"]\n";
        write("hosts", &format!("version = 1\nfile = \"hosts\"\n{host}"));
        write("events", "no end");
        assert_eq!(whole(), [false]);
        accept(&config, "hosts").expect("good");
        assert_eq!(whole(), [true]);
        assert!(std::fs::read_to_string(path("hosts")).expect("there").contains("# by hand"));
        assert!(accept(&config, "hosts").expect("nothing to do").contains("already"));
        // In an old format, it comes out in the new one.
        write("portals", "portal = iscsi 10.0.0.1:3260 1\n");
        accept(&config, "portals").expect("good");
        assert_eq!(whole(), [true, true]);
        for (name, text) in [
            ("hosts", "version = 1\nfile = \"hosts\"\n[[host]]\nname = \"a\"\nnqn = [\"x\"]\n"),
            ("hosts", "version = 1\nfile = \"hosts\"\nonly_from = 1\n"),
            ("hosts", "version = 1\nfile = \"pools\"\n"),
            ("hosts", ""),
            (
                "tokens",
                "version = 1\nfile = \"tokens\"\n[[token]]\nname = \"a\"\nrights = \"all\"\nsha256 = \"\"\n",
            ),
        ] {
            write(name, text);
            let failure = accept(&config, name).expect_err("not understood");
            assert!(failure.message.contains(&path(name).display().to_string()), "{failure:?}");
            assert_eq!(std::fs::read_to_string(path(name)).expect("there"), text);
        }
        for name in ["events", "notes", "../hosts", "pools"] {
            accept(&config, name).expect_err("no such file");
        }
    }

    #[test]
    fn what_is_accepted_names_the_rows_that_are_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().to_path_buf(), ..Config::default() };
        let host = |name: &str, more: &str| {
            format!("[[host]]\nname = \"{name}\"\niqn = [\"iqn.1998-01.com.example:{name}\"]\n{more}")
        };
        let text = format!(
            "version = 1\nfile = \"hosts\"\n{}{}",
            host("old", ""),
            host("new", "only_from = \"10.0.0.0/8\"\n")
        );
        std::fs::write(folder.path().join("hosts"), text).expect("written");
        for done in ["accepted", "whole already"] {
            let said = accept(&config, "hosts").expect("accepted");
            assert!(said.contains(done) && said.contains("says only_from of new"), "{said}");
            assert!(!said.contains(" of old"), "{said}");
        }
        let found = all(folder.path()).expect("a state directory");
        assert!(found[0].whole && found[0].unused.len() == 1, "{:?}", found[0].unused);
    }

    #[test]
    fn what_helps_is_about_the_directory_that_was_asked_about() {
        assert_eq!(named("hosts"), ("hosts", None));
        assert_eq!(named("/srv/state/hosts"), ("hosts", Some("/srv/state".into())));
        assert_eq!(named("/hosts"), ("hosts", Some("/".into())));
        assert_eq!(again(None, None), "millrace state check");
        let both = again(Some(Path::new("a/head.toml")), Some(Path::new("/srv/a b")));
        assert_eq!(both, "millrace state check -c a/head.toml --state-dir '/srv/a b'");
        // Nothing is made where nothing was.
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().join("none"), ..Config::default() };
        accept(&config, "hosts").expect_err("no such file");
        assert!(!config.state_dir.exists());
        let failure = all(folder.path()).err().expect("no state directory");
        assert!(failure.message.contains("is no state directory"), "{failure:?}");
        std::fs::write(folder.path().join("hosts"), "version = 1\n").expect("written");
        let found = all(folder.path()).expect("a state directory");
        let next = next_of(&found[0]).expect("a way on");
        let sign = format!("millrace state check --sign {}", folder.path().join("hosts").display());
        let order = ["systemctl stop millrace", &sign, "systemctl start millrace"];
        let at: Vec<Option<usize>> = order.iter().map(|word| next.find(word)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{next}");
    }

    #[test]
    fn a_file_that_a_running_daemon_would_write_over_is_not_accepted() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().to_path_buf(), ..Config::default() };
        let _daemon = crate::daemon::claim(&config).expect("free");
        for name in ["hosts", "tokens"] {
            std::fs::write(folder.path().join(name), format!("version = 1\nfile = \"{name}\"\n"))
                .expect("written");
        }
        let failure = accept(&config, "hosts").expect_err("the daemon runs");
        assert!(failure.next.is_some_and(|next| next.contains("systemctl stop")));
        accept(&config, "tokens").expect("it is read again once it changes");
    }
}
