//! NVMe over TCP: the target and the host side, both as machines without a socket.
//!
//! - [`spec`]: the standard's structures and numbers, as bytes.
//! - [`pdu`]: NVMe/TCP protocol data units, both directions.
//! - [`subsystem`]: one connection of a host to us: the door in `base::front`.
//! - [`host`]: the other end: a host's queues, for the simulator, the demo and the benchmark.
//! - [`fuzz`]: entry points that take any bytes.
//!
//! Promise: any bytes end in a protocol error or a closed connection, at bounded memory. Does not know
//! volumes' contents, sockets, clocks or other connections.

pub mod fuzz;
pub mod host;
pub mod pdu;
pub mod spec;
pub mod subsystem;
