//! The plugin's evals, `hooks-config/plugin/evals`, run by Claude Code itself. Only a real model can show what the plugin is worth.
//! The scripted model follows the plugin's commands: every case is read, runs with the plugin's hooks, commands and server, and has
//! checks that pass with the plugin and, except for those of a plain question, fail without it.

use super::harness::plugin_folder;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::target_dir;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::time::Duration;

/// Four cases, each with and without the plugin: eight sessions.
const EVAL_TIMEOUT: Duration = Duration::from_secs(240);

/// Plays a model that uses the plugin. Without the plugin it has no such tools and says so.
fn answer_using_plugin(request: &Request) -> Step {
    let text = request.full_text();
    if text.contains("17 * 23") {
        return Step::from_text("391");
    }
    let has_plugin = text.contains("plimsoll:handoff");
    let last_result = request.all_tool_results().pop().map(|(_, printed)| printed);
    if text.contains("port 8431") {
        let memory = Step::default().with_tool_call(
            "mcp__plugin_plimsoll_plimsoll__heap_alloc",
            json!({"name": "staging", "content": "listens on port 8431"}),
        );
        return if has_plugin && last_result.is_none() {
            memory
        } else {
            Step::from_text("It is port 8431.")
        };
    }
    if !has_plugin {
        return Step::from_text("There is nothing here that does that.");
    }
    let is_handoff = text.contains("I have to stop for today");
    let suggested_command =
        text.find("plimsoll run --objective").map(|at| text[at..].split('`').next().unwrap_or_default());
    match (request.assistant_message_count(), last_result) {
        (0, _) => {
            let command = if is_handoff { "handoff" } else { "ralph" };
            let skill = json!({"skill": format!("plimsoll:{command}"), "args": ""});
            Step::default().with_tool_call("Skill", skill)
        }
        (1, _) if is_handoff => Step::bash_call(
            "plimsoll checkpoint --summary 'load is load_config' --progress 'half' --next 'src/lib.rs'",
        ),
        (1, _) => Step::from_text(suggested_command.unwrap_or_default()),
        (_, last_result) => Step::from_text(last_result.unwrap_or_default()),
    }
}

/// Returns the passed and the failed checks of one arm of a case.
fn passed_and_failed_checks<'a>(case: &'a Value, arm: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let runs = case["arms"][arm].as_array().expect("runs");
    assert_eq!((runs.len(), &runs[0]["error"]), (1, &Value::Null), "{case}");
    let reported_checks = runs[0]["graders"].as_array().expect("checks");
    let (passed, failed): (Vec<_>, Vec<_>) = reported_checks.iter().partition(|one| one["passed"] == true);
    let check_names = |all: Vec<&'a Value>| all.into_iter().filter_map(|one| one["name"].as_str()).collect();
    (check_names(passed), check_names(failed))
}

#[test]
fn evals_pass_with_the_plugin_and_the_plugin_checks_fail_without_it() {
    let model = ScriptedModel::start(answer_using_plugin);
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    // The client writes results beside the cases, so the evals run on a copy.
    let plugin_copy = world.home().join("plugin").display().to_string();
    let copy_arguments = ["-R", &plugin_folder().display().to_string(), &plugin_copy];
    world.command("cp", &copy_arguments).run().expect_success();
    // The sandbox of an eval hides /tmp: a session's files below it are not visible to its next command.
    let temporary = target_dir().join("evals").display().to_string();
    std::fs::create_dir_all(&temporary).expect("the build folder is writable");
    let is_hidden_by_sandbox = temporary.starts_with("/tmp/");
    let arguments = [
        &[
            "plugin",
            "eval",
            &plugin_copy,
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
    let finished = world.claude(&arguments).env("TMPDIR", temporary.as_str()).timeout(EVAL_TIMEOUT).run();
    let report = finished.stdout_json();
    let cases = report["cases"].as_array().expect("cases");
    let names: Vec<&str> = cases.iter().filter_map(|case| case["name"].as_str()).collect();
    assert_eq!(names, ["handoff", "plain-question", "unattended-run", "working-memory"], "{finished:?}");
    for case in cases {
        let (_, failed) = passed_and_failed_checks(case, "with");
        let needs_files = case["name"] != "plain-question";
        assert!(failed.is_empty() || (is_hidden_by_sandbox && needs_files), "{failed:?}: {case}");
    }
    let checks_without_plugin = |index: usize| passed_and_failed_checks(&cases[index], "without");
    assert_eq!(checks_without_plugin(0), (vec![], vec!["names-the-file"]));
    assert_eq!(checks_without_plugin(1), (vec!["no-command", "no-frame", "right-answer"], vec![]));
    assert_eq!(checks_without_plugin(2), (vec!["begins-no-work"], vec!["prints-the-command"]));
    assert_eq!(checks_without_plugin(3), (vec!["says-the-port"], vec![]));
}
