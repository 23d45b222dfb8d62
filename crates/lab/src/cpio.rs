//! The initial file system of a guest: a "newc" archive, which every Linux kernel unpacks itself.

/// One entry: a name without a leading `/`, and a file's contents or None for a folder.
pub(crate) type Entry = (String, Option<Vec<u8>>);

/// The archive. All files are executable.
pub(crate) fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    let trailer = ("TRAILER!!!".to_owned(), Some(Vec::new()));
    for (inode, (name, contents)) in (1..).zip(entries.iter().chain([&trailer])) {
        let (mode, body): (u32, &[u8]) = match contents {
            Some(bytes) => (0o100_755, bytes),
            None => (0o040_755, &[]),
        };
        // inode, mode, uid, gid, links, mtime, size, device and rdevice numbers, name size, checksum
        let fields = [inode, mode, 0, 0, 1, 0, body.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        out.extend_from_slice(b"070701");
        out.extend(fields.iter().flat_map(|n| format!("{n:08x}").into_bytes()));
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::archive;

    #[test]
    fn headers_and_bodies_are_padded_to_four_bytes() {
        let bytes = archive(&[("bin".into(), None), ("init".into(), Some(b"hello".to_vec()))]);
        assert_eq!(bytes.len() % 4, 0);
        let at = |text: &[u8]| bytes.windows(text.len()).position(|w| w == text);
        assert_eq!(at(b"bin\0"), Some(110));
        assert_eq!(at(b"hello").map(|at| at % 4), Some(0));
        assert!(at(b"TRAILER!!!\0").is_some());
    }
}
