//! Values that stand as texts in JSON: identities, addresses.

use core::fmt::Display;
use core::str::FromStr;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serializer};

fn invalid<E: Error>(text: &str) -> E {
    E::invalid_value(Unexpected::Str(text), &"another text")
}

/// For `#[serde(serialize_with)]`.
pub fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// For `#[serde(deserialize_with)]`.
pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| invalid(&text))
}

/// The same of values that may be absent.
pub mod option {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, invalid};

    /// For `#[serde(serialize_with)]`.
    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    /// For `#[serde(deserialize_with)]`.
    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let one = |text: String| text.parse().map_err(|_| invalid(&text));
        text.map(one).transpose()
    }
}
