//! The machine below the head: what it is made of, as a tree and as a picture, and what should be set on it.
//!
//! Owns the way to sysfs and proc, and the screens; what follows from the files is decided in `topology`.
//! Promise: nothing on the machine is changed but by `tune --apply`, `--undo` and `--persist`.

mod explain;
mod files;
mod health;
mod hosts;
mod layout;
mod locate;
mod observer;
mod plan;
mod raid;
mod recording;
pub mod sizes;
mod topology;
mod tree;
mod tune;

pub use explain::{ExplainArgs, run as explain};
pub use health::Healths;
#[cfg(test)]
pub use layout::parse_layout;
pub use layout::{arrays_words, layout};
pub use locate::locate;
pub use observer::Observer;
pub use plan::{PlanArgs, about_to_add, about_to_create, about_to_join, run as plan, site_here, whereabouts};
pub use raid::refuse_raid_words;
pub use recording::{PATIENCE, be, here, record};
pub use topology::{TopologyArgs, run as topology};
pub use tune::{TuneArgs, run as tune};
