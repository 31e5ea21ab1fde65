use super::*;
use crate::completion::VerifyOutcome;
use plimsoll_domain::TodoList;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::state::{Checkpoint, IterationPhase};
use plimsoll_domain::state::{PlanItems, RunOptions, RunSpending, SessionOutcomes};

const NOW: &str = "2026-01-07T05:00:00Z";
const PROMISE: &str = "done\n<promise>COMPLETE n1</promise>";

fn new_state() -> RunState {
    RunState {
        run_id: "r1".into(),
        promise_code: "n1".parse().expect("a code"),
        iteration: 3,
        options: RunOptions {
            completion_promise: "COMPLETE".parse().expect("a word"),
            max_iterations: 50,
            todo_file: Some("fix_plan.md".into()),
            ..RunOptions::default()
        },
        plan_items: PlanItems { known_items: vec!["one".into(), "two".into()], ..PlanItems::default() },
        ..RunState::default()
    }
}

fn new_evidence(message: &str, todo: &str) -> SessionEvidence {
    SessionEvidence {
        ending: SessionEnding::Completed,
        last_message: Some(message.to_owned()),
        todo: Some(TodoList::parse(todo)),
        now: Timestamp::from(NOW),
        ..SessionEvidence::default()
    }
}

const DONE: &str = "- [x] one\n- [x] two\n";

fn gate_marker(state: &mut RunState, evidence: &SessionEvidence) -> String {
    judge_session_and_apply_verdict(state, evidence, &Settings::default()).to_marker().to_string()
}

#[test]
fn a_promise_with_all_items_done_completes_also_on_the_last_iteration() {
    let mut state = new_state();
    state.iteration = 50;
    assert_eq!(gate_marker(&mut state, &new_evidence(PROMISE, DONE)), "RALPH_STOP|completed|2 items");
    assert_eq!(state.lifecycle.status(), RunStatus::Completed);
}

#[test]
fn a_run_with_unclear_plan_lines_ends_blocked_and_never_completed() {
    let open_plan = "- [x] one\n- [ ] two\n- [-] three\n";
    let reworded_plan = "- [x] one\n- [-] another two\n";
    let unclear_plan = "- [x] one\n- [-] two\n";
    let blocked_marker = |line: &str| {
        format!(
            "RALPH_STOP|blocked|fix_plan.md has a line that looks like an item but is not: line 2 \"{line}\"; rewrite it with `plimsoll plan --fix`, then resume"
        )
    };
    for message in [PROMISE, "I stop here.", "<promise>COMPLETE</promise>"] {
        assert_eq!(
            gate_marker(&mut new_state(), &new_evidence(message, unclear_plan)),
            blocked_marker("- [-] two"),
            "{message}"
        );
    }
    assert_eq!(
        gate_marker(&mut new_state(), &new_evidence("I stop here.", reworded_plan)),
        blocked_marker("- [-] another two")
    );
    // While something is open, a session has work.
    insta::assert_snapshot!(gate_marker(&mut new_state(), &new_evidence("I stop here.", open_plan)), @"RALPH_CONTINUE|next|1 open item");
    // A session that did not end by itself may still be about to rewrite the line.
    let crashed =
        SessionEvidence { ending: SessionEnding::Crashed("died".into()), ..new_evidence("", unclear_plan) };
    insta::assert_snapshot!(gate_marker(&mut new_state(), &crashed), @"RALPH_CONTINUE|next|Claude Code died; 0 open items");
    // A failing verify command is work, too.
    let mut with_verify = new_state();
    with_verify.options.verify_commands = vec!["make".into()];
    let failing =
        VerifyOutcome { command: "make".into(), summary: "failed".into(), ..VerifyOutcome::default() };
    let failed = SessionEvidence { verify_outcomes: vec![failing], ..new_evidence(PROMISE, unclear_plan) };
    insta::assert_snapshot!(gate_marker(&mut with_verify, &failed), @"RALPH_CONTINUE|refused|verify command `make` failed");
    // Unclear lines do not matter for a run without a plan.
    let mut without_plan = new_state();
    without_plan.options.todo_file = None;
    insta::assert_snapshot!(gate_marker(&mut without_plan, &new_evidence(PROMISE, unclear_plan)), @"RALPH_STOP|completed|promised");
}

#[test]
fn a_promise_does_not_complete_a_run_whose_ticks_wait_for_their_review() {
    let state_with_review = |every| {
        let mut state = new_state();
        state.options.items_per_review = every;
        state
    };
    let ended =
        SessionEvidence { observation: Some(SessionObservation::default()), ..new_evidence(PROMISE, DONE) };
    assert_eq!(
        gate_marker(&mut state_with_review(1), &ended),
        "RALPH_CONTINUE|refused|2 ticked items wait for their review"
    );
    let mut spent = state_with_review(1);
    spent.options.limits.max_cost_usd = Some(1.0);
    spent.spending.cost_usd = 1.0;
    assert_eq!(gate_marker(&mut spent, &ended), "RALPH_STOP|budget|$1.00 of $1.00 spent");
    // Without reviews, and at Stop, when no review has been due yet.
    insta::assert_snapshot!(gate_marker(&mut state_with_review(0), &ended), @"RALPH_STOP|completed|2 items");
    let at_stop = SessionEvidence { observation: None, ..ended };
    insta::assert_snapshot!(gate_marker(&mut state_with_review(1), &at_stop), @"RALPH_STOP|completed|2 items");
}

#[test]
fn a_promise_is_refused_while_items_are_open_or_have_vanished() {
    let mut state = new_state();
    let line = gate_marker(&mut state, &new_evidence(PROMISE, "- [x] one\n- [ ] two\n"));
    assert_eq!(line, "RALPH_CONTINUE|refused|1 item is open in fix_plan.md: \"two\"");
    let line = gate_marker(&mut state, &new_evidence(PROMISE, "- [x] one\n"));
    assert_eq!(line, "RALPH_CONTINUE|refused|1 item vanished unticked from fix_plan.md: \"two\"");
    assert_eq!(state.outcomes.refusals.len(), 1);
    let missing = SessionEvidence { todo: None, ..new_evidence(PROMISE, "") };
    insta::assert_snapshot!(gate_marker(&mut state, &missing), @"RALPH_CONTINUE|refused|the to-do file fix_plan.md is missing, with 2 known items");
}

#[test]
fn a_promise_is_refused_while_a_verify_command_fails() {
    let mut state = new_state();
    let outcome = |passed| VerifyOutcome {
        command: "make test".into(),
        passed,
        summary: "exited with 2".into(),
        ..VerifyOutcome::default()
    };
    let failing = SessionEvidence {
        verify_outcomes: vec![outcome(true), outcome(false)],
        ..new_evidence(PROMISE, DONE)
    };
    assert_eq!(
        gate_marker(&mut state, &failing),
        "RALPH_CONTINUE|refused|verify command `make test` exited with 2"
    );
    assert_eq!(state.outcomes.refusals, ["verify command `make test` exited with 2"]);
    let passing = SessionEvidence { verify_outcomes: vec![outcome(true)], ..new_evidence(PROMISE, DONE) };
    assert_eq!(gate_marker(&mut state, &passing), "RALPH_STOP|completed|2 items, 1 verify command passed");
    assert!(state.outcomes.refusals.is_empty());
}

#[test]
fn verdicts_have_a_fixed_order_of_precedence() {
    let evidence_with_ending = |ending: SessionEnding| SessionEvidence {
        ending,
        ..new_evidence("working", "- [ ] one\n- [ ] two\n")
    };
    let mut cancelled = new_state();
    cancelled.lifecycle.cancel_if_open(None);
    assert_eq!(gate_marker(&mut cancelled, &new_evidence(PROMISE, DONE)), "RALPH_STOP|cancelled|");
    let last_iteration = || RunState { iteration: 50, ..new_state() };
    let markers = [
        SessionEnding::Fatal("authentication failed".to_owned().into()),
        SessionEnding::Limit("429".into()),
        SessionEnding::Overloaded("529".into()),
        SessionEnding::Interrupted,
        SessionEnding::Completed,
        SessionEnding::Crashed("x".into()),
    ]
    .map(|ending| gate_marker(&mut last_iteration(), &evidence_with_ending(ending)));
    insta::assert_snapshot!(markers.join("\n"), @"
    RALPH_STOP|fatal_error|authentication failed
    RALPH_PAUSE|-|usage limit: 429
    RALPH_PAUSE|-|overloaded: 529
    RALPH_PAUSE|-|interrupted
    RALPH_STOP|max_iterations|50 iterations done
    RALPH_STOP|max_iterations|50 iterations done
    ");
    assert_eq!(
        gate_marker(&mut new_state(), &evidence_with_ending(SessionEnding::Completed)),
        "RALPH_CONTINUE|next|2 open items"
    );
}

#[test]
fn a_checkpoint_overrides_no_limit_and_is_kept_with_any_verdict() {
    let mut state = new_state();
    state.context_checkpoint =
        Checkpoint { active: true, handoff_file: "h.md".into(), ..Checkpoint::default() };
    assert_eq!(gate_marker(&mut state, &new_evidence("x", "- [ ] one\n")), "RALPH_CONTINUE|checkpoint|h.md");
    state.iteration = 50;
    insta::assert_snapshot!(gate_marker(&mut state, &new_evidence("x", "- [ ] one\n")), @"RALPH_STOP|max_iterations|50 iterations done");
    assert!(state.context_checkpoint.active);
}

const BLOCKED: &str = "<promise>BLOCKED n1 no credentials</promise>";

/// Returns the state in the third session of a run, which works on the second item.
fn state_on_item_two() -> RunState {
    let mut state = new_state();
    state.iteration_record.item = Some("two".into());
    state.iteration_record.phase = IterationPhase::Ended;
    state
}

#[test]
fn blocked_ends_a_run_only_if_no_other_item_is_open() {
    let near_miss = "**<promise>BLOCKED n1 no credentials</promise>**";
    for (message, plan, expected) in [
        (
            BLOCKED,
            "- [ ] one\n- [ ] two\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        // The session has written the question itself: with the line, with a near miss, or without it.
        (
            BLOCKED,
            "- [ ] one\n- [ ] two\n  ? Who?\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        (
            near_miss,
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
        // It is the last open item.
        (BLOCKED, "- [x] one\n- [ ] two\n", "RALPH_STOP|blocked|no credentials (item \"two\")"),
        (BLOCKED, "- [x] one\n- [ ] two\n  ? Who?\n", "RALPH_STOP|blocked|Who? (item \"two\")"),
        ("", "- [x] one\n- [ ] two\n  ? Who?\n", "RALPH_STOP|blocked|Who? (item \"two\")"),
        (PROMISE, "- [x] one\n- [ ] two\n  ? Who?\n", "RALPH_STOP|blocked|Who? (item \"two\")"),
        // It asked about another item, so its own stays free.
        (
            BLOCKED,
            "- [ ] one\n  ? Me?\n- [ ] two\n",
            "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer",
        ),
        // An answer frees its item, whoever wrote it.
        ("", "- [x] one\n- [ ] two\n  ? Who?\n  ! Me\n", "RALPH_CONTINUE|next|1 open item"),
        // Its own item is ticked, so the line is about the next one, unless the session asked about another item.
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
        // No item is open: only the user can help.
        (BLOCKED, DONE, "RALPH_STOP|blocked|no credentials"),
        // A run does not complete while an item waits.
        (
            PROMISE,
            "- [ ] one\n- [ ] two\n  ? Who?\n",
            "RALPH_CONTINUE|refused|2 items are open in fix_plan.md: \"one\", \"two\"",
        ),
        // A note and an example are no questions.
        ("", "- [x] one\n- [ ] two\n  > Who?\n  ```\n  ? Who?\n  ```\n", "RALPH_CONTINUE|next|1 open item"),
    ] {
        assert_eq!(
            gate_marker(&mut state_on_item_two(), &new_evidence(message, plan)),
            expected,
            "{message:?} {plan:?}"
        );
    }
    let mut without_plan = state_on_item_two();
    without_plan.options.todo_file = None;
    assert_eq!(
        gate_marker(&mut without_plan, &new_evidence(BLOCKED, "- [ ] one\n")),
        "RALPH_STOP|blocked|no credentials"
    );
    let missing = SessionEvidence { todo: None, ..new_evidence(BLOCKED, "") };
    assert_eq!(gate_marker(&mut state_on_item_two(), &missing), "RALPH_STOP|blocked|no credentials");
    let packed_session = SessionEvidence {
        last_item: Some("three".into()),
        ..new_evidence(BLOCKED, "- [ ] one\n- [ ] two\n- [ ] three\n")
    };
    let mut state = state_on_item_two();
    judge_session_and_apply_verdict(&mut state, &packed_session, &Settings::default());
    assert_eq!(state.plan_items.parked_questions[0].item, "three", "the item that it went on with");
    // A question of an earlier session about another item is not a question of this one.
    let mut state = state_on_item_two();
    state.plan_items.parked_questions =
        vec![OpenQuestion { item: "one".into(), question: "Me?".into(), iteration: 1, was_notified: true }];
    assert_eq!(
        gate_marker(&mut state, &new_evidence(BLOCKED, "- [ ] one\n  ? Me?\n- [ ] two\n")),
        "RALPH_STOP|blocked|Me? (item \"one\"); no credentials (item \"two\")"
    );
}

#[test]
fn a_session_that_repeats_the_question_of_another_item_does_not_park_its_own() {
    let plan = "- [ ] one\n  ? I have no credentials. Where are they?\n- [ ] two\n";
    for (asked_in, now, expected) in [
        (3, 4, "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer"),
        (3, 5, "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer"),
        // A session that repeats it again and again means its own item.
        (
            3,
            6,
            "RALPH_STOP|blocked|I have no credentials. Where are they? (item \"one\"); no credentials (item \"two\")",
        ),
    ] {
        let mut state = state_on_item_two();
        state.iteration = now;
        state.plan_items.parked_questions = vec![OpenQuestion {
            item: "one".into(),
            question: "I have no credentials. Where are they?".into(),
            iteration: asked_in,
            was_notified: true,
        }];
        assert_eq!(gate_marker(&mut state, &new_evidence(BLOCKED, plan)), expected, "{asked_in} {now}");
    }
}

#[test]
fn a_question_is_neither_progress_nor_a_standstill_and_limits_apply() {
    let plan = "- [ ] one\n- [ ] two\n  ? Who?\n- [ ] three\n";
    let before = || {
        let mut state = state_on_item_two();
        state.outcomes.no_change_count = 2;
        state.outcomes.error_hashes = vec!["a".into(), "a".into()];
        state.outcomes.breaker.empty_reply_count = 2;
        state
    };
    let evidence_with_observation =
        |observation| SessionEvidence { observation, ..new_evidence(BLOCKED, plan) };
    let error = observation_with_progress(&[]).map(|seen| SessionObservation {
        error: Some("x".into()),
        is_empty_reply: true,
        ..seen
    });
    for observation in [observation_with_progress(&[]), observation_with_progress(&["files changed"]), error]
    {
        let mut state = before();
        let line = gate_marker(&mut state, &evidence_with_observation(observation.clone()));
        insta::allow_duplicates! {
            insta::assert_snapshot!(line, @"RALPH_CONTINUE|next|3 open items, 1 of them waits for an answer");
        }
        assert_eq!(state.outcomes.no_change_count, before().outcomes.no_change_count, "{observation:?}");
        assert_eq!(state.outcomes.error_hashes, before().outcomes.error_hashes, "{observation:?}");
        assert_eq!(state.outcomes.breaker, before().outcomes.breaker, "{observation:?}");
        assert_eq!(
            breaker::set_aside_item_one_session_before_trip(&mut state, &Settings::default().breaker),
            None,
            "nobody tried the next one"
        );
    }
    // It asked about another item than its own: its own makes no progress, as before.
    let mut stuck = before();
    let other = SessionEvidence {
        observation: observation_with_progress(&[]),
        ..new_evidence("", "- [ ] one\n  ? Who?\n- [ ] two\n- [ ] three\n")
    };
    insta::assert_snapshot!(gate_marker(&mut stuck, &other), @"RALPH_STOP|circuit_breaker|no_progress: 3 sessions in a row changed nothing: no commit, no file, no item");
    // An item that it finished before its question counts.
    let mut finished = before();
    gate_marker(&mut finished, &evidence_with_observation(observation_with_progress(&["tick"])));
    assert_eq!(finished.outcomes.no_change_count, 0);
    // The next session finds the question in the plan, so it counts as usual.
    let mut next = before();
    gate_marker(&mut next, &evidence_with_observation(observation_with_progress(&[])));
    (next.iteration, next.iteration_record.item) = (4, Some("one".into()));
    let idle = SessionEvidence { observation: observation_with_progress(&[]), ..new_evidence("", plan) };
    insta::assert_snapshot!(gate_marker(&mut next, &idle), @"RALPH_STOP|circuit_breaker|no_progress: 3 sessions in a row changed nothing: no commit, no file, no item");
    let mut last = RunState { iteration: 50, ..before() };
    insta::assert_snapshot!(gate_marker(&mut last, &evidence_with_observation(observation_with_progress(&[]))), @"RALPH_STOP|max_iterations|50 iterations done");
    let fatal = SessionEvidence {
        ending: SessionEnding::Fatal("login".to_owned().into()),
        ..evidence_with_observation(None)
    };
    insta::assert_snapshot!(gate_marker(&mut before(), &fatal), @"RALPH_STOP|fatal_error|login");
}

#[test]
fn the_checkpoint_of_a_parked_item_is_not_used_for_the_next_one() {
    let mut state = state_on_item_two();
    state.context_checkpoint =
        Checkpoint { active: true, current_todo_item: "two".into(), ..Checkpoint::default() };
    let line = gate_marker(&mut state, &new_evidence(BLOCKED, "- [ ] one\n- [ ] two\n  ? Who?\n"));
    assert_eq!(line, "RALPH_CONTINUE|next|2 open items, 1 of them waits for an answer");
}

fn observation_with_progress(progress: &[&str]) -> Option<SessionObservation> {
    let progress: Vec<String> = progress.iter().map(|words| (*words).to_owned()).collect();
    Some(SessionObservation {
        has_finished_item: progress.iter().any(|words| words == "tick"),
        progress,
        ..SessionObservation::default()
    })
}

fn working_evidence(observation: Option<SessionObservation>) -> SessionEvidence {
    SessionEvidence { observation, ..new_evidence("working", "- [ ] one\n- [ ] two\n") }
}

#[test]
fn sessions_without_progress_open_the_breaker_despite_limits_between() {
    let mut state = RunState {
        plan_items: PlanItems { todo_items: vec!["one".into()], ..new_state().plan_items },
        ..new_state()
    };
    let limit = SessionEvidence {
        ending: SessionEnding::Limit("429".into()),
        ..working_evidence(observation_with_progress(&[]))
    };
    let without_progress = working_evidence(observation_with_progress(&[]));
    let markers = [&without_progress, &limit, &without_progress, &limit, &without_progress]
        .map(|evidence| gate_marker(&mut state, evidence));
    insta::assert_snapshot!(markers.join("\n"), @r#"
    RALPH_CONTINUE|next|2 open items
    RALPH_PAUSE|-|usage limit: 429
    RALPH_CONTINUE|next|2 open items
    RALPH_PAUSE|-|usage limit: 429
    RALPH_STOP|circuit_breaker|no_progress: 3 sessions in a row changed nothing: no commit, no file, no item; the current item is "one"
    "#);
    assert_eq!(state.lifecycle.status(), RunStatus::CircuitBreaker);
    let opened = state.outcomes.breaker.trip.unwrap();
    assert_eq!((opened.failure_count, opened.tripped_at.as_str()), (3, NOW));
}

#[test]
fn refused_promises_open_the_breaker_with_the_last_reason() {
    let mut state = new_state();
    let refused = SessionEvidence {
        observation: observation_with_progress(&["files"]),
        ..new_evidence(PROMISE, "- [ ] one\n- [x] two\n")
    };
    for _ in 0..2 {
        insta::allow_duplicates! {
            insta::assert_snapshot!(gate_marker(&mut state, &refused), @r#"RALPH_CONTINUE|refused|1 item is open in fix_plan.md: "one""#);
        }
    }
    let line = gate_marker(&mut state, &refused);
    assert_eq!(
        line,
        "RALPH_STOP|circuit_breaker|refused: 3 promises in a row did not hold, the last because: 1 item is open in fix_plan.md: \"one\""
    );
}

#[test]
fn a_limit_pauses_until_its_reset_if_that_is_before_the_deadline() {
    let limit = |reset: &str| SessionEvidence {
        ending: SessionEnding::Limit("limit".into()),
        limit_resets_at: Some(Timestamp::from(reset)),
        ..working_evidence(None)
    };
    for (reset, line) in [
        ("2026-01-07T06:00:00Z", "RALPH_PAUSE|2026-01-07T06:00:00Z|usage limit: limit"),
        ("2026-01-07T04:00:00Z", "RALPH_PAUSE|-|usage limit: limit"),
        ("2026-01-07T09:00:00Z", "RALPH_STOP|deadline|usage limit: limit; it resets after the deadline"),
    ] {
        let mut state = new_state();
        state.options.limits.deadline = Some("2026-01-07T08:00:00Z".into());
        assert_eq!(gate_marker(&mut state, &limit(reset)), line);
    }
}

#[test]
fn a_spend_limit_pauses_until_its_reset_and_ends_the_run_without_one() {
    let reset = "2026-01-28T00:00:00Z";
    for (message, resets_at, line) in [
        (
            "spend limit reached · resets Jan 28, 12am (UTC)",
            Some(reset),
            "RALPH_PAUSE|2026-01-28T00:00:00Z|usage limit: spend limit reached · resets Jan 28, 12am (UTC)",
        ),
        // The reset time is in the past.
        (
            "spend limit reached",
            Some("2026-01-01T00:00:00Z"),
            "RALPH_PAUSE|-|usage limit: spend limit reached",
        ),
        (
            "spend limit reached",
            None,
            "RALPH_STOP|fatal_error|spend limit without a reset time: spend limit reached",
        ),
        (
            "You've hit your individual spend limit",
            None,
            "RALPH_STOP|fatal_error|spend limit without a reset time: You've hit your individual spend limit",
        ),
        (
            "You've hit your org's monthly spend limit",
            None,
            "RALPH_STOP|fatal_error|spend limit without a reset time: You've hit your org's monthly spend limit",
        ),
        (
            "API Error: Request rejected (429) · service_spend_limit_reached",
            None,
            "RALPH_STOP|fatal_error|spend limit without a reset time: API Error: Request rejected (429) · service_spend_limit_reached",
        ),
        (
            "You're out of usage credits",
            None,
            "RALPH_STOP|fatal_error|spend limit without a reset time: You're out of usage credits",
        ),
        ("You've hit your weekly limit", None, "RALPH_PAUSE|-|usage limit: You've hit your weekly limit"),
    ] {
        let evidence = SessionEvidence {
            ending: SessionEnding::Limit(message.into()),
            limit_resets_at: resets_at.map(Timestamp::from),
            ..working_evidence(None)
        };
        assert_eq!(gate_marker(&mut new_state(), &evidence), line);
    }
}

#[test]
fn three_checkpoints_in_15_minutes_pause_unless_an_item_is_finished() {
    let checkpoints = |seconds: [i64; 3], progress: &[&str]| {
        let mut state = new_state();
        let lines = seconds.map(|now_seconds| {
            state.iteration += 1;
            state.context_checkpoint =
                Checkpoint { active: true, iteration: state.iteration, ..Checkpoint::default() };
            gate_marker(
                &mut state,
                &SessionEvidence { now_seconds, ..working_evidence(observation_with_progress(progress)) },
            )
        });
        lines[2].split('|').next().unwrap_or_default().to_owned()
    };
    assert_eq!(checkpoints([0, 300, 900], &["files"]), "RALPH_PAUSE");
    assert_eq!(checkpoints([0, 300, 901], &["files"]), "RALPH_CONTINUE");
    assert_eq!(checkpoints([0, 300, 600], &["tick"]), "RALPH_CONTINUE");
}

#[test]
fn a_session_that_starts_above_l2_pauses_the_run_at_once() {
    let mut state = new_state();
    state.context_checkpoint =
        Checkpoint { active: true, iteration: 3, percent_at_checkpoint: Some(91), ..Checkpoint::default() };
    let above = SessionEvidence {
        started_at_or_above_l2: true,
        ..working_evidence(observation_with_progress(&["files"]))
    };
    let line = gate_marker(&mut state, &above);
    insta::assert_snapshot!(line, @"RALPH_PAUSE|-|checkpoint thrash: the session was at L2 before any work (checkpoint at 91%): what is loaded at its start leaves no room");
}

#[test]
fn a_limit_or_an_overload_pauses_only_within_the_budget() {
    for (ending, pause) in [
        (SessionEnding::Limit("429".into()), "RALPH_PAUSE|-|usage limit: 429"),
        (SessionEnding::Overloaded("529".into()), "RALPH_PAUSE|-|overloaded: 529"),
    ] {
        let evidence = SessionEvidence { ending, ..new_evidence("", "- [ ] one\n") };
        let limits = RunLimits { max_cost_usd: Some(4.0), ..Default::default() };
        let mut over_budget = RunState {
            options: RunOptions { limits: limits.clone(), ..new_state().options },
            spending: RunSpending { cost_usd: 4.0, ..new_state().spending },
            ..new_state()
        };
        assert_eq!(gate_marker(&mut over_budget, &evidence), "RALPH_STOP|budget|$4.00 of $4.00 spent");
        let mut last_iteration = RunState {
            iteration: 50,
            options: RunOptions { limits, ..new_state().options },
            spending: RunSpending { cost_usd: 3.9, ..new_state().spending },
            ..new_state()
        };
        assert_eq!(gate_marker(&mut last_iteration, &evidence), pause, "it is not counted");
    }
}

#[test]
fn overloaded_sessions_with_work_count_from_the_ninth_in_a_row() {
    let evidence = SessionEvidence {
        ending: SessionEnding::Overloaded("529".into()),
        ..new_evidence("", "- [ ] one\n")
    };
    let mut worked = new_state();
    worked.iteration_record.tokens = 1;
    let mut idle = new_state();
    for _ in 0..8 {
        for state in [&mut worked, &mut idle] {
            assert_eq!(gate_marker(state, &evidence), "RALPH_PAUSE|-|overloaded: 529");
        }
    }
    insta::assert_snapshot!(gate_marker(&mut worked, &evidence), @"RALPH_CONTINUE|next|the service failed; 1 open item");
    // A run waits for a service that is down.
    assert_eq!(gate_marker(&mut idle, &evidence), "RALPH_PAUSE|-|overloaded: 529");
}

#[test]
fn an_item_that_was_ticked_and_then_removed_has_not_vanished() {
    let mut state = RunState {
        plan_items: PlanItems { ever_ticked_items: vec!["two".into()], ..new_state().plan_items },
        ..new_state()
    };
    assert_eq!(gate_marker(&mut state, &new_evidence(PROMISE, "- [x] one\n")), "RALPH_STOP|completed|1 item");
}

#[test]
fn without_a_plan_only_the_promise_and_verify_commands_decide() {
    let mut state = RunState {
        options: RunOptions { todo_file: None, ..new_state().options },
        plan_items: PlanItems { known_items: Vec::new(), ..new_state().plan_items },
        ..new_state()
    };
    let bare = SessionEvidence { todo: None, ..new_evidence(PROMISE, "") };
    assert_eq!(gate_marker(&mut state, &bare), "RALPH_STOP|completed|promised");
    state.lifecycle = plimsoll_domain::state::Lifecycle::default();
    let working = SessionEvidence { todo: None, ..new_evidence("working", "") };
    assert_eq!(gate_marker(&mut state, &working), "RALPH_CONTINUE|next|no promise yet");
}

const NEAR_MISS_MESSAGE: &str = "All done.\n\n**<promise>COMPLETE</promise>**";
const EXACT_LINE_RULE: &str =
    "the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text";

fn verify_outcomes(passed: bool) -> Vec<VerifyOutcome> {
    vec![VerifyOutcome {
        command: "make test".into(),
        passed,
        summary: "exited with 2".into(),
        ..VerifyOutcome::default()
    }]
}

/// Returns the markers of consecutive sessions; the breaker would open at the first one without progress.
fn markers_of_sessions(mut state: RunState, sessions: &[SessionEvidence]) -> Vec<String> {
    let mut settings = Settings::default();
    settings.breaker.no_progress = 1;
    settings.breaker.refused = 1;
    let marker_of_session = |evidence: &SessionEvidence| {
        let evidence = SessionEvidence { observation: observation_with_progress(&[]), ..evidence.clone() };
        judge_session_and_apply_verdict(&mut state, &evidence, &settings).to_marker().to_string()
    };
    sessions.iter().map(marker_of_session).collect()
}

fn state_with_all_done_at_start() -> RunState {
    let mut state = new_state();
    state.iteration_record.ticked_before_iteration = vec!["one".into(), "two".into()];
    state
}

#[test]
fn a_near_miss_is_refused_with_the_given_line_and_the_open_items() {
    let mut state = new_state();
    let missed = "the promise line did not count (it was \"**<promise>COMPLETE</promise>**\")";
    assert_eq!(
        gate_marker(&mut state, &new_evidence(NEAR_MISS_MESSAGE, "- [x] one\n- [ ] two\n")),
        format!("RALPH_CONTINUE|refused|{missed}: {EXACT_LINE_RULE}; 1 item is open in fix_plan.md: \"two\"")
    );
    assert_eq!((state.outcomes.refusals.len(), state.outcomes.promise_failures), (2, 0));
    let failing =
        SessionEvidence { verify_outcomes: verify_outcomes(false), ..new_evidence(NEAR_MISS_MESSAGE, DONE) };
    gate_marker(&mut state, &failing);
    insta::assert_snapshot!(state.outcomes.refusals[0], @r#"the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text"#);
    assert_eq!(state.outcomes.refusals[1..], ["verify command `make test` exited with 2"]);
    state.options.objective = "Do it. At the end say <promise>COMPLETE</promise>".into();
    state.outcomes.promise_failures = 0;
    gate_marker(&mut state, &new_evidence(NEAR_MISS_MESSAGE, DONE));
    assert!(
        state.outcomes.refusals[0].ends_with("; the task text names `<promise>COMPLETE</promise>`, but this line counts, whatever another text says"),
        "{:?}",
        state.outcomes.refusals
    );
}

#[test]
fn a_missing_promise_costs_one_session_or_none_with_verify_commands() {
    let miss_with_verify = |verify: &[VerifyOutcome]| SessionEvidence {
        verify_outcomes: verify.to_vec(),
        ..new_evidence(NEAR_MISS_MESSAGE, DONE)
    };
    let silent_with_verify = |verify: &[VerifyOutcome]| SessionEvidence {
        verify_outcomes: verify.to_vec(),
        ..new_evidence("Nothing to do.", DONE)
    };
    let passing = verify_outcomes(true);
    let with_verify = || RunState {
        options: RunOptions {
            verify_commands: vec!["make test".into()],
            ..state_with_all_done_at_start().options
        },
        ..state_with_all_done_at_start()
    };
    let strict = || RunState {
        options: RunOptions { strict_promise: true, ..with_verify().options },
        ..with_verify()
    };
    for state in [with_verify(), RunState { iteration_record: new_state().iteration_record, ..with_verify() }]
    {
        for session in [miss_with_verify(&passing), silent_with_verify(&passing)] {
            assert_eq!(
                markers_of_sessions(state.clone(), &[session]),
                ["RALPH_STOP|completed|2 items, 1 verify command passed, without the promise"],
                "commands decide, and no session is asked again"
            );
        }
    }
    let shown = [
        (state_with_all_done_at_start(), [miss_with_verify(&[]), miss_with_verify(&[])]),
        (state_with_all_done_at_start(), [miss_with_verify(&[]), silent_with_verify(&[])]),
        (new_state(), [silent_with_verify(&[]), silent_with_verify(&[])]),
        (strict(), [miss_with_verify(&passing), miss_with_verify(&passing)]),
    ]
    .map(|(state, sessions)| markers_of_sessions(state, &sessions).join("\n"));
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
fn open_items_reset_the_count_of_failed_promises() {
    let miss = new_evidence(NEAR_MISS_MESSAGE, DONE);
    let open = new_evidence("I add an item.", "- [x] one\n- [x] two\n- [ ] three\n");
    let mut state = RunState {
        options: RunOptions {
            verify_commands: vec!["make test".into()],
            ..state_with_all_done_at_start().options
        },
        ..state_with_all_done_at_start()
    };
    for (evidence, count) in [
        (miss.clone(), 1),
        // A session that did not end by itself does not change the count.
        (SessionEvidence { ending: SessionEnding::Crashed("died".into()), ..miss.clone() }, 1),
        (SessionEvidence { ending: SessionEnding::Limit("429".into()), ..miss.clone() }, 1),
        (open, 0),
        (miss.clone(), 1),
        (SessionEvidence { verify_outcomes: verify_outcomes(false), ..miss.clone() }, 2),
        (
            SessionEvidence {
                verify_outcomes: verify_outcomes(false),
                ..new_evidence("Nothing to do.", DONE)
            },
            3,
        ),
    ] {
        let line = gate_marker(&mut state, &evidence);
        assert!(!line.starts_with("RALPH_STOP"), "{line}");
        assert_eq!(state.outcomes.promise_failures, count, "{line}");
    }
    let reasons = [
        "every item is ticked, and the promise line was left out",
        "verify command `make test` exited with 2",
    ];
    assert_eq!(state.outcomes.refusals, reasons);
    // Once the command passes, no further session is needed.
    let line = gate_marker(&mut state, &SessionEvidence { verify_outcomes: verify_outcomes(true), ..miss });
    insta::assert_snapshot!(line, @"RALPH_STOP|completed|2 items, 1 verify command passed, without the promise");
}

/// The run of a single item of a plan that several workers share.
fn item_run_state(verify: &[&str], is_strict: bool) -> RunState {
    let options = RunOptions {
        verify_commands: verify.iter().map(|command| (*command).to_owned()).collect(),
        strict_promise: is_strict,
        item_brief: Some(ItemBrief::default()),
        ..new_state().options
    };
    RunState { options, ..new_state() }
}

#[test]
fn the_run_of_an_item_ends_with_its_tick_and_passing_commands() {
    let evidence_of_end = |ending: SessionEnding, verify: Vec<VerifyOutcome>| SessionEvidence {
        ending,
        verify_outcomes: verify,
        ..new_evidence("Two is done.", DONE)
    };
    let crashed = || SessionEnding::Crashed("died".into());
    let limit = || SessionEnding::Limit("429".into());
    let completed = "RALPH_STOP|completed|2 items";
    let verified_words = "RALPH_STOP|completed|2 items, 1 verify command passed";
    for (state, evidence, expected) in [
        (item_run_state(&[], false), evidence_of_end(SessionEnding::Completed, Vec::new()), completed),
        (item_run_state(&[], false), evidence_of_end(SessionEnding::HookStopped, Vec::new()), completed),
        (
            item_run_state(&["make test"], false),
            evidence_of_end(SessionEnding::Completed, verify_outcomes(true)),
            verified_words,
        ),
        (
            item_run_state(&["make test"], false),
            evidence_of_end(crashed(), verify_outcomes(true)),
            verified_words,
        ),
        // Without a command nothing shows that the session had finished.
        (
            item_run_state(&[], false),
            evidence_of_end(crashed(), Vec::new()),
            "RALPH_CONTINUE|next|Claude Code died; 0 open items",
        ),
        (
            item_run_state(&["make test"], false),
            evidence_of_end(limit(), verify_outcomes(true)),
            "RALPH_PAUSE|-|usage limit: 429",
        ),
        (
            item_run_state(&["make test"], false),
            evidence_of_end(SessionEnding::Completed, verify_outcomes(false)),
            "RALPH_CONTINUE|refused|verify command `make test` exited with 2",
        ),
        (
            item_run_state(&["make test"], true),
            evidence_of_end(SessionEnding::Completed, verify_outcomes(true)),
            "RALPH_CONTINUE|next|0 open items",
        ),
    ] {
        let line = gate_marker(&mut state.clone(), &evidence);
        assert_eq!(line, expected, "{evidence:?}");
    }
    let open = SessionEvidence {
        verify_outcomes: verify_outcomes(true),
        ..new_evidence("I wait.", "- [x] one\n- [ ] two\n")
    };
    let line = gate_marker(&mut item_run_state(&["make test"], false), &open);
    insta::assert_snapshot!(line, @"RALPH_CONTINUE|next|1 open item");
    assert!(!crate::completion::needs_verify_commands_before_verdict(
        &item_run_state(&["make test"], false),
        &open
    ));
    assert!(crate::completion::needs_verify_commands_before_verdict(
        &item_run_state(&["make test"], false),
        &evidence_of_end(SessionEnding::Completed, Vec::new())
    ));
    let blocked = new_evidence("<promise>BLOCKED n1 no key</promise>", DONE);
    let line = gate_marker(&mut item_run_state(&[], false), &blocked);
    insta::assert_snapshot!(line, @"RALPH_STOP|blocked|no key");
}

#[test]
fn verify_commands_judge_a_session_that_ticks_all_without_a_promise() {
    let state = RunState {
        options: RunOptions { verify_commands: vec!["make test".into()], ..new_state().options },
        ..new_state()
    };
    let silent = new_evidence("Two is done.", DONE);
    assert!(crate::completion::needs_verify_commands_before_verdict(&state, &silent));
    let failing = SessionEvidence { verify_outcomes: verify_outcomes(false), ..silent };
    let line = gate_marker(&mut state.clone(), &failing);
    insta::assert_snapshot!(line, @"RALPH_CONTINUE|refused|every item is ticked, and the promise line was left out; verify command `make test` exited with 2");
}

#[test]
fn commands_decide_about_finished_items_before_a_limit_ends_the_run() {
    let done_state = |verify: &[&str], max_cost_usd: f64, strict_promise: bool| RunState {
        options: RunOptions {
            verify_commands: verify.iter().map(|command| (*command).to_owned()).collect(),
            limits: RunLimits { max_cost_usd: Some(max_cost_usd), ..RunLimits::default() },
            strict_promise,
            ..new_state().options
        },
        spending: RunSpending { cost_usd: 0.24, ..new_state().spending },
        ..new_state()
    };
    let with_commands = || done_state(&["make test"], 0.2, false);
    let client_limit = || SessionEnding::ClientLimit("--max-budget-usd".to_owned());
    let spent = "RALPH_STOP|budget|$0.24 of $0.20 spent";
    let completed = "RALPH_STOP|completed|2 items, 1 verify command passed, without the promise";
    for (mut state, ending, plan, verify_passes, expected) in [
        (with_commands(), client_limit(), DONE, true, completed),
        (with_commands(), SessionEnding::HookStopped, DONE, true, completed),
        (with_commands(), SessionEnding::WindowFull("blocked".to_owned()), DONE, true, completed),
        (with_commands(), SessionEnding::DeadlineReached, DONE, true, completed),
        (with_commands(), SessionEnding::Crashed("was killed".to_owned()), DONE, true, spent),
        (with_commands(), client_limit(), DONE, false, spent),
        (with_commands(), client_limit(), "- [x] one\n- [ ] two\n", true, spent),
        (done_state(&[], 0.2, false), client_limit(), DONE, true, spent),
        (done_state(&["make test"], 0.2, true), client_limit(), DONE, true, spent),
        (
            done_state(&["make test"], 9.0, false),
            client_limit(),
            DONE,
            true,
            "RALPH_CONTINUE|next|Claude Code's --max-budget-usd ended the session; 0 open items",
        ),
    ] {
        let outcomes = if state.options.verify_commands.is_empty() {
            Vec::new()
        } else {
            verify_outcomes(verify_passes)
        };
        let evidence = SessionEvidence { ending, ..new_evidence("", plan) };
        let is_completed = expected == completed;
        let context = format!("{:?} {expected}", evidence.ending);
        let needs_commands = crate::completion::needs_verify_commands_before_verdict(&state, &evidence);
        assert!(needs_commands || !is_completed, "{context}");
        let evidence = SessionEvidence { verify_outcomes: outcomes, ..evidence };
        assert_eq!(gate_marker(&mut state, &evidence), expected, "{context}");
    }
    let unclear_plan = "- [x] one\n- [x] two\n* [] three\n";
    let unclear = SessionEvidence {
        ending: client_limit(),
        verify_outcomes: verify_outcomes(true),
        ..new_evidence("", unclear_plan)
    };
    let marker = gate_marker(&mut with_commands(), &unclear);
    assert!(marker.starts_with("RALPH_STOP|blocked|"), "{marker}");
}

#[test]
fn without_a_plan_only_consecutive_near_misses_count() {
    let state_without_plan = |verify: &[&str]| RunState {
        options: RunOptions {
            todo_file: None,
            verify_commands: verify.iter().map(|command| (*command).to_owned()).collect(),
            ..new_state().options
        },
        plan_items: PlanItems { known_items: Vec::new(), ..new_state().plan_items },
        ..new_state()
    };
    let evidence_saying = |words: &str, verify: Vec<VerifyOutcome>| SessionEvidence {
        todo: None,
        verify_outcomes: verify,
        ..new_evidence(words, "")
    };
    let miss = || evidence_saying(NEAR_MISS_MESSAGE, verify_outcomes(true));
    let mut settings = Settings::default();
    settings.breaker.no_progress = 0;
    let mut state = state_without_plan(&["make test"]);
    let refused = format!(
        "RALPH_CONTINUE|refused|the promise line did not count (it was \"**<promise>COMPLETE</promise>**\"): {EXACT_LINE_RULE}; verify command `make test` exited with 2"
    );
    for (evidence, expected, count) in [
        (evidence_saying(NEAR_MISS_MESSAGE, verify_outcomes(false)), &*refused, 1),
        (evidence_saying("I work on.", Vec::new()), "RALPH_CONTINUE|next|no promise yet", 0),
        (miss(), "RALPH_STOP|completed|1 verify command passed, without the promise", 1),
    ] {
        let line = judge_session_and_apply_verdict(&mut state, &evidence, &settings).to_marker().to_string();
        assert_eq!(line, expected);
        assert_eq!(state.outcomes.promise_failures, count, "{line}");
    }
    let sessions =
        [evidence_saying(NEAR_MISS_MESSAGE, Vec::new()), evidence_saying(NEAR_MISS_MESSAGE, Vec::new())];
    let markers = markers_of_sessions(state_without_plan(&[]), &sessions);
    insta::assert_snapshot!(markers.join("\n"), @r#"
    RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text
    RALPH_STOP|blocked|the promise line was not given as asked, 2 times (it was "**<promise>COMPLETE</promise>**" and must be `<promise>COMPLETE n1</promise>`); check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide
    "#);
}

#[test]
fn before_the_verify_commands_have_run_nothing_is_decided() {
    let mut state = RunState {
        options: RunOptions {
            verify_commands: vec!["make test".into()],
            ..state_with_all_done_at_start().options
        },
        outcomes: SessionOutcomes { promise_failures: 1, ..state_with_all_done_at_start().outcomes },
        ..state_with_all_done_at_start()
    };
    let miss = new_evidence(NEAR_MISS_MESSAGE, DONE);
    assert!(crate::completion::needs_verify_commands_before_verdict(&state, &miss));
    insta::assert_snapshot!(gate_marker(&mut state.clone(), &miss), @r#"RALPH_CONTINUE|refused|the promise line did not count (it was "**<promise>COMPLETE</promise>**"): the last line of the last message must be exactly `<promise>COMPLETE n1</promise>`, as plain text"#);
    let silent = new_evidence("Nothing to do.", DONE);
    assert!(crate::completion::needs_verify_commands_before_verdict(&state, &silent));
    insta::assert_snapshot!(gate_marker(&mut state.clone(), &silent), @"RALPH_CONTINUE|next|0 open items");
    state.options.strict_promise = true;
    state.outcomes.promise_failures = 0;
    assert!(
        !crate::completion::needs_verify_commands_before_verdict(&state, &silent),
        "it is asked once more first"
    );
}

#[test]
fn a_missed_blocked_line_is_refused_and_does_not_count_as_a_failed_promise() {
    let mut state = state_with_all_done_at_start();
    let line = gate_marker(&mut state, &new_evidence("`<promise>BLOCKED no key</promise>`", DONE));
    insta::assert_snapshot!(line, @r#"RALPH_CONTINUE|refused|the promise line did not count (it was "`<promise>BLOCKED no key</promise>`"): the last line of the last message must be exactly `<promise>BLOCKED n1 REASON</promise>`, as plain text"#);
    assert_eq!(state.outcomes.promise_failures, 0);
}

#[test]
fn a_popped_root_frame_completes_despite_a_near_miss() {
    let popped = SessionEvidence { is_root_frame_popped: true, ..new_evidence(NEAR_MISS_MESSAGE, DONE) };
    assert_eq!(gate_marker(&mut state_with_all_done_at_start(), &popped), "RALPH_STOP|completed|2 items");
}
