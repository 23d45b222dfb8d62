//! How large drives are before anybody opens them, and what follows for a layout: space that stays unused, fewer copies than a
//! pool keeps. The daemon decides the same when the layout is made (`head`, steward/meant.rs).

use api::{ArrayLayout, ArraySpec, Pool};
use base::size::{print, print_free};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Bytes of a drive as it is named in a layout; None if that is not known from here.
pub fn bytes_of(spec: &str) -> Option<u64> {
    let (_, bare) = head::steward::split_shape(spec).ok()?;
    if let Some(size) = bare.strip_prefix("ram:").or_else(|| bare.strip_prefix("null:")) {
        return base::size::parse(size).ok();
    }
    let options = bare.split_once('?').map_or("", |(_, options)| options);
    let path = base::drive_kind::path_in(bare);
    let Ok(meta) = std::fs::metadata(path) else {
        let size = options.split('&').find_map(|o| o.strip_prefix("size="))?;
        return base::size::parse(size).ok();
    };
    if !meta.file_type().is_block_device() {
        return Some(meta.len());
    }
    let (major, minor) = (major(meta.rdev()), minor(meta.rdev()));
    let sectors = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/size")).ok()?;
    Some(sectors.trim().parse::<u64>().ok()? * 512)
}

/// The parts of a device number, as the kernel lays them out for programs.
fn major(dev: u64) -> u64 {
    (dev >> 32 & 0xffff_f000) | (dev >> 8 & 0xfff)
}
fn minor(dev: u64) -> u64 {
    (dev >> 12 & 0xffff_ff00) | (dev & 0xff)
}

/// What of these mirrors would stay unused, if it is more than a tenth of a drive: sentences.
pub fn unused(mirrors: &[Vec<(String, Option<u64>)>]) -> Vec<String> {
    let mut out = Vec::new();
    for legs in mirrors {
        let known: Vec<(&str, u64)> =
            legs.iter().filter_map(|(path, n)| Some((path.as_str(), (*n)?))).collect();
        let Some(smallest) = known.iter().map(|(_, n)| *n).min() else { continue };
        for (path, bytes) in known.into_iter().filter(|(_, n)| n - smallest > n / 10) {
            out.push(format!(
                "{} of the {} of {path} would stay unused: each drive of a mirror holds as much as its smallest one",
                print_free(bytes - smallest),
                print_free(bytes)
            ));
        }
    }
    out
}

/// The drives of arrays with their sizes.
pub fn sized(specs: &[ArraySpec]) -> Vec<Vec<(String, Option<u64>)>> {
    specs.iter().map(|s| s.drives.iter().map(|d| (d.clone(), bytes_of(d))).collect()).collect()
}

/// What a pool has and would have with these arrays, and whether they keep fewer copies: sentences, and warnings.
pub fn growth(pool: &Pool, specs: &[ArraySpec]) -> (String, Option<String>) {
    let more: Option<u64> =
        sized(specs).iter().map(|legs| legs.iter().map(|(_, n)| *n).min().flatten()).sum();
    let would = match more {
        Some(more) => format!(
            "pool {} has {} and would have about {}",
            pool.name,
            print(pool.bytes),
            print(pool.bytes + more)
        ),
        None => format!("pool {} has {} now", pool.name, print(pool.bytes)),
    };
    let copies = |s: &ArraySpec| if s.layout == ArrayLayout::Mirror { s.drives.len() } else { 1 };
    let has = pool.arrays.iter().map(|a| a.legs.len()).min().unwrap_or(1);
    let fewest = specs.iter().map(copies).min().unwrap_or(has);
    let less = (fewest < has).then(|| {
        format!("pool {} keeps {has} copies of everything, and this keeps {fewest}: pool add refuses it without --force", pool.name)
    });
    (format!("{would}; what lies in it stays where it is, as the new arrays are a zone of their own"), less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_drive_is_known_before_it_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("drive.img").display().to_string();
        std::fs::File::create(&path).and_then(|f| f.set_len(64 << 20)).expect("a file");
        for (spec, bytes) in [
            ("ram:1G".to_string(), Some(1 << 30)),
            ("shape:mbps-max=200@null:2G".into(), Some(2 << 30)),
            (path.clone(), Some(64 << 20)),
            (format!("file:{path}?size=1G"), Some(64 << 20)),
            (format!("file:{path}.new?size=1G"), Some(1 << 30)),
            (format!("{path}.none"), None),
        ] {
            assert_eq!(bytes_of(&spec), bytes, "{spec}");
        }
        // As makedev has them: 259:5 and 8:300.
        assert_eq!((major(0x1_0305), minor(0x1_0305)), (259, 5));
        assert_eq!((major(0x10_082c), minor(0x10_082c)), (8, 300));
    }

    #[test]
    fn more_than_a_tenth_of_a_drive_is_told() {
        let legs = |sizes: &[u64]| {
            vec![sizes.iter().map(|n| (format!("/f/{n}"), Some(n << 20))).collect::<Vec<_>>()]
        };
        assert_eq!(
            unused(&legs(&[64, 128])).join("\n"),
            "64M of the 128M of /f/128 would stay unused: each drive of a mirror holds as much as its smallest one"
        );
        assert!(unused(&legs(&[90, 100])).is_empty() && unused(&legs(&[64])).is_empty());
        assert_eq!(unused(&legs(&[89, 100, 200])).len(), 2);
    }
}
