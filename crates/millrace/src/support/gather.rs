//! Where each file of the archive comes from: the head, the kernel, the journal.

use super::{Found, config};
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::machine::{PATIENCE, record};
use crate::output::pretty;
use serde_json::Value;
use std::cell::OnceCell;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Lines of the journal.
const JOURNAL_LINES: &str = "5000";
/// Largest text of the kernel that is read.
const KERNEL_MAX: usize = 8 << 20;
/// Seconds for which rates are measured.
const SECONDS: f64 = 1.0;

/// What the files are gathered from.
pub struct Gather<'a> {
    context: &'a Context,
    config: &'a Path,
    /// The answer to the first question: a head that hangs is waited for once.
    status: OnceCell<Result<Value, Failure>>,
}

impl<'a> Gather<'a> {
    /// From this machine; nothing is asked yet.
    pub fn new(context: &'a Context, config: &'a Path) -> Self {
        Self { context, config, status: OnceCell::new() }
    }

    /// Now.
    pub fn time(&self) -> String {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        api::Time(unix).to_string()
    }

    /// Where the daemon keeps its files: as it says, or as it is configured.
    pub fn state_dir(&self) -> PathBuf {
        let says = || self.answer().as_ref().ok()?["daemon"]["state_dir"].as_str().map(PathBuf::from);
        says().filter(|dir| dir.is_absolute()).unwrap_or_else(|| {
            let config = crate::config::read_text(self.config).ok();
            let config = config.and_then(|text| crate::config::Config::parse(&text, self.config).ok());
            config.unwrap_or_default().state_dir
        })
    }

    fn answer(&self) -> &Result<Value, Failure> {
        self.status.get_or_init(|| self.context.client.get_within("/status", PATIENCE))
    }

    /// The answer to a question, if the head answers at all.
    fn ask<T>(&self, ask: impl FnOnce(&Client) -> Result<T, Failure>) -> Result<T, String> {
        if let Err(failure) = self.answer().as_ref()
            && failure.exit == Exit::Unreachable
        {
            return Err(failure.message.clone());
        }
        ask(&self.context.client).map_err(|failure| failure.message)
    }

    pub fn versions(&self) -> Found {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let running =
            self.answer().as_ref().ok().and_then(|s| s["daemon"]["version"].as_str().map(String::from));
        Ok(format!(
            "program: {}\ndaemon: {}\nkernel: {}\nfound at: {}\n\n{}",
            env!("MILLRACE_VERSION"),
            running.unwrap_or("does not answer".into()),
            file("/proc/version").trim(),
            self.time(),
            file("/etc/os-release"),
        ))
    }

    pub fn config(&self) -> Found {
        let text = crate::config::read_text(self.config).map_err(|e| e.to_string())?;
        config::shown(&text)
    }

    pub fn status(&self) -> Found {
        self.answer().as_ref().map(pretty).map_err(|failure| failure.message.clone())
    }

    pub fn system(&self) -> Found {
        self.ask(|client| client.get::<Value>("/system")).map(|v| pretty(&v))
    }

    pub fn events(&self) -> Found {
        self.ask(|client| client.get::<Value>("/events?since=0")).map(|v| pretty(&v))
    }

    pub fn metrics(&self) -> Found {
        self.ask(Client::metrics)
    }

    pub fn machine(&self) -> Found {
        Ok(record(self.context, SECONDS, false).encode())
    }

    /// Every block device, with what the kernel has set for its queue.
    pub fn drives(&self) -> Found {
        drives(Path::new("/sys/block")).map_err(|e| e.to_string())
    }

    /// The kernel's messages, as `dmesg` shows them.
    pub fn kernel_log(&self) -> Found {
        // It ends where it would wait for the next message.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let open = std::fs::OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg");
        let mut file = open.map_err(|e| format!("/dev/kmsg: {e}"))?;
        let (mut out, mut record) = (String::new(), [0; 8192]);
        while out.len() < KERNEL_MAX {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(n) => out.push_str(&kernel_line(&String::from_utf8_lossy(&record[..n]))),
                // The message was overwritten before it was read.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if out.is_empty() => return Err(format!("/dev/kmsg: {e}")),
                Err(_) => break,
            }
        }
        Ok(out)
    }

    pub fn journal(&self) -> Found {
        let words =
            ["--unit", "millrace", "--lines", JOURNAL_LINES, "--output", "short-iso-precise", "--no-pager"];
        said(Command::new("journalctl").args(words))
    }
}

/// A message of the kernel, `PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT` and lines with properties, as a line.
fn kernel_line(record: &str) -> String {
    let line = record.lines().next().unwrap_or("");
    let Some((head, text)) = line.split_once(';') else { return format!("{line}\n") };
    let micros: u64 = head.split(',').nth(2).and_then(|n| n.parse().ok()).unwrap_or(0);
    format!("[{:>5}.{:06}] {text}\n", micros / 1_000_000, micros % 1_000_000)
}

/// A line for each block device, and one for each setting of its queue.
fn drives(folder: &Path) -> std::io::Result<String> {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder)?.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        Ok::<_, std::io::Error>(names)
    };
    let read = |path: PathBuf| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    let mut out = String::new();
    for name in names(folder)? {
        let device = folder.join(&name);
        let bytes = read(device.join("size")).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 512;
        out.push_str(&format!("{name}: {bytes} bytes"));
        for file in [
            "ro",
            "removable",
            "device/model",
            "device/state",
            "device/transport",
            "device/firmware_rev",
            "stat",
            "inflight",
        ] {
            if let Some(text) = read(device.join(file)) {
                out.push_str(&format!(", {file} {}", text.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
        }
        for (what, at) in [("holders", "holders"), ("on", "slaves")] {
            let found = names(&device.join(at)).unwrap_or_default();
            if !found.is_empty() {
                out.push_str(&format!(", {what} {}", found.join(" ")));
            }
        }
        out.push('\n');
        for part in names(&device)?.iter().filter(|part| device.join(part).join("partition").exists()) {
            let bytes =
                read(device.join(part).join("size")).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 512;
            out.push_str(&format!("  {part}: {bytes} bytes\n"));
        }
        let queue = device.join("queue");
        for file in names(&queue).unwrap_or_default() {
            if let Some(text) = read(queue.join(&file)) {
                out.push_str(&format!("  queue/{file}: {text}\n"));
            }
        }
    }
    Ok(out)
}

/// What a program prints, within the time that the head has for an answer.
fn said(command: &mut Command) -> Found {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |e: std::io::Error| format!("{name}: {e}");
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
    let mut pipe = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
    });
    let begin = Instant::now();
    while !reader.is_finished() && begin.elapsed() < PATIENCE {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Its end is not waited for twice.
    let _ = child.kill();
    let ended = child.wait().map_err(failed)?;
    let text = reader.join().expect("it only reads").map_err(failed)?;
    if text.is_empty() {
        return Err(format!("{name} printed nothing and ended with {ended}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_kernel_are_lines() {
        assert_eq!(
            kernel_line("6,339,5140900,-;nvme nvme0: 2/0/0 queues\n SUBSYSTEM=pci\n"),
            "[    5.140900] nvme nvme0: 2/0/0 queues\n"
        );
        assert_eq!(kernel_line("odd"), "odd\n");
    }

    #[test]
    fn block_devices_are_listed_with_their_queues() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("nvme0n1");
        for (file, text) in [
            ("size", "2048\n"),
            ("ro", "0\n"),
            ("queue/scheduler", "[none] mq-deadline\n"),
            ("nvme0n1p1/size", "8"),
            ("nvme0n1p1/partition", "1"),
            ("holders/md0/x", ""),
        ] {
            let path = disk.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        assert_eq!(
            drives(folder.path()).expect("a list"),
            "nvme0n1: 1048576 bytes, ro 0, holders md0\n  nvme0n1p1: 4096 bytes\n  queue/scheduler: [none] mq-deadline\n"
        );
    }

    #[test]
    fn what_programs_print_is_bounded_in_time() {
        assert_eq!(said(Command::new("echo").arg("a")), Ok("a\n".into()));
        assert!(said(&mut Command::new("false")).is_err_and(|why| why.contains("printed nothing")));
        assert!(said(&mut Command::new("no-such-program")).is_err());
    }
}
