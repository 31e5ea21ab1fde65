//! `plimsoll init` and `uninstall` on real files, and what the real client makes of the result.

use proptest::prelude::*;
use protocol::settings::{self, Era};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::scripted_model::{Request, ScriptedModel, Step};
use testkit::terminal::Terminal;
use testkit::world::{Finished, World};
use testkit::{bin_dir, workspace_root};

const SETTINGS: &str = ".claude/settings.json";
const BACKUP: &str = ".claude/settings.json.plimsoll-backup";

/// A user's settings with everything that must not change: order, spacing, foreign hooks, unknown keys.
const FOREIGN: &str = "{\n    \"zeta\": {\"b\": 1.50, \"a\": null},\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] }\n        ],\n        \"Unknown\": []\n    },\n    \"alpha\": \"\\u00e9\"\n}";

/// A world with our programs in a folder of its own: the real `plimsoll`, and for each hook program a
/// recorder that writes down its name and what it was given.
struct Stage {
    world: World,
    bin: PathBuf,
}

impl Stage {
    fn new() -> Stage {
        Stage::with_folder("bin", true)
    }

    fn with_folder(name: &str, on_path: bool) -> Stage {
        let mut world = World::new();
        let bin = world.home().join(name);
        let log = world.home().join("hooks.log");
        let recorder = format!("#!/bin/sh\necho \"${{0##*/}} $(cat)\" >> '{}'\n", log.display());
        for program in settings::PROGRAMS {
            let recorder = if *program == "plimsoll-statusline" {
                "#!/bin/sh\ncat > /dev/null; echo PLIMSOLL-LINE\n"
            } else {
                &recorder
            };
            world.write(bin.join(program), recorder);
        }
        let first = if on_path { bin.clone() } else { world.home().join("nothing") };
        let clients = world.home().join("clients");
        let path = [first, clients, "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
        world.set_env("PATH", path.map(|folder| folder.display().to_string()).join(":"));
        let stage = Stage { world, bin };
        let real = bin_dir().join("plimsoll");
        stage.shell(&format!("chmod 755 \"$BIN\"/*; cp '{}' \"$BIN\"", real.display()));
        stage
    }

    fn shell(&self, line: &str) -> String {
        let bin = self.bin.display().to_string();
        self.world.command("/bin/sh", &["-c", line]).env("BIN", bin).run().expect_success().stdout
    }

    /// Puts a client on the PATH that only tells its version.
    fn client(&self, version: &str) {
        self.world.write(self.world.home().join("clients/claude"), &format!("#!/bin/sh\necho '{version}'\n"));
        self.shell("chmod 755 \"$HOME/clients/claude\"");
    }

    fn plimsoll(&self, args: &[&str]) -> Finished {
        self.world.command(self.bin.join("plimsoll"), args).run()
    }

    fn done(&self, args: &[&str]) -> String {
        self.plimsoll(args).expect_success().stdout
    }

    /// Every file below the world's project and the user's client folder, with its bytes.
    fn files(&self) -> String {
        let find =
            "find . \"$HOME/.claude\" -path ./.git/objects -prune -o \\( -type f -o -type l \\) -print0";
        self.shell(&format!("mkdir -p \"$HOME/.claude\"; {find} | sort -z | xargs -0 cksum"))
    }

    /// The events each recorder was started for.
    fn recorded(&self) -> BTreeSet<(String, String)> {
        let log = store::disk::read_text(&self.world.home().join("hooks.log")).unwrap_or_default();
        let pair = |line: &str| {
            let (program, payload) = line.split_once(' ')?;
            let payload: Value = serde_json::from_str(payload).ok()?;
            Some((payload["hook_event_name"].as_str()?.to_owned(), program.to_owned()))
        };
        log.unwrap_or_default().lines().filter_map(pair).collect()
    }
}

fn events_of(template: &str) -> BTreeSet<(String, String)> {
    let hooks = settings::our_hooks(template).unwrap_or_default();
    hooks.into_iter().map(|hook| (hook.event, hook.program)).collect()
}

#[test]
fn in_and_out_again_leaves_every_file_as_it_was() {
    for text in [FOREIGN, "{}", "", "{\"hooks\": {}}\n", "{\n\t\"model\": \"opus\"\n}\n"] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        let before = stage.files();
        let said = stage.done(&["init"]);
        assert!(said.contains(".claude/settings.json: hooks for SessionStart"), "{said}");
        assert_eq!(stage.world.read(BACKUP), text);
        assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::MODERN));
        let installed = stage.files();
        let again = stage.done(&["init"]);
        assert!(again.contains("already there"), "{again}");
        assert_eq!(stage.files(), installed, "a second init changes nothing");
        let said = stage.done(&["uninstall"]);
        assert!(said.contains("byte for byte as before"), "{said}");
        assert_eq!(stage.files(), before);
        let again = stage.done(&["uninstall"]);
        assert!(again.contains("nothing of ours"), "{again}");
        assert_eq!(stage.files(), before, "a second uninstall changes nothing");
    }
}

#[test]
fn files_that_init_made_are_gone_after_uninstall() {
    for scope in [&[][..], &["--local"], &["--user"]] {
        let stage = Stage::new();
        let before = stage.files();
        stage.done(&[&["init"], scope].concat());
        let file = match scope {
            ["--local"] => stage.world.path(".claude/settings.local.json"),
            ["--user"] => stage.world.home().join(".claude/settings.json"),
            _ => stage.world.path(SETTINGS),
        };
        assert_eq!(stage.world.read(&file), settings::MODERN);
        assert!(stage.world.exists(file.with_file_name("commands/ralph.md")));
        stage.done(&[&["uninstall"], scope].concat());
        assert_eq!(stage.files(), before);
        assert!(!stage.world.exists(".claude"));
    }
}

#[test]
fn a_settings_file_changed_since_loses_our_entries_alone() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    stage.done(&["init"]);
    let changed = |text: &str| text.replace("\"zeta\"", "\"new\": true,\n    \"zeta\"");
    stage.world.write(SETTINGS, &changed(&stage.world.read(SETTINGS)));
    let said = stage.done(&["uninstall"]);
    assert_eq!(stage.world.read(SETTINGS), changed(FOREIGN));
    assert!(said.contains("Kept: .claude/settings.json.plimsoll-backup"), "{said}");
}

#[test]
fn the_backup_is_the_last_text_without_us_and_no_later_one() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    stage.done(&["init"]);
    stage.world.write(
        SETTINGS,
        &stage.world.read(SETTINGS).replace("plimsoll-stop-gate", "/old/plimsoll-stop-gate"),
    );
    stage.done(&["init"]);
    assert_eq!(stage.world.read(BACKUP), FOREIGN);
    stage.done(&["uninstall"]);
    assert_eq!(stage.world.read(SETTINGS), FOREIGN);
}

#[test]
fn a_dry_run_shows_a_diff_and_writes_nothing() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    let before = stage.files();
    let said = stage.done(&["init", "--dry-run"]);
    for part in [
        "\n+++ ",
        "\"command\": \"plimsoll-stop-gate\"",
        "\n+# plimsoll\n",
        "ralph.md",
        "nothing was written",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(stage.files(), before);
    stage.done(&["init"]);
    let installed = stage.files();
    let said = stage.done(&["uninstall", "--dry-run"]);
    assert!(said.contains("plimsoll-stop-gate") && said.contains("nothing was written"), "{said}");
    assert_eq!(stage.files(), installed);
}

#[test]
fn what_cannot_be_read_is_refused_and_left() {
    for (text, place) in [
        ("{\n  // mine\n  \"a\": 1\n}\n", "line 2, column 3"),
        ("{\n  \"a\": 1,\n}\n", "line 3, column 1"),
        ("{\"hooks\": []}", "`hooks` is not an object"),
    ] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        let before = stage.files();
        let finished = stage.plimsoll(&["init"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        assert!(finished.stderr.contains(place) && finished.stderr.contains(SETTINGS), "{}", finished.stderr);
        assert_eq!(stage.files(), before);
    }
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let stage = Stage::new();
    assert_eq!(stage.plimsoll(&["init", "--user", "--local"]).code, Some(2));
    stage.world.write(".claude", "a file where a folder should be");
    let finished = stage.plimsoll(&["init"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains(".claude/settings.json"), "{}", finished.stderr);
}

#[test]
fn the_template_fits_the_client_on_the_path() {
    for (version, template, said) in [
        (None, settings::MODERN, "there is no `claude` on the PATH"),
        (Some("2.1.329 (Claude Code)"), settings::MODERN, "modern (the client is 2.1.329)"),
        (Some("2.1.101 (Claude Code)"), settings::CLASSIC, "classic (the client is 2.1.101"),
        (Some("1.0.128 (Claude Code)"), settings::CLASSIC, "classic (the client is 1.0.128"),
        (Some(""), settings::CLASSIC, "does not tell its version"),
    ] {
        let stage = Stage::new();
        if let Some(version) = version {
            stage.client(version);
        }
        let printed = stage.done(&["init"]);
        assert_eq!(stage.world.read(SETTINGS), template);
        assert!(printed.contains(said), "{printed}");
    }
}

#[test]
fn a_newer_client_gets_the_other_template_in_the_same_file() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    stage.client("1.0.128 (Claude Code)");
    stage.done(&["init"]);
    stage.client("2.1.329 (Claude Code)");
    stage.done(&["init"]);
    assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::MODERN));
    stage.done(&["uninstall"]);
    assert_eq!(stage.world.read(SETTINGS), FOREIGN);
}

#[test]
fn what_belongs_to_the_user_stays_and_is_named() {
    let stage = Stage::new();
    let own = "Run my own loop with $ARGUMENTS\n";
    stage.world.write(".claude/commands/ralph.md", own);
    stage.world.write(
        SETTINGS,
        r#"{"statusLine": {"type": "command", "command": "starship"}, "disableAllHooks": true}"#,
    );
    let before = stage.files();
    let said = stage.done(&["init"]);
    for part in ["your status line `starship`", "ralph.md is your own", "disableAllHooks"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(stage.world.read(".claude/commands/ralph.md"), own);
    assert_eq!(stage.world.json(SETTINGS)["statusLine"]["command"], "starship");
    stage.done(&["uninstall"]);
    assert_eq!(stage.files(), before);
}

#[test]
fn a_command_file_of_ours_is_renewed_and_a_changed_one_survives_uninstall() {
    let stage = Stage::new();
    stage.done(&["init"]);
    let ours = stage.world.read(".claude/commands/handoff.md");
    stage.world.write(".claude/commands/handoff.md", &format!("{ours}\nold words\n"));
    stage.done(&["init"]);
    assert_eq!(stage.world.read(".claude/commands/handoff.md"), ours);
    stage.world.write(".claude/commands/handoff.md", &format!("{ours}\nmy words\n"));
    let said = stage.done(&["uninstall"]);
    assert!(said.contains("Kept: .claude/commands/handoff.md"), "{said}");
    assert!(stage.world.read(".claude/commands/handoff.md").ends_with("my words\n"));
}

#[test]
fn two_scopes_of_one_project_share_commands_and_exclude_lines() {
    let stage = Stage::new();
    stage.done(&["init"]);
    assert!(stage.done(&["init", "--local"]).contains(".claude/settings.json has our hooks, too"));
    stage.done(&["uninstall", "--local"]);
    assert!(stage.world.exists(".claude/commands/ralph.md"));
    assert!(stage.world.read(".git/info/exclude").contains(".claude/plimsoll/"));
    stage.done(&["uninstall"]);
    assert!(!stage.world.exists(".claude"));
}

#[test]
fn a_linked_settings_file_is_written_through() {
    let stage = Stage::new();
    stage.shell("mkdir -p .claude dotfiles; echo '{}' > dotfiles/claude.json; ln -s ../dotfiles/claude.json .claude/settings.json");
    stage.done(&["init"]);
    assert!(stage.world.read("dotfiles/claude.json").contains("plimsoll-stop-gate"));
    stage.done(&["uninstall"]);
    assert_eq!(stage.world.read("dotfiles/claude.json"), "{}\n");
    assert_eq!(stage.shell("readlink .claude/settings.json"), "../dotfiles/claude.json\n");
}

#[test]
fn git_overlooks_our_run_files_in_worktrees_and_below_the_root_too() {
    let stage = Stage::new();
    stage.shell("git worktree add -q ../tree && mkdir -p ../tree/deep");
    for folder in ["", "../tree", "../tree/deep"] {
        let project = stage.world.path(folder);
        stage.world.command(stage.bin.join("plimsoll"), &["init"]).cwd(&project).run().expect_success();
        for file in ["ralph-state.json", "handoffs/one.md", "plimsoll/journal.jsonl"] {
            stage.world.write(project.join(".claude").join(file), "x");
        }
    }
    for folder in [".", "../tree", "../tree/deep"] {
        let status = stage.shell(&format!("cd {folder} && git status --short -uall"));
        assert!(status.contains(".claude/settings.json") && !status.contains("ralph-state"), "{status}");
        assert!(!status.contains("handoffs") && !status.contains("plimsoll/journal"), "{status}");
    }
}

#[test]
fn a_project_without_git_is_fine() {
    let world = World::without_git();
    let finished = world.plimsoll(&["init"]).run().expect_success();
    assert!(finished.stdout.contains("Not a git repository"), "{}", finished.stdout);
}

#[test]
fn the_templates_and_the_hook_programs_have_the_same_names() {
    let named: BTreeSet<String> =
        [Era::Modern, Era::Classic].into_iter().flat_map(settings::programs_of).collect();
    let sources = store::disk::names(&workspace_root().join("crates/hooks/src/bin"));
    let built = sources.iter().map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    assert_eq!(named, built);
    let known: BTreeSet<String> = settings::PROGRAMS.iter().map(|name| (*name).to_owned()).collect();
    assert!(named.is_subset(&known), "settings::PROGRAMS lacks one of {named:?}");
}

const SONNET: &[&str] = &["--model", "claude-sonnet-4-6", "--allowedTools", "Bash"];

/// Starts the real client on a prompt and returns what the model was told first.
fn client_run(stage: &mut Stage, prompt: &str, steps: Vec<Step>) -> String {
    let model = ScriptedModel::steps(steps);
    stage.world.use_model(&model);
    let args = [&["-p", prompt, "--output-format", "stream-json", "--verbose"], SONNET].concat();
    stage.world.claude(&args).run();
    model.main_requests().first().map(Request::last_text).unwrap_or_default()
}

/// A headless client does not wait for StopFailure; one with a screen lives on.
fn fail_on_screen(stage: &mut Stage) {
    let model = ScriptedModel::steps(vec![Step::error(400, "no")]);
    stage.world.use_model(&model);
    let mut terminal = Terminal::claude(&stage.world, &[], 100, 30);
    terminal.wait_for("PLIMSOLL-LINE", Duration::from_secs(10));
    terminal.type_text("hello there");
    terminal.wait_for("hello there", Duration::from_secs(10));
    terminal.press_enter();
    let failed = || stage.recorded().iter().any(|(event, _)| event == "StopFailure");
    stage.world.wait_until(Duration::from_secs(10), failed, "StopFailure is recorded");
    terminal.close();
}

fn the_client_takes_every_entry(mut stage: Stage) {
    stage.done(&["init"]);
    let compacting = vec![
        Step::bash("echo one").usage(5_000),
        Step::bash("echo two").usage(170_000),
        Step::text("done").usage(4_000),
    ];
    client_run(&mut stage, "hi", compacting);
    fail_on_screen(&mut stage);
    assert_eq!(stage.recorded(), events_of(settings::MODERN));
}

#[test]
fn the_client_takes_every_entry_of_the_modern_template() {
    the_client_takes_every_entry(Stage::new());
}

#[test]
fn the_oldest_client_takes_every_entry_of_the_classic_template() {
    for stage in [Stage::new(), Stage::with_folder("it's a $HOME", false)] {
        let mut stage = stage;
        stage.client("1.0.128 (Claude Code)");
        assert!(stage.done(&["init"]).contains("Template: classic"));
        let model = ScriptedModel::steps(vec![Step::bash("echo one").usage(5_000), Step::text("done")]);
        stage.world.use_model(&model);
        // This client stumbles over a project that it knows without the list it once kept there.
        let known = stage.world.home().join(".claude.json");
        let mut projects = stage.world.json(&known);
        projects["projects"][stage.world.project().display().to_string()]["allowedTools"] = json!([]);
        stage.world.write(&known, &projects.to_string());
        let args = ["-p", "hi", "--allowedTools", "Bash"];
        let finished = stage.world.command(testkit::client::claude_version("1.0.128"), &args).run();
        let mut expected = events_of(settings::CLASSIC);
        expected.retain(|(event, _)| event != "PreCompact");
        assert_eq!(stage.recorded(), expected, "{finished:?}");
    }
}

#[test]
fn the_client_takes_programs_in_a_folder_that_only_a_shell_would_stumble_over() {
    the_client_takes_every_entry(Stage::with_folder("it's a $HOME", false));
}

#[test]
fn the_status_line_shows_from_such_a_folder_too() {
    for stage in [Stage::new(), Stage::with_folder("it's a $HOME", false)] {
        stage.done(&["init"]);
        let terminal = Terminal::claude(&stage.world, &[], 100, 30);
        terminal.wait_for("PLIMSOLL-LINE", Duration::from_secs(10));
        terminal.close();
    }
}

#[test]
fn a_slash_command_reaches_the_model_as_our_text() {
    let mut stage = Stage::new();
    stage.done(&["init"]);
    let told = client_run(&mut stage, "/ralph status", vec![Step::text("done")]);
    assert!(told.contains("called `/ralph` with: status") && told.contains("`plimsoll status`"), "{told}");
    let told = client_run(&mut stage, "/handoff the build is red", vec![Step::text("done")]);
    assert!(
        told.contains("(may be empty): the build is red") && told.contains("plimsoll checkpoint --summary"),
        "{told}"
    );
    assert!(!told.contains("delete this line"), "the marker is not for the model: {told}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

fn with_tabs(line: &str) -> String {
    let text = line.trim_start();
    format!("{}{text}\n", "\t".repeat((line.len() - text.len()) / 2))
}

fn any_group() -> impl Strategy<Value = Value> {
    let entry = ("[a-z/ ]{0,12}", any_json())
        .prop_map(|(command, extra)| json!({"type": "command", "command": command, "extra": extra}));
    let group = (prop::option::of("[A-Z][a-z|]{0,8}"), prop::collection::vec(entry, 0..3));
    prop_oneof![
        group.prop_map(|(matcher, hooks)| match matcher {
            Some(matcher) => json!({"matcher": matcher, "hooks": hooks}),
            None => json!({"hooks": hooks}),
        }),
        any_json(),
    ]
}

/// Settings as people have them: hooks of others, in any order among other keys, in any layout.
fn any_settings() -> impl Strategy<Value = String> {
    let event =
        prop_oneof![Just("Stop"), Just("SessionStart"), Just("PostToolUse"), Just("PreToolUse"), Just("Odd")];
    let hooks = prop::collection::btree_map(event, prop::collection::vec(any_group(), 0..3), 0..4);
    let others = prop::collection::vec(("[a-zA-Z]{1,8}", any_json()), 0..4);
    (others, prop::option::of(hooks), any::<prop::sample::Index>(), 0..4_usize).prop_map(
        |(others, hooks, at, layout)| {
            let mut pairs: Vec<(String, Value)> = others;
            if let Some(hooks) = hooks {
                pairs.insert(at.index(pairs.len() + 1), ("hooks".to_owned(), json!(hooks)));
            }
            let value = Value::Object(Map::from_iter(pairs));
            let two = serde_json::to_string_pretty(&value).unwrap_or_default();
            match layout {
                0 => value.to_string(),
                1 => two + "\n",
                2 => format!("\u{feff}{two}").replace('\n', "\r\n"),
                _ => two.lines().map(with_tabs).collect(),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_settings_come_back_byte_for_byte(text in any_settings(), modern in any::<bool>()) {
        let era = if modern { Era::Modern } else { Era::Classic };
        let spell = |program: &str| format!("/a b/{program}");
        let once = settings::install(&text, era, &spell).unwrap().text;
        prop_assert_eq!(&settings::install(&once, era, &spell).unwrap().text, &once);
        prop_assert!(settings::is_untouched_since(&text, &once));
        let out = settings::uninstall(&once, Some(&text)).unwrap().text;
        prop_assert_eq!(&out, &text);
        prop_assert_eq!(&settings::uninstall(&text, None).unwrap().text, &text);
        let other = settings::install(&once, if modern { Era::Classic } else { Era::Modern }, &spell).unwrap().text;
        // A change of era removes a list that it empties, even one that the user had left empty.
        if !text.contains("[]") {
            prop_assert_eq!(&settings::uninstall(&other, Some(&text)).unwrap().text, &text);
        }
    }
}

/// Keeps the paths of the tests above honest.
#[test]
fn the_templates_lie_where_people_look_for_them() {
    for (name, text) in
        [("settings.modern.json", settings::MODERN), ("settings.classic.json", settings::CLASSIC)]
    {
        let path = workspace_root().join("hooks-config").join(Path::new(name));
        assert_eq!(store::disk::read_text(&path).unwrap().unwrap(), text);
    }
}
