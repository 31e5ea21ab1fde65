//! Every example of every `--help` runs as printed and does what the help says.
//!
//! The examples are read from the definition of the command line, so those of a new command run without a change here:
//! they run in the common world, where they must succeed and print or change something. An example that needs a certain
//! state, or whose effect the help describes, has a case that prepares the state and checks the effect.

mod cases;
mod example_parser;
mod worlds;

use cases::{DEFAULT_CASE, Shell, all_cases};
use example_parser::{
    Example, HelpPage, PLAN_LINES_HEADING, SETTINGS_ENTRY_HEADING, help_pages, split_description,
};
use plimsoll_domain::item_area;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use worlds::ExampleGroup;

/// Returns size and time of each file of the world.
fn file_stamps(world: &World) -> BTreeMap<PathBuf, (u64, SystemTime)> {
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

fn run_script_in(shell: Shell, world: &World, script: &str) -> FinishedProgram {
    let run = |program: &str, script: &str| world.command(program, &["-c", script]).run();
    match shell {
        Shell::Sh { then } => run("sh", &format!("{script}{then}")),
        Shell::Other { program, first, then } => run(program, &format!("{first}\n{script}\n{then}")),
        Shell::Terminal { question, answer } => {
            let mut terminal = Terminal::start_program_in_project(world, "sh", &["-c", script], 100, 40);
            terminal.wait_for_text(question);
            terminal.type_text(answer);
            terminal.press_enter();
            let stdout = String::from_utf8_lossy(&terminal.wait_for_exit_and_all_bytes()).into_owned();
            let code = i32::try_from(terminal.wait_for_exit().exit_code()).ok();
            FinishedProgram { code, signal: None, stdout, stderr: String::new(), elapsed: Duration::ZERO }
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
    let location = format!("plimsoll {command} --help: {script}\nThe help says: {description}");
    let case = all_cases().find(|case| case.script == script);
    if case.is_none() && !description.is_empty() {
        return Err(format!("{location}\nAdd a case to `cases.rs` that checks it."));
    }
    let case = case.unwrap_or(&DEFAULT_CASE);
    (case.prepare)(world);
    let before = file_stamps(world);
    let finished = run_script_in(case.shell, world, script);
    let is_failure = |line: &str| ["error: ", "error:", "sh: "].iter().any(|start| line.starts_with(start));
    let is_note = |line: &str| case.allowed_messages.iter().any(|note| line.contains(note));
    if finished.code != Some(0) || finished.stderr.lines().any(|line| is_failure(line) && !is_note(line)) {
        return Err(format!("{location}\nIt failed: {finished:?}"));
    }
    if finished.stdout.trim().is_empty() && file_stamps(world) == before {
        return Err(format!("{location}\nIt prints nothing and changes nothing: {finished:?}"));
    }
    (case.check)(world, &finished).map_err(|error| format!("{location}\n{error}\n{finished:?}"))
}

/// Runs the block of a page that names this file, with the database that the world already has.
fn run_block(world: &World, page: &str) -> FinishedProgram {
    let info_string = "sh by tests/tests/commands/help_examples/mod.rs";
    let blocks = crate::docs::code_blocks(page);
    let block = blocks.iter().find(|block| block.info_string == info_string).expect("a block");
    let lines = block.text.lines().filter(|line| !line.starts_with("export PLIMSOLL_DATABASE_URL="));
    let script = lines.fold("set -eu\n".to_owned(), |script, line| script + line + "\n");
    world.command("sh", &["-c", &script]).run().expect_success()
}

/// Returns the examples of a group, each once.
fn examples_of_group(stage: ExampleGroup) -> Vec<Example> {
    let mut seen_scripts = BTreeSet::new();
    let pages = help_pages();
    let examples = pages
        .iter()
        .filter(|page| ExampleGroup::for_command(&page.command) == stage)
        .flat_map(HelpPage::shell_examples);
    examples.filter(|example| seen_scripts.insert(example.script.clone())).collect()
}

#[test]
fn the_first_steps_lead_to_a_run_that_completes() {
    let (world, _model) = worlds::world_with_plan();
    run_examples(&world, &examples_of_group(ExampleGroup::FirstSteps));
}

#[test]
fn the_run_examples_complete_their_plans() {
    let (world, _model) = worlds::world_with_plan();
    run_examples(&world, &examples_of_group(ExampleGroup::Run));
    cases::commit_new_plan(&world, 1);
    let finished = run_block(&world, "docs/workers.md");
    assert!(finished.stdout.contains("1 of 1 item merged"), "{finished:?}");
}

#[test]
fn the_loop_examples_create_a_run() {
    let (world, _model) = worlds::world_with_plan();
    run_examples(&world, &examples_of_group(ExampleGroup::Loop));
}

#[test]
fn the_database_examples_work_on_a_fleet() {
    let (world, _server, _model) = worlds::world_with_database();
    run_examples(&world, &examples_of_group(ExampleGroup::Database));
    cases::commit_new_plan_and_forget_fleet(&world);
    let finished = run_block(&world, "docs/fleet.md");
    assert!(finished.stdout.contains("2 of 2 items merged"), "{finished:?}");
}

#[test]
fn the_examples_of_all_other_commands_do_what_the_help_says() {
    let (world, _servers) = worlds::world_with_history();
    let examples = examples_of_group(ExampleGroup::Common);
    assert!(examples.len() > 40, "{}", examples.len());
    run_examples(&world, &examples);
}

#[test]
fn every_case_belongs_to_an_example() {
    let printed: BTreeSet<String> =
        help_pages().iter().flat_map(HelpPage::shell_examples).map(|example| example.script).collect();
    let unused: Vec<&str> =
        all_cases().map(|case| case.script).filter(|script| !printed.contains(*script)).collect();
    assert!(unused.is_empty(), "no page of help has these any more: {unused:#?}");
}

/// The widths at which each help is read, and the width at which lines end on a wide terminal.
const WIDTHS: [usize; 4] = [60, 80, 120, 200];
const MAX_HELP_WIDTH: usize = 100;

/// Returns each help, with `-h` and `--help`, at this width.
fn help_texts(width: usize) -> Vec<(String, String, Vec<String>)> {
    let mut world = World::without_git();
    world.set_env("COLUMNS", width.to_string());
    let mut texts = Vec::new();
    for page in help_pages() {
        let examples: Vec<String> = page
            .copyable_sections()
            .iter()
            .flat_map(|section| section.lines.iter().map(|line| format!("  {line}")))
            .collect();
        for option in ["-h", "--help"] {
            let words: Vec<&str> = page.command.split_whitespace().chain([option]).collect();
            let text = world.plimsoll(&words).run().expect_success().stdout;
            texts.push((
                format!("plimsoll {} {option}, {width} columns", page.command),
                text,
                examples.clone(),
            ));
        }
    }
    let all = world.plimsoll(&["help", "--all"]).run().expect_success().stdout;
    texts.push((format!("plimsoll help --all, {width} columns"), all, Vec::new()));
    texts
}

/// Returns the column at which the text of a line begins, behind the name of an option or a command.
fn text_column(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    line[indent..].find("  ").map_or(indent, |gap| {
        let gap = indent + gap;
        line.len() - line[gap..].trim_start().len()
    })
}

/// Returns true if the text of `line` goes on in `next` although its first word would have fit. A list item begins anew.
fn is_broken_too_early(line: &str, next: &str, width: usize) -> bool {
    let is_entry = |text: &str| text.starts_with('-') || text.starts_with('[') || text.starts_with('<');
    let Some(first_word) = next.split_whitespace().next() else { return false };
    let is_continuation =
        text_column(line) == next.len() - next.trim_start().len() && !is_entry(next.trim_start());
    !line.trim().is_empty()
        && is_continuation
        && line.chars().count() + 1 + first_word.chars().count() <= width
}

#[test]
fn each_help_is_wrapped_once_at_the_width_of_the_terminal() {
    for width in WIDTHS {
        let is_wide = width >= MAX_HELP_WIDTH;
        let width = width.min(MAX_HELP_WIDTH);
        for (name, text, examples) in help_texts(width) {
            let is_example = |line: &&str| examples.iter().any(|example| example == line);
            assert!(!text.contains('\u{a0}'), "{name}: {text}");
            // The short help of some commands has fewer examples.
            if name.contains("--help,") {
                for example in &examples {
                    assert!(text.lines().any(|line| line == example), "{name}: {example}\n{text}");
                }
            }
            let lines: Vec<&str> = text.lines().filter(|line| !is_example(line)).collect();
            for line in &lines {
                // A usage is one line, as clap prints it.
                let may_be_long = line.starts_with("Usage: ");
                assert!(may_be_long || line.chars().count() <= width, "{name}: {line}\n{text}");
            }
            for pair in text.lines().collect::<Vec<_>>().windows(2) {
                let has_example = pair.iter().any(is_example);
                let has_heading = pair[0].ends_with(':') && pair[1].starts_with("  ");
                assert!(
                    has_example || has_heading || !is_broken_too_early(pair[0], pair[1], width),
                    "{name}: {pair:?}\n{text}"
                );
            }
            if is_wide && name.contains(" -h,") {
                let wrapped_row = lines.iter().find(|line| line.starts_with("          "));
                assert_eq!(wrapped_row, None, "{name}: each command and option takes one line\n{text}");
            }
        }
    }
}

#[test]
fn a_sentence_that_the_source_breaks_is_noticed() {
    assert!(is_broken_too_early("The machines have what is on the", "remote.", 80));
    assert!(!is_broken_too_early("The machines have what is on the", "remote.", 36));
    assert!(is_broken_too_early("  7    everything waits for", "       an answer", 80));
    assert!(!is_broken_too_early("  init    Set up", "  doctor  Check", 80));
}

/// Programs that do not define their command line in clap must have no examples, because nothing would run them.
#[test]
fn only_plimsoll_and_plimsoll_fleet_print_examples() {
    let world = World::without_git();
    let mut printing = BTreeSet::new();
    for entry in std::fs::read_dir(find_or_build_bin_dir()).expect("the programs").flatten() {
        let name = entry.file_name().display().to_string();
        // Cargo keeps its build files beside the programs.
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

/// Returns the lines below a heading that occurs once in the whole help.
fn lines_below(heading: &str) -> Vec<String> {
    let pages = help_pages();
    let found =
        pages.iter().flat_map(HelpPage::copyable_sections).filter(|section| section.heading == heading);
    let mut lines: Vec<Vec<String>> = found.map(|section| section.lines).collect();
    assert_eq!(lines.len(), 1, "{heading}");
    lines.remove(0)
}

#[test]
fn the_plan_lines_in_the_help_parse_as_described() {
    let world = World::new();
    let lines: Vec<(String, String)> =
        lines_below(PLAN_LINES_HEADING).iter().map(|line| split_description(line)).collect();
    world.write("fix_plan.md", &lines.iter().map(|(line, _)| format!("{line}\n")).collect::<String>());
    world.write_plimsoll_user_settings(&json!({"models": {"allowed": ["haiku"]}}));
    let plan = world.plimsoll(&["plan", "--json"]).run().expect_success();
    assert_eq!(plan.stderr, "");
    let plan = plan.stdout_json();
    let items = plan["items"].as_array().expect("items");
    assert_eq!((items.len(), &plan["warnings"]), (lines.len(), &plan["no such field"]), "{plan}");
    let fields = |name: &str| items.iter().map(|item| item[name].clone()).collect::<Vec<Value>>();
    let values_with_one_at = |line: usize, value: Value, rest: Value| {
        (0..items.len())
            .map(|place| if place == line { value.clone() } else { rest.clone() })
            .collect::<Vec<_>>()
    };
    for (line, (_, description)) in lines.iter().enumerate() {
        let (name, expected) = match line {
            0 => ("size", values_with_one_at(0, json!("medium"), Value::Null)),
            1 => ("after", values_with_one_at(1, json!([1]), json!([]))),
            // An area has no field; it is checked below.
            2 => continue,
            3 => ("verify", values_with_one_at(3, json!("make test"), Value::Null)),
            4 => ("model", values_with_one_at(4, json!("haiku"), Value::Null)),
            _ => panic!("{description}: what does the plan say of it?"),
        };
        assert_eq!(fields(name), expected, "{description}");
    }
    // The sizes that the first line lists are all understood.
    for size in ["trivial", "simple", "medium", "complex", "very complex"] {
        world.write("fix_plan.md", &format!("- [ ] Parse the dates ({size})\n"));
        let plan = world.plimsoll(&["plan", "--json"]).run().expect_success().stdout_json();
        assert_eq!(plan["items"][0]["size"], size, "{plan}");
    }
    // One worker at a time works in an area.
    let area = item_area::parse_item_areas(&lines[2].0);
    assert!(item_area::areas_overlap(&area, &["docs".to_owned()]), "{area:?}");
}

#[test]
fn the_settings_entry_in_the_help_passes_the_usage_to_the_hook() {
    let (world, _servers) = worlds::world_with_history();
    cases::write_payload_and_hook(&world);
    let entry: Value = serde_json::from_str(&lines_below(SETTINGS_ENTRY_HEADING).concat()).expect("JSON");
    assert_eq!(entry["type"], "command");
    let command = entry["command"].as_str().expect("a command");
    let hook = world.command("sh", &["-c", command]).stdin(world.read("payload.json")).run().expect_success();
    assert_eq!((hook.stdout.as_str(), hook.stderr.as_str()), ("80\n", ""));
}
