//! What the files of the state directory say, and how: docs/formats/state.md.

use crate::order::{Cause, Event, EventLine, Refusal, Weight};
use crate::steward::context::probe::Probe;
use crate::steward::record::kept::{KEPT, KeptFile};
use crate::steward::state::{Identity, PoolRow};
use access::{Host, Hosts, parse_secret, print_secret};
use array::format::{MembershipRecord, RECORD_BYTES};
use base::codec::{hex, unhex};
use base::machine::StateError;
use base::view::{Moves, Portal, Protocol};
use base::{Instant, PortalId, Uuid};
use files::{Row, UnknownRow, content};
use finding::{ContentFault, FileFault, RecordCause, RecordRefusal, StateFile};

pub(crate) const IDENTITY: &str = "identity";

pub(crate) const HOSTS: &str = "hosts";

pub(crate) const PORTALS: &str = "portals";

pub(crate) const POOLS: &str = "pools";

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
        StateError::Missing | StateError::Failed(_) | StateError::Unsettled(_) => {
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

/// What a file says: what is understood, and rows that are kept as they are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Read<T> {
    pub value: T,
    pub unknown: Vec<UnknownRow>,
}

impl<T> Read<T> {
    fn all(value: T) -> Self {
        Self { value, unknown: vec![] }
    }
}

/// Rows of a file, those that are not understood apart.
fn split<T>(rows: Vec<Row<T>>) -> (Vec<T>, Vec<UnknownRow>) {
    let (mut known, mut unknown) = (vec![], vec![]);
    for row in rows {
        match row {
            Row::Known(row) => known.push(row),
            Row::Unknown(row) => unknown.push(row),
        }
    }
    (known, unknown)
}

/// Rows of a file: these, and those that are kept as they are.
fn joined<T>(known: impl Iterator<Item = T>, unknown: &[UnknownRow]) -> Vec<Row<T>> {
    known.map(Row::Known).chain(unknown.iter().cloned().map(Row::Unknown)).collect()
}

fn wrong(row: &str, why: ContentFault) -> FileFault {
    FileFault::Content { row: row.into(), why }
}

pub(crate) fn witness_file(name: &str, record: &[u8]) -> Vec<u8> {
    let end = record.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    files::seal(name, &content::Record { record: hex(&record[..end]) })
}

pub(crate) fn parse_witness(name: &str, bytes: &[u8]) -> Option<MembershipRecord> {
    let content::Record { record } = files::open(name, bytes).ok()?;
    let mut record = unhex(&record).filter(|r| r.len() <= RECORD_BYTES)?;
    record.resize(RECORD_BYTES, 0);
    MembershipRecord::decode(&record).ok()
}

pub(crate) fn parse_identity(bytes: &[u8]) -> Result<Read<Identity>, FileFault> {
    let content::Identity { uuid, nqn, iqn, serial } = files::open(IDENTITY, bytes)?;
    let parsed = uuid.parse().ok().filter(|uuid: &base::Uuid| !uuid.is_nil());
    let uuid = parsed.ok_or_else(|| wrong("", ContentFault::NoUuid { value: uuid.clone() }))?;
    if serial.len() > 20 || !serial.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(wrong("", ContentFault::Serial));
    }
    access::check_nqn(&nqn).map_err(|e| wrong("", of_access(e)))?;
    let iqn = access::normal_iqn(&iqn).map_err(|e| wrong("", of_access(e)))?;
    Ok(Read::all(Identity { uuid, nqn, iqn, serial }))
}

fn of_access(error: finding::HostRefusal) -> ContentFault {
    ContentFault::Refused { why: Box::new(error.into()) }
}

pub(crate) fn identity_file(s: &Identity) -> Vec<u8> {
    let Identity { uuid, nqn, iqn, serial } = s.clone();
    files::seal(IDENTITY, &content::Identity { uuid: uuid.to_string(), nqn, iqn, serial })
}

pub(crate) fn parse_hosts(
    bytes: &[u8],
    mut new_id: impl FnMut() -> base::HostId,
) -> Result<Read<Hosts>, FileFault> {
    let (rows, unknown) = split(files::open::<content::Hosts>(HOSTS, bytes)?.host);
    let mut hosts = Hosts::default();
    for row in rows {
        let wrong = |why| wrong(&row.name, why);
        let secret = |key: &str, text: &Option<String>| {
            let fault = |fault| wrong(ContentFault::Secret { key: key.into(), fault });
            text.as_ref().map(|text| parse_secret(text).map_err(fault)).transpose()
        };
        let host = Host {
            id: new_id(),
            name: row.name.clone(),
            nqns: row.nqn.clone(),
            iqns: row.iqn.clone(),
            chap_secret: secret("chap_secret", &row.chap_secret)?,
            chap_user: row.chap_user.clone().unwrap_or_default(),
            mutual_secret: secret("mutual_secret", &row.mutual_secret)?,
        };
        hosts.add(host).map_err(|e| wrong(of_access(e)))?;
    }
    Ok(Read { value: hosts, unknown })
}

pub(crate) fn hosts_file(hosts: &Hosts, unknown: &[UnknownRow]) -> Vec<u8> {
    let row = |h: &Host| content::Host {
        name: h.name.clone(),
        nqn: h.nqns.clone(),
        iqn: h.iqns.clone(),
        chap_secret: h.chap_secret.as_ref().map(print_secret),
        chap_user: (!h.chap_user.is_empty()).then(|| h.chap_user.clone()),
        mutual_secret: h.mutual_secret.as_ref().map(print_secret),
    };
    files::seal(HOSTS, &content::Hosts { host: joined(hosts.iter().map(row), unknown) })
}

/// The word for a protocol.
pub(crate) fn protocol_word(p: Protocol) -> &'static str {
    match p {
        Protocol::Nvme => "nvme",
        Protocol::Discovery => "discovery",
        Protocol::Iscsi => "iscsi",
    }
}

/// Whether two portals would have the same address configured in two ways.
pub(crate) fn contradict(one: &Portal, other: &Portal) -> bool {
    let both = one.moves.is_some() && other.moves.is_some();
    both && one.address.ip() == other.address.ip() && one.moves != other.moves
}

/// How an address moves. None: as no address can.
fn moves_of(row: &content::Portal) -> Option<Option<Moves>> {
    let Some(prefix) = row.prefix else { return row.interface.is_none().then_some(None) };
    let interface = row.interface.as_ref().map(|name| name.parse()).transpose().ok()?;
    Some(Some(Moves { prefix, interface }))
}

fn portal_of(row: &content::Portal) -> Option<Portal> {
    let all = [Protocol::Nvme, Protocol::Discovery, Protocol::Iscsi];
    let protocol = all.into_iter().find(|p| protocol_word(*p) == row.protocol)?;
    let head = match row.head.as_deref() {
        None | Some("a") => 0,
        Some("b") => 1,
        Some(_) => return None,
    };
    let id = PortalId(u32::from(row.number.checked_sub(1)?));
    Some(Portal { id, protocol, address: row.address.parse().ok()?, head, moves: moves_of(row)? })
}

/// Where the head listens, and the number that was given to a portal last.
pub(crate) fn parse_portals(bytes: &[u8]) -> Result<Read<(Vec<Portal>, u16)>, FileFault> {
    let content::Portals { last, portal } = files::open(PORTALS, bytes)?;
    let (rows, unknown) = split(portal);
    let mut portals: Vec<Portal> = vec![];
    for row in &rows {
        let wrong = |why| wrong(&row.address, why);
        let words = format!("{} {} {}", row.protocol, row.address, row.number);
        let portal = portal_of(row).ok_or_else(|| wrong(ContentFault::NoPortal { value: words }))?;
        let (ip, number) = (portal.address.ip(), row.number);
        if portals.iter().any(|p| p.id == portal.id) {
            return Err(wrong(ContentFault::PortalNumberTwice { number }));
        }
        if portals.iter().any(|p| p.address == portal.address) {
            return Err(wrong(ContentFault::PortalAddressTwice));
        }
        if portal.moves.is_some_and(|m| m.check(ip).is_err()) {
            return Err(wrong(ContentFault::PortalImmovable { address: ip.to_string() }));
        }
        if let Some(other) = portals.iter().find(|p| contradict(p, &portal)) {
            return Err(wrong(ContentFault::PortalMovesOtherwise { address: other.address.to_string() }));
        }
        portals.push(portal);
    }
    Ok(Read { value: (portals, last), unknown })
}

pub(crate) fn portals_file(portals: &[Portal], last: u16, unknown: &[UnknownRow]) -> Vec<u8> {
    let row = |p: &Portal| content::Portal {
        number: crate::steward::state::portal_number(p.id),
        protocol: protocol_word(p.protocol).into(),
        address: p.address.to_string(),
        head: (p.head > 0).then(|| "b".into()),
        prefix: p.moves.map(|m| m.prefix),
        interface: p.moves.and_then(|m| m.interface).map(|name| name.as_str().into()),
    };
    files::seal(PORTALS, &content::Portals { last, portal: joined(portals.iter().map(row), unknown) })
}

/// `pools`, `released` or `creating`.
pub(crate) fn parse_pools(name: &str, bytes: &[u8]) -> Result<Read<Vec<PoolRow>>, FileFault> {
    let (rows, unknown) = split(files::open::<content::Pools>(name, bytes)?.pool);
    let row = |content::Pool { uuid, name, drives }: content::Pool| {
        let uuid = uuid.parse().map_err(|_| wrong(&name, ContentFault::NoUuid { value: uuid.clone() }))?;
        Ok(PoolRow { uuid, name, drives })
    };
    Ok(Read { value: rows.into_iter().map(row).collect::<Result<_, _>>()?, unknown })
}

/// `pools`, `released` or `creating`.
pub(crate) fn pools_file(name: &str, pools: &[PoolRow], unknown: &[UnknownRow]) -> Vec<u8> {
    let row = |p: &PoolRow| content::Pool {
        uuid: p.uuid.to_string(),
        name: p.name.clone(),
        drives: p.drives.clone(),
    };
    files::seal(name, &content::Pools { pool: joined(pools.iter().map(row), unknown) })
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

/// What is wrong with a file that people may edit, by what its fields mean.
///
/// # Errors
/// It is not whole, or something in it cannot be used.
pub fn check_file(name: &str, bytes: &[u8]) -> Result<(), FileFault> {
    let damaged = |key: &str| wrong("", ContentFault::NoHex { key: key.into() });
    match name {
        IDENTITY => parse_identity(bytes).map(drop),
        HOSTS => parse_hosts(bytes, || base::HostId(1)).map(drop),
        PORTALS => parse_portals(bytes).map(drop),
        POOLS | RELEASED | CREATING => parse_pools(name, bytes).map(drop),
        _ if name.starts_with(WITNESS) => {
            files::check(name, bytes)?;
            parse_witness(name, bytes).map(drop).ok_or_else(|| damaged("record"))
        }
        _ if name.starts_with(KEPT) => KeptFile::parse(name, bytes).map(drop),
        _ => files::check(name, bytes).map(drop),
    }
}

/// Gives bytes to the reader of a file; what is understood is written and must be read as the same.
pub(crate) fn read_any(name: &str, bytes: &[u8]) {
    let id = || base::HostId(1);
    match name {
        IDENTITY => {
            let Ok(system) = parse_identity(bytes) else { return };
            assert!(parse_identity(&identity_file(&system.value)) == Ok(system), "another identity");
        }
        HOSTS => {
            let Ok(hosts) = parse_hosts(bytes, id) else { return };
            assert!(parse_hosts(&hosts_file(&hosts.value, &hosts.unknown), id) == Ok(hosts), "other hosts");
        }
        PORTALS => {
            let Ok(read) = parse_portals(bytes) else { return };
            let (portals, last) = &read.value;
            assert!(parse_portals(&portals_file(portals, *last, &read.unknown)) == Ok(read), "other portals");
        }
        POOLS | RELEASED | CREATING => {
            let Ok(read) = parse_pools(name, bytes) else { return };
            let again = pools_file(name, &read.value, &read.unknown);
            assert!(parse_pools(name, &again) == Ok(read), "other pools");
        }
        _ if name.starts_with(WITNESS) => {
            let Some(record) = parse_witness(name, bytes) else { return };
            assert!(
                parse_witness(name, &witness_file(name, &record.encode())) == Some(record),
                "another witness"
            );
        }
        _ if name.starts_with(KEPT) => {
            let Ok(file) = KeptFile::parse(name, bytes) else { return };
            assert!(KeptFile::parse(name, &file.bytes(name)) == Ok(file), "another kept configuration");
        }
        _ => drop(files::check(name, bytes)),
    }
}

/// The same for the log.
pub(crate) fn read_any_log(bytes: &[u8]) {
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

/// The first files of a head, in the order in which they are written: until the last one is there, it has not begun. A head that
/// begins anew, where files of another one lay, has them before it starts.
pub fn first_files(uuid: Uuid) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = lists_of_none();
    all.push((IDENTITY, identity_file(&new_identity(uuid))));
    all
}

/// The files of a head that knows nobody yet.
pub(crate) fn lists_of_none() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (HOSTS, hosts_file(&Hosts::default(), &[])),
        (PORTALS, portals_file(&[], 0, &[])),
        (POOLS, pools_file(POOLS, &[], &[])),
    ]
}

/// The file.
pub(crate) const RELEASED: &str = "released";

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

#[cfg(test)]
#[path = "texts/tests.rs"]
mod tests;
