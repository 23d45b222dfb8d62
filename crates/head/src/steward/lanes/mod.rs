//! Which shard has which lane of an array, and how that changes (docs/rfcs/0008-both-serve.md).
//!
//! ```text
//! wanted otherwise ▶ keeper held, no marks under way ▶ Halt ▶ Halted by all ▶ Quiesce ▶ Quiesced by all
//!                  ▶ bitmaps and maps of uncleared space read ▶ the next map published ▶ built anew by all
//! ```

mod assemble;
mod deal;

pub(crate) use assemble::Marked;
