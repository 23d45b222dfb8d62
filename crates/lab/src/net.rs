//! A network namespace of our own.

use crate::host::is_root;
use crate::{Output, job};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The two networks between guests and this machine; our address is `.1` on each.
pub const LANS: [&str; 2] = ["10.91.0", "10.91.1"];

/// A network namespace with a loopback that also holds 10.91.0.1 and 10.91.1.1, where guests reach us
/// by their first and second card. It ends with the value, and with the process at the latest; what
/// was started in it by [`Net::command`] ends with the thread that started it.
pub struct Net {
    /// Lives in the namespace until its standard input closes.
    holder: Child,
}

impl Net {
    /// Makes one.
    pub fn new() -> Result<Net> {
        let addresses: String = LANS.iter().map(|lan| format!("ip addr add {lan}.1/24 dev lo; ")).collect();
        let mut command = Command::new("unshare");
        if !is_root() {
            command.arg("--map-root-user");
        }
        Self::hold(command.env("PATH", path_with_sbin()), &addresses)
    }

    /// Another network that is joined to no other one, with an empty loopback: cards between the two, and others
    /// made like this, can be had by `ip link add NAME type veth peer name OTHER netns ID`.
    pub fn beside(&self) -> Result<Net> {
        Self::hold(&mut self.command("unshare"), "")
    }

    fn hold(unshare: &mut Command, addresses: &str) -> Result<Net> {
        let script = format!("set -e; ip link set lo up; {addresses} echo ready; exec cat >/dev/null");
        let mut holder = unshare
            .args(["--net", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run unshare")?;
        let mut said = [0; 6];
        let ready = holder.stdout.as_mut().map(|out| out.read_exact(&mut said));
        if !matches!(ready, Some(Ok(()))) {
            let mut why = String::new();
            if let Some(err) = holder.stderr.as_mut() {
                err.read_to_string(&mut why).ok();
            }
            holder.wait().ok();
            bail!("{}", why.trim());
        }
        Ok(Net { holder })
    }

    /// A process in it, which names it to `ip link ... netns`.
    pub fn id(&self) -> u32 {
        self.holder.id()
    }

    /// A command that will run in this namespace. It is killed when the calling thread ends, so that
    /// no daemon outlives a test that failed.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        if !is_root() {
            command.arg(format!("--user=/proc/{}/ns/user", self.holder.id())).arg("--preserve-credentials");
        }
        command.args(["setpriv", "--pdeathsig", "KILL", "--"]).arg(program).env("PATH", path_with_sbin());
        command
    }

    /// Runs a shell command in this namespace, whatever it ends with.
    pub fn try_run(&self, script: &str, timeout: Duration) -> Result<Output> {
        wait_for(self.command("bash").args(["-c", script]).stdin(Stdio::null()), timeout)
            .with_context(|| format!("'{script}'"))
    }

    /// Runs a shell command in this namespace; it must end with 0.
    pub fn run(&self, script: &str, timeout: Duration) -> Result<Output> {
        self.try_run(script, timeout)?.good(script)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.holder.stdin.take();
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

/// Tools of the administrator are not on everybody's path.
fn path_with_sbin() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin"
}

/// Runs a command with a time limit, collecting what it prints.
pub(crate) fn wait_for(command: &mut Command, timeout: Duration) -> Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let streams = (child.stdout.take().context("stdout")?, child.stderr.take().context("stderr")?);
    let out = std::thread::spawn(move || job::read_all(streams.0));
    let err = std::thread::spawn(move || job::read_all(streams.1));
    let deadline = Instant::now() + timeout;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    match status {
        Some(status) => {
            use std::os::unix::process::ExitStatusExt;
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            Ok(Output { code, stdout, stderr })
        }
        None => bail!("did not end within {timeout:?}; its last output:\n{}", job::tail(&stdout, &stderr)),
    }
}
