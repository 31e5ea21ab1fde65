//! Files of a project that a clone's author or an agent has put in the place of ours: whatever they are, nothing outside
//! the project is read, written or made, no program waits for one, and none takes much memory.

mod planted_files;

use planted_files::{SECRET, Trap, outside, sights};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::{Finished, World};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
/// No program needs it whole; in a debug build on a busy computer, too.
const SOON: Duration = Duration::from_secs(15);

/// Every file of ours in a project, and the user's that we read or write.
const FILES: [&str; 22] = [
    ".claude/ralph-state.json",
    ".claude/ralph-state.json.lock",
    ".claude/plimsoll.json",
    ".claude/settings.json",
    ".claude/plimsoll/journal.jsonl",
    ".claude/plimsoll/faults.jsonl",
    ".claude/plimsoll/windows.json",
    ".claude/plimsoll/sessions/d8e9da22-d41b-4824-a1be-f318ff23689b.json",
    ".claude/plimsoll/sessions/d8e9da22-d41b-4824-a1be-f318ff23689b.lock",
    ".claude/plimsoll/sessions/d8e9da22-d41b-4824-a1be-f318ff23689b.status.json",
    ".claude/plimsoll/memory/state.json",
    ".claude/plimsoll/memory/log.jsonl",
    ".claude/plimsoll/turns/d8e9da22-d41b-4824-a1be-f318ff23689b.jsonl",
    ".claude/plimsoll/turns/d8e9da22-d41b-4824-a1be-f318ff23689b.head",
    "PROMPT.md",
    "progress.txt",
    "fix_plan.md",
    ".git/info/exclude",
    ".git/plimsoll/ralph-state.json",
    ".git/plimsoll/journal.jsonl",
    ".git/plimsoll/todo.md",
    ".git/plimsoll/progress.txt",
];

/// The one that git reads whenever it looks for changes.
const READ_BY_GIT: &str = ".git/info/exclude";

/// Folders of ours, each of which a link may stand for.
const FOLDERS: [&str; 9] = [
    ".claude",
    ".claude/plimsoll",
    ".claude/plimsoll/sessions",
    ".claude/plimsoll/memory",
    ".claude/plimsoll/turns",
    ".claude/handoffs",
    ".git/info",
    ".git/plimsoll",
    ".git/plimsoll/memory",
];

/// Not met by a session's programs, or only by those that have nothing to say: a fault of the file of faults.
const QUIET: [&str; 7] = [
    ".claude/plimsoll/faults.jsonl",
    ".claude/plimsoll/windows.json",
    "progress.txt",
    ".git/info",
    ".git/info/exclude",
    ".git/plimsoll/todo.md",
    ".git/plimsoll/progress.txt",
];

/// A run that a session of a shell loop works at, with something in every file.
fn furnished() -> World {
    let mut world = World::new();
    world.write("fix_plan.md", "# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    world.write("src/dates.txt", "not yet committed\n");
    let line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
        "timestamp": "2026-01-07T11:45:00.000Z", "uuid": "u",
        "message": {
            "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
            "content": [{"type": "text", "text": "Working."}],
            "usage": { "input_tokens": 185_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
        },
    });
    std::fs::write(world.home().join("transcript.jsonl"), format!("{line}\n")).unwrap();
    world.plimsoll(&["start", "--objective", "Do the plan."]).timeout(SOON).run().expect_success();
    let run = world.json(".claude/ralph-state.json")["run_id"].as_str().unwrap().to_owned();
    world.set_env("PLIMSOLL_RUN_ID", run);
    world.plimsoll(&["memory", "set", "goal", "Ship it."]).timeout(SOON).run().expect_success();
    work(&world);
    world
}

/// What the client and an agent start in a session, each to its end.
fn work(world: &World) -> Vec<(String, Finished)> {
    let event = |name: &str| {
        json!({
            "session_id": SESSION, "transcript_path": world.home().join("transcript.jsonl"),
            "cwd": world.project(), "hook_event_name": name, "source": "startup", "reason": "other",
            "tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "toolu_1",
            "trigger": "auto", "model": {"id": "claude-opus-5-5", "display_name": "Opus"},
            "workspace": {"current_dir": world.project(), "project_dir": world.project()},
        })
    };
    let hooks = [
        ("plimsoll-session-start", "SessionStart"),
        ("plimsoll-post-tool", "PostToolBatch"),
        ("plimsoll-memory", "PostToolBatch"),
        ("plimsoll-frame", "PreToolUse"),
        ("plimsoll-statusline", ""),
        ("plimsoll-pre-compact", "PreCompact"),
        ("plimsoll-stop-gate", "Stop"),
        ("plimsoll-session-end", "SessionEnd"),
    ];
    let commands: [&[&str]; 5] =
        [&["checkpoint"], &["status"], &["memory", "set", "plan", "Two items."], &["plan"], &["doctor"]];
    let project = world.project().display().to_string();
    let mut done = Vec::new();
    for (program, name) in hooks {
        let limited = limited(world, HOOK_MEMORY, &bin_dir().join(program), &[])
            .env("CLAUDE_PROJECT_DIR", &project)
            .stdin(event(name).to_string());
        done.push((program.to_owned(), limited.run()));
    }
    for command in commands {
        done.push((
            command.join(" "),
            limited(world, COMMAND_MEMORY, &bin_dir().join("plimsoll"), command).run(),
        ));
    }
    done
}

/// So many KB of addresses may a hook have, its libraries and threads among them: a file that is read whole does not fit.
const HOOK_MEMORY: u32 = 130_000;
const COMMAND_MEMORY: u32 = 1_500_000;

fn limited(
    world: &World,
    memory: u32,
    program: &Path,
    arguments: &[&str],
) -> plimsoll_testkit::world::Launch {
    let script = format!("ulimit -v {memory}; exec \"$0\" \"$@\"");
    let program = program.display().to_string();
    let all: Vec<&str> = ["-c", &script, &program].iter().chain(arguments).copied().collect();
    world.command("/bin/sh", &all).timeout(SOON)
}

/// Lays a trap in the place of each of these, and lets a session meet it.
fn meet(trap: Trap, places: &[&str]) {
    let world = furnished();
    let whole = sights(&world.project());
    let mut unnamed = Vec::new();
    for place in places {
        let started = Instant::now();
        trap.lay(&world, place);
        let before = sights(&outside(&world));
        let done = work(&world);
        let scene = |what: &str| format!("{what}: {trap:?} in the place of {place}");
        assert_eq!(sights(&outside(&world)), before, "{}", scene("something outside was changed"));
        for (program, finished) in &done {
            let said = format!("{}{}", finished.stdout, finished.stderr);
            assert!(!said.contains(SECRET), "{} said by {program}: {said}", scene("a secret"));
            assert!(
                !said.contains("panicked") && !said.contains("memory allocation"),
                "{} {said}",
                scene(program)
            );
            let is_hook = program.starts_with("plimsoll-");
            // A one is an answer: the session has to end.
            assert!(!is_hook || matches!(finished.code, Some(0 | 1)), "{}: {finished:?}", scene(program));
        }
        for (path, text) in sights(&world.project()) {
            assert!(!String::from_utf8_lossy(&text).contains(SECRET), "{} lies in {path}", scene("a secret"));
        }
        let name = place.rsplit('/').next().unwrap();
        if !done.iter().any(|(_, finished)| format!("{}{}", finished.stdout, finished.stderr).contains(name))
        {
            unnamed.push(*place);
        }
        planted_files::put_back(&world, &whole);
        println!("{place}: {:?}", started.elapsed());
    }
    // A large lock is a lock, and a large head is made anew.
    let is_no_matter =
        |place: &str| matches!(trap, Trap::Huge) && [".lock", ".head"].iter().any(|end| place.ends_with(end));
    // A file that is replaced as a whole leaves the other names of the old one alone.
    let is_replaced = |place: &str| {
        matches!(trap, Trap::HardLink) && ![".jsonl", ".lock"].iter().any(|end| place.ends_with(end))
    };
    unnamed.retain(|place| !QUIET.contains(place) && !is_no_matter(place) && !is_replaced(place));
    assert_eq!(unnamed, [""; 0], "{trap:?} is named by no program");
}

#[test]
fn a_link_to_a_file_outside_is_neither_read_nor_written() {
    meet(Trap::LinkToFile, &FILES);
}

#[test]
fn a_file_outside_is_not_written_through_a_second_name_in_the_project() {
    meet(Trap::HardLink, &FILES);
}

#[test]
fn a_link_to_a_missing_file_outside_makes_none() {
    meet(Trap::LinkToMissing, &FILES);
}

#[test]
fn a_linked_folder_takes_none_of_our_files_out() {
    meet(Trap::LinkToFolder, &FOLDERS);
}

#[test]
fn nothing_waits_for_a_pipe() {
    let read_by_us: Vec<&str> = FILES.into_iter().filter(|file| *file != READ_BY_GIT).collect();
    meet(Trap::Pipe, &read_by_us);
}

/// git itself waits for it; who started git does not.
#[test]
fn a_git_that_waits_for_a_pipe_is_given_up() {
    meet(Trap::Pipe, &[READ_BY_GIT]);
}

#[test]
fn a_device_without_end_is_not_read() {
    meet(Trap::LinkToZero, &FILES);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_no_file() {
    meet(Trap::Folder, &FILES);
}

#[test]
fn a_huge_file_is_not_taken_into_memory() {
    meet(Trap::Huge, &FILES);
}

#[test]
fn a_link_of_the_users_inside_the_project_keeps_working() {
    let world = World::new();
    world.write("docs/plan.md", "- [ ] Item one\n");
    world.write("docs/PROMPT.md", "The task itself.\n");
    symlink("docs/plan.md", world.path("fix_plan.md")).unwrap();
    symlink(world.path("docs/PROMPT.md"), world.path("PROMPT.md")).unwrap();
    world.plimsoll(&["start"]).timeout(SOON).run().expect_success();
    assert!(world.path("PROMPT.md").is_symlink() && world.path("fix_plan.md").is_symlink());
    let prompt = world.read("docs/PROMPT.md");
    assert!(prompt.contains("The task itself.") && prompt.contains("Item one"), "{prompt}");
}

#[test]
fn a_run_is_not_started_with_a_prompt_or_plan_that_leads_out_and_says_which() {
    for name in ["PROMPT.md", "fix_plan.md"] {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n");
        Trap::LinkToFile.lay(&world, name);
        let before = sights(&outside(&world));
        let objective: &[&str] = if name == "PROMPT.md" { &[] } else { &["--objective", "Do the plan."] };
        let finished = world.plimsoll(&[&["start"], objective].concat()).timeout(SOON).run();
        assert_ne!(finished.code, Some(0), "{name}: {finished:?}");
        assert!(finished.stderr.contains(name), "{name}: {finished:?}");
        assert_eq!(sights(&outside(&world)), before, "{name}");
    }
}

#[test]
fn a_git_file_that_leads_to_no_git_folder_takes_nothing_there() {
    for what in [".git", "commondir"] {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n");
        let target = outside(&world);
        match what {
            ".git" => {
                std::fs::remove_dir_all(world.path(".git")).unwrap();
                world.write(".git", &format!("gitdir: {}\n", target.display()));
            }
            _ => world.write(".git/commondir", &format!("{}\n", target.display())),
        }
        let before = sights(&target);
        world.plimsoll(&["start", "--objective", "Do the plan."]).timeout(SOON).run();
        work(&world);
        assert_eq!(sights(&target), before, "{what}");
    }
}
