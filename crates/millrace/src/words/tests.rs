//! Every finding has words, and they are good ones.

use finding::{Cause, Event, Notice, Why};
use std::collections::BTreeMap;

/// A sentence stands behind a colon: no full stop, no name that is missing, nothing printed for programmers.
fn check(sentences: Vec<(String, String)>) {
    let mut seen = BTreeMap::new();
    for (code, sentence) in sentences {
        assert!(!sentence.is_empty() && !sentence.ends_with('.'), "{code}: {sentence}");
        for bad in ["  ", " ,", "()", "Some(", "None", "{", "}", "\""] {
            assert!(!sentence.contains(bad), "{code}: {bad:?} in {sentence}");
        }
        if let Some(other) = seen.insert(sentence.clone(), code.clone()) {
            panic!("{code} and {other} say the same: {sentence}");
        }
    }
}

#[test]
fn each_finding_has_a_sentence_of_its_own() {
    let said = |code: String| code != "said";
    check(
        Why::samples()
            .iter()
            .map(|f| (f.code(), super::why(f).message))
            .filter(|(c, _)| said(c.clone()))
            .collect(),
    );
    check(
        Cause::samples()
            .iter()
            .map(|f| (f.code(), super::cause(f).message))
            .filter(|(c, _)| said(c.clone()))
            .collect(),
    );
    check(
        Event::samples()
            .iter()
            .map(|f| (f.code(), super::event(f)))
            .filter(|(c, _)| said(c.clone()))
            .collect(),
    );
    check(
        Notice::samples()
            .iter()
            .map(|f| (f.code(), super::notice(f)))
            .filter(|(c, _)| said(c.clone()))
            .collect(),
    );
}
