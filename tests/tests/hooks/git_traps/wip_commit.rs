//! The work-in-progress commit runs no hook and no driver of the project, and nothing of a repository inside it. With
//! `--commit-hooks` it runs what is set up in this repository.

use super::planted_traps::{
    change_and_touch_files, plant_traps_in_inner_repositories, run_git_in, take_sprung_traps, trap_command,
    world_without_traps,
};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, honest_agent, read_journal, run_with_objective,
};

/// Runs one session that reaches L2, so that its work is committed.
fn run_to_one_checkpoint(world: &mut World, options: &[&str]) {
    let _model = ScriptedAgent::new(|turn| {
        let step = match turn.assistant_message_count {
            _ if turn.iteration != 1 => honest_agent(turn),
            0 => Step::bash_call("echo more >> work.txt").with_input_tokens(720_000),
            1 | 2 => Step::bash_call("echo on").with_input_tokens(870_000),
            _ => Step::from_text("I stop here.\n\nSummary: half of it is done\nNext step: the rest")
                .with_input_tokens(872_000),
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .start(world);
    let finished = run_with_objective(world, &[&["--max-iterations", "1"], options].concat());
    assert_eq!(finished.code, Some(3), "{finished:?}");
}

/// Returns a world with hooks of the repository and four filters: a program outside the repository, a script inside it,
/// a missing one and one that fails.
fn world_with_hooks_and_filters() -> World {
    let world = world_without_traps();
    plant_traps_in_inner_repositories(&world);
    world.write(
        ".gitattributes",
        "*.txt filter=mine\n*.own filter=own\n*.enc filter=lost\n*.raw filter=fails\n",
    );
    let upper = format!("touch '{}/sprung/mine'; tr a-z A-Z", world.home().display());
    world.git(&["config", "filter.mine.clean", &upper]);
    world.git(&["config", "filter.fails.clean", "false"]);
    let line = trap_command(&world, "own");
    world.write_program("tools/clean.sh", &format!("#!/bin/sh\n{line}\n"));
    world.git(&["config", "filter.own.clean", "sh tools/clean.sh"]);
    for name in ["pre-commit", "post-commit"] {
        let line = trap_command(&world, name);
        world.write_program(format!(".git/hooks/{name}"), &format!("#!/bin/sh\n({line}) </dev/null\n"));
    }
    change_and_touch_files(&world);
    world.write("plain.md", "plain\n");
    world.write("data.raw", "in the clear\n");
    world.write("data.enc", "in the clear\n");
    world.write("data.own", "in the clear\n");
    take_sprung_traps(&world);
    world
}

#[test]
fn the_wip_commit_runs_no_hook_and_no_filter_of_the_project() {
    let mut world = world_with_hooks_and_filters();
    run_to_one_checkpoint(&mut world, &[]);
    // The user's own filter, outside the project, runs as always.
    assert_eq!(take_sprung_traps(&world), ["mine"]);
    assert_eq!(world.git(&["show", "HEAD:new.txt"]), "NEW");
    assert_eq!(world.git(&["show", "HEAD:plain.md"]), "plain");
    let tree = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(!tree.contains("data."), "{tree}");
    let journal = read_journal(&world);
    let left_out = events_named(&journal, "wip_commit")[0]["left_out"].to_string();
    for name in ["data.raw", "data.enc", "data.own", "nested/"] {
        assert!(left_out.contains(name), "{name} in {left_out}");
    }
    let state = world.read_json(".claude/ralph-state.json");
    let handoff = world.read(state["context_checkpoint"]["handoff_file"].as_str().expect("a handoff"));
    assert!(handoff.contains("filter `own`; --commit-hooks allows it"), "{handoff}");
}

#[test]
fn commit_hooks_runs_the_repositorys_hooks_and_filters_but_no_inner_ones() {
    let mut world = world_with_hooks_and_filters();
    run_to_one_checkpoint(&mut world, &["--commit-hooks"]);
    let sprung_traps = take_sprung_traps(&world);
    for name in ["mine", "own", "pre-commit", "post-commit"] {
        assert!(sprung_traps.iter().any(|sprung_name| sprung_name == name), "{name} in {sprung_traps:?}");
    }
    let inner_prefixes = ["module-", "nested-", "bare-"];
    assert!(
        !sprung_traps.iter().any(|name| inner_prefixes.iter().any(|place| name.starts_with(place))),
        "{sprung_traps:?}"
    );
    assert_eq!(world.git(&["show", "HEAD:new.txt"]), "NEW");
    assert_eq!(world.git(&["show", "HEAD:plain.md"]), "plain");
    let tree = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(!tree.contains("data.raw") && !tree.contains("data.enc") && tree.contains("data.own"), "{tree}");
    let journal = read_journal(&world);
    let left_out = events_named(&journal, "wip_commit")[0]["left_out"].to_string();
    for name in ["data.raw", "data.enc", "nested/"] {
        assert!(left_out.contains(name), "{name} in {left_out}");
    }
    run_git_in(&world, &world.project(), &["status"]);
}
