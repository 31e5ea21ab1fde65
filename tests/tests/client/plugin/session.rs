//! One session with the plugin alone.

use super::harness::{count, past_the_first_level, session, tools, turn_log, world};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};

const WORD: &str = "Keep the public API as it is.";

#[test]
fn the_level_is_announced_the_turns_are_logged_and_the_memory_is_told() {
    let model = past_the_first_level();
    let world = world(&model);
    world.plimsoll(&["memory", "set", "R4", WORD]).run().expect_success();
    session(&world, "Work.", &["--allowedTools", "Bash"]).expect_success();

    let requests = model.main_requests();
    let first = requests.first().expect("a request");
    assert_eq!(first.text().matches(WORD).count(), 1, "{}", first.text());
    let expected = [
        "update_registers",
        "push_frame",
        "pop_frame",
        "heap_alloc",
        "heap_write",
        "heap_free",
        "memory_show",
    ];
    let tools = tools(first);
    for name in expected {
        let name = format!("mcp__plugin_plimsoll_plimsoll__{name}");
        assert!(tools.contains(&name.as_str()), "{name}: {tools:?}");
    }
    assert!(first.text().contains("- plimsoll:frame: Works in one frame"), "{}", first.text());
    let last = requests.last().expect("a request").text();
    assert_eq!(last.matches("CCS_WARNING|L1|72|").count(), 1, "{last}");
    // Nobody has called `init` here, and yet an agent's `git add -A` takes nothing of ours.
    assert_eq!(world.git(&["status", "--porcelain", "-uall"]), "");
    let log = turn_log(&world);
    assert_eq!(count(&log, RecordKind::Turn), 4, "{log:?}");
}

#[test]
fn the_commands_have_the_plugins_name_and_may_run_plimsoll() {
    let model = ScriptedModel::steps(vec![
        Step::bash("plimsoll status --markdown").usage(100_000),
        Step::text("done"),
    ]);
    let world = world(&model);
    session(&world, "/plimsoll:ralph context", &[]).expect_success();
    let requests = model.main_requests();
    let told = requests.first().expect("a request").last_text();
    assert!(
        told.contains("called `/plimsoll:ralph` with: context")
            && told.contains("`plimsoll status --markdown`"),
        "{told}"
    );
    let results = requests.last().expect("a request").tool_results();
    assert!(results.iter().any(|(_, text)| text.contains("opus")), "{results:?}");

    let model = ScriptedModel::steps(vec![Step::text("done")]);
    let world = self::world(&model);
    session(&world, "/plimsoll:handoff the build is red", &[]).expect_success();
    let told = model.main_requests().first().expect("a request").last_text();
    assert!(
        told.contains("(may be empty): the build is red") && told.contains("plimsoll checkpoint --summary"),
        "{told}"
    );
    assert!(!told.contains("delete this line"), "{told}");
}

#[test]
fn a_client_without_batches_of_tools_takes_no_hook_of_the_plugin_and_works() {
    let model = ScriptedModel::steps(vec![Step::bash("echo hi"), Step::text("done")]);
    let world = world(&model);
    let folder = super::harness::folder().display().to_string();
    let client = plimsoll_testkit::client::claude_version("2.0.77");
    let arguments =
        ["-p", "hi", "--plugin-dir", &folder, "--output-format", "json", "--allowedTools", "Bash"];
    let finished = world.command(client, &arguments).run().expect_success();
    assert_eq!(finished.result()["result"], "done");
    assert!(turn_log(&world).is_empty(), "the README says from which version on");
}
