//! Who is called when something goes wrong: a webhook, a command and a relay for mail, each a small one of the test's own.

use judge::{binary, until};
use lab::Output;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// What a listener was told, oldest first.
type Heard = Arc<Mutex<Vec<String>>>;

/// A webhook at this address: keeps the body of each request, and says that all is well. A head that stops leaves in the middle of one.
fn webhook(at: SocketAddr) -> (SocketAddr, Heard) {
    listen(at, |stream, heard| {
        let (mut lines, mut length) = (BufReader::new(stream.try_clone().expect("a socket")), 0);
        loop {
            let mut line = String::new();
            if !lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                return;
            }
            if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if lines.read_exact(&mut body).is_err() {
            return;
        }
        heard.lock().expect("no panic").push(String::from_utf8(body).expect("text"));
        (&*stream).write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("an answer");
    })
}

/// A relay: keeps each mail, envelope and all.
fn relay() -> (SocketAddr, Heard) {
    listen(local(), |stream, heard| {
        let say = |text: &str| (&*stream).write_all(format!("{text}\r\n").as_bytes()).expect("an answer");
        let (mut all, mut in_data) = (String::new(), false);
        say("220 relay");
        for line in BufReader::new(stream.try_clone().expect("a socket")).lines() {
            let Ok(line) = line else { return };
            all += &format!("{line}\n");
            match line.split(' ').next() {
                Some(".") if in_data => {
                    in_data = false;
                    say("250 2.0.0 queued");
                    heard.lock().expect("no panic").push(std::mem::take(&mut all));
                }
                _ if in_data => {}
                Some("EHLO") => say("250-relay\r\n250 8BITMIME"),
                Some("DATA") => {
                    in_data = true;
                    say("354 go on");
                }
                Some("QUIT") => return,
                _ => say("250 ok"),
            }
        }
    })
}

fn listen(at: SocketAddr, serve: fn(&TcpStream, &Heard)) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind(at).expect("an address");
    let (at, heard) = (listener.local_addr().expect("an address"), Heard::default());
    let all = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(&stream, &all);
        }
    });
    (at, heard)
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A daemon in a folder of its own, both gone with the value.
struct Daemon {
    dir: PathBuf,
    child: Option<Child>,
}

impl Daemon {
    fn start(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.join("log")).expect("a log");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(binary()).arg("serve").arg("--config");
        command.arg(self.dir.join("head.toml")).env_remove("JOURNAL_STREAM");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.child = Some(child.expect("setpriv runs"));
        until("the daemon answers", 20, || self.cli("status").code == 0);
    }
    fn stop(&mut self) {
        let mut child = self.child.take().expect("a running daemon");
        lab::sh(&format!("kill -TERM {}", child.id())).expect("kill");
        assert_eq!(child.wait().expect("wait").code(), Some(0));
    }
    fn cli(&self, words: &str) -> Output {
        let mut command = Command::new(binary());
        command.args(words.split_whitespace()).env("MILLRACE_SOCKET", self.dir.join("api"));
        let done = command.stdin(Stdio::null()).output().expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output {
            code: done.status.code().unwrap_or(-1),
            stdout: text(done.stdout),
            stderr: text(done.stderr),
        }
    }
    /// A command that must work.
    fn good(&self, words: &str) -> String {
        self.cli(words).good(&format!("millrace {words}")).unwrap_or_else(|e| panic!("{e:#}")).stdout
    }
    /// Whether the log of events has this code, of these weights.
    fn has_event(&self, code: &str) -> bool {
        let text = self.good("events --level note --since 1h --json");
        let events: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        events.iter().filter(|e| e["code"] == code).count() == 1
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.dir.join("log")).unwrap_or_default());
        }
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// The alarms of all messages, as `state code`.
fn alarms(heard: &Heard) -> Vec<String> {
    let messages: Vec<Value> =
        heard.lock().expect("no panic").iter().map(|m| serde_json::from_str(m).expect("JSON")).collect();
    let word = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let all = messages.iter().flat_map(|m| m["alarms"].as_array().cloned().unwrap_or_default());
    all.map(|a| format!("{} {}", word(&a["state"]), word(&a["code"]))).collect()
}

fn has(heard: &Heard, alarm: &str) -> bool {
    alarms(heard).iter().any(|a| a == alarm)
}

fn prepare(dir: &Path, receivers: &str) {
    fs::remove_dir_all(dir).ok();
    fs::create_dir_all(dir.join("state")).expect("a folder");
    let at = dir.display();
    let config = format!(
        "state_dir = \"{at}/state\"\nsocket = \"{at}/api\"\nmemory = \"64M\"\nshards = 1\n{receivers}"
    );
    fs::write(dir.join("head.toml"), config).expect("head.toml");
    for name in ["a", "b"] {
        fs::File::create(dir.join(name)).and_then(|f| f.set_len(128 << 20)).expect("a drive");
    }
}

#[test]
fn a_lost_leg_calls_all_receivers_and_its_return_too() {
    let dir = std::env::temp_dir().join(format!("millrace-alarms-{}", std::process::id()));
    let at = dir.display();
    let ((hook_at, hook), (relay_at, mails)) = (webhook(local()), relay());
    // Nobody listens there yet.
    let dead_at = TcpListener::bind(local()).and_then(|l| l.local_addr()).expect("an address");
    let out = dir.join("out");
    prepare(
        &dir,
        &format!(
            "[alarm.hook]\nwebhook = \"http://{hook_at}/millrace\"\n\
             [alarm.script]\ncommand = [\"/bin/sh\", \"-c\", \"echo $MILLRACE_STATE >>{}; cat >/dev/null\"]\ncodes = [\"leg_not_optimal\"]\n\
             [alarm.post]\nmail = [\"admin@example.com\"]\nrelay = \"smtp://{relay_at}\"\n\
             [alarm.deaf]\nwebhook = \"http://{dead_at}/\"\nlevel = \"note\"\n",
            out.display()
        ),
    );
    let mut daemon = Daemon { dir: dir.clone(), child: None };
    daemon.start();

    let tested = daemon.cli("alarm test");
    assert_eq!(tested.code, 1, "{tested:?}");
    for words in ["204 No Content", "250 2.0.0 queued", "ended with 0", "cannot be reached"] {
        assert!(tested.stdout.contains(words), "{words}: {}", tested.stdout);
    }
    assert!(tested.stderr.contains("no alarm reaches deaf"), "{}", tested.stderr);
    assert_eq!(daemon.cli("alarm test hook").code, 0);
    assert!(daemon.cli("alarm test hoock").stderr.contains("no alarm receiver hoock"));
    assert_eq!(alarms(&hook), ["test test"; 2]);

    let well = daemon.cli("status --check");
    assert!(well.code == 0 && well.stdout.starts_with("MILLRACE OK - optimal, 0 pools"), "{well:?}");
    daemon.good(&format!("pool create tank mirror {at}/a {at}/b"));
    daemon.good(&format!("drive fail {at}/b"));
    let ill = daemon.cli("status --check");
    assert!(ill.code == 1 && ill.stdout.starts_with("MILLRACE WARNING - degraded, pool tank: "), "{ill:?}");
    assert!(ill.stdout.contains(" | reasons=") && ill.stdout.lines().count() == 1, "{ill:?}");
    until("the webhook hears of it", 12, || has(&hook, "raised leg_not_optimal"));
    until("there is a mail of it", 3, || mails.lock().expect("no panic").len() > 1);
    let mail = mails.lock().expect("no panic").last().cloned().unwrap_or_default();
    assert!(
        mail.contains("RCPT TO:<admin@example.com>\n") && mail.contains("\nSubject: [millrace "),
        "{mail}"
    );
    assert!(has(&hook, "happened leg_out"), "{:?}", alarms(&hook));

    // What was told is known after a restart: it is not told again.
    daemon.stop();
    daemon.start();
    let last = daemon.good("events --last 1 --json");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&last).expect("JSON").len(), 1);
    assert!(!has(&hook, "recovered leg_not_optimal"), "who failed it returns it");
    daemon.good(&format!("drive return {at}/b"));
    until("the webhook hears that it is well", 12, || has(&hook, "recovered leg_not_optimal"));
    let raised = alarms(&hook).iter().filter(|a| *a == "raised leg_not_optimal").count();
    assert_eq!(raised, 1, "{:?}", alarms(&hook));
    until("the script heard both", 3, || {
        let said = fs::read_to_string(&out).unwrap_or_default();
        ["raised", "recovered"].iter().all(|word| said.lines().any(|l| l == *word))
    });
    assert_eq!(daemon.cli("status --check").code, 0);

    // The one that is deaf is an event, and so is its recovery; nothing that waited is lost.
    // The third time it is tried again, 2 and then 4 s after the one before, and after the start.
    until("it is known to be dead", 15, || daemon.has_event("alarm_receiver_dead"));
    until("others hear of it", 3, || has(&hook, "happened alarm_receiver_dead"));
    let (_, heard) = webhook(dead_at);
    assert_eq!(daemon.cli("alarm test deaf").code, 0);
    until("it is known to be well", 5, || daemon.has_event("alarm_receiver_well"));
    assert!(has(&heard, "happened leg_out") && has(&heard, "happened leg_synced"), "{:?}", alarms(&heard));
    // What was over before it could be told is not told.
    assert!(!has(&heard, "raised leg_not_optimal") && !has(&heard, "happened alarm_receiver_dead"));
}
