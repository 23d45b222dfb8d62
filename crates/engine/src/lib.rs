//! engine: the machines of the data path, made for the kernel's world.
//!
//! Shards and load generators are generic: the same code runs in the simulator. What the program runs of them is made here,
//! and only here, so that it can be made quick while the rest of the program is made small (`Cargo.toml`). Knows how a
//! machine gets its thread; does not know what it is told to do.

pub mod inner;

use self::inner::Inner;
use base::Address;
use head::Shard;
use head::mail::Mail;
use load::Load;
use uring::{House, RegionPart, SetupFault};

/// What makes a machine in its own thread, of its memory and 256 random bits.
pub type Make<T> = Box<dyn FnOnce(RegionPart, [u64; 4]) -> T + Send>;

/// Starts a shard.
///
/// # Errors
/// What the kernel refused.
pub fn spawn_shard(
    house: &mut House<Mail>,
    address: Address,
    make: Make<Shard<RegionPart>>,
) -> Result<(), SetupFault> {
    house.spawn(address, make)
}

/// Starts a shard with a load generator inside.
///
/// # Errors
/// What the kernel refused.
pub fn spawn_inner(
    house: &mut House<Mail>,
    address: Address,
    make: Make<Inner<RegionPart>>,
) -> Result<(), SetupFault> {
    house.spawn(address, make)
}

/// Starts a load generator.
///
/// # Errors
/// What the kernel refused.
pub fn spawn_load(
    house: &mut House<load::Mail>,
    address: Address,
    make: Make<Load<RegionPart>>,
) -> Result<(), SetupFault> {
    house.spawn(address, make)
}
