//! Every example of every `--help` runs as printed and does what the help says of it.
//!
//! The examples are read off the definition of the command line, so those of a new command run without a change here: in the
//! common world, where they must succeed and print or change something. An example that needs a certain state, or of which the
//! help says what it does, has a case that prepares the one and checks the other.

mod cases;
mod example_parser;
mod worlds;

use cases::{ONLY_RUNS, Shell, all_cases};
use example_parser::{Example, PLAN_LINES, Page, SETTINGS_ENTRY, pages, split_description};
use plimsoll_domain::item_area;
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use worlds::Stage;

/// The columns of a terminal that nobody has made wider.
const COLUMNS: &str = "80";

/// Returns size and time of each file of the world.
fn snapshot(world: &World) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut stamps = BTreeMap::new();
    let mut unvisited = vec![world.home(), world.project()];
    while let Some(folder) = unvisited.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.path().symlink_metadata() else { continue };
            if metadata.is_dir() {
                unvisited.push(entry.path());
            } else {
                stamps.insert(entry.path(), (metadata.len(), metadata.modified().expect("a time")));
            }
        }
    }
    stamps
}

fn run_in(shell: Shell, world: &World, script: &str) -> Finished {
    let run = |program: &str, script: &str| world.command(program, &["-c", script]).run();
    match shell {
        Shell::Sh { then } => run("sh", &format!("{script}{then}")),
        Shell::Other { program, first, then } => run(program, &format!("{first}\n{script}\n{then}")),
        Shell::Terminal { question, answer } => {
            let mut terminal = Terminal::start(world, "sh", &["-c", script], 100, 40);
            terminal.wait_for(question);
            terminal.type_text(answer);
            terminal.press_enter();
            let stdout = String::from_utf8_lossy(&terminal.all_received()).into_owned();
            let code = i32::try_from(terminal.wait_exit().exit_code()).ok();
            Finished { code, signal: None, stdout, stderr: String::new(), elapsed: Duration::ZERO }
        }
    }
}

/// Runs the examples one after another, as users try them, and names all that fail.
fn run_examples(world: &World, examples: &[Example]) {
    let failures: Vec<String> =
        examples.iter().filter_map(|example| run_example(world, example).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn run_example(world: &World, example: &Example) -> Result<(), String> {
    let Example { command, script, description } = example;
    let place = format!("plimsoll {command} --help: {script}\nThe help says: {description}");
    let case = all_cases().find(|case| case.script == script);
    if case.is_none() && !description.is_empty() {
        return Err(format!("{place}\nAdd a case to `cases.rs` that checks it."));
    }
    let case = case.unwrap_or(&ONLY_RUNS);
    (case.prepare)(world);
    let before = snapshot(world);
    let finished = run_in(case.shell, world, script);
    let is_failure =
        |line: &str| ["plimsoll: ", "error:", "sh: "].iter().any(|start| line.starts_with(start));
    let is_note = |line: &str| case.notes.iter().any(|note| line.contains(note));
    if finished.code != Some(0) || finished.stderr.lines().any(|line| is_failure(line) && !is_note(line)) {
        return Err(format!("{place}\nIt failed: {finished:?}"));
    }
    if finished.stdout.trim().is_empty() && snapshot(world) == before {
        return Err(format!("{place}\nIt prints nothing and changes nothing: {finished:?}"));
    }
    (case.check)(world, &finished).map_err(|error| format!("{place}\n{error}\n{finished:?}"))
}

/// Runs the block of a page that names this file. The world's database stays the one that is set.
fn run_block(world: &World, page: &str) -> Finished {
    let here = "sh by tests/tests/commands/help_examples/mod.rs";
    let blocks = crate::docs::blocks(page);
    let block = blocks.iter().find(|block| block.how == here).expect("a block");
    let lines = block.text.lines().filter(|line| !line.starts_with("export PLIMSOLL_DATABASE_URL="));
    let script = lines.fold("set -eu\n".to_owned(), |script, line| script + line + "\n");
    world.command("sh", &["-c", &script]).run().expect_success()
}

/// Returns the examples of a stage, each once.
fn examples_of(stage: Stage) -> Vec<Example> {
    let mut known = BTreeSet::new();
    let pages = pages();
    let examples = pages.iter().filter(|page| Stage::of(&page.command) == stage).flat_map(Page::examples);
    examples.filter(|example| known.insert(example.script.clone())).collect()
}

#[test]
fn the_first_steps_lead_to_a_run_that_completes() {
    let (world, _model) = worlds::planned();
    run_examples(&world, &examples_of(Stage::FirstSteps));
}

#[test]
fn the_examples_of_run_work_through_their_plans() {
    let (world, _model) = worlds::planned();
    run_examples(&world, &examples_of(Stage::Run));
    cases::plan_again(&world, 1);
    let finished = run_block(&world, "docs/workers.md");
    assert!(finished.stdout.contains("1 of 1 item merged"), "{finished:?}");
}

#[test]
fn the_examples_of_loops_make_a_run() {
    let (world, _model) = worlds::planned();
    run_examples(&world, &examples_of(Stage::Loop));
}

#[test]
fn the_examples_with_a_database_work_on_a_fleet() {
    let (world, _server, _model) = worlds::with_database();
    run_examples(&world, &examples_of(Stage::Database));
    cases::forget_fleet(&world);
    let finished = run_block(&world, "docs/fleet.md");
    assert!(finished.stdout.contains("2 of 2 items merged"), "{finished:?}");
}

#[test]
fn the_examples_of_all_other_commands_do_what_the_help_says() {
    let (world, _servers) = worlds::worked_in();
    let examples = examples_of(Stage::Common);
    assert!(examples.len() > 40, "{}", examples.len());
    run_examples(&world, &examples);
}

#[test]
fn every_case_belongs_to_an_example() {
    let printed: BTreeSet<String> =
        pages().iter().flat_map(Page::examples).map(|example| example.script).collect();
    let unused: Vec<&str> =
        all_cases().map(|case| case.script).filter(|script| !printed.contains(*script)).collect();
    assert!(unused.is_empty(), "no page of help has these any more: {unused:#?}");
}

/// What the help breaks into two lines nobody can copy.
#[test]
fn no_example_is_wrapped_on_a_terminal_of_80_columns() {
    let mut world = World::without_git();
    world.set_env("COLUMNS", COLUMNS);
    for page in pages() {
        let sections = page.sections();
        if sections.is_empty() {
            continue;
        }
        let words: Vec<&str> = page.command.split_whitespace().chain(["--help"]).collect();
        let help = world.plimsoll(&words).run().expect_success().stdout;
        // The list of all commands is not wrapped by clap.
        let is_narrow = help.lines().all(|line| line.chars().count() <= 80);
        assert!(is_narrow || page.command.is_empty(), "it is not wrapped at all:\n{help}");
        for line in sections.iter().flat_map(|section| &section.lines) {
            assert!(
                help.lines().any(|printed| printed == format!("  {line}")),
                "plimsoll {}: {line}\n{help}",
                page.command
            );
        }
    }
}

/// Programs without a definition of their command line in clap have no examples, which nothing would run.
#[test]
fn only_plimsoll_and_plimsoll_fleet_print_examples() {
    let world = World::without_git();
    let mut printing = BTreeSet::new();
    for entry in std::fs::read_dir(bin_dir()).expect("the programs").flatten() {
        let name = entry.file_name().display().to_string();
        // Beside them cargo keeps what each was built from.
        if !name.starts_with("plimsoll") || name.contains('.') {
            continue;
        }
        let finished = world.command(entry.path(), &["--help"]).timeout(Duration::from_secs(20)).run();
        let text = format!("{}{}", finished.stdout, finished.stderr).to_lowercase();
        if text.contains("example") || text.contains("first steps") {
            printing.insert(name);
        }
    }
    assert_eq!(printing.into_iter().collect::<Vec<_>>(), ["plimsoll", "plimsoll-fleet"]);
}

/// Returns the lines below a heading, of which there is one in the whole help.
fn lines_below(heading: &str) -> Vec<String> {
    let pages = pages();
    let found = pages.iter().flat_map(Page::sections).filter(|section| section.heading == heading);
    let mut lines: Vec<Vec<String>> = found.map(|section| section.lines).collect();
    assert_eq!(lines.len(), 1, "{heading}");
    lines.remove(0)
}

#[test]
fn the_plan_lines_of_the_help_mean_what_it_says() {
    let world = World::new();
    let lines: Vec<(String, String)> =
        lines_below(PLAN_LINES).iter().map(|line| split_description(line)).collect();
    world.write("fix_plan.md", &lines.iter().map(|(line, _)| format!("{line}\n")).collect::<String>());
    world.write_user_settings(&json!({"models": {"allowed": ["haiku"]}}));
    let plan = world.plimsoll(&["plan", "--json"]).run().expect_success();
    assert_eq!(plan.stderr, "");
    let plan = plan.json();
    let items = plan["items"].as_array().expect("items");
    assert_eq!((items.len(), &plan["warnings"]), (lines.len(), &plan["no such field"]), "{plan}");
    let fields = |name: &str| items.iter().map(|item| item[name].clone()).collect::<Vec<Value>>();
    let at = |line: usize, value: Value, other: Value| {
        (0..items.len())
            .map(|place| if place == line { value.clone() } else { other.clone() })
            .collect::<Vec<_>>()
    };
    for (line, (_, description)) in lines.iter().enumerate() {
        let (name, expected) = match line {
            0 => ("size", at(0, json!("medium"), Value::Null)),
            1 => ("after", at(1, json!([1]), json!([]))),
            // Of an area there is no field: below.
            2 => continue,
            3 => ("verify", at(3, json!("make test"), Value::Null)),
            4 => ("model", at(4, json!("haiku"), Value::Null)),
            _ => panic!("{description}: what does the plan say of it?"),
        };
        assert_eq!(fields(name), expected, "{description}");
    }
    // The sizes that the first line names.
    for size in ["trivial", "simple", "medium", "complex", "very complex"] {
        world.write("fix_plan.md", &format!("- [ ] Parse the dates ({size})\n"));
        let plan = world.plimsoll(&["plan", "--json"]).run().expect_success().json();
        assert_eq!(plan["items"][0]["size"], size, "{plan}");
    }
    // One worker at a time works in an area.
    let area = item_area::parse_item_areas(&lines[2].0);
    assert!(item_area::areas_overlap(&area, &["docs".to_owned()]), "{area:?}");
}

#[test]
fn the_settings_entry_of_the_help_starts_the_hook_with_the_usage() {
    let (world, _servers) = worlds::worked_in();
    cases::prepare_payload(&world);
    let entry: Value = serde_json::from_str(&lines_below(SETTINGS_ENTRY).concat()).expect("JSON");
    assert_eq!(entry["type"], "command");
    let command = entry["command"].as_str().expect("a command");
    let hook = world.command("sh", &["-c", command]).stdin(world.read("payload.json")).run().expect_success();
    assert_eq!((hook.stdout.as_str(), hook.stderr.as_str()), ("80\n", ""));
}
