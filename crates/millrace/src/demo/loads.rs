//! The demo's two initiators: `millrace bench` as child processes, one for each protocol.

use super::show::Show;
use super::stage::{Folder, ourselves, tail};
use super::{HOST_IQN, HOST_NQN};
use crate::bench::{Line, Progress, Report, Url};
use crate::failure::Failure;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What each of them uses of the volume, at most.
const REGION_MAX: u64 = 128 << 20;
/// Longest time until both measure.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// One initiator.
struct One {
    child: Child,
    log: PathBuf,
    progress: Option<Progress>,
    report: Option<Report>,
    ended: bool,
}

/// Both initiators.
pub struct Loads {
    all: Vec<One>,
    lines: Receiver<(usize, Option<Line>)>,
}

impl Loads {
    /// Starts both, each on a half of the volume of its own: one could not verify what the other writes. Connections are spread over
    /// the portals, those of NVMe/TCP first.
    pub fn start(
        folder: &Folder,
        system: &api::System,
        portals: [&[SocketAddr]; 2],
        volume: &api::Volume,
    ) -> Result<Self, Failure> {
        let half = (volume.bytes / 2) & !((1 << 20) - 1);
        let region = half.min(REGION_MAX);
        let targets = [
            Url::Nvme { peer: portals[0][0], nqn: system.nqn.clone(), nsid: volume.nsid },
            Url::Iscsi { peer: portals[1][0], iqn: system.iqn.clone(), lun: 0 },
        ];
        let (tell, lines) = channel();
        let mut all = Vec::new();
        for (i, target) in targets.into_iter().enumerate() {
            let name = if i == 0 { "nvme" } else { "iscsi" };
            let log = folder.log(name);
            let mut command = ourselves(&log)?;
            let number = |n: u64| n.to_string();
            command.args([
                "bench",
                "--json",
                "--progress",
                "--verify",
                "--prepare",
                "--read-back",
                "--force",
            ]);
            command.args(["--rw", "randrw", "--mix", "70", "--bs", "4k", "--qd", "32"]);
            command.args(["--connections", if i == 0 { "4" } else { "2" }, "--seed", &number(i as u64 + 1)]);
            command.args(["--target", &target.to_string(), "--host-nqn", HOST_NQN, "--iqn", HOST_IQN]);
            for portal in &portals[i][1..] {
                command.args(["--portals", &portal.to_string()]);
            }
            command.args(["--region-at", &number(half * i as u64), "--region", &number(region)]);
            // Until they are told to stop: they measure from before the drive fails until it is whole again.
            command.args(["--seconds", "0", "--patience", "30"]);
            command.args(["--die-with-parent", &number(std::process::id().into())]);
            command.stdout(Stdio::piped());
            let mut child = command
                .spawn()
                .map_err(|e| Failure::internal(format!("cannot start the {name} load: {e}")))?;
            let out = BufReader::new(child.stdout.take().expect("it was piped"));
            let tell = tell.clone();
            std::thread::spawn(move || {
                // What is no line of ours is the log's matter.
                for line in out.lines().map_while(Result::ok).filter_map(|l| serde_json::from_str(&l).ok()) {
                    let _ = tell.send((i, Some(line)));
                }
                let _ = tell.send((i, None));
            });
            all.push(One { child, log, progress: None, report: None, ended: false });
        }
        Ok(Self { all, lines })
    }

    /// Until both measure.
    pub fn run_until_measuring(&mut self, show: &Show) -> Result<(), Failure> {
        let deadline = Instant::now() + START_TIMEOUT;
        let measuring = |o: &One| o.progress.as_ref().is_some_and(|p| p.phase == "measuring");
        while !self.all.iter().all(measuring) {
            if Instant::now() > deadline {
                let trouble = self.all.iter().filter_map(|o| o.progress.as_ref()?.trouble.clone()).next();
                let why = trouble.unwrap_or_else(|| "without saying why".into());
                return Err(Failure::internal(format!(
                    "the load did not begin within {} s: {why}",
                    START_TIMEOUT.as_secs()
                )));
            }
            self.run_for(Duration::from_millis(200), show)?;
        }
        Ok(())
    }

    /// For some time. A load that fails meanwhile is a failure.
    pub fn run_for(&mut self, time: Duration, show: &Show) -> Result<(), Failure> {
        let until = Instant::now() + time;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((i, Some(Line::Progress(progress)))) => {
                    self.all[i].progress = Some(progress);
                    let words = self.all.iter().zip(["nvme", "iscsi"]);
                    show.load(&words.filter_map(|(o, n)| Some((n, o.progress.clone()?))).collect::<Vec<_>>());
                }
                Ok((i, Some(Line::Report(report)))) => self.all[i].report = Some(*report),
                Ok((i, None)) => {
                    self.all[i].ended = true;
                    if self.all[i].report.is_none() {
                        return Err(Failure::internal(format!(
                            "a load ended without a report{}",
                            tail(&self.all[i].log)
                        )));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                // Both have ended, which is no reason not to wait as told.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    return Ok(());
                }
            }
        }
    }

    /// Operations a second of both, lately.
    pub fn rates(&self) -> Vec<f64> {
        self.all.iter().map(|o| o.progress.as_ref().map_or(0.0, |p| p.iops)).collect()
    }

    /// Ends both measurements and waits for their reports.
    pub fn finish(mut self, show: &Show) -> Result<Vec<Report>, Failure> {
        for one in &mut self.all {
            uring::process::interrupt(&mut one.child)
                .map_err(|e| Failure::internal(format!("a load cannot be stopped: {e}")))?;
        }
        while !self.all.iter().all(|o| o.ended) {
            self.run_for(Duration::from_millis(200), show)?;
        }
        show.load_ends();
        for one in &mut self.all {
            // The report says it all; the exit code only repeats it.
            let _ = one.child.wait();
        }
        Ok(self.all.iter_mut().filter_map(|o| o.report.take()).collect())
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
