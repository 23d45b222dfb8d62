//! The command line: one file per noun. Everything but `serve`, `demo`, `bench`, `completions`, `man`
//! and `openapi` is a request to the daemon's API and a screen made of its answer.

mod complete;
mod consent;
pub mod drive;
mod events;
mod export;
mod host;
mod misread;
mod pool;
mod portal;
mod scrub;
mod state;
pub mod status;
mod system;
pub mod times;
mod token;
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
/// `millrace serve` runs the daemon. All other commands are its clients, over a Unix socket.
#[derive(Parser, Debug)]
#[command(name = "millrace", version = env!("MILLRACE_VERSION"), styles = STYLES, max_term_width = 100, propagate_version = false)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
A first volume:
  millrace pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d
  millrace volume create tank/vm1 --size 400G
  millrace host add web1 --nqn nqn.2014-08.org.nvmexpress:uuid:…
  millrace portal add nvme 10.0.0.1:4420
  millrace export tank/vm1 --host web1
  millrace status

Exit codes: 0 success, 1 failure, 2 wrong command line or configuration, 3 refused by the daemon, 4 daemon not reachable, 5 differences found (apply --diff), 130 interrupted by Ctrl-C.

With --json, a command prints its result on stdout; a command that changes something prints {what, uuid, notices, next}. An error is {\"error\": {what, cause, next, code, fields, kind, exit}} on stderr; docs/api-codes.md lists the codes, which are stable, and their fields.")]
pub struct Cli {
    /// Unix socket of the daemon [env: MILLRACE_SOCKET]
    #[arg(long, global = true, display_order = 900, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A daemon over TCP instead: https://HEAD:PORT [env: MILLRACE_URL]
    #[arg(long = "url", global = true, display_order = 900, value_name = "URL", conflicts_with = "socket")]
    api_url: Option<String>,
    /// SHA-256 of the certificate that the daemon at the URL shows [env: MILLRACE_FINGERPRINT]
    #[arg(long, global = true, display_order = 900, value_name = "HEX")]
    fingerprint: Option<String>,
    /// Print JSON, errors included
    #[arg(long, global = true, display_order = 901)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show health, pools, volumes, hosts and portals on one screen
    Status(status::StatusArgs),
    /// Show rates, latencies and queue depths, live
    Top(crate::top::TopArgs),
    /// Show the event log
    Events(events::EventsArgs),
    /// Test and list who is told what goes wrong
    #[command(subcommand)]
    Alarm(crate::alarm::AlarmCommand),
    /// List and show drives; fail, return, replace and remove them
    #[command(subcommand)]
    Drive(drive::DriveCommand),
    /// Create, grow, release, import, scrub and destroy pools
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Create, resize, rename, limit and remove volumes
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Register hosts, with their NQNs, IQNs and CHAP secrets
    #[command(subcommand)]
    Host(host::HostCommand),
    /// Add, list and remove the addresses that hosts connect to
    #[command(subcommand)]
    Portal(portal::PortalCommand),
    /// Export a volume to a host
    Export(ExportArgs),
    /// Stop exporting a volume to a host
    Unexport(UnexportArgs),
    /// Make pools, volumes, hosts, exports and portals as a file says
    Apply(crate::apply::ApplyArgs),
    /// Print pools, volumes, hosts, exports and portals as a file for apply
    ExportConfig(crate::apply::ExportConfigArgs),
    /// Make, list and remove the tokens of the API over TCP
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Check the files of the state directory, and accept one that was edited
    #[command(subcommand)]
    State(state::StateCommand),
    /// Join two heads into one system, or separate them
    #[command(subcommand)]
    System(system::SystemCommand),
    /// List the two heads of a system; fence one, or make one lead
    #[command(subcommand)]
    Head(system::HeadCommand),
    /// Show this machine's hardware, and what each link can carry
    Topology(crate::machine::TopologyArgs),
    /// Show settings of this machine that cost performance, and change them on request
    Tune(crate::machine::TuneArgs),
    /// Show what limits performance now, with numbers and advice
    Explain(crate::machine::ExplainArgs),
    /// Predict how fast a layout of drives will be, and suggest a better one
    Plan(crate::machine::PlanArgs),
    /// Pack what a report of a problem needs into one archive, without secrets
    Support(crate::support::SupportArgs),
    /// Run the daemon
    Serve(crate::daemon::ServeArgs),
    /// Run a demonstration on this machine, with files as drives
    Demo(crate::demo::DemoArgs),
    /// Measure a volume over NVMe/TCP or iSCSI, or drives of this machine
    Bench(Box<crate::bench::BenchArgs>),
    /// Print the completion script for a shell
    #[command(after_help = "\
The script completes names of pools, volumes, hosts and drives, too: it asks the daemon for them.

Examples:
  millrace completions bash > /etc/bash_completion.d/millrace
  millrace completions zsh > /usr/local/share/zsh/site-functions/_millrace
  millrace completions fish > ~/.config/fish/completions/millrace.fish")]
    Completions {
        /// bash, zsh or fish
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Write the manual pages into a folder
    Man(crate::man::ManArgs),
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
    let root = misread::with_aliases(<Cli as clap::CommandFactory>::command());
    let words = misread::help_as_option(&root, words);
    let what = misread::Way::of(&root, &words).names.join(" ");
    let json = words.iter().any(|w| w == "--json");
    // Help is no failure: the parser prints it.
    let misread = |e: clap::Error| misread::failure(&e, &root, &words).unwrap_or_else(|| e.exit());
    let result = parsed(&words).map_err(misread).and_then(run);
    let failure = match result {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    // Whatever went wrong, there is a way on.
    let failure = failure.or_next(&what);
    if json {
        eprintln!("{}", failure.json(&what))
    } else {
        eprintln!("{failure}")
    }
    ExitCode::from(failure.exit as u8)
}

/// What the words of a command line mean to the parser, words from elsewhere among them.
fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let command = misread::with_aliases(<Cli as clap::CommandFactory>::command());
    <Cli as clap::FromArgMatches>::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Carries out what the command line says.
fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { socket, api_url: url, fingerprint, json, command } = cli;
    let by_socket = socket.is_some();
    let context = || -> Result<Context, Failure> {
        // The variable is for clients: a daemon obeys its configuration.
        let named = socket.clone().or_else(|| std::env::var_os("MILLRACE_SOCKET").map(PathBuf::from));
        let socket = named.filter(|s| !s.as_os_str().is_empty()).unwrap_or_else(config::default_socket);
        let ask = by_terminal(json);
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let fingerprint = fingerprint.clone().or_else(|| set("MILLRACE_FINGERPRINT"));
        let client = match url.clone().or_else(|| set("MILLRACE_URL").filter(|_| !by_socket)) {
            Some(url) => Client::elsewhere(&url, fingerprint.as_deref())?,
            None => Client::new(socket)?,
        };
        let terminal = Terminal::for_stdout();
        Ok(Context { client, json, terminal, taken: uring::taken, ask })
    };
    let shown = match command {
        Command::Apply(args) => return crate::apply::apply(&args, &context()?),
        Command::Serve(args) if args.example && json => {
            Err(Failure::usage("the example is TOML: there is no JSON of it")
                .with_next("millrace serve --example"))
        }
        Command::Serve(args) if args.example => put(config::EXAMPLE),
        Command::Serve(args) => crate::daemon::serve(args, socket, json),
        Command::Demo(args) => crate::demo::run(args, json),
        Command::Bench(args) => crate::bench::run(*args, json),
        Command::Completions { .. } if json => {
            Err(Failure::usage("completions are a script for a shell: there is no JSON of them")
                .with_next("millrace completions bash"))
        }
        Command::Completions { shell } => put(&complete::script(&shell)),
        Command::Man(args) => {
            let pages = crate::man::run(&args, <Cli as clap::CommandFactory>::command())?;
            put(&context()?.done(format!("{pages} manual pages are written."), ""))
        }
        Command::Openapi => put(&(crate::http::openapi_json() + "\n")),
        Command::Status(args) if args.watch => status::watch(&args, &context()?),
        Command::Status(args) if args.check => status::check(context),
        Command::Top(args) => crate::top::run(&args, context()?),
        Command::Events(args) if args.follow => events::follow(&args, &context()?),
        other => put(&answer(other, &context()?)?),
    };
    shown.map(|()| ExitCode::SUCCESS)
}

/// The screen of a command that asks the daemon once.
fn answer(command: Command, context: &Context) -> Result<String, Failure> {
    match command {
        Command::Status(args) => status::run(&args, context),
        Command::Events(args) => events::run(&args, context),
        Command::Alarm(command) => crate::alarm::run(command, context),
        Command::Drive(command) => drive::run(command, context),
        Command::Pool(command) => pool::run(command, context),
        Command::Volume(command) => volume::run(command, context),
        Command::Host(command) => host::run(command, context),
        Command::Portal(command) => portal::run(command, context),
        Command::Export(args) => export::export(args, context),
        Command::Unexport(args) => export::unexport(args, context),
        Command::ExportConfig(_) => crate::apply::export_config(context),
        Command::Token(command) => token::run(command, context),
        Command::State(command) => state::run(command, context),
        Command::System(command) => system::run(command, context),
        Command::Head(command) => system::head(command, context),
        Command::Topology(args) => crate::machine::topology(&args, context),
        Command::Tune(args) => crate::machine::tune(&args, context),
        Command::Explain(args) => crate::machine::explain(&args, context),
        Command::Plan(args) => crate::machine::plan(&args, context),
        Command::Support(args) => crate::support::run(&args, context),
        Command::Apply(_)
        | Command::Top(_)
        | Command::Serve(_)
        | Command::Demo(_)
        | Command::Bench(_)
        | Command::Completions { .. }
        | Command::Man(_)
        | Command::Openapi => {
            unreachable!("handled by `run`")
        }
    }
}

#[cfg(test)]
mod tests;
