//! What the replay says in the client's own words, recorded anew in each full run: `PLIMSOLL_UPDATE_GOLDEN=1` writes it.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const SESSION: &str = "11111111-2222-4333-8444-555555555555";
/// Longer texts are the client's own prompts: that there was one is enough.
const LONGEST: usize = 120;

/// A session of the real client: its stream, its transcript, its first request.
fn session(steps: Vec<Step>) -> (Vec<Value>, Vec<Value>, Value) {
    let mut world = World::new();
    let model = ScriptedModel::steps(steps);
    world.use_model(&model);
    let arguments =
        ["-p", "do it", "--session-id", SESSION, "--model", "opus", "--output-format", "stream-json"];
    let arguments = [&arguments[..], &["--verbose", "--allowedTools", "Bash"]].concat();
    let finished = world.claude(&arguments).run();
    let transcript = std::fs::read_to_string(&world.transcripts()[0]).unwrap();
    let lines = |text: &str| {
        text.lines().map(|line| plain(&world, &serde_json::from_str(line).unwrap(), "")).collect()
    };
    (lines(&finished.stdout), lines(&transcript), plain(&world, &model.main_requests()[0].body, ""))
}

/// What is recorded today must be what is recorded tomorrow.
fn without_date(text: &str) -> String {
    const BEFORE: &str = "Today's date is ";
    match text.split_once(BEFORE) {
        Some((before, rest)) => {
            let after = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
            format!("{before}{BEFORE}<today>{after}")
        }
        None => text.to_owned(),
    }
}

fn plain(world: &World, value: &Value, key: &str) -> Value {
    match value {
        Value::String(text) => {
            let project = world.project().display().to_string();
            let dashed = plimsoll_testkit::replay::dashed(&world.project());
            let text = text
                .replace(&project, "<project>")
                .replace(&dashed, "<dashed>")
                .replace(SESSION, "<session>");
            let text = text.replace(&world.home().display().to_string(), "<home>");
            let text = without_date(&text);
            let is_own = [
                "uuid",
                "parentUuid",
                "timestamp",
                "messaging_socket_path",
                "osVersion",
                "date",
                "request_id",
                "requestId",
            ]
            .contains(&key);
            let is_message = key == "id" && text.len() == 36;
            match text.chars().count() {
                _ if is_own || is_message => "".into(),
                length if length > LONGEST => "<text>".into(),
                _ if text.starts_with("x-anthropic-billing-header") => {
                    "x-anthropic-billing-header: recorded".into()
                }
                _ => text.into(),
            }
        }
        Value::Array(values) => values.iter().map(|value| plain(world, value, key)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), plain(world, value, key)));
            Value::Object(fields.collect())
        }
        Value::Number(_) if key.ends_with("_ms") => 0.into(),
        other => other.clone(),
    }
}

fn recorded_now() -> Value {
    let (stdout, transcript, request) = session(vec![Step::text("done")]);
    let overloaded = || Step::error(529, "Overloaded");
    let (failed, _, _) = session(vec![overloaded(), overloaded()]);
    // The last one of the first request; it comes again later.
    let is_snapshot = |line: &Value| line["attachment"]["type"] == "prompt_snapshot";
    let first = transcript.iter().position(is_snapshot).expect("a first request");
    let attachments: Vec<&Value> =
        transcript[..=first].iter().filter(|line| line["type"] == "attachment").collect();
    let names: Vec<&Value> = request["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    let texts: Vec<&Value> = request["system"].as_array().unwrap().iter().map(|part| &part["text"]).collect();
    let is_init = |line: &&Value| line["subtype"] == "init";
    json!({
        "init": stdout.iter().find(is_init), "result": stdout.last(), "error_result": failed.last(),
        "synthetic": failed.iter().find(|line| line["message"]["model"] == "<synthetic>"),
        "attachments": attachments, "tools": names, "system_texts": texts,
    })
}

#[test]
fn the_replay_says_what_the_client_says_today() {
    let path = workspace_root().join("crates/testkit/src/replay/recorded.json");
    let text = format!("{:#}\n", recorded_now());
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let differs = text.lines().zip(committed.lines()).find(|(now, then)| now != then);
    assert!(
        text == committed,
        "recorded.json is not what the client says ({differs:?}): PLIMSOLL_UPDATE_GOLDEN=1"
    );
}
