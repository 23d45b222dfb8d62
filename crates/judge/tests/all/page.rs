//! The page in a real browser, and its bundle built anew.

use judge::binary;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

fn web() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")).expect("the page's sources")
}

/// Whether the test must be left out because Node or the browser is not installed. In CI that is a failure.
fn is_without(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success()) {
        return false;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the page must be tested in CI: apt install nodejs npm chromium"
    );
    println!("SKIPPED the page: {program} is not installed");
    true
}

/// Runs a command in the page's folder, which must succeed.
fn run(words: &[&str]) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(web()).env("MILLRACE_BIN", binary());
    let done = command.output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{words:?}\n{out}\n{err}");
}

/// What the page is made with, as its lock file says.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| run(&["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]));
}

#[test]
fn the_bundle_is_what_its_sources_give() {
    if lab::skipped("the page's bundle") || is_without("npm") {
        return;
    }
    install();
    run(&["npm", "run", "check"]);
    let built = std::env::temp_dir().join(format!("millrace-page-{}", std::process::id()));
    run(&["npx", "vite", "build", "--emptyOutDir", "--outDir", &built.to_string_lossy()]);
    for name in ["index.html", "assets/app.js", "assets/app.css", "assets/icon.svg"] {
        let read = |folder: &Path| fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let same = read(&web().join("dist")) == read(&built);
        assert!(same, "{name} is not what its sources give: (cd web && npm ci && npm run build)");
    }
    fs::remove_dir_all(&built).expect("removed");
}

#[test]
fn an_administrator_works_with_the_page_in_a_browser() {
    if lab::skipped("the page in a browser") || is_without("npm") || is_without("chromium") {
        return;
    }
    install();
    run(&["npm", "test"]);
}
