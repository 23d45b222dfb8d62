//! Who is connected: admission, interventions, rejections, and what shards say.

pub(crate) mod arrivals;
pub(crate) mod connected;
pub(crate) mod from_shards;
pub(crate) mod interventions;
pub(crate) mod rejections;
pub(crate) mod table;
