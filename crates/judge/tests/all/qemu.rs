//! QEMU's block layer as initiator: it reads back what it wrote, also across a crash of the daemon.

use judge::Head;
use lab::skipped;

const ME: &str = "iqn.2026-01.org.millrace.judge:qemu";

/// QEMU's name for a LUN of this head.
fn image(head: &Head, lun: u64, more: &str) -> String {
    format!(
        "json:{{\"driver\":\"raw\",\"file\":{{\"driver\":\"iscsi\",\"transport\":\"tcp\",\"portal\":\"127.0.0.1:3260\",\
         \"target\":\"{}\",\"lun\":{lun},\"initiator-name\":\"{ME}\"{more}}}}}",
        head.iqn()
    )
}

fn io(head: &Head, image: &str, commands: &[&str]) -> String {
    let words: String = commands.iter().map(|c| format!("-c '{c}' ")).collect();
    let said = head.run(&format!("qemu-io -t none {words} '{image}' 2>&1"), 120).stdout;
    assert!(!said.contains("failed"), "{said}");
    said
}

#[test]
fn an_image_goes_in_and_comes_out_the_same() {
    if skipped("qemu-img over iSCSI") {
        return;
    }
    let head = Head::with_tank("qemu-img");
    let lun = head.give("v", "64M", 512, "judge", &format!("--iqn {ME}"));
    let image = image(&head, lun, "");
    let at = head.dir.display().to_string();
    head.run(&format!("head -c 40000000 /dev/urandom >{at}/in; truncate -s 64M {at}/in"), 60);
    head.run(&format!("qemu-img convert -n -f raw '{at}/in' --target-image-opts 'driver=raw,file.driver=iscsi,\
        file.transport=tcp,file.portal=127.0.0.1:3260,file.target={},file.lun={lun},file.initiator-name={ME}'", head.iqn()), 120);
    head.run(&format!("qemu-img convert -O raw '{image}' {at}/out && cmp {at}/in {at}/out"), 120);
    let said = head.run(&format!("qemu-img bench -c 2000 -d 32 -t none '{image}'"), 120).stdout;
    assert!(said.contains("Run completed"), "{said}");
    assert_eq!(head.health(), "optimal");
}

#[test]
fn patterns_are_read_back_with_digests_zeroes_discards_and_odd_places() {
    if skipped("qemu-io over iSCSI") {
        return;
    }
    let head = Head::with_tank("qemu-io");
    let lun = head.give("v", "64M", 512, "judge", &format!("--iqn {ME}"));
    let image = image(&head, lun, ",\"header-digest\":\"crc32c\"");
    io(&head, &image, &["write -P 0x11 0 64M", "flush"]);
    io(
        &head,
        &image,
        &[
            // Across a chunk of 64 KiB, and over both mirrors.
            "write -P 0x22 61952 7168",
            "write -P 0x33 1536 512",
            "write -z 1M 1M",
            "write -zu 3M 1M",
            "write -P 0x44 -f 8M 3M",
            "flush",
            "read -P 0x11 0 1536",
            "read -P 0x33 1536 512",
            "read -P 0x11 2048 59904",
            "read -P 0x22 61952 7168",
            "read -P 0 1M 1M",
            "read -P 0x11 2M 1M",
            "read -P 0 3M 1M",
            "read -P 0x44 8M 3M",
            "read -P 0x11 11M 53M",
        ],
    );
    let beyond =
        head.net.try_run(&format!("qemu-io -c 'read 64M 512' '{image}'"), std::time::Duration::from_secs(30));
    assert_ne!(beyond.expect("qemu-io").code, 0, "a read beyond the end must fail");
}

#[test]
fn what_was_flushed_is_there_after_the_daemon_was_killed_with_the_same_identity() {
    if skipped("kill -9 of the daemon") {
        return;
    }
    let mut head = Head::with_tank("qemu-kill");
    let lun = head.give("v", "64M", 512, "judge", &format!("--iqn {ME}"));
    let image = image(&head, lun, "");
    let identity = |head: &Head| {
        let status = head.json("status");
        let of = |key: &str, fields: &[&str]| -> Vec<String> {
            let items = status[key].as_array().expect("a list");
            items.iter().flat_map(|i| fields.iter().map(|f| i[*f].to_string())).collect()
        };
        let mut all = vec![status["system"].to_string()];
        all.extend(of("pools", &["name", "uuid", "bytes"]));
        all.extend(of("volumes", &["name", "uuid", "nguid", "naa", "nsid", "bytes", "exports"]));
        all.extend(of("hosts", &["name", "nqns", "iqns", "exports"]));
        all.extend(of("portals", &["protocol", "address"]));
        all
    };
    let before = identity(&head);
    for round in 1..=5u32 {
        io(&head, &image, &[&format!("write -P {round} {round}M 8M"), "flush"]);
        if round % 2 == 1 {
            // In the middle of other writes, whose answers nobody has seen. 8000 of 4 KiB end below 64 MiB:
            // more would go on at the beginning of the volume, over the pattern.
            let mut load = head.net.command("qemu-img");
            load.args(["bench", "-w", "-c", "8000", "-d", "4", "-t", "none", "-o", "33554432", &image]);
            let load = load.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn();
            std::thread::sleep(std::time::Duration::from_millis(150));
            head.kill();
            let mut load = load.expect("qemu-img");
            load.kill().ok();
            load.wait().ok();
        } else {
            head.kill();
        }
        head.start();
        io(&head, &image, &[&format!("read -P {round} {round}M 8M")]);
        assert_eq!(identity(&head), before, "after crash {round}");
    }
    assert_eq!(head.stop(), 0, "an orderly end");
    head.start();
    assert_eq!(identity(&head), before, "after an orderly end");
    io(&head, &image, &["read -P 1 1M 1M", "read -P 5 5M 8M"]);
}

#[test]
fn a_failed_drive_costs_no_data_and_its_return_is_resynced() {
    if skipped("a failed drive") {
        return;
    }
    let head = Head::with_tank("qemu-drive");
    let lun = head.give("v", "128M", 4096, "judge", &format!("--iqn {ME}"));
    let image = image(&head, lun, "");
    let drive = head.drive("b");
    judge::until("the first resync ends", 120, || head.health() == "optimal");
    io(&head, &image, &["write -P 1 0 128M", "flush"]);
    head.cli(&format!("drive fail {drive}"));
    assert_eq!(head.health(), "degraded");
    io(
        &head,
        &image,
        &["write -P 2 16M 16M", "flush", "read -P 1 0 16M", "read -P 2 16M 16M", "read -P 1 32M 96M"],
    );
    head.cli(&format!("drive return {drive}"));
    judge::until("the resync ends", 120, || head.health() == "optimal");
    // Now only the returned legs are left: what they hold is what counts.
    head.cli(&format!("drive fail {}", head.drive("a")));
    io(&head, &image, &["read -P 1 0 16M", "read -P 2 16M 16M", "read -P 1 32M 96M"]);
    let refused = head.refused(&format!("drive fail {drive}"));
    refused.names(&["last"]);
    io(&head, &image, &["read -P 2 16M 16M"]);
}
