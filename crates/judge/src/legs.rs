//! The bytes of the legs of a mirror, read from the files of the drives: these tests do not rely on what the product
//! reports.

use crate::Head;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Where the fields of the label are (docs/formats/label.md).
const LABEL_AT: u64 = 4096;
const DATA_AT: usize = 152;

/// The files of the legs of every mirror of the pool `tank`.
pub fn mirrors(head: &Head) -> Vec<Vec<PathBuf>> {
    let pool = head.json("pool show tank");
    let arrays = pool["arrays"].as_array().expect("arrays");
    let legs = |array: &serde_json::Value| {
        let legs = array["legs"].as_array().expect("legs").iter();
        legs.map(|leg| file_of(leg["path"].as_str().expect("a path"))).collect()
    };
    arrays.iter().map(legs).collect()
}

/// The file behind the name of a drive.
pub fn file_of(drive: &str) -> PathBuf {
    let path = drive.strip_prefix("file:").unwrap_or(drive);
    path.split('?').next().unwrap_or(path).into()
}

/// Compares the data of all legs byte by byte; the daemon must have ended. Returns how many bytes of mirrors were
/// compared; panics at the first difference.
pub fn compare(mirrors: &[Vec<PathBuf>]) -> u64 {
    mirrors.iter().map(|legs| compare_one(legs)).sum()
}

fn compare_one(legs: &[PathBuf]) -> u64 {
    let (first, rest) = legs.split_first().expect("a mirror has legs");
    let (_, bytes) = data_of(first);
    for other in rest {
        let (mut a, mut b) = (data_of(first).0, data_of(other).0);
        let (mut x, mut y) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        let mut at = 0;
        while at < bytes {
            let n = (bytes - at).min(1 << 20) as usize;
            a.read_exact(&mut x[..n]).expect("a leg");
            b.read_exact(&mut y[..n]).expect("a leg");
            if let Some(i) = (0..n).find(|i| x[*i] != y[*i]) {
                panic!(
                    "{} and {} differ at byte {} of their data",
                    first.display(),
                    other.display(),
                    at + i as u64
                );
            }
            at += n as u64;
        }
    }
    bytes
}

/// The file of a leg at the beginning of its data, and how many bytes those are.
fn data_of(leg: &Path) -> (File, u64) {
    let mut file = File::open(leg).unwrap_or_else(|e| panic!("{}: {e}", leg.display()));
    let mut label = [0; 4096];
    file.seek(SeekFrom::Start(LABEL_AT)).and_then(|_| file.read_exact(&mut label)).expect("a label");
    assert_eq!(&label[..8], b"MILLRACE", "{} has no label", leg.display());
    let word = |at: usize| u64::from_le_bytes(label[at..at + 8].try_into().expect("eight bytes"));
    file.seek(SeekFrom::Start(word(DATA_AT))).expect("seek");
    (file, word(DATA_AT + 8))
}
