//! The end of a measurement: what was measured is shown, printed as JSON, and made a report of. `millrace bench report` does
//! the last with results that were kept.

use super::html;
use super::result::doc::Doc;
use crate::failure::Failure;
use crate::output::{pretty, put};
use crate::screen::{Look, Terminal};
use clap::Args;
use std::path::{Path, PathBuf};

/// `millrace bench report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  millrace bench ladder --drive null --json > ladder.json
  millrace bench report ladder.json --html report.html")]
pub struct ReportArgs {
    /// Files with the output of --json
    #[arg(value_name = "FILE", required = true)]
    results: Vec<PathBuf>,
    /// File to write the report to
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

/// Makes one report of several results.
pub fn run(args: &ReportArgs, json: bool) -> Result<(), Failure> {
    let mut docs = vec![];
    for path in &args.results {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
        let doc: Doc = serde_json::from_str(&text).map_err(|e| {
            Failure::usage(format!("{} is no result of millrace bench: {e}", path.display()))
                .with_next("millrace bench ladder --json > FILE")
        })?;
        docs.push(doc);
    }
    write_html(&args.html, &docs)?;
    if json { put(&pretty(&docs)) } else { put(&format!("{}\n", args.html.display())) }
}

/// Shows a result: `text` for people, or JSON, and the report if one was asked for.
pub fn finish(doc: &Doc, text: &str, json: bool, html: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = html {
        write_html(path, std::slice::from_ref(doc))?;
    }
    if json {
        return put(&pretty(doc));
    }
    let terminal = Terminal::for_stdout();
    let mut out = text.to_string();
    out.push('\n');
    for note in &doc.notes {
        out.push_str(&terminal.paragraph(Look::Warn, "Note: ", note, 6));
    }
    out.push_str(&terminal.paragraph(Look::Dim, "on    ", &doc.machine.line(), 6));
    if let Some(path) = html {
        out.push_str(&terminal.paragraph(Look::Dim, "plots ", &path.display().to_string(), 6));
    }
    put(&out)
}

fn write_html(path: &Path, docs: &[Doc]) -> Result<(), Failure> {
    std::fs::write(path, html::page(docs))
        .map_err(|e| Failure::usage(format!("cannot write {}: {e}", path.display())).with_next("--html FILE"))
}
