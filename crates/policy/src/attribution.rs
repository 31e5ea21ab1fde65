//! Which item does the work of a session belong to, and which one is next?

use crate::item_in_hand::first_in_hand;

/// What the list and the files show at a checkpoint.
#[derive(Debug, Clone, Default)]
pub struct Seen<'a> {
    /// The item that the session was told to do last.
    pub own: Option<&'a str>,
    /// Open items, in the list's order.
    pub open: &'a [String],
    /// Open items that are passed over while others are open.
    pub set_aside: &'a [String],
    /// Open items that wait for an answer.
    pub parked: &'a [String],
    /// Items that were ticked in this session.
    pub ticked: &'a [String],
    /// True if files were changed after the last of these ticks.
    pub changed_since_tick: bool,
    /// True if the session was told not to begin the next item.
    pub stops_before_next: bool,
}

/// The item that the next session works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Current {
    /// The item; none if no item is open.
    pub item: Option<String>,
    /// False if nothing was changed for it yet.
    pub is_begun: bool,
}

/// The session's own item while that is open, else the next open one. What was changed before the last tick belongs to
/// what was ticked.
pub fn current(seen: &Seen<'_>) -> Current {
    let own = seen.open.iter().find(|item| Some(item.as_str()) == seen.own);
    let item = own.or_else(|| next(seen)).cloned();
    let has_ticked = !seen.ticked.is_empty();
    let is_begun = !seen.stops_before_next && (!has_ticked || seen.changed_since_tick);
    Current { is_begun: is_begun && (item.is_some() || seen.open.is_empty() && !has_ticked), item }
}

fn next<'a>(seen: &Seen<'a>) -> Option<&'a String> {
    first_in_hand(seen.open.iter().filter(|item| !seen.parked.contains(item)), seen.set_aside)
}

/// Tools of the client that change no file of the project.
const ONLY_LOOK: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "TodoWrite", "WebFetch", "WebSearch", "ToolSearch", "AskUserQuestion"];
/// What is beside git in a command line that only commits.
const BESIDE_GIT: [&str; 6] = ["git", "cd", "true", "echo", "head", "tail"];

/// Whether a tool call may have changed a file of the project by what the agent meant: a commit, whose hooks may
/// format files, has not.
pub fn may_change_files(tool: &str, command: Option<&str>) -> bool {
    let Some(command) = command else { return !ONLY_LOOK.contains(&tool) };
    // A commit's message may come as a here-document.
    let command = command.split("<<").next().unwrap_or_default();
    let mut parts = command.split(['&', '|', ';', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let begins = |part: &str| part.split_whitespace().next().unwrap_or_default().to_owned();
    !parts.all(|part| BESIDE_GIT.contains(&begins(part).as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_and_a_look_change_nothing() {
        for (tool, command, expected) in [
            ("Read", None, false),
            ("Edit", None, true),
            ("mcp__files__write", None, true),
            ("Bash", Some("git add -A && git commit -qm 'Parser' || true"), false),
            ("Bash", Some("cd src && git commit -am \"$(cat <<'EOF'\nParser\n\nlong; text\nEOF\n)\""), false),
            ("Bash", Some("git status --short | head"), false),
            ("Bash", Some("cargo fmt; git commit -am Parser"), true),
            ("Bash", Some("ls"), true),
            // What is in quotes is not looked into: better one file too many than one too few.
            ("Bash", Some("git commit -m 'a; b'"), true),
        ] {
            assert_eq!(may_change_files(tool, command), expected, "{tool} {command:?}");
        }
    }

    fn items(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn work_belongs_to_the_sessions_own_item_until_that_is_ticked() {
        let (open, none) = (items(&["printer", "writer"]), items(&[]));
        let parser = items(&["parser"]);
        for (own, open, ticked, changed_since, stops, expected) in [
            // Half done: its own item, whatever the list's order.
            (Some("printer"), &open, &none, false, false, (Some("printer"), true)),
            (Some("writer"), &open, &none, false, false, (Some("writer"), true)),
            // Ticked, and nothing after it: the next one is not begun.
            (Some("parser"), &open, &parser, false, false, (Some("printer"), false)),
            // Ticked, and continued.
            (Some("parser"), &open, &parser, true, false, (Some("printer"), true)),
            // `--pack`: told to do the printer after the parser.
            (Some("printer"), &open, &parser, true, false, (Some("printer"), true)),
            (Some("printer"), &open, &parser, false, false, (Some("printer"), false)),
            // `--pack`: told to stop before the next one.
            (Some("parser"), &open, &parser, true, true, (Some("printer"), false)),
            // The last item.
            (Some("parser"), &none, &parser, false, false, (None, false)),
            (Some("parser"), &none, &parser, true, false, (None, false)),
            // An item that was removed from the plan, and a run without a plan.
            (Some("gone"), &open, &none, false, false, (Some("printer"), true)),
            (None, &none, &none, false, false, (None, true)),
        ] {
            let seen = Seen {
                own,
                open,
                ticked,
                changed_since_tick: changed_since,
                stops_before_next: stops,
                ..Seen::default()
            };
            let current = current(&seen);
            assert_eq!((current.item.as_deref(), current.is_begun), expected, "{seen:?}");
        }
    }

    #[test]
    fn an_item_that_is_set_aside_is_not_next() {
        let (open, aside) = (items(&["stuck", "printer"]), items(&["stuck"]));
        let seen = Seen { own: Some("parser"), open: &open, set_aside: &aside, ..Seen::default() };
        assert_eq!(current(&seen).item.as_deref(), Some("printer"));
    }
}
