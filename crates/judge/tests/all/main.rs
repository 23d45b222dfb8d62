//! The product with real hosts, tools, operators and hostile peers. One program, since every test program costs a link.

mod addresses;
mod alarms;
mod bad_orders;
mod bad_peers;
mod desired;
mod fences;
mod floor;
mod kernel;
mod libiscsi;
mod machine;
mod operator;
mod package;
mod page;
mod qemu;
mod soak;
mod spdk;
mod systemd;
mod wire;
