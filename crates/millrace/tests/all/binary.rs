//! The program itself: exit codes, the daemon's start and stop, crashes that are counted.

use crate::daemon::{Daemon, millrace, said, until};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_wrong_command_line_ends_with_2_and_no_daemon_with_4() {
    assert_eq!(said(&millrace(&["volume", "create", "tank/a", "--size", "0"])).0, 2);
    assert_eq!(said(&millrace(&["nonsense"])).0, 2);
    let (code, text) = said(&millrace(&["--socket", "/nonexistent/api.sock", "status"]));
    assert_eq!(code, 4);
    assert!(
        text.starts_with("error: no daemon listens at /nonexistent/api.sock\nNext: millrace serve"),
        "{text}"
    );
    let (code, text) =
        said(&millrace(&["--socket", "/nonexistent/api.sock", "pool", "create", "t", "mirror", "/dev/a"]));
    assert_eq!(code, 2);
    assert!(text.contains("2 to 4 drives"), "{text}");
}

#[test]
fn with_json_every_failure_has_one_shape() {
    let cases: [(&[&str], i32, &str, &str); 4] = [
        (&["--socket", "/nonexistent/api.sock", "status", "--json"], 4, "status", "unreachable"),
        (&["--json", "volume", "create", "tank/a", "--size", "0"], 2, "volume create", "usage"),
        (&["--json", "pool", "create", "t", "mirror", "/dev/a"], 2, "pool create", "usage"),
        (&["nonsense", "--json"], 2, "", "usage"),
    ];
    for (words, code, what, kind) in cases {
        let output = millrace(words);
        assert!(output.stdout.is_empty(), "{words:?}");
        let (exit, text) = said(&output);
        let told: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{words:?}: {e}: {text}"));
        let error = &told["error"];
        assert_eq!((exit, &error["exit"]), (code, &code.into()), "{words:?}");
        assert_eq!((error["what"].as_str(), error["kind"].as_str()), (Some(what), Some(kind)));
        assert!(error["cause"].as_str().is_some_and(|c| !c.is_empty() && !c.contains('\n')), "{text}");
        assert!(error["next"].as_str().is_some_and(|n| n.contains("millrace")), "{text}");
    }
}

#[test]
fn the_daemon_listens_where_its_configuration_says_whatever_the_environment_says() {
    let daemon = Daemon::new();
    let elsewhere = daemon.path("elsewhere.sock");
    let mut child = daemon.command().env("MILLRACE_SOCKET", &elsewhere).spawn().expect("it runs");
    let begin = Instant::now();
    while !daemon.path("api.sock").exists() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let obeyed = daemon.path("api.sock").exists() && !elsewhere.exists();
    // A client goes where the variable points.
    let ask = |socket: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.arg("status").env("MILLRACE_SOCKET", socket).output().expect("it runs").status.code()
    };
    let answers = (ask(&daemon.path("api.sock")), ask(&elsewhere));
    // An empty variable is none.
    let words = |change: fn(&mut Command) -> &mut Command| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        said(&change(command.arg("portal").arg("ls")).output().expect("it runs"))
    };
    let (empty, unset) =
        (words(|c| c.env("MILLRACE_SOCKET", "")), words(|c| c.env_remove("MILLRACE_SOCKET")));
    let _ = child.kill();
    let _ = child.wait();
    assert!(obeyed, "the environment does not move the daemon");
    assert_eq!(answers, (Some(0), Some(4)));
    assert_eq!(empty, unset);
}

#[test]
fn a_wrong_configuration_ends_with_2_and_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("head.toml");
    let name = path.display().to_string();
    let serve = || said(&millrace(&["serve", "--config", &name]));
    let (code, text) = serve();
    assert!(code == 2 && text.contains("cannot read the configuration"), "{text}");
    fs::write(&path, "shard = 4\n").expect("written");
    let (code, text) = serve();
    assert!(
        code == 2 && text.contains("head.toml:1: unknown key \"shard\"; did you mean \"shards\"?"),
        "{text}"
    );
    fs::write(&path, "log = \"loud,,=\"\n").expect("written");
    let (code, text) = serve();
    assert!(code == 2 && text.contains("log = "), "{text}");
}

/// What it prints, and its exit code.
fn printed(words: &[&str]) -> (i32, String) {
    let output = millrace(words);
    (output.status.code().expect("an exit code"), String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn the_version_names_the_commit_where_that_is_known() {
    let (code, said) = printed(&["--version"]);
    let plain = format!("millrace {}", env!("CARGO_PKG_VERSION"));
    assert!(code == 0 && said.starts_with(&plain), "{said}");
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short=12", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if let (true, Ok(commit)) = (said.trim() != plain, git.output()) {
        let commit = String::from_utf8_lossy(&commit.stdout);
        assert_eq!(said.trim(), format!("{plain} ({})", commit.trim()));
    }
}

#[test]
fn the_example_configuration_is_printed_and_words_from_elsewhere_are_understood() {
    let (code, example) = printed(&["serve", "--example"]);
    assert!(code == 0 && example.contains("state_dir = "), "{example}");
    let (code, help) = printed(&["help", "volume", "create"]);
    assert!(code == 0 && help.contains("Usage: millrace volume create"), "{help}");
    let nowhere = ["--socket", "/nonexistent/api.sock"];
    let (code, text) = said(&millrace(&[&nowhere[..], &["pool", "list"]].concat()));
    assert_eq!((code, text.lines().next()), (4, Some("error: no daemon listens at /nonexistent/api.sock")));
    let (code, text) = said(&millrace(&["pool", "create", "p", "raid1", "a", "b"]));
    assert_eq!(
        (code, text.trim()),
        (2, "error: raid1 is called mirror here\nNext: millrace pool create p mirror a b")
    );
}

#[test]
fn completions_and_the_document_need_no_daemon() {
    for words in [&["completions", "bash"][..], &["openapi"], &["--help"], &["--version"]] {
        let output = millrace(words);
        assert!(output.status.success() && !output.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn a_shell_is_told_commands_and_the_names_that_the_daemon_knows() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli(&format!("pool create tank mirror {} {}", daemon.file("d0", 256), daemon.file("d1", 256)));
    daemon.cli("volume create tank/vm1 --size 64M");
    daemon.cli("host add web1 --iqn iqn.1998-01.com.example:web1");
    let ask = |socket: &Path, words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.args(["--", "millrace"]).args(words.split(' '));
        command.env("MILLRACE_COMPLETE", "fish").env("MILLRACE_SOCKET", socket);
        let output = command.output().expect("it runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|l| l.split('\t').next().unwrap_or("").to_string()).collect::<Vec<_>>()
    };
    let socket = daemon.path("api.sock");
    let has = |words: &str, one: &str| {
        let found = ask(&socket, words);
        assert!(found.iter().any(|f| f == one), "{words}: {found:?}");
    };
    has("vol", "volume");
    has("pool show ", "tank");
    has("volume resize t", "tank/vm1");
    has("export tank/vm1 --host w", "web1");
    has("drive fail ", &daemon.path("d1").display().to_string());
    has("completions ", "zsh");
    assert!(ask(&socket, "pool show x").is_empty());
    let without = ask(Path::new("/nonexistent"), "pool show ");
    assert!(without.iter().all(|w| w.starts_with('-')), "no daemon, no names: {without:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .arg("openapi")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_daemon_starts_is_alone_and_stops_in_order() {
    let mut daemon = Daemon::new();
    daemon.start(&["--json"]);
    let status = daemon.status();
    assert_eq!(status["daemon"]["management_only"], false);
    let second = said(&daemon.command().stderr(Stdio::piped()).output().expect("it runs"));
    assert!(
        second.0 == 2
            && second.1.contains("another daemon (process ")
            && second.1.contains(" has the state directory"),
        "{second:?}"
    );
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    assert!(!daemon.path("api.sock").exists(), "the socket is removed");
    daemon.start(&[]);
    assert_eq!(daemon.status()["system"]["uuid"], status["system"]["uuid"], "the identity is kept");
    assert_eq!(daemon.signal("-INT").code(), Some(0));
}

#[test]
fn a_drive_that_hangs_does_not_keep_the_daemon_from_stopping() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let (a, b) = (daemon.file("a", 96), daemon.file("b", 96));
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    daemon.cli(&format!("drive shape {b} --hang"));
    // One that it cannot wait for: it would end with 1, and without its last words.
    assert_eq!(daemon.signal("-TERM").code(), Some(0), "{}", daemon.log());
    assert!(daemon.log().contains("the head was stopped"), "{}", daemon.log());
    daemon.start(&[]);
    crate::daemon::until("the pool is well", || daemon.status()["health"] == "optimal");
}

#[test]
fn three_fatal_signals_in_a_minute_leave_the_management_alone_and_kills_do_not() {
    let mut daemon = Daemon::new();
    let crashes = |d: &Daemon| fs::read_to_string(d.path("state/crashes")).unwrap_or_default();
    for _ in 0..3 {
        daemon.start(&[]);
        daemon.signal("-KILL");
    }
    assert_eq!(crashes(&daemon), "", "kill -9 does not count");
    daemon.start(&[]);
    daemon.portal("iscsi");
    daemon.signal("-KILL");
    for (signal, n) in [("-SEGV", 1), ("-ABRT", 2), ("-BUS", 3)] {
        daemon.start(&[]);
        assert_eq!(daemon.status()["daemon"]["management_only"], false, "after {} crashes", n - 1);
        let ended = daemon.signal(signal);
        assert_eq!(ended.code(), None, "it ended by the signal");
        assert_eq!(crashes(&daemon).lines().count(), n, "{}", crashes(&daemon));
    }
    assert!(crashes(&daemon).contains("Z signal SIGSEGV\n"), "{}", crashes(&daemon));
    daemon.start(&[]);
    let status = daemon.status();
    assert_eq!(status["daemon"]["management_only"], true);
    assert_eq!(status["health"], "offline");
    // The portals are closed on purpose, and nobody is told to remove them.
    assert_eq!(status["portals"][0]["listening"], false, "{status}");
    assert_eq!(status["reasons"].as_array().map(Vec::len), Some(1), "{status}");
    let reason = &status["reasons"][0];
    assert!(
        reason["message"].as_str().expect("text").contains("crashed 3 times within a minute"),
        "{reason}"
    );
    assert!(reason["next"].as_str().expect("text").contains("millrace serve --import"), "{reason}");
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    // It stays so until the operator says otherwise.
    daemon.start(&["--import"]);
    assert_eq!(daemon.status()["daemon"]["management_only"], false);
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    daemon.start(&[]);
    assert_eq!(daemon.status()["daemon"]["management_only"], false);
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "only builds with debug assertions let a panic be provoked")]
fn a_panic_of_a_shard_ends_the_daemon_and_three_of_them_leave_the_management_alone() {
    let mut daemon = Daemon::new();
    for n in 1..=3 {
        daemon.start(&[]);
        assert_eq!(daemon.status()["daemon"]["management_only"], false);
        assert_eq!(daemon.signal("-USR1").code(), None, "it ended by SIGABRT");
        let crashes = fs::read_to_string(daemon.path("state/crashes")).expect("the record");
        assert_eq!(crashes.lines().count(), n, "one line for each, not two: {crashes}");
        assert!(crashes.contains("panic in shard-0: a shard did not ask for this"), "{crashes}");
    }
    daemon.start(&[]);
    let status = daemon.status();
    assert_eq!(status["daemon"]["management_only"], true);
    assert!(
        status["reasons"][0]["message"].as_str().is_some_and(|m| m.contains("panic in shard-0")),
        "{status}"
    );
}

/// A second daemon started on the directory, and both wrote there.
#[test]
fn a_lock_and_a_crash_record_that_are_removed_are_made_again_and_let_no_second_daemon_in() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    for name in ["lock", "crashes"] {
        fs::remove_file(daemon.path("state").join(name)).expect("it is there");
    }
    let other = daemon.path("other.sock").display().to_string();
    let output =
        daemon.command().args(["--socket", &other]).stderr(Stdio::piped()).output().expect("it ends at once");
    let (code, text) = said(&output);
    assert!(code == 2 && text.contains("has the state directory"), "{text}");
    let lock = || fs::read_to_string(daemon.path("state/lock")).unwrap_or_default();
    let pid = daemon.child.as_ref().expect("it runs").id().to_string();
    until("the lock is made again", || lock().trim() == pid);
    until("it is told", || {
        let status = daemon.status();
        let notices =
            status["notices"].as_array().expect("a list").iter().filter_map(|n| n["message"].as_str());
        notices.filter(|n| n.starts_with("the files crashes, lock were removed")).count() == 1
    });
    assert_eq!(daemon.status()["health"], "optimal");
    assert_eq!(daemon.signal("-USR1").code(), None, "it ended by SIGABRT");
    let crashes = fs::read_to_string(daemon.path("state/crashes")).expect("the record");
    assert!(crashes.contains("panic in shard-0"), "the new file has it: {crashes}");
}

/// `state check` told to stop the daemon, which alone knew what the file had held.
#[test]
fn a_file_that_is_damaged_under_a_running_daemon_is_whole_again_within_seconds() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli("host add p --iqn iqn.2026-01.org.example:p");
    let path = daemon.path("state/hosts");
    let before = fs::read(&path).expect("it is there");
    fs::File::options().write(true).open(&path).and_then(|f| f.set_len(100)).expect("cut off");
    until("it is written again", || fs::read(&path).is_ok_and(|bytes| bytes == before));
    until("it is told", || {
        let events = daemon.events().join("\n");
        events.contains("the file hosts was damaged in the state directory")
            && events.contains("written again: hosts")
    });
    assert_eq!(daemon.status()["health"], "optimal");
}

#[test]
fn a_daemon_whose_parent_is_gone_does_not_start() {
    let daemon = Daemon::new();
    let output =
        daemon.command().args(["--die-with-parent", "1"]).stderr(Stdio::piped()).output().expect("it runs");
    // Unless the test itself is a child of process 1.
    if std::os::unix::process::parent_id() != 1 {
        assert!(said(&output).1.contains("is gone"), "{output:?}");
    }
}

#[test]
fn pools_on_file_drives_are_made_and_refusals_name_the_cause() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let drives: Vec<String> = (0..2)
        .map(|i| {
            let path = daemon.path(&format!("drive{i}"));
            fs::File::create(&path).and_then(|f| f.set_len(256 << 20)).expect("made");
            path.display().to_string()
        })
        .collect();
    let done = |words: &[&str]| {
        let output = daemon.ask(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output).1);
    };
    done(&["pool", "create", "tank", "mirror", &drives[0], &drives[1]]);
    done(&["volume", "create", "tank/vm1", "--size", "64M"]);
    done(&["host", "add", "esx1", "--iqn", "iqn.1998-01.com.vmware:esx1"]);
    done(&["export", "tank/vm1", "--host", "esx1"]);
    let refused = |words: &[&str], name: &str| {
        let (code, text) = said(&daemon.ask(words));
        assert!(code == 3 && text.contains(name), "{words:?}: {code} {text}");
    };
    refused(&["pool", "create", "tank", "ram:1G"], "tank");
    refused(&["pool", "create", "two", "mirror", &drives[0], &drives[1]], &drives[0]);
    refused(&["volume", "create", "tank/vm1", "--size", "64M"], "vm1 already");
    refused(&["volume", "create", "tank/vm2", "--size", "8000P"], "largest volume");
    refused(&["volume", "create", "nopool/vm2", "--size", "64M"], "nopool");
    refused(&["export", "tank/vm1", "--host", "nobody"], "nobody");
    refused(&["volume", "rm", "tank/vm1"], "exported to 1 host");
    let status = daemon.status();
    assert_eq!(status["volumes"][0]["exports"][0]["host"], "esx1");
}

#[test]
fn a_file_of_this_repository_names_the_unit_as_the_program_expects_it() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/millrace.service");
    let text = fs::read_to_string(unit).expect("the unit is there");
    for line in [
        "Type=notify",
        "Restart=always",
        "RestartSec=0.2",
        "LimitMEMLOCK=infinity",
        "ExecStart=/usr/bin/millrace serve",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}");
    }
}

/// It ended the daemon at its start, and every host's access with it.
#[test]
fn a_taken_api_port_is_told_and_tried_again_while_the_head_serves() {
    let mut daemon = Daemon::new();
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("its address");
    let token = daemon.path("token");
    fs::write(&token, "0123456789abcdef\n").expect("written");
    let file = daemon.path("head.toml");
    let text = fs::read_to_string(&file).expect("read");
    let more = format!("[api]\ntcp = \"{address}\"\ntoken_file = \"{}\"\n", token.display());
    fs::write(&file, text + &more).expect("written");
    daemon.start(&[]);
    let said = format!(
        "degraded head: the API cannot listen at api.tcp = {address}: the address is in use; it is tried again \
         [ss -ltnp sport = :{}, and stop who listens there, or another api.tcp in head.toml and a restart]",
        address.port()
    );
    until("status says it", || daemon.reasons() == [said.as_str()]);
    assert_eq!(daemon.status()["health"], "degraded");
    daemon.cli("pool create tank ram:64M");
    drop(other);
    until("it listens", || daemon.reasons().is_empty());
    let mut peer = std::net::TcpStream::connect(address).expect("it listens");
    let request = "GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer 0123456789abcdef\r\n\r\n";
    peer.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_pipe_that_is_waited_for_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("head.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("coreutils").success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(["serve", "--config"])
        .arg(&pipe)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("it was piped")).lines();
    let said = lines.next().expect("a line").expect("text");
    assert!(
        said.contains("waiting for somebody to write to the pipe") && said.contains("head.toml"),
        "{said}"
    );
    fs::write(&pipe, "memroy = 1\n").expect("it is read");
    let said = lines.next().expect("a line").expect("text");
    assert!(said.contains("memroy"), "{said}");
    assert_eq!(child.wait().expect("ours").code(), Some(2));
}

#[test]
fn a_measurement_that_is_interrupted_says_so() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let nqn = "nqn.2014-08.org.nvmexpress:h";
    daemon.cli("pool create tank ram:64M");
    daemon.cli("volume create tank/v --size 16M");
    daemon.cli(&format!("host add h --nqn {nqn}"));
    daemon.cli("export tank/v --host h");
    let portal = daemon.portal("nvme");
    let subsystem = daemon.status()["system"]["nqn"].as_str().expect("a name").to_string();
    let target = format!("nvme://{portal}/{subsystem}/1");
    let words = ["bench", "hosts", "--target", &target, "--host-nqn", nqn, "--seconds", "600"];
    let bench = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // Both hosts have an admin queue and an I/O queue each.
    until("both hosts are there", || {
        daemon.status()["connections"].as_array().is_some_and(|all| all.len() >= 4)
    });
    assert!(
        Command::new("kill").args(["-INT", &bench.id().to_string()]).status().expect("kill runs").success()
    );
    let output = bench.wait_with_output().expect("it ends");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown} {}", String::from_utf8_lossy(&output.stderr));
    assert!(
        shown.contains("interrupted: the figures are of") && shown.contains("instead of 600 s"),
        "{shown}"
    );
}

#[test]
fn events_are_followed_over_the_end_of_the_daemon() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let (socket, path) = (daemon.path("api.sock").display().to_string(), daemon.path("followed"));
    let mut follower = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(["--socket", &socket, "events", "--follow", "--json"])
        .stdout(fs::File::create(&path).expect("a file"))
        .spawn()
        .expect("it runs");
    let served = || fs::read_to_string(&path).unwrap_or_default().matches("the head serves").count();
    until("it follows", || served() == 1);
    for (signal, lives) in [("-KILL", 2), ("-TERM", 3)] {
        daemon.signal(signal);
        daemon.start(&[]);
        until(&format!("it goes on after {signal}"), || served() == lives);
    }
    let ended = follower.try_wait().expect("ours");
    follower.kill().expect("ours");
    follower.wait().expect("ours");
    assert!(ended.is_none(), "it waits for more");
}

#[test]
fn files_that_cannot_be_read_keep_no_daemon_from_starting() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli("host add p --iqn iqn.2026-01.org.example:p");
    daemon.signal("-TERM");
    for name in ["alarms", "tokens", "hosts", "portals"] {
        let path = daemon.path(&format!("state/{name}"));
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir(&path).expect("a folder in its place");
    }
    daemon.start(&[]);
    let told = |name: &str| daemon.reasons().iter().any(|r| r.contains(&format!("/state/{name}: ")));
    for name in ["alarms", "tokens", "hosts", "portals"] {
        until(name, || told(name));
    }
    assert!(daemon.refused("host add q --iqn iqn.2026-01.org.example:q").contains("/state/hosts: "));
    for words in ["host ls", "host show p", "host set p --no-chap", "host rm p"] {
        let refused = daemon.refused(words);
        assert!(refused.contains("/state/hosts: ") && !refused.contains("host add"), "{words}: {refused}");
    }
    for words in ["portal ls", "portal rm 127.0.0.1:1", "portal rm nvme 127.0.0.1:1"] {
        let refused = daemon.refused(words);
        assert!(refused.contains("/state/portals: "), "{words}: {refused}");
    }
}
