//! The observable behavior of a session, without everything that differs between any two sessions.

use super::session_kinds::{SessionKind, Signal};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel};
use plimsoll_testkit::world::World;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";

const EVENTS: [&str; 14] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "SessionEnd",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Notification",
];

/// The client's own bookkeeping in the transcript, which none of Plimsoll's programs reads. A reminder to a model that
/// writes no text follows rules of the client's own.
const BOOKKEEPING_ENTRIES: [&str; 9] = [
    "last-prompt",
    "atis-latch",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "tools-used",
    "cost-state",
    "prompt_snapshot",
    "silent_turn_reminder",
];

/// The observed behavior of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionTrace {
    pub(super) hooks: Vec<Value>,
    pub(super) stdout: Vec<Value>,
    pub(super) transcript: Vec<Value>,
    pub(super) requests: Vec<Value>,
    pub(super) exit: String,
}

/// Plays a kind of session with the real client or with the replayed one.
pub(super) fn play_session(kind: &SessionKind, is_replayed: bool) -> SessionTrace {
    let mut world = World::new();
    world.write("a.txt", "one\ntwo\n");
    let hook_path = world.write_program(world.home().join("note.sh"), &hook_script(kind));
    std::fs::create_dir(world.home().join("noted")).unwrap();
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Begin"]);
    (kind.prepare)(&world);
    let model = ScriptedModel::start_with_steps_repeating_last((kind.steps)(&world));
    world.put_client_on_path_with_model_and_settings(&model);
    if is_replayed {
        world.use_replayed_client();
    }
    let hooks: Map<String, Value> = EVENTS
        .iter()
        .map(|event| {
            let entry = json!({ "type": "command", "command": hook_path, "args": [event], "timeout": 20 });
            ((*event).to_owned(), json!([{ "hooks": [entry] }]))
        })
        .collect();
    let settings = json!({ "hooks": hooks }).to_string();
    let mut arguments = vec!["-p", "--session-id", SESSION_ID, "--settings", &settings, "--model", "opus"];
    arguments.extend(kind.arguments);
    arguments.extend(["--allowedTools", "Bash", "Edit", "Write", "Read"]);
    let launch = world.claude(&arguments).stdin("do it\n");
    let mut running = launch.spawn();
    if let Some(signal) = kind.signal {
        let is_working = || world.exists("at-work") && model.requests().len() >= kind.requests_when_working();
        world.wait_until(is_working, "the session is at work");
        match signal {
            Signal::Interrupt => running.interrupt(),
            Signal::Terminate => running.terminate(),
        }
    }
    let finished = running.wait_or_kill_and_panic(Duration::from_secs(60));
    // Ids are numbered separately in each part, because the parts are written concurrently.
    let normalize = |values: Vec<Value>| -> Vec<Value> {
        let mut normalizer = Normalizer { is_unordered: kind.is_unordered, ..Normalizer::for_world(&world) };
        values.into_iter().map(|value| normalizer.normalize_value(value, "")).collect()
    };
    let parse_lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into())).collect()
    };
    let stdout = normalize(parse_lines(&finished.stdout));
    let transcript = world.transcript_paths().first().map(|path| std::fs::read_to_string(path).unwrap());
    let is_compared = |line: &Value| {
        let has_kind = |kind: &&str| line["type"] == **kind || line["attachment"]["type"] == **kind;
        // After SIGTERM has ended a tool, the client may exit before it writes this last line.
        let is_result_of_killed_tool = kind.signal == Some(Signal::Terminate)
            && line["message"]["content"][0]["content"] == "Exit code 137";
        !is_result_of_killed_tool && !BOOKKEEPING_ENTRIES.iter().any(has_kind)
    };
    let transcript = parse_lines(&transcript.unwrap_or_default())
        .into_iter()
        .filter(is_compared)
        .map(outline_attachment)
        .collect();
    let entries = if world.exists("entries.txt") { world.read("entries.txt") } else { String::new() };
    let mut hook_records = read_hook_records(&world);
    // The client does not wait for this hook, nor does the hook wait for the client.
    hook_records.retain(|hook| hook["payload"]["hook_event_name"] != "StopFailure");
    hook_records.extend(entries.lines().map(|line| json!(line)));
    // Results are sent in the order in which the calls ended.
    let requests = if kind.is_unordered {
        Vec::new()
    } else {
        model.main_requests().iter().map(outline_request).collect()
    };
    let exit = Normalizer::for_world(&world)
        .normalize_text(&format!("{:?} {:?} {}", finished.code, finished.signal, finished.stderr));
    SessionTrace {
        hooks: normalize(hook_records),
        stdout,
        transcript: normalize(transcript),
        requests: normalize(requests),
        exit,
    }
}

/// Keeps only the kind and the fields of an attachment of the client's own: its texts change from day to day.
fn outline_attachment(mut line: Value) -> Value {
    let kind = line["attachment"]["type"].as_str().unwrap_or("hook_").to_owned();
    if !kind.starts_with("hook_") {
        let mut fields: Vec<String> =
            line["attachment"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        fields.sort();
        line["attachment"] = json!({ "type": kind, "fields": fields });
        if line.get("rendered").is_some() {
            line["rendered"] = "its own words".into();
        }
    }
    line
}

impl SessionKind {
    /// Returns how many requests there are when the session is working.
    fn requests_when_working(&self) -> usize {
        if self.name.ends_with("an_answer") { 2 } else { 1 }
    }
}

/// Returns the hook script: it records its input and prints the answer of the session kind.
fn hook_script(kind: &SessionKind) -> String {
    let mut script =
        "#!/bin/sh\nat=$HOME/noted/$(date +%s%N)-$$\ncat >\"$at.payload\"\nenv -0 >\"$at.env\"\n".to_owned();
    script.push_str("case $1 in\n");
    for (event, answer) in kind.hook_answers {
        let _ = writeln!(script, "{event}) {answer} ;;");
    }
    script.push_str("esac\n");
    script
}

/// Returns the inputs that the hooks recorded, in the order in which the hooks started.
fn read_hook_records(world: &World) -> Vec<Value> {
    let folder = world.home().join("noted");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "payload"));
    names.sort();
    let read_record = |path: &std::path::PathBuf| {
        // A StopFailure hook may be killed before it has recorded everything.
        let payload: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).ok()?;
        let environment = std::fs::read(path.with_extension("env")).ok()?;
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let variables: Map<String, Value> = environment
            .split('\0')
            .filter_map(|variable| variable.split_once('='))
            // The PATH contains the client's own folder; the shell sets the others.
            .filter(|(name, _)| {
                !["PATH", "_", "OLDPWD", "SHLVL", plimsoll_testkit::replay::UNRECORDED_REQUESTS_VARIABLE]
                    .contains(name)
            })
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        Some(json!({ "payload": payload, "environment": sort_fields(variables) }))
    };
    names.iter().filter_map(read_record).collect()
}

fn sort_fields(fields: Map<String, Value>) -> Value {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    Value::Object(fields.into_iter().collect())
}

/// Outlines a request without the client's own texts: only the texts of hooks are kept.
fn outline_request(request: &Request) -> Value {
    let content_parts = |content: &Value| -> Vec<Value> {
        match content {
            Value::String(text) => vec![text.clone().into()],
            Value::Array(blocks) => blocks
                .iter()
                .map(|block| {
                    if block["type"] == "text" {
                        block["text"].clone()
                    } else {
                        without_field(block, "cache_control")
                    }
                })
                .collect(),
            other => vec![other.clone()],
        }
    };
    let is_client_text = |text: &Value| {
        text.as_str().is_some_and(|text| text.starts_with("<system-reminder>\nA"))
            || text.as_str().is_some_and(|text| text.starts_with("<system-reminder>\n# gitStatus"))
    };
    let messages: Vec<Value> = request.body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| {
            let mut parts = content_parts(&message["content"]);
            parts.retain(|part| !is_client_text(part));
            if message["role"] == "system" {
                let system_text = parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n");
                let hook_texts =
                    system_text.split("\n\n").filter(|part| part.contains(" hook ") && part.len() < 400);
                parts = hook_texts.map(|part| part.trim().into()).collect();
            }
            json!({ "role": message["role"], "content": parts })
        })
        .filter(|message| message["content"] != json!([]))
        .collect();
    let mut keys: Vec<&String> = request.body.as_object().unwrap().keys().collect();
    keys.sort();
    let is_brief = request.system_text().contains("Be brief.");
    json!({
        "path": request.path, "model": request.model, "keys": keys, "tools": request.tool_names(), "is_brief": is_brief,
        "max_tokens": request.body["max_tokens"], "thinking": request.body["thinking"],
        "output_config": request.body["output_config"], "messages": messages,
    })
}

fn without_field(block: &Value, name: &str) -> Value {
    let mut block = block.clone();
    block.as_object_mut().map(|block| block.shift_remove(name));
    block
}

/// Replaces what differs between any two sessions: paths, ids, times.
struct Normalizer {
    replacements: Vec<(String, &'static str)>,
    ids: HashMap<String, usize>,
    is_unordered: bool,
}

/// Longer texts are the client's own prompts.
const MAX_TEXT_CHARS: usize = 120;

/// Keys whose numbers are durations, sizes of the client's own prompts, or process ids.
const VOLATILE_KEYS: [&str; 4] = ["ms", "duration", "retryinms", "starttime"];

impl Normalizer {
    fn for_world(world: &World) -> Normalizer {
        let project = world.project().display().to_string();
        let dashed = plimsoll_testkit::replay::dashed_path(&world.project());
        let env_value = |name: &str| {
            world
                .env_with_programs_on_path()
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let model = env_value("ANTHROPIC_BASE_URL").unwrap_or_default().replace("http://", "");
        let replacements = vec![
            (project, "<project>"),
            (dashed, "<dashed>"),
            (world.home().display().to_string(), "<home>"),
            (world.home().parent().unwrap().display().to_string(), "<world>"),
            (model, "<model>"),
        ];
        Normalizer { replacements, ids: HashMap::new(), is_unordered: false }
    }

    fn normalize_value(&mut self, value: Value, key: &str) -> Value {
        match value {
            Value::String(text) if key == "CLAUDE_PID" => {
                text.chars().map(|_| '0').take(1).collect::<String>().into()
            }
            Value::String(text) => self.normalize_text(&text).into(),
            Value::Array(values) => {
                values.into_iter().map(|value| self.normalize_value(value, key)).collect()
            }
            // Fields are sorted, because JSON objects have no order.
            Value::Object(fields) => {
                let Value::Object(fields) = sort_fields(fields) else { return Value::Null };
                let fields = fields.into_iter().map(|(key, value)| {
                    let value = self.normalize_value(value, &key);
                    (key, value)
                });
                Value::Object(fields.collect())
            }
            Value::Number(_) if is_volatile_number(key) => 0.into(),
            Value::Number(number) if key.to_lowercase().contains("cost") => {
                format!("{:.9}", number.as_f64().unwrap_or_default()).into()
            }
            // The client's guess about the output of a command, which no program of Plimsoll's reads.
            Value::Bool(_) if key == "noOutputExpected" => false.into(),
            other => other,
        }
    }

    fn normalize_text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (place, name) in &self.replacements {
            if !place.is_empty() {
                text = text.replace(place, name);
            }
        }
        text = self.replace_ids(&text);
        // The recording has only a placeholder for long texts of the client.
        let is_client_text =
            text.starts_with("<text") || text.chars().count() > MAX_TEXT_CHARS && !text.contains("<project>");
        if is_client_text { "<text>".to_owned() } else { text }
    }

    /// Replaces ids, times and process ids in a text, which are recognized by their forms.
    fn replace_ids(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut word = String::new();
        for letter in text.chars().chain(['\0']) {
            if letter.is_ascii_alphanumeric() || matches!(letter, '-' | ':' | '.') {
                word.push(letter);
                continue;
            }
            out.push_str(&self.replace_id(&word));
            word.clear();
            if letter != '\0' {
                out.push(letter);
            }
        }
        out
    }

    fn replace_id(&mut self, word: &str) -> String {
        let is_hex = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_hexdigit());
        let core = word.strip_prefix("hook-").unwrap_or(word);
        let stem = core.strip_suffix(".jsonl").unwrap_or(core);
        let is_uuid =
            |text: &str| text.len() == 36 && text.split('-').count() == 5 && text.split('-').all(is_hex);
        if is_uuid(stem) && stem != SESSION_ID {
            let next = self.ids.len();
            let number = *self.ids.entry(stem.to_owned()).or_insert(next);
            return word.replace(
                stem,
                &if self.is_unordered { "<id>".to_owned() } else { format!("<id {number}>") },
            );
        }
        let is_time = word.len() == 24 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
        let is_token = word.len() >= 32 && is_hex(word) && word != SESSION_ID;
        let is_socket =
            word.strip_suffix(".sock").is_some_and(|pid| pid.chars().all(|digit| digit.is_ascii_digit()));
        match () {
            () if is_time => "<time>".to_owned(),
            () if is_token => "<token>".to_owned(),
            () if is_socket => "<pid>.sock".to_owned(),
            () => word.to_owned(),
        }
    }
}

fn is_volatile_number(key: &str) -> bool {
    let key = key.to_lowercase();
    VOLATILE_KEYS.iter().any(|moving| key.ends_with(moving) || key.contains(&format!("_{moving}")))
}

impl SessionTrace {
    /// Returns true if the client printed the result of the session.
    pub(super) fn has_result(&self) -> bool {
        self.stdout.iter().any(|line| line["type"] == "result")
    }

    /// Removes the result of the session.
    pub(super) fn drop_result(&mut self) {
        self.stdout.retain(|line| line["type"] != "result");
    }

    /// Describes where two traces differ, one line for each part. Empty if they are equal.
    pub(super) fn describe_differences(&self, other: &SessionTrace, is_unordered: bool) -> String {
        let mut report = String::new();
        let parts = [
            ("hooks", &self.hooks, &other.hooks),
            ("stdout", &self.stdout, &other.stdout),
            ("transcript", &self.transcript, &other.transcript),
            ("requests", &self.requests, &other.requests),
        ];
        for (name, real, replayed) in parts {
            let to_lines = |values: &Vec<Value>| {
                let mut lines: Vec<String> = values.iter().map(Value::to_string).collect();
                if is_unordered {
                    lines.sort();
                }
                lines
            };
            let (real, replayed) = (to_lines(real), to_lines(replayed));
            for line in 0..real.len().max(replayed.len()) {
                let (real_line, replay_line) = (real.get(line), replayed.get(line));
                if real_line != replay_line {
                    let none = "nothing".to_owned();
                    let (real_line, replay_line) = (real_line.unwrap_or(&none), replay_line.unwrap_or(&none));
                    let common_length = real_line
                        .chars()
                        .zip(replay_line.chars())
                        .take_while(|(one, two)| one == two)
                        .count();
                    let excerpt = |text: &str| {
                        text.chars().skip(common_length.saturating_sub(150)).take(400).collect::<String>()
                    };
                    let _ = writeln!(
                        report,
                        "{name} {line}\n  real   {}\n  replay {}",
                        excerpt(real_line),
                        excerpt(replay_line)
                    );
                    break;
                }
            }
        }
        if self.exit != other.exit {
            let _ = writeln!(report, "exit\n  real   {}\n  replay {}", self.exit, other.exit);
        }
        report
    }
}
