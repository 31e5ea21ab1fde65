//! A fleet from its first to its last command; the work in between is done on the board, without clients.

use super::{Bench, PLAN, TASK, fail_for_good, refused, tell};
use crate::json_outputs::{check, page};
use plimsoll_domain::workers::ItemOutcome;
use plimsoll_fleet::WorkerReport;
use plimsoll_testkit::bin_dir;
use std::time::Duration;

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

fn report(name: &str, machine: &str, cost: f64) -> WorkerReport {
    let (name, machine) = (name.to_owned(), machine.to_owned());
    WorkerReport {
        name,
        machine,
        cost,
        percent: Some(43.4),
        version: "0.1.0".to_owned(),
        ..WorkerReport::default()
    }
}

#[test]
fn a_plan_of_a_clone_becomes_a_fleet_whose_work_has_a_branch_of_its_own() {
    let bench = Bench::new();
    let empty = bench.fleet(&["status"]);
    refused(&empty, &["has no fleet yet", "hint: create a fleet first"]);
    let created = bench
        .create(&["--verify", "make test", "--max-cost", "40", "--max-iterations", "90"])
        .expect_success();
    let head = bench.head();
    for words in [
        &format!("the fleet `night` is created: 4 open items, from {}\n", &head[..12]),
        "its work comes together on plimsoll/night of origin\n",
        "plimsoll fleet join night --workers N -- CLIENT ARGS",
    ] {
        assert!(created.stdout.contains(words), "{words}\n{created:?}");
    }
    assert_eq!(bench.there("plimsoll/night"), Some(head.clone()));
    assert_eq!(bench.there("main"), Some(head.clone()));
    let row = bench
        .sql()
        .query_one(
            "select repo, target, array_to_string(verify, ' '), deliver, began_at, plan_file, plan_is_tracked, below, promise,
               max_sessions, max_cost, objective_hash from plimsoll.plan",
            &[],
        )
        .expect("a plan");
    let text = |place: usize| row.get::<_, String>(place);
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 7, 8].map(text),
        [
            "../there.git",
            "plimsoll/night",
            "make test",
            "branch",
            head.as_str(),
            "fix_plan.md",
            "",
            "COMPLETE"
        ]
        .map(str::to_owned)
    );
    assert!(row.get::<_, bool>(6) && row.get::<_, i64>(9) == 90);
    assert_eq!(text(11), plimsoll_fleet::objective_hash(TASK.trim()));
    let all: String =
        bench.sql().query_one("select jsonb_agg(plan)::text from plimsoll.plan", &[]).expect("JSON").get(0);
    assert!(!all.contains("great care"), "the task is no business of the database's: {all}");

    refused(
        &bench.create(&[]),
        &["there is a fleet with the name `night` already", "hint: choose another name"],
    );
    assert_eq!(bench.sql().query("select from plimsoll.plan", &[]).expect("rows").len(), 1);
    let listed = bench.fleet(&["status"]).expect_success();
    assert_eq!(listed.stdout, "night: no worker is there; 1 of 5 items merged, 4 open; $0.00 of $40.00\n");
    let listed = bench.fleet(&["status", "--json"]).json();
    assert_eq!(listed["fleets"][0]["items"]["open"], 4);
    // From anywhere, without a clone.
    let elsewhere =
        bench.world.plimsoll(&["fleet", "status", "night"]).cwd(bench.world.home()).run().expect_success();
    assert!(elsewhere.stdout.contains("Next         in a clone: plimsoll fleet join night"), "{elsewhere:?}");
}

#[test]
fn what_members_do_is_seen_in_status_log_and_report() {
    let bench = Bench::new();
    bench.create(&[]).expect_success();
    let mut member = bench.member();
    for (name, machine, cost) in [("one/1", "one", 1.5), ("two/1", "two", 0.25)] {
        member.report(&report(name, machine, cost)).expect("an answer");
    }
    let first = member.claim("one/1").expect("an answer").expect("an item");
    tell(&mut member, first, SHA, ItemOutcome::Offered);
    let merger = member.become_merger("one").expect("an answer").expect("nobody else");
    member.land(merger, first.item, SHA).expect("the merger");
    let landed = member.landings().expect("an answer").into_iter().collect();
    assert_eq!(member.settle_landed(&landed).expect("an answer"), [first.item]);
    let second = member.claim("one/1").expect("an answer").expect("an item");
    let third = member.claim("two/1").expect("an answer").expect("an item");
    tell(&mut member, third, "", ItemOutcome::Asked("Which port, \u{1b}[31m8042?".to_owned()));
    let secret = format!("{}{}", "ghp_", "aB3dE5fG7hK9".repeat(3));
    fail_for_good(&mut member, "two/1", &format!("a fatal error, {secret}"));

    let screen = bench.fleet(&["status", "night"]).expect_success().stdout;
    for words in [
        "Status       at work\n",
        "Items        2 of 5 items merged, 1 at work, 2 set aside\n",
        "Cost         $1.75\n",
        "Branch       plimsoll/night, begun at ",
        "Workers      one/1  3 \"Print dates (after: 2)\"  43 %  $1.50  heard of ",
        "             two/1  no item  43 %  $0.25  heard of ",
        "Set aside    5 \"Write the page\": a fatal error, ",
        "Questions    4 \"Say which port\": Which port, \\u{1b}[31m8042?\n",
        "Next         plimsoll fleet answer night 4 TEXT\n",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    let document = bench.fleet(&["status", "night", "--json"]).json();
    assert_eq!(
        (&document["items"][2]["worker"], &document["workers"][0]["machine"]),
        (&"one/1".into(), &"one".into())
    );

    let log = bench.fleet(&["log", "night"]).expect_success().stdout;
    for words in [
        "the fleet was created: 5 items\n",
        "one/1 began item 2 \"Parse dates\"\n",
        "item 2 \"Parse dates\" is done and waits to be merged (worker one/1): 0123456789ab\n",
        "item 2 \"Parse dates\" is merged\n",
        "item 4 \"Say which port\" was set aside (worker two/1): Which port",
    ] {
        assert!(log.contains(words), "{words}\n{log}");
    }
    let newest = bench.fleet(&["log", "night", "-n", "2", "--json"]).expect_success().json_lines();
    assert_eq!(newest.len(), 2);
    assert_eq!((&newest[1]["kind"], &newest[1]["item"]), (&"failed".into(), &5.into()));

    let report_page = bench.fleet(&["report", "night"]).expect_success().stdout;
    for words in [
        "# Fleet night\n",
        "To merge it: `git fetch origin && git merge origin/plimsoll/night`\n",
        "## Questions (1)\n\n- **4** Say which port: Which port",
        "## Merged (2)\n\n- **1** Begin (ticked before)\n- **2** Parse dates (0123456789ab)\n",
        "## At work (1)\n\n- **3** Print dates (after: 2) (one/1)\n",
        "| one | 1 | $1.50 |\n| two | 1 | $0.25 |",
    ] {
        assert!(report_page.contains(words), "{words}\n{report_page}");
    }
    for shown in [&screen, &log, &report_page] {
        assert!(!shown.contains("ghp_") && !shown.contains('\u{1b}'), "{shown}");
    }
    let tables = page();
    check(&tables, "fleet_whole", &document, "status night");
    check(&tables, "fleets", &bench.fleet(&["status", "--json"]).json(), "status");
    let lines = bench.fleet(&["log", "night", "--json"]).json_lines();
    lines.iter().for_each(|line| check(&tables, "fleet_event", line, "log"));
    let examined = bench.world.plimsoll(&["doctor", "--fleet", "night", "--json"]).run().json();
    check(&tables, "fleet_findings", &examined, "doctor");
    // It is still held, and its epoch is the one of the claim.
    member.renew(second).expect("nothing here changed the board");
}

#[test]
fn questions_are_answered_and_what_failed_is_opened_again() {
    let bench = Bench::new();
    bench.create(&[]).expect_success();
    let mut member = bench.member();
    let first = member.claim("one/1").expect("an answer").expect("an item");
    tell(&mut member, first, "", ItemOutcome::Failed("nothing came of it".to_owned()));
    let again = member.claim("one/1").expect("an answer").expect("an item");
    assert_eq!(again.item, first.item);
    tell(&mut member, again, "", ItemOutcome::Asked("Which?".to_owned()));
    let other = fail_for_good(&mut member, "one/1", "no");
    let number = |place: usize| (place + 1).to_string();
    let (asked, ended) = (number(first.item), number(other.item));

    for (words, reason) in [
        (vec!["answer", "night", &ended, "This"], "waits for no answer"),
        (vec!["answer", "night", "0", "This"], "waits for no answer"),
        (vec!["answer", "night", "99", "This"], "waits for no answer"),
        (vec!["answer", "night", &asked, " "], "the answer is empty"),
        (vec!["reopen", "night", &asked], "waits for an answer: plimsoll fleet answer gives it"),
        (vec!["reopen", "night", "1"], "is not set aside"),
        (vec!["reopen", "night", "0"], "is not set aside"),
        (vec!["reopen", "day", "1"], "there is no fleet with the name `day`"),
    ] {
        refused(&bench.fleet(&words), &[reason]);
    }
    bench.fleet(&["answer", "night", &asked, "The", "first", "-one"]).expect_success();
    refused(&bench.fleet(&["answer", "night", &asked, "Again"]), &["waits for no answer"]);
    bench.fleet(&["reopen", "night", &ended]).expect_success();
    let row = bench
        .sql()
        .query_one("select stage, tries, question, answer from plimsoll.item where question is not null", &[])
        .expect("one that was asked");
    let text = |place: usize| row.get::<_, String>(place);
    assert_eq!((text(0).as_str(), row.get::<_, i32>(1)), ("open", 1), "its tries are kept");
    assert_eq!((text(2).as_str(), text(3).as_str()), ("Which?", "The first -one"));
    assert_eq!(member.claim("one/1").expect("an answer").map(|claim| claim.item), Some(first.item));
    let log = bench.fleet(&["log", "night"]).expect_success().stdout;
    assert!(log.contains("was answered: The first -one\n") && log.contains("is open again\n"), "{log}");
}

#[test]
fn a_fleet_drains_goes_on_is_stopped_and_forgotten() {
    let bench = Bench::new();
    bench.create(&[]).expect_success();
    let mut member = bench.member();
    member.report(&report("one/1", "one", 0.0)).expect("an answer");
    let first = member.claim("one/1").expect("an answer").expect("an item");
    let drained = bench.fleet(&["drain", "night"]).expect_success();
    assert!(
        drained.stdout.contains("`night` drains: nothing new is begun, 1 item will be finished"),
        "{drained:?}"
    );
    assert!(bench.fleet(&["drain", "night"]).expect_success().stdout.contains("drains already"));
    assert_eq!(member.claim("two/1").expect("an answer"), None);
    assert!(
        bench.fleet(&["status"]).expect_success().stdout.contains("night: draining: nothing new is begun;")
    );
    assert!(bench.fleet(&["resume", "night"]).expect_success().stdout.contains("the fleet `night` goes on"));
    assert!(bench.fleet(&["resume", "night"]).expect_success().stdout.contains("was not draining"));
    let second = member.claim("two/1").expect("an answer");
    assert!(second.is_some());

    // What comes is told as it comes, and the end of the fleet is the end of the log.
    let following = bench.world.plimsoll(&["fleet", "log", "night", "--follow"]).spawn();
    bench.world.wait_until(|| following.stdout_so_far().contains("two/1 began"), "the lines that are there");
    tell(&mut member, first, SHA, ItemOutcome::Offered);
    bench.world.wait_until(|| following.stdout_so_far().contains("waits to be merged"), "a new line");
    let stopped = bench.fleet(&["stop", "night", "--yes"]).expect_success();
    assert!(
        stopped.stdout.contains("unfinished work stays on its branches plimsoll-items/night/…"),
        "{stopped:?}"
    );
    assert!(bench.fleet(&["stop", "night"]).expect_success().stdout.contains("is over already: stopped"));
    for verb in ["drain", "resume"] {
        refused(&bench.fleet(&[verb, "night"]), &["the fleet `night` is over (stopped)"]);
    }
    refused(
        &bench.fleet(&["forget", "night"]),
        &["workers of the fleet `night` are at work: one/1", "hint: stop them"],
    );
    bench.sql().batch_execute("update plimsoll.worker set seen = 0").expect("long ago");
    let followed = following.wait(Duration::from_secs(60));
    assert_eq!(followed.code, Some(0), "{followed:?}");
    assert!(followed.stdout.contains("the fleet was stopped\n"), "{followed:?}");
    assert!(followed.stderr.contains("the fleet `night` is over (stopped)"), "{followed:?}");

    let forgotten = bench.fleet(&["forget", "night"]).expect_success();
    for words in [
        "no longer in the database",
        "  plimsoll/night\n",
        "  plimsoll-items/night/2/1\n",
        "git push origin --delete",
    ] {
        assert!(forgotten.stdout.contains(words), "{words}\n{forgotten:?}");
    }
    refused(&bench.fleet(&["status", "night"]), &["there is no fleet with the name `night`"]);
    assert_eq!(bench.fleet(&["status"]).expect_success().stdout.lines().count(), 1);
}

#[test]
fn a_follower_goes_on_when_the_database_comes_back() {
    let mut bench = Bench::new();
    bench.create(&[]).expect_success();
    let following = bench.world.plimsoll(&["fleet", "log", "night", "--follow"]).spawn();
    bench.world.wait_until(|| following.stdout_so_far().contains("was created"), "the line that is there");
    bench.server.restart_immediately();
    bench.member().claim("one/1").expect("an answer").expect("an item");
    bench
        .world
        .wait_until(|| following.stdout_so_far().contains("one/1 began"), "a line of after the restart");
    assert_eq!(following.stdout_so_far().matches("was created").count(), 1);
}

#[test]
fn what_cannot_be_undone_is_asked_about_on_a_terminal() {
    use plimsoll_testkit::terminal::Terminal;
    let bench = Bench::new();
    bench.create(&[]).expect_success();
    for (verb, question) in
        [("stop", "Stop the fleet \"night\" for good"), ("forget", "Remove the fleet \"night\"")]
    {
        let program = bin_dir().join("plimsoll");
        let mut terminal = Terminal::start(&bench.world, &program, &["fleet", verb, "night"], 120, 24);
        terminal.wait_for(question);
        terminal.type_text("n");
        terminal.press_enter();
        terminal.wait_for("nothing was done");
        assert_eq!(terminal.wait_exit().exit_code(), 1);
    }
    assert!(bench.fleet(&["status"]).expect_success().stdout.starts_with("night: no worker is there"));
}

#[test]
fn merge_goes_onto_the_branch_itself_and_a_plan_may_lie_in_a_folder() {
    let bench = Bench::new();
    bench.world.write("docs/pages/list.md", PLAN);
    bench.world.git(&["add", "docs"]);
    bench.world.git(&["commit", "-qm", "Plan more"]);
    bench.world.git(&["push", "-q", "origin", "main"]);
    let before = bench.world.git(&["ls-remote", "origin"]);
    bench.create(&["--deliver", "merge", "--todo", "docs/pages/list.md"]).expect_success();
    assert_eq!(bench.world.git(&["ls-remote", "origin"]), before, "nothing is pushed");
    let row =
        bench.sql().query_one("select target, deliver, plan_file from plimsoll.plan", &[]).expect("a plan");
    let text = |place: usize| row.get::<_, String>(place);
    assert_eq!([0, 1, 2].map(text), ["main", "merge", "docs/pages/list.md"].map(str::to_owned));
}
