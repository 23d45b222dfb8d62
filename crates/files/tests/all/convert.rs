//! The conversion of a directory that a former version wrote, cut off behind each step.

use crate::is_read;
use files::content::{Hosts, Mark, Portals, Tokens};
use files::{MARK, Row, converted, open, plan};
use finding::FileFault;
use std::collections::BTreeMap;

type Directory = BTreeMap<String, Vec<u8>>;

const UUID: &str = "36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2";

/// A directory as the version before the format wrote it.
fn old() -> Directory {
    let sum = base::crc::crc32c_append(base::crc::crc32c(&[1]), &[2]);
    let pem = |what: &str| format!("-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n");
    let files: Vec<(String, Vec<u8>)> = vec![
        ("identity".into(), b"# Who\nuuid = u\nnqn = n\niqn = i\nserial = S\n".to_vec()),
        ("hosts".into(), b"# Who may come.\n\n[host p]\nnqn = nqn.a\niqn = iqn.a\niqn = iqn.b\nchap_secret = twelve = bytes\n\n[host q]\niqn = iqn.c\n".to_vec()),
        ("portals".into(), b"portal = iscsi 10.0.0.1:3260 3 head=b /24 eth1\nportal = nvme [::1]:4420\nlast = 9\n".to_vec()),
        ("pools".into(), format!("# Pools\n\n[pool {UUID}]\nname = tank\ndrive = /dev/a b\ndrive = /dev/c\n").into_bytes()),
        ("released".into(), b"# Pools\n".to_vec()),
        ("creating".into(), b"# Pools\n".to_vec()),
        (format!("witness-{UUID}"), b"# Do not\nrecord = 00ff\n".to_vec()),
        (format!("config-{UUID}"), b"deallocate = yes\nconfig = 00ff\n".to_vec()),
        ("system-record".into(), vec![0, 255]),
        ("system-slot-0".into(), vec![1; 4096]),
        ("link-identity".into(), format!("# The key\nkey = 01\ncertificate = 02\nchecksum = {sum:08x}\n").into_bytes()),
        ("link".into(), b"{\n  \"head\": \"a\",\n  \"own\": []\n}\n".to_vec()),
        ("tokens".into(), format!("# Tokens\nansible full 1 - 3 {}\n", "00".repeat(32)).into_bytes()),
        ("api-certificate".into(), (pem("CERTIFICATE") + &pem("PRIVATE KEY")).into_bytes()),
        ("alarms".into(), b"{\"version\":1,\"receivers\":{}}\n".to_vec()),
        ("events".into(), b"1\t2\tnote\ta\tb\n".to_vec()),
        ("notes".into(), b"of somebody".to_vec()),
    ];
    files.into_iter().collect()
}

/// Carries out so many steps of the plan.
fn goes_on(files: &mut Directory, steps: usize) -> usize {
    let plan = plan(files).expect("a good mark");
    let done = plan.len().min(steps);
    plan.into_iter().take(steps).for_each(|step| drop(files.insert(step.name, step.contents)));
    done
}

fn whole(files: &Directory) -> bool {
    let sealed = |name: &str| files::kind(name).is_some_and(|k| k.shape.is_sealed());
    files.iter().filter(|(name, _)| sealed(name)).all(|(name, bytes)| is_read(name, bytes).is_ok())
}

#[test]
fn a_directory_is_converted_as_a_whole_wherever_each_start_is_cut_off() {
    let mut all = old();
    let steps = goes_on(&mut all, usize::MAX);
    assert_eq!(steps, 15 + 2);
    assert!(whole(&all) && plan(&all) == Ok(vec![]));
    for name in ["events", "notes"] {
        assert_eq!(all[name], old()[name]);
    }
    for first in 0..=steps {
        for second in 0..=steps {
            let mut files = old();
            goes_on(&mut files, first);
            goes_on(&mut files, second);
            goes_on(&mut files, usize::MAX);
            assert!(files == all, "cut off after {first} and {second} steps");
        }
    }
}

#[test]
fn the_mark_comes_before_any_file_and_says_so_last() {
    let mut files = old();
    assert_eq!(plan(&files).expect("none")[0].name, MARK);
    goes_on(&mut files, 1);
    let mark: Mark = open(MARK, &files[MARK]).expect("whole");
    assert_eq!(mark.old.len(), 15);
    let mut empty = Directory::new();
    assert_eq!(goes_on(&mut empty, usize::MAX), 1);
    assert_eq!((open(MARK, &empty[MARK]), plan(&empty)), (Ok(Mark::default()), Ok(vec![])));
}

#[test]
fn what_the_old_files_said_the_new_ones_say() {
    let mut files = old();
    goes_on(&mut files, usize::MAX);
    let hosts: Hosts = open("hosts", &files["hosts"]).expect("whole");
    let [Row::Known(p), Row::Known(q)] = &hosts.host[..] else { panic!("{hosts:?}") };
    assert_eq!(
        (p.iqn.len(), p.chap_secret.as_deref(), q.chap_secret.as_deref()),
        (2, Some("twelve = bytes"), None)
    );
    let portals: Portals = open("portals", &files["portals"]).expect("whole");
    let [Row::Known(iscsi), Row::Known(nvme)] = &portals.portal[..] else { panic!("{portals:?}") };
    assert_eq!(
        (iscsi.number, iscsi.head.as_deref(), iscsi.prefix, iscsi.interface.as_deref()),
        (3, Some("b"), Some(24), Some("eth1"))
    );
    assert_eq!((nvme.number, nvme.head.as_deref(), portals.last), (4, None, 9));
    let tokens: Tokens = open("tokens", &files["tokens"]).expect("whole");
    let [Row::Known(token)] = &tokens.token[..] else { panic!("{tokens:?}") };
    assert_eq!((token.created, token.expires, token.used), (Some(1), None, Some(3)));
}

#[test]
fn an_old_file_counts_only_as_it_was_when_the_conversion_began() {
    let mut files = old();
    goes_on(&mut files, 1);
    // Cut off, it would be a good file of the old format, with fewer hosts and without a secret.
    for cut in 0..old()["hosts"].len() {
        let mut files = files.clone();
        let left = old()["hosts"][..cut].to_vec();
        files.insert("hosts".into(), left.clone());
        goes_on(&mut files, usize::MAX);
        assert!(files["hosts"] == left && is_read("hosts", &left).is_err(), "{cut} bytes");
        assert_eq!(plan(&files), Ok(vec![]));
    }
}

#[test]
fn once_converted_no_file_of_the_old_format_counts() {
    let mut files = old();
    goes_on(&mut files, usize::MAX);
    for (name, bytes) in old() {
        let mut files = files.clone();
        files.insert(name.clone(), bytes.clone());
        assert_eq!(plan(&files), Ok(vec![]));
        // Without the mark, too: the other files show that there was one.
        files.remove(MARK);
        goes_on(&mut files, usize::MAX);
        assert!(files[&name] == bytes && files.contains_key(MARK), "{name}");
        // A mark that is damaged names nothing.
        files.insert(MARK.into(), b"# This".to_vec());
        assert_eq!(plan(&files), Err(FileFault::NoEnd));
    }
    files.retain(|name, _| name == "hosts");
    files.insert("hosts".into(), files["hosts"][..140].to_vec());
    assert_eq!(goes_on(&mut files, usize::MAX), 1, "what begins as a new file was one");
}

#[test]
fn an_old_file_that_cannot_be_read_stays_and_the_others_are_converted() {
    let bad = [
        ("hosts", "[host p]\niqm = typo\n"),
        ("hosts", "[host p\n"),
        ("hosts", "[host p]\nchap_secret = a\nchap_secret = b\n"),
        ("hosts", "nonsense"),
        ("portals", "portal = iscsi\n"),
        ("portals", "portal = iscsi 1.2.3.4:5 x\n"),
        ("portals", "portal = iscsi 1.2.3.4:5 1 24\n"),
        ("pools", "[pool x]\ndrive = /a\n"),
        ("tokens", "a full - -\n"),
        ("identity", "uuid = u\n"),
        ("link", "{"),
        ("alarms", "{\"version\":2,\"receivers\":{}}"),
        ("link-identity", "key = 01\ncertificate = 02\nchecksum = 00000000\n"),
        ("api-certificate", "-----BEGIN CERTIFICATE-----\n"),
        ("system-record", ""),
    ];
    for (name, text) in bad {
        assert!(converted(name, text.as_bytes()).is_err(), "{name}: {text}");
        let mut files = old();
        files.insert(name.into(), text.into());
        goes_on(&mut files, usize::MAX);
        assert_eq!(files[name], text.as_bytes(), "{name}");
        assert!(is_read(name, text.as_bytes()).is_err());
        files.remove(name);
        assert!(whole(&files));
    }
    let at = converted("hosts", b"[host a]\n# b\niqm = x\n");
    assert_eq!(at, Err(FileFault::OldLine { line: 3 }));
}

#[test]
fn lists_that_former_versions_did_not_write_are_made_once() {
    let mut files = old();
    files.remove("portals");
    goes_on(&mut files, usize::MAX);
    assert_eq!(open::<Portals>("portals", &files["portals"]), Ok(Portals::default()));
    files.remove("portals");
    assert_eq!(plan(&files), Ok(vec![]), "from now on it is lost");
}
