//! What parsers of JSON and TOML say about a value, in words for people.

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
