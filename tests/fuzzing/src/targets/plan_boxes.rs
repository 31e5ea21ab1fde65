//! The checkboxes of a plan, compared with those that another Markdown parser finds.

use super::Target;
use crate::markdown::{assert_same_boxes, normalize_for_comparison};
use crate::seeds::text_seeds;
use plimsoll_domain::TodoList;
use plimsoll_domain::plan_fix::add_missing_boxes_and_fix_unclear_lines;

pub(super) const TARGET: Target =
    Target { name: "plan_boxes", check_input, seeds, mutated_input_count: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        "# Plan\n\n- [ ] one\n1. [ ] two\n2. [x] three\n   - [ ] four\n\n       - [ ] five\n> - [ ] six\n> lazy\n",
        "```npm test``` must pass\n````md\n```\n- [ ] no\n````\n- [ ] one\n~~~ a\n- [ ] no\n~~~~\n* [X] two\n",
        "<!--\n- [ ] no\n-->\n<details>\n<summary>a</summary>\n\n- [ ] one\n</details>\n\n<pre>\n- [ ] no\n</pre>\n+ [x] two\n",
        "- [~] one\n- [-] two\n- [] three\n- [ x ] four\n-[ ] five\n- [ ]six\n[ ] seven\n- [ ]* eight\n| [ ] | nine |\n",
        "---\ntitle: a\n---\n- a\n\t- [ ] one\n\n\t\t- [ ] two\n- - [ ] three\n10) [ ] four\n* * *\na\n===\n",
    ])
}

fn check_input(bytes: &[u8]) {
    let text = normalize_for_comparison(&String::from_utf8_lossy(bytes));
    assert_same_boxes(&text);
    // After the fix, a line that looks like an item is an item or is reported as unclear.
    let before = TodoList::parse(&text);
    let fix_result = add_missing_boxes_and_fix_unclear_lines(&text);
    let after = TodoList::parse(&fix_result.text);
    assert_eq!(after.unclear_lines, fix_result.unclear_lines);
    assert_eq!(
        add_missing_boxes_and_fix_unclear_lines(&fix_result.text).text,
        fix_result.text,
        "fixed twice is fixed once"
    );
    assert!(after.items.len() >= before.items.len());
    if before.unclear_lines.is_empty() && !before.items.is_empty() {
        assert_eq!(fix_result.text, text);
    }
}
