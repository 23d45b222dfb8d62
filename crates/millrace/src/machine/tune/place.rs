//! Settings are changed and restored here. What was there before is on record (a small file beside the head's state)
//! before the first write, and leaves the record only once it is back: a change that is cut off can be undone, now or
//! after a restart.

use super::super::files::Files;
use crate::failure::{Exit, Failure};
use crate::screen::{Look, Terminal};
use crate::words::topology as words;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use topology::tune::{Group, Setting, Verdict, Write, choice};
use topology::{Missing, Source};

/// What was written over, so that it can be restored. The shape stays, keys may be added.
#[derive(Serialize, Deserialize, Debug, Default, PartialEq)]
struct Kept {
    /// Version of this shape.
    version: u32,
    /// Files of the kernel, in the order in which they were written.
    #[serde(default)]
    writes: Vec<KeptWrite>,
    /// Files that were made for the next start of the machine; what they held before, if they were there.
    #[serde(default)]
    files: Vec<KeptFile>,
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct KeptWrite {
    path: String,
    was: String,
    value: String,
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct KeptFile {
    path: String,
    was: Option<String>,
}

/// What was done.
#[derive(Serialize, Debug, Default)]
pub struct Report {
    /// Settings that are as wanted now, or were restored.
    pub done: Vec<String>,
    /// Those that could not be, and why.
    pub refused: Vec<String>,
    /// Those that somebody has to change by hand.
    pub by_hand: Vec<String>,
    /// What to do next.
    pub next: Option<String>,
}

impl Report {
    /// The screen for it.
    pub fn screen(&self, terminal: Terminal) -> String {
        let mut out = String::new();
        for (look, head, list) in [
            (Look::Good, "done  ", &self.done),
            (Look::Bad, "not   ", &self.refused),
            (Look::Plain, "hand  ", &self.by_hand),
        ] {
            for line in list {
                out.push_str(&terminal.paragraph(look, head, line, 6));
            }
        }
        if self.done.is_empty() && self.refused.is_empty() {
            out.push_str("Nothing was changed: nothing had to be.\n");
        }
        if let Some(next) = &self.next {
            out.push_str(&terminal.next(next));
        }
        out
    }
}

/// A machine's files, and where changes to them are on record.
pub struct Place {
    /// The machine's files.
    pub files: Files,
    /// Where changes are on record.
    pub record: PathBuf,
}

impl Place {
    fn kept(&self) -> Result<Kept, Failure> {
        let text = match std::fs::read_to_string(&self.record) {
            Ok(text) => text,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Kept { version: 1, ..Kept::default() });
            }

            Err(e) => return Err(self.unreadable(&e.to_string())),
        };
        let kept: Kept = serde_json::from_str(&text).map_err(|e| self.unreadable(&e.to_string()))?;
        match kept.version {
            1 => Ok(kept),
            n => Err(self.unreadable(&format!("it is of version {n}, this program knows 1"))),
        }
    }

    fn unreadable(&self, why: &str) -> Failure {
        Failure::new(
            Exit::Refused,
            format!(
                "what was changed before is on record in {}, which cannot be read: {why}",
                self.record.display()
            ),
        )
        .with_next("look into that file, restore by hand what it lists, and remove it")
    }

    /// Puts the record in place of the old one, whole or not at all.
    fn keep(&self, kept: &Kept) -> Result<(), Failure> {
        let failed = |e: std::io::Error| {
            Failure::new(
                Exit::Refused,
                format!("{} cannot be written ({e}), so nothing was changed", self.record.display()),
            )
            .with_next("run it as root, or name another place with --record FILE")
        };
        if let Some(folder) = self.record.parent() {
            // The head's state directory, if there was no head yet: nobody else's to read.
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        if kept.writes.is_empty() && kept.files.is_empty() {
            return match std::fs::remove_file(&self.record) {
                Err(e) if e.kind() != ErrorKind::NotFound => Err(failed(e)),
                _ => Ok(()),
            };
        }
        let new = self.record.with_extension("new");
        let text = serde_json::to_string_pretty(kept).expect("plain data") + "\n";
        let write = || {
            let mut file = std::fs::File::create(&new)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &self.record)?;
            std::fs::File::open(self.record.parent().unwrap_or(Path::new("/")))?.sync_all()
        };
        write().map_err(failed)
    }

    /// Writes `value` and looks whether it is there. Err: why not, for people.
    fn set(&mut self, path: &str, value: &str) -> Result<(), String> {
        self.files.write(path, value).map_err(reason)?;
        match self.now(path) {
            Ok(now) if same(&now, value) => Ok(()),
            Ok(now) => Err(format!("the kernel took it and says {now}")),
            Err(_) => Err("it is gone".into()),
        }
    }

    fn now(&mut self, path: &str) -> Result<String, Missing> {
        let bytes = self.files.read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(choice(&text).split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Makes every change among `settings`, each on record before it is made.
    ///
    /// Errors: the record cannot be read or written; nothing was changed then.
    pub fn apply(&mut self, settings: &[Setting]) -> Result<Report, Failure> {
        let mut report = Report::default();
        let mut kept = self.kept()?;
        let changes = settings.iter().filter_map(|s| match &s.verdict {
            Verdict::Change(writes) => Some((s, writes)),
            Verdict::Good | Verdict::Advice | Verdict::Shown => None,
        });
        let changes: Vec<(&Setting, &Vec<Write>)> = changes.collect();
        for (_, writes) in &changes {
            for w in *writes {
                // What was there before the first change is what is restored, however often it is applied.
                if !kept.writes.iter().any(|k| k.path == w.path) {
                    kept.writes.push(KeptWrite {
                        path: w.path.clone(),
                        was: w.was.clone(),
                        value: w.value.clone(),
                    });
                }
            }
        }
        if !changes.is_empty() {
            self.keep(&kept)?;
        }
        let mut untouched: Vec<&str> = Vec::new();
        for (s, writes) in changes {
            let mut failed: Vec<(String, &str)> = Vec::new();
            for w in writes {
                if let Err(why) = self.set(&w.path, &w.value) {
                    failed.push((why, &w.path));
                    // What did not change need not be restored, unless an earlier change is to be.
                    if self.now(&w.path).is_ok_and(|now| same(&now, &w.was)) {
                        untouched.push(&w.path);
                    }
                }
            }
            let name = changed(&words::setting(s));
            match (failed.first(), failed.len() < writes.len()) {
                (None, _) => report.done.push(name),
                (Some((why, path)), false) => report.refused.push(format!("{name}: {why} ({path})")),
                (Some((why, path)), true) => report.refused.push(format!(
                    "{name}: {} of {}: {why} ({path})",
                    failed.len(),
                    writes.len()
                )),
            }
        }
        if !untouched.is_empty() {
            kept.writes.retain(|k| {
                let still = self.now(&k.path).is_ok_and(|now| same(&now, &k.was));
                !(still && untouched.contains(&k.path.as_str()))
            });
            self.keep(&kept)?;
        }
        for s in settings {
            let said = words::setting(s);
            if let Some(how) = &said.how {
                report.by_hand.push(format!("{}: {how}", changed(&said)));
            }
        }
        if !report.done.is_empty() {
            report.next = Some("millrace tune --undo, to take it back".into());
        }
        Ok(report)
    }

    /// Restores those of the kernel's files on record that are `meant`, the last change first. What cannot be restored
    /// stays on record.
    ///
    /// Errors: the record cannot be read or written.
    pub fn restore(&mut self, meant: impl Fn(&str) -> bool) -> Result<Report, Failure> {
        let mut report = Report::default();
        let kept = self.kept()?;
        let mut left = Kept { version: 1, writes: Vec::new(), files: kept.files };
        for k in kept.writes.iter().rev() {
            if !meant(&k.path) {
                left.writes.insert(0, k.clone());
                continue;
            }
            let done = match self.now(&k.path) {
                Ok(now) if same(&now, &k.was) => Ok(()),
                Ok(_) => self.set(&k.path, &k.was),
                Err(Missing::Absent) => {
                    // A drive that was pulled out took its settings along; another may come under its name.
                    report.refused.push(format!("{}: it is gone, and so is the setting", k.path));
                    continue;
                }
                Err(Missing::Refused) => Err("reading it is refused".into()),
                Err(Missing::Broken) => Err("it cannot be read".into()),
            };
            match done {
                Ok(()) => report.done.push(format!("{}: {}", k.path, k.was)),
                Err(why) => {
                    report.refused.push(format!("{}: {} was not restored: {why}", k.path, k.was));
                    left.writes.insert(0, k.clone());
                }
            }
        }
        self.keep(&left)?;
        Ok(report)
    }

    /// Restores everything on record, and removes what was made for the next start of the machine.
    ///
    /// Errors: as [`restore`](Self::restore).
    pub fn undo(&mut self) -> Result<Report, Failure> {
        let mut report = self.restore(|_| true)?;
        let mut left = self.kept()?;
        let files = core::mem::take(&mut left.files);
        for k in files.iter().rev() {
            let place = self.files.place(&k.path);
            let done = match &k.was {
                Some(text) => std::fs::write(&place, text),
                None => std::fs::remove_file(&place).or_else(|e| match e.kind() {
                    ErrorKind::NotFound => Ok(()),
                    _ => Err(e),
                }),
            };
            match done {
                Ok(()) => report.done.push(format!(
                    "{}: {}",
                    k.path,
                    k.was.as_ref().map_or("removed", |_| "as it was")
                )),
                Err(e) => {
                    report.refused.push(format!("{}: {}", k.path, reason(e)));
                    left.files.insert(0, k.clone());
                }
            }
        }
        self.keep(&left)?;
        if !left.writes.is_empty() || !left.files.is_empty() {
            report.next = Some("millrace tune --undo, as root: what is left is still on record".into());
        }
        Ok(report)
    }

    /// Writes what makes the same changes at every start of the machine.
    pub fn persist(
        &mut self,
        settings: &[Setting],
        only: &[Group],
        report: &mut Report,
    ) -> Result<(), Failure> {
        let kept = self.kept()?;
        // What is changed now or was by an earlier call; what is good by itself needs nothing.
        let mut sysctl = String::new();
        for k in &kept.writes {
            if let Some(key) = k.path.strip_prefix("/proc/sys/") {
                sysctl.push_str(&format!("{} = {}\n", key.replace('/', "."), k.value));
            }
        }
        let mut rules = String::new();
        for k in &kept.writes {
            let Some((drive, attribute)) = k.path.strip_prefix("/sys/block/").and_then(|p| p.split_once('/'))
            else {
                continue;
            };
            rules.push_str(&format!(
                "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{drive}\", ATTR{{{attribute}}}=\"{}\"\n",
                k.value
            ));
        }
        let rest = kept
            .writes
            .iter()
            .any(|k| !k.path.starts_with("/proc/sys/") && !k.path.starts_with("/sys/block/"));
        let groups: Vec<&str> = if only.is_empty() { Group::ALL.to_vec() } else { only.to_vec() }
            .into_iter()
            .filter(|g| settings.iter().any(|s| s.group == *g))
            .map(Group::word)
            .collect();
        let unit = format!(
            "# Made by millrace tune --persist; millrace tune --undo removes it.\n[Unit]\nDescription=Settings of the \
             machine for the Millrace head\nAfter=millrace.service\n\n[Service]\nType=oneshot\nExecStart=/usr/bin/millrace \
             tune --apply --only {} --record {}\n\n[Install]\nWantedBy=multi-user.target\n",
            groups.join(","),
            self.record.display()
        );
        let head = "# Made by millrace tune --persist; millrace tune --undo removes it.\n";
        let mut made = 0;
        for (path, text, wanted) in [
            ("/etc/sysctl.d/60-millrace.conf", format!("{head}{sysctl}"), !sysctl.is_empty()),
            ("/etc/udev/rules.d/60-millrace.rules", format!("{head}{rules}"), !rules.is_empty()),
            ("/etc/systemd/system/millrace-tune.service", unit, rest),
        ] {
            if !wanted {
                continue;
            }
            let mut kept = self.kept()?;
            let place = self.files.place(path);
            if !kept.files.iter().any(|k| k.path == path) {
                kept.files.push(KeptFile { path: path.into(), was: std::fs::read_to_string(&place).ok() });
                self.keep(&kept)?;
            }
            let write = || {
                if let Some(folder) = place.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                std::fs::write(&place, &text)
            };
            match write() {
                Ok(()) => report.done.push(format!("{path}: at every start of the machine")),
                Err(e) => report.refused.push(format!("{path}: {}", reason(e))),
            }
            made += 1;
        }
        if rest && made > 0 {
            report.next =
                Some("systemctl enable millrace-tune, or millrace tune --undo to take it all back".into());
        }
        Ok(())
    }
}

/// A setting, and what becomes of it.
fn changed(s: &words::Setting) -> String {
    format!("{}: {} → {}", s.name, s.found, s.wanted)
}

/// Whether two values are the same setting: blanks do not count, nor how a list of CPUs is written.
fn same(a: &str, b: &str) -> bool {
    let words = |s: &str| choice(s).split_whitespace().map(String::from).collect::<Vec<_>>();
    words(a) == words(b)
}

/// Why the kernel did not take a value.
fn reason(e: std::io::Error) -> String {
    match e.kind() {
        ErrorKind::PermissionDenied => "not allowed: it takes root, and a container may never".into(),
        ErrorKind::ReadOnlyFilesystem => {
            "sysfs is read-only here, as in a container: it is the machine's to change".into()
        }
        ErrorKind::NotFound => "it is gone".into(),
        ErrorKind::InvalidInput => "the device does not take this value".into(),
        _ if e.raw_os_error() == Some(5) => "the kernel manages this one itself".into(),
        _ => e.to_string(),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use topology::tune::{Value, What, settings};
    use topology::{Machine, Recorder};

    /// A folder that looks like a machine.
    pub struct Machinery {
        folder: tempfile::TempDir,
    }

    const FILES: [(&str, &str); 12] = [
        ("/sys/devices/system/cpu/online", "0-1\n"),
        ("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0\n"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n"),
        ("/sys/block/nvme0n1/size", "1000\n"),
        ("/sys/block/nvme0n1/queue/scheduler", "none\n"),
        ("/sys/block/nvme1n1/size", "1000\n"),
        ("/sys/block/nvme1n1/queue/nomerges", "0\n"),
        ("/sys/block/nvme1n1/queue/rotational", "0\n"),
        ("/proc/sys/vm/swappiness", "60\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("/proc/sys/net/core/rmem_max", "212992\n"),
    ];

    impl Machinery {
        pub fn new() -> Self {
            let me = Self { folder: tempfile::tempdir().expect("a folder") };
            for (path, text) in FILES {
                let place = me.path(path);
                std::fs::create_dir_all(place.parent().expect("one")).expect("made");
                std::fs::write(place, text).expect("written");
            }
            me
        }
        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join("root").join(path.trim_start_matches('/'))
        }
        pub fn text(&self, path: &str) -> String {
            std::fs::read_to_string(self.path(path)).expect("there")
        }
        pub fn place(&self) -> Place {
            let record = self.folder.path().join("state/tune.json");
            Place { files: Files::new(self.folder.path().join("root")), record }
        }
        pub fn settings(&self) -> Vec<Setting> {
            let recording = Recorder::begin(&mut self.place().files, "", false).end();
            settings(&Machine::of(&recording), &recording)
        }
        /// Everything below the root, without blanks at the ends.
        pub fn all(&self) -> Vec<(String, String)> {
            FILES
                .iter()
                .map(|(p, _)| (p.to_string(), self.text(p).split_whitespace().collect::<Vec<_>>().join(" ")))
                .collect()
        }
    }

    #[test]
    fn what_is_applied_is_there_and_what_is_undone_is_as_it_was() {
        let m = Machinery::new();
        let before = m.all();
        let report = m.place().apply(&m.settings()).expect("applied");
        assert!(report.refused.is_empty(), "{report:?}");
        assert_eq!(m.text("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"), "performance");
        assert_eq!(m.text("/sys/block/nvme1n1/queue/nomerges"), "2");
        assert_eq!(m.text("/proc/sys/net/ipv4/tcp_rmem"), "4096 131072 16777216");
        assert!(m.settings().iter().all(|s| !matches!(s.verdict, Verdict::Change(_))), "{:?}", m.settings());
        let again = m.place().apply(&m.settings()).expect("applied");
        assert!(again.done.is_empty(), "{again:?}");
        let report = m.place().undo().expect("undone");
        assert!(report.refused.is_empty(), "{report:?}");
        assert_eq!(m.all(), before);
        assert!(!m.place().record.exists(), "nothing is left on record");
    }

    #[test]
    fn the_first_value_is_restored_however_often_it_is_applied() {
        let m = Machinery::new();
        m.place().apply(&m.settings()).expect("applied");
        std::fs::write(m.path("/proc/sys/vm/swappiness"), "30").expect("somebody else");
        m.place().apply(&m.settings()).expect("applied");
        assert_eq!(m.text("/proc/sys/vm/swappiness"), "1");
        m.place().undo().expect("undone");
        assert_eq!(m.text("/proc/sys/vm/swappiness"), "60");
    }

    #[test]
    fn what_was_cut_off_after_its_record_is_undone() {
        let m = Machinery::new();
        let before = m.all();
        let mut place = m.place();
        let writes: Vec<KeptWrite> = m
            .settings()
            .iter()
            .flat_map(|s| match &s.verdict {
                Verdict::Change(writes) => writes.clone(),
                _ => Vec::new(),
            })
            .map(|w| KeptWrite { path: w.path, was: w.was, value: w.value })
            .collect();
        place.keep(&Kept { version: 1, writes, files: Vec::new() }).expect("kept");
        // Two of the writes were done when the power went.
        std::fs::write(m.path("/proc/sys/vm/swappiness"), "1").expect("written");
        std::fs::write(m.path("/sys/block/nvme1n1/queue/nomerges"), "2").expect("written");
        place.undo().expect("undone");
        assert_eq!(m.all(), before);
    }

    #[test]
    fn only_what_was_asked_for_is_changed() {
        let m = Machinery::new();
        let mut settings = m.settings();
        settings.retain(|s| s.group == Group::Memory);
        m.place().apply(&settings).expect("applied");
        assert_eq!(m.text("/proc/sys/vm/swappiness"), "1");
        assert_eq!(m.text("/sys/block/nvme1n1/queue/nomerges"), "0\n");
    }

    #[test]
    fn a_drive_that_went_does_not_stop_the_undo() {
        let m = Machinery::new();
        m.place().apply(&m.settings()).expect("applied");
        std::fs::remove_dir_all(m.path("/sys/block/nvme1n1")).expect("pulled out");
        let report = m.place().undo().expect("undone");
        assert_eq!(report.refused.len(), 1, "{report:?}");
        assert_eq!(m.text("/proc/sys/vm/swappiness"), "60");
        assert!(!m.place().record.exists());
    }

    #[test]
    fn without_a_record_nothing_is_changed() {
        let m = Machinery::new();
        let mut place = m.place();
        std::fs::write(m.folder.path().join("state"), "a file, where a folder should be").expect("written");
        let failure = place.apply(&m.settings()).expect_err("no record");
        assert!(failure.message.contains("nothing was changed"), "{failure}");
        assert_eq!(m.text("/proc/sys/vm/swappiness"), "60\n");
        place.record = m.folder.path().join("tune.json");
        std::fs::write(&place.record, "{\"version\":2}").expect("written");
        assert!(place.apply(&m.settings()).is_err() && place.undo().is_err());
        assert_eq!(m.text("/proc/sys/vm/swappiness"), "60\n");
    }

    #[test]
    fn a_value_that_does_not_stay_is_said_and_not_kept() {
        let m = Machinery::new();
        // A file that nothing can be written to.
        let path = m.path("/proc/sys/vm/swappiness");
        let setting = Setting {
            group: Group::Memory,
            what: What::Swappiness,
            owners: Vec::new(),
            found: Value::Text("60".into()),
            wanted: Value::Text("1".into()),
            verdict: Verdict::Change(vec![Write {
                path: "/proc/sys/vm/gone".into(),
                was: "60".into(),
                value: "1".into(),
            }]),
        };
        let report = m.place().apply(&[setting]).expect("tried");
        assert_eq!((report.done.len(), report.refused.len()), (0, 1), "{report:?}");
        assert!(path.exists() && !m.path("/proc/sys/vm/gone").exists(), "files of the kernel are not made");
    }

    #[test]
    fn what_is_made_for_the_next_start_is_removed_by_undo() {
        let m = Machinery::new();
        let sysctl = m.path("/etc/sysctl.d/60-millrace.conf");
        let mut place = m.place();
        let settings = m.settings();
        let mut report = place.apply(&settings).expect("applied");
        place.persist(&settings, &[], &mut report).expect("persisted");
        let text = std::fs::read_to_string(&sysctl).expect("made");
        assert!(
            text.contains("vm.swappiness = 1\n") && text.contains("net.ipv4.tcp_rmem = 4096 131072 16777216"),
            "{text}"
        );
        let rules = m.text("/etc/udev/rules.d/60-millrace.rules");
        assert!(rules.contains("KERNEL==\"nvme1n1\", ATTR{queue/nomerges}=\"2\""), "{rules}");
        assert!(
            m.text("/etc/systemd/system/millrace-tune.service").contains("--only cpu,block,memory,network ")
        );
        place.undo().expect("undone");
        assert!(!sysctl.exists() && !m.path("/etc/systemd/system/millrace-tune.service").exists());
    }
}
