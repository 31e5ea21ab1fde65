//! Renders PROMPT.md: a generated block, followed by the unchanged text of the user.

mod checks;
mod item;
mod review;
mod rules;
mod worker;

pub use item::SET_ASIDE_HINT;
pub use review::{ReviewRequest, render_review_prompt};
pub use worker::RETURNED_WORK_FILE;

use crate::item_notes::ItemNotes;
use crate::resume::{self, Staleness};
use crate::state::{Checkpoint, HistoryEntry, RunState};
use crate::text::{count_with_noun, to_safe_single_line, truncate_end, truncate_middle};
use crate::untrusted_text::{self, TextOrigin};
use plimsoll_protocol::untrusted_text::sanitize_for_model;

/// The line that begins the block. The block comes first, so that the client never mistakes a task text that
/// begins with `/` for a command.
// In client 2.1.329, a prompt that began with `/word` sent no request, exited with 0 and counted as a success.
pub const BEGIN_MARK: &str = "<!-- plimsoll:begin (generated; rewritten before each session; your own text stands below the end mark) -->";
/// The line that ends the block.
pub const END_MARK: &str = "<!-- plimsoll:end -->";
const BLOCK_SEPARATOR: &str = "\n\n";

/// The maximum length of all refusals together, in characters: the first and last 2 KB of one command's output, and
/// a short explanation.
const MAX_REFUSALS_CHARS: usize = 6_000;
/// The maximum length of a paragraph from the progress file, in characters.
const MAX_PROGRESS_PARAGRAPH_CHARS: usize = 600;

/// The maximum length of the last action, in characters.
const MAX_LAST_ACTION_CHARS: usize = 400;
/// The maximum length of a timestamp, in characters. Plimsoll never writes a longer one.
const MAX_TIMESTAMP_CHARS: usize = 40;

/// The input of the generated block that is not part of the run's state.
#[derive(Debug, Clone, Default)]
pub struct PromptContext {
    /// The item that the session works on.
    pub item: Option<String>,
    /// The checkpoint that this session resumes, and what has changed since.
    pub checkpoint_to_resume: Option<(Checkpoint, Staleness)>,
    /// The progress file's paragraph about the last session, if that session made no progress and left no checkpoint
    /// to resume.
    pub no_progress_note: Option<String>,
    /// The notes of earlier sessions in the plan.
    pub item_notes: ItemNotes,
}

/// The error for a PROMPT.md whose block has no end mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingEndMark;

/// Returns the bytes after the generated block, or the whole file if it does not begin with a block.
/// Returns an error if the block has no end mark.
pub fn strip_prompt_block(prompt_file: &[u8]) -> Result<&[u8], MissingEndMark> {
    if !prompt_file.starts_with(BEGIN_MARK.as_bytes()) {
        return Ok(prompt_file);
    }
    let end = find_bytes(prompt_file, format!("\n{END_MARK}").as_bytes()).ok_or(MissingEndMark)?
        + 1
        + END_MARK.len();
    let task_text = &prompt_file[end..];
    Ok(task_text.strip_prefix(BLOCK_SEPARATOR.as_bytes()).unwrap_or(task_text))
}

/// A generated block, including its marks. It is created only by [`PromptBlock::from_body`], which ensures that it has
/// no hidden characters, begins no tag of the client, and contains no end mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock(String);

impl PromptBlock {
    /// Creates a block with this body and escapes everything that could end the block.
    pub fn from_body(body: &str) -> PromptBlock {
        PromptBlock(format!("{BEGIN_MARK}\n{}\n{END_MARK}", sanitize_for_model(body).replace("<!--", "<!·-")))
    }

    /// Returns the text, including the marks.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Joins a block and the user's text into the content of a PROMPT.md.
pub fn assemble_prompt_file(block: &PromptBlock, task: &[u8]) -> Vec<u8> {
    [block.text().as_bytes(), BLOCK_SEPARATOR.as_bytes(), task].concat()
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Renders the generated block. The most important sections come first and last: why ticks or a completion were
/// refused, and the promise.
pub fn render_prompt_block(state: &RunState, context: &PromptContext) -> PromptBlock {
    let checkpoint_to_resume = context.checkpoint_to_resume.as_ref();
    let takeover_step = checkpoint_to_resume
        .and_then(|(checkpoint, staleness)| resume::render_first_step_of_takeover(checkpoint, staleness));
    let sections = [
        render_session_introduction(state),
        checks::render_changed_protected_files(state),
        checks::render_ticks_reverted_by_failed_commands(state),
        review::render_findings_on_open_items(state, context.item.as_deref()),
        render_completion_refusals(state),
        item::render_item_section(state, context.item.as_deref(), takeover_step.as_deref()),
        worker::render_returned_work(state, context.item.as_deref()),
        worker::render_worker_section(state),
        checkpoint_to_resume.map_or(String::new(), |(checkpoint, staleness)| {
            resume::render_resume_section(checkpoint, staleness, &state.promise_code)
        }),
        context.item_notes.render_prompt_sections(&state.promise_code),
        render_no_progress_section(context.no_progress_note.as_deref(), &state.promise_code),
        rules::render_rules_section(state),
        task_text_heading(state).to_owned(),
    ];
    let body = sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
    PromptBlock::from_body(&body)
}

/// Returns the heading for the user's text, which follows the end mark.
fn task_text_heading(state: &RunState) -> &'static str {
    if state.options.item_brief.is_some() {
        "## The whole task (do only the item above)"
    } else {
        "## The task, in the user's words"
    }
}

fn render_session_introduction(state: &RunState) -> String {
    let plan_clause =
        state.options.todo_file.as_deref().map(|file| format!(", `{}`", to_safe_single_line(file)));
    let repeat_note = if state.has_iteration_number_been_used() {
        "; an earlier session with this number was interrupted"
    } else {
        ""
    };
    let branch_sentence = state.options.branch.as_deref().map(|branch| {
        format!(" Commit to the branch `{}`, and never switch branches.", to_safe_single_line(branch))
    });
    format!(
        "You are session {} of an unattended run{repeat_note}. Nobody is watching, and nobody can answer. Later sessions know only git{} and what you write down.{}\n{}",
        state.iteration,
        plan_clause.unwrap_or_default(),
        branch_sentence.unwrap_or_default(),
        render_start_time_and_recent_progress(state)
    )
}

/// Renders when the run started, and the progress of the last two iterations in a line each. Returns nothing if the
/// start time is unknown.
fn render_start_time_and_recent_progress(state: &RunState) -> String {
    let started_at = to_safe_single_line(state.project_at_start.started_at.as_str());
    if started_at.is_empty() {
        return String::new();
    }
    let mut ended_iterations = state.context_history.iter().rev().filter(|entry| !entry.ending.is_empty());
    let last_usage = ended_iterations.next().map(describe_usage_without_checkpoint).unwrap_or_default();
    let earlier_sentence = ended_iterations.next().map(describe_iteration).unwrap_or_default();
    // The file that contains the last action may have been written by an agent.
    let last_action = truncate_end(&to_safe_single_line(&state.outcomes.last_action), MAX_LAST_ACTION_CHARS);
    let last_action_text = if last_action.is_empty() {
        "none, this is the first session".to_owned()
    } else {
        format!("{last_action}{last_usage}")
    };
    format!(
        "The run started at {}.{earlier_sentence}\nLast action: {last_action_text}.\n",
        truncate_end(&started_at, MAX_TIMESTAMP_CHARS)
    )
}

/// Describes an earlier iteration by the figures of the history. No text of a session is quoted.
fn describe_iteration(entry: &HistoryEntry) -> String {
    let ticked_items = match entry.ticked_item_count {
        0 => "no item".to_owned(),
        count => count_with_noun(count as usize, "item"),
    };
    let usage = match entry.peak_percent {
        0 => String::new(),
        percent => format!(" at {percent}% of its window"),
    };
    let ending = if entry.ended_at_checkpoint { "stopped at a checkpoint" } else { "ended" };
    format!(" Iteration {} ticked {ticked_items} and {ending}{usage}.", entry.iteration)
}

/// Describes the usage of the last iteration. If it ended at a checkpoint, the resume section has the usage.
fn describe_usage_without_checkpoint(entry: &HistoryEntry) -> String {
    if entry.peak_percent == 0 || entry.ended_at_checkpoint {
        return String::new();
    }
    format!("; it used {}% of its window", entry.peak_percent)
}

fn render_completion_refusals(state: &RunState) -> String {
    if state.outcomes.refusals.is_empty() {
        return String::new();
    }
    let max_chars_per_reason = MAX_REFUSALS_CHARS / state.outcomes.refusals.len();
    let reasons: String = state
        .outcomes
        .refusals
        .iter()
        .map(|reason| format!("- {}\n", truncate_middle(reason.trim(), max_chars_per_reason)))
        .collect();
    let reasons = untrusted_text::render_quoted_block_or_empty_if_blank(
        TextOrigin::CommandOutput,
        &untrusted_text::unique_fence(&state.promise_code, &reasons),
        &reasons,
    );
    let claim_clause = if state.options.completes_without_promise() {
        "ticked its item. The tick did not count"
    } else {
        "claimed completion. The claim was rejected"
    };
    format!(
        "## Completion was refused\n\nThe last session {claim_clause} because:\n\n{reasons}\nFix this first.\n"
    )
}

fn render_no_progress_section(progress_paragraph: Option<&str>, fence_seed: &str) -> String {
    let text = progress_paragraph
        .map_or(String::new(), |paragraph| truncate_end(paragraph.trim(), MAX_PROGRESS_PARAGRAPH_CHARS));
    if text.is_empty() {
        return text;
    }
    let block = untrusted_text::render_quoted_block_or_empty_if_blank(
        TextOrigin::EarlierSessions,
        &untrusted_text::unique_fence(fence_seed, &text),
        &text,
    );
    format!("## The last session made no progress\n\n{block}")
}

#[cfg(test)]
mod tests;
