//! PROMPT.md: one generated block, then the user's own text, byte for byte.

mod checks;
mod item;
mod review;
mod rules;
mod worker;

pub use item::BEGUN_BEFORE;
pub use review::{ReviewRequest, review};
pub use worker::RETURNED_FILE;

use crate::claims::{self, Source};
use crate::item_notes::ItemNotes;
use crate::resume::{self, Staleness};
use crate::state::{Checkpoint, RunState};
use crate::text::{clip, clip_middle, one_line};
use plimsoll_protocol::foreign_words::for_model;

/// How the block begins. It comes first, so that a task text that begins with `/` is never taken for a
/// command by the client.
// Seen on 2.1.329: a prompt that begins with `/word` made no request, exited with 0 and counted as success.
pub const BEGIN: &str = "<!-- plimsoll:begin (generated; rewritten before each session; your own text stands below the end mark) -->";
/// How the block ends.
pub const END: &str = "<!-- plimsoll:end -->";
const GAP: &str = "\n\n";

/// How much of all refusals together: the first and last 2 KB of one command's output and a few words more.
const REFUSALS: usize = 6_000;
/// How much of a paragraph of progress.
const PARAGRAPH: usize = 600;

/// How much of the last action.
const LAST_ACTION: usize = 400;
/// No moment that Plimsoll writes is longer.
const LONGEST_TIME: usize = 40;

/// What the block is made of beside the state.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The item that the session is about.
    pub item: Option<String>,
    /// The checkpoint that this session resumes, and what has happened to the work since.
    pub resume: Option<(Checkpoint, Staleness)>,
    /// What the progress file says of the session before, if that made no progress and left nothing to resume.
    pub fruitless: Option<String>,
    /// What earlier sessions noted in the plan.
    pub noted: ItemNotes,
}

/// Why a PROMPT.md cannot be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoEndMark;

/// The user's own text in a PROMPT.md, byte for byte.
pub fn task_text(file: &[u8]) -> Result<&[u8], NoEndMark> {
    if !file.starts_with(BEGIN.as_bytes()) {
        return Ok(file);
    }
    let end = find(file, format!("\n{END}").as_bytes()).ok_or(NoEndMark)? + 1 + END.len();
    let rest = &file[end..];
    Ok(rest.strip_prefix(GAP.as_bytes()).unwrap_or(rest))
}

/// The block between its marks. Only [`PromptBlock::of`] makes one: whatever it is made of, nothing in it is hidden, begins a
/// tag of the client's, or ends the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock(String);

impl PromptBlock {
    /// The block with this body.
    pub fn of(body: &str) -> PromptBlock {
        PromptBlock(format!("{BEGIN}\n{}\n{END}", for_model(body).replace("<!--", "<!·-")))
    }

    /// Its text, the marks included.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A PROMPT.md of a block and the user's text.
pub fn assemble(block: &PromptBlock, task: &[u8]) -> Vec<u8> {
    [block.text().as_bytes(), GAP.as_bytes(), task].concat()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The generated block. What must not be overlooked stands first and last: why ticks or a promise
/// were refused, and the promise.
pub fn block(state: &RunState, around: &Surroundings) -> PromptBlock {
    let resume = around.resume.as_ref();
    let takeover = resume.and_then(|(checkpoint, since)| resume::first_step(checkpoint, since));
    let sections = [
        opening(state),
        checks::changed_protected(state),
        checks::taken_back(state),
        review::open_points(state, around.item.as_deref()),
        refusals(state),
        item::section(state, around.item.as_deref(), takeover.as_deref()),
        worker::returned_work(state, around.item.as_deref()),
        worker::section(state),
        resume.map_or(String::new(), |(checkpoint, since)| resume::section(checkpoint, since, &state.nonce)),
        around.noted.section(&state.nonce),
        fruitless(around.fruitless.as_deref(), &state.nonce),
        rules::section(state),
        task_heading(state).to_owned(),
    ];
    let body = sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
    PromptBlock::of(&body)
}

/// Returns the heading of the user's own text, which follows below the end mark.
fn task_heading(state: &RunState) -> &'static str {
    if state.options.item_brief.is_some() {
        "## The whole task, of which you do only the item above"
    } else {
        "## The task, in the user's words"
    }
}

fn opening(state: &RunState) -> String {
    let plan = state.options.todo_file.as_deref().map(|file| format!(", `{}`", one_line(file)));
    let again = if state.is_iteration_repeated() {
        ", which is started again: the one with this number before it was interrupted"
    } else {
        ""
    };
    let branch = state.options.branch.as_deref().map(|branch| {
        format!(" The run works on the branch `{}`: commit to it, and switch to no other.", one_line(branch))
    });
    format!(
        "You are session {} of an unattended run{again}. Nobody is watching, and nobody can answer. Later sessions know only git{} and what you write down.{}\n{}",
        state.iteration,
        plan.unwrap_or_default(),
        branch.unwrap_or_default(),
        progress_so_far(state)
    )
}

/// Returns when the run started, and the last action before this session; nothing of a run that does not say when it started.
fn progress_so_far(state: &RunState) -> String {
    let started = one_line(state.at_start.started_at.as_str());
    if started.is_empty() {
        return String::new();
    }
    // An agent may have written the file that it comes from.
    let last = clip(&one_line(&state.outcomes.last_action), LAST_ACTION);
    let last = if last.is_empty() { "none, this is the first session".to_owned() } else { last };
    format!("The run started at {}. Last action: {last}.\n", clip(&started, LONGEST_TIME))
}

fn refusals(state: &RunState) -> String {
    if state.outcomes.refusals.is_empty() {
        return String::new();
    }
    let share = REFUSALS / state.outcomes.refusals.len();
    let reasons: String = state
        .outcomes
        .refusals
        .iter()
        .map(|reason| format!("- {}\n", clip_middle(reason.trim(), share)))
        .collect();
    let reasons = claims::block(Source::Outputs, &claims::fence(&state.nonce, &reasons), &reasons);
    let claimed = if state.options.ends_with_last_tick() {
        "ticked its item, and the tick did not count"
    } else {
        "promised completion. It was refused"
    };
    format!(
        "## Completion was refused\n\nThe session before {claimed}, because:\n\n{reasons}\nFix this first.\n"
    )
}

fn fruitless(paragraph: Option<&str>, seed: &str) -> String {
    let text = paragraph.map_or(String::new(), |paragraph| clip(paragraph.trim(), PARAGRAPH));
    if text.is_empty() {
        return text;
    }
    let block = claims::block(Source::Sessions, &claims::fence(seed, &text), &text);
    format!("## The last session made no progress\n\n{block}")
}

#[cfg(test)]
mod tests;
