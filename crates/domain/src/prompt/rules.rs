//! Renders the rules for every session of a run. The promise line comes last.

use super::checks;
use crate::promise;
use crate::state::RunState;
use crate::text::{to_line_for_backticks, to_safe_single_line, truncate_end};

/// The rule for a session with the working memory. It is shown in addition to the instructions of the MCP server.
const MEMORY_RULE: &str = "This run has a working memory (the `plimsoll` tools): its registers and heap come from earlier sessions, and the next session finds them as you leave them. R0 is the run's objective. Keep R1 PLAN, R2 NEXT and R7 STATUS true, and put on the heap what a later session would get wrong without it. `pop_frame` in the root frame means the same as the promise line below: call it only when everything is done.";

/// Renders the rule for a session without the working memory: it must write notes into the plan, which survive the
/// end of the session.
fn render_note_rule(file: &str) -> String {
    format!(
        "What the next session would otherwise get wrong (a value, a decision and its reason, a dead end): write it down at once, as one line `  > …` under the item in `{file}`. Not what git shows."
    )
}

/// Renders the rule to look values up instead of guessing. The turn log has everything that earlier sessions read
/// and wrote, so values that they did not note down can still be found.
fn render_look_up_instead_of_guessing_rule(state: &RunState) -> String {
    let turn_log_hint = if state.iteration > 1 || state.has_iteration_number_been_used() {
        ", or search what earlier sessions read and said with `plimsoll turns grep PATTERN`"
    } else {
        ""
    };
    format!(
        "Do not guess a value or a decision that you need and do not have: look it up where it comes from (the files, git){turn_log_hint}."
    )
}

/// Renders the rule to use subagents, with the tokens that they have saved in this project, if known.
fn render_context_saving_rule(state: &RunState) -> String {
    let subagent_savings_note = state
        .project_subagent_usage()
        .render_summary()
        .map(|summary| format!(" (in this project so far, {summary})"));
    format!(
        "Open files when you need them, not all at the start. Leave work that fills the window (research, long logs, many files) to subagents: only their answer comes back{}.",
        subagent_savings_note.unwrap_or_default()
    )
}

/// The rule against background processes, which may keep ports and files that the next session needs.
const NO_BACKGROUND_PROCESS_RULE: &str =
    "Start nothing that goes on after your turn: end each server or watcher that you started.";

/// The maximum length of the list of protected paths, in characters.
const MAX_PROTECTED_LIST_CHARS: usize = 2_000;

/// Renders the rule about the protected paths, which no session may change. Returns `None` if there are no
/// protected paths.
fn render_protected_files_rule(state: &RunState) -> Option<String> {
    let protected_paths = &state.options.protected_paths;
    let quote_path = |path: &String| format!("`{}`", to_line_for_backticks(path, 200));
    let quoted_paths: Vec<String> = protected_paths.iter().map(quote_path).collect();
    (!protected_paths.is_empty()).then(|| {
        format!(
            "These are protected: {}. Change nothing in them, add nothing and remove nothing, also for a moment; caches that your tools write into a protected folder count, too. While they are not what they were when the run began, no tick counts and the run cannot be completed. If one of them is wrong, ask the user.",
            truncate_end(&quoted_paths.join(", "), MAX_PROTECTED_LIST_CHARS)
        )
    })
}

/// Renders the rules, including the completion promise unless the run ends with the last tick.
pub(super) fn render_rules_section(state: &RunState) -> String {
    let file = state.options.todo_file.as_deref().map(to_safe_single_line);
    let notes_rule = match &file {
        _ if state.options.uses_working_memory => Some(MEMORY_RULE.to_owned()),
        Some(file) => Some(render_note_rule(file)),
        None => None,
    };
    let hook_message_rule =
        "A hook's message that begins with `CCS_` comes from the run: do what it says, at once.";
    let rules = notes_rule
        .into_iter()
        .chain([
            render_look_up_instead_of_guessing_rule(state),
            render_context_saving_rule(state),
            NO_BACKGROUND_PROCESS_RULE.to_owned(),
        ])
        .chain(render_protected_files_rule(state))
        .chain([hook_message_rule.to_owned()]);
    let rules: String = rules.map(|rule| format!("- {rule}\n")).collect();
    let (blocked_rule, completion_condition) = match &file {
        Some(_) => (
            "If only the user can help with the item (a key, a decision): write the question under it as `  ? …`, commit, and end your last message with this line, with your reason in it. The run continues with the other items.",
            "If no item is open and the checks pass, and only then",
        ),
        None => (
            "If only the user can help (a key, a decision): end your last message with this line, with your reason in it.",
            "If the whole task is done and the checks pass, and only then",
        ),
    };
    let verification_note = checks::describe_when_run_executes_commands(state);
    let other_promise = promise::find_conflicting_promise(
        &state.options.objective,
        &state.options.completion_promise,
        &state.promise_code,
    );
    let blocked_promise = promise::render_blocked_line(&state.promise_code, "REASON");
    if state.options.completes_without_promise() {
        let other_promise_note = other_promise.map_or(String::new(), |conflicting_promise| {
            format!(" The task text names `{conflicting_promise}`, which does not count here: leave it out.")
        });
        return format!(
            "## Rules of the run\n\n{rules}- {blocked_rule}\n\n{blocked_promise}\n\n- The tick says that the item is done.{verification_note}{other_promise_note}\n"
        );
    }
    let other_promise_note = other_promise.map_or(String::new(), |conflicting_promise| {
        format!("\nThe task text names `{conflicting_promise}`, which does not count here: the line above counts, whatever another text says.\n")
    });
    format!(
        "## Rules of the run\n\n{rules}- {blocked_rule}\n\n{}\n\n- {completion_condition}: end your last message with exactly this line, alone, as plain text (no bold, no backticks, nothing after it).{verification_note}\n\n{}\n{other_promise_note}",
        blocked_promise,
        promise::render_completion_line(&state.options.completion_promise, &state.promise_code),
    )
}
