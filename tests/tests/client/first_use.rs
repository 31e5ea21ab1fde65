//! The first use by a new user: install the hooks, work with the status line until the window fills, ask for the status, uninstall.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;

/// Settings that the user wrote, in their own formatting.
const ORIGINAL_SETTINGS: &str =
    "{ \"permissions\":{\"allow\": [\"Bash(ls:*)\"] },\n\t\"env\": {\"EDITOR\":\"vi\"} }";

/// Starts a model that works on any prompt with the usage that the prompt names; `/ralph context` gets the output of its command.
fn start_scripted_model() -> ScriptedModel {
    ScriptedModel::start(|request: &Request| {
        let text = request.text_since_last_assistant_message();
        let after_load = text.rsplit("load=").next().filter(|_| text.contains("load="));
        let load = after_load.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let results = request.all_tool_results();
        let printed = results.last().map(|(_, printed)| printed.as_str()).unwrap_or_default();
        match load {
            Some(load) if text.contains("with a tool") => {
                Step::bash_call("echo tool-ran").with_input_tokens(load)
            }
            Some(load) => Step::from_text(format!("Answered with {load}.")).with_input_tokens(load),
            None if text.contains("with: context") => {
                Step::bash_call("plimsoll status --markdown").with_input_tokens(871_000)
            }
            None if printed.contains("## Context Status") => {
                Step::from_text(&printed[printed.find("##").unwrap_or_default()..]).with_input_tokens(871_000)
            }
            None => Step::from_text("The work is done.").with_input_tokens(871_000),
        }
        .with_output_tokens(1)
        .with_delay(plimsoll_tests::LIFELIKE_DELAY)
    })
}

#[test]
fn a_new_user_installs_is_warned_gets_a_handoff_and_uninstalls_cleanly() {
    let mut world = World::without_plimsoll_files();
    let model = start_scripted_model();
    world.put_client_on_path_with_model_and_settings(&model);
    world.write(".claude/settings.local.json", ORIGINAL_SETTINGS);
    let output = world.plimsoll(&["init", "--local"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&output), @"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, and the status line
    Template: modern (Claude Code is 2.1.332)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    world.plimsoll(&["doctor"]).run().expect_success();

    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::start_claude(&world, &arguments, 140, 60);
    terminal.wait_for_text("▏ ?");
    terminal.submit_prompt("hello load=52000 ");
    terminal.wait_for_text("▏ 5% 52k/1M");
    // No step across a threshold is larger than what the hook waits for the client's transcript for (20 points).
    terminal.submit_prompt("read a lot load=560000 ");
    terminal.wait_for_text("▏ 56% 560k/1M");
    terminal.submit_prompt("work with a tool load=720000 ");
    terminal.wait_for_text("CCS_WARNING|L1|72|Context at 72%");
    terminal.wait_for_text("A handoff will be written at 85%.");
    terminal.submit_prompt("work on with a tool load=871000 ");
    terminal.wait_for_text("CCS_WARNING|L2|87|Context at 87%");
    let screen = terminal.wait_for_text("/handoff continue");
    assert!(!screen.contains("No action is required"), "that was for the model:\n{screen}");
    terminal.wait_for_text("▏ 87% 871k/1M");
    terminal.submit_prompt("/ralph context");
    let screen = terminal.wait_for_text("The checkpoint was due at 85%.");
    for words in ["Context Status", "87% (871k of 1M tokens)", "L2 (Checkpoint)", "1M tokens (Claude Code"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.submit_prompt("/exit");
    assert!(terminal.wait_for_exit().success());

    let output = world.plimsoll(&["uninstall", "--local"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&output), @"
    .claude/settings.local.json: removed 9 hooks and our status line
    .claude/settings.local.json: byte for byte as before; the backup is removed
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .git/info/exclude: our lines are removed
    Kept: recorded files (git sees them now; delete them when you like): .claude/handoffs .claude/plimsoll
    ");
    assert_eq!(world.read(".claude/settings.local.json"), ORIGINAL_SETTINGS);
    assert!(!world.exists(".claude/commands"), "nothing of ours is in the way");
}
