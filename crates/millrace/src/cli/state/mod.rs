//! `millrace state`: whether the files of the state directory are whole, and what an operator accepts.

use crate::checked::{checked, fault_of};
use crate::config::Config;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::screen::Table;
use crate::state::{self, bytes};
use crate::words::parts::file_fault;
use clap::{Args, Subcommand};
use finding::FileFault;
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
its name. Stop the daemon first: it writes over what was edited meanwhile.

Examples:
  millrace state check
  millrace state check --json
  millrace state check --sign hosts")]
    Check(CheckArgs),
}

/// Which directory, and which file of it.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Accept this file as it is, if everything in it is understood
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
}

/// Carries it out. It works on files: the daemon need not run.
pub fn run(command: StateCommand, context: &Context) -> Result<String, Failure> {
    let StateCommand::Check(CheckArgs { sign, config, state_dir }) = command;
    let mut config = Config::load(config.as_deref())?;
    if let Some(dir) = state_dir {
        config.state_dir = dir;
    }
    if let Some(name) = sign {
        let said = accept(&config, &name)?;
        return Ok(context.done(said, "millrace state check"));
    }
    let found = all(&config.state_dir)?;
    let shown = context.show(&found, |found| list(found).print(context.terminal, 0));
    let Some(bad) = found.iter().find(|c| !c.whole) else { return Ok(shown) };
    crate::output::put(&shown)?;
    let message = bad.why.clone().unwrap_or_default();
    Err(Failure::new(Exit::Internal, message).with_next(format!(
        "restore {0} from a copy, or look at it and accept it: millrace state check --sign {0}",
        bad.file
    )))
}

fn list(found: &[Checked]) -> Table {
    let mut table = Table::new(&["FILE", "WHOLE", ""]);
    for c in found {
        let whole = if c.whole { "yes" } else { "no" };
        table.row([c.file.clone().into(), whole.into(), c.why.clone().unwrap_or_default().into()]);
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
    names.sort();
    let one = |file: String| {
        let path = dir.join(&file).display().to_string();
        let fault = fault_of(dir, &file);
        let why = fault.as_ref().map(|fault| file_fault(&path, fault));
        Checked { whole: fault.is_none(), file, path, why, fault }
    };
    Ok(names.into_iter().map(one).collect())
}

/// Accepts a file as it is. In an old format, it is converted.
fn accept(config: &Config, name: &str) -> Result<String, Failure> {
    let dir = &config.state_dir;
    if !files::kind(name).is_some_and(|k| k.shape.is_sealed()) {
        return Err(Failure::usage(format!("{name} is no file of the state directory that has a checksum"))
            .with_next("millrace state check"));
    }
    // Held until the file is written.
    let _claim = match crate::daemon::claim(config) {
        Ok(claim) => Some(claim),
        Err(_) if LIVE.contains(&name) => None,
        Err(failure) => return Err(failure.with_next("systemctl stop millrace, then the same again")),
    };
    let path = dir.join(name).display().to_string();
    let wrong = |fault: &FileFault| {
        Failure::usage(file_fault(&path, fault)).with_next("repair what is said, then the same again")
    };
    let bytes = bytes(dir, name).map_err(|e| wrong(&e))?;
    let bytes = bytes.ok_or_else(|| Failure::usage(format!("there is no file {path}")))?;
    if checked(name, &bytes).is_ok() {
        return Ok(format!("{path} is whole already."));
    }
    // What cannot be understood as it is may be of a former version. An empty file says nothing that anybody could accept.
    let signed = files::sign(name, &bytes)
        .or_else(|fault| match fault {
            FileFault::Empty => Err(fault),
            fault => files::converted(name, &bytes).map_err(|_| fault),
        })
        .map_err(|e| wrong(&e))?;
    checked(name, &signed).map_err(|e| wrong(&e))?;
    state::put(dir, name, signed).map_err(|e| Failure::usage(state::unwritten(name, &e)))?;
    Ok(format!("{path} is accepted as it is."))
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
