//! Whatever others have written into the database: what the commands print never steers the terminal.

use super::{Bench, fail_for_good, tell};
use plimsoll_domain::workers::ItemOutcome;
use plimsoll_fleet::WorkerReport;
use plimsoll_tests::hostile::{HOSTILE, steers};

#[test]
fn nothing_in_the_database_steers_the_terminal() {
    let bench = Bench::new();
    bench.create(&["--verify", HOSTILE]).expect_success();
    let mut member = bench.member();
    let name = |words: &str| format!("{words}{HOSTILE}");
    let report = WorkerReport {
        worker_name: name("one"),
        machine_name: name("m"),
        plimsoll_version: name("v"),
        session_id: name("s"),
        ..WorkerReport::default()
    };
    member.record_worker_report(&report).expect("an answer");
    let asked = member.claim_next_item(&report.worker_name).expect("an answer").expect("an item");
    tell(&mut member, asked, "", ItemOutcome::WaitsForAnswer(name("Which?")));
    let ended = fail_for_good(&mut member, &report.worker_name, &name("no"));
    let failed = member.claim_next_item(&report.worker_name).expect("an answer").expect("an item");
    tell(&mut member, failed, "", ItemOutcome::Failed(HOSTILE.to_owned()));
    member.claim_next_item(&report.worker_name).expect("an answer").expect("an item");
    member.acquire_merger_lease(HOSTILE).expect("an answer");
    let sql = format!(
        "update plimsoll.item set text = text || '{HOSTILE}', note = '{HOSTILE}', landings = array['{HOSTILE}'];
         insert into plimsoll.event (at, plan, item, worker, kind, detail)
           select 0, id, 0, '{HOSTILE}', '{HOSTILE}', '{HOSTILE}' from plimsoll.plan;
         update plimsoll.plan set repo = '{HOSTILE}', target = '{HOSTILE}', began_at = '{HOSTILE}'"
    );
    bench.sql().batch_execute(&sql).expect("what others may have written");
    let asked = (asked.item + 1).to_string();
    let ended = (ended.item + 1).to_string();
    let calls: &[&[&str]] = &[
        &["status"],
        &["status", "--json"],
        &["status", "night"],
        &["status", "night", "--json"],
        &["status", HOSTILE],
        &["log", "night"],
        &["log", "night", "--json"],
        &["log", HOSTILE],
        &["report", "night"],
        &["answer", "night", &asked, HOSTILE],
        &["answer", HOSTILE, "1", HOSTILE],
        &["reopen", "night", &ended],
        &["drain", "night"],
        &["resume", "night"],
        &["create", HOSTILE],
        &["create", "other", "--remote", HOSTILE],
        &["create", "other", "--branch", HOSTILE],
        &["check", "night"],
        &["check", HOSTILE, "--json"],
        &["stop", "night", "--yes"],
        &["stop", "night"],
        &["forget", "night", "--yes"],
    ];
    let mut shown = 0;
    for words in calls {
        let finished = bench.fleet(words);
        for text in [&finished.stdout, &finished.stderr] {
            assert!(!steers(text), "{words:?}: {text:?}");
        }
        shown += usize::from(finished.stdout.contains("owned") || finished.stderr.contains("owned"));
        let late = "update plimsoll.worker set seen = 0 where exists (select from plimsoll.plan where ended is not null)";
        bench.sql().batch_execute(late).expect("long ago");
    }
    assert!(shown > 10, "the words of others are in few answers: {shown}");
}
