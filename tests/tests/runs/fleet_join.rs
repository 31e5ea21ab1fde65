//! `fleet join`: several machines work on one plan through a database and a git remote. Each has its own HOME, clone
//! and process group. No work is lost, and none lands twice.

mod database_faults;
mod end_and_pause;
mod harness;
mod network_faults;
mod network_namespaces;
mod remote_faults;

use harness::{
    ASSERT_NO_DATABASE_URL, FLEET_TIMEOUT, Fleet, FleetOptions, TASK, assert_all_end_well,
    assert_nothing_left_behind, honest_agent, item_number, kill_machine, machine_processes,
    run_and_finish_item, signal_machine, spawn_join,
};
use plimsoll_testkit::scripted_agent::start_model_with_turn_script;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{FinishedProgram, RunningProgram, World};
use plimsoll_tests::{LIFELIKE_DELAY, run_cases_in_parallel};
use std::time::Duration;

#[test]
fn two_machines_complete_a_plan_and_each_item_lands_on_the_remote_once() {
    let verify = &["test ! -e done/2.txt || test -e done/1.txt", ASSERT_NO_DATABASE_URL];
    let items = ["Item 1", "Item 2 (after: 1)", "Item 3", "Item 4"];
    let fleet = Fleet::new(&items, &FleetOptions { verify, ..FleetOptions::default() });
    let model = start_model_with_turn_script(honest_agent);
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    fleet.server.run_sql(
        "insert into plimsoll_night.worker (name, machine, pid, version, started, seen)
         values ('old/1', 'old-machine', 1, '0.0.1', plimsoll_night.moment(), plimsoll_night.moment())",
    );
    let setup = format!("--setup={ASSERT_NO_DATABASE_URL}");
    let running = [spawn_join(&machines[0], &["--workers", "2", &setup]), spawn_join(&machines[1], &[])];
    for (machine, running) in machines.iter().zip(running) {
        let finished = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_nothing_left_behind(machine, &finished);
        assert!(
            finished.stdout.contains("git fetch origin && git merge origin/plimsoll/night"),
            "{finished:?}"
        );
    }
    fleet.assert_landed_once("");
    assert_eq!(
        fleet.remote_git(&["for-each-ref", "--format=%(refname)", "refs/heads"]),
        "refs/heads/main\nrefs/heads/plimsoll/night"
    );
    let worker_counts = fleet
        .server
        .run_sql("select count(*), count(distinct split_part(name, '/', 1)) from plimsoll_night.worker");
    assert_eq!(worker_counts, "4|3");
}

/// The verify commands come from the database; each member decides for itself where they run.
#[cfg(target_os = "linux")]
#[test]
fn verify_sandbox_confines_the_verify_commands_of_the_fleet() {
    crate::verify_sandbox::use_plain_temporary_folder();
    let verify = &["echo evil > ~/evil; git status > /dev/null"];
    let fleet = Fleet::new(&["Item 1"], &FleetOptions { verify, ..FleetOptions::default() });
    let model = start_model_with_turn_script(honest_agent);
    let machine = fleet.replay_machine(&model);
    let finished = spawn_join(&machine, &["--verify-sandbox"]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert!(!machine.home().join("evil").exists(), "{finished:?}");
}

#[test]
fn another_machine_does_the_items_of_a_machine_that_never_returns() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &FleetOptions::default());
    let mut is_first = true;
    let model = start_model_with_turn_script(move |turn| match std::mem::take(&mut is_first) {
        true => honest_agent(turn).with_delay(Duration::from_secs(10)),
        false => honest_agent(turn),
    });
    let lost_machine = fleet.replay_machine(&model);
    let first_run = spawn_join(&lost_machine, &[]);
    fleet.source.wait_until(|| fleet.event_count("claimed") >= 1, "it has an item");
    drop(first_run);
    kill_machine(&lost_machine);
    fleet.expire_leases();
    let second_machine = fleet.replay_machine(&model);
    let finished = spawn_join(&second_machine, &["--workers", "2"]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_nothing_left_behind(&second_machine, &finished);
}

/// The merger had recorded what it was about to land; the remote shows whether the push happened.
#[test]
fn a_merger_that_dies_before_or_after_its_push_is_replaced() {
    run_cases_in_parallel(&["pre-receive", "post-receive"], |hook| {
        let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &FleetOptions::default());
        let model = start_model_with_turn_script(honest_agent);
        let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
        // The first machine that pushes to the target is killed there.
        let kill_first_pusher =
            "mkdir dead 2>/dev/null && { touch $HOME/died; kill -9 $(cat $HOME/run.pid); exit 1; }";
        fleet.write_remote_hook(hook, kill_first_pusher);
        let mut running: Vec<RunningProgram> =
            machines.iter().map(|machine| spawn_join(machine, &[])).collect();
        for (machine, running) in machines.iter().zip(&running) {
            machine.write(machine.home().join("run.pid"), &running.pid().to_string());
        }
        let has_died = |machine: &World| machine.home().join("died").exists();
        fleet.source.wait_until(|| machines.iter().any(has_died), "the merger dies");
        let dead_index = usize::from(!has_died(&machines[0]));
        drop(running.remove(dead_index));
        kill_machine(&machines[dead_index]);
        fleet.expire_leases();
        let finished = running.remove(0).wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_eq!(finished.code, Some(0), "{hook}: {finished:?}");
        fleet.assert_landed_once(&format!("{hook}: {finished:?}"));
        assert_nothing_left_behind(&machines[1 - dead_index], &finished);
        assert!(fleet.event_count("merger") >= 2, "{hook}");
    });
}

/// Two items add a line at the same place, and two fail only in combination; meanwhile the database is stopped
/// abruptly.
#[test]
fn conflicting_or_failing_items_are_redone_despite_a_database_restart() {
    let verify = &["test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt"];
    let items = ["Item 1", "Item 2", "Item 3", "Item 4"];
    let mut fleet = Fleet::new(&items, &FleetOptions { verify, ..FleetOptions::default() });
    let model = start_model_with_turn_script(|turn| {
        let Some(item) = turn.item_text.clone() else { return honest_agent(turn) };
        let item_number = item_number(&item);
        let write_own_file = format!("mkdir -p done && echo '{item}' > done/{item_number}.txt");
        let work_command = match item_number.as_str() {
            "1" | "2" => {
                format!("grep -qx '{item}' src/dates.txt || echo '{item}' >> src/dates.txt; {write_own_file}")
            }
            _ => format!("{write_own_file}; test ! -e done/3.txt || test ! -e done/4.txt || touch both.txt"),
        };
        run_and_finish_item(
            turn,
            &format!("{work_command}; git add -A; git commit -qm 'Finish {item}' || true"),
        )
        .with_delay(Duration::from_millis(300))
    });
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let running: Vec<RunningProgram> =
        machines.iter().map(|machine| spawn_join(machine, &["--workers", "2"])).collect();
    fleet.source.wait_until(|| fleet.event_count("offered") >= 1, "something is done");
    fleet.server.restart_immediately();
    assert_all_end_well(&machines, running);
    let log = fleet.source.plimsoll(&["fleet", "log", "night"]).run().expect_success().stdout;
    fleet.assert_landed_once(&log);
    let dates = fleet.file_on_target("src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {dates} {log}");
    }
    assert!(fleet.event_count("refused") >= 2, "{log}");
    // No pushed tip fails the verify command.
    for commit in fleet.remote_git(&["log", "--first-parent", "--format=%H", "plimsoll/night"]).lines() {
        let files = fleet.remote_git(&["ls-tree", "-r", "--name-only", commit]);
        let has_file = |file: &str| files.lines().any(|line| line == file);
        let tip_count = fleet
            .server
            .run_sql(&format!("select count(*) from plimsoll_night.item where '{commit}' = any (landings)"));
        let fails_verify = has_file("done/3.txt") && has_file("done/4.txt") && !has_file("both.txt");
        assert!(tip_count == "0" || !fails_verify, "{commit}: {log}");
    }
}

#[test]
fn a_machine_ends_if_the_database_stays_away_and_continues_on_rejoining() {
    let mut fleet = Fleet::new(&["Item 1", "Item 2"], &FleetOptions::default());
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(1_500)));
    let machine = fleet.replay_machine(&model);
    let running = spawn_join(&machine, &["--database-patience", "3s"]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    fleet.server.stop_immediately();
    let stopped = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(stopped.code, Some(6), "{stopped:?}");
    assert!(stopped.stdout.contains("waited for "), "{stopped:?}");
    let request_count = model.main_requests().len();
    assert!(request_count >= 2, "the session came to its end: {stopped:?}");
    fleet.server.restart_immediately();
    let resumed = machine.plimsoll(&["run", "--resume"]).run();
    assert!(resumed.code == Some(1) && resumed.stderr.contains("plimsoll fleet join night"), "{resumed:?}");
    let finished = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_nothing_left_behind(&machine, &finished);
    assert_eq!(model.main_requests().len(), 4, "what was done while it was away counts");
}

/// The sessions of a killed join continue to run without it.
#[test]
fn a_killed_join_continues_its_running_sessions_when_it_joins_again() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &FleetOptions::default());
    let model = start_model_with_turn_script(|turn| match turn.assistant_message_count {
        0 => honest_agent(turn).with_delay(Duration::from_secs(3)),
        _ => honest_agent(turn),
    });
    let machine = fleet.replay_machine(&model);
    let mut running = spawn_join(&machine, &["--workers", "2"]);
    fleet.source.wait_until(|| model.main_requests().len() >= 2, "both work");
    running.kill();
    let finished = spawn_join(&machine, &["--workers", "2"]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_nothing_left_behind(&machine, &finished);
    assert_eq!(
        (model.main_requests().len(), fleet.event_count("claimed")),
        (4, 2),
        "no session was repeated"
    );
}

#[test]
fn a_machine_frozen_beyond_its_lease_changes_nothing_when_it_continues() {
    let fleet = Fleet::new(&["Item 1"], &FleetOptions::default());
    let mut is_first = true;
    let model = start_model_with_turn_script(move |turn| match turn.assistant_message_count {
        0 if std::mem::take(&mut is_first) => honest_agent(turn).with_delay(Duration::from_secs(4)),
        _ => honest_agent(turn),
    });
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let frozen_run = spawn_join(&machines[0], &[]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    signal_machine(&machines[0], "-STOP");
    fleet.expire_leases();
    let finished = spawn_join(&machines[1], &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    signal_machine(&machines[0], "-CONT");
    let late_result = frozen_run.wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(late_result.code, Some(0), "{late_result:?}");
    fleet.assert_landed_once(&format!("{late_result:?}"));
    for (machine, finished) in machines.iter().zip([late_result, finished]) {
        assert_nothing_left_behind(machine, &finished);
    }
    assert_eq!(fleet.event_count("offered"), 1);
}

#[test]
fn a_remote_that_rejects_the_target_ends_the_machine_but_keeps_its_work() {
    let fleet = Fleet::new(&["Item 1"], &FleetOptions::default());
    let model = start_model_with_turn_script(honest_agent);
    let machine = fleet.replay_machine(&model);
    fleet.write_remote_hook("pre-receive", "echo 'only on workdays'; exit 1");
    let rejected = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(rejected.code, Some(6), "{rejected:?}");
    assert!(rejected.stdout.contains("only on workdays"), "{rejected:?}");
    assert_eq!(fleet.server.run_sql("select stage from plimsoll_night.item"), "offered");
    let request_count = model.main_requests().len();
    std::fs::remove_file(fleet.bare_remote_path().join("hooks/pre-receive")).expect("our own file");
    let finished = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_eq!(model.main_requests().len(), request_count, "nothing is done twice");
    assert_nothing_left_behind(&machine, &finished);
}

#[test]
fn a_question_is_answered_anywhere_and_another_machine_continues() {
    let fleet = Fleet::new(&["Item 1"], &FleetOptions { merges_into_main: true, ..FleetOptions::default() });
    let model = start_model_with_turn_script(|turn| {
        if turn.request_contains("Use port 8042") {
            return run_and_finish_item(turn, "test -e half.txt && mkdir -p done && echo 8042 > done/1.txt");
        }
        match turn.assistant_message_count {
            // A note in the session's copy of the plan travels with its work.
            0 => Step::bash_call(
                "echo half > half.txt && echo '  > port 80 is taken' >> fix_plan.md && git add -A && git commit -qm Half",
            )
            .with_input_tokens(30_000),
            _ => {
                let blocked_line = turn.promise_line.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
                Step::from_text(format!("I cannot go on.\n\n{blocked_line}")).with_input_tokens(31_000)
            }
        }
    });
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let blocked = spawn_join(&machines[0], &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(blocked.code, Some(7), "{blocked:?}");
    let local_answer = machines[0].plimsoll(&["status", "--answer", "1", "Use port 8042"]).run();
    assert!(
        local_answer.code == Some(1) && local_answer.stderr.contains("plimsoll fleet answer night"),
        "{local_answer:?}"
    );
    assert!(blocked.stdout.contains("which port?"), "{blocked:?}");
    fleet.source.plimsoll(&["fleet", "answer", "night", "1", "Use port 8042"]).run().expect_success();
    let finished = spawn_join(&machines[1], &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_eq!(fleet.file_on_target("half.txt"), "half");
    assert_eq!(fleet.file_on_target("fix_plan.md").matches("\n  > port 80 is taken").count(), 1);
    assert_nothing_left_behind(&machines[1], &finished);
}

#[test]
fn ctrl_c_returns_open_items_and_drain_or_stop_releases_the_machines() {
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &FleetOptions::default());
    let mut session_count = 0;
    let model = start_model_with_turn_script(move |turn| {
        session_count += usize::from(turn.assistant_message_count == 0);
        // The first session is asked to end before its item is done.
        if turn.assistant_message_count == 0 && session_count == 1 {
            return Step::bash_call("sleep 2 && echo part > part.txt").with_input_tokens(30_000);
        }
        if session_count == 1 {
            return Step::from_text("There is more to do.").with_input_tokens(31_000);
        }
        honest_agent(turn).with_delay(Duration::from_millis(800))
    });
    let machine = fleet.replay_machine(&model);
    let mut running = spawn_join(&machine, &[]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    running.interrupt();
    let stopped = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    assert_eq!(
        fleet.server.run_sql("select stage from plimsoll_night.item where place = 0"),
        "open",
        "{stopped:?}"
    );
    // The work so far is on the remote, and another machine starts from it.
    let other_machine = fleet.replay_machine(&model);
    let running = spawn_join(&other_machine, &[]);
    let requests_before = model.main_requests().len();
    fleet.source.wait_until(|| model.main_requests().len() > requests_before, "another works");
    fleet.source.plimsoll(&["fleet", "drain", "night"]).run().expect_success();
    let drained = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert!(drained.stdout.contains("the fleet drains: 1 of 3 items merged"), "{drained:?}");
    assert_eq!(fleet.file_on_target("part.txt"), "part", "{drained:?}");
    fleet.source.plimsoll(&["fleet", "resume", "night"]).run().expect_success();
    let running = spawn_join(&other_machine, &[]);
    let requests_before = model.main_requests().len();
    fleet.source.wait_until(|| model.main_requests().len() > requests_before, "it works again");
    fleet.source.plimsoll(&["fleet", "stop", "night", "--yes"]).run().expect_success();
    let stopped_machine = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(stopped_machine.code, Some(9), "{stopped_machine:?}");
    assert!(stopped_machine.stdout.contains("the fleet was stopped"), "{stopped_machine:?}");
    assert_eq!(
        fleet.server.run_sql("select count(*) from plimsoll_night.item where stage = 'leased'"),
        "0",
        "{stopped_machine:?}"
    );
    let rejoined = spawn_join(&other_machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert!(rejoined.code == Some(9) && rejoined.stderr.contains("was stopped"), "{rejoined:?}");
    // A new fleet of this name can be created only if nothing of the old one is in its way. The members have ended, so none counts
    // as active any more.
    let workers = "select count(*) from plimsoll_night.worker where plimsoll_night.is_there(seen)";
    assert_eq!(fleet.server.run_sql(workers), "0");
    fleet.source.plimsoll(&["fleet", "forget", "night", "--yes"]).run().expect_success();
    fleet.remote_git(&["branch", "-q", "-D", "plimsoll/night"]);
    fleet.remote_git(&["branch", "-q", "plimsoll-items/night/9/1", "main"]);
    let recreated = fleet.source.plimsoll(&["fleet", "create", "night"]).run();
    assert!(
        recreated.code == Some(1) && recreated.stderr.contains("(plimsoll-items/night/…)"),
        "{recreated:?}"
    );
    assert!(machine_processes(&other_machine).is_empty());
}

#[test]
fn the_cost_limit_of_a_fleet_holds_for_all_machines_together() {
    // A session costs almost 1.5 cents. Whether both start at once or one waits for the other's budget, nothing is
    // left after two sessions: each may end with the response that exceeds its share.
    let terms = FleetOptions { max_cost: Some(0.025), ..FleetOptions::default() };
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &terms);
    let model = start_model_with_turn_script(|turn| honest_agent(turn).with_delay(LIFELIKE_DELAY));
    let machines = [fleet.real_client_machine(&model), fleet.real_client_machine(&model)];
    let running: Vec<RunningProgram> = machines.iter().map(|machine| spawn_join(machine, &[])).collect();
    let finished: Vec<FinishedProgram> =
        running.into_iter().map(|running| running.wait_or_kill_and_panic(FLEET_TIMEOUT)).collect();
    assert!(finished.iter().any(|finished| finished.code == Some(3)), "{finished:?}");
    assert!(finished.iter().all(|finished| finished.code != Some(0)), "{finished:?}");
    let spent_dollars: f64 =
        fleet.server.run_sql("select sum(cost) from plimsoll_night.worker").parse().expect("a number");
    assert!(spent_dollars > 0.02 && spent_dollars < 0.03, "{spent_dollars} {finished:?}");
    let merged_count =
        fleet.server.run_sql("select count(*) from plimsoll_night.item where stage = 'merged'");
    assert_eq!(merged_count, "2", "{finished:?}");
    // Nothing can be claimed any more: a machine that joins later is told so and does not wait.
    let late_machine = spawn_join(&fleet.replay_machine(&model), &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert!(
        late_machine.code == Some(3) && late_machine.stdout.contains("spent by the whole fleet"),
        "{late_machine:?}"
    );
}

/// The remote also records what has landed.
#[test]
fn after_a_database_restore_no_item_is_repeated_or_lands_twice() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &FleetOptions::default());
    fleet
        .server
        .run_sql("create schema backup; create table backup.item as select * from plimsoll_night.item");
    let model = start_model_with_turn_script(honest_agent);
    let machine = fleet.replay_machine(&model);
    let finished = spawn_join(&machine, &["--workers", "2"]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let (tip, request_count) =
        (fleet.remote_git(&["rev-parse", "plimsoll/night"]), model.main_requests().len());
    fleet.server.run_sql(
        "truncate plimsoll_night.item, plimsoll_night.worker, plimsoll_night.event; insert into plimsoll_night.item select * from backup.item;
         update plimsoll_night.plan set ended = null, merger = '', merger_until = 0, merger_epoch = 0, passed = '{}'",
    );
    let rejoined = spawn_join(&fleet.replay_machine(&model), &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(rejoined.code, Some(0), "{rejoined:?}");
    fleet.assert_landed_once(&format!("{rejoined:?}"));
    assert_eq!(
        (fleet.remote_git(&["rev-parse", "plimsoll/night"]), model.main_requests().len()),
        (tip, request_count)
    );
}

#[test]
fn two_machines_share_a_plan_with_the_real_client() {
    let fleet =
        Fleet::new(&["Item 1", "Item 2"], &FleetOptions { verify: &["true"], ..FleetOptions::default() });
    let model = start_model_with_turn_script(|turn| honest_agent(turn).with_delay(LIFELIKE_DELAY));
    let machines = [fleet.real_client_machine(&model), fleet.real_client_machine(&model)];
    let running: Vec<RunningProgram> = machines.iter().map(|machine| spawn_join(machine, &[])).collect();
    assert_all_end_well(&machines, running);
    fleet.assert_landed_once("");
    assert_eq!(
        fleet
            .server
            .run_sql("select count(distinct worker) from plimsoll_night.event where kind = 'offered'"),
        "2"
    );
}

#[test]
fn a_clone_that_cannot_join_reports_the_reason() {
    let fleet = Fleet::new(&["Item 1"], &FleetOptions::default());
    let model = start_model_with_turn_script(honest_agent);
    let mut machine = fleet.replay_machine(&model);
    // A service manager must not repeat what fails with 5: the user has to change something first.
    let assert_join_refused = |machine: &World, arguments: &[&str], code: i32, message: &str| {
        let finished = spawn_join(machine, arguments).wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert!(finished.code == Some(code) && finished.stderr.contains(message), "{message}: {finished:?}");
        assert!(!machine.exists(".claude/ralph-state.json"), "{finished:?}");
    };
    machine.write("PROMPT.md", "Something else.");
    assert_join_refused(
        &machine,
        &[],
        5,
        "the task here is not the one that the fleet `night` was created with",
    );
    machine.write("PROMPT.md", TASK);
    assert_join_refused(&machine, &["--remote", "upstream"], 1, "the clone has no remote `upstream`");
    assert_join_refused(&machine, &["--client", "no-such-client"], 5, "`no-such-client` was not found");
    machine.write("src/dates.txt", "changed\n");
    assert_join_refused(&machine, &[], 5, "there are uncommitted changes");
    machine.git(&["checkout", "-q", "."]);
    let unknown_fleet = machine.plimsoll(&["fleet", "join", "day", "--", "--model", "opus"]).run();
    assert!(
        unknown_fleet.code == Some(5) && unknown_fleet.stderr.contains("there is no fleet named `day`"),
        "{unknown_fleet:?}"
    );
    machine.set_env(
        "PLIMSOLL_DATABASE_URL",
        fleet.server.socket_connection_string().replace(&fleet.server.port().to_string(), "1"),
    );
    assert_join_refused(&machine, &[], 1, "it cannot be reached");
}

#[test]
fn a_value_from_the_database_is_never_an_option_of_git() {
    let victim_path = std::env::temp_dir().join(format!("plimsoll-victim-{}", std::process::id()));
    let option = format!("--output={}", victim_path.display());
    for column in ["beyond", "start", "sha", "landings"] {
        let fleet = Fleet::new(&["Item 1"], &FleetOptions::default());
        let model = start_model_with_turn_script(honest_agent);
        let machine = fleet.replay_machine(&model);
        let stage_change = if column == "sha" { ", stage = 'offered'" } else { "" };
        let value = if column == "landings" { format!("array['{option}']") } else { format!("'{option}'") };
        // Somebody with the rights of the owner can also drop the checks of the table.
        fleet.server.run_sql(&format!(
            "alter table plimsoll_night.item drop constraint item_sha_check, drop constraint item_start_check,
               drop constraint item_beyond_check, drop constraint item_start_and_base;
             update plimsoll_night.item set {column} = {value}{stage_change}"
        ));
        let finished = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_ne!(finished.code, Some(0), "{column}: {finished:?}");
        assert!(format!("{finished:?}").contains("is not a commit id"), "{column}: {finished:?}");
        assert!(!victim_path.exists(), "{column}: {finished:?}");
    }
}

/// The database cannot see the branch, so a member may record whatever it likes. Nobody builds on it.
#[test]
fn an_item_that_is_only_recorded_as_merged_is_not_built_on() {
    let fleet = Fleet::new(&["Item 1", "Item 2 (after: 1)"], &FleetOptions::default());
    let model = start_model_with_turn_script(honest_agent);
    let unknown_commit = format!("{:040x}", 0xbeef);
    let real_commit = fleet.remote_git(&["rev-parse", "plimsoll/night"]);
    let record_as_merged = |place: usize, commit: &str| {
        fleet.server.run_sql(&format!(
            "select plimsoll_night.restore_landing('bad', 'a token of a hostile member, nothing else', {place}, '{commit}');
             select plimsoll_night.mark_merged('bad', 'a token of a hostile member, nothing else', array[{place}], array['{commit}'])"
        ));
    };
    // The branch has this commit, and it is not the item's: the plan on the branch shows the item as open.
    record_as_merged(0, &real_commit);
    let machine = fleet.replay_machine(&model);
    let refused = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(format!("{refused:?}").contains("the branch plimsoll/night does not contain it"), "{refused:?}");
    assert_eq!((fleet.event_count("claimed"), fleet.event_count("unconfirmed")), (0, 1), "{refused:?}");
    assert!(model.main_requests().is_empty() && !fleet.file_on_target("fix_plan.md").contains("[x]"));

    record_as_merged(1, &unknown_commit);
    fleet.server.run_sql(
        "select plimsoll_night.end_if_all_merged('bad', 'a token of a hostile member, nothing else')",
    );
    let done_only_by_name = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(done_only_by_name.code, Some(5), "{done_only_by_name:?}");
    assert!(
        done_only_by_name.stderr.contains("plimsoll/night does not contain item 1"),
        "{done_only_by_name:?}"
    );
    for number in ["1", "2"] {
        fleet.source.plimsoll(&["fleet", "reopen", "night", number]).run().expect_success();
    }
    // An item that is open is missing, whatever the plan's row says.
    fleet.server.run_sql("update plimsoll_night.plan set ended = 'done'");
    let done_with_open_items = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert!(
        done_with_open_items.code == Some(5)
            && done_with_open_items.stderr.contains("plimsoll/night does not contain item 1"),
        "{done_with_open_items:?}"
    );
    fleet.server.run_sql("update plimsoll_night.plan set ended = null");
    let finished = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(fleet.file_on_target("fix_plan.md").matches("- [x]").count(), 2, "{finished:?}");
    assert_eq!(fleet.server.run_sql("select ended from plimsoll_night.plan"), "done");
}

#[test]
fn a_replaced_git_object_is_verified_as_the_remote_has_it() {
    let verify = &["test ! -e code.txt || grep -q SAFE code.txt"];
    let fleet = Fleet::new(&["Item 1"], &FleetOptions { verify, ..FleetOptions::default() });
    let attack = "test -e code.txt || { echo EVIL > code.txt && git add code.txt && git commit -qm Evil && \
        git replace $(git rev-parse HEAD:code.txt) $(echo SAFE | git hash-object -w --stdin) && \
        rm code.txt && git checkout -q -- code.txt && git update-index --assume-unchanged code.txt; }";
    let model = start_model_with_turn_script(move |turn| run_and_finish_item(turn, attack));
    let machine = fleet.replay_machine(&model);
    let finished = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(fleet.event_count("refused") > 0, "{finished:?}");
    let landed_commits = fleet.remote_git(&["log", "--format=%H", fleet.target, "--", "code.txt"]);
    assert_eq!(landed_commits, "", "{finished:?}");
}

/// The address of a submodule is an option of git. git's own checks refuse the commit, because clones with submodules
/// would be attacked.
#[test]
fn a_commit_that_fails_gits_own_checks_never_leaves_its_machine() {
    let fleet = Fleet::new(&["Item 1"], &FleetOptions::default());
    let attack = "printf '[submodule \"x\"]\\n path = x\\n url = --upload-pack=./evil\\n' > .gitmodules";
    let model = start_model_with_turn_script(move |turn| run_and_finish_item(turn, attack));
    let machine = fleet.replay_machine(&model);
    let finished = spawn_join(&machine, &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(format!("{finished:?}").contains("cannot be taken over"), "{finished:?}");
    for reference in fleet.remote_git(&["for-each-ref", "--format=%(refname)", "refs/heads"]).lines() {
        let files = fleet.remote_git(&["ls-tree", "-r", "--name-only", reference]);
        assert!(!files.contains(".gitmodules"), "{reference}: {finished:?}");
    }
}
