//! The first steps of a user with the real client: install, a session, uninstall. These tests use nothing that only Unix has, so
//! they run on every system; on Windows, `.github/workflows/windows.yml` runs them.

use plimsoll_testkit::fixtures_dir;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::LIFELIKE_DELAY;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Settings that the user wrote, in their own formatting. The client adds the last one in its first session, because a
/// world's client has accepted that mode, and formats the whole file then; it leaves a file alone that has it.
const ORIGINAL_SETTINGS: &str = "{ \"permissions\":{\"allow\": [\"Bash(ls:*)\"] },\n\t\"env\": {\"EDITOR\":\"vi\"},\n\
                                 \"skipDangerousModePermissionPrompt\": true }";

const FINAL_ANSWER: &str = "The file is made.";

/// Adds the user's own settings of the client to a world.
fn write_user_settings(world: &World) {
    world.write(settings_file(world), ORIGINAL_SETTINGS);
}

/// Returns the client's settings of the user.
fn settings_file(world: &World) -> PathBuf {
    world.home().join(".claude/settings.json")
}

/// Installs for the user and returns the settings that the client reads then.
fn install_for_user(world: &World) -> Value {
    world.plimsoll(&["init", "--user"]).run().expect_success();
    let settings = world.read_json(settings_file(world));
    assert_eq!(settings["env"]["EDITOR"], "vi", "the user's own settings stay: {settings:#}");
    settings
}

fn uninstall_and_assert_settings_restored(world: &World) {
    world.plimsoll(&["uninstall", "--user"]).run().expect_success();
    assert_eq!(world.read(settings_file(world)), ORIGINAL_SETTINGS);
    assert!(!world.home().join(".claude/settings.json.plimsoll-backup").exists(), "the backup is removed");
}

/// Returns the program of a command in the settings, without the quotes and arguments.
fn program_of_command(command: &str) -> PathBuf {
    let command = command.trim();
    let program = match command.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split(['"', '\'']).next(),
        None => command.split_whitespace().next(),
    };
    PathBuf::from(program.unwrap_or_default())
}

/// Starts the status line that the settings name with a recorded payload, and returns what it prints.
fn print_status_line(world: &World, settings: &Value) -> String {
    let command = settings["statusLine"]["command"].as_str().expect("a status line is installed");
    let program = program_of_command(command);
    assert!(program.is_absolute(), "the client starts it from any folder: {command}");
    let payload =
        std::fs::read_to_string(fixtures_dir().join("statusline/usage.1m.json")).expect("a fixture");
    world.command(program, &[]).stdin(payload).env("NO_COLOR", "1").run().expect_success().stdout
}

/// Returns the entries of a folder, sorted by name.
fn entries_of_folder(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn uninstalling_restores_the_users_settings_byte_for_byte() {
    // Without git, so that it also runs where there is none, such as wine.
    let world = World::without_git();
    write_user_settings(&world);
    let settings = install_for_user(&world);
    let line = print_status_line(&world, &settings);
    assert!(line.contains("21% 210k/1M") && line.lines().count() == 1, "{line}");
    uninstall_and_assert_settings_restored(&world);
}

/// Starts a model that fills the window: at 86% a handoff is written.
fn start_scripted_model() -> ScriptedModel {
    ScriptedModel::start(|request: &Request| {
        match request.all_tool_results().len() {
            0 => Step::bash_call("echo first >made.txt").with_input_tokens(560_000),
            1 => Step::bash_call("echo second >>made.txt && cat made.txt").with_input_tokens(720_000),
            2 => Step::bash_call("echo third >>made.txt").with_input_tokens(861_000),
            _ => Step::from_text(FINAL_ANSWER).with_input_tokens(862_000),
        }
        .with_output_tokens(1)
        .with_delay(LIFELIKE_DELAY)
    })
}

#[test]
fn a_session_past_the_checkpoint_threshold_leaves_a_handoff_and_turns() {
    let mut world = World::without_plimsoll_files();
    write_user_settings(&world);
    let model = start_scripted_model();
    world.put_client_on_path_with_model_and_settings(&model);
    install_for_user(&world);
    let arguments =
        ["-p", "Make a file.", "--model", "opus", "--allowedTools", "Bash", "--output-format", "json"];
    let result = world.claude(&arguments).run().expect_success().last_result();
    assert_eq!(result["result"], FINAL_ANSWER, "{result:#}");
    assert_eq!(world.read("made.txt").lines().collect::<Vec<_>>(), ["first", "second", "third"]);

    // The hooks were started by the client: their messages reached the model.
    let requests = model.main_requests();
    assert_eq!(requests.len(), 4, "every step was taken");
    let last_request = requests[3].full_text();
    for marker in ["CCS_WARNING|L1|72|", "CCS_WARNING|L2|86|"] {
        assert_eq!(last_request.matches(marker).count(), 1, "{marker} in\n{last_request}");
    }

    // The project has not opted in: its records are in the user's folder.
    assert!(!world.exists(".claude"), "nothing of ours is in the project");
    let folders = entries_of_folder(&world.plimsoll_state_folder().join("projects"));
    let [state_folder] = folders.as_slice() else { panic!("one project's folder: {folders:?}") };
    let handoffs = entries_of_folder(&state_folder.join("handoffs"));
    let handoff = handoffs.iter().find(|path| path.extension().is_some_and(|extension| extension == "md"));
    let handoff_text = world.read(handoff.expect("a handoff"));
    for part in ["> Make a file.", "made.txt", "- Branch: main"] {
        assert!(handoff_text.contains(part), "{part} in\n{handoff_text}");
    }

    let turns = world.plimsoll(&["turns", "list", "--json"]).run().expect_success().stdout_json();
    assert_eq!(turns.as_array().map(Vec::len), Some(4), "{turns:#}");
    assert!(turns.to_string().contains("cat made.txt"), "{turns:#}");
    let verified = world.plimsoll(&["turns", "verify"]).run().expect_success().stdout;
    assert!(verified.contains("intact: ") && verified.contains("4 turns"), "{verified}");
    let status = world.plimsoll(&["status", "--json"]).run().expect_success().stdout_json();
    assert_eq!(status["context"]["level"], "L2", "{status:#}");
    assert_no_errors_of_doctor(&world);

    uninstall_and_assert_settings_restored(&world);
    assert!(handoff.expect("a handoff").exists(), "uninstalling removes no records");
}

fn assert_no_errors_of_doctor(world: &World) {
    let report = world.plimsoll(&["doctor", "--json"]).run().stdout_json();
    let findings = report["findings"].as_array().expect("findings");
    let errors: Vec<&Value> = findings.iter().filter(|finding| finding["severity"] == "error").collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Runs need signals and process groups of Unix.
#[cfg(windows)]
#[test]
fn a_run_is_refused_on_windows_before_it_starts() {
    let world = World::without_git();
    let refused = world.plimsoll(&["run", "--objective", "Do the plan.", "--name", "Plan"]).run();
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("not on Windows yet"), "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    assert!(
        !world.runs_folder().exists() && !world.exists(".claude/ralph-state.json"),
        "nothing was written"
    );
}
