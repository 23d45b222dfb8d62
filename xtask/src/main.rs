//! Scripts of this repository that are longer than a screen. `make help` lists them.

mod count;
mod deps;
mod run;
mod tally;

use std::process::{Command, ExitCode};
use std::time::Duration;

use run::{cargo, run, step, target};
use tally::Tally;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rest = words.get(1..).unwrap_or_default();
    let result = match words.first().map(String::as_str) {
        Some("deps") => match rest.first().map(String::as_str) {
            Some("demo") => deps::install(deps::DEMO),
            Some("test") | None => deps::install(deps::TEST),
            Some(other) => Err(format!("deps: '{other}' is neither 'demo' nor 'test'")),
        },
        Some("demo") => demo(rest),
        Some("test") => report(test),
        Some("check") => report(|tally| {
            lint(tally);
            unit(tally);
            Ok(())
        }),
        Some("lint") => report(|tally| {
            lint(tally);
            Ok(())
        }),
        Some("judge") => report(|tally| {
            deps::install(deps::TEST)?;
            judge(tally, rest);
            Ok(())
        }),
        Some("sim") => sim(rest),
        Some("soak") => soak(rest),
        Some("rates") => rates(rest),
        Some("bench") => bench(rest),
        Some("peers") => peers(rest),
        Some("mutants") => mutants(rest),
        Some("count") => count(rest),
        Some("fuzz") => report(|tally| fuzz(tally, rest.first().map_or("60", String::as_str))),
        Some("lab") => lab(),
        Some("clean") => clean(),
        Some(other) => Err(format!("'{other}' is unknown; `make help` lists what there is")),
        None => Err("say what to do; `make help` lists what there is".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            if !why.is_empty() {
                eprintln!("xtask: {why}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs suites and ends with the one line that sums them up.
fn report(suites: impl FnOnce(&mut Tally) -> Result<(), String>) -> Result<(), String> {
    let mut tally = Tally::default();
    let done = suites(&mut tally);
    if let Err(why) = &done {
        tally.fail(why);
    }
    tally.print();
    if tally.failed == 0 { Ok(()) } else { Err(String::new()) }
}

/// Everything. The order keeps both cores busy: the guest image downloads while the compiler works.
fn test(tally: &mut Tally) -> Result<(), String> {
    deps::install(deps::TEST)?;
    step("the lab's image, beside what follows");
    run(cargo(&["build", "--locked", "--package", "lab"]))?;
    let image =
        Command::new(target().join("debug/lab")).arg("setup").stdout(std::process::Stdio::null()).spawn();
    lint(tally);
    unit(tally);
    step("planted bugs, those that are found in seconds");
    tally.one("make mutants FAST=1", mutants(&["--promptly".into()]));
    step("the lab's image");
    match image.and_then(|mut child| child.wait()) {
        Ok(status) if status.success() => {}
        Ok(status) => tally.fail(&format!("`lab setup` ended with {status}")),
        Err(e) => tally.fail(&format!("`lab setup` could not run: {e}")),
    }
    judge(tally, &[]);
    step("instructions of a command");
    tally.one("instructions", count::count(false));
    Ok(())
}

fn lint(tally: &mut Tally) {
    step("format");
    tally.one("cargo fmt --check", run(cargo(&["fmt", "--all", "--check"])));
    step("lints");
    let lints = ["clippy", "--locked", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    tally.one("cargo clippy", run(cargo(&lints)));
}

/// Tests that need nothing but the compiler; the simulation is among them.
fn unit(tally: &mut Tally) {
    step("unit tests and simulation: compile");
    let all = ["test", "--locked", "--no-fail-fast", "--workspace", "--exclude", "lab", "--exclude", "judge"];
    let mut compile = cargo(&all);
    compile.arg("--no-run");
    if let Err(why) = run(compile) {
        return tally.fail(&format!("the unit tests do not build: {why}"));
    }
    step("unit tests and simulation");
    let suite = |only: &[String]| exactly(cargo(&all), &[], only);
    tally.cargo_test("unit tests", suite, Duration::from_secs(20 * 60));
}

/// Tests of the real binary by real components.
fn judge(tally: &mut Tally, only: &[String]) {
    step("the binary");
    let build = run(cargo(&["build", "--release", "--locked", "--package", "millrace"]));
    if let Err(why) = build {
        return tally.fail(&format!("the binary does not build: {why}"));
    }
    step("real hosts and tools");
    let suite = |again: &[String]| {
        let mut tests =
            cargo(&["test", "--locked", "--no-fail-fast", "--package", "lab", "--package", "judge"]);
        tests.env("MILLRACE_BIN", target().join("release/millrace"));
        // Each test starts daemons and most start guests: more side by side would only slow all of them.
        let mut filter = vec!["--test-threads=2".to_string()];
        filter.extend_from_slice(only);
        exactly(tests, &filter, again)
    };
    tally.cargo_test("real hosts and tools", suite, Duration::from_secs(25 * 60));
}

/// `cargo test` with these words for the tests' programs, or with the named tests alone, one at a time.
fn exactly(mut tests: Command, words: &[String], only: &[String]) -> Command {
    tests.arg("--");
    match only {
        [] => tests.args(words),
        _ => tests.args(["--test-threads=1", "--exact"]).args(only),
    };
    tests
}

/// The long runs; they print a table of their own.
fn soak(words: &[String]) -> Result<(), String> {
    deps::install(deps::TEST)?;
    run(cargo(&["build", "--release", "--locked", "--package", "millrace"]))?;
    let mut command = cargo(&["run", "--quiet", "--locked", "--package", "judge", "--bin", "soak", "--"]);
    command.args(words).env("MILLRACE_BIN", target().join("release/millrace"));
    run(command)
}

/// What pools give of their drives' speed; prints a table of its own.
fn rates(words: &[String]) -> Result<(), String> {
    run(cargo(&["build", "--release", "--locked", "--package", "millrace"]))?;
    let mut command = cargo(&["run", "--quiet", "--locked", "--package", "judge", "--bin", "rates", "--"]);
    command.args(words).env("MILLRACE_BIN", target().join("release/millrace"));
    run(command)
}

/// How near to the machine's limit we are; prints a table of its own.
fn bench(words: &[String]) -> Result<(), String> {
    deps::install(deps::TEST)?;
    run(cargo(&["build", "--release", "--locked", "--package", "millrace", "--package", "peak"]))?;
    run(cargo(&["build", "--quiet", "--locked", "--package", "judge", "--bins"]))?;
    let mut command = cargo(&["run", "--quiet", "--locked", "--package", "judge", "--bin", "bench", "--"]);
    command.args(words).env("MILLRACE_BIN", target().join("release/millrace"));
    let judged = run(command);
    if !words.iter().any(|word| word == "--only") {
        let report = target().join("bench.html");
        let mut ladder = Command::new(target().join("release/millrace"));
        ladder.args(["bench", "ladder", "--drive", "null", "--copies", "4", "--mirror", "2", "--html"]);
        run({
            ladder.arg(&report);
            ladder
        })?;
        println!("\nThe layers, with plots: {}", report.display());
    }
    judged
}

/// Our figures beside those of other targets; prints a table of its own.
fn peers(words: &[String]) -> Result<(), String> {
    deps::install(deps::TEST)?;
    run(cargo(&["build", "--release", "--locked", "--package", "millrace"]))?;
    let mut command = cargo(&["run", "--quiet", "--locked", "--package", "judge", "--bin", "peers", "--"]);
    command.args(words).env("MILLRACE_BIN", target().join("release/millrace"));
    run(command)
}

/// What commands cost.
fn count(words: &[String]) -> Result<(), String> {
    deps::install(deps::TEST)?;
    count::count(words.iter().any(|word| word == "--keep"))
}

fn demo(words: &[String]) -> Result<(), String> {
    deps::install(deps::DEMO)?;
    run(cargo(&["build", "--release", "--locked", "--package", "millrace"]))?;
    // In our place, so that Ctrl-C reaches it and its end is ours.
    use std::os::unix::process::CommandExt;
    let failed = Command::new(target().join("release/millrace")).arg("demo").args(words).exec();
    Err(format!("the demo could not start: {failed}"))
}

fn sim(words: &[String]) -> Result<(), String> {
    let mut command = cargo(&["run", "--release", "--locked", "--quiet", "--package", "sim", "--"]);
    command.args(words);
    run(command)
}

/// Each planted bug is looked for, or with `--promptly` those that are found in seconds; a row says what
/// found it.
fn mutants(words: &[String]) -> Result<(), String> {
    let planted =
        ["--profile", "planted", "--locked", "--quiet", "--package", "sim", "--features", "planted"];
    let mut command = cargo(&["run"]);
    command.args(planted).args(["--bin", "mutants", "--"]).args(words);
    run(command)
}

/// Tests whose name says `fuzz`, for longer than `make test` runs them.
fn fuzz(tally: &mut Tally, seconds: &str) -> Result<(), String> {
    let limit: u64 = seconds.parse().map_err(|_| format!("'{seconds}' is no number of seconds"))?;
    let suite = |only: &[String]| {
        let mut tests =
            cargo(&["test", "--release", "--locked", "--no-fail-fast", "--workspace", "--lib", "--tests"]);
        tests.args(["--exclude", "lab", "--exclude", "judge"]).env("MILLRACE_FUZZ_SECONDS", seconds);
        exactly(tests, &["fuzz".into()], only)
    };
    tally.cargo_test("fuzz", suite, Duration::from_secs(600 + 100 * limit));
    Ok(())
}

fn lab() -> Result<(), String> {
    deps::install(deps::TEST)?;
    run(cargo(&["run", "--quiet", "--locked", "--package", "lab"]))
}

fn clean() -> Result<(), String> {
    run(cargo(&["clean"]))?;
    let home = std::env::var("HOME").unwrap_or_else(|_| "/var/tmp".into());
    let images = std::env::var("MILLRACE_LAB_DIR").unwrap_or(format!("{home}/.cache/millrace-lab"));
    match std::fs::remove_dir_all(&images) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{images}: {e}")),
        Ok(()) | Err(_) => Ok(()),
    }
}
