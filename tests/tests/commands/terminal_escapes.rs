//! Text in a project's files cannot control the terminal through the output of our commands. Every command runs, with and without a
//! terminal, in a project in which every string is hostile.

use crate::commands_listed_in_help;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::hostile::{
    HOSTILE_TEXT, SESSION_ID, has_hidden_or_control_characters, hostile_project, write_hostile_settings,
};
use std::collections::BTreeSet;

/// Each command with the argument lists that are tested. A new command must be added here.
const COMMANDS: &[(&str, &[&str])] = &[
    ("checkpoint", &["", "--summary S"]),
    ("doctor", &["", "--client HOSTILE"]),
    ("gate", &[""]),
    ("generate completions", &["bash"]),
    ("generate man", &["", "log"]),
    ("generate schema", &[""]),
    ("handoffs", &["", "--continue"]),
    ("init", &["--local --dry-run"]),
    ("linear check", &[""]),
    ("linear sync", &["", "--dry-run"]),
    ("log", &["", "-n 3"]),
    ("memory alloc", &["HOSTILE x --description HOSTILE"]),
    ("memory frame close", &[""]),
    ("memory free", &["HOSTILE"]),
    ("memory history", &[""]),
    ("memory set", &["HOSTILE x", "R4 HOSTILE"]),
    ("memory show", &[""]),
    ("memory write", &["HOSTILE x", "chunk HOSTILE"]),
    ("monitor", &[""]),
    ("plan", &["", "--todo HOSTILE", "--fix --yes", "--fix --yes --todo lookalikes.md"]),
    ("prompt", &[""]),
    ("prune", &["--older-than 30d --dry-run"]),
    (
        "query",
        &[".", "-c .", "--on journal .", "--on memory .", "--on turns -c .", "HOSTILE", "error(\"HOSTILE\")"],
    ),
    ("report", &["", "--run HOSTILE"]),
    ("run", &["--objective x --client /nonexistent/HOSTILE", "--resume --client /nonexistent/HOSTILE"]),
    ("sessions", &["", "--search owned", "--search HOSTILE"]),
    ("start", &["--objective HOSTILE --name HOSTILE"]),
    ("status", &["", "--markdown", "--answer 1 HOSTILE", "--answer HOSTILE x"]),
    ("statusline explain", &[""]),
    ("turns erase", &["2 --reason HOSTILE", "HOSTILE"]),
    ("turns export", &["--format html", "--format jsonl", "--format otel"]),
    ("turns grep", &["owned", "HOSTILE"]),
    ("turns list", &["", "--all-streams"]),
    ("turns show", &["1", "record:1", "HOSTILE", "1 --raw"]),
    ("turns stats", &[""]),
    ("turns sync", &["", "HOSTILE"]),
    ("turns verify", &[""]),
    ("usage", &["", "daily", "blocks", "models", "projects", "runs"]),
    ("uninstall", &["--dry-run", "--project --dry-run"]),
    // Last: it ends the run.
    ("stop", &["--yes"]),
];

/// Options with which a command prints something else, with the argument lists that are tested.
const COMMAND_MODES: &[(&str, &[&str])] =
    &[("log --why", &["", "level", "verdict", "checkpoint", "fault", "HOSTILE", "owned", "no_such_event"])];

const NEEDS_A_DATABASE: &str = "it needs a database: `fleet/hostile_database.rs` has one";

/// Commands that other tests run, or that print the output of another program, with the reason.
const TESTED_ELSEWHERE: &[(&str, &str)] = &[
    ("context", "it prints one JSON object for the module: `module_answers.rs` has it"),
    ("demo", "it makes a project of its own; what it prints goes through the same door"),
    ("fleet answer", NEEDS_A_DATABASE),
    ("fleet create", NEEDS_A_DATABASE),
    ("fleet drain", NEEDS_A_DATABASE),
    ("fleet forget", NEEDS_A_DATABASE),
    ("fleet join", "it works on a fleet: `runs/fleet_join.rs` has one"),
    ("fleet log", NEEDS_A_DATABASE),
    ("fleet reopen", NEEDS_A_DATABASE),
    ("fleet report", NEEDS_A_DATABASE),
    ("fleet resume", NEEDS_A_DATABASE),
    ("fleet status", NEEDS_A_DATABASE),
    ("fleet stop", NEEDS_A_DATABASE),
    ("statusline edit", "a whole screen: below"),
    ("with-context", "it hands its own standard output to the program that it is told to run"),
];

/// Commands whose output is data for other programs. It is escaped only on a terminal.
const RAW_DATA_COMMANDS: &[&str] = &["query", "report", "start", "turns export"];

/// Commands that show text of the project, even if the settings are invalid.
const COMMANDS_SHOWING_PROJECT_TEXT: &[&str] = &[
    "doctor",
    "log",
    "log --why",
    "memory history",
    "memory show",
    "plan",
    "query",
    "sessions",
    "status",
    "statusline explain",
    "turns export",
    "turns grep",
    "turns list",
    "turns show",
    "usage",
];

/// Commands that print foreign text of several lines unchanged, below a heading or between the tags of a chunk.
const MULTILINE_TEXT_COMMANDS: &[&str] = &["memory show", "turns show"];

/// Returns the commands without subcommands, according to our help.
fn leaf_commands_of_help(world: &World, parent: &[&str]) -> BTreeSet<String> {
    let words = if parent.is_empty() { &["--all"] } else { parent };
    let help = world.plimsoll(&[&["help"], words].concat()).run().expect_success().stdout;
    let names = commands_listed_in_help(&help);
    if names.is_empty() {
        return BTreeSet::from([parent.join(" ")]);
    }
    names.iter().flat_map(|name| leaf_commands_of_help(world, &[parent, &[name.as_str()]].concat())).collect()
}

fn build_arguments<'a>(command: &'a str, options: &'a str) -> Vec<String> {
    command
        .split(' ')
        .chain(options.split(' ').filter(|word| !word.is_empty()))
        .map(|word| word.replace("HOSTILE", HOSTILE_TEXT))
        .collect()
}

/// Returns every argument list of every command, also with `--json` if the command has that option.
fn all_command_lines(world: &World) -> Vec<(&'static str, Vec<String>)> {
    let mut calls = Vec::new();
    for (command, ways) in COMMAND_MODES.iter().chain(COMMANDS) {
        let names = command.split(' ').filter(|word| !word.starts_with('-'));
        let words: Vec<&str> = ["help"].into_iter().chain(names).collect();
        let has_json = world.plimsoll(&words).run().stdout.contains("--json") && *command != "run";
        for way in *ways {
            calls.push((*command, build_arguments(command, way)));
            if has_json && !way.contains("--raw") {
                calls.push((*command, build_arguments(command, &format!("{way} --json"))));
            }
        }
    }
    calls
}

fn to_str_slices(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Removes color sequences and normalizes the terminal's line ends.
fn strip_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'));
        match end.filter(|end| part[*end..].starts_with('m')) {
            Some(end) => plain.push_str(&part[end + 1..]),
            None => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain.replace("\r\n", "\n")
}

fn write_lookalike_plan(world: &World) {
    world.write("lookalikes.md", &format!("1. first {HOSTILE_TEXT}\n2. second\n"));
}

#[test]
fn every_command_of_the_help_is_covered_here() {
    let world = World::new();
    let named: BTreeSet<String> = COMMANDS
        .iter()
        .map(|(name, _)| *name)
        .chain(TESTED_ELSEWHERE.iter().map(|(name, _)| *name))
        .map(str::to_owned)
        .collect();
    assert_eq!(leaf_commands_of_help(&world, &[]), named);
}

#[test]
fn no_command_prints_foreign_control_characters_to_a_pipe() {
    for has_invalid_settings in [false, true] {
        let world = hostile_project();
        write_lookalike_plan(&world);
        if has_invalid_settings {
            write_hostile_settings(&world);
        }
        let mut shown = BTreeSet::new();
        for (command, words) in all_command_lines(&world) {
            let finished = world.plimsoll(&to_str_slices(&words)).stdin("").run();
            let is_data = RAW_DATA_COMMANDS.contains(&command);
            assert!(
                is_data || !has_hidden_or_control_characters(&finished.stdout),
                "{words:?}: {:?}",
                finished.stdout
            );
            assert!(!has_hidden_or_control_characters(&finished.stderr), "{words:?}: {:?}", finished.stderr);
            let may_forge = is_data || MULTILINE_TEXT_COMMANDS.contains(&command);
            let has_forged_line = |text: &str| {
                text.lines().any(|line| line.starts_with("## Instr") || line.starts_with("[x ends"))
            };
            assert!(
                may_forge || !has_forged_line(&finished.stdout),
                "{words:?}: a line that is not ours:\n{}",
                finished.stdout
            );
            assert!(
                !has_forged_line(&finished.stderr),
                "{words:?}: a line that is not ours:\n{}",
                finished.stderr
            );
            if words.contains(&"--json".to_owned()) && !finished.stdout.is_empty() {
                let is_json = serde_json::from_str::<serde_json::Value>(&finished.stdout).is_ok();
                assert!(is_json, "{words:?}: {}", finished.stdout);
            }
            if finished.stdout.contains("owned") || finished.stderr.contains("owned") {
                shown.insert(command);
            }
        }
        // The checks above prove nothing for a command that did not print hostile text, so these commands must have printed some.
        let not_shown: Vec<_> =
            COMMANDS_SHOWING_PROJECT_TEXT.iter().filter(|command| !shown.contains(**command)).collect();
        assert!(
            not_shown.is_empty(),
            "spoilt settings: {has_invalid_settings}; these did not show the words: {not_shown:?}\n{shown:?}"
        );
    }
}

#[test]
fn no_command_prints_foreign_control_characters_to_a_terminal() {
    for has_invalid_settings in [false, true] {
        let mut world = hostile_project();
        write_lookalike_plan(&world);
        // With colors, too.
        world.set_env("TERM", "xterm-256color");
        world.set_env("COLUMNS", "100");
        if has_invalid_settings {
            write_hostile_settings(&world);
        }
        let program = plimsoll_testkit::find_or_build_bin_dir().join("plimsoll");
        for (_, words) in all_command_lines(&world)
            .into_iter()
            .filter(|(command, _)| !matches!(*command, "gate" | "monitor"))
        {
            let mut terminal =
                Terminal::start_program_in_project(&world, &program, &to_str_slices(&words), 100, 30);
            let bytes = terminal.wait_for_exit_and_all_bytes();
            let text = strip_colors(&String::from_utf8_lossy(&bytes));
            assert!(!has_hidden_or_control_characters(&text), "{words:?}: {text:?}");
        }
    }
}

/// Returns the output of a full-screen program if it has an escape sequence that is not its own.
fn foreign_escape_on_screen(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let without_colors = strip_colors(&text);
    let has_foreign_escape = |text: &str| {
        let others: String = text.chars().filter(|letter| !"\u{1b}\r\u{8}".contains(*letter)).collect();
        has_hidden_or_control_characters(&others) || text.contains("\u{1b}]")
    };
    has_foreign_escape(&without_colors).then_some(text)
}

#[test]
fn full_screen_commands_show_no_foreign_escape_sequences() {
    let mut world = hostile_project();
    world.set_env("TERM", "xterm-256color");
    let program = plimsoll_testkit::find_or_build_bin_dir().join("plimsoll");
    for (words, expected_text) in [(&["status", "--watch"][..], "owned"), (&["statusline", "edit"], "model")]
    {
        let mut terminal = Terminal::start_program_in_project(&world, &program, words, 120, 40);
        terminal.wait_for_text(expected_text);
        terminal.type_text("q");
        let bytes = terminal.wait_for_exit_and_all_bytes();
        assert_eq!(foreign_escape_on_screen(&bytes), None, "{words:?}");
    }
}

#[test]
fn log_follow_prints_no_foreign_control_characters() {
    let world = hostile_project();
    let mut running = world.plimsoll(&["log", "--follow"]).spawn();
    world.wait_until(|| running.stdout_so_far().contains("owned"), "a first line");
    running.kill();
    assert!(!has_hidden_or_control_characters(&running.stdout_so_far()), "{:?}", running.stdout_so_far());
}

#[test]
fn status_line_and_hook_errors_have_no_foreign_control_characters() {
    let world = hostile_project();
    let payload = serde_json::json!({"session_id": SESSION_ID, "cwd": world.project(), "model": {"id": HOSTILE_TEXT, "display_name": HOSTILE_TEXT},
        "workspace": {"current_dir": world.project(), "project_dir": world.project()}, "version": HOSTILE_TEXT,
        "output_style": {"name": HOSTILE_TEXT}, "effort": {"level": HOSTILE_TEXT}});
    let line = world.hook("plimsoll-statusline", &payload).run();
    assert!(
        !has_hidden_or_control_characters(&strip_colors(&line.stdout)) && line.stdout.contains("owned"),
        "{line:?}"
    );
    assert!(!has_hidden_or_control_characters(&line.stderr), "{line:?}");
    write_hostile_settings(&world);
    let start = serde_json::json!({"session_id": SESSION_ID, "hook_event_name": "SessionStart", "source": "startup", "cwd": world.project()});
    let hook = world.hook("plimsoll-session-start", &start).run();
    assert!(!has_hidden_or_control_characters(&hook.stderr), "{hook:?}");
}
