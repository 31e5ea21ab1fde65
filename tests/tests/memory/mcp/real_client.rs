//! The real client: tools are available without a tool search, and the model sees exactly what the server answers.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

#[test]
fn the_model_writes_its_memory_and_sees_the_answers() {
    let registers = json!({"R0_GOAL": "g".repeat(250), "R2_NEXT": "allocate"});
    let alloc = json!({"name": "api-spec", "content": "add(a,b)", "description": "the functions"});
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::default()
            .with_tool_call("mcp__plimsoll__update_registers", registers)
            .with_tool_call("mcp__plimsoll__heap_alloc", alloc),
        Step::default().with_tool_call("mcp__plimsoll__heap_free", json!({"name": "nothing"})),
        Step::from_text("Done."),
    ]);
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    let server = find_or_build_bin_dir().join("plimsoll-mcp").display().to_string();
    let config = json!({"mcpServers": {"plimsoll": {"command": server}}}).to_string();
    let arguments = [
        "-p",
        "Remember the functions.",
        "--output-format",
        "json",
        "--mcp-config",
        &config,
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__plimsoll",
    ];
    let finished = world.claude(&arguments).run();
    assert_eq!(finished.last_result()["result"], "Done.", "{}", finished.stderr);

    let requests = model.main_requests();
    let tools: Vec<&Value> = requests[0].body["tools"].as_array().expect("tools").iter().collect();
    let find_tool = |name: &str| tools.iter().find(|tool| tool["name"] == format!("mcp__plimsoll__{name}"));
    for name in [
        "update_registers",
        "push_frame",
        "pop_frame",
        "heap_alloc",
        "heap_write",
        "heap_free",
        "memory_show",
        "turns_list",
        "turns_show",
    ] {
        assert!(find_tool(name).is_some(), "{name} is there from the first request on");
    }
    let max_length =
        &find_tool("update_registers").expect("it")["input_schema"]["properties"]["R3_PHASE"]["maxLength"];
    assert_eq!(max_length, 60);
    let first_request_text = requests[0].body.to_string();
    for rule in ["Take the first action that applies", "push_frame tests."] {
        assert!(first_request_text.contains(rule), "the model is told the rules, to their last word: {rule}");
    }

    let answers: Vec<String> = requests[1].all_tool_results().into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        answers,
        [
            "ok r1\ncut R0_GOAL: limit 240, given 250, kept 240, dropped 10; shorten it, or move it to the heap",
            "ok r2\nHEAP 8 of 8000 chars (0%), pressure low\n- api-spec 8 chars (0%), age 0, rev 2",
        ]
    );
    let refusals = requests[2].all_tool_results();
    assert!(
        refusals.iter().any(|(_, text)| text.contains("there is no chunk nothing: there are api-spec")),
        "{refusals:?}"
    );

    let call_ids: Vec<String> = requests[1].all_tool_results().into_iter().map(|(id, _)| id).collect();
    let history = world.plimsoll(&["memory", "history", "--json"]).run().expect_success().stdout_json();
    let recorded_call_ids: Vec<&str> =
        history.as_array().expect("changes").iter().filter_map(|change| change["call"].as_str()).collect();
    assert_eq!(recorded_call_ids, call_ids, "each change names the call that made it");
}
