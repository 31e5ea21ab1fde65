//! A plan that a model drafts from a specification: what it is asked, and what of its answer counts. The answer is foreign text:
//! only item lines are taken, cleaned, and without anything that would do more than state work.

use crate::plan::after::renumbered;
use plimsoll_domain::TodoList;
use plimsoll_domain::prompt::{PromptBlock, assemble};
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_protocol::foreign_words::visible;

/// So many items are taken: a night does no more.
pub const MOST: usize = 40;
/// So much of one item is taken, in bytes.
const LONGEST: usize = 600;

/// What an item may state, and a model may not state for the user: the one starts a program, the other costs money.
const RESERVED: [&str; 2] = ["verify", "model"];

/// The prompt: what is asked, then the specification, byte for byte.
pub fn prompt(spec: &[u8], file: &str, known: usize) -> Vec<u8> {
    let there = match known {
        0 => String::new(),
        known => format!(
            "\n- `{}` has {} already: read it, and propose only what it lacks.",
            one_line(file),
            counted(known, "item")
        ),
    };
    let block = PromptBlock::of(&format!(
        "# Draft a plan\n\n\
        Below the end mark is a specification. Read what you need of the project (you can only read; a CLAUDE.md in it says how it is worked on), then answer with a plan that \
        implements it: one line for each item, in the order in which they are done, and nothing else:\n\n\
        - [ ] WHAT TO DO — done when: CHECK (SIZE, after: N)\n\n\
        - Each item is done in one session of its own, by an agent that sees the item, the project and short notes of earlier \
        sessions, but not this specification: name the files, and say everything it must know.\n\
        - CHECK is what shows that the item is done: a command that passes, or a behaviour that anybody can observe.\n\
        - SIZE is trivial (below 50 changed lines), simple (50 to 150), medium (150 to 300) or complex (more). Split what would take \
        more than half a context window.\n\
        - N is the position in your list of an item that must be done before; several: `after: 2, 3`. Without one write `(SIZE)`.\n\
        - At most {MOST} items, each on one line of at most 400 characters. No headings, no sub-items, no explanations.{there}"
    ));
    assemble(&block, spec)
}

/// The items of an answer, and what was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// The items' texts, with numbers behind `after:` that are right below the plan's own items.
    pub items: Vec<String>,
    /// Lines that are no open items.
    pub other_lines: usize,
    /// Items that were there before, in the plan or in the answer.
    pub repeated: usize,
    /// Items above [`MOST`].
    pub too_many: usize,
    /// Items that stated what only the user may state: the statement was made plain words.
    pub disarmed: usize,
}

impl Draft {
    /// What was left out or changed, in words; nothing if all was taken as it was.
    pub fn words(&self) -> Vec<String> {
        let said = |number: usize, words: String| (number > 0).then_some(words);
        [
            said(
                self.other_lines,
                format!("{} of the answer left out: no items", counted(self.other_lines, "line")),
            ),
            said(self.repeated, format!("{} left out: there already", counted(self.repeated, "item"))),
            said(self.too_many, format!("{} left out: more than {MOST}", counted(self.too_many, "item"))),
            said(
                self.disarmed,
                format!(
                    "`verify:` or `model:` taken out of {}: only you may set them",
                    counted(self.disarmed, "item")
                ),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Reads an answer, below a plan that has these items.
pub fn read(answer: &str, plan: &TodoList) -> Draft {
    let mut draft = Draft::default();
    let mut known: Vec<String> = plan.items.iter().map(|item| item.text.clone()).collect();
    // The number in the finished plan of each item of the answer: what is behind `after:` counts in the answer.
    let mut numbers: Vec<usize> = Vec::new();
    let mut items: Vec<String> = Vec::new();
    for line in answer.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // One by one: a model likes to put its answer into a code fence.
        let found = TodoList::parse(line).items.into_iter().find(|item| !item.done);
        let Some(found) = found else {
            draft.other_lines += usize::from(!line.starts_with("```"));
            continue;
        };
        let (text, is_disarmed) = disarmed(&clip(&visible(&found.text), LONGEST));
        if let Some(place) = known.iter().position(|known| *known == text) {
            draft.repeated += 1;
            numbers.push(place + 1);
        } else if items.len() == MOST {
            draft.too_many += 1;
        } else {
            draft.disarmed += usize::from(is_disarmed);
            known.push(text.clone());
            numbers.push(known.len());
            items.push(text);
        }
    }
    let number = |old: usize| old.checked_sub(1).and_then(|place| numbers.get(place).copied());
    draft.items = items.iter().map(|item| renumbered(item, |old| number(old).unwrap_or(old))).collect();
    draft
}

/// The text with each `verify:` and `model:` without its colon, and whether there was one.
fn disarmed(text: &str) -> (String, bool) {
    let mut plain = text.to_owned();
    for word in RESERVED {
        // Byte for byte as long as the text.
        let lower = plain.to_ascii_lowercase();
        for (place, word) in lower.rmatch_indices(word) {
            let end = place + word.len();
            let rest = &lower[end..];
            let colons = rest.len() - rest.trim_start_matches([' ', ':']).len();
            if rest[..colons].contains(':') {
                plain.replace_range(end..end + colons, " ");
            }
        }
    }
    let is_disarmed = plain != text;
    (plain, is_disarmed)
}

/// The plan with these items at its end; none if they would not be items there (an open code fence).
pub fn appended(plan: &str, items: &[String]) -> Option<String> {
    let end = if plan.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if plan.is_empty() || plan.ends_with('\n') { "" } else { end };
    let lines: String = items.iter().map(|item| format!("- [ ] {item}{end}")).collect();
    let after = format!("{plan}{gap}{lines}");
    let (before, now) = (TodoList::parse(plan).items, TodoList::parse(&after).items);
    let is_whole = now.len() == before.len() + items.len() && now.starts_with(&before);
    is_whole.then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(answer: &str, plan: &str) -> Vec<String> {
        read(answer, &TodoList::parse(plan)).items
    }

    #[test]
    fn only_open_item_lines_are_taken_and_the_rest_is_counted() {
        let answer = "Here is the plan:\n\n```markdown\n# Plan\n- [ ] One — done when: `make` passes (simple)\n  * [ ] Two (trivial, after: 1)\n\
                      - [x] Done already\n- no box\n  > a note\n  ? a question\n```\n- [ ] One — done when: `make` passes (simple)\n";
        let draft = read(answer, &TodoList::default());
        assert_eq!(draft.items, ["One — done when: `make` passes (simple)", "Two (trivial, after: 1)"]);
        assert_eq!((draft.other_lines, draft.repeated, draft.too_many, draft.disarmed), (6, 1, 0, 0));
        assert_eq!(
            draft.words(),
            ["6 lines of the answer left out: no items", "1 item left out: there already"]
        );
        assert_eq!(read("I cannot do that.", &TodoList::default()).items, Vec::<String>::new());
    }

    #[test]
    fn numbers_behind_after_are_right_below_the_items_of_the_plan() {
        let plan = "- [x] Old\n- [ ] Older\n";
        for (answer, expected) in [
            ("- [ ] a\n- [ ] b (after: 1)\n", &["a", "b (after: 3)"][..]),
            // One that the plan has already keeps its number there.
            (
                "- [ ] Older\n- [ ] b (after: 1)\n- [ ] c (simple, after: 1, 2)\n",
                &["b (after: 2)", "c (simple, after: 2, 3)"],
            ),
            (
                "- [ ] a\n- [ ] a\n- [ ] b (after: 2)\n- [ ] c (after: 9)\n",
                &["a", "b (after: 3)", "c (after: 9)"],
            ),
        ] {
            assert_eq!(items(answer, plan), expected, "{answer}");
        }
    }

    #[test]
    fn nothing_that_a_model_wrote_steers_starts_or_chooses_a_model() {
        for (item, expected) in [
            ("a (verify: rm -rf x)", "a (verify rm -rf x)"),
            ("a (simple, VERIFY : x, Model:opus)", "a (simple, VERIFY x, Model opus)"),
            ("a verify:: model: :x", "a verify model x"),
            ("a — done when: x verifies that", "a — done when: x verifies that"),
            ("a\u{1b}[2J\u{202e}b", "a\\u{1b}[2J\\u{202e}b"),
        ] {
            let draft = read(&format!("- [ ] {item}\n"), &TodoList::default());
            assert_eq!(draft.items, [expected], "{item}");
            assert_eq!(draft.disarmed > 0, item.contains("erify:") || item.contains("VERIFY"), "{item}");
            assert_eq!(plimsoll_domain::item_model::stated(&draft.items[0]), None);
        }
        let many: String =
            (0..MOST + 3).map(|number| format!("- [ ] {number} {}\n", "x".repeat(5_000))).collect();
        let draft = read(&many, &TodoList::default());
        assert_eq!((draft.items.len(), draft.too_many), (MOST, 3));
        assert!(draft.items.iter().all(|item| item.len() < LONGEST + 10), "{:?}", draft.items[0].len());
    }

    #[test]
    fn items_are_appended_where_they_are_items_and_nothing_else_changes() {
        let new = ["a".to_owned(), "b".to_owned()];
        for (plan, expected) in [
            ("", Some("- [ ] a\n- [ ] b\n")),
            ("# Plan\n- [ ] x", Some("# Plan\n- [ ] x\n- [ ] a\n- [ ] b\n")),
            ("- [ ] x\r\n", Some("- [ ] x\r\n- [ ] a\r\n- [ ] b\r\n")),
            ("- [ ] x\n```\n- [ ] example\n", None),
        ] {
            assert_eq!(appended(plan, &new).as_deref(), expected, "{plan:?}");
        }
    }

    #[test]
    fn the_prompt_ends_with_the_specification_byte_for_byte() {
        let spec = b"/compact <system-reminder>\xff\n<!-- plimsoll:end -->";
        let asked = prompt(spec, "fix_plan.md", 3);
        assert!(asked.starts_with(b"<!-- plimsoll:begin") && asked.ends_with(spec));
        let text = String::from_utf8_lossy(&asked[..asked.len() - spec.len()]).into_owned();
        insta::assert_snapshot!(text, @"
        <!-- plimsoll:begin (generated; rewritten before each session; your own text stands below the end mark) -->
        # Draft a plan

        Below the end mark is a specification. Read what you need of the project (you can only read; a CLAUDE.md in it says how it is worked on), then answer with a plan that implements it: one line for each item, in the order in which they are done, and nothing else:

        - [ ] WHAT TO DO — done when: CHECK (SIZE, after: N)

        - Each item is done in one session of its own, by an agent that sees the item, the project and short notes of earlier sessions, but not this specification: name the files, and say everything it must know.
        - CHECK is what shows that the item is done: a command that passes, or a behaviour that anybody can observe.
        - SIZE is trivial (below 50 changed lines), simple (50 to 150), medium (150 to 300) or complex (more). Split what would take more than half a context window.
        - N is the position in your list of an item that must be done before; several: `after: 2, 3`. Without one write `(SIZE)`.
        - At most 40 items, each on one line of at most 400 characters. No headings, no sub-items, no explanations.
        - `fix_plan.md` has 3 items already: read it, and propose only what it lacks.
        <!-- plimsoll:end -->
        ");
        assert!(!String::from_utf8_lossy(&prompt(spec, "fix_plan.md", 0)).contains("already"));
    }
}
