//! `millrace man`: the manual pages, made of the definition of the command line.

use crate::failure::Failure;
use clap::{Args, Command};
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `millrace man`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  millrace man /usr/local/share/man/man1
  millrace man . && man ./millrace-pool-create.1")]
pub struct ManArgs {
    /// Folder to write them into
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes a page for `root` and for each command below it; how many.
pub fn run(args: &ManArgs, root: Command) -> Result<usize, Failure> {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    write(&root, &args.folder)
}

fn write(command: &Command, folder: &Path) -> Result<usize, Failure> {
    let man = Man::new(command.clone()).source(concat!("Millrace ", env!("CARGO_PKG_VERSION")));
    let man = man.manual("Millrace");
    let path = folder.join(man.get_filename());
    let written = page(&man, command).and_then(|page| std::fs::write(&path, page));
    written.map_err(|e| Failure::usage(format!("{} cannot be written: {e}", path.display())))?;
    let below = command.get_subcommands().filter(|c| !c.is_hide_set());
    below.map(|c| write(c, folder)).try_fold(1, |sum, n| Ok(sum + n?))
}

/// One page. The text behind the options keeps its lines: most of it is commands.
fn page(man: &Man, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.get_subcommands().any(|c| !c.is_hide_set()) {
        man.render_subcommands_section(&mut out)?;
    }
    let Some(after) = command.get_after_long_help().or(command.get_after_help()) else { return Ok(out) };
    writeln!(out, ".SH NOTES AND EXAMPLES")?;
    for paragraph in after.to_string().split("\n\n") {
        let lines: Vec<&str> = paragraph.lines().collect();
        // What is indented is commands, which keep their lines.
        for run in lines.chunk_by(|a, b| a.starts_with(' ') == b.starts_with(' ')) {
            let text = escaped(&run.join("\n"));
            if run[0].starts_with(' ') {
                writeln!(out, ".PP\n.nf\n{text}\n.fi")?;
            } else {
                writeln!(out, ".PP\n{text}")?;
            }
        }
    }
    Ok(out)
}

/// Text for the formatter: what would be an escape or a request is none, and hyphens can be copied.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\\\").replace('-', "\\-");
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let folder = tempfile::tempdir().expect("a folder");
        let example = clap::Command::new("add").about("Adds").after_help("Some:\n  top add --x\\n\n.odd");
        let root = clap::Command::new("top").about("All").subcommand(example);
        let hidden = clap::Command::new("gone").hide(true);
        let args = ManArgs { folder: folder.path().into() };
        assert_eq!(run(&args, root.subcommand(hidden)).expect("pages"), 2);
        let page = std::fs::read_to_string(folder.path().join("top-add.1")).expect("a page");
        assert!(page.contains(".nf\n  top add \\-\\-x\\\\n\n.fi\n.PP\n\\&.odd\n"), "{page}");
        let nowhere = ManArgs { folder: folder.path().join("none") };
        let failure = run(&nowhere, clap::Command::new("top")).expect_err("no folder");
        assert!(failure.message.contains("cannot be written"), "{failure}");
    }
}
