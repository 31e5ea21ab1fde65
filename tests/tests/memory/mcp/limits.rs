//! Limits of the memory tools. The client checks nothing, so the server enforces every limit; a refused call changes
//! nothing.

use crate::mcp::json_rpc_client::JsonRpcClient;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::time::Duration;

fn text_of_length(length: usize) -> String {
    "ä".repeat(length)
}

#[test]
fn an_overlong_register_is_cut_and_reported_or_refused_if_strict() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    let limits = [
        ("R0_GOAL", 240),
        ("R1_PLAN", 980),
        ("R2_NEXT", 200),
        ("R3_PHASE", 60),
        ("R4_CONSTRAINTS", 720),
        ("R5_ASSUMPTIONS", 480),
        ("R6_OPEN_QUESTIONS", 600),
        ("R7_STATUS", 300),
    ];
    for (number, (register, limit)) in limits.into_iter().enumerate() {
        let refusal = client.call_refused_tool(
            "update_registers",
            json!({register: text_of_length(limit + 1), "strict": true}),
        );
        let expected = format!(
            "{register} takes at most {limit} characters, but {} were given: shorten it, or put the rest on the heap. Nothing was written.",
            limit + 1
        );
        assert_eq!(refusal, expected);
        assert_eq!(
            client.call_tool("update_registers", json!({register: text_of_length(limit), "strict": true})),
            format!("ok r{}", 2 * number + 1)
        );
        let cut_reply = client.call_tool("update_registers", json!({register: text_of_length(limit + 5)}));
        let expected = format!(
            "ok r{}\ncut {register}: limit {limit}, given {}, kept {limit}, dropped 5;",
            2 * number + 2,
            limit + 5
        );
        assert!(cut_reply.starts_with(&expected), "{cut_reply}");
        if register == "R3_PHASE" {
            insta::assert_snapshot!(cut_reply, @"
            ok r8
            cut R3_PHASE: limit 60, given 65, kept 60, dropped 5; shorten it, or move it to the heap
            ");
        }
    }
    insta::assert_snapshot!(client.call_refused_tool("update_registers", json!({"R1_PLAN": text_of_length(100_001)})), @"update_registers: R1_PLAN takes at most 100000 characters, and 100001 were given: put it into a file, and a pointer here. Nothing was done.");
}

#[test]
fn invalid_arguments_are_named_and_change_nothing() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    client.call_tool("heap_alloc", json!({"name": "a", "content": "x"}));
    let push_arguments = |name: &str, objective: &str| json!({"name": name, "objective": objective, "context": "", "return_spec": ""});
    let calls: Vec<(&str, Value)> = vec![
        ("update_registers", json!({})),
        ("update_registers", json!({"R2_NEXT": 5})),
        ("update_registers", json!({"R2_NEXT": null})),
        ("update_registers", json!({"R2_NEXT": ["x"]})),
        ("update_registers", json!({"R2_NEXT": "x", "R8": "y"})),
        ("update_registers", json!({"R2_NEXT": "x", "strict": "yes"})),
        ("push_frame", json!({"name": "f", "objective": "o", "context": "c"})),
        ("push_frame", push_arguments(&text_of_length(46), "o")),
        ("push_frame", push_arguments("", "o")),
        ("push_frame", push_arguments("two\nlines", "o")),
        ("push_frame", push_arguments("f", " ")),
        ("push_frame", push_arguments("f", &text_of_length(4_001))),
        ("pop_frame", json!({})),
        ("pop_frame", json!({"result": text_of_length(10_001)})),
        ("heap_alloc", json!({"name": "a", "content": "y"})),
        ("heap_alloc", json!({"name": "a b", "content": "y"})),
        ("heap_alloc", json!({"name": text_of_length(41), "content": "y"})),
        ("heap_alloc", json!({"name": "b", "content": text_of_length(9_501)})),
        ("heap_alloc", json!({"name": "b", "content": "😀".repeat(4_751)})),
        ("heap_alloc", json!({"name": "b", "content": "y", "description": text_of_length(81)})),
        ("heap_write", json!({"name": "b", "content": "y"})),
        ("heap_free", json!({"name": "b"})),
        ("memory_show", json!({"all": true})),
        ("turns_list", json!({"last": 0})),
        ("turns_list", json!({"last": 2.5})),
        ("turns_list", json!({"failures": 1})),
        ("turns_show", json!({})),
        ("read_file", json!({"path": 1})),
        ("write_file", json!({"path": "f"})),
        ("write_file", json!({"path": "f", "content": "x".repeat(1_000_001)})),
        ("run_command", json!({"command": "x".repeat(20_001)})),
        ("run_command", json!({"command": ["ls"]})),
        ("update_registers", json!("R2_NEXT")),
        ("update_registers", json!(["x"])),
        ("update_registers", json!(7)),
    ];
    let refusals: Vec<String> =
        calls.into_iter().map(|(tool, arguments)| client.call_refused_tool(tool, arguments)).collect();
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    no register is given: give at least one of R0_GOAL … R7_STATUS. Nothing was written.
    update_registers: R2_NEXT is 5: give a string. Nothing was done.
    update_registers: R2_NEXT is null: leave it out to keep it, give "" to clear it. Nothing was done.
    update_registers: R2_NEXT is an array: give a string. Nothing was done.
    update_registers: "R8" is unknown: it takes R0_GOAL, R1_PLAN, R2_NEXT, R3_PHASE, R4_CONSTRAINTS, R5_ASSUMPTIONS, R6_OPEN_QUESTIONS, R7_STATUS, strict. Nothing was done.
    update_registers: strict is a string: give true or false. Nothing was done.
    push_frame: return_spec is missing: What to report: files, test results, problems; no code. Nothing was done.
    push_frame: name takes at most 45 characters, and 46 were given: shorten it. Nothing was done.
    a frame's name has 1 to 45 characters on one line, and this one has 0. Nothing was written.
    a frame's name has 1 to 45 characters on one line, and this one has 9. Nothing was written.
    the objective is empty: state what to produce, where, and how to verify it. Nothing was written.
    push_frame: objective takes at most 4000 characters, and 4001 were given: shorten it. Nothing was done.
    pop_frame: result is missing: All that the parent sees: what was done, found and decided; no code, no long output. Nothing was done.
    pop_frame: result takes at most 10000 characters, and 10001 were given: shorten it. Nothing was done.
    the chunk a already exists: rewrite it with heap_write. Nothing was written.
    a chunk's name has 1 to 40 letters, digits or -_./: and "a b" has others or is too long. Nothing was written.
    heap_alloc: name takes at most 40 characters, and 41 were given: shorten it. Nothing was done.
    heap_alloc: content takes at most 9500 characters, and 9501 were given: shorten it. Nothing was done.
    b would have 9502 UTF-16 units, but a chunk has at most 9500: shorten it, or put it into a file. Nothing was written.
    heap_alloc: description takes at most 80 characters, and 81 were given: shorten it. Nothing was done.
    there is no chunk b: there are a. Nothing was written.
    there is no chunk b: there are a. Nothing was written.
    memory_show: "all" is unknown: it takes no arguments. Nothing was done.
    turns_list: last is 0: give a whole number from 1 to 200. Nothing was done.
    turns_list: last is 2.5: give a whole number from 1 to 200. Nothing was done.
    turns_list: failures is 1: give true or false. Nothing was done.
    turns_show: turn is missing: Its name as turns_list shows it, SESSION:NUMBER. Nothing was done.
    read_file: path is 1: give a string. Nothing was done.
    write_file: content is missing: The whole content. Nothing was done.
    write_file: content takes at most 1000000 characters, and 1000001 were given: shorten it. Nothing was done.
    run_command: command takes at most 20000 characters, and 20001 were given: shorten it. Nothing was done.
    run_command: command is an array: give a string. Nothing was done.
    the arguments are not a JSON object: give one, with the names that tools/list shows. Nothing was done.
    the arguments are not a JSON object: give one, with the names that tools/list shows. Nothing was done.
    the arguments are not a JSON object: give one, with the names that tools/list shows. Nothing was done.
    "#);
    let history = world.plimsoll(&["memory", "history", "--json"]).run().expect_success().stdout_json();
    assert_eq!(history.as_array().map(Vec::len), Some(1), "{history}");
    assert!(!world.exists("f"));
    let unknown_tool = client.call_method("tools/call", json!({"name": "no_tool", "arguments": {}}));
    assert_eq!(unknown_tool["error"]["code"], -32602);
    let mut plain_client = JsonRpcClient::start_initialized(&world, &[]);
    let workspace_tool =
        plain_client.call_method("tools/call", json!({"name": "read_file", "arguments": {"path": "x"}}));
    insta::assert_snapshot!(workspace_tool["error"]["message"].as_str().expect("words"), @"unknown tool read_file: start plimsoll-mcp with --workspace for it");
}

#[test]
fn at_most_five_frames_can_be_nested() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    let push_arguments = |depth: usize| json!({"name": format!("f{depth}"), "objective": "o", "context": "", "return_spec": ""});
    for depth in 1..=5 {
        assert_eq!(client.call_tool("push_frame", push_arguments(depth)), format!("ok r{depth}"));
    }
    insta::assert_snapshot!(client.call_refused_tool("push_frame", push_arguments(6)), @"the stack is full (5 frames above the root): finish this one with pop_frame. Nothing was written.");
    for _ in 0..5 {
        client.call_tool("pop_frame", json!({"result": "done"}));
    }
    insta::assert_snapshot!(client.call_tool("memory_show", json!({})), @r#"
    <plimsoll-memory rev="10" frame="root" depth="0"> (for each frame, the highest rev is current)
    R3 PHASE: returned from: f1
    R7 STATUS: done
    </plimsoll-memory>
    "#);
}

#[test]
fn a_chunk_that_would_exceed_the_heap_limit_is_refused() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    for name in ["a", "b"] {
        client.call_tool("heap_alloc", json!({"name": name, "content": "x".repeat(9_500)}));
    }
    let refusal = client.call_refused_tool("heap_alloc", json!({"name": "c", "content": "x".repeat(5_001)}));
    insta::assert_snapshot!(refusal, @"the heap would hold 24001 UTF-16 units, but takes at most 24000: free chunks first. Nothing was written.");
    client.call_tool("heap_alloc", json!({"name": "c", "content": "x".repeat(5_000)}));
}

#[test]
fn a_slow_command_does_not_delay_other_calls() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    let params = json!({"name": "run_command", "arguments": {"command": "until [ -e go ]; do sleep 0.1; done; echo gone"}});
    let slow_request_id = client.send_request("tools/call", params);
    assert_eq!(client.call_tool("update_registers", json!({"R2_NEXT": "x"})), "ok r1");
    world.write("go", "");
    let answer = client.wait_for_answer(slow_request_id);
    assert_eq!(answer["result"]["content"][0]["text"], "exit 0\nstdout:\ngone");
}

#[test]
fn a_canceled_call_ends_its_command() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    let request_id = client.send_request(
        "tools/call",
        json!({"name": "run_command", "arguments": {"command": "touch begun; sleep 4; touch late"}}),
    );
    world.wait_until(|| world.exists("begun"), "the command runs");
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}),
    );
    assert_eq!(client.list_tools().len(), 13);
    std::thread::sleep(Duration::from_secs(5));
    assert!(!world.exists("late"));
}

#[test]
fn a_disk_error_is_reported_and_the_server_continues() {
    let world = World::without_git();
    world.write(".claude/plimsoll/memory", "a file where the folder should be");
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    let refusal = client.call_refused_tool("update_registers", json!({"R2_NEXT": "x"}));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refusal), @"
    cannot open [PROJECT]/.claude/plimsoll/memory/log.lock: Not a directory (os error 20)
    hint: check the path, its permissions and the free space
    ");
    std::fs::remove_file(world.path(".claude/plimsoll/memory")).expect("the file");
    assert_eq!(client.call_tool("update_registers", json!({"R2_NEXT": "x"})), "ok r1");
}

#[test]
fn long_output_is_cut_in_the_middle_and_long_files_at_the_end() {
    let world = World::without_git();
    world.write("long.txt", &"ä".repeat(10_001));
    world.write("just.txt", &"ä".repeat(10_000));
    world.write("empty.txt", "");
    std::fs::write(world.path("binary"), [1, 0, 2]).expect("a file");
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    let text = client.call_tool("read_file", json!({"path": "long.txt"}));
    assert!(text.ends_with("ä\n[the first 10000 characters of 20002 bytes]"), "{}", text.len());
    assert_eq!(client.call_tool("read_file", json!({"path": "just.txt"})), "ä".repeat(10_000));
    assert_eq!(client.call_tool("read_file", json!({"path": "empty.txt"})), "[the file is empty]");
    insta::assert_snapshot!(client.call_refused_tool("read_file", json!({"path": "binary"})), @"binary is not text: 3 bytes, some of them zero. Inspect it with a program");
    let output = client.call_refused_tool("run_command", json!({"command": "seq 1 20000; exit 7"}));
    assert!(output.starts_with("exit 7\nstdout (cut in the middle: 108893 characters):\n1\n2\n"), "{output}");
    assert!(output.ends_with("19999\n20000") && output.chars().count() < 8_100, "{}", output.len());
    insta::assert_snapshot!(client.call_refused_tool("run_command", json!({"command": "kill -9 $$"})), @"ended by a signal");
}
