//! `plimsoll plan`: the work ahead, estimated from the plan and from what earlier items used.

use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE_DELAY, ScriptedAgent, run_with_objective, world_with_plan_and_dates};
use serde_json::{Value, json};

fn plan_output(world: &World, arguments: &[&str]) -> String {
    let finished = world.plimsoll(&[&["plan"], arguments].concat()).run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    finished.stdout
}

fn plan_figures(world: &World) -> Value {
    serde_json::from_str(&plan_output(world, &["--json"])).expect("JSON")
}

#[test]
fn plan_estimates_sessions_and_leaves_the_file_unchanged() {
    let world = World::new();
    let plan_text = "- [x] Zero (complex)\n- [ ] One (complex)\n- [ ] Two (complex)\n- [ ] Three (simple)\n- [ ] Four (simple)\n\
                - [ ] Five (complex)\n- [ ] Six (simple, after: 6)\n";
    world.write("fix_plan.md", plan_text);
    let output = plan_output(&world, &["--markdown"]);
    insta::assert_snapshot!(output, @"
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
    let figures = plan_figures(&world);
    assert_eq!(figures["packed"]["groups"], json!([[2], [3, 4], [5, 6], [7]]));
    assert_eq!(figures["items"][5]["after"], json!([6]));
    assert_eq!(world.read("fix_plan.md"), plan_text);
}

#[test]
fn plan_reports_wrong_order_misspelled_sizes_and_oversized_items() {
    let world = World::new();
    world.write(
        "fix_plan.md",
        "- [ ] One (simple, after: 3)\n- [ ] Two (simple)\n- [ ] Three (simple)\n- [ ] Four [medium]\n\
         - [ ] Five (very complex)\n",
    );
    let output = plan_output(&world, &["--markdown"]);
    insta::assert_snapshot!(output, @"
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
fn an_estimate_falls_back_to_project_files_that_the_item_names() {
    let world = World::new();
    world.write("src/dates.rs", &"line\n".repeat(120));
    world.write("../outside.txt", &"line\n".repeat(900));
    world.write(
        "fix_plan.md",
        "- [ ] Mend `src/dates.rs`.\n- [ ] Read ../outside.txt\n- [ ] Parse, e.g. this\n",
    );
    let figures = plan_figures(&world);
    let estimate_source =
        |place: usize| figures["items"][place]["estimate_source"].as_str().expect("words").to_owned();
    assert_eq!(estimate_source(0), "the files it names: 120 lines");
    assert_eq!(estimate_source(1), "no item has been measured yet: counted as medium");
    assert_eq!(estimate_source(2), estimate_source(1));
}

#[test]
fn a_missing_plan_and_an_invalid_after_number_are_reported() {
    let world = World::new();
    let finished = world.plimsoll(&["plan", "--markdown"]).run();
    assert_eq!(finished.code, Some(0));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"there is no plan: fix_plan.md (`- [ ] …` lines, one item each)");
    world.write("fix_plan.md", "- [ ] One (after: 9)\n");
    insta::assert_snapshot!(plan_output(&world, &["--markdown"]), @"
    ## Plan

    1 item open in fix_plan.md, 0 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session has been recorded here yet).

    | # | Item | Size | Share of a window | Sessions | By |
    |---|------|------|------|------|------|
    | 1 | One (after: 9) | - | 40% | 1 | no item has been measured yet: counted as medium |

    One item a session: 1 session. With `--pack`, in your order: 1 session (1).

    - In fix_plan.md, item 1 depends on item 9, which does not exist.
    ");
    world.write("fix_plan.md", "- [x] One\n");
    insta::assert_snapshot!(plan_output(&world, &["--markdown"]), @"
    ## Plan

    Nothing is open in fix_plan.md (1 item done).
    ");
}

#[test]
fn measured_items_determine_the_estimate_also_in_the_next_run() {
    let mut world = world_with_plan_and_dates("- [ ] Item one\n- [ ] Item two\n");
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(tick_item_command("Item one"))
            .with_input_tokens(40_000)
            .with_delay(LIFELIKE_DELAY),
        (1, _) => Step::from_text("Done.").with_input_tokens(190_000).with_delay(LIFELIKE_DELAY),
        (_, 0) => Step::bash_call(tick_item_command("Item two"))
            .with_input_tokens(40_000)
            .with_delay(LIFELIKE_DELAY),
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line))
            .with_input_tokens(180_000)
            .with_delay(LIFELIKE_DELAY),
    })
    .start(&mut world);
    assert_eq!(run_with_objective(&world, &[]).code, Some(0));
    drop(model);
    world.write("fix_plan.md", "- [x] Item one\n- [x] Item two\n- [ ] Item three\n");
    let measured_estimate = |figures: &Value| {
        assert_eq!(figures["items"][0]["estimate_source"], "from 2 items", "{figures}");
        figures["items"][0]["estimate_tokens"].as_u64().expect("tokens")
    };
    let first = measured_estimate(&plan_figures(&world));
    assert!((149_000..152_000).contains(&first), "{first}");
    world.plimsoll(&["start", "--objective", "Do the next item."]).run().expect_success();
    assert_eq!(measured_estimate(&plan_figures(&world)), first);
}
