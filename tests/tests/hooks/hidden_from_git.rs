//! Nothing that we record is committed by accident: not in a clone in which `init` never ran, and not by an agent's
//! `git add -A` in a run, which leaves no file dirty that was clean.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::tick;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ITEMS, ScriptedAgent};
use serde_json::{Value, json};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

/// A clone of a project whose shared settings name our hooks, on a computer where nobody ran `init`.
fn clone() -> World {
    let world = World::untouched();
    let hooks = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "plimsoll-session-start"}]}]}});
    world.write(".claude/settings.json", &hooks.to_string());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Settings"]);
    world
}

fn session(world: &World) {
    let payload = json!({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup",
        "transcript_path": world.home().join("none.jsonl").display().to_string(), "cwd": world.project()});
    world.hook("plimsoll-session-start", &payload).run().expect_success();
}

fn findings(world: &World, code: &str) -> Vec<Value> {
    let page = world.plimsoll(&["doctor", "--json"]).run().stdout;
    let page: Value = serde_json::from_str(&page).expect("JSON");
    let findings = page["findings"].as_array().expect("findings");
    findings.iter().filter(|one| one["code"] == code).cloned().collect()
}

#[test]
fn a_hook_in_a_clone_leaves_nothing_that_git_add_would_take() {
    let world = clone();
    session(&world);
    assert!(world.exists(format!(".claude/plimsoll/sessions/{SESSION}.json")), "it has recorded something");
    assert_eq!(world.read(".claude/plimsoll/.gitignore"), "*\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.git(&["add", "-A"]);
    assert_eq!(world.git(&["diff", "--cached", "--name-only"]), "");
}

#[test]
fn doctor_says_what_a_clone_lacks() {
    let world = clone();
    session(&world);
    let found = findings(&world, "disk.not_excluded");
    assert_eq!(found.len(), 1, "{found:?}");
    insta::assert_snapshot!(found[0]["what"].as_str().expect("words"), @"git's exclude file (which a clone does not include) does not list our run files: an agent's `git add -A` would commit ralph-state.json (our folders hide themselves)");
}

#[test]
fn doctor_finds_a_fault_where_something_recorded_is_tracked() {
    let world = clone();
    session(&world);
    assert!(findings(&world, "disk.tracked").is_empty());
    world.write(".claude/plimsoll/turns/a.jsonl", "{}\n");
    world.git(&["add", "--force", ".claude/plimsoll/turns"]);
    let found = findings(&world, "disk.tracked");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["severity"], &found[0]["where"]),
        (&json!("problem"), &json!(".claude/plimsoll/turns/a.jsonl"))
    );
    insta::assert_snapshot!(found[0]["todo"].as_str().expect("words"), @"`git rm -r --cached .claude/plimsoll`, then commit (the files stay); what was pushed stays in the history");
    world.git(&["rm", "-r", "--quiet", "--cached", ".claude/plimsoll"]);
    assert!(findings(&world, "disk.tracked").is_empty());
    assert!(world.exists(".claude/plimsoll/turns/a.jsonl"), "the file itself stays");
}

#[test]
fn a_run_commits_nothing_of_ours_and_leaves_no_file_dirty_that_was_clean() {
    const TASK: &str = "Do the plan.\n\nMind the dates.\r\n";
    const DIARY: &str = "A diary of my own.\n";
    let mut world = plimsoll_tests::world(ITEMS);
    world.write("PROMPT.md", TASK);
    world.write("progress.txt", DIARY);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    let model = ScriptedAgent::new(|turn| {
        let Some(item) = turn.item.clone() else {
            return Step::text(format!("All done.\n\n{}", turn.promise));
        };
        match turn.step {
            0 => {
                let work = format!("echo '{item}' >> work.txt && {}", tick(&item));
                Step::bash(format!("{work} && git add -A && git commit -qm 'Do it'")).usage(30_000)
            }
            _ if item == "Item three" => Step::text(format!("All done.\n\n{}", turn.promise)).usage(31_000),
            _ => Step::text(format!("{item} is done.")).usage(31_000),
        }
    })
    .start(&mut world);
    let words = ["run", "--", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&words).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(world.read("PROMPT.md"), TASK, "the block is in no file of the user's");
    assert_eq!(world.read("progress.txt"), DIARY);
    assert!(world.read(".claude/plimsoll/progress.txt").contains("Iteration 3:"));
    let committed = world.git(&["log", "--format=", "--name-only", "HEAD~3..HEAD"]);
    let names: std::collections::BTreeSet<&str> = committed.lines().filter(|name| !name.is_empty()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["fix_plan.md", "work.txt"]);
    assert!(plimsoll_tests::first_request_of(&model, 1).contains("Mind the dates."));
}

#[test]
fn the_block_of_a_loop_leaves_the_prompt_with_its_end() {
    const TASK: &str = "Do the plan.\n";
    let world = plimsoll_tests::world(ITEMS);
    world.write("PROMPT.md", TASK);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    world.plimsoll(&["start"]).run().expect_success();
    assert!(world.read("PROMPT.md").starts_with("<!-- plimsoll"), "a loop pipes it");
    world.plimsoll(&["stop"]).run().expect_success();
    assert_eq!(world.read("PROMPT.md"), TASK);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}
