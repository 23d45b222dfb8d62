//! The file `config-UUID`: what hosts are told of a pool while its drives are away.

use array::format::ConfigSlot;
use base::Uuid;
use base::codec::{hex, unhex};
use files::content;
use finding::{ContentFault, FileFault};

/// The file `config-UUID`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeptFile {
    pub slot: ConfigSlot,
    pub deallocates: bool,
}

impl KeptFile {
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let config = hex(&self.slot.encode().expect("it was written to drives or read"));
        files::seal(name, &content::Kept { deallocate: self.deallocates, config })
    }

    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, FileFault> {
        let wrong = |why| FileFault::Content { row: String::new(), why };
        let content::Kept { deallocate, config } = files::open(name, bytes)?;
        let bytes = unhex(&config).ok_or_else(|| wrong(ContentFault::NoHex { key: "config".into() }))?;
        let slot = ConfigSlot::decode(&bytes)
            .map_err(|fault| wrong(ContentFault::Config { fault: fault.into() }))?;
        // As on drives: longer than a slot is none.
        slot.encode().ok_or_else(|| wrong(ContentFault::ConfigTooLong))?;
        Ok(Self { slot, deallocates: deallocate })
    }
}

/// How these files are called, before the pool's UUID.
pub(crate) const KEPT: &str = "config-";

/// Its name.
pub(crate) fn kept_name(pool: Uuid) -> String {
    format!("{KEPT}{pool}")
}
