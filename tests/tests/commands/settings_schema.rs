//! The published schema of the settings and the settings themselves name the same keys with the same defaults; the page
//! about them is made of it.

use plimsoll_domain::Settings;
use plimsoll_domain::settings::authority::{self, May};
use plimsoll_testkit::workspace_root;
use serde_json::{Map, Value};

fn schema() -> Value {
    let path = workspace_root().join("hooks-config/plimsoll.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn check(schema: &Map<String, Value>, defaults: &Map<String, Value>) {
    // Written into no file of ours, and so not among the defaults.
    let known: Vec<&String> = schema.keys().filter(|key| *key != "$schema" && *key != "projects").collect();
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

#[test]
fn the_command_prints_the_schema() {
    let world = plimsoll_testkit::world::World::new();
    assert_eq!(world.plimsoll(&["generate", "schema"]).run().expect_success().json(), schema());
}

/// A row for each setting, objects by their parts.
fn rows(properties: &Map<String, Value>, before: &str, page: &mut String) {
    for (name, setting) in properties.iter().filter(|(name, _)| *name != "$schema") {
        let name = format!("{before}{name}");
        let inner = setting["properties"].as_object();
        let of_each = setting["additionalProperties"]["properties"].as_object();
        let description = setting["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let default = match (&setting["default"], inner) {
            (_, Some(_)) | (Value::Null, None) => String::new(),
            (value, None) => format!("`{value}`"),
        };
        let of_project = authority::may(&name).map(words).unwrap_or_default();
        page.push_str(&format!(
            "| `{name}` | {} | {default} | {of_project} | {description} |\n",
            kind(setting)
        ));
        if let Some(inner) = inner {
            rows(inner, &format!("{name}."), page);
        }
        if let Some(inner) = of_each {
            rows(inner, &format!("{name}.NAME."), page);
        }
    }
}

/// What a project's file may do with a key.
fn words(may: May) -> &'static str {
    match may {
        May::Prefer => "prefer",
        May::Lower | May::LowerNotZero => "lower",
        May::Raise => "raise",
        May::Nothing => "nothing",
    }
}

/// Every setting, by the name that the page has for it.
fn names(properties: &Map<String, Value>, before: &str, found: &mut Vec<String>) {
    for (name, setting) in properties {
        let name = format!("{before}{name}");
        let each = setting["additionalProperties"]["properties"].as_object();
        match (setting["properties"].as_object(), each) {
            (Some(inner), _) => names(inner, &format!("{name}."), found),
            (None, Some(inner)) => names(inner, &format!("{name}.NAME."), found),
            (None, None) => found.push(name),
        }
    }
}

#[test]
fn of_every_setting_it_is_said_what_a_project_may_do_with_it() {
    let mut all = Vec::new();
    names(schema()["properties"].as_object().expect("properties"), "", &mut all);
    let table: Vec<String> = authority::TABLE.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(all, table);
}

fn kind(setting: &Value) -> String {
    match (&setting["enum"], &setting["type"]) {
        (Value::Array(words), _) => words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", "),
        (_, Value::String(kind)) => kind.clone(),
        (_, Value::Array(kinds)) => {
            kinds.iter().map(|kind| kind.as_str().unwrap_or_default()).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}

#[test]
fn the_page_about_the_settings_is_what_the_schema_says() {
    let schema = schema();
    let mut page = String::from(
        "# Settings\n\nGenerated from the schema (`plimsoll generate schema`) by `tests/tests/commands/settings_schema.rs` with \
         `PLIMSOLL_UPDATE_GOLDEN=1`.\n\n",
    );
    page.push_str(schema["description"].as_str().expect("words"));
    page.push_str(
        "\nIf a file has an error, every command and the status line report it, and Plimsoll ignores the whole file until you fix it. \
         `plimsoll doctor` shows which settings apply, and names each key of a project's file that is ignored.\n\n\
         The fourth column says what a project's file may do with a key: **prefer** (its value applies), **lower** or **raise** \
         (its value applies if it is stricter than yours, or than the default if you set none; where 0 means no limit, a project \
         cannot set 0), or **nothing** (ignored: set it in your own file, for one project below `projects`):\n\n```json ~/.config/plimsoll/settings.json\n{ \"projects\": { \"~/work/dates\": { \"linear\": { \"issue\": \"ENG-123\" } } } }\n```\n\n\
         | setting | type | default | a project may | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    rows(schema["properties"].as_object().expect("properties"), "", &mut page);
    let path = workspace_root().join("docs/settings.md");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("docs/ is writable");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/settings.md is not what the schema says: PLIMSOLL_UPDATE_GOLDEN=1");
}
