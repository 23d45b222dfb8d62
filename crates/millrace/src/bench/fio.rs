//! The installed `fio` beside our own generator, so that nobody has to trust ours.

use super::options::Mode;
use super::result::drives::Fio;
use super::result::report::Figures;
use super::work::WorkArgs;
use crate::failure::Failure;
use serde_json::Value;
use std::process::{Command, Stdio};

/// fio's version, if it is installed.
pub fn installed() -> Option<String> {
    let output = Command::new("fio").arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

/// The words of a run with the same load on `path`. A run that only reads cannot write, whatever becomes of its words.
fn words(path: &str, work: &WorkArgs, bs: u32, qd: u16) -> Vec<String> {
    let (_, reads) = work.rw.shape(work.mix);
    let seconds = work.seconds.as_secs().max(1);
    let mut words: Vec<String> = [
        "--name=millrace",
        "--ioengine=io_uring",
        "--direct=1",
        "--time_based",
        "--fixedbufs",
        "--registerfiles",
        "--norandommap",
        "--randrepeat=1",
        "--output-format=json",
    ]
    .map(String::from)
    .to_vec();
    words.push(format!("--filename={}", path.replace(':', "\\:")));
    words.push(format!("--rw={}", work.rw.word()));
    words.push(format!("--bs={bs}"));
    words.push(format!("--iodepth={qd}"));
    words.push(format!("--runtime={seconds}"));
    words.push(format!("--ramp_time={}", work.ramp.as_secs_f64().ceil() as u64));
    words.push(format!("--randseed={}", work.seed));
    words.extend(work.region.map(|bytes| format!("--size={bytes}")));
    if matches!(work.rw, Mode::Randrw | Mode::Rw) {
        words.push(format!("--rwmixread={}", work.mix));
    }
    if reads == 100 {
        words.push("--readonly".into());
    }
    words
}

/// Runs fio with the same load on the block device or file `path`.
pub fn run(path: &str, version: &str, work: &WorkArgs, bs: u32, qd: u16) -> Result<Fio, Failure> {
    let words = words(path, work, bs, qd);
    let command = format!("fio {}", words.join(" "));
    let output = Command::new("fio")
        .args(&words)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Failure::internal(format!("fio does not run: {e}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let total = parse(&text).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().chain(text.lines()).find(|l| !l.trim().is_empty()).unwrap_or("nothing");
        Failure::internal(format!("fio failed on {path} ({}) and said: {said}", output.status))
            .with_next(&*command)
    })?;
    Ok(Fio { version: version.into(), command, total })
}

/// fio's JSON, in front of which it may have warned. None if its run failed.
fn parse(text: &str) -> Option<Figures> {
    let json: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let job = json["jobs"].get(0)?;
    if job["error"].as_i64()? != 0 {
        return None;
    }
    let of = |way: &str, key: &str| job[way][key].as_f64().unwrap_or(0.0);
    let sum = |key: &str| of("read", key) + of("write", key);
    let more = if of("write", "total_ios") > of("read", "total_ios") { "write" } else { "read" };
    let latency = &job[more]["clat_ns"];
    let us = |v: &Value| v.as_f64().unwrap_or(0.0) / 1e3;
    let at = |percent: &str| us(&latency["percentile"][percent]);
    Some(Figures {
        ops: sum("total_ios") as u64,
        bytes: sum("io_bytes") as u64,
        iops: sum("iops"),
        mb_per_s: sum("bw_bytes") / 1e6,
        mean_us: us(&latency["mean"]),
        p50_us: at("50.000000"),
        p90_us: at("90.000000"),
        p99_us: at("99.000000"),
        p999_us: at("99.900000"),
        max_us: us(&latency["max"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_says_is_read_behind_its_warnings() {
        let text = r#"fio: a warning
            {"fio version": "fio-3.33", "jobs": [{"error": 0,
              "read": {"total_ios": 10, "io_bytes": 40960, "iops": 5.5, "bw_bytes": 22528,
                       "clat_ns": {"mean": 1000.0, "max": 9000, "percentile": {"50.000000": 900, "99.000000": 8000}}},
              "write": {"total_ios": 30, "io_bytes": 122880, "iops": 15.0, "bw_bytes": 61440,
                       "clat_ns": {"mean": 2000.0, "max": 7000, "percentile": {"50.000000": 1500}}}}]}"#;
        let f = parse(text).expect("figures");
        assert_eq!((f.ops, f.iops, f.mean_us, f.p50_us, f.max_us), (40, 20.5, 2.0, 1.5, 7.0));
        assert_eq!(parse(&text.replace("\"error\": 0", "\"error\": 5")), None);
        assert_eq!(parse("fio: engine io_uring not loadable"), None);
    }
}
