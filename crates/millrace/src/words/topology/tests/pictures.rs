//! Words in pictures, and of recordings.

use super::machines;
use crate::words::topology::{gap, label, recording_error, wear};
use topology::{Gap, Machine, Recording, Silent, Wear};

fn svg(recording: &Recording) -> String {
    topology::svg(&Machine::of(recording), &label)
}

#[test]
fn a_picture_says_what_passes_and_what_is_not_known() {
    let two = svg(&machines::two_sockets());
    assert!(two.contains("passes 12.8 GB/s of 19.1 GB/s"), "{two}");
    let mut recording = machines::two_sockets();
    recording.put("/sys/bus/pci/devices/0000:19:00.0/numa_node", "-1\n");
    assert!(svg(&recording).contains("these do not report their node"));
}

#[test]
fn wear_is_told_by_what_the_drive_says() {
    for (why, words) in [
        (Wear::LifeUsed { used: 104 }, "it is worn: 104 % of its rated life is used"),
        (Wear::LifeFarOver, "it is worn: more than 254 % of its rated life is used"),
        (
            Wear::SpareLow { left: Some(4), limit: Some(10) },
            "it is worn, its spare blocks run out: 4 % are left, and 10 % is its limit",
        ),
        (Wear::ReadOnly { used: 7 }, "it is worn, it takes no more writes (7 % of its rated life is used)"),
    ] {
        assert_eq!(wear(&why), words);
    }
}

#[test]
fn what_could_not_be_read_is_told() {
    for (of, words) in [
        (
            Gap::HealthUnknown { drives: 1, why: Silent::NeedsRoot },
            "how worn 1 NVMe drive may be is not known: asking them needs root",
        ),
        (
            Gap::LinkSpeedUnknown { devices: 1 },
            "1 device does not report its link speed: its link is left out",
        ),
        (
            Gap::LinkSpeedUnknown { devices: 2 },
            "2 devices do not report their link speed: those links are left out",
        ),
        (Gap::CutOff, "it has no end: the recording was cut off, and what followed is missing"),
    ] {
        assert_eq!(gap(&of), words);
    }
    let error = Recording::decode(b"").expect_err("nothing");
    assert_eq!(recording_error(&error), "it is no recording: its first line is not \"millrace recording 1\"");
}
