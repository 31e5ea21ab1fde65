//! `plimsoll memory`, and what the hooks and the status line make of what a person writes.

use plimsoll_domain::memory::MemoryOp;
use plimsoll_store::Project;
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

fn memory(world: &World, arguments: &[&str]) -> Finished {
    world.plimsoll(&[&["memory"], arguments].concat()).run()
}

fn done(world: &World, arguments: &[&str]) -> String {
    memory(world, arguments).expect_success().stdout
}

/// What a hook of ours tells the model.
fn told(world: &World, event: &Value, word: &[&str]) -> String {
    let program = if word == ["memory"] { "plimsoll-session-start" } else { "plimsoll-memory" };
    let hook = world.hook(program, event);
    let finished = word.iter().fold(hook, |hook, word| hook.arg(*word)).run().expect_success();
    let reply: Value = serde_json::from_str(&finished.stdout).expect(&finished.stdout);
    assert_eq!(finished.stderr, "");
    reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

fn event(world: &World, name: &str, more: &Value) -> Value {
    let mut event = json!({"session_id": SESSION, "hook_event_name": name,
        "cwd": world.project().display().to_string(), "transcript_path": "/nonexistent.jsonl"});
    event.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    event
}

fn batch(world: &World) -> Value {
    event(world, "PostToolBatch", &json!({"tool_calls": [{"tool_name": "Bash", "tool_use_id": "toolu_1"}]}))
}

#[test]
fn a_person_reads_and_writes_and_sees_who_wrote_what() {
    let world = World::new();
    let shown = memory(&world, &["show"]).expect_success();
    insta::assert_snapshot!(shown.stderr, @"The working memory is empty: the agent writes it after `plimsoll init --memory`, or in `plimsoll run --memory`.");
    assert_eq!(done(&world, &["set", "R4", "Keep the public API."]), "ok r1\n");
    assert_eq!(done(&world, &["set", "goal", "Build calc"]), "ok r2\n");
    let piped = world.plimsoll(&["memory", "alloc", "api-spec", "-", "--description", "the functions"]);
    assert_eq!(piped.stdin("add(a,b)\n").run().expect_success().stdout, "ok r3\n");
    assert_eq!(done(&world, &["write", "api-spec", "add(a,b), sub(a,b)"]), "ok r4\n");
    assert_eq!(
        done(&world, &[]),
        "\
Working memory

Revision 4, step 0, the root frame.

- R0 GOAL (now): Build calc
- R4 CONSTRAINTS (now): Keep the public API.

Heap

1 chunk, 18 of 8000 characters (pressure low).

heap:api-spec (18 characters, written in step 0): the functions

add(a,b), sub(a,b)
"
    );
    assert_eq!(done(&world, &["free", "api-spec"]), "ok r5\n");
    let json = memory(&world, &["show", "--json"]).expect_success().json();
    assert_eq!((&json["rev"], &json["depth"], &json["pressure"]), (&json!(5), &json!(0), &json!("low")));
    assert_eq!((&json["registers"]["R0_GOAL"], &json["heap"]), (&json!("Build calc"), &json!([])));
    let history = memory(&world, &["history", "--json"]).expect_success().json();
    let ops: Vec<&str> = history
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|change| change["change"]["op"].as_str())
        .collect();
    assert_eq!(ops, ["update_registers", "update_registers", "heap_alloc", "heap_write", "heap_free"]);
    assert!(history.as_array().expect("a list").iter().all(|change| change["by"] == "command"));
    let lines = done(&world, &["history", "-n", "2"]);
    insta::assert_snapshot!(world.stable_text(&lines), @"
    r4    [TIME]  step 0    command  root         write api-spec (18 chars)
    r5    [TIME]  step 0    command  root         free api-spec
    ");
    let asked =
        world.plimsoll(&["query", "--on", "memory", "-r", ".registers.R0_GOAL"]).run().expect_success();
    assert_eq!(asked.stdout, "Build calc\n");
}

#[test]
fn what_cannot_be_says_what_and_what_to_do_and_changes_nothing() {
    let world = World::new();
    done(&world, &["alloc", "a", "x"]);
    let long = "x".repeat(61);
    let huge = "x".repeat(9_501);
    let errors = [
        &["set", "R9", "x"][..],
        &["set", "phase", &long],
        &["alloc", "a", "y"],
        &["alloc", "two words", "y"],
        &["alloc", "b", &huge],
        &["write", "b", "y"],
        &["free", "b"],
        &["forget"],
    ]
    .map(|arguments| {
        let refused = memory(&world, arguments);
        format!("exit {}: {}", refused.code.expect("an exit code"), refused.stderr)
    });
    insta::assert_snapshot!(errors.join("\n"), @r#"
    exit 2: error: invalid value 'R9' for '<REGISTER>': one of R0_GOAL, R1_PLAN, R2_NEXT, R3_PHASE, R4_CONSTRAINTS, R5_ASSUMPTIONS, R6_OPEN_QUESTIONS, R7_STATUS

    For more information, try '--help'.

    exit 1: plimsoll: R3_PHASE takes at most 60 characters, and 61 were given: shorten it, or put the rest on the heap

    exit 1: plimsoll: the chunk a already exists: rewrite it with heap_write

    exit 1: plimsoll: a chunk's name has 1 to 40 letters, digits or -_./: and "two words" has others or is too long

    exit 1: plimsoll: b would have 9501 UTF-16 units, and a chunk has at most 9500: strip it to what decides, or put it into a file

    exit 1: plimsoll: there is no chunk b: there are a

    exit 1: plimsoll: there is no chunk b: there are a

    exit 2: error: unrecognized subcommand 'forget'

      tip: some similar subcommands exist: 'frame', 'free'

    Usage: plimsoll memory [COMMAND]

    For more information, try '--help'.
    "#);
    assert_eq!(memory(&world, &["show", "--json"]).json()["rev"], 1);
}

#[test]
fn the_stack_is_shown_and_a_frame_closed() {
    let world = World::new();
    done(&world, &["set", "goal", "Build calc"]);
    let push = MemoryOp::PushFrame {
        name: "tests".into(),
        objective: "Write test_calc.py".into(),
        context: "calc.py is there".into(),
        return_spec: "Passed and failed".into(),
        pushed_by_call: None,
    };
    plimsoll_store::memory::apply_changes(&Project::with_local_files(&world.project()), "test", &[push])
        .expect("a frame");
    let shown = memory(&world, &["show", "--json"]).json();
    let frames = shown["frames"].as_array().expect("frames");
    assert_eq!((frames.len(), &frames[0]["registers"]["R0_GOAL"]), (2, &json!("Build calc")));
    assert_eq!(frames[1]["objective"], "Write test_calc.py");
    assert_eq!(frames[1]["registers"]["R3_PHASE"], "entering: tests");
    assert_eq!(world.plimsoll(&["memory", "frame", "close"]).run().expect_success().stdout, "ok r3\n");
    let refused = world.plimsoll(&["memory", "frame", "close"]).run();
    assert_eq!(refused.code, Some(1));
    insta::assert_snapshot!(refused.stderr, @"plimsoll: the root frame is closed by pop_frame alone");
}

#[test]
fn the_agent_sees_a_person_s_word_with_its_next_step_and_once() {
    let world = World::new();
    assert_eq!(told(&world, &batch(&world), &[]), "", "no memory, no word");
    done(&world, &["set", "R4", "Keep the public API."]);
    let start = event(&world, "SessionStart", &json!({"source": "startup"}));
    insta::assert_snapshot!(world.stable_text(&told(&world, &start, &["memory"])), @r#"
    <plimsoll-memory rev="1" frame="root" depth="0"> (of a frame's blocks, the highest rev is current)
    R4 CONSTRAINTS: Keep the public API.
    </plimsoll-memory>
    "#);
    assert_eq!(told(&world, &start, &["part-2"]), "");
    assert_eq!(told(&world, &batch(&world), &[]), "");
    done(&world, &["set", "R4", "Break it."]);
    done(&world, &["alloc", "why", "The old one is unused."]);
    let news = told(&world, &batch(&world), &[]);
    insta::assert_snapshot!(news, @r#"
    <plimsoll-memory rev="3"> (what has changed)
    R4 CONSTRAINTS: Break it.
    <plimsoll-chunk name="why" rev="3">
    The old one is unused.
    </plimsoll-chunk>
    </plimsoll-memory>
    "#);
    assert_eq!(told(&world, &batch(&world), &[]), "");
    let prompt = event(&world, "UserPromptSubmit", &json!({"prompt": "go on"}));
    done(&world, &["free", "why"]);
    insta::assert_snapshot!(told(&world, &prompt, &[]), @r#"
    <plimsoll-memory rev="4"> (what has changed)
    heap:why freed
    </plimsoll-memory>
    "#);
    let calls: Vec<String> = (0..30).map(|_| told(&world, &batch(&world), &[])).collect();
    let blocks: Vec<usize> =
        calls.iter().enumerate().filter(|(_, text)| !text.is_empty()).map(|(place, _)| place).collect();
    assert_eq!(blocks.len(), 1, "all registers again after 25 calls: {blocks:?}");
}

#[test]
fn a_memory_that_cannot_be_read_or_written_ends_no_session() {
    let world = World::new();
    done(&world, &["set", "goal", "g"]);
    let folder = world.path(".claude/plimsoll/memory");
    for (name, text) in
        [("state.json", "{torn"), ("log.head", "nothing"), ("log.jsonl", "not a log\n"), ("seen", "a file")]
    {
        let path = folder.join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::write(&path, text).expect("the folder is writable");
        for program in ["plimsoll-memory", "plimsoll-frame"] {
            let stop = event(&world, "Stop", &json!({}));
            let write = event(
                &world,
                "PreToolUse",
                &json!({"tool_name": "mcp__plimsoll__heap_free", "tool_use_id": "t", "tool_input": {}}),
            );
            for event in [&batch(&world), &stop, &write] {
                let finished = world.hook(program, event).run();
                assert_eq!(finished.code, Some(0), "{name} {program}: {finished:?}");
                let reply: Value = serde_json::from_str(&finished.stdout).expect("one object");
                assert!(reply["continue"].is_null(), "{reply}");
            }
        }
    }
}

#[test]
fn the_status_line_shows_the_memory_of_a_session_that_knows_it() {
    let world = World::new();
    let status = || {
        let payload = json!({"session_id": SESSION, "cwd": world.project().display().to_string()});
        world.hook("plimsoll-statusline", &payload).env("NO_COLOR", "1").run().stdout
    };
    done(&world, &["set", "goal", "g"]);
    insta::assert_snapshot!(status(), @"project │ ⎇ main │ ▕░░░░░░░░░░░░░░░░░░░░▏ ?");
    let start = event(&world, "SessionStart", &json!({"source": "startup"}));
    told(&world, &start, &["memory"]);
    insta::assert_snapshot!(status(), @"project │ ⎇ main │ ▕░░░░░░░░░░░░░░░░░░░░▏ ? │ memory 0");
    done(&world, &["alloc", "a", &"x".repeat(7_000)]);
    (0..3).for_each(|_| drop(told(&world, &batch(&world), &[])));
    insta::assert_snapshot!(status(), @"project │ ⎇ main │ ▕░░░░░░░░░░░░░░░░░░░░▏ ? │ memory 0 · stale R2 R7 · heap 87% high");
}
