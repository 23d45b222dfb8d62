//! `millrace portal`.

use super::Context;
use crate::client::segment;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table};
use api::{Portal, PortalAdd, Protocol};
use clap::{Args, Subcommand};
use std::net::SocketAddr;

/// Choose the addresses to listen on.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace portal add nvme 10.0.0.1:4420
  millrace portal add iscsi 10.0.0.1:3260
  millrace portal ls")]
pub enum PortalCommand {
    /// Listen at an address
    #[command(after_help = "\
`discovery` is NVMe/TCP too, for discovery only; every nvme portal answers discovery as well.

Examples:
  millrace portal add nvme 10.0.0.1:4420
  millrace portal add discovery 10.0.0.1:8009
  millrace portal add iscsi 10.0.0.1:3260
  millrace portal add nvme [fd00::1]:4420")]
    Add(PortalArgs),
    /// List portals
    #[command(after_help = "\
Examples:
  millrace portal ls
  millrace portal ls --json")]
    Ls,
    /// Listen there no more; its connections end
    #[command(after_help = "\
Examples:
  millrace portal rm iscsi 10.0.0.1:3260")]
    Rm(PortalArgs),
}

/// A portal.
#[derive(Args, Debug)]
pub struct PortalArgs {
    /// nvme, discovery or iscsi
    #[arg(value_name = "PROTOCOL")]
    protocol: Protocol,
    /// Address and port
    #[arg(value_name = "ADDRESS:PORT", value_parser = address)]
    address: SocketAddr,
}

/// An address with a port, or a sentence.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("\"{text}\" is not an address with a port: write 10.0.0.1:4420 or [fd00::1]:4420")
    })
}

/// How hosts are let in.
pub const ADD: &str = "millrace portal add nvme ADDRESS:4420, or millrace portal add iscsi ADDRESS:3260";

/// Carries out one of them.
pub fn run(command: PortalCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        PortalCommand::Add(PortalArgs { protocol, address }) => {
            let created: api::Created =
                client.post("/portals", &PortalAdd { protocol, address: address.to_string() })?;
            let what = format!("Listening for {protocol} at {address}.");
            Ok(context.created(&created, what, "millrace status"))
        }
        PortalCommand::Ls => {
            let portals: Vec<Portal> = client.get("/portals")?;
            Ok(context.show(&portals, |portals| list(portals, context)))
        }
        PortalCommand::Rm(PortalArgs { protocol, address }) => {
            client.delete(&format!("/portals/{protocol}/{}", segment(&address.to_string())))?;
            Ok(context.done(format!("Not listening for {protocol} at {address} any more."), ""))
        }
    }
}

/// The table of all portals.
pub fn table(portals: &[Portal]) -> Table {
    let mut table = Table::new(&["PORTAL", "ADDRESS", "STATE", ">CONNECTIONS", "NOTE"]).prose();
    for p in portals {
        let state =
            if p.listening { Cell::new(Look::Good, "listening") } else { Cell::new(Look::Bad, "closed") };
        table.row([
            p.protocol.word().into(),
            p.address.clone().into(),
            state,
            p.connections.to_string().into(),
            p.reason.clone().into(),
        ]);
    }
    table
}

fn list(portals: &[Portal], context: &Context) -> String {
    if portals.is_empty() {
        let next = context.terminal.next(ADD);
        return format!("There is no portal: no host can reach this head.\n{next}");
    }
    table(portals).print(context.terminal, 0)
}
