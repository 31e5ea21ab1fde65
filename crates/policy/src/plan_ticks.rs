//! Finds the tool calls that tick items of the plan, and the items that they tick.

use plimsoll_protocol::tool::ToolInput;

/// Programs that only print, checked as the first word of each part of a command line.
const READ_ONLY_PROGRAMS: [&str; 14] =
    ["cat", "cd", "diff", "echo", "egrep", "git", "grep", "head", "less", "ls", "rg", "tail", "test", "wc"];
/// Programs that write the file which they read when they are called with `-i`.
const IN_PLACE_EDITORS: [&str; 4] = ["gsed", "perl", "ruby", "sed"];

/// Returns true if a call may add a tick to the plan; a command that only reads the plan can count, too.
pub fn may_add_tick_to_plan(input: &ToolInput, plan_file: &str) -> bool {
    let is_plan = input.file_path.as_ref().is_some_and(|path| path.ends_with(plan_file));
    // An edit may contain ticks of other items around its change.
    let new_text = input.new_string.as_ref().or(input.content.as_ref());
    let is_ticking_edit =
        is_plan && count_ticked_boxes(new_text) > count_ticked_boxes(input.old_string.as_ref());
    let command = input.command.as_ref().filter(|command| command.contains(plan_file));
    is_ticking_edit || count_ticked_boxes(command) > 0
}

fn count_ticked_boxes(text: Option<&String>) -> usize {
    text.map_or(0, |text| text.matches("[x").count() + text.matches("[X").count())
}

/// Returns the ticks that a call adds to the plan, each as the index of its item in `items`; `None` for a tick whose item
/// the call does not name, such as `sed -i '3s/\[ \]/[x]/'`.
pub fn indexes_of_items_ticked_by_call(
    input: &ToolInput,
    plan_file: &str,
    items: &[String],
) -> Vec<Option<usize>> {
    if !may_add_tick_to_plan(input, plan_file) {
        return Vec::new();
    }
    if let Some(command) = &input.command {
        return if is_read_only_command(command) {
            Vec::new()
        } else {
            indexes_of_items_named_in_ticking_command(command, items)
        };
    }
    let mut old_ticks = indexes_of_ticked_items_in_text(input.old_string.as_ref(), items);
    let mut new_ticks =
        indexes_of_ticked_items_in_text(input.new_string.as_ref().or(input.content.as_ref()), items);
    new_ticks.retain(|tick| match old_ticks.iter().position(|old_tick| old_tick == tick) {
        Some(index) => {
            old_ticks.swap_remove(index);
            false
        }
        None => true,
    });
    new_ticks
}

fn indexes_of_ticked_items_in_text(text: Option<&String>, items: &[String]) -> Vec<Option<usize>> {
    let mut ticked_item_indexes = Vec::new();
    for text_after_box in texts_after_checkboxes(text.map_or("", String::as_str), true) {
        let item_index = item_index_with_longest_common_prefix(text_after_box, items);
        // Other text belongs to an item that was already ticked or is no longer in the plan.
        if item_index.is_some() || text_after_box.is_empty() {
            ticked_item_indexes.push(item_index);
        }
    }
    ticked_item_indexes
}

/// Returns the items that a command ticks. The command names an item after the ticked box, or after the open box that it
/// searches for. Returns one `None` if it names no item.
fn indexes_of_items_named_in_ticking_command(command: &str, items: &[String]) -> Vec<Option<usize>> {
    let mut ticked_item_indexes = Vec::new();
    for is_ticked in [true, false] {
        for text_after_box in texts_after_checkboxes(command, is_ticked) {
            let item_index = item_index_with_longest_common_prefix(text_after_box, items);
            if item_index.is_some() {
                ticked_item_indexes.push(item_index);
            }
        }
        if !ticked_item_indexes.is_empty() {
            return ticked_item_indexes;
        }
    }
    vec![None]
}

/// Returns the remainder of the line after each ticked (or each open) checkbox, starting at its first alphanumeric
/// character. The closing bracket may be escaped, as in a regular expression.
fn texts_after_checkboxes(text: &str, is_ticked: bool) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut remaining = text;
    while let Some(start) = remaining.find('[') {
        remaining = &remaining[start + 1..];
        let box_is_ticked = if remaining.starts_with(' ') {
            Some(false)
        } else {
            remaining.starts_with(['x', 'X']).then_some(true)
        };
        if box_is_ticked != Some(is_ticked) {
            continue;
        }
        let after_box_state = &remaining[1..];
        if let Some(text_after_box) =
            after_box_state.strip_prefix('\\').unwrap_or(after_box_state).strip_prefix(']')
        {
            let end = text_after_box.find('\n').unwrap_or(text_after_box.len());
            texts.push(trim_to_first_word(&text_after_box[..end]));
        }
    }
    texts
}

fn trim_to_first_word(text: &str) -> &str {
    text.trim_start_matches(|character: char| !character.is_alphanumeric())
}

/// Returns the item with the longest common prefix with this text, ending at a word boundary: a call may name only the
/// beginning of an item, and escape the remaining text.
fn item_index_with_longest_common_prefix(text: &str, items: &[String]) -> Option<usize> {
    let (mut best_index, mut longest_match) = (None, 0);
    for (index, item) in items.iter().enumerate() {
        let item = trim_to_first_word(item);
        let common_prefix = item.chars().zip(text.chars()).take_while(|(one, other)| one == other);
        let prefix_bytes: usize = common_prefix.map(|(character, _)| character.len_utf8()).sum();
        let ends_at_word_boundary = |text: &str| !text[prefix_bytes..].starts_with(char::is_alphanumeric);
        // Of several equally long matches, the first one wins.
        if prefix_bytes > longest_match && ends_at_word_boundary(item) && ends_at_word_boundary(text) {
            (best_index, longest_match) = (Some(index), prefix_bytes);
        }
    }
    best_index
}

/// Returns true if a call writes a file other than the plan. Stricter than
/// [`may_change_files_besides_commits`](crate::attribution::may_change_files_besides_commits): running the tests after a
/// tick does not start the next item.
pub fn writes_file_other_than_plan(input: &ToolInput, plan_file: &str) -> bool {
    match (&input.command, &input.file_path) {
        (Some(command), _) => !command.contains(plan_file) && redirects_output_or_edits_in_place(command),
        (None, Some(path)) => {
            !path.ends_with(plan_file) && (input.new_string.is_some() || input.content.is_some())
        }
        (None, None) => false,
    }
}

fn redirects_output_or_edits_in_place(command: &str) -> bool {
    let mut remaining = command;
    while let Some(start) = remaining.find('>') {
        remaining = remaining[start + 1..].trim_start_matches(['>', ' ']);
        if !remaining.starts_with('&') && !remaining.starts_with("/dev/null") {
            return true;
        }
    }
    // For other programs, such as `grep`, `-i` means something else.
    let mut is_editor_argument = false;
    command.split_whitespace().any(|word| {
        is_editor_argument |= IN_PLACE_EDITORS.contains(&word);
        is_editor_argument &= !READ_ONLY_PROGRAMS.contains(&word);
        is_editor_argument && is_in_place_option(word)
    })
}

/// Returns true for `-i`, `-i.bak`, `--in-place`, and for combined options such as `-pi` and `-Ei`.
fn is_in_place_option(word: &str) -> bool {
    let options = word.split('.').next().unwrap_or_default();
    let is_combined = options.starts_with('-') && !options.starts_with("--") && options.ends_with('i');
    is_combined || word.starts_with("-i") || word.starts_with("--in-place")
}

fn is_read_only_command(command: &str) -> bool {
    let mut parts = command.split(['&', '|', ';', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let is_read_only_part = |part: &str| {
        READ_ONLY_PROGRAMS.contains(&part.split_whitespace().next().unwrap_or_default())
            || part.starts_with("sed -n")
    };
    !redirects_output_or_edits_in_place(command) && parts.all(is_read_only_part)
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
            // Ticks around the change stay as they are.
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
            (bash("grep -i '\\[x\\] item 1' fix_plan.md"), vec![]),
            (
                bash(
                    "python3 - <<'EOF'\nt = open('fix_plan.md').read()\nt = t.replace('- [ ] Parse numbers', '- [x] Parse numbers')\nEOF",
                ),
                vec![Some(3)],
            ),
            (bash("echo '- [x] Item 1' >> fix_plan.md"), vec![Some(0)]),
        ] {
            assert_eq!(indexes_of_items_ticked_by_call(&input, PLAN, &items), expected, "{input:?}");
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
            (bash("cd src && grep -rin parser . | sort"), false),
            (bash("sed -n 5p src/a.rs | grep -i parser"), false),
            (bash("cd src && sed 's/;/,/' -Ei a.rs"), true),
            (bash("ls src/*.rs | xargs perl -pi.bak -e 's/a/b/'"), true),
        ] {
            assert_eq!(writes_file_other_than_plan(&input, PLAN), expected, "{input:?}");
        }
    }
}
