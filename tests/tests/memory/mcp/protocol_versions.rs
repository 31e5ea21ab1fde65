//! Protocol revisions with and without a handshake, and how the server starts and exits.

use crate::mcp::json_rpc_client::{JsonRpcClient, MODERN_REVISION};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn every_protocol_revision_with_a_handshake_is_supported() {
    let world = World::without_git();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = JsonRpcClient::start_uninitialized(&world, &[]);
        let answer = client.initialize(version);
        assert_eq!(answer["protocolVersion"], version);
        assert_eq!(answer["serverInfo"]["name"], "plimsoll");
        assert!(answer["capabilities"]["tools"].is_object(), "{answer}");
        let instructions = answer["instructions"].as_str().expect("instructions");
        assert!(instructions.len() <= 2_000 && instructions.contains("heap_free"), "{instructions}");
        assert_eq!(client.list_tools().len(), 9);
        assert!(client.call_tool("update_registers", json!({"R2_NEXT": version})).starts_with("ok r"));
        assert!(client.close_and_wait().success());
    }
    let mut client = JsonRpcClient::start_uninitialized(&world, &[]);
    assert_eq!(
        client.initialize(MODERN_REVISION)["protocolVersion"],
        "2025-11-25",
        "that one has no handshake"
    );
}

#[test]
fn the_protocol_revision_without_a_handshake_is_supported() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_without_handshake(&world, &["--workspace"]);
    let discovery = client.call_method("server/discover", json!({}))["result"].clone();
    assert!(
        discovery["supportedVersions"].as_array().expect("versions").contains(&json!(MODERN_REVISION)),
        "{discovery}"
    );
    assert!(discovery["instructions"].as_str().expect("instructions").contains("heap_free"));
    assert_eq!(client.list_tools().len(), 13);
    assert_eq!(client.call_tool("update_registers", json!({"R2_NEXT": "x"})), "ok r1");
    assert!(client.close_and_wait().success());
    let mut client = JsonRpcClient::start_without_handshake(&world, &[]);
    assert_eq!(client.list_tools().len(), 9, "also without asking first");
    assert!(client.close_and_wait().success());
}

#[test]
fn a_client_can_fall_back_from_discovery_to_the_handshake() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_uninitialized(&world, &[]);
    assert_eq!(client.call_method("server/discover", json!({}))["error"]["code"], -32602);
    assert_eq!(client.initialize("2025-11-25")["protocolVersion"], "2025-11-25");
    assert_eq!(client.call_method("no/such/method", json!({}))["error"]["code"], -32601);
    assert_eq!(client.call_method("ping", json!({}))["result"], json!({}));
    assert_eq!(client.list_tools().len(), 9);
}

#[test]
fn invalid_and_unexpected_messages_do_not_end_the_server() {
    let world = World::without_git();
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    client.send(&json!("a string"));
    let answer = client.receive_message();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    client.send_line("{ this is no JSON");
    client.send_line("");
    assert_eq!(client.list_tools().len(), 9);
    let mut client = JsonRpcClient::start_uninitialized(&world, &[]);
    let cancellation = json!({"requestId": "probe", "reason": "timed out"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancellation}));
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    assert_eq!(client.initialize("2025-11-25")["protocolVersion"], "2025-11-25");
}

#[test]
fn the_server_answers_pending_calls_and_exits_at_the_end_of_its_input() {
    let world = World::without_git();
    assert!(JsonRpcClient::start_uninitialized(&world, &[]).close_and_wait().success());
    assert!(JsonRpcClient::start_initialized(&world, &[]).close_and_wait().success());
    let mut client = JsonRpcClient::start_initialized(&world, &[]);
    let request_id = client.send_request(
        "tools/call",
        json!({"name": "heap_alloc", "arguments": {"name": "a", "content": "x"}}),
    );
    client.close_input();
    assert_eq!(
        client.wait_for_answer(request_id)["result"]["content"][0]["text"],
        "ok r1\nHEAP 1 of 8000 chars (0%), pressure low\n- a 1 chars (0%), age 0, rev 1",
        "what was asked is answered"
    );
    assert!(client.wait_for_exit().success());
}

#[test]
fn a_signal_ends_the_server_and_its_running_command() {
    let world = World::without_git();
    for signal in ["INT", "TERM"] {
        let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
        let command = format!("echo $$ > pid-{signal}; sleep 50 & sleep 50");
        client.send_request("tools/call", json!({"name": "run_command", "arguments": {"command": command}}));
        let read_pid_file =
            || std::fs::read_to_string(world.path(format!("pid-{signal}"))).unwrap_or_default();
        world.wait_until(|| read_pid_file().ends_with('\n'), "the command runs");
        let signaled_at = Instant::now();
        let _ = Command::new("kill").args([&format!("-{signal}"), &client.pid().to_string()]).status();
        assert!(client.wait_for_exit().success());
        assert!(signaled_at.elapsed() < Duration::from_secs(25), "{:?}", signaled_at.elapsed());
        assert!(!is_running(read_pid_file().trim()), "the command outlived its server");
    }
}

fn is_running(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim().starts_with('Z'))
}

#[test]
fn help_and_version_are_printed_and_unknown_arguments_rejected() {
    let world = World::without_git();
    let program = plimsoll_testkit::find_or_build_bin_dir().join("plimsoll-mcp");
    let help = world.command(&program, &["--help"]).run().expect_success().stdout;
    assert!(help.contains("--workspace") && help.contains("not confined"), "{help}");
    assert!(
        world.command(&program, &["--version"]).run().expect_success().stdout.starts_with("plimsoll-mcp 0.")
    );
    let rejected = world.command(&program, &["--port", "80"]).run();
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(2), ""));
    assert!(rejected.stderr.contains("unknown arguments"), "{}", rejected.stderr);
}
