//! libiscsi's tools: an initiator and a conformance suite that are not ours.

use judge::Head;
use lab::skipped;

const ME: &str = "iqn.2026-01.org.millrace.judge:libiscsi";

/// A head with the volume `tank/v` of 64 MiB given to this initiator; the volume's URL.
fn given(name: &str, block: u32) -> (Head, String) {
    let head = Head::with_tank(name);
    let lun = head.give("v", "64M", block, "judge", &format!("--iqn {ME} --iqn {ME}-2"));
    let url = format!("iscsi://127.0.0.1:3260/{}/{lun}", head.iqn());
    (head, url)
}

#[test]
fn libiscsi_lists_inspects_and_measures_a_volume() {
    if skipped("libiscsi's tools") {
        return;
    }
    let (head, url) = given("libiscsi-tools", 512);
    let said = head.run(&format!("iscsi-ls -s -i {ME} iscsi://127.0.0.1:3260"), 30).stdout;
    assert!(said.contains(&head.iqn()) && said.contains("DIRECT_ACCESS"), "{said}");
    let said = head.run(&format!("iscsi-inq -i {ME} {url}"), 30).stdout;
    assert!(said.contains("Peripheral Device Type:DIRECT_ACCESS"), "{said}");
    for page in ["0x00", "0x80", "0x83", "0xb0", "0xb1", "0xb2"] {
        let said = head.run(&format!("iscsi-inq -i {ME} -e 1 -c $(({page})) {url}"), 30).stdout;
        assert!(said.trim().contains(':'), "page {page}: {said}");
    }
    let said = head.run(&format!("iscsi-readcapacity16 -i {ME} {url}"), 30).stdout;
    assert!(said.contains("Total size:67108864"), "{said}");
    let said = head.run(&format!("iscsi-perf -i {ME} -t 3 -m 32 -b 8 -r {url} 2>&1"), 30).stdout;
    assert!(said.contains("finished") && !said.to_lowercase().contains("fail"), "{said}");
    // Somebody unknown is not let in, and sees nothing.
    let other = head
        .net
        .try_run(&format!("iscsi-inq -i iqn.2026-01.org.nobody:x {url}"), std::time::Duration::from_secs(30));
    assert_ne!(other.expect("iscsi-inq").code, 0, "an unknown initiator was let in");
}

/// Families of libiscsi's suite that cover what the target promises to do.
const FAMILIES: &[&str] = &[
    "SCSI.TestUnitReady",
    "SCSI.Inquiry",
    "SCSI.Mandatory",
    "SCSI.ModeSense6",
    "SCSI.ReadCapacity10",
    "SCSI.ReadCapacity16",
    "SCSI.Read6",
    "SCSI.Read10",
    "SCSI.Read12",
    "SCSI.Read16",
    "SCSI.Write10",
    "SCSI.Write12",
    "SCSI.Write16",
    "SCSI.WriteSame10",
    "SCSI.WriteSame16",
    "SCSI.Unmap",
    "SCSI.GetLBAStatus.Simple",
    "SCSI.GetLBAStatus.BeyondEol",
    "iSCSI.iSCSIcmdsn",
    "iSCSI.iSCSIdatasn",
    "iSCSI.iSCSIResiduals",
    "iSCSI.iSCSITMF",
];

/// It writes 257 blocks in one command, whatever page B0h says of the longest transfer: 256 of 4096 bytes, and
/// SBC has more than the page says refused.
const OF_SHORT_BLOCKS: &str = "SCSI.GetLBAStatus.UnmapSingle";

fn conforms(block: u32) {
    let (head, url) = given(&format!("libiscsi-suite-{block}"), block);
    let mut failures = Vec::new();
    for family in FAMILIES.iter().chain((block == 512).then_some(&OF_SHORT_BLOCKS)) {
        let test = format!("iscsi-test-cu -d -n -i {ME} -I {ME}-2 -t {family} {url} 2>&1");
        let said = head.net.try_run(&test, std::time::Duration::from_secs(120));
        let said = said.map(|done| done.stdout).unwrap_or_else(|e| format!("{e:#}"));
        // CUnit's summary: tests, total, ran, passed, failed, inactive.
        let counts = said.lines().rev().find_map(|l| l.trim().strip_prefix("tests "));
        let counts: Vec<u32> =
            counts.unwrap_or("").split_whitespace().filter_map(|n| n.parse().ok()).collect();
        match counts[..] {
            [_, ran, passed, 0, ..] if ran > 0 && ran == passed => {}
            _ => failures.push(format!("{family} {counts:?}:\n{said}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} families:\n{}",
        failures.len(),
        FAMILIES.len(),
        failures.join("\n")
    );
}

#[test]
fn libiscsis_suite_passes_on_512_byte_blocks() {
    if !skipped("libiscsi's suite on 512-byte blocks") {
        conforms(512);
    }
}

#[test]
fn libiscsis_suite_passes_on_4096_byte_blocks() {
    if !skipped("libiscsi's suite on 4096-byte blocks") {
        conforms(4096);
    }
}

#[test]
fn chap_lets_in_who_knows_the_secret_and_nobody_else() {
    if skipped("CHAP") {
        return;
    }
    let (head, url) = given("libiscsi-chap", 512);
    let secret = head.dir.join("secret");
    std::fs::write(&secret, "correct horse battery").expect("a file");
    head.cli(&format!("host set judge --chap-secret-file {}", secret.display()));
    let inq = |user: &str| {
        let url = url.replace("iscsi://", &format!("iscsi://{user}"));
        head.net
            .try_run(&format!("iscsi-inq -i {ME} '{url}'"), std::time::Duration::from_secs(30))
            .expect("iscsi-inq")
            .code
    };
    assert_eq!(inq(&format!("{ME}%correct horse battery@")), 0, "the right secret");
    assert_ne!(inq(&format!("{ME}%correct horse batterz@")), 0, "a wrong secret");
    assert_ne!(inq("somebody%correct horse battery@"), 0, "a wrong user");
    assert_ne!(inq(""), 0, "no authentication at all");
    let shown = head.cli("host ls --json") + &head.cli("status --json") + &head.log();
    assert!(!shown.contains("correct horse"), "a secret is shown");
}
