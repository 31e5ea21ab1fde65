//! What a new user does first: install the hooks, work with the line before one's eyes until it fills, ask, leave.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;

/// Of the user's own making, and laid out in their own way.
const BEFORE: &str = "{ \"permissions\":{\"allow\": [\"Bash(ls:*)\"] },\n\t\"env\": {\"EDITOR\":\"vi\"} }";

/// Works on whatever it is told, as full as the words say; `/ralph context` gets what the command printed.
fn model() -> ScriptedModel {
    ScriptedModel::start(|request: &Request| {
        let text = request.last_text();
        let asked = text.rsplit("load=").next().filter(|_| text.contains("load="));
        let load = asked.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let results = request.tool_results();
        let printed = results.last().map(|(_, printed)| printed.as_str()).unwrap_or_default();
        match load {
            Some(load) if text.contains("with a tool") => Step::bash("echo tool-ran").usage(load),
            Some(load) => Step::text(format!("Answered with {load}.")).usage(load),
            None if text.contains("with: context") => Step::bash("plimsoll status --markdown").usage(871_000),
            None if printed.contains("## Context Status") => {
                Step::text(&printed[printed.find("##").unwrap_or_default()..]).usage(871_000)
            }
            None => Step::text("The work is done.").usage(871_000),
        }
        .output_tokens(1)
        .delay(plimsoll_tests::LIFELIKE)
    })
}

fn say(terminal: &mut Terminal, words: &str) {
    terminal.type_text(words);
    terminal.wait_for(words.trim());
    terminal.press_enter();
}

#[test]
fn a_new_user_sees_the_line_is_warned_finds_a_handoff_and_gets_rid_of_it_again() {
    let mut world = World::untouched();
    let model = model();
    world.use_model(&model);
    world.write(".claude/settings.local.json", BEFORE);
    let told = world.plimsoll(&["init", "--local"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&told), @"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, and the status line
    Template: modern (the client is 2.1.329)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    world.plimsoll(&["doctor"]).run().expect_success();

    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::claude(&world, &arguments, 140, 60);
    terminal.wait_for("▏ ?");
    say(&mut terminal, "hello load=52000 ");
    terminal.wait_for("▏ 5% 52k/1M");
    // No step into a level is larger than what the hook waits for the client's transcript for (20 points).
    say(&mut terminal, "read a lot load=560000 ");
    terminal.wait_for("▏ 56% 560k/1M");
    say(&mut terminal, "work with a tool load=720000 ");
    terminal.wait_for("CCS_WARNING|L1|72|Context at 72%");
    terminal.wait_for("A handoff follows at 85%.");
    say(&mut terminal, "work on with a tool load=871000 ");
    terminal.wait_for("CCS_WARNING|L2|87|Context at 87%");
    let screen = terminal.wait_for("/handoff continue");
    assert!(!screen.contains("No action is required"), "that was for the model:\n{screen}");
    terminal.wait_for("▏ 87% 871k/1M");
    say(&mut terminal, "/ralph context");
    let screen = terminal.wait_for("The checkpoint was due at 85%.");
    for words in ["Context Status", "87% (871k of 1M tokens)", "L2 (Checkpoint)", "1M tokens (the client"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.type_text("/exit");
    terminal.press_enter();
    assert!(terminal.wait_exit().success());

    let told = world.plimsoll(&["uninstall", "--local"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&told), @"
    .claude/settings.local.json: removed 8 hooks and our status line
    .claude/settings.local.json: byte for byte as before; the backup is removed
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .git/info/exclude: our lines are removed
    Kept: recorded files (git sees them now; delete them when you like): .claude/handoffs .claude/plimsoll
    ");
    assert_eq!(world.read(".claude/settings.local.json"), BEFORE);
    assert!(!world.exists(".claude/commands"), "nothing of ours is in the way");
}
