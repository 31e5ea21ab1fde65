//! The to-do list in which the agent ticks its items.

use super::Target;
use crate::seeds::text_seeds;
use plimsoll_domain::TodoList;
use plimsoll_domain::size::ItemSize;

pub(super) const TARGET: Target =
    Target { name: "todo_list", check_input, seeds, mutated_input_count: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        "# Plan\n- [ ] one\n  * [x] two\n+ [X]  three  words \n- [] no\n- [ ]\n1. no\n```\n- [ ] example\n```\n- [ ] four\n",
        "- [ ] one\r\n- [x] ~~two~~ (done in abc)\r\n- [ ] **Rewrite** it (very complex)\n",
        "~~~\n- [ ] a\n```\n~~~\n- [x] a\n- [ ] a\n- [ ] [x] b\n",
    ])
}

fn check_input(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let list = TodoList::parse(&text);
    let list_of_items = TodoList::from_items(list.items.clone());
    assert_eq!(TodoList::parse(&list.render_markdown()), list_of_items, "written and read");
    let item_texts: Vec<String> = list.items.iter().map(|item| item.text.clone()).collect();
    assert_eq!(
        list.known_items_missing_from_lines(&item_texts),
        Vec::<String>::new(),
        "what is there has not vanished"
    );
    assert_eq!(list.open_items().len() + list.ticked_items().len(), list.items.len());
    assert_eq!(
        TodoList::default().known_items_missing_from_lines(&item_texts),
        item_texts,
        "an empty list has lost everything"
    );
    for item in &list.items {
        assert!(!item.text.is_empty() && !item.text.contains(char::is_control), "{:?}", item.text);
        let _ = ItemSize::parse_from_item(&item.text);
    }
    // A tick changes one letter of the file and at most one item of the list.
    let is_at_line_start = |place: &usize| text[..*place].chars().last().is_none_or(|before| before == '\n');
    if let Some(offset) = text.match_indices("- [ ] ").map(|(place, _)| place).find(is_at_line_start) {
        let ticked = format!("{}- [x] {}", &text[..offset], &text[offset + 6..]);
        let after = TodoList::parse(&ticked);
        assert!(
            after.known_items_missing_from_lines(&item_texts).is_empty()
                && list.ticked_items().len() <= after.ticked_items().len()
        );
        assert!(after.ticked_items().len() <= list.ticked_items().len() + 1);
    }
}
