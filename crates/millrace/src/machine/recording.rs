//! Which machine is meant, and its recording: of another one out of a file, of this one now.

use super::files::Files;
use crate::context::Context;
use crate::failure::Failure;
use crate::words::topology::recording_error;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use topology::{Machine, Missing, Recorder, Recording, Source};

/// Which machine is meant, and how long it is looked at.
#[derive(Args, Debug)]
pub struct MachineArgs {
    /// Use this recording of a machine, made with `millrace topology --record`
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Seconds to measure rates for (0: no rates)
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = seconds, allow_hyphen_values = true)]
    seconds: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (0.0..=3600.0).contains(&n) => Ok(n),
        _ => Err(format!("\"{text}\" is not a number of seconds from 0 to 3600")),
    }
}

impl MachineArgs {
    /// This machine is meant.
    pub fn is_here(&self) -> bool {
        self.machine.is_none()
    }

    /// The recording that is asked for: another machine's, or one of this machine, now.
    pub fn recording(&self, context: &Context, anonymous: bool) -> Result<Recording, Failure> {
        match &self.machine {
            Some(path) => read(path),
            None => Ok(record(context, self.seconds, anonymous)),
        }
    }
}

/// Reads a recording from a file.
pub fn read(path: &Path) -> Result<Recording, Failure> {
    let bytes =
        std::fs::read(path).map_err(|e| Failure::usage(format!("{} cannot be read: {e}", path.display())))?;
    Recording::decode(&bytes).map_err(|e| {
        Failure::usage(format!("{} is not a machine: {}", path.display(), recording_error(&e)))
            .with_next("millrace topology --record FILE, on the machine that is meant")
    })
}

/// Records this machine, and the head on it if one answers.
pub fn record(context: &Context, seconds: f64, anonymous: bool) -> Recording {
    let status = || {
        // A machine is looked at also while no head runs on it, or one that hangs.
        let get = |path| context.client.get_within::<serde_json::Value>(path, PATIENCE).ok();
        let mut status = get("/status")?;
        // Of two heads the one that leads has answered.
        if !status["cluster"].is_null()
            && let Some(mut system) = get("/system")
        {
            be(&mut status, system["me"].take(), system["pid"].take());
        }
        Some(status)
    };
    look(&mut Files::new("/"), status, seconds, anonymous)
}

/// What is to be known of a machine is of the head on it, whichever told the status.
pub fn be(status: &mut serde_json::Value, head: serde_json::Value, pid: serde_json::Value) {
    status["head"] = head;
    status["daemon"]["pid"] = pid;
}

/// Records the machine with these files, and the head that tells this status, over so many seconds.
pub(super) fn look(
    files: &mut Files,
    status: impl FnMut() -> Option<serde_json::Value>,
    seconds: f64,
    anonymous: bool,
) -> Recording {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let at = api::Time(unix).to_string();
    let mut here = Here { files, tell: status, silent: false };
    let mut recorder = Recorder::begin(&mut here, &at, anonymous);
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        recorder.again(&mut here);
    }
    recorder.end()
}

/// This machine with the head on it.
struct Here<'a, T> {
    files: &'a mut Files,
    tell: T,
    /// The head did not answer: it is not waited for again.
    silent: bool,
}

impl<T: FnMut() -> Option<serde_json::Value>> Source for Here<'_, T> {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Missing> {
        self.files.read(path)
    }
    fn list(&mut self, path: &str) -> Vec<String> {
        self.files.list(path)
    }
    fn link(&mut self, path: &str) -> Option<String> {
        self.files.link(path)
    }
    fn status(&mut self) -> Option<String> {
        if self.silent {
            return None;
        }
        let status = (self.tell)();
        self.silent = status.is_none();
        status.map(|s| s.to_string())
    }
    fn now_us(&mut self) -> u64 {
        self.files.now_us()
    }
}

/// This machine, as it is now.
pub fn here(context: &Context) -> Machine {
    Machine::of(&record(context, 0.0, false))
}

/// How long the head may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
