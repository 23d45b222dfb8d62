//! Figures of the past, while a host works.

use crate::daemon::{Daemon, until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime};

/// What the API answers to a GET: the status, and the body.
pub fn get(daemon: &Daemon, path: &str) -> (u16, serde_json::Value) {
    let mut stream = UnixStream::connect(daemon.path("api.sock")).expect("it listens");
    let request = format!("GET /api/v1/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    let body = text.split_once("\r\n\r\n").expect("a body").1;
    let json = body.find('{').zip(body.rfind('}')).map(|(from, to)| &body[from..=to]);
    (status, serde_json::from_str(json.unwrap_or("null")).expect("JSON"))
}

/// The values of a column that are known.
pub fn known(history: &serde_json::Value, column: &str) -> Vec<f64> {
    let column = history.pointer(column).and_then(|c| c.as_array());
    column.expect("a column").iter().filter_map(serde_json::Value::as_f64).collect()
}

#[test]
fn charts_show_what_hosts_did_and_a_new_daemon_says_nothing_wrong() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let file = daemon.file("d0", 96);
    let load = daemon.busy(&file);
    daemon.cli("volume create tank/idle --size 8M");
    let counted = || {
        let status = daemon.status();
        let volumes = status["volumes"].as_array().expect("volumes").iter();
        volumes.filter_map(|v| v["counters"]["reads"].as_f64()).sum::<f64>()
    };
    until("it reads", || counted() > 0.0);

    let begin = Instant::now();
    let busy = |path: &str| known(&get(&daemon, path).1, "/reads").iter().any(|rate| *rate > 0.0);
    until("the head's figures", || busy("history"));
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(3), "the first figures took {took:?}");
    let drive = format!("history/drives/{}", file.replace('/', "%2F"));
    for path in ["history/volumes/tank/v", &drive] {
        until(path, || busy(path));
    }
    let (status, head) = get(&daemon, "history?step=1");
    assert_eq!((status, &head["step_seconds"]), (200, &1.into()));
    // What is said of each second lies near to what `status` counts over all of them.
    let rates = known(&head, "/reads");
    let counted = counted();
    // Each second has the mean of the time between two readings, which may be a bit longer.
    assert!(rates.iter().sum::<f64>() <= 1.5 * counted, "{rates:?} of {counted}");
    assert!(known(&head, "/write_bytes").iter().any(|rate| *rate >= 4096.0), "{head}");
    for column in
        ["/read_mean_ns", "/times/read_p50_ns", "/times/write_p99_ns", "/times/write_stages/drive_ns"]
    {
        until(column, || known(&get(&daemon, "history").1, column).iter().any(|ns| *ns > 0.0));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let (begins, columns) =
        (head["begin"].as_u64().expect("seconds"), head["reads"].as_array().expect("reads"));
    let newest = begins + columns.len() as u64 - 1;
    assert!((now - 5..=now).contains(&newest), "{newest} at {now}");
    let (_, late) = get(&daemon, &format!("history?since={newest}"));
    assert!(late["begin"].as_u64() >= Some(newest) && known(&late, "/reads").len() <= 100, "{late}");
    assert_eq!(known(&get(&daemon, "history/volumes/tank/idle").1, "/reads"), [0.0; 0]);
    for (path, code) in [
        ("history?step=7", "parameter_invalid"),
        ("history/volumes/tank/no", "volume_unknown"),
        ("history/drives/no", "drive_unknown"),
    ] {
        let (status, refused) = get(&daemon, path);
        assert!(status >= 400 && refused["error"]["code"] == code, "{path}: {refused}");
    }

    // The counters of a head that begins anew are smaller: nothing comes of that but a gap.
    daemon.signal("-KILL");
    drop(load);
    daemon.start(&[]);
    until("it looks again", || !known(&get(&daemon, "history").1, "/reads").is_empty());
    let (_, head) = get(&daemon, "history");
    assert!(known(&head, "/reads").iter().all(|rate| *rate == 0.0), "{head}");
}

#[test]
fn a_daemon_that_is_killed_loses_at_most_a_minute_of_each_volume_and_drive() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let file = daemon.file("d0", 96);
    let load = daemon.busy(&file);
    let drive = format!("history/drives/{}", file.replace('/', "%2F"));
    let minutes = |daemon: &Daemon, path: &str| known(&get(daemon, &format!("{path}?step=60")).1, "/reads");
    let all = ["history", "history/volumes/tank/v", &drive];
    until("a minute is over", || all.iter().all(|path| minutes(&daemon, path).iter().any(|n| *n > 0.0)));
    until("it is on file", || daemon.path("state/history").metadata().is_ok_and(|m| m.len() > 0));
    let before = all.map(|path| minutes(&daemon, path));
    daemon.signal("-KILL");
    drop(load);
    daemon.start(&[]);
    for (path, before) in all.iter().zip(before) {
        // What is read of the file is there soon after the first answer.
        until(path, || minutes(&daemon, path).starts_with(&before));
    }
}
