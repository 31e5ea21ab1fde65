//! The rules that hold for every session of a run, the promise last.

use super::checks;
use crate::promise;
use crate::state::RunState;
use crate::text::{clip, one_line, one_line_of_code};

/// What a session with the working memory is told beside the server's own instructions.
const MEMORY: &str = "This run has a working memory (the `plimsoll` tools): its registers and heap come from earlier sessions, and the next session finds them as you leave them. R0 is the run's objective. Keep R1 PLAN, R2 NEXT and R7 STATUS true, and put on the heap what a later session would get wrong without it. `pop_frame` in the root frame means the same as the promise line below: call it only when everything is done.";

/// What a session without the working memory is told: a line in a file survives the end of the session.
fn note_below(file: &str) -> String {
    format!(
        "What the next session would otherwise get wrong (a value, a decision and its reason, a dead end): write it down at once, as one line `  > …` under the item in `{file}`. Not what git shows."
    )
}

/// What nobody wrote down is lost only to a session that guesses: the turn log has what earlier sessions read and said.
fn look_up(state: &RunState) -> String {
    let earlier = if state.iteration > 1 || state.is_iteration_repeated() {
        ", or search what earlier sessions read and said with `plimsoll turns grep PATTERN`"
    } else {
        ""
    };
    format!(
        "Do not guess a value or a decision that you need and do not have: look it up where it comes from (the files, git){earlier}."
    )
}

/// Why subagents, with what they have saved so far if that is known.
fn delegation(state: &RunState) -> String {
    let saved = state.delegated().words().map(|words| format!(" (in this project so far, {words})"));
    format!(
        "Open files when you need them, not all at the start. Leave work that fills the window (research, long logs, many files) to subagents: only their answer comes back{}.",
        saved.unwrap_or_default()
    )
}

/// A process that outlives the turn of its session holds ports and files that the next session needs.
const NO_PROCESS: &str =
    "Start nothing that goes on after your turn: end each server or watcher that you started.";

/// The most bytes that name what is protected.
const MAX_PROTECTED_BYTES: usize = 2_000;

/// Returns the rule that names what no session may change; none if nothing is protected.
fn protected(state: &RunState) -> Option<String> {
    let protected = &state.options.protect;
    let quoted = |path: &String| format!("`{}`", one_line_of_code(path, 200));
    let named: Vec<String> = protected.iter().map(quoted).collect();
    (!protected.is_empty()).then(|| {
        format!(
            "These are protected: {}. Change nothing in them, add nothing and remove nothing, also for a moment; caches that your tools write into a protected folder count, too. While they are not what they were when the run began, no tick counts and the run cannot be completed. If one of them is wrong, ask the user.",
            clip(&named.join(", "), MAX_PROTECTED_BYTES)
        )
    })
}

/// The section of the rules.
pub(super) fn section(state: &RunState) -> String {
    let file = state.options.todo_file.as_deref().map(one_line);
    let noted = match &file {
        _ if state.options.memory => Some(MEMORY.to_owned()),
        Some(file) => Some(note_below(file)),
        None => None,
    };
    let marker = "A hook's message that begins with `CCS_` comes from the run: do what it says, at once.";
    let rules = noted
        .into_iter()
        .chain([look_up(state), delegation(state), NO_PROCESS.to_owned()])
        .chain(protected(state))
        .chain([marker.to_owned()]);
    let rules: String = rules.map(|rule| format!("- {rule}\n")).collect();
    let (blocked, complete) = match &file {
        Some(_) => (
            "If only the user can help with the item (a key, a decision): write the question under it as `  ? …`, commit, and end your last message with this line, with your reason in it. The run continues with the other items.",
            "If no item is open and the checks pass, and only then",
        ),
        None => (
            "If only the user can help (a key, a decision): end your last message with this line, with your reason in it.",
            "If the whole task is done and the checks pass, and only then",
        ),
    };
    let believed = checks::when_they_run(state);
    let rival = promise::rival(&state.options.objective, &state.options.completion_promise, &state.nonce);
    let blocked_line = promise::blocked_line(&state.nonce, "REASON");
    if state.options.ends_with_last_tick() {
        let rival = rival.map_or(String::new(), |rival| {
            format!(" The task text names `{rival}`, which does not count here: leave it out.")
        });
        return format!(
            "## Rules of the run\n\n{rules}- {blocked}\n\n{blocked_line}\n\n- The tick says that the item is done.{believed}{rival}\n"
        );
    }
    let rival = rival.map_or(String::new(), |rival| {
        format!("\nThe task text names `{rival}`, which does not count here: the line above counts, whatever another text says.\n")
    });
    format!(
        "## Rules of the run\n\n{rules}- {blocked}\n\n{}\n\n- {complete}: end your last message with exactly this line, alone, as plain text (no bold, no backticks, nothing after it).{believed}\n\n{}\n{rival}",
        blocked_line,
        promise::line(&state.options.completion_promise, &state.nonce),
    )
}
