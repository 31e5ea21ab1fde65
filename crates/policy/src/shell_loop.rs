//! Support for a `ralph-state.json` that Plimsoll did not write: the state of a loop of shell scripts. `plimsoll gate`
//! and `plimsoll monitor` make the same decisions as the loop's scripts, and start no process.

mod messages;

pub use messages::{
    describe_how_to_resume_replaced_run, describe_no_run_to_resume_and_fix,
    describe_state_file_blocking_new_run, render_no_run_here_and_loop_status,
};

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::last_gate_judgment::LastGateJudgment;
use plimsoll_domain::level::Level;
use plimsoll_domain::settings::BreakerLimits;
use plimsoll_domain::state::WorktreeFingerprint;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::untrusted_text::{self, TextOrigin};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, Timestamp, TodoList};
use serde_json::{Value, json};

/// Fields that every run of Plimsoll has and no other program writes.
pub const RUN_MARKER_FIELDS: [&str; 2] = ["run_id", "nonce"];
/// The limit if the file contains none: no loop should be unlimited.
const DEFAULT_MAX_ITERATIONS: u64 = 50;
/// The promise if the file contains none.
pub const DEFAULT_PROMISE: &str = "COMPLETE";
/// Maximum number of characters shown of a text from the file.
const MAX_SHOWN_CHARS: usize = 40;

/// The fields of the loop's state file, as far as they have the expected type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellLoop {
    /// The status as written by the scripts; `None` if the file has none.
    pub status: Option<String>,
    /// False if the file contains `"active": false`.
    pub is_active: bool,
    /// The number of the current session.
    pub iteration: u64,
    /// The highest session number allowed.
    pub max_iterations: u64,
    /// The text that completes the loop when written between `<promise>` tags.
    pub completion_promise: String,
    pub open_items: Vec<String>,
    /// The handoff file and the level of a checkpoint that has not been resumed; the file is empty if none is
    /// named.
    pub pending_checkpoint: Option<(String, Level)>,
    /// Consecutive sessions without a change, as counted by the scripts.
    pub no_change_count: u64,
    /// The scripts' own hash of the project's files.
    pub last_diff_hash: String,
    /// Number of equal hashes at the end of the error hashes: consecutive sessions that ended with the same error.
    pub same_error_count: u64,
    /// Start time of the loop, as written by the scripts. Distinguishes one loop from the next.
    pub started_at: Timestamp,
    /// Descriptions of fields of an unexpected type, which are ignored.
    pub invalid_fields: Vec<String>,
}

/// Returns the fields that identify a document as Plimsoll's and that it lacks; empty if Plimsoll wrote it.
pub fn missing_run_marker_fields(document: &Value) -> Vec<&'static str> {
    let has_text =
        |field: &&str| document.get(*field).and_then(Value::as_str).is_some_and(|id| !id.is_empty());
    RUN_MARKER_FIELDS.into_iter().filter(|field| !has_text(field)).collect()
}

impl ShellLoop {
    /// Parses each field of the document independently.
    pub fn from_document_collecting_invalid_fields(document: &Value) -> ShellLoop {
        let mut reader = FieldReader { document, errors: Vec::new() };
        let checkpoint = document.get("context_checkpoint").filter(|value| !value.is_null());
        if checkpoint.is_some_and(|value| !value.is_object()) {
            reader.errors.push("context_checkpoint is not an object".to_owned());
        }
        let has_pending_checkpoint =
            checkpoint.and_then(|value| value.get("active")) == Some(&Value::Bool(true));
        let text = |name: &str| checkpoint.and_then(|value| value.get(name)?.as_str()).unwrap_or_default();
        ShellLoop {
            status: reader.read_text("status"),
            is_active: reader.read_bool("active").unwrap_or(true),
            iteration: reader.read_number("iteration").unwrap_or(0),
            max_iterations: reader.read_number("max_iterations").unwrap_or(DEFAULT_MAX_ITERATIONS),
            completion_promise: reader
                .read_text("completion_promise")
                .unwrap_or_else(|| DEFAULT_PROMISE.to_owned()),
            open_items: reader.read_texts("todo_items"),
            last_diff_hash: reader.read_text("last_diff_hash").unwrap_or_default(),
            no_change_count: reader.read_number("no_change_count").unwrap_or(0),
            same_error_count: count_equal_at_end(&reader.read_texts("error_hashes")),
            pending_checkpoint: has_pending_checkpoint
                .then(|| (to_safe_single_line(text("handoff_file")), parse_level(text("level")))),
            started_at: Timestamp::from(reader.read_text("started_at").unwrap_or_default()),
            invalid_fields: reader.errors,
        }
    }

    /// Returns true if the loop's scripts would continue.
    pub fn is_running(&self) -> bool {
        self.is_active && self.status.as_deref() == Some(RunStatus::Running.as_str())
    }
}

/// Returns how many texts at the end of the list equal the last one.
fn count_equal_at_end(texts: &[String]) -> u64 {
    texts.iter().rev().take_while(|text| Some(*text) == texts.last()).count() as u64
}

fn parse_level(level_name: &str) -> Level {
    [Level::L1, Level::L2, Level::L3]
        .into_iter()
        .find(|level| level.to_string() == level_name)
        .unwrap_or_default()
}

/// Reads single fields, and records those of an unexpected type.
struct FieldReader<'a> {
    document: &'a Value,
    errors: Vec<String>,
}

impl<'a> FieldReader<'a> {
    fn read_field<T>(
        &mut self,
        name: &str,
        expected_kind: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.document.get(name).filter(|value| !value.is_null())?;
        let converted = convert(value);
        if converted.is_none() {
            let shown_value = truncate_end(&to_safe_single_line(&value.to_string()), MAX_SHOWN_CHARS);
            self.errors.push(format!("{name} is {shown_value}, not {expected_kind}"));
        }
        converted
    }

    fn read_text(&mut self, name: &str) -> Option<String> {
        let text = self.read_field(name, "a text", |value| value.as_str().map(str::to_owned));
        text.filter(|text| !text.is_empty())
    }

    fn read_bool(&mut self, name: &str) -> Option<bool> {
        self.read_field(name, "true or false", Value::as_bool)
    }

    fn read_number(&mut self, name: &str) -> Option<u64> {
        self.read_field(name, "a whole number", Value::as_u64)
    }

    fn read_texts(&mut self, name: &str) -> Vec<String> {
        let to_texts =
            |value: &Value| value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect();
        self.read_field(name, "a list of texts", to_texts).unwrap_or_default()
    }
}

/// The evidence about the session that has ended.
#[derive(Debug, Clone, Default)]
pub struct LoopEvidence<'a> {
    pub last_message: Option<&'a str>,
    /// The reason why no session can succeed, such as wrong credentials.
    pub fatal_error: Option<String>,
    /// The plan file. An item ticked there is not open, whatever the state file lists.
    pub todo: Option<&'a TodoList>,
    /// The gate's record of its previous verdict in this loop.
    pub last_judgment: Option<&'a LastGateJudgment>,
    /// The fingerprint of the project's files after the session.
    pub fingerprint: WorktreeFingerprint,
    /// Limits of the circuit breaker from the user's settings, because the scripts keep none in the file.
    pub breaker_limits: BreakerLimits,
}

/// Builds the record that the gate keeps of this verdict.
pub fn build_gate_judgment(shell_loop: &ShellLoop, evidence: &LoopEvidence<'_>) -> LastGateJudgment {
    LastGateJudgment {
        loop_started_at: shell_loop.started_at.clone(),
        session_number: ended_session_number(shell_loop, evidence.last_judgment),
        no_change_count: Some(count_unchanged_sessions_unless_scripts_did(shell_loop, evidence)),
        last_diff_hash: shell_loop.last_diff_hash.clone(),
        open_items: shell_loop.open_items.clone(),
        worktree_fingerprint: evidence.fingerprint.clone(),
    }
}

/// The verdict for a shell loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopVerdict {
    /// The loop ends, with its status in the loop's own wording, and the reason.
    Stop(String, String),
    /// A fresh session continues from the handoff.
    Checkpoint(String),
    /// A fresh session takes the next item.
    NextItem(String),
    /// A fresh session continues, because the promise was false.
    RefusedPromise(String),
}

impl LoopVerdict {
    /// Formats the verdict as a marker line.
    pub fn to_marker_line(&self) -> String {
        let continue_marker =
            |kind, reason: &str| Marker::Continue { kind, reason: reason.to_owned() }.to_string();
        match self {
            // `Marker` contains only Plimsoll's own statuses, and this one may be any text.
            LoopVerdict::Stop(status, reason) => {
                let marker_field = |text: &str| to_safe_single_line(&text.replace('|', " "));
                format!(
                    "RALPH_STOP|{}|{}",
                    truncate_end(&marker_field(status), MAX_SHOWN_CHARS),
                    marker_field(reason)
                )
            }
            LoopVerdict::Checkpoint(handoff) => continue_marker(ContinueKind::Checkpoint, handoff),
            LoopVerdict::NextItem(reason) => continue_marker(ContinueKind::NextItem, reason),
            LoopVerdict::RefusedPromise(reason) => continue_marker(ContinueKind::RefusedPromise, reason),
        }
    }

    /// 0 ends the loop, 1 continues it.
    pub fn exit_status(&self) -> ExitStatus {
        ExitStatus::failure_if(!matches!(self, LoopVerdict::Stop(..)))
    }
}

/// Returns the number of the session that has ended. Some loops count in their own script, others leave it to
/// the gate: if the number has not changed since the gate's last verdict, the gate counts.
pub fn ended_session_number(shell_loop: &ShellLoop, last_judgment: Option<&LastGateJudgment>) -> u64 {
    let is_counted_by_gate =
        last_judgment.is_some_and(|previous| previous.session_number == shell_loop.iteration);
    if is_counted_by_gate { shell_loop.iteration.saturating_add(1) } else { shell_loop.iteration }
}

/// Returns the number of consecutive sessions without a change. As with the iteration, the gate counts if the
/// scripts have changed neither the counter nor their hash since its last verdict.
pub fn count_unchanged_sessions_unless_scripts_did(
    shell_loop: &ShellLoop,
    evidence: &LoopEvidence<'_>,
) -> u64 {
    let Some(last_judgment) = evidence.last_judgment else { return shell_loop.no_change_count };
    if last_judgment.no_change_count != Some(shell_loop.no_change_count)
        || last_judgment.last_diff_hash != shell_loop.last_diff_hash
    {
        return shell_loop.no_change_count;
    }
    let has_progress = last_judgment.open_items != shell_loop.open_items
        || last_judgment.worktree_fingerprint.head != evidence.fingerprint.head;
    match evidence.fingerprint.files_changed_since(&last_judgment.worktree_fingerprint) {
        _ if has_progress => 0,
        Some(true) => 0,
        Some(false) => shell_loop.no_change_count.saturating_add(1),
        // It is unknown whether anything changed, so this session is not counted as one without a change.
        None => shell_loop.no_change_count,
    }
}

/// Decides as the loop's own script does. Checks in this order: the loop has ended, it is completed, a fatal error, the
/// iteration limit, the circuit breaker, a pending checkpoint. Otherwise the loop continues.
pub fn judge_loop(shell_loop: &ShellLoop, evidence: &LoopEvidence<'_>) -> LoopVerdict {
    let stop = |status: RunStatus, reason: String| LoopVerdict::Stop(status.as_str().to_owned(), reason);
    if !shell_loop.is_running() {
        return match &shell_loop.status {
            Some(status) if shell_loop.is_active => {
                LoopVerdict::Stop(status.clone(), "the state says so".to_owned())
            }
            Some(_) => {
                LoopVerdict::Stop("inactive".to_owned(), "the state says \"active\": false".to_owned())
            }
            None => LoopVerdict::Stop("unknown".to_owned(), "the state has no status".to_owned()),
        };
    }
    let is_ticked = |item: &String| evidence.todo.is_some_and(|todo| todo.is_item_ticked(item));
    let open_items: Vec<&String> = shell_loop.open_items.iter().filter(|item| !is_ticked(item)).collect();
    let has_promise = evidence
        .last_message
        .is_some_and(|message| is_promise_message(message, &shell_loop.completion_promise));
    if has_promise && open_items.is_empty() {
        return stop(RunStatus::Completed, "promised, and no item is open".to_owned());
    }
    if let Some(error) = &evidence.fatal_error {
        return stop(RunStatus::FatalError, error.clone());
    }
    // Checked after the promise, so that a promise in the last session counts.
    let iteration = ended_session_number(shell_loop, evidence.last_judgment);
    if iteration >= shell_loop.max_iterations {
        return stop(
            RunStatus::MaxIterations,
            format!("{iteration} of {} iterations are used", shell_loop.max_iterations),
        );
    }
    // Checked before the checkpoint; otherwise sessions that change nothing and fill their window would resume
    // each other forever.
    if let Some(reason) = circuit_breaker_open_reason(shell_loop, evidence) {
        return stop(RunStatus::CircuitBreaker, reason);
    }
    if let Some((handoff, _)) = &shell_loop.pending_checkpoint {
        return LoopVerdict::Checkpoint(handoff.clone());
    }
    let verb = if open_items.len() == 1 { "is" } else { "are" };
    let open_item_count_text = format!("{} {verb} open", count_with_noun(open_items.len(), "item"));
    if has_promise {
        LoopVerdict::RefusedPromise(open_item_count_text)
    } else {
        LoopVerdict::NextItem(open_item_count_text)
    }
}

/// Returns why the circuit breaker opens; `None` while it is closed. A limit of 0 disables its counter, as in
/// Plimsoll's own runs.
fn circuit_breaker_open_reason(shell_loop: &ShellLoop, evidence: &LoopEvidence<'_>) -> Option<String> {
    let limits = &evidence.breaker_limits;
    let no_change_count = count_unchanged_sessions_unless_scripts_did(shell_loop, evidence);
    let is_limit_reached = |count: u64, limit: u32| limit > 0 && count >= u64::from(limit);
    let sessions_text = |count: u64| count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), "session");
    if is_limit_reached(shell_loop.same_error_count, limits.same_error) {
        return Some(format!(
            "{} in a row ended with the same error (error_hashes; the limit is {})",
            sessions_text(shell_loop.same_error_count),
            limits.same_error
        ));
    }
    is_limit_reached(no_change_count, limits.no_progress).then(|| {
        format!(
            "{} in a row changed nothing (no_change_count; the limit is {})",
            sessions_text(no_change_count),
            limits.no_progress
        )
    })
}

/// Returns true if the last non-empty line consists of the promise alone. The scripts' promise has no nonce.
fn is_promise_message(message: &str, promise: &str) -> bool {
    let last_line = message.lines().map(str::trim_end).rfind(|line| !line.is_empty());
    last_line == Some(format!("<promise>{promise}</promise>").as_str())
}

/// Updates the document as the loop's own script would after this verdict. Returns true if it changed.
pub fn write_verdict_into_document(
    document: &mut Value,
    verdict: &LoopVerdict,
    last_judgment: &LastGateJudgment,
) -> bool {
    let before = document.clone();
    let shell_loop = ShellLoop::from_document_collecting_invalid_fields(document);
    match verdict {
        LoopVerdict::Stop(status, _) if shell_loop.is_running() => document["status"] = json!(status),
        LoopVerdict::Stop(..) => return false,
        _ => document["iteration"] = json!(last_judgment.session_number),
    }
    // If the scripts do not write the counter, the field is added only once there is something to count.
    if let Some(count) = last_judgment.no_change_count.filter(|count| *count != shell_loop.no_change_count) {
        document["no_change_count"] = json!(count);
    }
    if matches!(verdict, LoopVerdict::Checkpoint(_)) {
        document["context_checkpoint"]["active"] = json!(false);
    }
    *document != before
}

/// Renders the instructions to resume from a checkpoint, which precede the user's own PROMPT.md. Fields that the document
/// lacks are left empty.
pub fn render_resume_instructions(document: &Value) -> String {
    let text = |name: &str| {
        let value = document.pointer(&format!("/context_checkpoint/{name}"));
        to_safe_single_line(value.and_then(Value::as_str).unwrap_or_default())
    };
    let percent = document.pointer("/context_checkpoint/percent_at_checkpoint").and_then(Value::as_u64);
    let percent = percent.map_or("?".to_owned(), |percent| percent.to_string());
    let labeled_line = |label: &str, value: String| {
        if value.is_empty() { String::new() } else { format!("{label}: {}\n", truncate_end(&value, 600)) }
    };
    let untrusted_session_text = labeled_line("Progress on it", text("progress_on_item"))
        + &labeled_line("Summary", text("resume_summary"));
    format!(
        "## CONTEXT CHECKPOINT RESUME\n\n> The previous session hit {percent}% of its context window ({} threshold).\n\n{}{}\n1. **Do not start over**, and do not restart the task from scratch.\n2. Read `{}` first; do not re-read files that it explains.\n",
        text("level"),
        labeled_line("Item", text("current_todo_item")),
        untrusted_text::render_quoted_block_or_empty_if_blank(
            TextOrigin::EarlierSessions,
            &untrusted_text::unique_fence("", &untrusted_session_text),
            &untrusted_session_text
        ),
        text("handoff_file"),
    )
}

/// The action of the monitor at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorAction {
    /// Prints nothing.
    Nothing,
    /// Warns the session.
    Warn,
    /// Writes a checkpoint.
    Checkpoint,
    /// Prints the marker again, as the loop's own script does, because a checkpoint of this or a higher level is already
    /// pending.
    RepeatMarker,
}

/// Returns what the monitor does for the loop at a level.
pub fn monitor_action(shell_loop: &ShellLoop, level: Level) -> MonitorAction {
    match level {
        _ if !shell_loop.is_running() => MonitorAction::Nothing,
        Level::L0 => MonitorAction::Nothing,
        Level::L1 => MonitorAction::Warn,
        level => match &shell_loop.pending_checkpoint {
            Some((_, pending_level)) if *pending_level >= level => MonitorAction::RepeatMarker,
            _ => MonitorAction::Checkpoint,
        },
    }
}

/// Returns the level for a percentage. Used when the window is unknown.
pub fn level_for_percent(percent: u64, levels: &plimsoll_domain::settings::Levels) -> Level {
    let percent = percent as f64;
    let thresholds = [(levels.l3, Level::L3), (levels.l2, Level::L2), (levels.l1, Level::L1)];
    thresholds.into_iter().find(|(threshold, _)| percent >= *threshold).map_or(Level::L0, |(_, level)| level)
}

/// The values recorded with a checkpoint, besides its level and percentage.
#[derive(Debug, Clone, Default)]
pub struct CheckpointInput {
    pub timestamp: Timestamp,
    /// The path of the handoff, relative to the project.
    pub handoff: String,
    /// The last message of the session.
    pub summary: String,
    pub files: Vec<plimsoll_domain::state::FileInProgress>,
}

/// Writes a checkpoint into the document, in the fields that the scripts use.
pub fn write_checkpoint_and_history_into_document(
    document: &mut Value,
    level: Level,
    percent: u64,
    input: &CheckpointInput,
) {
    let shell_loop = ShellLoop::from_document_collecting_invalid_fields(document);
    let files: Vec<Value> = input
        .files
        .iter()
        .map(
            |file| json!({ "path": file.path, "lines": file.touched_lines, "description": file.description }),
        )
        .collect();
    let checkpoint = json!({
        "active": true,
        "level": level.to_string(),
        "percent_at_checkpoint": percent,
        "timestamp": input.timestamp,
        "handoff_file": input.handoff,
        "resume_summary": input.summary,
        "files_in_progress": files,
        "current_todo_item": shell_loop.open_items.first().cloned().unwrap_or_default(),
        "progress_on_item": "unknown",
    });
    match &mut document["context_checkpoint"] {
        field_value @ Value::Object(_) => {
            plimsoll_domain::state::merge_keeping_unknown_fields(field_value, checkpoint);
        }
        field_value => *field_value = checkpoint,
    }
    let entry = json!({ "iteration": shell_loop.iteration, "peak_percent": percent, "checkpoint": true });
    match &mut document["context_history"] {
        Value::Array(history) => {
            let is_current_iteration = |entry: &&mut Value| {
                entry.get("iteration").and_then(Value::as_u64) == Some(shell_loop.iteration)
            };
            match history.iter_mut().find(is_current_iteration) {
                Some(existing) => plimsoll_domain::state::merge_keeping_unknown_fields(existing, entry),
                None => history.push(entry),
            }
        }
        field_value => *field_value = json!([entry]),
    }
}

#[cfg(test)]
mod tests;
