//! The Debian package and the image, as `make deb` and `make image` make them, in the hands of Debian's own tools. What
//! installing, upgrading and purging does is seen under systemd (`systemd.rs`).

use judge::{binary, packed};
use lab::{sh, skipped};
use serde_json::Value;
use std::path::Path;

/// Most bytes of the program: what users have. The one that tests are built with is larger.
const BYTES_MAX: u64 = 24_000_000;

/// Files of the package that somebody relies on.
const FILES: &[&str] = &[
    "/etc/millrace/head.toml",
    "/usr/bin/millrace",
    "/usr/lib/systemd/system/millrace.service",
    "/usr/lib/sysctl.d/50-millrace.conf",
    "/usr/lib/sysusers.d/millrace.conf",
    "/usr/lib/udev/rules.d/65-millrace.rules",
    "/usr/share/bash-completion/completions/millrace",
    "/usr/share/doc/millrace/copyright",
    "/usr/share/doc/millrace/third-party.txt.gz",
    "/usr/share/fish/vendor_completions.d/millrace.fish",
    "/usr/share/man/man1/millrace-pool-create.1.gz",
    "/usr/share/man/man1/millrace.1.gz",
    "/usr/share/zsh/vendor-completions/_millrace",
];

fn bash(script: &str) -> String {
    sh(script).unwrap_or_else(|e| panic!("{script}: {e:#}"))
}

/// A folder for a test, emptied.
fn folder(name: &str) -> String {
    let folder = std::env::temp_dir().join(format!("millrace-{name}-{}", std::process::id()));
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.display().to_string()
}

#[test]
fn the_package_holds_what_it_should_and_debian_finds_no_error_in_it() {
    if skipped("the Debian package") {
        return;
    }
    let dir = folder("package");
    let deb = packed(&dir, "");
    let listed = bash(&format!("dpkg-deb --contents {deb}"));
    for file in FILES {
        assert!(
            listed.lines().any(|line| line.ends_with(&format!(" .{file}"))),
            "{file} is not in\n{listed}"
        );
    }
    assert!(listed.lines().all(|line| line.contains(" root/root ")), "{listed}");
    assert_eq!(bash(&format!("dpkg-deb --info {deb} conffiles")), "/etc/millrace/head.toml\n");

    bash(&format!("dpkg-deb --extract {deb} {dir}/root"));
    let program = Path::new(&dir).join("root/usr/bin/millrace");
    let bytes = program.metadata().expect("the program").len();
    println!("the program has {bytes} bytes");
    if binary().to_string_lossy().contains("/release/") {
        assert!(bytes < BYTES_MAX, "{bytes}");
    }
    let said = bash(&format!("{dir}/root/usr/bin/millrace --version"));
    assert_eq!(said, bash(&format!("{} --version", binary().display())));

    // The test packs in haste, which is no error of the package that users have.
    let haste = "uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball";
    let lint = bash(&format!("lintian --allow-root --fail-on none --suppress-tags {haste} {deb} 2>&1"));
    println!("{lint}");
    let errors: Vec<&str> = lint.lines().filter(|line| line.starts_with("E:")).collect();
    assert!(errors.is_empty(), "{errors:#?}");

    // A page for each command, and groff has nothing to complain about.
    let pages = bash(&format!(
        "for page in {dir}/root/usr/share/man/man1/*; do MANWIDTH=90 man --warnings -l $page 2>&1; done"
    ));
    for words in ["millrace pool create tank mirror", "NOTES AND EXAMPLES"] {
        assert!(pages.contains(words), "{words} is on no page");
    }
    let complaints: Vec<&str> =
        pages.lines().filter(|line| line.contains("warning:") || line.contains("error:")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    let completions =
        bash(&format!("bash -n {dir}/root/usr/share/bash-completion/completions/millrace && echo good"));
    assert_eq!(completions, "good\n");
    std::fs::remove_dir_all(&dir).ok();
}

#[test]
fn the_kernel_settings_of_the_package_are_those_that_tune_wants() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let machine = packaging.join("../crates/topology/machines/two-sockets.rec");
    let tune = bash(&format!("{} tune --json --machine {}", binary().display(), machine.display()));
    let settings: Vec<Value> = serde_json::from_str(&tune).expect("JSON");
    // All writes that tune would make there: file and value.
    let mut writes = Vec::new();
    for setting in &settings {
        collect(setting, &mut writes);
    }
    assert!(writes.len() > 10, "{tune}");
    let of = |name: &str| std::fs::read_to_string(packaging.join(name)).expect("a file of the package");
    for line in of("millrace.sysctl").lines().filter(|line| line.contains('=')) {
        let (key, value) = line.trim_start_matches('-').split_once(" = ").expect("a setting");
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        let wanted = writes.iter().find(|(file, _)| *file == path);
        assert!(wanted.is_none_or(|(_, wanted)| wanted == value), "{line}: tune wants {wanted:?}");
    }
    let mut known = 0;
    for line in of("millrace.rules").lines().filter(|line| line.starts_with("TEST==")) {
        let (file, value) =
            line.split("ATTR{").nth(1).and_then(|rest| rest.split_once("}=")).expect("a setting");
        let of_drives =
            writes.iter().filter(|(path, _)| path.starts_with("/sys/block/nvme") && path.ends_with(file));
        for (path, wanted) in of_drives {
            assert_eq!(value.trim_matches('"'), wanted, "{path}");
            known += 1;
        }
    }
    assert!(known > 0, "tune would change some queue of that machine");
}

/// The writes in what `tune` prints of a setting.
fn collect(value: &Value, writes: &mut Vec<(String, String)>) {
    if let (Some(path), Some(wanted)) = (value["path"].as_str(), value["value"].as_str()) {
        writes.push((path.to_owned(), wanted.to_owned()));
    }
    match value {
        Value::Array(all) => all.iter().for_each(|v| collect(v, writes)),
        Value::Object(all) => all.values().for_each(|v| collect(v, writes)),
        _ => {}
    }
}

#[test]
fn the_image_is_made_of_local_files_and_its_program_runs() {
    if skipped("the image") {
        return;
    }
    let dir = folder("image");
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let made = bash(&format!("{}/image.sh {} {dir}", packaging.display(), binary().display()));
    let archive = made.lines().last().expect("the archive's name");
    // Without a network, and without anything else of this machine. Root needs no user namespace, which a chroot may not make.
    let script = format!(
        "cd {dir} && tar -xf {archive} && mkdir root && for blob in blobs/sha256/*; do \
         if file=$(tar -tf $blob 2>/dev/null) && grep -q usr/bin/millrace <<<\"$file\"; then tar -C root --no-same-owner -xf $blob; fi; done && \
         unshare $([ $(id -u) = 0 ] || echo --map-root-user) --net chroot root /usr/bin/millrace --version && ls root"
    );
    let said = bash(&script);
    assert!(said.starts_with("millrace "), "{said}");
    assert!(!said.contains("home"), "{said}");
    std::fs::remove_dir_all(&dir).ok();
}

#[test]
fn the_licence_of_every_crate_is_one_that_is_allowed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let deny = std::fs::read_to_string(root.join("deny.toml")).expect("deny.toml");
    let list = deny.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).expect("a list");
    let allowed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let crates = bash(&format!("{}/packaging/licences.sh", root.display()));
    let names = crates.split("\n---").next().expect("the list of crates");
    let mut seen = 0;
    for line in names.lines().skip(3) {
        let (name, licence) = line.split_once(": ").unwrap_or_else(|| panic!("{line} has no licence"));
        assert!(is_allowed(licence, &allowed), "{name}: {licence}");
        seen += 1;
    }
    assert!(seen > 100, "{names}");
    assert!(crates.contains("Permission is hereby granted, free of charge"), "the texts are there, too");
}

/// Whether an SPDX expression lets us have what it is about under licences that are allowed: AND binds closer than OR.
fn is_allowed(licence: &str, allowed: &[&str]) -> bool {
    let mut plain = licence.replace('/', " OR ");
    while let Some((before, rest)) = plain.split_once('(') {
        let (inner, after) = rest.split_once(')').expect("a group has an end");
        let found = if is_allowed(inner, allowed) { allowed[0] } else { "none" };
        plain = format!("{before}{found}{after}");
    }
    let all = |parts: &str| parts.split(" AND ").all(|one| allowed.contains(&one.trim()));
    plain.split(" OR ").any(all)
}

#[test]
fn licences_are_read_as_spdx_writes_them() {
    let allowed = ["MIT", "ISC"];
    for (licence, good) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("MIT AND GPL-3.0", false),
        ("GPL-3.0 OR ISC AND MIT", true),
        ("(MIT OR ISC) AND GPL-3.0", false),
        ("(GPL-3.0 OR ISC) AND MIT", true),
    ] {
        assert_eq!(is_allowed(licence, &allowed), good, "{licence}");
    }
}
