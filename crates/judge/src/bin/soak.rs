//! The long runs, as `make soak` starts them: `soak [--minutes N] [--rounds N] [--guest N] [--cuts N] [--takeovers N]
//! [--holders N] [--calm N]`. Prints one table; ends with 1 if anything failed.

use judge::soak::{self, Rows};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Duration;

struct Options {
    minutes: u64,
    rounds: u32,
    guest: u32,
    cuts: u32,
    takeovers: u32,
    holders: u32,
    calm: u64,
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { minutes: 30, rounds: 50, guest: 50, cuts: 24, takeovers: 20, holders: 12, calm: 60 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value =
            words.next().and_then(|v| v.parse::<u32>().ok()).ok_or(format!("{word} wants a number"))?;
        match word.as_str() {
            "--minutes" => options.minutes = value.into(),
            "--rounds" => options.rounds = value,
            "--guest" => options.guest = value,
            "--cuts" => options.cuts = value,
            "--takeovers" => options.takeovers = value,
            "--holders" => options.holders = value,
            "--calm" => options.calm = value.into(),
            other => {
                let known =
                    "--minutes N, --rounds N, --guest N, --cuts N, --takeovers N, --holders N, --calm N";
                return Err(format!("'{other}' is unknown: {known}"));
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("soak: {why}");
            return ExitCode::from(2);
        }
    };
    let mut failed = false;
    let mut run = |name: &'static str, wanted: bool, run: &dyn Fn() -> Rows| {
        if !wanted {
            return;
        }
        let rows = catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|_| {
            failed = true;
            vec![("FAILED", "as printed above".into())]
        });
        soak::print(name, &rows);
    };
    let (minutes, rounds) = (options.minutes, options.rounds);
    run("ill drives", minutes > 0, &|| soak::mixed(Duration::from_secs(60 * minutes)));
    run("kill -9", rounds > 0, &|| soak::kills(rounds));
    let (guest, cuts) = (options.guest, options.cuts);
    run("kernel host", guest > 0, &|| soak::guest(guest));
    run("power cuts", cuts > 0, &|| soak::cuts(cuts));
    let (takeovers, holders, calm) = (options.takeovers, options.holders, options.calm);
    run("takeovers", takeovers > 0, &|| soak::takeovers(takeovers));
    run("drives held", holders > 0, &|| soak::holders(holders));
    run("no takeover", calm > 0, &|| soak::calm(Duration::from_secs(60 * calm)));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
