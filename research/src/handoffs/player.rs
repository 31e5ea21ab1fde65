//! Plays a conversation: a project, a home, a transcript, and the program's checkpoint at each compaction.

use super::client_rows::{AUTO_COMPACT_TOKENS, MODEL, TranscriptRows};
use super::events::{Change, Event};
use super::generator::{Conversation, ConversationTraits, Segment};
use super::judge::{Verdict, judge_handoff};
use super::random_draws::Draws;
use super::truth::Truth;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The conversation begins so long ago; its rows then last less.
const CONVERSATION_AGE: Duration = Duration::from_secs(6 * 3_600);
/// When the last rows reach the transcript, in milliseconds after the checkpoint has begun (measured with 2.1.329:
/// nearly all within 106 ms).
const LATE_ROW_MILLISECONDS: (usize, usize) = (20, 90);
const CONTEXT_WINDOW: usize = 200_000;

/// The tested programs and their options.
#[derive(Clone, Debug)]
pub struct TestedProgram {
    /// The command; the hook programs are in the same folder.
    pub plimsoll: PathBuf,
    /// The budget of the last exchanges in tokens, or `None` for the program's default.
    pub exchange_tokens: Option<usize>,
}

/// A checkpoint at a compaction, and what it kept.
#[derive(Debug)]
pub struct JudgedCheckpoint {
    /// The number of the compaction, from 1.
    pub compaction: usize,
    pub truth: Truth,
    pub text: String,
    pub verdict: Verdict,
    pub elapsed: Duration,
    /// What the program printed, if it gave no text.
    pub error: Option<String>,
}

/// Plays all segments of a conversation, with a compaction after each.
pub fn play_conversation(
    conversation: &Conversation,
    program: &TestedProgram,
    draws: &Draws,
) -> Vec<JudgedCheckpoint> {
    let mut player = ConversationReplayer::new(conversation, program, draws);
    let segments = conversation.segments.iter().enumerate();
    segments.map(|(index, segment)| player.play_segment(index + 1, segment)).collect()
}

struct ConversationReplayer<'a> {
    world: World,
    program: &'a TestedProgram,
    traits: &'a ConversationTraits,
    draws: Draws,
    rows: TranscriptRows,
    session_id: String,
    transcript: PathBuf,
}

impl<'a> ConversationReplayer<'a> {
    fn new(
        conversation: &'a Conversation,
        program: &'a TestedProgram,
        draws: &Draws,
    ) -> ConversationReplayer<'a> {
        let mut world = World::without_plimsoll_files().without_plimsoll_programs();
        let home = world.home();
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_CACHE_HOME", ".cache"),
        ] {
            world.set_env(variable, home.join(folder).display().to_string());
        }
        for (path, content) in &conversation.initial_files {
            world.write(path, content);
        }
        world.git(&["add", "-A"]);
        world.git(&["commit", "--quiet", "-m", "Before the conversation"]);
        let mut draws = draws.substream("player");
        let session_id = draws.uuid();
        let project = world.project().display().to_string();
        let dashed_project: String = project
            .chars()
            .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
            .collect();
        let transcript = home.join(format!(".claude/projects/{dashed_project}/{session_id}.jsonl"));
        fs::create_dir_all(transcript.parent().expect("a transcript is in a folder"))
            .expect("the home is writable");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_milliseconds = now.saturating_sub(CONVERSATION_AGE).as_millis() as u64;
        let rows = TranscriptRows::new(
            session_id.clone(),
            conversation.traits.client_version,
            project,
            draws.substream("rows"),
            start_milliseconds,
        );
        let player = ConversationReplayer {
            world,
            program,
            traits: &conversation.traits,
            draws,
            rows,
            session_id,
            transcript,
        };
        player.run_session_start("startup");
        player
    }

    /// Runs the hook that creates the session's record. Returns what it says to the model.
    fn run_session_start(&self, source: &str) -> Option<String> {
        let payload = json!({
            "session_id": self.session_id, "transcript_path": self.transcript, "cwd": self.world.project(),
            "hook_event_name": "SessionStart", "source": source, "model": MODEL,
        });
        let hook = self.program.plimsoll.with_file_name("plimsoll-session-start");
        let finished = self.world.command(hook, &[]).stdin(payload.to_string()).run().expect_success();
        let response: Value = serde_json::from_str(&finished.stdout).ok()?;
        response["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned)
    }

    fn play_segment(&mut self, compaction: usize, segment: &Segment) -> JudgedCheckpoint {
        self.apply_changes(&segment.events);
        let rows = self.rows.rows_of_segment(&segment.events, segment.byte_count);
        let last_prompt = match segment.events.last() {
            Some(Event::Prompt { text, .. }) => Some(text.as_str()),
            _ => None,
        };
        let late_row_count = if self.traits.has_late_rows {
            count_rows_from_last_prompt_or_results(&rows, last_prompt)
        } else {
            0
        };
        let (early_rows, rows_written_during_checkpoint) = rows.split_at(rows.len() - late_row_count);
        append_rows(&self.transcript, early_rows);
        let finished = self.run_checkpoint(rows_written_during_checkpoint, last_prompt);
        let answer: Option<Value> = serde_json::from_str(&finished.stdout).ok();
        let text = answer.as_ref().and_then(|answer| answer["text"].as_str()).map(str::to_owned);
        let truth = segment.truth.in_project_folder(&self.world.project().display().to_string());
        let error = text.is_none().then(|| {
            format!("exit code {:?}: {} {}", finished.code, finished.stdout.trim(), finished.stderr.trim())
        });
        let text = text.unwrap_or_default();
        append_rows(&self.transcript, &self.rows.rows_of_answered_compaction(&text));
        if let Some(context) = self.run_session_start("compact") {
            append_rows(&self.transcript, &self.rows.row_of_hook_context(&context));
        }
        let verdict = judge_handoff(&truth, &text);
        JudgedCheckpoint { compaction, truth, text, verdict, elapsed: finished.elapsed, error }
    }

    fn apply_changes(&self, events: &[Event]) {
        let calls = events.iter().flat_map(|event| match event {
            Event::Message { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        for change in calls.flat_map(|call| &call.changes) {
            match change {
                Change::Write { path, content } => self.world.write(path, content),
                Change::Git(arguments) => {
                    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                    self.run_git_ignoring_empty_commits(&arguments);
                }
            }
        }
    }

    fn run_git_ignoring_empty_commits(&self, arguments: &[&str]) {
        let finished = self.world.command("git", arguments).run();
        let is_empty_commit = arguments[0] == "commit" && finished.stdout.contains("nothing to commit");
        assert!(finished.code == Some(0) || is_empty_commit, "git {arguments:?}: {finished:?}");
    }

    fn run_checkpoint(
        &mut self,
        rows_written_during_checkpoint: &[String],
        last_prompt: Option<&str>,
    ) -> FinishedProgram {
        let report = self.client_report(last_prompt).to_string();
        let mut arguments = vec!["checkpoint", "--cause", "compact", "--json", "--client", "-"];
        let exchange_tokens = self.program.exchange_tokens.map(|tokens| tokens.to_string());
        if let Some(tokens) = &exchange_tokens {
            arguments.extend(["--exchange-tokens", tokens]);
        }
        let delay = self.draws.number_between(LATE_ROW_MILLISECONDS.0, LATE_ROW_MILLISECONDS.1);
        let command = self.world.command(&self.program.plimsoll, &arguments).stdin(report);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if !rows_written_during_checkpoint.is_empty() {
                    std::thread::sleep(Duration::from_millis(delay as u64));
                    append_rows(&self.transcript, rows_written_during_checkpoint);
                }
            });
            command.run()
        })
    }

    /// Returns what the module passes with `--client`.
    fn client_report(&self, last_prompt: Option<&str>) -> Value {
        json!({
            "schema_version": 1, "session": self.session_id, "client_version": self.traits.client_version, "model": MODEL,
            "tokens": self.rows.context_tokens(), "window": CONTEXT_WINDOW,
            "auto_compact": { "threshold": AUTO_COMPACT_TOKENS, "source": "auto", "enabled": true }, "agents": [],
            "module_folder": self.world.home().join(".claude/skills/plimsoll"),
            "last_tool_use_id": self.rows.last_tool_use_id(), "last_prompt": last_prompt,
        })
    }
}

/// Returns the number of rows at the end that the client writes last: those of the last prompt, or the results of
/// the last tool calls.
fn count_rows_from_last_prompt_or_results(rows: &[String], last_prompt: Option<&str>) -> usize {
    let has_result = |row: &&String| row.contains("\"type\":\"tool_result\"");
    let is_user_row = |row: &String| row.contains("\"type\":\"user\"");
    match last_prompt {
        Some(_) => rows.iter().rev().position(is_user_row).map_or(0, |rows_after| rows_after + 1),
        None => rows.iter().rev().take_while(has_result).count(),
    }
}

fn append_rows(transcript: &Path, rows: &[String]) {
    let mut file =
        OpenOptions::new().create(true).append(true).open(transcript).expect("the home is writable");
    file.write_all(rows.concat().as_bytes()).expect("the home is writable");
}
