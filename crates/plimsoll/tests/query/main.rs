//! Tests of `plimsoll query`: a table of filters and results that every engine must match, and the behavior
//! of the command.

mod paragraphs;
mod query_behavior;

use paragraphs::{Paragraph, parse_paragraphs};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use std::path::PathBuf;

const STATE: &str = include_str!("state.json");
const JOURNAL: &str = include_str!("journal.jsonl");
const RESULTS_TABLE: &str = include_str!("table.txt");
const ENGINE_DIFFERENCES: &str = include_str!("differences.txt");
const VARIABLE_ARGUMENTS: [&str; 9] =
    ["--arg", "name", "a \"b\"", "--argjson", "number", "41", "--argjson", "list", "[1,{\"x\":null}]"];

/// The engine that runs the filters. The second one exists only if these tests are built with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Jaq,
    Libjq,
}

const ENGINES: &[Engine] =
    if cfg!(feature = "libjq") { &[Engine::Jaq, Engine::Libjq] } else { &[Engine::Jaq] };

/// Creates a project in the middle of a run.
fn create_world() -> World {
    let world = World::without_git().without_plimsoll_programs();
    world.write(".claude/ralph-state.json", STATE);
    world.write(".claude/plimsoll/journal.jsonl", JOURNAL);
    world
}

/// Returns the released program if there is one. The second engine is only in the program that is built with
/// these tests.
fn program_path(engine: Engine) -> PathBuf {
    let has_released_program = plimsoll_store::environment::variable("PLIMSOLL_BIN_DIR").is_some();
    match engine {
        Engine::Jaq if has_released_program => find_or_build_bin_dir().join("plimsoll"),
        _ => PathBuf::from(env!("CARGO_BIN_EXE_plimsoll")),
    }
}

fn run_query(world: &World, arguments: &[&str]) -> FinishedProgram {
    run_query_with_engine(world, Engine::Jaq, arguments)
}

fn run_query_with_engine(world: &World, engine: Engine, arguments: &[&str]) -> FinishedProgram {
    let command: &[&str] = if engine == Engine::Libjq { &["query", "--engine", "libjq"] } else { &["query"] };
    world.command(program_path(engine), &[command, arguments].concat()).run()
}

/// Returns one result per line, and the exit code if it is not 0.
fn query_results(world: &World, engine: Engine, paragraph: &Paragraph) -> Vec<String> {
    let options: Vec<&str> = paragraph.options.split(' ').flat_map(document_option).collect();
    let finished = run_query_with_engine(
        world,
        engine,
        &[&["-c"], options.as_slice(), &VARIABLE_ARGUMENTS, &[paragraph.filter]].concat(),
    );
    let mut results: Vec<String> = finished.stdout.lines().map(str::to_owned).collect();
    results.extend(finished.code.filter(|code| *code != 0).map(|code| format!("exit {code}")));
    results
}

fn document_option(word: &str) -> Vec<&str> {
    if word.starts_with('-') { vec![word] } else { vec!["--on", word] }
}

fn assert_no_differences(differences: &[String]) {
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn all_engines_give_the_same_results() {
    let (world, table) = (create_world(), parse_paragraphs(RESULTS_TABLE));
    assert!(table.len() >= 70, "{}", table.len());
    let mut differences = Vec::new();
    for engine in ENGINES {
        for paragraph in &table {
            let results = query_results(&world, *engine, paragraph);
            if results != paragraph.expected_lines {
                differences.push(format!("{engine:?} {paragraph}\nbut\n{}", results.join("\n")));
            }
        }
    }
    assert_no_differences(&differences);
}

#[test]
fn known_differences_between_the_engines_are_exact() {
    let world = create_world();
    let mut differences = Vec::new();
    for engine in ENGINES {
        let prefix = if *engine == Engine::Jaq { "jaq   " } else { "libjq " };
        for paragraph in &parse_paragraphs(ENGINE_DIFFERENCES) {
            let expected: Vec<&str> =
                paragraph.expected_lines.iter().filter_map(|line| line.strip_prefix(prefix)).collect();
            let results = query_results(&world, *engine, paragraph);
            if results != expected {
                differences.push(format!("{engine:?} {paragraph}\nbut\n{}", results.join("\n")));
            }
        }
    }
    assert_no_differences(&differences);
}
