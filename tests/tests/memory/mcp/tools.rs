//! What each tool declares about itself, and what it does.

use crate::mcp::json_rpc_client::JsonRpcClient;
use plimsoll_testkit::fixtures_dir;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn memory_history(world: &World) -> Vec<Value> {
    let finished = world.plimsoll(&["memory", "history", "--json", "-n", "100"]).run().expect_success();
    finished.stdout_json().as_array().expect("an array").clone()
}

#[test]
fn every_tool_describes_itself_and_loads_without_a_tool_search() {
    let world = World::without_git();
    let tools = JsonRpcClient::start_initialized(&world, &["--workspace"]).list_tools();
    // Read-only, destructive, idempotent (a repetition changes nothing more), open world (reaches outside).
    let expected: BTreeMap<&str, [bool; 4]> = [
        ("update_registers", [false, true, true, false]),
        ("push_frame", [false, false, false, false]),
        ("pop_frame", [false, true, false, false]),
        ("heap_alloc", [false, false, false, false]),
        ("heap_write", [false, true, true, false]),
        ("heap_free", [false, true, true, false]),
        ("memory_show", [true, false, true, false]),
        ("turns_list", [true, false, true, false]),
        ("turns_show", [true, false, true, false]),
        ("read_file", [true, false, true, false]),
        ("write_file", [false, true, true, false]),
        ("list_files", [true, false, true, false]),
        ("run_command", [false, true, false, true]),
    ]
    .into();
    assert_eq!(tools.len(), expected.len());
    for tool in &tools {
        let name = tool["name"].as_str().expect("a name");
        let hints = &tool["annotations"];
        let tool_hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
            .map(|hint| hints[hint].as_bool().expect("a hint"));
        assert_eq!(tool_hints, expected[name], "{name}");
        assert_eq!(tool["_meta"], json!({"anthropic/alwaysLoad": true}), "{name}");
        assert!(
            tool["title"].is_string() && tool["description"].as_str().is_some_and(|text| text.len() < 350)
        );
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        assert!(tool.get("outputSchema").is_none(), "{name}");
        for (argument, property) in schema["properties"].as_object().expect("properties") {
            assert!(property["type"].is_string() && property["description"].is_string(), "{name} {argument}");
            assert_eq!(property["type"] == "string", property["maxLength"].is_u64(), "{name} {argument}");
        }
    }
    let registers = tools[0]["inputSchema"]["properties"].as_object().expect("properties");
    let limits: Vec<u64> = registers.values().filter_map(|property| property["maxLength"].as_u64()).collect();
    assert_eq!(limits, [240, 980, 200, 60, 720, 480, 600, 300]);
    assert!(tools[0]["inputSchema"].get("required").is_none(), "all are optional");
}

/// No hook counts the model's responses here, so the server counts the steps itself.
#[test]
fn chunks_age_with_each_step_even_without_hooks() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    client.call_tool("heap_alloc", json!({"name": "api", "content": "add(a,b)"}));
    for step in ["read", "write", "verify"] {
        client.call_tool("update_registers", json!({"R2_NEXT": step, "R7_STATUS": format!("before {step}")}));
        // A correction of a register that belongs to no step does not begin one.
        client.call_tool("update_registers", json!({"R4_CONSTRAINTS": format!("none at {step}")}));
    }
    let index = client.call_tool("heap_alloc", json!({"name": "new", "content": "x"}));
    insta::assert_snapshot!(index, @"
    ok r8
    HEAP 9 of 8000 chars (0%), pressure low
    - api 8 chars (0%), age 2, rev 1
    - new 1 chars (0%), age 0, rev 8
    ");
}

#[test]
fn the_original_example_session_works_with_the_tools() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    assert_eq!(client.call_tool("memory_show", json!({})), "nothing has been written yet (r0)");
    let registers = json!({"R0_GOAL": "Build calc.py + test_calc.py", "R1_PLAN": "1. calc.py\n2. tests",
        "R2_NEXT": "Push frame", "R3_PHASE": "planning", "R7_STATUS": "Step 0"});
    assert_eq!(client.call_tool("update_registers", registers), "ok r1");
    let alloc_arguments = json!({"name": "api-spec", "content": "add(a,b)", "description": "the functions"});
    assert_eq!(
        client.call_tool("heap_alloc", alloc_arguments),
        "ok r2\nHEAP 8 of 8000 chars (0%), pressure low\n- api-spec 8 chars (0%), age 0, rev 2"
    );
    let push_arguments = json!({"name": "implement-calc", "objective": "Create calc.py with add(a,b)",
        "context": "Pure Python.", "return_spec": "Report: file path, verification"});
    assert_eq!(client.call_tool("push_frame", push_arguments), "ok r3");
    insta::assert_snapshot!(client.call_tool("memory_show", json!({})), @r#"
    <plimsoll-memory rev="3" frame="implement-calc" depth="1"> (for each frame, the highest rev is current)
    R0 GOAL: Create calc.py with add(a,b)
    R1 PLAN: 1. calc.py
     2. tests
    R3 PHASE: entering: implement-calc
    R7 STATUS: Entered sub-frame. Starting.
    HEAP 8 of 8000 chars (0%), pressure low
    - api-spec 8 chars (0%), age 0, rev 2: the functions
    </plimsoll-memory>
    OBJECTIVE: Create calc.py with add(a,b)
    CONTEXT: Pure Python.
    RETURN: Report: file path, verification
    <plimsoll-chunk name="api-spec" rev="2">
    add(a,b)
    </plimsoll-chunk>
    "#);
    assert_eq!(
        client.call_tool(
            "write_file",
            json!({"path": "src/calc.py", "content": "def add(a, b): return a + b\n"})
        ),
        "ok, 28 bytes, a new file"
    );
    assert_eq!(
        client.call_tool("read_file", json!({"path": "src/calc.py"})),
        "def add(a, b): return a + b\n"
    );
    assert_eq!(client.call_tool("list_files", json!({"path": "src"})), "calc.py  28");
    assert_eq!(
        client.call_tool("run_command", json!({"command": "wc -l < src/calc.py; pwd; echo no >&2"})),
        format!("exit 0\nstdout:\n1\n{}\nstderr:\nno", world.project().display())
    );
    client.call_tool(
        "update_registers",
        json!({"R4_CONSTRAINTS": "no floats", "R6_OPEN_QUESTIONS": "who tests?"}),
    );
    let pop_reply = client.call_tool("pop_frame", json!({"result": "Created calc.py with add."}));
    assert_eq!(pop_reply, "ok r5\nnote: R4_CONSTRAINTS of the child differs from yours and was not merged");
    insta::assert_snapshot!(client.call_tool("memory_show", json!({})), @r#"
    <plimsoll-memory rev="5" frame="root" depth="0"> (for each frame, the highest rev is current)
    R0 GOAL: Build calc.py + test_calc.py
    R1 PLAN: 1. calc.py
     2. tests
    R3 PHASE: returned from: implement-calc
    R6 OPEN_QUESTIONS: who tests?
    R7 STATUS: Created calc.py with add.
    HEAP 8 of 8000 chars (0%), pressure low
    - api-spec 8 chars (0%), age 0, rev 2: the functions
    </plimsoll-memory>
    <plimsoll-chunk name="api-spec" rev="2">
    add(a,b)
    </plimsoll-chunk>
    "#);
    let long = "x".repeat(6_000);
    let write_reply = client.call_tool("heap_write", json!({"name": "api-spec", "content": &long}));
    insta::assert_snapshot!(write_reply, @"
    ok r6
    note: the heap is at 75% of its limit: free chunks that no later step needs
    HEAP 6000 of 8000 chars (75%), pressure elevated
    - api-spec 6000 chars (75%), age 0, rev 6
    ");
    insta::assert_snapshot!(client.call_tool("heap_alloc", json!({"name": "b", "content": &long})), @"
    ok r7
    note: the heap is at 150% of its limit: free chunks that no later step needs
    HEAP 12000 of 8000 chars (150%), pressure over
    - api-spec 6000 chars (75%), age 0, rev 6
    - b 6000 chars (75%), age 0, rev 7
    ");
    insta::assert_snapshot!(client.call_tool("heap_free", json!({"name": "api-spec"})), @"
    ok r8
    note: the heap is at 75% of its limit: free chunks that no later step needs
    HEAP 6000 of 8000 chars (75%), pressure elevated
    - b 6000 chars (75%), age 0, rev 7
    ");
    insta::assert_snapshot!(client.call_tool("pop_frame", json!({"result": "All done."})), @"
    ok r9
    note: the root frame is done; open items and verify commands still decide whether the run is complete
    ");
    insta::assert_snapshot!(client.call_refused_tool("update_registers", json!({"R2_NEXT": "x"})), @"the root frame has popped: nothing is written until the user writes again. Nothing was written.");
    let shown = client.call_tool("memory_show", json!({}));
    insta::assert_snapshot!(shown.replace(&long, "[6000 LETTERS]"), @r#"
    <plimsoll-memory rev="9" frame="root" depth="0"> (for each frame, the highest rev is current)
    R0 GOAL: Build calc.py + test_calc.py
    R1 PLAN: 1. calc.py
     2. tests
    R3 PHASE: returned from: implement-calc
    R6 OPEN_QUESTIONS: who tests?
    R7 STATUS: Created calc.py with add.
    HEAP 6000 of 8000 chars (75%), pressure elevated
    - b 6000 chars (75%), age 0, rev 7
    </plimsoll-memory>
    DONE: the root frame has popped
    <plimsoll-chunk name="b" rev="7">
    [6000 LETTERS]
    </plimsoll-chunk>
    "#);
    let history = memory_history(&world);
    assert_eq!(history.len(), 9);
    assert!(history.iter().all(|change| change["by"] == "mcp"), "{history:?}");
}

#[test]
fn a_change_records_the_id_of_the_tool_call_that_made_it() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    for (meta, expected_call) in [
        (json!({"claudecode/toolUseId": "toolu_01"}), json!("toolu_01")),
        (json!({}), Value::Null),
        (json!({"claudecode/toolUseId": 7}), Value::Null),
        (json!({"claudecode/toolUseId": "x".repeat(1_000)}), Value::Null),
    ] {
        let params = json!({"name": "update_registers", "arguments": {"R2_NEXT": "x"}, "_meta": meta});
        assert_eq!(client.call_method("tools/call", params)["result"]["isError"], false);
        assert_eq!(memory_history(&world).last().expect("a change")["call"], expected_call);
    }
}

#[test]
fn recorded_turns_can_be_listed_filtered_and_shown() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    let refusal = client.call_refused_tool("turns_list", json!({}));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refusal), @"no turn has been recorded in [PROJECT] yet: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`");
    for session in ["parallel_tools", "natural_sizes"] {
        let text = std::fs::read_to_string(fixtures_dir().join(format!("transcripts/{session}.jsonl")))
            .expect("a fixture");
        world.write(format!("{session}.jsonl"), &text);
        let end_event = json!({"session_id": session, "transcript_path": world.path(format!("{session}.jsonl")),
            "cwd": world.project(), "hook_event_name": "SessionEnd", "reason": "other"});
        world.hook("plimsoll-session-end", &end_event).run().expect_success();
    }
    let turn_names = |turn_list: String| -> Vec<String> {
        turn_list.lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(turn_names(client.call_tool("turns_list", json!({"last": 1}))), ["natural_:10"]);
    assert_eq!(
        turn_names(client.call_tool("turns_list", json!({"failures": true}))),
        ["parallel:1", "natural_:8"]
    );
    assert_eq!(
        turn_names(client.call_tool("turns_list", json!({"tool": "glob", "session": "para"}))),
        ["parallel:1"]
    );
    assert_eq!(client.call_tool("turns_list", json!({"text": "said by nobody"})), "no turn matches");
    let line = client.call_tool("turns_list", json!({"tool": "glob"}));
    let (_, failed_turn) = line.split_once("tool_error ").expect("a turn that failed");
    insta::assert_snapshot!(failed_turn, @"Bash(echo A) · Bash(sleep 0.2; echo B) · Bash(exit 3) · Read(/etc/hostname) · Glob(*.zzz) — w");
    let turn = client.call_tool("turns_show", json!({"turn": "parallel:1"}));
    // Without the first line, which has the local time, and without a call whose result ends with a tab.
    let (_, turn) = turn.split_once('\n').expect("several lines");
    let (text_before_read, _) = turn.split_once("\n→ Read(").expect("a call of Read");
    let text_from_glob = &turn[turn.find("→ Glob(").expect("a call of Glob")..];
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(text_before_read), @"
    Session  parallel_tools, stream main
    Model    claude-opus-5-5, stopped for tool_use, reasoning none
    Tokens   10 input (0 from the cache), 50 output
    Failed   tool_error: Exit code 3

    w

    → Bash(echo A)   [ok, [DURATION]]
      | A

    → Bash(sleep 0.2; echo B)   [ok, [DURATION]]
      | B

    → Bash(exit 3)   [failed, [DURATION]]
      | Exit code 3
    ");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(text_from_glob), @"
    → Glob(*.zzz)   [failed, [DURATION]]
      | ‹tool_use_error>Error: No such tool available: Glob. Glob is not available in this session — find files with `find` via the Bash tool instead.‹/tool_use_error>
    ");
    insta::assert_snapshot!(client.call_refused_tool("turns_show", json!({"turn": "parallel:99"})), @"there is no turn parallel:99: name it as `plimsoll turns list` does, SESSION:NUMBER");
    insta::assert_snapshot!(client.call_refused_tool("turns_list", json!({"session": "zzz"})), @r#"no session here starts with "zzz": see `plimsoll turns list`"#);
}

#[test]
fn the_client_chooses_the_project_with_claude_project_dir() {
    let world = World::without_git();
    let other_project = world.create_project("other");
    let env = [("CLAUDE_PROJECT_DIR", other_project.display().to_string())];
    let mut client = JsonRpcClient::start_with_env(&world, &["--workspace"], &env);
    client.initialize("2025-11-25");
    client.call_tool("update_registers", json!({"R2_NEXT": "x"}));
    client.call_tool("write_file", json!({"path": "here", "content": "x"}));
    assert!(
        other_project.join(".claude/plimsoll/memory/log.jsonl").exists()
            && other_project.join("here").exists()
    );
    assert!(!world.exists(".claude/plimsoll/memory") && !world.exists("here"));
}

/// A command in Claude Code's sandbox moves Plimsoll's files into the project while the server runs. The command line
/// and the server must continue with the same memory.
#[test]
fn the_server_follows_memory_files_that_move_into_the_project() {
    let world = World::without_plimsoll_files();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    client.call_tool("heap_alloc", json!({"name": "before", "content": "x"}));
    assert!(!world.exists(".claude/plimsoll"), "the memory is outside of the project");
    let move_script = "cp -r ~/.local/state/plimsoll/projects/* .claude-plimsoll && mkdir -p .claude && mv .claude-plimsoll .claude/plimsoll";
    world.command("sh", &["-c", move_script]).run().expect_success();
    client.call_tool("heap_alloc", json!({"name": "after", "content": "y"}));
    let output = world.plimsoll(&["memory", "show"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&output), @"
    Working memory

    Revision 2, step 0, the root frame.

    Heap

    2 chunks, 2 of 8000 characters (pressure low).

    heap:before (1 character, written in step 0)

    x

    heap:after (1 character, written in step 0)

    y
    ");
}
