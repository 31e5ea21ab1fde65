//! The module for Claude Code: `init` installs, renews and removes it, and leaves every other byte as it is.

use super::harness::InstallFixture;
use plimsoll_protocol::settings::HookSupport;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use std::collections::BTreeMap;
use std::path::PathBuf;

const NEW_CLIENT: &str = "2.1.329 (Claude Code)";
const OLD_CLIENT: &str = "2.1.286 (Claude Code)";

fn module_folder(fixture: &InstallFixture) -> PathBuf {
    fixture.world.home().join(".claude/skills/plimsoll")
}

fn plimsoll_settings(fixture: &InstallFixture) -> PathBuf {
    fixture.world.home().join(".config/plimsoll/settings.json")
}

/// Returns every folder of the client's and Plimsoll's configuration, and every file with its checksum.
fn home_listing(fixture: &InstallFixture) -> String {
    let find = "find .claude .config -type d; find .claude .config ! -type d -exec cksum {} +";
    fixture.run_shell_line(&format!("cd \"$HOME\"; mkdir -p .claude .config; ({find}) | sort"))
}

/// Starts `init` on a terminal, with this client on the PATH.
fn start_init_on_terminal(fixture: &InstallFixture, client: &str) -> Terminal {
    fixture.install_fake_client(client);
    let program = fixture.bin.join("plimsoll");
    Terminal::start_program_in_project(&fixture.world, program, &["init", "--user"], 125, 60)
}

#[test]
fn uninstall_removes_the_module_and_keeps_the_folders_of_the_user() {
    for prepare in [
        "true",
        "mkdir -p \"$HOME/.claude/skills\"",
        "mkdir -p \"$HOME/.claude/skills/mine\"; echo mine >\"$HOME/.claude/skills/mine/SKILL.md\"",
    ] {
        let fixture = InstallFixture::new();
        fixture.install_fake_client(NEW_CLIENT);
        fixture.run_shell_line(prepare);
        let before = home_listing(&fixture);
        let init = fixture.stable_stdout_of_success(&["init", "--user", "--module"]);
        assert!(init.contains("[HOME]/.claude/skills/plimsoll: the module for Claude Code\n"), "{init}");
        let settings = fixture.world.home().join(".claude/settings.json");
        assert_eq!(fixture.world.read(settings), fixture.expected_settings(HookSupport::Modern));
        let folder = module_folder(&fixture);
        assert_eq!(fixture.world.read_json(folder.join("hooks/hooks.json"))["modules"][0], "./plimsoll.ts");
        let program_folder = format!("const PROGRAM_FOLDER: string = \"{}\";", fixture.bin.display());
        let module = fixture.world.read(folder.join("hooks/plimsoll.ts"));
        assert!(module.contains(&program_folder), "{module}");
        let installed = home_listing(&fixture);
        for again in [&["init", "--user"][..], &["init", "--user", "--module"]] {
            let output = fixture.stable_stdout_of_success(again);
            assert!(!output.contains("skills/plimsoll"), "{output}");
            assert_eq!(home_listing(&fixture), installed);
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall"]), @"
            [HOME]/.claude/settings.json: removed 9 hooks and our status line
            [HOME]/.claude/settings.json: removed; it contained nothing else
            [HOME]/.claude/commands/ralph.md: removed
            [HOME]/.claude/commands/handoff.md: removed
            [HOME]/.claude/skills/plimsoll/.claude-plugin/plugin.json: removed
            [HOME]/.claude/skills/plimsoll/hooks/hooks.json: removed
            [HOME]/.claude/skills/plimsoll/hooks/plimsoll.ts: removed
            ");
        }
        assert_eq!(home_listing(&fixture), before, "{prepare}");
    }
}

#[test]
fn an_older_module_is_renewed_and_no_module_removes_it() {
    let fixture = InstallFixture::new();
    fixture.install_fake_client(NEW_CLIENT);
    fixture.stdout_of_success(&["init", "--user"]);
    let without_module = home_listing(&fixture);
    fixture.stdout_of_success(&["init", "--module"]);
    let installed = home_listing(&fixture);
    // The client writes declarations for editors beside a module.
    let types = module_folder(&fixture).join(".claude-plugin/types");
    fixture.world.write(types.join("claude-code/index.d.ts"), "// Written by Claude Code.\n");
    fixture.world.write(types.join(".gitignore"), "*\n");
    fixture.world.write(
        module_folder(&fixture).join("tsconfig.json"),
        "{\n  \"extends\": \"./.claude-plugin/types/tsconfig.json\"\n}\n",
    );
    let manifest_path = module_folder(&fixture).join(".claude-plugin/plugin.json");
    let manifest = fixture.world.read(&manifest_path);
    fixture.world.write(&manifest_path, &manifest.replace(env!("CARGO_PKG_VERSION"), "0.0.1"));
    let renewal = fixture.stdout_of_success(&["init", "--user"]);
    assert!(renewal.contains("skills/plimsoll: the module for Claude Code\n"), "{renewal}");
    assert_eq!(fixture.world.read(&manifest_path), manifest);
    insta::assert_snapshot!(
        fixture.stable_stdout_of_success(&["init", "--no-module", "--dry-run"]),
        @"
    Dry run: nothing was written.

    [HOME]/.claude/settings.json: our hooks are already there and up to date
    Template: modern (Claude Code is 2.1.329)
    [HOME]/.claude/skills/plimsoll/.claude-plugin/plugin.json: removed
    [HOME]/.claude/skills/plimsoll/hooks/hooks.json: removed
    [HOME]/.claude/skills/plimsoll/hooks/plimsoll.ts: removed
    Removed: 3 files that Claude Code wrote beside the module
    Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.

    Files (--diff shows the changes):
      [HOME]/.claude/skills/plimsoll/.claude-plugin/plugin.json: removed
      [HOME]/.claude/skills/plimsoll/hooks/hooks.json: removed
      [HOME]/.claude/skills/plimsoll/hooks/plimsoll.ts: removed
      [HOME]/.claude/skills/plimsoll/.claude-plugin/types/.gitignore: removed
      [HOME]/.claude/skills/plimsoll/.claude-plugin/types/claude-code/index.d.ts: removed
      [HOME]/.claude/skills/plimsoll/tsconfig.json: removed
    "
    );
    fixture.stdout_of_success(&["init", "--no-module"]);
    assert_eq!(home_listing(&fixture), without_module);
    fixture.stdout_of_success(&["init", "--module"]);
    assert_eq!(home_listing(&fixture), installed);
}

#[test]
fn init_says_that_compactions_stay_as_they_are_unless_the_user_has_decided() {
    for (settings, is_said) in [(None, true), (Some("{}"), true), (Some(r#"{"compaction": "ask"}"#), false)] {
        let fixture = InstallFixture::new();
        fixture.install_fake_client(NEW_CLIENT);
        let path = plimsoll_settings(&fixture);
        if let Some(settings) = settings {
            fixture.world.write(&path, settings);
        }
        let stdout = fixture.stdout_of_success(&["init", "--user", "--module"]);
        assert_eq!(stdout.contains("Compactions still use Claude Code's summary"), is_said, "{stdout}");
        assert_eq!(stdout.contains(&path.display().to_string()), is_said, "{stdout}");
        let again = fixture.stdout_of_success(&["init", "--user", "--module"]);
        assert!(!again.contains("Compactions still use"), "nothing was installed: {again}");
    }
}

#[test]
fn uninstall_follows_no_link_out_of_the_modules_folder() {
    for (linked, declaration) in [
        ("", ".claude-plugin/types/claude-code/index.d.ts"),
        (".claude-plugin", "types/claude-code/index.d.ts"),
        (".claude-plugin/types", "claude-code/index.d.ts"),
        (".claude-plugin/types/claude-code", "index.d.ts"),
    ] {
        let fixture = InstallFixture::new();
        fixture.install_fake_client(NEW_CLIENT);
        fixture.stdout_of_success(&["init", "--user", "--module"]);
        let types = module_folder(&fixture).join(".claude-plugin/types");
        fixture.world.write(types.join("claude-code/index.d.ts"), "// Written by Claude Code.\n");
        // Everything below the link now belongs to somebody else, and looks like ours.
        let inside =
            if linked.is_empty() { module_folder(&fixture) } else { module_folder(&fixture).join(linked) };
        let outside = fixture.world.home().join("outside");
        std::fs::rename(&inside, &outside).expect("the folder is moved");
        std::os::unix::fs::symlink(&outside, &inside).expect("a link");
        fixture.world.write(outside.join("mine.txt"), "mine");
        fixture.world.write(outside.join("claude-code-photos/a.jpg"), "mine");
        fixture.stdout_of_success(&["uninstall", "--user"]);
        for file in ["mine.txt", "claude-code-photos/a.jpg"] {
            assert_eq!(fixture.world.read(outside.join(file)), "mine", "{linked}");
        }
        let declaration = outside.join(declaration);
        assert!(declaration.exists(), "{} behind the link {linked:?} is not ours", declaration.display());
    }
}

#[test]
fn init_writes_through_no_link_of_the_modules_folder() {
    for linked in ["", ".claude-plugin", "hooks"] {
        let fixture = InstallFixture::new();
        fixture.install_fake_client(NEW_CLIENT);
        let outside = fixture.world.home().join("outside");
        fixture.world.write(outside.join("mine.txt"), "mine");
        let link =
            if linked.is_empty() { module_folder(&fixture) } else { module_folder(&fixture).join(linked) };
        std::fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink(&outside, &link).expect("a link");
        let stdout = fixture.stdout_of_success(&["init", "--user", "--module"]);
        assert!(stdout.contains("skills/plimsoll"), "{stdout}");
        let names: Vec<_> = std::fs::read_dir(&outside).expect("the folder").flatten().collect();
        assert_eq!(names.len(), 1, "{linked}: {names:?}");
    }
}

#[test]
fn files_that_are_not_ours_are_never_overwritten_or_removed() {
    for (file, text) in [
        ("SKILL.md", "my skill"),
        (".claude-plugin/plugin.json", r#"{"name": "plimsoll"}"#),
        ("hooks/hooks.json", "{}"),
        ("hooks/plimsoll.ts", "export const register = () => {};\n"),
    ] {
        let fixture = InstallFixture::new();
        fixture.install_fake_client(NEW_CLIENT);
        fixture.stdout_of_success(&["init", "--user"]);
        fixture.world.write(module_folder(&fixture).join(file), text);
        let before = home_listing(&fixture);
        let kept = fixture.stdout_lines_starting_with("Kept", &["init", "--module"]);
        assert_eq!(
            kept,
            format!(
                "Kept: [HOME]/.claude/skills/plimsoll/{file} is your own, or you have edited it. The module is not installed or renewed until you move it away."
            )
        );
        assert_eq!(home_listing(&fixture), before, "{file}");
        fixture.stdout_of_success(&["uninstall"]);
        assert_eq!(fixture.world.read(module_folder(&fixture).join(file)), text);
    }
}

#[test]
fn an_edited_module_and_its_neighbours_stay() {
    let fixture = InstallFixture::new();
    fixture.install_fake_client(NEW_CLIENT);
    fixture.stdout_of_success(&["init", "--module"]);
    let module_path = module_folder(&fixture).join("hooks/plimsoll.ts");
    let edited = fixture.world.read(&module_path) + "// mine\n";
    fixture.world.write(&module_path, &edited);
    fixture.world.write(module_folder(&fixture).join("tsconfig.json"), "{\"include\": [\"hooks\"]}\n");
    let kept = fixture.stdout_lines_starting_with("Kept", &["init", "--user"]);
    assert!(kept.contains("hooks/plimsoll.ts is your own, or you have edited it"), "{kept}");
    assert_eq!(fixture.world.read(&module_path), edited);
    let kept = fixture.stdout_lines_starting_with("Kept", &["uninstall"]);
    assert_eq!(kept, "Kept: [HOME]/.claude/skills/plimsoll/hooks/plimsoll.ts, because it was changed");
    assert_eq!(fixture.world.read(&module_path), edited);
    let files = fixture.run_shell_line("cd \"$HOME/.claude\"; find . -type f | sort");
    assert_eq!(files, "./skills/plimsoll/hooks/plimsoll.ts\n./skills/plimsoll/tsconfig.json\n");
}

#[test]
fn on_a_terminal_init_explains_the_module_and_asks_once() {
    let fixture = InstallFixture::new();
    let before = home_listing(&fixture);
    let mut terminal = start_init_on_terminal(&fixture, NEW_CLIENT);
    let question = terminal.wait_for_text("Install the module? [Y/n]:");
    insta::assert_snapshot!(question.trim(), @"
    The module runs inside Claude Code. When the context window is full, it can put Plimsoll's handoff in the place of
    Claude Code's summary: in milliseconds, and without a request to the model. From the first warning on it shows the usage
    above the prompt, with a key that continues in a fresh conversation. Without it the hooks do everything else.
    Install the module? [Y/n]:
    ");
    terminal.press_enter();
    let question = terminal.wait_for_text("Choose 1, 2 or 3 [1]:");
    insta::assert_snapshot!(question.split("[Y/n]:").last().unwrap_or_default().trim(), @"
    When the context window is full, Claude Code has the model summarize the conversation, which takes about half a minute.
    Plimsoll's handoff has your requests in your own words, what was done, and the next step, but not every sentence.
      1  keep Claude Code's summary
      2  ask me each time
      3  take the handoff at once
    Choose 1, 2 or 3 [1]:
    ");
    terminal.type_text("2");
    terminal.press_enter();
    assert!(terminal.wait_for_exit().success());
    assert_eq!(fixture.world.read(plimsoll_settings(&fixture)), "{\n  \"compaction\": \"ask\"\n}\n");
    assert!(module_folder(&fixture).join("hooks/plimsoll.ts").exists());
    let installed = home_listing(&fixture);
    let mut terminal = start_init_on_terminal(&fixture, NEW_CLIENT);
    assert!(terminal.wait_for_exit().success(), "nothing is asked again");
    assert_eq!(home_listing(&fixture), installed);
    fixture.stdout_of_success(&["uninstall"]);
    assert_eq!(home_listing(&fixture), before);
}

#[test]
fn a_refusal_an_older_client_and_a_decided_setting_ask_no_further() {
    let fixture = InstallFixture::new();
    let mut terminal = start_init_on_terminal(&fixture, OLD_CLIENT);
    assert!(terminal.wait_for_exit().success(), "an older client is not asked about");
    let mut terminal = start_init_on_terminal(&fixture, NEW_CLIENT);
    terminal.wait_for_text("[Y/n]:");
    terminal.type_text("no");
    terminal.press_enter();
    assert!(terminal.wait_for_exit().success());
    assert!(!module_folder(&fixture).exists() && !plimsoll_settings(&fixture).exists());
    let decided = "{\"compaction\": \"client\"}";
    fixture.world.write(plimsoll_settings(&fixture), decided);
    let mut terminal = start_init_on_terminal(&fixture, NEW_CLIENT);
    terminal.wait_for_text("[Y/n]:");
    terminal.press_enter();
    assert!(terminal.wait_for_exit().success());
    fixture.stdout_of_success(&["uninstall"]);
    assert_eq!(fixture.world.read(plimsoll_settings(&fixture)), decided, "the user's own key stays");
}

#[test]
fn the_compaction_setting_is_added_and_removed_byte_for_byte() {
    for (text, edit, expected) in [
        ("{\n\t\"a\": 1.50\n}\n", "", "{\n\t\"a\": 1.50\n}\n"),
        ("{}", "", "{}"),
        ("", "", ""),
        // The user chose another value later, or changed something else.
        ("{\"a\": 1}", "s/handoff/client/", "{\"a\": 1}"),
        ("{\"a\": 1}", "s/1/2/", "{\"a\": 2}"),
    ] {
        let fixture = InstallFixture::new();
        fixture.world.write(plimsoll_settings(&fixture), text);
        let before = home_listing(&fixture);
        let mut terminal = start_init_on_terminal(&fixture, NEW_CLIENT);
        terminal.wait_for_text("[Y/n]:");
        terminal.type_text("y");
        terminal.press_enter();
        terminal.wait_for_text("[1]:");
        terminal.type_text("3");
        terminal.press_enter();
        assert!(terminal.wait_for_exit().success());
        let installed = fixture.world.read_json(plimsoll_settings(&fixture));
        assert_eq!(installed["compaction"], "handoff", "{text}");
        let settings_path = plimsoll_settings(&fixture).display().to_string();
        fixture.run_shell_line(&format!("sed -i '{edit}' '{settings_path}'"));
        let kept = fixture.stdout_lines_starting_with("Kept", &["uninstall"]);
        assert_eq!(fixture.world.read(plimsoll_settings(&fixture)), expected);
        if text == expected {
            assert_eq!((home_listing(&fixture), kept.as_str()), (before, ""), "{text}");
        } else {
            assert!(kept.contains("settings.json.plimsoll-backup, because"), "{kept}");
        }
    }
}

#[test]
fn an_old_client_gets_the_module_only_on_request_and_with_a_warning() {
    let fixture = InstallFixture::new();
    fixture.install_fake_client(OLD_CLIENT);
    fixture.stdout_of_success(&["init", "--user"]);
    assert!(!module_folder(&fixture).exists());
    let careful = fixture.stdout_lines_starting_with("Warning", &["init", "--module"]);
    assert_eq!(careful, "Warning: Claude Code 2.1.286 does not load modules; 2.1.287 and newer versions do.");
    for options in [&["--module", "--no-module"][..], &["--module", "--local"], &["--no-module", "--project"]]
    {
        let finished = fixture.run_plimsoll(&[&["init"], options].concat());
        assert_eq!(finished.code, Some(2), "{options:?}: {finished:?}");
    }
}

/// Returns how often each hook program ran for each event, and the commands of `plimsoll` that ran.
fn run_session_and_count_programs(fixture: &mut InstallFixture) -> (BTreeMap<String, usize>, String) {
    let commands = fixture.world.home().join("commands.log");
    let recorder = format!("#!/bin/sh\necho \"$1\" >>'{}'\necho '{{}}'\n", commands.display());
    fixture.world.write(fixture.bin.join("plimsoll"), &recorder);
    fixture.run_shell_line(
        "mv \"$HOME/hooks.log\" \"$HOME/earlier.log\" 2>/dev/null; : >\"$HOME/commands.log\"",
    );
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo one").with_input_tokens(5_000),
        Step::bash_call("echo two").with_input_tokens(6_000),
        Step::from_text("done").with_input_tokens(7_000),
    ]);
    fixture.world.put_client_on_path_with_model_and_settings(&model);
    let arguments = ["-p", "hi", "--model", "claude-sonnet-4-6", "--allowedTools", "Bash"];
    fixture.world.claude(&arguments).run().expect_success();
    let mut counts = BTreeMap::new();
    for line in fixture.world.read(fixture.world.home().join("hooks.log")).lines() {
        let (program, payload) = line.split_once(' ').expect("a program and its input");
        let payload: serde_json::Value = serde_json::from_str(payload).expect("JSON");
        *counts.entry(format!("{} {program}", payload["hook_event_name"])).or_default() += 1;
    }
    (counts, fixture.world.read(commands))
}

/// The module adds no process below L1 but one `plimsoll context` per session.
#[test]
fn each_event_starts_one_process_with_and_without_the_module() {
    let mut without_module = InstallFixture::new();
    without_module.install_fake_client(NEW_CLIENT);
    without_module.stdout_of_success(&["init", "--user"]);
    let (hooks, commands) = run_session_and_count_programs(&mut without_module);
    assert_eq!(commands, "");
    insta::assert_debug_snapshot!(hooks, @r#"
    {
        "\"PostToolBatch\" plimsoll-post-tool": 2,
        "\"SessionEnd\" plimsoll-session-end": 1,
        "\"SessionStart\" plimsoll-session-start": 1,
        "\"Stop\" plimsoll-stop-gate": 1,
    }
    "#);
    let mut with_module = InstallFixture::new();
    with_module.install_fake_client(NEW_CLIENT);
    with_module.stdout_of_success(&["init", "--user", "--module"]);
    assert_eq!(run_session_and_count_programs(&mut with_module), (hooks, "context\n".to_owned()));
}

#[test]
fn the_client_lists_the_module_and_forgets_it_after_uninstall() {
    let world = World::without_plimsoll_files();
    let settings = world.home().join(".claude/settings.json");
    let list_plugins = || world.claude(&["plugin", "list"]).run().expect_success().stdout;
    let before = list_plugins();
    let listing = || {
        let find = "cd \"$HOME/.claude\"; find . -path ./skills -o -name settings.json";
        world.command("/bin/sh", &["-c", find]).run().expect_success().stdout
    };
    let files_before = listing();
    world.plimsoll(&["init", "--user"]).run().expect_success();
    let settings_without_module = world.read(&settings);
    world.plimsoll(&["init", "--module"]).run().expect_success();
    assert_eq!(world.read(&settings), settings_without_module);
    let listed = list_plugins();
    assert!(listed.contains("plimsoll@skills-dir") && listed.contains("loaded"), "{listed}");
    let folder = world.home().join(".claude/skills/plimsoll").display().to_string();
    let validated = world.claude(&["plugin", "validate", &folder, "--json"]).run().expect_success();
    assert_eq!(validated.stdout_json()["success"], true, "{validated:?}");
    world.plimsoll(&["uninstall"]).run().expect_success();
    assert_eq!(list_plugins(), before);
    assert_eq!(listing(), files_before);
}
