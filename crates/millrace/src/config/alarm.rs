//! `[alarm.NAME]`: a receiver of alarms, and what it wants to be told.

use api::Weight;
use finding::{Cause, Code, Event};
use hyper::Uri;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use std::path::PathBuf;
use std::time::Duration;

/// The keys of a receiver.
pub const KEYS: [&str; 16] = [
    "webhook",
    "command",
    "mail",
    "relay",
    "from",
    "user",
    "password_file",
    "token_file",
    "ca_file",
    "timeout",
    "level",
    "codes",
    "not_codes",
    "repeat",
    "recovery",
    "quiet",
];

/// Said of a key that stands beside the receivers.
pub const LOOSE: &str = "each receiver has a table of its own: write its keys behind [alarm.NAME]";

/// A receiver as the file has it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverConfig {
    /// URL of a webhook.
    pub webhook: Option<String>,
    /// Program and arguments of a command.
    pub command: Vec<String>,
    /// Addresses to which mail goes.
    pub mail: Vec<String>,
    /// Where mail is handed in: `smtp://HOST:PORT`.
    pub relay: Option<String>,
    /// The address that mail comes from.
    pub from: Option<String>,
    /// User at the relay.
    pub user: Option<String>,
    /// File with that user's password.
    pub password_file: Option<PathBuf>,
    /// File with a bearer token for the webhook.
    pub token_file: Option<PathBuf>,
    /// File with the certificates to trust instead of the machine's.
    pub ca_file: Option<PathBuf>,
    /// How long one message may take.
    #[serde(deserialize_with = "span")]
    pub timeout: Duration,
    /// The least level.
    pub level: Weight,
    /// Codes that are wanted; all, if none is named.
    pub codes: Vec<String>,
    /// Codes that are not.
    pub not_codes: Vec<String>,
    /// How often what stands is told again.
    #[serde(deserialize_with = "span")]
    pub repeat: Duration,
    /// Whether it is told what is over.
    pub recovery: bool,
    /// When it is told errors alone.
    pub quiet: Option<Quiet>,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            webhook: None,
            command: Vec::new(),
            mail: Vec::new(),
            relay: None,
            from: None,
            user: None,
            password_file: None,
            token_file: None,
            ca_file: None,
            timeout: Duration::from_secs(15),
            level: Weight::Warning,
            codes: Vec::new(),
            not_codes: Vec::new(),
            repeat: Duration::from_secs(4 * 3600),
            recovery: true,
            quiet: None,
        }
    }
}

/// Where alarms go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// POST to a URL.
    Webhook(Uri),
    /// A program with its arguments.
    Command(Vec<String>),
    /// Mail by a relay.
    Mail(Mail),
}

impl Target {
    /// The word for people and programs.
    pub fn word(&self) -> &'static str {
        match self {
            Target::Webhook(_) => "webhook",
            Target::Command(_) => "command",
            Target::Mail(_) => "mail",
        }
    }
}

/// How mail is handed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    /// The relay's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether and when TLS begins.
    pub cover: Cover,
    /// The address that it comes from; None: one of this machine.
    pub from: Option<String>,
    /// To whom.
    pub to: Vec<String>,
}

/// Whether TLS is used with a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cover {
    /// No TLS, and no password.
    No,
    /// After STARTTLS, or nothing is sent.
    StartTls,
    /// From the first byte on.
    Tls,
}

/// A time of day that passes each day, minutes from midnight; it may pass midnight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quiet {
    from: u16,
    to: u16,
}

impl Quiet {
    /// Whether the minute of the day is in it.
    pub fn holds(&self, minute: u16) -> bool {
        if self.from <= self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

impl core::str::FromStr for Quiet {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute) = (hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?);
            (hour < 24 && minute < 60).then_some(hour * 60 + minute)
        };
        let both = text.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match both {
            Some((from, to)) if from != to => Ok(Self { from, to }),
            _ => Err(format!(
                "\"{text}\" is not a part of the day: write two times that differ, such as \"22:00-06:00\""
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Quiet {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(de::Error::custom)
    }
}

fn span<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let seconds = crate::arguments::span(&String::deserialize(input)?).map_err(de::Error::custom)?;
    Ok(Duration::from_secs(seconds))
}

/// What is wrong with a receiver: the key, and a sentence.
type Wrong = (&'static str, String);

impl ReceiverConfig {
    /// Where its alarms go.
    pub fn target(&self) -> Result<Target, Wrong> {
        let given = [self.webhook.is_some(), !self.command.is_empty(), !self.mail.is_empty()];
        if given.iter().filter(|g| **g).count() != 1 {
            return Err(("", "a receiver has one of webhook, command or mail".into()));
        }
        if let Some(url) = &self.webhook {
            let uri: Option<Uri> = url.parse().ok();
            let good =
                uri.filter(|u| matches!(u.scheme_str(), Some("http" | "https")) && port(u, 0).is_some());
            let wrong = || ("webhook", "write a URL that begins with http:// or https://".to_string());
            return good.map(Target::Webhook).ok_or_else(wrong);
        }
        if let Some(program) = self.command.first() {
            if !program.starts_with('/') {
                return Err(("command", format!("\"{program}\": write the whole path, beginning with /")));
            }
            return Ok(Target::Command(self.command.clone()));
        }
        self.mail_target()
    }

    fn mail_target(&self) -> Result<Target, Wrong> {
        let Some(relay) = &self.relay else {
            return Err(("mail", "needs relay, such as relay = \"smtp://mail.example.com\"".into()));
        };
        let covers = [
            ("smtp://", Cover::No, 25),
            ("smtp+starttls://", Cover::StartTls, 587),
            ("smtps://", Cover::Tls, 465),
        ];
        let found = covers.iter().find_map(|(scheme, cover, port)| {
            let uri: Uri = format!("http://{}", relay.strip_prefix(scheme)?).parse().ok()?;
            let host = uri.host()?.trim_matches(['[', ']']).to_string();
            let port = self::port(&uri, *port)?;
            (uri.path() == "/" && !host.is_empty()).then_some((host, port, *cover))
        });
        let Some((host, port, cover)) = found else {
            return Err((
                "relay",
                format!("\"{relay}\": write smtp://, smtp+starttls:// or smtps:// and HOST or HOST:PORT"),
            ));
        };
        let addresses = self.mail.iter().map(|a| ("mail", a)).chain(self.from.iter().map(|a| ("from", a)));
        for (key, address) in addresses {
            if !is_address(address) {
                return Err((key, format!("\"{address}\" is no mail address")));
            }
        }
        Ok(Target::Mail(Mail { host, port, cover, from: self.from.clone(), to: self.mail.clone() }))
    }

    /// What the text alone shows to be wrong; the sentence begins with the key.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let wrong = |key: &str, message: &str| match key {
            "" => Err(format!("alarm.{name}: {message}")),
            key => Err(format!("alarm.{name}.{key}: {message}")),
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)) {
            return wrong("", "a name has letters, digits, - and _");
        }
        let target = match self.target() {
            Ok(target) => target,
            Err((key, message)) => return wrong(key, &message),
        };
        let of_mail = ["relay", "from", "user", "password_file"];
        let given = [
            ("relay", self.relay.is_some()),
            ("from", self.from.is_some()),
            ("user", self.user.is_some()),
            ("password_file", self.password_file.is_some()),
            ("token_file", self.token_file.is_some()),
            ("ca_file", self.ca_file.is_some()),
        ];
        for (key, _) in given.iter().filter(|(_, is_given)| *is_given) {
            match target {
                Target::Webhook(_) if of_mail.contains(key) => return wrong(key, "is for mail alone"),
                Target::Mail(_) if *key == "token_file" => return wrong(key, "is for a webhook alone"),
                Target::Command(_) => return wrong(key, "is of no use to a command"),
                _ => {}
            }
        }
        if self.user.is_some() != self.password_file.is_some() {
            return wrong("user", "goes together with password_file");
        }
        if self.user.is_some() && matches!(&target, Target::Mail(mail) if mail.cover == Cover::No) {
            return wrong("user", "a password needs TLS: write smtp+starttls:// or smtps:// in relay");
        }
        for (key, file) in [
            ("password_file", &self.password_file),
            ("token_file", &self.token_file),
            ("ca_file", &self.ca_file),
        ] {
            if file.as_ref().is_some_and(|path| !path.is_absolute()) {
                return wrong(key, "write the whole path, beginning with /");
            }
        }
        if !(1..=600).contains(&self.timeout.as_secs()) {
            return wrong("timeout", "from 1s to 10m");
        }
        if self.repeat.as_secs() < 60 {
            return wrong("repeat", "at least 1m");
        }
        for (key, codes) in [("codes", &self.codes), ("not_codes", &self.not_codes)] {
            if let Some(code) = codes.iter().find(|c| !is_known(c)) {
                let known = known_codes();
                let near = crate::spelling::nearest(code, known.iter().map(String::as_str));
                let help = near.map_or_else(
                    || "; docs/api-codes.md lists those of events and causes".to_string(),
                    |near| format!("; did you mean \"{near}\"?"),
                );
                return wrong(key, &format!("\"{code}\" is no code{help}"));
            }
        }
        Ok(())
    }

    /// Whether it wants to be told of this.
    pub fn wants(&self, level: Weight, code: &str) -> bool {
        level >= self.level
            && (self.codes.is_empty() || self.codes.iter().any(|c| fits(c, code)))
            && !self.not_codes.iter().any(|c| fits(c, code))
    }
}

/// The port of a URL, or the usual one. None: it names no host, or something else beside.
fn port(uri: &Uri, usual: u16) -> Option<u16> {
    match uri.authority()?.as_str().strip_prefix(uri.host()?)? {
        "" => Some(usual),
        rest => rest.strip_prefix(':')?.parse().ok(),
    }
}

/// Whether a pattern stands for a code: a `*` at its end stands for any rest.
fn fits(pattern: &str, code: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => code.starts_with(begin),
        None => code == pattern,
    }
}

/// A part, `@`, and a part, of what may stand in an envelope of SMTP as it is.
fn is_address(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(user, domain)| {
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_graphic() && !b"<>@,;:\\\"()".contains(&b));
        !user.is_empty() && !domain.is_empty() && plain(user) && plain(domain)
    })
}

/// Codes of which there may be alarms.
fn known_codes() -> Vec<String> {
    Event::codes().iter().chain(&Cause::codes()).map(Code::code).filter(|c| c != "said").collect()
}

fn is_known(pattern: &str) -> bool {
    known_codes().iter().any(|code| fits(pattern, code))
}

/// The first key of a receiver that is not known, with its tables in front.
pub fn unknown_key(table: &toml::Table) -> Option<String> {
    let receivers = table.get("alarm")?.as_table()?;
    receivers.iter().find_map(|(name, receiver)| {
        let key = receiver.as_table()?.keys().find(|k| !KEYS.contains(&k.as_str()))?;
        Some(format!("alarm.{name}.{key}"))
    })
}

/// A key that stands beside the receivers.
pub fn loose_key(table: &toml::Table) -> Option<String> {
    let receivers = table.get("alarm")?.as_table()?;
    let (key, _) = receivers.iter().find(|(_, value)| !value.is_table())?;
    Some(format!("alarm.{}", key.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_time_may_pass_midnight() {
        let night: Quiet = "22:00-06:30".parse().expect("a time");
        let lunch: Quiet = "12:00-13:00".parse().expect("a time");
        for (minute, at_night, at_lunch) in [
            (0, true, false),
            (389, true, false),
            (390, false, false),
            (720, false, true),
            (779, false, true),
        ] {
            assert_eq!((night.holds(minute), lunch.holds(minute)), (at_night, at_lunch), "{minute}");
        }
        assert!(!lunch.holds(780) && !night.holds(1319) && night.holds(1320) && night.holds(1439));
        for text in ["", "22-6", "22:00", "24:00-06:00", "22:60-06:00", "06:00-06:00", "a:b-c:d"] {
            assert!(text.parse::<Quiet>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_receiver_wants_levels_and_codes() {
        let all = ReceiverConfig::default();
        assert!(!all.wants(Weight::Note, "leg_out") && all.wants(Weight::Warning, "leg_out"));
        let some = ReceiverConfig {
            codes: vec!["leg_*".into(), "voters_unseen".into()],
            not_codes: vec!["leg_slow".into()],
            ..ReceiverConfig::default()
        };
        for (code, wanted) in
            [("leg_out", true), ("leg_slow", false), ("voters_unseen", true), ("voters_unseen_x", false)]
        {
            assert_eq!(some.wants(Weight::Error, code), wanted, "{code}");
        }
    }

    #[test]
    fn a_relay_says_its_cover_and_port() {
        let mail = |relay: &str| {
            let (mail, relay) = (vec!["a@example.com".to_string()], Some(relay.to_string()));
            ReceiverConfig { mail, relay, ..ReceiverConfig::default() }.target()
        };
        for (relay, host, port, cover) in [
            ("smtp://mail", "mail", 25, Cover::No),
            ("smtp+starttls://mail.example.com", "mail.example.com", 587, Cover::StartTls),
            ("smtps://192.0.2.1:4650/", "192.0.2.1", 4650, Cover::Tls),
            ("smtp://[2001:db8::1]:2525", "2001:db8::1", 2525, Cover::No),
        ] {
            let Ok(Target::Mail(found)) = mail(relay) else { panic!("{relay}") };
            assert_eq!((found.host.as_str(), found.port, found.cover), (host, port, cover));
        }
        for relay in ["mail", "smtp://", "smtp://mail/box", "http://mail", "smtp://mail:99999"] {
            assert_eq!(mail(relay).expect_err(relay).0, "relay");
        }
        for address in ["a", "@b", "a@", "a@b\r\nRCPT TO:<c@d>", "a b@c", "<a@b>", "a@b@c"] {
            assert!(!is_address(address), "{address}");
        }
    }
}
