//! Millrace in one program: the daemon (`serve`), its command line, the demo and the load generator.
//!
//! Owns the process: configuration, signals, the API server (the only tokio), what a terminal shows.
//! Promise: the command line is a client of the API and of nothing else; every failure is a cause and
//! a next command on stderr, and an exit code. Does not know layouts, sessions or the kernel.

mod access;
mod alarm;
mod apply;
mod arguments;
mod backend;
mod bench;
mod checked;
mod cli;
mod client;
mod config;
mod context;
mod daemon;
mod demo;
mod failure;
mod history;
mod http;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        unused_imports,
        reason = "what both heads serving at once will need of it is there already"
    )
)]
#[cfg_attr(test, allow(unused_imports, reason = "some names are for the layer above alone"))]
mod link;
mod machine;
mod man;
mod output;
mod screen;
mod spelling;
mod state;
mod support;
mod top;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os().collect())
}
