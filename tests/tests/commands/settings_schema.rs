//! The published schema of the settings is generated from their types, and docs/settings.md from the schema.

use plimsoll_domain::Settings;
use plimsoll_domain::settings::authority::{self, ProjectFilePermission};
use plimsoll_testkit::workspace_root;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};

const SCHEMA: &str = "hooks-config/plimsoll.schema.json";

fn published_schema() -> Value {
    let text = std::fs::read_to_string(workspace_root().join(SCHEMA)).expect("the schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Joins descriptions into one line and removes what an editor cannot use: Rust's names of number types, and the defaults of
/// objects, whose properties have their own.
fn simplify_schema(schema: &mut Schema) {
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
fn published_schema_matches_the_settings_types() {
    let mut settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(simplify_schema));
    settings.inline_subschemas = true;
    let generated = settings.into_generator().into_root_schema_for::<Settings>();
    let generated = serde_json::to_string_pretty(&generated).expect("a schema is JSON") + "\n";
    let path = workspace_root().join(SCHEMA);
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &generated).expect("hooks-config/ is writable");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == generated, "{SCHEMA} is not what the types say: PLIMSOLL_UPDATE_GOLDEN=1");
}

#[test]
fn generate_schema_prints_the_published_schema() {
    let world = plimsoll_testkit::world::World::new();
    assert_eq!(
        world.plimsoll(&["generate", "schema"]).run().expect_success().stdout_json(),
        published_schema()
    );
}

/// Appends a table row for each setting; for an object, one for each of its properties.
fn push_setting_rows(properties: &Map<String, Value>, prefix: &str, page: &mut String) {
    for (name, setting) in properties.iter().filter(|(name, _)| *name != "$schema") {
        let name = format!("{prefix}{name}");
        let inner = setting["properties"].as_object();
        let map_value_properties = setting["additionalProperties"]["properties"].as_object();
        let description = setting["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let default = match (&setting["default"], inner) {
            (_, Some(_)) | (Value::Null, None) => String::new(),
            (value, None) => format!("`{value}`"),
        };
        let project_permission =
            authority::permission_for_key(&name).map(permission_text).unwrap_or_default();
        page.push_str(&format!(
            "| `{name}` | {} | {default} | {project_permission} | {description} |\n",
            type_text(setting)
        ));
        if let Some(inner) = inner {
            push_setting_rows(inner, &format!("{name}."), page);
        }
        if let Some(inner) = map_value_properties {
            push_setting_rows(inner, &format!("{name}.NAME."), page);
        }
    }
}

/// Returns the word for what a project's file may do with a key.
fn permission_text(permission: ProjectFilePermission) -> &'static str {
    match permission {
        ProjectFilePermission::AnyValue => "prefer",
        ProjectFilePermission::OnlyLower | ProjectFilePermission::OnlyLowerNonZero => "lower",
        ProjectFilePermission::OnlyHigher => "raise",
        ProjectFilePermission::Never => "nothing",
    }
}

/// Collects the names of all settings, as docs/settings.md writes them.
fn collect_setting_names(properties: &Map<String, Value>, prefix: &str, names: &mut Vec<String>) {
    for (name, setting) in properties {
        let name = format!("{prefix}{name}");
        let map_value_properties = setting["additionalProperties"]["properties"].as_object();
        match (setting["properties"].as_object(), map_value_properties) {
            (Some(inner), _) => collect_setting_names(inner, &format!("{name}."), names),
            (None, Some(inner)) => collect_setting_names(inner, &format!("{name}.NAME."), names),
            (None, None) => names.push(name),
        }
    }
}

#[test]
fn every_setting_has_an_entry_in_the_authority_table() {
    let mut schema_keys = Vec::new();
    collect_setting_names(
        published_schema()["properties"].as_object().expect("properties"),
        "",
        &mut schema_keys,
    );
    let authority_keys: Vec<String> =
        authority::PERMISSIONS_BY_KEY.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(schema_keys, authority_keys);
}

/// Returns the type of a setting in words; `null`, which means "not set", is left out.
fn type_text(setting: &Value) -> String {
    match (&setting["oneOf"], &setting["type"]) {
        (Value::Array(words), _) => words
            .iter()
            .map(|word| format!("`{}`", word["const"].as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", "),
        (_, Value::String(kind)) => kind.clone(),
        (_, Value::Array(kinds)) => {
            let names = kinds.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}

#[test]
fn settings_page_matches_the_schema() {
    let schema = published_schema();
    let mut page = String::from("# Settings\n\n");
    page.push_str(schema["description"].as_str().expect("words"));
    page.push_str(
        "\n\nIf a file has an error, every command and the status line report it. Plimsoll ignores the whole file until you fix it.\n\
         `plimsoll doctor` shows which settings apply, and which keys of a project's file are ignored. For your editor,\n\
         `plimsoll generate schema` prints the schema from which this page is generated.\n\n\
         The fourth column says what a project's file may do with a key:\n\n\
         - **prefer**: its value applies.\n\
         - **lower** or **raise**: its value applies if it is stricter than yours, or than the default if you set none. Where 0 means\n  \
           no limit, a project cannot set 0.\n\
         - **nothing**: the key is ignored. Set it in your own file; for one project, below `projects`:\n\n\
         ```json ~/.config/plimsoll/settings.json\n{ \"projects\": { \"~/work/dates\": { \"linear\": { \"issue\": \"ENG-123\" } } } }\n```\n\n\
         | setting | type | default | a project may | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    push_setting_rows(schema["properties"].as_object().expect("properties"), "", &mut page);
    let path = workspace_root().join("docs/settings.md");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("docs/ is writable");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/settings.md is not what the schema says: PLIMSOLL_UPDATE_GOLDEN=1");
}
