//! The work-in-progress commit runs what is set up in this repository, and nothing of one inside it.

use super::traps::{command, git, lay_inside, sprung, stir, world};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, events, honest, journal, run, start};

/// One session that stands at L2: its work is committed.
fn one_checkpoint(world: &mut World) {
    let _model = start(world, |turn| {
        let step = match turn.step {
            _ if turn.iteration != 1 => honest(turn),
            0 => Step::bash("echo more >> work.txt").usage(720_000),
            1 | 2 => Step::bash("echo on").usage(870_000),
            _ => {
                Step::text("I stop here.\n\nSummary: half of it is done\nNext step: the rest").usage(872_000)
            }
        };
        step.delay(LIFELIKE)
    });
    let finished = run(world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
}

#[test]
fn its_own_hooks_and_filters_run_and_none_of_a_repository_inside() {
    let mut world = world();
    lay_inside(&world);
    world.write(".gitattributes", "*.txt filter=mine\n*.enc filter=lost\n*.raw filter=fails\n");
    let upper = format!("touch '{}/sprung/mine'; tr a-z A-Z", world.home().display());
    world.git(&["config", "filter.mine.clean", &upper]);
    world.git(&["config", "filter.fails.clean", "exit 1"]);
    for name in ["pre-commit", "post-commit"] {
        let line = command(&world, name);
        world.write_program(format!(".git/hooks/{name}"), &format!("#!/bin/sh\n({line}) </dev/null\n"));
    }
    stir(&world);
    world.write("plain.md", "plain\n");
    world.write("data.raw", "in the clear\n");
    world.write("data.enc", "in the clear\n");
    sprung(&world);
    one_checkpoint(&mut world);

    let found = sprung(&world);
    for name in ["mine", "pre-commit", "post-commit"] {
        assert!(found.iter().any(|it| it == name), "{name} in {found:?}");
    }
    let foreign = ["module-", "nested-", "bare-"];
    assert!(!found.iter().any(|name| foreign.iter().any(|place| name.starts_with(place))), "{found:?}");
    assert_eq!(world.git(&["show", "HEAD:new.txt"]), "NEW");
    assert_eq!(world.git(&["show", "HEAD:plain.md"]), "plain");
    let tree = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(!tree.contains("data.raw") && !tree.contains("data.enc"), "{tree}");
    let journal = journal(&world);
    let left_out = events(&journal, "wip_commit")[0]["left_out"].to_string();
    for name in ["data.raw", "data.enc", "nested/"] {
        assert!(left_out.contains(name), "{name} in {left_out}");
    }
    git(&world, &world.project(), &["status"]);
}
