//! Sessions with only the plugin.

use super::harness::{
    count_records, model_that_passes_l1, plimsoll_tools, run_plugin_session, run_session_with_plugin_folder,
    turn_log_kinds, world_with_model,
};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;

const REMEMBERED_TEXT: &str = "Keep the public API as it is.";

#[test]
fn the_plugin_announces_l1_logs_turns_and_shows_the_memory() {
    let model = model_that_passes_l1();
    let world = world_with_model(&model);
    world.plimsoll(&["memory", "set", "R4", REMEMBERED_TEXT]).run().expect_success();
    // The client must pass the paths of a folder with a space on as they are.
    let folder = world.home().join("plug in").display().to_string();
    let source = super::harness::plugin_folder().display().to_string();
    world.command("cp", &["-R", &source, &folder]).run().expect_success();
    run_session_with_plugin_folder(&world, &folder, "Work.", &["--allowedTools", "Bash"]).expect_success();

    let requests = model.main_requests();
    let first = requests.first().expect("a request");
    assert_eq!(first.full_text().matches(REMEMBERED_TEXT).count(), 1, "{}", first.full_text());
    let expected = [
        "update_registers",
        "push_frame",
        "pop_frame",
        "heap_alloc",
        "heap_write",
        "heap_free",
        "memory_show",
    ];
    let tools = plimsoll_tools(first);
    for name in expected {
        let name = format!("mcp__plugin_plimsoll_plimsoll__{name}");
        assert!(tools.contains(&name.as_str()), "{name}: {tools:?}");
    }
    assert!(first.full_text().contains("- plimsoll:frame: Works in one frame"), "{}", first.full_text());
    let last = requests.last().expect("a request").full_text();
    assert_eq!(last.matches("CCS_WARNING|L1|72|").count(), 1, "{last}");
    // Nobody has called `init` here, and yet an agent's `git add -A` adds no file of Plimsoll's.
    assert_eq!(world.git(&["status", "--porcelain", "-uall"]), "");
    let log = turn_log_kinds(&world);
    assert_eq!(count_records(&log, RecordKind::Turn), 4, "{log:?}");
}

/// A client without HOME keeps `${HOME}` in the PATH of a server, unless it has a default: a folder of that name in the project would
/// then be searched. Another variable stands for HOME here, because a client without HOME would use the real one.
#[test]
fn an_unset_variable_in_the_servers_path_gets_its_default() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![Step::from_text("done")]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let folder = world.home().join("plug in");
    let source = super::harness::plugin_folder().display().to_string();
    world.command("cp", &["-R", &source, &folder.display().to_string()]).run().expect_success();
    let server = world.read(folder.join(".mcp.json"));
    assert!(server.contains("${HOME:-/nonexistent}"), "{server}");
    let server = server.replace("${HOME:-", "${PLIMSOLL_UNSET:-").replace("\"plimsoll-mcp\"", "\"/bin/sh\"");
    let server = server.replace("[]", "[\"-c\", \"echo \\\"$PATH\\\" >server-path\"]");
    world.write(folder.join(".mcp.json"), &server);
    run_session_with_plugin_folder(&world, &folder.display().to_string(), "hi", &[]).expect_success();
    let path = world.read("server-path");
    assert!(path.trim().ends_with(":/nonexistent/.local/bin:/nonexistent/.cargo/bin"), "{path}");
}

#[test]
fn plugin_commands_have_its_prefix_and_may_run_plimsoll() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("plimsoll status --markdown").with_input_tokens(100_000),
        Step::from_text("done"),
    ]);
    let world = world_with_model(&model);
    run_plugin_session(&world, "/plimsoll:ralph context", &[]).expect_success();
    let requests = model.main_requests();
    let prompt = requests.first().expect("a request").text_since_last_assistant_message();
    assert!(
        prompt.contains("called `/plimsoll:ralph` with: context")
            && prompt.contains("`plimsoll status --markdown`"),
        "{prompt}"
    );
    let results = requests.last().expect("a request").all_tool_results();
    assert!(results.iter().any(|(_, text)| text.contains("opus")), "{results:?}");

    let model = ScriptedModel::start_with_steps_repeating_last(vec![Step::from_text("done")]);
    let world = world_with_model(&model);
    run_plugin_session(&world, "/plimsoll:handoff the build is red", &[]).expect_success();
    let prompt = model.main_requests().first().expect("a request").text_since_last_assistant_message();
    assert!(
        prompt.contains("(may be empty): the build is red")
            && prompt.contains("plimsoll checkpoint --summary"),
        "{prompt}"
    );
    assert!(!prompt.contains("delete this line"), "{prompt}");
}

#[test]
fn a_client_without_post_tool_batch_ignores_the_plugin_hooks_and_works() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo hi"),
        Step::from_text("done"),
    ]);
    let world = world_with_model(&model);
    let folder = super::harness::plugin_folder().display().to_string();
    let client = plimsoll_testkit::client::install_claude_version_once("2.0.77");
    let arguments =
        ["-p", "hi", "--plugin-dir", &folder, "--output-format", "json", "--allowedTools", "Bash"];
    let finished = world.command(client, &arguments).run().expect_success();
    assert_eq!(finished.last_result()["result"], "done");
    assert!(turn_log_kinds(&world).is_empty(), "the README says from which version on");
}
