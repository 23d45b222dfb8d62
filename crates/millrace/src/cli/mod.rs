//! The command line: one file per noun. Everything but `serve`, `demo`, `bench`, `completions` and
//! `openapi` is a request to the daemon's API and a screen made of its answer.

mod complete;
mod consent;
mod drive;
mod events;
mod export;
mod host;
mod pool;
mod portal;
mod scrub;
pub mod status;
mod system;
pub mod times;
mod volume;

use crate::client::Client;
use crate::config;
use crate::context::{Context, by_terminal};
use crate::failure::Failure;
use crate::output::put;
use crate::screen::Terminal;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use export::{ExportArgs, UnexportArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// An NVMe SAN array in one program: mirrored, striped drives, served over NVMe/TCP and iSCSI.
///
/// `millrace serve` is the daemon; every other command asks it over its socket.
#[derive(Parser, Debug)]
#[command(name = "millrace", version, styles = STYLES, max_term_width = 100, propagate_version = false)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
A first volume:
  millrace pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d
  millrace volume create tank/vm1 --size 400G
  millrace host add esx1 --nqn nqn.2014-08.org.nvmexpress:uuid:…
  millrace portal add nvme 10.0.0.1:4420
  millrace export tank/vm1 --host esx1
  millrace status

Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 refused by the daemon, 4 daemon not reachable, 130 a measurement interrupted.

With --json, stdout carries what was asked for, or {what, uuid, notices, next} of what was done; a failure is {\"error\": {what, cause, next, kind, exit}} on stderr.")]
pub struct Cli {
    /// The daemon's socket [env: MILLRACE_SOCKET]
    #[arg(long, global = true, display_order = 900, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print JSON, failures too
    #[arg(long, global = true, display_order = 901)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the whole head on one screen
    Status(status::StatusArgs),
    /// Show what happened
    Events(events::EventsArgs),
    /// Look at drives; fail, return, replace and shape them
    #[command(subcommand)]
    Drive(drive::DriveCommand),
    /// Make pools of drives; release and import them
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Make, resize, rename, cap and remove volumes
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Make hosts known, with their names and secrets
    #[command(subcommand)]
    Host(host::HostCommand),
    /// Choose the addresses to listen on
    #[command(subcommand)]
    Portal(portal::PortalCommand),
    /// Give a volume to a host
    Export(ExportArgs),
    /// Take a volume from a host
    Unexport(UnexportArgs),
    /// Make two heads one system
    #[command(subcommand)]
    System(system::SystemCommand),
    /// Look at the two heads of a system, and shut one out
    #[command(subcommand)]
    Head(system::HeadCommand),
    /// Show what this machine is made of, and what its links pass
    Topology(crate::machine::TopologyArgs),
    /// Show how this machine is set, and what would be better; change it on request
    Tune(crate::machine::TuneArgs),
    /// Say what limits the head now, by which numbers, and what to do
    Explain(crate::machine::ExplainArgs),
    /// Say what a layout of drives will give, and which would be better
    Plan(crate::machine::PlanArgs),
    /// Run the daemon
    Serve(crate::daemon::ServeArgs),
    /// Show everything on this machine, with drives in files
    Demo(crate::demo::DemoArgs),
    /// Load a target over NVMe/TCP or iSCSI and measure it
    Bench(Box<crate::bench::BenchArgs>),
    /// Print completions for a shell
    #[command(after_help = "\
They know the names of pools, volumes, hosts and drives: the shell asks this
program, which asks the daemon.

Examples:
  millrace completions bash > /etc/bash_completion.d/millrace
  millrace completions zsh > /usr/local/share/zsh/site-functions/_millrace
  millrace completions fish > ~/.config/fish/completions/millrace.fish")]
    Completions {
        /// bash, zsh or fish
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Print the OpenAPI document of the daemon's API
    #[command(after_help = "\
Examples:
  millrace openapi > millrace.json
  curl --unix-socket /run/millrace/api.sock http://millrace/api/v1/openapi.json")]
    Openapi,
}

/// The program: what `words` say, and the exit code.
pub fn main(words: Vec<OsString>) -> ExitCode {
    if complete::answer(<Cli as clap::CommandFactory>::command, &words) {
        return ExitCode::SUCCESS;
    }
    let what = command_of(&words);
    let json = words.iter().any(|w| w == "--json");
    let result = Cli::try_parse_from(&words).map_err(|e| usage(&e, json)).and_then(run);
    let Err(failure) = result else { return ExitCode::SUCCESS };
    // Whatever went wrong, there is a way on.
    let failure = failure.or_next(&what);
    match json {
        true => eprintln!("{}", failure.json(&what)),
        false => eprintln!("{failure}"),
    }
    ExitCode::from(failure.exit as u8)
}

/// The words of `words` that name a command: `pool create`.
fn command_of(words: &[OsString]) -> String {
    let root = <Cli as clap::CommandFactory>::command();
    let (mut at, mut path) = (&root, Vec::new());
    for word in words.iter().skip(1).filter_map(|w| w.to_str()) {
        if let Some(found) = at.get_subcommands().find(|c| c.get_name() == word) {
            path.push(word);
            at = found;
        }
    }
    path.join(" ")
}

/// A command line that is not understood. Help is no failure, and without --json the parser's own text is the best.
fn usage(error: &clap::Error, json: bool) -> Failure {
    if let Some(failure) = no_such_verb(error) {
        return failure;
    }
    if !json || !error.use_stderr() {
        error.exit();
    }
    let text = error.to_string();
    let cause = text.split("\n\n").next().unwrap_or(&text).trim_start_matches("error: ");
    Failure::usage(cause.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A word that is no verb of its noun: those there are say more than the one that is spelled most like it.
fn no_such_verb(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(word)) =
        error.get(ContextKind::InvalidSubcommand).filter(|_| error.kind() == ErrorKind::InvalidSubcommand)
    else {
        return None;
    };
    // `Usage: millrace pool [OPTIONS] <COMMAND>`, by whatever name the program was called.
    let text = error.to_string();
    let usage = text.split("Usage: ").nth(1)?.split_once(' ')?.1;
    let noun = usage.split(['[', '<', '\n']).next()?.trim();
    let root = <Cli as clap::CommandFactory>::command();
    let at = if noun.is_empty() { &root } else { root.find_subcommand(noun)? };
    let verbs: Vec<&str> = at.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name()).collect();
    let noun = format!("millrace {noun}");
    let noun = noun.trim_end();
    Some(
        Failure::usage(format!("{noun} has no command {word}: there are {}", verbs.join(", ")))
            .with_next(format!("{noun} --help")),
    )
}

/// Carries out what the command line says.
fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { socket, json, command } = cli;
    let context = || -> Result<Context, Failure> {
        // The variable is for clients: a daemon obeys its configuration.
        let named = socket.clone().or_else(|| std::env::var_os("MILLRACE_SOCKET").map(PathBuf::from));
        let socket = named.filter(|s| !s.as_os_str().is_empty()).unwrap_or_else(config::default_socket);
        let ask = by_terminal(json);
        Ok(Context { client: Client::new(socket)?, json, terminal: Terminal::for_stdout(), ask })
    };
    match command {
        Command::Serve(args) => crate::daemon::serve(args, socket, json),
        Command::Demo(args) => crate::demo::run(args, json),
        Command::Bench(args) => crate::bench::run(*args, json),
        Command::Completions { .. } if json => {
            Err(Failure::usage("completions are a script for a shell: there is no JSON of them")
                .with_next("millrace completions bash"))
        }
        Command::Completions { shell } => put(&complete::script(&shell)),
        Command::Openapi => put(&(crate::http::openapi_json() + "\n")),
        Command::Status(args) if args.watch => status::watch(&args, &context()?),
        Command::Events(args) if args.follow => events::follow(&args, &context()?),
        other => put(&answer(other, &context()?)?),
    }
}

/// The screen of a command that asks the daemon once.
fn answer(command: Command, context: &Context) -> Result<String, Failure> {
    match command {
        Command::Status(args) => status::run(&args, context),
        Command::Events(args) => events::run(&args, context),
        Command::Drive(command) => drive::run(command, context),
        Command::Pool(command) => pool::run(command, context),
        Command::Volume(command) => volume::run(command, context),
        Command::Host(command) => host::run(command, context),
        Command::Portal(command) => portal::run(command, context),
        Command::Export(args) => export::export(args, context),
        Command::Unexport(args) => export::unexport(args, context),
        Command::System(command) => system::run(command, context),
        Command::Head(command) => system::head(command, context),
        Command::Topology(args) => crate::machine::topology(&args, context),
        Command::Tune(args) => crate::machine::tune(&args, context),
        Command::Explain(args) => crate::machine::explain(&args, context),
        Command::Plan(args) => crate::machine::plan(&args, context),
        Command::Serve(_)
        | Command::Demo(_)
        | Command::Bench(_)
        | Command::Completions { .. }
        | Command::Openapi => {
            unreachable!("handled by `run`")
        }
    }
}

#[cfg(test)]
mod tests;
