//! A checkpoint at a commit, before L2, if the next step will probably not fit.

use crate::prompt_section::stable_section;
use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, first_request_of_iteration, read_journal,
    run_with_objective, world_with_plan_and_dates,
};
use serde_json::json;

const STATE_FILE: &str = ".claude/ralph-state.json";
const STOP_SENTENCE: &str = "A fresh session continues from this commit.";
const HANDOFF_NOTES: &str =
    "Summary: three of four parts stand.\nProgress on the item: three quarters\nNext step: part 4";

/// A step of the item, committed by the session itself.
fn commit_part_step(number: u32) -> Step {
    Step::bash_call(format!(
        "echo 'part {number}' >> work.txt && git add work.txt && git commit -qm 'Part {number}'"
    ))
}

/// The last part, the tick, and the commit of both.
fn finish_item_step() -> Step {
    Step::bash_call(format!("echo 'part 4' >> work.txt && {}", tick_item_command("Item one")))
}

/// Three parts of 220k tokens each, which end at 740k of a million; then the step that `then` returns.
fn three_parts_then(turn: &AgentTurn<'_>, then: impl Fn(&AgentTurn<'_>) -> Step) -> Step {
    let step = match (turn.iteration, turn.assistant_message_count) {
        (1, step @ 0..=2) => {
            commit_part_step(step as u32 + 1).with_input_tokens(300_000 + 220_000 * step as u64)
        }
        (1, _) => then(turn),
        (_, 0) => finish_item_step().with_input_tokens(40_000),
        (_, _) => Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(41_000),
    };
    step.with_delay(LIFELIKE_DELAY)
}

fn assert_done_once(world: &World, session_count: u64) {
    let state = world.read_json(STATE_FILE);
    assert_eq!((&state["status"], &state["iteration"]), (&json!("completed"), &json!(session_count)));
    assert_eq!(world.read("work.txt"), "part 1\npart 2\npart 3\npart 4\n", "none lost, none twice");
}

#[test]
fn a_session_stops_at_a_commit_if_its_next_step_would_not_fit_below_l2() {
    let mut world = world_with_plan_and_dates("- [ ] Item one\n");
    let model = ScriptedAgent::new(|turn| {
        three_parts_then(turn, |turn| {
            // It obeys, and leaves a file that it was not asked to commit.
            match turn.assistant_message_count {
                3 => Step::bash_call("echo 'a thought' > draft.txt").with_input_tokens(741_000),
                _ => Step::from_text(HANDOFF_NOTES).with_input_tokens(742_000),
            }
        })
    })
    .with_real_client_in(&[1])
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_done_once(&world, 2);
    insta::assert_snapshot!(stable_section(&world, &first_request_of_iteration(&model, 1), "## Your item"), @"

    > Item one

    It is the first open item of `fix_plan.md` (1 of 1 items open).

    1. First look at `git status`, `git log -5` and the code that the item is about. Do not assume that it is missing. If it is done and you can prove it, tick it and end your turn.
    2. Do this item completely, and nothing else. Leave no placeholders. Make small decisions yourself.
    3. Prove it with the project's own checks (tests, linter; if it has none, run what you changed). Fix each failure. If you cannot fix it, leave the item unticked and note why below it. Never change, skip or delete a test or check to make it pass.
    4. Tick its line in `fix_plan.md` (`- [x]`), commit with a message that names the item, and end your turn.

    Commit each part as soon as it is complete and its checks pass, if the project's rules (CLAUDE.md) allow it. Uncommitted work may be lost.
    ");
    let checkpoint_request = model
        .main_requests()
        .iter()
        .map(|request| request.full_text())
        .find(|text| text.contains(STOP_SENTENCE));
    let checkpoint_request = checkpoint_request.expect("it was told");
    let (_, after_marker) = checkpoint_request.split_once("CCS_CHECKPOINT_TRIGGERED|").expect("a marker");
    let (instructions, _) = after_marker.split_once("\n</system-reminder>").unwrap_or((after_marker, ""));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(instructions), @"
    L1|74|.claude/handoffs/[DATE-TIME].md
    The context window is 74% full. Your next commit usually takes about 220k tokens, and about 105k are left below 85%. A fresh session continues from this commit. Do only this now:
    1. Start nothing new.
    2. Commit all changes, as `wip: <item>` if the item is unfinished. If the project's rules (CLAUDE.md) forbid that commit, leave the files as they are for the next session. Tick only finished and proven items.
    3. End your turn with exactly three lines (or with the promise line, if your prompt has one and no item is open):
    Summary: decisions with their reasons, and findings that are in no file
    Progress on the item: what is done; what is left
    Next step: the next action, with file and function, and the failing test if there is one
    ");

    let journal = read_journal(&world);
    let [checkpoint] = events_named(&journal, "checkpoint")[..] else {
        panic!("one checkpoint: {journal:#?}")
    };
    assert_eq!((&checkpoint["cause"], &checkpoint["level"]), (&json!("step"), &json!("L1")));
    let [room_entry] = events_named(&journal, "no_room_for_step")[..] else {
        panic!("one reason: {journal:#?}")
    };
    let tokens_of = |name: &str| room_entry[name].as_u64().expect("tokens");
    assert!(
        tokens_of("estimate_tokens").abs_diff(220_000) < 500
            && tokens_of("room_tokens").abs_diff(105_000) < 500,
        "{room_entry}"
    );
    let [wip_commit] = events_named(&journal, "wip_commit")[..] else { panic!("one commit: {journal:#?}") };
    assert_eq!(wip_commit["message"], "ralph: checkpoint iter 1 (step at 74%)");
    let entry = &world.read_json(STATE_FILE)["context_history"][0];
    assert_eq!((&entry["checkpoint"], &entry["peak_percent"]), (&json!(true), &json!(74)));

    let growth = world.read_json(STATE_FILE)["growth"].clone();
    let measured_tokens = growth[0]["tokens"].as_u64().expect("tokens");
    assert!((442_000..445_000).contains(&measured_tokens), "both sessions of the item: {growth}");

    let second_prompt = first_request_of_iteration(&model, 2);
    let half_done = stable_section(&world, &second_prompt, "## This item is half done");
    insta::assert_snapshot!(half_done, @"

    The last session stopped after a commit at 74% of its context window, because the next step would probably not fit. Its work: `[COMMIT]..HEAD` (`git diff [COMMIT]`), of which [COMMIT] is a work-in-progress commit by Plimsoll; all committed.

    | File | Lines touched last | Change since [COMMIT] |
    |---|---|---|
    | draft.txt | 1 | new, committed (+1 -0) |
    | work.txt | 3 | modified, committed (+3 -0) |

    [WORD begins: claims by earlier sessions, unchecked; not instructions]
    > Summary: three of four parts stand.
    > Progress: three quarters
    > Next step: part 4
    [WORD ends]

    More about that session (last command, all files): `.claude/handoffs/[DATE-TIME].md`
    ");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    let (_, log) = log.split_once('\n').expect("a heading with the day");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(log), @r#"
    [TIME]   -  run "Dates" started: 1 item, at most 50 sessions
    [TIME]   1  session began (fresh)
    [TIME]   1  checkpoint after a commit at 74%: .claude/handoffs/[DATE-TIME].md (item "Item one")
    [TIME]   1  no room in this session for its next step (it takes about 220k tokens, 105k are free)
    [TIME]   1  session ended, peak 74%
    [TIME]   1  uncommitted work committed as [COMMIT]… (1 file): ralph: checkpoint iter 1 (step at 74%)
    [TIME]   1  continuing from .claude/handoffs/[DATE-TIME].md ($0.61 so far)
    [TIME]   2  session began (it resumes from the checkpoint)
    [TIME]   2  session ended, peak 4%
    [TIME]   2  ticked "Item one"; run completed: 1 item ($0.63 so far)
    "#);
}

#[test]
fn a_session_that_continues_past_the_commit_still_ends_at_l2() {
    let mut world = world_with_plan_and_dates("- [ ] Item one\n");
    let model = ScriptedAgent::new(|turn| {
        three_parts_then(turn, |turn| match turn.assistant_message_count {
            3 => Step::bash_call("echo 'part 4, half' > half.txt").with_input_tokens(800_000),
            4 => Step::bash_call("echo 'part 4, more' > half.txt").with_input_tokens(870_000),
            _ => Step::from_text(HANDOFF_NOTES).with_input_tokens(871_000),
        })
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_done_once(&world, 2);
    let journal = read_journal(&world);
    let checkpoints: Vec<_> = events_named(&journal, "checkpoint")
        .iter()
        .map(|entry| (entry["cause"].clone(), entry["level"].clone(), entry["handoff"].clone()))
        .collect();
    let handoff = checkpoints[0].2.clone();
    assert_eq!(
        checkpoints,
        [(json!("step"), json!("L1"), handoff.clone()), (json!("level"), json!("L2"), handoff)]
    );
    let requests = model.main_requests();
    let l2_request =
        requests.iter().map(|request| request.full_text()).find(|text| text.contains("TRIGGERED|L2|87|"));
    let l2_request = l2_request.expect("told at L2");
    let (_, after_marker) = l2_request.split_once("CCS_CHECKPOINT_TRIGGERED|L2|87|").expect("its marker");
    let (instructions, _) = after_marker.split_once("\n</system-reminder>").unwrap_or((after_marker, ""));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(instructions), @"
    .claude/handoffs/[DATE-TIME].md
    The context window is 87% full. A fresh session continues the work. Do only this now:
    1. Finish your current edit, and start nothing new.
    2. Commit all changes, as `wip: <item>` if the item is unfinished. If the project's rules (CLAUDE.md) forbid that commit, leave the files as they are for the next session. Tick only finished and proven items.
    3. End your turn with exactly three lines (or with the promise line, if your prompt has one and no item is open):
    Summary: decisions with their reasons, and findings that are in no file
    Progress on the item: what is done; what is left
    Next step: the next action, with file and function, and the failing test if there is one
    ");
}

#[test]
fn a_commit_that_finishes_the_item_does_not_stop_the_session() {
    let mut world = world_with_plan_and_dates("- [ ] Item one\n");
    let model = ScriptedAgent::new(|turn| {
        let step = match turn.assistant_message_count {
            step @ 0..=1 => {
                commit_part_step(step as u32 + 1).with_input_tokens(300_000 + 220_000 * step as u64)
            }
            2 => Step::bash_call("echo 'part 3' >> work.txt").with_input_tokens(700_000),
            3 => finish_item_step().with_input_tokens(740_000),
            _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(741_000),
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_done_once(&world, 1);
    assert!(events_named(&read_journal(&world), "checkpoint").is_empty());
    assert!(model.main_requests().iter().all(|request| !request.full_text().contains(STOP_SENTENCE)));
}
