use super::*;
use crate::completion::VerifyOutcome;
use plimsoll_domain::TodoList;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::state::{Checkpoint, Phase};
use plimsoll_domain::state::{Items, Outcomes, RunOptions, Spent};

const NOW: &str = "2026-01-07T05:00:00Z";
const PROMISE: &str = "done\n<promise>COMPLETE n1</promise>";

fn state() -> RunState {
    RunState {
        run_id: "r1".into(),
        nonce: "n1".parse().expect("a code"),
        iteration: 3,
        options: RunOptions {
            completion_promise: "COMPLETE".parse().expect("a word"),
            max_iterations: 50,
            todo_file: Some("fix_plan.md".into()),
            ..RunOptions::default()
        },
        items: Items { known_items: vec!["one".into(), "two".into()], ..Items::default() },
        ..RunState::default()
    }
}

fn evidence(message: &str, todo: &str) -> Evidence {
    Evidence {
        ending: Ending::Completed,
        last_message: Some(message.to_owned()),
        todo: Some(TodoList::parse(todo)),
        now: Timestamp::from(NOW),
        ..Evidence::default()
    }
}

const DONE: &str = "- [x] one\n- [x] two\n";

fn marker(state: &mut RunState, evidence: &Evidence) -> String {
    gate(state, evidence, &Settings::default()).marker().to_string()
}

#[test]
fn a_promise_with_all_items_done_completes_also_on_the_last_iteration() {
    let mut state = state();
    state.iteration = 50;
    assert_eq!(marker(&mut state, &evidence(PROMISE, DONE)), "RALPH_STOP|completed|2 items");
    assert_eq!(state.lifecycle.status(), Status::Completed);
}

#[test]
fn a_run_with_lines_that_only_look_like_items_ends_blocked_and_never_completed() {
    let open = "- [x] one\n- [ ] two\n- [-] three\n";
    let reworded = "- [x] one\n- [-] another two\n";
    let unclear = "- [x] one\n- [-] two\n";
    let blocked = |line: &str| {
        format!(
            "RALPH_STOP|blocked|fix_plan.md has a line that looks like an item and is none: line 2 \"{line}\"; rewrite it with `plimsoll plan --fix`, then resume"
        )
    };
    for message in [PROMISE, "I stop here.", "<promise>COMPLETE</promise>"] {
        assert_eq!(marker(&mut state(), &evidence(message, unclear)), blocked("- [-] two"), "{message}");
    }
    assert_eq!(marker(&mut state(), &evidence("I stop here.", reworded)), blocked("- [-] another two"));
    // While something is open, a session has work.
    insta::assert_snapshot!(marker(&mut state(), &evidence("I stop here.", open)), @"RALPH_CONTINUE|next|1 open item");
    // A session that did not end by itself may still be about to rewrite the line.
    let crashed = Evidence { ending: Ending::Crashed("died".into()), ..evidence("", unclear) };
    insta::assert_snapshot!(marker(&mut state(), &crashed), @"RALPH_CONTINUE|next|the client died; 0 open items");
    // A verify command that fails is work, too.
    let mut with_verify = state();
    with_verify.options.verify = vec!["make".into()];
    let failing =
        VerifyOutcome { command: "make".into(), words: "failed".into(), ..VerifyOutcome::default() };
    let failed = Evidence { verify: vec![failing], ..evidence(PROMISE, unclear) };
    insta::assert_snapshot!(marker(&mut with_verify, &failed), @"RALPH_CONTINUE|refused|verify command `make` failed");
    // A run without a plan of its own does not care about any.
    let mut without_plan = state();
    without_plan.options.todo_file = None;
    insta::assert_snapshot!(marker(&mut without_plan, &evidence(PROMISE, unclear)), @"RALPH_STOP|completed|promised");
}

#[test]
fn a_promise_does_not_complete_a_run_whose_ticks_wait_for_their_review() {
    let with_review = |every| {
        let mut state = state();
        state.options.review_every = every;
        state
    };
    let ended = Evidence { observation: Some(Observation::default()), ..evidence(PROMISE, DONE) };
    assert_eq!(
        marker(&mut with_review(1), &ended),
        "RALPH_CONTINUE|refused|2 ticked items wait for their review"
    );
    let mut spent = with_review(1);
    spent.options.limits.max_cost_usd = Some(1.0);
    spent.spent.cost_usd = 1.0;
    assert_eq!(marker(&mut spent, &ended), "RALPH_STOP|budget|$1.00 of $1.00 spent");
    // Without reviews, and at Stop, where none has been due yet.
    insta::assert_snapshot!(marker(&mut with_review(0), &ended), @"RALPH_STOP|completed|2 items");
    let at_stop = Evidence { observation: None, ..ended };
    insta::assert_snapshot!(marker(&mut with_review(1), &at_stop), @"RALPH_STOP|completed|2 items");
}

#[test]
fn a_promise_is_refused_while_items_are_open_or_have_vanished() {
    let mut state = state();
    let line = marker(&mut state, &evidence(PROMISE, "- [x] one\n- [ ] two\n"));
    assert_eq!(line, "RALPH_CONTINUE|refused|1 item is open in fix_plan.md: \"two\"");
    let line = marker(&mut state, &evidence(PROMISE, "- [x] one\n"));
    assert_eq!(line, "RALPH_CONTINUE|refused|1 item vanished unticked from fix_plan.md: \"two\"");
    assert_eq!(state.outcomes.refusals.len(), 1);
    let missing = Evidence { todo: None, ..evidence(PROMISE, "") };
    insta::assert_snapshot!(marker(&mut state, &missing), @"RALPH_CONTINUE|refused|the to-do file fix_plan.md is missing, with 2 known items");
}

#[test]
fn a_promise_is_refused_while_a_verify_command_fails() {
    let mut state = state();
    let outcome = |passed| VerifyOutcome {
        command: "make test".into(),
        passed,
        words: "exited with 2".into(),
        ..VerifyOutcome::default()
    };
    let failing = Evidence { verify: vec![outcome(true), outcome(false)], ..evidence(PROMISE, DONE) };
    assert_eq!(
        marker(&mut state, &failing),
        "RALPH_CONTINUE|refused|verify command `make test` exited with 2"
    );
    assert_eq!(state.outcomes.refusals, ["verify command `make test` exited with 2"]);
    let passing = Evidence { verify: vec![outcome(true)], ..evidence(PROMISE, DONE) };
    assert_eq!(marker(&mut state, &passing), "RALPH_STOP|completed|2 items, 1 verify command passed");
    assert!(state.outcomes.refusals.is_empty());
}

#[test]
fn the_order_is_cancelled_completed_fatal_limits_iterations_continue() {
    let with = |ending: Ending| Evidence { ending, ..evidence("working", "- [ ] one\n- [ ] two\n") };
    let mut cancelled = state();
    cancelled.lifecycle.cancel(None);
    assert_eq!(marker(&mut cancelled, &evidence(PROMISE, DONE)), "RALPH_STOP|cancelled|");
    let last = || RunState { iteration: 50, ..state() };
    let markers = [
        Ending::Fatal("authentication failed".to_owned().into()),
        Ending::Limit("429".into()),
        Ending::Overloaded("529".into()),
        Ending::Interrupted,
        Ending::Completed,
        Ending::Crashed("x".into()),
    ]
    .map(|ending| marker(&mut last(), &with(ending)));
    insta::assert_snapshot!(markers.join("\n"), @"
    RALPH_STOP|fatal_error|authentication failed
    RALPH_PAUSE|-|usage limit: 429
    RALPH_PAUSE|-|overloaded: 529
    RALPH_PAUSE|-|interrupted
    RALPH_STOP|max_iterations|50 iterations done
    RALPH_STOP|max_iterations|50 iterations done
    ");
    assert_eq!(marker(&mut state(), &with(Ending::Completed)), "RALPH_CONTINUE|next|2 open items");
}

#[test]
fn a_checkpoint_never_jumps_the_queue_and_is_kept_whatever_the_verdict() {
    let mut state = state();
    state.context_checkpoint =
        Checkpoint { active: true, handoff_file: "h.md".into(), ..Checkpoint::default() };
    assert_eq!(marker(&mut state, &evidence("x", "- [ ] one\n")), "RALPH_CONTINUE|checkpoint|h.md");
    state.iteration = 50;
    insta::assert_snapshot!(marker(&mut state, &evidence("x", "- [ ] one\n")), @"RALPH_STOP|max_iterations|50 iterations done");
    assert!(state.context_checkpoint.active);
}

const BLOCKED: &str = "<promise>BLOCKED n1 no credentials</promise>";

/// In the third session of a run, which works on its second item.
fn asking() -> RunState {
    let mut state = state();
    state.iteration_record.item = Some("two".into());
    state.iteration_record.phase = Phase::Ended;
    state
}

#[test]
fn blocked_ends_a_run_only_while_nothing_else_is_open() {
    let near = "**<promise>BLOCKED n1 no credentials</promise>**";
    for (message, plan, expected) in [
        (
            BLOCKED,
            "- [ ] one\n- [ ] two\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        // The session has written the question itself, with the line, nearly with the line, or without it.
        (
            BLOCKED,
            "- [ ] one\n- [ ] two\n  ? Who?\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        (
            near,
            "- [ ] one\n- [ ] two\n  ? Who?\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        (
            "",
            "- [ ] one\n- [ ] two\n  ? Who?\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        (
            BLOCKED,
            "- [ ] one\n  ? Me?\n- [ ] two\n  ? Who?\n- [ ] three\n",
            "RALPH_CONTINUE|next|3 open items, 2 of them wait for answers",
        ),
        // The last one.
        (BLOCKED, "- [x] one\n- [ ] two\n", "RALPH_STOP|blocked|no credentials (item \"two\")"),
        (BLOCKED, "- [x] one\n- [ ] two\n  ? Who?\n", "RALPH_STOP|blocked|Who? (item \"two\")"),
        ("", "- [x] one\n- [ ] two\n  ? Who?\n", "RALPH_STOP|blocked|Who? (item \"two\")"),
        (PROMISE, "- [x] one\n- [ ] two\n  ? Who?\n", "RALPH_STOP|blocked|Who? (item \"two\")"),
        // It asked about another item: its own stays free.
        (
            BLOCKED,
            "- [ ] one\n  ? Me?\n- [ ] two\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        // An answer frees its item, whoever wrote it.
        ("", "- [x] one\n- [ ] two\n  ? Who?\n  ! Me\n", "RALPH_CONTINUE|next|1 open item"),
        // Its own item is ticked: then it is the next one, unless it asked about another itself.
        (
            BLOCKED,
            "- [ ] one\n- [x] two\n- [ ] three\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        (BLOCKED, "- [ ] one\n- [x] two\n", "RALPH_STOP|blocked|no credentials (item \"one\")"),
        (
            BLOCKED,
            "- [ ] one\n- [x] two\n- [ ] three\n  ? Who?\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        // No item is open: nothing but the user can help.
        (BLOCKED, DONE, "RALPH_STOP|blocked|no credentials"),
        // No completion while something waits.
        (
            PROMISE,
            "- [ ] one\n- [ ] two\n  ? Who?\n",
            "RALPH_CONTINUE|refused|2 items are open in fix_plan.md: \"one\", \"two\"",
        ),
        // A note and an example ask nothing.
        ("", "- [x] one\n- [ ] two\n  > Who?\n  ```\n  ? Who?\n  ```\n", "RALPH_CONTINUE|next|1 open item"),
    ] {
        assert_eq!(marker(&mut asking(), &evidence(message, plan)), expected, "{message:?} {plan:?}");
    }
    let mut without_plan = asking();
    without_plan.options.todo_file = None;
    assert_eq!(
        marker(&mut without_plan, &evidence(BLOCKED, "- [ ] one\n")),
        "RALPH_STOP|blocked|no credentials"
    );
    let missing = Evidence { todo: None, ..evidence(BLOCKED, "") };
    assert_eq!(marker(&mut asking(), &missing), "RALPH_STOP|blocked|no credentials");
    let packed =
        Evidence { item: Some("three".into()), ..evidence(BLOCKED, "- [ ] one\n- [ ] two\n- [ ] three\n") };
    let mut state = asking();
    gate(&mut state, &packed, &Settings::default());
    assert_eq!(state.items.parked[0].item, "three", "the item that it went on with");
    // What an earlier session asked about another item is not what this one asks.
    let mut state = asking();
    state.items.parked =
        vec![OpenQuestion { item: "one".into(), question: "Me?".into(), iteration: 1, told: true }];
    assert_eq!(
        marker(&mut state, &evidence(BLOCKED, "- [ ] one\n  ? Me?\n- [ ] two\n")),
        "RALPH_STOP|blocked|Me? (item \"one\"); no credentials (item \"two\")"
    );
}

#[test]
fn a_session_that_repeats_the_question_of_another_item_does_not_park_its_own() {
    let plan = "- [ ] one\n  ? I have no credentials. Where are they?\n- [ ] two\n";
    for (asked_in, now, expected) in [
        (3, 4, "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer"),
        (3, 5, "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer"),
        // Whoever says it again and again means the item at hand.
        (
            3,
            6,
            "RALPH_STOP|blocked|I have no credentials. Where are they? (item \"one\"); no credentials (item \"two\")",
        ),
    ] {
        let mut state = asking();
        state.iteration = now;
        state.items.parked = vec![OpenQuestion {
            item: "one".into(),
            question: "I have no credentials. Where are they?".into(),
            iteration: asked_in,
            told: true,
        }];
        assert_eq!(marker(&mut state, &evidence(BLOCKED, plan)), expected, "{asked_in} {now}");
    }
}

#[test]
fn a_session_that_asks_is_neither_progress_nor_a_standstill_and_limits_hold() {
    let plan = "- [ ] one\n- [ ] two\n  ? Who?\n- [ ] three\n";
    let before = || {
        let mut state = asking();
        state.outcomes.no_change_count = 2;
        state.outcomes.error_hashes = vec!["a".into(), "a".into()];
        state.outcomes.breaker.empty_reply = 2;
        state
    };
    let with = |observation| Evidence { observation, ..evidence(BLOCKED, plan) };
    let error = seen(&[]).map(|seen| Observation { error: Some("x".into()), empty: true, ..seen });
    for observation in [seen(&[]), seen(&["files changed"]), error] {
        let mut state = before();
        let line = marker(&mut state, &with(observation.clone()));
        insta::allow_duplicates! {
            insta::assert_snapshot!(line, @"RALPH_CONTINUE|next|3 open items, 1 of them waits for an answer");
        }
        assert_eq!(state.outcomes.no_change_count, before().outcomes.no_change_count, "{observation:?}");
        assert_eq!(state.outcomes.error_hashes, before().outcomes.error_hashes, "{observation:?}");
        assert_eq!(state.outcomes.breaker, before().outcomes.breaker, "{observation:?}");
        assert_eq!(
            breaker::set_aside(&mut state, &Settings::default().breaker),
            None,
            "nobody tried the next one"
        );
    }
    // It asked about another item than its own: its own is stuck as before.
    let mut stuck = before();
    let other =
        Evidence { observation: seen(&[]), ..evidence("", "- [ ] one\n  ? Who?\n- [ ] two\n- [ ] three\n") };
    insta::assert_snapshot!(marker(&mut stuck, &other), @"RALPH_STOP|circuit_breaker|no_progress: 3 sessions in a row changed nothing: no commit, no file, no item");
    // What it finished before counts.
    let mut finished = before();
    marker(&mut finished, &with(seen(&["tick"])));
    assert_eq!(finished.outcomes.no_change_count, 0);
    // The next session finds the question there: it is counted as ever.
    let mut next = before();
    marker(&mut next, &with(seen(&[])));
    (next.iteration, next.iteration_record.item) = (4, Some("one".into()));
    let idle = Evidence { observation: seen(&[]), ..evidence("", plan) };
    insta::assert_snapshot!(marker(&mut next, &idle), @"RALPH_STOP|circuit_breaker|no_progress: 3 sessions in a row changed nothing: no commit, no file, no item");
    let mut last = RunState { iteration: 50, ..before() };
    insta::assert_snapshot!(marker(&mut last, &with(seen(&[]))), @"RALPH_STOP|max_iterations|50 iterations done");
    let fatal = Evidence { ending: Ending::Fatal("login".to_owned().into()), ..with(None) };
    insta::assert_snapshot!(marker(&mut before(), &fatal), @"RALPH_STOP|fatal_error|login");
}

#[test]
fn a_checkpoint_of_an_item_that_waits_is_no_checkpoint_of_the_next_one() {
    let mut state = asking();
    state.context_checkpoint =
        Checkpoint { active: true, current_todo_item: "two".into(), ..Checkpoint::default() };
    let line = marker(&mut state, &evidence(BLOCKED, "- [ ] one\n- [ ] two\n  ? Who?\n"));
    assert_eq!(line, "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer");
}

fn seen(progress: &[&str]) -> Option<Observation> {
    let progress: Vec<String> = progress.iter().map(|words| (*words).to_owned()).collect();
    Some(Observation {
        finished: progress.iter().any(|words| words == "tick"),
        progress,
        ..Observation::default()
    })
}

fn working(observation: Option<Observation>) -> Evidence {
    Evidence { observation, ..evidence("working", "- [ ] one\n- [ ] two\n") }
}

#[test]
fn sessions_without_progress_open_the_breaker_and_a_limit_between_them_does_not_count() {
    let mut state = RunState { items: Items { todo_items: vec!["one".into()], ..state().items }, ..state() };
    let limit = Evidence { ending: Ending::Limit("429".into()), ..working(seen(&[])) };
    let without_progress = working(seen(&[]));
    let markers = [&without_progress, &limit, &without_progress, &limit, &without_progress]
        .map(|evidence| marker(&mut state, evidence));
    insta::assert_snapshot!(markers.join("\n"), @r#"
    RALPH_CONTINUE|next|2 open items
    RALPH_PAUSE|-|usage limit: 429
    RALPH_CONTINUE|next|2 open items
    RALPH_PAUSE|-|usage limit: 429
    RALPH_STOP|circuit_breaker|no_progress: 3 sessions in a row changed nothing: no commit, no file, no item; the current item is "one"
    "#);
    assert_eq!(state.lifecycle.status(), Status::CircuitBreaker);
    let opened = state.outcomes.breaker.opened.unwrap();
    assert_eq!((opened.count, opened.at.as_str()), (3, NOW));
}

#[test]
fn refused_promises_end_in_the_breaker_with_the_last_reason() {
    let mut state = state();
    let refused = Evidence { observation: seen(&["files"]), ..evidence(PROMISE, "- [ ] one\n- [x] two\n") };
    for _ in 0..2 {
        insta::allow_duplicates! {
            insta::assert_snapshot!(marker(&mut state, &refused), @r#"RALPH_CONTINUE|refused|1 item is open in fix_plan.md: "one""#);
        }
    }
    let line = marker(&mut state, &refused);
    assert_eq!(
        line,
        "RALPH_STOP|circuit_breaker|refused: 3 promises in a row did not hold, the last because: 1 item is open in fix_plan.md: \"one\""
    );
}

#[test]
fn a_limit_waits_for_its_reset_unless_that_lies_behind_or_after_the_deadline() {
    let limit = |reset: &str| Evidence {
        ending: Ending::Limit("limit".into()),
        resets_at: Some(Timestamp::from(reset)),
        ..working(None)
    };
    for (reset, line) in [
        ("2026-01-07T06:00:00Z", "RALPH_PAUSE|2026-01-07T06:00:00Z|usage limit: limit"),
        ("2026-01-07T04:00:00Z", "RALPH_PAUSE|-|usage limit: limit"),
        ("2026-01-07T09:00:00Z", "RALPH_STOP|deadline|usage limit: limit; it resets after the deadline"),
    ] {
        let mut state = state();
        state.options.limits.deadline = Some("2026-01-07T08:00:00Z".into());
        assert_eq!(marker(&mut state, &limit(reset)), line);
    }
}

#[test]
fn three_checkpoints_in_a_quarter_of_an_hour_pause_unless_items_get_finished() {
    let checkpoints = |seconds: [i64; 3], progress: &[&str]| {
        let mut state = state();
        let lines = seconds.map(|now_seconds| {
            state.iteration += 1;
            state.context_checkpoint =
                Checkpoint { active: true, iteration: state.iteration, ..Checkpoint::default() };
            marker(&mut state, &Evidence { now_seconds, ..working(seen(progress)) })
        });
        lines[2].split('|').next().unwrap_or_default().to_owned()
    };
    assert_eq!(checkpoints([0, 300, 900], &["files"]), "RALPH_PAUSE");
    assert_eq!(checkpoints([0, 300, 901], &["files"]), "RALPH_CONTINUE");
    assert_eq!(checkpoints([0, 300, 600], &["tick"]), "RALPH_CONTINUE");
}

#[test]
fn a_session_that_begins_above_its_level_pauses_at_once() {
    let mut state = state();
    state.context_checkpoint =
        Checkpoint { active: true, iteration: 3, percent_at_checkpoint: Some(91), ..Checkpoint::default() };
    let above = Evidence { started_above: true, ..working(seen(&["files"])) };
    let line = marker(&mut state, &above);
    insta::assert_snapshot!(line, @"RALPH_PAUSE|-|checkpoint thrash: the session was at L2 before any work (checkpoint at 91%): what is loaded at its start leaves no room");
}

#[test]
fn a_limit_or_an_overload_waits_only_while_there_is_money_and_time_left() {
    for (ending, pause) in [
        (Ending::Limit("429".into()), "RALPH_PAUSE|-|usage limit: 429"),
        (Ending::Overloaded("529".into()), "RALPH_PAUSE|-|overloaded: 529"),
    ] {
        let evidence = Evidence { ending, ..evidence("", "- [ ] one\n") };
        let limits = plimsoll_domain::limits::Limits { max_cost_usd: Some(4.0), ..Default::default() };
        let mut poor = RunState {
            options: RunOptions { limits: limits.clone(), ..state().options },
            spent: Spent { cost_usd: 4.0, ..state().spent },
            ..state()
        };
        assert_eq!(marker(&mut poor, &evidence), "RALPH_STOP|budget|$4.00 of $4.00 spent");
        let mut last = RunState {
            iteration: 50,
            options: RunOptions { limits, ..state().options },
            spent: Spent { cost_usd: 3.9, ..state().spent },
            ..state()
        };
        assert_eq!(marker(&mut last, &evidence), pause, "it is not counted");
    }
}

#[test]
fn sessions_that_break_off_one_after_another_in_their_work_count_from_the_ninth_on() {
    let evidence = Evidence { ending: Ending::Overloaded("529".into()), ..evidence("", "- [ ] one\n") };
    let mut worked = state();
    worked.iteration_record.tokens = 1;
    let mut idle = state();
    for _ in 0..8 {
        for state in [&mut worked, &mut idle] {
            assert_eq!(marker(state, &evidence), "RALPH_PAUSE|-|overloaded: 529");
        }
    }
    insta::assert_snapshot!(marker(&mut worked, &evidence), @"RALPH_CONTINUE|next|the service failed; 1 open item");
    // A service that is down is waited for.
    assert_eq!(marker(&mut idle, &evidence), "RALPH_PAUSE|-|overloaded: 529");
}

#[test]
fn an_item_that_was_ticked_and_then_removed_has_not_vanished() {
    let mut state = RunState { items: Items { ever_done: vec!["two".into()], ..state().items }, ..state() };
    assert_eq!(marker(&mut state, &evidence(PROMISE, "- [x] one\n")), "RALPH_STOP|completed|1 item");
}

#[test]
fn without_a_to_do_file_promise_and_verify_alone_decide() {
    let mut state = RunState {
        options: RunOptions { todo_file: None, ..state().options },
        items: Items { known_items: Vec::new(), ..state().items },
        ..state()
    };
    let bare = Evidence { todo: None, ..evidence(PROMISE, "") };
    assert_eq!(marker(&mut state, &bare), "RALPH_STOP|completed|promised");
    state.lifecycle = plimsoll_domain::state::Lifecycle::default();
    let working = Evidence { todo: None, ..evidence("working", "") };
    assert_eq!(marker(&mut state, &working), "RALPH_CONTINUE|next|no promise yet");
}

const MISS: &str = "All done.\n\n**<promise>COMPLETE</promise>**";
const LINE: &str =
    "the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text";

fn verified(passed: bool) -> Vec<VerifyOutcome> {
    vec![VerifyOutcome {
        command: "make test".into(),
        passed,
        words: "exited with 2".into(),
        ..VerifyOutcome::default()
    }]
}

/// The markers of sessions that follow one another; the breaker would open at the first without progress.
fn markers_of(mut state: RunState, sessions: &[Evidence]) -> Vec<String> {
    let mut settings = Settings::default();
    settings.breaker.no_progress = 1;
    settings.breaker.refused = 1;
    let each = |evidence: &Evidence| {
        let evidence = Evidence { observation: seen(&[]), ..evidence.clone() };
        gate(&mut state, &evidence, &settings).marker().to_string()
    };
    sessions.iter().map(each).collect()
}

fn began_done() -> RunState {
    let mut state = state();
    state.iteration_record.done_before = vec!["one".into(), "two".into()];
    state
}

#[test]
fn a_near_miss_is_refused_with_what_was_given_and_with_what_is_left_to_do() {
    let mut state = state();
    let missed = "the promise line did not count (it was \"**<promise>COMPLETE</promise>**\")";
    assert_eq!(
        marker(&mut state, &evidence(MISS, "- [x] one\n- [ ] two\n")),
        format!("RALPH_CONTINUE|refused|{missed}: {LINE}; 1 item is open in fix_plan.md: \"two\"")
    );
    assert_eq!((state.outcomes.refusals.len(), state.outcomes.promise_failures), (2, 0));
    let failing = Evidence { verify: verified(false), ..evidence(MISS, DONE) };
    marker(&mut state, &failing);
    insta::assert_snapshot!(state.outcomes.refusals[0], @r#"the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text"#);
    assert_eq!(state.outcomes.refusals[1..], ["verify command `make test` exited with 2"]);
    state.options.objective = "Do it. At the end say <promise>COMPLETE</promise>".into();
    state.outcomes.promise_failures = 0;
    marker(&mut state, &evidence(MISS, DONE));
    assert!(
        state.outcomes.refusals[0].ends_with("; the task text names `<promise>COMPLETE</promise>`, but this line counts, whatever another text says"),
        "{:?}",
        state.outcomes.refusals
    );
}

#[test]
fn a_missing_promise_costs_at_most_one_session_and_none_where_commands_decide() {
    let miss = |verify: &[VerifyOutcome]| Evidence { verify: verify.to_vec(), ..evidence(MISS, DONE) };
    let silent =
        |verify: &[VerifyOutcome]| Evidence { verify: verify.to_vec(), ..evidence("Nothing to do.", DONE) };
    let passing = verified(true);
    let with_verify = || RunState {
        options: RunOptions { verify: vec!["make test".into()], ..began_done().options },
        ..began_done()
    };
    let strict = || RunState {
        options: RunOptions { strict_promise: true, ..with_verify().options },
        ..with_verify()
    };
    for state in [with_verify(), RunState { iteration_record: state().iteration_record, ..with_verify() }] {
        for session in [miss(&passing), silent(&passing)] {
            assert_eq!(
                markers_of(state.clone(), &[session]),
                ["RALPH_STOP|completed|2 items, 1 verify command passed, without the promise"],
                "commands decide, and no session is asked again"
            );
        }
    }
    let shown = [
        (began_done(), [miss(&[]), miss(&[])]),
        (began_done(), [miss(&[]), silent(&[])]),
        (state(), [silent(&[]), silent(&[])]),
        (strict(), [miss(&passing), miss(&passing)]),
    ]
    .map(|(state, sessions)| markers_of(state, &sessions).join("\n"));
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
    RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text
    RALPH_STOP|blocked|every item of fix_plan.md is ticked, but the promise line was not given as asked, 2 times (it was "**<promise>COMPLETE</promise>**" and must be `<promise>COMPLETE n1</promise>`); check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide

    RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text
    RALPH_STOP|blocked|every item of fix_plan.md is ticked, but the promise line was not given as asked, 2 times (it was left out and must be `<promise>COMPLETE n1</promise>`); check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide

    RALPH_CONTINUE|next|0 open items
    RALPH_STOP|blocked|every item of fix_plan.md is ticked, but the promise line was not given as asked, 2 times (it was left out and must be `<promise>COMPLETE n1</promise>`); check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide

    RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text
    RALPH_STOP|blocked|every item of fix_plan.md is ticked, but the promise line was not given as asked, 2 times (it was "**<promise>COMPLETE</promise>**" and must be `<promise>COMPLETE n1</promise>`); the verify commands passed, but --strict-promise asks for the line: plimsoll run --resume --strict-promise=false lets them decide
    "#);
}

#[test]
fn what_is_left_to_do_resets_the_count_of_failed_promises() {
    let miss = evidence(MISS, DONE);
    let open = evidence("I add an item.", "- [x] one\n- [x] two\n- [ ] three\n");
    let mut state = RunState {
        options: RunOptions { verify: vec!["make test".into()], ..began_done().options },
        ..began_done()
    };
    for (evidence, count) in [
        (miss.clone(), 1),
        // A session that did not end by itself says nothing about it.
        (Evidence { ending: Ending::Crashed("died".into()), ..miss.clone() }, 1),
        (Evidence { ending: Ending::Limit("429".into()), ..miss.clone() }, 1),
        (open, 0),
        (miss.clone(), 1),
        (Evidence { verify: verified(false), ..miss.clone() }, 2),
        (Evidence { verify: verified(false), ..evidence("Nothing to do.", DONE) }, 3),
    ] {
        let line = marker(&mut state, &evidence);
        assert!(!line.starts_with("RALPH_STOP"), "{line}");
        assert_eq!(state.outcomes.promise_failures, count, "{line}");
    }
    let reasons = [
        "every item is ticked, and the promise line was left out",
        "verify command `make test` exited with 2",
    ];
    assert_eq!(state.outcomes.refusals, reasons);
    // Fixed: the run need not be asked again.
    let line = marker(&mut state, &Evidence { verify: verified(true), ..miss });
    insta::assert_snapshot!(line, @"RALPH_STOP|completed|2 items, 1 verify command passed, without the promise");
}

/// The run of a single item of a plan that several workers share.
fn item_run(verify: &[&str], is_strict: bool) -> RunState {
    let options = RunOptions {
        verify: verify.iter().map(|command| (*command).to_owned()).collect(),
        strict_promise: is_strict,
        item_brief: Some(ItemBrief::default()),
        ..state().options
    };
    RunState { options, ..state() }
}

#[test]
fn the_run_of_an_item_ends_with_its_tick_and_passing_commands() {
    let ends = |ending: Ending, verify: Vec<VerifyOutcome>| Evidence {
        ending,
        verify,
        ..evidence("Two is done.", DONE)
    };
    let crashed = || Ending::Crashed("died".into());
    let limit = || Ending::Limit("429".into());
    let completed = "RALPH_STOP|completed|2 items";
    let verified_words = "RALPH_STOP|completed|2 items, 1 verify command passed";
    for (state, evidence, expected) in [
        (item_run(&[], false), ends(Ending::Completed, Vec::new()), completed),
        (item_run(&[], false), ends(Ending::HookStopped, Vec::new()), completed),
        (item_run(&["make test"], false), ends(Ending::Completed, verified(true)), verified_words),
        (item_run(&["make test"], false), ends(crashed(), verified(true)), verified_words),
        // Without a command nothing says that the session had come to its end.
        (
            item_run(&[], false),
            ends(crashed(), Vec::new()),
            "RALPH_CONTINUE|next|the client died; 0 open items",
        ),
        (item_run(&["make test"], false), ends(limit(), verified(true)), "RALPH_PAUSE|-|usage limit: 429"),
        (
            item_run(&["make test"], false),
            ends(Ending::Completed, verified(false)),
            "RALPH_CONTINUE|refused|verify command `make test` exited with 2",
        ),
        (
            item_run(&["make test"], true),
            ends(Ending::Completed, verified(true)),
            "RALPH_CONTINUE|next|0 open items",
        ),
    ] {
        let line = marker(&mut state.clone(), &evidence);
        assert_eq!(line, expected, "{evidence:?}");
    }
    let open = Evidence { verify: verified(true), ..evidence("I wait.", "- [x] one\n- [ ] two\n") };
    let line = marker(&mut item_run(&["make test"], false), &open);
    insta::assert_snapshot!(line, @"RALPH_CONTINUE|next|1 open item");
    assert!(!crate::completion::needs_verify(&item_run(&["make test"], false), &open));
    assert!(crate::completion::needs_verify(
        &item_run(&["make test"], false),
        &ends(Ending::Completed, Vec::new())
    ));
    let blocked = evidence("<promise>BLOCKED n1 no key</promise>", DONE);
    let line = marker(&mut item_run(&[], false), &blocked);
    insta::assert_snapshot!(line, @"RALPH_STOP|blocked|no key");
}

#[test]
fn a_session_that_ticks_the_last_item_and_says_nothing_is_judged_by_the_commands() {
    let state =
        RunState { options: RunOptions { verify: vec!["make test".into()], ..state().options }, ..state() };
    let silent = evidence("Two is done.", DONE);
    assert!(crate::completion::needs_verify(&state, &silent));
    let failing = Evidence { verify: verified(false), ..silent };
    let line = marker(&mut state.clone(), &failing);
    insta::assert_snapshot!(line, @"RALPH_CONTINUE|refused|every item is ticked, and the promise line was left out; verify command `make test` exited with 2");
}

#[test]
fn without_a_list_only_near_misses_in_a_row_count() {
    let bare = |verify: &[&str]| RunState {
        options: RunOptions {
            todo_file: None,
            verify: verify.iter().map(|command| (*command).to_owned()).collect(),
            ..state().options
        },
        items: Items { known_items: Vec::new(), ..state().items },
        ..state()
    };
    let said =
        |words: &str, verify: Vec<VerifyOutcome>| Evidence { todo: None, verify, ..evidence(words, "") };
    let miss = || said(MISS, verified(true));
    let mut settings = Settings::default();
    settings.breaker.no_progress = 0;
    let mut state = bare(&["make test"]);
    let refused = format!(
        "RALPH_CONTINUE|refused|the promise line did not count (it was \"**<promise>COMPLETE</promise>**\"): {LINE}; verify command `make test` exited with 2"
    );
    for (evidence, expected, count) in [
        (said(MISS, verified(false)), &*refused, 1),
        (said("I work on.", Vec::new()), "RALPH_CONTINUE|next|no promise yet", 0),
        (miss(), "RALPH_STOP|completed|1 verify command passed, without the promise", 1),
    ] {
        let line = gate(&mut state, &evidence, &settings).marker().to_string();
        assert_eq!(line, expected);
        assert_eq!(state.outcomes.promise_failures, count, "{line}");
    }
    let sessions = [said(MISS, Vec::new()), said(MISS, Vec::new())];
    let markers = markers_of(bare(&[]), &sessions);
    insta::assert_snapshot!(markers.join("\n"), @r#"
    RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text
    RALPH_STOP|blocked|the promise line was not given as asked, 2 times (it was "**<promise>COMPLETE</promise>**" and must be `<promise>COMPLETE n1</promise>`); check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide
    "#);
}

#[test]
fn before_the_verify_commands_have_run_nothing_is_decided() {
    let mut state = RunState {
        options: RunOptions { verify: vec!["make test".into()], ..began_done().options },
        outcomes: Outcomes { promise_failures: 1, ..began_done().outcomes },
        ..began_done()
    };
    let miss = evidence(MISS, DONE);
    assert!(crate::completion::needs_verify(&state, &miss));
    insta::assert_snapshot!(marker(&mut state.clone(), &miss), @r#"RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text"#);
    let silent = evidence("Nothing to do.", DONE);
    assert!(crate::completion::needs_verify(&state, &silent));
    insta::assert_snapshot!(marker(&mut state.clone(), &silent), @"RALPH_CONTINUE|next|0 open items");
    state.options.strict_promise = true;
    state.outcomes.promise_failures = 0;
    assert!(!crate::completion::needs_verify(&state, &silent), "it is asked once more first");
}

#[test]
fn a_missed_blocked_line_is_refused_and_does_not_count_as_a_failed_promise() {
    let mut state = began_done();
    let line = marker(&mut state, &evidence("`<promise>BLOCKED no key</promise>`", DONE));
    insta::assert_snapshot!(line, @r#"RALPH_CONTINUE|refused|the promise line did not count (it was "`<promise>BLOCKED no key</promise>`"): the last line of the last message must be exactly `<promise>BLOCKED n1 REASON</promise>`, as plain text"#);
    assert_eq!(state.outcomes.promise_failures, 0);
}

#[test]
fn the_root_frame_that_has_popped_completes_whatever_the_line_looks_like() {
    let popped = Evidence { root_popped: true, ..evidence(MISS, DONE) };
    assert_eq!(marker(&mut began_done(), &popped), "RALPH_STOP|completed|2 items");
}
