//! A `ralph-state.json` that no run of ours wrote: the state of a loop of shell scripts. `plimsoll gate` and
//! `plimsoll monitor` judge for such a loop as its own scripts would, and start nothing.

mod words;

pub use words::{goes_on_from_copy, in_the_way, no_run_to_resume, standing};

use plimsoll_domain::claims::{self, Source};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::last_judgement::LastJudgement;
use plimsoll_domain::level::Level;
use plimsoll_domain::settings::BreakerLimits;
use plimsoll_domain::state::WorktreeFingerprint;
use plimsoll_domain::status::Status;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, Timestamp, TodoList};
use serde_json::{Value, json};

/// What a run of ours always has, and no other program writes.
pub const MARKS_OF_OURS: [&str; 2] = ["run_id", "nonce"];
/// No loop should be unlimited: the bound if the file names none.
const MAX_ITERATIONS: u64 = 50;
/// The word of the promise where the file names none.
pub const PROMISE: &str = "COMPLETE";
/// How much of a foreign word is repeated.
const WORD_SHOWN: usize = 40;

/// What the scripts of a loop keep in the file, as far as it is of the right kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loop {
    /// Its status in its own words; none if the file has none.
    pub status: Option<String>,
    /// False if the file says `"active": false`.
    pub active: bool,
    /// The number of the session.
    pub iteration: u64,
    /// The last one allowed.
    pub max_iterations: u64,
    /// The word of the promise.
    pub promise: String,
    /// Open items.
    pub open: Vec<String>,
    /// The handoff of a checkpoint that waits for its resume, empty if it names none; and its level.
    pub checkpoint: Option<(String, Level)>,
    /// Sessions in a row that changed nothing, as the scripts count them.
    pub no_change_count: u64,
    /// The scripts' own hash of the project's files.
    pub last_diff_hash: String,
    /// How many of the newest error hashes are equal: sessions in a row that ended with the same error.
    pub same_error_count: u64,
    /// When it began, in its own words: tells one loop from the next.
    pub started_at: Timestamp,
    /// Fields that are there and of another kind than the scripts write: named, and not taken.
    pub not_understood: Vec<String>,
}

/// The marks of a run of ours that a document lacks; nothing if it is ours.
pub fn missing_marks(document: &Value) -> Vec<&'static str> {
    let has = |field: &&str| document.get(*field).and_then(Value::as_str).is_some_and(|id| !id.is_empty());
    MARKS_OF_OURS.into_iter().filter(|field| !has(field)).collect()
}

impl Loop {
    /// Reads the document, each field on its own.
    pub fn of(document: &Value) -> Loop {
        let mut reader = Reader { document, wrong: Vec::new() };
        let checkpoint = document.get("context_checkpoint").filter(|value| !value.is_null());
        if checkpoint.is_some_and(|value| !value.is_object()) {
            reader.wrong.push("context_checkpoint is not an object".to_owned());
        }
        let is_active = checkpoint.and_then(|value| value.get("active")) == Some(&Value::Bool(true));
        let text = |name: &str| checkpoint.and_then(|value| value.get(name)?.as_str()).unwrap_or_default();
        Loop {
            status: reader.text("status"),
            active: reader.truth("active").unwrap_or(true),
            iteration: reader.number("iteration").unwrap_or(0),
            max_iterations: reader.number("max_iterations").unwrap_or(MAX_ITERATIONS),
            promise: reader.text("completion_promise").unwrap_or_else(|| PROMISE.to_owned()),
            open: reader.texts("todo_items"),
            last_diff_hash: reader.text("last_diff_hash").unwrap_or_default(),
            no_change_count: reader.number("no_change_count").unwrap_or(0),
            same_error_count: count_equal_at_end(&reader.texts("error_hashes")),
            checkpoint: is_active.then(|| (one_line(text("handoff_file")), level_of(text("level")))),
            started_at: Timestamp::from(reader.text("started_at").unwrap_or_default()),
            not_understood: reader.wrong,
        }
    }

    /// True while its scripts would continue.
    pub fn is_running(&self) -> bool {
        self.active && self.status.as_deref() == Some(Status::Running.word())
    }
}

/// Returns how many texts at the end of the list equal the last one.
fn count_equal_at_end(texts: &[String]) -> u64 {
    texts.iter().rev().take_while(|text| Some(*text) == texts.last()).count() as u64
}

fn level_of(word: &str) -> Level {
    [Level::L1, Level::L2, Level::L3].into_iter().find(|level| level.to_string() == word).unwrap_or_default()
}

/// Takes single fields, and remembers those of another kind.
struct Reader<'a> {
    document: &'a Value,
    wrong: Vec<String>,
}

impl<'a> Reader<'a> {
    fn field<T>(&mut self, name: &str, kind: &str, take: impl FnOnce(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.document.get(name).filter(|value| !value.is_null())?;
        let taken = take(value);
        if taken.is_none() {
            let shown = clip(&one_line(&value.to_string()), WORD_SHOWN);
            self.wrong.push(format!("{name} is {shown}, not {kind}"));
        }
        taken
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let text = self.field(name, "a text", |value| value.as_str().map(str::to_owned));
        text.filter(|text| !text.is_empty())
    }

    fn truth(&mut self, name: &str) -> Option<bool> {
        self.field(name, "true or false", Value::as_bool)
    }

    fn number(&mut self, name: &str) -> Option<u64> {
        self.field(name, "a whole number", Value::as_u64)
    }

    fn texts(&mut self, name: &str) -> Vec<String> {
        let all =
            |value: &Value| value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect();
        self.field(name, "a list of texts", all).unwrap_or_default()
    }
}

/// What is known of the session that has ended.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    /// Its last message.
    pub last_message: Option<&'a str>,
    /// Why no session can succeed (wrong credentials, for one).
    pub fatal: Option<String>,
    /// The plan file as it is: an item that is ticked there is not open, whatever the state says.
    pub todo: Option<&'a TodoList>,
    /// What the gate remembers of its last judgement in this loop.
    pub last_judgement: Option<&'a LastJudgement>,
    /// The project's files after the session.
    pub fingerprint: WorktreeFingerprint,
    /// When the circuit breaker opens: the user's settings, because the scripts keep no limits in the file.
    pub limits: BreakerLimits,
}

/// Returns what the gate has to remember of the judgement of this session.
pub fn remember_judgement(of: &Loop, evidence: &Evidence<'_>) -> LastJudgement {
    LastJudgement {
        started_at: of.started_at.clone(),
        iteration: ended_iteration(of, evidence.last_judgement),
        no_change_count: Some(count_no_change(of, evidence)),
        last_diff_hash: of.last_diff_hash.clone(),
        open: of.open.clone(),
        fingerprint: evidence.fingerprint.clone(),
    }
}

/// The answer for a shell loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The loop ends; the status in the loop's own word.
    Stop(String, String),
    /// A fresh session continues from the handoff.
    Checkpoint(String),
    /// A fresh session takes the next item.
    Next(String),
    /// A fresh session continues, for the promise does not hold.
    Refused(String),
}

impl Judgement {
    /// The marker line.
    pub fn marker(&self) -> String {
        let go_on = |kind, reason: &str| Marker::Continue { kind, reason: reason.to_owned() }.to_string();
        match self {
            // The status is a foreign word: the marker knows only ours.
            Judgement::Stop(status, reason) => {
                let field = |text: &str| one_line(&text.replace('|', " "));
                format!("RALPH_STOP|{}|{}", clip(&field(status), WORD_SHOWN), field(reason))
            }
            Judgement::Checkpoint(handoff) => go_on(ContinueKind::Checkpoint, handoff),
            Judgement::Next(reason) => go_on(ContinueKind::Next, reason),
            Judgement::Refused(reason) => go_on(ContinueKind::Refused, reason),
        }
    }

    /// 0 ends the loop, 1 continues.
    pub fn exit_status(&self) -> ExitStatus {
        ExitStatus::failure_if(!matches!(self, Judgement::Stop(..)))
    }
}

/// The number of the session that has ended. Some loops count in their own script and some leave it to the gate: where
/// the number has not moved since the gate judged last, it is the gate that counts.
pub fn ended_iteration(of: &Loop, last_judgement: Option<&LastJudgement>) -> u64 {
    let is_counted_by_gate = last_judgement.is_some_and(|last| last.iteration == of.iteration);
    if is_counted_by_gate { of.iteration.saturating_add(1) } else { of.iteration }
}

/// Returns how many sessions in a row changed nothing. As with the iteration, the gate counts where the scripts have moved
/// neither the counter nor their hash since it judged last.
pub fn count_no_change(of: &Loop, evidence: &Evidence<'_>) -> u64 {
    let Some(last) = evidence.last_judgement else { return of.no_change_count };
    if last.no_change_count != Some(of.no_change_count) || last.last_diff_hash != of.last_diff_hash {
        return of.no_change_count;
    }
    let has_progress = last.open != of.open || last.fingerprint.head != evidence.fingerprint.head;
    match evidence.fingerprint.files_changed(&last.fingerprint) {
        _ if has_progress => 0,
        Some(true) => 0,
        Some(false) => of.no_change_count.saturating_add(1),
        // Whether anything changed is unknown, which does not count as no progress.
        None => of.no_change_count,
    }
}

/// Judges as the loop's own script would: over, completed, fatal, out of iterations, stuck, else on.
pub fn judge(of: &Loop, evidence: &Evidence<'_>) -> Judgement {
    let stop = |status: Status, reason: String| Judgement::Stop(status.word().to_owned(), reason);
    if !of.is_running() {
        return match &of.status {
            Some(status) if of.active => Judgement::Stop(status.clone(), "the state says so".to_owned()),
            Some(_) => Judgement::Stop("inactive".to_owned(), "the state says \"active\": false".to_owned()),
            None => Judgement::Stop("unknown".to_owned(), "the state has no status".to_owned()),
        };
    }
    let is_ticked = |item: &String| evidence.todo.is_some_and(|todo| todo.is_ticked(item));
    let open: Vec<&String> = of.open.iter().filter(|item| !is_ticked(item)).collect();
    let is_promised = evidence.last_message.is_some_and(|message| is_promise(message, &of.promise));
    if is_promised && open.is_empty() {
        return stop(Status::Completed, "promised, and no item is open".to_owned());
    }
    if let Some(why) = &evidence.fatal {
        return stop(Status::FatalError, why.clone());
    }
    // After the promise: one that is made in the last session counts.
    let iteration = ended_iteration(of, evidence.last_judgement);
    if iteration >= of.max_iterations {
        return stop(
            Status::MaxIterations,
            format!("{iteration} of {} iterations are used", of.max_iterations),
        );
    }
    // Before the checkpoint: sessions that change nothing and fill their window would otherwise resume each other forever.
    if let Some(reason) = breaker_reason(of, evidence) {
        return stop(Status::CircuitBreaker, reason);
    }
    if let Some((handoff, _)) = &of.checkpoint {
        return Judgement::Checkpoint(handoff.clone());
    }
    let are = if open.len() == 1 { "is" } else { "are" };
    let words = format!("{} {are} open", counted(open.len(), "item"));
    if is_promised { Judgement::Refused(words) } else { Judgement::Next(words) }
}

/// Returns why the circuit breaker opens, `None` while it is closed. A limit of 0 switches its counter off, as in a run of ours.
fn breaker_reason(of: &Loop, evidence: &Evidence<'_>) -> Option<String> {
    let limits = &evidence.limits;
    let no_change_count = count_no_change(of, evidence);
    let is_reached = |count: u64, limit: u32| limit > 0 && count >= u64::from(limit);
    let sessions = |count: u64| counted(usize::try_from(count).unwrap_or(usize::MAX), "session");
    if is_reached(of.same_error_count, limits.same_error) {
        return Some(format!(
            "{} in a row ended with the same error (error_hashes; the limit is {})",
            sessions(of.same_error_count),
            limits.same_error
        ));
    }
    is_reached(no_change_count, limits.no_progress).then(|| {
        format!(
            "{} in a row changed nothing (no_change_count; the limit is {})",
            sessions(no_change_count),
            limits.no_progress
        )
    })
}

/// The scripts' promise has no nonce: the last line that is not empty, and nothing else on it.
fn is_promise(message: &str, word: &str) -> bool {
    let last = message.lines().map(str::trim_end).rfind(|line| !line.is_empty());
    last == Some(format!("<promise>{word}</promise>").as_str())
}

/// The document after the judgement: what the loop's own script would have written. The answer is true if it
/// has changed.
pub fn note_judgement(document: &mut Value, judgement: &Judgement, judged: &LastJudgement) -> bool {
    let before = document.clone();
    let of = Loop::of(document);
    match judgement {
        Judgement::Stop(status, _) if of.is_running() => document["status"] = json!(status),
        Judgement::Stop(..) => return false,
        _ => document["iteration"] = json!(judged.iteration),
    }
    // A loop whose scripts count nothing gets the field only once there is something to count.
    if let Some(count) = judged.no_change_count.filter(|count| *count != of.no_change_count) {
        document["no_change_count"] = json!(count);
    }
    if matches!(judgement, Judgement::Checkpoint(_)) {
        document["context_checkpoint"]["active"] = json!(false);
    }
    *document != before
}

/// What the next session is told of a checkpoint: the block above the user's own PROMPT.md; empty if there is none.
pub fn resume_block(document: &Value) -> String {
    let text = |name: &str| {
        let value = document.pointer(&format!("/context_checkpoint/{name}"));
        one_line(value.and_then(Value::as_str).unwrap_or_default())
    };
    let percent = document.pointer("/context_checkpoint/percent_at_checkpoint").and_then(Value::as_u64);
    let percent = percent.map_or("?".to_owned(), |percent| percent.to_string());
    let line = |label: &str, value: String| {
        if value.is_empty() { String::new() } else { format!("{label}: {}\n", clip(&value, 600)) }
    };
    let said = line("Progress on it", text("progress_on_item")) + &line("Summary", text("resume_summary"));
    format!(
        "## CONTEXT CHECKPOINT RESUME\n\n> The previous session hit {percent}% of its context window ({} threshold).\n\n{}{}\n1. **Do not start over**, and do not restart the task from scratch.\n2. Read `{}` first; do not re-read files that it explains.\n",
        text("level"),
        line("Item", text("current_todo_item")),
        claims::block(Source::Sessions, &claims::fence("", &said), &said),
        text("handoff_file"),
    )
}

/// What the monitor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Nothing is to be said.
    Quiet,
    /// The session is warned.
    Warn,
    /// A checkpoint is written; nothing if one of this level or a higher one waits already.
    Checkpoint,
    /// It waits already: the marker is said again, as the loop's own script does.
    Again,
}

/// What the monitor does for the loop at a level.
pub fn watch(of: &Loop, level: Level) -> Watch {
    match level {
        _ if !of.is_running() => Watch::Quiet,
        Level::L0 => Watch::Quiet,
        Level::L1 => Watch::Warn,
        level => match &of.checkpoint {
            Some((_, known)) if *known >= level => Watch::Again,
            _ => Watch::Checkpoint,
        },
    }
}

/// The level of a given percentage, if no window is known.
pub fn level_of_percent(percent: u64, levels: &plimsoll_domain::settings::Levels) -> Level {
    let percent = percent as f64;
    let marks = [(levels.l3, Level::L3), (levels.l2, Level::L2), (levels.l1, Level::L1)];
    marks.into_iter().find(|(mark, _)| percent >= *mark).map_or(Level::L0, |(_, level)| level)
}

/// What a checkpoint found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// RFC 3339 UTC.
    pub timestamp: Timestamp,
    /// The handoff, relative to the project.
    pub handoff: String,
    /// The session's last words.
    pub summary: String,
    /// Files with changes.
    pub files: Vec<plimsoll_domain::state::FileInProgress>,
}

/// The document with a checkpoint in it, in the scripts' own fields.
pub fn note_checkpoint(document: &mut Value, level: Level, percent: u64, found: &Found) {
    let of = Loop::of(document);
    let files: Vec<Value> = found
        .files
        .iter()
        .map(|file| json!({ "path": file.path, "lines": file.lines, "description": file.description }))
        .collect();
    let checkpoint = json!({
        "active": true,
        "level": level.to_string(),
        "percent_at_checkpoint": percent,
        "timestamp": found.timestamp,
        "handoff_file": found.handoff,
        "resume_summary": found.summary,
        "files_in_progress": files,
        "current_todo_item": of.open.first().cloned().unwrap_or_default(),
        "progress_on_item": "unknown",
    });
    match &mut document["context_checkpoint"] {
        place @ Value::Object(_) => plimsoll_domain::state::merge(place, checkpoint),
        place => *place = checkpoint,
    }
    let entry = json!({ "iteration": of.iteration, "peak_percent": percent, "checkpoint": true });
    match &mut document["context_history"] {
        Value::Array(history) => {
            let of_now =
                |entry: &&mut Value| entry.get("iteration").and_then(Value::as_u64) == Some(of.iteration);
            match history.iter_mut().find(of_now) {
                Some(known) => plimsoll_domain::state::merge(known, entry),
                None => history.push(entry),
            }
        }
        place => *place = json!([entry]),
    }
}

#[cfg(test)]
mod tests;
