//! Which model works on an item: the user's settings decide. The plan, which anybody may have written, only chooses
//! among the models that those settings allow.

use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, read_journal, run_with_objective, world_with_plan_and_dates,
};
use serde_json::json;

#[test]
fn a_plan_selects_only_models_that_the_user_settings_allow() {
    let mut world = world_with_plan_and_dates(
        "- [ ] Item one (model: haiku)\n- [ ] Item two (simple)\n- [ ] Item three (model: dear)\n- [ ] Item four (model: dear)\n",
    );
    world.write_plimsoll_user_settings(&json!({ "models": { "simple": "sonnet", "allowed": ["haiku"] } }));
    // A project's settings cannot choose models.
    world.write(
        ".claude/plimsoll.json",
        &json!({ "models": { "allowed": ["dear"], "simple": "dear" } }).to_string(),
    );
    let plan_output = world.plimsoll(&["plan", "--markdown"]).run();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&plan_output.stdout), @"
    ## Plan

    4 items open in fix_plan.md, 0 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session has been recorded here yet).

    | # | Item | Size | Share of a window | Sessions | By | Model |
    |---|------|------|------|------|------|------|
    | 1 | Item one (model: haiku) | - | 40% | 1 | no item has been measured yet: counted as medium | haiku |
    | 2 | Item two (simple) | simple | 20% | 1 | its stated size | sonnet |
    | 3 | Item three (model: dear) | - | 40% | 1 | no item has been measured yet: counted as medium | - |
    | 4 | Item four (model: dear) | - | 40% | 1 | no item has been measured yet: counted as medium | - |

    One item a session: 4 sessions. With `--pack`, in your order: 3 sessions (1 · 2 · 3+4).

    - In fix_plan.md, item 3: `(model: dear)` in the plan is ignored: only models that your own settings name count (`models.allowed` in ~/.config/plimsoll/settings.json).
    - In fix_plan.md, item 4: `(model: dear)` in the plan is ignored: only models that your own settings name count (`models.allowed` in ~/.config/plimsoll/settings.json).
    ");
    let model = ScriptedAgent::new(|turn| {
        let step = match (&turn.item_text, turn.assistant_message_count) {
            (Some(item), 0) => Step::bash_call(tick_item_command(item)).with_input_tokens(30_000),
            (Some(item), _) if item.starts_with("Item four") => {
                Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(31_000)
            }
            _ => Step::from_text("Done.").with_input_tokens(31_000),
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .with_real_client_in(&[1, 2])
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let requests = model.main_requests();
    let models_of_iteration = |iteration: u32| {
        let prompt_phrase = format!("You are session {iteration} of");
        let iteration_requests =
            requests.iter().filter(|request| request.first_message_text().contains(&prompt_phrase));
        iteration_requests.map(|request| request.model.clone()).collect::<Vec<_>>()
    };
    for (iteration, name) in [(1, "haiku"), (2, "sonnet"), (3, "opus"), (4, "opus")] {
        let models = models_of_iteration(iteration);
        assert!(
            !models.is_empty() && models.iter().all(|model| model.contains(name)),
            "{iteration}: {models:?}"
        );
    }
    assert!(requests.iter().all(|request| !request.model.contains("dear")));
    let journal = read_journal(&world);
    let spawned_models: Vec<_> =
        events_named(&journal, "spawned").iter().map(|line| line["model"].clone()).collect();
    assert_eq!(json!(spawned_models), json!(["haiku", "sonnet", "opus", "opus"]));
    for (line, name) in events_named(&journal, "spawned").into_iter().zip(["haiku", "sonnet", "opus"]) {
        let session = line["session_id"].as_str().expect("a session");
        let record = world.read_json(format!(".claude/plimsoll/sessions/{session}.json"));
        let measured_model = record["reading"]["model"].as_str().expect("a model");
        assert!(measured_model.contains(name), "the window is that of {name}: {record}");
    }
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @r#"
    run "Dates" ([ID]), at most 50 sessions, 4 open items in fix_plan.md
    ── session 1: Item one (model: haiku) [haiku]
       client [VERSION], claude-haiku-5-5
       Bash sed -i.bak 's/^- \[ \] Item one (model: haiku)$/- [x] Item one (model: haiku)/'…
       session 1 ended its turn; "Item one (model: haiku)" is ticked
       RALPH_CONTINUE|next|3 open items   (<$0.01)
    ── session 2: Item two (simple) [sonnet]
       client [VERSION], claude-sonnet-5-5
       Bash sed -i.bak 's/^- \[ \] Item two (simple)$/- [x] Item two (simple)/' fix_plan.md…
       session 2 ended its turn; "Item two (simple)" is ticked
       RALPH_CONTINUE|next|2 open items   (<$0.01)
       `(model: dear)` in the plan is ignored: only models that your own settings name count (`models.allowed` in ~/.config/plimsoll/settings.json)
    ── session 3: Item three (model: dear)
       client [VERSION], claude-opus-5-5
       Bash sed -i.bak 's/^- \[ \] Item three (model: dear)$/- [x] Item three (model: dear)…
       session 3 ended its turn; "Item three (model: dear)" is ticked
       RALPH_CONTINUE|next|1 open item   ($0.02)
    ── session 4: Item four (model: dear)
       client [VERSION], claude-opus-5-5
       Bash sed -i.bak 's/^- \[ \] Item four (model: dear)$/- [x] Item four (model: dear)/'…
       session 4 ended its turn; "Item four (model: dear)" is ticked
       RALPH_STOP|completed|4 items   ($0.04)
    "#);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    warning: .claude/plimsoll.json: models.allowed is ignored in a project's file: only your own settings may start a program, send something out, delete records, choose a model, protect files or replace a conversation
    hint: run `plimsoll doctor`
    warning: .claude/plimsoll.json: models.simple is ignored in a project's file: only your own settings may start a program, send something out, delete records, choose a model, protect files or replace a conversation
    hint: run `plimsoll doctor`
    hint: to see what happened: plimsoll report --open, or plimsoll log
    ");
}
