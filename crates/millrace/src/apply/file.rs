//! The file of desired state: what it may say, and what is wrong with one.
//!
//! Promise: a key that is not known, a value of the wrong kind and a contradiction are one sentence with the file, the
//! line and the key.

use crate::config::read_text;
use crate::failure::Failure;
use crate::words::{Wrong, read as read_parser};
use api::{Protocol, Secret};
use finding::CommandFault;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Largest LUN.
const LUN_MAX: u16 = 16383;
/// Most bytes of a file that comes from stdin.
const STDIN_MAX: u64 = 1 << 20;

/// What there should be. A kind that the file does not mention is None, and is left alone.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Desired {
    /// Pools.
    pub pools: Option<Vec<Pool>>,
    /// Volumes.
    pub volumes: Option<Vec<Volume>>,
    /// Hosts.
    pub hosts: Option<Vec<Host>>,
    /// Exports.
    pub exports: Option<Vec<Export>>,
    /// Portals.
    pub portals: Option<Vec<Portal>>,
}

/// The same as the parser reads it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Text {
    pool: Option<Vec<Spanned<Pool>>>,
    volume: Option<Vec<Spanned<Volume>>>,
    host: Option<Vec<Spanned<Host>>>,
    export: Option<Vec<Spanned<Export>>>,
    portal: Option<Vec<Spanned<Portal>>>,
}

/// A pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Its arrays; None: they are left alone.
    #[serde(default)]
    pub arrays: Option<Vec<Array>>,
    /// Its hot spares; None: they are left alone.
    #[serde(default)]
    pub spares: Option<Vec<String>>,
    /// Chunk of the stripe; None: any.
    #[serde(default, deserialize_with = "small_size")]
    pub chunk: Option<u32>,
    /// Block size of new volumes; None: any.
    #[serde(default, deserialize_with = "block")]
    pub block: Option<u32>,
    /// Where in the file.
    #[serde(skip)]
    pub line: usize,
}

impl Pool {
    /// Its drives.
    pub fn drives(&self) -> Vec<&str> {
        let arrays = self.arrays.iter().flatten().flat_map(Array::drives);
        arrays.chain(self.spares.iter().flatten().map(String::as_str)).collect()
    }
}

/// An array of a pool: `mirror` or `single`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// Drives of a mirror.
    #[serde(default)]
    pub mirror: Option<Vec<String>>,
    /// A single drive.
    #[serde(default)]
    pub single: Option<String>,
    /// Weight in the stripe, for the array's creation.
    #[serde(default)]
    pub weight: Option<u32>,
}

impl Array {
    /// Its drives.
    pub fn drives(&self) -> Vec<&str> {
        let legs = self.mirror.iter().flatten();
        legs.chain(&self.single).map(String::as_str).collect()
    }
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// `pool/volume`.
    pub name: String,
    /// Size, bytes.
    #[serde(deserialize_with = "size")]
    pub size: u64,
    /// Block size; None: any.
    #[serde(default, deserialize_with = "block")]
    pub block: Option<u32>,
    /// Commands a second; 0 for no cap.
    #[serde(default)]
    pub iops_max: u32,
    /// Megabytes a second; 0 for no cap.
    #[serde(default)]
    pub mbps_max: u32,
    /// Share of the drives' performance.
    #[serde(default = "usual_weight")]
    pub weight: u16,
    /// Where in the file.
    #[serde(skip)]
    pub line: usize,
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Short name.
    pub name: String,
    /// NVMe qualified names.
    #[serde(default)]
    pub nqns: Vec<String>,
    /// iSCSI names.
    #[serde(default)]
    pub iqns: Vec<String>,
    /// The secret that it must prove.
    #[serde(default)]
    pub chap_secret_file: SecretFile,
    /// CHAP user name; empty for its iSCSI name.
    #[serde(default)]
    pub chap_user: String,
    /// The secret that the head proves to it.
    #[serde(default)]
    pub mutual_secret_file: SecretFile,
    /// Where in the file.
    #[serde(skip)]
    pub line: usize,
}

/// What the file says of a secret.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum SecretFile {
    /// There is none.
    #[default]
    None,
    /// There is one, and it stays.
    Keep,
    /// It is in this file.
    File(PathBuf),
    /// The same, read.
    Read(Secret),
}

impl<'de> Deserialize<'de> for SecretFile {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        match text.as_str() {
            "" => Err(de::Error::custom("write the name of a file, or leave the key out for no secret")),
            KEEP => Ok(Self::Keep),
            _ => Ok(Self::File(text.into())),
        }
    }
}

/// Stands for a secret that nobody shows: whatever it is.
pub const KEEP: &str = "keep";

/// An export.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// `pool/volume`.
    pub volume: String,
    /// The host.
    pub host: String,
    /// Logical unit number; None: any.
    #[serde(default)]
    pub lun: Option<u16>,
    /// Where in the file.
    #[serde(skip)]
    pub line: usize,
}

/// A portal.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portal {
    /// What is spoken.
    pub protocol: Protocol,
    /// Address and port.
    pub address: SocketAddr,
    /// The head that listens there, by letter or name; None: any.
    #[serde(default)]
    pub head: Option<String>,
    /// The address moves, and has a prefix of this length.
    #[serde(default)]
    pub prefix: Option<u8>,
    /// The interface for an address that moves.
    #[serde(default)]
    pub interface: Option<String>,
    /// Where in the file.
    #[serde(skip)]
    pub line: usize,
}

fn usual_weight() -> u16 {
    api::WEIGHT
}

/// A text or a number, as a text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write a size such as \"400G\"")]
enum TextOrNumber {
    Text(String),
    Number(i64),
}

impl TextOrNumber {
    fn of<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
        Ok(match Self::deserialize(input)? {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        })
    }
}

fn size<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    crate::arguments::size(&TextOrNumber::of(input)?).map_err(de::Error::custom)
}

fn small_size<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    let bytes = crate::arguments::small_size(&TextOrNumber::of(input)?);
    bytes.map(Some).map_err(de::Error::custom)
}

fn block<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    let bytes = crate::arguments::block_size(&TextOrNumber::of(input)?);
    bytes.map(Some).map_err(de::Error::custom)
}

/// The file's name for people, and its text.
pub struct Source {
    /// As it was named; `stdin` for `-`.
    pub name: String,
    /// From where secrets are looked for.
    folder: PathBuf,
    text: String,
}

impl Source {
    /// Reads the file, or stdin for `-`.
    pub fn read(file: &str) -> Result<Self, Failure> {
        let path = Path::new(file);
        let (name, folder, read) = match file {
            "-" => {
                let mut text = String::new();
                let read = std::io::stdin().lock().take(STDIN_MAX).read_to_string(&mut text).map(|_| text);
                ("stdin", PathBuf::new(), read)
            }
            _ => (file, path.parent().map(Path::to_path_buf).unwrap_or_default(), read_text(path)),
        };
        let text = read.map_err(|e| {
            Failure::usage(format!("cannot read {name}: {e}"))
                .with_code(CommandFault::DesiredStateUnreadable)
                .with_next("millrace export-config > FILE, which writes one")
        })?;
        Ok(Self { name: name.into(), folder, text })
    }

    /// The text of the file `name`, for tests.
    #[cfg(test)]
    pub fn of(name: &str, text: &str) -> Self {
        Self { name: name.into(), folder: PathBuf::new(), text: text.into() }
    }

    /// What it says, without what lies in files of secrets.
    pub fn parse(&self) -> Result<Desired, Failure> {
        let text: Text = toml::from_str(&self.text).map_err(|e| self.not_read(&e))?;
        let desired = Desired {
            pools: self.lined(text.pool, |p, line| p.line = line),
            volumes: self.lined(text.volume, |v, line| v.line = line),
            hosts: self.lined(text.host, |h, line| h.line = line),
            exports: self.lined(text.export, |e, line| e.line = line),
            portals: self.lined(text.portal, |p, line| p.line = line),
        };
        self.check(&desired)?;
        Ok(desired)
    }

    /// The same with the secrets of hosts.
    pub fn desired(&self) -> Result<Desired, Failure> {
        let mut desired = self.parse()?;
        for host in desired.hosts.iter_mut().flatten() {
            let line = host.line;
            let files = [
                ("chap_secret_file", &mut host.chap_secret_file),
                ("mutual_secret_file", &mut host.mutual_secret_file),
            ];
            for (key, secret) in files {
                let SecretFile::File(file) = secret else { continue };
                let path = self.folder.join(file).display().to_string();
                let read = crate::arguments::read_secret(&path).map_err(|why| {
                    self.wrong(line, key, &format!("cannot read {path}: {why}"))
                        .with_next("name a file that you can read, with the secret in one line")
                });
                *secret = SecretFile::Read(read?);
            }
        }
        Ok(desired)
    }

    fn lined<T>(&self, all: Option<Vec<Spanned<T>>>, set: impl Fn(&mut T, usize)) -> Option<Vec<T>> {
        let one = |spanned: Spanned<T>| {
            let line = self.line_at(spanned.span().start);
            let mut item = spanned.into_inner();
            set(&mut item, line);
            item
        };
        all.map(|all| all.into_iter().map(one).collect())
    }

    fn line_at(&self, offset: usize) -> usize {
        self.text[..offset.min(self.text.len())].matches('\n').count() + 1
    }

    fn not_read(&self, e: &toml::de::Error) -> Failure {
        let message = e.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
        let place = e.span().map_or(String::new(), |span| crate::config::place(&self.text, span));
        let line = place.split(':').nth(1).unwrap_or_default();
        let at = |rest: String| match line {
            "" => format!("{}: {rest}", self.name),
            line => format!("{}:{line}: {rest}", self.name),
        };
        self.bad(match read_parser(&message) {
            Wrong::Unknown(key, known) => {
                let near = crate::spelling::nearest(&key, known.iter().map(String::as_str));
                let help = near.map_or_else(
                    || format!("; the keys here are {}", known.join(", ")),
                    |near| format!("; did you mean \"{near}\"?"),
                );
                at(format!("unknown key \"{}\"{help}", key.escape_debug()))
            }
            Wrong::Missing(key) => at(format!("the key {key} is missing")),
            Wrong::Twice(key) => at(format!("{key} is given twice")),
            Wrong::Value(why) => format!("{}{place}: {why}", self.name),
        })
    }

    /// A failure because of what the file says.
    fn bad(&self, message: String) -> Failure {
        Failure::usage(message)
            .with_code(CommandFault::DesiredStateWrong)
            .with_next("millrace export-config, which prints a right one of what there is")
    }

    /// A failure because of a key of the table that begins in `line`.
    pub fn wrong(&self, line: usize, key: &str, why: &str) -> Failure {
        let of_key = |text: &str| text.trim().strip_prefix(key).is_some_and(|t| t.trim().starts_with('='));
        let below = self.text.lines().enumerate().skip(line);
        let mut below = below.take_while(|(_, text)| !text.trim_start().starts_with('['));
        let line = below.find(|(_, text)| of_key(text)).map_or(line, |(i, _)| i + 1);
        self.bad(format!("{}:{line}: {key}: {why}", self.name))
    }

    /// What the text alone shows to be wrong.
    fn check(&self, desired: &Desired) -> Result<(), Failure> {
        let mut seen = BTreeMap::new();
        let mut once = |line: usize, key: &str, what: String| match seen.insert(what.clone(), line) {
            None => Ok(()),
            Some(first) => Err(self.wrong(line, key, &format!("{what} is in line {first} already"))),
        };
        for pool in desired.pools.iter().flatten() {
            once(pool.line, "name", format!("pool {}", pool.name))?;
            self.check_pool(pool)?;
        }
        for volume in desired.volumes.iter().flatten() {
            once(volume.line, "name", format!("volume {}", volume.name))?;
            let name = crate::arguments::volume_name(&volume.name);
            name.map_err(|why| self.wrong(volume.line, "name", &why))?;
            if !(1..=1000).contains(&volume.weight) {
                return Err(self.wrong(volume.line, "weight", "a number from 1 to 1000"));
            }
        }
        for host in desired.hosts.iter().flatten() {
            once(host.line, "name", format!("host {}", host.name))?;
            if host.nqns.is_empty() && host.iqns.is_empty() {
                return Err(self.wrong(host.line, "nqns", "a host needs an NQN, an IQN, or both"));
            }
            let (chap, mutual) = (&host.chap_secret_file, &host.mutual_secret_file);
            if *chap == SecretFile::None && *mutual != SecretFile::None {
                return Err(self.wrong(host.line, "mutual_secret_file", "needs chap_secret_file"));
            }
        }
        for export in desired.exports.iter().flatten() {
            once(export.line, "volume", format!("the export of {} to {}", export.volume, export.host))?;
            let name = crate::arguments::volume_name(&export.volume);
            name.map_err(|why| self.wrong(export.line, "volume", &why))?;
            if let Some(lun) = export.lun {
                if lun > LUN_MAX {
                    return Err(self.wrong(export.line, "lun", &format!("at most {LUN_MAX}")));
                }
                once(export.line, "lun", format!("LUN {lun} of host {}", export.host))?;
            }
        }
        for portal in desired.portals.iter().flatten() {
            once(portal.line, "address", format!("the portal {}", portal.address))?;
            let moves = portal.prefix.is_some();
            if portal.interface.is_some() && !moves {
                return Err(self.wrong(
                    portal.line,
                    "interface",
                    "needs a prefix: it is for an address that moves",
                ));
            }
            if portal.head.is_some() && moves {
                let why = "an address with a prefix moves: it is at the head that leads";
                return Err(self.wrong(portal.line, "head", why));
            }
        }
        Ok(())
    }

    fn check_pool(&self, pool: &Pool) -> Result<(), Failure> {
        let arrays = pool.arrays.iter().flatten();
        for array in arrays.clone() {
            let why = match (&array.mirror, &array.single) {
                (None, None) => "an array is { mirror = [\"DRIVE\", \"DRIVE\"] } or { single = \"DRIVE\" }",
                (Some(_), Some(_)) => "an array is either a mirror or single",
                (Some(legs), None) if !(1..=4).contains(&legs.len()) => "a mirror has 2 to 4 drives",
                _ if !(1..=64).contains(&array.weight.unwrap_or(1)) => "a weight is a number from 1 to 64",
                _ => continue,
            };
            return Err(self.wrong(pool.line, "arrays", why));
        }
        let mut seen = BTreeSet::new();
        let of_arrays = arrays.flat_map(|a| a.drives()).map(|d| ("arrays", d));
        for (key, drive) in of_arrays.chain(pool.spares.iter().flatten().map(|d| ("spares", d.as_str()))) {
            if !is_whole(drive) {
                let why = format!("\"{drive}\": write the whole path, beginning with /");
                return Err(self.wrong(pool.line, key, &why));
            }
            if !is_unnamed(drive) && !seen.insert(drive) {
                return Err(self.wrong(pool.line, key, &format!("{drive} is there twice")));
            }
        }
        Ok(())
    }
}

/// Drives in memory and null drives have no name of their own: two that look the same are two.
pub fn is_unnamed(drive: &str) -> bool {
    ["ram:", "null:"].iter().any(|kind| bare(drive).starts_with(kind))
}

/// A drive without its artificial behaviour.
pub fn bare(drive: &str) -> &str {
    match drive.strip_prefix("shape:").and_then(|rest| rest.split_once('@')) {
        Some((_, drive)) => drive,
        None => drive,
    }
}

/// A path that means the same from everywhere, a drive in memory, or the UUID of a drive.
fn is_whole(drive: &str) -> bool {
    let drive = bare(drive);
    let begins = ["/", "file:/", "block:/", "ram:", "null:"].iter().any(|begin| drive.starts_with(begin));
    begins || drive.parse::<base::Uuid>().is_ok()
}

/// What a drive is known by, whatever it is called: its path with links followed, without options.
pub fn key_of(drive: &str) -> String {
    let drive = bare(drive);
    if is_unnamed(drive) {
        return drive.into();
    }
    let path = ["file:", "block:"].iter().find_map(|kind| drive.strip_prefix(kind)).unwrap_or(drive);
    let path = if path.len() < drive.len() { path.split('?').next().unwrap_or(path) } else { path };
    std::fs::canonicalize(path).map_or_else(|_| path.into(), |p| p.display().to_string())
}
