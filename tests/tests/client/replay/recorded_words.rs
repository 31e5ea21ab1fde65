//! The client's own texts that the replay uses, recorded again in each full run: `PLIMSOLL_UPDATE_GOLDEN=1` writes them.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";
/// Longer texts are the client's own prompts, of which only the presence is recorded.
const MAX_TEXT_CHARS: usize = 120;

/// Plays a session of the real client and returns its stream, its transcript and its first request.
fn record_session(steps: Vec<Step>) -> (Vec<Value>, Vec<Value>, Value) {
    let mut world = World::new();
    let model = ScriptedModel::start_with_steps_repeating_last(steps);
    world.put_client_on_path_with_model_and_settings(&model);
    let arguments =
        ["-p", "do it", "--session-id", SESSION_ID, "--model", "opus", "--output-format", "stream-json"];
    let arguments = [&arguments[..], &["--verbose", "--allowedTools", "Bash"]].concat();
    let finished = world.claude(&arguments).run();
    let transcript = std::fs::read_to_string(&world.transcript_paths()[0]).unwrap();
    let parse_lines = |text: &str| {
        text.lines().map(|line| normalize_value(&world, &serde_json::from_str(line).unwrap(), "")).collect()
    };
    (
        parse_lines(&finished.stdout),
        parse_lines(&transcript),
        normalize_value(&world, &model.main_requests()[0].body, ""),
    )
}

/// Replaces today's date, so that the recording does not depend on the day.
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

fn normalize_value(world: &World, value: &Value, key: &str) -> Value {
    match value {
        Value::String(text) => {
            let project = world.project().display().to_string();
            let dashed = plimsoll_testkit::replay::dashed_path(&world.project());
            let text = text
                .replace(&project, "<project>")
                .replace(&dashed, "<dashed>")
                .replace(SESSION_ID, "<session>");
            let text = text.replace(&world.home().display().to_string(), "<home>");
            let text = without_date(&text);
            let is_volatile_field = [
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
            let is_uuid = key == "id" && text.len() == 36;
            match text.chars().count() {
                _ if is_volatile_field || is_uuid => "".into(),
                length if length > MAX_TEXT_CHARS => "<text>".into(),
                _ if text.starts_with("x-anthropic-billing-header") => {
                    "x-anthropic-billing-header: recorded".into()
                }
                _ => text.into(),
            }
        }
        Value::Array(values) => values.iter().map(|value| normalize_value(world, value, key)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), normalize_value(world, value, key)));
            Value::Object(fields.collect())
        }
        Value::Number(_) if key.ends_with("_ms") => 0.into(),
        other => other.clone(),
    }
}

fn record_real_client() -> Value {
    let (stdout, transcript, request) = record_session(vec![Step::from_text("done")]);
    let overloaded = || Step::api_error(529, "Overloaded");
    let (failed, _, _) = record_session(vec![overloaded(), overloaded()]);
    // The snapshot is the last attachment of the first request; it occurs again later.
    let is_snapshot = |line: &Value| line["attachment"]["type"] == "prompt_snapshot";
    let first_snapshot = transcript.iter().position(is_snapshot).expect("a first request");
    let attachments: Vec<&Value> =
        transcript[..=first_snapshot].iter().filter(|line| line["type"] == "attachment").collect();
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
fn the_texts_of_the_replay_match_the_current_client() {
    let path = workspace_root().join("crates/testkit/src/replay/recorded.json");
    let text = format!("{:#}\n", record_real_client());
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let first_difference = text.lines().zip(committed.lines()).find(|(now, then)| now != then);
    assert!(
        text == committed,
        "recorded.json is not what the client says ({first_difference:?}): PLIMSOLL_UPDATE_GOLDEN=1"
    );
}
