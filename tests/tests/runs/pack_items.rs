//! `--pack`: a session continues with the next item only while its window has room for it. Without `--pack`, trivial
//! neighbors share a session.

use crate::prompt_section::stable_section;
use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, first_request_of_iteration, read_journal,
    run_with_objective, verdict_markers, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";
/// Tokens that the scripted sessions use before any work.
const BASE_TOKENS: u64 = 30_000;

fn plan_with_items(items: usize) -> String {
    (1..=items).map(|n| format!("- [ ] Item {n:02}\n")).collect()
}

/// Does the item that it was given last; each item uses this many tokens.
fn packing_agent(turn: &AgentTurn<'_>, item_tokens: u64) -> Step {
    let request_text = turn.request.full_text();
    let phrase = "exactly this item: \"";
    let continued_item = request_text.rfind(phrase).map(|place| {
        let rest = &request_text[place + phrase.len()..];
        rest[..rest.find('"').unwrap_or(0)].to_owned()
    });
    let Some(item) = continued_item.or(turn.item_text.clone()) else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let done_steps = turn.assistant_message_count as u64 / 2;
    let is_work = turn.assistant_message_count.is_multiple_of(2);
    let used_tokens = BASE_TOKENS + item_tokens * (done_steps + u64::from(!is_work));
    let is_last_item =
        request_text.contains("It is the last one") || request_text.contains("`fix_plan.md` (1 of ");
    let step = if is_work {
        Step::bash_call(format!("echo '{item}' >> work.txt; {}", tick_item_command(&item)))
    } else if is_last_item {
        Step::from_text(format!("{item} is done, all is done.\n\n{}", turn.promise_line))
    } else {
        Step::from_text(format!("{item} is done."))
    };
    step.with_input_tokens(used_tokens).with_delay(LIFELIKE_DELAY)
}

fn session_count(world: &World) -> u64 {
    world.read_json(STATE_PATH)["iteration"].as_u64().expect("an iteration")
}

fn assert_done_in_order(world: &World, items: usize) {
    let expected: String = (1..=items).map(|n| format!("Item {n:02}\n")).collect();
    assert_eq!(world.read("work.txt"), expected, "none lost, none twice");
    assert_eq!(world.read_json(STATE_PATH)["status"], "completed");
}

#[test]
fn pack_needs_fewer_sessions_for_the_same_plan_and_loses_no_item() {
    const ITEMS: usize = 12;
    let finish_plan = |arguments: &[&str]| {
        let mut world = world_with_plan_and_dates(&plan_with_items(ITEMS));
        let model = ScriptedAgent::new(|turn| packing_agent(turn, 150_000)).start(&mut world);
        let finished = run_with_objective(&world, arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_done_in_order(&world, ITEMS);
        (session_count(&world), world, model)
    };
    let (sessions_without_pack, ..) = finish_plan(&[]);
    let (sessions_with_pack, world, model) = finish_plan(&["--pack"]);
    assert_eq!(sessions_without_pack, ITEMS as u64, "one item a session");
    assert_eq!(sessions_with_pack, 3, "five items fit below L2");
    let gain = sessions_without_pack as f64 / sessions_with_pack as f64;
    assert!(
        gain >= 1.3,
        "{sessions_without_pack} sessions without, {sessions_with_pack} with --pack: {gain:.2} times the items a session"
    );
    let journal = read_journal(&world);
    assert_eq!(
        events_named(&journal, "packed").len() + sessions_with_pack as usize,
        ITEMS,
        "each item was begun once"
    );
    // 30k + 150k an item: the fifth ends at 780k, and a sixth would pass L2 at 845k.
    for entry in events_named(&journal, "packed") {
        let (estimate, room) = (&entry["estimate_tokens"], &entry["room_tokens"]);
        assert!(estimate.as_u64() < room.as_u64(), "{entry}");
    }
    assert!(events_named(&journal, "warning").len() < sessions_with_pack as usize * 2);
    let peaks: Vec<u64> = world.read_json(STATE_PATH)["context_history"]
        .as_array()
        .expect("a history")
        .iter()
        .filter_map(|entry| entry["peak_percent"].as_u64())
        .collect();
    assert!(peaks.iter().all(|peak| *peak < 85), "no session was driven into L2: {peaks:?}");
    let second_prompt = first_request_of_iteration(&model, 2);
    let (_, beginning) = second_prompt.split_once("\nThe run started at ").expect("the prompt's second line");
    let (beginning, _) = beginning.split_once("\n1. First look at ").expect("the steps");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(beginning), @r#"
    [DATE-TIME].
    Last action: iteration 1 finished "Item 01", "Item 02", "Item 03", "Item 04", "Item 05".

    ## Your item

    > Item 06

    It is the first open item of `fix_plan.md` (7 of 12 items open).
    "#);
    let checkpoint = events_named(&journal, "checkpoint")[0];
    let handoff = world.read(checkpoint["handoff"].as_str().expect("a handoff"));
    // The last answer reached L1. The handoff contains nothing about another item's session, and no last command.
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&handoff), @r#"
    # Handoff

    - Run: Dates ([ID]), session 1
    - Session: [ID]
    - Written: [DATE-TIME] (the next item would not fit)
    - Context: 78% (L1)
    - Transcript: [HOME]/.claude/projects/[PROJECT]/[ID].jsonl

    ## Current item

    > Item 06 (5 items done, 7 open in `fix_plan.md`)

    Not started.

    Already done in this session:

    - Item 01
    - Item 02
    - Item 03
    - Item 04
    - Item 05

    ## Git

    - Branch: main
    - HEAD: `[COMMIT]` Finish Item 05

    ## What to do next

    Start "Item 06": no file has changed for it.

    ## Notes from the session

    <!-- The session's own claims, not verified. -->
    - Progress on the item: not begun
    "#);
}

#[test]
fn pack_does_not_start_an_item_whose_stated_size_does_not_fit() {
    let todo = "- [ ] Item 01\n- [ ] Item 02 (complex)\n- [ ] Item 03\n";
    let mut world = world_with_plan_and_dates(todo);
    let _model = ScriptedAgent::new(|turn| packing_agent(turn, 250_000)).start(&mut world);
    let finished = run_with_objective(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = read_journal(&world);
    let not_packed = events_named(&journal, "not_packed");
    assert_eq!(not_packed[0]["item"], "Item 02 (complex)");
    assert_eq!(not_packed[0]["estimate_tokens"], 600_000, "60% of the window by the original's table");
    assert_eq!(
        not_packed[0]["room_tokens"],
        845_000 - (BASE_TOKENS + 250_000 + 50),
        "to L2, which is reached where 85 % is shown"
    );
    let checkpoints = events_named(&journal, "checkpoint");
    assert_eq!((&checkpoints[0]["cause"], &checkpoints[0]["iteration"]), (&json!("budget"), &json!(1)));
    assert!(
        verdict_markers(&journal)[0].starts_with("RALPH_CONTINUE|checkpoint|"),
        "{:?}",
        verdict_markers(&journal)
    );
}

#[test]
fn pack_does_not_continue_a_session_with_an_unfinished_item() {
    let mut world = world_with_plan_and_dates(&plan_with_items(2));
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call("echo half >> src/dates.txt")
            .with_input_tokens(BASE_TOKENS)
            .with_delay(LIFELIKE_DELAY),
        (1, _) => Step::from_text("I am not done.").with_input_tokens(BASE_TOKENS).with_delay(LIFELIKE_DELAY),
        _ => packing_agent(turn, 50_000),
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let first_session_requests = model
        .main_requests()
        .iter()
        .filter(|request| request.full_text().contains("You are session 1 of"))
        .count();
    assert_eq!(first_session_requests, 2, "its turn ended with its words");
    assert_done_in_order(&world, 2);
}

#[test]
fn a_turn_that_the_client_ends_despite_our_block_is_journaled() {
    let mut world = world_with_plan_and_dates(&plan_with_items(4));
    world.set_env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2");
    // A hook of the user's own has used up the client's limit of blocks before our hook blocks. The item is ticked by a
    // background command, because a tool call of the model would reset the client's count.
    let hook_script = world.home().join("hold.sh");
    std::fs::write(
        &hook_script,
        "n=$(cat ~/n 2>/dev/null || echo 0); echo $((n + 1)) > ~/n\n[ $n -ge 2 ] || echo '{\"decision\": \"block\", \"reason\": \"Wait.\"}'\n",
    )
    .expect("a file");
    let entry = json!({"hooks": [{"type": "command", "command": format!("sh {}", hook_script.display())}]});
    world.write(".claude/settings.json", &json!({"hooks": {"Stop": [entry]}}).to_string());
    let _model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(
            "(until [ \"$(cat ~/n 2>/dev/null)\" = 2 ]; do sleep 0.1; done; sleep 1.5; sed -i 's/\\[ \\] Item 01/[x] Item 01/' fix_plan.md; echo 'Item 01' >> work.txt) > /dev/null 2>&1 &",
        )
        .with_input_tokens(BASE_TOKENS),
        (1, 3) => Step::from_text("Item 01 is done.").with_input_tokens(BASE_TOKENS + 6_000).with_delay(Duration::from_secs(5)),
        (1, _) => Step::from_text(format!("I wait ({}).", turn.assistant_message_count)).with_input_tokens(BASE_TOKENS + 5_000).with_delay(LIFELIKE_DELAY),
        _ => packing_agent(turn, 50_000),
    }
    }).with_real_client().start(&mut world);
    let finished = run_with_objective(&world, &["--pack"]);
    let journal = read_journal(&world);
    let cut_off_events: Vec<&Value> = events_named(&journal, "cut_off_by_client");
    assert_eq!(cut_off_events.len(), 1, "{finished:?}\n{journal:#?}");
    assert_eq!(cut_off_events[0]["iteration"], 1);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(verdict_markers(&journal)[0], "RALPH_CONTINUE|next|3 open items", "cut off is not complete");
    assert_done_in_order(&world, 4);
}

#[test]
fn an_item_too_large_for_any_window_starts_a_session_told_to_split_it() {
    let mut world = world_with_plan_and_dates("- [ ] Item 01\n- [ ] Item 02 (very complex)\n");
    let model = ScriptedAgent::new(|turn| packing_agent(turn, 20_000)).start(&mut world);
    let finished = run_with_objective(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(session_count(&world), 2);
    insta::assert_snapshot!(stable_section(&world, &first_request_of_iteration(&model, 2), "## Your item"), @"

    > Item 02 (very complex)

    It is the first open item of `fix_plan.md` (1 of 2 items open). It is too large for one context window. First split it: add its parts as `- [ ]` lines below it. Then do the first part. Tick the item when all its parts are ticked.

    1. First look at `git status`, `git log -5` and the code that the item is about. Do not assume that it is missing. If it is done and you can prove it, tick it and end your turn.
    2. Do this item completely, and nothing else. Leave no placeholders. Make small decisions yourself.
    3. Prove it with the project's own checks (tests, linter; if it has none, run what you changed). Fix each failure. If you cannot fix it, leave the item unticked and note why below it. Never change, skip or delete a test or check to make it pass.
    4. Tick its line in `fix_plan.md` (`- [x]`), commit with a message that names the item, and end your turn. Start another item only if a message tells you to.

    Commit each part as soon as it is complete and its checks pass, if the project's rules (CLAUDE.md) allow it. Uncommitted work may be lost.
    ");
}

#[test]
fn trivial_neighbors_of_the_same_model_share_a_session_without_pack() {
    let list: String = (1..=9)
        .map(|number| match number {
            7 => "- [ ] Item 07 (trivial, model: claude-opus-5-5)\n".to_owned(),
            8 => "- [ ] Item 08\n".to_owned(),
            number => format!("- [ ] Item {number:02} (trivial)\n"),
        })
        .collect();
    let mut world = world_with_plan_and_dates(&list);
    world.write_plimsoll_user_settings(&json!({ "models": { "allowed": ["claude-opus-5-5"] } }));
    let plan_table = world.plimsoll(&["plan", "--markdown"]).run().stdout;
    let (_, groups) = plan_table.rsplit_once("|\n").expect("a table of the items");
    insta::assert_snapshot!(groups, @"

    One item a session: 5 sessions (1–5 · 6 · 7 · 8 · 9): trivial neighbors share one. With `--pack`, in your order: 3 sessions (1–6 · 7 · 8+9).
    ");
    let model = ScriptedAgent::new(|turn| packing_agent(turn, 20_000)).start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let done_items: Vec<String> = world.read("work.txt").lines().map(|line| line[..7].to_owned()).collect();
    let expected: Vec<String> = (1..=9).map(|number| format!("Item {number:02}")).collect();
    assert_eq!(done_items, expected, "none lost, none twice");
    let journal = read_journal(&world);
    let packed_events = events_named(&journal, "packed");
    let packed_in_first = packed_events.iter().filter(|entry| entry["iteration"] == 1).count();
    assert_eq!((session_count(&world), packed_events.len(), packed_in_first), (5, 4, 4));
    assert!(events_named(&journal, "checkpoint").is_empty(), "nothing was half done");
    let sentence = "Start another item only if a message tells you to.";
    assert!(
        first_request_of_iteration(&model, 1).contains(sentence)
            && !first_request_of_iteration(&model, 4).contains(sentence)
    );
}

#[test]
fn a_trivial_item_that_does_not_fit_starts_a_session_without_a_checkpoint() {
    let mut world = world_with_plan_and_dates("- [ ] Item 01 (trivial)\n- [ ] Item 02 (trivial)\n");
    let _model = ScriptedAgent::new(|turn| packing_agent(turn, 760_000)).start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(session_count(&world), 2);
    let journal = read_journal(&world);
    let event_counts =
        ["packed", "not_packed", "checkpoint"].map(|event| events_named(&journal, event).len());
    assert_eq!(event_counts, [0, 0, 0], "{journal:#?}");
}
