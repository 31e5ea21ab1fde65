//! Our percentage is the client's own. The pairs of what the client reported to its status line and what its transcript
//! contained at that moment were recorded from the real client in a terminal (`PLIMSOLL_RECORD=1` records them again).

use plimsoll_testkit::replay::dashed_path;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_testkit::{find_or_build_bin_dir, fixtures_dir};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);
/// If the client and its transcript writer change nothing for this long, the status and the transcript show the same
/// moment.
const QUIET_PERIOD: Duration = Duration::from_millis(700);

/// Returns the context of a project's session, as `plimsoll status --json` reports it. The command runs outside the
/// session, so it does not wait for an answer of the model.
fn context_from_status(world: &World, project: &Path, session_id: &str) -> Value {
    let command = world.command(find_or_build_bin_dir().join("plimsoll"), &["status", "--json"]).cwd(project);
    let context = command.run().expect_success().stdout_json()["context"].take();
    assert_eq!(context["session_id"], session_id, "{context}");
    context
}

/// Returns our reading of a transcript alone, without a record of the status line and without anything learned.
fn context_from_transcript_alone(world: &World, transcript: &Path) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sessions = folder.path().join(".claude/plimsoll/sessions");
    fs::create_dir_all(&sessions).expect("a new folder");
    let record = json!({ "session_id": "alone", "transcript_path": transcript });
    fs::write(sessions.join("alone.json"), record.to_string()).expect("a new file");
    context_from_status(world, folder.path(), "alone")
}

#[test]
fn our_percentage_equals_the_clients_in_every_recorded_pair() {
    let world = World::new();
    let mut status_files: Vec<PathBuf> = fs::read_dir(fixtures_dir().join("pairs"))
        .expect("the recorded pairs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".status.json"))
        .collect();
    status_files.sort();
    let (mut compared_count, mut unknown_count, mut windows, mut mismatches) = (0, 0, Vec::new(), Vec::new());
    let readings: Vec<Value> = std::thread::scope(|scope| {
        let transcript = |status: &PathBuf| {
            PathBuf::from(status.to_string_lossy().replace(".status.json", ".transcript.jsonl"))
        };
        let world = &world;
        let started: Vec<_> = status_files
            .iter()
            .map(transcript)
            .map(|transcript| scope.spawn(move || context_from_transcript_alone(world, &transcript)))
            .collect();
        started.into_iter().map(|reading| reading.join().expect("a reading")).collect()
    });
    for (status_file, our_context) in status_files.into_iter().zip(readings) {
        let status: Value =
            serde_json::from_str(&fs::read_to_string(&status_file).expect("a file")).expect("JSON");
        let client_context = &status["context_window"];
        compared_count += 1;
        unknown_count += usize::from(client_context["used_percentage"].is_null());
        windows.push(client_context["context_window_size"].as_u64().expect("a window"));
        let same_window = our_context["reading"].is_null()
            || our_context["reading"]["window"]["tokens"] == client_context["context_window_size"];
        if our_context["percent_used"] != client_context["used_percentage"] || !same_window {
            mismatches
                .push(format!("{}: client {client_context}\nours {our_context}", status_file.display()));
        }
    }
    assert!(
        mismatches.is_empty(),
        "{} of {compared_count} differ:\n{}",
        mismatches.len(),
        mismatches.join("\n")
    );
    assert!(
        compared_count >= 10 && unknown_count >= 2,
        "{compared_count} pairs, {unknown_count} before an answer"
    );
    assert!(windows.contains(&200_000) && windows.contains(&1_000_000), "{windows:?}");
}

/// The real client on a terminal with our hooks and our status line, and a copy of everything that the status line
/// receives.
struct TerminalSession {
    world: World,
    terminal: Terminal,
    model: ScriptedModel,
    status_folder: PathBuf,
    compared_names: Vec<&'static str>,
}

/// A model that follows the last prompt: `load=50000` sets the usage, `wait=2` delays the answer by two seconds,
/// `fail=400` returns an error, `tool=1` calls a tool.
fn follow_prompt(request: &Request) -> Step {
    let text = request.text_since_last_assistant_message();
    let text = text.rsplit("please ").next().unwrap_or_default();
    let number = |word: &str| -> Option<u64> {
        let rest = &text[text.rfind(word)? + word.len()..];
        rest[..rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    if let Some(status) = number("fail=") {
        return Step::api_error(u16::try_from(status).expect("a status"), "scripted failure");
    }
    let load = number("load=").unwrap_or(1_000);
    let step = match number("tool=") {
        Some(_) => Step::bash_call("echo a tool").with_text("With a tool."),
        None => Step::from_text(format!("Answered with {load}.")),
    };
    step.with_input_token_breakdown(7, load / 10, load - load / 10 - 7)
        .with_output_tokens(321)
        .with_delay(Duration::from_secs(number("wait=").unwrap_or(0)))
}

impl TerminalSession {
    fn start(client_model: &str) -> TerminalSession {
        // A summary of noticeable size: 48 KB are about 12,000 tokens.
        let summary = format!("<summary>{}</summary>", "What was done. ".repeat(3_200));
        let model = ScriptedModel::start(follow_prompt).with_compaction_step(Step::from_text(summary));
        let mut world = World::new();
        world.put_client_on_path_with_model_and_settings(&model);
        world.plimsoll(&["init", "--local"]).run().expect_success();
        let status_folder = world.home().join("told");
        fs::create_dir_all(&status_folder).expect("a new folder");
        let script_path = world.home().join("line.sh");
        let script = format!(
            "#!/bin/sh\nt=$(mktemp {folder}/draft.XXXXXX)\ncat > $t\nplimsoll-statusline < $t\nmv $t {folder}/last.json\n",
            folder = status_folder.display()
        );
        fs::write(&script_path, script).expect("a new file");
        let mut settings = world.read_json(".claude/settings.local.json");
        settings["statusLine"] =
            json!({ "type": "command", "command": format!("sh {}", script_path.display()) });
        world.write(".claude/settings.local.json", &settings.to_string());
        let arguments = ["--model", client_model, "--permission-mode", "default", "--allowedTools", "Bash"];
        let terminal = Terminal::start_claude(&world, &arguments, 140, 40);
        let session = TerminalSession { world, terminal, model, status_folder, compared_names: Vec::new() };
        session.wait_for_stable_status("the first status", |_| true);
        session
    }

    fn type_prompt(&mut self, text: &str) {
        self.terminal.submit_prompt(text);
    }

    /// Returns what the client reported to its status line last.
    fn last_status(&self) -> Value {
        let text = fs::read_to_string(self.status_folder.join("last.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn transcript_path(&self) -> PathBuf {
        PathBuf::from(self.last_status()["transcript_path"].as_str().expect("a path"))
    }

    /// Waits until the status meets the condition and nothing has changed for a while.
    fn wait_for_stable_status(&self, description: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        let mut last_seen = (Value::Null, 0);
        let mut unchanged_since = Instant::now();
        loop {
            let status = self.last_status();
            let path = status["transcript_path"].as_str().unwrap_or_default().to_owned();
            let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
            let current = (status["context_window"].clone(), size);
            if current != last_seen {
                (last_seen, unchanged_since) = (current, Instant::now());
            }
            if !status.is_null() && is_expected(&status) && unchanged_since.elapsed() > QUIET_PERIOD {
                return status;
            }
            assert!(
                start.elapsed() < TIMEOUT,
                "no {description}: {status:#}\n{}",
                self.terminal.screen_text()
            );
            sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_used_tokens(&self, tokens: u64) {
        self.wait_for_stable_status(&format!("{tokens} tokens"), |status| {
            status["context_window"]["total_input_tokens"] == tokens
        });
    }

    /// Brings the session to a usage of this many tokens.
    fn load_tokens(&mut self, tokens: u64) {
        self.type_prompt(&format!("please load={tokens}"));
        self.wait_for_used_tokens(tokens);
    }

    fn compact(&mut self) {
        self.type_prompt("/compact");
        let has_boundary =
            || fs::read_to_string(self.transcript_path()).is_ok_and(|text| text.contains("compact_boundary"));
        self.world.wait_until(has_boundary, "the compaction");
        self.wait_for_stable_status("an empty window", |status| {
            status["context_window"]["total_input_tokens"] == 0
        });
    }

    /// Compares our two readings with the client's: the one with the status line's record, and the one of the
    /// transcript alone.
    fn compare_with_client(&mut self, name: &'static str) {
        self.compare_live_with_client(name);
        let status = self.last_status();
        let context_alone = context_from_transcript_alone(&self.world, &self.transcript_path());
        assert_eq!(
            context_alone["percent_used"], status["context_window"]["used_percentage"],
            "{name}, from the transcript alone: {context_alone}\n{:#}",
            status["context_window"]
        );
        if std::env::var_os("PLIMSOLL_RECORD").is_some() {
            self.record_pair(name, &status);
        }
    }

    fn compare_live_with_client(&mut self, name: &'static str) {
        let status = self.last_status();
        let session_id = status["session_id"].as_str().expect("an id");
        let client_percent = &status["context_window"]["used_percentage"];
        let live_context = context_from_status(&self.world, &self.world.project(), session_id);
        assert_eq!(
            live_context["percent_used"],
            *client_percent,
            "{name}, live: {live_context}\n{:#}\n{}",
            status["context_window"],
            self.terminal.screen_text()
        );
        // After a compaction the client reports 0 for everything until the next response.
        let is_known = status["context_window"]["total_input_tokens"] != 0;
        let percent = client_percent.as_u64().filter(|_| is_known);
        let shown = percent.map_or("▏ ?".to_owned(), |percent| format!("▏ {percent}%"));
        self.terminal.wait_for_text(&shown);
        self.compared_names.push(name);
    }

    fn record_pair(&self, name: &str, status: &Value) {
        let folder = fixtures_dir().join("pairs");
        fs::create_dir_all(&folder).expect("the fixtures are writable");
        let transcript = fs::read_to_string(self.transcript_path()).unwrap_or_default();
        // Only the beginning and the end of a long transcript are kept; nothing is measured from the lines between.
        let count = transcript.lines().count();
        let kept_lines =
            transcript.lines().enumerate().filter(|(number, _)| *number < 10 || number + 50 >= count);
        let lines = kept_lines.map(|(_, line)| {
            let mut line: Value = serde_json::from_str(line).expect("the client writes whole lines");
            shorten_line(&mut line);
            self.anonymize(&line.to_string()) + "\n"
        });
        let lines: String = lines.collect();
        fs::write(folder.join(format!("{name}.transcript.jsonl")), lines).expect("the fixtures are writable");
        let status = serde_json::to_string_pretty(status).expect("JSON");
        let text = self.anonymize(&status) + "\n";
        fs::write(folder.join(format!("{name}.status.json")), text).expect("the fixtures are writable");
    }

    /// Replaces the paths and ports of this computer.
    fn anonymize(&self, text: &str) -> String {
        let home = self.world.home();
        let root = home.parent().expect("the world's folder");
        text.replace(&root.display().to_string(), "/home/dev")
            .replace(&dashed_path(root), "-home-dev")
            .replace(&self.model.url(), "http://127.0.0.1")
    }
}

/// Cuts long texts and lists, and keeps everything else as received. What the client records for itself (its prompts,
/// the shapes of its requests) is cut shortest, because nothing is measured from it.
fn shorten_line(line: &mut Value) {
    let kind = line["type"].as_str().unwrap_or_default();
    let is_client_note = kind.starts_with("api-request") || line["attachment"]["type"] == "prompt_snapshot";
    truncate_values(line, if is_client_note { (48, 1) } else { (150, 4) });
}

fn truncate_values(value: &mut Value, (max_chars, max_items): (usize, usize)) {
    match value {
        Value::String(text) if text.chars().count() > max_chars => {
            *text = format!("<text {} chars>", text.chars().count());
        }
        Value::Array(list) => {
            list.truncate(max_items);
            list.iter_mut().for_each(|item| truncate_values(item, (max_chars, max_items)));
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| truncate_values(field, (max_chars, max_items)))
        }
        _ => (),
    }
}

#[test]
fn a_million_token_session_shows_the_clients_percentage() {
    let mut session = TerminalSession::start("opus");
    session.compare_with_client("million.01_at_start");
    session.type_prompt("please wait=3 load=50000");
    session.world.wait_until(|| !session.model.main_requests().is_empty(), "a request");
    sleep(QUIET_PERIOD);
    session.compare_with_client("million.02_first_answer_awaited");
    session.wait_for_used_tokens(50_000);
    session.compare_with_client("million.03_five_percent");
    session.load_tokens(424_999);
    session.compare_with_client("million.04_just_below_a_half");
    session.load_tokens(425_000);
    session.compare_with_client("million.05_half_up");
    session.type_prompt("please tool=1 load=720000");
    session.wait_for_used_tokens(1_000);
    session.load_tokens(871_000);
    session.compare_with_client("million.06_near_the_checkpoint");
    session.load_tokens(960_000);
    session.compare_with_client("million.07_before_the_compaction");
    session.compact();
    session.compare_with_client("million.08_compacted");
    session.load_tokens(61_000);
    session.compare_with_client("million.09_after_the_compaction");
}

#[test]
fn after_clear_a_session_shows_the_clients_percentage() {
    let mut session = TerminalSession::start("opus");
    session.load_tokens(61_000);
    let before = session.last_status()["session_id"].clone();
    session.type_prompt("/clear");
    session.wait_for_stable_status("a new session", |status| status["session_id"] != before);
    session.compare_with_client("million.10_cleared");
    session.load_tokens(83_000);
    session.compare_with_client("million.11_after_clear");
}

#[test]
fn a_200k_token_session_shows_the_clients_percentage() {
    let mut session = TerminalSession::start("claude-haiku-4-5");
    session.compare_with_client("small.01_at_start");
    session.load_tokens(10_000);
    session.compare_with_client("small.02_five_percent");
    session.load_tokens(99_000);
    session.compare_with_client("small.03_half_up");
    session.load_tokens(170_000);
    session.compare_with_client("small.04_eighty_five");
    session.type_prompt("please fail=400");
    session.terminal.wait_for_text("scripted failure");
    session.wait_for_stable_status("quiet", |_| true);
    session.compare_with_client("small.05_after_an_api_error");
    session.load_tokens(194_000);
    session.compare_with_client("small.06_ninety_seven");
}

#[test]
fn after_model_switches_and_a_compaction_the_percentage_is_the_clients() {
    let mut session = TerminalSession::start("claude-haiku-4-5");
    session.load_tokens(100_000);
    session.type_prompt("/model opus");
    session.terminal.wait_for_text("Yes, switch to");
    session.terminal.press_enter();
    session.wait_for_stable_status("the other model", |status| {
        status["context_window"]["context_window_size"] == 1_000_000
    });
    session.compare_live_with_client("small.07_switched");
    session.load_tokens(120_000);
    session.compare_with_client("small.08_after_the_switch");
    session.type_prompt("/model claude-haiku-4-5");
    session.terminal.wait_for_text("Yes, switch to Haiku");
    session.terminal.press_enter();
    session.wait_for_stable_status("the first model", |status| {
        status["context_window"]["context_window_size"] == 200_000
    });
    session.compare_live_with_client("small.09_switched_back");
    session.load_tokens(146_000);
    session.compact();
    session.compare_with_client("small.10_compacted");
    let live_context = context_from_status(
        &session.world,
        &session.world.project(),
        session.last_status()["session_id"].as_str().expect("an id"),
    );
    let percent = live_context["percent"].as_u64().expect("a figure");
    assert!(percent >= 5, "what the summary weighs counts for the levels: {live_context}");
    session.load_tokens(30_000);
    session.compare_with_client("small.11_after_the_compaction");
}

#[test]
fn with_the_1m_suffix_a_session_shows_the_clients_percentage() {
    let mut session = TerminalSession::start("claude-sonnet-4-5[1m]");
    session.compare_with_client("suffix.01_at_start");
    session.load_tokens(55_000);
    session.compare_with_client("suffix.02_five_and_a_half");
    session.load_tokens(404_999);
    session.compare_with_client("suffix.03_forty");
}
