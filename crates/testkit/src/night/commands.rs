//! The agent's commands, and how it ends a turn.

use super::knowledge::{Knowledge, Notes};
use super::rules::Rule;
use super::task::{MARK, PART};
use crate::scripted_model::Step;

/// What it asks about an item.
pub(super) fn question(file: &str) -> String {
    format!("Convert {file} waits for an answer: which harbour?")
}

/// The command that ticks an item and commits.
pub(super) fn ticking(file: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] Convert {file}$/- [x] Convert {file}/' fix_plan.md; git add -A; \
         git commit -qm 'Convert {file}'; echo \"finished {file}; $(grep -c '^- \\[ \\]' fix_plan.md) open\""
    )
}

/// Reads the plan and, if the prompt asks for notes elsewhere, these; who is told to look first asks git as well.
pub(super) fn read_plan(known: &Knowledge) -> Step {
    let notes = match &known.notes {
        Some(Notes::After(file)) => format!(" {file}"),
        Some(Notes::Under(_)) | None => String::new(),
    };
    let git = if known.has(Rule::LookFirst) { "; git status --short" } else { "" };
    Step::bash(format!("cat{notes} fix_plan.md 2> /dev/null{git}"))
}

/// Looks how far a file is.
pub(super) fn look(file: &str) -> Step {
    Step::bash(format!("echo \"At {file} line $(( $(grep -c '{MARK}$' {file}) + 1 )) of $(wc -l < {file})\""))
}

/// Converts a part, and reads it.
pub(super) fn convert(file: &str, from: u32) -> Step {
    let to = from + PART - 1;
    Step::bash(format!(
        "sed -n '{from},{to}p' {file}; sed -i '{from},{to}s/$/{MARK}/' {file}; \
         echo \"converted {file} {from}-{to} of $(wc -l < {file})\""
    ))
}

/// The command that notes something about an item.
pub(super) fn note(notes: &Notes, file: &str, words: &str) -> String {
    match notes {
        Notes::Under(list) => format!("sed -i '/^- \\[.\\] Convert {file}$/a\\  > {words}' {list}"),
        Notes::After(list) => format!("mkdir -p \"$(dirname {list})\"; echo '- {words}' >> {list}"),
    }
}

/// Why a turn ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    /// Everything is done, as far as the agent says.
    Done,
    /// An item is, or the session is.
    Open,
    /// Only a person can help.
    Blocked,
}

/// The end of a turn: with the line that the prompt wants if everything is done, and with a status if it wants one.
pub(super) fn say(known: &Knowledge, words: &str, end: End) -> Step {
    let status = match end {
        End::Done => "COMPLETE\nEXIT_SIGNAL: true",
        End::Open => "IN_PROGRESS\nEXIT_SIGNAL: false",
        End::Blocked => "BLOCKED\nEXIT_SIGNAL: false",
    };
    let line = if known.promise.starts_with("EXIT_SIGNAL") {
        format!("\n\n---RALPH_STATUS---\nSTATUS: {status}\n---END_RALPH_STATUS---")
    } else if end == End::Done {
        format!("\n\n{}", known.promise)
    } else {
        String::new()
    };
    Step::text(format!("{words}{line}"))
}
