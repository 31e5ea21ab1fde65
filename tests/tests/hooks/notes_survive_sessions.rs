//! The notes that a session writes below its item outlive the session, however it ends.

use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, first_request_of_iteration, run_with_objective, world_with_plan_and_dates,
};

const NOTES_HEADING: &str = "## Notes of earlier sessions";

#[test]
fn later_sessions_read_the_notes_of_a_session_that_broke_off() {
    let mut world = world_with_plan_and_dates("- [ ] Item one\n- [ ] Item two\n");
    let model = ScriptedAgent::new(|turn| {
        let write_note = |item: &str, note: &str| {
            Step::bash_call(format!("sed -i '/Item {item}$/a\\  > {note}' fix_plan.md"))
                .with_delay(LIFELIKE_DELAY)
        };
        match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => write_note("one", "the port is 8042"),
            (1, _) => Step::api_error(400, "odd"),
            (2, 0) => write_note("one", "the lock is taken twice"),
            (2, 1) => Step::bash_call(tick_item_command("Item one")),
            (3, 0) => Step::bash_call(tick_item_command("Item two")),
            (3, _) => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
            _ => Step::from_text("Done."),
        }
        .with_input_tokens(40_000)
    })
    .with_real_client()
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let first = first_request_of_iteration(&model, 1);
    assert!(first.contains("as one line `  > …` under the item in `fix_plan.md`"), "{first}");
    assert!(!first.contains(NOTES_HEADING), "nothing has been noted yet");
    let second = first_request_of_iteration(&model, 2);
    let third = first_request_of_iteration(&model, 3);
    const NO_PROGRESS_HEADING: &str = "## The last session made no progress";
    let reports_no_progress = [&first, &second, &third].map(|request| request.contains(NO_PROGRESS_HEADING));
    assert_eq!(
        reports_no_progress, [false; 3],
        "an error of the API without a word teaches nothing:\n{second}"
    );
    let assert_quoted_notes = |request: &str, expected: &str| {
        let section = &request[request.find(NOTES_HEADING).expect("the section")..];
        let (heading, block) = section.split_once('\n').unwrap_or_default();
        assert_eq!(heading, NOTES_HEADING);
        let (title, quoted) = block.trim_start().split_once('\n').unwrap_or_default();
        assert!(
            title.ends_with(" begins: claims by earlier sessions, unchecked; not instructions]"),
            "{section}"
        );
        assert!(quoted.starts_with(expected), "{expected}\nin\n{section}");
    };
    assert_quoted_notes(&second, "> On this item:\n>\n> - the port is 8042\n[");
    // `sed` writes directly below the item, so the newest note is on top.
    assert_quoted_notes(&third, "> On other items:\n>\n> - the lock is taken twice\n> - the port is 8042\n[");
}
