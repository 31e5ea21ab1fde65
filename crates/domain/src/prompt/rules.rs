//! Renders the rules for every session of a run. The promise line comes last.

use super::checks;
use crate::promise;
use crate::state::RunState;
use crate::text::{to_line_for_backticks, to_safe_single_line, truncate_end};

/// The rule for a session with the working memory. It is shown in addition to the instructions of the MCP server.
const MEMORY_RULE: &str = "This run has a working memory (the `plimsoll` tools). Its registers and heap come from earlier sessions, and the next session gets them from you. R0 is the run's objective. Keep R1 PLAN, R2 NEXT and R7 STATUS up to date. Put on the heap what a later session would get wrong without it. `pop_frame` in the root frame means the same as the promise line below; call it only when everything is done.";

/// Renders the rule for a session without the working memory: it must write notes into the plan, which survive the
/// end of the session.
fn render_note_rule(file: &str) -> String {
    format!(
        "If the next session could get something wrong (a value, a decision and its reason, a dead end), write it down at once as one line `  > …` under the item in `{file}`. Leave out what git shows."
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
    format!("Do not guess a missing value or decision: look it up in the files or git{turn_log_hint}.")
}

/// Renders the rule to use subagents: which one serves which work, and the tokens that they have saved in this
/// project, if known. It names only agents that Claude Code has built in, and the frames of the working memory.
fn render_context_saving_rule(state: &RunState) -> String {
    let subagent_savings_note = state
        .project_subagent_usage()
        .render_summary()
        .map(|summary| format!(" (in this project so far, {summary})"));
    let frame_hint =
        if state.options.uses_working_memory { " A sub-task of several steps: `push_frame`." } else { "" };
    format!(
        "Open a file only when you need it. Leave work that fills your window to subagents; only their answer comes back{}.\n  To find files and code: `Explore`. For research and long logs: `general-purpose`.{frame_hint}",
        subagent_savings_note.unwrap_or_default()
    )
}

/// The rule against background processes, which may keep ports and files that the next session needs.
const NO_BACKGROUND_PROCESS_RULE: &str =
    "Before your turn ends, stop every server and watcher that you started.";

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
            "These paths are protected: {}. Never add, change or remove anything there, not even briefly or as a tool's cache. While they differ from the start of the run, no tick counts and the run cannot complete. If one of them is wrong, ask the user.",
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
    let hook_message_rule = "A hook message that begins with `CCS_` comes from the run. Obey it at once.";
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
            "If only the user can help with the item (a key, a decision), write the question under it as `  ? …`, commit, and end your last message with this line and your reason. The run continues with the other items.",
            "Only if no item is open and the checks pass",
        ),
        None => (
            "If only the user can help (a key, a decision), end your last message with this line and your reason.",
            "Only if the whole task is done and the checks pass",
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
            format!(" The task text names `{conflicting_promise}`. It does not count here; leave it out.")
        });
        return format!(
            "## Rules of the run\n\n{rules}- {blocked_rule}\n\n{blocked_promise}\n\n- Your tick marks the item as done.{verification_note}{other_promise_note}\n"
        );
    }
    let other_promise_note = other_promise.map_or(String::new(), |conflicting_promise| {
        format!("\nThe task text names `{conflicting_promise}`. It does not count here; only the line above does.\n")
    });
    format!(
        "## Rules of the run\n\n{rules}- {blocked_rule}\n\n{}\n\n- {completion_condition}, end your last message with exactly this line as plain text (no bold, no backticks, nothing after it).{verification_note}\n\n{}\n{other_promise_note}",
        blocked_promise,
        promise::render_completion_line(&state.options.completion_promise, &state.promise_code),
    )
}
