//! How a drive is named: `PATH`, `block:PATH`, `file:PATH?size=1G&block=512`, `ram:[NAME,]SIZE`, `null:SIZE`.

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
    /// A sentence that names what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the drive's specification is empty: give a path, ram:SIZE or null:SIZE".into());
        }
        if let Some(rest) = text.strip_prefix("ram:") {
            let (name, size) = match rest.split_once(',') {
                Some((name, size)) if !name.is_empty() => (Some(name.to_owned()), size),
                Some(_) => return Err(format!("{text}: the name before the comma is empty")),
                None => (None, rest),
            };
            return Ok(Spec::Ram { name, bytes: drive_size(text, size)? });
        }
        if let Some(rest) = text.strip_prefix("null:") {
            return Ok(Spec::Null { bytes: drive_size(text, rest)? });
        }
        if let Some(rest) = text.strip_prefix("made:").filter(|rest| !rest.is_empty()) {
            return Ok(Spec::Made(rest.into()));
        }
        if let Some(rest) = text.strip_prefix("file:") {
            return Self::parse_file(text, rest);
        }
        let path = text.strip_prefix("block:").unwrap_or(text);
        if path.is_empty() {
            return Err(format!("{text}: a path is missing after `block:`"));
        }
        Ok(Spec::Path(path.into()))
    }

    fn parse_file(text: &str, rest: &str) -> Result<Self, String> {
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err(format!("{text}: a path is missing after `file:`"));
        }
        let (mut size, mut block_bytes) = (None, BLOCK_BYTES);
        for option in options.split('&').filter(|o| !o.is_empty()) {
            match option.split_once('=') {
                Some(("size", value)) => size = Some(drive_size(text, value)?),
                Some(("block", "512")) => block_bytes = 512,
                Some(("block", "4096")) => block_bytes = 4096,
                Some(("block", value)) => {
                    return Err(format!("{text}: block={value} is not possible, only 512 and 4096"));
                }
                _ => return Err(format!("{text}: unknown option `{option}`: size=SIZE and block=512 exist")),
            }
        }
        Ok(Spec::File { path: path.into(), size, block_bytes })
    }
}

/// A drive's size in bytes, as whole blocks. Errors: a sentence.
fn drive_size(text: &str, size: &str) -> Result<u64, String> {
    let bytes = base::size::parse(size).map_err(|e| format!("{text}: {e}"))?;
    if !bytes.is_multiple_of(u64::from(BLOCK_BYTES)) {
        return Err(format!(
            "{text}: a drive of {bytes} bytes is not possible: the size is a multiple of 4096"
        ));
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
    fn what_cannot_be_a_drive_is_refused_in_words() {
        for (text, part) in [
            ("", "empty"),
            ("ram:", "not a size"),
            ("ram:0", "at least one byte"),
            ("ram:,1G", "name before the comma"),
            ("null:18446744073709551616", "too large"),
            ("null:16777216T", "too large"),
            ("null:9000000T", "too large"),
            ("null:-1", "not a size"),
            ("ram:1.5", "not a whole number of bytes"),
            ("ram:1.5K", "multiple of 4096"),
            ("ram:G", "not a size"),
            ("file:", "path is missing"),
            ("block:", "path is missing"),
            ("file:/x?size=5000", "multiple of 4096"),
            ("file:/x?block=1024", "only 512 and 4096"),
            ("file:/x?colour=red", "unknown option `colour=red`"),
        ] {
            let error = Spec::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
