//! The published schema of the settings is made of their types, and the page about them of the schema.

use plimsoll_domain::Settings;
use plimsoll_domain::settings::authority::{self, ProjectFilePermission};
use plimsoll_testkit::workspace_root;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};

const SCHEMA: &str = "hooks-config/plimsoll.schema.json";

fn schema() -> Value {
    let text = std::fs::read_to_string(workspace_root().join(SCHEMA)).expect("the schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// A description is one line. Rust's names of the number types mean nothing to an editor, and what an object is made of has
/// its own defaults.
fn plain(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("writeOnly");
    if schema.get("properties").is_some() {
        schema.remove("default");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

#[test]
fn the_schema_is_what_the_types_say() {
    let mut settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(plain));
    settings.inline_subschemas = true;
    let made = settings.into_generator().into_root_schema_for::<Settings>();
    let made = serde_json::to_string_pretty(&made).expect("a schema is JSON") + "\n";
    let path = workspace_root().join(SCHEMA);
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).expect("hooks-config/ is writable");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == made, "{SCHEMA} is not what the types say: PLIMSOLL_UPDATE_GOLDEN=1");
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
        let of_project = authority::permission_for_key(&name).map(words).unwrap_or_default();
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
fn words(may: ProjectFilePermission) -> &'static str {
    match may {
        ProjectFilePermission::AnyValue => "prefer",
        ProjectFilePermission::OnlyLower | ProjectFilePermission::OnlyLowerNonZero => "lower",
        ProjectFilePermission::OnlyHigher => "raise",
        ProjectFilePermission::Never => "nothing",
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
    let table: Vec<String> = authority::PERMISSIONS_BY_KEY.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(all, table);
}

fn kind(setting: &Value) -> String {
    match (&setting["oneOf"], &setting["type"]) {
        (Value::Array(words), _) => words
            .iter()
            .map(|word| format!("`{}`", word["const"].as_str().unwrap_or_default()))
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
