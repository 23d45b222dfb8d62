//! What this kernel can do, for `status -v`.

use io_uring::{IoUring, Probe, opcode};
use std::fmt;

type Plain = IoUring;

/// What of io_uring is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// The kernel's release, as `uname -r` says.
    pub kernel: String,
    /// Names of features and whether they are here; the first group is needed, the rest is used if it is.
    pub features: Vec<(&'static str, bool)>,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}:", self.kernel)?;
        for (name, there) in &self.features {
            write!(f, " {}{name}", if *there { "" } else { "no " })?;
            if *name != self.features.last().expect("not empty").0 {
                f.write_str(",")?;
            }
        }
        Ok(())
    }
}

/// Looks what this kernel can do. Nothing is remembered or changed.
pub fn probe() -> Support {
    let uname = rustix::system::uname();
    let ring = Plain::new(8);
    let mut ops = Probe::new();
    let probed = ring.as_ref().is_ok_and(|r| r.submitter().register_probe(&mut ops).is_ok());
    let op = |code: u8| probed && ops.is_supported(code);
    let deferred = Plain::builder().setup_single_issuer().setup_defer_taskrun().build(8).is_ok();
    let feature = |has: fn(&io_uring::Parameters) -> bool| ring.as_ref().is_ok_and(|r| has(r.params()));
    let features = vec![
        ("io_uring", ring.is_ok()),
        ("deferred completions", deferred),
        ("fixed files", ring.as_ref().is_ok_and(|r| r.submitter().register_files_sparse(8).is_ok())),
        ("wait with a deadline", feature(io_uring::Parameters::is_feature_ext_arg)),
        ("fallocate", op(opcode::Fallocate::CODE)),
        ("zero-copy send", op(opcode::SendZc::CODE)),
        ("ring messages", op(opcode::MsgRingData::CODE)),
        ("device commands", op(opcode::UringCmd16::CODE)),
        ("no iowait", feature(io_uring::Parameters::is_feature_no_iowait)),
    ];
    Support { kernel: uname.release().to_string_lossy().into_owned(), features }
}
