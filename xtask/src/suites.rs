//! The test programs of the workspace: built by one call of cargo, so that nothing is compiled twice.

use crate::run::cargo;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// One test program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suite {
    /// Its crate.
    pub package: String,
    /// What cargo calls it: the crate's name for unit tests, that of the file or folder for others.
    pub name: String,
    program: PathBuf,
    /// The crate's folder: tests run there.
    folder: PathBuf,
}

impl Suite {
    /// What a log calls it.
    pub fn title(&self) -> String {
        if self.package == self.name {
            self.package.clone()
        } else {
            format!("{}/{}", self.package, self.name)
        }
    }
    /// Whether its tests wait for a real clock, kernel or network: they suffer when the machine is busy.
    pub fn is_real(&self) -> bool {
        self.is_judge() || ["uring", "millrace"].contains(&&self.package[..]) || self.name == "judges"
    }
    /// Whether it needs the finished binary, guests or networks.
    pub fn is_judge(&self) -> bool {
        ["lab", "judge"].contains(&&self.package[..])
    }
    /// Whether its tests start guests, which suffer most: they are emulated.
    pub fn has_guests(&self) -> bool {
        self.is_judge() && ["lab", "guests"].contains(&&self.name[..])
    }
    /// The program, to run all tests, so many side by side, or those named, one at a time.
    pub fn command(&self, only: &[String], threads: usize) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        match only {
            [] => command.arg(format!("--test-threads={threads}")),
            _ => command.args(["--test-threads=1", "--exact"]).args(only),
        };
        command
    }
}

/// Builds every test program of the workspace, and the simulator with the bugs that can be planted: they are
/// chosen at run time, and tests choose none.
///
/// # Errors
/// A sentence: something does not build.
pub fn build() -> Result<Vec<Suite>, String> {
    let mut build = cargo(&["test", "--locked", "--workspace", "--features", "sim/planted", "--no-run"]);
    build.args(["--tests", "--message-format=json-render-diagnostics"]);
    let output = build.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo cannot run: {e}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not build: cargo ended with {}", output.status));
    }
    let suites: Vec<Suite> = String::from_utf8_lossy(&output.stdout).lines().filter_map(suite).collect();
    if suites.is_empty() { Err("cargo built no test".into()) } else { Ok(suites) }
}

/// The test program that a line of cargo's names, if any.
fn suite(line: &str) -> Option<Suite> {
    let (_, profile) = line.split_once("\"profile\":{")?;
    if !profile.split('}').next()?.contains("\"test\":true") {
        return None;
    }
    let (_, target) = line.split_once("\"target\":{")?;
    let folder = PathBuf::from(text(line, "manifest_path")?).parent()?.to_owned();
    Some(Suite {
        package: folder.file_name()?.to_str()?.into(),
        name: text(target, "name")?.into(),
        program: text(line, "executable")?.into(),
        folder,
    })
}

/// A field that is a text without escapes, as paths of ours are.
fn text<'a>(json: &'a str, field: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{field}\":\""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::{Suite, suite};
    use std::path::PathBuf;

    const LINE: &str = r#"{"reason":"compiler-artifact","package_id":"path+file:///src/crates/array#0.1.0","manifest_path":"/src/crates/array/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"all","src_path":"/src/crates/array/tests/all/main.rs","edition":"2024","doc":false,"doctest":false,"test":true},"profile":{"opt_level":"1","debuginfo":1,"debug_assertions":true,"overflow_checks":true,"test":true},"features":[],"filenames":["/t/debug/deps/all-1"],"executable":"/t/debug/deps/all-1","fresh":true}"#;

    #[test]
    fn a_test_program_is_found_in_what_cargo_says() {
        let found = suite(LINE).expect("a suite");
        let (program, folder) = (PathBuf::from("/t/debug/deps/all-1"), PathBuf::from("/src/crates/array"));
        assert_eq!(found, Suite { package: "array".into(), name: "all".into(), program, folder });
        assert_eq!((found.title(), found.is_real()), ("array/all".into(), false));
    }

    #[test]
    fn programs_with_guests_are_known_by_their_names() {
        let of = |package: &str, name: &str| Suite {
            package: package.into(),
            name: name.into(),
            ..suite(LINE).expect("a suite")
        };
        assert!(of("judge", "guests").has_guests() && of("lab", "lab").has_guests());
        for (package, name) in [("judge", "all"), ("judge", "judge"), ("millrace", "all"), ("sim", "guests")]
        {
            assert!(!of(package, name).has_guests(), "{package}/{name}");
        }
    }

    #[test]
    fn what_is_no_test_program_is_none() {
        let plain =
            LINE.replace(r#""overflow_checks":true,"test":true"#, r#""overflow_checks":true,"test":false"#);
        let library = LINE.replace(r#""executable":"/t/debug/deps/all-1""#, r#""executable":null"#);
        let other = r#"{"reason":"build-finished","success":true}"#;
        for line in [plain.as_str(), &library, other, ""] {
            assert_eq!(suite(line), None, "{line}");
        }
    }

    #[test]
    fn named_tests_run_alone() {
        let suite = suite(LINE).expect("a suite");
        let words = |only: &[String]| {
            let command = suite.command(only, 2);
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words(&[]), ["--test-threads=2"]);
        assert_eq!(words(&["door::a".into()]), ["--test-threads=1", "--exact", "door::a"]);
    }
}
