//! The product with real hosts, tools, operators and hostile peers. One program, since every test program costs
//! a link. Tests that start guests are in `tests/guests`.

mod addresses;
mod alarms;
mod bad_orders;
mod bad_peers;
mod desired;
mod libiscsi;
mod operator;
mod package;
mod page;
mod qemu;
mod soak;
mod spdk;
