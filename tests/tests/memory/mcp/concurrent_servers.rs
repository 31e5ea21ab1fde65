//! Two servers and the command on one project lose nothing of each other.

use crate::mcp::json_rpc_client::Client;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn of_sixty_writes_by_three_all_are_kept() {
    const EACH: usize = 20;
    let world = World::without_git();
    std::thread::scope(|scope| {
        for server in ["x", "y"] {
            let world = &world;
            scope.spawn(move || {
                let mut client = Client::start(world, &[]);
                // Half of them without waiting for the answer.
                let mut asked = Vec::new();
                for number in 0..EACH {
                    let value = format!("{server}{number}");
                    if number % 2 == 0 {
                        client.ok("update_registers", json!({"R2_NEXT": value}));
                    } else {
                        let call = json!({"name": "update_registers", "arguments": {"R7_STATUS": value}});
                        asked.push(client.request("tools/call", call));
                        let number = asked.remove(0);
                        assert_eq!(client.answer(number)["result"]["isError"], false);
                    }
                }
            });
        }
        for number in 0..EACH {
            world.plimsoll(&["memory", "set", "R6", &format!("z{number}")]).run().expect_success();
        }
    });
    let history = world.plimsoll(&["memory", "history", "--json", "-n", "100"]).run().expect_success().json();
    let changes = history.as_array().expect("an array");
    let values: BTreeSet<&str> = changes
        .iter()
        .flat_map(|change| change["change"]["values"].as_object().expect("values").values())
        .filter_map(|value| value.as_str())
        .collect();
    assert_eq!((changes.len(), values.len()), (3 * EACH, 3 * EACH));
    let revisions: Vec<u64> = changes.iter().filter_map(|change| change["rev"].as_u64()).collect();
    assert_eq!(revisions, (1..=60).collect::<Vec<_>>());
    let by = |who: &str| changes.iter().filter(|change| change["by"] == who).count();
    assert_eq!((by("mcp"), by("command")), (2 * EACH, EACH));
}

#[test]
fn calls_that_do_not_wait_are_done_in_their_order() {
    let world = World::without_git();
    let mut client = Client::start(&world, &["--workspace"]);
    let mut asked = Vec::new();
    for number in 0..10 {
        let write = json!({"path": "file", "content": number.to_string()});
        asked.push(client.request("tools/call", json!({"name": "write_file", "arguments": write})));
    }
    asked.push(
        client.request("tools/call", json!({"name": "run_command", "arguments": {"command": "cat file"}})),
    );
    let mut last = String::new();
    for number in asked {
        last = client.answer(number)["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
    }
    assert_eq!(last, "exit 0\nstdout:\n9");
}
