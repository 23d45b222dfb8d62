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
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let at = api::Time(unix).to_string();
    let mut here = Here { files: Files::new("/"), context, silent: false };
    let mut recorder = Recorder::begin(&mut here, &at, anonymous);
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        recorder.again(&mut here);
    }
    recorder.end()
}

/// This machine with the head on it.
struct Here<'a> {
    files: Files,
    context: &'a Context,
    /// The head did not answer: it is not waited for again.
    silent: bool,
}

impl Source for Here<'_> {
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
        // A machine is looked at also while no head runs on it, or one that hangs.
        let get = |path| self.context.client.get_within::<serde_json::Value>(path, PATIENCE).ok();
        let status = get("/status");
        self.silent = status.is_none();
        let mut status = status?;
        // Of two heads the one that leads has answered; what is to be known here is of the head that was asked.
        if !status["cluster"].is_null()
            && let Some(system) = get("/system")
        {
            status["head"] = system["me"].clone();
            status["daemon"]["pid"] = system["pid"].clone();
        }
        Some(status.to_string())
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
