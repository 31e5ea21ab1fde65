//! `plimsoll with-context` passes the context usage to another program's hook; tested alone and with the real client.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use serde_json::json;

const PRINT_USAGE_SCRIPT: &str = "#!/bin/sh\ncat >/dev/null\necho \"${CLAUDE_CONTEXT_PERCENT-?} ${CLAUDE_CONTEXT_TOKENS_USED-?} ${CLAUDE_CONTEXT_TOKENS_MAX-?}\"\n";

fn write_script(world: &World, name: &str, text: &str) -> String {
    world.write_program(name, text).display().to_string()
}

fn render_payload(world: &World, extra_fields: &serde_json::Value) -> String {
    let mut payload = json!({"session_id": "d8e9da22-d41b-4824-a1be-f318ff23689b", "hook_event_name": "Stop",
        "cwd": world.project().display().to_string()});
    payload.as_object_mut().expect("an object").extend(extra_fields.as_object().cloned().unwrap_or_default());
    payload.to_string()
}

#[test]
fn the_program_keeps_its_input_output_and_exit_code() {
    let world = World::new();
    let echo = write_script(&world, "echo.sh", "#!/bin/sh\ncat\necho oops >&2\nexit 7\n");
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let finished = world.plimsoll(&["with-context", "--", &echo]).stdin(bytes.clone()).run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(7), "oops\n"));
    assert_eq!(finished.stdout.len(), String::from_utf8_lossy(&bytes).len());
    let printed = world.plimsoll(&["with-context", "printf", "%s|", "$HOME", "-n", "a b"]).stdin("{}").run();
    assert_eq!(printed.stdout, "$HOME|-n|a b|", "no shell reads them, and its options are its own");
    let killed = write_script(&world, "killed.sh", "#!/bin/sh\nkill -TERM $$\n");
    assert_eq!(world.plimsoll(&["with-context", "--", &killed]).stdin("{}").run().code, Some(143));
    let missing = world.plimsoll(&["with-context", "--", "/no/such/program"]).stdin("{}").run();
    assert_eq!(missing.code, Some(127));
    insta::assert_snapshot!(missing.stderr, @"error: cannot run /no/such/program: No such file or directory (os error 2)");
    let finished_without_reading =
        world.plimsoll(&["with-context", "--", "true"]).stdin(vec![b'x'; 1_000_000]).run();
    assert_eq!(finished_without_reading.code, Some(0), "a program need not read");
}

#[test]
fn unknown_usage_is_unset_and_another_sessions_usage_is_removed() {
    let world = World::new();
    let show = write_script(&world, "show.sh", PRINT_USAGE_SCRIPT);
    for stdin in [render_payload(&world, &json!({})), "no json".to_owned(), String::new()] {
        let finished = world
            .plimsoll(&["with-context", "--", &show])
            .env("CLAUDE_CONTEXT_TOKENS_MAX", "5")
            .stdin(stdin)
            .run();
        assert_eq!(finished.stdout, "? ? ?\n");
    }
    let set = world.plimsoll(&["with-context", "--", &show]).env("CLAUDE_CONTEXT_PERCENT", "40");
    let set = set.stdin(render_payload(&world, &json!({}))).run();
    assert_eq!(set.stdout, "40 ? ?\n", "who sets it for this session is believed");
}

#[test]
fn a_hook_of_the_real_client_gets_the_context_usage() {
    let mut world = World::new();
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo one").with_input_tokens(430_000),
        Step::from_text("Done.").with_input_tokens(431_000),
    ]);
    world.put_client_on_path_with_model_and_settings(&model);
    let log = world.path("log.txt").display().to_string();
    let show =
        write_script(&world, "show.sh", &PRINT_USAGE_SCRIPT.replace("\"\n", &format!("\" >> {log}\n")));
    let command = format!("plimsoll with-context -- {show}");
    let hooks = json!({"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]}});
    world.write(".claude/settings.json", &hooks.to_string());
    let finished = world.claude(&["-p", "Count.", "--model", "opus", "--allowedTools", "Bash"]).run();
    assert!(finished.stdout.contains("Done."), "{finished:?}");
    assert_eq!(world.read("log.txt"), "43 431000 1000000\n");
}
