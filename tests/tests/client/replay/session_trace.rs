//! What can be seen of a session, with everything taken out that no two sessions share.

use super::session_kinds::{Kind, Signal};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel};
use plimsoll_testkit::world::World;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

const SESSION: &str = "11111111-2222-4333-8444-555555555555";

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

/// The client's own book-keeping in the transcript, which none of our programs reads; a reminder to a model that says
/// nothing comes by rules of its own.
const BOOK_KEEPING: [&str; 9] = [
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

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    pub(super) hooks: Vec<Value>,
    pub(super) stdout: Vec<Value>,
    pub(super) transcript: Vec<Value>,
    pub(super) requests: Vec<Value>,
    pub(super) exit: String,
}

/// Plays a kind of session with the real client, or with the replayed one.
pub(super) fn play(kind: &Kind, is_replayed: bool) -> Trace {
    let mut world = World::new();
    world.write("a.txt", "one\ntwo\n");
    let note = world.write_program(world.home().join("note.sh"), &note(kind));
    std::fs::create_dir(world.home().join("noted")).unwrap();
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Begin"]);
    (kind.prepare)(&world);
    let model = ScriptedModel::steps((kind.steps)(&world));
    world.use_model(&model);
    if is_replayed {
        world.use_replay();
    }
    let hooks: Map<String, Value> = EVENTS
        .iter()
        .map(|event| {
            let entry = json!({ "type": "command", "command": note, "args": [event], "timeout": 20 });
            ((*event).to_owned(), json!([{ "hooks": [entry] }]))
        })
        .collect();
    let settings = json!({ "hooks": hooks }).to_string();
    let mut arguments = vec!["-p", "--session-id", SESSION, "--settings", &settings, "--model", "opus"];
    arguments.extend(kind.arguments);
    arguments.extend(["--allowedTools", "Bash", "Edit", "Write", "Read"]);
    let launch = world.claude(&arguments).stdin("do it\n");
    let mut running = launch.spawn();
    if let Some(signal) = kind.signal {
        let at_work = || world.exists("at-work") && model.requests().len() >= kind.requests();
        world.wait_until(at_work, "the session is at work");
        match signal {
            Signal::Interrupt => running.interrupt(),
            Signal::Terminate => running.terminate(),
        }
    }
    let finished = running.wait(Duration::from_secs(60));
    // Ids are numbered in each part by itself: the parts come about side by side.
    let plain = |values: Vec<Value>| -> Vec<Value> {
        let mut plain = Plain { is_unordered: kind.is_unordered, ..Plain::of(&world) };
        values.into_iter().map(|value| plain.value(value, "")).collect()
    };
    let lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into())).collect()
    };
    let stdout = plain(lines(&finished.stdout));
    let transcript = world.transcripts().first().map(|path| std::fs::read_to_string(path).unwrap());
    let is_compared = |line: &Value| {
        let is = |kind: &&str| line["type"] == **kind || line["attachment"]["type"] == **kind;
        // Of a tool that SIGTERM ended, the client's last line comes or not: it is on its way out.
        let is_last_word = kind.signal == Some(Signal::Terminate)
            && line["message"]["content"][0]["content"] == "Exit code 137";
        !is_last_word && !BOOK_KEEPING.iter().any(is)
    };
    let transcript =
        lines(&transcript.unwrap_or_default()).into_iter().filter(is_compared).map(outline).collect();
    let entries = if world.exists("entries.txt") { world.read("entries.txt") } else { String::new() };
    let mut noted = noted(&world);
    // The client does not wait for it, nor it for the client.
    noted.retain(|hook| hook["payload"]["hook_event_name"] != "StopFailure");
    noted.extend(entries.lines().map(|line| json!(line)));
    // Results come in the order in which the calls ended.
    let requests =
        if kind.is_unordered { Vec::new() } else { model.main_requests().iter().map(shape).collect() };
    let exit =
        Plain::of(&world).text(&format!("{:?} {:?} {}", finished.code, finished.signal, finished.stderr));
    Trace { hooks: plain(noted), stdout, transcript: plain(transcript), requests: plain(requests), exit }
}

/// Of what the client attaches by itself, the kind and the fields: the words are its own, and change by the day.
fn outline(mut line: Value) -> Value {
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

impl Kind {
    /// How many requests there are when the session is at work.
    fn requests(&self) -> usize {
        if self.name.ends_with("an_answer") { 2 } else { 1 }
    }
}

/// The hook: it notes what it was given, and answers what the kind says.
fn note(kind: &Kind) -> String {
    let mut script =
        "#!/bin/sh\nat=$HOME/noted/$(date +%s%N)-$$\ncat >\"$at.payload\"\nenv -0 >\"$at.env\"\n".to_owned();
    script.push_str("case $1 in\n");
    for (event, answer) in kind.answers {
        let _ = writeln!(script, "{event}) {answer} ;;");
    }
    script.push_str("esac\n");
    script
}

/// What the hooks noted, in the order in which they began.
fn noted(world: &World) -> Vec<Value> {
    let folder = world.home().join("noted");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "payload"));
    names.sort();
    let hook = |path: &std::path::PathBuf| {
        // A StopFailure hook may be killed before it has noted everything.
        let payload: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).ok()?;
        let environment = std::fs::read(path.with_extension("env")).ok()?;
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let variables: Map<String, Value> = environment
            .split('\0')
            .filter_map(|variable| variable.split_once('='))
            // The path has the client's own folder in it; the shell sets the others.
            .filter(|(name, _)| {
                !["PATH", "_", "OLDPWD", "SHLVL", plimsoll_testkit::replay::REFUSALS].contains(name)
            })
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        Some(json!({ "payload": payload, "environment": sorted(variables) }))
    };
    names.iter().filter_map(hook).collect()
}

fn sorted(fields: Map<String, Value>) -> Value {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    Value::Object(fields.into_iter().collect())
}

/// A request without the client's own texts: of them, only what hooks have said.
fn shape(request: &Request) -> Value {
    let texts = |content: &Value| -> Vec<Value> {
        match content {
            Value::String(text) => vec![text.clone().into()],
            Value::Array(blocks) => blocks
                .iter()
                .map(|block| {
                    if block["type"] == "text" {
                        block["text"].clone()
                    } else {
                        without(block, "cache_control")
                    }
                })
                .collect(),
            other => vec![other.clone()],
        }
    };
    let is_own = |text: &Value| {
        text.as_str().is_some_and(|text| text.starts_with("<system-reminder>\nA"))
            || text.as_str().is_some_and(|text| text.starts_with("<system-reminder>\n# gitStatus"))
    };
    let messages: Vec<Value> = request.body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| {
            let mut parts = texts(&message["content"]);
            parts.retain(|part| !is_own(part));
            if message["role"] == "system" {
                let whole = parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n");
                let said = whole.split("\n\n").filter(|part| part.contains(" hook ") && part.len() < 400);
                parts = said.map(|part| part.trim().into()).collect();
            }
            json!({ "role": message["role"], "content": parts })
        })
        .filter(|message| message["content"] != json!([]))
        .collect();
    let mut keys: Vec<&String> = request.body.as_object().unwrap().keys().collect();
    keys.sort();
    let is_brief = request.system_text().contains("Be brief.");
    json!({
        "path": request.path, "model": request.model, "keys": keys, "tools": request.tools(), "is_brief": is_brief,
        "max_tokens": request.body["max_tokens"], "thinking": request.body["thinking"],
        "output_config": request.body["output_config"], "messages": messages,
    })
}

fn without(block: &Value, name: &str) -> Value {
    let mut block = block.clone();
    block.as_object_mut().map(|block| block.shift_remove(name));
    block
}

/// Takes out what no two sessions share: places, ids, times.
struct Plain {
    places: Vec<(String, &'static str)>,
    ids: HashMap<String, usize>,
    is_unordered: bool,
}

/// Longer texts are the client's own prompts.
const LONGEST: usize = 120;

/// Numbers of these are lengths of time, sizes of the client's own prompts, or process ids.
const MOVING: [&str; 4] = ["ms", "duration", "retryinms", "starttime"];

impl Plain {
    fn of(world: &World) -> Plain {
        let project = world.project().display().to_string();
        let dashed = plimsoll_testkit::replay::dashed(&world.project());
        let port =
            |name: &str| world.env().iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let model = port("ANTHROPIC_BASE_URL").unwrap_or_default().replace("http://", "");
        let places = vec![
            (project, "<project>"),
            (dashed, "<dashed>"),
            (world.home().display().to_string(), "<home>"),
            (world.home().parent().unwrap().display().to_string(), "<world>"),
            (model, "<model>"),
        ];
        Plain { places, ids: HashMap::new(), is_unordered: false }
    }

    fn value(&mut self, value: Value, key: &str) -> Value {
        match value {
            Value::String(text) if key == "CLAUDE_PID" => {
                text.chars().map(|_| '0').take(1).collect::<String>().into()
            }
            Value::String(text) => self.text(&text).into(),
            Value::Array(values) => values.into_iter().map(|value| self.value(value, key)).collect(),
            // Compared with the names of the fields, not with their order: JSON has none.
            Value::Object(fields) => {
                let Value::Object(fields) = sorted(fields) else { return Value::Null };
                let fields = fields.into_iter().map(|(key, value)| {
                    let value = self.value(value, &key);
                    (key, value)
                });
                Value::Object(fields.collect())
            }
            Value::Number(_) if is_moving(key) => 0.into(),
            Value::Number(number) if key.to_lowercase().contains("cost") => {
                format!("{:.9}", number.as_f64().unwrap_or_default()).into()
            }
            // A guess of the client's at what commands print, which nobody reads.
            Value::Bool(_) if key == "noOutputExpected" => false.into(),
            other => other,
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (place, name) in &self.places {
            if !place.is_empty() {
                text = text.replace(place, name);
            }
        }
        text = self.words(&text);
        // The recording keeps no long texts of the client's, only that there was one.
        let is_own =
            text.starts_with("<text") || text.chars().count() > LONGEST && !text.contains("<project>");
        if is_own { "<text>".to_owned() } else { text }
    }

    /// Ids, times and process ids within a text, by their forms.
    fn words(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut word = String::new();
        for letter in text.chars().chain(['\0']) {
            if letter.is_ascii_alphanumeric() || matches!(letter, '-' | ':' | '.') {
                word.push(letter);
                continue;
            }
            out.push_str(&self.word(&word));
            word.clear();
            if letter != '\0' {
                out.push(letter);
            }
        }
        out
    }

    fn word(&mut self, word: &str) -> String {
        let is_hex = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_hexdigit());
        let core = word.strip_prefix("hook-").unwrap_or(word);
        let stem = core.strip_suffix(".jsonl").unwrap_or(core);
        let is_id =
            |text: &str| text.len() == 36 && text.split('-').count() == 5 && text.split('-').all(is_hex);
        if is_id(stem) && stem != SESSION {
            let next = self.ids.len();
            let number = *self.ids.entry(stem.to_owned()).or_insert(next);
            return word.replace(
                stem,
                &if self.is_unordered { "<id>".to_owned() } else { format!("<id {number}>") },
            );
        }
        let is_time = word.len() == 24 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
        let is_token = word.len() >= 32 && is_hex(word) && word != SESSION;
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

fn is_moving(key: &str) -> bool {
    let key = key.to_lowercase();
    MOVING.iter().any(|moving| key.ends_with(moving) || key.contains(&format!("_{moving}")))
}

impl Trace {
    /// True if the client printed how the session ended.
    pub(super) fn has_result(&self) -> bool {
        self.stdout.iter().any(|line| line["type"] == "result")
    }

    /// Leaves out how the session ended.
    pub(super) fn drop_result(&mut self) {
        self.stdout.retain(|line| line["type"] != "result");
    }

    /// Where two traces differ, in lines; nothing where they do not.
    pub(super) fn differences(&self, other: &Trace, is_unordered: bool) -> String {
        let mut said = String::new();
        let parts = [
            ("hooks", &self.hooks, &other.hooks),
            ("stdout", &self.stdout, &other.stdout),
            ("transcript", &self.transcript, &other.transcript),
            ("requests", &self.requests, &other.requests),
        ];
        for (name, real, replayed) in parts {
            let text = |values: &Vec<Value>| {
                let mut lines: Vec<String> = values.iter().map(Value::to_string).collect();
                if is_unordered {
                    lines.sort();
                }
                lines
            };
            let (real, replayed) = (text(real), text(replayed));
            for line in 0..real.len().max(replayed.len()) {
                let (one, two) = (real.get(line), replayed.get(line));
                if one != two {
                    let none = "nothing".to_owned();
                    let (one, two) = (one.unwrap_or(&none), two.unwrap_or(&none));
                    let same = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
                    let part = |text: &str| {
                        text.chars().skip(same.saturating_sub(150)).take(400).collect::<String>()
                    };
                    let _ = writeln!(said, "{name} {line}\n  real   {}\n  replay {}", part(one), part(two));
                    break;
                }
            }
        }
        if self.exit != other.exit {
            let _ = writeln!(said, "exit\n  real   {}\n  replay {}", self.exit, other.exit);
        }
        said
    }
}
