//! Faults of the remote: unreachable for a while, a host that accepts only branches, and a project below the
//! repository's root.

use super::harness::{
    FLEET_TIMEOUT, Fleet, FleetOptions, assert_all_end_well, assert_nothing_left_behind,
    assert_nothing_left_in, assert_reported_recovery, honest_agent, item_number, run_and_finish_item,
    spawn_join, spawn_join_in,
};
use plimsoll_testkit::scripted_agent::start_model_with_turn_script;
use plimsoll_testkit::world::{FinishedProgram, RunningProgram};
use std::time::Duration;

#[test]
fn an_unreachable_remote_is_waited_for_and_no_session_is_repeated() {
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &FleetOptions::default());
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(500)));
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let running: Vec<RunningProgram> = machines.iter().map(|machine| spawn_join(machine, &[])).collect();
    fleet.source.wait_until(|| model.main_requests().len() >= 2, "both work");
    let moved_remote = fleet.source.path("../away.git");
    std::fs::rename(fleet.bare_remote_path(), &moved_remote).expect("our own folder");
    // Running sessions complete, and nothing new begins.
    let has_reported_missing_remote =
        |running: &RunningProgram| running.stdout_so_far().contains("the remote cannot be reached");
    fleet
        .source
        .wait_until(|| running.iter().all(has_reported_missing_remote), "both say what they wait for");
    assert_eq!((fleet.event_count("offered"), model.main_requests().len()), (0, 4));
    std::fs::rename(&moved_remote, fleet.bare_remote_path()).expect("our own folder");
    assert_reported_recovery(&assert_all_end_well(&machines, running));
    fleet.assert_landed_once("");
    assert_eq!(model.main_requests().len(), 6, "what was done while it was away counts");
}

/// The host accepts only branches: texts for refused items do not arrive, nor does the record of what has landed.
#[test]
fn a_host_that_accepts_only_branches_still_receives_the_work() {
    // Two items conflict once. With a third one, an item could conflict so often that it is set aside.
    let fleet = Fleet::new(&["Item 1", "Item 2"], &FleetOptions::default());
    // The `update` hook runs for each reference. The other kind of host refuses the whole push at once.
    let only_branches = "#!/bin/sh\ncase $1 in refs/heads/*) exit 0;; esac\necho 'branches alone'\nexit 1\n";
    fleet.source.write_program("../bare.git/hooks/update", only_branches);
    // Two items add a line at the same place: one of them is sent back with a text that does not arrive.
    let model = start_model_with_turn_script(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        let write_own_file = format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item));
        let work_command =
            format!("grep -qx '{item}' src/dates.txt || echo '{item}' >> src/dates.txt; {write_own_file}");
        run_and_finish_item(
            turn,
            &format!("{work_command}; git add -A; git commit -qm 'Finish {item}' || true"),
        )
        .with_delay(Duration::from_millis(300))
    });
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let running: Vec<RunningProgram> =
        machines.iter().map(|machine| spawn_join(machine, &["--workers", "2"])).collect();
    let finished_machines: Vec<FinishedProgram> =
        running.into_iter().map(|running| running.wait_or_kill_and_panic(FLEET_TIMEOUT)).collect();
    let output: String = finished_machines.iter().map(|finished| finished.stdout.as_str()).collect();
    let output = output + &fleet.source.plimsoll(&["fleet", "log", "night"]).run().expect_success().stdout;
    for (machine, finished) in machines.iter().zip(&finished_machines) {
        assert_eq!(finished.code, Some(0), "{output}");
        assert_nothing_left_behind(machine, finished);
    }
    fleet.assert_landed_once("");
    assert!(fleet.event_count("refused") >= 1, "two of them had to come apart");
    let dates = fleet.file_on_target("src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {dates}");
    }
    let references = fleet.remote_git(&["for-each-ref", "--format=%(refname)"]);
    // Commits that only an attempt has stay behind: where they cannot be fetched, a conflict is done anew.
    assert!(!references.contains("refs/plimsoll/"), "{references} {output}");
}

/// The host refuses a whole push if it does not accept some part of it.
#[test]
fn a_host_that_refuses_other_references_gets_the_branch_alone() {
    let fleet = Fleet::new(
        &["Item 1", "Item 2"],
        &FleetOptions { project_folder: Some("parts/web"), ..FleetOptions::default() },
    );
    let refuse_other_references =
        "#!/bin/sh\nwhile read old new ref; do\ncase $ref in refs/heads/*) ;; *) exit 1;; esac\ndone\n";
    fleet.source.write_program("../bare.git/hooks/pre-receive", refuse_other_references);
    let model = start_model_with_turn_script(honest_agent);
    let machine = fleet.replay_machine(&model);
    // Started in the project's folder, which is not the root of the repository.
    let finished = spawn_join_in(&machine, machine.path("parts/web"), &["--workers", "2"])
        .wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_nothing_left_in(&machine, machine.path("parts/web"), &finished);
    assert_eq!(fleet.remote_git(&["ls-tree", "--name-only", fleet.target]), "README.md\nparts\nsrc");
}
