use super::*;
use plimsoll_domain::state::{IterationRecord, RunOptions, WorktreeFingerprint};

const PLAN: &str = "- [x] zero\n- [ ] one\n- [ ] two\n- [ ] three\n";

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the state of a session that is at work, in a run that reviews after this many items.
fn running_state(review_every: u32) -> RunState {
    let mut state = RunState {
        iteration: 1,
        session_id: Some("s1".into()),
        options: RunOptions { items_per_review: review_every, ..RunOptions::default() },
        ..RunState::default()
    };
    state.update_items_and_questions_from_plan(&TodoList::parse(PLAN));
    begin_session(&mut state, 1, "h1");
    state
}

fn begin_session(state: &mut RunState, iteration: u32, head: &str) {
    state.iteration = iteration;
    state.session_id = Some(format!("s{iteration}").into());
    let done = state.plan_items.completed_items.clone();
    state.iteration_record = IterationRecord {
        ticked_before_iteration: done.clone(),
        ticked_before_session: done,
        fingerprint_before: Some(WorktreeFingerprint {
            head: Some(head.to_owned()),
            ..WorktreeFingerprint::default()
        }),
        ..IterationRecord::default()
    };
    record_work_start_on_current_item(state, Some(head));
}

/// Returns the plan with these items ticked.
fn plan_with_ticked(ticked_items: &[&str]) -> TodoList {
    let tick = |plan: String, item: &&str| plan.replace(&format!("[ ] {item}"), &format!("[x] {item}"));
    TodoList::parse(&ticked_items.iter().fold(PLAN.to_owned(), tick))
}

/// Applies a review of this session that must be decided, and returns its facts.
fn apply_decisive_answer(state: &mut RunState, reviewed_items: &[&str], answer: &str) -> ReviewOutcome {
    assert_eq!(apply_answer(state, reviewed_items, answer), ReviewProgress::Decided);
    state.outcomes.reviews.last_review.clone().unwrap().outcome
}

fn apply_answer(state: &mut RunState, reviewed_items: &[&str], answer: &str) -> ReviewProgress {
    let session = ReviewSession {
        iteration: state.iteration,
        session_id: state.session_id.clone(),
        items: to_strings(reviewed_items),
        ..ReviewSession::default()
    };
    let mut review = build_review(&session, &ReviewAnswer::Text(answer.to_owned()));
    review.outcome.cost_usd = 0.25;
    apply_review(state, review)
}

/// Ticks an item in a new session, reviews it with this answer, and carries out the decision. Returns the items whose
/// ticks were taken back.
fn tick_and_review(state: &mut RunState, iteration: u32, item: &str, answer: &str) -> Vec<String> {
    begin_session(state, iteration, &format!("h{iteration}"));
    let mut todo = plan_with_ticked(&[item]);
    assert_eq!(items_to_review_now(state, Some(&todo)), [item], "in iteration {iteration}");
    apply_decisive_answer(state, &[item], answer);
    let unticked_items = state.outcomes.reverted_ticks.take().map(|taken| taken.items).unwrap_or_default();
    if !unticked_items.is_empty() {
        todo = plan_with_ticked(&[]);
    }
    state.update_items_and_questions_from_plan(&todo);
    update_items_awaiting_review_and_work_starts(state, Some(&todo));
    unticked_items
}

#[test]
fn an_answer_counts_only_in_its_exact_form() {
    let two = to_strings(&["one", "two"]);
    let to_findings = |words: &[(Option<&str>, &str)]| {
        let to_finding = |(item, words): &(Option<&str>, &str)| Finding {
            item: item.map(str::to_owned),
            text: (*words).to_owned(),
        };
        Some(words.iter().map(to_finding).collect::<Vec<_>>())
    };
    for (answer, expected) in [
        ("VERDICT: pass", to_findings(&[])),
        ("I looked.\n\n- all of it\n\n**VERDICT: pass**\n", to_findings(&[])),
        ("`verdict: Pass.`", to_findings(&[])),
        ("VERDICT: findings\n- 2: a.rs:1 is wrong\n", to_findings(&[(Some("two"), "a.rs:1 is wrong")])),
        (
            "VERDICT: findings\n\n- 1: x\n* no number\n- 3: of no item\nwords\n- **2**: y",
            to_findings(&[
                (Some("one"), "x"),
                (None, "no number"),
                (None, "3: of no item"),
                (Some("two"), "y"),
            ]),
        ),
        ("VERDICT: findings\n- esc\u{1b}[2J", to_findings(&[(None, "esc\\u{1b}[2J")])),
        // Contradictions, and texts without a verdict.
        ("", None),
        ("All is well.", None),
        ("VERDICT: maybe", None),
        ("VERDICT: findings", None),
        ("- 1: above\nVERDICT: findings\n", None),
        ("VERDICT: pass\n- 1: x", None),
        ("VERDICT: pass\nVERDICT: findings\n- 1: x", None),
        ("The VERDICT: pass", None),
    ] {
        assert_eq!(parse_findings_matching_verdict(answer, &two), expected, "{answer:?}");
    }
    let long_answer = format!("VERDICT: findings\n{}", format!("- {}\n", "x".repeat(2_000)).repeat(50));
    let capped = parse_findings_matching_verdict(&long_answer, &two).unwrap();
    assert!(
        capped.len() == MAX_FINDINGS && capped.iter().all(|one| one.text.len() <= MAX_FINDING_CHARS + 4),
        "{capped:?}"
    );
}

#[test]
fn a_review_is_due_after_n_items_or_when_nothing_is_left() {
    for (review_every, ticked_items, expected) in [
        (0, &["one", "two", "three"][..], &[][..]),
        (1, &[], &[]),
        (1, &["one"], &["one"]),
        (2, &["one"], &[]),
        (2, &["one", "two"], &["one", "two"]),
        (9, &["one", "two", "three"], &["one", "two", "three"]),
    ] {
        assert_eq!(
            items_to_review_now(&running_state(review_every), Some(&plan_with_ticked(ticked_items))),
            to_strings(expected),
            "{review_every} {ticked_items:?}"
        );
    }
    // Over several sessions; an item that is unticked again no longer waits.
    let mut state = running_state(3);
    state.update_items_and_questions_from_plan(&plan_with_ticked(&["one", "two"]));
    update_items_awaiting_review_and_work_starts(&mut state, Some(&plan_with_ticked(&["one", "two"])));
    assert_eq!(state.outcomes.reviews.waiting_items, ["one", "two"]);
    begin_session(&mut state, 2, "h2");
    assert!(
        items_to_review_now(&state, Some(&plan_with_ticked(&["one", "three"]))).is_empty(),
        "two is open again"
    );
    assert_eq!(
        items_to_review_now(&state, Some(&plan_with_ticked(&["one", "two", "three"]))),
        to_strings(&["one", "two", "three"])
    );
    assert_eq!(commit_before_work_or_iteration_start(&state, &to_strings(&["three"])), Some("h2"));
    assert_eq!(
        commit_before_work_or_iteration_start(&state, &to_strings(&["two", "three"])),
        Some("h1"),
        "it began with the session that took it"
    );
}

#[test]
fn a_tick_is_taken_back_twice_and_kept_the_third_time() {
    let mut state = running_state(1);
    assert_eq!(tick_and_review(&mut state, 1, "one", "VERDICT: findings\n- 1: x"), ["one"]);
    assert_eq!(
        state.outcomes.reviews.open_findings_of_ticked_items(&state.plan_items.completed_items).count(),
        0
    );
    assert_eq!(tick_and_review(&mut state, 2, "one", "VERDICT: findings\n- y"), ["one"]);
    assert_eq!(
        commit_before_work_or_iteration_start(&state, &to_strings(&["one"])),
        Some("h1"),
        "the next review sees all of the work"
    );
    assert!(tick_and_review(&mut state, 3, "one", "VERDICT: findings\n- z\n- 1: v").is_empty());
    assert_eq!(state.outcomes.reviews.last_review.as_ref().unwrap().outcome.kept_ticks, ["one"]);
    let standing: Vec<&ItemFindings> =
        state.outcomes.reviews.open_findings_of_ticked_items(&state.plan_items.completed_items).collect();
    assert_eq!((standing.len(), standing[0].findings.as_slice()), (1, &to_strings(&["z", "v"])[..]));
    assert!(state.outcomes.reviews.work_starts.iter().all(|begun| begun.item != "one"));
    assert!(
        items_to_review_now(&state, Some(&plan_with_ticked(&["one"]))).is_empty(),
        "this session is reviewed"
    );
}

#[test]
fn a_passing_review_closes_earlier_findings() {
    let mut state = running_state(9);
    // It is due at once, because it was reviewed before.
    apply_decisive_answer(&mut state, &["one"], "VERDICT: findings\n- 1: x");
    assert!(state.outcomes.reverted_ticks.take().unwrap().is_pending);
    assert!(tick_and_review(&mut state, 2, "one", "VERDICT: pass").is_empty());
    let reviews = &state.outcomes.reviews;
    assert_eq!(reviews.open_findings_of_ticked_items(&state.plan_items.completed_items).count(), 0);
    assert_eq!((reviews.unanswered_count, reviews.waiting_items.len(), reviews.work_starts.len()), (0, 0, 0));
    assert!(has_review_verdict(&state));
}

#[test]
fn a_review_without_a_verdict_is_repeated_once() {
    for (second_answer, finding_count) in [("VERDICT: pass", 0), ("VERDICT: findings\n- 1: x", 1)] {
        let mut state = running_state(1);
        assert_eq!(apply_answer(&mut state, &["one"], "Looks good to me."), ReviewProgress::Repeat);
        assert!(
            state.outcomes.reverted_ticks.is_none() && state.outcomes.reviews.last_review.is_none(),
            "not decided yet"
        );
        assert_eq!(
            items_to_review_now(&state, Some(&plan_with_ticked(&["one"]))),
            ["one"],
            "it is still due"
        );
        let facts = apply_decisive_answer(&mut state, &["one"], second_answer);
        assert_eq!(
            (facts.failure, facts.findings.len(), facts.cost_usd),
            (None, finding_count, 0.5),
            "both are paid"
        );
        let reviews = &state.outcomes.reviews;
        assert_eq!(
            (reviews.unanswered_count, &reviews.attempt_without_verdict, state.spending.review_count),
            (1, &None, 2)
        );
    }
}

#[test]
fn ticks_without_a_verdict_are_taken_back_with_a_question() {
    let mut state = running_state(2);
    apply_decisive_answer(&mut state, &["one", "two"], "VERDICT: findings\n- 1: x");
    let open_points = state.outcomes.reviews.item_findings.clone();
    begin_session(&mut state, 2, "h2");
    assert_eq!(apply_answer(&mut state, &["one", "two"], "Nice."), ReviewProgress::Repeat);
    apply_decisive_answer(&mut state, &["one", "two"], "VERDICT: maybe");
    let taken_back = state.outcomes.reverted_ticks.clone().unwrap();
    assert_eq!(
        (taken_back.items, taken_back.findings, taken_back.is_pending),
        (to_strings(&["one", "two"]), Vec::new(), true)
    );
    let question = taken_back.question.unwrap();
    assert!(question.contains(UNREADABLE_ANSWER) && !question.contains('\n'), "{question}");
    assert_eq!(state.outcomes.reviews.item_findings, open_points, "what a review found stays open");
    assert!(!has_review_verdict(&state));

    // A failure in another session, or about other items, is a first one again.
    begin_session(&mut state, 3, "h3");
    assert_eq!(apply_answer(&mut state, &["one"], ""), ReviewProgress::Repeat);
    assert_eq!(apply_answer(&mut state, &["two"], ""), ReviewProgress::Repeat);
    begin_session(&mut state, 4, "h4");
    assert_eq!(apply_answer(&mut state, &["two"], ""), ReviewProgress::Repeat);
}

#[test]
fn only_items_that_a_finding_names_are_open_again() {
    let mut state = running_state(3);
    let last =
        apply_decisive_answer(&mut state, &["one", "two", "three"], "VERDICT: findings\n- 2: x\n- 2: y\n");
    let taken_back = state.outcomes.reverted_ticks.clone().unwrap();
    assert_eq!((taken_back.items, taken_back.findings), (to_strings(&["two"]), to_strings(&["x", "y"])));
    assert_eq!(last.findings_for_item("one"), to_strings(&[]));
    assert_eq!(state.outcomes.reviews.item_findings.len(), 1);
}

#[test]
fn a_reviewing_session_gets_neither_model_nor_permissions() {
    let to_arguments = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (user_arguments, expected) in [
        ("", ""),
        ("--model opus --allowedTools Bash Edit --settings s.json", ""),
        ("--mcp-config a.json b.json --permission-mode plan", ""),
        ("--dangerously-skip-permissions --verbose", "--verbose"),
        ("--tools Bash --tools=Write --model=opus --add-dir .. --effort low", "--effort low"),
    ] {
        assert_eq!(
            reviewer_arguments(&to_arguments(user_arguments)),
            to_arguments(expected),
            "{user_arguments}"
        );
    }
}
