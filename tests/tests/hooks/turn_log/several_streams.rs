//! Sessions with more than one stream or more than one context window.

use crate::turn_log::harness::{
    FIRST, check_log, expected_cost, main_outcomes, model_with_steps, outcomes_of_stream, record_kinds,
    session_launch, total_cost, transcript_path, turns_of_stream, with_nth_usage,
};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_tests::world_with_hooks;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_subagents_stream_is_linked_to_the_call_that_started_it() {
    let agent_input = json!({
        "description": "look", "prompt": "Look around.", "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let mut answer_count = 0;
    let model = ScriptedModel::start(move |request| {
        answer_count += 1;
        let text = request.text_since_last_assistant_message();
        let step = match request.kind {
            RequestKind::Subagent if text.contains("agent-tool-ran") => Step::from_text("I have looked."),
            RequestKind::Subagent => Step::bash_call("echo agent-tool-ran").with_text("I look."),
            _ if text.contains("I have looked.") => Step::from_text("Done."),
            _ => Step::default().with_tool_call("Agent", agent_input.clone()),
        };
        with_nth_usage(step, answer_count)
    });
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").run().expect_success();
    let records = check_log(&world, FIRST);
    assert_eq!(main_outcomes(&records), ["ok", "ok"], "{records:#?}");
    let call = &turns_of_stream(&records, MAIN_STREAM)[0].turn().unwrap().tool_calls()[0];
    let agent = call.ext["agent_id"].as_str().expect("the call names its agent");
    assert_eq!(outcomes_of_stream(&records, agent), ["ok", "ok"]);
    assert_eq!(total_cost(&records), expected_cost(4));
    assert_eq!(turns_of_stream(&records, agent)[0].turn().unwrap().prints(), ["agent-tool-ran"]);
    for turn in turns_of_stream(&records, agent) {
        let ext = turn.turn().unwrap().ext();
        assert_eq!(ext["agent_type"], "general-purpose", "whoever read it: {ext:#?}");
        assert_eq!(ext["started_by"], call.id());
    }
}

#[test]
fn parallel_background_subagents_have_separate_streams() {
    let agent_input = |name: &str| json!({"description": name, "prompt": format!("Be {name}."), "subagent_type": "general-purpose"});
    let (first_agent, second_agent) = (agent_input("one"), agent_input("two"));
    let model = ScriptedModel::start(move |request| {
        match (request.kind, request.text_since_last_assistant_message()) {
            (RequestKind::Subagent, text) if text.contains("a-tool-ran") => Step::from_text("Looked."),
            (RequestKind::Subagent, _) => Step::bash_call("sleep 0.2; echo a-tool-ran"),
            (_, text) if text.contains("task-notification") => Step::from_text("Heard."),
            (_, text) if text.contains("Work.") => Step::default()
                .with_tool_call("Agent", first_agent.clone())
                .with_tool_call("Agent", second_agent.clone()),
            _ => Step::from_text("I wait."),
        }
    });
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").run().expect_success();
    let records = check_log(&world, FIRST);
    let calls = turns_of_stream(&records, MAIN_STREAM)[0].turn().unwrap().tool_calls().to_vec();
    assert_eq!(calls.len(), 2);
    for call in calls {
        let agent = call.ext["agent_id"].as_str().unwrap_or_else(|| panic!("{call:#?}"));
        assert_eq!(outcomes_of_stream(&records, agent), ["ok", "ok"]);
        assert!(
            turns_of_stream(&records, agent)
                .iter()
                .all(|turn| turn.turn().unwrap().ext()["started_by"] == call.id())
        );
    }
    assert!(!record_kinds(&records).contains(&RecordKind::LateContent), "{:?}", record_kinds(&records));
}

#[test]
fn the_turns_of_a_run_name_their_run_and_iteration() {
    let mut world = plimsoll_tests::world_with_plan_and_dates(plimsoll_tests::THREE_ITEM_PLAN);
    let _model = plimsoll_tests::ScriptedAgent::new(plimsoll_tests::honest_agent).start(&mut world);
    let finished = plimsoll_tests::run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.read_json(".claude/ralph-state.json");
    let mut iterations = Vec::new();
    for log in plimsoll_store::TurnLog::one_per_session_oldest_modified_first(
        &crate::turn_log::harness::project(&world),
    ) {
        let records = check_log(&world, log.session_id());
        for turn in turns_of_stream(&records, MAIN_STREAM) {
            let ext = turn.turn().unwrap().ext();
            assert_eq!(ext["run_id"], state["run_id"]);
            iterations.push(ext["iteration"].as_u64().unwrap());
        }
    }
    iterations.sort_unstable();
    iterations.dedup();
    assert_eq!(iterations, [1, 2, 3]);
}

/// The client runs a tool while the rest of the message is still arriving.
#[test]
fn a_message_whose_first_tool_ends_before_its_last_call_is_one_turn() {
    let slow_message = Step::bash_call("echo first")
        .with_tool_call("Bash", json!({"command": "echo second", "description": "b"}))
        .with_tool_call("Bash", json!({"command": "exit 4", "description": "c"}))
        .with_text("Three.")
        .with_text_in_deltas(1, Duration::from_millis(700));
    let model = model_with_steps(vec![slow_message, Step::from_text("Done.")]);
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").run().expect_success();
    let records = check_log(&world, FIRST);
    assert_eq!(main_outcomes(&records), ["tool_error", "ok"], "{:?}", record_kinds(&records));
    assert_eq!(turns_of_stream(&records, MAIN_STREAM)[0].turn().unwrap().tool_calls().len(), 3);
    assert!(!record_kinds(&records).contains(&RecordKind::LateContent), "{records:#?}");
    assert_eq!(total_cost(&records), expected_cost(2));
}

#[test]
fn the_end_of_a_background_command_is_recorded_as_a_prompt() {
    let background_input =
        json!({"command": "sleep 1; echo later", "description": "b", "run_in_background": true});
    let model = ScriptedModel::start(move |request| match request.text_since_last_assistant_message() {
        text if text.contains("task-notification") => Step::from_text("It has ended."),
        text if text.contains("running in background") => Step::from_text("I wait."),
        _ => Step::default().with_tool_call("Bash", background_input.clone()),
    });
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").run().expect_success();
    let records = check_log(&world, FIRST);
    assert_eq!(main_outcomes(&records), ["ok"; 3], "{records:#?}");
    let prompts = record_kinds(&records).iter().filter(|kind| **kind == RecordKind::Prompt).count();
    assert_eq!(prompts, 2, "{records:#?}");
}

#[test]
fn a_compaction_is_an_event_between_turns() {
    let model = ScriptedModel::start(|request| {
        let text = request.full_text();
        match text.matches("a-step").count() {
            _ if text.contains("SUMMARY-OF-WORK") => Step::from_text("Done.").with_input_tokens(40_000),
            0 => Step::bash_call("echo a-step").with_input_tokens(870_000),
            _ => Step::bash_call("echo a-step").with_input_tokens(968_000),
        }
    });
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").run().expect_success();
    let records = check_log(&world, FIRST);
    assert_eq!(main_outcomes(&records), ["ok"; 3], "{:?}", record_kinds(&records));
    let recorded_kinds: Vec<RecordKind> = record_kinds(&records)
        .into_iter()
        .filter(|kind| matches!(kind, RecordKind::Turn | RecordKind::Compaction | RecordKind::LateContent))
        .collect();
    assert_eq!(
        recorded_kinds,
        [RecordKind::Turn, RecordKind::Turn, RecordKind::Compaction, RecordKind::Turn]
    );
    assert!(transcript_path(&world, FIRST).exists());
}
