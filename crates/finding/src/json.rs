//! How a finding is read from JSON.

use crate::Code;
use serde_json::{Map, Value};

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
