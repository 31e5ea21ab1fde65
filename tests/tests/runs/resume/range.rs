//! The range of an item's work begins where the item began, however many sessions it takes.

use crate::resume::stage::{
    OAUTH, TWO, full, low, make, next_is_told, said, save, sed, subjects, tick, world,
};
use plimsoll_testkit::scripted_model::Step;

fn part(lines: &str, subject: &str) -> Step {
    low(format!("{}; {}", sed(lines, OAUTH), save(subject)))
}

fn half() -> Step {
    said("a part stands", "a part", "the next part")
}

#[test]
fn an_item_over_three_sessions_is_told_from_its_beginning() {
    let mut world = world(TWO);
    let base = world.git(&["rev-parse", "HEAD"]);
    let first = vec![part("10,20", "Part 1"), full("ls"), half()];
    let second = vec![part("30,40", "Part 2"), full("ls"), half()];
    let told = next_is_told(&mut world, vec![first, second]);
    assert_eq!(world.git(&["rev-parse", &told.base()]), base, "{}", told.block);
    told.has(&format!("git diff {}", told.base()));
}

#[test]
fn an_item_whose_sessions_committed_nothing_is_told_from_its_beginning_too() {
    let mut world = world(TWO);
    let base = world.git(&["rev-parse", "HEAD"]);
    let first = vec![full(sed("10,20", OAUTH)), half()];
    let second = vec![full(sed("45,90", OAUTH)), half()];
    let told = next_is_told(&mut world, vec![first, second]);
    assert_eq!(world.git(&["rev-parse", &told.base()]), base, "{}", told.block);
    assert_eq!(subjects(&world, &told.base()).len(), 2, "both were saved");
    assert_eq!(told.stands_at(), Some((90, OAUTH.to_owned())), "the last session's place:\n{}", told.block);
}

#[test]
fn the_second_item_of_a_run_does_not_begin_where_the_first_one_did() {
    let mut world = world(TWO);
    let first = vec![
        low(format!(
            "{}; {}; {}",
            make("src/parser.rs", 30),
            tick("Write the parser"),
            save("Finish: parser")
        )),
        full("ls"),
        said("done", "done", "the printer"),
    ];
    let second = vec![part("45,90", "Part of the printer"), full("ls"), half()];
    let told = next_is_told(&mut world, vec![first, second]);
    told.takes_over("Write the printer");
    assert_eq!(subjects(&world, &told.base()), ["Part of the printer"], "{}", told.block);
    told.has_not("parser.rs");
}

/// The second session edits once and says nothing: it dies, or ends its turn in other words.
#[test]
fn what_a_session_said_is_told_until_a_later_one_at_its_item_says_something() {
    for (end, words) in [(low("kill -9 $PPID"), "dies"), (Step::text("Hm.").usage(31_000), "ends its turn")] {
        let mut world = world(TWO);
        let first = vec![
            part("10,20", "Part 1"),
            full("ls"),
            said("Naive input is UTC", "two of four parts", "give parse_date its zone"),
        ];
        let second = vec![low(sed("45,90", OAUTH)), end];
        let told = next_is_told(&mut world, vec![first, second]);
        for part in [
            "The last session at this item that did was that of iteration 1:",
            "> It said: Naive input is UTC",
            "> Next step, in its words: give parse_date its zone",
            "; about the one before it at this item: `.claude/handoffs/",
            "src/oauth.ts",
        ] {
            assert!(told.block.contains(part), "{words}: no {part} in\n{}", told.block);
        }
    }
}
