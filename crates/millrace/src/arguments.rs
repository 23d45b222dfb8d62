//! What words of a command line mean: sizes, and the names of volumes and drives.

use crate::client::segment;
use api::Drive;

/// A size argument of at most 4 GiB - 1.
pub fn small_size(text: &str) -> Result<u32, String> {
    let bytes = base::size::parse(text)?;
    u32::try_from(bytes).map_err(|_| format!("\"{text}\" is too large here: sizes end below 4G"))
}

/// `pool/volume` split, or a sentence.
pub fn volume_name(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((pool, volume)) if !pool.is_empty() && !volume.is_empty() && !volume.contains('/') => {
            Ok(text.to_string())
        }
        _ => Err(format!("\"{text}\" does not name a volume: write POOL/VOLUME, such as tank/vm1")),
    }
}

/// The path of a volume's resource.
pub fn volume_path(name: &str) -> String {
    let (pool, volume) = name.split_once('/').expect("checked by `volume_name`");
    format!("/volumes/{}/{}", segment(pool), segment(volume))
}

/// The daemon has another working directory: paths are made absolute here. `sdb` means `/dev/sdb`
/// unless a file of that name lies here.
pub fn drive_path(text: &str) -> String {
    if text.starts_with("shape:")
        && let Some((shape, drive)) = text.split_once('@')
    {
        return format!("{shape}@{}", drive_path(drive));
    }
    let special = ["ram:", "null:", "file:/", "block:/"].iter().any(|prefix| text.starts_with(prefix));
    if special || text.starts_with('/') || text.is_empty() {
        return text.to_string();
    }
    if let Some(kind) = ["file:", "block:"].into_iter().find(|kind| text.starts_with(kind)) {
        let rest = &text[kind.len()..];
        return std::path::absolute(rest)
            .map_or_else(|_| text.to_string(), |p| format!("{kind}{}", p.display()));
    }
    let device = format!("/dev/{text}");
    if !std::path::Path::new(text).exists() && std::path::Path::new(&device).exists() {
        return device;
    }
    std::path::absolute(text).map_or_else(|_| text.to_string(), |p| p.display().to_string())
}

/// 512 or 4096, written as either.
pub fn block_size(text: &str) -> Result<u32, String> {
    match base::size::parse(text) {
        Ok(512) => Ok(512),
        Ok(4096) => Ok(4096),
        _ => Err(format!("\"{text}\" is not a block size: 512 or 4096")),
    }
}

/// The drive's path, or its UUID if the path is not known.
pub fn drive_name(drive: &Drive) -> String {
    match &drive.uuid {
        Some(uuid) if drive.path.is_empty() => uuid.clone(),
        _ => drive.path.clone(),
    }
}
