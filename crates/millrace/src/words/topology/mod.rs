//! What a machine's topology means in English: what limits it, what should be set, what a layout will give. These
//! sentences stand alone on a screen, so those of limits begin with a capital and end with a full stop.

mod figure;
mod json;
mod limit;
mod load;
mod machine;
mod numbers;
mod plan;
#[cfg(test)]
mod tests;
mod tune;

pub use figure::figure;
pub use json::{explained, found, planned, tuned};
pub use limit::limit;
pub use load::{load, next_limit};
pub use machine::{gap, label, recording_error, wear};
pub use numbers::count;
pub use plan::{description_error, full, gain, plan_error, quoted, seat_reason, takes_away, unknown};
pub use tune::{Setting, setting};
