//! The command line: what parses, what it looks like, and what it asks of the daemon.

use super::*;
use crate::arguments::drive_path;
use crate::failure::Exit;
use crate::http::tests::{Fake, fake};
use clap::CommandFactory;
use expect_test::expect_file;
use head::order::Order;

/// Runs a command line against a scripted daemon; the screen, or the failure.
fn run_against(fake: &Fake, line: &str) -> Result<String, Failure> {
    let words = std::iter::once("millrace").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|e| Failure::usage(e.to_string()))?;
    answer(cli.command, &context(fake, cli.json, 80))
}

fn context(fake: &Fake, json: bool, width: usize) -> Context {
    let client = Client::new(fake.client.socket()).expect("a runtime");
    Context { client, json, terminal: Terminal::plain(width), taken: Vec::new, ask: None }
}

fn usage_error(line: &str) -> String {
    let words = std::iter::once("millrace").chain(line.split_whitespace());
    Cli::try_parse_from(words).expect_err(line).to_string()
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_help_with_examples() {
    fn walk(command: &mut clap::Command, path: &str, all: &mut String) {
        let help = command.clone().bin_name(path).render_help().to_string();
        let examples = help.split("xamples:").nth(1).or(help.split("A first volume:").nth(1));
        let examples = examples.unwrap_or_else(|| panic!("{path} has no examples"));
        let first = examples.trim_start().lines().next().unwrap_or("");
        let noun = path.split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert!(first.starts_with(&noun), "{path}: {first}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{path}: {line}");
        }
        // No example is broken: what is copied is whole.
        for line in examples.lines().skip(1).take_while(|l| !l.is_empty()) {
            assert!(
                ["  millrace ", "  curl ", "  pass "].iter().any(|w| line.starts_with(w)),
                "{path}: {line}"
            );
        }
        assert!(command.get_about().is_some(), "{path} says nothing about itself");
        all.push_str(&format!("$ {path} --help\n{help}\n"));
        for sub in command.get_subcommands_mut() {
            let path = format!("{path} {}", sub.get_name());
            walk(sub, &path, all);
        }
    }
    let mut command = Cli::command().term_width(80);
    command.build();
    let mut all = String::new();
    walk(&mut command, "millrace", &mut all);
    expect_file!["screens/help.txt"].assert_eq(&all);
}

#[test]
fn the_screens_are_what_they_were_and_fit_the_terminal() {
    let fake = fake();
    // The process id differs from run to run.
    let pid = format!("pid {},", std::process::id());
    for (width, file) in [(80, expect_file!["screens/80.txt"]), (120, expect_file!["screens/120.txt"])] {
        let mut all = String::new();
        for line in [
            "status",
            "status -v",
            "pool ls",
            "pool show tank",
            "pool import --list",
            "drive ls",
            "drive show nvme1n1",
            "volume ls",
            "volume show tank/vm1",
            "host ls",
            "host show esx1",
            "portal ls",
            "events",
        ] {
            let cli = Cli::try_parse_from(std::iter::once("millrace").chain(line.split(' '))).expect(line);
            let screen = answer(cli.command, &context(&fake, false, width)).expect(line);
            for row in screen.lines() {
                assert!(row.chars().count() <= width && !row.ends_with(' '), "{line} at {width}: {row}");
            }
            all.push_str(&format!("$ millrace {line}\n{}\n", screen.replace(&pid, "pid 4242,")));
        }
        file.assert_eq(&all);
    }
}

/// It read `(lun 0)`, which nobody finds on a host of NVMe.
#[test]
fn a_host_of_nvme_alone_knows_a_volume_by_its_namespace() {
    use head::order::Reply;
    let script = |order: &Order| {
        let mut s = crate::http::tests::snapshot();
        let nqn = "nqn.2014-08.org.nvmexpress:esx1".to_string();
        let host = &mut s.hosts[0];
        (host.nqns, host.iqns) = (vec![nqn.clone()], vec![]);
        s.hosts[1].nqns.clear();
        s.volumes[0].exports[0].names = vec![nqn.clone()];
        s.volumes[1].exports.push(head::order::Exported { host: None, names: vec![nqn], lun: 7 });
        Ok(match order {
            Order::Status => Reply::Snapshot(Box::new(s)),
            other => return crate::http::tests::obedient(other),
        })
    };
    let fake = crate::http::tests::serve(script, Default::default());
    for line in ["status", "volume ls", "volume show tank/vm1"] {
        let screen = run_against(&fake, line).expect(line);
        assert!(screen.contains("esx1 (nsid 1), esx2 (lun 0)"), "{line}: {screen}");
    }
    let screen = run_against(&fake, "volume show tank/scratch").expect("a screen");
    assert!(screen.contains("unknown host nqn.2014-08.org.nvmexpress:esx1 (nsid 2)"), "{screen}");
    for (line, end) in [("host show esx1", "tank/vm1  nsid 1"), ("host show esx2", "tank/vm1  lun 0")] {
        let screen = run_against(&fake, line).expect(line);
        assert!(screen.lines().any(|l| l.ends_with(end)), "{line}: {screen}");
    }
}

#[test]
fn a_pool_that_is_away_and_one_that_nothing_serves_fit_the_terminal_too() {
    use finding::PoolCause;
    use head::order::{Pool, Reason, Reply, State};
    let script = |order: &Order| {
        let mut s = crate::http::tests::snapshot();
        let drive = |n| format!("/srv/a-rather-long-folder/of-images/for-the-vault/drive{n}.img");
        let (a, b) = (drive(0), drive(1));
        let (pool, missing) = ("vault".to_string(), vec![a.clone(), b.clone()]);
        let doubt = finding::PoolDoubt::Missing { pool: pool.clone(), array: "mirror-0".into(), missing };
        let doubtful = finding::PoolRefusal::PoolDoubtful { pool: pool.clone(), doubts: vec![doubt] };
        let why = Box::new(doubtful.into());
        let away = PoolCause::PoolNotImported { pool, why, also: vec![], away: vec![a, b], shaped: vec![] };
        let kept = PoolCause::VolumesKept { why: Box::new(away.into()), volumes: 1 };
        s.pools.push(Pool {
            name: "vault".into(),
            cause: Some(kept.clone().into()),
            state: State::Offline,
            ..Pool::default()
        });
        let helps = Some(finding::DriveHelp::Attach { drive: "/dev/nvme2n1".into() });
        let gone = finding::LegCause::DriveFailed { fault: finding::DriveFault::Gone, helps };
        s.reasons.insert(0, Reason::new(State::Offline, "pool tank", gone));
        s.reasons.insert(1, Reason::new(State::Offline, "pool vault", kept));
        s.health = State::Offline;
        s.pools[0].state = State::Offline;
        s.pools[0].arrays[1].state = State::Offline;
        s.pools[0].arrays[1].legs[0].state = State::Offline;
        Ok(match order {
            Order::Status => Reply::Snapshot(Box::new(s)),
            other => return crate::http::tests::obedient(other),
        })
    };
    let fake = crate::http::tests::serve(script, Default::default());
    let mut all = String::new();
    for line in ["status", "pool ls", "pool show vault"] {
        let screen = run_against(&fake, line).expect(line);
        for row in screen.lines() {
            assert!(row.chars().count() <= 80 && !row.ends_with(' '), "{line}: {row}");
        }
        all.push_str(&format!("$ millrace {line}\n{screen}\n"));
    }
    expect_file!["screens/offline.txt"].assert_eq(&all);
}

#[test]
fn an_empty_head_says_what_to_do_first() {
    use head::order::{Reply, Status};
    let empty = |order: &Order| {
        Ok(match order {
            Order::Status => Reply::Snapshot(Box::<Status>::default()),
            Order::DriveList { .. } => Reply::Drives(vec![]),
            Order::PoolImportable { .. } => Reply::Importable(vec![]),
            Order::Events { .. } => Reply::Events(vec![]),
            _ => Reply::Done,
        })
    };
    let fake = crate::http::tests::serve(empty, Default::default());
    let mut all = String::new();
    for line in
        ["status", "pool ls", "pool import --list", "drive ls", "volume ls", "host ls", "portal ls", "events"]
    {
        let screen = run_against(&fake, line).expect(line);
        assert!(screen.contains("Next:") || line == "events", "{line}: {screen}");
        all.push_str(&format!("$ millrace {line}\n{screen}\n"));
    }
    expect_file!["screens/empty.txt"].assert_eq(&all);
}

#[test]
fn every_list_and_show_speaks_json() {
    let fake = fake();
    for line in [
        "status",
        "pool ls",
        "pool show tank",
        "pool import --list",
        "drive ls",
        "drive show nvme0n1",
        "volume ls",
        "volume show tank/vm1",
        "host ls",
        "host show esx1",
        "portal ls",
        "events",
        "export tank/vm1 --host esx1",
        "pool create a ram:1G",
        "volume rm tank/vm1",
    ] {
        for line in [format!("--json {line}"), format!("{line} --json")] {
            let text = run_against(&fake, &line).expect(&line);
            serde_json::from_str::<serde_json::Value>(&text)
                .unwrap_or_else(|e| panic!("{line}: {e}: {text}"));
        }
    }
}

#[test]
fn the_commands_of_the_manual_become_their_orders() {
    let fake = fake();
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "a secret of 16 b\n").expect("written");
    let secret = secret.path().display().to_string();
    for line in [
        "pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d --chunk 64K --weights 1,2 --force",
        "volume create tank/vm1 --size 400G --block 512",
        "host add esx1 --nqn nqn.2014-08.org.nvmexpress:uuid:1 --iqn iqn.1998-01.com.vmware:esx1",
        &format!("host set esx1 --chap-secret-file {secret} --mutual-secret-file {secret}"),
        "portal add iscsi 10.0.0.1:3260",
        "export tank/vm1 --host esx1 --lun 3",
        "unexport tank/vm1 --host esx1",
        "pool release tank",
        "pool import tank",
        "drive fail /dev/a",
        "drive return /dev/a",
        "drive restore-label /dev/a --yes",
        "drive replace /dev/a /dev/e",
        "drive rm /dev/a --force",
        "volume resize tank/vm1 --size 1T",
        "volume rename tank/vm1 tank/web1",
        "pool add tank mirror /dev/g /dev/h",
        "pool add tank leg /dev/i --to mirror-0",
        "pool rm tank mirror-2 mirror-3",
        "pool destroy tank --force",
        "host rm esx1",
        "portal rm iscsi 10.0.0.1:3260",
        "volume rm tank/vm1",
    ] {
        let screen = run_against(&fake, line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(screen.ends_with(".\n") || screen.contains("Next:"), "{line}: {screen}");
    }
    let orders = fake.orders.lock().expect("no panic");
    let text: String = orders.iter().map(|o| format!("{o:?}\n")).collect();
    expect_test::expect_file!["screens/orders.txt"].assert_eq(&text);
}

#[test]
fn a_plan_of_what_a_pool_would_get_changes_nothing_and_says_what_speaks_against_it() {
    let fake = fake();
    for (line, parts) in [
        (
            "pool add tank ram:1G --plan",
            &[
                "the new arrays: 1 single drive",
                "pool tank has",
                "a zone of their own",
                "this keeps 1: pool add refuses it",
            ][..],
        ),
        ("pool add tank mirror ram:64M ram:128M --plan", &["64M of the 128M of ram:128M would stay unused"]),
        (
            "pool create two mirror ram:64M ram:128M --plan",
            &["64M of the 128M of ram:128M would stay unused"],
        ),
    ] {
        let screen = run_against(&fake, line).expect(line);
        let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(screen.contains(part), "{line}: {part} in {screen}");
        }
    }
    let refused = run_against(&fake, "pool add tank spare ram:1G --plan").expect_err("a spare");
    assert!(refused.exit == Exit::Usage, "{refused}");
    let refused =
        run_against(&fake, "pool add tank leg ram:1G --to mirror-9 --plan").expect_err("no such mirror");
    assert!(refused.message.contains("name one with --to"), "{refused}");
    let orders = fake.orders.lock().expect("no panic");
    assert!(orders.iter().all(|o| *o == Order::Status), "{orders:?}");
}

#[test]
fn what_sends_connected_hosts_away_is_asked_first() {
    let script = |order: &Order| match order {
        Order::Unexport { disconnect: false, .. } | Order::HostSet { disconnect: false, .. } => {
            let hosts = vec![finding::ConnectedHost { host: "esx1".into(), connections: 3 }];
            let (volume, host) = ("tank/vm1".into(), "esx1".into());
            Err(finding::VolumeRefusal::UnexportInUse { volume, host, hosts }.into())
        }
        other => crate::http::tests::obedient(other),
    };
    let asked = |ask: Option<crate::context::Ask>, line: &str| {
        let fake = crate::http::tests::serve(script, Default::default());
        let cli = Cli::try_parse_from(line.split(' ')).expect(line);
        let answer = answer(cli.command, &Context { ask, ..context(&fake, false, 80) });
        let orders = fake.orders.lock().expect("no panic").len();
        (answer, orders)
    };
    let line = "millrace unexport tank/vm1 --host esx1";
    // Nobody is there to be asked.
    let (refused, _) = asked(None, line);
    let refused = refused.expect_err("refused");
    assert!(refused.exit == Exit::Refused && refused.next.as_deref().expect("a command").ends_with("--yes"));
    // Somebody is, and says no, or yes.
    let (refused, orders) = asked(Some(|_| Ok(false)), line);
    assert_eq!((refused.expect_err("no").message.as_str(), orders), ("nothing was done", 1));
    let yes: crate::context::Ask = |question| {
        assert_eq!(question, "Host esx1 is connected (3 connections) and would lose volume tank/vm1.\n");
        Ok(true)
    };
    let (done, orders) = asked(Some(yes), line);
    assert_eq!(
        (done.expect("done").as_str(), orders),
        ("Volume tank/vm1 is no longer exported to host esx1.\n", 2)
    );
    let (done, orders) = asked(Some(|_| panic!("it was said already")), &format!("{line} --yes"));
    assert!(done.is_ok() && orders == 1);
    let (done, _) = asked(Some(|_| Ok(true)), "millrace host set esx1 --no-chap -y");
    done.expect("done");
}

#[test]
fn a_portal_is_removed_by_its_address_alone() {
    let fake = fake();
    let said = run_against(&fake, "portal rm 10.0.0.1:8009").expect("done");
    assert_eq!(said, "No longer listening for discovery at 10.0.0.1:8009.\n");
    run_against(&fake, "portal rm iscsi 10.0.0.1:3260").expect("done");
    let none = run_against(&fake, "portal rm 10.0.0.1:1").expect_err("there is none");
    assert!(none.message.contains("there is no portal at 10.0.0.1:1"), "{none}");
    for line in ["portal rm", "portal rm nvme", "portal rm smb 10.0.0.1:1"] {
        usage_error(line);
    }
}

#[test]
fn portals_of_two_heads_are_told_with_their_heads() {
    use head::order::{HeadServes, Reply};
    let script = |order: &Order| {
        let mut s = crate::http::tests::snapshot();
        let heads = ["a", "b", "a", "b"];
        s.portals.iter_mut().zip(heads).for_each(|(p, head)| p.head = Some(head.into()));
        s.portals[3].served_by = Some("a".into());
        s.serves = Some([5, 11].map(|lanes| HeadServes {
            portals: vec![],
            hosts: 1,
            commands: 7,
            lanes,
            lanes_all: 16,
        }));
        Ok(match order {
            Order::Status => Reply::Snapshot(Box::new(s)),
            Order::System => Reply::System(Box::new(crate::http::tests::system_view())),
            other => return crate::http::tests::obedient(other),
        })
    };
    let folder = tempfile::tempdir().expect("a folder");
    let system = crate::daemon::System::of_two(folder.path());
    let process = crate::http::Process { system: Some(system), ..Default::default() };
    let fake = crate::http::tests::serve(script, process);
    let screen = run_against(&fake, "portal ls").expect("a screen");
    let rows: Vec<Vec<&str>> = screen.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["PORTAL", "ADDRESS", "HEAD"], "{screen}");
    assert_eq!(rows[2][..4], ["nvme", "10.0.1.1:4420", "b", "listening"], "{screen}");
    assert!(rows[4][5..] == ["at", "head", "a", "for", "now"], "{screen}");
    let screen = run_against(&fake, "status").expect("a screen");
    assert!(screen.contains("10.0.0.1:4420 (head a), 10.0.1.1:4420 (head b)"), "{screen}");
    let screen = run_against(&fake, "head ls").expect("a screen");
    for words in [
        "Head a listens at nvme 10.0.0.1:4420, discovery 10.0.0.1:8009, iscsi 10.0.0.1:3260.",
        "Head b listens at nvme 10.0.1.1:4420.",
        "1  5 of 16",
        "1  11 of 16",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    let said = run_against(&fake, "portal add nvme 10.0.1.2:4420 --head right").expect("done");
    assert!(said.starts_with("Listening for nvme at 10.0.1.2:4420 on head right."), "{said}");
    let refused = run_against(&fake, "portal add nvme 10.0.1.2:4420 --head c").expect_err("no such head");
    assert!(
        refused.to_string().ends_with("head a (left) and head b (right)\nNext: millrace head ls"),
        "{refused}"
    );
}

#[test]
fn a_shape_keeps_what_is_not_named() {
    let fake = fake();
    run_against(&fake, "drive shape nvme1n1 --iops-max 100").expect("done");
    run_against(&fake, "drive shape nvme1n1 --clear").expect("done");
    // A drive may have a shape that is not shown, so taking it away is asked for all the same.
    let said = run_against(&fake, "drive shape nvme0n1 --clear").expect("done");
    assert!(said.contains("no artificial behaviour"), "{said}");
    let orders = fake.orders.lock().expect("no panic");
    let shapes: Vec<_> = orders.iter().filter(|o| matches!(o, Order::DriveShape { .. })).collect();
    let shape = |latency_us, iops_max| base::machine::Shape { latency_us, iops_max, ..Default::default() };
    let drive = || "/dev/nvme1n1".to_string();
    assert_eq!(
        shapes,
        [
            &Order::DriveShape { drive: drive(), shape: shape(5000, 100) },
            &Order::DriveShape { drive: drive(), shape: shape(0, 0) },
            &Order::DriveShape { drive: "/dev/nvme0n1".to_string(), shape: shape(0, 0) },
        ]
    );
}

#[test]
fn a_wrong_command_line_names_what_is_wrong() {
    for (line, words) in [
        ("volume create vm1 --size 1G", "POOL/VOLUME"),
        ("volume create tank/vm1", "--size"),
        ("volume create tank/vm1 --size 0", "at least one byte"),
        ("volume create tank/vm1 --size 18446744073709551616", "too large"),
        ("volume create tank/vm1 --size ten", "is not a size"),
        ("volume create tank/vm1 --size -1", "\"-1\" is not a size"),
        ("volume resize tank/vm1 --size -10G", "\"-10G\" is not a size"),
        ("export tank/vm1 --host a --lun -1", "\"-1\" is not a number from 0 to 16383"),
        ("volume create tank/vm1 --size 1G --block 1024", "512 or 4096"),
        ("portal add smb 10.0.0.1:445", "nvme, discovery or iscsi"),
        ("portal add nvme 10.0.0.1", "address with a port"),
        ("portal add nvme host:4420", "address with a port"),
        ("export tank/vm1", "--host"),
        ("export tank/vm1 --host a --lun 99999", "16383"),
        ("pool create tank", "LAYOUT"),
        ("pool create tank /dev/a --weights 0", "1 to 64"),
        ("pool create tank /dev/a --weights 1 --measure", "cannot be used with"),
        ("pool create tank /dev/a --chunk 8G", "too large here"),
        ("drive shape d --clear --hang", "cannot be used with"),
        ("drive shape d --read-errors-ppm 1000001", "1000000"),
        ("frobnicate", "frobnicate"),
        ("completions tcsh", "bash"),
        ("host set esx1 --chap-secret geheim", "--chap-secret"),
    ] {
        let error = usage_error(line);
        assert!(error.contains(words), "{line}: {error}");
    }
}

#[test]
fn a_wrong_layout_is_a_sentence() {
    let fake = fake();
    for (line, words) in [
        ("pool create tank mirror", "name drives after the word mirror"),
        ("pool create tank mirror mirror /dev/a /dev/b", "name drives after the word mirror"),
        ("pool create tank mirror /dev/a", "2 to 4 drives, not 1"),
        ("pool create tank mirror /dev/a /dev/b /dev/c /dev/d /dev/e", "not 5"),
        ("pool create tank /dev/a /dev/b --weights 1", "1 number for 2 arrays"),
        ("host add esx1", "--nqn"),
        ("host add esx1 --nqn n --chap-secret-file /nonexistent/f", "/nonexistent/f"),
        ("host add esx1 --nqn n --chap-secret-file /dev/null", "empty"),
        ("host set esx1", "name what to change: --nqn"),
        ("host set esx1 --chap-secret-file - --mutual-secret-file -", "only one secret"),
    ] {
        let failure = run_against(&fake, line).expect_err(line);
        assert!(failure.exit == Exit::Usage && failure.to_string().contains(words), "{line}: {failure}");
        assert!(failure.next.is_some(), "{line} has no next command");
    }
    for (line, next) in [
        ("pool create tank raid1 a b --chunk 64K --force", "pool create tank --chunk 64K --force mirror a b"),
        ("pool add tank raid10 a b c d", "pool add tank mirror a b mirror c d"),
    ] {
        let failure = run_against(&fake, line).expect_err(line);
        assert_eq!(failure.next, Some(format!("millrace {next}")), "{line}");
    }
    let failure = run_against(&fake, "drive fail nosuch").expect_err("unknown");
    assert!(
        failure.exit == Exit::Refused && failure.message.contains("there is no drive nosuch"),
        "{failure}"
    );
    let asked = fake.orders.lock().expect("no panic");
    assert!(asked.iter().all(|o| matches!(o, Order::DriveList { .. })), "{asked:?}");
}

#[test]
fn layouts_mean_what_they_say() {
    let parse = |text: &str| {
        let words: Vec<String> = text.split(' ').map(String::from).collect();
        let arrays = crate::machine::parse_layout(&words, &[], str::to_string).expect(text);
        arrays
            .iter()
            .map(|a| format!("{}:{}", a.layout.word(), a.drives.join("+")))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(parse("/a /b"), "single:/a single:/b");
    assert_eq!(parse("mirror /a /b mirror /c /d"), "mirror:/a+/b mirror:/c+/d");
    assert_eq!(parse("mirror /a /b single /c ram:1G"), "mirror:/a+/b single:/c single:ram:1G");
    assert_eq!(parse("/a mirror /b null:1T"), "single:/a mirror:/b+null:1T");
}

#[test]
fn drives_are_named_as_people_do() {
    assert_eq!(drive_path("/dev/sdb"), "/dev/sdb");
    assert_eq!(drive_path("ram:1G"), "ram:1G");
    assert_eq!(drive_path("null"), "/dev/null");
    assert_eq!(drive_path("shape:mbps-max=1@null"), "shape:mbps-max=1@/dev/null");
    assert_eq!(drive_path("shape:mbps-max=1@ram:1G"), "shape:mbps-max=1@ram:1G");
    assert!(drive_path("shape:mbps-max=1@disk.img").starts_with("shape:mbps-max=1@/"));
    assert!(drive_path("disk.img").ends_with("/disk.img") && drive_path("disk.img").starts_with('/'));
}

#[test]
fn completions_exist_for_each_shell() {
    for (shell, words) in
        [("bash", "complete -o"), ("zsh", "#compdef millrace"), ("fish", "complete --keep-order")]
    {
        let text = complete::script(shell);
        assert!(text.contains(words) && text.contains("MILLRACE_COMPLETE"), "{shell}: {text}");
    }
}
