//! The plugin beside entries of `plimsoll init` and in `plimsoll run`: no hook runs twice.

use super::harness::{
    count_records, model_that_passes_l1, plimsoll_tools, plugin_folder, run_plugin_session, turn_log_kinds,
    world_with_model,
};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::Request;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events_named, honest_agent, read_journal};
use std::time::Duration;

const REMEMBERED_TEXT: &str = "Keep the public API as it is.";

/// Asserts that the request has every tool of Plimsoll's under one name only, and returns the names.
fn assert_each_tool_once(request: &Request) -> Vec<String> {
    let tools = plimsoll_tools(request);
    let plain_names: Vec<String> =
        tools.iter().filter_map(|name| Some(name.rsplit_once("__")?.1.to_owned())).collect();
    assert!(plain_names.contains(&"pop_frame".to_owned()), "{tools:?}");
    for name in &plain_names {
        assert_eq!(plain_names.iter().filter(|other| *other == name).count(), 1, "{tools:?}");
    }
    tools.iter().map(|name| (*name).to_owned()).collect()
}

/// Plays a session with the plugin in a project after `init` with these options, and asserts that nothing is done twice.
fn assert_nothing_runs_twice_after(init_arguments: &[&str]) {
    let model = model_that_passes_l1();
    let world = world_with_model(&model);
    world.plimsoll(init_arguments).run().expect_success();
    world.plimsoll(&["memory", "set", "R4", REMEMBERED_TEXT]).run().expect_success();
    run_plugin_session(&world, "Work.", &["--allowedTools", "Bash"]).expect_success();
    let requests = model.main_requests();
    let first = requests.first().expect("a request");
    assert_eq!(
        first.full_text().matches(REMEMBERED_TEXT).count(),
        1,
        "{init_arguments:?}: {}",
        first.full_text()
    );
    assert_each_tool_once(first);
    let last = requests.last().expect("a request").full_text();
    assert_eq!(last.matches("CCS_WARNING|L1|72|").count(), 1, "{init_arguments:?}: {last}");
    let log = turn_log_kinds(&world);
    let counts = [RecordKind::SessionStart, RecordKind::Turn, RecordKind::SessionEnd]
        .map(|kind| count_records(&log, kind));
    assert_eq!(counts, [1, 4, 1], "{init_arguments:?}: {log:#?}");
}

#[test]
fn beside_local_hooks_the_plugin_does_nothing_twice() {
    assert_nothing_runs_twice_after(&["init", "--local"]);
}

#[test]
fn beside_local_hooks_with_memory_the_plugin_does_nothing_twice() {
    assert_nothing_runs_twice_after(&["init", "--local", "--memory"]);
}

#[test]
fn beside_user_hooks_the_plugin_does_nothing_twice() {
    assert_nothing_runs_twice_after(&["init", "--user"]);
}

fn run_with_plugin(world: &World, options: &[&str]) {
    let folder = plugin_folder().display().to_string();
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let client_arguments = ["--", "--model", "opus", "--plugin-dir", &folder, "--allowedTools", "Bash"];
    let arguments = [&run_arguments[..], options, &client_arguments].concat();
    world.plimsoll(&arguments).timeout(Duration::from_secs(120)).run().expect_success();
}

#[test]
fn in_a_run_the_plugin_yields_to_the_hooks_of_the_run() {
    for options in [&[][..], &["--memory"]] {
        let mut world = plimsoll_tests::world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
        let model =
            ScriptedAgent::new(honest_agent).with_real_client().with_lifelike_delay().start(&mut world);
        run_with_plugin(&world, options);
        let journal = read_journal(&world);
        let starts = events_named(&journal, "session_start").len();
        let ends = events_named(&journal, "session_end").len();
        assert_eq!((starts, ends), (1, 1), "{options:?}: {journal:#?}");
        let log = turn_log_kinds(&world);
        assert_eq!(
            [RecordKind::SessionStart, RecordKind::SessionEnd].map(|kind| count_records(&log, kind)),
            [1, 1],
            "{log:#?}"
        );
        let requests = model.main_requests();
        let tools = assert_each_tool_once(requests.first().expect("a request"));
        let are_plugin_tools = tools.iter().all(|name| name.starts_with("mcp__plugin_"));
        assert_eq!(are_plugin_tools, options.is_empty(), "{tools:?}");
    }
}
