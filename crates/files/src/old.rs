//! Files as versions before the format wrote them: read once, when a directory is converted.

use crate::content::{
    Certificate, Host, Hosts, Identity, Kept, LinkIdentity, Pool, Pools, Portal, Portals, Record, Slot,
    Token, Tokens,
};
use crate::{Row, seal};
use base::codec::{hex, unhex};
use base::crc::{crc32c, crc32c_append};
use finding::FileFault;
use serde_json::{Map, Value};

/// `[kind name]`, and the lines behind it: number, key, value.
struct Section {
    line: u64,
    name: String,
    entries: Vec<(u64, String, String)>,
}

fn wrong(line: u64) -> FileFault {
    FileFault::OldLine { line }
}

/// Lines that say something, with their numbers.
fn lines(bytes: &[u8]) -> Result<Vec<(u64, &str)>, FileFault> {
    let text = core::str::from_utf8(bytes).map_err(|_| FileFault::NotText)?;
    let said = |(_, line): &(u64, &str)| !line.is_empty() && !line.starts_with('#');
    Ok((1..).zip(text.lines().map(str::trim)).filter(said).collect())
}

/// The lines before the first section, and the sections of this kind, with these keys alone.
fn sections(
    bytes: &[u8],
    top: &[&str],
    kind: &str,
    keys: &[&str],
) -> Result<(Section, Vec<Section>), FileFault> {
    let mut first = Section { line: 1, name: String::new(), entries: vec![] };
    let mut others: Vec<Section> = vec![];
    for (at, line) in lines(bytes)? {
        if let Some(inner) = line.strip_prefix('[') {
            let words: Vec<&str> = inner.strip_suffix(']').ok_or(wrong(at))?.split_whitespace().collect();
            let name = match words[..] {
                [found, name] if found == kind => name.to_string(),
                _ => return Err(wrong(at)),
            };
            others.push(Section { line: at, name, entries: vec![] });
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(wrong(at))?;
        let (key, value) = (key.trim(), value.trim());
        let (section, known) = match others.last_mut() {
            None => (&mut first, top),
            Some(section) => (section, keys),
        };
        if !known.contains(&key) {
            return Err(wrong(at));
        }
        section.entries.push((at, key.into(), value.into()));
    }
    Ok((first, others))
}

impl Section {
    fn all(&self, key: &str) -> Vec<String> {
        self.entries.iter().filter(|(_, k, _)| k == key).map(|(.., v)| v.clone()).collect()
    }

    fn one(&self, key: &str) -> Result<Option<String>, FileFault> {
        let mut found = self.entries.iter().filter(|(_, k, _)| k == key);
        match (found.next(), found.next()) {
            (first, None) => Ok(first.map(|(.., v)| v.clone())),
            (_, Some((line, ..))) => Err(wrong(*line)),
        }
    }

    fn must(&self, key: &str) -> Result<String, FileFault> {
        self.one(key)?.ok_or(wrong(self.line))
    }
}

/// The file `name` of an old version, in the format of this one.
///
/// # Errors
/// It cannot be read: it stays as it is.
pub fn converted(name: &str, bytes: &[u8]) -> Result<Vec<u8>, FileFault> {
    Ok(match name {
        "identity" => {
            let (s, _) = sections(bytes, &["uuid", "nqn", "iqn", "serial"], "", &[])?;
            let (uuid, nqn) = (s.must("uuid")?, s.must("nqn")?);
            seal(name, &Identity { uuid, nqn, iqn: s.must("iqn")?, serial: s.must("serial")? })
        }
        "hosts" => seal(name, &hosts(bytes)?),
        "portals" => seal(name, &portals(bytes)?),
        "pools" | "released" | "creating" => seal(name, &pools(bytes)?),
        "tokens" => seal(name, &tokens(bytes)?),
        "link-identity" => seal(name, &link_identity(bytes)?),
        "api-certificate" => seal(name, &certificate(bytes)?),
        "link" => seal(name, &object(bytes)?),
        "alarms" => {
            let mut all = object(bytes)?;
            all.remove("version").filter(|v| *v == 1).ok_or(wrong(1))?;
            seal(name, &all)
        }
        _ if name.starts_with("witness-") => {
            let (s, _) = sections(bytes, &["record"], "", &[])?;
            seal(name, &Record { record: s.must("record")? })
        }
        _ if name.starts_with("config-") => {
            let (s, _) = sections(bytes, &["deallocate", "config"], "", &[])?;
            let deallocate = match s.must("deallocate")?.as_str() {
                "yes" => true,
                "no" => false,
                _ => return Err(wrong(s.line)),
            };
            seal(name, &Kept { deallocate, config: s.must("config")? })
        }
        "system-record" if !bytes.is_empty() => seal(name, &Record { record: hex(bytes) }),
        _ if name.starts_with("system-slot-") && !bytes.is_empty() => seal(name, &Slot { block: hex(bytes) }),
        _ => return Err(FileFault::Empty),
    })
}

fn hosts(bytes: &[u8]) -> Result<Hosts, FileFault> {
    let keys = ["nqn", "iqn", "chap_secret", "chap_user", "mutual_secret"];
    let (_, all) = sections(bytes, &[], "host", &keys)?;
    let row = |s: Section| {
        Ok(Row::Known(Host {
            nqn: s.all("nqn"),
            iqn: s.all("iqn"),
            chap_secret: s.one("chap_secret")?,
            chap_user: s.one("chap_user")?,
            mutual_secret: s.one("mutual_secret")?,
            name: s.name,
        }))
    };
    Ok(Hosts { host: all.into_iter().map(row).collect::<Result<_, _>>()? })
}

fn portals(bytes: &[u8]) -> Result<Portals, FileFault> {
    let (s, _) = sections(bytes, &["portal", "last"], "", &[])?;
    let (mut rows, mut highest) = (vec![], 0u16);
    for (line, _, value) in s.entries.iter().filter(|(_, key, _)| key == "portal") {
        let error = || wrong(*line);
        let mut words = value.split_whitespace().peekable();
        let protocol = words.next().ok_or_else(error)?.to_string();
        let address = words.next().ok_or_else(error)?.to_string();
        // The oldest versions counted the lines.
        let number = words.next().map_or(highest.checked_add(1), |word| word.parse().ok());
        let number = number.ok_or_else(error)?;
        highest = highest.max(number);
        let head = words.next_if(|w| w.starts_with("head=")).map(|w| w["head=".len()..].to_string());
        let prefix = match words.next() {
            None => None,
            Some(word) => Some(word.strip_prefix('/').and_then(|p| p.parse().ok()).ok_or_else(error)?),
        };
        let interface = words.next().map(str::to_string);
        if words.next().is_some() {
            return Err(error());
        }
        rows.push(Row::Known(Portal { number, protocol, address, head, prefix, interface }));
    }
    let last = match s.one("last")? {
        None => highest,
        Some(word) => word.parse().map_err(|_| wrong(0))?,
    };
    Ok(Portals { last, portal: rows })
}

fn pools(bytes: &[u8]) -> Result<Pools, FileFault> {
    let (_, all) = sections(bytes, &[], "pool", &["name", "drive"])?;
    let row =
        |s: Section| Ok(Row::Known(Pool { name: s.must("name")?, drives: s.all("drive"), uuid: s.name }));
    Ok(Pools { pool: all.into_iter().map(row).collect::<Result<_, _>>()? })
}

fn tokens(bytes: &[u8]) -> Result<Tokens, FileFault> {
    let row = |(line, text): (u64, &str)| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, rights, created, expires, used, sha256] = words[..] else { return Err(wrong(line)) };
        let time = |word: &str| match word {
            "-" => Ok(None),
            number => number.parse::<u64>().map(Some).map_err(|_| wrong(line)),
        };
        let (created, expires, used) = (time(created)?, time(expires)?, time(used)?);
        let (name, rights, sha256) = (name.into(), rights.into(), sha256.into());
        Ok(Row::Known(Token { name, rights, sha256, created, expires, used }))
    };
    Ok(Tokens { token: lines(bytes)?.into_iter().map(row).collect::<Result<_, _>>()? })
}

fn link_identity(bytes: &[u8]) -> Result<LinkIdentity, FileFault> {
    let (s, _) = sections(bytes, &["key", "certificate", "checksum"], "", &[])?;
    let (key, certificate, sum) = (s.must("key")?, s.must("certificate")?, s.must("checksum")?);
    let bytes_of = |text: &str| unhex(text).ok_or(wrong(0));
    let found = crc32c_append(crc32c(&bytes_of(&key)?), &bytes_of(&certificate)?);
    if sum == format!("{found:08x}") {
        Ok(LinkIdentity { key, certificate })
    } else {
        Err(FileFault::Checksum)
    }
}

fn certificate(bytes: &[u8]) -> Result<Certificate, FileFault> {
    let text = core::str::from_utf8(bytes).map_err(|_| FileFault::NotText)?;
    let part = |label: &str| {
        let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
        let at = text.find(&begin)?;
        let to = at + text[at..].find(&end)? + end.len();
        Some(text[at..to].to_string() + "\n")
    };
    let (certificate, key) = (part("CERTIFICATE"), part("PRIVATE KEY"));
    Ok(Certificate { certificate: certificate.ok_or(wrong(0))?, key: key.ok_or(wrong(0))? })
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, FileFault> {
    serde_json::from_slice(bytes).map_err(|e| wrong(e.line() as u64))
}
