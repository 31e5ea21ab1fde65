//! Removes permissions and variables from a settings file of the client.

use serde_json::Value;

/// The part of a user's settings file that a confined session receives. The client's `--restricted` ignores settings
/// files, and with them the user's authentication (`apiKeyHelper`, `env`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnprivilegedSettings {
    /// JSON for `--settings`, without permissions and variables. `None` if nothing is left.
    pub settings: Option<String>,
    /// The variables of `env`. They may be secrets, so they must not appear on a command line, which every user of
    /// the machine can read.
    pub environment: Vec<(String, String)>,
}

/// Returns the settings without `permissions` and `env`, and separately the variables of `env`. Returns neither for a text
/// that is not an object, because the client would not load it either.
pub fn drop_permissions_and_extract_environment(settings_text: &str) -> UnprivilegedSettings {
    let Ok(Value::Object(mut settings)) = serde_json::from_str(settings_text) else {
        return UnprivilegedSettings::default();
    };
    settings.remove("permissions");
    let environment = match settings.remove("env") {
        Some(Value::Object(variables)) => {
            variables.into_iter().filter_map(stringify_scalar_variable_if_valid).collect()
        }
        _ => Vec::new(),
    };
    let settings = (!settings.is_empty()).then(|| Value::Object(settings).to_string());
    UnprivilegedSettings { settings, environment }
}

/// Converts a variable of `env` to text. The client accepts strings, numbers and booleans. Returns `None` if the operating
/// system could not set the variable.
fn stringify_scalar_variable_if_valid((name, value): (String, Value)) -> Option<(String, String)> {
    let value = match value {
        Value::String(text) => text,
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let is_settable = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
    is_settable.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn permissions_are_removed_and_variables_returned_separately() {
        let text = json!({
            "permissions": { "defaultMode": "bypassPermissions", "allow": ["Read"], "additionalDirectories": ["/"] },
            "env": { "A": "1", "B": 2, "C": true, "D": null, "": "x", "E=F": "x", "G": "\0" },
            "apiKeyHelper": "helper",
        });
        let unprivileged = drop_permissions_and_extract_environment(&text.to_string());
        assert_eq!(unprivileged.settings.as_deref(), Some(r#"{"apiKeyHelper":"helper"}"#));
        let expected =
            [("A", "1"), ("B", "2"), ("C", "true")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(unprivileged.environment, expected);
        for text in ["", "[]", "{", "{}", r#"{"permissions":{}}"#, "{} //"] {
            assert_eq!(
                drop_permissions_and_extract_environment(text),
                UnprivilegedSettings::default(),
                "{text}"
            );
        }
    }
}
