//! Writes docs/api-codes.md from the types, so that it lists every code with its fields and a sentence.

use finding::{Cause, ClientFault, Code, CommandFault, Event, Notice, Why, snake};
use serde::Serialize;

const HEAD: &str = "\
# Codes of the API

A program decides by `code`, never by the sentence. Codes are stable from the first release: none changes its meaning, and none is used again for something
else. Later releases add codes, so a program needs a default for those that it does not know; for errors this is `kind`, of which there are few.

`fields` says what a finding is about: names, paths, enums, and numbers in the unit that the field's name tells (`bytes`, `bytes_max`, `seconds`); some contain another
finding. Fields may be added to a code, and none goes away. Where there is nothing to say, `fields` is absent.

`message` and `next` are for people: one English sentence, and the command that helps. Both may change with each release. The sentences below are
examples, with made-up names and numbers. This document is generated from the source (`crates/finding`); the OpenAPI document lists the same codes.
";

/// A row: code, what else is known of it, fields, meaning, sentence.
struct Row {
    code: Code,
    beside: String,
    sentence: String,
}

/// The rows of a kind, in the order of its codes.
fn rows<T>(codes: &[Code], samples: Vec<T>, beside: fn(&T) -> String, words: fn(&T) -> String) -> Vec<Row> {
    assert_eq!(codes.len(), samples.len());
    let row =
        |(code, sample): (&Code, &T)| Row { code: *code, beside: beside(sample), sentence: words(sample) };
    codes.iter().zip(&samples).map(row).collect()
}

/// A word as it stands in JSON.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).expect("plain data").as_str().expect("a word").to_string()
}

/// A table; `beside` is the heading of its second column, and empty if there is none.
fn table(title: &str, about: &str, beside: &str, rows: &[Row]) -> String {
    let cell = |text: &str| text.trim().replace('|', "\\|").replace('<', "&lt;");
    let mut columns = vec!["code", beside, "fields", "meaning", "example"];
    columns.retain(|c| !c.is_empty());
    if rows.iter().all(|r| r.sentence.is_empty()) {
        columns.retain(|c| *c != "example");
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = format!("\n## {title}\n\n{about}\n\n");
    out += &line(columns.iter().map(ToString::to_string).collect());
    out += &line(columns.iter().map(|_| "---".to_string()).collect());
    for row in rows {
        let fields: Vec<String> = row.code.fields.iter().map(|f| format!("`{f}`")).collect();
        let of = |column: &&str| match *column {
            "code" => format!("`{}`", row.code.code()),
            "fields" => fields.join(", "),
            "meaning" => cell(row.code.about),
            "example" => cell(&row.sentence),
            _ => row.beside.clone(),
        };
        out += &line(columns.iter().map(of).collect());
    }
    out
}

#[test]
fn the_document_lists_every_code() {
    let none = |_: &Cause| String::new();
    let kind = |f: &Why| format!("`{}` ({})", word(f.kind()), f.kind().status());
    let errors = rows(&Why::codes(), Why::samples(), kind, |f| super::why(f).message);
    let causes = rows(&Cause::codes(), Cause::samples(), none, |f| super::cause(f).message);
    let events = rows(&Event::codes(), Event::samples(), |f| f.weight().word().into(), super::event);
    let notices = rows(&Notice::codes(), Notice::samples(), |_| String::new(), super::notice);
    let client =
        rows(ClientFault::CODES, ClientFault::samples(), |_| String::new(), |f| super::client(f).message);
    let command = rows(CommandFault::CODES, CommandFault::samples(), |_| String::new(), |_| String::new());
    let text = [
        HEAD.to_string(),
        table(
            "Errors",
            "Why a request was not carried out: `error` in every answer that is not a success, and in what a command prints with `--json`. \
             `kind` decides the HTTP status, in brackets.",
            "kind",
            &errors,
        ),
        table(
            "Causes",
            "Why something is not optimal, or a drive cannot be used: in `reasons` of the status, and as `cause` of pools, arrays, legs, spares, drives and portals.",
            "",
            &causes,
        ),
        table(
            "Events",
            "What happened: `GET /api/v1/events`, and `events` of the status. `what` says which pool, drive, volume, host or portal it is about.",
            "weight",
            &events,
        ),
        table(
            "Notices",
            "What is worth knowing beside: `notices` of the status, and of the answer to an order that was carried out.",
            "",
            &notices,
        ),
        table(
            "The command line: no answer",
            "Codes that `millrace --json` prints if it does not get an answer of the daemon.",
            "",
            &client,
        ),
        table(
            "The command line: wrong commands",
            "Codes that it prints before it sends a request. A failure that has none of these codes has its `kind` as its code: \
             `internal`, `usage`, `refused`, `unreachable` or `interrupted`.",
            "",
            &command,
        ),
    ]
    .concat();
    expect_test::expect_file!["../../../../docs/api-codes.md"].assert_eq(&text);
}

#[test]
fn codes_of_the_command_line_are_not_those_of_the_daemon() {
    let mut seen = std::collections::BTreeSet::new();
    let all = [Why::codes(), ClientFault::CODES.to_vec(), CommandFault::CODES.to_vec()].concat();
    for code in all {
        assert!(seen.insert(snake(code.name)), "twice: {}", code.name);
    }
}
