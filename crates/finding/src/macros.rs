//! How findings are declared, and read from JSON.

use crate::{Code, snake};
use serde_json::{Map, Value};

/// Declares an enum of findings: its JSON (`code`, `fields`), its codes for documents, a sample of each for tests.
macro_rules! findings {
    ($(#[$meta:meta])* pub enum $name:ident {
        $( #[doc = $doc:literal] $(#[doc = $more:literal])* $variant:ident
           $({ $( $(#[doc = $fdoc:literal])* $field:ident : $type:ty ),+ $(,)? })? ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum $name {
            $( #[doc = $doc] $(#[doc = $more])* $variant $({ $( $(#[doc = $fdoc])* $field: $type ),+ })? ),*
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.json().serialize(to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(from)?;
                Self::from_json(value).map_err(serde::de::Error::custom)
            }
        }

        impl $name {
            /// Writes it. For all formats the same code, made in this crate, and so is what reads it: generic code of so many
            /// variants would be most of the program.
            fn json(&self) -> serde_json::Value {
                match self {
                    $( Self::$variant $({ $( $field ),+ })? => $crate::macros::whole(
                        stringify!($variant),
                        [$($( (stringify!($field), $crate::macros::part($field)) ),+)?],
                    ), )*
                }
            }
            pub(crate) fn from_json(value: serde_json::Value) -> Result<Self, serde_json::Error> {
                // Its variants are named where the finding is declared.
                #[allow(clippy::enum_variant_names)]
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "snake_case")]
                enum Read {
                    $( $variant $({ $( $field: $type ),+ })? ),*
                }
                Ok(match serde_json::from_value($crate::macros::external(value, Self::CODES))? {
                    $( Read::$variant $({ $( $field ),+ })? => Self::$variant $({ $( $field ),+ })? ),*
                })
            }
            /// Each code, with what it means.
            pub const CODES: &'static [$crate::Code] = &[
                $( $crate::Code {
                    name: stringify!($variant),
                    about: $doc,
                    fields: &[$($( stringify!($field) ),+)?],
                } ),*
            ];
            /// The variant's name: its code in camel case.
            pub fn name(&self) -> &'static str {
                match *self {
                    $( Self::$variant $({ $( $field: _ ),+ })? => stringify!($variant), )*
                }
            }
            /// One of each, for tests and documents.
            pub fn samples() -> Vec<Self> {
                vec![ $( Self::$variant $({ $( $field: $crate::Sample::sample(stringify!($field)) ),+ })? ),* ]
            }
        }

        impl $crate::Sample for $name {
            fn sample(_: &str) -> Self {
                Self::samples().swap_remove(0)
            }
        }
    };
}

/// Declares refusals: findings with a kind and the field at fault, `= Kind @ "field"`.
macro_rules! refusals {
    ($(#[$meta:meta])* pub enum $name:ident {
        $( #[doc = $doc:literal] $(#[doc = $more:literal])* $variant:ident
           $({ $( $(#[doc = $fdoc:literal])* $field:ident : $type:ty ),+ $(,)? })?
           = $kind:ident @ $at:literal ),* $(,)?
    }) => {
        findings! {
            $(#[$meta])*
            pub enum $name {
                $( #[doc = $doc] $(#[doc = $more])* $variant $({ $( $(#[doc = $fdoc])* $field: $type ),+ })? ),*
            }
        }

        impl $name {
            /// What kind of refusal.
            pub fn kind(&self) -> $crate::ErrorKind {
                match *self {
                    $( Self::$variant $({ $( $field: _ ),+ })? => $crate::ErrorKind::$kind, )*
                }
            }
            /// The order's field at fault; empty if none is.
            pub fn field(&self) -> &'static str {
                match *self {
                    $( Self::$variant $({ $( $field: _ ),+ })? => $at, )*
                }
            }
        }
    };
}

/// Declares events: findings with a weight, `= Weight`.
macro_rules! events {
    ($(#[$meta:meta])* pub enum $name:ident {
        $( #[doc = $doc:literal] $(#[doc = $more:literal])* $variant:ident
           $({ $( $(#[doc = $fdoc:literal])* $field:ident : $type:ty ),+ $(,)? })?
           = $weight:ident ),* $(,)?
    }) => {
        findings! {
            $(#[$meta])*
            pub enum $name {
                $( #[doc = $doc] $(#[doc = $more])* $variant $({ $( $(#[doc = $fdoc])* $field: $type ),+ })? ),*
            }
        }

        impl $name {
            /// How weighty.
            pub fn weight(&self) -> $crate::Weight {
                match *self {
                    $( Self::$variant $({ $( $field: _ ),+ })? => $crate::Weight::$weight, )*
                }
            }
        }
    };
}

/// Declares the enum of all findings of a kind, over those of each topic. In JSON it is the finding itself. A code that
/// this program does not know, of a later one, is kept as it is.
macro_rules! union {
    ($(#[$meta:meta])* pub enum $name:ident { $( $variant:ident($type:ident) ),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs)]
        pub enum $name {
            $( $variant($type), )+
            /// One of a later program.
            Other {
                /// Its code.
                code: String,
                /// What it is about.
                #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
                fields: serde_json::Value,
            },
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(from)?;
                Self::from_json(value).map_err(serde::de::Error::custom)
            }
        }

        impl $name {
            fn from_json(value: serde_json::Value) -> Result<Self, serde_json::Error> {
                #[derive(serde::Deserialize)]
                struct Other {
                    code: String,
                    #[serde(default)]
                    fields: serde_json::Value,
                }
                $(
                    if $crate::macros::is_of(&value, $type::CODES)
                        && let Ok(found) = $type::from_json(value.clone())
                    {
                        return Ok($name::$variant(found));
                    }
                )+
                let Other { code, fields } = serde_json::from_value(value)?;
                Ok($name::Other { code, fields })
            }
            /// All codes, by topic.
            pub fn codes() -> Vec<$crate::Code> {
                [$( $type::CODES ),+].concat()
            }
            /// The codes as a part of a description of the API.
            pub fn code_schema() -> utoipa::openapi::schema::Object {
                use utoipa::openapi::schema::{ObjectBuilder, Type};
                let codes: Vec<String> = $name::codes().iter().map($crate::Code::code).collect();
                let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes));
                code.description(Some("What exactly, for programs: stable, see docs/api-codes.md.")).build()
            }
            /// The variant's name: its code in camel case.
            pub fn name(&self) -> &str {
                match self {
                    $( $name::$variant(f) => f.name(), )+
                    $name::Other { code, .. } => code,
                }
            }
            /// The code, as it stands in JSON.
            pub fn code(&self) -> String {
                $crate::snake(self.name())
            }
            /// One of each, for tests and documents.
            pub fn samples() -> Vec<Self> {
                let mut all = vec![];
                $( all.extend($type::samples().into_iter().map($name::$variant)); )+
                all
            }
        }

        $(
            impl From<$type> for $name {
                fn from(f: $type) -> Self {
                    $name::$variant(f)
                }
            }
        )+

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                use utoipa::openapi::schema::{ObjectBuilder, Type};
                let fields = ObjectBuilder::new().schema_type(Type::Object);
                let fields = fields.description(Some("What it is about; absent if there is nothing."));
                ObjectBuilder::new().property("code", Self::code_schema()).required("code").property("fields", fields).into()
            }
        }

        impl utoipa::ToSchema for $name {
            // The API has an `Event` of its own, which contains this one.
            fn name() -> std::borrow::Cow<'static, str> {
                concat!(stringify!($name), "Finding").into()
            }
        }
    };
}

fn code_of(value: &Value) -> Option<&str> {
    value.get("code")?.as_str()
}

/// Whether the code is one of these.
pub fn is_of(value: &Value, codes: &[Code]) -> bool {
    code_of(value).is_some_and(|code| codes.iter().any(|c| c.is(code)))
}

/// A finding as serde reads enums of itself: `{"code": {fields}}`, or `"code"` for one without fields. Fields of one that has none
/// here are of a later program, and left out.
pub fn external(value: Value, codes: &[Code]) -> Value {
    let code = code_of(&value).unwrap_or_default().to_string();
    let has_fields = codes.iter().any(|c| !c.fields.is_empty() && c.is(&code));
    match value {
        Value::Object(mut all) if has_fields => {
            let fields = all.remove("fields").unwrap_or_default();
            Value::Object(Map::from_iter([(code, fields)]))
        }
        _ => Value::String(code),
    }
}

/// A field of a finding.
pub fn part<T: serde::Serialize>(field: &T) -> Value {
    serde_json::to_value(field).expect("plain data")
}

/// A finding of this variant with these fields.
pub fn whole<const N: usize>(variant: &str, fields: [(&str, Value); N]) -> Value {
    let mut all = Map::from_iter([("code".to_string(), snake(variant).into())]);
    if N > 0 {
        let fields = fields.into_iter().map(|(name, value)| (name.to_string(), value));
        all.insert("fields".into(), Value::Object(fields.collect()));
    }
    Value::Object(all)
}
