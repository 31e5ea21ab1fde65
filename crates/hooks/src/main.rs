//! RULE: the hook programs. Each reads one JSON document from standard input, calls its use case in `plimsoll_flows`, and
//! writes one answer.
//!
//! They are one program under several names, as busybox is: they share nearly all their code, so one file is a fifth of
//! what eight are, is linked once, and is in memory once however many of its names a session starts. A settings file
//! names what it wants by the name, and so does `ps`.
//!
//! They take no options, but for the part that an entry of `plimsoll-memory` plays, the word by which a plugin's entry is
//! known, and `version`. They start no shell and no thread, link nothing that costs start-up, and never end a session by a
//! fault of their own: then they answer `{}` and say one line on standard error.

mod hook;

use hook::{origin, run};
use plimsoll_flows::hooks;
use plimsoll_flows::memory::{Part, memory};
use std::process::ExitCode;

/// A static program has musl's allocator otherwise, which takes three times as long and a third of a hook's time.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// A hook from its payload to its answer.
type Program = fn() -> ExitCode;

/// The names, and what each of them does. `programs.txt` has the names for the scripts that make the links.
const PROGRAMS: [(&str, Program); 8] = [
    // The frames of the working memory and their subagents: PreToolUse, PostToolUse, SubagentStart, SubagentStop, Stop.
    ("plimsoll-frame", || run(|input| hooks::subagent::frames(input, origin()))),
    // The working memory as the model sees it: SessionStart (one entry for each part), UserPromptSubmit, PostToolBatch.
    ("plimsoll-memory", || run(|input| memory(input, part()))),
    // The monitor: PostToolBatch, and PostToolUse where the client is too old for it.
    ("plimsoll-post-tool", || run(hooks::post_tool::post_tool)),
    // A checkpoint before the client forgets: PreCompact and PostCompact.
    ("plimsoll-pre-compact", || run(hooks::pre_compact::pre_compact)),
    // The end of a session: SessionEnd.
    ("plimsoll-session-end", || run(hooks::session_end::session_end)),
    // The briefing: SessionStart.
    ("plimsoll-session-start", || run(|input| hooks::session_start::session_start(input, origin()))),
    ("plimsoll-statusline", statusline),
    // The gate: Stop and StopFailure.
    ("plimsoll-stop-gate", || run(hooks::stop::stop_gate)),
];

fn main() -> ExitCode {
    let name = hook::own_name();
    match PROGRAMS.iter().find(|(known, _)| *known == name) {
        Some((_, program)) => program(),
        None => hook::refuse(&PROGRAMS.map(|(known, _)| known)),
    }
}

/// The part of the memory that an entry shows.
fn part() -> Option<Part> {
    std::env::args().nth(1).and_then(|word| Part::named(&word))
}

/// The status line; or, with `--wrap COMMAND`, another one that we measure for.
fn statusline() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--wrap") => run(|input| hooks::statusline::wrap(input, &arguments.collect::<Vec<_>>())),
        _ => run(hooks::statusline::statusline),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_links_that_the_scripts_make_are_the_names_that_are_known() {
        let listed: Vec<&str> = include_str!("../programs.txt").lines().collect();
        assert_eq!(listed, super::PROGRAMS.map(|(name, _)| name));
        assert_eq!(listed, plimsoll_protocol::settings::PROGRAMS);
    }
}
