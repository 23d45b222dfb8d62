//! Whether what a load would overwrite holds anything, looked at before the first write: at a target over the connection that
//! the load will use, on a drive of this machine through its file.
//!
//! All of it is read that can be read in a second, from its beginning, where file systems and partition tables begin; beyond
//! it samples are read. What reads as zeroes everywhere is taken as empty.

use super::result::report::Report;
use super::session::{SingleArgs, carry_out, hint, sessions};
use super::target::Url;
use super::watch::Cpu;
use super::work::in_process;
use crate::context::{Ask, by_terminal};
use crate::failure::{Exit, Failure};
use crate::screen::{Look, Terminal};
use load::{Pattern, Plan};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The region is read from its beginning for so long, so many bytes at a time.
const FRONT_TIME: Duration = Duration::from_secs(1);
const FRONT_BYTES: u64 = 128 << 10;
/// At most so many places anywhere in it, each of so many bytes, for so long.
const SAMPLES: u64 = 4096;
const SAMPLE: u64 = 4096;
const SAMPLES_TIME: Duration = Duration::from_millis(500);

/// Refuses a load that writes where something lies, unless that is meant: `force`, or a person who says yes.
fn meant(what: &str, at: u64, ask: Option<Ask>) -> Result<(), Failure> {
    let message =
        format!("{what} holds data (from {} on), which this load would overwrite", base::size::print(at));
    let refused = Failure {
        kind: Some(api::ErrorKind::Unsafe),
        ..Failure::new(Exit::Refused, message.clone())
            .with_next("the same command with --force, or with --rw randread, which only reads")
    };
    let Some(ask) = ask else { return Err(refused) };
    match ask(&Terminal::for_stdout().paragraph(Look::Plain, "", &format!("{message}."), 0)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure { message: "nothing was written".into(), ..refused }),
        Err(e) => Err(Failure::internal(format!("the answer cannot be read: {e}"))),
    }
}

/// Looks at the volumes of a load that writes.
pub fn check_targets(args: &SingleArgs, urls: &[&Url], json: bool) -> Result<(), Failure> {
    let (_, reads) = args.rw.shape(args.mix);
    if args.force || reads == 100 && !args.prepare {
        return Ok(());
    }
    urls.iter().try_for_each(|url| check_target(args, url, json))
}

/// The same of one volume.
fn check_target(args: &SingleArgs, url: &Url, json: bool) -> Result<(), Failure> {
    // One command at a time is enough, and takes nothing from who uses the volume.
    let alone = SingleArgs { connections: 1, qd: args.qd.min(8), ..args.clone() };
    let look =
        |pattern: Pattern, region: u64, io: u64, ops: u64, time: Duration| -> Result<load::Report, Failure> {
            let plan = Plan {
                io_bytes: io as u32,
                pattern,
                read_percent: 100,
                region_at: args.region_at,
                region_bytes: region,
                time,
                ops_max: ops,
                verify: false,
                looks: true,
                seed: args.seed,
                progress_every: Duration::ZERO,
                patience: Duration::from_secs(args.patience.into()),
                ..Plan::new(sessions(&alone, url)?)
            };
            let report = carry_out(plan, None, &Cpu::default(), |_| Ok(()))?;
            match Report::of(&report).failure() {
                None => Ok(report),
                Some(why) => Err(Failure::internal(why.clone()).with_next(hint(&why))),
            }
        };
    let io = u64::from(args.bs).clamp(512, SAMPLE);
    let samples = look(Pattern::Random, args.region.unwrap_or(0), io, SAMPLES, SAMPLES_TIME)?;
    let whole = samples.region_bytes / io * io;
    let io = FRONT_BYTES.min(1 << whole.trailing_zeros()).max(io);
    let front = look(Pattern::Sequential, whole / io * io, io, whole / io, FRONT_TIME)?;
    match front.not_zero_at.or(samples.not_zero_at) {
        Some(at) => meant(&url.to_string(), at, by_terminal(json)),
        None => Ok(()),
    }
}

/// Looks at the drives of a load that writes. Those of a kind that only this process has hold nothing.
pub fn check_drives(specs: &[String], force: bool, json: bool) -> Result<(), Failure> {
    for spec in specs.iter().filter(|s| !force && !in_process(s)) {
        if let Some(at) = not_zero_at(path_of(spec)) {
            meant(spec, at, by_terminal(json))?;
        }
    }
    Ok(())
}

/// Where a drive lies.
fn path_of(spec: &str) -> &str {
    let bare = head::steward::split_shape(spec).map_or(spec, |(_, bare)| bare);
    base::drive_kind::path_in(bare)
}

/// Where the first byte that is not zero was found in a file or device. None too where it cannot be read: whoever opens it to
/// write says why.
fn not_zero_at(path: &str) -> Option<u64> {
    let file = std::fs::File::open(path).ok()?;
    let bytes = crate::machine::sizes::bytes_of(path)?;
    let began = Instant::now();
    let front = (0..bytes).step_by(FRONT_BYTES as usize).map(|at| (at, FRONT_BYTES));
    let front = front.take_while(|_| began.elapsed() < FRONT_TIME);
    let place = |i: u64| (bytes / SAMPLES * i).saturating_sub(SAMPLE) / SAMPLE * SAMPLE;
    let beyond = (1..=SAMPLES).map(|i| (place(i), SAMPLE));
    let beyond = beyond.take_while(|_| began.elapsed() < FRONT_TIME + SAMPLES_TIME);
    let mut block = vec![0; FRONT_BYTES as usize];
    front.chain(beyond).find_map(|(at, len)| {
        let read = file.read_at(&mut block[..len as usize], at).ok()?;
        let offset = block[..read].iter().position(|byte| *byte != 0)?;
        Some(at + offset as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_holds_something_is_found_and_an_empty_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("drive.img");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(256 << 20).expect("its size");
        let name = path.display().to_string();
        assert_eq!(not_zero_at(&name), None);
        assert_eq!(not_zero_at("/dev/null/none"), None);
        // A boot sector, a single byte, and what lies nearly everywhere.
        for (at, len) in [(0u64, 512usize), ((78 << 20) - 1, 1), (4 << 20, 64 << 20)] {
            file.write_all_at(&vec![7; len], at).expect("written");
            let found = not_zero_at(&name).expect("it holds something");
            assert!((at..at + len as u64).contains(&found), "{at}: {found}");
            for spec in [name.clone(), format!("shape:mbps-max=9@file:{name}?size=1G")] {
                let refused =
                    check_drives(core::slice::from_ref(&spec), false, true).expect_err("it holds data");
                assert!(refused.message.contains("holds data") && refused.exit == Exit::Refused, "{refused}");
                check_drives(&[spec], true, true).expect("it is meant");
            }
            file.write_all_at(&vec![0; len], at).expect("written");
        }
        check_drives(&["null:1T".into(), "ram:1G".into()], false, true).expect("they hold nothing");
    }
}
