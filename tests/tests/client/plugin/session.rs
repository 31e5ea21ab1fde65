//! Sessions with only the plugin.

use super::harness::{
    count_records, model_that_passes_l1, plimsoll_tools, run_plugin_session, turn_log_kinds, world_with_model,
};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};

const REMEMBERED_TEXT: &str = "Keep the public API as it is.";

#[test]
fn the_plugin_announces_l1_logs_turns_and_shows_the_memory() {
    let model = model_that_passes_l1();
    let world = world_with_model(&model);
    world.plimsoll(&["memory", "set", "R4", REMEMBERED_TEXT]).run().expect_success();
    run_plugin_session(&world, "Work.", &["--allowedTools", "Bash"]).expect_success();

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
