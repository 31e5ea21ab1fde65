//! Our records are never committed by accident: not in a clone in which `init` never ran, and not by an agent's `git
//! add -A` in a run. A run also leaves no file dirty that was clean.

use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN};
use serde_json::{Value, json};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

/// Returns a clone of a project whose shared settings name our hooks, on a computer where nobody ran `init`.
fn cloned_world() -> World {
    let world = World::without_plimsoll_files();
    let hooks = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "plimsoll-session-start"}]}]}});
    world.write(".claude/settings.json", &hooks.to_string());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Settings"]);
    world
}

fn start_session(world: &World) {
    let payload = json!({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup",
        "transcript_path": world.home().join("none.jsonl").display().to_string(), "cwd": world.project()});
    world.hook("plimsoll-session-start", &payload).run().expect_success();
}

fn doctor_findings(world: &World, code: &str) -> Vec<Value> {
    let report_text = world.plimsoll(&["doctor", "--json"]).run().stdout;
    let report: Value = serde_json::from_str(&report_text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().filter(|finding| finding["code"] == code).cloned().collect()
}

#[test]
fn in_a_clone_git_add_stages_nothing_that_a_hook_wrote() {
    let world = cloned_world();
    start_session(&world);
    assert!(world.exists(format!(".claude/plimsoll/sessions/{SESSION}.json")), "it has recorded something");
    assert_eq!(world.read(".claude/plimsoll/.gitignore"), "*\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.git(&["add", "-A"]);
    assert_eq!(world.git(&["diff", "--cached", "--name-only"]), "");
}

#[test]
fn doctor_reports_that_git_does_not_exclude_run_files_in_a_clone() {
    let world = cloned_world();
    start_session(&world);
    let not_excluded = doctor_findings(&world, "disk.not_excluded");
    assert_eq!(not_excluded.len(), 1, "{not_excluded:?}");
    insta::assert_snapshot!(not_excluded[0]["what"].as_str().expect("words"), @"git's exclude file (which a clone does not include) does not list our run files: an agent's `git add -A` would commit ralph-state.json (our folders hide themselves)");
}

#[test]
fn doctor_reports_a_problem_if_git_tracks_our_records() {
    let world = cloned_world();
    start_session(&world);
    assert!(doctor_findings(&world, "disk.tracked").is_empty());
    world.write(".claude/plimsoll/turns/a.jsonl", "{}\n");
    world.git(&["add", "--force", ".claude/plimsoll/turns"]);
    let tracked = doctor_findings(&world, "disk.tracked");
    assert_eq!(tracked.len(), 1, "{tracked:?}");
    assert_eq!(
        (&tracked[0]["severity"], &tracked[0]["where"]),
        (&json!("problem"), &json!(".claude/plimsoll/turns/a.jsonl"))
    );
    insta::assert_snapshot!(tracked[0]["todo"].as_str().expect("words"), @"`git rm -r --cached .claude/plimsoll`, then commit (the files stay); what was pushed stays in the history");
    world.git(&["rm", "-r", "--quiet", "--cached", ".claude/plimsoll"]);
    assert!(doctor_findings(&world, "disk.tracked").is_empty());
    assert!(world.exists(".claude/plimsoll/turns/a.jsonl"), "the file itself stays");
}

#[test]
fn a_run_commits_none_of_our_files_and_leaves_the_tree_clean() {
    const TASK: &str = "Do the plan.\n\nMind the dates.\r\n";
    const DIARY: &str = "A diary of my own.\n";
    let mut world = plimsoll_tests::world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write("PROMPT.md", TASK);
    world.write("progress.txt", DIARY);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    let model = ScriptedAgent::new(|turn| {
        let Some(item) = turn.item_text.clone() else {
            return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
        };
        match turn.assistant_message_count {
            0 => {
                let work = format!("echo '{item}' >> work.txt && {}", tick_item_command(&item));
                Step::bash_call(format!("{work} && git add -A && git commit -qm 'Do it'"))
                    .with_input_tokens(30_000)
            }
            _ if item == "Item three" => {
                Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(31_000)
            }
            _ => Step::from_text(format!("{item} is done.")).with_input_tokens(31_000),
        }
    })
    .start(&mut world);
    let arguments = ["run", "--", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(world.read("PROMPT.md"), TASK, "the block is in no file of the user's");
    assert_eq!(world.read("progress.txt"), DIARY);
    assert!(world.read(".claude/plimsoll/progress.txt").contains("Iteration 3:"));
    let committed = world.git(&["log", "--format=", "--name-only", "HEAD~3..HEAD"]);
    let names: std::collections::BTreeSet<&str> = committed.lines().filter(|name| !name.is_empty()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["fix_plan.md", "work.txt"]);
    assert!(plimsoll_tests::first_request_of_iteration(&model, 1).contains("Mind the dates."));
}

#[test]
fn stop_removes_the_block_of_a_shell_loop_from_the_prompt_file() {
    const TASK: &str = "Do the plan.\n";
    let world = plimsoll_tests::world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write("PROMPT.md", TASK);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    world.plimsoll(&["start"]).run().expect_success();
    assert!(world.read("PROMPT.md").starts_with("<!-- plimsoll"), "a loop pipes it");
    world.plimsoll(&["stop"]).run().expect_success();
    assert_eq!(world.read("PROMPT.md"), TASK);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}
