//! Our percent is the client's own: pairs of what it told its status line and what its transcript held at that
//! moment, recorded from the real client in a terminal (`PLIMSOLL_RECORD=1` records them anew).

use plimsoll_testkit::replay::dashed;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_testkit::{bin_dir, fixtures};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);
/// The client and its writer say nothing new for this long: what we see is one moment.
const QUIET: Duration = Duration::from_millis(700);

/// Returns the context of a project's session by `plimsoll status --json`. The command runs outside the session, so it waits for no answer of
/// the model.
fn context(world: &World, project: &Path, session_id: &str) -> Value {
    let command = world.command(bin_dir().join("plimsoll"), &["status", "--json"]).cwd(project);
    let said = command.run().expect_success().json()["context"].take();
    assert_eq!(said["session_id"], session_id, "{said}");
    said
}

/// Our reading of a transcript alone: no status line ever spoke, nothing was learned.
fn from_transcript_alone(world: &World, transcript: &Path) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sessions = folder.path().join(".claude/plimsoll/sessions");
    fs::create_dir_all(&sessions).expect("a new folder");
    let record = json!({ "session_id": "alone", "transcript_path": transcript });
    fs::write(sessions.join("alone.json"), record.to_string()).expect("a new file");
    context(world, folder.path(), "alone")
}

#[test]
fn our_percent_is_the_clients_in_every_recorded_pair() {
    let world = World::new();
    let mut names: Vec<PathBuf> = fs::read_dir(fixtures().join("pairs"))
        .expect("the recorded pairs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".status.json"))
        .collect();
    names.sort();
    let (mut compared, mut unknown, mut windows, mut wrong) = (0, 0, Vec::new(), Vec::new());
    let readings: Vec<Value> = std::thread::scope(|scope| {
        let transcript = |status: &PathBuf| {
            PathBuf::from(status.to_string_lossy().replace(".status.json", ".transcript.jsonl"))
        };
        let world = &world;
        let started: Vec<_> = names
            .iter()
            .map(transcript)
            .map(|transcript| scope.spawn(move || from_transcript_alone(world, &transcript)))
            .collect();
        started.into_iter().map(|reading| reading.join().expect("a reading")).collect()
    });
    for (status_file, ours) in names.into_iter().zip(readings) {
        let status: Value =
            serde_json::from_str(&fs::read_to_string(&status_file).expect("a file")).expect("JSON");
        let theirs = &status["context_window"];
        compared += 1;
        unknown += usize::from(theirs["used_percentage"].is_null());
        windows.push(theirs["context_window_size"].as_u64().expect("a window"));
        let same_window =
            ours["reading"].is_null() || ours["reading"]["window"]["tokens"] == theirs["context_window_size"];
        if ours["percent_used"] != theirs["used_percentage"] || !same_window {
            wrong.push(format!("{}: client {theirs}\nours {ours}", status_file.display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 10 && unknown >= 2, "{compared} pairs, {unknown} before an answer");
    assert!(windows.contains(&200_000) && windows.contains(&1_000_000), "{windows:?}");
}

/// The real client on a screen, our hooks and our status line in it, and a copy of all the status line is told.
struct Desk {
    world: World,
    terminal: Terminal,
    model: ScriptedModel,
    told: PathBuf,
    done: Vec<&'static str>,
}

/// A model that does what the last prompt says: `load=50000` is that usage, `wait=2` seconds of thought first,
/// `fail=400` an error.
fn obedient(request: &Request) -> Step {
    let text = request.last_text();
    let text = text.rsplit("please ").next().unwrap_or_default();
    let number = |word: &str| -> Option<u64> {
        let rest = &text[text.rfind(word)? + word.len()..];
        rest[..rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    if let Some(status) = number("fail=") {
        return Step::error(u16::try_from(status).expect("a status"), "scripted failure");
    }
    let load = number("load=").unwrap_or(1_000);
    let step = match number("tool=") {
        Some(_) => Step::bash("echo a tool").say("With a tool."),
        None => Step::text(format!("Answered with {load}.")),
    };
    step.usage_parts(7, load / 10, load - load / 10 - 7)
        .output_tokens(321)
        .delay(Duration::from_secs(number("wait=").unwrap_or(0)))
}

impl Desk {
    fn open(client_model: &str) -> Desk {
        // A summary that weighs something: 48 KB are about 12,000 tokens.
        let summary = format!("<summary>{}</summary>", "What was done. ".repeat(3_200));
        let model = ScriptedModel::start(obedient).compaction_answer(Step::text(summary));
        let mut world = World::new();
        world.use_model(&model);
        world.plimsoll(&["init", "--local"]).run().expect_success();
        let told = world.home().join("told");
        fs::create_dir_all(&told).expect("a new folder");
        let line = world.home().join("line.sh");
        let script = format!(
            "#!/bin/sh\nt=$(mktemp {told}/draft.XXXXXX)\ncat > $t\nplimsoll-statusline < $t\nmv $t {told}/last.json\n",
            told = told.display()
        );
        fs::write(&line, script).expect("a new file");
        let mut settings = world.json(".claude/settings.local.json");
        settings["statusLine"] = json!({ "type": "command", "command": format!("sh {}", line.display()) });
        world.write(".claude/settings.local.json", &settings.to_string());
        let arguments = ["--model", client_model, "--permission-mode", "default", "--allowedTools", "Bash"];
        let terminal = Terminal::claude(&world, &arguments, 140, 40);
        let desk = Desk { world, terminal, model, told, done: Vec::new() };
        desk.wait("the first status", |_| true);
        desk
    }

    fn say(&mut self, text: &str) {
        self.terminal.type_text(text);
        self.terminal.press_enter();
    }

    /// What the client told its status line last.
    fn status(&self) -> Value {
        let text = fs::read_to_string(self.told.join("last.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn transcript(&self) -> PathBuf {
        PathBuf::from(self.status()["transcript_path"].as_str().expect("a path"))
    }

    /// Waits until the status is so, and nothing has moved for a while.
    fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        let mut seen = (Value::Null, 0);
        let mut since = Instant::now();
        loop {
            let status = self.status();
            let path = status["transcript_path"].as_str().unwrap_or_default().to_owned();
            let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
            let now = (status["context_window"].clone(), size);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if !status.is_null() && is_so(&status) && since.elapsed() > QUIET {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "no {what}: {status:#}\n{}", self.terminal.screen());
            sleep(Duration::from_millis(20));
        }
    }

    fn wait_used(&self, tokens: u64) {
        self.wait(&format!("{tokens} tokens"), |status| {
            status["context_window"]["total_input_tokens"] == tokens
        });
    }

    /// Loads the session with so many tokens.
    fn load(&mut self, tokens: u64) {
        self.say(&format!("please load={tokens}"));
        self.wait_used(tokens);
    }

    fn compact(&mut self) {
        self.say("/compact");
        let has_boundary =
            || fs::read_to_string(self.transcript()).is_ok_and(|text| text.contains("compact_boundary"));
        self.world.wait_until(has_boundary, "the compaction");
        self.wait("an empty window", |status| status["context_window"]["total_input_tokens"] == 0);
    }

    /// Compares our two readings (with the status line's record, and of the transcript alone) to the client's.
    fn compare(&mut self, name: &'static str) {
        self.compare_live(name);
        let status = self.status();
        let alone = from_transcript_alone(&self.world, &self.transcript());
        assert_eq!(
            alone["percent_used"], status["context_window"]["used_percentage"],
            "{name}, from the transcript alone: {alone}\n{:#}",
            status["context_window"]
        );
        if std::env::var_os("PLIMSOLL_RECORD").is_some() {
            self.record(name, &status);
        }
    }

    fn compare_live(&mut self, name: &'static str) {
        let status = self.status();
        let session_id = status["session_id"].as_str().expect("an id");
        let theirs = &status["context_window"]["used_percentage"];
        let live = context(&self.world, &self.world.project(), session_id);
        assert_eq!(
            live["percent_used"],
            *theirs,
            "{name}, live: {live}\n{:#}\n{}",
            status["context_window"],
            self.terminal.screen()
        );
        // After a compaction the client says 0 of everything until the next response.
        let is_known = status["context_window"]["total_input_tokens"] != 0;
        let percent = theirs.as_u64().filter(|_| is_known);
        let shown = percent.map_or("▏ ?".to_owned(), |percent| format!("▏ {percent}%"));
        self.terminal.wait_for(&shown);
        self.done.push(name);
    }

    fn record(&self, name: &str, status: &Value) {
        let folder = fixtures().join("pairs");
        fs::create_dir_all(&folder).expect("the fixtures are writable");
        let transcript = fs::read_to_string(self.transcript()).unwrap_or_default();
        // The beginning and the end of a long one; by what lies between nobody measures.
        let count = transcript.lines().count();
        let kept = transcript.lines().enumerate().filter(|(number, _)| *number < 10 || number + 50 >= count);
        let lines = kept.map(|(_, line)| {
            let mut line: Value = serde_json::from_str(line).expect("the client writes whole lines");
            shorten(&mut line);
            self.anonymous(&line.to_string()) + "\n"
        });
        let lines: String = lines.collect();
        fs::write(folder.join(format!("{name}.transcript.jsonl")), lines).expect("the fixtures are writable");
        let status = serde_json::to_string_pretty(status).expect("JSON");
        let text = self.anonymous(&status) + "\n";
        fs::write(folder.join(format!("{name}.status.json")), text).expect("the fixtures are writable");
    }

    /// Nothing of this computer's paths and ports.
    fn anonymous(&self, text: &str) -> String {
        let home = self.world.home();
        let root = home.parent().expect("the world's folder");
        text.replace(&root.display().to_string(), "/home/dev")
            .replace(&dashed(root), "-home-dev")
            .replace(&self.model.url(), "http://127.0.0.1")
    }
}

/// Long texts and lists cut, everything else as received. What the client notes for itself (its prompts, the
/// shapes of its requests) is cut shortest: nobody measures by it.
fn shorten(line: &mut Value) {
    let kind = line["type"].as_str().unwrap_or_default();
    let for_itself = kind.starts_with("api-request") || line["attachment"]["type"] == "prompt_snapshot";
    cut(line, if for_itself { (48, 1) } else { (150, 4) });
}

fn cut(value: &mut Value, (letters, items): (usize, usize)) {
    match value {
        Value::String(text) if text.chars().count() > letters => {
            *text = format!("<text {} chars>", text.chars().count());
        }
        Value::Array(list) => {
            list.truncate(items);
            list.iter_mut().for_each(|item| cut(item, (letters, items)));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, (letters, items))),
        _ => (),
    }
}

#[test]
fn a_million_token_session_on_screen_reads_the_same_as_the_client_shows() {
    let mut desk = Desk::open("opus");
    desk.compare("million.01_at_start");
    desk.say("please wait=3 load=50000");
    desk.world.wait_until(|| !desk.model.main_requests().is_empty(), "a request");
    sleep(QUIET);
    desk.compare("million.02_first_answer_awaited");
    desk.wait_used(50_000);
    desk.compare("million.03_five_percent");
    desk.load(424_999);
    desk.compare("million.04_just_below_a_half");
    desk.load(425_000);
    desk.compare("million.05_half_up");
    desk.say("please tool=1 load=720000");
    desk.wait_used(1_000);
    desk.load(871_000);
    desk.compare("million.06_near_the_checkpoint");
    desk.load(960_000);
    desk.compare("million.07_before_the_compaction");
    desk.compact();
    desk.compare("million.08_compacted");
    desk.load(61_000);
    desk.compare("million.09_after_the_compaction");
}

#[test]
fn a_session_that_is_cleared_on_screen_reads_the_same_as_the_client_shows() {
    let mut desk = Desk::open("opus");
    desk.load(61_000);
    let before = desk.status()["session_id"].clone();
    desk.say("/clear");
    desk.wait("a new session", |status| status["session_id"] != before);
    desk.compare("million.10_cleared");
    desk.load(83_000);
    desk.compare("million.11_after_clear");
}

#[test]
fn a_small_session_on_screen_reads_the_same_as_the_client_shows() {
    let mut desk = Desk::open("claude-haiku-4-5");
    desk.compare("small.01_at_start");
    desk.load(10_000);
    desk.compare("small.02_five_percent");
    desk.load(99_000);
    desk.compare("small.03_half_up");
    desk.load(170_000);
    desk.compare("small.04_eighty_five");
    desk.say("please fail=400");
    desk.terminal.wait_for("scripted failure");
    desk.wait("quiet", |_| true);
    desk.compare("small.05_after_an_api_error");
    desk.load(194_000);
    desk.compare("small.06_ninety_seven");
}

#[test]
fn a_switch_of_models_and_a_compaction_of_a_small_one_read_the_same_as_the_client_shows() {
    let mut desk = Desk::open("claude-haiku-4-5");
    desk.load(100_000);
    desk.say("/model opus");
    desk.terminal.wait_for("Yes, switch to");
    desk.terminal.press_enter();
    desk.wait("the other model", |status| status["context_window"]["context_window_size"] == 1_000_000);
    desk.compare_live("small.07_switched");
    desk.load(120_000);
    desk.compare("small.08_after_the_switch");
    desk.say("/model claude-haiku-4-5");
    desk.terminal.wait_for("Yes, switch to Haiku");
    desk.terminal.press_enter();
    desk.wait("the first model", |status| status["context_window"]["context_window_size"] == 200_000);
    desk.compare_live("small.09_switched_back");
    desk.load(146_000);
    desk.compact();
    desk.compare("small.10_compacted");
    let live =
        context(&desk.world, &desk.world.project(), desk.status()["session_id"].as_str().expect("an id"));
    let kept = live["percent"].as_u64().expect("a figure");
    assert!(kept >= 5, "what the summary weighs counts for the levels: {live}");
    desk.load(30_000);
    desk.compare("small.11_after_the_compaction");
}

#[test]
fn the_suffix_makes_a_small_model_large_on_screen_the_same() {
    let mut desk = Desk::open("claude-sonnet-4-5[1m]");
    desk.compare("suffix.01_at_start");
    desk.load(55_000);
    desk.compare("suffix.02_five_and_a_half");
    desk.load(404_999);
    desk.compare("suffix.03_forty");
}
