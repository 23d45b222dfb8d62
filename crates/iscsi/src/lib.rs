//! iSCSI: the wire (`pdu`, `text`), logging in, sessions, and the SCSI layer under them.
//!
//! Owns the protocol of RFC 7143 between two TCP peers, and the SPC and SBC commands of a disk. The target side
//! (`node::Connection`) is a sans-IO machine behind the door of `base::front`; the initiator side is
//! one of the same kind. Promise: any sequence of bytes ends in an answer, a protocol error or a closed
//! connection, at bounded memory, and nothing is allocated per command after login.
//! Does not know sockets, clocks, pools or drives: a volume is an id that takes block commands.

pub mod chap;
pub mod fuzz;
pub mod initiator;
pub mod node;
pub mod pdu;
pub mod scsi;
pub mod text;
