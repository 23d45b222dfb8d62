//! A file that is not as it was written is not read.

use crate::{is_read, samples};
use files::content::{Host, Hosts};
use files::{FILES, Row, kind, open, seal, sign};
use finding::FileFault;

#[test]
fn every_sealed_file_has_a_sample_and_is_read_as_it_was_written() {
    for kind in FILES.iter().filter(|k| k.shape.is_sealed()) {
        let has = |name: &str| files::kind(name).is_some_and(|k| k.name == kind.name);
        assert!(samples().iter().any(|(name, _)| has(name)), "{}", kind.name);
    }
    for (name, bytes) in samples() {
        let text = String::from_utf8(bytes.clone()).expect("text");
        assert_eq!(is_read(name, &bytes), Ok(()), "{text}");
        assert!(text.ends_with('\n') && text.contains(&format!("\"{name}\"")), "{text}");
        let signed = sign(name, &bytes).expect("good");
        assert_eq!(is_read(name, &signed), Ok(()), "an operator may accept it");
    }
}

#[test]
fn a_file_that_was_cut_or_emptied_is_not_read() {
    for (name, bytes) in samples() {
        assert_eq!(is_read(name, &[]), Err(FileFault::Empty), "{name}");
        for at in 1..bytes.len() {
            assert_eq!(is_read(name, &bytes[..at]), Err(FileFault::NoEnd), "{name}, {at} bytes");
        }
        // Its beginning is gone, or its middle.
        for (at, _) in bytes.iter().enumerate().filter(|(_, b)| **b == b'\n') {
            let rest = &bytes[at + 1..];
            assert!(is_read(name, rest).is_err(), "{name}, from byte {at} on");
            let next = rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |n| n + 1);
            let without = [&bytes[..at + 1], &rest[next..]].concat();
            assert!(
                without == bytes || is_read(name, &without).is_err(),
                "{name}, without the line behind byte {at}"
            );
        }
    }
}

#[test]
fn a_file_with_a_changed_bit_or_something_behind_it_is_not_read() {
    for (name, bytes) in samples() {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(is_read(name, &changed).is_err(), "{name}, bit {bit} of byte {at}");
            }
        }
        for behind in [&b"\n"[..], b"x", b"# comment\n", &bytes] {
            assert!(is_read(name, &[&bytes[..], behind].concat()).is_err(), "{name}");
        }
    }
}

#[test]
fn a_file_in_the_place_of_another_one_is_not_read() {
    for (name, bytes) in samples() {
        for other in ["released", "hosts", "link", "witness-other"] {
            if other != name && kind(other).map(|k| k.shape) == kind(name).map(|k| k.shape) {
                assert_eq!(is_read(other, &bytes), Err(FileFault::OtherFile { name: name.into() }));
            }
        }
    }
}

/// A file as a newer program writes it, with a field more behind its name.
fn with_field(name: &str, bytes: &[u8]) -> Vec<u8> {
    let text = core::str::from_utf8(bytes).expect("text");
    let (toml, json) = (format!("file = \"{name}\"\n"), format!("\"file\": \"{name}\",\n"));
    let text = text.replacen(&toml, &format!("{toml}only_from = [\"10.0.0.0/8\"]\n"), 1);
    let text = text.replacen(&json, &format!("{json}  \"only_from\": 1,\n"), 1);
    sign(name, text.as_bytes()).expect("it is this file")
}

#[test]
fn a_field_that_this_program_does_not_know_is_never_passed_over() {
    for (name, bytes) in samples() {
        let newer = with_field(name, &bytes);
        assert_ne!(newer, bytes, "{name}");
        let fault = FileFault::FieldUnknown { field: "only_from".into() };
        assert_eq!(is_read(name, &newer), Err(fault), "{name}");
    }
}

#[test]
fn a_row_with_an_unknown_field_is_kept_as_it_is_and_is_no_known_one() {
    let text = "# A comment\nversion = 1\nfile = \"hosts\"\n\n[[host]]\nname = \"p\"\niqn = [\"iqn.a\"]\nonly_from = { network = \"10.0.0.0/8\", port = 7 }\n\n[[host]]\nname = \"q\"\n";
    let bytes = sign("hosts", text.as_bytes()).expect("TOML");
    let hosts: Hosts = open("hosts", &bytes).expect("whole");
    let [Row::Unknown(p), Row::Known(q)] = &hosts.host[..] else { panic!("{hosts:?}") };
    assert_eq!((p.field.as_str(), p.text("name"), p.texts("iqn")), ("only_from", Some("p"), vec!["iqn.a"]));
    assert_eq!(*q, Host { name: "q".into(), ..Host::default() });
    let again = seal("hosts", &hosts);
    assert_eq!(open::<Hosts>("hosts", &again), Ok(hosts.clone()));
    assert!(String::from_utf8(again).expect("text").contains("10.0.0.0/8"));
}

#[test]
fn another_version_is_another_version() {
    for (name, bytes) in samples() {
        let text = String::from_utf8(bytes).expect("text");
        let newer =
            text.replacen("version = 1", "version = 2", 1).replacen("\"version\": 1", "\"version\": 2", 1);
        assert_eq!(sign(name, newer.as_bytes()), Err(FileFault::Version { version: 2 }), "{name}");
        let lacks = text.replacen("version = 1\n", "", 1).replacen("  \"version\": 1,\n", "", 1);
        assert_eq!(sign(name, lacks.as_bytes()), Err(FileFault::FieldMissing { field: "version".into() }));
    }
}

#[test]
fn what_an_operator_edited_is_read_once_it_is_accepted() {
    let (_, bytes) = samples().into_iter().find(|(name, _)| *name == "hosts").expect("a sample");
    let text = String::from_utf8(bytes).expect("text");
    let edited = text.replace("name = \"q\"", "name = \"r\" # was q");
    assert_eq!(is_read("hosts", edited.as_bytes()), Err(FileFault::Checksum));
    let signed = String::from_utf8(sign("hosts", edited.as_bytes()).expect("good")).expect("text");
    assert_eq!(is_read("hosts", signed.as_bytes()), Ok(()));
    assert!(signed.contains("# was q"), "the operator's text stays");
    // What is appended behind the end counts as well.
    let more = "[[host]]\nname = \"appended\"\niqn = [\"iqn.1998-01.com.example:appended\"]\n";
    let signed = sign("hosts", format!("{text}\n{more}").as_bytes()).expect("good");
    assert_eq!(is_read("hosts", &signed), Ok(()));
    assert!(String::from_utf8_lossy(&signed).contains("name = \"appended\""));
    let (rows, before): (Hosts, Hosts) =
        (open("hosts", &signed).expect("whole"), open("hosts", text.as_bytes()).expect("whole"));
    assert_eq!(rows.host.len(), before.host.len() + 1);
    // Cut off, it is what the operator says it is.
    let cut = text.split("[[host]]").next().expect("its beginning");
    let signed = sign("hosts", cut.as_bytes()).expect("TOML");
    assert_eq!(open::<Hosts>("hosts", &signed), Ok(Hosts::default()));
    for (name, bad) in [
        ("hosts", "version = 1\nfile = \"hosts\"\n[[host"),
        ("link", "{"),
        ("hosts", "version = 1\nfile = \"pools\"\n"),
    ] {
        assert!(sign(name, bad.as_bytes()).is_err(), "{bad}");
    }
}
