//! The published schema of the settings and the settings themselves name the same keys with the same defaults.

use serde_json::{Map, Value};
use session::Settings;
use testkit::workspace_root;

fn schema() -> Value {
    let path = workspace_root().join("hooks-config/plimsoll.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn check(schema: &Map<String, Value>, defaults: &Map<String, Value>) {
    let known: Vec<&String> = schema.keys().filter(|key| *key != "$schema").collect();
    let ours: Vec<&String> = defaults.keys().collect();
    assert_eq!(known, ours);
    for (key, default) in defaults {
        match &schema[key]["properties"] {
            Value::Object(inner) => check(inner, default.as_object().expect(key)),
            _ => assert_eq!(&schema[key]["default"], default, "{key}"),
        }
    }
}

#[test]
fn the_schema_and_the_settings_name_the_same_keys_and_defaults() {
    let defaults = serde_json::to_value(Settings::default()).expect("settings");
    check(schema()["properties"].as_object().expect("properties"), defaults.as_object().expect("fields"));
}
