//! The session's item, the steps it takes, and the items that it leaves alone.

use super::checks;
use crate::size::Size;
use crate::state::RunState;
use crate::text::{clip, one_line};

/// How many of the items that are not to be taken are named at most: the plan has the rest.
const NAMED: usize = 5;
/// How much of the session's own item, and of one that is only named.
const OWN: usize = 200;
const OTHER: usize = 80;

/// Of an item that was set aside and is taken up again.
pub const BEGUN_BEFORE: &str = "It was set aside: earlier sessions began it and made no progress. Check how far it is before you continue with it.";

/// What is to be done with an item that is too large for one window.
const SPLIT: &str = "It is marked as too large for one window: first split it. Add its parts as `- [ ]` lines below it, do the first part, and tick the item itself when all its parts are ticked.";

/// The section about the session's item. `takeover` is the first step of a session that takes over an item half done.
pub(super) fn section(state: &RunState, item: Option<&str>, takeover: Option<&str>) -> String {
    let file = state.options.todo_file.as_deref().map(one_line);
    let paragraphs = match (&file, item) {
        (Some(file), Some(item)) => vec![
            format!("> {}", clip(&one_line(item), OWN)),
            about(state, file, item),
            not_now(state, item),
            put_back(state, file),
            steps(state, Some(item), &work_on_item(state, Some(item), file), takeover),
        ],
        (Some(file), None) if !state.vanished().is_empty() => {
            vec![put_back(state, file), steps(state, None, &work_on_item(state, None, file), takeover)]
        }
        (Some(file), None) if !state.items.todo_items.is_empty() => vec![format!(
            "Every open item of `{file}` waits for the user's answer. Do nothing, and end your turn."
        )],
        (Some(file), None) => vec![format!(
            "All items of `{file}` are ticked. Check all of the work with {}; fix what fails, then {}.",
            checks::commands(state, item),
            if state.options.ends_with_last_tick() { "end your turn" } else { "make the promise below" }
        )],
        (None, _) => vec![
            "One complete step of the task below.".to_owned(),
            steps(
                state,
                item,
                &Work {
                    names: "the task",
                    this: "one step of it",
                    done: "",
                    unproven: "say why",
                    end: "Commit with a message that names the step, and end your turn.".to_owned(),
                },
                takeover,
            ),
        ],
    };
    let paragraphs: Vec<String> = paragraphs.into_iter().filter(|text| !text.is_empty()).collect();
    format!("## Your item\n\n{}\n", paragraphs.join("\n\n"))
}

/// Which line of the plan it is, and what is special about it.
fn about(state: &RunState, file: &str, item: &str) -> String {
    let is_begun = state.items.set_aside.iter().any(|aside| aside == item);
    let which = match (is_begun || state.items.set_aside.is_empty(), state.items.parked.is_empty()) {
        (true, true) => "",
        (false, true) => " that is not set aside",
        (true, false) => " that does not wait for an answer",
        (false, false) => " that is not set aside and does not wait for an answer",
    };
    let open = state.items.todo_items.len();
    let all = open + state.items.completed_items.len();
    let split = Size::stated(item) == Some(Size::VeryComplex);
    let more = [(is_begun, BEGUN_BEFORE), (split, SPLIT)];
    let more: String =
        more.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| format!(" {words}")).collect();
    // Its parts, once it is split, stand there, too.
    if state.options.item_brief.is_some() && all == 1 {
        return format!("It stands in `{file}`, which has this item alone.{more}");
    }
    format!("It is the first open item of `{file}`{which} ({open} of {all} items open).{more}")
}

/// The open items that no session may take now; nothing if there are none.
fn not_now(state: &RunState, own: &str) -> String {
    let why = |item: &String| {
        let is_half_done = state.half_done.iter().any(|waiting| waiting.current_todo_item == *item);
        if item == own {
            None
        } else if state.is_parked(item) {
            Some("waits for the user's answer")
        } else if state.items.set_aside.contains(item) {
            Some("set aside: sessions made no progress on it")
        } else if is_half_done {
            Some("half done: a later session resumes it")
        } else {
            None
        }
    };
    let named: Vec<String> = state
        .items
        .todo_items
        .iter()
        .filter_map(|item| why(item).map(|why| format!("\"{}\" ({why})", clip(&one_line(item), OTHER))))
        .collect();
    if named.is_empty() {
        return String::new();
    }
    let rest = named.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    format!("Not to be taken now: {}{more}.", named[..named.len() - rest].join(", "))
}

/// What the plan has lost, and what to do about it; nothing if it has lost nothing.
fn put_back(state: &RunState, file: &str) -> String {
    let items: Vec<String> =
        state.vanished().iter().map(|item| format!("- {}", clip(&one_line(item), OWN))).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "These items were in `{file}` and are gone, unticked. First put each back as a `- [ ]` line, or as `- [x]` if it is done:\n\n{}",
        items.join("\n")
    )
}

/// What differs between an item of a plan and a step of a task without one.
struct Work<'a> {
    names: &'a str,
    this: &'a str,
    /// What to do if the work is done already.
    done: &'a str,
    /// What to do with work that cannot be proven.
    unproven: &'a str,
    end: String,
}

fn work_on_item(state: &RunState, item: Option<&str>, file: &str) -> Work<'static> {
    let is_trivial = item.is_some_and(|item| Size::stated(item) == Some(Size::Trivial));
    let then = if state.options.pack || is_trivial {
        " You may then be told to continue with the next item in this session: do so only then."
    } else {
        ""
    };
    Work {
        names: "the item",
        this: "this item",
        done: "if it is done already and you can prove it, tick it and end your turn",
        unproven: "leave the item unticked and note why below it",
        end: format!(
            "Tick its line in `{file}` (`- [x]`), commit with a message that names the item, and end your turn.{then}"
        ),
    }
}

/// The steps of a session. A verify command judges the whole run: while items are open it may fail for their sake.
fn steps(state: &RunState, item: Option<&str>, work: &Work<'_>, takeover: Option<&str>) -> String {
    let checks = checks::commands(state, item);
    let Work { names, this, done, unproven, end } = work;
    let joined = |mark: &str| if done.is_empty() { String::new() } else { format!("{mark} {done}") };
    let first = match takeover {
        Some(step) => format!("{step}{}.", joined(";")),
        None => format!(
            "Look first: `git status`, `git log -5`, and the code that {names} is about. Do not assume that it is missing{}.",
            joined(":")
        ),
    };
    let left = if state.options.commands().is_empty() {
        ""
    } else {
        ", except what fails only because other work is still open"
    };
    format!(
        "1. {first}\n\
         2. Do {this}, completely, and nothing else. No placeholders. Small decisions are yours.\n\
         3. Prove it with {checks}. Fix what fails{left}. What you cannot fix: {unproven}. Never change, skip or delete a test or a check to make it pass.\n\
         4. {end}\n\n\
         Commit each part as soon as it is complete and its checks pass, as the project's rules (CLAUDE.md) allow: what is not committed may be lost."
    )
}
