//! `millrace drive locate`: the light at a drive's bay.
//!
//! Three kinds of things light one: an enclosure that Linux knows (SES), a port or drive with native enclosure management
//! (NPEM, Linux 6.13), and a hot-plug slot with an attention light. They are looked for in this order.

use super::files::Files;
use crate::context::Context;
use crate::failure::Failure;
use finding::{LegRefusal, NotInBay};
use std::path::PathBuf;
use topology::{Drive, Machine, Source, plain_name};

/// A drive by its name, path, serial number or slot.
fn find<'a>(m: &'a Machine, name: &str) -> Result<&'a Drive, LegRefusal> {
    let plain = plain_name(name);
    let is = |d: &&Drive| d.name == plain || d.serial.as_deref() == Some(name);
    let slot = |d: &&Drive| d.slot.as_deref() == Some(name);
    let missing = || LegRefusal::DriveNotInMachine { drive: plain.into() };
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
fn not_in_a_bay(name: &str) -> Option<NotInBay> {
    let (_, bare) = head::steward::split_shape(name).ok()?;
    match base::DriveKind::of(bare) {
        base::DriveKind::Ram { .. } => Some(NotInBay::Memory),
        base::DriveKind::Null => Some(NotInBay::Null),
        base::DriveKind::Path | base::DriveKind::File | base::DriveKind::Block => {
            let path = base::drive_kind::path_in(bare);
            let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
            Some(NotInBay::File { path: path.into(), bytes: file.len() })
        }
    }
}

/// A drive whose light was switched.
pub struct Lit {
    drive: String,
    slot: Option<String>,
}

/// Lights the bay of a drive of this machine, or no longer. The head's drives have a UUID, too.
pub fn switch(files: &mut Files, machine: &Machine, name: &str, on: bool) -> Result<Lit, LegRefusal> {
    let mut own = machine.own.iter().flat_map(|o| &o.drives);
    let name = own.find(|d| d.uuid.is_some_and(|u| u.to_string() == name)).map_or(name, |d| &d.path);
    if let Some(what) = not_in_a_bay(name) {
        return Err(LegRefusal::DriveWithoutBay { drive: name.into(), what });
    }
    let bare = head::steward::split_shape(name).map_or(name, |(_, bare)| base::drive_kind::path_in(bare));
    let drive = find(machine, bare)?;
    let (name, slot) = (drive.name.clone(), drive.slot.clone());
    let Some(file) = light(files, machine, drive) else {
        return Err(LegRefusal::BayWithoutLight { drive: name, slot });
    };
    match std::fs::write(&file, if on { "1" } else { "0" }) {
        Ok(()) => Ok(Lit { drive: name, slot }),
        Err(e) => {
            let path = file.display().to_string();
            Err(LegRefusal::BayLightStuck { drive: name, path, error: e.to_string() })
        }
    }
}

/// `millrace drive locate`.
pub fn locate(context: &Context, name: &str, on: bool) -> Result<String, Failure> {
    // What has no bay need not look at the machine.
    if let Some(what) = not_in_a_bay(name) {
        return Err(refused(LegRefusal::DriveWithoutBay { drive: name.into(), what }));
    }
    let machine = super::recording::here(context);
    let lit = switch(&mut Files::new("/"), &machine, name, on).map_err(refused)?;
    let next = if on { format!("millrace drive locate {name} --off") } else { String::new() };
    Ok(context.done(done(&lit, on), &next))
}

fn refused(why: LegRefusal) -> Failure {
    crate::words::refusal(&why.into()).into()
}

fn done(lit: &Lit, on: bool) -> String {
    let place = lit.slot.as_ref().map_or(String::new(), |s| format!(" (slot {s})"));
    let drive = &lit.drive;
    if on {
        format!("The locate light of {drive}{place} is on.")
    } else {
        format!("The locate light of {drive}{place} is off.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use topology::{Recorder, Recording};

    /// What the command line says.
    fn said(files: &mut Files, m: &Machine, name: &str, on: bool) -> Result<String, Failure> {
        switch(files, m, name, on).map(|lit| done(&lit, on)).map_err(refused)
    }

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
            let failure = match not_in_a_bay(&name) {
                Some(what) => refused(LegRefusal::DriveWithoutBay { drive: name, what }),
                None => panic!("{name}"),
            };
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
        let why = said(&mut files, &m, "nvme0n1", true).expect_err("no light");
        assert!(why.to_string().contains("no light is known for the bay of nvme0n1 (slot 7)"), "{why}");
        let why = said(&mut files, &m, "/dev/nvme9n1", true).expect_err("no drive");
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
        let words = said(&mut files, &m, "7", true).expect("lit");
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
