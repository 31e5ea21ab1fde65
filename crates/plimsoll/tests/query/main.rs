//! `plimsoll query`: one table of filters and answers that each engine is held to, and what the command makes of
//! them.

mod paragraphs;
mod query_behavior;

use paragraphs::{Paragraph, read};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::{Finished, World};
use std::path::PathBuf;

const STATE: &str = include_str!("state.json");
const JOURNAL: &str = include_str!("journal.jsonl");
const TABLE: &str = include_str!("table.txt");
const DIFFERENCES: &str = include_str!("differences.txt");
const VARIABLES: [&str; 9] =
    ["--arg", "name", "a \"b\"", "--argjson", "number", "41", "--argjson", "list", "[1,{\"x\":null}]"];

/// What runs the filters. The second is only there if these tests are built with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Jaq,
    Libjq,
}

const ENGINES: &[Engine] =
    if cfg!(feature = "libjq") { &[Engine::Jaq, Engine::Libjq] } else { &[Engine::Jaq] };

/// A project in the middle of its night.
fn world() -> World {
    let world = World::without_git().without_plimsoll();
    world.write(".claude/ralph-state.json", STATE);
    world.write(".claude/plimsoll/journal.jsonl", JOURNAL);
    world
}

/// The program that users get, where there is one; the second engine is only in the program that is built with
/// these tests.
fn program(engine: Engine) -> PathBuf {
    let has_release = plimsoll_store::environment::variable("PLIMSOLL_BIN_DIR").is_some();
    match engine {
        Engine::Jaq if has_release => bin_dir().join("plimsoll"),
        _ => PathBuf::from(env!("CARGO_BIN_EXE_plimsoll")),
    }
}

fn query(world: &World, arguments: &[&str]) -> Finished {
    query_with(world, Engine::Jaq, arguments)
}

fn query_with(world: &World, engine: Engine, arguments: &[&str]) -> Finished {
    let choice: &[&str] = if engine == Engine::Libjq { &["query", "--engine", "libjq"] } else { &["query"] };
    world.command(program(engine), &[choice, arguments].concat()).run()
}

/// An answer a line, and the exit code where it is not 0.
fn answers(world: &World, engine: Engine, paragraph: &Paragraph) -> Vec<String> {
    let given: Vec<&str> = paragraph.given.split(' ').flat_map(option).collect();
    let finished =
        query_with(world, engine, &[&["-c"], given.as_slice(), &VARIABLES, &[paragraph.filter]].concat());
    let mut answers: Vec<String> = finished.stdout.lines().map(str::to_owned).collect();
    answers.extend(finished.code.filter(|code| *code != 0).map(|code| format!("exit {code}")));
    answers
}

fn option(word: &str) -> Vec<&str> {
    if word.starts_with('-') { vec![word] } else { vec!["--on", word] }
}

fn assert_alike(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_engines_answer_alike() {
    let (world, table) = (world(), read(TABLE));
    assert!(table.len() >= 70, "{}", table.len());
    let mut wrong = Vec::new();
    for engine in ENGINES {
        for paragraph in &table {
            let found = answers(&world, *engine, paragraph);
            if found != paragraph.lines {
                wrong.push(format!("{engine:?} {paragraph}\nbut\n{}", found.join("\n")));
            }
        }
    }
    assert_alike(&wrong);
}

#[test]
fn where_the_engines_differ_is_known() {
    let world = world();
    let mut wrong = Vec::new();
    for engine in ENGINES {
        let name = if *engine == Engine::Jaq { "jaq   " } else { "libjq " };
        for paragraph in &read(DIFFERENCES) {
            let expected: Vec<&str> =
                paragraph.lines.iter().filter_map(|line| line.strip_prefix(name)).collect();
            let found = answers(&world, *engine, paragraph);
            if found != expected {
                wrong.push(format!("{engine:?} {paragraph}\nbut\n{}", found.join("\n")));
            }
        }
    }
    assert_alike(&wrong);
}
