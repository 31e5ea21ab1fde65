//! Files of a project that a clone's author or an agent has put in the place of ours. Whatever they are, nothing
//! outside the project is read, written or created, no program waits for one, and none takes much memory.

mod planted_files;

use planted_files::{SECRET, Trap, folder_snapshot, outside_folder};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
/// Time limit of each program. None needs all of it, even in a debug build on a busy computer.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(15);

/// Every file of ours in a project, and the user's files that we read or write.
const OUR_FILES: [&str; 22] = [
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

/// The file that git reads whenever it looks for changes.
const READ_BY_GIT: &str = ".git/info/exclude";

/// Our folders, each of which a link can replace.
const OUR_FOLDERS: [&str; 9] = [
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

/// Not used by the programs of a session, or only by those that have nothing to report, such as a fault of the file of
/// faults.
const UNREPORTED_PATHS: [&str; 7] = [
    ".claude/plimsoll/faults.jsonl",
    ".claude/plimsoll/windows.json",
    "progress.txt",
    ".git/info",
    ".git/info/exclude",
    ".git/plimsoll/todo.md",
    ".git/plimsoll/progress.txt",
];

/// Returns a world with a run that a session of a shell loop works on, with content in every file.
fn world_with_run() -> World {
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
    world.plimsoll(&["start", "--objective", "Do the plan."]).timeout(PROGRAM_TIMEOUT).run().expect_success();
    let run = world.read_json(".claude/ralph-state.json")["run_id"].as_str().unwrap().to_owned();
    world.set_env("PLIMSOLL_RUN_ID", run);
    world.plimsoll(&["memory", "set", "goal", "Ship it."]).timeout(PROGRAM_TIMEOUT).run().expect_success();
    run_session_programs(&world);
    world
}

/// Runs everything that the client and an agent start in a session, each to its end.
fn run_session_programs(world: &World) -> Vec<(String, FinishedProgram)> {
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
    let mut results = Vec::new();
    for (program, name) in hooks {
        let launch =
            launch_with_memory_limit(world, HOOK_MEMORY_KB, &find_or_build_bin_dir().join(program), &[])
                .env("CLAUDE_PROJECT_DIR", &project)
                .stdin(event(name).to_string());
        results.push((program.to_owned(), launch.run()));
    }
    for command in commands {
        results.push((
            command.join(" "),
            launch_with_memory_limit(
                world,
                COMMAND_MEMORY_KB,
                &find_or_build_bin_dir().join("plimsoll"),
                command,
            )
            .run(),
        ));
    }
    results
}

/// The address space in KB that a hook may use, its libraries and threads included: a huge file that is read whole does
/// not fit.
const HOOK_MEMORY_KB: u32 = 130_000;
const COMMAND_MEMORY_KB: u32 = 1_500_000;

fn launch_with_memory_limit(
    world: &World,
    memory_kb: u32,
    program: &Path,
    arguments: &[&str],
) -> plimsoll_testkit::world::Launch {
    let script = format!("ulimit -v {memory_kb}; exec \"$0\" \"$@\"");
    let program = program.display().to_string();
    let shell_arguments: Vec<&str> = ["-c", &script, &program].iter().chain(arguments).copied().collect();
    world.command("/bin/sh", &shell_arguments).timeout(PROGRAM_TIMEOUT)
}

/// Puts a trap in each of these places in turn, and lets a session meet it.
fn assert_trap_is_harmless(trap: Trap, places: &[&str]) {
    let world = world_with_run();
    let original_contents = folder_snapshot(&world.project());
    let mut unnamed_places = Vec::new();
    for place in places {
        let started = Instant::now();
        trap.plant(&world, place);
        let before = folder_snapshot(&outside_folder(&world));
        let results = run_session_programs(&world);
        let describe = |subject: &str| format!("{subject}: {trap:?} in the place of {place}");
        assert_eq!(
            folder_snapshot(&outside_folder(&world)),
            before,
            "{}",
            describe("something outside was changed")
        );
        for (program, finished) in &results {
            let output = format!("{}{}", finished.stdout, finished.stderr);
            assert!(!output.contains(SECRET), "{} said by {program}: {output}", describe("a secret"));
            assert!(
                !output.contains("panicked") && !output.contains("memory allocation"),
                "{} {output}",
                describe(program)
            );
            let is_hook = program.starts_with("plimsoll-");
            // Exit code 1 is an answer: the session has to end.
            assert!(!is_hook || matches!(finished.code, Some(0 | 1)), "{}: {finished:?}", describe(program));
        }
        for (path, text) in folder_snapshot(&world.project()) {
            assert!(
                !String::from_utf8_lossy(&text).contains(SECRET),
                "{} lies in {path}",
                describe("a secret")
            );
        }
        let name = place.rsplit('/').next().unwrap();
        if !results
            .iter()
            .any(|(_, finished)| format!("{}{}", finished.stdout, finished.stderr).contains(name))
        {
            unnamed_places.push(*place);
        }
        planted_files::restore_project(&world, &original_contents);
        println!("{place}: {:?}", started.elapsed());
    }
    // A huge lock file still works as a lock, and a huge head is written again.
    let is_harmless =
        |place: &str| matches!(trap, Trap::Huge) && [".lock", ".head"].iter().any(|end| place.ends_with(end));
    // A file that is replaced as a whole leaves the other hard links of the old file alone.
    let is_replaced = |place: &str| {
        matches!(trap, Trap::HardLink) && ![".jsonl", ".lock"].iter().any(|end| place.ends_with(end))
    };
    unnamed_places
        .retain(|place| !UNREPORTED_PATHS.contains(place) && !is_harmless(place) && !is_replaced(place));
    assert_eq!(unnamed_places, [""; 0], "{trap:?} is named by no program");
}

#[test]
fn a_link_to_a_file_outside_is_neither_read_nor_written() {
    assert_trap_is_harmless(Trap::LinkToFile, &OUR_FILES);
}

#[test]
fn a_file_outside_is_not_written_through_a_hard_link_in_the_project() {
    assert_trap_is_harmless(Trap::HardLink, &OUR_FILES);
}

#[test]
fn a_link_to_a_missing_file_outside_does_not_create_it() {
    assert_trap_is_harmless(Trap::LinkToMissing, &OUR_FILES);
}

#[test]
fn no_file_is_written_outside_through_a_linked_folder() {
    assert_trap_is_harmless(Trap::LinkToFolder, &OUR_FOLDERS);
}

#[test]
fn no_program_waits_for_a_pipe_in_place_of_a_file() {
    let read_by_us: Vec<&str> = OUR_FILES.into_iter().filter(|file| *file != READ_BY_GIT).collect();
    assert_trap_is_harmless(Trap::Pipe, &read_by_us);
}

/// git itself waits for the pipe; the program that started git does not.
#[test]
fn a_git_process_that_waits_for_a_pipe_is_given_up() {
    assert_trap_is_harmless(Trap::Pipe, &[READ_BY_GIT]);
}

#[test]
fn an_endless_device_is_not_read() {
    assert_trap_is_harmless(Trap::LinkToEndlessDevice, &OUR_FILES);
}

#[test]
fn a_folder_in_place_of_a_file_breaks_no_program() {
    assert_trap_is_harmless(Trap::Folder, &OUR_FILES);
}

#[test]
fn a_huge_file_is_not_read_into_memory() {
    assert_trap_is_harmless(Trap::Huge, &OUR_FILES);
}

#[test]
fn a_symlink_of_the_user_inside_the_project_keeps_working() {
    let world = World::new();
    world.write("docs/plan.md", "- [ ] Item one\n");
    world.write("docs/PROMPT.md", "The task itself.\n");
    symlink("docs/plan.md", world.path("fix_plan.md")).unwrap();
    symlink(world.path("docs/PROMPT.md"), world.path("PROMPT.md")).unwrap();
    world.plimsoll(&["start"]).timeout(PROGRAM_TIMEOUT).run().expect_success();
    assert!(world.path("PROMPT.md").is_symlink() && world.path("fix_plan.md").is_symlink());
    let prompt = world.read("docs/PROMPT.md");
    assert!(prompt.contains("The task itself.") && prompt.contains("Item one"), "{prompt}");
}

#[test]
fn start_refuses_and_names_a_prompt_or_plan_that_links_outside() {
    for name in ["PROMPT.md", "fix_plan.md"] {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n");
        Trap::LinkToFile.plant(&world, name);
        let before = folder_snapshot(&outside_folder(&world));
        let objective: &[&str] = if name == "PROMPT.md" { &[] } else { &["--objective", "Do the plan."] };
        let finished = world.plimsoll(&[&["start"], objective].concat()).timeout(PROGRAM_TIMEOUT).run();
        assert_ne!(finished.code, Some(0), "{name}: {finished:?}");
        assert!(finished.stderr.contains(name), "{name}: {finished:?}");
        assert_eq!(folder_snapshot(&outside_folder(&world)), before, "{name}");
    }
}

#[test]
fn nothing_is_written_to_a_folder_that_a_forged_git_file_names() {
    for forged_file in [".git", "commondir"] {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n");
        let target = outside_folder(&world);
        match forged_file {
            ".git" => {
                std::fs::remove_dir_all(world.path(".git")).unwrap();
                world.write(".git", &format!("gitdir: {}\n", target.display()));
            }
            _ => world.write(".git/commondir", &format!("{}\n", target.display())),
        }
        let before = folder_snapshot(&target);
        world.plimsoll(&["start", "--objective", "Do the plan."]).timeout(PROGRAM_TIMEOUT).run();
        run_session_programs(&world);
        assert_eq!(folder_snapshot(&target), before, "{forged_file}");
    }
}
