//! A third-party client, the MCP Inspector: in the old protocol era, in the new one, and with its own choice.

use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_testkit::{find_or_build_bin_dir, target_dir};
use serde_json::Value;

const VERSION: &str = "2.12.0";

fn run_inspector(world: &World, era: &str, arguments: &[&str]) -> FinishedProgram {
    let folder = target_dir().join(format!("inspector-{VERSION}"));
    assert!(folder.join("complete").exists(), "the MCP Inspector is missing: run scripts/inspector.sh");
    let programs = folder.join("node_modules/.bin");
    let path = world
        .env_with_programs_on_path()
        .into_iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, path)| path)
        .expect("a PATH");
    let server = find_or_build_bin_dir().join("plimsoll-mcp").display().to_string();
    let base_arguments = ["--cli", "--protocol-era", era, &server, "--workspace"];
    world
        .command(programs.join("mcp-inspector"), &[&base_arguments, arguments].concat())
        .env("PATH", format!("{}:{path}", programs.display()))
        .run()
}

#[test]
fn the_inspectors_strict_check_passes_in_every_protocol_era() {
    let world = World::without_git();
    for era in ["legacy", "auto", "modern"] {
        let listed = run_inspector(&world, era, &["--method", "tools/list", "--strict"]);
        assert_eq!(listed.code, Some(0), "{era}: {}", listed.stderr);
        let tools: Value = listed.stdout_json();
        assert_eq!(tools["tools"].as_array().map(Vec::len), Some(13), "{era}: {tools}");
    }
}

#[test]
fn the_inspector_calls_tools_in_every_protocol_era() {
    let world = World::without_git();
    for (era, rev) in [("legacy", 1), ("auto", 2), ("modern", 3)] {
        let call_tool = |arguments: &[&str]| {
            run_inspector(&world, era, &[&["--method", "tools/call", "--tool-name"], arguments].concat())
        };
        let written = call_tool(&["update_registers", "--tool-arg", &format!("R2_NEXT=from {era}")]);
        assert_eq!(written.code, Some(0), "{}", written.stderr);
        assert!(written.stdout.contains(&format!("ok r{rev}")), "{}", written.stdout);
        let refused = call_tool(&["heap_free", "--tool-arg", "name=nothing"]);
        assert_eq!(refused.code, Some(5), "a tool that refuses: {}", refused.stdout);
        assert!(refused.stdout.contains("there is no chunk nothing"), "{}", refused.stdout);
        assert_eq!(call_tool(&["no_such_tool"]).code, Some(5), "{era}");
        assert_eq!(run_inspector(&world, era, &["--method", "no/such/method"]).code, Some(1), "{era}");
    }
}
