//! The remote: away for a while, a host that takes branches alone, and a project below the repository's root.

use super::harness::{
    Fleet, LIMIT, Terms, all_end_well, assert_tidy, assert_tidy_in, assert_went_on, does, honest, join,
    join_in, number,
};
use plimsoll_testkit::story::story;
use plimsoll_testkit::world::{Finished, Running};
use std::time::Duration;

#[test]
fn a_remote_that_goes_away_and_comes_back_is_waited_for_and_nothing_is_done_twice() {
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &Terms::default());
    let model = story(|turn| honest(turn).delay(Duration::from_millis(500)));
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
    fleet.source.wait_until(|| model.main_requests().len() >= 2, "both work");
    let away = fleet.source.path("../away.git");
    std::fs::rename(fleet.bare(), &away).expect("our own folder");
    // What is at work comes to its end, and nothing new begins.
    let said = |running: &Running| running.stdout_so_far().contains("the remote cannot be reached");
    fleet.source.wait_until(|| running.iter().all(said), "both say what they wait for");
    assert_eq!((fleet.events("offered"), model.main_requests().len()), (0, 4));
    std::fs::rename(&away, fleet.bare()).expect("our own folder");
    assert_went_on(&all_end_well(&machines, running));
    fleet.assert_landed_once("");
    assert_eq!(model.main_requests().len(), 6, "what was done while it was away counts");
}

/// Only branches are taken there: texts stay behind, and so do the words about what has landed.
#[test]
fn a_host_that_takes_branches_alone_takes_the_work_all_the_same() {
    // Two items conflict once. With a third one, an item could conflict so often that it is set aside.
    let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms::default());
    // Asked for each reference; one that refuses all at once is the other kind of host.
    let only_branches = "#!/bin/sh\ncase $1 in refs/heads/*) exit 0;; esac\necho 'branches alone'\nexit 1\n";
    fleet.source.write_program("../bare.git/hooks/update", only_branches);
    // Two add a line at the same place: one of them is sent back with a text that does not arrive.
    let model = story(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        let own = format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item));
        let line = format!("grep -qx '{item}' src/dates.txt || echo '{item}' >> src/dates.txt; {own}");
        does(turn, &format!("{line}; git add -A; git commit -qm 'Finish {item}' || true"))
            .delay(Duration::from_millis(300))
    });
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &["--workers", "2"])).collect();
    let ended: Vec<Finished> = running.into_iter().map(|running| running.wait(LIMIT)).collect();
    let said: String = ended.iter().map(|finished| finished.stdout.as_str()).collect();
    let said = said + &fleet.source.plimsoll(&["fleet", "log", "night"]).run().expect_success().stdout;
    for (machine, finished) in machines.iter().zip(&ended) {
        assert_eq!(finished.code, Some(0), "{said}");
        assert_tidy(machine, finished);
    }
    fleet.assert_landed_once("");
    assert!(fleet.events("refused") >= 1, "two of them had to come apart");
    let dates = fleet.merged("src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {dates}");
    }
    let references = fleet.git(&["for-each-ref", "--format=%(refname)"]);
    // What an attempt has that the target has not stays: a conflict is done anew where its commits cannot be brought.
    assert!(!references.contains("refs/plimsoll/"), "{references} {said}");
}

/// A host that refuses a push as a whole if anything in it is not to its liking.
#[test]
fn a_host_that_refuses_a_whole_push_with_other_references_gets_the_branch_alone() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms { below: Some("parts/web"), ..Terms::default() });
    let none =
        "#!/bin/sh\nwhile read old new ref; do\ncase $ref in refs/heads/*) ;; *) exit 1;; esac\ndone\n";
    fleet.source.write_program("../bare.git/hooks/pre-receive", none);
    let model = story(honest);
    let machine = fleet.machine(&model);
    // Begun in the project's folder, which is not the repository's.
    let finished = join_in(&machine, machine.path("parts/web"), &["--workers", "2"]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_tidy_in(&machine, machine.path("parts/web"), &finished);
    assert_eq!(fleet.git(&["ls-tree", "--name-only", fleet.target]), "README.md\nparts\nsrc");
}
