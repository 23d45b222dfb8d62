//! `millrace support`: what is in the archive, and what never is.

use crate::daemon::{Daemon, millrace, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHAP: &str = "correcthorsebatt";
/// The daemon keeps what has blanks as hex digits.
const MUTUAL: &str = "staple of the target";
const DHCHAP: &str = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";
const TOKEN: &str = "c3dvcmRmaXNoc3dvcmRmaXNoc3dvcmRmaXNo";

/// Unpacks an archive; its files in the order in which they lie there.
fn unpacked(archive: &Path, into: &Path) -> Vec<PathBuf> {
    fs::create_dir(into).expect("a folder");
    let mut tar = Command::new("tar");
    let done = tar.arg("-xvzf").arg(archive).arg("-C").arg(into).output().expect("tar runs");
    assert!(done.status.success(), "{}", said(&done).1);
    String::from_utf8(done.stdout).expect("names").lines().map(|name| into.join(name)).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).expect("a name")
}

#[test]
fn the_archive_tells_of_the_head_and_the_machine_and_holds_no_secret() {
    let mut daemon = Daemon::new();
    for (file, secret) in [("chap", CHAP), ("mutual", MUTUAL), ("token", TOKEN)] {
        fs::write(daemon.path(file), format!("{secret}\n")).expect("written");
        fs::set_permissions(daemon.path(file), fs::Permissions::from_mode(0o600)).expect("ours");
    }
    let config = daemon.path("head.toml");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let text = fs::read_to_string(&config).expect("a configuration");
    let api = format!(
        "[api]\ntcp = \"{port}\"\ntoken_file = \"{}\" # {TOKEN} {DHCHAP}\n",
        daemon.path("token").display()
    );
    fs::write(&config, text + &api).expect("written");
    daemon.start(&[]);
    daemon.cli(&format!("pool create tank mirror {} {}", daemon.file("d0", 256), daemon.file("d1", 256)));
    daemon.cli("volume create tank/vm1 --size 64M");
    let (chap, mutual) = (daemon.path("chap"), daemon.path("mutual"));
    daemon.cli(&format!(
        "host add web1 --iqn iqn.1998-01.com.example:web1 --chap-secret-file {} --mutual-secret-file {}",
        chap.display(),
        mutual.display()
    ));
    // A name that somebody chose badly, which events and status repeat.
    daemon.cli(&format!("host add {TOKEN} --iqn iqn.1998-01.com.example:web2"));
    assert!(daemon.cli("status --json").contains(TOKEN));
    let kept = fs::read_to_string(daemon.path("state/hosts")).expect("hosts");
    assert!(
        kept.contains(CHAP) && kept.contains("mutual_secret = \"0x7374"),
        "the daemon keeps them: {kept}"
    );

    let (archive, config) = (daemon.path("report.tar.gz"), config.display().to_string());
    let output = archive.display().to_string();
    let words = ["support", "--config", &config, "--output", &output];
    let done = daemon.ask(&words);
    assert!(done.status.success(), "{}", said(&done).1);
    let screen = String::from_utf8(done.stdout).expect("text");
    assert_eq!(fs::metadata(&archive).expect("the archive").permissions().mode() & 0o777, 0o600);

    let files = unpacked(&archive, &daemon.path("unpacked"));
    assert_eq!(name(&files[0]), "contents.txt", "{files:?}");
    let contents = fs::read_to_string(&files[0]).expect("contents");
    let mut all = screen.clone();
    for file in &files {
        assert!(name(file) == "contents.txt" || contents.contains(name(file)), "{file:?}: {contents}");
        all += &fs::read_to_string(file).expect("text");
    }
    for secret in [CHAP, MUTUAL, DHCHAP, TOKEN] {
        assert!(!all.contains(secret), "{secret}");
    }
    let read = |wanted: &str| {
        let file = files.iter().find(|f| name(f) == wanted).unwrap_or_else(|| panic!("{wanted}: {screen}"));
        fs::read_to_string(file).expect("text")
    };
    for (file, word) in [
        ("versions.txt", "kernel: Linux"),
        ("head.toml", "memory = \"64M\""),
        ("status.json", "\"tank/vm1\""),
        ("events.json", "web1"),
        ("metrics.txt", "# TYPE millrace_"),
        ("drives.txt", "queue/scheduler"),
    ] {
        assert!(read(file).contains(word), "{file}: {}", read(file));
    }
    // The recording is a machine for everybody.
    let recording =
        files.iter().find(|f| name(f) == "machine.rec").expect("a recording").display().to_string();
    let tree = millrace(&["topology", "--machine", &recording]);
    assert!(tree.status.success(), "{}", said(&tree).1);

    let again = daemon.ask(&words);
    assert!(
        again.status.code() == Some(2) && said(&again).1.contains("File exists"),
        "nothing is written over"
    );
}

#[test]
fn without_a_daemon_the_rest_is_packed_and_a_list_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.current_dir(folder.path()).args(["--socket", "/nonexistent/api.sock", "support"]).args(words);
        let done = command.output().expect("it runs");
        assert!(done.status.success(), "{}", said(&done).1);
        String::from_utf8(done.stdout).expect("text")
    };
    let entries = || fs::read_dir(folder.path()).expect("a folder").count();
    let list = run(&["--list"]);
    assert!(list.contains("machine.rec") && list.contains("Nothing was written"), "{list}");
    assert_eq!(entries(), 0);
    let packed: serde_json::Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
    assert_eq!(entries(), 1);
    let files = packed["files"].as_array().expect("files");
    let status = files.iter().find(|f| f["file"] == "status.json").expect("it is listed");
    assert!(status["missing"].as_str().is_some_and(|why| why.contains("/nonexistent/api.sock")), "{status}");
    let drives = files.iter().find(|f| f["file"] == "drives.txt").expect("it is listed");
    assert!(drives["bytes"].as_u64().is_some_and(|n| n > 0), "{drives}");
}
