//! `millrace apply` and `millrace export-config`: the head as one file says.
//!
//! Promise: the same file applied twice changes nothing the second time; what loses something is done with `--force`
//! alone, and either everything is allowed or nothing is begun. Everything goes by the API, as an operator's commands do.
//! See docs/rfcs/0012-desired-state.md.

mod diff;
mod export;
mod file;
mod pools;
mod print;
mod run;
#[cfg(test)]
mod tests;

use crate::client::segment;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::{pretty, put};
use crate::screen::{Look, count};
use api::{HostCheck, HostChecked, Noticed, Status};
use clap::Args;
use diff::{Diff, Present, diff};
use file::{Desired, SecretFile, Source, key_of};
use finding::CommandFault;
use print::{Line, counts, impossible, left_alone, note};
use run::Runner;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Exit code of `--diff` if something differs.
const DIFFERS: u8 = 5;

/// `millrace apply`.
#[derive(Args, Debug)]
#[command(after_help = "\
FILE names pools, volumes, hosts, exports and portals in TOML. `millrace export-config` prints one of what there is. A kind that the file does not mention is left alone, and so is what the file does not have of the kinds that it mentions, unless you give --prune.

Nothing is done if a change loses data, redundancy or the access of a connected host, and --force is not given. If the head refuses a change, what was done before stays, and the same command does the rest.

Secrets are in files of their own: chap_secret_file = \"/etc/millrace/esx1\". The word \"keep\" in place of a file leaves the secret that the host has.

With --diff the exit code is 5 if something would be done, and 0 if nothing.

Examples:
  millrace apply desired.toml --diff
  millrace apply desired.toml
  millrace apply desired.toml --prune  # remove what it does not have
  millrace export-config > desired.toml")]
pub struct ApplyArgs {
    /// The file, or - for stdin
    #[arg(value_name = "FILE")]
    file: String,
    /// Only show what would be done
    #[arg(long)]
    diff: bool,
    /// Remove what the file does not have, of the kinds that it mentions
    #[arg(long)]
    prune: bool,
    /// Also do what loses data, redundancy or the access of connected hosts
    #[arg(long)]
    force: bool,
}

/// `millrace export-config`.
#[derive(Args, Debug)]
#[command(after_help = "\
The file has all pools, volumes, hosts, exports and portals. Secrets are not in it: `keep` stands for them.

Examples:
  millrace export-config > desired.toml
  millrace apply desired.toml --diff  # nothing to do")]
pub struct ExportConfigArgs {}

/// What there is, as a file for `apply`.
pub fn export_config(context: &Context) -> Result<String, Failure> {
    if context.json {
        return Err(
            Failure::usage("the file is TOML: there is no JSON of it").with_next("millrace status --json")
        );
    }
    let status: Status = context.client.get("/status")?;
    Ok(export::config(&status, &export::lasting_names(&status)))
}

/// What `apply` says as JSON; the shape stays, keys may be added.
#[derive(Serialize)]
struct Told {
    /// What was done, one sentence.
    what: String,
    /// It was done, and not only shown.
    applied: bool,
    /// Every change.
    changes: Vec<Line>,
    /// What the file does not have, and what `--prune` would do.
    extras: Vec<Line>,
    /// What cannot be done: sentences.
    impossible: Vec<String>,
    /// Worth knowing: sentences.
    notes: Vec<String>,
    /// The same, as the head found it.
    notices: Vec<Noticed>,
    /// What is likely to be done next.
    next: Option<String>,
}

/// Makes the head as the file says, or shows what differs.
pub fn apply(args: &ApplyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let source = Source::read(&args.file)?;
    let desired = source.desired()?;
    let diff = compare(&desired, args.prune, context)?;
    let reasons = |(line, key, why): &(usize, &'static str, diff::Impossible)| {
        source.wrong(*line, key, &impossible(why)).message
    };
    let impossible: Vec<String> = diff.impossible.iter().map(reasons).collect();
    if !args.diff {
        refuse_impossible(&impossible, args)?;
        refuse_losses(&diff, args)?;
    }
    let mut runner = Runner { client: &context.client, force: args.force, notices: vec![] };
    if !args.diff {
        let shown = |change: &diff::Change| {
            if context.json { Ok(()) } else { put(&Line::of(change).show(true, context.terminal)) }
        };
        let all = diff.changes.len();
        runner.run(&diff.changes, shown).map_err(|(n, f)| stopped(n, all, f, args))?;
    }
    let differs = !diff.changes.is_empty() || !impossible.is_empty();
    let told = Told {
        what: outcome(&diff, &source, args.diff && differs),
        applied: !args.diff,
        changes: diff.changes.iter().map(Line::of).collect(),
        extras: diff.extras.iter().map(Line::of).collect(),
        impossible,
        notes: diff.notes.iter().map(note).collect(),
        notices: runner.notices,
        next: next(&diff, args),
    };
    put(&if context.json { pretty(&told) } else { screen(&told, &diff, args, context) })?;
    Ok(if args.diff && differs { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS })
}

/// What differs, from what the head says.
fn compare(desired: &Desired, prune: bool, context: &Context) -> Result<Diff, Failure> {
    let client = &context.client;
    let status: Status = client.get("/status")?;
    let held = status.pools.iter().flat_map(|p| {
        p.arrays.iter().flat_map(|a| &a.legs).map(|l| &l.path).chain(p.spares.iter().map(|s| &s.path))
    });
    let mut keys: BTreeMap<String, String> = held.map(|path| (path.clone(), key_of(path))).collect();
    let wanted: Vec<&str> = desired.pools.iter().flatten().flat_map(file::Pool::drives).collect();
    let is_held = |drive: &str| keys.values().any(|key| *key == key_of(drive));
    // A drive that is a file to be made would be made by a look at it, and those in memory hold nothing yet.
    let hidden = |drive: &str| drive.contains("?size=") || file::is_unnamed(drive);
    let new: Vec<&str> = wanted.iter().copied().filter(|d| !is_held(d) && !hidden(d)).collect();
    let drives: Vec<api::Drive> = if new.is_empty() {
        vec![]
    } else {
        let query: Vec<String> = new.iter().map(|d| format!("look={}", segment(file::bare(d)))).collect();
        client.get(&format!("/drives?{}", query.join("&")))?
    };
    let paths = drives.iter().map(|d| d.path.as_str()).chain(wanted);
    keys.extend(paths.map(|path| (path.to_string(), key_of(path))).collect::<Vec<_>>());
    let secrets = check_secrets(desired, &status, context)?;
    let present = Present { status: &status, drives: &drives, secrets: &secrets, keys: &keys };
    Ok(diff(desired, &present, prune))
}

/// Which secrets of the file hosts have already.
fn check_secrets(
    desired: &Desired,
    status: &Status,
    context: &Context,
) -> Result<BTreeMap<String, HostChecked>, Failure> {
    let read = |secret: &SecretFile| match secret {
        SecretFile::Read(secret) => Some(secret.clone()),
        SecretFile::None | SecretFile::Keep | SecretFile::File(_) => None,
    };
    let mut out = BTreeMap::new();
    for host in desired.hosts.iter().flatten() {
        let check = HostCheck {
            chap_secret: read(&host.chap_secret_file),
            mutual_secret: read(&host.mutual_secret_file),
        };
        if check != HostCheck::default() && status.hosts.iter().any(|h| h.name == host.name) {
            let path = format!("/hosts/{}/check", segment(&host.name));
            out.insert(host.name.clone(), context.client.post(&path, &check)?);
        }
    }
    Ok(out)
}

fn refuse_impossible(impossible: &[String], args: &ApplyArgs) -> Result<(), Failure> {
    let Some(first) = impossible.first() else { return Ok(()) };
    let more = match impossible.len() {
        1 => String::new(),
        n => format!("; and {} more", n - 1),
    };
    Err(Failure::new(Exit::Refused, format!("{first}{more}; nothing was changed"))
        .with_code(CommandFault::DesiredStateImpossible)
        .with_next(format!("millrace apply {} --diff", args.file)))
}

fn refuse_losses(diff: &Diff, args: &ApplyArgs) -> Result<(), Failure> {
    let lines = diff.changes.iter().filter(|c| c.loss.is_some()).map(|c| Line::of(c).in_words());
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() || args.force {
        return Ok(());
    }
    let need = if lines.len() == 1 { "needs" } else { "need" };
    let changes = count(lines.len(), "change");
    let message = format!("{changes} {need} --force: {}; nothing was changed", lines.join("; "));
    Err(Failure::new(Exit::Refused, message)
        .with_code(CommandFault::ForceNeeded)
        .with_next(format!("{} --diff, or {0} --force", command(args))))
}

/// The command without `--diff` and `--force`.
fn command(args: &ApplyArgs) -> String {
    format!("millrace apply {}{}", args.file, if args.prune { " --prune" } else { "" })
}

/// The head refused the change after the first `n`.
fn stopped(n: usize, all: usize, failure: Failure, args: &ApplyArgs) -> Failure {
    let message = match n {
        0 => failure.message.clone(),
        n => format!("{}; {n} of {} are done", failure.message.trim_end_matches('.'), count(all, "change")),
    };
    // What the head advises is for its own command.
    let unsafe_now = failure.kind == Some(api::ErrorKind::Unsafe) && !args.force;
    let next = if unsafe_now { Some(format!("{} --force", command(args))) } else { failure.next.clone() };
    Failure { message, next, ..failure }
}

/// What was done, or would be, in a sentence.
fn outcome(diff: &Diff, source: &Source, only_shown: bool) -> String {
    match (diff.changes.is_empty(), only_shown) {
        (true, false) => format!("Nothing to do: all is as {} says.", source.name),
        (true, true) => "Nothing can be done.".into(),
        (false, true) => format!("{}.", counts(&diff.changes, "to ")),
        (false, false) => format!("Done: {}.", counts(&diff.changes, "")),
    }
}

fn next(diff: &Diff, args: &ApplyArgs) -> Option<String> {
    let loses = diff.changes.iter().any(|c| c.loss.is_some());
    let force = if loses { " --force" } else { "" };
    (args.diff && !diff.changes.is_empty() && diff.impossible.is_empty())
        .then(|| format!("{}{force}", command(args)))
}

fn screen(told: &Told, diff: &Diff, args: &ApplyArgs, context: &Context) -> String {
    let terminal = context.terminal;
    let mut out = String::new();
    if args.diff {
        told.changes.iter().for_each(|line| out.push_str(&line.show(args.force, terminal)));
        for why in &told.impossible {
            out.push_str(&terminal.paragraph(Look::Bad, "! ", why, 4));
        }
    }
    out.push_str(&terminal.paragraph(Look::Plain, "", &told.what, 2));
    let notices = told.notices.iter().map(|n| &n.message);
    for text in told.notes.iter().chain(notices) {
        out.push_str(&terminal.paragraph(Look::Plain, "Note: ", text, 6));
    }
    if let Some(text) = left_alone(diff) {
        out.push_str(&terminal.paragraph(Look::Plain, "", &text, 2));
        let prune = format!("millrace apply {} --prune --diff", args.file);
        out.push_str(&terminal.next(told.next.as_deref().unwrap_or(&prune)));
    } else if let Some(next) = &told.next {
        out.push_str(&terminal.next(next));
    }
    out
}
