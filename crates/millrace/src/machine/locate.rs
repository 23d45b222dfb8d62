//! `millrace drive locate`: the light at a drive's bay.
//!
//! Three kinds of things light one: an enclosure that Linux knows (SES), a port or drive with native enclosure management
//! (NPEM, Linux 6.13), and a hot-plug slot with an attention light. They are looked for in this order.

use super::files::Files;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use base::size::print;
use finding::CommandFault;
use std::path::PathBuf;
use topology::{Drive, Machine, Source, plain_name};

/// A drive by its name, path, serial number or slot.
fn find<'a>(m: &'a Machine, name: &str) -> Result<&'a Drive, Failure> {
    let plain = plain_name(name);
    let is = |d: &&Drive| d.name == plain || d.serial.as_deref() == Some(name);
    let slot = |d: &&Drive| d.slot.as_deref() == Some(name);
    let missing = || {
        Failure::new(Exit::Refused, format!("there is no drive {plain} in this machine"))
            .with_next("millrace topology, which lists drives with their slots")
    };
    m.drives.iter().find(is).or_else(|| m.drives.iter().find(slot)).ok_or_else(missing)
}

/// The file that switches a drive's light, if there is one.
fn light(files: &mut Files, m: &Machine, drive: &Drive) -> Option<PathBuf> {
    let base = "/sys/class/enclosure";
    let block = files.link(&format!("/sys/block/{}", drive.name)).unwrap_or_default();
    for enclosure in files.list(base) {
        for component in files.list(&format!("{base}/{enclosure}")) {
            let folder = format!("{base}/{enclosure}/{component}");
            let below =
                files.link(&format!("{folder}/device")).is_some_and(|d| block.starts_with(&format!("{d}/")));
            let file = files.place(&format!("{folder}/locate"));
            if below && file.exists() {
                return Some(file);
            }
        }
    }
    let at = m.device(drive.device.as_deref()?)?;
    let near = core::iter::once(at).chain(m.above(at).take(1)).map(|d| m.devices[d].address.clone());
    for address in near {
        let file = files.place(&format!("/sys/class/leds/{address}:enclosure:locate/brightness"));
        if file.exists() {
            return Some(file);
        }
    }
    let slot = drive.device.as_deref()?.split('.').next()?;
    for label in files.list("/sys/bus/pci/slots") {
        let folder = format!("/sys/bus/pci/slots/{label}");
        let here = files.read(&format!("{folder}/address")).is_ok_and(|a| a.trim_ascii() == slot.as_bytes());
        let file = files.place(&format!("{folder}/attention"));
        if here && file.exists() {
            return Some(file);
        }
    }
    None
}

/// What a drive is that is no device, and so in no bay; None for what may be one.
fn not_in_a_bay(name: &str) -> Option<Failure> {
    let (_, bare) = head::steward::split_shape(name).ok()?;
    let path = base::drive_kind::path_in(bare);
    let drives = || "millrace drive ls".to_string();
    let (what, next) = match base::DriveKind::of(bare) {
        base::DriveKind::Ram { .. } => ("is memory of the daemon: there is no bay to light".into(), drives()),
        base::DriveKind::Null => ("forgets what is written: there is no bay to light".into(), drives()),
        base::DriveKind::Path | base::DriveKind::File | base::DriveKind::Block => {
            let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
            let size = print(file.len());
            let what =
                format!("is a file of {size}: only the drive that its file system lies on is in a bay");
            (what, format!("df {}, which names that drive", crate::words::topology::quoted(path)))
        }
    };
    Some(
        Failure::new(Exit::Refused, format!("{name} {what}"))
            .with_code(CommandFault::DriveWithoutBay)
            .with_next(next),
    )
}

/// Lights the bay of a drive, or no longer.
pub fn locate(context: &Context, name: &str, on: bool) -> Result<String, Failure> {
    if let Some(refused) = not_in_a_bay(name) {
        return Err(refused);
    }
    let machine = super::recording::here(context);
    let done = switch(&mut Files::new("/"), &machine, name, on)?;
    let next = if on { format!("millrace drive locate {name} --off") } else { String::new() };
    Ok(context.done(done, &next))
}

fn switch(files: &mut Files, machine: &Machine, name: &str, on: bool) -> Result<String, Failure> {
    let drive = find(machine, name)?;
    let place = drive.slot.as_ref().map_or(String::new(), |s| format!(" (slot {s})"));
    let Some(file) = light(files, machine, drive) else {
        let what = format!(
            "no light is known for the bay of {}{place}: neither an enclosure nor its port nor a hot-plug slot has one",
            drive.name
        );
        return Err(Failure::new(Exit::Refused, what)
            .with_next(format!("ledctl locate=/dev/{}, from the package ledmon", drive.name)));
    };
    std::fs::write(&file, if on { "1" } else { "0" }).map_err(|e| {
        Failure::new(Exit::Refused, format!("{} cannot be written: {e}", file.display()))
            .with_next("the same command as root")
    })?;
    Ok(if on {
        format!("The locate light of {}{place} is on.", drive.name)
    } else {
        format!("The locate light of {}{place} is off.", drive.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use topology::{Recorder, Recording};

    fn machine(files: &mut Files) -> Machine {
        let recording: Recording = Recorder::begin(files, "2026-11-22T08:00:00Z", false).end();
        Machine::of(&recording)
    }

    /// A tree with an NVMe drive at 0000:01:00.0 below a port at 0000:00:01.0.
    fn tree() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        let device = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
        let block = format!("{device}/nvme/nvme0/nvme0n1");
        for dir in [&block, "sys/block", "sys/bus/pci/devices", "sys/class/nvme", "sys/bus/pci/slots/7"] {
            fs::create_dir_all(at(dir)).expect("made");
        }
        fs::write(at(&format!("{block}/size")), "2048000\n").expect("written");
        fs::write(at("sys/bus/pci/slots/7/address"), "0000:01:00\n").expect("written");
        for (class, address) in [("0x010802", device), ("0x060400", "sys/devices/pci0000:00/0000:00:01.0")] {
            fs::write(at(&format!("{address}/class")), class).expect("written");
            let name = address.rsplit('/').next().expect("a name");
            symlink(at(address), at(&format!("sys/bus/pci/devices/{name}"))).expect("linked");
        }
        symlink(at(&block), at("sys/block/nvme0n1")).expect("linked");
        symlink(at(&format!("{device}/nvme/nvme0")), at("sys/class/nvme/nvme0")).expect("linked");
        let files = Files::new(folder.path());
        (folder, files)
    }

    #[test]
    fn a_drive_that_is_no_device_is_told_what_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("d.img").display().to_string();
        fs::File::create(&path).and_then(|f| f.set_len(64 << 20)).expect("a file");
        for (name, words) in [
            ("ram:1G".to_string(), "ram:1G is memory of the daemon"),
            ("null:1T".into(), "forgets what is written"),
            (path.clone(), "is a file of 64M"),
            (format!("file:{path}?size=1G"), "is a file of 64M"),
            (format!("shape:hang@{path}"), "is a file of 64M"),
        ] {
            let failure = not_in_a_bay(&name).expect(&name);
            assert!(failure.message.contains(words), "{failure}");
        }
        for name in ["/dev/null", "nvme0n1", "S64GNE0R501", "7"] {
            assert_eq!(not_in_a_bay(name), None, "{name}");
        }
    }

    #[test]
    fn a_bay_without_a_light_is_said_to_have_none_and_a_drive_that_is_not_there_too() {
        let (_folder, mut files) = tree();
        let m = machine(&mut files);
        let why = switch(&mut files, &m, "nvme0n1", true).expect_err("no light");
        assert!(why.to_string().contains("no light is known for the bay of nvme0n1 (slot 7)"), "{why}");
        let why = switch(&mut files, &m, "/dev/nvme9n1", true).expect_err("no drive");
        assert!(why.to_string().contains("there is no drive nvme9n1"), "{why}");
    }

    #[test]
    fn a_slot_a_port_and_an_enclosure_light_it_the_last_before_the_others() {
        let (folder, mut files) = tree();
        let m = machine(&mut files);
        let at = |path: &str| folder.path().join(path);
        let is = |path: &str, text: &str| assert_eq!(fs::read_to_string(at(path)).expect(path), text);
        let slot = "sys/bus/pci/slots/7/attention";
        fs::write(at(slot), "0").expect("written");
        let words = switch(&mut files, &m, "7", true).expect("lit");
        assert_eq!(words, "The locate light of nvme0n1 (slot 7) is on.");
        is(slot, "1");
        let port = "sys/class/leds/0000:00:01.0:enclosure:locate";
        fs::create_dir_all(at(port)).expect("made");
        fs::write(at(&format!("{port}/brightness")), "0").expect("written");
        switch(&mut files, &m, "/dev/nvme0n1", true).expect("lit");
        is(&format!("{port}/brightness"), "1");
        let bay = "sys/class/enclosure/0:0:0:0/Slot 7";
        fs::create_dir_all(at(bay)).expect("made");
        fs::write(at(&format!("{bay}/locate")), "0").expect("written");
        symlink(at("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"), at(&format!("{bay}/device")))
            .expect("linked");
        switch(&mut files, &m, "nvme0n1", true).expect("lit");
        is(&format!("{bay}/locate"), "1");
        switch(&mut files, &m, "nvme0n1", false).expect("dark");
        is(&format!("{bay}/locate"), "0");
        is(slot, "1");
    }
}
