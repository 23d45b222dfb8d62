//! The log under systemd: entries of the journal with priority, code and subject.
//!
//! Where the journal's socket is there, each line is an entry by its own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). Where it is
//! not, as in some containers, or an entry does not get through, the line goes to stderr with its priority in front
//! (sd-daemon(3)), which the journal reads.

use core::fmt;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Where the journal takes entries.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Names of fields of the log that are not for a line of text: the journal has them as fields.
pub const CODE: &str = "millrace_code";
/// The subject of an event.
pub const SUBJECT: &str = "millrace_subject";

/// Whether what is written to stderr comes into the journal: the variable names the file that stderr was then, and it may have been
/// redirected since.
pub fn is_stderr() -> bool {
    let stderr = std::fs::metadata("/proc/self/fd/2").ok();
    let named = std::env::var("JOURNAL_STREAM").ok();
    stderr.zip(named).is_some_and(|(file, named)| named == format!("{}:{}", file.dev(), file.ino()))
}

/// A line of the log.
#[derive(Default)]
struct Line {
    message: String,
    code: String,
    subject: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message += &text,
            CODE => self.code = text,
            SUBJECT => self.subject = text,
            name => self.message += &format!(" {name}={text}"),
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// Priority of a level (syslog(3)).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

impl Line {
    /// As the journal's own protocol has it: fields in lines, and a text that has lines itself behind its length.
    fn entry(&self, level: Level) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 160);
        let mut field = |name: &str, value: &str| {
            out.extend(name.as_bytes());
            if value.contains('\n') {
                out.push(b'\n');
                out.extend((value.len() as u64).to_le_bytes());
            } else {
                out.push(b'=');
            }
            out.extend(value.as_bytes());
            out.push(b'\n');
        };
        field("PRIORITY", &priority(level).to_string());
        field("SYSLOG_IDENTIFIER", "millrace");
        for (name, value) in [("MILLRACE_CODE", &self.code), ("MILLRACE_SUBJECT", &self.subject)] {
            if !value.is_empty() {
                field(name, value);
            }
        }
        field("MESSAGE", self.message.trim_start());
        out
    }
    /// As stderr has it: each line with the priority.
    fn text(&self, level: Level) -> String {
        let line = |text: &str| format!("<{}>{text}\n", priority(level));
        self.message.trim_start().lines().map(line).collect()
    }
}

/// Writes the log to the journal.
pub struct Journal(Option<UnixDatagram>);

impl Journal {
    /// By the socket of this machine, if it is there.
    pub fn open() -> Self {
        Self::at(SOCKET)
    }
    fn at(path: &str) -> Self {
        let socket = UnixDatagram::unbound().ok();
        Self(socket.filter(|s| s.connect(path).is_ok() && s.set_nonblocking(true).is_ok()))
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (mut line, level) = (Line::default(), *event.metadata().level());
        event.record(&mut line);
        // A journal that is busy, or an entry that is too long for it, must hold up nobody.
        let sent = self.0.as_ref().is_some_and(|socket| socket.send(&line.entry(level)).is_ok());
        if !sent {
            let _ = std::io::stderr().lock().write_all(line.text(level).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn an_entry_has_fields_and_a_line_its_priority() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let journal = UnixDatagram::bind(&path).expect("bound");
        let layer = Journal::at(path.to_str().expect("text"));
        assert!(layer.0.is_some());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(
                millrace_code = "leg_slow",
                millrace_subject = "drive /dev/a",
                "{} is {}",
                "/dev/a",
                "slow"
            );
            tracing::error!("two\nlines");
        });
        let mut bytes = [0; 512];
        let n = journal.recv(&mut bytes).expect("an entry");
        assert_eq!(
            String::from_utf8_lossy(&bytes[..n]),
            "PRIORITY=4\nSYSLOG_IDENTIFIER=millrace\nMILLRACE_CODE=leg_slow\nMILLRACE_SUBJECT=drive /dev/a\nMESSAGE=/dev/a is slow\n"
        );
        let n = journal.recv(&mut bytes).expect("an entry");
        assert_eq!(
            &bytes[..n],
            b"PRIORITY=3\nSYSLOG_IDENTIFIER=millrace\nMESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n"
        );
        let line = Line { message: "two\nlines".into(), ..Line::default() };
        assert_eq!(line.text(Level::INFO), "<6>two\n<6>lines\n");
        assert!(Journal::at("/nowhere").0.is_none());
    }
}
