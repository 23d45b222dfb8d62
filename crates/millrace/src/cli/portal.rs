//! `millrace portal`.

use super::consent::Consent;
use crate::arguments::count_in;
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table};
use api::{Portal, PortalAdd, Protocol};
use clap::{Args, Subcommand};
use std::net::SocketAddr;

/// Add, list and remove the addresses that hosts connect to.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace portal add nvme 10.0.0.1:4420
  millrace portal add iscsi 10.0.0.1:3260
  millrace portal ls")]
pub enum PortalCommand {
    /// Listen on an address
    #[command(after_help = "\
`nvme` is NVMe/TCP for volumes and discovery, usually at port 4420. `discovery` is NVMe/TCP for discovery alone, usually at port 8009. `iscsi` is usually at port 3260.

Examples:
  millrace portal add nvme 10.0.0.1:4420
  millrace portal add discovery 10.0.0.1:8009
  millrace portal add iscsi 10.0.0.1:3260
  millrace portal add nvme [fd00::1]:4420
  millrace portal add nvme 10.0.0.2:4420 --head b  # on the other head
  millrace portal add nvme 10.1.0.5:4420 --prefix 24  # moves with the leader")]
    Add(PortalArgs),
    /// List portals
    #[command(after_help = "\
Examples:
  millrace portal ls
  millrace portal ls --json")]
    Ls,
    /// Stop listening on an address; its connections end
    #[command(after_help = "\
Examples:
  millrace portal rm iscsi 10.0.0.1:3260
  millrace portal rm 10.0.0.1:3260")]
    #[command(allow_missing_positional = true)]
    Rm {
        /// nvme, discovery or iscsi; not needed, as an address has only one
        #[arg(value_name = "PROTOCOL", value_parser = protocol, add = super::complete::protocols())]
        protocol: Option<Protocol>,
        /// Address and port
        #[arg(value_name = "ADDRESS:PORT", required = true, value_parser = address, add = super::complete::portals())]
        address: SocketAddr,
        #[command(flatten)]
        consent: Consent,
    },
}

/// A portal.
#[derive(Args, Debug)]
pub struct PortalArgs {
    /// nvme, discovery or iscsi
    #[arg(value_name = "PROTOCOL", value_parser = protocol, add = super::complete::protocols())]
    protocol: Protocol,
    /// Address and port
    #[arg(value_name = "ADDRESS:PORT", value_parser = address, add = super::complete::addresses())]
    address: SocketAddr,
    /// Let the leading head configure the address, with this prefix length
    #[arg(long, value_name = "BITS", value_parser = count_in::<u8>(0..=128))]
    prefix: Option<u8>,
    /// Interface for the address, on both heads [default: that of another address of its subnet]
    #[arg(long, value_name = "NAME", requires = "prefix")]
    interface: Option<String>,
    /// Head that listens there, by letter or name [default: this one]
    #[arg(long, value_name = "HEAD", add = super::complete::heads())]
    head: Option<String>,
}

/// A protocol, or a sentence.
fn protocol(text: &str) -> Result<Protocol, String> {
    text.parse().map_err(|()| format!("\"{text}\" is not a protocol: write nvme, discovery or iscsi"))
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
        PortalCommand::Add(PortalArgs { protocol, address, prefix, interface, head }) => {
            let on = head.as_ref().map_or_else(String::new, |head| format!(" on head {head}"));
            let add = PortalAdd { protocol, address: address.to_string(), prefix, interface, head };
            let created: api::Created = client.post("/portals", &add)?;
            let what = format!("Listening for {protocol} at {address}{on}.");
            Ok(context.created(&created, what, "millrace status"))
        }
        PortalCommand::Ls => {
            let portals: Vec<Portal> = client.get("/portals")?;
            Ok(context.show(&portals, |portals| list(portals, context)))
        }
        PortalCommand::Rm { protocol, address, consent } => {
            let protocol = match protocol {
                Some(protocol) => protocol,
                None => protocol_at(address, context)?,
            };
            let path = format!("/portals/{protocol}/{}", segment(&address.to_string()));
            consent.obtain(context, |yes| client.delete(&format!("{path}?disconnect={yes}")))?;
            Ok(context.done(format!("No longer listening for {protocol} at {address}."), ""))
        }
    }
}

/// What is spoken at an address: no two portals have the same.
fn protocol_at(address: SocketAddr, context: &Context) -> Result<Protocol, Failure> {
    let portals: Vec<Portal> = context.client.get("/portals")?;
    let found = portals.iter().find(|p| p.address == address).map(|p| p.protocol);
    found.ok_or_else(|| {
        Failure::new(crate::failure::Exit::Refused, format!("there is no portal at {address}"))
            .with_next("millrace portal ls")
    })
}

/// What is to be said of a portal: why it is closed, where its address is that moves, or which head stands in for its own.
fn note(p: &Portal) -> String {
    match (&p.on, &p.served_by) {
        _ if !p.reason.is_empty() => p.reason.clone(),
        (Some(on), _) => format!("moves, on {on} now"),
        (None, Some(head)) => format!("at head {head} for now"),
        (None, None) => String::new(),
    }
}

/// The table of all portals.
pub fn table(portals: &[Portal]) -> Table {
    let two = portals.iter().any(|p| p.head.is_some());
    let columns = ["PORTAL", "ADDRESS", "HEAD", "STATE", ">CONNECTIONS", "NOTE"];
    let columns: Vec<&str> = columns.into_iter().filter(|c| two || *c != "HEAD").collect();
    let mut table = Table::new(&columns).prose();
    for p in portals {
        let state =
            if p.listening { Cell::new(Look::Good, "listening") } else { Cell::new(Look::Bad, "closed") };
        let head = two.then(|| Cell::from(p.head.clone().unwrap_or_default()));
        let first = [p.protocol.word().into(), p.address.to_string().into()].into_iter().chain(head);
        table.row(first.chain([state, p.connections.to_string().into(), note(p).into()]));
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
