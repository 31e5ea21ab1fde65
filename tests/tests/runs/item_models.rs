//! Which model works on an item: the user's settings decide, and the plan, which anybody may have written, only chooses among
//! the models that they name.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::tick;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, journal, run, world};
use serde_json::json;

#[test]
fn an_item_gets_the_model_that_the_user_allows_and_is_measured_by_it_and_no_other_is_paid() {
    let mut world = world(
        "- [ ] Item one (model: haiku)\n- [ ] Item two (simple)\n- [ ] Item three (model: dear)\n- [ ] Item four (model: dear)\n",
    );
    world.write_user_settings(&json!({ "models": { "simple": "sonnet", "allowed": ["haiku"] } }));
    // Which models may be chosen, a project does not say.
    world.write(
        ".claude/plimsoll.json",
        &json!({ "models": { "allowed": ["dear"], "simple": "dear" } }).to_string(),
    );
    let shown = world.plimsoll(&["plan", "--markdown"]).run();
    for words in [
        "| By | Model |",
        "| 1 | Item one (model: haiku) | - | 40% | 1 | no item has been measured yet: counted as medium | haiku |",
        "| 2 | Item two (simple) | simple | 20% | 1 | its stated size | sonnet |",
        "counted as medium | - |",
        "item 3: `(model: dear)` in the plan is ignored",
    ] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    let model = ScriptedAgent::new(|turn| {
        let step = match (&turn.item, turn.step) {
            (Some(item), 0) => Step::bash(tick(item)).usage(30_000),
            (Some(item), _) if item.starts_with("Item four") => {
                Step::text(format!("All done.\n\n{}", turn.promise)).usage(31_000)
            }
            _ => Step::text("Done.").usage(31_000),
        };
        step.delay(LIFELIKE)
    })
    .with_real_client_in(&[1, 2])
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let requests = model.main_requests();
    let asked = |iteration: u32| {
        let named = format!("You are session {iteration} of");
        let of_it = requests.iter().filter(|request| request.first_text().contains(&named));
        of_it.map(|request| request.model.clone()).collect::<Vec<_>>()
    };
    for (iteration, name) in [(1, "haiku"), (2, "sonnet"), (3, "opus"), (4, "opus")] {
        let asked = asked(iteration);
        assert!(
            !asked.is_empty() && asked.iter().all(|model| model.contains(name)),
            "{iteration}: {asked:?}"
        );
    }
    assert!(requests.iter().all(|request| !request.model.contains("dear")));
    let journal = journal(&world);
    let started: Vec<_> = events(&journal, "spawned").iter().map(|line| line["model"].clone()).collect();
    assert_eq!(json!(started), json!(["haiku", "sonnet", "opus", "opus"]));
    for (line, name) in events(&journal, "spawned").into_iter().zip(["haiku", "sonnet", "opus"]) {
        let session = line["session_id"].as_str().expect("a session");
        let record = world.json(format!(".claude/plimsoll/sessions/{session}.json"));
        let measured = record["reading"]["model"].as_str().expect("a model");
        assert!(measured.contains(name), "the window is that of {name}: {record}");
    }
    for (words, times) in [
        ("── iteration 1: Item one (model: haiku) [haiku]", 1),
        ("── iteration 2: Item two (simple) [sonnet]", 1),
        ("── iteration 3: Item three (model: dear)\n", 1),
        ("`(model: dear)` in the plan is ignored", 1),
    ] {
        assert_eq!(finished.stdout.matches(words).count(), times, "{words}: {finished:?}");
    }
    assert!(finished.stderr.contains("models.allowed is ignored in a project's file"), "{finished:?}");
}
