//! The file `config-UUID`: what hosts are told of a pool while its drives are away.

use crate::steward::record::text::{self, TextError};
use array::format::ConfigSlot;
use base::Uuid;
use base::codec::{hex, unhex};
use finding::LineFault;

/// The file `config-UUID`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeptFile {
    pub slot: ConfigSlot,
    pub deallocates: bool,
}

impl KeptFile {
    pub fn text(&self) -> String {
        let mut out = String::from(
            "# What hosts are told of a pool while its drives are away: written at every change, do not edit.\n",
        );
        text::line(&mut out, "deallocate", if self.deallocates { "yes" } else { "no" });
        text::line(&mut out, "config", &hex(&self.slot.encode().expect("it was written to drives or read")));
        out
    }
    pub fn parse(bytes: &[u8]) -> Result<Self, TextError> {
        let sections = text::parse(bytes, &[("", &["deallocate", "config"])])?;
        let s = &sections[0];
        let wrong = |why| TextError::new(s.line, why);
        let deallocates = match s.must("deallocate")?.as_str() {
            "yes" => true,
            "no" => false,
            _ => return Err(wrong(LineFault::NoAnswer { key: "deallocate".into() })),
        };
        let bytes =
            unhex(&s.must("config")?).ok_or_else(|| wrong(LineFault::NoHex { key: "config".into() }))?;
        let slot =
            ConfigSlot::decode(&bytes).map_err(|fault| wrong(LineFault::Config { fault: fault.into() }))?;
        // As on drives: longer than a slot is none.
        slot.encode().ok_or_else(|| wrong(LineFault::ConfigTooLong))?;
        Ok(Self { slot, deallocates })
    }
}

/// How these files are called, before the pool's UUID.
pub(crate) const KEPT: &str = "config-";

/// Its name.
pub(crate) fn kept_name(pool: Uuid) -> String {
    format!("{KEPT}{pool}")
}
