//! Attributes a session's work to an item of the plan, and picks the next item.

use crate::current_item::choose_current_item;

/// The plan and the session's changes at a checkpoint.
#[derive(Debug, Clone, Default)]
pub struct AttributionInput<'a> {
    /// The item last assigned to the session.
    pub assigned_item: Option<&'a str>,
    /// Open items, in plan order.
    pub open_items: &'a [String],
    /// Open items that are skipped while other items are open.
    pub set_aside_items: &'a [String],
    /// Open items that wait for an answer.
    pub parked_items: &'a [String],
    /// Items ticked in this session.
    pub ticked_items: &'a [String],
    /// True if files were changed after the last tick.
    pub has_changes_since_tick: bool,
    /// True if the session was instructed not to start the next item.
    pub must_stop_before_next: bool,
}

/// The item that the next session works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextItem {
    /// `None` if no item is open.
    pub item: Option<String>,
    /// True if the session has worked on this item: it has ticked nothing, or has
    /// changed files since its last tick.
    pub is_started: bool,
}

/// Returns the session's assigned item while it is open, otherwise the next open item, and whether work on it has
/// started. Changes made before the last tick belong to the ticked item, so the returned item counts as started
/// only if files changed after that tick.
pub fn assigned_or_next_item_and_whether_started(input: &AttributionInput<'_>) -> NextItem {
    let open_assigned_item = input.open_items.iter().find(|item| Some(item.as_str()) == input.assigned_item);
    let item = open_assigned_item.or_else(|| next_open_item(input)).cloned();
    let has_ticked = !input.ticked_items.is_empty();
    let is_started = !input.must_stop_before_next && (!has_ticked || input.has_changes_since_tick);
    NextItem {
        is_started: is_started && (item.is_some() || input.open_items.is_empty() && !has_ticked),
        item,
    }
}

fn next_open_item<'a>(input: &AttributionInput<'a>) -> Option<&'a String> {
    choose_current_item(
        input.open_items.iter().filter(|item| !input.parked_items.contains(item)),
        input.set_aside_items,
    )
}

/// Claude Code's tools that change no files.
const READ_ONLY_TOOLS: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "TodoWrite", "WebFetch", "WebSearch", "ToolSearch", "AskUserQuestion"];
/// Programs that a command line may run without counting as a change of files.
const PROGRAMS_NOT_COUNTED_AS_CHANGE: [&str; 6] = ["git", "cd", "true", "echo", "head", "tail"];

/// Returns true if a tool call may have changed project files. `command` is the command line of a shell tool; it
/// counts unless it runs only `PROGRAMS_NOT_COUNTED_AS_CHANGE`. A commit does not count, although its hooks may format files.
pub fn may_change_files_besides_commits(tool_name: &str, command: Option<&str>) -> bool {
    let Some(command) = command else { return !READ_ONLY_TOOLS.contains(&tool_name) };
    // A commit message may be passed as a here-document.
    let command = command.split("<<").next().unwrap_or_default();
    let mut simple_commands = command
        .split(['&', '|', ';', '\n'])
        .map(str::trim)
        .filter(|simple_command| !simple_command.is_empty());
    let program_name =
        |simple_command: &str| simple_command.split_whitespace().next().unwrap_or_default().to_owned();
    !simple_commands
        .all(|simple_command| PROGRAMS_NOT_COUNTED_AS_CHANGE.contains(&program_name(simple_command).as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_and_read_only_tools_change_no_files() {
        for (tool, command, expected) in [
            ("Read", None, false),
            ("Edit", None, true),
            ("mcp__files__write", None, true),
            ("Bash", Some("git add -A && git commit -qm 'Parser' || true"), false),
            ("Bash", Some("cd src && git commit -am \"$(cat <<'EOF'\nParser\n\nlong; text\nEOF\n)\""), false),
            ("Bash", Some("git status --short | head"), false),
            ("Bash", Some("cargo fmt; git commit -am Parser"), true),
            ("Bash", Some("ls"), true),
            // Quoted text is not parsed. Reporting a change too many is safer than missing one.
            ("Bash", Some("git commit -m 'a; b'"), true),
        ] {
            assert_eq!(may_change_files_besides_commits(tool, command), expected, "{tool} {command:?}");
        }
    }

    fn to_strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn work_belongs_to_the_sessions_own_item_until_it_is_ticked() {
        let (open, none) = (to_strings(&["printer", "writer"]), to_strings(&[]));
        let parser = to_strings(&["parser"]);
        for (own, open, ticked, changed_since, stops, expected) in [
            // Half done: the session's own item, whatever the plan's order.
            (Some("printer"), &open, &none, false, false, (Some("printer"), true)),
            (Some("writer"), &open, &none, false, false, (Some("writer"), true)),
            // Ticked, and nothing changed since: the next item is not started.
            (Some("parser"), &open, &parser, false, false, (Some("printer"), false)),
            // Ticked, and files changed since.
            (Some("parser"), &open, &parser, true, false, (Some("printer"), true)),
            // `--pack`: told to do the printer after the parser.
            (Some("printer"), &open, &parser, true, false, (Some("printer"), true)),
            (Some("printer"), &open, &parser, false, false, (Some("printer"), false)),
            // `--pack`: told to stop before the next item.
            (Some("parser"), &open, &parser, true, true, (Some("printer"), false)),
            // The last item is ticked: no item is next, even if files changed since.
            (Some("parser"), &none, &parser, false, false, (None, false)),
            (Some("parser"), &none, &parser, true, false, (None, false)),
            // An item that was removed from the plan, and a run without a plan.
            (Some("gone"), &open, &none, false, false, (Some("printer"), true)),
            (None, &none, &none, false, false, (None, true)),
        ] {
            let input = AttributionInput {
                assigned_item: own,
                open_items: open,
                ticked_items: ticked,
                has_changes_since_tick: changed_since,
                must_stop_before_next: stops,
                ..AttributionInput::default()
            };
            let next_item = assigned_or_next_item_and_whether_started(&input);
            assert_eq!((next_item.item.as_deref(), next_item.is_started), expected, "{input:?}");
        }
    }

    #[test]
    fn an_item_that_was_set_aside_is_not_next() {
        let (open, set_aside) = (to_strings(&["stuck", "printer"]), to_strings(&["stuck"]));
        let input = AttributionInput {
            assigned_item: Some("parser"),
            open_items: &open,
            set_aside_items: &set_aside,
            ..AttributionInput::default()
        };
        assert_eq!(assigned_or_next_item_and_whether_started(&input).item.as_deref(), Some("printer"));
    }
}
