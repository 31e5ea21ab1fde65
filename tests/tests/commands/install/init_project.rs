//! `plimsoll init --project`: what a team commits. Without `--entries` no hooks; with them such that do nothing where our
//! programs are not installed.

use super::harness::{FOREIGN, Stage, events_of};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::terminal::Terminal;
use serde_json::Value;

const SHARED: &str = ".claude/settings.json";

/// Each command of the entries of a settings file with its event.
fn commands(settings: &Value) -> Vec<(String, String)> {
    let events = settings["hooks"].as_object().expect("hooks");
    let of_event = |(event, groups): (&String, &Value)| -> Vec<(String, String)> {
        let hooks =
            groups.as_array().into_iter().flatten().flat_map(|group| group["hooks"].as_array()).flatten();
        hooks.filter_map(|hook| Some((event.clone(), hook["command"].as_str()?.to_owned()))).collect()
    };
    events.iter().flat_map(of_event).collect()
}

#[test]
fn everybody_gets_preferences_and_ignore_rules_and_no_hooks() {
    for ignored in ["", "*.log\n", "*.log"] {
        let stage = Stage::new();
        if !ignored.is_empty() {
            stage.world.write(".gitignore", ignored);
        }
        let before = stage.files();
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.printed(&["init", "--project"]), @"
            .claude/plimsoll.json: for the team's preferences (`plimsoll generate schema` has them all)
            .gitignore: run files are ignored by git
            Commit these files. Hooks are each user's own: everybody who wants them runs `plimsoll init` once; `plimsoll run` brings its own, also in CI.
            ");
        }
        assert!(!stage.world.exists(SHARED) && !stage.world.home().join(".claude/settings.json").exists());
        for file in ["ralph-state.json", "handoffs/one.md", "plimsoll/journal.jsonl"] {
            stage.world.write(stage.world.path(".claude").join(file), "x");
        }
        stage.shell("rm .git/info/exclude");
        let status = stage.shell("git status --short -uall");
        assert_eq!(status, "?? .claude/plimsoll.json\n?? .gitignore\n");
        stage.shell("rm -r .claude/ralph-state.json .claude/handoffs .claude/plimsoll; : >.git/info/exclude");
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.printed(&["init", "--project"]), @"
            .claude/plimsoll.json: already there
            .gitignore: run files are already ignored by git
            Commit these files. Hooks are each user's own: everybody who wants them runs `plimsoll init` once; `plimsoll run` brings its own, also in CI.
            ");
        }
        stage.done(&["uninstall", "--project"]);
        assert_eq!(stage.files(), before);
    }
}

#[test]
fn preferences_that_are_there_stay() {
    let stage = Stage::new();
    let theirs = "{\"levels\": {\"l1\": 60}}\n";
    stage.world.write(".claude/plimsoll.json", theirs);
    for arguments in [["init", "--project"], ["uninstall", "--project"]] {
        stage.done(&arguments);
        assert_eq!(stage.world.read(".claude/plimsoll.json"), theirs);
    }
}

#[test]
fn entries_for_everybody_run_our_programs_and_nothing_where_there_are_none() {
    let stage = Stage::new();
    stage.world.write(SHARED, FOREIGN);
    let before = stage.files();
    insta::assert_snapshot!(stage.printed(&["init", "--project", "--entries"]), @"
    .claude/settings.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.json.plimsoll-backup
    Kept: 1 hook of other programs
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .claude/plimsoll.json: for the team's preferences (`plimsoll generate schema` has them all)
    .gitignore: run files are ignored by git
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    let settings = stage.world.json(SHARED);
    assert_eq!(events_of(&settings.to_string()), events_of(settings::MODERN_TEMPLATE));
    assert!(settings["statusLine"].is_null(), "a colleague would lose the line of their own");
    let ours: Vec<_> =
        commands(&settings).into_iter().filter(|(_, command)| command.contains("plimsoll")).collect();
    for (event, command) in &ours {
        let payload = format!("{{\"hook_event_name\": \"{event}\"}}");
        let run = |path: &str| {
            stage.world.command("/bin/sh", &["-c", command]).env("PATH", path).stdin(payload.clone()).run()
        };
        let without = run("/usr/bin:/bin");
        assert_eq!(
            (without.code, without.stdout.as_str(), without.stderr.as_str()),
            (Some(0), "", ""),
            "{command}"
        );
        run(&format!("{}:/usr/bin:/bin", stage.bin.display())).expect_success();
    }
    assert_eq!(stage.recorded(), events_of(settings::MODERN_TEMPLATE));
    let installed = stage.files();
    stage.done(&["init", "--project", "--entries"]);
    assert_eq!(stage.files(), installed, "a second time changes nothing");
    insta::assert_snapshot!(stage.printed(&["uninstall", "--project"]), @"
    .claude/settings.json: removed 8 hooks
    .claude/settings.json: byte for byte as before; the backup is removed
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .git/info/exclude: our lines are removed
    .claude/plimsoll.json: removed
    .gitignore: our lines are removed
    ");
    assert_eq!(stage.files(), before);
}

#[test]
fn our_hooks_in_the_shared_settings_are_named_and_become_those_for_everybody() {
    let stage = Stage::new();
    let by_hand = settings::install(FOREIGN, HookSupport::Modern, &str::to_owned).expect("settings").text;
    stage.world.write(SHARED, &by_hand);
    insta::assert_snapshot!(stage.printed_lines("Careful", &["init"]), @"Careful: .claude/settings.json also has our hooks; if the commands differ, both run.");
    insta::assert_snapshot!(stage.printed_lines("Careful", &["init", "--local"]), @"
    Careful: .claude/settings.json also has our hooks; if the commands differ, both run.
    Careful: [HOME]/.claude/settings.json also has our hooks; if the commands differ, both run.
    ");
    assert_eq!(stage.world.read(SHARED), by_hand);
    insta::assert_snapshot!(stage.printed(&["uninstall"]), @"
    [HOME]/.claude/settings.json: removed 8 hooks and our status line
    [HOME]/.claude/settings.json: removed; it contained nothing else
    [HOME]/.claude/commands/ralph.md: removed
    [HOME]/.claude/commands/handoff.md: removed
    .claude/settings.json also has our hooks: `plimsoll uninstall --project` removes them
    .claude/settings.local.json also has our hooks: `plimsoll uninstall --local` removes them
    ");
    stage.done(&["uninstall", "--local"]);
    stage.done(&["init", "--project", "--entries"]);
    let settings = stage.world.json(SHARED);
    assert_eq!(events_of(&settings.to_string()), events_of(settings::MODERN_TEMPLATE), "each once");
    let is_guarded = |command: &String| command.contains("; command -v ") && command.ends_with(" --guarded");
    assert!(
        commands(&settings)
            .iter()
            .map(|(_, command)| command)
            .all(|command| is_guarded(command) || command == "say done")
    );
    assert!(settings["statusLine"].is_null(), "a colleague without our programs would lose their own");
    assert_eq!(stage.printed_lines("Careful", &["init"]), "", "guarded entries give way");
    let said = stage.done(&["uninstall", "--project"]);
    let rest: Value = serde_json::from_str(FOREIGN).unwrap();
    assert_eq!(stage.world.json(SHARED), rest, "{said}");
}

#[test]
fn the_home_folder_is_no_project_for_everybody() {
    let stage = Stage::new();
    let home = stage.world.home();
    let init =
        |arguments: &[&str]| stage.world.command(stage.bin.join("plimsoll"), arguments).cwd(&home).run();
    init(&["init"]).expect_success();
    let settings = stage.world.read(home.join(".claude/settings.json"));
    for arguments in
        [&["init", "--project"][..], &["init", "--project", "--entries"], &["uninstall", "--project"]]
    {
        let refused = init(arguments);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.world.stable_text(&refused.stderr), @"
            plimsoll: [HOME]/.claude/settings.json is your own settings file, not a project's
            hint: use --user, or go to the project first
            ");
        }
    }
    assert_eq!(stage.world.read(home.join(".claude/settings.json")), settings);
    assert!(!home.join(".gitignore").exists());
}

#[test]
fn on_a_terminal_init_asks_for_whom() {
    for (answer, file, other) in [
        ("", "~/.claude/settings.json", ".claude/settings.local.json"),
        ("2", ".claude/settings.local.json", "~/.claude/settings.json"),
        ("3", ".claude/plimsoll.json", "~/.claude/settings.json"),
    ] {
        let stage = Stage::new();
        let place = |file: &str| match file.strip_prefix("~/") {
            Some(below) => stage.world.home().join(below),
            None => stage.world.path(file),
        };
        let mut terminal = Terminal::start(&stage.world, stage.bin.join("plimsoll"), &["init"], 120, 40);
        let question = terminal.wait_for("Choose 1, 2 or 3 [1]:");
        insta::allow_duplicates! {
            insta::assert_snapshot!(question.trim_end(), @"
            Set up Plimsoll
              1  for you, in every project      hooks and status line in ~/.claude/settings.json
              2  for you, in this project       hooks and status line in .claude/settings.local.json
              3  for everybody in this project  preferences and ignore rules to commit; hooks stay each user's own
            Choose 1, 2 or 3 [1]:
            ");
        }
        // What is no answer is asked again.
        terminal.type_text("4");
        terminal.press_enter();
        terminal.wait_for("[1]: 4");
        terminal.type_text(answer);
        terminal.press_enter();
        assert!(terminal.wait_exit().success());
        assert!(place(file).exists() && !place(other).exists(), "{answer}: {}", terminal.screen());
    }
    let stage = Stage::new();
    let arguments = ["init", "--memory"];
    let mut terminal = Terminal::start(&stage.world, stage.bin.join("plimsoll"), &arguments, 120, 40);
    let question = terminal.wait_for("Choose 1 or 2 [1]:");
    insta::assert_snapshot!(question.trim_end(), @"
    Set up Plimsoll
      1  for you, in every project      hooks and status line in ~/.claude/settings.json
      2  for you, in this project       hooks and status line in .claude/settings.local.json
    Choose 1 or 2 [1]:
    ");
    terminal.press_enter();
    assert!(terminal.wait_exit().success());
}

/// A clone may bring links along.
#[test]
fn nothing_is_written_through_a_link_of_the_project() {
    for file in [".gitignore", ".claude/plimsoll.json"] {
        for arguments in
            [&["init", "--project"][..], &["init", "--project", "--entries"], &["uninstall", "--project"]]
        {
            let stage = Stage::new();
            let theirs = stage.world.home().join("theirs");
            stage.world.write(&theirs, "{}\n");
            stage.shell(&format!("mkdir -p .claude && ln -s \"$HOME/theirs\" {file}"));
            let error = stage.error_of(arguments);
            let expected = "is not a plain file\nhint: replace it by a plain file\n";
            assert_eq!(error, format!("plimsoll: [PROJECT]/{file} {expected}"), "{arguments:?}");
            assert_eq!(stage.world.read(&theirs), "{}\n");
            assert!(!stage.world.exists(".claude/settings.json"), "nothing else is written either");
        }
    }
}
