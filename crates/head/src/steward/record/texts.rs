//! What the files of the state directory say, and how: docs/formats/state.md.

use crate::order::{Cause, Event, EventLine, Refusal, Weight};
use crate::steward::context::probe::Probe;
use crate::steward::record::kept::KeptFile;
use crate::steward::record::text::{self, Section, TextError};
use crate::steward::state::{Identity, PoolRow};
use access::{Host, Hosts, parse_secret, print_secret};
use array::format::{MembershipRecord, RECORD_BYTES};
use base::codec::{hex, unhex};
use base::machine::StateError;
use base::view::{Moves, Portal, Protocol};
use base::{Instant, PortalId, Uuid};
use finding::{LineFault, RecordCause, RecordRefusal, StateFile};

pub(crate) const IDENTITY: &str = "identity";

pub(crate) const HOSTS: &str = "hosts";

pub(crate) const PORTALS: &str = "portals";

pub(crate) const POOLS: &str = "pools";

pub(crate) const POOLS_ARE: &str = "# Pools of this head, and where their drives were seen last.";

pub(crate) const EVENTS: &str = "events";

pub(crate) const WITNESS: &str = "witness-";

/// What went wrong with a file of the state directory.
pub(crate) fn state_cause(what: StateFile, error: &StateError) -> Cause {
    RecordCause::StateFailed { what, fault: error.into() }.into()
}

/// A refusal because the state directory failed us.
pub(crate) fn state_refusal(what: StateFile, error: &StateError) -> Refusal {
    match error {
        StateError::NoSpace => RecordRefusal::StateNoSpace { what }.into(),
        StateError::Missing | StateError::Failed(_) => {
            RecordRefusal::StateFailed { what, fault: error.into() }.into()
        }
    }
}

/// A file of the state directory by its name.
pub(crate) fn named(file: &str) -> StateFile {
    StateFile::Named { file: file.into() }
}

pub(crate) fn witness_name(pool: Uuid) -> String {
    format!("{WITNESS}{pool}")
}

pub(crate) fn witness_text(record: &[u8]) -> Vec<u8> {
    let end = record.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    let hex = hex(&record[..end]);
    format!("# The latest membership record of a pool: do not edit, do not copy to another machine.\nrecord = {hex}\n").into_bytes()
}

pub(crate) fn parse_witness(bytes: &[u8]) -> Option<MembershipRecord> {
    let sections = text::parse(bytes, &[("", &["record"])]).ok()?;
    let mut record = unhex(&sections[0].must("record").ok()?).filter(|r| r.len() <= RECORD_BYTES)?;
    record.resize(RECORD_BYTES, 0);
    MembershipRecord::decode(&record).ok()
}

pub(crate) fn parse_identity(bytes: &[u8]) -> Result<Identity, TextError> {
    let sections = text::parse(bytes, &[("", &["uuid", "nqn", "iqn", "serial"])])?;
    let s = &sections[0];
    let wrong = |why| TextError::new(s.line, why);
    let value = s.must("uuid")?;
    let uuid = value.parse().map_err(|_| wrong(LineFault::NoUuid { value }))?;
    let serial = s.must("serial")?;
    if serial.len() > 20 || !serial.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(wrong(LineFault::Serial));
    }
    let (nqn, iqn) = (s.must("nqn")?, s.must("iqn")?);
    access::check_nqn(&nqn).map_err(|e| wrong(of_access(e)))?;
    let iqn = access::normal_iqn(&iqn).map_err(|e| wrong(of_access(e)))?;
    Ok(Identity { uuid, nqn, iqn, serial })
}

fn of_access(error: finding::HostRefusal) -> LineFault {
    LineFault::Refused { why: Box::new(error.into()) }
}

pub(crate) fn identity_text(s: &Identity) -> String {
    let mut out = String::from("# Who this system is, for life: hosts know it by these names.\n");
    for (key, value) in [
        ("uuid", s.uuid.to_string()),
        ("nqn", s.nqn.clone()),
        ("iqn", s.iqn.clone()),
        ("serial", s.serial.clone()),
    ] {
        text::line(&mut out, key, &value);
    }
    out
}

pub(crate) fn parse_hosts(
    bytes: &[u8],
    mut new_id: impl FnMut() -> base::HostId,
) -> Result<Hosts, TextError> {
    let keys: &[&str] = &["nqn", "iqn", "chap_secret", "chap_user", "mutual_secret"];
    let mut hosts = Hosts::default();
    for s in text::parse(bytes, &[("", &[]), ("host", keys)])?.iter().skip(1) {
        let wrong = |why| TextError::new(s.line, why);
        let secret = |key: &str| match s.one(key)? {
            None => Ok(None),
            Some(text) => {
                let fault = |fault| LineFault::Secret { key: key.into(), fault };
                parse_secret(&text).map(Some).map_err(|why| wrong(fault(why)))
            }
        };
        let host = Host {
            id: new_id(),
            name: s.name.clone(),
            nqns: s.all("nqn"),
            iqns: s.all("iqn"),
            chap_secret: secret("chap_secret")?,
            chap_user: s.one("chap_user")?.unwrap_or_default(),
            mutual_secret: secret("mutual_secret")?,
        };
        hosts.add(host).map_err(|e| wrong(of_access(e)))?;
    }
    Ok(hosts)
}

pub(crate) fn hosts_text(hosts: &Hosts) -> String {
    let mut out =
        String::from("# Who may come. Secrets stand here in the clear: keep this file to yourself.\n");
    for h in hosts.iter() {
        text::section(&mut out, "host", &h.name);
        h.nqns.iter().for_each(|n| text::line(&mut out, "nqn", n));
        h.iqns.iter().for_each(|n| text::line(&mut out, "iqn", n));
        if let Some(s) = &h.chap_secret {
            text::line(&mut out, "chap_secret", &print_secret(s));
        }
        if !h.chap_user.is_empty() {
            text::line(&mut out, "chap_user", &h.chap_user);
        }
        if let Some(s) = &h.mutual_secret {
            text::line(&mut out, "mutual_secret", &print_secret(s));
        }
    }
    out
}

/// The word for a protocol.
pub(crate) fn protocol_word(p: Protocol) -> &'static str {
    match p {
        Protocol::Nvme => "nvme",
        Protocol::Discovery => "discovery",
        Protocol::Iscsi => "iscsi",
    }
}

/// Which head has a portal, from the word behind its number: nothing is said of the first one.
fn parse_head(word: &str) -> Option<u8> {
    ["head=a", "head=b"].iter().position(|w| *w == word).map(|head| head as u8)
}

/// How an address moves, from what is left of a line: nothing, or a prefix, or a prefix and an interface. The outer None: neither.
fn parse_moves<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Option<Moves>> {
    let Some(word) = words.next() else { return Some(None) };
    let prefix = word.strip_prefix('/')?.parse().ok()?;
    let interface = words.next().map(str::parse).transpose().ok()?;
    Some(Some(Moves { prefix, interface }))
}

/// Whether two portals would have the same address configured in two ways.
pub(crate) fn contradict(one: &Portal, other: &Portal) -> bool {
    let both = one.moves.is_some() && other.moves.is_some();
    both && one.address.ip() == other.address.ip() && one.moves != other.moves
}

/// Where the head listens, and the number that was given to a portal last.
pub(crate) fn parse_portals(bytes: &[u8]) -> Result<(Vec<Portal>, u16), TextError> {
    let sections = text::parse(bytes, &[("", &["portal", "last"])])?;
    let mut portals: Vec<Portal> = vec![];
    let mut highest: u16 = 0;
    for (line, _, value) in sections[0].entries.iter().filter(|(_, key, _)| key == "portal") {
        let error = |why| TextError::new(*line, why);
        let wrong = || error(LineFault::NoPortal { value: value.clone() });
        let mut words = value.split_whitespace();
        let word = words.next().ok_or_else(wrong)?;
        let all = [Protocol::Nvme, Protocol::Discovery, Protocol::Iscsi];
        let protocol = all.into_iter().find(|p| protocol_word(*p) == word).ok_or_else(wrong)?;
        let address = words.next().and_then(|w| w.parse().ok()).ok_or_else(wrong)?;
        let number = match words.next() {
            // Versions before this one counted the lines.
            None => highest.checked_add(1),
            Some(word) => word.parse().ok().filter(|n| *n > 0),
        };
        let number = number.ok_or_else(wrong)?;
        let mut words = words.peekable();
        let head = words.next_if(|w| w.starts_with("head=")).map_or(Some(0), parse_head).ok_or_else(wrong)?;
        let moves = parse_moves(&mut words).filter(|_| words.next().is_none()).ok_or_else(wrong)?;
        let id = PortalId(u32::from(number) - 1);
        if portals.iter().any(|p| p.id == id) {
            return Err(error(LineFault::PortalNumberTwice { number }));
        }
        highest = highest.max(number);
        let portal = Portal { id, protocol, address, head, moves };
        if moves.is_some_and(|m| m.check(address.ip()).is_err()) {
            return Err(error(LineFault::PortalImmovable { address: address.ip().to_string() }));
        }
        if let Some(other) = portals.iter().find(|p| contradict(p, &portal)) {
            return Err(error(LineFault::PortalMovesOtherwise { address: other.address.to_string() }));
        }
        portals.push(portal);
    }
    let last = match sections[0].one("last")? {
        None => highest,
        Some(word) => {
            word.parse().map_err(|_| TextError::new(0, LineFault::NoPortalNumber { value: word.clone() }))?
        }
    };
    Ok((portals, last))
}

pub(crate) fn portals_text(portals: &[Portal], last: u16) -> String {
    let mut out =
        String::from("# Where this head listens, under which numbers, and the number given last.\n");
    for Portal { id, protocol, address, moves, head } in portals {
        let mut line = format!("{} {address} {}", protocol_word(*protocol), id.0 + 1);
        if *head > 0 {
            line += " head=b";
        }
        if let Some(Moves { prefix, interface }) = moves {
            line += &format!(" /{prefix}");
            line.extend(interface.iter().flat_map(|name| [" ", name.as_str()]));
        }
        text::line(&mut out, "portal", &line);
    }
    text::line(&mut out, "last", &last.to_string());
    out
}

pub(crate) fn parse_pools(bytes: &[u8]) -> Result<Vec<PoolRow>, TextError> {
    let sections = text::parse(bytes, &[("", &[]), ("pool", &["name", "drive"])])?;
    let row = |s: &Section| {
        let uuid = s
            .name
            .parse()
            .map_err(|_| TextError::new(s.line, LineFault::NoUuid { value: s.name.clone() }))?;
        Ok(PoolRow { uuid, name: s.must("name")?, drives: s.all("drive") })
    };
    sections.iter().skip(1).map(row).collect()
}

/// The text of `pools` or `released`, which begins with a comment.
pub(crate) fn pools_text(comment: &str, pools: &[PoolRow]) -> String {
    let mut out = format!("{comment}\n");
    for p in pools {
        text::section(&mut out, "pool", &p.uuid.to_string());
        text::line(&mut out, "name", &p.name);
        p.drives.iter().for_each(|d| text::line(&mut out, "drive", d));
    }
    out
}

pub(crate) fn event_text(e: &EventLine) -> String {
    let clean = |s: &str| s.replace(['\t', '\n', '\r'], " ");
    // Last, so that an older program reads the line too.
    let monotonic = e.monotonic.map_or(String::new(), |at| format!("\t{}", at.0));
    let (what, message) = (clean(&e.what), e.event.to_line());
    format!("{}\t{}\t{}\t{what}\t{message}{monotonic}\n", e.number, e.at, e.weight.word())
}

/// Reads the log; lines that a crash or a cut at the front left incomplete are passed over.
pub(crate) fn parse_events(bytes: &[u8]) -> Vec<EventLine> {
    let text = String::from_utf8_lossy(bytes);
    let line = |l: &str| {
        let mut f = l.split('\t');
        let (number, at) = (f.next()?.parse().ok()?, f.next()?.parse().ok()?);
        let word = f.next()?;
        let weight = [Weight::Note, Weight::Warning, Weight::Error].into_iter().find(|w| w.word() == word)?;
        let what = f.next()?.into();
        let event = Event::from_line(weight, f.next()?);
        // Lines of older programs have none.
        let monotonic = f.next().and_then(|t| t.parse().ok()).map(Instant);
        Some(EventLine { number, at, monotonic, weight, what, event })
    };
    text.lines().filter_map(line).collect()
}

/// Gives bytes to every reader; what is understood is written and must be read as the same.
pub(crate) fn read_any(bytes: &[u8]) {
    if let Ok(system) = parse_identity(bytes) {
        assert!(parse_identity(identity_text(&system).as_bytes()) == Ok(system), "another identity");
    }
    if let Ok(hosts) = parse_hosts(bytes, || base::HostId(1)) {
        assert!(parse_hosts(hosts_text(&hosts).as_bytes(), || base::HostId(1)) == Ok(hosts), "other hosts");
    }
    if let Ok((portals, last)) = parse_portals(bytes) {
        let again = parse_portals(portals_text(&portals, last).as_bytes());
        assert!(again == Ok((portals, last)), "other portals");
    }
    if let Ok(pools) = parse_pools(bytes) {
        assert!(parse_pools(pools_text(POOLS_ARE, &pools).as_bytes()) == Ok(pools), "other pools");
    }
    if let Some(record) = parse_witness(bytes) {
        assert!(parse_witness(&witness_text(&record.encode())) == Some(record), "another witness");
    }
    if let Ok(file) = KeptFile::parse(bytes) {
        assert!(KeptFile::parse(file.text().as_bytes()) == Ok(file), "another kept configuration");
    }
    let events = parse_events(bytes);
    let text: String = events.iter().map(event_text).collect();
    assert!(parse_events(text.as_bytes()).len() == events.len(), "other events");
}

/// The names of a new system. The NQN is of the form that needs no domain (NVMe Base 4.5); the IQN's month
/// and domain are those of the project.
pub(crate) fn new_identity(uuid: Uuid) -> Identity {
    let hex: String = uuid.0[..10].iter().map(|b| format!("{b:02X}")).collect();
    Identity {
        nqn: format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"),
        iqn: format!("iqn.2026-01.org.millrace:{uuid}"),
        uuid,
        serial: hex,
    }
}

/// The first file of a head with this name, and what is in it: one that begins anew, where files of another one lay, has it before it starts.
pub fn first_file(uuid: Uuid) -> (&'static str, String) {
    (IDENTITY, identity_text(&new_identity(uuid)))
}

/// The file.
pub(crate) const RELEASED: &str = "released";

pub(crate) const RELEASED_IS: &str = "# Pools that this head let go of, and where their drives lay.";

/// In front of the path of a file that was made as a drive of the pool: the reactor takes it away with the drive, if it holds
/// nothing.
pub(crate) const MADE: &str = "made:";

/// In front of the path of a drive that leaves the pool with its array (`shrink`).
pub(crate) const LEAVES: &str = "leaves:";

/// Where a drive of the list lies.
pub(crate) fn path_of(listed: &str) -> &str {
    listed.strip_prefix(MADE).or_else(|| listed.strip_prefix(LEAVES)).unwrap_or(listed)
}

/// How a drive is listed that leaves its pool.
pub(crate) fn leaves(path: &str) -> String {
    format!("{LEAVES}{path}")
}

/// How a drive is listed.
pub(crate) fn listed(probe: &Probe) -> String {
    let path = &probe.info.path;
    if probe.info.made { format!("{MADE}{path}") } else { path.clone() }
}

/// The file.
pub(crate) const CREATING: &str = "creating";

pub(crate) const CREATING_IS: &str = "# Pools that are being made, and where their drives lie.";

#[cfg(test)]
mod tests {
    use super::*;
    use base::HostId;

    #[test]
    fn identity_portals_and_pools_survive_being_written() {
        let system = new_identity(Uuid::from_random(1, 2));
        assert_eq!(parse_identity(identity_text(&system).as_bytes()), Ok(system.clone()));
        assert_eq!(system.serial.len(), 20);
        let portals = b"portal = iscsi 10.0.0.1:3260\nportal = nvme [::1]:4420\n";
        // As versions wrote it that counted the lines.
        let (rows, last) = parse_portals(portals).expect("good");
        assert_eq!((rows[0].id, rows[1].id, last), (PortalId(0), PortalId(1), 2));
        let row = vec![rows[1]];
        assert_eq!(parse_portals(portals_text(&row, 9).as_bytes()), Ok((row, 9)));
        let heads = b"portal = iscsi 10.1.0.5:3260 3 head=b /24\nportal = nvme 10.1.0.6:4420 4 head=a\nportal = nvme 10.1.0.6:4421 5 head=b\n";
        let (rows, last) = parse_portals(heads).expect("good");
        assert_eq!(rows.iter().map(|p| p.head).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(parse_portals(portals_text(&rows, last).as_bytes()), Ok((rows, last)));
        assert!(parse_portals(b"portal = nvme 1.2.3.4:5 1 head=c").is_err());
        let moving = b"portal = iscsi 10.1.0.5:3260 3 /24 eth1\nportal = nvme 10.1.0.5:4420 4 /24 eth1\nportal = nvme [fd00::5]:4420 5 /64\n";
        let (rows, last) = parse_portals(moving).expect("good");
        let interface: Vec<_> = rows.iter().map(|p| p.moves.and_then(|m| m.interface)).collect();
        assert_eq!(interface, ["eth1".parse().ok(), "eth1".parse().ok(), None]);
        assert_eq!(parse_portals(portals_text(&rows, last).as_bytes()), Ok((rows, last)));
        let pools = vec![PoolRow {
            uuid: Uuid::from_random(3, 4),
            name: "tank".into(),
            drives: vec!["/a b".into(), "/c".into()],
        }];
        assert_eq!(parse_pools(pools_text(POOLS_ARE, &pools).as_bytes()), Ok(pools));
    }

    #[test]
    fn hosts_survive_being_written() {
        let text = "[host esx1]\nnqn = nqn.2014-08.org.nvmexpress:x\niqn = iqn.1998-01.com.example:a\nchap_secret = twelve-bytes!\nmutual_secret = 0x00112233445566778899aabb\n";
        let text = text.replace(":x", ":uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2");
        let hosts = parse_hosts(text.as_bytes(), || HostId(1)).expect("good");
        assert_eq!(parse_hosts(hosts_text(&hosts).as_bytes(), || HostId(1)), Ok(hosts));
    }

    #[test]
    fn files_that_cannot_be_read_say_where() {
        let line = |r: Result<Hosts, TextError>| r.map(|_| ()).map_err(|e| e.line);
        let id = || HostId(0);
        assert_eq!(line(parse_hosts(b"[host a]\nnqn = x", id)), Err(1));
        assert_eq!(line(parse_hosts(b"\n[host a]\nmodel = x", id)), Err(3));
        assert_eq!(
            line(parse_hosts(b"[host a]\niqn = iqn.1998-01.com.x:a\nchap_secret = short", id)),
            Err(1)
        );
        assert_eq!(parse_portals(b"portal = ftp 1.2.3.4:5").map_err(|e| e.line), Err(1));
        assert_eq!(parse_portals(b"\nportal = nvme nowhere").map_err(|e| e.line), Err(2));
        assert_eq!(parse_portals(b"portal = nvme 1.2.3.4:5 0").map_err(|e| e.line), Err(1));
        assert_eq!(parse_portals(b"portal = nvme 1.2.3.4:5 65536").map_err(|e| e.line), Err(1));
        let twice = b"portal = nvme 1.2.3.4:5 7\nportal = nvme 1.2.3.4:6 7";
        assert_eq!(parse_portals(twice).map_err(|e| e.line), Err(2));
        assert!(parse_portals(b"last = none").is_err());
        for moves in
            ["24", "/", "/33", "/0", "/-1", "/24 a/b", "/24 eth1 eth2", "eth1", "/24 sixteen-letters-"]
        {
            let line = format!("portal = nvme 10.1.0.5:5 1 {moves}");
            assert_eq!(parse_portals(line.as_bytes()).map_err(|e| e.line), Err(1), "{moves}");
        }
        assert!(parse_portals(b"portal = nvme 127.0.0.1:5 1 /8").is_err());
        let two_ways = b"portal = nvme 10.1.0.5:5 1 /24\nportal = nvme 10.1.0.5:6 2 /16";
        assert_eq!(parse_portals(two_ways).map_err(|e| e.line), Err(2));
        assert!(parse_identity(b"uuid = 1").is_err());
        assert!(parse_pools(b"[pool tank]\nname = tank").is_err());
    }

    #[test]
    fn a_witness_is_whole_or_none() {
        let leg = array::format::MemberLeg::new(Uuid([3; 16]), array::format::LegState::InSync);
        let row = array::format::RecordArray { epoch: 1, rivals: 0, legs: vec![leg] };
        let record = MembershipRecord::first(Uuid([1; 16]), Uuid([2; 16]), 5, vec![row]);
        let text = witness_text(&record.encode());
        assert_eq!(parse_witness(&text), Some(record));
        for cut in 0..text.len() - 1 {
            assert_eq!(parse_witness(&text[..cut]), None);
        }
    }

    #[test]
    fn the_log_is_read_back_and_broken_lines_are_passed_over() {
        let e = EventLine {
            number: 7,
            at: 9,
            monotonic: Some(Instant(11)),
            weight: Weight::Warning,
            what: "a\tb".into(),
            event: Event::from_line(Weight::Warning, "c\nd"),
        };
        let text = format!("half a line\n{}x\t", event_text(&e));
        let back = parse_events(text.as_bytes());
        assert_eq!(
            back,
            [EventLine { what: "a b".into(), event: Event::from_line(Weight::Warning, "c d"), ..e.clone() }]
        );
        let older = parse_events(b"7\t9\twarning\ta b\tc d\n");
        assert_eq!(older, [EventLine { monotonic: None, ..back[0].clone() }]);
    }
}
