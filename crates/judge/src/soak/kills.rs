//! The daemon is killed at random moments under verified load of our own initiators, while legs fail and return.

use super::{Rows, legs_equal};
use crate::Head;
use crate::load::{self, Load, Protocol, Report};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Kills before the loads read everything back and the legs are compared.
const KILLS_IN_A_LOAD: u32 = 10;

/// So many rounds.
pub fn kills(rounds: u32) -> Rows {
    let mut head = Head::with_tank("soak-kills");
    load::volumes(&head, "192M", "64M");
    let (mut report, mut compared, mut away) = (Report::default(), 0, Duration::ZERO);
    let (mut out, mut copying, mut failed) = (0, 0, None);
    let mut done = 0;
    while done < rounds {
        let mut loads = start_loads(&head);
        for _ in 0..KILLS_IN_A_LOAD.min(rounds - done) {
            // Another moment each time, from in the middle of logins to well under way.
            sleep(Duration::from_millis(u64::from(done * 397 % 1700) + 100));
            match done % 4 {
                1 => {
                    // Refused while the other leg is still being copied.
                    let drive = head.drive(["a", "b", "c", "d"][done as usize / 4 % 4]);
                    if head.try_cli(&format!("drive fail {drive}")).code == 0 {
                        out += 1;
                        failed = Some(drive);
                    }
                    sleep(Duration::from_millis(300));
                }
                2 => {
                    // It is still out, and returns: into the middle of that.
                    give_back(&head, &mut failed);
                    copying += u32::from(head.health() == "rebuilding");
                }
                _ => {}
            }
            head.kill();
            let began = Instant::now();
            head.start();
            away = away.max(began.elapsed());
            loads.iter_mut().for_each(Load::must_run);
            done += 1;
        }
        sleep(Duration::from_secs(1));
        loads.into_iter().for_each(|load| report.add(&load.finish()));
        give_back(&head, &mut failed);
        compared += legs_equal(&mut head);
        head.start();
    }
    vec![
        ("kills", format!("{done}, {out} with a leg out, {copying} while one was copied")),
        ("load", format!("{} operations by both protocols", report.ops)),
        ("lost or wrong", format!("0 of {} blocks read", report.verified)),
        ("sessions opened again", report.reconnects.to_string()),
        ("until it serves again", format!("{:.1} s at most", away.as_secs_f64())),
        ("legs", format!("equal: {compared} MiB of mirrors by scrub and by reading the files")),
    ]
}

/// Returns the drive that was failed, if one was.
pub(super) fn give_back(head: &Head, failed: &mut Option<String>) {
    if let Some(drive) = failed.take() {
        head.cli(&format!("drive return {drive}"));
    }
}

fn start_loads(head: &Head) -> Vec<Load> {
    let start = |name: &str, protocol, volume, words: &str| {
        Load::start(head, name, &format!("{} {words} --region 48M", load::target(head, protocol, volume)))
    };
    vec![
        start("nvme-v", Protocol::Nvme, "v", "--rw randrw --mix 50 --bs 4k --qd 16 --connections 2"),
        start(
            "iscsi-v",
            Protocol::Iscsi,
            "v",
            "--rw randrw --mix 50 --bs 4k --qd 16 --region-at 64M --connections 2",
        ),
        start(
            "iscsi-big",
            Protocol::Iscsi,
            "v",
            "--rw randrw --mix 30 --bs 128k --qd 4 --digests --region-at 128M",
        ),
        start("nvme-w", Protocol::Nvme, "w", "--rw rw --mix 30 --bs 32k --qd 4 --digests --fua"),
    ]
}
