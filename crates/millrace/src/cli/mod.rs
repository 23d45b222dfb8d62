//! The command line: one file per noun. Everything but `serve`, `demo`, `bench`, `completions` and
//! `openapi` is a request to the daemon's API and a screen made of its answer.

mod drive;
mod events;
mod export;
mod host;
mod pool;
mod portal;
mod status;
mod volume;

use crate::client::Client;
use crate::config;
use crate::failure::Failure;
use crate::screen::Paint;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

pub use drive::drive_name;
use export::{ExportArgs, UnexportArgs};
pub use status::watchless as status_screen;

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

Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 refused by the daemon,
4 daemon not reachable.")]
pub struct Cli {
    /// The daemon's socket
    #[arg(
        long,
        global = true,
        display_order = 900,
        value_name = "PATH",
        env = "MILLRACE_SOCKET",
        hide_env_values = true
    )]
    socket: Option<PathBuf>,
    /// Print JSON
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
    /// Make, resize, rename and remove volumes
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
    /// Run the daemon
    Serve(crate::daemon::ServeArgs),
    /// Show everything on this machine, with drives in files
    Demo(crate::demo::DemoArgs),
    /// Load a target over NVMe/TCP or iSCSI and measure it
    Bench(crate::bench::BenchArgs),
    /// Print completions for a shell
    #[command(after_help = "\
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

/// What a command has at hand.
pub struct Context {
    /// The way to the daemon.
    pub client: Client,
    /// Print JSON.
    pub json: bool,
    /// Colours.
    pub paint: Paint,
}

impl Context {
    /// What to print for `value`: JSON if that was asked for, else `screen`'s text.
    fn show<T: Serialize>(&self, value: &T, screen: impl FnOnce(&T) -> String) -> String {
        if self.json { pretty(value) } else { screen(value) }
    }
    /// What to print when something was done.
    fn done(&self, sentence: &str) -> String {
        if self.json { "{}\n".to_string() } else { format!("{sentence}\n") }
    }
    /// What to print when something new exists.
    fn created(&self, created: &api::Created, sentence: &str, next: &str) -> String {
        self.show(created, |created| {
            let mut out = format!("{sentence}\n");
            for notice in &created.notices {
                out.push_str(&format!("Note: {notice}\n"));
            }
            if !next.is_empty() {
                out.push_str(&format!("Next: {next}\n"));
            }
            out
        })
    }
}

/// JSON for people and programs.
pub fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data without maps of odd keys") + "\n"
}

/// Prints to stdout. A reader that has seen enough (`| head`) is no failure.
pub fn put(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|e| Failure::internal(format!("cannot write to stdout: {e}"))),
    }
}

/// Carries out what the command line says.
pub fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { socket, json, command } = cli;
    let context = || -> Result<Context, Failure> {
        let socket = socket.clone().unwrap_or_else(config::default_socket);
        Ok(Context { client: Client::new(socket)?, json, paint: Paint::for_stdout() })
    };
    match command {
        Command::Serve(args) => crate::daemon::serve(args, socket),
        Command::Demo(args) => crate::demo::run(args),
        Command::Bench(args) => crate::bench::run(args, json),
        Command::Completions { shell } => put(&completions(&shell)),
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
        Command::Serve(_)
        | Command::Demo(_)
        | Command::Bench(_)
        | Command::Completions { .. }
        | Command::Openapi => {
            unreachable!("handled by `run`")
        }
    }
}

fn completions(shell: &str) -> String {
    use clap_complete::Shell;
    let shell = match shell {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        _ => Shell::Fish,
    };
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut <Cli as clap::CommandFactory>::command(), "millrace", &mut out);
    String::from_utf8(out).expect("completions are text")
}

/// A size argument.
fn size(text: &str) -> Result<u64, String> {
    api::size::parse(text)
}

/// A size argument of at most 4 GiB - 1.
fn small_size(text: &str) -> Result<u32, String> {
    let bytes = api::size::parse(text)?;
    u32::try_from(bytes).map_err(|_| format!("\"{text}\" is too large here: sizes end below 4G"))
}

/// `pool/volume` split, or a sentence.
fn volume_name(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((pool, volume)) if !pool.is_empty() && !volume.is_empty() && !volume.contains('/') => {
            Ok(text.to_string())
        }
        _ => Err(format!("\"{text}\" does not name a volume: write POOL/VOLUME, such as tank/vm1")),
    }
}

/// The path of a volume's resource.
fn volume_path(name: &str) -> String {
    let (pool, volume) = name.split_once('/').expect("checked by `volume_name`");
    format!("/volumes/{}/{}", crate::client::segment(pool), crate::client::segment(volume))
}

/// The daemon has another working directory: paths are made absolute here. `sdb` means `/dev/sdb`
/// unless a file of that name lies here.
fn drive_path(text: &str) -> String {
    let special = ["ram:", "null:", "file:/", "block:/"].iter().any(|prefix| text.starts_with(prefix));
    if special || text.starts_with('/') || text.is_empty() {
        return text.to_string();
    }
    if let Some(kind) = ["file:", "block:"].into_iter().find(|kind| text.starts_with(kind)) {
        let rest = &text[kind.len()..];
        return std::path::absolute(rest)
            .map_or_else(|_| text.to_string(), |p| format!("{kind}{}", p.display()));
    }
    let device = format!("/dev/{text}");
    if !std::path::Path::new(text).exists() && std::path::Path::new(&device).exists() {
        return device;
    }
    std::path::absolute(text).map_or_else(|_| text.to_string(), |p| p.display().to_string())
}

#[cfg(test)]
mod tests;
