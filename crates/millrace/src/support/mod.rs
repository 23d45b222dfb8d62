//! `millrace support`: one archive with what a report of a problem needs, and without secrets.
//!
//! Promise: the first file of the archive lists the others, and no text leaves without `secrets` having looked at it. What
//! cannot be had is missing and named: a head that does not answer has an archive, too.

mod archive;
mod config;
mod gather;
mod secrets;

use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Table, Terminal};
use clap::Args;
use gather::Gather;
use secrets::Secrets;
use serde::Serialize;
use std::path::PathBuf;

/// `millrace support`.
#[derive(Args, Debug)]
#[command(after_help = "\
The archive holds no secret of a host, key or token. It holds names, addresses and serial numbers.
As root it also has the logs of the kernel and of the daemon.

Examples:
  millrace support --list  # only what it would hold
  millrace support
  millrace support --output /tmp/report.tar.gz")]
pub struct SupportArgs {
    /// Name of the archive (default: millrace-support-TIME.tar.gz, in this folder)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show what it would hold, and write nothing
    #[arg(long)]
    list: bool,
    /// Configuration of the daemon
    #[arg(long, value_name = "FILE", default_value = crate::config::CONFIG_PATH)]
    config: PathBuf,
}

/// What there is to gather. The recording takes a second.
const PARTS: [Part; 10] = [
    ("versions.txt", "the program, the kernel and the distribution", |g| g.versions()),
    ("head.toml", "settings of the daemon that are known to be no secret", |g| g.config()),
    ("status.json", "status of the head", |g| g.status()),
    ("system.json", "the system of two heads, as this head knows it", |g| g.system()),
    ("events.json", "events", |g| g.events()),
    ("metrics.txt", "metrics, as Prometheus gets them", |g| g.metrics()),
    ("machine.rec", "the machine: millrace topology --machine machine.rec", |g| g.machine()),
    ("drives.txt", "block devices and their queues, as the kernel has them", |g| g.drives()),
    ("kernel.log", "messages of the kernel", |g| g.kernel_log()),
    ("journal.log", "log of the daemon, its last 5000 lines", |g| g.journal()),
];
/// A file's name, what it is, and how to get it.
type Part = (&'static str, &'static str, fn(&Gather) -> Found);
/// The first file, which lists the others.
const CONTENTS: &str = "contents.txt";

/// A text, or why there is none.
type Found = Result<String, String>;

/// One file of the archive, as it is listed.
#[derive(Serialize)]
struct Listed {
    file: &'static str,
    about: &'static str,
    /// None: it is not gathered yet, or missing.
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

/// What was packed. The shape stays, keys may be added.
#[derive(Serialize)]
struct Packed {
    /// The archive; None: nothing was written.
    archive: Option<PathBuf>,
    files: Vec<Listed>,
    notices: Vec<String>,
}

/// Carries it out.
pub fn run(args: &SupportArgs, context: &Context) -> Result<String, Failure> {
    if args.list {
        let one = |&(file, about, _): &(_, _, _)| Listed { file, about, bytes: None, missing: None };
        let files = PARTS.iter().map(one).collect();
        let packed = Packed { archive: None, files, notices: vec![] };
        return Ok(context.show(&packed, |p| screen(p, context.terminal)));
    }
    let gather = Gather::new(context, &args.config);
    let secrets = Secrets::of_this_machine(&gather.state_dir(), &args.config);
    let time = gather.time();
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| format!("millrace-support-{}.tar.gz", time.replace(':', "")).into());
    // Made before anything is gathered, so that a wrong name costs no second.
    let mut archive = archive::Archive::create(&output)?;
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for (file, about, get) in PARTS {
        let found = get(&gather).map(|text| secrets.removed_from(&text));
        let (bytes, missing) = match &found {
            Ok(text) => (Some(text.len()), None),
            Err(why) => (None, Some(secrets.removed_from(why))),
        };
        files.push(Listed { file, about, bytes, missing });
        texts.extend(found.ok().map(|text| (file, text)));
    }
    let packed = Packed { archive: Some(output), files, notices: secrets.notices() };
    let listed = table(&packed, Terminal::for_file(100));
    archive.add(CONTENTS, &format!("Millrace support archive, {time}\n\n{listed}"))?;
    for (file, text) in texts {
        archive.add(file, &text)?;
    }
    archive.finish()?;
    Ok(context.show(&packed, |p| screen(p, context.terminal)))
}

/// What is in it, and what is worth knowing of it.
fn table(packed: &Packed, terminal: Terminal) -> String {
    let mut table = Table::new(&["FILE", "BYTES", "WHAT"]).prose();
    for f in &packed.files {
        let bytes = f.bytes.map_or("–".to_string(), |n| n.to_string());
        let about = match &f.missing {
            Some(why) => format!("missing: {why}"),
            None => f.about.to_string(),
        };
        table.row([f.file.into(), bytes.into(), about.into()]);
    }
    let mut out = table.print(terminal, 0) + "\n";
    for notice in &packed.notices {
        out.push_str(&terminal.paragraph(crate::screen::Look::Plain, "Note: ", notice, 6));
    }
    out
}

fn screen(packed: &Packed, terminal: Terminal) -> String {
    let end = match &packed.archive {
        Some(archive) => format!("Written: {}\n", archive.display()),
        None => "Nothing was written.\n".to_string(),
    };
    table(packed, terminal) + &end
}
