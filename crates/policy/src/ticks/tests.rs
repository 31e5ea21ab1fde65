use super::*;
use plimsoll_domain::size::ItemCost;
use plimsoll_domain::state::{ItemWork, Items, IterationRecord, Outcomes, RunOptions};

const PLAN: &str =
    "- [x] zero\n- [x] one (verify: sh one.sh)\n- [x] two\n- [ ] three (verify: sh three.sh)\n";

/// A session began with `zero` ticked, and ticked the next two.
fn state() -> RunState {
    let todo = TodoList::parse(PLAN);
    let check = |item: &str| ItemCheck { item: item.into(), command: item_check::command(item).unwrap() };
    RunState {
        iteration: 3,
        options: RunOptions {
            todo_file: Some("fix_plan.md".into()),
            verify: vec!["make".into(), "lint".into()],
            plan_checks: vec![check("one (verify: sh one.sh)"), check("three (verify: sh three.sh)")],
            ..RunOptions::default()
        },
        items: Items {
            known_items: todo.items.iter().map(|item| item.text.clone()).collect(),
            todo_items: todo.open(),
            completed_items: todo.done(),
            ever_done: todo.done(),
            ..Items::default()
        },
        iteration_record: IterationRecord {
            done_before: vec!["zero".into()],
            done_at_start: vec!["zero".into()],
            ..IterationRecord::default()
        },
        outcomes: Outcomes { verify_passed: vec!["make".into()], ..Outcomes::default() },
        ..RunState::default()
    }
}

fn evidence(plan: &str, verify: &[(&str, bool)]) -> Evidence {
    let outcome = |(command, passed): &(&str, bool)| VerifyOutcome {
        command: (*command).to_owned(),
        passed: *passed,
        words: "exited with 2".into(),
        seconds: 4,
        is_undecided: false,
    };
    Evidence {
        todo: Some(TodoList::parse(plan)),
        verify: verify.iter().map(outcome).collect(),
        ..Evidence::default()
    }
}

/// The items whose ticks are taken back, and the commands that are the cause.
fn taken(state: &RunState, verify: &[(&str, bool)]) -> Option<(Vec<String>, Vec<String>)> {
    let taken = refused(state, &evidence(PLAN, verify))?;
    let commands = taken.failed.into_iter().map(|failed| failed.command);
    Some((taken.items, commands.collect()))
}

#[test]
fn the_commands_of_ticked_items_run_and_those_of_other_items_only_at_the_promise() {
    let due = |state: &RunState, evidence: &Evidence| commands_due(state, evidence);
    assert_eq!(due(&state(), &evidence(PLAN, &[])), ["make", "lint", "sh one.sh"]);
    let nothing_ticked = "- [x] zero\n- [ ] one\n";
    assert!(due(&state(), &evidence(nothing_ticked, &[])).is_empty());
    let mut only_at_promise = state();
    only_at_promise.options.verify_each = VerifyEach::Promise;
    assert!(due(&only_at_promise, &evidence(PLAN, &[])).is_empty());
    let promises = Evidence {
        last_message: Some("<promise>COMPLETE 7f3a</promise>".into()),
        ..evidence(&PLAN.replace("[ ]", "[x]"), &[])
    };
    for each in [VerifyEach::Tick, VerifyEach::Promise] {
        let mut state = state();
        (state.nonce, state.options.completion_promise) =
            ("7f3a".parse().expect("a code"), "COMPLETE".parse().expect("a word"));
        state.options.verify_each = each;
        assert_eq!(due(&state, &promises), ["make", "lint", "sh one.sh", "sh three.sh"], "{each:?}");
    }
}

#[test]
fn a_tick_is_taken_back_only_for_what_had_passed_and_for_the_items_own_check() {
    let (one, two) = ("one (verify: sh one.sh)".to_owned(), "two".to_owned());
    let both = vec![one.clone(), two];
    let all = ["make", "lint", "sh one.sh"];
    for (fails, expected) in [
        (&[][..], None),
        (&["make"], Some((both.clone(), vec!["make"]))),
        // It never passed: a suite that the plan makes pass step by step.
        (&["lint"], None),
        (&["lint", "make"], Some((both.clone(), vec!["make"]))),
        // An acceptance check fails until its item is done; it concerns this one alone.
        (&["sh one.sh"], Some((vec![one.clone()], vec!["sh one.sh"]))),
        (&["lint", "sh one.sh"], Some((vec![one.clone()], vec!["sh one.sh"]))),
        (&["make", "sh one.sh"], Some((both, vec!["make", "sh one.sh"]))),
        // Another item's: it was no part of this session.
        (&["sh three.sh"], None),
    ] {
        let verify: Vec<(&str, bool)> = all
            .iter()
            .chain(["sh three.sh"].iter())
            .map(|command| (*command, !fails.contains(command)))
            .collect();
        let expected = expected
            .map(|(items, failed)| (items, failed.into_iter().map(str::to_owned).collect::<Vec<_>>()));
        assert_eq!(taken(&state(), &verify), expected, "{fails:?}");
        let mut only_at_promise = state();
        only_at_promise.options.verify_each = VerifyEach::Promise;
        assert_eq!(taken(&only_at_promise, &verify), None, "{fails:?}");
    }
}

#[test]
fn what_a_deadline_cut_off_takes_nothing_back() {
    let mut cut = evidence(PLAN, &[("make", false)]);
    cut.verify[0].is_undecided = true;
    assert_eq!(refused(&state(), &cut), None);
}

#[test]
fn ticks_of_an_earlier_session_of_the_same_iteration_stay() {
    let mut state = state();
    state.iteration_record.done_at_start = vec!["zero".into(), "two".into()];
    let taken = taken(&state, &[("make", false)]).unwrap();
    assert_eq!(taken.0, ["one (verify: sh one.sh)"]);
}

#[test]
fn a_check_that_was_added_or_changed_since_does_not_run_and_is_told() {
    let changed = PLAN.replace("sh one.sh", "evil").replace("two\n", "two (verify: sh three.sh)\n");
    let evidence = evidence(&changed, &[]);
    // Another item's allowed command starts nothing new, and is not this item's either.
    assert_eq!(commands_due(&state(), &evidence), ["make", "lint"]);
    let told = not_run(&state(), &evidence);
    assert_eq!(told.iter().map(|check| check.command.as_str()).collect::<Vec<_>>(), ["evil"]);
    let mut not_allowed = state();
    not_allowed.options.plan_checks.clear();
    assert!(not_run(&not_allowed, &evidence).is_empty(), "the user was told as the run began");
    assert_eq!(commands_due(&not_allowed, &self::evidence(PLAN, &[])), ["make", "lint"]);
    // Words added behind an item do not rid it of its check.
    let longer = self::evidence(&PLAN.replace("one.sh)", "one.sh) (done in abc123)"), &[]);
    assert_eq!(commands_due(&state(), &longer), ["make", "lint", "sh one.sh"]);
}

#[test]
fn it_is_known_of_each_command_whether_it_passes_before_a_session_can_break_it() {
    let mut state = state();
    assert_eq!(unknown(&state), ["lint"]);
    state.outcomes.verify_failing = vec!["lint".into()];
    assert!(unknown(&state).is_empty());
    state.outcomes = Outcomes::default();
    state.options.verify_each = VerifyEach::Promise;
    assert!(unknown(&state).is_empty());
    (state.options.verify_each, state.options.todo_file) = (VerifyEach::Tick, None);
    assert!(unknown(&state).is_empty(), "without a plan nothing is ticked");
}

#[test]
fn an_item_whose_tick_was_taken_back_is_open_and_keeps_what_it_took() {
    let mut state = state();
    let (one, two) = ("one (verify: sh one.sh)".to_owned(), "two".to_owned());
    let cost = |tokens| ItemCost { size: None, tokens };
    let measured =
        |item: &str, tokens: Option<u64>| MeasuredItem { item: item.into(), cost: tokens.map(cost) };
    // The cost of one was not known, and another one was measured after them.
    state.iteration_record.reckoned =
        vec![measured(&one, None), measured(&two, Some(200)), measured("zero", Some(300))];
    state.items.growth = vec![cost(7), cost(200), cost(300)];
    state.context_checkpoint.item_work = ItemWork {
        finished: vec!["zero".into(), one.clone(), two.clone()],
        is_begun: false,
        ..ItemWork::default()
    };
    let taken = TakenBack { items: vec![one.clone(), two.clone()], ..TakenBack::default() };
    let todo = TodoList::parse(&PLAN.replace("[x] one", "[ ] one").replace("[x] two", "[ ] two"));
    take_back(&mut state, &taken, &todo);
    let once = state.clone();
    take_back(&mut state, &taken, &todo);
    assert_eq!(state, once, "done twice");
    assert_eq!(
        (state.items.completed_items.as_slice(), state.ticked_now()),
        (&["zero".to_owned()][..], vec![])
    );
    assert_eq!(state.items.ever_done, ["zero"], "removed now, it would have vanished");
    assert!(state.vanished().is_empty());
    assert_eq!(state.items.growth, [cost(7), cost(300)]);
    assert_eq!(state.iteration_record.reckoned, [measured("zero", Some(300))]);
    assert_eq!((state.take_begun(&one), state.take_begun(&two)), (0, 200));
    let checkpoint = &state.context_checkpoint;
    assert_eq!(checkpoint.item_work.finished, ["zero"]);
    assert!(checkpoint.is_half_done(&one), "{checkpoint:?}");
}

#[test]
fn what_is_handed_on_of_a_half_done_item_stays_when_another_tick_is_taken_back() {
    let mut state = state();
    let mine = "three (verify: sh three.sh)";
    state.context_checkpoint = Checkpoint {
        current_todo_item: mine.into(),
        progress_on_item: "70%".into(),
        item_work: ItemWork { finished: vec!["two".into()], ..ItemWork::default() },
        ..Checkpoint::default()
    };
    let taken = TakenBack { items: vec!["two".into()], ..TakenBack::default() };
    take_back(&mut state, &taken, &TodoList::parse(&PLAN.replace("[x] two", "[ ] two")));
    assert!(state.context_checkpoint.is_half_done(mine));
    assert_eq!(state.context_checkpoint.progress_on_item, "70%");
    assert!(state.context_checkpoint.item_work.finished.is_empty());
}

#[test]
fn a_command_that_has_passed_stays_known_and_the_time_adds_up() {
    let mut state = state();
    note(&mut state, &evidence(PLAN, &[("make", false), ("lint", true)]).verify);
    note(&mut state, &[]);
    assert_eq!(state.outcomes.verify_passed, ["make", "lint"]);
    assert_eq!((state.outcomes.verify_failing, state.spent.verify_seconds), (vec!["make".to_owned()], 8));
}

/// Before a session only those commands run of which nothing is known.
#[test]
fn what_is_known_of_a_command_stays_until_it_has_run_again_and_come_to_its_end() {
    let mut state = state();
    state.options.verify = vec!["make".into(), "lint".into()];
    note(&mut state, &evidence(PLAN, &[("make", false)]).verify);
    note(&mut state, &evidence(PLAN, &[("lint", false)]).verify);
    assert_eq!(state.outcomes.verify_failing, ["make", "lint"]);
    let mut cut = evidence(PLAN, &[("lint", false)]);
    cut.verify[0].is_undecided = true;
    state.outcomes.verify_failing = vec!["make".into()];
    note(&mut state, &cut.verify);
    assert_eq!(
        (unknown(&state), &state.outcomes.verify_failing),
        (vec!["lint".into()], &vec!["make".into()])
    );
    note(&mut state, &evidence(PLAN, &[("make", true)]).verify);
    assert!(state.outcomes.verify_failing.is_empty(), "{:?}", state.outcomes.verify_failing);
    // A command that the run no longer has.
    state.outcomes.verify_failing = vec!["old".into()];
    note(&mut state, &evidence(PLAN, &[("make", true)]).verify);
    assert!(state.outcomes.verify_failing.is_empty());
}

#[test]
fn how_each_command_ended_last_is_recorded_with_the_commit_that_it_ran_on() {
    let mut state = state();
    let tree =
        |commit: &str, has_uncommitted| VerifiedTree { commit: Some(commit.to_owned()), has_uncommitted };
    record_verify_runs(
        &mut state,
        &evidence(PLAN, &[("make", true), ("lint", false)]).verify,
        &tree("a", false),
    );
    state.iteration = 4;
    let mut later = evidence(PLAN, &[("make", false), ("lint", true), ("dropped", true)]).verify;
    later[1].is_undecided = true;
    record_verify_runs(&mut state, &later, &tree("b", true));
    let known = |state: &RunState| -> Vec<_> {
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
    let run = |command: &str, passed, iteration, commit: &str, dirty| {
        (command.to_owned(), passed, iteration, commit.to_owned(), dirty)
    };
    let expected = [
        run("lint", false, 3, "a", false),
        run("make", false, 4, "b", true),
        run("dropped", true, 4, "b", true),
    ];
    assert_eq!(known(&state), expected, "a command that was cut off keeps what is known of it");
    record_verify_runs(&mut state, &[], &VerifiedTree::default());
    assert_eq!(known(&state), expected[..2], "one that the run does not have is forgotten");
}
