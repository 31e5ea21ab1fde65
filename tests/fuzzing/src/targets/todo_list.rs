//! The to-do list that the agent ticks.

use super::Target;
use crate::seeds::texts;
use plimsoll_domain::TodoList;
use plimsoll_domain::size::ItemSize;

pub(super) const TARGET: Target = Target { name: "todo_list", body, seeds, inputs: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "# Plan\n- [ ] one\n  * [x] two\n+ [X]  three  words \n- [] no\n- [ ]\n1. no\n```\n- [ ] example\n```\n- [ ] four\n",
        "- [ ] one\r\n- [x] ~~two~~ (done in abc)\r\n- [ ] **Rewrite** it (very complex)\n",
        "~~~\n- [ ] a\n```\n~~~\n- [x] a\n- [ ] a\n- [ ] [x] b\n",
    ])
}

fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let list = TodoList::parse(&text);
    let items_alone = TodoList::from_items(list.items.clone());
    assert_eq!(TodoList::parse(&list.render_markdown()), items_alone, "written and read");
    let all: Vec<String> = list.items.iter().map(|item| item.text.clone()).collect();
    assert_eq!(list.find_missing_items(&all), Vec::<String>::new(), "what is there has not vanished");
    assert_eq!(list.open_items().len() + list.ticked_items().len(), list.items.len());
    assert_eq!(TodoList::default().find_missing_items(&all), all, "an empty list has lost everything");
    for item in &list.items {
        assert!(!item.text.is_empty() && !item.text.contains(char::is_control), "{:?}", item.text);
        let _ = ItemSize::parse_from_item(&item.text);
    }
    // A tick changes one letter of the file and one item of the list.
    let at_line_start = |place: &usize| text[..*place].chars().last().is_none_or(|before| before == '\n');
    if let Some(place) = text.match_indices("- [ ] ").map(|(place, _)| place).find(at_line_start) {
        let ticked = format!("{}- [x] {}", &text[..place], &text[place + 6..]);
        let after = TodoList::parse(&ticked);
        assert!(
            after.find_missing_items(&all).is_empty()
                && list.ticked_items().len() <= after.ticked_items().len()
        );
        assert!(after.ticked_items().len() <= list.ticked_items().len() + 1);
    }
}
