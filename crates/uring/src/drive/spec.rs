//! How a drive is named: `PATH`, `block:PATH`, `file:PATH?size=1G&block=512`, `ram:[NAME,]SIZE`, `null:SIZE`.

use base::DriveOpenFault;
use std::path::PathBuf;

/// A parsed specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Spec {
    /// A block device or an existing regular file: whatever the path leads to.
    Path(PathBuf),
    /// A regular file that was made for a pool, and goes with the drive if it holds nothing then.
    Made(PathBuf),
    /// A regular file; made with `size` bytes if it is missing.
    File { path: PathBuf, size: Option<u64>, block_bytes: u32 },
    /// Memory of this process; what has a name is found again under it.
    Ram { name: Option<String>, bytes: u64 },
    /// Swallows writes, reads zeroes.
    Null { bytes: u64 },
}

/// Blocks of files, RAM and null drives unless said otherwise.
const BLOCK_BYTES: u32 = 4096;

impl Spec {
    /// Reads a specification.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, DriveOpenFault> {
        if text.is_empty() {
            return Err(DriveOpenFault::NoSpec);
        }
        if let Some(rest) = text.strip_prefix("ram:") {
            let (name, size) = match rest.split_once(',') {
                Some((name, size)) if !name.is_empty() => (Some(name.to_owned()), size),
                Some(_) => return Err(DriveOpenFault::NoName),
                None => (None, rest),
            };
            return Ok(Spec::Ram { name, bytes: drive_size(size)? });
        }
        if let Some(rest) = text.strip_prefix("null:") {
            return Ok(Spec::Null { bytes: drive_size(rest)? });
        }
        if let Some(rest) = text.strip_prefix("made:").filter(|rest| !rest.is_empty()) {
            return Ok(Spec::Made(rest.into()));
        }
        if let Some(rest) = text.strip_prefix("file:") {
            return Self::parse_file(rest);
        }
        let path = text.strip_prefix("block:").unwrap_or(text);
        if path.is_empty() {
            return Err(DriveOpenFault::NoPath { prefix: "block:".into() });
        }
        Ok(Spec::Path(path.into()))
    }

    fn parse_file(rest: &str) -> Result<Self, DriveOpenFault> {
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err(DriveOpenFault::NoPath { prefix: "file:".into() });
        }
        let (mut size, mut block_bytes) = (None, BLOCK_BYTES);
        for option in options.split('&').filter(|o| !o.is_empty()) {
            match option.split_once('=') {
                Some(("size", value)) => size = Some(drive_size(value)?),
                Some(("block", "512")) => block_bytes = 512,
                Some(("block", "4096")) => block_bytes = 4096,
                Some(("block", value)) => {
                    return Err(DriveOpenFault::BlockSize { value: value.into() });
                }
                _ => return Err(DriveOpenFault::UnknownOption { option: option.into() }),
            }
        }
        Ok(Spec::File { path: path.into(), size, block_bytes })
    }
}

/// A drive's size in bytes, as whole blocks.
fn drive_size(size: &str) -> Result<u64, DriveOpenFault> {
    let bytes = base::size::parse(size).map_err(|fault| DriveOpenFault::Size { fault })?;
    if !bytes.is_multiple_of(u64::from(BLOCK_BYTES)) {
        return Err(DriveOpenFault::UnevenSize { bytes });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read() {
        let file = |path: &str, size, block_bytes| Spec::File { path: path.into(), size, block_bytes };
        assert_eq!(Spec::parse("/dev/sda"), Ok(Spec::Path("/dev/sda".into())));
        assert_eq!(Spec::parse("block:/dev/sda"), Ok(Spec::Path("/dev/sda".into())));
        assert_eq!(Spec::parse("file:/x?size=1G"), Ok(file("/x", Some(1 << 30), 4096)));
        assert_eq!(Spec::parse("file:/x?block=512&size=8K"), Ok(file("/x", Some(8192), 512)));
        assert_eq!(Spec::parse("ram:64M"), Ok(Spec::Ram { name: None, bytes: 64 << 20 }));
        assert_eq!(Spec::parse("ram:1.5G"), Ok(Spec::Ram { name: None, bytes: 3 << 29 }));
        assert_eq!(Spec::parse("ram:a,1T"), Ok(Spec::Ram { name: Some("a".into()), bytes: 1 << 40 }));
        assert_eq!(Spec::parse("null:4096"), Ok(Spec::Null { bytes: 4096 }));
        assert_eq!(Spec::parse("null:2P"), Ok(Spec::Null { bytes: 2 << 50 }));
    }

    #[test]
    fn what_cannot_be_a_drive_is_refused() {
        use base::SizeFault as Size;
        let no = |text: &str| -> String { text.into() };
        let size = |fault| DriveOpenFault::Size { fault };
        let not_a_size = |text| size(Size::NotASize { text: no(text) });
        let too_large = |text| size(Size::TooLarge { text: no(text) });
        for (text, why) in [
            ("", DriveOpenFault::NoSpec),
            ("ram:", not_a_size("")),
            ("ram:0", size(Size::Nothing { text: no("0") })),
            ("ram:,1G", DriveOpenFault::NoName),
            ("null:18446744073709551616", too_large("18446744073709551616")),
            ("null:16777216T", too_large("16777216T")),
            ("null:9000000T", too_large("9000000T")),
            ("null:-1", not_a_size("-1")),
            ("ram:1.5", size(Size::Fraction { text: no("1.5") })),
            ("ram:1.5K", DriveOpenFault::UnevenSize { bytes: 1536 }),
            ("ram:G", not_a_size("G")),
            ("file:", DriveOpenFault::NoPath { prefix: no("file:") }),
            ("block:", DriveOpenFault::NoPath { prefix: no("block:") }),
            ("file:/x?size=5000", DriveOpenFault::UnevenSize { bytes: 5000 }),
            ("file:/x?block=1024", DriveOpenFault::BlockSize { value: no("1024") }),
            ("file:/x?colour=red", DriveOpenFault::UnknownOption { option: no("colour=red") }),
        ] {
            assert_eq!(Spec::parse(text), Err(why), "{text}");
        }
    }
}
