//! Nothing that only looks springs a trap.

use super::planted_traps::{command, git, lay, sprung, stir, world};
use plimsoll_testkit::world::{Launch, World};
use plimsoll_tests::put_run;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::SystemTime;

/// As an older version of git, or a plain one, is asked.
#[test]
fn the_traps_are_live() {
    let world = world();
    lay(&world);
    let at = world.project();
    for (arguments, names) in [
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
        sprung(&world);
        git(&world, &at, arguments);
        let found = sprung(&world);
        let missing: Vec<_> = names.iter().filter(|name| !found.iter().any(|it| it == *name)).collect();
        assert!(missing.is_empty(), "git {arguments:?} springs {found:?}, and not {missing:?}");
    }
}

const RUN: &str = "20260107-090000-dates";
const SESSION: &str = "session-1";

/// A run in its first session, which stands at L2.
fn begin_run(world: &World) {
    put_run(world, RUN, SESSION);
    let line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
        "timestamp": "2026-01-07T11:45:00.000Z",
        "message": {
            "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
            "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
            "usage": { "input_tokens": 870_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
        },
    });
    world.write(transcript(world), &format!("{line}\n"));
}

fn transcript(world: &World) -> PathBuf {
    world.home().join(format!("{SESSION}.jsonl"))
}

fn event(world: &World, name: &str, more: &Value) -> Value {
    let mut event = json!({
        "session_id": SESSION, "transcript_path": transcript(world), "cwd": world.project(), "hook_event_name": name,
    });
    for (key, value) in more.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

fn hook(world: &World, program: &str, event: &Value) -> Launch {
    let launch = world.hook(program, event).env("PLIMSOLL_RUN_ID", RUN);
    launch.env("CLAUDE_PROJECT_DIR", world.project().display().to_string())
}

fn status_line(world: &World, folder: &str) -> Launch {
    let settings = json!({"statusline": {"lines": [["git"]], "segments": {"git": {"timeout_ms": 20_000}}}});
    world.write(".claude/plimsoll.json", &settings.to_string());
    let payload = json!({
        "session_id": "line", "cwd": world.path(folder),
        "workspace": {"current_dir": world.path(folder), "project_dir": world.project()},
        "model": {"id": "claude-opus-5-5", "display_name": "Opus"},
    });
    world.hook("plimsoll-statusline", &payload).env("NO_COLOR", "1")
}

/// Everything of ours that starts git to look, and what is not meant to.
fn everything(world: &World) -> Vec<(String, Launch)> {
    let mut all = Vec::new();
    for folder in ["", "nested", "module", "bare.git"] {
        all.push((format!("the status line in '{folder}'"), status_line(world, folder)));
    }
    let tool = json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "git commit -m x"}, "tool_response": "ok" });
    for (program, name, more) in [
        ("plimsoll-session-start", "SessionStart", json!({"source": "startup"})),
        ("plimsoll-post-tool", "PostToolBatch", json!({ "tool_calls": [tool] })),
        ("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"})),
        ("plimsoll-memory", "UserPromptSubmit", json!({"prompt": "go on"})),
        ("plimsoll-stop-gate", "Stop", json!({"stop_hook_active": false})),
        ("plimsoll-session-end", "SessionEnd", json!({"reason": "other"})),
    ] {
        all.push((program.to_owned(), hook(world, program, &event(world, name, &more))));
    }
    for words in [
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
        all.push((format!("plimsoll {words:?}"), world.plimsoll(words)));
    }
    for folder in ["nested", "bare.git"] {
        let inside = world.plimsoll(&["checkpoint"]).cwd(world.path(folder));
        all.push((format!("plimsoll checkpoint in {folder}"), inside));
    }
    // It judges, and saves what the checkpoint has left uncommitted.
    all.push((SAVES.to_owned(), world.plimsoll(&["gate"])));
    all
}

const SAVES: &str = "plimsoll gate";

/// What the work-in-progress commit may run: filters of `.git/config` whose programs are outside of the project. It runs no hook,
/// and no filter that a file of the working tree names.
fn may_run_in_commit(name: &str) -> bool {
    ["own-clean", "own-process"].contains(&name)
}

fn assert_nothing_springs(world: &World, with: &[(&str, String)]) {
    sprung(world);
    for (name, launch) in everything(world) {
        let launch = with.iter().fold(launch, |launch, (key, value)| launch.env(*key, value.clone()));
        let finished = launch.run();
        let mut found = sprung(world);
        if name == SAVES {
            let journal = world.read(".claude/plimsoll/journal.jsonl");
            let told = journal.lines().filter(|line| line.contains("wip_commit")).collect::<Vec<_>>();
            assert!(found.iter().any(|name| may_run_in_commit(name)), "{found:?} {finished:?} {told:?}");
            found.retain(|name| !may_run_in_commit(name));
        }
        assert_eq!(found, Vec::<String>::new(), "{name} springs them: {finished:?}");
    }
}

#[test]
fn nothing_of_ours_springs_a_trap_of_the_repository_or_of_one_inside_it() {
    let world = world();
    begin_run(&world);
    lay(&world);
    // The session begins before its work, which is known by when the file was touched last.
    let start = event(&world, "SessionStart", &json!({"source": "startup"}));
    hook(&world, "plimsoll-session-start", &start).run().expect_success();
    let changed = std::fs::File::options().append(true).open(world.path("changed.txt")).unwrap();
    changed.set_modified(SystemTime::now()).unwrap();
    world.git(&["config", "commit.gpgSign", "false"]);
    assert_nothing_springs(&world, &[]);
    // They have looked all the same.
    stir(&world);
    world.write("changed.txt", "four\n");
    let shown = status_line(&world, "").run().expect_success().stdout;
    assert!(shown.contains("main") && shown.contains('!'), "{shown}");
    let handoffs = std::fs::read_dir(world.path(".claude/handoffs")).unwrap().flatten();
    let texts: String = handoffs.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect();
    assert!(texts.contains("| changed.txt | 3 |"), "{texts}");
}

#[test]
fn nothing_of_ours_springs_a_trap_of_the_environment() {
    let world = world();
    begin_run(&world);
    lay(&world);
    let traps = |name: &str| command(&world, &format!("environment-{name}"));
    let other = world.path("nested/.git").display().to_string();
    let with = [
        ("GIT_EXTERNAL_DIFF", traps("diff")),
        ("GIT_PAGER", traps("pager")),
        ("GIT_EDITOR", traps("editor")),
        ("GIT_ASKPASS", traps("ask-pass")),
        ("GIT_SSH_COMMAND", traps("ssh")),
        ("GIT_DIR", other.clone()),
        ("GIT_WORK_TREE", world.path("nested").display().to_string()),
        ("GIT_INDEX_FILE", format!("{other}/index")),
        ("GIT_CONFIG_COUNT", "2".to_owned()),
        ("GIT_CONFIG_KEY_0", "filter.trap.clean".to_owned()),
        ("GIT_CONFIG_VALUE_0", traps("clean")),
        ("GIT_CONFIG_KEY_1", "core.fsmonitor".to_owned()),
        ("GIT_CONFIG_VALUE_1", traps("fsmonitor")),
        ("GIT_CONFIG_PARAMETERS", format!("'core.fsmonitor={}'", traps("parameters").replace('\'', "\""))),
        ("GIT_TRACE", world.home().join("sprung/trace").display().to_string()),
    ];
    assert_nothing_springs(&world, &with);
}
