//! Whether a file of the state directory is whole, by the reader of each.

use crate::state::bytes;
use finding::{FileFault, RecordCause};
use std::path::Path;

/// What is wrong with a file that lies there, if something is: by what its fields mean, where that is known.
pub fn fault_of(dir: &Path, name: &str) -> Option<FileFault> {
    let bytes = match bytes(dir, name) {
        Ok(bytes) => bytes?,
        Err(fault) => return Some(fault),
    };
    checked(name, &bytes).err()
}

/// What `status` says of a file that is there: it is not whole, or has a row that is not used.
pub fn trouble_of(dir: &Path, name: &str) -> Option<RecordCause> {
    let (file, path) = (name.to_string(), dir.join(name).display().to_string());
    if let Some(why) = fault_of(dir, name) {
        return Some(RecordCause::FileUnreadable { file, path, why });
    }
    let tokens = (name == "tokens").then(|| bytes(dir, name).ok().flatten()).flatten()?;
    let (row, field) = crate::access::token_not_understood(&tokens)?;
    Some(RecordCause::RowNotUnderstood { file, path, row, field })
}

/// Rows of a file that are not used, and the field of each that this program does not know.
pub fn unused_rows(name: &str, bytes: &[u8]) -> Vec<(String, String)> {
    match name {
        "tokens" => crate::access::token_not_understood(bytes).into_iter().collect(),
        _ => head::steward::unused_rows(name, bytes),
    }
}

/// Checks the bytes of a file as its reader does.
pub fn checked(name: &str, bytes: &[u8]) -> Result<(), FileFault> {
    use files::content::{Certificate, LinkIdentity, Mark, Record, Slot};
    match name {
        "format" => files::open::<Mark>(name, bytes).map(drop),
        "tokens" => crate::access::check_tokens(bytes),
        "api-certificate" => files::open::<Certificate>(name, bytes).map(drop),
        "link" => files::open::<crate::daemon::LinkFile>(name, bytes).map(drop),
        "link-identity" => files::open::<LinkIdentity>(name, bytes).map(drop),
        "alarms" => crate::alarm::check_kept(bytes),
        "system-record" => files::open::<Record>(name, bytes).map(drop),
        _ if name.starts_with("system-slot-") => files::open::<Slot>(name, bytes).map(drop),
        _ => head::steward::check_file(name, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::convert;

    #[test]
    fn a_directory_of_a_former_version_is_converted_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
        write(
            "identity",
            "uuid = 36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\nnqn = nqn.2014-08.org.nvmexpress:uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\niqn = iqn.2026-01.org.millrace:a\nserial = 0123456789\n",
        );
        write("hosts", "[host a]\niqn = iqn.1998-01.com.example:a\nchap_secret = twelve-bytes!\n");
        write("tokens", "broken\n");
        write("notes", "of somebody");
        convert(dir).expect("converted");
        for name in ["format", "identity", "hosts", "portals", "pools"] {
            assert_eq!(fault_of(dir, name), None, "{name}");
        }
        assert_eq!(fault_of(dir, "tokens"), Some(FileFault::NoEnd));
        assert_eq!(std::fs::read_to_string(dir.join("tokens")).expect("there"), "broken\n");
        let hosts = std::fs::read(dir.join("hosts")).expect("there");
        convert(dir).expect("nothing to do");
        assert_eq!(std::fs::read(dir.join("hosts")).expect("there"), hosts);
        // An old file that is put back counts no more.
        write("hosts", "[host a]\niqn = iqn.1998-01.com.example:a\n");
        convert(dir).expect("nothing to do");
        assert_eq!(fault_of(dir, "hosts"), Some(FileFault::NoEnd));
    }
}
