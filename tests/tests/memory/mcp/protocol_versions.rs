//! Both eras of the protocol, and how a server begins and ends.

use crate::mcp::json_rpc_client::{Client, MODERN};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn each_revision_with_a_handshake_is_spoken() {
    let world = World::without_git();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::bare(&world, &[]);
        let answer = client.initialize(version);
        assert_eq!(answer["protocolVersion"], version);
        assert_eq!(answer["serverInfo"]["name"], "plimsoll");
        assert!(answer["capabilities"]["tools"].is_object(), "{answer}");
        let instructions = answer["instructions"].as_str().expect("instructions");
        assert!(instructions.len() <= 2_000 && instructions.contains("heap_free"), "{instructions}");
        assert_eq!(client.tools().len(), 9);
        assert!(client.ok("update_registers", json!({"R2_NEXT": version})).starts_with("ok r"));
        assert!(client.end().success());
    }
    let mut client = Client::bare(&world, &[]);
    assert_eq!(client.initialize(MODERN)["protocolVersion"], "2025-11-25", "that one has no handshake");
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let world = World::without_git();
    let mut client = Client::modern(&world, &["--workspace"]);
    let found = client.ask("server/discover", json!({}))["result"].clone();
    assert!(found["supportedVersions"].as_array().expect("versions").contains(&json!(MODERN)), "{found}");
    assert!(found["instructions"].as_str().expect("instructions").contains("heap_free"));
    assert_eq!(client.tools().len(), 13);
    assert_eq!(client.ok("update_registers", json!({"R2_NEXT": "x"})), "ok r1");
    assert!(client.end().success());
    let mut client = Client::modern(&world, &[]);
    assert_eq!(client.tools().len(), 9, "also without asking first");
    assert!(client.end().success());
}

#[test]
fn a_client_that_asks_for_the_new_era_may_still_take_the_old_one() {
    let world = World::without_git();
    let mut client = Client::bare(&world, &[]);
    assert_eq!(client.ask("server/discover", json!({}))["error"]["code"], -32602);
    assert_eq!(client.initialize("2025-11-25")["protocolVersion"], "2025-11-25");
    assert_eq!(client.ask("no/such/method", json!({}))["error"]["code"], -32601);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.tools().len(), 9);
}

#[test]
fn what_is_no_message_does_not_end_it() {
    let world = World::without_git();
    let mut client = Client::start(&world, &[]);
    client.send(&json!("a string"));
    let said = client.next();
    assert_eq!(said["error"]["code"], -32600, "{said}");
    client.send_line("{ this is no JSON");
    client.send_line("");
    assert_eq!(client.tools().len(), 9);
    let mut client = Client::bare(&world, &[]);
    let gone = json!({"requestId": "probe", "reason": "timed out"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone}));
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    assert_eq!(client.initialize("2025-11-25")["protocolVersion"], "2025-11-25");
}

#[test]
fn the_end_of_its_input_ends_it_at_any_time() {
    let world = World::without_git();
    assert!(Client::bare(&world, &[]).end().success());
    assert!(Client::start(&world, &[]).end().success());
    let mut client = Client::start(&world, &[]);
    let number = client
        .request("tools/call", json!({"name": "heap_alloc", "arguments": {"name": "a", "content": "x"}}));
    client.close();
    assert_eq!(
        client.answer(number)["result"]["content"][0]["text"],
        "ok r1\nHEAP 1 of 8000 chars (0%), pressure low\n- a 1 chars (0%), age 0, rev 1",
        "what was asked is answered"
    );
    assert!(client.wait().success());
}

#[test]
fn a_signal_ends_it_and_the_command_that_it_runs() {
    let world = World::without_git();
    for signal in ["INT", "TERM"] {
        let mut client = Client::start(&world, &["--workspace"]);
        let command = format!("echo $$ > pid-{signal}; sleep 50 & sleep 50");
        client.request("tools/call", json!({"name": "run_command", "arguments": {"command": command}}));
        let written = || std::fs::read_to_string(world.path(format!("pid-{signal}"))).unwrap_or_default();
        world.wait_until(|| written().ends_with('\n'), "the command runs");
        let start = Instant::now();
        let _ = Command::new("kill").args([&format!("-{signal}"), &client.pid().to_string()]).status();
        assert!(client.wait().success());
        assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
        assert!(!lives(written().trim()), "the command outlived its server");
    }
}

fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim().starts_with('Z'))
}

#[test]
fn it_says_what_it_takes() {
    let world = World::without_git();
    let program = plimsoll_testkit::bin_dir().join("plimsoll-mcp");
    let help = world.command(&program, &["--help"]).run().expect_success().stdout;
    assert!(help.contains("--workspace") && help.contains("not confined"), "{help}");
    assert!(
        world.command(&program, &["--version"]).run().expect_success().stdout.starts_with("plimsoll-mcp 0.")
    );
    let wrong = world.command(&program, &["--port", "80"]).run();
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""));
    assert!(wrong.stderr.contains("unknown arguments"), "{}", wrong.stderr);
}
