//! `fleet join`: several machines work on one plan by a database and a git remote. Each has its own HOME, its own clone and its own
//! process group; nothing is lost, and nothing lands twice.

mod database_faults;
mod end_and_pause;
mod harness;
mod network_faults;
mod network_namespaces;
mod remote_faults;

use harness::{
    Fleet, LIMIT, NO_DATABASE, TASK, Terms, all_end_well, assert_tidy, does, honest, join, kill_machine,
    number, processes, signal_machine,
};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::story;
use plimsoll_testkit::world::{Finished, Running, World};
use plimsoll_tests::{LIFELIKE, side_by_side};
use std::time::Duration;

#[test]
fn two_machines_do_a_plan_and_everything_comes_together_on_the_remote_once() {
    let verify = &["test ! -e done/2.txt || test -e done/1.txt", NO_DATABASE];
    let items = ["Item 1", "Item 2 (after: 1)", "Item 3", "Item 4"];
    let fleet = Fleet::new(&items, &Terms { verify, ..Terms::default() });
    let model = story(honest);
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    fleet.server.sql(
        "insert into plimsoll.worker (plan, name, machine, pid, version, started, seen)
         values (1, 'old/1', 'old-machine', 1, '0.0.1', plimsoll.moment(), plimsoll.moment())",
    );
    let setup = format!("--setup={NO_DATABASE}");
    let running = [join(&machines[0], &["--workers", "2", &setup]), join(&machines[1], &[])];
    for (machine, running) in machines.iter().zip(running) {
        let finished = running.wait(LIMIT);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_tidy(machine, &finished);
        assert!(
            finished.stdout.contains("git fetch origin && git merge origin/plimsoll/night"),
            "{finished:?}"
        );
    }
    fleet.assert_landed_once("");
    assert_eq!(
        fleet.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]),
        "refs/heads/main\nrefs/heads/plimsoll/night"
    );
    let workers =
        fleet.server.sql("select count(*), count(distinct split_part(name, '/', 1)) from plimsoll.worker");
    assert_eq!(workers, "4|3");
}

/// The verify commands are the database's; each member decides for itself where they run.
#[cfg(target_os = "linux")]
#[test]
fn a_member_with_the_sandbox_confines_the_fleets_verify_commands() {
    crate::verify_sandbox::use_plain_temporary_folder();
    let verify = &["echo evil > ~/evil; git status > /dev/null"];
    let fleet = Fleet::new(&["Item 1"], &Terms { verify, ..Terms::default() });
    let model = story(honest);
    let machine = fleet.machine(&model);
    let finished = join(&machine, &["--verify-sandbox"]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert!(!machine.home().join("evil").exists(), "{finished:?}");
}

#[test]
fn what_a_machine_had_that_never_comes_back_another_does() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms::default());
    let mut is_first = true;
    let model = story(move |turn| match std::mem::take(&mut is_first) {
        true => honest(turn).delay(Duration::from_secs(10)),
        false => honest(turn),
    });
    let slow = fleet.machine(&model);
    let first = join(&slow, &[]);
    fleet.source.wait_until(|| fleet.events("claimed") >= 1, "it has an item");
    drop(first);
    kill_machine(&slow);
    fleet.let_leases_end();
    let second = fleet.machine(&model);
    let finished = join(&second, &["--workers", "2"]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_tidy(&second, &finished);
}

/// It had written down what it was about to land; whether it came to that is in the remote.
#[test]
fn a_merger_that_dies_before_or_after_its_push_is_followed_by_another() {
    side_by_side(&["pre-receive", "post-receive"], |hook| {
        let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &Terms::default());
        let model = story(honest);
        let machines = [fleet.machine(&model), fleet.machine(&model)];
        // The first that pushes to the target dies there.
        let once = "mkdir dead 2>/dev/null && { touch $HOME/died; kill -9 $(cat $HOME/run.pid); exit 1; }";
        fleet.write_hook(hook, once);
        let mut running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
        for (machine, running) in machines.iter().zip(&running) {
            machine.write(machine.home().join("run.pid"), &running.pid().to_string());
        }
        let died = |machine: &World| machine.home().join("died").exists();
        fleet.source.wait_until(|| machines.iter().any(died), "the merger dies");
        let dead = usize::from(!died(&machines[0]));
        drop(running.remove(dead));
        kill_machine(&machines[dead]);
        fleet.let_leases_end();
        let finished = running.remove(0).wait(LIMIT);
        assert_eq!(finished.code, Some(0), "{hook}: {finished:?}");
        fleet.assert_landed_once(&format!("{hook}: {finished:?}"));
        assert_tidy(&machines[1 - dead], &finished);
        assert!(fleet.events("merger") >= 2, "{hook}");
    });
}

/// Two that add a line at the same place, two that are red only together; and the database ends in the middle without a word.
#[test]
fn what_conflicts_or_is_red_together_is_done_again_while_the_database_restarts() {
    let verify = &["test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt"];
    let items = ["Item 1", "Item 2", "Item 3", "Item 4"];
    let mut fleet = Fleet::new(&items, &Terms { verify, ..Terms::default() });
    let model = story(|turn| {
        let Some(item) = turn.item.clone() else { return honest(turn) };
        let number = number(&item);
        let own = format!("mkdir -p done && echo '{item}' > done/{number}.txt");
        let line = match number.as_str() {
            "1" | "2" => format!("grep -qx '{item}' src/dates.txt || echo '{item}' >> src/dates.txt; {own}"),
            _ => format!("{own}; test ! -e done/3.txt || test ! -e done/4.txt || touch both.txt"),
        };
        does(turn, &format!("{line}; git add -A; git commit -qm 'Finish {item}' || true"))
            .delay(Duration::from_millis(300))
    });
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &["--workers", "2"])).collect();
    fleet.source.wait_until(|| fleet.events("offered") >= 1, "something is done");
    fleet.server.restart_immediately();
    all_end_well(&machines, running);
    let log = fleet.source.plimsoll(&["fleet", "log", "night"]).run().expect_success().stdout;
    fleet.assert_landed_once(&log);
    let dates = fleet.merged("src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {dates} {log}");
    }
    assert!(fleet.events("refused") >= 2, "{log}");
    // No tip that was pushed is red.
    for commit in fleet.git(&["log", "--first-parent", "--format=%H", "plimsoll/night"]).lines() {
        let files = fleet.git(&["ls-tree", "-r", "--name-only", commit]);
        let has = |file: &str| files.lines().any(|line| line == file);
        let is_tip = fleet
            .server
            .sql(&format!("select count(*) from plimsoll.item where '{commit}' = any (landings)"));
        let is_red = has("done/3.txt") && has("done/4.txt") && !has("both.txt");
        assert!(is_tip == "0" || !is_red, "{commit}: {log}");
    }
}

#[test]
fn a_database_that_is_away_for_too_long_ends_a_machine_and_joined_again_it_goes_on() {
    let mut fleet = Fleet::new(&["Item 1", "Item 2"], &Terms::default());
    let model = story(|turn| honest(turn).delay(Duration::from_millis(1_500)));
    let machine = fleet.machine(&model);
    let running = join(&machine, &["--database-patience", "3s"]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    fleet.server.stop_immediately();
    let away = running.wait(LIMIT);
    assert_eq!(away.code, Some(6), "{away:?}");
    assert!(away.stdout.contains("waited for "), "{away:?}");
    let worked = model.main_requests().len();
    assert!(worked >= 2, "the session came to its end: {away:?}");
    fleet.server.restart_immediately();
    let resumed = machine.plimsoll(&["run", "--resume"]).run();
    assert!(resumed.code == Some(1) && resumed.stderr.contains("plimsoll fleet join night"), "{resumed:?}");
    let finished = join(&machine, &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_tidy(&machine, &finished);
    assert_eq!(model.main_requests().len(), 4, "what was done while it was away counts");
}

/// Its sessions live on without it.
#[test]
fn a_machine_whose_join_is_killed_goes_on_with_what_is_at_work_when_it_joins_again() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms::default());
    let model = story(|turn| match turn.step {
        0 => honest(turn).delay(Duration::from_secs(3)),
        _ => honest(turn),
    });
    let machine = fleet.machine(&model);
    let mut running = join(&machine, &["--workers", "2"]);
    fleet.source.wait_until(|| model.main_requests().len() >= 2, "both work");
    running.kill();
    let finished = join(&machine, &["--workers", "2"]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_tidy(&machine, &finished);
    assert_eq!((model.main_requests().len(), fleet.events("claimed")), (4, 2), "no session was repeated");
}

#[test]
fn a_machine_that_was_frozen_beyond_its_lease_changes_nothing_when_it_goes_on() {
    let fleet = Fleet::new(&["Item 1"], &Terms::default());
    let mut is_first = true;
    let model = story(move |turn| match turn.step {
        0 if std::mem::take(&mut is_first) => honest(turn).delay(Duration::from_secs(4)),
        _ => honest(turn),
    });
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let frozen = join(&machines[0], &[]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    signal_machine(&machines[0], "-STOP");
    fleet.let_leases_end();
    let finished = join(&machines[1], &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    signal_machine(&machines[0], "-CONT");
    let late = frozen.wait(LIMIT);
    assert_eq!(late.code, Some(0), "{late:?}");
    fleet.assert_landed_once(&format!("{late:?}"));
    for (machine, finished) in machines.iter().zip([late, finished]) {
        assert_tidy(machine, &finished);
    }
    assert_eq!(fleet.events("offered"), 1);
}

#[test]
fn a_remote_that_rejects_the_target_ends_a_machine_with_its_words_and_what_is_done_stays_done() {
    let fleet = Fleet::new(&["Item 1"], &Terms::default());
    let model = story(honest);
    let machine = fleet.machine(&model);
    fleet.write_hook("pre-receive", "echo 'only on workdays'; exit 1");
    let rejected = join(&machine, &[]).wait(LIMIT);
    assert_eq!(rejected.code, Some(6), "{rejected:?}");
    assert!(rejected.stdout.contains("only on workdays"), "{rejected:?}");
    assert_eq!(fleet.server.sql("select stage from plimsoll.item"), "offered");
    let requests = model.main_requests().len();
    std::fs::remove_file(fleet.bare().join("hooks/pre-receive")).expect("our own file");
    let finished = join(&machine, &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_eq!(model.main_requests().len(), requests, "nothing is done twice");
    assert_tidy(&machine, &finished);
}

#[test]
fn a_question_is_answered_from_anywhere_and_another_machine_goes_on_with_what_was_done() {
    let fleet = Fleet::new(&["Item 1"], &Terms { is_merged: true, ..Terms::default() });
    let model = story(|turn| {
        if turn.saw("Use port 8042") {
            return does(turn, "test -e half.txt && mkdir -p done && echo 8042 > done/1.txt");
        }
        match turn.step {
            // What it notes in its copy of the plan travels with its work.
            0 => Step::bash(
                "echo half > half.txt && echo '  > port 80 is taken' >> fix_plan.md && git add -A && git commit -qm Half",
            )
            .usage(30_000),
            _ => {
                let words = turn.promise.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
                Step::text(format!("I cannot go on.\n\n{words}")).usage(31_000)
            }
        }
    });
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let asked = join(&machines[0], &[]).wait(LIMIT);
    assert_eq!(asked.code, Some(7), "{asked:?}");
    let here = machines[0].plimsoll(&["status", "--answer", "1", "Use port 8042"]).run();
    assert!(here.code == Some(1) && here.stderr.contains("plimsoll fleet answer night"), "{here:?}");
    assert!(asked.stdout.contains("which port?"), "{asked:?}");
    fleet.source.plimsoll(&["fleet", "answer", "night", "1", "Use port 8042"]).run().expect_success();
    let finished = join(&machines[1], &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fleet.assert_landed_once(&format!("{finished:?}"));
    assert_eq!(fleet.merged("half.txt"), "half");
    assert_eq!(fleet.merged("fix_plan.md").matches("\n  > port 80 is taken").count(), 1);
    assert_tidy(&machines[1], &finished);
}

#[test]
fn ctrl_c_gives_back_what_is_not_done_and_a_fleet_that_drains_or_is_stopped_lets_its_machines_go() {
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &Terms::default());
    let mut begun = 0;
    let model = story(move |turn| {
        begun += usize::from(turn.step == 0);
        // The first is asked to end before its item is done.
        if turn.step == 0 && begun == 1 {
            return Step::bash("sleep 2 && echo part > part.txt").usage(30_000);
        }
        if begun == 1 {
            return Step::text("There is more to do.").usage(31_000);
        }
        honest(turn).delay(Duration::from_millis(800))
    });
    let machine = fleet.machine(&model);
    let mut running = join(&machine, &[]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    running.interrupt();
    let stopped = running.wait(LIMIT);
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    assert_eq!(fleet.server.sql("select stage from plimsoll.item where place = 0"), "open", "{stopped:?}");
    // What it had is on the remote, and another begins there.
    let other = fleet.machine(&model);
    let running = join(&other, &[]);
    let before = model.main_requests().len();
    fleet.source.wait_until(|| model.main_requests().len() > before, "another works");
    fleet.source.plimsoll(&["fleet", "drain", "night"]).run().expect_success();
    let drained = running.wait(LIMIT);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert!(drained.stdout.contains("the fleet drains: 1 of 3 items merged"), "{drained:?}");
    assert_eq!(fleet.merged("part.txt"), "part", "{drained:?}");
    fleet.source.plimsoll(&["fleet", "resume", "night"]).run().expect_success();
    let running = join(&other, &[]);
    let before = model.main_requests().len();
    fleet.source.wait_until(|| model.main_requests().len() > before, "it works again");
    fleet.source.plimsoll(&["fleet", "stop", "night", "--yes"]).run().expect_success();
    let ended = running.wait(LIMIT);
    assert_eq!(ended.code, Some(9), "{ended:?}");
    assert!(ended.stdout.contains("the fleet was stopped"), "{ended:?}");
    assert_eq!(
        fleet.server.sql("select count(*) from plimsoll.item where stage = 'leased'"),
        "0",
        "{ended:?}"
    );
    let again = join(&other, &[]).wait(LIMIT);
    assert!(again.code == Some(1) && again.stderr.contains("was stopped"), "{again:?}");
    // Another of that name begins where nothing of this one is in the way.
    fleet.let_leases_end();
    fleet.source.plimsoll(&["fleet", "forget", "night", "--yes"]).run().expect_success();
    fleet.git(&["branch", "-q", "-D", "plimsoll/night"]);
    fleet.git(&["branch", "-q", "plimsoll-items/night/9/1", "main"]);
    let anew = fleet.source.plimsoll(&["fleet", "create", "night"]).run();
    assert!(anew.code == Some(1) && anew.stderr.contains("(plimsoll-items/night/…)"), "{anew:?}");
    assert!(processes(&other).is_empty());
}

#[test]
fn all_machines_together_spend_no_more_than_the_fleet_may() {
    // A session costs almost a cent and a half. Whether both begin at once or one waits for the other's money, after two sessions
    // nothing is left: each may end with the response that goes beyond its share.
    let terms = Terms { max_cost: Some(0.025), ..Terms::default() };
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &terms);
    let model = story(|turn| honest(turn).delay(LIFELIKE));
    let machines = [fleet.real_machine(&model), fleet.real_machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
    let finished: Vec<Finished> = running.into_iter().map(|running| running.wait(LIMIT)).collect();
    assert!(finished.iter().any(|finished| finished.code == Some(3)), "{finished:?}");
    assert!(finished.iter().all(|finished| finished.code != Some(0)), "{finished:?}");
    let spent: f64 = fleet.server.sql("select sum(cost) from plimsoll.worker").parse().expect("a number");
    assert!(spent > 0.02 && spent < 0.03, "{spent} {finished:?}");
    let merged = fleet.server.sql("select count(*) from plimsoll.item where stage = 'merged'");
    assert_eq!(merged, "2", "{finished:?}");
    // Nothing could be claimed any more: a machine that comes later is told, and does not wait.
    let late = join(&fleet.machine(&model), &[]).wait(LIMIT);
    assert!(late.code == Some(3) && late.stdout.contains("spent by the whole fleet"), "{late:?}");
}

/// The remote knows what has landed, too.
#[test]
fn of_a_database_that_was_restored_from_a_backup_nothing_is_done_or_lands_again() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms::default());
    fleet.server.sql("create schema backup; create table backup.item as select * from plimsoll.item");
    let model = story(honest);
    let machine = fleet.machine(&model);
    let finished = join(&machine, &["--workers", "2"]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let (tip, requests) = (fleet.git(&["rev-parse", "plimsoll/night"]), model.main_requests().len());
    fleet.server.sql(
        "truncate plimsoll.item, plimsoll.worker, plimsoll.event; insert into plimsoll.item select * from backup.item;
         update plimsoll.plan set ended = null, merger = '', merger_until = 0, merger_epoch = 0, passed = '{}'",
    );
    let again = join(&fleet.machine(&model), &[]).wait(LIMIT);
    assert_eq!(again.code, Some(0), "{again:?}");
    fleet.assert_landed_once(&format!("{again:?}"));
    assert_eq!((fleet.git(&["rev-parse", "plimsoll/night"]), model.main_requests().len()), (tip, requests));
}

#[test]
fn two_machines_share_a_plan_with_the_real_client() {
    let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms { verify: &["true"], ..Terms::default() });
    let model = story(|turn| honest(turn).delay(LIFELIKE));
    let machines = [fleet.real_machine(&model), fleet.real_machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
    all_end_well(&machines, running);
    fleet.assert_landed_once("");
    assert_eq!(
        fleet.server.sql("select count(distinct worker) from plimsoll.event where kind = 'offered'"),
        "2"
    );
}

#[test]
fn a_clone_that_cannot_join_says_why() {
    let fleet = Fleet::new(&["Item 1"], &Terms::default());
    let model = story(honest);
    let mut machine = fleet.machine(&model);
    let refused = |machine: &World, arguments: &[&str], words: &str| {
        let finished = join(machine, arguments).wait(LIMIT);
        assert!(finished.code == Some(1) && finished.stderr.contains(words), "{words}: {finished:?}");
        assert!(!machine.exists(".claude/ralph-state.json"), "{finished:?}");
    };
    machine.write("PROMPT.md", "Something else.");
    refused(&machine, &[], "the task here is not the one that the fleet `night` was created with");
    machine.write("PROMPT.md", TASK);
    refused(&machine, &["--remote", "upstream"], "the clone has no remote `upstream`");
    refused(&machine, &["--client", "no-such-client"], "there is no client `no-such-client`");
    machine.write("src/dates.txt", "changed\n");
    refused(&machine, &[], "there are uncommitted changes");
    machine.git(&["checkout", "-q", "."]);
    let none = machine.plimsoll(&["fleet", "join", "day", "--", "--model", "opus"]).run();
    assert!(
        none.code == Some(1) && none.stderr.contains("there is no fleet with the name `day`"),
        "{none:?}"
    );
    machine.set_env(
        "PLIMSOLL_DATABASE_URL",
        fleet.server.socket().replace(&fleet.server.port().to_string(), "1"),
    );
    refused(&machine, &[], "it cannot be reached");
}

#[test]
fn a_row_of_the_database_is_no_option_of_git() {
    let victim = std::env::temp_dir().join(format!("plimsoll-victim-{}", std::process::id()));
    let option = format!("--output={}", victim.display());
    for column in ["beyond", "start", "sha", "landings"] {
        let fleet = Fleet::new(&["Item 1"], &Terms::default());
        let model = story(honest);
        let machine = fleet.machine(&model);
        let offered = if column == "sha" { ", stage = 'offered'" } else { "" };
        let value = if column == "landings" { format!("array['{option}']") } else { format!("'{option}'") };
        fleet.server.sql(&format!("update plimsoll.item set {column} = {value}{offered}"));
        let finished = join(&machine, &[]).wait(LIMIT);
        assert_ne!(finished.code, Some(0), "{column}: {finished:?}");
        assert!(format!("{finished:?}").contains("is not a commit id"), "{column}: {finished:?}");
        assert!(!victim.exists(), "{column}: {finished:?}");
    }
}

#[test]
fn a_replaced_object_is_verified_as_a_clone_of_the_remote_has_it() {
    let verify = &["test ! -e code.txt || grep -q SAFE code.txt"];
    let fleet = Fleet::new(&["Item 1"], &Terms { verify, ..Terms::default() });
    let attack = "test -e code.txt || { echo EVIL > code.txt && git add code.txt && git commit -qm Evil && \
        git replace $(git rev-parse HEAD:code.txt) $(echo SAFE | git hash-object -w --stdin) && \
        rm code.txt && git checkout -q -- code.txt && git update-index --assume-unchanged code.txt; }";
    let model = story(move |turn| does(turn, attack));
    let machine = fleet.machine(&model);
    let finished = join(&machine, &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(fleet.events("refused") > 0, "{finished:?}");
    let landed = fleet.git(&["log", "--format=%H", fleet.target, "--", "code.txt"]);
    assert_eq!(landed, "", "{finished:?}");
}

/// A submodule's address that is an option: git's own checks refuse it, and a clone with submodules would be attacked.
#[test]
fn a_commit_that_gits_checks_refuse_leaves_no_machine() {
    let fleet = Fleet::new(&["Item 1"], &Terms::default());
    let attack = "printf '[submodule \"x\"]\\n path = x\\n url = --upload-pack=./evil\\n' > .gitmodules";
    let model = story(move |turn| does(turn, attack));
    let machine = fleet.machine(&model);
    let finished = join(&machine, &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(format!("{finished:?}").contains("cannot be taken over"), "{finished:?}");
    for reference in fleet.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]).lines() {
        let files = fleet.git(&["ls-tree", "-r", "--name-only", reference]);
        assert!(!files.contains(".gitmodules"), "{reference}: {finished:?}");
    }
}
