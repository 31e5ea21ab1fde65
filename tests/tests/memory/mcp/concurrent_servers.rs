//! Two servers and the command write to one project at the same time, and no change is lost.

use crate::mcp::json_rpc_client::JsonRpcClient;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn sixty_concurrent_writes_by_three_writers_are_all_kept() {
    const WRITES_EACH: usize = 20;
    let world = World::without_git();
    std::thread::scope(|scope| {
        for server in ["x", "y"] {
            let world = &world;
            scope.spawn(move || {
                let mut client = JsonRpcClient::start_initialized(world, &[]);
                // Every other call sends its request and receives the answer in two steps.
                let mut pending_requests = Vec::new();
                for number in 0..WRITES_EACH {
                    let value = format!("{server}{number}");
                    if number % 2 == 0 {
                        client.call_tool("update_registers", json!({"R2_NEXT": value}));
                    } else {
                        let call = json!({"name": "update_registers", "arguments": {"R7_STATUS": value}});
                        pending_requests.push(client.send_request("tools/call", call));
                        let number = pending_requests.remove(0);
                        assert_eq!(client.wait_for_answer(number)["result"]["isError"], false);
                    }
                }
            });
        }
        for number in 0..WRITES_EACH {
            world.plimsoll(&["memory", "set", "R6", &format!("z{number}")]).run().expect_success();
        }
    });
    let history =
        world.plimsoll(&["memory", "history", "--json", "-n", "100"]).run().expect_success().stdout_json();
    let changes = history.as_array().expect("an array");
    let values: BTreeSet<&str> = changes
        .iter()
        .flat_map(|change| change["change"]["values"].as_object().expect("values").values())
        .filter_map(|value| value.as_str())
        .collect();
    assert_eq!((changes.len(), values.len()), (3 * WRITES_EACH, 3 * WRITES_EACH));
    let revisions: Vec<u64> = changes.iter().filter_map(|change| change["rev"].as_u64()).collect();
    assert_eq!(revisions, (1..=60).collect::<Vec<_>>());
    let count_by_writer = |writer: &str| changes.iter().filter(|change| change["by"] == writer).count();
    assert_eq!((count_by_writer("mcp"), count_by_writer("command")), (2 * WRITES_EACH, WRITES_EACH));
}

#[test]
fn pipelined_calls_run_in_the_order_in_which_they_were_sent() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    let mut pending_requests = Vec::new();
    for number in 0..10 {
        let write = json!({"path": "file", "content": number.to_string()});
        pending_requests
            .push(client.send_request("tools/call", json!({"name": "write_file", "arguments": write})));
    }
    pending_requests.push(
        client
            .send_request("tools/call", json!({"name": "run_command", "arguments": {"command": "cat file"}})),
    );
    let mut last_answer = String::new();
    for number in pending_requests {
        last_answer = client.wait_for_answer(number)["result"]["content"][0]["text"]
            .as_str()
            .expect("a text")
            .to_owned();
    }
    assert_eq!(last_answer, "exit 0\nstdout:\n9");
}
