//! `millrace host`.

use super::consent::Consent;
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, count};
use api::{Host, HostAdd, HostPath, HostSet, PathRates, Secret};
use clap::{Args, Subcommand};

/// Register hosts, with their NQNs, IQNs and CHAP secrets.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace host add web1 --nqn nqn.2014-08.org.nvmexpress:uuid:8f4c…
  millrace host set web1 --chap-secret-file F
  millrace host ls")]
pub enum HostCommand {
    /// Register a host
    #[command(after_help = "\
A host needs an NQN for NVMe/TCP, an IQN for iSCSI, or both. On Linux the NQN is in /etc/nvme/hostnqn, the IQN in /etc/iscsi/initiatorname.iscsi. A CHAP secret has 12 to 128 characters, in one line.

Examples:
  millrace host add web1 --nqn nqn.2014-08.org.nvmexpress:uuid:8f4c…
  millrace host add web1 --iqn iqn.1993-08.org.debian:01:web1
  millrace host add web1 --iqn iqn.2026-01.com.example:web1 --chap-secret-file F")]
    Add {
        /// A short name for the host
        #[arg(value_name = "HOST")]
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change the names or secrets of a host
    #[command(after_help = "\
Options that are not given keep their values. --nqn replaces all NQNs, --iqn all IQNs of the host.

Examples:
  millrace host set web1 --chap-secret-file F --mutual-secret-file G
  pass show web1 | millrace host set web1 --chap-secret-file -
  millrace host set web1 --no-chap
  millrace host set web1 --iqn iqn.1993-08.org.debian:01:web1-new")]
    Set {
        /// The host
        #[arg(value_name = "HOST", add = super::complete::hosts())]
        name: String,
        #[command(flatten)]
        settings: Settings,
        /// Require no secret any more; removes the mutual secret, too
        #[arg(long, conflicts_with_all = ["chap_secret_file", "mutual_secret_file", "no_mutual"])]
        no_chap: bool,
        /// Remove the mutual secret
        #[arg(long, conflicts_with = "mutual_secret_file")]
        no_mutual: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// List hosts
    #[command(after_help = "\
Examples:
  millrace host ls
  millrace host ls --json")]
    Ls,
    /// Show one host: names, secrets in use, connections and volumes
    #[command(after_help = "\
Examples:
  millrace host show web1")]
    Show {
        /// The host
        #[arg(value_name = "HOST", add = super::complete::hosts())]
        name: String,
    },
    /// Remove a host; its connections end
    #[command(after_help = "\
Examples:
  millrace host rm web1
  millrace host rm web1 --force  # even if volumes are exported to it")]
    Rm {
        /// The host
        #[arg(value_name = "HOST", add = super::complete::hosts())]
        name: String,
        /// Remove it even if volumes are exported to it
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

/// What may be said of a host.
#[derive(Args, Debug, Default)]
pub struct Settings {
    /// NVMe qualified name of the host; may be repeated
    #[arg(long = "nqn", value_name = "NQN")]
    nqns: Vec<String>,
    /// iSCSI qualified name of the host; may be repeated
    #[arg(long = "iqn", value_name = "IQN")]
    iqns: Vec<String>,
    /// File with the CHAP secret that the host must know (iSCSI), or - for stdin
    #[arg(long, value_name = "FILE")]
    chap_secret_file: Option<String>,
    /// CHAP user name of the host [default: its IQN]
    #[arg(long, value_name = "NAME")]
    chap_user: Option<String>,
    /// File with the secret of the head, for mutual CHAP, or - for stdin
    #[arg(long, value_name = "FILE")]
    mutual_secret_file: Option<String>,
}

/// A secret from a file or stdin, without the line break at its end. Secrets never stand on the
/// command line, where every user of the machine could read them.
fn secret(file: Option<&str>, option: &str) -> Result<Option<Secret>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let cannot = |e: &str| {
        Failure::usage(format!("{option}: cannot read {file}: {e}"))
            .with_next(format!("{option} FILE, readable by you, or - for stdin"))
    };
    crate::arguments::read_secret(file).map(Some).map_err(|why| cannot(&why))
}

/// Carries out one of them.
pub fn run(command: HostCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        HostCommand::Add { name, settings } => {
            let (chap_secret, mutual_secret) = secrets(&settings)?;
            let body = HostAdd {
                name: name.clone(),
                nqns: settings.nqns,
                iqns: settings.iqns,
                chap_secret,
                chap_user: settings.chap_user,
                mutual_secret,
            };
            if body.nqns.is_empty() && body.iqns.is_empty() {
                return Err(Failure::usage(format!(
                    "host {name} needs an NQN for NVMe/TCP, an IQN for iSCSI, or both"
                ))
                .with_next(format!("millrace host add {name} --nqn NQN, or --iqn IQN, or both")));
            }
            let created: api::Created = client.post("/hosts", &body)?;
            let next = format!("millrace export POOL/VOLUME --host {name}");
            Ok(context.created(&created, format!("Host {name} is registered."), &next))
        }
        HostCommand::Set { name, settings, no_chap, no_mutual, consent } => {
            let (chap_secret, mutual_secret) = secrets(&settings)?;
            let body = HostSet {
                nqns: (!settings.nqns.is_empty()).then_some(settings.nqns),
                iqns: (!settings.iqns.is_empty()).then_some(settings.iqns),
                chap_secret: if no_chap { Some(None) } else { chap_secret.map(Some) },
                chap_user: settings.chap_user,
                mutual_secret: if no_chap || no_mutual { Some(None) } else { mutual_secret.map(Some) },
            };
            if body == HostSet::default() {
                return Err(Failure::usage("name what to change: --nqn, --iqn, --chap-secret-file, --chap-user, --mutual-secret-file, --no-chap or --no-mutual").with_next("millrace host set --help"));
            }
            let path = format!("/hosts/{}", segment(&name));
            consent.obtain(context, |yes| client.patch(&format!("{path}?disconnect={yes}"), &body))?;
            Ok(context.done(format!("Host {name} is changed."), &format!("millrace host show {name}")))
        }
        HostCommand::Ls => {
            let hosts: Vec<Host> = client.get("/hosts")?;
            Ok(context.show(&hosts, |hosts| list(hosts, context)))
        }
        HostCommand::Show { name } => {
            let host: Host = client.get(&format!("/hosts/{}", segment(&name)))?;
            Ok(context.show(&host, |host| show(host, context)))
        }
        HostCommand::Rm { name, force, consent } => {
            let path = format!("/hosts/{}?force={force}", segment(&name));
            consent.obtain(context, |yes| client.delete(&format!("{path}&disconnect={yes}")))?;
            Ok(context.done(format!("Host {name} is removed."), ""))
        }
    }
}

fn secrets(settings: &Settings) -> Result<(Option<Secret>, Option<Secret>), Failure> {
    let (chap, mutual) = (settings.chap_secret_file.as_deref(), settings.mutual_secret_file.as_deref());
    if chap == Some("-") && mutual == Some("-") {
        return Err(
            Failure::usage("only one secret can come from stdin").with_next("a file for the other one")
        );
    }
    Ok((secret(chap, "--chap-secret-file")?, secret(mutual, "--mutual-secret-file")?))
}

/// What a host is that is known by its name alone.
pub const IDENTIFIED: &str = "identified, not authenticated";

/// How we know that a host is who it says (promise 10).
pub fn trust(host: &Host) -> Cell {
    match (host.authenticated, host.nqns.is_empty(), host.mutual) {
        (true, true, true) => Cell::new(Look::Good, "authenticated, both ways"),
        (true, true, false) => Cell::new(Look::Good, "authenticated"),
        // CHAP proves the iSCSI name; the NVMe name of the same host may be used by anybody.
        (true, false, _) => Cell::new(Look::Warn, format!("iscsi authenticated, nvme {IDENTIFIED}")),
        (false, ..) => Cell::new(Look::Warn, IDENTIFIED),
    }
}

/// The table of all hosts.
pub fn table(hosts: &[Host]) -> Table {
    // Names are long and are copied: they go below their row, in one piece each.
    let mut table = Table::new(&["HOST", ">CONNECTIONS", ">VOLUMES", "TRUST", "NAMES"])
        .optional(&["VOLUMES"])
        .optional(&["CONNECTIONS"])
        .prose();
    for h in hosts {
        let names: Vec<&str> = h.nqns.iter().chain(&h.iqns).map(String::as_str).collect();
        table.row([
            Cell::new(Look::Bold, h.name.clone()),
            h.connections.to_string().into(),
            h.exports.len().to_string().into(),
            trust(h),
            names.join(" ").into(),
        ]);
    }
    table
}

fn list(hosts: &[Host], context: &Context) -> String {
    if hosts.is_empty() {
        return "There is no host.\nNext: millrace host add NAME --nqn NQN --iqn IQN\n".into();
    }
    table(hosts).print(context.terminal, 0)
}

fn show(h: &Host, context: &Context) -> String {
    let mut table = Table::new(&["", ""]).prose();
    let mut row = |name: &str, value: Cell| table.row([Cell::new(Look::Dim, name), value]);
    row("host", Cell::new(Look::Bold, h.name.clone()));
    row("trust", trust(h));
    if h.mutual {
        row("mutual", "this head proves a secret to it (iscsi)".into());
    }
    for nqn in &h.nqns {
        row("nqn", nqn.clone().into());
    }
    for iqn in &h.iqns {
        row("iqn", iqn.clone().into());
    }
    if !h.chap_user.is_empty() {
        row("chap user", h.chap_user.clone().into());
    }
    row("connections", h.connections.to_string().into());
    for p in &h.paths {
        row("path", Cell::new(if p.connections == 0 { Look::Warn } else { Look::Plain }, path(p)));
    }
    for e in &h.exports {
        // A number of a protocol that the host has no name for is no use to it.
        let numbers = match (h.nqns.is_empty(), h.iqns.is_empty()) {
            (true, false) => format!("lun {}", e.lun),
            (false, true) => format!("nsid {}", e.nsid),
            (true, true) | (false, false) => format!("nsid {}, lun {}", e.nsid, e.lun),
        };
        row("volume", format!("{}  {numbers}", e.volume).into());
    }
    if h.exports.is_empty() {
        row("volume", Cell::new(Look::Dim, "none"));
    }
    table.print(context.terminal, 0)
}

/// A path of a host, and what goes over it.
fn path(p: &HostPath) -> String {
    let head = p.head.as_ref().map_or(String::new(), |head| format!(" at head {head}"));
    let name = format!("{} {}{head}", p.protocol.word(), p.portal);
    if p.connections == 0 {
        return format!("{name}  not connected, and was since the head started");
    }
    let PathRates { reads, writes, read_bytes, write_bytes } = p.rates;
    let megabytes = (read_bytes + write_bytes) / 1_000_000;
    let connections = count(p.connections as usize, "connection");
    format!("{name}  {connections}, {reads} reads/s, {writes} writes/s, {megabytes} MB/s")
}

#[cfg(test)]
mod tests {
    use super::{path, secret};
    use api::{HostPath, PathRates};

    #[test]
    fn a_path_says_what_goes_over_it_or_that_it_is_not_connected() {
        let rates = PathRates { reads: 1200, read_bytes: 4_915_200, writes: 30, write_bytes: 122_880 };
        let mut p = HostPath {
            protocol: api::Protocol::Iscsi,
            portal: "10.0.0.1:3260".parse().expect("an address"),
            head: Some("b".into()),
            connections: 2,
            in_flight: 0,
            counters: Default::default(),
            rates,
            read_times: None,
            write_times: None,
            queue_times: None,
        };
        let text = "iscsi 10.0.0.1:3260 at head b  2 connections, 1200 reads/s, 30 writes/s, 5 MB/s";
        assert_eq!(path(&p), text);
        p.connections = 0;
        assert!(path(&p).ends_with("at head b  not connected, and was since the head started"));
    }

    #[test]
    fn a_secret_is_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let read = |bytes: &str| {
            std::fs::write(&path, bytes).expect("written");
            secret(path.to_str(), "--chap-secret-file")
        };
        assert_eq!(read("a secret of esx1\r\n").ok().flatten().map(|s| s.0), Some("a secret of esx1".into()));
        let failure = read("a secret of esx1\nanother one\n").expect_err("two lines");
        assert!(failure.message.ends_with("it has several lines, and a secret is one"), "{failure}");
    }
}
