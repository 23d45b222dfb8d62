//! The Debian packages that must be installed; nothing else is needed.

use crate::run::{run, target};
use std::process::Command;

/// For `make demo`: what the Rust compiler needs for linking.
pub const DEMO: &[&str] = &["gcc", "libc6-dev", "ca-certificates"];

/// For `make test`.
pub const TEST: &[&str] = &[
    "gcc",
    "libc6-dev",
    "ca-certificates",
    // The lab: guests, their image, their networks.
    "qemu-system-x86",
    "e2fsprogs",
    "xz-utils",
    "zstd",
    "iproute2",
    "util-linux",
    // Judges on this machine: initiators that are not ours, and eyes on the wire.
    "qemu-utils",
    "qemu-block-extra",
    "libiscsi-bin",
    "tshark",
    "procps",
    "curl",
    // Runs the role in packaging/ansible.
    "ansible-core",
    // Looks at the page.
    "chromium",
    // Counts instructions.
    "valgrind",
    // Packages, and judges of them.
    "dpkg-dev",
    "binutils",
    "lintian",
    "man-db",
    "buildah",
];

/// For `make deb`.
pub const DEB: &[&str] = &["gcc", "libc6-dev", "ca-certificates", "dpkg-dev", "binutils"];

/// For `make image`.
pub const IMAGE: &[&str] = &["gcc", "libc6-dev", "ca-certificates", "binutils", "buildah"];

/// Installs what is missing. Asks nothing; quick when all is there.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> = packages.iter().copied().filter(|name| !installed(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("Installing {}", missing.join(" "));
    run(apt(&["update", "-qq"])).map_err(|why| hint(&why, &missing))?;
    let mut command = apt(&["install", "-qq", "-y", "--no-install-recommends"]);
    command.args(&missing);
    // dpkg prints every file; only errors matter here.
    command.stdout(std::process::Stdio::null());
    run(command).map_err(|why| hint(&why, &missing))
}

/// Installs Node with npm, unless the machine has them from elsewhere. Tests of the page go without where they cannot be had.
pub fn node() {
    let runs =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|d| d.status.success());
    if !(runs("node") && runs("npm"))
        && let Err(why) = install(&["nodejs", "npm"])
    {
        println!("Node cannot be had, so the page is not tested: {why}");
    }
}

/// Unpacks Prometheus' own checker of metrics and rules below the build's folder. It is part of a package that starts a server
/// where it is installed. Tests go without it where it cannot be had.
pub fn promtool() {
    let folder = target().join("promtool");
    if folder.join("usr/bin/promtool").exists() {
        return;
    }
    let unpack = "rm -f *.deb && apt-get -qq download prometheus && dpkg -x prometheus_*.deb . && rm -f *.deb usr/bin/prometheus";
    let mut command = Command::new("sh");
    command.args(["-c", unpack]).current_dir(&folder);
    let made = std::fs::create_dir_all(&folder).map_err(|e| e.to_string());
    if let Err(why) = made.and_then(|()| run(command)) {
        println!("promtool cannot be had, so metrics are not checked by it: {why}");
    }
}

fn hint(why: &str, missing: &[&str]) -> String {
    format!("{why}\nInstall these packages as root and try again: {}", missing.join(" "))
}

fn installed(package: &str) -> bool {
    let query = Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]).output();
    query.is_ok_and(|done| done.stdout == b"installed")
}

fn apt(args: &[&str]) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if root { "env" } else { "sudo" });
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(args);
    // Another apt may be at work on a machine that has just started.
    command.args(["-o", "DPkg::Lock::Timeout=300"]);
    command
}
