//! The files of the state directory: whose each of them is, what it holds, and how it is written and read
//! (docs/formats/state.md).
//!
//! Promises: what `open` accepts is what `seal` wrote or an operator signed, whole, under its own name. Anything else is a
//! typed fault. An unknown field is never passed over. Does not know: directories, who reads a file, and what its fields mean.

pub mod content;
mod convert;
mod old;
mod seal;
mod table;

pub use convert::{MARK, Step, is_converted, plan};
pub use old::converted;
pub use seal::{Row, UnknownRow, VERSION, check, open, seal, sign};
pub use table::{FILES, Kind, Shape, Whose, kind};
