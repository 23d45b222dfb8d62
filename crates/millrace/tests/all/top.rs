//! `top`, in a pipe and on a terminal, while a host works.

use crate::daemon::{Daemon, Load, said, until};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A daemon with a volume that is read and written.
fn busy() -> (Daemon, Load) {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let load = daemon.busy("ram:96M");
    (daemon, load)
}

/// A column of the first row.
fn figure(daemon: &Daemon, by: &str, key: &str) -> f64 {
    let line = daemon.json(&format!("top --count 1 --interval 200ms --by {by}"));
    line["rows"][0][key].as_f64().unwrap_or(0.0)
}

#[test]
fn a_pipe_gets_tables_and_programs_get_lines() {
    let (daemon, _load) = busy();
    until("it reads and writes", || {
        ["reads_per_s", "write_bytes_per_s"].iter().all(|key| figure(&daemon, "volume", key) > 0.0)
    });
    for (by, key) in [
        ("volume", "read_mean_ns"),
        ("host", "reads_per_s"),
        ("path", "read_mean_ns"),
        ("connection", "commands_per_s"),
        ("drive", "writes_per_s"),
        ("shard", "cpu"),
        ("head", "commands_per_s"),
    ] {
        until(by, || figure(&daemon, by, key) > 0.0);
    }
    let tables = daemon.cli("top --count 2 --interval 200ms");
    let of = |word: &str| tables.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((of("millrace  "), of("VOLUME  "), of("tank/v  ")), (2, 2, 2), "{tables}");
    assert!(tables.contains(" IOPS · read ") && !tables.contains('\u{1b}'), "{tables}");
    assert_eq!(daemon.cli("top --count 1 --interval 100ms --filter nothing").matches("tank/v").count(), 0);
    let (code, text) = said(&daemon.ask(&["top", "--by", "host", "--sort", "depth", "--count", "1"]));
    assert_eq!(code, 2);
    assert!(text.contains("a host has no column depth: it has name, connections, commands"), "{text}");
}

/// `millrace top` on a terminal of its own.
struct Live {
    child: Load,
    keys: File,
    /// The terminal, as programs see it.
    slave: OwnedFd,
    /// Its modes before anything ran there.
    before: String,
    seen: Arc<Mutex<Vec<u8>>>,
}

/// Modes of a terminal: whether it echoes, and so on.
fn modes_of(terminal: &OwnedFd) -> String {
    let modes = tcgetattr(terminal).expect("modes");
    format!("{:?} {:?} {:?}", modes.local_modes, modes.input_modes, modes.output_modes)
}

impl Live {
    fn begin(daemon: &Daemon, colours: bool) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("a size");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, Mode::empty()).expect("its other side");
        let before = modes_of(&slave);
        let side = || Stdio::from(slave.try_clone().expect("cloned"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.arg("--socket").arg(daemon.path("api.sock")).args(["top", "--interval", "100ms"]);
        command.env("TERM", "xterm").env("NO_COLOR", if colours { "" } else { "1" });
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("it runs");
        let (keys, seen) = (File::from(master), Arc::<Mutex<Vec<u8>>>::default());
        let (mut shown, all) = (keys.try_clone().expect("cloned"), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = shown.read(&mut bytes) {
                all.lock().expect("no panic").extend_from_slice(&bytes[..n]);
            }
        });
        Self { child: Load(child), keys, slave, before, seen }
    }
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("no panic")).into_owned()
    }
    fn shows(&self, word: &str) {
        until(word, || self.text().contains(word));
    }
    fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).expect("pressed");
    }
    fn signal(&self, signal: &str) {
        let id = self.child.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
    }
    /// Its exit code, once the terminal is what it was.
    fn ends(&mut self) -> Option<i32> {
        let mut ended = None;
        until("it ends", || {
            ended = self.child.0.try_wait().expect("ours");
            ended.is_some()
        });
        self.shows("\u{1b}[?1049l");
        assert_eq!(modes_of(&self.slave), self.before);
        ended.expect("it has ended").code()
    }
}

#[test]
fn a_terminal_gets_a_screen_and_is_given_back_on_every_way_out() {
    let (daemon, _load) = busy();
    let ways =
        [(true, None, 0), (false, Some("-TERM"), 0), (false, Some("-HUP"), 0), (true, Some("-USR1"), 101)];
    // The last one provokes a panic in programs with debug assertions alone.
    for (colours, signal, code) in ways.into_iter().filter(|way| way.2 == 0 || cfg!(debug_assertions)) {
        let mut live = Live::begin(&daemon, colours);
        for word in ["optimal", "[volumes]", "tank/v", "IOPS"] {
            live.shows(word);
        }
        assert_ne!(modes_of(&live.slave), live.before, "keys come one by one");
        assert_eq!(live.text().contains("\u{1b}[38;5;"), colours);
        match signal {
            None => {
                live.press("d");
                live.shows("[drives]");
                live.press("q");
            }
            Some(signal) => live.signal(signal),
        }
        assert_eq!(live.ends(), Some(code), "{signal:?}: {}", live.text());
        if code == 101 {
            let text = live.text();
            let after = text.rsplit("\u{1b}[?1049l").next().expect("a rest");
            assert!(after.contains("a panic that was asked for"), "it is read where the screen was: {text}");
        }
    }
}
