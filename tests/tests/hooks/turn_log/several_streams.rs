//! Sessions that are more than one stream, or more than one window.

use crate::turn_log::harness::{
    FIRST, ask, check, cost, kinds, model, outcomes, outcomes_of, price, priced, transcript, turns,
};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_tests::installed;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_subagent_is_a_stream_of_its_own_linked_to_the_call_that_started_it() {
    let ask_agent = json!({
        "description": "look", "prompt": "Look around.", "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let mut answered = 0;
    let model = ScriptedModel::start(move |request| {
        answered += 1;
        let text = request.last_text();
        let step = match request.kind {
            RequestKind::Subagent if text.contains("agent-tool-ran") => Step::text("I have looked."),
            RequestKind::Subagent => Step::bash("echo agent-tool-ran").say("I look."),
            _ if text.contains("I have looked.") => Step::text("Done."),
            _ => Step::default().tool("Agent", ask_agent.clone()),
        };
        priced(step, answered)
    });
    let world = installed(&model);
    ask(&world, FIRST, "Work.").run().expect_success();
    let records = check(&world, FIRST);
    assert_eq!(outcomes(&records), ["ok", "ok"], "{records:#?}");
    let call = &turns(&records, MAIN_STREAM)[0].turn().unwrap().tool_calls()[0];
    let agent = call.ext["agent_id"].as_str().expect("the call names its agent");
    assert_eq!(outcomes_of(&records, agent), ["ok", "ok"]);
    assert_eq!(cost(&records), price(4));
    assert_eq!(turns(&records, agent)[0].turn().unwrap().prints(), ["agent-tool-ran"]);
    for turn in turns(&records, agent) {
        let ext = turn.turn().unwrap().ext();
        assert_eq!(ext["agent_type"], "general-purpose", "whoever read it: {ext:#?}");
        assert_eq!(ext["started_by"], call.id());
    }
}

#[test]
fn subagents_that_run_in_the_background_side_by_side_have_each_their_own_stream() {
    let agent = |name: &str| json!({"description": name, "prompt": format!("Be {name}."), "subagent_type": "general-purpose"});
    let (one, two) = (agent("one"), agent("two"));
    let model = ScriptedModel::start(move |request| match (request.kind, request.last_text()) {
        (RequestKind::Subagent, text) if text.contains("a-tool-ran") => Step::text("Looked."),
        (RequestKind::Subagent, _) => Step::bash("sleep 0.2; echo a-tool-ran"),
        (_, text) if text.contains("task-notification") => Step::text("Heard."),
        (_, text) if text.contains("Work.") => {
            Step::default().tool("Agent", one.clone()).tool("Agent", two.clone())
        }
        _ => Step::text("I wait."),
    });
    let world = installed(&model);
    ask(&world, FIRST, "Work.").run().expect_success();
    let records = check(&world, FIRST);
    let calls = turns(&records, MAIN_STREAM)[0].turn().unwrap().tool_calls().to_vec();
    assert_eq!(calls.len(), 2);
    for call in calls {
        let agent = call.ext["agent_id"].as_str().unwrap_or_else(|| panic!("{call:#?}"));
        assert_eq!(outcomes_of(&records, agent), ["ok", "ok"]);
        assert!(
            turns(&records, agent).iter().all(|turn| turn.turn().unwrap().ext()["started_by"] == call.id())
        );
    }
    assert!(!kinds(&records).contains(&RecordKind::LateContent), "{:?}", kinds(&records));
}

#[test]
fn the_turns_of_a_run_name_their_run_and_iteration() {
    let mut world = plimsoll_tests::world(plimsoll_tests::ITEMS);
    let _model = plimsoll_tests::ScriptedAgent::new(plimsoll_tests::honest).start(&mut world);
    let finished = plimsoll_tests::run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.json(".claude/ralph-state.json");
    let mut iterations = Vec::new();
    for log in plimsoll_store::TurnLog::all_sessions(&crate::turn_log::harness::project(&world)) {
        let records = check(&world, log.session_id());
        for turn in turns(&records, MAIN_STREAM) {
            let ext = turn.turn().unwrap().ext();
            assert_eq!(ext["run_id"], state["run_id"]);
            iterations.push(ext["iteration"].as_u64().unwrap());
        }
    }
    iterations.sort_unstable();
    iterations.dedup();
    assert_eq!(iterations, [1, 2, 3]);
}

/// The client runs a tool while the rest of the message is still on its way.
#[test]
fn a_message_whose_first_tool_has_ended_before_its_last_has_come_is_one_turn() {
    let slow = Step::bash("echo first")
        .tool("Bash", json!({"command": "echo second", "description": "b"}))
        .tool("Bash", json!({"command": "exit 4", "description": "c"}))
        .say("Three.")
        .chunks(1, Duration::from_millis(700));
    let model = model(vec![slow, Step::text("Done.")]);
    let world = installed(&model);
    ask(&world, FIRST, "Work.").run().expect_success();
    let records = check(&world, FIRST);
    assert_eq!(outcomes(&records), ["tool_error", "ok"], "{:?}", kinds(&records));
    assert_eq!(turns(&records, MAIN_STREAM)[0].turn().unwrap().tool_calls().len(), 3);
    assert!(!kinds(&records).contains(&RecordKind::LateContent), "{records:#?}");
    assert_eq!(cost(&records), price(2));
}

#[test]
fn a_command_in_the_background_returns_at_once_and_its_end_is_a_prompt() {
    let background = json!({"command": "sleep 1; echo later", "description": "b", "run_in_background": true});
    let model = ScriptedModel::start(move |request| match request.last_text() {
        text if text.contains("task-notification") => Step::text("It has ended."),
        text if text.contains("running in background") => Step::text("I wait."),
        _ => Step::default().tool("Bash", background.clone()),
    });
    let world = installed(&model);
    ask(&world, FIRST, "Work.").run().expect_success();
    let records = check(&world, FIRST);
    assert_eq!(outcomes(&records), ["ok"; 3], "{records:#?}");
    let prompts = kinds(&records).iter().filter(|kind| **kind == RecordKind::Prompt).count();
    assert_eq!(prompts, 2, "{records:#?}");
}

#[test]
fn a_compaction_is_an_event_between_turns() {
    let model = ScriptedModel::start(|request| {
        let text = request.text();
        match text.matches("a-step").count() {
            _ if text.contains("SUMMARY-OF-WORK") => Step::text("Done.").usage(40_000),
            0 => Step::bash("echo a-step").usage(870_000),
            _ => Step::bash("echo a-step").usage(968_000),
        }
    });
    let world = installed(&model);
    ask(&world, FIRST, "Work.").run().expect_success();
    let records = check(&world, FIRST);
    assert_eq!(outcomes(&records), ["ok"; 3], "{:?}", kinds(&records));
    let seen: Vec<RecordKind> = kinds(&records)
        .into_iter()
        .filter(|kind| matches!(kind, RecordKind::Turn | RecordKind::Compaction | RecordKind::LateContent))
        .collect();
    assert_eq!(seen, [RecordKind::Turn, RecordKind::Turn, RecordKind::Compaction, RecordKind::Turn]);
    assert!(transcript(&world, FIRST).exists());
}
