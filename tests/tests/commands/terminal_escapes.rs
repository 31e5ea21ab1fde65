//! Whatever stands in a project's files: what our commands print never steers the terminal. Every command is run, with and
//! without a terminal, over a project whose every string is hostile.

use crate::commands_in;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::hostile::{HOSTILE, SESSION, project, spoil_settings, steers};
use std::collections::BTreeSet;

/// Each command with the ways in which it is run; a new one must be named here.
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
    ("uninstall", &["--dry-run", "--project --dry-run"]),
    // Last: it ends the run.
    ("stop", &["--yes"]),
];

/// Options that make another page of a command.
const MODES: &[(&str, &[&str])] =
    &[("log --why", &["", "level", "verdict", "checkpoint", "fault", "HOSTILE", "owned", "no_such_event"])];

const FLEET: &str = "it needs a database: `fleet/hostile_database.rs` has one";

/// These are run in another way, or print what another program says.
const APART: &[(&str, &str)] = &[
    ("demo", "it makes a project of its own; what it prints goes through the same door"),
    ("fleet answer", FLEET),
    ("fleet create", FLEET),
    ("fleet drain", FLEET),
    ("fleet forget", FLEET),
    ("fleet join", "it works on a fleet: `runs/fleet_join.rs` has one"),
    ("fleet log", FLEET),
    ("fleet reopen", FLEET),
    ("fleet report", FLEET),
    ("fleet resume", FLEET),
    ("fleet status", FLEET),
    ("fleet stop", FLEET),
    ("statusline edit", "a whole screen: below"),
    ("with-context", "it hands its own standard output to the program that it is told to run"),
];

/// What is handed to other programs byte for byte where no terminal reads it: on a terminal it is clean, too.
const DATA: &[&str] = &["query", "report", "start", "turns export"];

/// What shows words of the project, also where the settings are at fault.
const SHOWING: &[&str] = &[
    "doctor",
    "log",
    "log --why",
    "memory history",
    "memory show",
    "plan",
    "query",
    "status",
    "statusline explain",
    "turns export",
    "turns grep",
    "turns list",
    "turns show",
];

/// What shows a foreign text of several lines as such, below a heading or between the tags of a chunk.
const WHOLE_TEXTS: &[&str] = &["memory show", "turns show"];

/// The commands that have no commands of their own, from our own help.
fn commands_of_help(world: &World, of: &[&str]) -> BTreeSet<String> {
    let words = if of.is_empty() { &["--all"] } else { of };
    let help = world.plimsoll(&[&["help"], words].concat()).run().expect_success().stdout;
    let names = commands_in(&help);
    if names.is_empty() {
        return BTreeSet::from([of.join(" ")]);
    }
    names.iter().flat_map(|name| commands_of_help(world, &[of, &[name.as_str()]].concat())).collect()
}

fn arguments<'a>(command: &'a str, how: &'a str) -> Vec<String> {
    command
        .split(' ')
        .chain(how.split(' ').filter(|word| !word.is_empty()))
        .map(|word| word.replace("HOSTILE", HOSTILE))
        .collect()
}

/// Every way to run every command, and its JSON where it has some.
fn calls(world: &World) -> Vec<(&'static str, Vec<String>)> {
    let mut calls = Vec::new();
    for (command, ways) in MODES.iter().chain(COMMANDS) {
        let names = command.split(' ').filter(|word| !word.starts_with('-'));
        let words: Vec<&str> = ["help"].into_iter().chain(names).collect();
        let has_json = world.plimsoll(&words).run().stdout.contains("--json") && *command != "run";
        for way in *ways {
            calls.push((*command, arguments(command, way)));
            if has_json && !way.contains("--raw") {
                calls.push((*command, arguments(command, &format!("{way} --json"))));
            }
        }
    }
    calls
}

fn as_strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Colours of ours are taken out, and the terminal's own line ends.
fn without_colours(text: &str) -> String {
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

fn lookalikes(world: &World) {
    world.write("lookalikes.md", &format!("1. first {HOSTILE}\n2. second\n"));
}

#[test]
fn every_command_is_looked_at() {
    let world = World::new();
    let named: BTreeSet<String> = COMMANDS
        .iter()
        .map(|(name, _)| *name)
        .chain(APART.iter().map(|(name, _)| *name))
        .map(str::to_owned)
        .collect();
    assert_eq!(commands_of_help(&world, &[]), named);
}

#[test]
fn no_command_hands_foreign_control_characters_to_a_pipe() {
    for is_spoilt in [false, true] {
        let world = project();
        lookalikes(&world);
        if is_spoilt {
            spoil_settings(&world);
        }
        let mut shown = BTreeSet::new();
        for (command, words) in calls(&world) {
            let finished = world.plimsoll(&as_strs(&words)).stdin("").run();
            let is_data = DATA.contains(&command);
            assert!(is_data || !steers(&finished.stdout), "{words:?}: {:?}", finished.stdout);
            assert!(!steers(&finished.stderr), "{words:?}: {:?}", finished.stderr);
            let may_forge = is_data || WHOLE_TEXTS.contains(&command);
            let forged = |text: &str| {
                text.lines().any(|line| line.starts_with("## Instr") || line.starts_with("[x ends"))
            };
            assert!(
                may_forge || !forged(&finished.stdout),
                "{words:?}: a line that is not ours:\n{}",
                finished.stdout
            );
            assert!(!forged(&finished.stderr), "{words:?}: a line that is not ours:\n{}", finished.stderr);
            if words.contains(&"--json".to_owned()) && !finished.stdout.is_empty() {
                let is_json = serde_json::from_str::<serde_json::Value>(&finished.stdout).is_ok();
                assert!(is_json, "{words:?}: {}", finished.stdout);
            }
            if finished.stdout.contains("owned") || finished.stderr.contains("owned") {
                shown.insert(command);
            }
        }
        // What is not shown at all cannot steer: these must have met the hostile words.
        let silent: Vec<_> = SHOWING.iter().filter(|command| !shown.contains(**command)).collect();
        assert!(
            silent.is_empty(),
            "spoilt settings: {is_spoilt}; these did not show the words: {silent:?}\n{shown:?}"
        );
    }
}

#[test]
fn no_command_hands_foreign_control_characters_to_a_terminal() {
    for is_spoilt in [false, true] {
        let mut world = project();
        lookalikes(&world);
        // In colours, too.
        world.set_env("TERM", "xterm-256color");
        world.set_env("COLUMNS", "100");
        if is_spoilt {
            spoil_settings(&world);
        }
        let program = plimsoll_testkit::bin_dir().join("plimsoll");
        for (_, words) in
            calls(&world).into_iter().filter(|(command, _)| !matches!(*command, "gate" | "monitor"))
        {
            let mut terminal = Terminal::start(&world, &program, &as_strs(&words), 100, 30);
            let bytes = terminal.all_received();
            let text = without_colours(&String::from_utf8_lossy(&bytes));
            assert!(!steers(&text), "{words:?}: {text:?}");
        }
    }
}

/// A whole screen is painted with escape sequences; of the foreign ones none may be among them.
fn foreign_on_screen(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let without = without_colours(&text);
    let steering = |text: &str| {
        let others: String = text.chars().filter(|letter| !"\u{1b}\r\u{8}".contains(*letter)).collect();
        steers(&others) || text.contains("\u{1b}]")
    };
    steering(&without).then_some(text)
}

#[test]
fn no_whole_screen_shows_them() {
    let mut world = project();
    world.set_env("TERM", "xterm-256color");
    let program = plimsoll_testkit::bin_dir().join("plimsoll");
    for (words, shows) in [(&["status", "--watch"][..], "owned"), (&["statusline", "edit"], "model")] {
        let mut terminal = Terminal::start(&world, &program, words, 120, 40);
        terminal.wait_for(shows);
        terminal.type_text("q");
        let bytes = terminal.all_received();
        assert_eq!(foreign_on_screen(&bytes), None, "{words:?}");
    }
}

#[test]
fn a_followed_log_never_steers() {
    let world = project();
    let mut running = world.plimsoll(&["log", "--follow"]).spawn();
    world.wait_until(|| running.stdout_so_far().contains("owned"), "a first line");
    running.kill();
    assert!(!steers(&running.stdout_so_far()), "{:?}", running.stdout_so_far());
}

#[test]
fn the_status_line_and_the_hooks_complaints_show_everything() {
    let world = project();
    let payload = serde_json::json!({"session_id": SESSION, "cwd": world.project(), "model": {"id": HOSTILE, "display_name": HOSTILE},
        "workspace": {"current_dir": world.project(), "project_dir": world.project()}, "version": HOSTILE,
        "output_style": {"name": HOSTILE}, "effort": {"level": HOSTILE}});
    let line = world.hook("plimsoll-statusline", &payload).run();
    assert!(!steers(&without_colours(&line.stdout)) && line.stdout.contains("owned"), "{line:?}");
    assert!(!steers(&line.stderr), "{line:?}");
    spoil_settings(&world);
    let start = serde_json::json!({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup", "cwd": world.project()});
    let hook = world.hook("plimsoll-session-start", &start).run();
    assert!(!steers(&hook.stderr), "{hook:?}");
}
