//! The `--json` output of each command matches docs/json.md, field by field. The schemas in docs/schemas are generated from that
//! page; `PLIMSOLL_UPDATE_GOLDEN=1` writes them again.

use plimsoll_domain::RunStatus;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, honest_agent, run_with_objective};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A field of an object: one row of a table in docs/json.md.
struct Field {
    name: String,
    field_type: FieldType,
    is_optional: bool,
    description: String,
}

/// The type of a field, as docs/json.md writes it.
#[derive(Debug)]
enum FieldType {
    Any,
    /// A primitive type of JSON, by its name in a schema.
    JsonType(&'static str),
    ObjectTable(String),
    List(Box<FieldType>),
    Map(Box<FieldType>),
    Nullable(Box<FieldType>),
    OneOf(Vec<FieldType>),
}

impl FieldType {
    fn parse(text: &str) -> FieldType {
        if let Some(inner) = text.strip_suffix('?') {
            return FieldType::Nullable(Box::new(FieldType::parse(inner)));
        }
        let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        match text {
            "any" => FieldType::Any,
            "string" | "time" => FieldType::JsonType("string"),
            "integer" => FieldType::JsonType("integer"),
            "number" => FieldType::JsonType("number"),
            "boolean" => FieldType::JsonType("boolean"),
            _ if text.contains(" or ") => {
                FieldType::OneOf(text.split(" or ").map(FieldType::parse).collect())
            }
            _ => match (inside('[', ']'), inside('{', '}')) {
                (Some(inner), _) => FieldType::List(Box::new(FieldType::parse(inner))),
                (_, Some(inner)) => FieldType::Map(Box::new(FieldType::parse(inner))),
                (None, None) => FieldType::ObjectTable(text.to_owned()),
            },
        }
    }

    fn to_schema(&self) -> Value {
        match self {
            FieldType::Any => json!({}),
            FieldType::JsonType(name) => json!({ "type": name }),
            FieldType::ObjectTable(name) => json!({ "$ref": format!("#/$defs/{name}") }),
            FieldType::List(inner) => json!({ "type": "array", "items": inner.to_schema() }),
            FieldType::Map(inner) => json!({ "type": "object", "additionalProperties": inner.to_schema() }),
            FieldType::Nullable(inner) => json!({ "anyOf": [inner.to_schema(), { "type": "null" }] }),
            FieldType::OneOf(kinds) => {
                json!({ "anyOf": kinds.iter().map(FieldType::to_schema).collect::<Vec<_>>() })
            }
        }
    }

    /// Returns the names of the tables that this type refers to.
    fn table_names(&self) -> Vec<&str> {
        match self {
            FieldType::Any | FieldType::JsonType(_) => Vec::new(),
            FieldType::ObjectTable(name) => vec![name],
            FieldType::List(inner) | FieldType::Map(inner) | FieldType::Nullable(inner) => {
                inner.table_names()
            }
            FieldType::OneOf(kinds) => kinds.iter().flat_map(FieldType::table_names).collect(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Table {
    fields: Vec<Field>,
    /// True if the object may have fields that the table does not list.
    allows_other_fields: bool,
}

pub(crate) type Tables = BTreeMap<String, Table>;

/// Returns the tables of the page by their headings.
fn parse_tables(page: &str) -> Tables {
    let mut tables = Tables::new();
    let mut name = String::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            heading.clone_into(&mut name);
            assert!(tables.insert(name.clone(), Table::default()).is_none(), "{name} is there twice");
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(table) = tables.get_mut(&name) else { continue };
        match cells[..] {
            ["", "…", ..] => table.allows_other_fields = true,
            ["", field, type_text, description, ""] if field.starts_with('`') => table.fields.push(Field {
                name: field.trim_matches('`').to_owned(),
                field_type: FieldType::parse(type_text.trim_end_matches("optional").trim()),
                is_optional: type_text.ends_with("optional"),
                description: description.to_owned(),
            }),
            _ => {}
        }
    }
    tables
}

pub(crate) fn load_json_page() -> Tables {
    parse_tables(&std::fs::read_to_string(workspace_root().join("docs/json.md")).expect("docs/json.md"))
}

/// Returns one line for each difference between the value and its type; `path` is the place of the value in the output.
fn type_errors(tables: &Tables, field_type: &FieldType, value: &Value, path: &str) -> Vec<String> {
    match (field_type, value) {
        (FieldType::Any, _) | (FieldType::Nullable(_), Value::Null) => Vec::new(),
        (FieldType::Nullable(inner), _) => type_errors(tables, inner, value, path),
        (FieldType::JsonType("string"), Value::String(_))
        | (FieldType::JsonType("boolean"), Value::Bool(_)) => Vec::new(),
        (FieldType::JsonType("integer"), number) if number.is_i64() || number.is_u64() => Vec::new(),
        (FieldType::JsonType("number"), Value::Number(_)) => Vec::new(),
        (FieldType::List(inner), Value::Array(elements)) => elements
            .iter()
            .flat_map(|element| type_errors(tables, inner, element, &format!("{path}[]")))
            .collect(),
        (FieldType::Map(inner), Value::Object(fields)) => {
            let errors_of_field = |(name, field): (&String, &Value)| {
                type_errors(tables, inner, field, &format!("{path}.{name}"))
            };
            fields.iter().flat_map(errors_of_field).collect()
        }
        (FieldType::OneOf(kinds), _) => {
            let errors_of_alternatives =
                kinds.iter().map(|alternative| type_errors(tables, alternative, value, path));
            errors_of_alternatives.min_by_key(Vec::len).unwrap_or_default()
        }
        (FieldType::ObjectTable(name), Value::Object(fields)) => {
            let table =
                tables.get(name).unwrap_or_else(|| panic!("{path}: docs/json.md has no table {name}"));
            let errors_of_named_field = |field: &Field| {
                let field_path = format!("{path}.{}", field.name);
                match fields.get(&field.name) {
                    Some(value) => type_errors(tables, &field.field_type, value, &field_path),
                    None if field.is_optional => Vec::new(),
                    None => vec![format!("{field_path} is missing")],
                }
            };
            let is_known = |name: &String| table.fields.iter().any(|field| field.name == *name);
            let unknown = fields.keys().filter(|name| !table.allows_other_fields && !is_known(name));
            let unknown = unknown.map(|name| format!("{path}.{name} is not in docs/json.md"));
            table.fields.iter().flat_map(errors_of_named_field).chain(unknown).collect()
        }
        _ => vec![format!("{path} is no {field_type:?}: {value}")],
    }
}

pub(crate) fn assert_matches_type(tables: &Tables, type_text: &str, value: &Value, path: &str) {
    let errors = type_errors(tables, &FieldType::parse(type_text), value, path);
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
}

/// Each command with the type of its output.
const COMMANDS: [(&str, &str); 16] = [
    ("--version --json", "build"),
    ("status --json", "status or status_without_run?"),
    ("plan --json", "plan"),
    ("doctor --json", "doctor"),
    ("log --why --json", "[entry]"),
    ("log --why checkpoint --json", "[entry]"),
    ("handoffs --json", "[handoff]"),
    ("prune --older-than 1d --dry-run --json", "prune"),
    ("turns list --json", "[turn]"),
    ("turns show 1 --json", "turn"),
    ("turns stats --json", "stats"),
    ("statusline explain --json", "explained"),
    ("memory show --json", "memory"),
    ("memory history --json", "[change]"),
    ("usage --json", "usage"),
    ("sessions --json", "[listed_session]"),
];

/// The schemas of the fleet commands with the types of their outputs. The tests in `fleet/` check those, because they
/// have a database.
pub(crate) const FLEET_OUTPUTS: [(&str, &str); 4] = [
    ("fleet-status", "fleets"),
    ("fleet-status-name", "fleet_whole"),
    ("fleet-log", "fleet_event"),
    ("doctor-fleet", "fleet_findings"),
];

/// The schemas of what our module inside the client sends and reads. The tests in `module_answers.rs` check them.
const MODULE_DOCUMENTS: [(&str, &str); 3] =
    [("client-report", "client_report"), ("context", "module_context"), ("checkpoint", "replacement")];

fn run_all_commands(world: &World) -> Vec<(&'static str, &'static str, Value)> {
    let run_command = |(command, type_text): &(&'static str, &'static str)| {
        let arguments: Vec<&str> = command.split(' ').collect();
        let finished = world.plimsoll(&arguments).run();
        let document = serde_json::from_str(&finished.stdout);
        (*command, *type_text, document.unwrap_or_else(|error| panic!("{command}: {error}: {finished:?}")))
    };
    COMMANDS.iter().map(run_command).collect()
}

/// A project with a plan, but without a session or a run.
fn project_without_run() -> World {
    let world = World::new();
    world.write("fix_plan.md", "- [ ] Item one\n");
    world
}

/// A project with a run that was checkpointed, has an open question, and had sessions with tool calls.
fn project_with_checkpointed_run() -> World {
    let plan = "# Plan\n\n- [ ] Item one (medium)\n- [ ] Item two (after: 1) (verify: true)\n  ? Which format?\n- [ ] Item three\n";
    let mut world = plimsoll_tests::world_with_plan_and_dates(plan);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 1) => Step::bash_call("echo more").with_input_tokens(870_000),
        (1, _) if turn.assistant_message_count > 1 => {
            Step::from_text("I stop here.").with_input_tokens(871_000)
        }
        _ => honest_agent(turn),
    })
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "true", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(7), "it waits for an answer: {finished:?}");
    world
        .plimsoll(&["memory", "alloc", "spec", "the text", "--description", "what it is for"])
        .run()
        .expect_success();
    world.plimsoll(&["checkpoint", "--summary", "half of it"]).run();
    world
}

#[test]
fn json_output_matches_docs_json_md() {
    let tables = load_json_page();
    let world = project_with_checkpointed_run();
    for (command, type_text, document) in run_all_commands(&world) {
        assert_matches_type(&tables, type_text, &document, command);
        let is_empty = document.as_array().is_some_and(Vec::is_empty) || document.is_null();
        assert!(!is_empty, "{command}: nothing to check");
    }
    // A session, but no run.
    std::fs::remove_file(world.path(".claude/ralph-state.json")).expect("the state");
    std::fs::remove_dir_all(world.path(".git/plimsoll")).expect("its copy");
    let document = world.plimsoll(&["status", "--json"]).run().expect_success().stdout_json();
    assert_matches_type(&tables, "status_without_run", &document, "status without a run");
    let world = project_without_run();
    for command in
        ["status --json", "plan --json", "handoffs --json", "turns stats --json", "memory show --json"]
    {
        let type_text = COMMANDS.iter().find(|(known, _)| *known == command).expect("a command").1;
        let arguments: Vec<&str> = command.split(' ').collect();
        let finished = world.plimsoll(&arguments).run();
        if finished.code == Some(0) {
            assert_matches_type(&tables, type_text, &finished.stdout_json(), command);
        }
    }
}

/// Users' scripts read the state file directly, with jq.
#[test]
fn state_file_has_the_fields_that_scripts_read() {
    let mut world = plimsoll_tests::world_with_plan_and_dates(plimsoll_tests::THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt"),
        1 => Step::bash_call("false").with_input_tokens(870_000),
        _ => Step::from_text("I stop here.").with_input_tokens(871_000),
    })
    .with_lifelike_delay()
    .start(&mut world);
    run_with_objective(&world, &["--max-iterations", "1"]);
    let state = world.read_json(".claude/ralph-state.json");
    let tables = load_json_page();
    for name in [
        "completion_promise",
        "last_diff_hash",
        "error_hashes",
        "no_change_count",
        "last_action",
        "started_at",
    ] {
        let field = tables["status"].fields.iter().find(|field| field.name == name).expect(name);
        assert_eq!(type_errors(&tables, &field.field_type, &state[name], name), [""; 0]);
    }
    assert_eq!(state["completion_promise"], "COMPLETE");
    assert_eq!(state["last_diff_hash"].as_str().map(str::len), Some(12), "{state:#}");
    assert_eq!(state["error_hashes"].as_array().map(Vec::len), Some(1), "{state:#}");
    let checkpoint = &state["context_checkpoint"];
    assert_eq!(type_errors(&tables, &FieldType::parse("checkpoint"), checkpoint, "checkpoint"), [""; 0]);
    let file = &checkpoint["files_in_progress"][0];
    assert_eq!((&file["path"], &file["lines"]), (&json!("src/dates.txt"), &json!("45-80")), "{checkpoint:#}");
}

#[test]
fn missing_unknown_and_mistyped_fields_are_reported() {
    let two_tables = parse_tables("### a\n| `x` | integer | it |\n### b\n| `y` | integer | it |\n");
    let count_errors_of_either =
        |value: &Value| type_errors(&two_tables, &FieldType::parse("a or b?"), value, "a").len();
    assert_eq!(
        [json!(null), json!({"x": 1}), json!({"y": 1})].map(|value| count_errors_of_either(&value)),
        [0; 3]
    );
    assert_eq!(count_errors_of_either(&json!({"x": ""})), 1);
    let tables = parse_tables(
        "### a\n| `x` | integer | it |\n| `y` | [b]? | them |\n| `z` | string optional | it |\n### b\n| `n` | {number} | x |\n| … | | |\n",
    );
    let count_errors = |value: &Value| type_errors(&tables, &FieldType::parse("a"), value, "a").len();
    for valid in [json!({"x": 1, "y": null}), json!({"x": 1, "y": [{"n": {"k": 1.5}, "more": 1}], "z": "s"})]
    {
        assert_eq!(count_errors(&valid), 0, "{valid}");
    }
    for invalid in [
        json!({"y": null}),
        json!({"x": null, "y": null}),
        json!({"x": 1.5, "y": null}),
        json!({"x": 1, "y": null, "new": 1}),
        json!({"x": 1, "y": [1]}),
        json!({"x": 1, "y": [{}]}),
        json!({"x": 1, "y": [{"n": {"k": "1"}}]}),
        json!({"x": 1, "y": null, "z": 1}),
        json!([]),
    ] {
        assert_eq!(count_errors(&invalid), 1, "{invalid}");
    }
}

/// Returns the schema of a type, with the definitions of all tables that it refers to, directly or indirectly.
fn schema_of_type(tables: &Tables, type_text: &str) -> Value {
    let root = FieldType::parse(type_text);
    let mut defs = Map::new();
    let mut pending: Vec<&str> = root.table_names();
    while let Some(name) = pending.pop() {
        if defs.contains_key(name) {
            continue;
        }
        let table = tables.get(name).unwrap_or_else(|| panic!("docs/json.md has no table {name}"));
        let to_property = |field: &Field| {
            let mut schema = field.field_type.to_schema();
            schema["description"] = field.description.replace('`', "").into();
            (field.name.clone(), schema)
        };
        let required: Vec<&str> =
            table.fields.iter().filter(|field| !field.is_optional).map(|field| field.name.as_str()).collect();
        let properties: Map<String, Value> = table.fields.iter().map(to_property).collect();
        defs.insert(
            name.to_owned(),
            json!({"type": "object", "required": required, "properties": properties, "additionalProperties": table.allows_other_fields}),
        );
        pending.extend(table.fields.iter().flat_map(|field| field.field_type.table_names()));
    }
    let mut schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema"});
    schema
        .as_object_mut()
        .expect("an object")
        .extend(root.to_schema().as_object().cloned().unwrap_or_default());
    schema["$defs"] = defs.into();
    schema
}

#[test]
fn schemas_are_generated_from_docs_json_md() {
    let tables = load_json_page();
    let folder = workspace_root().join("docs/schemas");
    let mut names = Vec::new();
    let schema_name_and_type = |(command, type_text): (&str, &'static str)| {
        let words: Vec<&str> = command
            .split(' ')
            .filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase()))
            .collect();
        let words = match command {
            _ if command.starts_with("log") => vec!["log", "why"],
            "--version --json" => vec!["version"],
            _ => words,
        };
        (words.join("-"), type_text)
    };
    let fleet_outputs = FLEET_OUTPUTS.map(|(name, type_text)| (name.to_owned(), type_text));
    let module_documents = MODULE_DOCUMENTS.map(|(name, type_text)| (name.to_owned(), type_text));
    let outputs = COMMANDS.map(schema_name_and_type).into_iter().chain(fleet_outputs).chain(module_documents);
    for (name, type_text) in outputs {
        let name = format!("{name}.schema.json");
        let generated =
            serde_json::to_string_pretty(&schema_of_type(&tables, type_text)).expect("JSON") + "\n";
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).expect("docs/ is writable");
            std::fs::write(folder.join(&name), &generated).expect("docs/schemas/ is writable");
        }
        let written = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            written == generated,
            "docs/schemas/{name} is not what docs/json.md says: PLIMSOLL_UPDATE_GOLDEN=1"
        );
        names.push(name);
    }
    let folder = std::fs::read_dir(folder).expect("docs/schemas");
    let existing_names = folder.map(|entry| entry.expect("an entry").file_name().display().to_string());
    let stale_names: Vec<String> = existing_names.filter(|name| !names.contains(name)).collect();
    assert_eq!(stale_names, [""; 0], "no command prints these");
}

#[test]
fn docs_json_md_lists_every_status() {
    let status_names: Vec<String> = RunStatus::ALL.iter().map(|status| format!("`{status}`")).collect();
    let (last_name, other_names) = status_names.split_last().expect("statuses");
    let row = format!("|`status`|string|{} or {last_name}|", other_names.join(", "));
    let path = workspace_root().join("docs/json.md");
    let page = std::fs::read_to_string(&path).expect("docs/json.md");
    let is_status_row = |line: &&str| line.starts_with("|`status`|string|`running`");
    let written = page.lines().find(is_status_row).expect("the row").to_owned();
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page.replace(&written, &row)).expect("docs/ is writable");
        return;
    }
    assert!(written == row, "docs/json.md does not name every status: PLIMSOLL_UPDATE_GOLDEN=1");
}
