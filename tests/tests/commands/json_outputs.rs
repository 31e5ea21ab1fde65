//! What the commands print with `--json` is what docs/json.md says, field by field; and the schemas beside it are made of that
//! page. `PLIMSOLL_UPDATE_GOLDEN=1` makes them anew.

use plimsoll_domain::RunStatus;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, honest, run};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A row of a table.
struct Field {
    name: String,
    kind: Kind,
    is_optional: bool,
    words: String,
}

/// The type of a field.
#[derive(Debug)]
enum Kind {
    Any,
    /// One of JSON's own, by its name in a schema.
    Plain(&'static str),
    Table(String),
    List(Box<Kind>),
    Map(Box<Kind>),
    OrNull(Box<Kind>),
    OneOf(Vec<Kind>),
}

impl Kind {
    fn of(text: &str) -> Kind {
        if let Some(inner) = text.strip_suffix('?') {
            return Kind::OrNull(Box::new(Kind::of(inner)));
        }
        let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        match text {
            "any" => Kind::Any,
            "string" | "time" => Kind::Plain("string"),
            "integer" => Kind::Plain("integer"),
            "number" => Kind::Plain("number"),
            "boolean" => Kind::Plain("boolean"),
            _ if text.contains(" or ") => Kind::OneOf(text.split(" or ").map(Kind::of).collect()),
            _ => match (inside('[', ']'), inside('{', '}')) {
                (Some(inner), _) => Kind::List(Box::new(Kind::of(inner))),
                (_, Some(inner)) => Kind::Map(Box::new(Kind::of(inner))),
                (None, None) => Kind::Table(text.to_owned()),
            },
        }
    }

    fn schema(&self) -> Value {
        match self {
            Kind::Any => json!({}),
            Kind::Plain(name) => json!({ "type": name }),
            Kind::Table(name) => json!({ "$ref": format!("#/$defs/{name}") }),
            Kind::List(inner) => json!({ "type": "array", "items": inner.schema() }),
            Kind::Map(inner) => json!({ "type": "object", "additionalProperties": inner.schema() }),
            Kind::OrNull(inner) => json!({ "anyOf": [inner.schema(), { "type": "null" }] }),
            Kind::OneOf(kinds) => json!({ "anyOf": kinds.iter().map(Kind::schema).collect::<Vec<_>>() }),
        }
    }

    /// Returns the tables that it names.
    fn tables(&self) -> Vec<&str> {
        match self {
            Kind::Any | Kind::Plain(_) => Vec::new(),
            Kind::Table(name) => vec![name],
            Kind::List(inner) | Kind::Map(inner) | Kind::OrNull(inner) => inner.tables(),
            Kind::OneOf(kinds) => kinds.iter().flat_map(Kind::tables).collect(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Table {
    fields: Vec<Field>,
    /// More fields may be there.
    is_open: bool,
}

pub(crate) type Tables = BTreeMap<String, Table>;

/// The tables of the page, each under its heading.
fn tables(page: &str) -> Tables {
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
            ["", "…", ..] => table.is_open = true,
            ["", field, kind, words, ""] if field.starts_with('`') => table.fields.push(Field {
                name: field.trim_matches('`').to_owned(),
                kind: Kind::of(kind.trim_end_matches("optional").trim()),
                is_optional: kind.ends_with("optional"),
                words: words.to_owned(),
            }),
            _ => {}
        }
    }
    tables
}

pub(crate) fn page() -> Tables {
    tables(&std::fs::read_to_string(workspace_root().join("docs/json.md")).expect("docs/json.md"))
}

/// What of a value is not as its type says.
fn faults(tables: &Tables, kind: &Kind, value: &Value, at: &str) -> Vec<String> {
    match (kind, value) {
        (Kind::Any, _) | (Kind::OrNull(_), Value::Null) => Vec::new(),
        (Kind::OrNull(inner), _) => faults(tables, inner, value, at),
        (Kind::Plain("string"), Value::String(_)) | (Kind::Plain("boolean"), Value::Bool(_)) => Vec::new(),
        (Kind::Plain("integer"), number) if number.is_i64() || number.is_u64() => Vec::new(),
        (Kind::Plain("number"), Value::Number(_)) => Vec::new(),
        (Kind::List(inner), Value::Array(elements)) => {
            elements.iter().flat_map(|element| faults(tables, inner, element, &format!("{at}[]"))).collect()
        }
        (Kind::Map(inner), Value::Object(fields)) => {
            let of_each =
                |(name, field): (&String, &Value)| faults(tables, inner, field, &format!("{at}.{name}"));
            fields.iter().flat_map(of_each).collect()
        }
        (Kind::OneOf(kinds), _) => {
            let of_each = kinds.iter().map(|kind| faults(tables, kind, value, at));
            of_each.min_by_key(Vec::len).unwrap_or_default()
        }
        (Kind::Table(name), Value::Object(fields)) => {
            let table = tables.get(name).unwrap_or_else(|| panic!("{at}: docs/json.md has no table {name}"));
            let of_field = |field: &Field| {
                let at = format!("{at}.{}", field.name);
                match fields.get(&field.name) {
                    Some(value) => faults(tables, &field.kind, value, &at),
                    None if field.is_optional => Vec::new(),
                    None => vec![format!("{at} is missing")],
                }
            };
            let is_known = |name: &String| table.fields.iter().any(|field| field.name == *name);
            let unknown = fields.keys().filter(|name| !table.is_open && !is_known(name));
            let unknown = unknown.map(|name| format!("{at}.{name} is not in docs/json.md"));
            table.fields.iter().flat_map(of_field).chain(unknown).collect()
        }
        _ => vec![format!("{at} is no {kind:?}: {value}")],
    }
}

pub(crate) fn check(tables: &Tables, kind: &str, value: &Value, what: &str) {
    let found = faults(tables, &Kind::of(kind), value, what);
    assert!(found.is_empty(), "{found:#?}\n{value:#}");
}

/// Each command with the type of what it prints.
const COMMANDS: [(&str, &str); 14] = [
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
];

/// What the commands of a fleet print, by the names of their schemas: `fleet/` has a database, and checks it.
pub(crate) const OF_FLEETS: [(&str, &str); 4] = [
    ("fleet-status", "fleets"),
    ("fleet-status-name", "fleet_whole"),
    ("fleet-log", "fleet_event"),
    ("doctor-fleet", "fleet_findings"),
];

fn outputs(world: &World) -> Vec<(&'static str, &'static str, Value)> {
    let output = |(command, kind): &(&'static str, &'static str)| {
        let words: Vec<&str> = command.split(' ').collect();
        let finished = world.plimsoll(&words).run();
        let document = serde_json::from_str(&finished.stdout);
        (*command, *kind, document.unwrap_or_else(|why| panic!("{command}: {why}: {finished:?}")))
    };
    COMMANDS.iter().map(output).collect()
}

/// A project in which nothing has happened yet.
fn untouched() -> World {
    let world = World::new();
    world.write("fix_plan.md", "- [ ] Item one\n");
    world
}

/// One with a run that was checkpointed, has a question, and has had sessions with tools.
fn rich() -> World {
    let plan = "# Plan\n\n- [ ] Item one (medium)\n- [ ] Item two (after: 1) (verify: true)\n  ? Which format?\n- [ ] Item three\n";
    let mut world = plimsoll_tests::world(plan);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 1) => Step::bash("echo more").usage(870_000),
        (1, _) if turn.step > 1 => Step::text("I stop here.").usage(871_000),
        _ => honest(turn),
    })
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--verify", "true", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(7), "it waits for an answer: {finished:?}");
    world
        .plimsoll(&["memory", "alloc", "spec", "the text", "--description", "what it is for"])
        .run()
        .expect_success();
    world.plimsoll(&["checkpoint", "--summary", "half of it"]).run();
    world
}

#[test]
fn what_is_printed_is_what_the_page_says() {
    let tables = page();
    let world = rich();
    for (command, kind, document) in outputs(&world) {
        check(&tables, kind, &document, command);
        let is_empty = document.as_array().is_some_and(Vec::is_empty) || document.is_null();
        assert!(!is_empty, "{command}: nothing to check");
    }
    // A session, but no run.
    std::fs::remove_file(world.path(".claude/ralph-state.json")).expect("the state");
    std::fs::remove_dir_all(world.path(".git/plimsoll")).expect("its copy");
    let document = world.plimsoll(&["status", "--json"]).run().expect_success().json();
    check(&tables, "status_without_run", &document, "status without a run");
    let world = untouched();
    for command in
        ["status --json", "plan --json", "handoffs --json", "turns stats --json", "memory show --json"]
    {
        let kind = COMMANDS.iter().find(|(known, _)| *known == command).expect("a command").1;
        let words: Vec<&str> = command.split(' ').collect();
        let finished = world.plimsoll(&words).run();
        if finished.code == Some(0) {
            check(&tables, kind, &finished.json(), command);
        }
    }
}

/// Scripts read the state file itself, with jq.
#[test]
fn the_state_file_has_the_names_that_scripts_read() {
    let mut world = plimsoll_tests::world(plimsoll_tests::ITEMS);
    let _model = ScriptedAgent::new(|turn| match turn.step {
        0 => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt"),
        1 => Step::bash("false").usage(870_000),
        _ => Step::text("I stop here.").usage(871_000),
    })
    .at_real_pace()
    .start(&mut world);
    run(&world, &["--max-iterations", "1"]);
    let state = world.json(".claude/ralph-state.json");
    let tables = page();
    for name in [
        "completion_promise",
        "last_diff_hash",
        "error_hashes",
        "no_change_count",
        "last_action",
        "started_at",
    ] {
        let field = tables["status"].fields.iter().find(|field| field.name == name).expect(name);
        assert_eq!(faults(&tables, &field.kind, &state[name], name), [""; 0]);
    }
    assert_eq!(state["completion_promise"], "COMPLETE");
    assert_eq!(state["last_diff_hash"].as_str().map(str::len), Some(12), "{state:#}");
    assert_eq!(state["error_hashes"].as_array().map(Vec::len), Some(1), "{state:#}");
    let checkpoint = &state["context_checkpoint"];
    assert_eq!(faults(&tables, &Kind::of("checkpoint"), checkpoint, "checkpoint"), [""; 0]);
    let file = &checkpoint["files_in_progress"][0];
    assert_eq!((&file["path"], &file["lines"]), (&json!("src/dates.txt"), &json!("45-80")), "{checkpoint:#}");
}

#[test]
fn a_field_that_is_missing_new_or_of_another_type_is_found() {
    let either = tables("### a\n| `x` | integer | it |\n### b\n| `y` | integer | it |\n");
    let of_either = |value: &Value| faults(&either, &Kind::of("a or b?"), value, "a").len();
    assert_eq!([json!(null), json!({"x": 1}), json!({"y": 1})].map(|value| of_either(&value)), [0; 3]);
    assert_eq!(of_either(&json!({"x": ""})), 1);
    let tables = tables(
        "### a\n| `x` | integer | it |\n| `y` | [b]? | them |\n| `z` | string optional | it |\n### b\n| `n` | {number} | x |\n| … | | |\n",
    );
    let found = |value: &Value| faults(&tables, &Kind::of("a"), value, "a").len();
    for right in [json!({"x": 1, "y": null}), json!({"x": 1, "y": [{"n": {"k": 1.5}, "more": 1}], "z": "s"})]
    {
        assert_eq!(found(&right), 0, "{right}");
    }
    for wrong in [
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
        assert_eq!(found(&wrong), 1, "{wrong}");
    }
}

/// A table as a schema with every table that it leads to.
fn schema(tables: &Tables, kind: &str) -> Value {
    let root = Kind::of(kind);
    let mut defs = Map::new();
    let mut open: Vec<&str> = root.tables();
    while let Some(name) = open.pop() {
        if defs.contains_key(name) {
            continue;
        }
        let table = tables.get(name).unwrap_or_else(|| panic!("docs/json.md has no table {name}"));
        let property = |field: &Field| {
            let mut schema = field.kind.schema();
            schema["description"] = field.words.replace('`', "").into();
            (field.name.clone(), schema)
        };
        let required: Vec<&str> =
            table.fields.iter().filter(|field| !field.is_optional).map(|field| field.name.as_str()).collect();
        let properties: Map<String, Value> = table.fields.iter().map(property).collect();
        defs.insert(
            name.to_owned(),
            json!({"type": "object", "required": required, "properties": properties, "additionalProperties": table.is_open}),
        );
        open.extend(table.fields.iter().flat_map(|field| field.kind.tables()));
    }
    let mut schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema"});
    schema.as_object_mut().expect("an object").extend(root.schema().as_object().cloned().unwrap_or_default());
    schema["$defs"] = defs.into();
    schema
}

#[test]
fn the_schemas_are_made_of_the_page() {
    let tables = page();
    let folder = workspace_root().join("docs/schemas");
    let mut names = Vec::new();
    let of_command = |(command, kind): (&str, &'static str)| {
        let verb: Vec<&str> = command
            .split(' ')
            .filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase()))
            .collect();
        let verb = match command {
            _ if command.starts_with("log") => vec!["log", "why"],
            "--version --json" => vec!["version"],
            _ => verb,
        };
        (verb.join("-"), kind)
    };
    let of_fleets = OF_FLEETS.map(|(name, kind)| (name.to_owned(), kind));
    for (name, kind) in COMMANDS.map(of_command).into_iter().chain(of_fleets) {
        let name = format!("{name}.schema.json");
        let made = serde_json::to_string_pretty(&schema(&tables, kind)).expect("JSON") + "\n";
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).expect("docs/ is writable");
            std::fs::write(folder.join(&name), &made).expect("docs/schemas/ is writable");
        }
        let written = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            written == made,
            "docs/schemas/{name} is not what docs/json.md says: PLIMSOLL_UPDATE_GOLDEN=1"
        );
        names.push(name);
    }
    let folder = std::fs::read_dir(folder).expect("docs/schemas");
    let there = folder.map(|entry| entry.expect("an entry").file_name().display().to_string());
    let left: Vec<String> = there.filter(|name| !names.contains(name)).collect();
    assert_eq!(left, [""; 0], "no command prints these");
}

#[test]
fn the_page_names_every_status() {
    let words: Vec<String> = RunStatus::ALL.iter().map(|status| format!("`{status}`")).collect();
    let (last, others) = words.split_last().expect("statuses");
    let row = format!("| `status` | string | {} or {last} |", others.join(", "));
    let path = workspace_root().join("docs/json.md");
    let page = std::fs::read_to_string(&path).expect("docs/json.md");
    let is_it = |line: &&str| line.starts_with("| `status` | string | `running`");
    let written = page.lines().find(is_it).expect("the row").to_owned();
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page.replace(&written, &row)).expect("docs/ is writable");
        return;
    }
    assert!(written == row, "docs/json.md does not name every status: PLIMSOLL_UPDATE_GOLDEN=1");
}
