//! `--pack`: a session goes on with the next item while its window has room for it, and no further. Without it, trivial
//! neighbours share a session.

use crate::prompt_section::section_of;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, first_request_of, journal, markers, run, world};
use serde_json::{Value, json};
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
/// What the scripted sessions stand at before any work.
const BASE: u64 = 30_000;

fn plan(items: usize) -> String {
    (1..=items).map(|n| format!("- [ ] Item {n:02}\n")).collect()
}

/// An agent that does the item it was told last; each item fills so many tokens.
fn packed(turn: &Turn<'_>, tokens: u64) -> Step {
    let told = turn.request.text();
    let mark = "exactly this item: \"";
    let continued = told.rfind(mark).map(|place| {
        let rest = &told[place + mark.len()..];
        rest[..rest.find('"').unwrap_or(0)].to_owned()
    });
    let Some(item) = continued.or(turn.item.clone()) else {
        return Step::text(format!("All done.\n\n{}", turn.promise));
    };
    let done = turn.step as u64 / 2;
    let is_work = turn.step.is_multiple_of(2);
    let fill = BASE + tokens * (done + u64::from(!is_work));
    let last = told.contains("It is the last one") || told.contains("`fix_plan.md` (1 of ");
    let step = if is_work {
        Step::bash(format!("echo '{item}' >> work.txt; {}", tick(&item)))
    } else if last {
        Step::text(format!("{item} is done, all is done.\n\n{}", turn.promise))
    } else {
        Step::text(format!("{item} is done."))
    };
    step.usage(fill).delay(LIFELIKE)
}

fn sessions(world: &World) -> u64 {
    world.json(STATE)["iteration"].as_u64().expect("an iteration")
}

fn done_in_order(world: &World, items: usize) {
    let expected: String = (1..=items).map(|n| format!("Item {n:02}\n")).collect();
    assert_eq!(world.read("work.txt"), expected, "none lost, none twice");
    assert_eq!(world.json(STATE)["status"], "completed");
}

#[test]
fn the_same_list_takes_far_fewer_sessions_with_pack_and_nothing_is_lost() {
    const ITEMS: usize = 12;
    let finish = |arguments: &[&str]| {
        let mut world = world(&plan(ITEMS));
        let model = ScriptedAgent::new(|turn| packed(turn, 150_000)).start(&mut world);
        let finished = run(&world, arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        done_in_order(&world, ITEMS);
        (sessions(&world), world, model)
    };
    let (without, ..) = finish(&[]);
    let (with, world, model) = finish(&["--pack"]);
    assert_eq!(without, ITEMS as u64, "one item a session");
    assert_eq!(with, 3, "five items fit below L2");
    let gain = without as f64 / with as f64;
    assert!(
        gain >= 1.3,
        "{without} sessions without, {with} with --pack: {gain:.2} times the items a session"
    );
    let journal = journal(&world);
    assert_eq!(events(&journal, "packed").len() + with as usize, ITEMS, "each item was begun once");
    // 30k + 150k an item: the fifth ends at 780k, and a sixth would pass L2 at 845k.
    for entry in events(&journal, "packed") {
        let (estimate, room) = (&entry["estimate_tokens"], &entry["room_tokens"]);
        assert!(estimate.as_u64() < room.as_u64(), "{entry}");
    }
    assert!(events(&journal, "warning").len() < with as usize * 2);
    let peaks: Vec<u64> = world.json(STATE)["context_history"]
        .as_array()
        .expect("a history")
        .iter()
        .filter_map(|entry| entry["peak_percent"].as_u64())
        .collect();
    assert!(peaks.iter().all(|peak| *peak < 85), "no session was driven into L2: {peaks:?}");
    let second = first_request_of(&model, 2);
    let (_, beginning) = second.split_once("\nThe run started at ").expect("the prompt's second line");
    let (beginning, _) = beginning.split_once("\n1. Look first:").expect("the steps");
    insta::assert_snapshot!(world.stable_text(beginning), @r#"
    [DATE-TIME]. Last action: iteration 1 finished "Item 01", "Item 02", "Item 03", "Item 04", "Item 05".

    ## Your item

    > Item 06

    It is the first open item of `fix_plan.md` (7 of 12 items open).
    "#);
    let checkpoint = events(&journal, "checkpoint")[0];
    let handoff = world.read(checkpoint["handoff"].as_str().expect("a handoff"));
    // Its last answer reached L1. It has no word of another item's session, and no last command.
    insta::assert_snapshot!(world.stable_text(&handoff), @r#"
    # Handoff

    - Run: Dates ([ID]), iteration 1
    - Session: [ID]
    - Written: [DATE-TIME] (the next item would not have fitted)
    - Context: 78% (L1)
    - Transcript: [HOME]/.claude/projects/[PROJECT]/[ID].jsonl

    ## Current item

    > Item 06 (5 items done, 7 open in `fix_plan.md`)

    Not begun.

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

    Begin "Item 06": no file has been changed for it.

    ## Notes from the session

    <!-- The session's own claims, not verified. -->
    - Progress on the item: not begun
    "#);
}

#[test]
fn an_item_that_states_a_size_is_not_begun_where_it_would_not_fit() {
    let todo = "- [ ] Item 01\n- [ ] Item 02 (complex)\n- [ ] Item 03\n";
    let mut world = world(todo);
    let _model = ScriptedAgent::new(|turn| packed(turn, 250_000)).start(&mut world);
    let finished = run(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    let held = events(&journal, "not_packed");
    assert_eq!(held[0]["item"], "Item 02 (complex)");
    assert_eq!(held[0]["estimate_tokens"], 600_000, "60% of the window by the original's table");
    assert_eq!(
        held[0]["room_tokens"],
        845_000 - (BASE + 250_000 + 50),
        "to L2, which is reached where 85 % is shown"
    );
    let checkpoints = events(&journal, "checkpoint");
    assert_eq!((&checkpoints[0]["cause"], &checkpoints[0]["iteration"]), (&json!("budget"), &json!(1)));
    assert!(markers(&journal)[0].starts_with("RALPH_CONTINUE|checkpoint|"), "{:?}", markers(&journal));
}

#[test]
fn a_session_that_has_not_finished_its_item_is_not_kept_going() {
    let mut world = world(&plan(2));
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash("echo half >> src/dates.txt").usage(BASE).delay(LIFELIKE),
        (1, _) => Step::text("I am not done.").usage(BASE).delay(LIFELIKE),
        _ => packed(turn, 50_000),
    })
    .start(&mut world);
    let finished = run(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let first = model
        .main_requests()
        .iter()
        .filter(|request| request.text().contains("You are session 1 of"))
        .count();
    assert_eq!(first, 2, "its turn ended with its words");
    done_in_order(&world, 2);
}

#[test]
fn a_turn_that_the_client_ends_against_our_word_is_journaled_and_the_run_goes_on() {
    let mut world = world(&plan(4));
    world.set_env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2");
    // A hook of the user's own has used the client's blocks up by the time our word comes; the item ticks itself after that,
    // for a tool of the model would start the client's count anew.
    let hold = world.home().join("hold.sh");
    std::fs::write(
        &hold,
        "n=$(cat ~/n 2>/dev/null || echo 0); echo $((n + 1)) > ~/n\n[ $n -ge 2 ] || echo '{\"decision\": \"block\", \"reason\": \"Wait.\"}'\n",
    )
    .expect("a file");
    let entry = json!({"hooks": [{"type": "command", "command": format!("sh {}", hold.display())}]});
    world.write(".claude/settings.json", &json!({"hooks": {"Stop": [entry]}}).to_string());
    let _model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(
            "(until [ \"$(cat ~/n 2>/dev/null)\" = 2 ]; do sleep 0.1; done; sleep 1.5; sed -i 's/\\[ \\] Item 01/[x] Item 01/' fix_plan.md; echo 'Item 01' >> work.txt) > /dev/null 2>&1 &",
        )
        .usage(BASE),
        (1, 3) => Step::text("Item 01 is done.").usage(BASE + 6_000).delay(Duration::from_secs(5)),
        (1, _) => Step::text(format!("I wait ({}).", turn.step)).usage(BASE + 5_000).delay(LIFELIKE),
        _ => packed(turn, 50_000),
    }
    }).with_real_client().start(&mut world);
    let finished = run(&world, &["--pack"]);
    let journal = journal(&world);
    let cut: Vec<&Value> = events(&journal, "cut_off_by_client");
    assert_eq!(cut.len(), 1, "{finished:?}\n{journal:#?}");
    assert_eq!(cut[0]["iteration"], 1);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(markers(&journal)[0], "RALPH_CONTINUE|next|3 open items", "cut off is not complete");
    done_in_order(&world, 4);
}

#[test]
fn an_item_that_fits_no_window_is_begun_in_a_fresh_session_that_is_told_to_split_it() {
    let mut world = world("- [ ] Item 01\n- [ ] Item 02 (very complex)\n");
    let model = ScriptedAgent::new(|turn| packed(turn, 20_000)).start(&mut world);
    let finished = run(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(sessions(&world), 2);
    insta::assert_snapshot!(section_of(&world, &first_request_of(&model, 2), "## Your item"), @"

    > Item 02 (very complex)

    It is the first open item of `fix_plan.md` (1 of 2 items open). It is marked as too large for one window: first split it. Add its parts as `- [ ]` lines below it, do the first part, and tick the item itself when all its parts are ticked.

    1. Look first: `git status`, `git log -5`, and the code that the item is about. Do not assume that it is missing: if it is done already and you can prove it, tick it and end your turn.
    2. Do this item, completely, and nothing else. No placeholders. Small decisions are yours.
    3. Prove it with the project's own checks (tests, linter; where it has none, run what you changed). Fix what fails. What you cannot fix: leave the item unticked and note why below it. Never change, skip or delete a test or a check to make it pass.
    4. Tick its line in `fix_plan.md` (`- [x]`), commit with a message that names the item, and end your turn. You may then be told to continue with the next item in this session: do so only then.

    Commit each part as soon as it is complete and its checks pass, as the project's rules (CLAUDE.md) allow: what is not committed may be lost.
    ");
}

#[test]
fn trivial_neighbours_share_a_session_without_pack_a_handful_of_them_and_only_with_the_same_model() {
    let list: String = (1..=9)
        .map(|number| match number {
            7 => "- [ ] Item 07 (trivial, model: claude-opus-5-5)\n".to_owned(),
            8 => "- [ ] Item 08\n".to_owned(),
            number => format!("- [ ] Item {number:02} (trivial)\n"),
        })
        .collect();
    let mut world = world(&list);
    world.write_user_settings(&json!({ "models": { "allowed": ["claude-opus-5-5"] } }));
    let shown = world.plimsoll(&["plan", "--markdown"]).run().stdout;
    let (_, groups) = shown.rsplit_once("|\n").expect("a table of the items");
    insta::assert_snapshot!(groups, @"

    One item a session: 5 sessions (1–5 · 6 · 7 · 8 · 9): trivial neighbours share one. With `--pack`, in your order: 3 sessions (1–6 · 7 · 8+9).
    ");
    let model = ScriptedAgent::new(|turn| packed(turn, 20_000)).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let done: Vec<String> = world.read("work.txt").lines().map(|line| line[..7].to_owned()).collect();
    let expected: Vec<String> = (1..=9).map(|number| format!("Item {number:02}")).collect();
    assert_eq!(done, expected, "none lost, none twice");
    let journal = journal(&world);
    let packed = events(&journal, "packed");
    let of_first = packed.iter().filter(|entry| entry["iteration"] == 1).count();
    assert_eq!((sessions(&world), packed.len(), of_first), (5, 4, 4));
    assert!(events(&journal, "checkpoint").is_empty(), "nothing was half done");
    let told = "You may then be told to continue with the next item in this session";
    assert!(first_request_of(&model, 1).contains(told) && !first_request_of(&model, 4).contains(told));
}

#[test]
fn a_trivial_item_that_would_not_fit_begins_a_session_of_its_own_without_a_checkpoint() {
    let mut world = world("- [ ] Item 01 (trivial)\n- [ ] Item 02 (trivial)\n");
    let _model = ScriptedAgent::new(|turn| packed(turn, 760_000)).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(sessions(&world), 2);
    let journal = journal(&world);
    let none = ["packed", "not_packed", "checkpoint"].map(|event| events(&journal, event).len());
    assert_eq!(none, [0, 0, 0], "{journal:#?}");
}
