//! `millrace export` and `millrace unexport`.

use super::consent::Consent;
use crate::arguments::{count_in, volume_name};
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use api::{ExportAdd, HostConnect};
use clap::Args;

/// `millrace export`.
#[derive(Args, Debug)]
#[command(after_help = "\
The host sees the volume at once: over NVMe/TCP as a namespace, over iSCSI as a logical unit. The command prints what to run on a Linux host to connect.

Examples:
  millrace export tank/vm1 --host web1
  millrace export tank/vm1 --host web1 --lun 10
  millrace unexport tank/vm1 --host web1")]
pub struct ExportArgs {
    /// The volume: POOL/VOLUME
    #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
    volume: String,
    /// The host, by its short name
    #[arg(long, value_name = "HOST", add = super::complete::hosts())]
    host: String,
    /// Logical unit number for iSCSI [default: the lowest free one]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u16>(0..=16383))]
    lun: Option<u16>,
}

/// `millrace unexport`.
#[derive(Args, Debug)]
#[command(after_help = "\
The host loses access at once. The data of the volume stays.

Examples:
  millrace unexport tank/vm1 --host web1")]
pub struct UnexportArgs {
    /// The volume: POOL/VOLUME
    #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
    volume: String,
    /// The host, by its short name
    #[arg(long, value_name = "HOST", add = super::complete::hosts())]
    host: String,
    #[command(flatten)]
    consent: Consent,
}

/// Gives a volume to a host.
pub fn export(args: ExportArgs, context: &Context) -> Result<String, Failure> {
    let ExportArgs { volume, host, lun } = args;
    let body = ExportAdd { volume: volume.clone(), host: host.clone(), lun };
    let created: api::Created = context.client.post("/exports", &body)?;
    let way: HostConnect = context.client.get(&format!("/hosts/{}/connect", segment(&host)))?;
    let (what, next) = (format!("Volume {volume} is exported to host {host}."), next(&way, &host));
    Ok(context.created_with(&created, what, &lines(&way, &host), &way.commands, &next))
}

/// For people, behind the sentence. Commands stay in one line each, so that they can be copied.
fn lines(way: &HostConnect, host: &str) -> String {
    if way.commands.is_empty() {
        return String::new();
    }
    let mut out = format!("On {host}, as root, if it runs Linux:\n");
    way.commands.iter().for_each(|c| out.push_str(&format!("  {c}\n")));
    way.notes.iter().for_each(|n| out.push_str(&format!("{n}\n")));
    out
}

fn next(way: &HostConnect, host: &str) -> String {
    if way.next.is_empty() { format!("millrace host show {host}") } else { way.next.join("; ") }
}

/// Takes a volume from a host.
pub fn unexport(args: UnexportArgs, context: &Context) -> Result<String, Failure> {
    let UnexportArgs { volume, host, consent } = args;
    let (pool, name) = volume.split_once('/').expect("checked by `volume_name`");
    let path = format!("/exports/{}/{}/{}", segment(pool), segment(name), segment(&host));
    consent.obtain(context, |yes| context.client.delete(&format!("{path}?disconnect={yes}")))?;
    Ok(context.done(format!("Volume {volume} is no longer exported to host {host}."), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_a_line_for_each_command_and_each_note() {
        let mut way =
            HostConnect { commands: vec!["a".into(), "b".into()], notes: vec!["c".into()], next: vec![] };
        assert_eq!(lines(&way, "web1"), "On web1, as root, if it runs Linux:\n  a\n  b\nc\n");
        assert_eq!(next(&way, "web1"), "millrace host show web1");
        way = HostConnect { next: vec!["d".into(), "e".into()], ..HostConnect::default() };
        assert_eq!((lines(&way, "web1"), next(&way, "web1")), (String::new(), "d; e".into()));
    }
}
