//! What parsers of JSON and TOML say about a value, in words for people.
//!
//! serde says what it found as text alone, so this is the one place that reads sentences of others. What is not
//! recognised, of a later serde, is shown as it is.

/// What is wrong with a body, or with a field of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// There is no such field; those that there are.
    Unknown(String, Vec<String>),
    /// A field is missing.
    Missing(String),
    /// A field is given twice.
    Twice(String),
    /// A value is of the wrong kind: why.
    Value(String),
}

/// Reads what serde says.
pub fn read(message: &str) -> Wrong {
    // It says where the text is wrong; the field says it better.
    let message = message.split(" at line ").next().unwrap_or(message);
    let mut names = message.split('`').skip(1).step_by(2).map(String::from);
    match (message.split_once(" field `"), names.next()) {
        (Some(("unknown", _)), Some(field)) => Wrong::Unknown(field, names.collect()),
        (Some(("missing", _)), Some(field)) => Wrong::Missing(field),
        (Some(("duplicate", _)), Some(field)) => Wrong::Twice(field),
        _ => Wrong::Value(of_parser(message)),
    }
}

/// `invalid value: integer `100000`, expected u16` as `100000 is not a whole number from 0 to 65535`; what is not
/// understood stays as it is.
pub fn of_parser(message: &str) -> String {
    let plain = || {
        let (found, expected) = message.split_once(", expected ")?;
        let found = found.strip_prefix("invalid type: ").or_else(|| found.strip_prefix("invalid value: "))?;
        let value = found.split_once('`').and_then(|(_, rest)| rest.strip_suffix('`'));
        let value = value.or_else(|| found.strip_prefix("string ")).unwrap_or(found);
        let expected = match expected.split(" at line ").next().unwrap_or(expected) {
            "u64" => "a whole number from 0 to 18446744073709551615".to_string(),
            "u32" => "a whole number from 0 to 4294967295".to_string(),
            "u16" => "a whole number from 0 to 65535".to_string(),
            "a boolean" => "true or false".to_string(),
            "a string" => "a text".to_string(),
            "a sequence" => "a list".to_string(),
            other => other.to_string(),
        };
        Some(format!("{value} is not {expected}"))
    };
    plain().unwrap_or_else(|| message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serde_says_of_a_field_is_read() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        for (said, wrong) in [
            ("unknown field `a`, expected `b`", Wrong::Unknown("a".into(), names(&["b"]))),
            (
                "unknown field `a`, expected one of `b`, `c`, `d` at line 1 column 9",
                Wrong::Unknown("a".into(), names(&["b", "c", "d"])),
            ),
            ("unknown field `a`, there are no fields", Wrong::Unknown("a".into(), vec![])),
            ("missing field `name` at line 1 column 2", Wrong::Missing("name".into())),
            ("duplicate field `name`", Wrong::Twice("name".into())),
            ("invalid type: null, expected a string", Wrong::Value("null is not a text".into())),
            ("unknown variant `a`, expected `b`", Wrong::Value("unknown variant `a`, expected `b`".into())),
        ] {
            assert_eq!(read(said), wrong, "{said}");
        }
    }

    #[test]
    fn what_parsers_say_becomes_a_sentence() {
        for (said, words) in [
            (
                "invalid value: integer `-1`, expected u64",
                "-1 is not a whole number from 0 to 18446744073709551615",
            ),
            ("invalid value: integer `100000`, expected u16", "100000 is not a whole number from 0 to 65535"),
            (
                "invalid type: floating point `1.8446744073709552e+19`, expected u64",
                "1.8446744073709552e+19 is not a whole number from 0 to 18446744073709551615",
            ),
            (
                "invalid type: string \"1G\", expected u32",
                "\"1G\" is not a whole number from 0 to 4294967295",
            ),
            ("invalid type: null, expected a string", "null is not a text"),
            ("missing field `name`", "missing field `name`"),
            ("", ""),
        ] {
            assert_eq!(of_parser(said), words);
        }
    }
}
