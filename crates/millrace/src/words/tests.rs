//! Every finding has words, and they are good ones.

use finding::{Cause, Event, ImportFault, Notice, PoolCause, PoolDoubt, PoolRefusal, Why};
use std::collections::BTreeMap;

/// A sentence stands behind a colon: no full stop, no name that is missing, nothing printed for programmers.
fn check(sentences: Vec<(String, String)>) {
    let mut seen = BTreeMap::new();
    let mut twice = vec![];
    for (code, sentence) in sentences {
        assert!(!sentence.is_empty() && !sentence.ends_with('.'), "{code}: {sentence}");
        for bad in ["  ", " ,", "()", "Some(", "None", "{", "}", "\""] {
            assert!(!sentence.contains(bad), "{code}: {bad:?} in {sentence}");
        }
        if let Some(other) = seen.insert(sentence.clone(), code.clone()) {
            twice.push(format!("{code} and {other} say the same: {sentence}"));
        }
    }
    assert!(twice.is_empty(), "{}", twice.join("\n"));
}

/// Force never overwrites a drive of a pool of this head: the command says how it is put back, or let go of.
#[test]
fn a_drive_that_is_listed_is_put_back_or_let_go_of() {
    let listed = |place: Option<&str>, removable| {
        let (drive, pool, place) = ("/f/z".into(), "one".into(), place.map(String::from));
        super::why(&PoolRefusal::DriveListed { drive, pool, place, removable }.into())
    };
    let next = |place, removable| listed(place, removable).next.expect("a command");
    assert_eq!(
        listed(None, false).message,
        "/f/z is a drive of pool one of this head: --force does not overwrite such a drive"
    );
    assert_eq!(
        next(None, false),
        "millrace pool import one --drive /f/z; or, if nothing of pool one is wanted any more, millrace pool release one, then the same command with --force"
    );
    assert_eq!(
        next(Some("/f/b"), true),
        "put it back to /f/b, then millrace drive return /f/b; or millrace drive rm /f/b, then the same command with --force"
    );
    assert_eq!(next(Some("/f/z"), false), "millrace drive return /f/z");
}

/// It was to be attached, or named, and both was done.
#[test]
fn a_pool_whose_drive_has_lost_its_label_is_told_what_can_be_done() {
    let (pool, drive) = (|| "solo".to_string(), || "/f/a".to_string());
    let also = || vec![ImportFault::LabelAbsent { drive: drive() }];
    let not_imported = |why: PoolRefusal| {
        let (why, also) = (Box::new(why.into()), also());
        let cause = PoolCause::PoolNotImported { pool: pool(), why, also, away: vec![], shaped: vec![] };
        super::cause(&cause.into())
    };
    let help = "write back a copy of /f/a, if there is one, then millrace pool import solo, or millrace pool release solo, which forgets the pool: nothing else tells where its data lies";
    let said = not_imported(PoolRefusal::PoolWithoutDrives);
    assert_eq!(said.message, "none of its drives was found (the label of /f/a is absent)");
    assert_eq!(said.next.as_deref(), Some(help));
    let next_without = |missing: &[&str]| {
        let missing = missing.iter().map(ToString::to_string).collect();
        let doubt = PoolDoubt::Missing { pool: pool(), array: "single-0".into(), missing };
        not_imported(PoolRefusal::PoolDoubtful { pool: pool(), doubts: vec![doubt] }).next.expect("a command")
    };
    assert_eq!(next_without(&["/f/a"]), help);
    assert!(next_without(&["/f/a", "/f/b"]).starts_with("attach /f/a and /f/b"));
    let none = PoolRefusal::PoolNotFound { pool: Some(pool()), also: also(), away: vec![], in_use: false };
    let said = super::why(&none.into());
    assert_eq!(said.message, "no drive of pool solo was found: the label of /f/a is absent");
    let elsewhere = "millrace pool import solo --drive FILE --drive FILE, if it lies elsewhere";
    assert_eq!(said.next, Some(format!("{elsewhere}, or {help}")));
}

#[test]
fn each_finding_has_a_sentence_of_its_own() {
    check(Why::samples().iter().map(|f| (f.code(), super::why(f).message)).collect());
    check(Cause::samples().iter().map(|f| (f.code(), super::cause(f).message)).collect());
    check(Event::samples().iter().map(|f| (f.code(), super::event(f))).collect());
    check(Notice::samples().iter().map(|f| (f.code(), super::notice(f))).collect());
}
