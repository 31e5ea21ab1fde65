//! Which tool calls tick items of the plan, and which items they tick.

use plimsoll_protocol::tool::ToolInput;

/// Programs that print and change nothing, as the first word of each part of a command line.
const LOOK_PROGRAMS: [&str; 14] =
    ["cat", "cd", "diff", "echo", "egrep", "git", "grep", "head", "less", "ls", "rg", "tail", "test", "wc"];

/// Returns true for a call that puts a tick into the plan.
pub fn puts_a_tick(input: &ToolInput, plan_file: &str) -> bool {
    let is_plan = input.file_path.as_ref().is_some_and(|path| path.ends_with(plan_file));
    // An edit may show other items' ticks around what it changes.
    let new = input.new_string.as_ref().or(input.content.as_ref());
    let edits = is_plan && count_ticks(new) > count_ticks(input.old_string.as_ref());
    let command = input.command.as_ref().filter(|command| command.contains(plan_file));
    edits || count_ticks(command) > 0
}

fn count_ticks(text: Option<&String>) -> usize {
    text.map_or(0, |text| text.matches("[x").count() + text.matches("[X").count())
}

/// Returns the ticks that a call puts into the plan, each as the index of its item in `items`; `None` for a tick whose item
/// the call does not name, such as `sed -i '3s/\[ \]/[x]/'`.
pub fn ticks_of_call(input: &ToolInput, plan_file: &str, items: &[String]) -> Vec<Option<usize>> {
    if !puts_a_tick(input, plan_file) {
        return Vec::new();
    }
    if let Some(command) = &input.command {
        return if only_looks(command) { Vec::new() } else { ticks_of_command(command, items) };
    }
    let mut before = ticks_in_text(input.old_string.as_ref(), items);
    let mut now = ticks_in_text(input.new_string.as_ref().or(input.content.as_ref()), items);
    now.retain(|tick| match before.iter().position(|known| known == tick) {
        Some(place) => {
            before.swap_remove(place);
            false
        }
        None => true,
    });
    now
}

fn ticks_in_text(text: Option<&String>, items: &[String]) -> Vec<Option<usize>> {
    let mut ticks = Vec::new();
    for words in words_behind(text.map_or("", String::as_str), true) {
        let item = item_named(words, items);
        // Words that are no item's are another item's, which was ticked before or is no longer in the plan.
        if item.is_some() || words.is_empty() {
            ticks.push(item);
        }
    }
    ticks
}

/// A command names its item behind the ticked box, or behind the open box that it looks for.
fn ticks_of_command(command: &str, items: &[String]) -> Vec<Option<usize>> {
    let mut ticks = Vec::new();
    for is_ticked in [true, false] {
        for words in words_behind(command, is_ticked) {
            let item = item_named(words, items);
            if item.is_some() {
                ticks.push(item);
            }
        }
        if !ticks.is_empty() {
            return ticks;
        }
    }
    vec![None]
}

/// Returns the rest of the line behind each ticked or each open box, from its first letter or digit on. A box may be escaped,
/// as in a pattern.
fn words_behind(text: &str, is_ticked: bool) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(place) = rest.find('[') {
        rest = &rest[place + 1..];
        let mark =
            if rest.starts_with(' ') { Some(false) } else { rest.starts_with(['x', 'X']).then_some(true) };
        if mark != Some(is_ticked) {
            continue;
        }
        let after = &rest[1..];
        if let Some(after) = after.strip_prefix('\\').unwrap_or(after).strip_prefix(']') {
            let end = after.find('\n').unwrap_or(after.len());
            words.push(from_first_word(&after[..end]));
        }
    }
    words
}

fn from_first_word(text: &str) -> &str {
    text.trim_start_matches(|letter: char| !letter.is_alphanumeric())
}

/// Returns the item that begins with the same words as this text, the one with most of them: a call may name an item by its
/// beginning, and escape what follows.
fn item_named(text: &str, items: &[String]) -> Option<usize> {
    let (mut best, mut most) = (None, 0);
    for (place, item) in items.iter().enumerate() {
        let item = from_first_word(item);
        let same = item.chars().zip(text.chars()).take_while(|(one, other)| one == other);
        let length: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
        let ends_word = |text: &str| !text[length..].starts_with(char::is_alphanumeric);
        // The first of several that are equally alike.
        if length > most && ends_word(item) && ends_word(text) {
            (best, most) = (Some(place), length);
        }
    }
    best
}

/// Returns true for a call that writes a file that is not the plan. Stricter than
/// [`may_change_files`](crate::attribution::may_change_files): running the tests after a tick does not begin the next item.
pub fn writes_other_file(input: &ToolInput, plan_file: &str) -> bool {
    match (&input.command, &input.file_path) {
        (Some(command), _) => !command.contains(plan_file) && writes(command),
        (None, Some(path)) => {
            !path.ends_with(plan_file) && (input.new_string.is_some() || input.content.is_some())
        }
        (None, None) => false,
    }
}

fn writes(command: &str) -> bool {
    let mut rest = command;
    while let Some(place) = rest.find('>') {
        rest = rest[place + 1..].trim_start_matches(['>', ' ']);
        if !rest.starts_with('&') && !rest.starts_with("/dev/null") {
            return true;
        }
    }
    command.contains(" -i") || command.contains(" -pi")
}

fn only_looks(command: &str) -> bool {
    let mut parts = command.split(['&', '|', ';', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let looks = |part: &str| {
        LOOK_PROGRAMS.contains(&part.split_whitespace().next().unwrap_or_default())
            || part.starts_with("sed -n")
    };
    !writes(command) && parts.all(looks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "fix_plan.md";

    fn items(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn bash(command: &str) -> ToolInput {
        ToolInput { command: Some(command.to_owned()), ..ToolInput::default() }
    }

    fn edit(path: &str, old: &str, new: &str) -> ToolInput {
        let text = |text: &str| Some(text.to_owned());
        ToolInput {
            file_path: text(path),
            old_string: text(old),
            new_string: text(new),
            ..ToolInput::default()
        }
    }

    fn write(path: &str, content: &str) -> ToolInput {
        let text = |text: &str| Some(text.to_owned());
        ToolInput { file_path: text(path), content: text(content), ..ToolInput::default() }
    }

    #[test]
    fn a_call_ticks_the_items_that_it_names() {
        let items = items(&["Item 1", "Item 12", "`parse` dates (medium)", "Parse numbers"]);
        let plan = "/project/fix_plan.md";
        for (input, expected) in [
            (edit(plan, "- [ ] Item 1\n", "- [x] Item 1\n"), vec![Some(0)]),
            (edit(plan, "- [ ] Item 12", "- [X] Item 12 (done)"), vec![Some(1)]),
            (edit(plan, "[ ] Parse", "[x] Parse"), vec![Some(3)]),
            (edit(plan, "[ ] `parse` dates", "[x] `parse` dates"), vec![Some(2)]),
            (edit(plan, "[ ]", "[x]"), vec![None]),
            // What is ticked around it stays as it is.
            (edit(plan, "- [x] Item 1\n- [ ] Item 12", "- [x] Item 1\n- [x] Item 12"), vec![Some(1)]),
            (
                edit(plan, "- [ ] Item 1\n- [ ] Item 12", "- [x] Item 1\n- [x] Item 12"),
                vec![Some(0), Some(1)],
            ),
            (edit(plan, "- [x] Item 1", "- [ ] Item 1"), vec![]),
            (edit(plan, "- [ ] Item 7", "- [x] Item 7"), vec![]),
            (edit("/project/other.md", "- [ ] Item 1", "- [x] Item 1"), vec![]),
            (write(plan, "# Plan\n- [x] Item 7\n- [x] Item 12\n- [ ] Item 1\n"), vec![Some(1)]),
            (bash("sed -i 's/\\[ \\] Item 12/[x] Item 12/' fix_plan.md"), vec![Some(1)]),
            (bash("sed -i 's/- \\[ \\] \\(Item 1\\)$/- [x] \\1/' fix_plan.md"), vec![Some(0)]),
            (bash("perl -pi -e 's/- \\[ \\] (Item 12)/- [x] $1/' fix_plan.md"), vec![Some(1)]),
            (bash("sed -i '3s/\\[ \\]/[x]/' fix_plan.md"), vec![None]),
            (bash("sed -i 's/\\[ \\]/[x]/' other.md"), vec![]),
            (bash("grep -n '\\[x\\] Item 1' fix_plan.md"), vec![]),
            (bash("cat fix_plan.md | grep -c '\\[x\\]' 2>/dev/null; git log"), vec![]),
            (bash("git commit -qm '[x] Item 1' fix_plan.md"), vec![]),
            (
                bash(
                    "python3 - <<'EOF'\nt = open('fix_plan.md').read()\nt = t.replace('- [ ] Parse numbers', '- [x] Parse numbers')\nEOF",
                ),
                vec![Some(3)],
            ),
            (bash("echo '- [x] Item 1' >> fix_plan.md"), vec![Some(0)]),
        ] {
            assert_eq!(ticks_of_call(&input, PLAN, &items), expected, "{input:?}");
        }
    }

    #[test]
    fn only_a_call_that_writes_another_file_begins_other_work() {
        for (input, expected) in [
            (edit("/project/src/a.rs", "a", "b"), true),
            (write("/project/src/a.rs", "a"), true),
            (edit("/project/fix_plan.md", "a", "b"), false),
            (ToolInput { file_path: Some("/project/src/a.rs".to_owned()), ..ToolInput::default() }, false),
            (ToolInput::default(), false),
            (bash("echo a >> src/a.rs"), true),
            (bash("sed -i 's/a/b/' src/a.rs"), true),
            (bash("perl -pi -e 's/a/b/' src/a.rs"), true),
            (bash("echo '  > a note' >> fix_plan.md"), false),
            (bash("cargo test 2>&1 | tail"), false),
            (bash("make check > /dev/null 2>&1"), false),
            (bash("git commit -qam Parser"), false),
        ] {
            assert_eq!(writes_other_file(&input, PLAN), expected, "{input:?}");
        }
    }
}
