//! Two links on the loopback device, and those who are not meant to be there.

mod hostile;
mod joins;
mod paths;
mod rig;
