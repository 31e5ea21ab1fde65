//! No program of ours that only reads the repository springs a trap.

use super::planted_traps::{
    change_and_touch_files, plant_traps, run_git_in, take_sprung_traps, trap_command, world_without_traps,
};
use plimsoll_testkit::world::{Launch, World};
use plimsoll_tests::create_run;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::SystemTime;

/// Runs git without our options, as an older version or a plain call does.
#[test]
fn plain_git_springs_the_traps() {
    let world = world_without_traps();
    plant_traps(&world);
    let project = world.project();
    for (arguments, expected_traps) in [
        (&["status"][..], &["own-clean", "own-fsmonitor", "module-clean", "module-fsmonitor"][..]),
        (&["hash-object", "touched.txt"], &["own-clean"]),
        (&["hash-object", "fix_plan.md"], &["own-process"]),
        (&["hash-object", "new.rs"], &["included-clean"]),
        (
            &["-c", "filter.trap.clean=cat", "-c", "filter.trap.required=false", "diff", "HEAD"],
            &["own-diff-external", "own-diff-command"],
        ),
        (&["log", "-p", "--ext-diff"], &["own-diff-external"]),
        (&["log", "-p"], &["own-textconv"]),
        (&["-c", "diff.external=", "-c", "filter.trap.clean=cat", "diff", "HEAD", "--", "changed.txt"], &[]),
        (&["-C", "nested", "status"], &["nested-clean", "nested-fsmonitor"]),
        (&["-C", "bare.git", "status"], &["bare-fsmonitor"]),
        (&["update-index", "--refresh"], &["own-hook-post-index-change"]),
    ] {
        take_sprung_traps(&world);
        run_git_in(&world, &project, arguments);
        let sprung_traps = take_sprung_traps(&world);
        let missing: Vec<_> = expected_traps
            .iter()
            .filter(|name| !sprung_traps.iter().any(|sprung_name| sprung_name == *name))
            .collect();
        assert!(missing.is_empty(), "git {arguments:?} springs {sprung_traps:?}, and not {missing:?}");
    }
}

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";

/// Begins a run whose first session has reached L2.
fn begin_run_at_l2(world: &World) {
    create_run(world, RUN, SESSION);
    let line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
        "timestamp": "2026-01-07T11:45:00.000Z",
        "message": {
            "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
            "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
            "usage": { "input_tokens": 870_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
        },
    });
    world.write(transcript_path(world), &format!("{line}\n"));
}

fn transcript_path(world: &World) -> PathBuf {
    world.home().join(format!("{SESSION}.jsonl"))
}

fn hook_event(world: &World, event_name: &str, fields: &Value) -> Value {
    let mut event = json!({
        "session_id": SESSION, "transcript_path": transcript_path(world), "cwd": world.project(), "hook_event_name": event_name,
    });
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

fn hook_launch(world: &World, program: &str, event: &Value) -> Launch {
    let launch = world.hook(program, event).env("PLIMSOLL_RUN_ID", RUN);
    launch.env("CLAUDE_PROJECT_DIR", world.project().display().to_string())
}

fn status_line_launch(world: &World, folder: &str) -> Launch {
    let settings = json!({"statusline": {"lines": [["git"]], "segments": {"git": {"timeout_ms": 20_000}}}});
    world.write(".claude/plimsoll.json", &settings.to_string());
    let payload = json!({
        "session_id": "line", "cwd": world.path(folder),
        "workspace": {"current_dir": world.path(folder), "project_dir": world.project()},
        "model": {"id": "claude-opus-5-5", "display_name": "Opus"},
    });
    world.hook("plimsoll-statusline", &payload).env("NO_COLOR", "1")
}

/// Returns everything of ours that starts git to read, and some commands that should not start it.
fn all_launches(world: &World) -> Vec<(String, Launch)> {
    let mut launches = Vec::new();
    for folder in ["", "nested", "module", "bare.git"] {
        launches.push((format!("the status line in '{folder}'"), status_line_launch(world, folder)));
    }
    let tool = json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "git commit -m x"}, "tool_response": "ok" });
    for (program, name, fields) in [
        ("plimsoll-session-start", "SessionStart", json!({"source": "startup"})),
        ("plimsoll-post-tool", "PostToolBatch", json!({ "tool_calls": [tool] })),
        ("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"})),
        ("plimsoll-memory", "UserPromptSubmit", json!({"prompt": "go on"})),
        ("plimsoll-stop-gate", "Stop", json!({"stop_hook_active": false})),
        ("plimsoll-session-end", "SessionEnd", json!({"reason": "other"})),
    ] {
        launches.push((program.to_owned(), hook_launch(world, program, &hook_event(world, name, &fields))));
    }
    for arguments in [
        &["status"][..],
        &["doctor"],
        &["report"],
        &["status", "--markdown"],
        &["plan"],
        &["turns"],
        &["prompt"],
        &["log"],
        &["log", "--why"],
        &["monitor"],
        &["checkpoint", "--summary", "half of it"],
    ] {
        launches.push((format!("plimsoll {arguments:?}"), world.plimsoll(arguments)));
    }
    for folder in ["nested", "bare.git"] {
        let inside = world.plimsoll(&["checkpoint"]).cwd(world.path(folder));
        launches.push((format!("plimsoll checkpoint in {folder}"), inside));
    }
    // The gate judges the session, and commits what the checkpoint has left uncommitted.
    launches.push((COMMITTING_COMMAND.to_owned(), world.plimsoll(&["gate"])));
    launches
}

const COMMITTING_COMMAND: &str = "plimsoll gate";

/// Returns whether the work-in-progress commit may spring this trap: filters of `.git/config` whose programs are
/// outside the project. The commit runs no hook, and no filter that a file of the working tree names.
fn may_run_in_commit(name: &str) -> bool {
    ["own-clean", "own-process"].contains(&name)
}

fn assert_no_trap_is_sprung(world: &World, env: &[(&str, String)]) {
    take_sprung_traps(world);
    for (name, launch) in all_launches(world) {
        let launch = env.iter().fold(launch, |launch, (key, value)| launch.env(*key, value.clone()));
        let finished = launch.run();
        let mut sprung_traps = take_sprung_traps(world);
        if name == COMMITTING_COMMAND {
            let journal = world.read(".claude/plimsoll/journal.jsonl");
            let wip_commit_lines =
                journal.lines().filter(|line| line.contains("wip_commit")).collect::<Vec<_>>();
            assert!(
                sprung_traps.iter().any(|name| may_run_in_commit(name)),
                "{sprung_traps:?} {finished:?} {wip_commit_lines:?}"
            );
            sprung_traps.retain(|name| !may_run_in_commit(name));
        }
        assert_eq!(sprung_traps, Vec::<String>::new(), "{name} springs them: {finished:?}");
    }
}

#[test]
fn our_programs_spring_no_trap_of_the_repository_or_of_one_inside_it() {
    let world = world_without_traps();
    begin_run_at_l2(&world);
    plant_traps(&world);
    // The session begins before its work; the time of the last change to a file tells whose work it is.
    let start = hook_event(&world, "SessionStart", &json!({"source": "startup"}));
    hook_launch(&world, "plimsoll-session-start", &start).run().expect_success();
    let changed = std::fs::File::options().append(true).open(world.path("changed.txt")).unwrap();
    changed.set_modified(SystemTime::now()).unwrap();
    world.git(&["config", "commit.gpgSign", "false"]);
    assert_no_trap_is_sprung(&world, &[]);
    // The programs have read the repository all the same.
    change_and_touch_files(&world);
    world.write("changed.txt", "four\n");
    let shown = status_line_launch(&world, "").run().expect_success().stdout;
    assert!(shown.contains("main") && shown.contains('!'), "{shown}");
    let handoffs = std::fs::read_dir(world.path(".claude/handoffs")).unwrap().flatten();
    let texts: String = handoffs.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect();
    assert!(texts.contains("| changed.txt | 3 |"), "{texts}");
}

#[test]
fn our_programs_spring_no_trap_set_in_environment_variables() {
    let world = world_without_traps();
    begin_run_at_l2(&world);
    plant_traps(&world);
    let environment_trap = |name: &str| trap_command(&world, &format!("environment-{name}"));
    let other_git_dir = world.path("nested/.git").display().to_string();
    let env = [
        ("GIT_EXTERNAL_DIFF", environment_trap("diff")),
        ("GIT_PAGER", environment_trap("pager")),
        ("GIT_EDITOR", environment_trap("editor")),
        ("GIT_ASKPASS", environment_trap("ask-pass")),
        ("GIT_SSH_COMMAND", environment_trap("ssh")),
        ("GIT_DIR", other_git_dir.clone()),
        ("GIT_WORK_TREE", world.path("nested").display().to_string()),
        ("GIT_INDEX_FILE", format!("{other_git_dir}/index")),
        ("GIT_CONFIG_COUNT", "2".to_owned()),
        ("GIT_CONFIG_KEY_0", "filter.trap.clean".to_owned()),
        ("GIT_CONFIG_VALUE_0", environment_trap("clean")),
        ("GIT_CONFIG_KEY_1", "core.fsmonitor".to_owned()),
        ("GIT_CONFIG_VALUE_1", environment_trap("fsmonitor")),
        (
            "GIT_CONFIG_PARAMETERS",
            format!("'core.fsmonitor={}'", environment_trap("parameters").replace('\'', "\"")),
        ),
        ("GIT_TRACE", world.home().join("sprung/trace").display().to_string()),
    ];
    assert_no_trap_is_sprung(&world, &env);
}
