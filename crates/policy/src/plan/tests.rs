//! The plan in tables, and its order beside all others.

use super::order::sessions;
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

type Groups = Vec<Vec<usize>>;

fn groups(texts: &[&str]) -> (Groups, Option<Groups>) {
    let plan = plan(&items(texts), &[], ROOM);
    (plan.in_order, plan.better)
}

#[test]
fn the_users_order_stands_unless_another_saves_a_session() {
    // 60, 40 and 20 percent of a window; a session has room for 80.
    let rows: [(&[&str], Groups, Option<Groups>); 4] = [
        (&["a (simple)", "b (medium)", "c (trivial)"], vec![vec![1, 2, 3]], None),
        (
            &["a (complex)", "b (medium)", "c (trivial)", "d (medium)"],
            vec![vec![1], vec![2, 3], vec![4]],
            None,
        ),
        (
            &["a (complex)", "b (complex)", "c (trivial)", "d (trivial)", "e (complex)", "f (trivial)"],
            vec![vec![1], vec![2, 3], vec![4, 5], vec![6]],
            Some(vec![vec![1, 3], vec![2, 4], vec![5, 6]]),
        ),
        (&["x done (complex)", "b (trivial)"], vec![vec![2]], None),
    ];
    for (texts, expected, better) in rows {
        assert_eq!(groups(texts), (expected, better), "{texts:?}");
    }
}

#[test]
fn large_ones_first_saves_a_session_where_the_lists_order_does_not() {
    let room = Room { base: 25_000, ..ROOM };
    let simple = ["a (simple)", "b (simple)", "c (simple)"];
    let texts = [&simple[..], &["d (medium)", "e (medium)", "f (complex)", "g (complex)", "h (complex)"]];
    let plan = plan(&items(&texts.concat()), &[], room);
    assert_eq!(plan.sessions(&plan.in_order), 5);
    assert_eq!(plan.better, Some(vec![vec![1, 6], vec![2, 7], vec![3, 8], vec![4, 5]]));
    assert!(plan.lines.is_empty());
}

#[test]
fn what_waits_comes_behind_also_where_that_saves_nothing() {
    // The order, and the lines that it changes.
    type Row<'a> = (&'a [&'a str], Option<Groups>, &'a [(usize, &'a str)]);
    let rows: [Row; 5] = [
        (&["a (simple)", "b (simple, after: 1)"], None, &[]),
        (
            &["a (simple, after: 3)", "b (simple)", "c (simple)"],
            Some(vec![vec![2, 3, 1]]),
            &[(1, "- [ ] b (simple)"), (2, "- [ ] c (simple)"), (3, "- [ ] a (simple, after: 2)")],
        ),
        (
            &["x z", "a (simple, after: 1, #4)", "x y after: 2", "b (simple)", "c (simple) after: 2 and 4."],
            Some(vec![vec![4, 2, 5]]),
            &[
                (2, "- [ ] b (simple)"),
                (3, "- [x] y after: 2"),
                (4, "- [ ] a (simple, after: 1, #2)"),
                (5, "- [ ] c (simple) after: 4 and 2."),
            ],
        ),
        (
            &["a (trivial, after: 5)", "b (trivial, after: 1)", "c (trivial)", "d (trivial)", "e (trivial)"],
            Some(vec![vec![5, 1, 2, 3, 4]]),
            &[
                (1, "- [ ] e (trivial)"),
                (2, "- [ ] a (trivial, after: 1)"),
                (3, "- [ ] b (trivial, after: 2)"),
                (4, "- [ ] c (trivial)"),
                (5, "- [ ] d (trivial)"),
            ],
        ),
        (&["a (trivial) after: 2", "b (trivial) after: 1", "c"], None, &[]),
    ];
    for (texts, better, lines) in rows {
        let plan = plan(&items(texts), &[], ROOM);
        let told: Vec<(usize, &str)> = plan.lines.iter().map(|(at, line)| (*at, line.as_str())).collect();
        assert_eq!((plan.better, &told[..]), (better, lines), "{texts:?}");
    }
}

/// A row of numbers that is the same each time.
fn seeded(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

fn some_list(next: &mut impl FnMut(u64) -> u64) -> Vec<Planned> {
    let count = 2 + next(6);
    let item = |number: u64| {
        let tokens = 50_000 * (1 + next(17));
        let other = 1 + next(count);
        let after = if next(4) == 0 && other != number { vec![other as usize] } else { Vec::new() };
        Planned {
            number: number as usize,
            text: String::new(),
            size: None,
            estimate: Estimate { tokens, source: crate::pack::Source::Nothing },
            sessions: tokens.div_ceil(ROOM.tokens()),
            after,
            split: false,
            check: None,
            model: None,
        }
    };
    (1..=count).map(item).collect()
}

fn is_valid(order: &[&Planned]) -> bool {
    let waits_for_none =
        |item: &Planned, ahead: &[&Planned]| !ahead.iter().any(|other| item.after.contains(&other.number));
    order.iter().enumerate().all(|(place, item)| waits_for_none(item, &order[place..]))
}

/// Of all orders in which nothing comes before what it waits for, the fewest sessions.
fn fewest(items: &[Planned], begun: &mut Vec<&Planned>) -> Option<u64> {
    if begun.len() == items.len() {
        return Some(sessions(begun, ROOM));
    }
    let mut best = None;
    for place in 0..items.len() {
        let item = &items[place];
        let is_free = item.after.iter().all(|other| begun.iter().any(|done| done.number == *other));
        if is_free && !begun.contains(&item) {
            let mut order: Vec<&Planned> = begun.iter().map(|done| &items[done.number - 1]).collect();
            order.push(item);
            best = [best, fewest(items, &mut order)].into_iter().flatten().min();
        }
    }
    best
}

#[test]
fn the_order_is_never_worse_than_the_users_and_nearly_always_the_best_there_is() {
    let mut next = seeded(7);
    let (mut all, mut optimal, mut circular) = (0, 0, 0);
    for _ in 0..400 {
        let items = some_list(&mut next);
        let users: Order = items.iter().collect();
        let Some(order) = best_order(&items, ROOM) else {
            assert!(!circles(&items).is_empty() && fewest(&items, &mut Vec::new()).is_none());
            circular += 1;
            continue;
        };
        assert!(is_valid(&order) && order.len() == items.len(), "{items:?}");
        assert!(!is_valid(&users) || sessions(&order, ROOM) <= sessions(&users, ROOM), "{items:?}");
        all += 1;
        optimal += usize::from(Some(sessions(&order, ROOM)) == fewest(&items, &mut Vec::new()));
    }
    assert!(circular > 0 && optimal * 100 >= all * 95, "{optimal} of {all}, {circular} circular");
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
        (&["a (after: 2)", "b (after: 1)"], &["items 1 and 2 depend on each other"]),
        (
            &["a after: 3", "b after: 1", "c after: 2", "d after: 5", "e after: 4", "f after: 1"],
            &["items 1, 2 and 3 depend on each other", "items 4 and 5 depend on each other"],
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
