//! `millrace export` and `millrace unexport`.

use super::consent::Consent;
use super::{Context, volume_name};
use crate::client::segment;
use crate::failure::Failure;
use api::ExportAdd;
use clap::Args;

/// `millrace export`.
#[derive(Args, Debug)]
#[command(after_help = "\
The host sees it at once, over NVMe as a namespace and over iSCSI as a logical unit.

Examples:
  millrace export tank/vm1 --host esx1
  millrace export tank/vm1 --host esx1 --lun 10
  millrace unexport tank/vm1 --host esx1")]
pub struct ExportArgs {
    /// The volume: POOL/VOLUME
    #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
    volume: String,
    /// The host
    #[arg(long, value_name = "HOST", add = super::complete::hosts())]
    host: String,
    /// Its logical unit number for iSCSI [default: the lowest free one]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(0..=16383))]
    lun: Option<u16>,
}

/// `millrace unexport`.
#[derive(Args, Debug)]
#[command(after_help = "\
The host loses it at once; nothing on it is changed.

Examples:
  millrace unexport tank/vm1 --host esx1")]
pub struct UnexportArgs {
    /// The volume: POOL/VOLUME
    #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
    volume: String,
    /// The host
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
    let sentence = format!("Volume {volume} is given to host {host}.");
    Ok(context.created(&created, &sentence, &format!("millrace host show {host}")))
}

/// Takes a volume from a host.
pub fn unexport(args: UnexportArgs, context: &Context) -> Result<String, Failure> {
    let UnexportArgs { volume, host, consent } = args;
    let (pool, name) = volume.split_once('/').expect("checked by `volume_name`");
    let path = format!("/exports/{}/{}/{}", segment(pool), segment(name), segment(&host));
    consent.obtain(context, |yes| context.client.delete(&format!("{path}?disconnect={yes}")))?;
    Ok(context.done(format!("Volume {volume} is taken from host {host}."), ""))
}
