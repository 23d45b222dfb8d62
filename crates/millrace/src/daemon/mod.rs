//! `millrace serve`: the daemon, from the command line to an orderly stop.
//!
//! ```text
//! configuration ▶ state directory, converted ▶ crash record ▶ privileges ▶ machines ▶ API ▶ READY=1 ▶ … ▶ stop
//! ```

mod addresses;
mod claim;
pub mod crash;
mod forward;
mod journal;
mod keeper;
mod run;
mod server;
mod setup;
mod system;
mod told;

use crate::backend::Door;
use crate::config::Config;
use crate::failure::Failure;
use crate::http::{Api, Process};
use crate::words;
use claim::Claim;
use clap::Args;
use crash::Crashes;
use finding::{Notice, SystemNotice};
pub use forward::forward;
use keeper::Keeper;
use run::{Machines, News, Watched};
use sd_notify::NotifyState;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
pub use system::{LinkFile, System};

/// `millrace serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
The daemon stays in the foreground; run it under systemd (packaging/millrace.service). Every key of the configuration has a default.

Examples:
  millrace serve
  millrace serve --example > head.toml  # every key, explained
  millrace serve --config head.toml
  millrace serve --import  # after crashes, when their cause is removed")]
pub struct ServeArgs {
    /// Configuration file [default: /etc/millrace/head.toml, if it exists]
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Import the pools even if the daemon crashed several times in a minute
    #[arg(long)]
    import: bool,
    /// Print the configuration file with every key explained, and exit
    #[arg(long, conflicts_with_all = ["config", "import"])]
    pub example: bool,
    /// Stop when the process with this id, our parent, ends
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<u32>,
}

/// What `serve --json` says once: the shape stays, keys may be added.
#[derive(Serialize)]
struct Ready {
    what: &'static str,
    version: &'static str,
    pid: u32,
    socket: String,
    state_dir: String,
}

/// The state directory for whoever works on it while no daemon does.
pub fn claim(config: &Config) -> Result<Claim, Failure> {
    Claim::take(config, Duration::ZERO)
}

/// How long an orderly stop may take: about twice what the Steward allows itself where drives hang.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// A pool whose drives hang may take long to import; others serve meanwhile.
const MEMORY_PATIENCE: Duration = Duration::from_secs(2);

/// Runs the daemon until a signal ends it.
/// With `json`, one line on stdout says when it serves; the log stays on stderr.
pub fn serve(args: ServeArgs, socket: Option<PathBuf>, json: bool) -> Result<(), Failure> {
    let mut config = Config::load(args.config.as_deref())?;
    if let Some(socket) = socket {
        config.socket = socket;
    }
    config.fits(args.config.as_deref())?;
    let told = config.notices();
    let config = config.settled();
    setup::log(&config)?;
    if let Some(parent) = args.die_with_parent {
        uring::process::die_with_parent(parent).map_err(|_| {
            Failure::internal(format!("the process {parent} that started this daemon is gone"))
        })?;
    }
    let claim = Claim::take(&config, claim::CLAIM_PATIENCE)?;
    crate::state::convert(&config.state_dir)?;
    let crashes = Crashes::of(&config.state_dir);
    let cannot =
        |e: std::io::Error| Failure::usage(format!("the crash record {}: {e}", crashes.path().display()));
    if args.import {
        crashes.resume("millrace serve --import").map_err(cannot)?;
    }
    let (record, too_many) = crashes.open().map_err(cannot)?;
    let mut keeper = Keeper::new(claim, crashes.clone(), &record).map_err(cannot)?;
    setup::crash_handlers(record)?;
    let setup::Refused { notice, aside } = setup::privileges();
    let token = setup::token_notice(config.api.token_file.as_deref());
    let mut notices: Vec<Notice> = notice.into_iter().chain(told).chain(token).map(Notice::from).collect();
    let aside: Vec<Notice> = aside.into_iter().map(Notice::from).collect();
    let held_back = too_many.as_ref().map(|t| setup::held_back(&crashes, t, args.config.as_deref()));
    for notice in notices.iter().chain(&aside) {
        tracing::warn!("{}", words::notice(notice));
    }
    if let Some(reason) = &held_back {
        tracing::error!("{}", reason.message);
    }

    let access = server::access(&config)?;
    let listeners = server::listen(&config, &access)?;
    // Below /run everything is made anew at each start of the machine.
    if let Some(folder) = listeners.made.as_ref().filter(|f| !f.starts_with("/run")) {
        let made = Notice::from(SystemNotice::SocketFolderMade { path: folder.display().to_string() });
        tracing::warn!("{}", words::notice(&made));
        notices.push(made);
    }
    let (tell, news) = channel::<News>();
    let hold = too_many.map(|t| t.lines.len() as u64);
    let again = tell.clone();
    let file = LinkFile::start(&config.state_dir)?;
    let system = System::new(&config.state_dir, file, config.system.times(), move || {
        let _ = again.send(News::Again);
    });
    let alarms = crate::alarm::prepare(&config);
    let handle = alarms.as_ref().map(crate::alarm::Prepared::handle);
    let (mut machines, courier) = Machines::start(&config, hold, &system, tell.clone(), handle.clone())?;
    let history = crate::history::History::default();
    let process = Arc::new(Process {
        state_dir: config.state_dir.display().to_string(),
        notices,
        healths: crate::machine::Healths::watch().unwrap_or_else(|e| {
            tracing::warn!("drives are not asked how they are: {e}");
            Default::default()
        }),
        observer: Default::default(),
        house: Some(machines.watch()),
        memory_data: config.memory,
        minor_notices: aside,
        held_back,
        resumed: Default::default(),
        deaf: Default::default(),
        alarms: handle,
        crashes: Some(crashes),
        system: Some(Arc::clone(&system)),
        access: Some(access),
        history: history.clone(),
    });
    let (door, calls) = Door::new();
    let api = Api::new(door, process);
    let alarms = match alarms {
        Some(alarms) => {
            let head = Watched { api: api.clone(), post: machines.post() };
            Some(alarms.start(&config, Box::new(head)).map_err(no_alarms)?)
        }
        None => None,
    };
    let kept = history.start(&config.state_dir, api.clone()).map_err(no_history)?;
    system.serves(crate::http::router(api.clone()));
    let server = listeners.run(api, courier.carry(calls), tell)?;
    system.start_link()?;
    let follows = system.settings().is_some();
    if follows {
        // Until it leads, it serves by what the other one has; whoever started it need not wait for that.
        notify(&[NotifyState::Ready]);
    }

    let ready = wait_ready(&news, &mut machines, &mut keeper, follows);
    let mut again = ready == Wait::Again;
    if let Some(alarms) = alarms.as_ref().filter(|_| ready == Wait::Ready) {
        alarms.serves();
    }
    if ready == Wait::Ready {
        tracing::info!(
            "millrace {} serves; its API is at {}",
            env!("CARGO_PKG_VERSION"),
            config.socket.display()
        );
        notify(&[NotifyState::Ready]);
        if json {
            let ready = Ready {
                what: "the head serves",
                version: env!("CARGO_PKG_VERSION"),
                pid: std::process::id(),
                socket: config.socket.display().to_string(),
                state_dir: config.state_dir.display().to_string(),
            };
            crate::output::put(&(serde_json::to_string(&ready).expect("plain data") + "\n"))?;
        }
        again = wait_stop(&news, &machines, &mut keeper);
    }
    notify(&[NotifyState::Stopping]);
    if let Some(alarms) = &alarms {
        alarms.stops();
    }
    drop(kept);
    let result = stop(machines, &news);
    if let Some(alarms) = alarms {
        alarms.end();
    }
    drop(server);
    drop(keeper);
    if again && result.is_ok() {
        return Err(start_again(None));
    }
    result
}

/// Waits until the pools are imported, and then has the memory made resident: the first to use a processor are those
/// for whom hosts wait.
fn wait_ready(news: &Receiver<News>, machines: &mut Machines, keeper: &mut Keeper, follows: bool) -> Wait {
    let mut resident = false;
    loop {
        let patience = if resident { keeper::LOOK_INTERVAL } else { MEMORY_PATIENCE };
        match news.recv_timeout(patience) {
            Ok(News::Ready) => {
                machines.make_memory_resident();
                return Wait::Ready;
            }
            Ok(News::Signal(name)) => {
                if follows {
                    tracing::info!("stopping, because of {name}")
                } else {
                    tracing::info!("{name} came before the pools were imported")
                }
                return Wait::Stop;
            }
            Ok(News::Again) => return Wait::Again,
            Ok(News::Out(why)) => start_at_once(&why),
            Ok(News::Stopped) => {}
            Err(RecvTimeoutError::Timeout) if resident => keeper.look(machines),
            Err(RecvTimeoutError::Timeout) => {
                machines.make_memory_resident();
                resident = true;
            }
            Err(RecvTimeoutError::Disconnected) => return Wait::Stop,
        }
    }
}

/// How the wait for the pools ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Ready,
    Stop,
    /// The daemon is to start anew.
    Again,
}

/// This process is out of its system: it ends as it stands, answers nobody any more, and another one begins in its place.
fn start_at_once(why: &head::order::Event) -> ! {
    tracing::error!("{}: starting anew", crate::words::event(why));
    let failure = start_again(Some(why));
    tracing::error!("{}", failure.line());
    std::process::exit(75)
}

/// The same program with the same command line, in place of this process, which has said this as it went. Returns only if that fails.
fn start_again(said: Option<&head::order::Event>) -> Failure {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("/proc/self/exe");
    let mut words = std::env::args_os();
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    match said {
        Some(said) => command.env(system::SAID, said.to_line()),
        None => command.env_remove(system::SAID),
    };
    let error = command.args(words).exec();
    Failure::internal(format!("the daemon cannot start anew: {error}"))
        .with_next("systemctl restart millrace")
}

/// Waits for a signal, and looks meanwhile after what is the daemon's own in the state directory. True: the daemon is to start anew.
fn wait_stop(news: &Receiver<News>, machines: &Machines, keeper: &mut Keeper) -> bool {
    loop {
        match news.recv_timeout(keeper::LOOK_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => keeper.look(machines),
            Ok(News::Signal(server::PROVOKED)) => machines.provoke_panic(),
            Ok(News::Signal(name)) => {
                tracing::info!("stopping in order, because of {name}");
                return false;
            }
            Ok(News::Stopped) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(News::Again) => return true,
            Ok(News::Out(why)) => start_at_once(&why),
            Ok(News::Ready) => {}
        }
    }
}

/// Stops the machines: drives are marked clean. A second signal ends at once; what was acknowledged
/// is safe all the same, as after a crash.
fn stop(machines: Machines, news: &Receiver<News>) -> Result<(), Failure> {
    machines.ask_to_stop();
    loop {
        match news.recv_timeout(STOP_TIMEOUT) {
            Ok(News::Stopped) => break,
            Ok(News::Signal(name)) => {
                return Err(Failure::internal(format!("a second signal ({name}) ended the orderly stop"))
                    .with_next("nothing: the pools are checked at the next start"));
            }
            Ok(News::Ready | News::Again) => {}
            Ok(News::Out(why)) => start_at_once(&why),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(Failure::internal(format!(
                    "the head did not stop within {} s",
                    STOP_TIMEOUT.as_secs()
                ))
                .with_next("nothing: the pools are checked at the next start"));
            }
        }
    }
    machines.end()?;
    tracing::info!("stopped in order");
    Ok(())
}

fn no_alarms(e: std::io::Error) -> Failure {
    Failure::internal(format!("the thread of the alarms cannot start: {e}"))
}

fn no_history(e: std::io::Error) -> Failure {
    Failure::internal(format!("the thread of the history cannot start: {e}"))
}

fn notify(states: &[NotifyState]) {
    if let Err(e) = sd_notify::notify(states) {
        tracing::debug!("systemd could not be told: {e}");
    }
}
