//! Secrets, and how they are kept out of a text.
//!
//! Two ways at once: what this machine keeps secret is known by its value and removed wherever it stands; what looks like a
//! secret is removed although nobody here knows it.

use std::collections::BTreeSet;
use std::path::Path;

/// What stands in place of a secret.
pub const REMOVED: &str = "(removed)";
/// Shorter texts are no secrets (CHAP takes twelve bytes at least), and would be found everywhere.
const LEAST: usize = 6;
/// A word of a file of secrets that is as long as this is a secret by itself.
const LONG: usize = 16;
/// Parts of a name whose value is a secret.
const NAMES: [&str; 9] =
    ["secret", "secrets", "password", "passwd", "passphrase", "psk", "token", "key", "authorization"];
/// Files of the state directory with secrets: TOML, or JSON.
const FILES: [&str; 5] = ["hosts", "link", "link-identity", "tokens", "api-certificate"];

/// The secrets of this machine.
pub struct Secrets {
    known: Vec<String>,
    notices: Vec<String>,
}

impl Secrets {
    /// Reads what the daemon of this configuration keeps secret.
    pub fn of_this_machine(state_dir: &Path, config: &Path) -> Self {
        let mut known = BTreeSet::new();
        let mut refused = Vec::new();
        let mut read = |path: &Path| match std::fs::read(path) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) => {
                refused.push(path.display().to_string());
                None
            }
        };
        for name in FILES {
            let Some(text) = read(&state_dir.join(name)) else { continue };
            known.extend(kept(&text));
        }
        let config =
            read(config).and_then(|text| toml::from_str::<toml::Table>(&text).ok()).unwrap_or_default();
        let mut files = Vec::new();
        secret_files(&config, &mut files);
        for file in files {
            let Some(text) = read(Path::new(&file)) else { continue };
            known.insert(text.trim().to_string());
            known.extend(text.lines().map(|line| line.trim().to_string()));
            let words = text.split_whitespace().filter(|word| word.len() >= LONG);
            known.extend(words.map(String::from));
        }
        let notices = if refused.is_empty() {
            vec![]
        } else {
            vec![format!(
                "{} cannot be read, so secrets in other files were found by their looks alone; run it as root",
                refused.join(", ")
            )]
        };
        Self { known: forms(known), notices }
    }

    /// What is worth knowing of how secrets were removed.
    pub fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    /// The text without secrets.
    pub fn removed_from(&self, text: &str) -> String {
        let mut text = text.to_string();
        for secret in &self.known {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REMOVED);
            }
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for range in values(&text) {
            if range.start < at {
                continue;
            }
            out.push_str(&text[at..range.start]);
            out.push_str(REMOVED);
            at = range.end;
        }
        out + &text[at..]
    }
}

/// Files that a configuration names as holding secrets, in any of its tables.
fn secret_files(table: &toml::Table, files: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            toml::Value::String(path) if key.ends_with("_file") => files.push(path.clone()),
            toml::Value::Table(inner) => secret_files(inner, files),
            toml::Value::Array(all) => {
                all.iter().filter_map(|v| v.as_table()).for_each(|t| secret_files(t, files))
            }
            _ => {}
        }
    }
}

/// The secrets in every form in which a text may have them, long ones first: a secret may be a part of another one.
fn forms(known: BTreeSet<String>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for secret in known.into_iter().filter(|s| s.len() >= LEAST && !s.starts_with("-----")) {
        let json = serde_json::to_string(&secret).expect("a text");
        all.insert(json[1..json.len() - 1].to_string());
        // Odd bytes are kept as hex digits.
        if let Some(text) = secret.strip_prefix("0x").and_then(decoded).filter(|t| t.len() >= LEAST) {
            all.insert(text);
            all.insert(secret[2..].to_string());
        }
        all.insert(secret);
    }
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort_by_key(|s| core::cmp::Reverse(s.len()));
    all
}

/// What hex digits say, if that is text.
fn decoded(hex: &str) -> Option<String> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
    String::from_utf8(digits?.chunks(2).map(|pair| pair.iter().fold(0, |sum, d| sum << 4 | d)).collect()).ok()
}

type Range = core::ops::Range<usize>;

/// Where in a text something looks like a secret.
fn values(text: &str) -> Vec<Range> {
    let mut found = named(text);
    for (begin, end) in [("-----BEGIN ", "-----END ")] {
        for (at, _) in text.match_indices(begin) {
            let line = text[at..].lines().next().unwrap_or("");
            if line.contains("PRIVATE KEY") {
                let from = at + line.len();
                found.push(from..text[from..].find(end).map_or(text.len(), |n| from + n));
            }
        }
    }
    for (mark, keep) in [("DHHC-1:", 0), ("earer ", 6)] {
        found.extend(text.match_indices(mark).map(|(at, _)| {
            let rest = &text[at + mark.len()..];
            let end = rest.find(|c: char| c.is_whitespace() || "\"'\\,".contains(c)).unwrap_or(rest.len());
            at + keep..at + mark.len() + end
        }));
    }
    // The user's part of an address: https://USER:PASSWORD@HOST
    for (at, mark) in text.match_indices("://") {
        let from = at + mark.len();
        let rest = &text[from..];
        let end = rest.find(|c: char| c.is_whitespace() || "/\"'\\".contains(c)).unwrap_or(rest.len());
        if let Some(user) = rest[..end].rfind('@') {
            found.push(from..from + user);
        }
    }
    found.retain(|range| !range.is_empty());
    found.sort_by_key(|range| (range.start, core::cmp::Reverse(range.end)));
    found
}

/// The secrets in a file of the state directory.
fn kept(text: &str) -> Vec<String> {
    fn walk(value: &serde_json::Value, secret: bool, found: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) if secret => found.push(text.clone()),
            serde_json::Value::Array(all) => all.iter().for_each(|v| walk(v, secret, found)),
            serde_json::Value::Object(all) => {
                // The invitation to the link holds a token.
                all.iter().for_each(|(k, v)| walk(v, secret || is_secret(k) || k == "invitation", found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    let said = serde_json::from_str(text).ok().or_else(|| toml::from_str(text).ok());
    match said {
        Some(value) => walk(&value, false, &mut found),
        // It is damaged, or of a former version.
        None => {
            let lines = text.lines().filter_map(|line| line.split_once('='));
            found.extend(
                lines
                    .filter(|(key, _)| is_secret(key.trim()))
                    .map(|(_, value)| value.trim().trim_matches('"').to_string()),
            );
        }
    }
    found
}

/// Whether what has this name is a secret.
fn is_secret(name: &str) -> bool {
    // The kernel writes "Sense Key : Not Ready", which is none.
    let is_one = |part: &str| part != "Key" && NAMES.iter().any(|n| part.eq_ignore_ascii_case(n));
    name.split(['_', '-']).any(is_one) && !name.ends_with("file")
}

/// Values behind a name of a secret and `=` or `:`, in TOML, JSON, JSON within a text, or a log.
fn named(text: &str) -> Vec<Range> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(from) = text[at..].find(is_name).map(|n| at + n) {
        at = text[from..].find(|c| !is_name(c)).map_or(text.len(), |n| from + n);
        if !is_secret(&text[from..at]) {
            continue;
        }
        let rest = text[at..].trim_start_matches(['"', '\'', '\\']).trim_start_matches(' ');
        let Some(value) = rest.strip_prefix(['=', ':']) else { continue };
        let value = value.trim_start_matches(' ');
        let bare = value.trim_start_matches(['\\', '"', '\'']);
        let end = match &value[..value.len() - bare.len()] {
            // A number in JSON.
            "" if text[at..].starts_with(['"', '\\']) => continue,
            // A file of ours, or a log: the rest of the line, also where the line is a part of another one.
            "" => [bare.find('\n'), bare.find("\\n")].into_iter().flatten().min().unwrap_or(bare.len()),
            quote => quoted_end(bare, quote),
        };
        let plain = ["null", "true", "false"].contains(&bare[..end].trim());
        if !plain {
            let start = text.len() - bare.len();
            found.push(start..start + end);
            at = start + end;
        }
    }
    found
}

/// Where a text ends that began with this quote, which has an escape in front where the text is a part of another one.
fn quoted_end(text: &str, quote: &str) -> usize {
    let ends = |at: &usize| {
        if quote.starts_with('\\') {
            return !text[..*at].ends_with('\\');
        }
        // An even number of escapes are characters themselves.
        text[..*at].bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 0
    };
    let found = text.match_indices(quote).map(|(at, _)| at).find(ends);
    found.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAP: &str = "correct, horse \\ battery";
    const DHCHAP: &str = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";
    const TOKEN: &str = "c3dvcmRmaXNoc3dvcmRmaXNoc3dvcmRmaXNo";

    fn none() -> Secrets {
        Secrets { known: vec![], notices: vec![] }
    }

    #[test]
    fn what_looks_like_a_secret_is_removed() {
        for (text, wanted) in [
            ("chap_secret = swordfish, 1\nchap_user = me", "chap_secret = (removed)\nchap_user = me"),
            (r#"{"mutual_secret":"sword\"fish\\","iqn":"a"}"#, r#"{"mutual_secret":"(removed)","iqn":"a"}"#),
            (r#""{\"token\": \"swordfish\", \"a\": 1}""#, r#""{\"token\": \"(removed)\", \"a\": 1}""#),
            ("PASSWORD='swordfish' a", "PASSWORD='(removed)' a"),
            ("Authorization: Bearer swordfish", "Authorization: (removed)"),
            ("it sent Bearer swordfish twice", "it sent Bearer (removed) twice"),
            ("key DHHC-1:01:c3dv: of host a", "key (removed) of host a"),
            ("webhook https://me:swordfish@example.com/a", "webhook https://(removed)@example.com/a"),
            (
                "-----BEGIN PRIVATE KEY-----\nsword\nfish\n-----END PRIVATE KEY-----",
                "-----BEGIN PRIVATE KEY-----(removed)-----END PRIVATE KEY-----",
            ),
        ] {
            assert_eq!(none().removed_from(text), wanted);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            r#"{"token":null,"secret":true,"key":12345,"a":{"b":1}}"#,
            "sd 0:0:0:0: [sda] tag#0 Sense Key : Illegal Request [current]",
            "token_file = \"/etc/millrace/token\"",
            "http://10.0.0.1:8420/api/v1/status, a@b",
            "monkey = 1",
        ] {
            assert_eq!(none().removed_from(text), text);
        }
    }

    #[test]
    fn secrets_of_this_machine_are_removed_wherever_they_stand() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: String| std::fs::write(path(name), text).expect("written");
        write(
            "hosts",
            format!(
                "version = 1\n[[host]]\nchap_secret = {}\nmutual_secret = \"0x73776f726466697368\"\ndhchap_key = \"{DHCHAP}\"\n",
                toml::Value::from(CHAP)
            ),
        );
        write("link", r#"{"name":"left","invitation":{"text":"an invitation"},"own":"10.0.0.1"}"#.into());
        write("token", format!("{TOKEN}\n"));
        write("head.toml", format!("[api]\ntoken_file = \"{}\"\n", path("token").display()));
        let secrets = Secrets::of_this_machine(folder.path(), &path("head.toml"));
        assert!(secrets.notices().is_empty());
        let json = serde_json::to_string(CHAP).expect("JSON");
        for text in
            [CHAP, DHCHAP, TOKEN, "swordfish", "73776f726466697368", "an invitation", json.trim_matches('"')]
        {
            assert_eq!(
                secrets.removed_from(&format!("said {text} to left")),
                format!("said {REMOVED} to left")
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("hosts")).expect("a folder in its place");
        let secrets = Secrets::of_this_machine(folder.path(), Path::new("/nonexistent"));
        assert!(secrets.notices()[0].contains("/hosts cannot be read"), "{:?}", secrets.notices());
    }
}
