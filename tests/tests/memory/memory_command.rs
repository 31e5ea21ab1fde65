//! `plimsoll memory`, and how hooks and the status line react to what a person writes with it.

use plimsoll_domain::memory::MemoryOp;
use plimsoll_store::Project;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};

const SESSION_ID: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";

fn run_memory_command(world: &World, arguments: &[&str]) -> FinishedProgram {
    world.plimsoll(&[&["memory"], arguments].concat()).run()
}

fn memory_output(world: &World, arguments: &[&str]) -> String {
    run_memory_command(world, arguments).expect_success().stdout
}

/// Returns the additional context that a hook program of ours gives the model.
fn hook_context(world: &World, event: &Value, hook_arguments: &[&str]) -> String {
    let program = if hook_arguments == ["memory"] { "plimsoll-session-start" } else { "plimsoll-memory" };
    let hook = world.hook(program, event);
    let finished = hook_arguments.iter().fold(hook, |hook, word| hook.arg(*word)).run().expect_success();
    let reply: Value = serde_json::from_str(&finished.stdout).expect(&finished.stdout);
    assert_eq!(finished.stderr, "");
    reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

fn event_payload(world: &World, event_name: &str, extra_fields: &Value) -> Value {
    let mut payload = json!({"session_id": SESSION_ID, "hook_event_name": event_name,
        "cwd": world.project().display().to_string(), "transcript_path": "/nonexistent.jsonl"});
    payload.as_object_mut().expect("an object").extend(extra_fields.as_object().cloned().unwrap_or_default());
    payload
}

fn batch_event(world: &World) -> Value {
    event_payload(
        world,
        "PostToolBatch",
        &json!({"tool_calls": [{"tool_name": "Bash", "tool_use_id": "toolu_1"}]}),
    )
}

#[test]
fn a_person_can_read_and_write_the_memory_and_see_who_wrote_what() {
    let world = World::new();
    let shown = run_memory_command(&world, &["show"]).expect_success();
    insta::assert_snapshot!(shown.stderr, @"The working memory is empty: the agent writes it after `plimsoll init --memory`, or in `plimsoll run --memory`.");
    assert_eq!(memory_output(&world, &["set", "R4", "Keep the public API."]), "ok r1\n");
    assert_eq!(memory_output(&world, &["set", "goal", "Build calc"]), "ok r2\n");
    let alloc_from_stdin =
        world.plimsoll(&["memory", "alloc", "api-spec", "-", "--description", "the functions"]);
    assert_eq!(alloc_from_stdin.stdin("add(a,b)\n").run().expect_success().stdout, "ok r3\n");
    assert_eq!(memory_output(&world, &["write", "api-spec", "add(a,b), sub(a,b)"]), "ok r4\n");
    assert_eq!(
        memory_output(&world, &[]),
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
    assert_eq!(memory_output(&world, &["free", "api-spec"]), "ok r5\n");
    let shown_json = run_memory_command(&world, &["show", "--json"]).expect_success().stdout_json();
    assert_eq!(
        (&shown_json["rev"], &shown_json["depth"], &shown_json["pressure"]),
        (&json!(5), &json!(0), &json!("low"))
    );
    assert_eq!(
        (&shown_json["registers"]["R0_GOAL"], &shown_json["heap"]),
        (&json!("Build calc"), &json!([]))
    );
    let history = run_memory_command(&world, &["history", "--json"]).expect_success().stdout_json();
    let ops: Vec<&str> = history
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|change| change["change"]["op"].as_str())
        .collect();
    assert_eq!(ops, ["update_registers", "update_registers", "heap_alloc", "heap_write", "heap_free"]);
    assert!(history.as_array().expect("a list").iter().all(|change| change["by"] == "command"));
    let history_lines = memory_output(&world, &["history", "-n", "2"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&history_lines), @"
    r4    [TIME]  step 0    command  root         write api-spec (18 chars)
    r5    [TIME]  step 0    command  root         free api-spec
    ");
    let queried =
        world.plimsoll(&["query", "--on", "memory", "-r", ".registers.R0_GOAL"]).run().expect_success();
    assert_eq!(queried.stdout, "Build calc\n");
}

#[test]
fn invalid_commands_explain_themselves_and_change_nothing() {
    let world = World::new();
    memory_output(&world, &["alloc", "a", "x"]);
    let overlong_phase = "x".repeat(61);
    let oversized_chunk = "x".repeat(9_501);
    let errors = [
        &["set", "R9", "x"][..],
        &["set", "phase", &overlong_phase],
        &["alloc", "a", "y"],
        &["alloc", "two words", "y"],
        &["alloc", "b", &oversized_chunk],
        &["write", "b", "y"],
        &["free", "b"],
        &["forget"],
    ]
    .map(|arguments| {
        let finished = run_memory_command(&world, arguments);
        format!("exit {}: {}", finished.code.expect("an exit code"), finished.stderr)
    });
    insta::assert_snapshot!(errors.join("\n"), @r#"
    exit 2: error: invalid value 'R9' for '<REGISTER>': one of R0_GOAL, R1_PLAN, R2_NEXT, R3_PHASE, R4_CONSTRAINTS, R5_ASSUMPTIONS, R6_OPEN_QUESTIONS, R7_STATUS

    For more information, try '--help'.

    exit 1: error: R3_PHASE takes at most 60 characters, but 61 were given: shorten it, or put the rest on the heap

    exit 1: error: the chunk a already exists: rewrite it with heap_write

    exit 1: error: a chunk's name has 1 to 40 letters, digits or -_./: and "two words" has others or is too long

    exit 1: error: b would have 9501 UTF-16 units, but a chunk has at most 9500: shorten it, or put it into a file

    exit 1: error: there is no chunk b: there are a

    exit 1: error: there is no chunk b: there are a

    exit 2: error: unrecognized subcommand 'forget'

      tip: some similar subcommands exist: 'frame', 'free'

    Usage: plimsoll memory [COMMAND]

    For more information, try '--help'.
    "#);
    assert_eq!(run_memory_command(&world, &["show", "--json"]).stdout_json()["rev"], 1);
}

#[test]
fn the_stack_is_shown_and_a_person_can_close_a_frame() {
    let world = World::new();
    memory_output(&world, &["set", "goal", "Build calc"]);
    let push_op = MemoryOp::PushFrame {
        name: "tests".into(),
        objective: "Write test_calc.py".into(),
        context: "calc.py is there".into(),
        return_spec: "Passed and failed".into(),
        push_call_id: None,
    };
    plimsoll_store::memory::apply_changes_atomically(
        &Project::with_local_files(&world.project()),
        "test",
        &[push_op],
    )
    .expect("a frame");
    let shown = run_memory_command(&world, &["show", "--json"]).stdout_json();
    let frames = shown["frames"].as_array().expect("frames");
    assert_eq!((frames.len(), &frames[0]["registers"]["R0_GOAL"]), (2, &json!("Build calc")));
    assert_eq!(frames[1]["objective"], "Write test_calc.py");
    assert_eq!(frames[1]["registers"]["R3_PHASE"], "entering: tests");
    assert_eq!(world.plimsoll(&["memory", "frame", "close"]).run().expect_success().stdout, "ok r3\n");
    let second_close = world.plimsoll(&["memory", "frame", "close"]).run();
    assert_eq!(second_close.code, Some(1));
    insta::assert_snapshot!(second_close.stderr, @"error: only pop_frame closes the root frame");
}

#[test]
fn the_agent_sees_a_person_s_change_once_with_its_next_step() {
    let world = World::new();
    assert_eq!(hook_context(&world, &batch_event(&world), &[]), "", "no memory, no word");
    memory_output(&world, &["set", "R4", "Keep the public API."]);
    let start_event = event_payload(&world, "SessionStart", &json!({"source": "startup"}));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&hook_context(&world, &start_event, &["memory"])), @r#"
    <plimsoll-memory rev="1" frame="root" depth="0"> (for each frame, the highest rev is current)
    R4 CONSTRAINTS: Keep the public API.
    </plimsoll-memory>
    "#);
    assert_eq!(hook_context(&world, &start_event, &["part-2"]), "");
    assert_eq!(hook_context(&world, &batch_event(&world), &[]), "");
    memory_output(&world, &["set", "R4", "Break it."]);
    memory_output(&world, &["alloc", "why", "The old one is unused."]);
    let changes_text = hook_context(&world, &batch_event(&world), &[]);
    insta::assert_snapshot!(changes_text, @r#"
    <plimsoll-memory rev="3"> (what has changed)
    R4 CONSTRAINTS: Break it.
    <plimsoll-chunk name="why" rev="3">
    The old one is unused.
    </plimsoll-chunk>
    </plimsoll-memory>
    "#);
    assert_eq!(hook_context(&world, &batch_event(&world), &[]), "");
    let prompt_event = event_payload(&world, "UserPromptSubmit", &json!({"prompt": "go on"}));
    memory_output(&world, &["free", "why"]);
    insta::assert_snapshot!(hook_context(&world, &prompt_event, &[]), @r#"
    <plimsoll-memory rev="4"> (what has changed)
    heap:why freed
    </plimsoll-memory>
    "#);
    let contexts: Vec<String> = (0..30).map(|_| hook_context(&world, &batch_event(&world), &[])).collect();
    let block_positions: Vec<usize> =
        contexts.iter().enumerate().filter(|(_, text)| !text.is_empty()).map(|(index, _)| index).collect();
    assert_eq!(block_positions.len(), 1, "all registers again after 25 calls: {block_positions:?}");
}

#[test]
fn an_unreadable_memory_ends_no_session() {
    let world = World::new();
    memory_output(&world, &["set", "goal", "g"]);
    let folder = world.path(".claude/plimsoll/memory");
    for (name, text) in
        [("state.json", "{torn"), ("log.head", "nothing"), ("log.jsonl", "not a log\n"), ("seen", "a file")]
    {
        let path = folder.join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::write(&path, text).expect("the folder is writable");
        for program in ["plimsoll-memory", "plimsoll-frame"] {
            let stop_event = event_payload(&world, "Stop", &json!({}));
            let tool_event = event_payload(
                &world,
                "PreToolUse",
                &json!({"tool_name": "mcp__plimsoll__heap_free", "tool_use_id": "t", "tool_input": {}}),
            );
            for event in [&batch_event(&world), &stop_event, &tool_event] {
                let finished = world.hook(program, event).run();
                assert_eq!(finished.code, Some(0), "{name} {program}: {finished:?}");
                let reply: Value = serde_json::from_str(&finished.stdout).expect("one object");
                assert!(reply["continue"].is_null(), "{reply}");
            }
        }
    }
}

#[test]
fn the_status_line_shows_the_memory_only_to_a_session_that_was_told_it() {
    let world = World::new();
    let render_status_line = || {
        let payload = json!({"session_id": SESSION_ID, "cwd": world.project().display().to_string()});
        world.hook("plimsoll-statusline", &payload).env("NO_COLOR", "1").run().stdout
    };
    memory_output(&world, &["set", "goal", "g"]);
    insta::assert_snapshot!(render_status_line(), @"project │ ⎇ main │ ▕░░░░░░░░░░░░░░░░░░░░▏ ?");
    let start_event = event_payload(&world, "SessionStart", &json!({"source": "startup"}));
    hook_context(&world, &start_event, &["memory"]);
    insta::assert_snapshot!(render_status_line(), @"project │ ⎇ main │ ▕░░░░░░░░░░░░░░░░░░░░▏ ? │ memory 0");
    memory_output(&world, &["alloc", "a", &"x".repeat(7_000)]);
    (0..3).for_each(|_| drop(hook_context(&world, &batch_event(&world), &[])));
    insta::assert_snapshot!(render_status_line(), @"project │ ⎇ main │ ▕░░░░░░░░░░░░░░░░░░░░▏ ? │ memory 0 · stale R2 R7 · heap 87% high");
}
