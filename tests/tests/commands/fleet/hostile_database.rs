//! Hostile text in the database never controls the terminal.

use super::{FleetTestBench, fail_until_set_aside, record_outcome};
use plimsoll_domain::workers::ItemOutcome;
use plimsoll_fleet::WorkerReport;
use plimsoll_tests::hostile::{HOSTILE_TEXT, has_hidden_or_control_characters};

#[test]
fn text_in_the_database_never_controls_the_terminal() {
    let bench = FleetTestBench::new();
    bench.create_fleet(&["--verify", HOSTILE_TEXT]).expect_success();
    let mut member = bench.open_member();
    let with_hostile_text = |prefix: &str| format!("{prefix}{HOSTILE_TEXT}");
    let report = WorkerReport {
        machine_name: with_hostile_text("m"),
        plimsoll_version: with_hostile_text("v"),
        session_id: with_hostile_text("s"),
        ..WorkerReport::default()
    };
    member.record_worker_report("one", &report).expect("an answer");
    let parked_claim = member.claim_next_item("one").expect("an answer").expect("an item");
    record_outcome(&mut member, parked_claim, "", ItemOutcome::WaitsForAnswer(with_hostile_text("Which?")));
    let set_aside_claim = fail_until_set_aside(&mut member, "one", &with_hostile_text("no"));
    let failed_claim = member.claim_next_item("one").expect("an answer").expect("an item");
    record_outcome(&mut member, failed_claim, "", ItemOutcome::Failed(HOSTILE_TEXT.to_owned()));
    member.claim_next_item("one").expect("an answer").expect("an item");
    let sql = format!(
        "update plimsoll_night.worker set name = name || '{HOSTILE_TEXT}';
         update plimsoll_night.item set worker = worker || '{HOSTILE_TEXT}' where stage = 'leased';
         update plimsoll_night.plan set merger = '{HOSTILE_TEXT}';
         update plimsoll_night.item set text = text || '{HOSTILE_TEXT}', note = '{HOSTILE_TEXT}', landings = array['{HOSTILE_TEXT}'];
         insert into plimsoll_night.event (at, item, worker, kind, detail)
           select 0, 0, '{HOSTILE_TEXT}', '{HOSTILE_TEXT}', '{HOSTILE_TEXT}' from plimsoll_night.plan;
         update plimsoll_night.plan set repo = '{HOSTILE_TEXT}', target = '{HOSTILE_TEXT}', began_at = '{HOSTILE_TEXT}'"
    );
    bench.sql_client().batch_execute(&sql).expect("what others may have written");
    let parked_number = (parked_claim.item_index + 1).to_string();
    let set_aside_number = (set_aside_claim.item_index + 1).to_string();
    let calls: &[&[&str]] = &[
        &["status"],
        &["status", "--json"],
        &["status", "night"],
        &["status", "night", "--json"],
        &["status", HOSTILE_TEXT],
        &["log", "night"],
        &["log", "night", "--json"],
        &["log", HOSTILE_TEXT],
        &["report", "night"],
        &["answer", "night", &parked_number, HOSTILE_TEXT],
        &["answer", HOSTILE_TEXT, "1", HOSTILE_TEXT],
        &["reopen", "night", &set_aside_number],
        &["drain", "night"],
        &["resume", "night"],
        &["create", HOSTILE_TEXT],
        &["create", "other", "--remote", HOSTILE_TEXT],
        &["create", "other", "--branch", HOSTILE_TEXT],
        &["check", "night"],
        &["check", HOSTILE_TEXT, "--json"],
        &["stop", "night", "--yes"],
        &["stop", "night"],
        &["forget", "night", "--yes"],
    ];
    let mut shown_count = 0;
    for arguments in calls {
        let finished = bench.run_fleet(arguments);
        for text in [&finished.stdout, &finished.stderr] {
            assert!(!has_hidden_or_control_characters(text), "{arguments:?}: {text:?}");
        }
        shown_count += usize::from(finished.stdout.contains("owned") || finished.stderr.contains("owned"));
        let expire_workers = "update plimsoll_night.worker set seen = 0 where exists (select from plimsoll_night.plan where ended is not null)";
        bench.sql_client().batch_execute(expire_workers).expect("long ago");
    }
    assert!(shown_count > 10, "the words of others are in few answers: {shown_count}");
}
