//! What is read from each of the machines, and from nonsense.

use crate::machines;
use topology::{Class, DriveKind, Gap, Label, Machine, PortKind, Recording, Silent};

/// A picture with labels that nobody has words for.
fn svg(m: &Machine) -> String {
    topology::svg(m, &|label: &Label| format!("{label:?}"))
}

fn machine(recording: &Recording) -> Machine {
    Machine::of(recording)
}

#[test]
fn the_machines_in_the_folder_are_those_of_the_generator() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/machines");
    for (name, recording) in machines::all() {
        let path = format!("{folder}/{name}.rec");
        let text = recording.encode();
        if std::env::var_os("UPDATE_MACHINES").is_some() {
            std::fs::write(&path, &text).expect("the folder can be written");
        }
        let kept = std::fs::read_to_string(&path).expect("the recording is there");
        assert!(kept == text, "{path} differs from tests/all/machines.rs: UPDATE_MACHINES=1 writes it");
    }
}

#[test]
fn each_kept_machine_is_drawn_explained_planned_and_tuned() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/machines");
    let mut kept: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .filter_map(|e| e.ok()?.file_name().into_string().ok()?.strip_suffix(".rec").map(String::from))
        .collect();
    kept.sort();
    let named = ["two-sockets", "gen1-slot", "laptop", "guest", "four-sockets", "recorded"];
    assert!(named.iter().all(|n| kept.iter().any(|k| k == n)), "{kept:?}");
    for name in kept {
        let bytes = std::fs::read(format!("{folder}/{name}.rec")).expect("a file");
        let recording = Recording::decode(&bytes).expect("a recording");
        let m = machine(&recording);
        assert!(!m.cpus.is_empty() && !m.drives.is_empty(), "{name}");
        assert!(is_well_formed(&svg(&m)), "{name}");
        // Without a head, or with one that was read once, there is nothing to explain, and it says so.
        let told = topology::explain::explain(&m);
        assert!(m.own_later.is_some() || told.findings.is_empty(), "{name}: {told:?}");
        let site = topology::plan::Site::of(&m);
        let names: Vec<String> =
            m.drives.iter().filter(|d| Machine::is_hardware(d)).map(|d| d.name.clone()).collect();
        let (arrays, _) = topology::plan::propose(&site, &names, 1).expect("its own drives");
        let plan = topology::plan::plan(&site, &arrays).expect("a plan");
        assert_eq!((plan.arrays.len(), plan.predictions.len()), (names.len(), 4), "{name}");
        let settings = topology::tune::settings(&m, &recording);
        assert!(settings.len() >= 3, "{name}: {settings:?}");
    }
}

#[test]
fn two_sockets_have_two_banks_and_every_link() {
    let m = machine(&machines::two_sockets());
    assert_eq!((m.sockets.len(), m.nodes.len(), m.cpus.len()), (2, 2, 64));
    assert_eq!((m.sockets[0].cores, m.sockets[1].cores), (16, 16));
    assert_eq!(m.cpus[2].siblings, [2, 34]);
    assert_eq!((m.drives.len(), m.ports.len()), (24, 4));
    let banks: Vec<usize> =
        (0..m.devices.len()).filter(|d| m.devices[*d].port == PortKind::SwitchUp).collect();
    assert_eq!(banks.len(), 2);
    let (uplink, sum) = m.shared(banks[0]).expect("all links are known");
    assert!((12_000.0..13_100.0).contains(&uplink), "{uplink}");
    assert!((19_000.0..20_000.0).contains(&sum), "twelve drives of two lanes: {sum}");
    let d = m.drive_at("/dev/nvme13n1").expect("it is there");
    assert_eq!((d.slot.as_deref(), m.node_of(d)), (Some("22"), Some(1)));
    assert_eq!((d.queues, d.queue_depth), (8, Some(1024)));
    let t = d.temperature.expect("a sensor");
    assert!((t.now - 39.85).abs() < 0.01 && t.warning == Some(69.85), "{t:?}");
    // The slots have four lanes; a drive with two ports has two for each.
    let link =
        m.devices[m.device(d.device.as_deref().expect("a device")).expect("known")].link.expect("known");
    assert_eq!(link.now.map(|l| l.name()), Some("Gen3 x2".into()));
    assert_eq!((link.degraded(), link.held_back_by_slot()), (None, None));
    assert!(m.gaps.is_empty(), "{:?}", m.gaps);
    let shared = m.legs_sharing_a_bank();
    assert_eq!(shared.len(), 1, "{shared:?}");
    assert_eq!((shared[0].array, shared[0].switch.as_str()), (3, "0000:17:00.0"));
    let own = m.own.expect("a status");
    assert_eq!(own.shards.iter().map(|s| s.core).collect::<Vec<_>>(), [Some(2), Some(3), Some(18), Some(19)]);
}

#[test]
fn a_slow_slot_is_told_from_a_link_that_trained_badly() {
    let m = machine(&machines::gen1_slot());
    let link = |name: &str| {
        let d = m.drive_at(name).expect("there");
        m.devices[m.device(d.device.as_deref().expect("one")).expect("known")].link.expect("known")
    };
    let (now, could) = link("nvme0n1").held_back_by_slot().expect("the slot is of the first generation");
    assert_eq!((now.name(), could.name()), ("Gen1 x4".into(), "Gen3 x4".into()));
    assert_eq!(link("nvme0n1").degraded(), None);
    assert!((link("nvme0n1").payload_mb().expect("known") - 832.0).abs() < 8.0);
    let m = machine(&machines::four_sockets());
    let d = m.drive_at("nvme7n1").expect("there");
    let link = m.devices[m.device(d.device.as_deref().expect("one")).expect("known")].link.expect("known");
    let (now, could) = link.degraded().expect("two of four lanes");
    assert_eq!((now.name(), could.name()), ("Gen4 x2".into(), "Gen4 x4".into()));
    assert_eq!((m.cpus.len(), m.sockets.len(), m.nodes.len()), (224, 4, 4));
}

#[test]
fn how_worn_drives_are_is_read_and_what_was_refused_is_named() {
    let mut recording = machines::gen1_slot();
    let m = machine(&recording);
    let used: Vec<_> = m.drives.iter().map(|d| d.health.as_ref().map(|h| (h.used, h.spare))).collect();
    assert_eq!(used, [3, 4, 5, 6].map(|used| Some((used, Some(100)))));
    // Linux' sensor has limits, the drive's own has none.
    let without = |drop: &str| {
        let text: String =
            recording.encode().lines().filter(|l| !l.contains(drop)).map(|l| format!("{l}\n")).collect();
        machine(&Recording::decode(text.as_bytes()).expect("a recording"))
    };
    let t = without("/sys/class/hwmon").drives[0].temperature.expect("the drive tells it");
    assert_eq!((t.now, t.warning), (41.0, None));
    // A recording of before has none of it, and that is no gap.
    let before = without("/nvme/");
    assert!(before.drives.iter().all(|d| d.health.is_none()) && before.gaps == m.gaps, "{:?}", before.gaps);
    let refused = recording
        .encode()
        .replace("f /nvme/nvme2/health ", "# ")
        .replace("\nend\n", "\nm /nvme/nvme2/health refused\nend\n");
    let m = machine(&Recording::decode(refused.as_bytes()).expect("a recording"));
    assert!(m.gaps.contains(&Gap::HealthUnknown { drives: 1, why: Silent::NeedsRoot }), "{:?}", m.gaps);
    recording.put("/nvme/nvme3/health", "ffff");
    recording.put("/nvme/nvme1/health", "0x17");
    let m = machine(&recording);
    assert!(m.gaps.contains(&Gap::HealthUnknown { drives: 2, why: Silent::NoLog }), "{:?}", m.gaps);
    assert_eq!(m.drives.iter().filter(|d| d.health.is_some()).count(), 2);
}

#[test]
fn a_laptop_has_cores_of_two_kinds() {
    let m = machine(&machines::laptop());
    assert_eq!((m.cpus.len(), m.sockets[0].cores), (12, 8));
    assert!(m.gaps.contains(&Gap::LinkSpeedUnknown { devices: 1 }), "{:?}", m.gaps);
}

#[test]
fn a_guest_shows_nothing_and_nothing_is_concluded() {
    let m = machine(&machines::guest());
    assert!(m.guest);
    assert_eq!((m.drives.len(), m.drives[0].kind), (1, DriveKind::Virtio));
    assert_eq!(m.drives[0].device.as_deref(), Some("0000:00:03.0"));
    assert!(m.devices.iter().all(|d| d.link.is_none()));
    assert_eq!(m.ports[0].speed_mbit, None);
}

#[test]
fn without_root_ports_are_known_by_their_place() {
    let mut from = machines::two_sockets();
    let names = from.list("/sys/bus/pci/devices");
    let mut bare = Recording::decode(from.encode().as_bytes()).expect("one");
    for name in &names {
        bare.put(&format!("/sys/bus/pci/devices/{name}/config"), "");
    }
    let (with, without) = (machine(&from), machine(&bare));
    let ports = |m: &Machine| m.devices.iter().map(|d| (d.port, d.link)).collect::<Vec<_>>();
    assert_eq!(ports(&with), ports(&without));
    assert!(without.gaps.contains(&Gap::CapabilitiesUnread), "{:?}", without.gaps);
    from.put("/x", "");
}

#[test]
fn links_that_tell_nothing_lead_to_no_conclusion() {
    let mut from = machines::gen1_slot();
    for (file, value) in [
        ("current_link_speed", "Unknown"),
        ("current_link_width", "0"),
        ("max_link_width", "255"),
        ("config", ""),
    ] {
        for at in ["0000:01:00.0", "0000:00:01.0"] {
            from.put(&format!("/sys/bus/pci/devices/{at}/{file}"), value);
        }
    }
    let m = machine(&from);
    let link = m.devices[m.device("0000:01:00.0").expect("there")].link;
    assert!(
        link.is_none_or(|l| l.now.is_none() && l.degraded().is_none() && l.held_back_by_slot().is_none())
    );
    assert!(m.gaps.contains(&Gap::LinkSpeedUnknown { devices: 1 }), "{:?}", m.gaps);
}

#[test]
fn thousands_of_cpus_are_read() {
    let mut b = machines::Builder::new("huge", "V", "P", "C");
    b.cpus(16, 128, 2, 64);
    let m = machine(&b.end());
    assert_eq!((m.cpus.len(), m.sockets.len()), (4096, 16));
    assert_eq!(m.sockets.iter().map(|s| s.cores).sum::<u32>(), 2048);
}

#[test]
fn parents_that_form_a_ring_are_no_parents() {
    let mut from = Recording::default();
    for (name, path) in
        [("0000:00:01.0", "/a/0000:00:02.0/0000:00:01.0"), ("0000:00:02.0", "/a/0000:00:01.0/0000:00:02.0")]
    {
        from.put_link(&format!("/sys/bus/pci/devices/{name}"), path);
        from.put(&format!("/sys/bus/pci/devices/{name}/class"), "0x060400");
    }
    let m = machine(&from);
    assert!(m.devices.iter().all(|d| d.parent.is_none()));
    assert!(m.devices.iter().all(|d| d.class == Class::Bridge));
}

#[test]
fn nothing_at_all_is_a_machine_of_which_nothing_is_known() {
    let m = machine(&Recording::default());
    assert_eq!((m.cpus.len(), m.drives.len(), m.devices.len()), (0, 0, 0));
    assert!(!m.gaps.is_empty());
}

#[test]
fn a_recording_from_a_real_kernel_is_read() {
    let m = machine(&machines::recorded());
    assert_eq!((m.cpus.len(), m.sockets.len(), m.guest), (2, 1, true));
    let disk = m.drive_at("/dev/vda").expect("it has one");
    assert_eq!((disk.kind, disk.device.as_deref()), (DriveKind::Virtio, Some("0000:00:02.0")));
    assert!(m.interrupts.iter().any(|i| i.device.as_deref() == Some("0000:00:02.0") && i.rate().is_some()));
    assert!(m.cpus.iter().all(|c| c.busy.is_some()) && m.seconds.is_some());
    assert!(machines::recorded().anonymous && m.host.is_some_and(|h| h.starts_with("host-")));
}

#[test]
fn nodes_and_switches_of_a_real_kernel_are_read() {
    let m = machine(&machines::nodes());
    assert_eq!((m.cpus.len(), m.sockets.len(), m.nodes.len(), m.guest), (4, 2, 2, true));
    let near = |drive: &str| {
        let at = m.drive_at(drive).and_then(|d| d.device.clone()).expect("a device");
        let device = m.devices.iter().find(|d| d.address == at).expect("it is in the tree");
        let above = device.parent.map(|i| m.devices[i].port).expect("a port");
        (device.node, above, device.slot.clone())
    };
    let slot = |n: &str| Some(n.to_owned());
    assert_eq!(near("/dev/nvme0n1"), (Some(1), PortKind::RootPort, slot("4")));
    assert_eq!(near("/dev/nvme1n1"), (Some(1), PortKind::RootPort, slot("5")));
    assert_eq!(near("/dev/nvme2n1"), (Some(0), PortKind::SwitchDown, slot("2")));
    assert_eq!(near("/dev/nvme3n1"), (Some(0), PortKind::SwitchDown, slot("3")));
}

/// Whether every element that is opened is closed, in order, and text has no bare `<` or `&`.
fn is_well_formed(svg: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let Some((tag, text)) = part.split_once('>') else { return false };
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or("");
        let entities = text.split('&').skip(1).chain(tag.split('&').skip(1));
        if !entities.clone().all(|e| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|k| e.starts_with(k)))
        {
            return false;
        }
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => {
                if open.pop() != Some(name) {
                    return false;
                }
            }
            (false, false) => open.push(name),
            (false, true) => {}
        }
    }
    open.is_empty()
}

#[test]
fn pictures_of_all_machines_are_well_formed_and_name_the_drives() {
    for (name, recording) in machines::all() {
        let m = machine(&recording);
        let picture = svg(&m);
        assert!(is_well_formed(&picture), "{name}: {picture}");
        for drive in &m.drives {
            assert!(picture.contains(&drive.name), "{name}: {} is missing", drive.name);
        }
    }
    let picture = svg(&machine(&machines::two_sockets()));
    assert!(picture.contains("one bank") && picture.contains("PassesLess"), "{picture}");
}

#[test]
fn each_mark_in_a_picture_stands_for_one_array() {
    let mut recording = machines::two_sockets();
    let array = |n: u32| format!(r#"{{"layout":"single","legs":[{{"path":"/dev/nvme{n}n1"}}]}}"#);
    let own = format!(
        r#"{{"pools":[{{"name":"tank","arrays":[{},{}]}},{{"name":"fast","arrays":[{}]}}]}}"#,
        array(0),
        array(1),
        array(2)
    );
    let one = svg(&machine(&recording));
    assert_eq!(one.matches(">m0<").count(), 3, "two legs and the legend");
    recording.put("/millrace/status", &own);
    let two = svg(&machine(&recording));
    // Each on its drive and in the legend.
    for (label, times) in [(">a0<", 2), (">a1<", 2), (">b0<", 2), (">m0<", 0)] {
        assert_eq!(two.matches(label).count(), times, "{label}");
    }
}

#[test]
fn what_tells_no_node_is_drawn_apart_from_the_nodes_and_virtual_drives_by_their_name() {
    let mut recording = machines::two_sockets();
    let whole = svg(&machine(&recording));
    assert!(whole.contains(">node 0<") && whole.contains(">node 1<") && !whole.contains(">no node<"));
    recording.put("/sys/bus/pci/devices/0000:19:00.0/numa_node", "-1\n");
    let apart = svg(&machine(&recording));
    let at = |text: &str| apart.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at(">no node<") > at(">node 1<") && at(">nvme0n1<") > at(">no node<"));
    assert!(apart.contains("NodeUnknown"));
    // Where there is one node, everything is in it.
    let one = svg(&machine(&machines::gen1_slot()));
    assert!(one.contains(">node 0<") && !one.contains(">no node<"));
    let guest = svg(&machine(&machines::guest()));
    assert!(guest.contains("virtio 20 GB") && !guest.contains("SCSI"), "{guest}");
}

#[test]
fn a_picture_of_hostile_names_is_well_formed() {
    let mut from = machines::gen1_slot();
    from.put("/proc/sys/kernel/hostname", "<script>&\u{1}\"'");
    from.put("/sys/class/dmi/id/product_name", &"<&>".repeat(1000));
    assert!(is_well_formed(&svg(&machine(&from))));
    assert!(is_well_formed(&svg(&machine(&Recording::default()))));
}
