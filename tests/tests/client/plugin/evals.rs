//! The plugin's evals, `hooks-config/plugin/evals`, run by Claude Code itself. Only a real model shows what the plugin is worth.
//! The scripted one here does what the plugin's commands tell it: every case is read, runs with the plugin's hooks, commands and
//! server, and has checks that pass with the plugin and, but for those of a plain question, fail without it.

use super::harness::folder;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::target_dir;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::time::Duration;

/// Four cases, each with and without the plugin: eight sessions.
const LONG: Duration = Duration::from_secs(240);

/// Plays a model that uses what the plugin offers. Without the plugin it has nothing of that kind, and says so.
fn use_the_plugin(request: &Request) -> Step {
    let text = request.text();
    if text.contains("17 * 23") {
        return Step::text("391");
    }
    let has_plugin = text.contains("plimsoll:handoff");
    let printed = request.tool_results().pop().map(|(_, printed)| printed);
    if text.contains("port 8431") {
        let memory = Step::default().tool(
            "mcp__plugin_plimsoll_plimsoll__heap_alloc",
            json!({"name": "staging", "content": "listens on port 8431"}),
        );
        return if has_plugin && printed.is_none() { memory } else { Step::text("It is port 8431.") };
    }
    if !has_plugin {
        return Step::text("There is nothing here that does that.");
    }
    let is_handoff = text.contains("I have to stop for today");
    let named =
        text.find("plimsoll run --objective").map(|at| text[at..].split('`').next().unwrap_or_default());
    match (request.answers(), printed) {
        (0, _) => {
            let command = if is_handoff { "handoff" } else { "ralph" };
            let skill = json!({"skill": format!("plimsoll:{command}"), "args": ""});
            Step::default().tool("Skill", skill)
        }
        (1, _) if is_handoff => Step::bash(
            "plimsoll checkpoint --summary 'load is load_config' --progress 'half' --next 'src/lib.rs'",
        ),
        (1, _) => Step::text(named.unwrap_or_default()),
        (_, printed) => Step::text(printed.unwrap_or_default()),
    }
}

/// Returns the checks of one arm of a case that passed, and those that failed.
fn checks<'a>(case: &'a Value, arm: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let runs = case["arms"][arm].as_array().expect("runs");
    assert_eq!((runs.len(), &runs[0]["error"]), (1, &Value::Null), "{case}");
    let graders = runs[0]["graders"].as_array().expect("checks");
    let (passed, failed): (Vec<_>, Vec<_>) = graders.iter().partition(|one| one["passed"] == true);
    let names = |all: Vec<&'a Value>| all.into_iter().filter_map(|one| one["name"].as_str()).collect();
    (names(passed), names(failed))
}

#[test]
fn the_evals_tell_a_session_with_the_plugin_from_one_without() {
    let model = ScriptedModel::start(use_the_plugin);
    let mut world = World::new();
    world.use_model(&model);
    // Results go beside the cases, so they are those of a copy.
    let plugin = world.home().join("plugin").display().to_string();
    let copy = ["-R", &folder().display().to_string(), &plugin];
    world.command("cp", &copy).run().expect_success();
    // The sandbox of an eval hides /tmp: below it a session can write nothing that its next command finds.
    let temporary = target_dir().join("evals").display().to_string();
    std::fs::create_dir_all(&temporary).expect("the build folder is writable");
    let is_hidden = temporary.starts_with("/tmp/");
    let arguments =
        [
            &[
                "plugin",
                "eval",
                &plugin,
                "--trust-plugin",
                "--no-publish",
                "--runs",
                "1",
                "--concurrency",
                "2",
            ][..],
            &[
                "--allow-real-servers",
                "--json",
                "--allow-tools",
                "Bash",
                "Edit",
                "mcp__plugin_plimsoll_plimsoll__*",
            ],
        ]
        .concat();
    let finished = world.claude(&arguments).env("TMPDIR", temporary.as_str()).timeout(LONG).run();
    let report = finished.json();
    let cases = report["cases"].as_array().expect("cases");
    let names: Vec<&str> = cases.iter().filter_map(|case| case["name"].as_str()).collect();
    assert_eq!(names, ["handoff", "plain-question", "unattended-run", "working-memory"], "{finished:?}");
    for case in cases {
        let (_, failed) = checks(case, "with");
        let needs_files = case["name"] != "plain-question";
        assert!(failed.is_empty() || (is_hidden && needs_files), "{failed:?}: {case}");
    }
    let without = |at: usize| checks(&cases[at], "without");
    assert_eq!(without(0), (vec![], vec!["names-the-file"]));
    assert_eq!(without(1), (vec!["no-command", "no-frame", "right-answer"], vec![]));
    assert_eq!(without(2), (vec!["begins-no-work"], vec!["prints-the-command"]));
    assert_eq!(without(3), (vec!["says-the-port"], vec![]));
}
