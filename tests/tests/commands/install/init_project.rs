//! `plimsoll init --project` writes the files that a team commits. They have hooks only with `--entries`; those hooks do nothing
//! if our programs are not installed.

use super::harness::{InstallFixture, USER_SETTINGS, hook_events_of};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::terminal::Terminal;
use serde_json::Value;

const SHARED_SETTINGS: &str = ".claude/settings.json";

/// Returns each hook command of a settings file with its event, as pairs of event and command.
fn commands_with_events(settings: &Value) -> Vec<(String, String)> {
    let events = settings["hooks"].as_object().expect("hooks");
    let commands_of_event = |(event, groups): (&String, &Value)| -> Vec<(String, String)> {
        let hooks =
            groups.as_array().into_iter().flatten().flat_map(|group| group["hooks"].as_array()).flatten();
        hooks.filter_map(|hook| Some((event.clone(), hook["command"].as_str()?.to_owned()))).collect()
    };
    events.iter().flat_map(commands_of_event).collect()
}

#[test]
fn init_project_writes_preferences_and_ignore_rules_but_no_hooks() {
    for gitignore_text in ["", "*.log\n", "*.log"] {
        let fixture = InstallFixture::new();
        if !gitignore_text.is_empty() {
            fixture.world.write(".gitignore", gitignore_text);
        }
        let before = fixture.file_checksums();
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["init", "--project"]), @"
            .claude/plimsoll.json: for the team's preferences (`plimsoll generate schema` has them all)
            .gitignore: run files are ignored by git
            Commit these files. Each teammate runs `plimsoll init` once for the hooks; `plimsoll run` has its own, also in CI.
            ");
        }
        assert!(
            !fixture.world.exists(SHARED_SETTINGS)
                && !fixture.world.home().join(".claude/settings.json").exists()
        );
        for file in ["ralph-state.json", "handoffs/one.md", "plimsoll/journal.jsonl"] {
            fixture.world.write(fixture.world.path(".claude").join(file), "x");
        }
        fixture.run_shell_line("rm .git/info/exclude");
        let status = fixture.run_shell_line("git status --short -uall");
        assert_eq!(status, "?? .claude/plimsoll.json\n?? .gitignore\n");
        fixture.run_shell_line(
            "rm -r .claude/ralph-state.json .claude/handoffs .claude/plimsoll; : >.git/info/exclude",
        );
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["init", "--project"]), @"
            .claude/plimsoll.json: already there
            .gitignore: run files are already ignored by git
            Commit these files. Each teammate runs `plimsoll init` once for the hooks; `plimsoll run` has its own, also in CI.
            ");
        }
        fixture.stdout_of_success(&["uninstall", "--project"]);
        assert_eq!(fixture.file_checksums(), before);
    }
}

#[test]
fn existing_team_preferences_are_kept() {
    let fixture = InstallFixture::new();
    let team_preferences = "{\"levels\": {\"l1\": 60}}\n";
    fixture.world.write(".claude/plimsoll.json", team_preferences);
    for arguments in [["init", "--project"], ["uninstall", "--project"]] {
        fixture.stdout_of_success(&arguments);
        assert_eq!(fixture.world.read(".claude/plimsoll.json"), team_preferences);
    }
}

#[test]
fn shared_hook_entries_run_our_programs_and_do_nothing_without_them() {
    let fixture = InstallFixture::new();
    fixture.world.write(SHARED_SETTINGS, USER_SETTINGS);
    let before = fixture.file_checksums();
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["init", "--project", "--entries"]), @"
    .claude/settings.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
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
    let settings = fixture.world.read_json(SHARED_SETTINGS);
    assert_eq!(hook_events_of(&settings.to_string()), hook_events_of(settings::MODERN_TEMPLATE));
    assert!(settings["statusLine"].is_null(), "a colleague would lose the line of their own");
    let our_commands: Vec<_> = commands_with_events(&settings)
        .into_iter()
        .filter(|(_, command)| command.contains("plimsoll"))
        .collect();
    for (event, command) in &our_commands {
        let payload = format!("{{\"hook_event_name\": \"{event}\"}}");
        let run_with_path = |path: &str| {
            fixture.world.command("/bin/sh", &["-c", command]).env("PATH", path).stdin(payload.clone()).run()
        };
        let without_programs = run_with_path("/usr/bin:/bin");
        assert_eq!(
            (without_programs.code, without_programs.stdout.as_str(), without_programs.stderr.as_str()),
            (Some(0), "", ""),
            "{command}"
        );
        run_with_path(&format!("{}:/usr/bin:/bin", fixture.bin.display())).expect_success();
    }
    assert_eq!(fixture.recorded_hook_events(), hook_events_of(settings::MODERN_TEMPLATE));
    let installed = fixture.file_checksums();
    fixture.stdout_of_success(&["init", "--project", "--entries"]);
    assert_eq!(fixture.file_checksums(), installed, "a second time changes nothing");
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--project"]), @"
    .claude/settings.json: removed 9 hooks
    .claude/settings.json: byte for byte as before; the backup is removed
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .git/info/exclude: our lines are removed
    .claude/plimsoll.json: removed
    .gitignore: our lines are removed
    ");
    assert_eq!(fixture.file_checksums(), before);
}

#[test]
fn init_warns_about_shared_hooks_and_entries_option_replaces_them() {
    let fixture = InstallFixture::new();
    let handwritten =
        settings::install_or_update_our_entries(USER_SETTINGS, HookSupport::Modern, &str::to_owned)
            .expect("settings")
            .text;
    fixture.world.write(SHARED_SETTINGS, &handwritten);
    insta::assert_snapshot!(fixture.stdout_lines_starting_with("Warning", &["init"]), @"Warning: .claude/settings.json also has our hooks; if the commands differ, both run.");
    insta::assert_snapshot!(fixture.stdout_lines_starting_with("Warning", &["init", "--local"]), @"
    Warning: .claude/settings.json also has our hooks; if the commands differ, both run.
    Warning: [HOME]/.claude/settings.json also has our hooks; if the commands differ, both run.
    ");
    assert_eq!(fixture.world.read(SHARED_SETTINGS), handwritten);
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall"]), @"
    [HOME]/.claude/settings.json: removed 9 hooks and our status line
    [HOME]/.claude/settings.json: removed; it contained nothing else
    [HOME]/.claude/commands/ralph.md: removed
    [HOME]/.claude/commands/handoff.md: removed
    .claude/settings.json also has our hooks: `plimsoll uninstall --project` removes them
    .claude/settings.local.json also has our hooks: `plimsoll uninstall --local` removes them
    ");
    fixture.stdout_of_success(&["uninstall", "--local"]);
    fixture.stdout_of_success(&["init", "--project", "--entries"]);
    let settings = fixture.world.read_json(SHARED_SETTINGS);
    assert_eq!(hook_events_of(&settings.to_string()), hook_events_of(settings::MODERN_TEMPLATE), "each once");
    let is_guarded = |command: &String| command.contains("; command -v ") && command.ends_with(" --guarded");
    assert!(
        commands_with_events(&settings)
            .iter()
            .map(|(_, command)| command)
            .all(|command| is_guarded(command) || command == "say done")
    );
    assert!(settings["statusLine"].is_null(), "a colleague without our programs would lose their own");
    assert_eq!(fixture.stdout_lines_starting_with("Warning", &["init"]), "", "guarded entries give way");
    let stdout = fixture.stdout_of_success(&["uninstall", "--project"]);
    let foreign_settings: Value = serde_json::from_str(USER_SETTINGS).unwrap();
    assert_eq!(fixture.world.read_json(SHARED_SETTINGS), foreign_settings, "{stdout}");
}

#[test]
fn init_project_refuses_the_home_folder() {
    let fixture = InstallFixture::new();
    let home = fixture.world.home();
    let run_in_home =
        |arguments: &[&str]| fixture.world.command(fixture.bin.join("plimsoll"), arguments).cwd(&home).run();
    run_in_home(&["init"]).expect_success();
    let settings = fixture.world.read(home.join(".claude/settings.json"));
    for arguments in
        [&["init", "--project"][..], &["init", "--project", "--entries"], &["uninstall", "--project"]]
    {
        let refused = run_in_home(arguments);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.world.replace_varying_parts_with_placeholders(&refused.stderr), @"
            error: [HOME]/.claude/settings.json is your own settings file, not a project's
            hint: use --user, or go to the project first
            ");
        }
    }
    assert_eq!(fixture.world.read(home.join(".claude/settings.json")), settings);
    assert!(!home.join(".gitignore").exists());
}

#[test]
fn init_on_a_terminal_asks_which_settings_file_to_use() {
    for (answer, file, other_file) in [
        ("", "~/.claude/settings.json", ".claude/settings.local.json"),
        ("2", ".claude/settings.local.json", "~/.claude/settings.json"),
        ("3", ".claude/plimsoll.json", "~/.claude/settings.json"),
    ] {
        let fixture = InstallFixture::new();
        let path_of = |file: &str| match file.strip_prefix("~/") {
            Some(relative) => fixture.world.home().join(relative),
            None => fixture.world.path(file),
        };
        let mut terminal = Terminal::start_program_in_project(
            &fixture.world,
            fixture.bin.join("plimsoll"),
            &["init"],
            120,
            40,
        );
        let question = terminal.wait_for_text("Choose 1, 2 or 3 [1]:");
        insta::allow_duplicates! {
            insta::assert_snapshot!(question.trim_end(), @"
            Set up Plimsoll
              1  for you, in every project      hooks and status line in ~/.claude/settings.json
              2  for you, in this project       hooks and status line in .claude/settings.local.json
              3  for everybody in this project  preferences and ignore rules to commit; each teammate runs `init` for the hooks
            Choose 1, 2 or 3 [1]:
            ");
        }
        // After an invalid answer, `init` asks again.
        terminal.type_text("4");
        terminal.press_enter();
        terminal.wait_for_text("[1]: 4");
        terminal.type_text(answer);
        terminal.press_enter();
        assert!(terminal.wait_for_exit().success());
        assert!(
            path_of(file).exists() && !path_of(other_file).exists(),
            "{answer}: {}",
            terminal.screen_text()
        );
    }
    let fixture = InstallFixture::new();
    let arguments = ["init", "--memory"];
    let mut terminal =
        Terminal::start_program_in_project(&fixture.world, fixture.bin.join("plimsoll"), &arguments, 120, 40);
    let question = terminal.wait_for_text("Choose 1 or 2 [1]:");
    insta::assert_snapshot!(question.trim_end(), @"
    Set up Plimsoll
      1  for you, in every project      hooks and status line in ~/.claude/settings.json
      2  for you, in this project       hooks and status line in .claude/settings.local.json
    Choose 1 or 2 [1]:
    ");
    // Ctrl-D.
    terminal.type_text("\u{4}");
    terminal.wait_for_text("canceled: nothing was changed");
    assert!(!terminal.wait_for_exit().success());
    assert!(!fixture.world.home().join(".claude/settings.json").exists());
}

/// A cloned repository may contain symlinks that lead out of the project.
#[test]
fn init_project_refuses_to_write_through_a_symlink() {
    for file in [".gitignore", ".claude/plimsoll.json"] {
        for arguments in
            [&["init", "--project"][..], &["init", "--project", "--entries"], &["uninstall", "--project"]]
        {
            let fixture = InstallFixture::new();
            let link_target = fixture.world.home().join("theirs");
            fixture.world.write(&link_target, "{}\n");
            fixture.run_shell_line(&format!("mkdir -p .claude && ln -s \"$HOME/theirs\" {file}"));
            let error = fixture.error_of_failing_command(arguments);
            let expected = "is not a plain file\nhint: replace it by a plain file\n";
            assert_eq!(error, format!("error: [PROJECT]/{file} {expected}"), "{arguments:?}");
            assert_eq!(fixture.world.read(&link_target), "{}\n");
            assert!(!fixture.world.exists(".claude/settings.json"), "nothing else is written either");
        }
    }
}
