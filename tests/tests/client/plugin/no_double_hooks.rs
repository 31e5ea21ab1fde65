//! The plugin beside entries of `plimsoll init` and beside `plimsoll run`: nothing is done twice.

use super::harness::{count, folder, past_the_first_level, session, tools, turn_log, world};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_testkit::scripted_model::Request;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events, honest, journal};
use std::time::Duration;

const WORD: &str = "Keep the public API as it is.";

/// Every tool of ours is there under one name.
fn one_of_each(request: &Request) -> Vec<String> {
    let tools = tools(request);
    let plain: Vec<String> =
        tools.iter().filter_map(|name| Some(name.rsplit_once("__")?.1.to_owned())).collect();
    assert!(plain.contains(&"pop_frame".to_owned()), "{tools:?}");
    for name in &plain {
        assert_eq!(plain.iter().filter(|other| *other == name).count(), 1, "{tools:?}");
    }
    tools.iter().map(|name| (*name).to_owned()).collect()
}

/// Plays a session with the plugin in a project where `init` has been called with these options.
fn beside(options: &[&str]) {
    let model = past_the_first_level();
    let world = world(&model);
    world.plimsoll(options).run().expect_success();
    world.plimsoll(&["memory", "set", "R4", WORD]).run().expect_success();
    session(&world, "Work.", &["--allowedTools", "Bash"]).expect_success();
    let requests = model.main_requests();
    let first = requests.first().expect("a request");
    assert_eq!(first.text().matches(WORD).count(), 1, "{options:?}: {}", first.text());
    one_of_each(first);
    let last = requests.last().expect("a request").text();
    assert_eq!(last.matches("CCS_WARNING|L1|72|").count(), 1, "{options:?}: {last}");
    let log = turn_log(&world);
    let counts =
        [RecordKind::SessionStart, RecordKind::Turn, RecordKind::SessionEnd].map(|kind| count(&log, kind));
    assert_eq!(counts, [1, 4, 1], "{options:?}: {log:#?}");
}

#[test]
fn a_project_with_our_hooks_does_nothing_twice() {
    beside(&["init", "--local"]);
}

#[test]
fn a_project_with_our_hooks_and_the_memory_does_nothing_twice() {
    beside(&["init", "--local", "--memory"]);
}

#[test]
fn a_user_with_our_hooks_has_nothing_done_twice() {
    beside(&["init", "--user"]);
}

fn run(world: &World, more: &[&str]) {
    let folder = folder().display().to_string();
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let client = ["--", "--model", "opus", "--plugin-dir", &folder, "--allowedTools", "Bash"];
    let all = [&ours[..], more, &client].concat();
    world.plimsoll(&all).timeout(Duration::from_secs(120)).run().expect_success();
}

#[test]
fn a_run_gives_its_hooks_itself_and_the_plugin_gives_way() {
    for options in [&[][..], &["--memory"]] {
        let mut world = plimsoll_tests::world("# Plan\n\n- [ ] Item three\n");
        let model = ScriptedAgent::new(honest).with_real_client().at_real_pace().start(&mut world);
        run(&world, options);
        let journal = journal(&world);
        let starts = events(&journal, "session_start").len();
        let ends = events(&journal, "session_end").len();
        assert_eq!((starts, ends), (1, 1), "{options:?}: {journal:#?}");
        let log = turn_log(&world);
        assert_eq!(
            [RecordKind::SessionStart, RecordKind::SessionEnd].map(|kind| count(&log, kind)),
            [1, 1],
            "{log:#?}"
        );
        let requests = model.main_requests();
        let tools = one_of_each(requests.first().expect("a request"));
        let is_the_plugins = tools.iter().all(|name| name.starts_with("mcp__plugin_"));
        assert_eq!(is_the_plugins, options.is_empty(), "{tools:?}");
    }
}
