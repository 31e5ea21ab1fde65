use crate::commands_in;
use plimsoll_testkit::world::{Finished, World};
use std::collections::BTreeSet;

fn visit(world: &World, words: &[&str], seen: &mut Vec<String>) {
    let arguments = if words.is_empty() { vec!["help", "--all"] } else { [words, &["--help"]].concat() };
    let finished = world.plimsoll(&arguments).run().expect_success();
    if !words.is_empty() {
        let other_form = world.plimsoll(&[&["help"], words].concat()).run().expect_success();
        assert_eq!(other_form.stdout, finished.stdout, "{words:?}");
    }
    let name = ["plimsoll"].iter().chain(words).copied().collect::<Vec<_>>();
    let usage = format!("Usage: {}", name.join(" "));
    assert!(finished.stdout.contains(&usage) && finished.stderr.is_empty(), "{usage}: {finished:?}");
    seen.push(name.join("-"));
    for below in commands_in(&finished.stdout) {
        visit(world, &[words, &[below.as_str()]].concat(), seen);
    }
}

#[test]
fn every_command_has_help_and_a_manual_page() {
    let world = World::without_git();
    let mut seen = Vec::new();
    visit(&world, &[], &mut seen);
    assert!(seen.len() > 35 && seen.contains(&"plimsoll-turns-export".to_owned()), "{seen:?}");
    let pages = world.plimsoll(&["generate", "man", "--list"]).run().expect_success().stdout;
    assert_eq!(pages.lines().collect::<BTreeSet<_>>(), seen.iter().map(String::as_str).collect());
    let page = world.plimsoll(&["generate", "man"]).run().expect_success().stdout;
    assert!(page.contains("plimsoll\\-gate(1)") && page.contains("plimsoll\\-run(1)"), "{page}");
}

#[test]
fn the_main_help_lists_few_commands_and_those_of_scripts_on_request() {
    let world = World::without_git();
    let main = world.plimsoll(&["--help"]).run().expect_success().stdout;
    for arguments in [&["-h"][..], &["help"]] {
        assert_eq!(world.plimsoll(arguments).run().expect_success().stdout, main, "{arguments:?}");
    }
    let alone = world.plimsoll(&[]).run();
    assert_eq!((alone.code, alone.stderr.as_str()), (Some(2), main.as_str()));
    let all = world.plimsoll(&["help", "--all"]).run().expect_success().stdout;
    let script = world.plimsoll(&["generate", "completions", "bash"]).run().expect_success().stdout;
    let (main, all) = (commands_in(&main), commands_in(&all));
    assert!(main.iter().all(|name| all.contains(name)), "{main:?} {all:?}");
    for name in ["start", "gate", "monitor", "prompt", "with-context", "checkpoint", "query", "generate"] {
        assert!(!main.iter().any(|listed| listed == name), "{main:?}");
        assert!(all.iter().any(|listed| listed == name), "{all:?}");
        assert!(script.contains(&format!("plimsoll,{name})")), "{name} is completed");
    }
}

#[test]
fn short_help_of_run_says_where_the_other_options_are() {
    let world = World::without_git();
    let [short, long] =
        ["-h", "--help"].map(|option| world.plimsoll(&["run", option]).run().expect_success().stdout);
    assert!(
        short.trim_end().lines().last().is_some_and(|line| line.contains("`plimsoll run --help`")),
        "{short}"
    );
    assert!(!short.contains("--idle-timeout") && long.contains("--idle-timeout"), "{short}");
    for example in short.lines().filter(|line| line.starts_with("  plimsoll ")) {
        assert!(long.lines().any(|line| line == example), "only those of `--help` are tried: {example}");
    }
    for heading in short.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')) {
        assert!(long.lines().any(|line| line == heading), "{heading}\n{long}");
    }
}

/// Commands as earlier versions spelled them, and as they are spelled now.
const OLD_SPELLINGS: &[(&str, &str)] = &[
    ("explain", "log --why"),
    ("explain level", "log --why level"),
    ("explain level --json", "log --why level --json"),
    ("frame", "memory frame"),
    ("frame show 0 --json", "memory frame show 0 --json"),
    ("schema", "generate schema"),
    ("completions bash", "generate completions bash"),
    ("manual --list", "generate man --list"),
    ("manual turns show", "generate man turns show"),
];

#[test]
fn old_spellings_do_what_the_new_ones_do_and_are_listed_nowhere() {
    let world = World::new();
    let line = r#"{"at":"2026-01-07T11:45:00.000Z","session_id":"s1","event":"checkpoint","level":"L2","percent":87,"handoff":".claude/handoffs/a.md"}"#;
    world.write(".claude/plimsoll/journal.jsonl", &format!("{line}\n"));
    for (old, new) in OLD_SPELLINGS {
        let [old_run, new_run] =
            [old, new].map(|line| world.plimsoll(&line.split(' ').collect::<Vec<_>>()).run());
        let answer = |run: &Finished| (run.code, run.stdout.clone(), run.stderr.clone());
        assert_eq!(answer(&old_run), answer(&new_run), "{old}");
        assert_ne!(new_run.code, Some(2), "{new}: {new_run:?}");
    }
    let help = world.plimsoll(&["help", "--all"]).run().expect_success().stdout;
    let pages = world.plimsoll(&["generate", "man", "--list"]).run().expect_success().stdout;
    let script = world.plimsoll(&["generate", "completions", "bash"]).run().expect_success().stdout;
    let old_names = OLD_SPELLINGS.iter().map(|(old, _)| old.split(' ').next().unwrap_or_default());
    for name in old_names.chain(["answer", "context"]) {
        assert!(!commands_in(&help).iter().any(|listed| listed == name), "{name}");
        assert!(!pages.lines().any(|page| page == format!("plimsoll-{name}")), "{name}");
        assert!(!script.contains(&format!("plimsoll,{name})")), "{name}");
    }
    assert!(
        script.contains("plimsoll,generate)"),
        "the names of commands are looked for as they stand there"
    );
}
