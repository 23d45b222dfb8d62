//! What an operator does by hand, with one binary.

use judge::{Head, until};
use lab::skipped;
use std::time::Duration;

#[test]
fn the_whole_life_of_a_volume_by_hand() {
    if skipped("a volume's life") {
        return;
    }
    let head = Head::with_tank("operator");
    for word in ["tank", "optimal"] {
        assert!(
            head.cli("pool ls").contains(word) || head.cli("pool ls").contains("rebuilding"),
            "pool ls without {word}"
        );
    }
    head.cli("volume create tank/vm1 --size 40M");
    head.cli("volume create tank/vm2 --size 40M --block 512");
    let uuid = |name: &str| head.json(&format!("volume show {name}"))["uuid"].clone();
    let before = uuid("tank/vm1");
    head.cli("volume rename tank/vm1 web");
    assert_eq!(uuid("tank/web"), before, "a name is not an identity");
    head.cli("volume resize tank/web --size 80M");
    assert_eq!(head.json("volume show tank/web")["bytes"], 80 << 20);

    head.cli("host add esx1 --nqn nqn.2014-08.org.nvmexpress:uuid:8f4c9e3a-0000-4000-8000-000000000001 --iqn iqn.1998-01.com.vmware:esx1");
    head.cli("export tank/web --host esx1");
    head.cli("export tank/vm2 --host esx1 --lun 7");
    assert!(
        head.cli("status").contains("esx1") && head.cli("status").contains("web"),
        "{}",
        head.cli("status")
    );
    assert!(head.cli("host show esx1").contains("identified"), "{}", head.cli("host show esx1"));
    head.cli("unexport tank/web --host esx1");
    head.cli("volume rm tank/web");
    let volumes = head.json("volume ls");
    assert_eq!(volumes.as_array().map(Vec::len), Some(1), "{volumes}");

    // To another head, whole.
    head.cli("pool release tank");
    assert_eq!(head.json("pool ls").as_array().map(Vec::len), Some(0));
    let other = Head::new("operator-2");
    let drives: String = ["a", "b", "c", "d"].iter().map(|d| format!(" --drive {}", head.drive(d))).collect();
    other.cli(&format!("pool import tank{drives}"));
    let moved = other.json("volume ls");
    assert_eq!((&moved[0]["uuid"], &moved[0]["nsid"]), (&volumes[0]["uuid"], &volumes[0]["nsid"]));
    assert_ne!(other.iqn(), head.iqn(), "two heads are two systems");
}

#[test]
fn every_screen_has_help_with_examples_and_json() {
    if skipped("screens") {
        return;
    }
    let head = Head::with_tank("screens");
    for noun in ["pool", "volume", "host", "portal", "drive"] {
        assert!(head.cli(&format!("{noun} --help")).contains("Usage"), "{noun}");
        assert!(head.cli(&format!("{noun} ls --help")).contains("Examples"), "{noun} ls");
        assert!(head.json(&format!("{noun} ls")).is_array(), "{noun} ls --json");
    }
    for command in [
        "serve",
        "status",
        "events",
        "export",
        "unexport",
        "demo",
        "bench",
        "pool create",
        "volume create",
        "host add",
    ] {
        assert!(head.cli(&format!("{command} --help")).contains("Examples"), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(head.cli(&format!("completions {shell}")).contains("millrace"), "{shell}");
    }
    assert!(head.json("status")["health"].is_string());
    let document: serde_json::Value = serde_json::from_str(&head.cli("openapi")).expect("JSON");
    assert!(document["paths"].as_object().is_some_and(|paths| paths.len() > 10), "OpenAPI without paths");
}

#[test]
fn the_api_answers_on_its_socket_as_rest() {
    if skipped("REST") {
        return;
    }
    let head = Head::with_tank("rest");
    let socket = head.dir.join("api").display().to_string();
    let ask = |request: &str| -> String {
        use std::io::{Read, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("the socket");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        stream
            .write_all(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
            .expect("write");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        String::from_utf8_lossy(&answer).into()
    };
    assert!(ask("GET /api/v1/status HTTP/1.1").starts_with("HTTP/1.1 200"));
    assert!(ask("GET /api/v1/pools HTTP/1.1").contains("\"tank\""));
    assert!(ask("GET /api/v1/nonsense HTTP/1.1").starts_with("HTTP/1.1 404"));
    assert!(ask("DELETE /api/v1/status HTTP/1.1").starts_with("HTTP/1.1 405"));
    assert!(ask("nonsense").starts_with("HTTP/1.1 400") || ask("nonsense").is_empty());
    head.cli("status");
}

#[test]
fn a_shaped_drive_does_what_the_shape_says() {
    if skipped("shapes") {
        return;
    }
    let head = Head::with_tank("shapes");
    until("the first resync ends", 120, || head.health() == "optimal");
    let drive = head.drive("d");
    head.cli(&format!("drive shape {drive} --latency-us 5000"));
    assert_eq!(head.json(&format!("drive show {drive}"))["shape"]["latency_us"], 5000);
    head.cli(&format!("drive shape {drive} --clear"));
    head.cli(&format!("drive shape {drive} --gone"));
    let lun = head.give("v", "32M", 4096, "judge", "--iqn iqn.2026-01.org.millrace.judge:shape");
    let image = format!("iscsi://127.0.0.1:3260/{}/{lun}", head.iqn());
    let test = format!("iscsi-perf -i iqn.2026-01.org.millrace.judge:shape -t 2 -m 4 -b 1 {image}");
    head.run(&test, 60);
    // Reads alone do not need the leg; a write finds out that it is gone.
    let json = format!(
        "json:{{\"driver\":\"raw\",\"file\":{{\"driver\":\"iscsi\",\"transport\":\"tcp\",\"portal\":\"127.0.0.1:3260\",\
         \"target\":\"{}\",\"lun\":{lun},\"initiator-name\":\"iqn.2026-01.org.millrace.judge:shape\"}}}}",
        head.iqn()
    );
    head.run(&format!("qemu-io -t none -c 'write -P 3 0 32M' -c flush -c 'read -P 3 0 32M' '{json}'"), 60);
    assert_eq!(head.health(), "degraded");
    head.cli(&format!("drive shape {drive} --clear"));
    head.cli(&format!("drive return {drive}"));
    until("the leg is in sync again", 120, || head.health() == "optimal");
}
