//! Plimsoll finds exactly the checkboxes of a plan that GitHub shows.

use plimsoll_domain::TodoList;
use plimsoll_fuzzing::markdown::{
    assert_same_boxes, boxes_found_by_plimsoll, boxes_found_by_pulldown_cmark, known_parser_difference,
};
use proptest::prelude::*;
use std::path::Path;

fn plan_line_strategy() -> impl Strategy<Value = String> {
    let indent = prop_oneof![4 => Just(""), 1 => Just(" "), 2 => Just("  "), 1 => Just("   "), 2 => Just("    "), 1 => Just("      "), 1 => Just("\t"), 1 => Just("\t\t"), 1 => Just("  \t")];
    let quote =
        prop_oneof![8 => Just(""), 1 => Just("> "), 1 => Just(">"), 1 => Just("> > "), 1 => Just("  > ")];
    let marker = prop_oneof![
        6 => Just("- "), 1 => Just("* "), 1 => Just("+ "), 2 => Just("1. "), 1 => Just("2. "), 1 => Just("10) "), 1 => Just("-\t"),
        1 => Just("-   "), 1 => Just("-      "), 1 => Just("- - "), 1 => Just("1. - "), 3 => Just("")
    ];
    let words = prop_oneof![
        8 => Just("[ ] a"), 4 => Just("[x] b"), 1 => Just("[X]\tc"), 1 => Just("[] d"), 1 => Just("[ ]e"), 1 => Just("[-] f"),
        2 => Just("a"), 1 => Just("# a"), 1 => Just("`a`"),
    ];
    let block = prop_oneof![
        3 => Just("```"), 1 => Just("````"), 1 => Just("~~~"), 1 => Just("```sh"), 1 => Just("```a``` b"), 1 => Just("~~~ a`b"),
        2 => Just("<!--"), 2 => Just("-->"), 1 => Just("<!-- a -->"),
        1 => Just("---"), 1 => Just("==="), 1 => Just("* * *"), 1 => Just("# a"), 1 => Just("-"), 1 => Just("1."), 1 => Just("text"),
        1 => Just("| [ ] | a |"), 2 => Just("[a]: /b"), 1 => Just("[a]:"), 1 => Just("/b 'c"), 1 => Just("d'"), 5 => Just(""),
    ];
    prop_oneof![
        3 => (quote, indent.clone(), marker, words).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}")),
        2 => (prop_oneof![4 => Just(""), 1 => Just("> "), 1 => Just("  "), 1 => Just("    ")], block).prop_map(|(a, b)| format!("{a}{b}")),
    ]
}

fn plan_strategy() -> impl Strategy<Value = String> {
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec(plan_line_strategy(), 0..14), end)
        .prop_map(|(lines, end)| lines.into_iter().map(|line| line + end).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_generated_plan_has_the_checkboxes_that_github_shows(text in plan_strategy()) {
        if known_parser_difference(&text).is_none() {
            prop_assert_eq!(boxes_found_by_plimsoll(&text), boxes_found_by_pulldown_cmark(&text), "{}", text);
        }
    }
}

/// Starts the heading line of each plan in the file.
const HEADING: &str = "%%% ";

/// Describes how Plimsoll reads a plan: its items, the ticked ones, and the lines that only look like items.
fn plan_summary(plan: &str) -> String {
    let todo = TodoList::parse(plan);
    let unclear: Vec<String> = todo.unclear_lines.iter().map(|line| line.line_number.to_string()).collect();
    format!("{} items, {} done, unclear: {}", todo.items.len(), todo.ticked_items().len(), unclear.join(" "))
}

/// The file contains plans as people and programs write them, each below a line with its name and its summary.
#[test]
fn sample_plans_have_the_checkboxes_that_github_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans.txt");
    let file = std::fs::read_to_string(&path).expect("the file of plans");
    let mut plans = std::collections::HashSet::new();
    let mut expected = String::new();
    for section in file.split(HEADING).skip(1) {
        let (heading, plan) = section.split_once('\n').expect("a heading has a line of its own");
        let name = heading.split(':').next().expect("a name").trim();
        assert!(plans.insert(plan.to_owned()), "{name} is there twice");
        let crlf_plan = plan.replace('\n', "\r\n");
        for text in [plan, &crlf_plan] {
            assert_same_boxes(text);
        }
        assert_eq!(plan_summary(&crlf_plan), plan_summary(plan), "{name} with the line ends of Windows");
        assert_eq!(
            plan_summary(&format!("\u{feff}{plan}")),
            plan_summary(plan),
            "{name} with a byte order mark"
        );
        expected += &format!("{HEADING}{name}: {}\n{plan}", plan_summary(plan));
    }
    assert!(plans.len() >= 200, "{}", plans.len());
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        return std::fs::write(&path, &expected).expect("the file of plans is writable");
    }
    let first_difference = file.lines().zip(expected.lines()).find(|(one, other)| one != other);
    assert_eq!(first_difference, None, "PLIMSOLL_UPDATE_GOLDEN=1 writes the summaries again: read the diff");
}
