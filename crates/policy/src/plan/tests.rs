//! The plan in tables.

use super::*;

const ROOM: Room = Room { window: 1_000_000, base: 50_000, l2: 850_000 };

fn items(texts: &[&str]) -> Vec<Item> {
    let item = |text: &&str| Item {
        text: text.trim_start_matches("x ").to_owned(),
        done: text.starts_with("x "),
        lines: None,
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
        assert_eq!(plan(&items(texts), &[], ROOM).in_order, expected, "{texts:?}");
    }
}

fn complaints(texts: &[&str]) -> Vec<String> {
    plan(&items(texts), &[], ROOM).complaints
}

#[test]
fn a_wrong_after_is_told() {
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
    for (texts, told) in rows {
        assert_eq!(complaints(texts), told, "{texts:?}");
    }
}

#[test]
fn what_is_meant_to_state_something_and_is_not_understood_is_reported() {
    for said in [
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
        let [found] = complaints(&["a", "b", "c", &format!("d {said}")]).try_into().expect(said);
        assert!(
            found.starts_with(&format!("item 4 says `{said}`, which is not understood: write")),
            "{found}"
        );
    }
    for fine in [
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
        assert_eq!(complaints(&["a", "b", "c", &format!("d {fine}")]), [""; 0], "{fine}");
    }
}

#[test]
fn what_fits_no_session_is_to_be_split_and_what_items_took_speaks_first() {
    let took = [ItemCost { size: None, tokens: 900_000 }];
    let plan = plan(&items(&["a", "b (trivial)"]), &took, ROOM);
    assert_eq!((plan.items[0].sessions, plan.items[0].split), (2, true));
    assert_eq!((plan.sessions(&plan.unpacked), plan.sessions(&plan.in_order)), (3, 3));
    let known = Item { lines: Some(120), ..items(&["Mend src/dates.rs"]).remove(0) };
    let by_files = super::plan(&[known], &[], ROOM);
    assert_eq!(by_files.items[0].estimate.tokens, 200_000);
    assert_eq!(by_files.items[0].estimate.source.words(), "the files it names: 120 lines");
}

#[test]
fn a_session_that_begins_at_its_checkpoint_has_room_for_nothing() {
    for (base, is_full) in
        [(25_000, false), (834_000, false), (836_000, true), (845_000, true), (910_000, true)]
    {
        let room = Room { window: 1_000_000, base, l2: 845_000 };
        assert_eq!(room.is_full_at_start(), is_full, "{base}");
    }
}
