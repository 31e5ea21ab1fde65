//! Tables of plans with their sessions and problems.

use super::*;

const CAPACITY: SessionCapacity =
    SessionCapacity { window_tokens: 1_000_000, start_tokens: 50_000, l2_tokens: 850_000 };

fn items(texts: &[&str]) -> Vec<EstimatedItem> {
    let item = |text: &&str| EstimatedItem {
        text: text.trim_start_matches("x ").to_owned(),
        is_done: text.starts_with("x "),
        file_lines: None,
        model: None,
    };
    texts.iter().map(item).collect()
}

#[test]
fn items_share_a_session_in_the_users_order_while_there_is_room() {
    // 60, 40 and 20 percent of a window; a session has room for 80.
    let rows: [(&[&str], &[&[usize]]); 3] = [
        (&["a (simple)", "b (medium)", "c (trivial)"], &[&[1, 2, 3]]),
        (&["a (complex)", "b (medium)", "c (trivial)", "d (medium)"], &[&[1], &[2, 3], &[4]]),
        (&["x done (complex)", "b (trivial)"], &[&[2]]),
    ];
    for (texts, expected) in rows {
        assert_eq!(plan_sessions(&items(texts), &[], CAPACITY).sessions_with_pack, expected, "{texts:?}");
    }
}

fn complaints(texts: &[&str]) -> Vec<String> {
    plan_sessions(&items(texts), &[], CAPACITY).problems
}

#[test]
fn wrong_dependencies_are_reported() {
    let rows: [(&[&str], &[&str]); 7] = [
        (&["a after: 2", "b"], &["item 1 depends on item 2, which comes later"]),
        (&["a after: 7", "b (after: #1)"], &["item 1 depends on item 7, which does not exist"]),
        (&["a after: 1"], &["item 1 depends on itself"]),
        (&["x a", "b after: 1", "c, looked after: well"], &[]),
        (&["a (after: 2)", "b (after: 1)"], &["items 1 and 2 depend on each other, or on items that do"]),
        (
            &["a after: 3", "b after: 1", "c after: 2", "d after: 5", "e after: 4", "f after: 1"],
            &["items 1, 2, 3, 4, 5 and 6 depend on each other, or on items that do"],
        ),
        (&["a (after: 1) 2 times", "thereafter: 7 more"], &["item 1 depends on itself"]),
    ];
    for (texts, expected) in rows {
        assert_eq!(complaints(texts), expected, "{texts:?}");
    }
}

#[test]
fn brackets_that_are_not_understood_are_reported() {
    for annotation in [
        "(after 2)",
        "(After item 2, 3)",
        "(after : )",
        "(after: 2-4)",
        "[medium]",
        "( medium )",
        "(very-complex)",
        "(simple, after 2)",
        "[simple, after: 2]",
        "(medium after 2)",
        "(after: 2, simple)",
    ] {
        let [problem] =
            complaints(&["a", "b", "c", &format!("d {annotation}")]).try_into().expect(annotation);
        assert!(
            problem.starts_with(&format!("item 4 says `{annotation}`, which is not understood: write")),
            "{problem}"
        );
    }
    for valid_annotation in [
        "(simple)",
        "(very complex, after: 2)",
        "(simple, no tests)",
        "(after: 2, for the parser)",
        "[after: 2]",
        "(after the release)",
        "(after 2 days)",
        "(afterwards)",
        "(complex numbers)",
        "(simple but long)",
        "(medium-sized files)",
        "(simply)",
        "(trivial) [see the notes]",
        "[medium](https://example.org)",
        "with sort(simple: true)",
        "(see above)",
        "(medium) :)",
        "()",
        "(größer)",
    ] {
        assert_eq!(
            complaints(&["a", "b", "c", &format!("d {valid_annotation}")]),
            [""; 0],
            "{valid_annotation}"
        );
    }
}

#[test]
fn large_items_should_be_split_and_measured_items_count_first() {
    let measured_items = [ItemCost { size: None, tokens: 900_000 }];
    let plan = plan_sessions(&items(&["a", "b (trivial)"]), &measured_items, CAPACITY);
    assert_eq!((plan.items[0].session_count, plan.items[0].should_split), (2, true));
    assert_eq!(
        (plan.count_sessions(&plan.sessions_without_pack), plan.count_sessions(&plan.sessions_with_pack)),
        (3, 3)
    );
    let item_with_lines = EstimatedItem { file_lines: Some(120), ..items(&["Mend src/dates.rs"]).remove(0) };
    let plan_by_files = plan_sessions(&[item_with_lines], &[], CAPACITY);
    assert_eq!(plan_by_files.items[0].estimate.tokens, 200_000);
    assert_eq!(plan_by_files.items[0].estimate.source.describe(), "the files it names: 120 lines");
}

#[test]
fn a_session_that_starts_near_l2_has_no_room_for_work() {
    for (base, is_full) in
        [(25_000, false), (834_000, false), (836_000, true), (845_000, true), (910_000, true)]
    {
        let capacity = SessionCapacity { window_tokens: 1_000_000, start_tokens: base, l2_tokens: 845_000 };
        assert_eq!(capacity.is_full_at_start(), is_full, "{base}");
    }
}
