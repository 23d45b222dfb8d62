//! What could not be read of a machine, how worn drives are, and what stands in its picture.

use topology::{Gap, Label, RecordingError, Silent, Wear};

/// What could not be read.
pub fn gap(gap: &Gap) -> String {
    match gap {
        Gap::LaterVersion { version, known } => format!(
            "it is of version {version} and this program knows {known}: what is new in it is left out"
        ),
        Gap::CutOff => "it has no end: the recording was cut off, and what followed is missing".into(),
        Gap::UnknownLines { lines } => format!("{lines} of its lines mean nothing and are left out"),
        Gap::TooManyFiles { most, left_out } => {
            format!("it lists more than {most} files: {left_out} are left out")
        }
        Gap::CpusUnknown => "the CPUs are not listed".into(),
        Gap::SiblingsUnknown { cpus } => {
            format!("{cpus} CPUs do not report which others are threads of the same core")
        }
        Gap::ClassUnknown { devices } => format!("{devices} PCI devices do not say what they are"),
        Gap::CapabilitiesUnread => {
            "PCIe capabilities need root to be read: packet sizes, ASPM and slot numbers are not known".into()
        }
        Gap::LinkSpeedUnknown { devices: 1 } => {
            "1 device does not report its link speed: its link is left out".into()
        }
        Gap::LinkSpeedUnknown { devices } => {
            format!("{devices} devices do not report their link speed: those links are left out")
        }
        Gap::InterruptsUnread => "interrupts could not be read".into(),
        Gap::HealthUnknown { drives, why } => {
            let them = if *drives == 1 { "drive" } else { "drives" };
            let why = match why {
                Silent::NeedsRoot => "asking them needs root",
                Silent::NoAnswer => "they were asked and did not answer",
                Silent::NoLog => "what they answered is no health log",
            };
            format!("how worn {drives} NVMe {them} may be is not known: {why}")
        }
        Gap::StatusBroken { error } => format!("the daemon's status is not JSON: {error}"),
        Gap::StatusNoObject => "the daemon's status is not an object".into(),
    }
}

/// Why a drive should be replaced: half a sentence.
pub fn wear(wear: &Wear) -> String {
    match wear {
        Wear::SpareLow { left: Some(left), limit: Some(limit) } => {
            format!("it is worn, its spare blocks run out: {left} % are left, and {limit} % is its limit")
        }
        Wear::SpareLow { .. } => "it is worn, its spare blocks run out".into(),
        Wear::ReadOnly { used } => {
            format!("it is worn, it takes no more writes ({used} % of its rated life is used)")
        }
        Wear::Unreliable { used } => {
            format!("it is worn, it is no longer reliable ({used} % of its rated life is used)")
        }
        Wear::LifeUsed { used } => format!("it is worn: {used} % of its rated life is used"),
        Wear::LifeFarOver => "it is worn: more than 254 % of its rated life is used".into(),
    }
}

/// Why a text is no recording.
pub fn recording_error(error: &RecordingError) -> String {
    match error {
        RecordingError::NotOne { known } => {
            format!("it is no recording: its first line is not \"millrace recording {known}\"")
        }
        RecordingError::TooLong { bytes, most } => {
            format!("it is too long for a recording: {bytes} bytes, {most} are read")
        }
    }
}

/// What stands in a picture.
pub fn label(label: &Label) -> String {
    match label {
        Label::PassesLess { mb, below_mb } => format!("passes {} of {} below it", gb(*mb), gb(*below_mb)),
        Label::PassesAll { mb, below_mb } => {
            format!("passes {}, all that is below it ({})", gb(*mb), gb(*below_mb))
        }
        Label::ProcessorPorts => "ports of the processor".into(),
        Label::NodeUnknown => "these do not report their node".into(),
        Label::Has { sockets, cores, threads, memory_kib } => {
            let ids: Vec<String> = sockets.iter().map(u32::to_string).collect();
            let socket = if ids.is_empty() { String::new() } else { format!("socket {}, ", ids.join(" ")) };
            let memory = memory_kib.map_or(String::new(), |k| format!(", {} GiB", (k + (1 << 19)) >> 20));
            format!("{socket}{cores} cores, {threads} threads{memory}")
        }
        Label::MoreCores { cores } => format!("… and {cores} more cores"),
        Label::Payload => "Rates are what data passes, headers taken off.".into(),
        Label::RedBorder => "A red border: the link is slower than the drive could be.".into(),
        Label::Full => "full now".into(),
        Label::RedGround => "A red ground: it is at its limit now; `millrace explain` says more.".into(),
        Label::NotSeen { gaps } => {
            let words: Vec<String> = gaps.iter().map(gap).collect();
            format!("Not seen: {}.", words.join("; "))
        }
    }
}

fn gb(mb: f64) -> String {
    if mb < 1000.0 { format!("{mb:.0} MB/s") } else { format!("{:.1} GB/s", mb / 1000.0) }
}
