//! `millrace bench --target`: one load on one target over either protocol, verified and measured.
//!
//! `load` decides what is done, `uring` does it. Knows of the daemon nothing but its address: the target may be
//! anybody's.

use super::holds;
use super::result::report::{Line, Progress, Report};
use super::session::{SingleArgs, carry_out, hint, plan, sessions};
use super::target::Url;
use super::watch::{self, Cpu};
use crate::failure::Failure;
use crate::output::put;
use crate::words::load::plan_fault;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs it. Fails if anything went wrong at the target.
pub fn run(args: &SingleArgs, json: bool) -> Result<(), Failure> {
    if let Some(parent) = args.die_with_parent {
        uring::process::die_with_parent(parent)
            .map_err(|_| Failure::internal(format!("the process {parent} that started this load is gone")))?;
    }
    let url = args.target.clone().ok_or_else(|| Failure::usage("--target is missing"))?;
    let plan = plan(args, sessions(args, &url)?);
    plan.check().map_err(|e| Failure::usage(plan_fault(&e)).with_next("millrace bench --help"))?;
    // A connection more than files are allowed would fail late and strangely.
    let _ = uring::process::raise_files(65_536);
    let tell = |p: &load::Progress| {
        let progress = Progress::of(p);
        put(&if json { Line::Progress(progress).text() } else { progress.line(&url) })
    };
    watch::listen()?;
    holds::check_targets(args, &[&url], json)?;
    if let Some(at) = args.start_at {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        std::thread::sleep(Duration::from_millis(at).saturating_sub(now));
    }
    let outcome = carry_out(plan, None, &Cpu::default(), tell)?;
    let report = Report::of(&outcome);
    let nothing = report.total.ops == 0 && report.failure().is_some();
    match (json, args.progress) {
        // A table of zeros hides the reason.
        (true, false) | (false, _) if nothing => {}
        (true, true) => put(&Line::Report(Box::new(report.clone())).text())?,
        (true, false) => put(&crate::output::pretty(&report))?,
        (false, _) => put(&report.screen(crate::screen::Terminal::for_stdout()))?,
    }
    match report.failure() {
        None => Ok(()),
        Some(why) => {
            let next = hint(&outcome.end);
            Err(Failure::internal(why).with_next(next))
        }
    }
}

/// A load that is run again and again, so that somebody can compare.
#[derive(Debug)]
pub struct Repeated(SingleArgs, Url);

impl Repeated {
    /// Looks whether the load can be, and listens to Ctrl-C from here on.
    ///
    /// Errors: it cannot.
    pub fn new(args: SingleArgs, json: bool) -> Result<Self, Failure> {
        let url = args.target.clone().ok_or_else(|| Failure::usage("--target is missing"))?;
        if args.seconds.is_zero() {
            return Err(Failure::usage("a load that is repeated must end: --seconds 0 does not"));
        }
        plan(&args, sessions(&args, &url)?)
            .check()
            .map_err(|e| Failure::usage(plan_fault(&e)).with_next("millrace bench --help"))?;
        watch::listen()?;
        holds::check_targets(&args, &[&url], json)?;
        Ok(Self(args, url))
    }

    /// Runs it once. None if Ctrl-C ended it.
    ///
    /// Errors: anything went wrong at the target.
    pub fn run(
        &self,
        tell: impl FnMut(&load::Progress) -> Result<(), Failure>,
    ) -> Result<Option<Report>, Failure> {
        let mut plan = plan(&self.0, sessions(&self.0, &self.1)?);
        plan.progress_every = Duration::from_secs(1);
        let outcome = carry_out(plan, None, &Cpu::default(), tell)?;
        let report = Report::of(&outcome);
        if report.end == "stopped" {
            return Ok(None);
        }
        match report.failure() {
            None => Ok(Some(report)),
            Some(why) => Err(Failure::internal(why.clone()).with_next(hint(&outcome.end))),
        }
    }
}
