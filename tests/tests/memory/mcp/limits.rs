//! The client checks nothing: every limit is the server's, and a call that is refused changes nothing.

use crate::mcp::json_rpc_client::Client;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::time::Duration;

fn long(length: usize) -> String {
    "ä".repeat(length)
}

#[test]
fn a_register_that_is_too_long_is_cut_and_reported_or_refused() {
    let world = World::without_git();
    let mut client = Client::start(&world, &[]);
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
        let refused = client.refused("update_registers", json!({register: long(limit + 1), "strict": true}));
        let expected = format!("{register} takes at most {limit} characters, and {} were given", limit + 1);
        assert!(refused.starts_with(&expected), "{refused}");
        assert_eq!(
            client.ok("update_registers", json!({register: long(limit), "strict": true})),
            format!("ok r{}", 2 * number + 1)
        );
        let cut = client.ok("update_registers", json!({register: long(limit + 5)}));
        let expected = format!(
            "ok r{}\ncut {register}: limit {limit}, given {}, kept {limit}, dropped 5;",
            2 * number + 2,
            limit + 5
        );
        assert!(cut.starts_with(&expected), "{cut}");
    }
    let many = client.refused("update_registers", json!({"R1_PLAN": long(100_001)}));
    assert!(many.contains("put it into a file"), "{many}");
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let world = World::without_git();
    let mut client = Client::start(&world, &["--workspace"]);
    client.ok("heap_alloc", json!({"name": "a", "content": "x"}));
    let push = |name: &str, objective: &str| json!({"name": name, "objective": objective, "context": "", "return_spec": ""});
    let cases: Vec<(&str, Value, &str)> = vec![
        ("update_registers", json!({}), "no register is named"),
        ("update_registers", json!({"R2_NEXT": 5}), "R2_NEXT is 5: give a string"),
        ("update_registers", json!({"R2_NEXT": null}), "give \"\" to clear it"),
        ("update_registers", json!({"R2_NEXT": ["x"]}), "R2_NEXT is an array"),
        (
            "update_registers",
            json!({"R2_NEXT": "x", "R8": "y"}),
            "\"R8\" is unknown: it takes R0_GOAL, R1_PLAN",
        ),
        (
            "update_registers",
            json!({"R2_NEXT": "x", "strict": "yes"}),
            "strict is a string: give true or false",
        ),
        (
            "push_frame",
            json!({"name": "f", "objective": "o", "context": "c"}),
            "return_spec is missing: What to report",
        ),
        ("push_frame", push(&long(46), "o"), "name takes at most 45 characters, and 46 were given"),
        ("push_frame", push("", "o"), "a frame's name has 1 to 45 characters"),
        ("push_frame", push("two\nlines", "o"), "on one line"),
        ("push_frame", push("f", " "), "the objective is empty"),
        ("push_frame", push("f", &long(4_001)), "objective takes at most 4000 characters"),
        ("pop_frame", json!({}), "result is missing"),
        ("pop_frame", json!({"result": long(10_001)}), "result takes at most 10000 characters"),
        ("heap_alloc", json!({"name": "a", "content": "y"}), "rewrite it with heap_write"),
        ("heap_alloc", json!({"name": "a b", "content": "y"}), "1 to 40 letters, digits or -_./:"),
        ("heap_alloc", json!({"name": long(41), "content": "y"}), "name takes at most 40"),
        ("heap_alloc", json!({"name": "b", "content": long(9_501)}), "content takes at most 9500 characters"),
        ("heap_alloc", json!({"name": "b", "content": "😀".repeat(4_751)}), "9502 UTF-16 units"),
        (
            "heap_alloc",
            json!({"name": "b", "content": "y", "description": long(81)}),
            "description takes at most 80",
        ),
        ("heap_write", json!({"name": "b", "content": "y"}), "there is no chunk b: there are a"),
        ("heap_free", json!({"name": "b"}), "there is no chunk b"),
        ("memory_show", json!({"all": true}), "\"all\" is unknown: it takes no arguments"),
        ("turns_list", json!({"last": 0}), "last is 0: give a whole number from 1 to 200"),
        ("turns_list", json!({"last": 2.5}), "last is 2.5"),
        ("turns_list", json!({"failures": 1}), "failures is 1: give true or false"),
        ("turns_show", json!({}), "turn is missing"),
        ("read_file", json!({"path": 1}), "path is 1: give a string"),
        ("write_file", json!({"path": "f"}), "content is missing"),
        (
            "write_file",
            json!({"path": "f", "content": "x".repeat(1_000_001)}),
            "content takes at most 1000000",
        ),
        ("run_command", json!({"command": "x".repeat(20_001)}), "command takes at most 20000"),
        ("run_command", json!({"command": ["ls"]}), "command is an array"),
    ];
    for (tool, arguments, expected) in cases {
        let said = client.refused(tool, arguments);
        assert!(said.contains(expected), "{tool}: {said}");
    }
    for arguments in [json!("R2_NEXT"), json!(["x"]), json!(7)] {
        let said = client.refused("update_registers", arguments);
        assert!(said.contains("not a JSON object"), "{said}");
    }
    let history = world.plimsoll(&["memory", "history", "--json"]).run().expect_success().json();
    assert_eq!(history.as_array().map(Vec::len), Some(1), "{history}");
    assert!(!world.exists("f"));
    let unknown = client.ask("tools/call", json!({"name": "no_tool", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    let mut plain = Client::start(&world, &[]);
    let behind = plain.ask("tools/call", json!({"name": "read_file", "arguments": {"path": "x"}}));
    assert!(behind["error"]["message"].as_str().expect("words").contains("with --workspace"), "{behind}");
}

#[test]
fn five_frames_nest_and_no_sixth() {
    let world = World::without_git();
    let mut client = Client::start(&world, &[]);
    let push = |depth: usize| json!({"name": format!("f{depth}"), "objective": "o", "context": "", "return_spec": ""});
    for depth in 1..=5 {
        assert_eq!(client.ok("push_frame", push(depth)), format!("ok r{depth}"));
    }
    assert!(client.refused("push_frame", push(6)).contains("the stack is full"));
    for _ in 0..5 {
        client.ok("pop_frame", json!({"result": "done"}));
    }
    assert!(client.ok("memory_show", json!({})).contains("depth=\"0\""));
}

#[test]
fn the_heap_has_a_limit() {
    let world = World::without_git();
    let mut client = Client::start(&world, &[]);
    for name in ["a", "b"] {
        client.ok("heap_alloc", json!({"name": name, "content": "x".repeat(9_500)}));
    }
    let refused = client.refused("heap_alloc", json!({"name": "c", "content": "x".repeat(5_001)}));
    assert!(refused.contains("takes at most 24000: free chunks first"), "{refused}");
    client.ok("heap_alloc", json!({"name": "c", "content": "x".repeat(5_000)}));
}

#[test]
fn a_command_that_takes_its_time_keeps_no_other_call_waiting() {
    let world = World::without_git();
    let mut client = Client::start(&world, &["--workspace"]);
    let command = json!({"name": "run_command", "arguments": {"command": "until [ -e go ]; do sleep 0.1; done; echo gone"}});
    let long = client.request("tools/call", command);
    assert_eq!(client.ok("update_registers", json!({"R2_NEXT": "x"})), "ok r1");
    world.write("go", "");
    let answer = client.answer(long);
    assert_eq!(answer["result"]["content"][0]["text"], "exit 0\nstdout:\ngone");
}

#[test]
fn a_call_that_is_cancelled_ends_its_command() {
    let world = World::without_git();
    let mut client = Client::start(&world, &["--workspace"]);
    let number = client.request(
        "tools/call",
        json!({"name": "run_command", "arguments": {"command": "touch begun; sleep 4; touch late"}}),
    );
    world.wait_until(|| world.exists("begun"), "the command runs");
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}),
    );
    assert_eq!(client.tools().len(), 13);
    std::thread::sleep(Duration::from_secs(5));
    assert!(!world.exists("late"));
}

#[test]
fn a_disk_in_trouble_is_an_answer_and_the_server_goes_on() {
    let world = World::without_git();
    world.write(".claude/plimsoll/memory", "a file where the folder should be");
    let mut client = Client::start(&world, &[]);
    let said = client.refused("update_registers", json!({"R2_NEXT": "x"}));
    assert!(said.contains("hint: check the path"), "{said}");
    std::fs::remove_file(world.path(".claude/plimsoll/memory")).expect("the file");
    assert_eq!(client.ok("update_registers", json!({"R2_NEXT": "x"})), "ok r1");
}

#[test]
fn long_output_is_cut_in_the_middle_and_long_files_at_the_end() {
    let world = World::without_git();
    world.write("long.txt", &"ä".repeat(10_001));
    world.write("just.txt", &"ä".repeat(10_000));
    world.write("empty.txt", "");
    std::fs::write(world.path("binary"), [1, 0, 2]).expect("a file");
    let mut client = Client::start(&world, &["--workspace"]);
    let text = client.ok("read_file", json!({"path": "long.txt"}));
    assert!(text.ends_with("ä\n[the first 10000 characters of 20002 bytes]"), "{}", text.len());
    assert_eq!(client.ok("read_file", json!({"path": "just.txt"})), "ä".repeat(10_000));
    assert_eq!(client.ok("read_file", json!({"path": "empty.txt"})), "[the file is empty]");
    assert!(client.refused("read_file", json!({"path": "binary"})).contains("is not text: 3 bytes"));
    let said = client.refused("run_command", json!({"command": "seq 1 20000; exit 7"}));
    assert!(said.starts_with("exit 7\nstdout (cut in the middle: 108893 characters):\n1\n2\n"), "{said}");
    assert!(said.ends_with("19999\n20000") && said.chars().count() < 8_100, "{}", said.len());
    assert!(client.refused("run_command", json!({"command": "kill -9 $$"})).starts_with("ended by a signal"));
}
