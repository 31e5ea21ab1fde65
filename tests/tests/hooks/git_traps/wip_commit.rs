//! The work-in-progress commit runs no hook and no driver of the project, and nothing of a repository inside it. With
//! `--commit-hooks` it runs what is set up in this repository.

use super::planted_traps::{command, git, lay_inside, sprung, stir, world};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, honest, journal, run};

/// One session that stands at L2: its work is committed.
fn one_checkpoint(world: &mut World, options: &[&str]) {
    let _model = ScriptedAgent::new(|turn| {
        let step = match turn.step {
            _ if turn.iteration != 1 => honest(turn),
            0 => Step::bash("echo more >> work.txt").usage(720_000),
            1 | 2 => Step::bash("echo on").usage(870_000),
            _ => {
                Step::text("I stop here.\n\nSummary: half of it is done\nNext step: the rest").usage(872_000)
            }
        };
        step.delay(LIFELIKE)
    })
    .start(world);
    let finished = run(world, &[&["--max-iterations", "1"], options].concat());
    assert_eq!(finished.code, Some(3), "{finished:?}");
}

/// Hooks of the repository, a filter that lies outside of it, one that is a script of it, one that is missing and one that fails.
fn world_with_hooks_and_filters() -> World {
    let world = world();
    lay_inside(&world);
    world.write(
        ".gitattributes",
        "*.txt filter=mine\n*.own filter=own\n*.enc filter=lost\n*.raw filter=fails\n",
    );
    let upper = format!("touch '{}/sprung/mine'; tr a-z A-Z", world.home().display());
    world.git(&["config", "filter.mine.clean", &upper]);
    world.git(&["config", "filter.fails.clean", "false"]);
    let line = command(&world, "own");
    world.write_program("tools/clean.sh", &format!("#!/bin/sh\n{line}\n"));
    world.git(&["config", "filter.own.clean", "sh tools/clean.sh"]);
    for name in ["pre-commit", "post-commit"] {
        let line = command(&world, name);
        world.write_program(format!(".git/hooks/{name}"), &format!("#!/bin/sh\n({line}) </dev/null\n"));
    }
    stir(&world);
    world.write("plain.md", "plain\n");
    world.write("data.raw", "in the clear\n");
    world.write("data.enc", "in the clear\n");
    world.write("data.own", "in the clear\n");
    sprung(&world);
    world
}

#[test]
fn no_hook_and_no_filter_of_the_project_runs() {
    let mut world = world_with_hooks_and_filters();
    one_checkpoint(&mut world, &[]);
    // A filter of the user's, outside of the project, works as ever.
    assert_eq!(sprung(&world), ["mine"]);
    assert_eq!(world.git(&["show", "HEAD:new.txt"]), "NEW");
    assert_eq!(world.git(&["show", "HEAD:plain.md"]), "plain");
    let tree = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(!tree.contains("data."), "{tree}");
    let journal = journal(&world);
    let left_out = events(&journal, "wip_commit")[0]["left_out"].to_string();
    for name in ["data.raw", "data.enc", "data.own", "nested/"] {
        assert!(left_out.contains(name), "{name} in {left_out}");
    }
    let state = world.json(".claude/ralph-state.json");
    let handoff = world.read(state["context_checkpoint"]["handoff_file"].as_str().expect("a handoff"));
    assert!(handoff.contains("filter `own`; --commit-hooks allows it"), "{handoff}");
}

#[test]
fn with_commit_hooks_its_own_hooks_and_filters_run_and_none_of_a_repository_inside() {
    let mut world = world_with_hooks_and_filters();
    one_checkpoint(&mut world, &["--commit-hooks"]);
    let found = sprung(&world);
    for name in ["mine", "own", "pre-commit", "post-commit"] {
        assert!(found.iter().any(|it| it == name), "{name} in {found:?}");
    }
    let foreign = ["module-", "nested-", "bare-"];
    assert!(!found.iter().any(|name| foreign.iter().any(|place| name.starts_with(place))), "{found:?}");
    assert_eq!(world.git(&["show", "HEAD:new.txt"]), "NEW");
    assert_eq!(world.git(&["show", "HEAD:plain.md"]), "plain");
    let tree = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(!tree.contains("data.raw") && !tree.contains("data.enc") && tree.contains("data.own"), "{tree}");
    let journal = journal(&world);
    let left_out = events(&journal, "wip_commit")[0]["left_out"].to_string();
    for name in ["data.raw", "data.enc", "nested/"] {
        assert!(left_out.contains(name), "{name} in {left_out}");
    }
    git(&world, &world.project(), &["status"]);
}
