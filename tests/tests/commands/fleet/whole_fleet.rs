//! A fleet from its first to its last command. The items are worked on directly on the board, without clients.

use super::{FleetTestBench, PLAN, TASK, fail_until_set_aside, record_outcome};
use crate::json_outputs::{assert_matches_type, load_json_page};
use plimsoll_domain::workers::ItemOutcome;
use plimsoll_fleet::WorkerReport;
use plimsoll_testkit::find_or_build_bin_dir;
use std::time::Duration;

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

fn worker_report(machine: &str, cost: f64) -> WorkerReport {
    WorkerReport {
        machine_name: machine.to_owned(),
        total_cost_usd: cost,
        context_percent: Some(43.4),
        plimsoll_version: "0.1.0".to_owned(),
        ..WorkerReport::default()
    }
}

/// Returns the log's events without the headings, which are days.
fn log_events(bench: &FleetTestBench, log: &str) -> String {
    let events: Vec<&str> = log.lines().filter(|line| !line.starts_with("── ")).collect();
    bench.stable_text(&events.join("\n").replace(&SHA[..12], "[ENDED COMMIT]"))
}

#[test]
fn fleet_create_makes_a_fleet_with_its_own_branch_from_a_clones_plan() {
    let bench = FleetTestBench::new();
    let listed = bench.run_fleet(&["status"]).expect_success();
    insta::assert_snapshot!(listed.stdout, @"There is no fleet in the database that this role may see. Create one with `plimsoll fleet create NAME`.");
    let created = bench
        .create_fleet(&["--verify", "make test", "--max-cost", "40", "--max-iterations", "90"])
        .expect_success();
    let head = bench.head_commit();
    let password = created.stdout.trim_end().rsplit_once("PGPASSWORD=").expect("a password").1;
    assert!(password.len() == 32 && password.bytes().all(|byte| byte.is_ascii_hexdigit()), "{password}");
    insta::assert_snapshot!(created.stdout.replace(&head[..12], "[HEAD]").replace(password, "[PASSWORD]"), @"
    created the fleet `night`: 4 open items, from [HEAD]
    the work is merged into plimsoll/night of origin
    in a clone on each machine: plimsoll fleet join night --workers N -- CLIENT ARGS
    machines that join connect to the database as the role `plimsoll_night`; its password is shown only now:
      PGUSER=plimsoll_night PGPASSWORD=[PASSWORD]
    ");
    // Over TCP the server asks for the password.
    let member_address =
        format!("host=127.0.0.1 port={} user=plimsoll_night dbname=postgres", bench.server.port());
    let connects_with = |password: &str| {
        let address = format!("{member_address} password={password}");
        postgres::Client::connect(&address, postgres::NoTls).is_ok()
    };
    assert_eq!((connects_with(password), connects_with("hunter2")), (true, false));
    assert_eq!(bench.remote_branch_commit("plimsoll/night"), Some(head.clone()));
    assert_eq!(bench.remote_branch_commit("main"), Some(head.clone()));
    let row = bench
        .sql_client()
        .query_one(
            "select repo, target, array_to_string(verify, ' '), deliver, began_at, plan_file, plan_is_tracked, below, promise,
               max_sessions, max_cost, objective_hash from plimsoll_night.plan",
            &[],
        )
        .expect("a plan");
    let text_column = |column: usize| row.get::<_, String>(column);
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 7, 8].map(text_column),
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
    assert_eq!(text_column(11), plimsoll_fleet::hash_objective(TASK.trim()));
    let all: String = bench
        .sql_client()
        .query_one("select jsonb_agg(plan)::text from plimsoll_night.plan", &[])
        .expect("JSON")
        .get(0);
    assert!(!all.contains("great care"), "the task is no business of the database's: {all}");

    insta::assert_snapshot!(bench.expect_error(&bench.create_fleet(&[])), @"
    error: a fleet named `night` already exists
    hint: choose another name, or forget that fleet first
    ");
    assert_eq!(bench.sql_client().query("select from plimsoll_night.plan", &[]).expect("rows").len(), 1);
    let listed = bench.run_fleet(&["status"]).expect_success();
    assert_eq!(listed.stdout, "night: no active worker; 1 of 5 items merged, 4 open; $0.00 of $40.00\n");
    let listed = bench.run_fleet(&["status", "--json"]).stdout_json();
    assert_eq!(listed["fleets"][0]["items"]["open"], 4);
    // The command works anywhere, without a clone.
    let elsewhere =
        bench.world.plimsoll(&["fleet", "status", "night"]).cwd(bench.world.home()).run().expect_success();
    insta::assert_snapshot!(bench.stable_text(&elsewhere.stdout), @r#"
    Fleet        night
    Status       no active worker
    Items        1 of 5 items merged, 4 open
    Cost         $0.00 of $40.00
    Sessions     0 of 90
    Created      [TIME]
    Remote       ../there.git
    Branch       plimsoll/night, begun at [COMMIT]
    Verify       make test
    Open         2 "Parse dates"
                 3 "Print dates (after: 2)"
                 4 "Say which port"
                 5 "Write the page"
    Next         in a clone: plimsoll fleet join night --workers N -- CLIENT ARGS
    "#);
}

#[test]
fn members_work_appears_in_status_log_and_report() {
    let bench = FleetTestBench::new();
    bench.create_fleet(&[]).expect_success();
    let mut member = bench.open_member();
    for (name, cost) in [("one", 1.5), ("two", 0.25)] {
        member.record_worker_report(name, &worker_report(name, cost)).expect("an answer");
    }
    let first = member.claim_next_item("one").expect("an answer").expect("an item");
    record_outcome(&mut member, first, SHA, ItemOutcome::Offered);
    let merger = member.acquire_or_renew_merger_lease("one").expect("an answer").expect("nobody else");
    member.record_merge_candidate_commit(merger, first.item_index, SHA).expect("the merger");
    assert_eq!(member.mark_landed_merged(|commit| commit == SHA).expect("an answer"), [first.item_index]);
    let second = member.claim_next_item("one").expect("an answer").expect("an item");
    let third = member.claim_next_item("two").expect("an answer").expect("an item");
    record_outcome(
        &mut member,
        third,
        "",
        ItemOutcome::WaitsForAnswer("Which port, \u{1b}[31m8042?".to_owned()),
    );
    let secret = format!("{}{}", "ghp_", "aB3dE5fG7hK9".repeat(3));
    fail_until_set_aside(&mut member, "two", &format!("a fatal error, {secret}"));

    let screen = bench.run_fleet(&["status", "night"]).expect_success().stdout;
    insta::assert_snapshot!(bench.stable_text(&screen), @r#"
    Fleet        night
    Status       at work
    Items        2 of 5 items merged, 1 at work, 2 set aside
    Cost         $1.75
    Created      [TIME]
    Remote       ../there.git
    Branch       plimsoll/night, begun at [COMMIT]
    Workers      one/1  3 "Print dates (after: 2)"  43%  $1.50  last report [DURATION] ago
                 two/1  no item  43%  $0.25  last report [DURATION] ago
    Set aside    5 "Write the page": a fatal error, [redacted:github-token]
    Questions    4 "Say which port": Which port, \u{1b}[31m8042?
    Next         plimsoll fleet answer night 4 TEXT
    "#);
    let document = bench.run_fleet(&["status", "night", "--json"]).stdout_json();
    assert_eq!(
        (&document["items"][2]["worker"], &document["workers"][0]["machine"]),
        (&"one/1".into(), &"one".into())
    );

    let log = bench.run_fleet(&["log", "night"]).expect_success().stdout;
    insta::assert_snapshot!(log_events(&bench, &log), @r#"
    [TIME]  the fleet was created: 5 items
    [TIME]  one/1 started item 2 "Parse dates"
    [TIME]  item 2 "Parse dates" is done and waits to be merged (worker one/1): [ENDED COMMIT]
    [TIME]  one now merges the items
    [TIME]  item 2 "Parse dates" is about to be merged as [ENDED COMMIT]
    [TIME]  item 2 "Parse dates" is merged
    [TIME]  one/1 started item 3 "Print dates (after: 2)"
    [TIME]  two/1 started item 4 "Say which port"
    [TIME]  item 4 "Say which port" was set aside (worker two/1): Which port, \u{1b}[31m8042?
    [TIME]  two/1 started item 5 "Write the page"
    [TIME]  item 5 "Write the page" was given back after a failure (worker two/1): a fatal error, [redacted:github-token]
    [TIME]  two/1 started item 5 "Write the page", attempt 2
    [TIME]  item 5 "Write the page" was given back after a failure (worker two/1): a fatal error, [redacted:github-token]
    [TIME]  two/1 started item 5 "Write the page", attempt 3
    [TIME]  item 5 "Write the page" was given back after a failure (worker two/1): a fatal error, [redacted:github-token]
    [TIME]  item 5 "Write the page" was set aside (worker two/1): 3 attempts failed
    "#);
    let newest = bench.run_fleet(&["log", "night", "-n", "2", "--json"]).expect_success().json_lines();
    assert_eq!(newest.len(), 2);
    assert_eq!((&newest[1]["kind"], &newest[1]["item"]), (&"set_aside".into(), &5.into()));

    let report_page = bench.run_fleet(&["report", "night"]).expect_success().stdout;
    insta::assert_snapshot!(bench.stable_text(&report_page.replace(&SHA[..12], "[ENDED COMMIT]")), @r"
    # Fleet night

    Created [TIME]; at work. 2 of 5 items merged, 1 at work, 2 set aside; $1.75, 0 sessions, 0 tokens.

    To merge it: `git fetch origin && git merge origin/plimsoll/night`

    ## Questions (1)

    - **4** Say which port: Which port, \\u{1b}\[31m8042? (`plimsoll fleet answer night 4 TEXT`)

    ## Set aside (1)

    - **5** Write the page: a fatal error, \[redacted:github-token\]

    ## Merged (2)

    - **1** Begin (ticked before)
    - **2** Parse dates ([ENDED COMMIT])

    ## At work (1)

    - **3** Print dates (after: 2) (one/1)

    ## Machines

    | machine | workers | cost |
    | --- | --- | --- |
    | one | 1 | $1.50 |
    | two | 1 | $0.25 |
    ");
    let tables = load_json_page();
    assert_matches_type(&tables, "fleet_whole", &document, "status night");
    assert_matches_type(&tables, "fleets", &bench.run_fleet(&["status", "--json"]).stdout_json(), "status");
    let lines = bench.run_fleet(&["log", "night", "--json"]).json_lines();
    lines.iter().for_each(|line| assert_matches_type(&tables, "fleet_event", line, "log"));
    let examined = bench.world.plimsoll(&["doctor", "--fleet", "night", "--json"]).run().stdout_json();
    assert_matches_type(&tables, "fleet_findings", &examined, "doctor");
    // The item is still leased, with the epoch of its claim.
    member.renew_claim_unless_stale_or_overlapping(second).expect("nothing here changed the board");
}

#[test]
fn questions_are_answered_and_items_set_aside_are_reopened() {
    let bench = FleetTestBench::new();
    bench.create_fleet(&[]).expect_success();
    let mut member = bench.open_member();
    let first = member.claim_next_item("one").expect("an answer").expect("an item");
    record_outcome(&mut member, first, "", ItemOutcome::Failed("nothing came of it".to_owned()));
    let again = member.claim_next_item("one").expect("an answer").expect("an item");
    assert_eq!(again.item_index, first.item_index);
    record_outcome(&mut member, again, "", ItemOutcome::WaitsForAnswer("Which?".to_owned()));
    let other = fail_until_set_aside(&mut member, "one", "no");
    let item_number = |index: usize| (index + 1).to_string();
    let (parked_item, set_aside_item) = (item_number(first.item_index), item_number(other.item_index));

    let error = |words: &[&str]| bench.expect_error(&bench.run_fleet(words));
    insta::assert_snapshot!(error(&["answer", "night", &set_aside_item, "This"]), @"error: item 4 of the fleet `night` waits for no answer; plimsoll fleet status night shows the items");
    insta::assert_snapshot!(error(&["answer", "night", "0", "This"]), @"
    error: there is no item 0 in the fleet `night`, which has 5 items
    hint: plimsoll fleet status night shows the items
    ");
    insta::assert_snapshot!(error(&["answer", "night", "99", "This"]), @"
    error: there is no item 99 in the fleet `night`, which has 5 items
    hint: plimsoll fleet status night shows the items
    ");
    insta::assert_snapshot!(error(&["answer", "night", &parked_item, " "]), @"error: the answer is empty: plimsoll fleet answer night 2 TEXT, or - for standard input");
    insta::assert_snapshot!(error(&["reopen", "night", &parked_item]), @"error: item 2 of the fleet `night` waits for an answer: plimsoll fleet answer gives it; plimsoll fleet status night shows the items");
    insta::assert_snapshot!(error(&["reopen", "night", "1"]), @"error: item 1 of the fleet `night` is merged: the branch contains it; plimsoll fleet status night shows the items");
    insta::assert_snapshot!(error(&["reopen", "night", "0"]), @"
    error: there is no item 0 in the fleet `night`, which has 5 items
    hint: plimsoll fleet status night shows the items
    ");
    insta::assert_snapshot!(error(&["reopen", "day", "1"]), @"
    error: there is no fleet named `day`
    hint: plimsoll fleet status lists the fleets of the database
    ");
    bench.run_fleet(&["answer", "night", &parked_item, "The", "first", "-one"]).expect_success();
    insta::assert_snapshot!(error(&["answer", "night", &parked_item, "Again"]), @"error: item 2 of the fleet `night` waits for no answer; plimsoll fleet status night shows the items");
    bench.run_fleet(&["reopen", "night", &set_aside_item]).expect_success();
    let row = bench
        .sql_client()
        .query_one(
            "select stage, tries, question, answer from plimsoll_night.item where question is not null",
            &[],
        )
        .expect("one that was asked");
    let text_column = |column: usize| row.get::<_, String>(column);
    assert_eq!((text_column(0).as_str(), row.get::<_, i32>(1)), ("open", 1), "its tries are kept");
    assert_eq!((text_column(2).as_str(), text_column(3).as_str()), ("Which?", "The first -one"));
    assert_eq!(
        member.claim_next_item("one").expect("an answer").map(|claim| claim.item_index),
        Some(first.item_index)
    );
    let log = bench.run_fleet(&["log", "night"]).expect_success().stdout;
    insta::assert_snapshot!(log_events(&bench, &log), @r#"
    [TIME]  the fleet was created: 5 items
    [TIME]  one/1 started item 2 "Parse dates"
    [TIME]  item 2 "Parse dates" was given back after a failure (worker one/1): nothing came of it
    [TIME]  one/1 started item 2 "Parse dates", attempt 2
    [TIME]  item 2 "Parse dates" was set aside (worker one/1): Which?
    [TIME]  one/1 started item 4 "Say which port"
    [TIME]  item 4 "Say which port" was given back after a failure (worker one/1): no
    [TIME]  one/1 started item 4 "Say which port", attempt 2
    [TIME]  item 4 "Say which port" was given back after a failure (worker one/1): no
    [TIME]  one/1 started item 4 "Say which port", attempt 3
    [TIME]  item 4 "Say which port" was given back after a failure (worker one/1): no
    [TIME]  item 4 "Say which port" was set aside (worker one/1): 3 attempts failed
    [TIME]  the question of item 2 "Parse dates" was answered: The first -one
    [TIME]  item 4 "Say which port" is open again
    [TIME]  one/1 started item 2 "Parse dates", attempt 3
    "#);
}

#[test]
fn a_fleet_drains_resumes_stops_and_is_forgotten() {
    let bench = FleetTestBench::new();
    bench.create_fleet(&[]).expect_success();
    let drained = bench.run_fleet(&["drain", "night"]).expect_success().stdout;
    assert!(drained.contains("no new item starts; nothing is running\nto resume: "), "{drained}");
    bench.run_fleet(&["resume", "night"]).expect_success();
    let mut member = bench.open_member();
    member.record_worker_report("one", &worker_report("one", 0.0)).expect("an answer");
    let first = member.claim_next_item("one").expect("an answer").expect("an item");
    let command_output = |words: &[&str]| bench.stable_text(&bench.run_fleet(words).expect_success().stdout);
    let error = |words: &[&str]| bench.expect_error(&bench.run_fleet(words));
    insta::assert_snapshot!(command_output(&["drain", "night"]), @"the fleet `night` is draining: no new item starts; 1 item will be finished and merged\nto resume: plimsoll fleet resume night");
    insta::assert_snapshot!(command_output(&["drain", "night"]), @"the fleet `night` is already draining: no new item starts; 1 item will be finished and merged\nto resume: plimsoll fleet resume night");
    assert_eq!(member.claim_next_item("two").expect("an answer"), None);
    insta::assert_snapshot!(command_output(&["status"]), @"night: draining: no new item starts; 1 of 5 items merged, 1 at work, 3 open; 1 worker on 1 machine; $0.00");
    insta::assert_snapshot!(command_output(&["resume", "night"]), @"the fleet `night` is resumed");
    insta::assert_snapshot!(command_output(&["resume", "night"]), @"the fleet `night` was not draining");
    let second = member.claim_next_item("two").expect("an answer");
    assert!(second.is_some());

    // `log --follow` prints events as they come, and ends with the fleet.
    let following = bench.world.plimsoll(&["fleet", "log", "night", "--follow"]).spawn();
    bench
        .world
        .wait_until(|| following.stdout_so_far().contains("two/1 started"), "the lines that are there");
    record_outcome(&mut member, first, SHA, ItemOutcome::Offered);
    bench.world.wait_until(|| following.stdout_so_far().contains("waits to be merged"), "a new line");
    insta::assert_snapshot!(command_output(&["stop", "night", "--yes"]), @"
    the fleet `night` is stopped; unfinished work stays on its branches plimsoll-items/night/…
    to merge what is done: git fetch origin && git merge origin/plimsoll/night
    ");
    insta::assert_snapshot!(command_output(&["stop", "night"]), @"the fleet `night` has already ended: stopped");
    for verb in ["drain", "resume"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(error(&[verb, "night"]), @"error: the fleet `night` has ended (stopped) and cannot be resumed");
        }
    }
    insta::assert_snapshot!(error(&["forget", "night"]), @"
    error: `fleet forget` asks for confirmation, and there is no terminal
    hint: plimsoll fleet forget night --yes
    ");
    insta::assert_snapshot!(error(&["forget", "night", "--yes"]), @"
    error: the fleet `night` has active workers: one/1
    hint: stop them first: plimsoll fleet stop night; workers count as inactive 90 seconds after their last report
    ");
    bench.sql_client().batch_execute("update plimsoll_night.worker set seen = 0").expect("long ago");
    let followed = following.wait_or_kill_and_panic(Duration::from_secs(60));
    assert_eq!(followed.code, Some(0), "{followed:?}");
    insta::assert_snapshot!(log_events(&bench, &followed.stdout), @r#"
    [TIME]  the fleet was created: 5 items
    [TIME]  the fleet is draining: no new item starts
    [TIME]  the fleet was resumed
    [TIME]  one/1 started item 2 "Parse dates"
    [TIME]  the fleet is draining: no new item starts
    [TIME]  the fleet was resumed
    [TIME]  two/1 started item 4 "Say which port"
    [TIME]  item 2 "Parse dates" is done and waits to be merged (worker one/1): [ENDED COMMIT]
    [TIME]  the fleet was stopped
    "#);
    insta::assert_snapshot!(bench.stable_text(&followed.stderr), @"the fleet `night` has ended (stopped)");

    insta::assert_snapshot!(command_output(&["forget", "night", "--yes"]), @"
    the fleet `night` is no longer in the database
    these branches may remain on ../there.git:
      plimsoll/night
      plimsoll-items/night/2/1
      plimsoll-items/night/4/1
    to remove one, in a clone: git push origin --delete plimsoll/night
    short texts and landed commits remain there below refs/plimsoll/night/; to remove them, too:
      git ls-remote origin 'refs/plimsoll/night/*' | cut -f2 | xargs -r git push origin --delete
    worktrees of members remain on their machines, below ~/.local/state/plimsoll/trees/
    ");
    insta::assert_snapshot!(error(&["status", "night"]), @"
    error: there is no fleet named `night`
    hint: plimsoll fleet status lists the fleets of the database
    ");
    insta::assert_snapshot!(command_output(&["status"]), @"There is no fleet in the database that this role may see. Create one with `plimsoll fleet create NAME`.");
}

#[test]
fn log_follow_continues_after_the_database_restarts() {
    let mut bench = FleetTestBench::new();
    bench.create_fleet(&[]).expect_success();
    let following = bench.world.plimsoll(&["fleet", "log", "night", "--follow"]).spawn();
    bench.world.wait_until(|| following.stdout_so_far().contains("was created"), "the line that is there");
    bench.server.restart_immediately();
    bench.open_member().claim_next_item("one").expect("an answer").expect("an item");
    bench
        .world
        .wait_until(|| following.stdout_so_far().contains("one/1 started"), "a line of after the restart");
    assert_eq!(following.stdout_so_far().matches("was created").count(), 1);
}

#[test]
fn stop_and_forget_ask_for_confirmation_on_a_terminal() {
    use plimsoll_testkit::terminal::Terminal;
    let bench = FleetTestBench::new();
    bench.create_fleet(&[]).expect_success();
    for (verb, question) in
        [("stop", "Stop the fleet \"night\" for good"), ("forget", "Remove the fleet \"night\"")]
    {
        let program = find_or_build_bin_dir().join("plimsoll");
        let mut terminal =
            Terminal::start_program_in_project(&bench.world, &program, &["fleet", verb, "night"], 120, 24);
        terminal.wait_for_text(question);
        terminal.type_text("n");
        terminal.press_enter();
        terminal.wait_for_text("nothing was done");
        assert_eq!(terminal.wait_for_exit().exit_code(), 1);
    }
    let listed = bench.run_fleet(&["status"]).expect_success().stdout;
    assert_eq!(listed, "night: no active worker; 1 of 5 items merged, 4 open; $0.00\n");
}

#[test]
fn deliver_merge_targets_the_current_branch_and_plans_may_be_in_folders() {
    let bench = FleetTestBench::new();
    bench.world.write("docs/pages/list.md", PLAN);
    bench.world.git(&["add", "docs"]);
    bench.world.git(&["commit", "-qm", "Plan more"]);
    bench.world.git(&["push", "-q", "origin", "main"]);
    let before = bench.world.git(&["ls-remote", "origin"]);
    bench.create_fleet(&["--deliver", "merge", "--todo", "docs/pages/list.md"]).expect_success();
    assert_eq!(bench.world.git(&["ls-remote", "origin"]), before, "nothing is pushed");
    let row = bench
        .sql_client()
        .query_one("select target, deliver, plan_file from plimsoll_night.plan", &[])
        .expect("a plan");
    let text_column = |column: usize| row.get::<_, String>(column);
    assert_eq!([0, 1, 2].map(text_column), ["main", "merge", "docs/pages/list.md"].map(str::to_owned));
}
