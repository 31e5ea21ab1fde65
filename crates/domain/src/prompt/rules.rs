//! What a session is told to do, whatever its item.

use crate::promise;
use crate::state::RunState;
use crate::text::one_line;

/// What a session with the working memory is told beside the server's own instructions.
const MEMORY: &str = "This run has a working memory (the `plimsoll` tools): its registers and heap come from earlier sessions, and the next session finds them as you leave them. R0 is the run's objective. Keep R1 PLAN, R2 NEXT and R7 STATUS true, and put on the heap what a later session would get wrong without it. `pop_frame` in the root frame means the same as the promise line below: call it only when everything is done.\n\n";

/// What a session without the working memory is told: a line in a file survives the end of the session.
fn note_below(file: &str) -> String {
    format!(
        "Record findings that are in no file (a value, a decision, a dead end) immediately, in `{file}` under the item, each on its own indented line: `  > what you found out`. Later sessions see them.\n\n"
    )
}

/// Work that fills a window, the subagent for it, and what it should return.
const DELEGATION: &str = "\
Load on demand: open files when you need them, not all at the start. Delegate work that fills the window to subagents (the Agent tool): they return the result, and what they read stays out of this window.

| Work | Subagent | Ask it to return |
|------|----------|------------------|
| Exploring the code, research, many or large files | `Explore`, else `general-purpose` | the places, one line about each |
| Reviewing a change | `general-purpose` | the problems, by file and line |
| Test output and logs | `general-purpose` | what failed, and why |
| Documentation | `general-purpose` | the files it wrote |
";

pub(super) fn instructions(state: &RunState, item: &str) -> String {
    let promise = promise::line(&state.options.completion_promise, &state.nonce);
    let rival = promise::rival(&state.options.objective, &state.options.completion_promise, &state.nonce);
    let rival = rival.map_or(String::new(), |rival| {
        format!("\nThe task text names `{rival}`, which does not count here: the line above counts, whatever another text says.\n")
    });
    let blocked = promise::blocked_line(&state.nonce, "REASON");
    let memory = match &state.options.todo_file {
        _ if state.options.memory => MEMORY.to_owned(),
        Some(file) => note_below(&one_line(file)),
        None => String::new(),
    };
    let delegated = state.delegated().words();
    let delegated =
        delegated.map(|words| format!("\nIn this project so far, {words}.\n")).unwrap_or_default();
    let verify = if state.options.verify.is_empty() {
        String::new()
    } else {
        let commands: String =
            state.options.verify.iter().map(|command| format!("- `{}`\n", one_line(command))).collect();
        format!("Completion is believed only when these commands pass:\n\n{commands}\n")
    };
    let unless = match &state.options.todo_file {
        Some(_) => {
            "If only the user can help with the item, write `  ? your question` under it and end with exactly this line instead, with your reason; the other items go on:"
        }
        None => {
            "If you cannot continue without the user, end with exactly this line instead, with your reason:"
        }
    };
    format!(
        "## Instructions\n\n{item}\n{DELEGATION}{delegated}\n{memory}When a message tells you that the context is at L2: finish the current edit, commit, and end your turn with the three lines it asks for.\n\n{verify}When, and only when, everything is done, end your last message with exactly this line, alone, as plain text (no bold, no backticks, nothing after it):\n\n{promise}\n{rival}\n{unless}\n\n{blocked}\n"
    )
}
