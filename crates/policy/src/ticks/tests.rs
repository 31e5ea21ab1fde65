use super::*;
use plimsoll_domain::size::ItemCost;
use plimsoll_domain::state::{ItemWork, IterationRecord, PlanItems, RunOptions, SessionOutcomes};

const PLAN: &str =
    "- [x] zero\n- [x] one (verify: sh one.sh)\n- [x] two\n- [ ] three (verify: sh three.sh)\n";

/// Returns the state after a session that began with `zero` ticked and ticked the next two items.
fn state() -> RunState {
    let todo = TodoList::parse(PLAN);
    let check = |item: &str| ItemCheck {
        item_text: item.into(),
        command: item_check::parse_verify_command(item).unwrap(),
    };
    RunState {
        iteration: 3,
        options: RunOptions {
            todo_file: Some("fix_plan.md".into()),
            verify_commands: vec!["make".into(), "lint".into()],
            plan_checks: vec![check("one (verify: sh one.sh)"), check("three (verify: sh three.sh)")],
            ..RunOptions::default()
        },
        plan_items: PlanItems {
            known_items: todo.items.iter().map(|item| item.text.clone()).collect(),
            todo_items: todo.open_items(),
            completed_items: todo.ticked_items(),
            ever_ticked_items: todo.ticked_items(),
            ..PlanItems::default()
        },
        iteration_record: IterationRecord {
            ticked_before_iteration: vec!["zero".into()],
            ticked_before_session: vec!["zero".into()],
            ..IterationRecord::default()
        },
        outcomes: SessionOutcomes {
            passed_verify_commands: vec!["make".into()],
            ..SessionOutcomes::default()
        },
        ..RunState::default()
    }
}

fn evidence(plan: &str, verify: &[(&str, bool)]) -> SessionEvidence {
    let outcome = |(command, passed): &(&str, bool)| VerifyOutcome {
        command: (*command).to_owned(),
        passed: *passed,
        summary: "exited with 2".into(),
        seconds: 4,
        is_inconclusive: false,
    };
    SessionEvidence {
        todo: Some(TodoList::parse(plan)),
        verify_outcomes: verify.iter().map(outcome).collect(),
        ..SessionEvidence::default()
    }
}

/// Returns the items whose ticks are revoked and the commands that caused it.
fn revoked_ticks(state: &RunState, verify: &[(&str, bool)]) -> Option<(Vec<String>, Vec<String>)> {
    let revocation = ticks_to_revert_for_regression_or_item_check(state, &evidence(PLAN, verify))?;
    let commands = revocation.failed_commands.into_iter().map(|failed| failed.command);
    Some((revocation.items, commands.collect()))
}

#[test]
fn checks_of_ticked_items_run_and_all_checks_run_at_the_promise() {
    let commands_to_run = |state: &RunState, evidence: &SessionEvidence| {
        verify_commands_for_completion_or_ticks(state, evidence)
    };
    assert_eq!(commands_to_run(&state(), &evidence(PLAN, &[])), ["make", "lint", "sh one.sh"]);
    let nothing_ticked = "- [x] zero\n- [ ] one\n";
    assert!(commands_to_run(&state(), &evidence(nothing_ticked, &[])).is_empty());
    let mut only_at_promise = state();
    only_at_promise.options.verify_timing = VerifyTiming::BeforeCompletion;
    assert!(commands_to_run(&only_at_promise, &evidence(PLAN, &[])).is_empty());
    let evidence_with_promise = SessionEvidence {
        last_message: Some("<promise>COMPLETE 7f3a</promise>".into()),
        ..evidence(&PLAN.replace("[ ]", "[x]"), &[])
    };
    for each in [VerifyTiming::AfterTick, VerifyTiming::BeforeCompletion] {
        let mut state = state();
        (state.promise_code, state.options.completion_promise) =
            ("7f3a".parse().expect("a code"), "COMPLETE".parse().expect("a word"));
        state.options.verify_timing = each;
        assert_eq!(
            commands_to_run(&state, &evidence_with_promise),
            ["make", "lint", "sh one.sh", "sh three.sh"],
            "{each:?}"
        );
    }
}

#[test]
fn only_commands_that_had_passed_and_own_checks_revoke_a_tick() {
    let (one, two) = ("one (verify: sh one.sh)".to_owned(), "two".to_owned());
    let both = vec![one.clone(), two];
    let commands = ["make", "lint", "sh one.sh"];
    for (failing, expected) in [
        (&[][..], None),
        (&["make"], Some((both.clone(), vec!["make"]))),
        // A command that never passed, such as a suite that the plan makes pass step by step, revokes nothing.
        (&["lint"], None),
        (&["lint", "make"], Some((both.clone(), vec!["make"]))),
        // An item's own check fails until the item is done, and affects only this item.
        (&["sh one.sh"], Some((vec![one.clone()], vec!["sh one.sh"]))),
        (&["lint", "sh one.sh"], Some((vec![one.clone()], vec!["sh one.sh"]))),
        (&["make", "sh one.sh"], Some((both, vec!["make", "sh one.sh"]))),
        // The check belongs to an item that this session did not tick.
        (&["sh three.sh"], None),
    ] {
        let verify: Vec<(&str, bool)> = commands
            .iter()
            .chain(["sh three.sh"].iter())
            .map(|command| (*command, !failing.contains(command)))
            .collect();
        let expected = expected
            .map(|(items, failed)| (items, failed.into_iter().map(str::to_owned).collect::<Vec<_>>()));
        assert_eq!(revoked_ticks(&state(), &verify), expected, "{failing:?}");
        let mut only_at_promise = state();
        only_at_promise.options.verify_timing = VerifyTiming::BeforeCompletion;
        assert_eq!(revoked_ticks(&only_at_promise, &verify), None, "{failing:?}");
    }
}

#[test]
fn a_command_that_timed_out_revokes_nothing() {
    let mut cut_off = evidence(PLAN, &[("make", false)]);
    cut_off.verify_outcomes[0].is_inconclusive = true;
    assert_eq!(ticks_to_revert_for_regression_or_item_check(&state(), &cut_off), None);
}

#[test]
fn ticks_of_an_earlier_session_of_the_same_iteration_stay() {
    let mut state = state();
    state.iteration_record.ticked_before_session = vec!["zero".into(), "two".into()];
    let revoked = revoked_ticks(&state, &[("make", false)]).unwrap();
    assert_eq!(revoked.0, ["one (verify: sh one.sh)"]);
}

#[test]
fn a_check_that_was_added_or_changed_does_not_run_and_is_reported() {
    let changed = PLAN.replace("sh one.sh", "evil").replace("two\n", "two (verify: sh three.sh)\n");
    let evidence = evidence(&changed, &[]);
    // An item that names the allowed command of another item neither runs it nor counts as new.
    assert_eq!(verify_commands_for_completion_or_ticks(&state(), &evidence), ["make", "lint"]);
    let new_checks = new_checks_of_ticked_items_if_plan_had_checks(&state(), &evidence);
    assert_eq!(new_checks.iter().map(|check| check.command.as_str()).collect::<Vec<_>>(), ["evil"]);
    let mut not_allowed = state();
    not_allowed.options.plan_checks.clear();
    assert!(
        new_checks_of_ticked_items_if_plan_had_checks(&not_allowed, &evidence).is_empty(),
        "the user was told as the run began"
    );
    assert_eq!(
        verify_commands_for_completion_or_ticks(&not_allowed, &self::evidence(PLAN, &[])),
        ["make", "lint"]
    );
    // Text appended to an item does not remove its check.
    let longer = self::evidence(&PLAN.replace("one.sh)", "one.sh) (done in abc123)"), &[]);
    assert_eq!(verify_commands_for_completion_or_ticks(&state(), &longer), ["make", "lint", "sh one.sh"]);
}

#[test]
fn only_commands_without_a_known_outcome_run_before_a_session() {
    let mut state = state();
    assert_eq!(tick_baseline_commands_without_outcome(&state), ["lint"]);
    state.outcomes.failing_verify_commands = vec!["lint".into()];
    assert!(tick_baseline_commands_without_outcome(&state).is_empty());
    state.outcomes = SessionOutcomes::default();
    state.options.verify_timing = VerifyTiming::BeforeCompletion;
    assert!(tick_baseline_commands_without_outcome(&state).is_empty());
    (state.options.verify_timing, state.options.todo_file) = (VerifyTiming::AfterTick, None);
    assert!(tick_baseline_commands_without_outcome(&state).is_empty(), "without a plan nothing is ticked");
}

#[test]
fn an_item_with_a_revoked_tick_is_open_and_keeps_its_tokens() {
    let mut state = state();
    let (one, two) = ("one (verify: sh one.sh)".to_owned(), "two".to_owned());
    let cost = |tokens| ItemCost { size: None, tokens };
    let measured =
        |item: &str, tokens: Option<u64>| MeasuredItem { item: item.into(), cost: tokens.map(cost) };
    // The cost of `one` was unknown, and `zero` was measured after both.
    state.iteration_record.measured_items =
        vec![measured(&one, None), measured(&two, Some(200)), measured("zero", Some(300))];
    state.plan_items.item_costs = vec![cost(7), cost(200), cost(300)];
    state.context_checkpoint.item_work = ItemWork {
        ticked_items: vec!["zero".into(), one.clone(), two.clone()],
        is_begun: false,
        ..ItemWork::default()
    };
    let revocation = RevertedTicks { items: vec![one.clone(), two.clone()], ..RevertedTicks::default() };
    let todo = TodoList::parse(&PLAN.replace("[x] one", "[ ] one").replace("[x] two", "[ ] two"));
    reopen_reverted_items_keeping_their_costs(&mut state, &revocation, &todo);
    let state_after_first = state.clone();
    reopen_reverted_items_keeping_their_costs(&mut state, &revocation, &todo);
    assert_eq!(state, state_after_first, "done twice");
    assert_eq!(
        (state.plan_items.completed_items.as_slice(), state.items_ticked_in_iteration()),
        (&["zero".to_owned()][..], vec![])
    );
    assert_eq!(state.plan_items.ever_ticked_items, ["zero"], "removed now, it would have vanished");
    assert!(state.items_removed_without_being_ticked().is_empty());
    assert_eq!(state.plan_items.item_costs, [cost(7), cost(300)]);
    assert_eq!(state.iteration_record.measured_items, [measured("zero", Some(300))]);
    assert_eq!((state.remove_open_item_tokens(&one), state.remove_open_item_tokens(&two)), (0, 200));
    let checkpoint = &state.context_checkpoint;
    assert_eq!(checkpoint.item_work.ticked_items, ["zero"]);
    assert!(checkpoint.has_work_on_item(&one), "{checkpoint:?}");
}

#[test]
fn the_progress_of_a_half_done_item_stays_if_another_tick_is_revoked() {
    let mut state = state();
    let half_done_item = "three (verify: sh three.sh)";
    state.context_checkpoint = Checkpoint {
        current_todo_item: half_done_item.into(),
        progress_on_item: "70%".into(),
        item_work: ItemWork { ticked_items: vec!["two".into()], ..ItemWork::default() },
        ..Checkpoint::default()
    };
    let revocation = RevertedTicks { items: vec!["two".into()], ..RevertedTicks::default() };
    reopen_reverted_items_keeping_their_costs(
        &mut state,
        &revocation,
        &TodoList::parse(&PLAN.replace("[x] two", "[ ] two")),
    );
    assert!(state.context_checkpoint.has_work_on_item(half_done_item));
    assert_eq!(state.context_checkpoint.progress_on_item, "70%");
    assert!(state.context_checkpoint.item_work.ticked_items.is_empty());
}

#[test]
fn a_passed_command_stays_recorded_and_the_seconds_add_up() {
    let mut state = state();
    record_conclusive_outcomes_and_add_seconds(
        &mut state,
        &evidence(PLAN, &[("make", false), ("lint", true)]).verify_outcomes,
    );
    record_conclusive_outcomes_and_add_seconds(&mut state, &[]);
    assert_eq!(state.outcomes.passed_verify_commands, ["make", "lint"]);
    assert_eq!(
        (state.outcomes.failing_verify_commands, state.spending.verify_seconds),
        (vec!["make".to_owned()], 8)
    );
}

/// Before a session only the commands without a known outcome run.
#[test]
fn the_outcome_of_a_command_stays_until_it_has_finished_again() {
    let mut state = state();
    state.options.verify_commands = vec!["make".into(), "lint".into()];
    record_conclusive_outcomes_and_add_seconds(
        &mut state,
        &evidence(PLAN, &[("make", false)]).verify_outcomes,
    );
    record_conclusive_outcomes_and_add_seconds(
        &mut state,
        &evidence(PLAN, &[("lint", false)]).verify_outcomes,
    );
    assert_eq!(state.outcomes.failing_verify_commands, ["make", "lint"]);
    let mut cut_off = evidence(PLAN, &[("lint", false)]);
    cut_off.verify_outcomes[0].is_inconclusive = true;
    state.outcomes.failing_verify_commands = vec!["make".into()];
    record_conclusive_outcomes_and_add_seconds(&mut state, &cut_off.verify_outcomes);
    assert_eq!(
        (tick_baseline_commands_without_outcome(&state), &state.outcomes.failing_verify_commands),
        (vec!["lint".into()], &vec!["make".into()])
    );
    record_conclusive_outcomes_and_add_seconds(
        &mut state,
        &evidence(PLAN, &[("make", true)]).verify_outcomes,
    );
    assert!(
        state.outcomes.failing_verify_commands.is_empty(),
        "{:?}",
        state.outcomes.failing_verify_commands
    );
    // The run no longer has this command.
    state.outcomes.failing_verify_commands = vec!["old".into()];
    record_conclusive_outcomes_and_add_seconds(
        &mut state,
        &evidence(PLAN, &[("make", true)]).verify_outcomes,
    );
    assert!(state.outcomes.failing_verify_commands.is_empty());
}

#[test]
fn the_last_outcome_of_each_command_is_recorded_with_its_commit() {
    let mut state = state();
    let tree = |commit: &str, has_uncommitted| VerifiedTree {
        commit: Some(commit.to_owned()),
        has_uncommitted_changes: has_uncommitted,
    };
    record_last_conclusive_verify_runs(
        &mut state,
        &evidence(PLAN, &[("make", true), ("lint", false)]).verify_outcomes,
        &tree("a", false),
    );
    state.iteration = 4;
    let mut later_outcomes =
        evidence(PLAN, &[("make", false), ("lint", true), ("dropped", true)]).verify_outcomes;
    later_outcomes[1].is_inconclusive = true;
    record_last_conclusive_verify_runs(&mut state, &later_outcomes, &tree("b", true));
    let recorded_runs = |state: &RunState| -> Vec<_> {
        let runs = state.outcomes.verify_runs.iter();
        runs.map(|run| {
            (
                run.command.clone(),
                run.passed,
                run.iteration,
                run.commit.clone().unwrap_or_default(),
                run.has_uncommitted,
            )
        })
        .collect()
    };
    let run = |command: &str, passed, iteration, commit: &str, has_uncommitted| {
        (command.to_owned(), passed, iteration, commit.to_owned(), has_uncommitted)
    };
    let expected = [
        run("lint", false, 3, "a", false),
        run("make", false, 4, "b", true),
        run("dropped", true, 4, "b", true),
    ];
    assert_eq!(recorded_runs(&state), expected, "a command that was cut off keeps what is known of it");
    record_last_conclusive_verify_runs(&mut state, &[], &VerifiedTree::default());
    assert_eq!(recorded_runs(&state), expected[..2], "one that the run does not have is forgotten");
}
