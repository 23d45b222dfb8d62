//! What a file of the state directory says after anything happened to it.

mod convert;
mod damage;

use files::content::*;
use files::{Row, seal};
use serde_json::json;

/// What the daemon keeps in `link`, in part.
#[derive(serde::Deserialize)]
struct Link {
    #[allow(dead_code)]
    head: String,
    #[allow(dead_code)]
    own: Vec<String>,
}

/// What it keeps in `alarms`.
#[derive(serde::Deserialize)]
struct Alarms {
    #[allow(dead_code)]
    receivers: serde_json::Value,
}

/// One of each sealed file.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let host = Host {
        name: "p".into(),
        nqn: vec!["nqn.2014-08.org.example:p".into()],
        iqn: vec!["iqn.2026-01.org.example:p".into(), "iqn.2026-01.org.example:p2".into()],
        chap_secret: Some("0x2022".into()),
        chap_user: Some("p".into()),
        mutual_secret: Some("twelve-bytes".into()),
    };
    let plain = Host { name: "q".into(), iqn: vec!["iqn.2026-01.org.example:q".into()], ..Host::default() };
    let portal = |number, address: &str| Portal {
        number,
        protocol: "iscsi".into(),
        address: address.into(),
        ..Portal::default()
    };
    let moving = Portal {
        head: Some("b".into()),
        prefix: Some(24),
        interface: Some("eth1".into()),
        ..portal(2, "10.0.0.2:3260")
    };
    let pool = |n: u8| Pool {
        uuid: format!("u{n}"),
        name: format!("tank{n}"),
        drives: vec!["/dev/a b".into(), "made:/c".into()],
    };
    let pools = Pools { pool: vec![Row::Known(pool(1)), Row::Known(pool(2))] };
    let token = Token {
        name: "ansible".into(),
        rights: "full".into(),
        sha256: "00".repeat(32),
        created: Some(1),
        expires: None,
        used: Some(3),
    };
    let pem = |what: &str| format!("-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n");
    let old = Old { file: "hosts".into(), crc32c: "00000000".into() };
    let identity = Identity { uuid: "u".into(), nqn: "n".into(), iqn: "i".into(), serial: "S".into() };
    vec![
        ("format", seal("format", &Mark { make: vec!["portals".into()], old: vec![old] })),
        ("identity", seal("identity", &identity)),
        ("hosts", seal("hosts", &Hosts { host: vec![Row::Known(host), Row::Known(plain)] })),
        (
            "portals",
            seal(
                "portals",
                &Portals { last: 2, portal: vec![Row::Known(portal(1, "[::1]:3260")), Row::Known(moving)] },
            ),
        ),
        ("pools", seal("pools", &pools)),
        ("released", seal("released", &pools)),
        ("creating", seal("creating", &pools)),
        ("tokens", seal("tokens", &Tokens { token: vec![Row::Known(token)] })),
        (
            "api-certificate",
            seal(
                "api-certificate",
                &Certificate { certificate: pem("CERTIFICATE"), key: pem("PRIVATE KEY") },
            ),
        ),
        ("witness-u", seal("witness-u", &Record { record: "00ff".into() })),
        ("config-u", seal("config-u", &Kept { deallocate: true, config: "00ff".into() })),
        ("system-record", seal("system-record", &Record { record: "00ff".into() })),
        ("system-slot-0", seal("system-slot-0", &Slot { block: "00ff".into() })),
        (
            "link-identity",
            seal("link-identity", &LinkIdentity { key: "00".into(), certificate: "ff".into() }),
        ),
        ("link", seal("link", &json!({ "head": "a", "own": ["10.0.0.1:7"] }))),
        ("alarms", seal("alarms", &json!({ "receivers": { "oncall": {} } }))),
    ]
}

/// Reads a file as its reader does; true: it says what the sample says.
fn is_read(name: &str, bytes: &[u8]) -> Result<(), finding::FileFault> {
    use files::open;
    match name {
        "format" => open::<Mark>(name, bytes).map(drop),
        "identity" => open::<Identity>(name, bytes).map(drop),
        "hosts" => open::<Hosts>(name, bytes).map(drop),
        "portals" => open::<Portals>(name, bytes).map(drop),
        "pools" | "released" | "creating" => open::<Pools>(name, bytes).map(drop),
        "tokens" => open::<Tokens>(name, bytes).map(drop),
        "api-certificate" => open::<Certificate>(name, bytes).map(drop),
        "link-identity" => open::<LinkIdentity>(name, bytes).map(drop),
        "link" => open::<Link>(name, bytes).map(drop),
        "alarms" => open::<Alarms>(name, bytes).map(drop),
        _ if name.starts_with("config-") => open::<Kept>(name, bytes).map(drop),
        _ if name.starts_with("system-slot-") => open::<Slot>(name, bytes).map(drop),
        _ => open::<Record>(name, bytes).map(drop),
    }
}
