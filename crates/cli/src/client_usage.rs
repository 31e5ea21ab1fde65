//! Reads the usage of all sessions from Claude Code's transcripts.

use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_policy::usage::{TranscriptUsage, UsageEntry, project_of_folder, take_each_response_once};
use plimsoll_protocol::user_request::{self, parse_user_request};
use plimsoll_store::ledger::RunRecord;
use plimsoll_store::transcripts::{ScannedTranscript, TranscriptFile};
use plimsoll_store::{clock, environment, ledger, tail, transcripts};
use plimsoll_terminal::console;
use serde_json::{Value, json};
use std::path::Path;

/// The usage of all sessions.
#[derive(Debug)]
pub(crate) struct ClientUsage {
    pub(crate) files: Vec<TranscriptFile>,
    /// One for each of `files`.
    pub(crate) transcripts: Vec<TranscriptUsage>,
    /// One for each of `files`; empty unless they were asked for.
    pub(crate) requests: Vec<SessionRequests>,
    /// Oldest first.
    pub(crate) entries: Vec<UsageEntry>,
    skipped: Vec<SkippedInput>,
    /// The records of this user's runs, whose workers have worktrees.
    runs: Vec<RunRecord>,
}

/// The requests of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionRequests {
    pub(crate) first_request: Option<String>,
    /// True if a request contains the text that was searched for.
    pub(crate) has_match: bool,
}

/// A file or a part of it that is not counted.
#[derive(Debug)]
struct SkippedInput {
    path: String,
    reason: String,
}

/// More warnings than these would hide the usage itself.
const MAX_WARNINGS: usize = 5;

/// Reads the usage of all sessions.
pub(crate) fn read_usage_of_all_sessions() -> ClientUsage {
    read_usage(|_, _| {})
}

/// Reads the usage and the first request of all sessions, and searches their requests for a text in lower case.
pub(crate) fn read_usage_and_search_requests(searched_text: Option<&str>) -> ClientUsage {
    read_usage(|requests, line| {
        let is_needed = requests.first_request.is_none() || (searched_text.is_some() && !requests.has_match);
        let contains_marker = |marker: &&str| tail::contains_marker(line, marker);
        if !is_needed
            || contains_marker(&user_request::EXCLUDED_MARKER)
            || !user_request::LINE_MARKERS.iter().any(contains_marker)
        {
            return;
        }
        if let Some(request) = parse_user_request(line) {
            requests.has_match |= searched_text.is_some_and(|text| request.to_lowercase().contains(text));
            requests.first_request.get_or_insert(request);
        }
    })
}

fn read_usage(add_request: impl Fn(&mut SessionRequests, &[u8]) + Sync) -> ClientUsage {
    let (files, skipped_paths) = transcripts::list_transcripts(&transcripts::possible_transcript_folders());
    let mut skipped: Vec<SkippedInput> =
        skipped_paths.iter().map(|(path, reason)| SkippedInput::new(path, reason.clone())).collect();
    let scanned = transcripts::scan_transcripts(
        &files,
        |file| (TranscriptUsage::new(&file.session_id, file.is_subagent), SessionRequests::default()),
        |(usage, requests), line, has_line_end| {
            usage.add_line(line, has_line_end);
            add_request(requests, line);
        },
    );
    let (mut transcripts, mut requests) = (Vec::new(), Vec::new());
    for (file, ScannedTranscript { content, long_line_count, error }) in files.iter().zip(scanned) {
        if let Some(error) = error {
            skipped.push(SkippedInput::new(&file.path, error.to_string()));
        }
        if long_line_count > 0 {
            let lines = count_with_noun(long_line_count, "line");
            skipped.push(SkippedInput::new(&file.path, format!("{lines} longer than 16 MB")));
        }
        transcripts.push(content.0);
        requests.push(content.1);
    }
    let entries = take_each_response_once(&mut transcripts, clock::now().timestamp());
    for (file, transcript) in files.iter().zip(&transcripts) {
        if transcript.malformed_line_count > 0 {
            let lines = count_with_noun(transcript.malformed_line_count, "line");
            skipped.push(SkippedInput::new(&file.path, format!("{lines} that cannot be parsed")));
        }
        if transcript.undated_response_count > 0 {
            let responses = count_with_noun(transcript.undated_response_count, "response");
            skipped.push(SkippedInput::new(&file.path, format!("{responses} without a time")));
        }
        if transcript.future_response_count > 0 {
            let responses = count_with_noun(transcript.future_response_count, "response");
            skipped.push(SkippedInput::new(&file.path, format!("{responses} dated in the future")));
        }
    }
    ClientUsage {
        files,
        transcripts,
        requests,
        entries,
        skipped,
        runs: ledger::run_records_of_user_without_workers(),
    }
}

/// Returns a message with the folders in which no usage was found.
pub(crate) fn nothing_found_message() -> String {
    let folders = transcripts::possible_transcript_folders();
    let folders = folders.iter().map(|folder| environment::abbreviate_home(&folder.to_string_lossy()));
    format!("There is no usage yet in {}.", folders.collect::<Vec<_>>().join(" and "))
}

impl ClientUsage {
    /// Returns the day of the last response; empty if there is none.
    pub(crate) fn last_day_text(&self) -> String {
        let last_day =
            self.entries.last().map(|entry| clock::local_day_from_unix_seconds(entry.responded_at));
        last_day.map_or(String::new(), |day| day.to_string())
    }

    /// Returns the project of a transcript: its working directory, or the project that a worktree belongs to.
    pub(crate) fn project(&self, transcript_index: usize) -> &str {
        let Some(folder) = self.transcripts[transcript_index].folder.as_deref() else { return "unknown" };
        let has_worktree = |run: &&RunRecord| {
            ledger::worktrees_folder_of_run(&run.run_id)
                .is_some_and(|worktrees| Path::new(folder).starts_with(worktrees))
        };
        let run_project = self.runs.iter().find(has_worktree).map(|run| run.project.as_str());
        run_project.unwrap_or_else(|| project_of_folder(folder))
    }

    /// Prints a warning for each input that is not counted.
    pub(crate) fn print_warnings(&self) {
        for SkippedInput { path, reason } in self.skipped.iter().take(MAX_WARNINGS) {
            // An error of the system names the file.
            console::print_warning(&if reason.contains(path.as_str()) {
                format!("not counted: {}", to_safe_single_line(reason))
            } else {
                let path = to_safe_single_line(&environment::abbreviate_home(path));
                format!("not counted in {path}: {reason}")
            });
        }
        if self.skipped.len() > MAX_WARNINGS {
            let count = count_with_noun(self.skipped.len() - MAX_WARNINGS, "more file");
            console::print_warning(&format!("{count} were not counted or only in part; `--json` lists all"));
        }
    }

    /// Returns the inputs that are not counted as JSON.
    pub(crate) fn skipped_json(&self) -> Value {
        self.skipped
            .iter()
            .map(|SkippedInput { path, reason }| json!({"file": path, "reason": reason}))
            .collect()
    }
}

impl SkippedInput {
    fn new(path: &Path, reason: String) -> SkippedInput {
        SkippedInput { path: path.to_string_lossy().into_owned(), reason }
    }
}
