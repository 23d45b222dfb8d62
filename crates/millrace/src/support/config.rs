//! `head.toml` as others may see it.

use toml::{Table, Value};

/// The tables whose texts are no secrets. Others (an alarm's addresses, say) may hold some in any key.
const OPEN: [&str; 2] = ["api", "system"];

/// The settings without comments, and without the texts in tables that are not known to be harmless: a new key is hidden until
/// somebody lists its table.
pub fn shown(text: &str) -> Result<String, String> {
    let mut table: Table = toml::from_str(text).map_err(|_| "it is not TOML".to_string())?;
    for (key, value) in table.iter_mut() {
        let nested = matches!(value, Value::Table(_)) || is_list_of_tables(value);
        if nested && !OPEN.contains(&key.as_str()) {
            hide(value);
        }
    }
    Ok(toml::to_string(&table).expect("it was TOML before"))
}

fn is_list_of_tables(value: &Value) -> bool {
    matches!(value, Value::Array(all) if all.iter().any(|v| !v.is_str() && !v.is_integer()))
}

fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = super::secrets::REMOVED.into(),
        Value::Array(all) => all.iter_mut().for_each(hide),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| hide(value)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn known_settings_are_shown_and_texts_of_others_are_not() {
        let text = "# the password is swordfish\nshards = 2\nshapes = [\"shape:hang@/srv/b.img\"]\n\
                    [api]\ntcp = \"127.0.0.1:8420\"\ntoken_file = \"/etc/millrace/token\"\n\
                    [alarm]\nrepeat = 60\nsmtp = { user = \"me\", to = [\"swordfish\"] }\n[[alarm.webhook]]\nurl = \"https://swordfish\"\n";
        let shown = shown(text).expect("TOML");
        assert!(!shown.contains("swordfish"), "{shown}");
        for part in ["shards = 2", "/srv/b.img", "127.0.0.1:8420", "/etc/millrace/token", "repeat = 60"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(super::shown("swordfish").is_err_and(|why| !why.contains("swordfish")));
        let packaged = super::shown(crate::config::EXAMPLE).expect("TOML");
        assert!(packaged.contains("state_dir = \"/var/lib/millrace\""), "{packaged}");
    }
}
