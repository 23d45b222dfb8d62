//! `head.toml`: what start-up needs and nothing else (pools, volumes and hosts are kept elsewhere).
//!
//! Promise: a file that cannot be read, a key that is not known and a value of the wrong kind are one
//! sentence with the file, the line and the field.

pub mod alarm;
pub mod memory;

use crate::failure::Failure;
use crate::words::machine::shape_fault;
use base::machine::Shape;
use finding::{CommandFault, SystemNotice};
use serde::Deserialize;
use serde::de::{self, Deserializer};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Where the configuration is unless the command line says otherwise.
pub const CONFIG_PATH: &str = "/etc/millrace/head.toml";
/// Where the daemon listens unless the configuration says otherwise.
pub const SOCKET_PATH: &str = "/run/millrace/api.sock";
/// Most shards of one head.
pub const SHARDS_MAX: u16 = 128;
/// Most shards for each core that may be used.
const SHARDS_PER_CORE_MAX: usize = 4;

/// What `head.toml` says.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the head keeps its identity, hosts, portals, records and events.
    pub state_dir: PathBuf,
    /// The API's Unix socket.
    pub socket: PathBuf,
    /// Permissions of the socket, as octal text.
    #[serde(deserialize_with = "mode")]
    pub socket_mode: u32,
    /// Number of shards; 0 for one on each core that the process may use.
    pub shards: u16,
    /// The cores that shards run on, one each; empty for no pinning.
    pub cores: Vec<u16>,
    /// Memory for data, all shards together; 0 for a sixteenth of the machine's or of what its control group may have,
    /// from 256M to 8G, and never more than there is room for beside the rest of the process (`memory`).
    #[serde(deserialize_with = "size")]
    pub memory: u64,
    /// error, warn, info, debug or trace.
    pub log: String,
    /// Drives with a shape in front, which they have whenever they are opened: a lab's tool.
    pub shapes: Vec<String>,
    /// The API over TCP.
    pub api: ApiConfig,
    /// How a head of two suspects the other one.
    pub system: SystemConfig,
    /// Who is told what goes wrong, by name.
    pub alarm: BTreeMap<String, alarm::ReceiverConfig>,
    /// The lines of the keys that the file has, such as `api.tcp`, for who finds a value wrong.
    #[serde(skip)]
    pub lines: BTreeMap<String, usize>,
}

/// How a head of two suspects the other one: longer times where a machine is slow, as in an emulated lab.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SystemConfig {
    /// Between two heartbeats by each network of the link, milliseconds.
    #[serde(alias = "heartbeat-ms")]
    pub heartbeat_ms: u32,
    /// Silence on all networks by which a head is suspected, milliseconds.
    #[serde(alias = "silence-ms")]
    pub silence_ms: u32,
}

impl Default for SystemConfig {
    fn default() -> Self {
        Self { heartbeat_ms: 100, silence_ms: 300 }
    }
}

impl SystemConfig {
    /// All times; what is not set goes with the others as it does by default.
    pub fn times(&self) -> cluster::watch::Times {
        let ms = |ms: u32| base::Duration::from_millis(u64::from(ms));
        cluster::watch::Times {
            link_every: ms(self.heartbeat_ms),
            drive_every: ms(2 * self.heartbeat_ms),
            silence: ms(self.silence_ms),
            patience: ms(self.silence_ms + 2 * self.heartbeat_ms),
            pause: ms(self.silence_ms - self.heartbeat_ms / 2),
        }
    }
}

/// The API over TCP: off unless it has an address.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// Address and port.
    pub tcp: Option<SocketAddr>,
    /// File with the secret of one token with all rights.
    pub token_file: Option<PathBuf>,
    /// Names by which requests may call this head, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// What protects it; without it, the address decides.
    pub tls: Option<TlsConfig>,
}

/// TLS of the API over TCP.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged, expecting = "\"self-signed\", \"off\" or { cert = \"/FILE\", key = \"/FILE\" }")]
pub enum TlsConfig {
    /// Without files of others.
    Word(TlsWord),
    /// With a certificate and a key of these files.
    Files(TlsFiles),
}

/// TLS without files of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsWord {
    /// With a certificate that the daemon makes.
    SelfSigned,
    /// No TLS.
    Off,
}

/// A certificate and its key, PEM.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate, and those of its CAs behind it.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl ApiConfig {
    /// As told, or by the address: what leaves the machine is protected.
    pub fn tls(&self) -> TlsConfig {
        let loopback = self.tcp.is_none_or(|a| a.ip().is_loopback());
        let usual = TlsConfig::Word(if loopback { TlsWord::Off } else { TlsWord::SelfSigned });
        self.tls.clone().unwrap_or(usual)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state_dir: "/var/lib/millrace".into(),
            socket: SOCKET_PATH.into(),
            socket_mode: 0o660,
            shards: 0,
            cores: Vec::new(),
            memory: 0,
            log: "info".into(),
            shapes: Vec::new(),
            api: ApiConfig::default(),
            system: SystemConfig::default(),
            alarm: BTreeMap::new(),
            lines: BTreeMap::new(),
        }
    }
}

fn mode<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    let text = String::deserialize(input)?;
    match u32::from_str_radix(&text, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(mode),
        _ => Err(de::Error::custom(format!(
            "\"{text}\" are not permissions of a socket: write \"0600\" or \"0660\""
        ))),
    }
}

fn size<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    crate::arguments::size(&String::deserialize(input)?).map_err(de::Error::custom)
}

impl Config {
    /// Reads `path`; without one, `/etc/millrace/head.toml` if it is there, else the defaults.
    pub fn load(path: Option<&Path>) -> Result<Self, Failure> {
        let (path, required) = (path.unwrap_or(Path::new(CONFIG_PATH)), path.is_some());
        match read_text(path) {
            Ok(text) => Self::parse(&text, path),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !required => Ok(Self::default()),
            Err(e) => Err(Failure::usage(format!("cannot read the configuration {}: {e}", path.display()))
                .with_code(CommandFault::ConfigurationUnreadable)
                .with_next(EXPLAINED)),
        }
    }

    /// Reads the text of the file `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let not_read = |e: toml::de::Error| {
            let place = e.span().map_or(String::new(), |span| place(text, span));
            // The parser's message may have several lines; ours is one sentence.
            let message = e.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
            bad_file(format!("{}{place}: {}", path.display(), crate::words::of_parser(&message)))
        };
        let lines = lines_of_keys(text);
        let table: toml::Table = toml::from_str(text).map_err(not_read)?;
        if let Some((key, known)) = unknown_key(&table) {
            let line = lines.get(&key).map_or(String::new(), |n| format!(":{n}"));
            let name = key.rsplit('.').next().unwrap_or(&key);
            let near = crate::spelling::nearest(name, known.iter().copied());
            let help = near.map_or_else(
                || format!("; the keys here are {}", known.join(", ")),
                |near| format!("; did you mean \"{near}\"?"),
            );
            // What a key in quotes holds may be anything.
            let name = name.escape_debug();
            return Err(bad_file(format!("{}{line}: unknown key \"{name}\"{help}", path.display())));
        }
        if let Some(key) = alarm::loose_key(&table) {
            let line = lines.get(&key).map_or(String::new(), |n| format!(":{n}"));
            return Err(bad_file(format!("{}{line}: {key}: {}", path.display(), alarm::LOOSE)));
        }
        let mut config: Self = toml::from_str(text).map_err(not_read)?;
        config.lines = lines;
        config.check(path)?;
        Ok(config)
    }

    /// What the text alone shows to be wrong.
    fn check(&self, path: &Path) -> Result<(), Failure> {
        let wrong = |message: String| Err(self.wrong(path, &message));
        for (field, path) in [("state_dir", &self.state_dir), ("socket", &self.socket)] {
            if path.as_os_str().is_empty() {
                return wrong(format!("{field} must not be empty"));
            }
        }
        // A daemon's working directory is nobody's choice: "state" would be another place at each start.
        let files = match &self.api.tls {
            Some(TlsConfig::Files(files)) => Some(files),
            _ => None,
        };
        let paths = [
            ("state_dir", Some(&self.state_dir)),
            ("socket", Some(&self.socket)),
            ("api.token_file", self.api.token_file.as_ref()),
            ("api.tls", files.map(|f| &f.cert)),
            ("api.tls", files.map(|f| &f.key)),
        ];
        for (field, path) in paths {
            if let Some(path) = path.filter(|p| !p.is_absolute()) {
                let path = path.display();
                return wrong(format!("{field} = \"{path}\": write the whole path, beginning with /"));
            }
        }
        if self.shards > SHARDS_MAX {
            return wrong(format!("shards = {}: at most {SHARDS_MAX}", self.shards));
        }
        if !self.cores.is_empty() && self.shards != 0 && self.cores.len() != usize::from(self.shards) {
            return wrong(format!("cores names {} cores for {} shards", self.cores.len(), self.shards));
        }
        let mut sorted = self.cores.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != self.cores.len() {
            return wrong("cores names a core twice".into());
        }
        if self.memory != 0 && self.memory < memory::DATA_MIN {
            return wrong(format!("memory = {}: at least 64M", base::size::print(self.memory)));
        }
        if !["error", "warn", "info", "debug", "trace"].contains(&self.log.as_str()) {
            return wrong(format!("log = {:?}: error, warn, info, debug or trace", self.log));
        }
        for (name, receiver) in &self.alarm {
            receiver.check(name).or_else(wrong)?;
        }
        for spec in &self.shapes {
            match head::steward::split_shape(spec) {
                Ok((Some(_), _)) => {}
                Ok((None, _)) => {
                    return wrong(format!("shapes = {spec:?}: write shape:OPTIONS@DRIVE"));
                }
                Err(fault) => return wrong(format!("shapes = {spec}: {}", shape_fault(&fault))),
            }
        }
        let plain =
            |n: &&String| n.is_empty() || n.contains(|c: char| c.is_whitespace() || ":/[]*".contains(c));
        if let Some(name) = self.api.names.iter().find(plain) {
            return wrong(format!("api.names has {name:?}: write names of the network, without a port"));
        }
        if self.api.tcp.is_none() && self.api.token_file.is_some() {
            return wrong("api.token_file is of no use without api.tcp".into());
        }
        Ok(())
    }

    /// Whether a daemon of this configuration has room here: the cores and the memory of this process. It is asked by the
    /// daemon alone, since who only looks for its socket may have less.
    ///
    /// # Errors
    /// A sentence that names the field, or what is too small.
    pub fn fits(&self, path: Option<&Path>) -> Result<(), Failure> {
        let wrong = |message: String| Err(self.wrong(path.unwrap_or(Path::new(CONFIG_PATH)), &message));
        let cores = cores();
        if usize::from(self.shards) > cores * SHARDS_PER_CORE_MAX {
            let has = crate::screen::count(cores, "core");
            return wrong(format!(
                "shards = {}: the daemon may use {has} here, and a shard wants one for itself (at most {})",
                self.shards,
                cores * SHARDS_PER_CORE_MAX
            ));
        }
        let allowed = cores_allowed();
        if let Some(core) = self.cores.iter().find(|c| !allowed.is_empty() && !allowed.contains(c)) {
            let list = allowed.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            return wrong(format!(
                "cores = {:?}: there is no core {core} for the daemon here, only {list}",
                self.cores
            ));
        }
        memory::fits(self.memory, self.shard_count(), memory::There::here()).or_else(wrong)
    }

    /// A failure because of a value; the message begins with its key.
    fn wrong(&self, path: &Path, message: &str) -> Failure {
        let key = message.split([' ', ':']).next().unwrap_or_default();
        // An inline table has one line for all that it holds.
        let line = self.lines.get(key).or_else(|| self.lines.get(key.split('.').next()?));
        let place = line.map_or(String::new(), |n| format!(":{n}"));
        bad_file(format!("{}{place}: {message}", path.display()))
    }

    /// How drives behave whenever they are opened, by their names.
    pub fn shapes_by_drive(&self) -> BTreeMap<String, Shape> {
        let one = |spec: &String| {
            let (shape, drive) = head::steward::split_shape(spec).ok()?;
            Some((drive.to_string(), shape?))
        };
        self.shapes.iter().filter_map(one).collect()
    }

    /// The shards to run: as told, or one on each core that the process may use, as far as memory has room for them.
    pub fn shard_count(&self) -> u16 {
        if self.shards != 0 {
            return self.shards;
        }
        if !self.cores.is_empty() {
            return self.cores.len() as u16;
        }
        let most = cores().min(usize::from(SHARDS_MAX)) as u16;
        memory::shards_most(self.memory, memory::There::here()).clamp(1, most)
    }

    /// What is allowed and not wise, or not what was to be expected.
    pub fn notices(&self) -> Option<SystemNotice> {
        let (shards, all) = (usize::from(self.shard_count()), cores());
        let (count, cores) = (shards as u64, all as u64);
        if shards > all {
            return Some(SystemNotice::ShardsShareCores { shards: count, cores });
        }
        let fewer = self.shards == 0 && self.cores.is_empty() && shards < all.min(usize::from(SHARDS_MAX));
        fewer.then_some(SystemNotice::ShardsFewerThanCores { shards: count, cores })
    }

    /// With the numbers of shards and bytes that are meant where nothing is said: what is there may be another when asked again.
    pub fn settled(mut self) -> Self {
        self.shards = self.shard_count();
        self.memory = self.memory_bytes();
        self
    }

    /// The memory for data, bytes: as told, or by the machine's.
    pub fn memory_bytes(&self) -> u64 {
        if self.memory != 0 {
            return self.memory;
        }
        memory::usual(self.shard_count(), memory::There::here())
    }
}

/// Every key, with its default, as the file is installed.
pub const EXAMPLE: &str = include_str!("../../../packaging/head.toml");
/// Where every key is explained.
const EXPLAINED: &str = "millrace serve --example, which prints every key with its explanation";
/// The keys of the file, of `[api]` and of `[system]`.
const KEYS: [&str; 11] = [
    "state_dir",
    "socket",
    "socket_mode",
    "shards",
    "cores",
    "memory",
    "log",
    "shapes",
    "api",
    "system",
    "alarm",
];
const API_KEYS: [&str; 4] = ["tcp", "token_file", "names", "tls"];
const SYSTEM_KEYS: [&str; 2] = ["heartbeat_ms", "silence_ms"];
/// Keys as they were once written.
const OLD_KEYS: [&str; 2] = ["heartbeat-ms", "silence-ms"];

/// The first key that is not known, with its table in front, and those that are known there.
fn unknown_key(table: &toml::Table) -> Option<(String, &'static [&'static str])> {
    if let Some(key) = table.keys().find(|k| !KEYS.contains(&k.as_str())) {
        return Some((key.clone(), &KEYS));
    }
    if let Some(key) = alarm::unknown_key(table) {
        return Some((key, &alarm::KEYS));
    }
    let tables: [(&str, &'static [&'static str]); 2] = [("api", &API_KEYS), ("system", &SYSTEM_KEYS)];
    tables.into_iter().find_map(|(name, known)| {
        let is_known =
            |k: &&String| known.contains(&k.as_str()) || name == "system" && OLD_KEYS.contains(&k.as_str());
        let key = table.get(name)?.as_table()?.keys().find(|k| !is_known(k))?;
        Some((format!("{name}.{key}"), known))
    })
}

/// A failure because of what the file holds.
fn bad_file(message: String) -> Failure {
    Failure::usage(message).with_code(CommandFault::ConfigurationWrong).with_next(EXPLAINED)
}

/// On which line a text that is known to be good TOML has which key, with its table in front.
fn lines_of_keys(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    let mut table = String::new();
    for (i, line) in text.lines().map(str::trim).enumerate() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            table = format!("{}.", name.trim());
        } else if let Some((key, _)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let key = key.trim().trim_matches('"');
            lines.entry(format!("{table}{key}")).or_insert(i + 1);
        }
    }
    lines
}

/// Cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The numbers of the cores that this process may use; empty if the machine does not say.
pub fn cores_allowed() -> Vec<u16> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    list.and_then(parse_cores).unwrap_or_default()
}

/// `0-3,8`, as the kernel writes it (proc(5)).
fn parse_cores(list: &str) -> Option<Vec<u16>> {
    let mut out = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        out.extend(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(out)
}

/// Most bytes of a configuration, or of a token.
const TEXT_MAX: u64 = 1 << 20;

/// How long a pipe may take before it is said that it is waited for.
const PIPE_SILENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// Says on stderr that a pipe is waited for, if it still is after a while.
struct Waiting {
    over: Option<std::sync::mpsc::Sender<()>>,
}

impl Waiting {
    fn new(path: &Path) -> Self {
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        let words =
            format!("note: waiting for somebody to write to the pipe {} and close it", path.display());
        let tell = move || {
            if is_over.recv_timeout(PIPE_SILENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{words}");
            }
        };
        // Without the thread it is waited for all the same.
        let thread = std::thread::Builder::new().name("waiting".into()).spawn(tell);
        Self { over: thread.is_ok().then_some(over) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.over = None;
    }
}

/// The text of a small file: a regular one, or a pipe (`--config <(…)`), read until its end. Devices have none.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, Read};
    let file = std::fs::metadata(path)?.file_type();
    if file.is_dir() {
        return Err(Error::other("it is a directory"));
    }
    if !file.is_file() && !file.is_fifo() {
        return Err(Error::other("it is neither a file nor a pipe"));
    }
    let mut text = Vec::new();
    // A pipe that nobody writes to would be waited for in silence.
    let _told = file.is_fifo().then(|| Waiting::new(path));
    std::fs::File::open(path)?.take(TEXT_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > TEXT_MAX {
        return Err(Error::other("it is longer than 1M"));
    }
    String::from_utf8(text).map_err(|_| Error::other("it is not text (UTF-8)"))
}

/// `:4: memory`: where in the file, and which key.
pub fn place(text: &str, span: core::ops::Range<usize>) -> String {
    let before = &text[..span.start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let key = text.lines().nth(line - 1).unwrap_or("").split('=').next().unwrap_or("").trim();
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if plain { format!(":{line}: {key}") } else { format!(":{line}") }
}

/// The socket that the command line uses unless told: the one of this machine's configuration.
pub fn default_socket() -> PathBuf {
    Config::load(None).map_or_else(|_| SOCKET_PATH.into(), |c| c.socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let path = Path::new("head.toml");
        Config::parse(text, path).and_then(|c| c.fits(Some(path))).expect_err(text).to_string()
    }

    #[test]
    fn an_empty_file_is_a_good_one() {
        assert_eq!(Config::parse("", Path::new("head.toml")), Ok(Config::default()));
        assert!(Config::default().shard_count() >= 1);
        assert!(Config::default().memory_bytes() >= 256 << 20);
    }

    #[test]
    fn the_example_in_packaging_is_read_and_is_the_default() {
        let text = EXAMPLE;
        let config = Config::parse(text, Path::new("head.toml")).expect("a good file");
        let usual = Config { lines: config.lines.clone(), ..Config::default() };
        assert_eq!(config, usual);
        // Every key that is commented out there is a key, and every key is there.
        let whole: String =
            text.lines().map(|l| l.strip_prefix("#= ").unwrap_or(l)).map(|l| format!("{l}\n")).collect();
        // Its values are for a larger machine than every test runs on, and are not checked.
        let config: Config = toml::from_str(&whole).expect("every key is known");
        let table: toml::Table = toml::from_str(&whole).expect("TOML");
        let has = |table: &toml::Table, keys: &[&str]| keys.iter().all(|k| table.contains_key(*k));
        let inner = |name: &str| table.get(name).and_then(toml::Value::as_table).expect("a table");
        assert!(has(&table, &KEYS) && has(inner("api"), &API_KEYS) && has(inner("system"), &SYSTEM_KEYS));
        assert_eq!((config.shards, config.memory), (4, 2 << 30));
        assert!(config.api.tcp.is_some() && config.api.token_file.is_some());
        let all: Vec<&String> =
            inner("alarm").values().filter_map(|r| r.as_table()).flat_map(|r| r.keys()).collect();
        assert!(alarm::KEYS.iter().all(|k| all.iter().any(|a| a == k)), "{all:?}");
        for (name, receiver) in &config.alarm {
            assert_eq!(receiver.check(name), Ok(()));
        }
    }

    #[test]
    fn a_wrong_file_is_a_sentence_with_line_and_field() {
        for (text, words) in [
            (
                "state_dir = \"/x\"\nmemroy = \"1G\"\n",
                &["head.toml:2: unknown key \"memroy\"; did you mean \"memory\"?"][..],
            ),
            (
                "log = \"info\"\n\nshrds = 4\n",
                &["head.toml:3: unknown key \"shrds\"; did you mean \"shards\"?"],
            ),
            (
                "[system]\nheartbeats = 4\n",
                &["head.toml:2: unknown key \"heartbeats\"; did you mean \"heartbeat_ms\"?"],
            ),
            ("colour = 4\n", &["head.toml:1: unknown key \"colour\"; the keys here are state_dir, socket,"]),
            ("\"a\\nb\" = 4\n", &["unknown key \"a\\nb\""]),
            ("[alarm.a]\nwebhok = 1\n", &["head.toml:2: unknown key \"webhok\"; did you mean \"webhook\"?"]),
            ("[alarm]\nwebhook = \"http://a/\"\n", &["head.toml:2: alarm.webhook: ", "[alarm.NAME]"]),
            ("[alarm.a]\nlevel = \"note\"\n", &["alarm.a", "webhook, command or mail"]),
            ("[alarm.a]\nwebhook = \"ftp://a/\"\n", &["head.toml:2: alarm.a.webhook", "http://"]),
            ("[alarm.a]\ncommand = [\"mail\"]\n", &["head.toml:2: alarm.a.command", "beginning with /"]),
            ("[alarm.a]\nmail = [\"a@b\"]\n", &["head.toml:2: alarm.a.mail", "relay"]),
            (
                "[alarm.a]\nwebhook = \"http://a/\"\ncodes = [\"leg_slwo\"]\n",
                &["head.toml:3: alarm.a.codes", "\"leg_slwo\" is no code", "did you mean \"leg_slow\"?"],
            ),
            (
                "[alarm.a]\nwebhook = \"http://a/\"\nquiet = \"22-6\"\n",
                &["head.toml:3: quiet:", "22:00-06:00"],
            ),
            ("[alarm.a]\nwebhook = \"http://a/\"\nrepeat = \"4\"\n", &["head.toml:3: repeat:", "4h"]),
            ("[alarm.a]\nwebhook = \"http://a/\"\nfrom = \"x@y\"\n", &["head.toml:3: alarm.a.from", "mail"]),
            ("[api]\ntpc = 1\n", &["head.toml:2: unknown key \"tpc\"; did you mean \"tcp\"?"]),
            ("shards = \"two\"\n", &["head.toml:1: shards:", "is not a whole number from 0 to 65535"]),
            ("shards = -1\n", &["head.toml:1: shards: -1 is not"]),
            ("log = \"info\"\nshards = 4000\n", &["head.toml:2: shards = 4000", "at most 128"]),
            ("shards = 127\ncores = [1]\n", &["127"]),
            ("memory = \"lots\"\n", &["head.toml:1: memory:", "\"lots\" is not a size"]),
            ("memory = \"1M\"\n", &["head.toml:1: memory", "at least 64M"]),
            ("memory = \"18446744073709551616\"\n", &["memory", "too large"]),
            ("socket_mode = \"0888\"\n", &["head.toml:1: socket_mode:", "permissions"]),
            ("socket = \"\"\n", &["socket must not be empty"]),
            ("cores = [1, 1]\n", &["head.toml:1: cores", "a core twice"]),
            ("cores = [9999]\n", &["cores = [9999]", "no core 9999"]),
            ("state_dir = \"state\"\n", &["state_dir = \"state\"", "beginning with /"]),
            ("socket = \"./api.sock\"\n", &["socket = \"./api.sock\"", "beginning with /"]),
            ("shards = 3\ncores = [0, 1]\n", &["2 cores for 3 shards"]),
            ("state_dir = \n", &["head.toml:1"]),
            ("[api]\ntcp = \"localhost\"\ntoken_file = \"t\"\n", &["head.toml:2: tcp:", "socket address"]),
            ("[api]\nnames = [\"a:1\"]\n", &["head.toml:2: api.names", "without a port"]),
            ("[api]\ntls = \"on\"\n", &["head.toml:2: tls", "self-signed"]),
            ("[api]\ntls = { cert = \"c\", key = \"/k\" }\n", &["head.toml:2: api.tls = \"c\""]),
            ("api = { token_file = \"/t\" }\n", &["head.toml:1: api.token_file"]),
            ("# log = \"x\"\nlog = \"x\"\n", &["head.toml:2: log = \"x\""]),
            ("[api]\ntoken_file = \"/t\"\n", &["head.toml:2: api.token_file", "without api.tcp"]),
            ("[api]\ntcp = \"127.0.0.1:1\"\ntoken_file = \"t\"\n", &["api.token_file = \"t\""]),
            ("\u{0}", &["head.toml:1"]),
        ] {
            let error = error(text);
            for word in words {
                assert!(error.contains(word), "{text:?}: {error}");
            }
            assert!(error.lines().count() == 2 && error.ends_with(EXPLAINED), "{text:?}: {error}");
        }
    }

    #[test]
    fn keys_are_taken_as_they_were_once_written() {
        for text in ["[system]\nheartbeat_ms = 500\n", "[system]\nheartbeat-ms = 500\n"] {
            let config = Config::parse(text, Path::new("head.toml")).expect(text);
            assert_eq!(config.system, SystemConfig { heartbeat_ms: 500, ..SystemConfig::default() });
        }
    }

    #[test]
    fn fuzz_head_toml() {
        let take = |bytes: &[u8]| {
            let Err(failure) = Config::parse(&String::from_utf8_lossy(bytes), Path::new("head.toml")) else {
                return;
            };
            let sentence = &failure.message;
            assert!(sentence.starts_with("head.toml") && failure.next.is_some(), "{failure}");
            assert!(!sentence.contains('\n'), "{sentence}");
        };
        let packaged = include_bytes!("../../../packaging/head.toml").to_vec();
        let examples = [
            "state_dir = \"/var/lib/millrace\"\nsocket_mode = \"0660\"\nshards = 1\ncores = [0]\nmemory = \"64M\"\n",
            "log = \"debug\"\n[api]\ntcp = \"127.0.0.1:8443\"\ntoken_file = \"/etc/millrace/token\"\n",
            "memory = \"1.5GiB\"\nshards = -1\nsocket = ''\n",
        ];
        let examples = examples.iter().map(|e| e.as_bytes().to_vec()).chain([packaged]).collect();
        let target = fuzz::Target { name: "head.toml", run: take, examples, mend: |_| {}, bytes_max: 4096 };
        let inputs = fuzz::run(&target, 1, fuzz::limit());
        assert!(inputs > 100, "only {inputs} inputs");
    }

    #[test]
    fn cores_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cores("\t0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cores("0"), Some(vec![0]));
        assert_eq!(parse_cores("all"), None);
        assert!(!cores_allowed().is_empty());
    }

    #[test]
    fn more_shards_than_cores_are_told_and_far_more_are_refused() {
        let few = Config { shards: 1, ..Config::default() };
        assert_eq!(few.notices(), None);
        let most = cores() * SHARDS_PER_CORE_MAX;
        if most < usize::from(SHARDS_MAX) {
            let error = error(&format!("shards = {}\n", most + 1));
            assert!(error.contains("wants one for itself"), "{error}");
            let many = Config { shards: most as u16, ..Config::default() };
            assert!(matches!(many.notices(), Some(SystemNotice::ShardsShareCores { .. })));
        }
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let failure = Config::load(Some(Path::new("/nonexistent/head.toml"))).expect_err("missing");
        assert_eq!(failure.exit, crate::failure::Exit::Usage);
        assert!(failure.to_string().contains("/nonexistent/head.toml"), "{failure}");
    }
    #[test]
    fn a_configuration_is_a_file_or_a_pipe_of_bounded_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| Config::load(Some(path)).expect_err("no configuration").message;
        assert!(refused(Path::new("/dev/zero")).contains("/dev/zero: it is neither a file nor a pipe"));
        assert!(refused(folder.path()).contains("it is a directory"));
        let large = folder.path().join("large");
        std::fs::File::create(&large).expect("made").set_len(TEXT_MAX + 1).expect("grown");
        assert!(refused(&large).contains("longer than 1M"));
        let odd = folder.path().join("odd");
        std::fs::write(&odd, [0xff, 0xfe]).expect("written");
        assert!(refused(&odd).contains("not text"));
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("coreutils").success());
        let to = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(to, "shards = 1\n"));
        assert_eq!(Config::load(Some(&pipe)).expect("read").shards, 1);
        writer.join().expect("ended").expect("written");
    }
}
