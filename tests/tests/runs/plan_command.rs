//! `plimsoll plan`: what is ahead, from what the list says and what items took.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::tick;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, run, world};
use serde_json::{Value, json};

fn plan(world: &World, arguments: &[&str]) -> String {
    let finished = world.plimsoll(&[&["plan"], arguments].concat()).run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    finished.stdout
}

fn figures(world: &World) -> Value {
    serde_json::from_str(&plan(world, &["--json"])).expect("JSON")
}

#[test]
fn sessions_are_estimated_and_the_list_stays_as_it_is() {
    let world = World::new();
    let list = "- [x] Zero (complex)\n- [ ] One (complex)\n- [ ] Two (complex)\n- [ ] Three (simple)\n- [ ] Four (simple)\n\
                - [ ] Five (complex)\n- [ ] Six (simple, after: 6)\n";
    world.write("fix_plan.md", list);
    let shown = plan(&world, &["--markdown"]);
    insta::assert_snapshot!(shown, @"
    ## Plan

    6 items open in fix_plan.md, 1 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session has been recorded here yet).

    | # | Item | Size | Share of a window | Sessions | By |
    |---|------|------|------|------|------|
    | 2 | One (complex) | complex | 60% | 1 | its stated size |
    | 3 | Two (complex) | complex | 60% | 1 | its stated size |
    | 4 | Three (simple) | simple | 20% | 1 | its stated size |
    | 5 | Four (simple) | simple | 20% | 1 | its stated size |
    | 6 | Five (complex) | complex | 60% | 1 | its stated size |
    | 7 | Six (simple, after: 6) | simple | 20% | 1 | its stated size |

    One item a session: 6 sessions. With `--pack`, in your order: 4 sessions (2 · 3+4 · 5+6 · 7).
    ");
    let figures = figures(&world);
    assert_eq!(figures["packed"]["groups"], json!([[2], [3, 4], [5, 6], [7]]));
    assert_eq!(figures["items"][5]["after"], json!([6]));
    assert_eq!(world.read("fix_plan.md"), list);
}

#[test]
fn what_is_out_of_order_misspelt_or_too_large_is_told() {
    let world = World::new();
    world.write(
        "fix_plan.md",
        "- [ ] One (simple, after: 3)\n- [ ] Two (simple)\n- [ ] Three (simple)\n- [ ] Four [medium]\n\
         - [ ] Five (very complex)\n",
    );
    let shown = plan(&world, &["--markdown"]);
    insta::assert_snapshot!(shown, @"
    ## Plan

    5 items open in fix_plan.md, 0 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session has been recorded here yet).

    | # | Item | Size | Share of a window | Sessions | By |
    |---|------|------|------|------|------|
    | 1 | One (simple, after: 3) | simple | 20% | 1 | its stated size |
    | 2 | Two (simple) | simple | 20% | 1 | its stated size |
    | 3 | Three (simple) | simple | 20% | 1 | its stated size |
    | 4 | Four [medium] | - | 40% | 1 | no item has been measured yet: counted as medium |
    | 5 | Five (very complex) | very complex | 100% | 2 | its stated size |

    One item a session: 6 sessions. With `--pack`, in your order: 4 sessions (1–3 · 4 · 5 (2 sessions)).

    Split: 5. No session has room for such an item, so a checkpoint would interrupt it: add its parts as `- [ ]` lines below it.

    - In fix_plan.md, item 4 says `[medium]`, which is not understood: write a size as `(medium)`, what it waits for as `(after: 2)`, both as `(medium, after: 2)`.
    - In fix_plan.md, item 1 depends on item 3, which comes later.
    ");
}

#[test]
fn files_that_an_item_names_speak_where_nothing_else_does_and_only_those_of_the_project() {
    let world = World::new();
    world.write("src/dates.rs", &"line\n".repeat(120));
    world.write("../outside.txt", &"line\n".repeat(900));
    world.write(
        "fix_plan.md",
        "- [ ] Mend `src/dates.rs`.\n- [ ] Read ../outside.txt\n- [ ] Parse, e.g. this\n",
    );
    let figures = figures(&world);
    let by = |place: usize| figures["items"][place]["estimate_source"].as_str().expect("words").to_owned();
    assert_eq!(by(0), "the files it names: 120 lines");
    assert_eq!(by(1), "no item has been measured yet: counted as medium");
    assert_eq!(by(2), by(1));
}

#[test]
fn without_a_list_it_says_what_is_missing_and_a_wrong_after_is_told() {
    let world = World::new();
    let finished = world.plimsoll(&["plan", "--markdown"]).run();
    assert_eq!(finished.code, Some(0));
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"there is no plan: fix_plan.md (`- [ ] …` lines, one item each)");
    world.write("fix_plan.md", "- [ ] One (after: 9)\n");
    insta::assert_snapshot!(plan(&world, &["--markdown"]), @"
    ## Plan

    1 item open in fix_plan.md, 0 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session has been recorded here yet).

    | # | Item | Size | Share of a window | Sessions | By |
    |---|------|------|------|------|------|
    | 1 | One (after: 9) | - | 40% | 1 | no item has been measured yet: counted as medium |

    One item a session: 1 session. With `--pack`, in your order: 1 session (1).

    - In fix_plan.md, item 1 depends on item 9, which does not exist.
    ");
    world.write("fix_plan.md", "- [x] One\n");
    insta::assert_snapshot!(plan(&world, &["--markdown"]), @"
    ## Plan

    Nothing is open in fix_plan.md (1 item done).
    ");
}

#[test]
fn what_items_of_this_project_took_speaks_first_also_to_the_next_run() {
    let mut world = world("- [ ] Item one\n- [ ] Item two\n");
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(tick("Item one")).usage(40_000).delay(LIFELIKE),
        (1, _) => Step::text("Done.").usage(190_000).delay(LIFELIKE),
        (_, 0) => Step::bash(tick("Item two")).usage(40_000).delay(LIFELIKE),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)).usage(180_000).delay(LIFELIKE),
    })
    .start(&mut world);
    assert_eq!(run(&world, &[]).code, Some(0));
    drop(model);
    world.write("fix_plan.md", "- [x] Item one\n- [x] Item two\n- [ ] Item three\n");
    let took = |figures: &Value| {
        assert_eq!(figures["items"][0]["estimate_source"], "from 2 items", "{figures}");
        figures["items"][0]["estimate_tokens"].as_u64().expect("tokens")
    };
    let first = took(&figures(&world));
    assert!((149_000..152_000).contains(&first), "{first}");
    world.plimsoll(&["start", "--objective", "Do the next item."]).run().expect_success();
    assert_eq!(took(&figures(&world)), first);
}
