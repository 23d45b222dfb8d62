//! Kinds of drives, and the properties of each.

/// What kind of drive one is. A specification says it by its first word; a path alone leads to a block device or a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum DriveKind {
    /// Whatever the path leads to.
    #[default]
    Path,
    /// A block device.
    Block,
    /// A regular file.
    File,
    /// Memory of the daemon.
    Ram {
        /// It has a name by which it is found again: `ram:NAME,SIZE`.
        named: bool,
    },
    /// It swallows writes and reads zeroes.
    Null,
}

impl DriveKind {
    /// That of a specification without a shape: `PATH`, `block:PATH`, `file:PATH?size=1G`, `ram:[NAME,]SIZE`, `null:SIZE`.
    pub fn of(spec: &str) -> Self {
        match spec.split_once(':') {
            Some(("ram", rest)) => Self::Ram { named: rest.contains(',') },
            Some(("null", _)) => Self::Null,
            Some(("file", _)) => Self::File,
            Some(("block", _)) => Self::Block,
            Some(_) | None => Self::Path,
        }
    }
    /// The field's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Path => "",
            Self::Block => "block",
            Self::File => "file",
            Self::Ram { .. } => "ram",
            Self::Null => "null",
        }
    }
    /// It lives in the memory of the daemon that made it, and ends with it.
    pub fn is_volatile(self) -> bool {
        matches!(self, Self::Ram { .. } | Self::Null)
    }
    /// It is there after a restart of the daemon, with what it held.
    pub fn survives_restart(self) -> bool {
        !self.is_volatile()
    }
    /// It has a name by which it can be meant again: each `ram:1G` is another.
    pub fn has_name(self) -> bool {
        !matches!(self, Self::Ram { named: false } | Self::Null)
    }
    /// What is written to it can be read again.
    pub fn keeps_data(self) -> bool {
        self != Self::Null
    }
    /// A new one reads as zeroes, without a look at it.
    pub fn promises_zeroes(self) -> bool {
        self.is_volatile()
    }
}

/// Where a drive with a path lies: its specification without the first word and the options.
pub fn path_in(spec: &str) -> &str {
    let path = spec.strip_prefix("file:").or_else(|| spec.strip_prefix("block:")).unwrap_or(spec);
    path.split_once('?').map_or(path, |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::{DriveKind, path_in};

    #[test]
    fn a_specification_says_its_kind_by_its_first_word() {
        for (spec, kind, word) in [
            ("/dev/nvme0n1", DriveKind::Path, ""),
            ("/srv/a:b", DriveKind::Path, ""),
            ("block:/dev/sdb", DriveKind::Block, "block"),
            ("file:/x?size=1G", DriveKind::File, "file"),
            ("ram:1G", DriveKind::Ram { named: false }, "ram"),
            ("ram:a,1G", DriveKind::Ram { named: true }, "ram"),
            ("null:1T", DriveKind::Null, "null"),
        ] {
            assert_eq!((DriveKind::of(spec), kind.word()), (kind, word), "{spec}");
        }
    }

    #[test]
    fn kinds_answer() {
        let answers = |spec: &str| {
            let kind = DriveKind::of(spec);
            (kind.survives_restart(), kind.has_name(), kind.keeps_data(), kind.promises_zeroes())
        };
        assert_eq!(answers("/dev/sdb"), (true, true, true, false));
        assert_eq!(answers("file:/x"), (true, true, true, false));
        assert_eq!(answers("ram:1G"), (false, false, true, true));
        assert_eq!(answers("ram:a,1G"), (false, true, true, true));
        assert_eq!(answers("null:1T"), (false, false, false, true));
        assert_eq!((path_in("file:/x?size=1G"), path_in("block:/d"), path_in("/d")), ("/x", "/d", "/d"));
    }
}
