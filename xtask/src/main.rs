//! Scripts of this repository that are longer than a screen. `make help` lists them.

mod count;
mod deps;
mod mutants;
mod run;
mod suites;
mod tally;

use std::process::{Command, ExitCode};
use std::time::Duration;

use run::{cargo, run, step, target};
use suites::Suite;
use tally::{Job, Tally};

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
        Some("judge-all") => report(judge_all),
        Some("check") => report(|tally| {
            lint(tally);
            unit(tally)
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
        Some("deb") => pack(deps::DEB, "deb.sh"),
        Some("image") => pack(deps::IMAGE, "image.sh"),
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

/// A program that is at work for longer than this hangs.
const HANGS: Duration = Duration::from_secs(25 * 60);
/// The same of one whose tests start guests, one after the other.
const GUESTS_HANG: Duration = Duration::from_secs(60 * 60);
/// The job that builds what instructions are counted of.
const COUNTED: &str = "what is counted, optimised";

/// Everything that must pass. The order keeps both cores busy: the guest image downloads while the compiler works; then
/// tests that wait for clocks, kernels and hosts run beside the compiler and the tests in virtual time. Those with
/// guests come first, one at a time, and leave a core to the others.
fn test(tally: &mut Tally) -> Result<(), String> {
    deps::install(deps::TEST)?;
    deps::promtool();
    deps::node();
    step("the lab's image, beside what follows");
    run(cargo(&["build", "--quiet", "--locked", "--package", "lab"]))?;
    let image =
        Command::new(target().join("debug/lab")).arg("setup").stdout(std::process::Stdio::null()).spawn();
    lint(tally);
    step("all tests: compile");
    let suites = suites::build()?;
    step("the lab's image");
    match image.and_then(|mut child| child.wait()) {
        Ok(status) if status.success() => {}
        Ok(status) => tally.fail(&format!("`lab setup` ended with {status}")),
        Err(e) => tally.fail(&format!("`lab setup` could not run: {e}")),
    }
    // Real hosts and tools judge the program that the tests were built with: an optimised one takes minutes to build, and
    // notices less. `make judge` has the optimised one.
    let [clocks, mut busy] = lanes(suites);
    // Beside guests there is a core for each of these, and they need no more.
    let counted = Job::sized(COUNTED, HANGS, |threads| {
        let jobs = threads.to_string();
        patient(&cargo(&["build", "--quiet", "--release", "--locked", "--package", "path", "--jobs", &jobs]))
    });
    let instructions =
        Job::one("instructions", HANGS, || patient(&this(&["count", "--built"]))).after(COUNTED);
    busy.splice(0..0, [counted, instructions]);
    let mutants = Job::one("mutants FAST=1", HANGS, || {
        let mut mutants = Command::new(target().join("debug/mutants"));
        mutants.arg("--promptly");
        patient(&mutants)
    });
    busy.push(mutants.fills_all());
    step("all tests, in two lanes: those with clocks, kernels and hosts, and those in virtual time");
    tally.side_by_side(vec![clocks, busy]);
    Ok(())
}

/// `make test`, and what takes longer: real hosts and the optimised program, every planted bug, a bounded soak, the bench
/// once.
fn judge_all(tally: &mut Tally) -> Result<(), String> {
    test(tally)?;
    judge(tally, &[]);
    step("planted bugs, all of them");
    tally.one("make mutants", mutants(&[]));
    step("long runs, bounded");
    let bounds = [
        "--minutes",
        "5",
        "--rounds",
        "10",
        "--guest",
        "5",
        "--cuts",
        "6",
        "--takeovers",
        "7",
        "--holders",
        "3",
        "--calm",
        "20",
    ];
    tally.one("make soak", soak(&bounds.map(String::from)));
    step("bench, one round");
    tally.one("make bench ROUNDS=1", bench(&["--rounds".into(), "1".into()]));
    Ok(())
}

/// The suites that wait for clocks and kernels, first those with guests, and those that are busy in virtual time.
fn lanes(suites: Vec<Suite>) -> [Vec<Job>; 2] {
    let (mut clocks, busy): (Vec<Suite>, Vec<Suite>) = suites.into_iter().partition(Suite::is_real);
    clocks.sort_by_key(|suite| !suite.has_guests());
    [clocks, busy].map(|suites| suites.into_iter().map(tests).collect())
}

/// A suite as a job. Who waits for clocks goes first where both could run.
fn tests(suite: Suite) -> Job {
    let (title, guests) = (suite.title(), suite.has_guests());
    let job = Job::tests(&title, if guests { GUESTS_HANG } else { HANGS }, move |only, threads| {
        let mut command = suite.command(only, threads);
        command.env("MILLRACE_BIN", target().join("debug/millrace"));
        if suite.is_real() { command } else { patient(&command) }
    });
    if guests { job.with_guests() } else { job }
}

/// The command, behind others for the processor.
fn patient(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "10"]).arg(command.get_program()).args(command.get_args());
    nice.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    nice
}

/// This program with other words. Its own file may be gone: the tests of it are built with another program of that name.
fn this(words: &[&str]) -> Command {
    let mut command = Command::new(target().join("debug/xtask"));
    command.args(words);
    command
}

fn lint(tally: &mut Tally) {
    step("format");
    tally.one("cargo fmt --check", run(cargo(&["fmt", "--all", "--check"])));
    step("lints");
    let lints = ["clippy", "--locked", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    tally.one("cargo clippy", run(cargo(&lints)));
}

/// Tests that need nothing but the compiler; the simulation is among them.
fn unit(tally: &mut Tally) -> Result<(), String> {
    step("all tests: compile");
    let suites = suites::build()?;
    step("unit tests and simulation");
    tally.side_by_side(lanes(suites.into_iter().filter(|suite| !suite.is_judge()).collect()).into());
    Ok(())
}

/// Programs with tests of the real binary: without guests, and with them.
const ALONE: &[&str] = &["--lib", "--bin", "peers", "--bin", "bench", "--test", "all"];
const GUESTS: &[&str] = &["--test", "lab", "--test", "guests"];

/// Tests of the real binary by real components.
fn judge(tally: &mut Tally, only: &[String]) {
    step("the binary");
    let build =
        run(cargo(&["build", "--release", "--locked", "--package", "millrace", "--package", "uring"]));
    if let Err(why) = build {
        return tally.fail(&format!("the binary does not build: {why}"));
    }
    // Each test starts daemons: more side by side would only slow all of them. And one guest is enough.
    let programs = [
        ("real hosts and tools", "--test-threads=2", ALONE, HANGS),
        ("guests", "--test-threads=1", GUESTS, GUESTS_HANG),
    ];
    for (what, threads, targets, limit) in programs {
        step(what);
        let filter: Vec<String> = std::iter::once(threads.to_string()).chain(only.iter().cloned()).collect();
        let suite = move |again: &[String]| {
            let mut tests =
                cargo(&["test", "--locked", "--no-fail-fast", "--package", "lab", "--package", "judge"]);
            tests.args(targets).env("MILLRACE_BIN", target().join("release/millrace"));
            exactly(tests, &filter, again)
        };
        tally.cargo_test(what, suite, limit);
    }
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
            ladder.arg(&report).args(["--seconds", "1.5", "--ramp", "0.3"]);
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
    let says = |option: &str| words.iter().any(|word| word == option);
    count::count(says("--keep"), says("--built"))
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
/// found it. With `--rules` or `--changed` mutants made by rule are.
fn mutants(words: &[String]) -> Result<(), String> {
    match words {
        [rules] if rules == "--rules" => return mutants::all(),
        [changed, since] if changed == "--changed" => return mutants::changed(since),
        _ => {}
    }
    let planted =
        ["--profile", "planted", "--locked", "--quiet", "--package", "sim", "--features", "planted"];
    let mut command = cargo(&["run"]);
    command.args(planted).args(["--bin", "mutants", "--"]).args(words);
    run(command)
}

/// Tests whose name says `fuzz`, for longer than `make test` runs them.
fn fuzz(tally: &mut Tally, seconds: &str) -> Result<(), String> {
    let limit: u64 = seconds.parse().map_err(|_| format!("'{seconds}' is no number of seconds"))?;
    let seconds = seconds.to_owned();
    let suite = move |only: &[String]| {
        let mut tests =
            cargo(&["test", "--release", "--locked", "--no-fail-fast", "--workspace", "--lib", "--tests"]);
        tests.args(["--exclude", "lab", "--exclude", "judge"]).env("MILLRACE_FUZZ_SECONDS", &seconds);
        exactly(tests, &["fuzz".into()], only)
    };
    tally.cargo_test("fuzz", suite, Duration::from_secs(600 + 100 * limit));
    Ok(())
}

fn lab() -> Result<(), String> {
    deps::install(deps::TEST)?;
    run(cargo(&["run", "--quiet", "--locked", "--package", "lab"]))
}

/// The optimised program in a package, by a script of `packaging/`.
fn pack(packages: &[&str], script: &str) -> Result<(), String> {
    deps::install(packages)?;
    run(cargo(&["build", "--release", "--locked", "--package", "millrace"]))?;
    let mut command = Command::new(run::root().join("packaging").join(script));
    command.arg(target().join("release/millrace")).arg(target().join("package"));
    run(command)
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
