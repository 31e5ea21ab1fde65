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
        let said = stage.done(&["init", "--project"]);
        for part in [
            ".claude/plimsoll.json: for the team's preferences",
            ".gitignore: run files are ignored",
            "Commit",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!stage.world.exists(SHARED) && !stage.world.home().join(".claude/settings.json").exists());
        for file in ["ralph-state.json", "handoffs/one.md", "plimsoll/journal.jsonl"] {
            stage.world.write(stage.world.path(".claude").join(file), "x");
        }
        stage.shell("rm .git/info/exclude");
        let status = stage.shell("git status --short -uall");
        assert!(status.contains(".claude/plimsoll.json") && status.contains(".gitignore"), "{status}");
        assert!(
            !status.contains("ralph-state") && !status.contains("handoffs") && !status.contains("journal"),
            "{status}"
        );
        stage.shell("rm -r .claude/ralph-state.json .claude/handoffs .claude/plimsoll; : >.git/info/exclude");
        let again = stage.done(&["init", "--project"]);
        assert!(again.contains("already there") && again.contains("already ignored"), "{again}");
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
    let said = stage.done(&["init", "--project", "--entries"]);
    assert!(
        said.contains(".claude/settings.json: hooks for SessionStart") && !said.contains("status line"),
        "{said}"
    );
    let settings = stage.world.json(SHARED);
    assert_eq!(events_of(&settings.to_string()), events_of(settings::MODERN));
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
    assert_eq!(stage.recorded(), events_of(settings::MODERN));
    let installed = stage.files();
    stage.done(&["init", "--project", "--entries"]);
    assert_eq!(stage.files(), installed, "a second time changes nothing");
    let said = stage.done(&["uninstall", "--project"]);
    assert!(said.contains("byte for byte as before"), "{said}");
    assert_eq!(stage.files(), before);
}

#[test]
fn our_hooks_in_the_shared_settings_are_named_and_become_those_for_everybody() {
    let stage = Stage::new();
    let by_hand = settings::install(FOREIGN, HookSupport::Modern, &str::to_owned).expect("settings").text;
    stage.world.write(SHARED, &by_hand);
    for arguments in [["init"].as_slice(), &["init", "--local"]] {
        let said = stage.done(arguments);
        assert!(said.contains("Careful: .claude/settings.json also has our hooks"), "{arguments:?}: {said}");
        assert_eq!(stage.world.read(SHARED), by_hand, "{arguments:?}");
    }
    let said = stage.done(&["uninstall"]);
    assert!(
        said.contains("`plimsoll uninstall --project`") && said.contains("`plimsoll uninstall --local`"),
        "{said}"
    );
    stage.done(&["uninstall", "--local"]);
    stage.done(&["init", "--project", "--entries"]);
    let settings = stage.world.json(SHARED);
    assert_eq!(events_of(&settings.to_string()), events_of(settings::MODERN), "each once");
    let is_guarded = |command: &String| command.contains("; command -v ") && command.ends_with(" --guarded");
    assert!(
        commands(&settings)
            .iter()
            .map(|(_, command)| command)
            .all(|command| is_guarded(command) || command == "say done")
    );
    assert!(settings["statusLine"].is_null(), "a colleague without our programs would lose their own");
    let said = stage.done(&["init"]);
    assert!(!said.contains("Careful"), "guarded entries give way: {said}");
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
        assert!(
            refused.stderr.contains("is your own settings file") && refused.stderr.contains("--user"),
            "{refused:?}"
        );
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
        for part in ["for you, in every project", "for you, in this project", "for everybody in this project"]
        {
            assert!(question.contains(part), "{part}: {question}");
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
    assert!(!question.contains("for everybody"), "{question}");
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
            let refused = stage.plimsoll(arguments);
            assert_eq!(refused.code, Some(1), "{file} {arguments:?}: {refused:?}");
            assert!(
                refused.stderr.contains(file) && refused.stderr.contains("is not a plain file"),
                "{refused:?}"
            );
            assert_eq!(stage.world.read(&theirs), "{}\n");
            assert!(!stage.world.exists(".claude/settings.json"), "nothing else is written either");
        }
    }
}
