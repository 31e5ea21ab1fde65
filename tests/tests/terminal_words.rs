//! Whatever stands in names, items, memory and tool output: what our commands print never steers the terminal.

use serde_json::json;
use testkit::world::World;

/// A title, a colour, a cleared screen, a bell, and letters that run the other way.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}b\u{1b}[31mc\u{1b}[2Jd\u{202e}e\u{9b}31mf\rg";

const COMMANDS: [&[&str]; 18] = [
    &["status"],
    &["log"],
    &["explain"],
    &["memory"],
    &["memory", "history"],
    &["frame"],
    &["frame", "show", "0"],
    &["context"],
    &["turns"],
    &["turns", "list", "--all-streams"],
    &["turns", "show", "1"],
    &["turns", "show", "record:1"],
    &["turns", "grep", "owned"],
    &["turns", "stats"],
    &["turns", "verify"],
    &["turns", "export", "--format", "markdown"],
    &["statusline", "explain"],
    &["doctor"],
];

/// Line ends and tabs are words of ours; colours are not printed where no terminal is.
fn steers(text: &str) -> bool {
    text.chars().any(|letter| {
        (letter.is_control() && !"\n\t".contains(letter)) || ('\u{202a}'..='\u{202e}').contains(&letter)
    })
}

/// A transcript with the hostile words in the prompt, in a call and in its result.
fn transcript(world: &World) -> String {
    let common = json!({"sessionId": "d8e9da22-d41b-4824-a1be-f318ff23689b", "isSidechain": false,
        "timestamp": "2026-01-07T11:45:01.123Z", "version": "2.1.329", "cwd": world.project()});
    let lines = [
        json!({"type": "user", "uuid": "1", "message": {"role": "user", "content": HOSTILE}}),
        json!({"type": "assistant", "uuid": "2", "message": {"id": "msg_1", "role": "assistant", "model": HOSTILE,
            "content": [{"type": "text", "text": HOSTILE},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": HOSTILE}}],
            "usage": {"input_tokens": 10, "output_tokens": 5}}}),
        json!({"type": "user", "uuid": "3", "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": HOSTILE}]}}),
    ];
    let with = |mut line: serde_json::Value| {
        let fields = common.as_object().expect("an object").clone();
        line.as_object_mut().expect("an object").extend(fields);
        format!("{line}\n")
    };
    let path = world.path("d8e9da22-d41b-4824-a1be-f318ff23689b.jsonl");
    std::fs::write(&path, lines.into_iter().map(with).collect::<String>()).expect("the project is writable");
    path.display().to_string()
}

#[test]
fn no_command_hands_foreign_control_characters_to_the_terminal() {
    let mut world = World::new();
    world.set_env("NO_COLOR", "1");
    world.write("fix_plan.md", &format!("- [ ] Item {} one\n- [ ] Item two\n", HOSTILE.replace('\r', "")));
    world.write(format!("{}.txt", HOSTILE.replace('\r', "")), "changed\n");
    world.git(&["checkout", "-qb", "ma\u{202e}in"]);
    world.plimsoll(&["start", "--objective", HOSTILE, "--name", HOSTILE]).run().expect_success();
    world.plimsoll(&["memory", "set", "R4", HOSTILE]).run().expect_success();
    world.plimsoll(&["memory", "alloc", "chunk", HOSTILE, "--description", HOSTILE]).run().expect_success();
    let transcript = transcript(&world);
    world.plimsoll(&["turns", "sync", &transcript]).run().expect_success();
    for command in COMMANDS {
        let finished = world.plimsoll(command).run();
        assert!(finished.code == Some(0) || command == ["doctor"], "{command:?}: {finished:?}");
        for (name, printed) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
            assert!(!steers(printed), "{command:?}, {name}: {printed:?}");
        }
    }
    let shown = world.plimsoll(&["turns", "show", "1"]).run().stdout;
    assert!(shown.contains("owned"), "the words themselves are there: {shown}");
}
