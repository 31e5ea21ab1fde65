//! What fills a window is left to subagents, and what stayed with them is told from the turn log.

use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_tests::{LIFELIKE, ScriptedAgent, first_request_of, run, world};
use serde_json::{Value, json};

const KEPT: &str = "(in this project so far, ";

/// A subagent reads what would have filled the window: 9,000 tokens before, 40,000 when it answers with 100.
fn explorer(turn: &Turn<'_>) -> Step {
    match turn.request.text().contains("looked-around") {
        false => Step::bash("echo looked-around").usage(9_000),
        true => Step::text("It is in src/dates.txt.").usage(40_000).output_tokens(100),
    }
    .delay(LIFELIKE)
}

fn delegate(prompt: &str) -> Step {
    let input = json!({"description": "look around", "prompt": prompt, "subagent_type": "Explore"});
    Step::default().tool("Agent", input)
}

#[test]
fn what_stayed_with_subagents_is_told_to_the_next_session_and_to_the_next_run() {
    let mut world = world("- [ ] Item one\n- [ ] Item two\n- [ ] Item three\n");
    let model = ScriptedAgent::new(|turn| {
        if turn.request.kind == RequestKind::Subagent {
            return explorer(turn);
        }
        let item = turn.item.clone().unwrap_or_default();
        match (item.as_str(), turn.step) {
            ("Item one", 0) => delegate("Where is it?").usage(20_000),
            ("Item one" | "Item two", 1) | ("Item two", 0) => Step::bash(tick(&item)).usage(21_000),
            ("Item three", 0) => Step::bash(tick(&item)).usage(21_000),
            ("Item three", _) => Step::text(format!("All done.\n\n{}", turn.promise)).usage(21_000),
            _ => Step::text("Done.").usage(21_000),
        }
        .delay(LIFELIKE)
    })
    .with_real_client()
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let first = first_request_of(&model, 1);
    assert!(first.contains("to subagents: only their answer comes back."), "{first}");
    assert!(!first.contains(KEPT), "nothing has stayed anywhere yet");
    // 40,000 and its last 100 words, without the 9,000 it began with and what it handed back.
    let told = format!("{KEPT}about 31k tokens stayed with 1 subagent).");
    assert!(first_request_of(&model, 2).contains(&told), "{}", first_request_of(&model, 2));
    let state: Value = serde_json::from_str(&world.read(".claude/ralph-state.json")).expect("the state");
    assert_eq!(state["context_history"][0]["delegated"], json!({"agents": 1, "tokens": 31_000}));
    assert_eq!(state["context_history"][1]["delegated"], json!({"agents": 0, "tokens": 0}));
    let stats = world.plimsoll(&["turns", "stats"]).run();
    assert!(stats.stdout.contains("about 31k tokens stayed with 1 subagent"), "{stats:?}");

    world.write("fix_plan.md", "- [ ] Item three\n");
    let again = run(&world, &[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let requests = model.main_requests();
    let last = requests.last().expect("a request").first_text();
    assert!(last.contains(&told), "{last}");
}
