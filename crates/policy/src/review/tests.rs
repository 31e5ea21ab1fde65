use super::*;
use plimsoll_domain::state::{IterationRecord, RunOptions, WorktreeFingerprint};

const PLAN: &str = "- [x] zero\n- [ ] one\n- [ ] two\n- [ ] three\n";

fn items(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A session that is at work, in a run that reviews after so many items.
fn at_work(every: u32) -> RunState {
    let mut state = RunState {
        iteration: 1,
        session_id: Some("s1".into()),
        options: RunOptions { review_every: every, ..RunOptions::default() },
        ..RunState::default()
    };
    state.take_items(&TodoList::parse(PLAN));
    begin_session(&mut state, 1, "h1");
    state
}

fn begin_session(state: &mut RunState, iteration: u32, head: &str) {
    state.iteration = iteration;
    state.session_id = Some(format!("s{iteration}").into());
    let done = state.items.completed_items.clone();
    state.iteration_record = IterationRecord {
        done_before: done.clone(),
        done_at_start: done,
        footing: Some(WorktreeFingerprint { head: Some(head.to_owned()), ..WorktreeFingerprint::default() }),
        ..IterationRecord::default()
    };
    begin(state, Some(head));
}

/// The plan with these items ticked.
fn ticked(which: &[&str]) -> TodoList {
    let tick = |plan: String, item: &&str| plan.replace(&format!("[ ] {item}"), &format!("[x] {item}"));
    TodoList::parse(&which.iter().fold(PLAN.to_owned(), tick))
}

/// A review of this session, with an answer.
fn answers(state: &mut RunState, about: &[&str], answer: &str) -> Reviewed {
    assert_eq!(take_answer(state, about, answer), AfterReview::Decided);
    state.outcomes.reviews.last.clone().unwrap().facts
}

fn take_answer(state: &mut RunState, about: &[&str], answer: &str) -> AfterReview {
    let session = ReviewSession {
        iteration: state.iteration,
        session_id: state.session_id.clone(),
        items: items(about),
        ..ReviewSession::default()
    };
    let mut review = review(&session, &Answer::Text(answer.to_owned()));
    review.facts.cost_usd = 0.25;
    take(state, review)
}

/// A session ticks this, is reviewed with this answer, and its decision is carried out. The items whose ticks were taken back.
fn plays(state: &mut RunState, iteration: u32, item: &str, answer: &str) -> Vec<String> {
    begin_session(state, iteration, &format!("h{iteration}"));
    let mut todo = ticked(&[item]);
    assert_eq!(due(state, Some(&todo)), [item], "in iteration {iteration}");
    answers(state, &[item], answer);
    let taken = state.outcomes.taken_back.take().map(|taken| taken.items).unwrap_or_default();
    if !taken.is_empty() {
        todo = ticked(&[]);
    }
    state.take_items(&todo);
    wait(state, Some(&todo));
    taken
}

#[test]
fn an_answer_counts_in_one_small_form_only() {
    let two = items(&["one", "two"]);
    let found = |words: &[(Option<&str>, &str)]| {
        let one = |(item, words): &(Option<&str>, &str)| Finding {
            item: item.map(str::to_owned),
            words: (*words).to_owned(),
        };
        Some(words.iter().map(one).collect::<Vec<_>>())
    };
    for (answer, expected) in [
        ("VERDICT: pass", found(&[])),
        ("I looked.\n\n- all of it\n\n**VERDICT: pass**\n", found(&[])),
        ("`verdict: Pass.`", found(&[])),
        ("VERDICT: findings\n- 2: a.rs:1 is wrong\n", found(&[(Some("two"), "a.rs:1 is wrong")])),
        (
            "VERDICT: findings\n\n- 1: x\n* no number\n- 3: of no item\nwords\n- **2**: y",
            found(&[(Some("one"), "x"), (None, "no number"), (None, "3: of no item"), (Some("two"), "y")]),
        ),
        ("VERDICT: findings\n- esc\u{1b}[2J", found(&[(None, "esc\\u{1b}[2J")])),
        // Contradictions, and what is no answer.
        ("", None),
        ("All is well.", None),
        ("VERDICT: maybe", None),
        ("VERDICT: findings", None),
        ("- 1: above\nVERDICT: findings\n", None),
        ("VERDICT: pass\n- 1: x", None),
        ("VERDICT: pass\nVERDICT: findings\n- 1: x", None),
        ("The VERDICT: pass", None),
    ] {
        assert_eq!(findings(answer, &two), expected, "{answer:?}");
    }
    let many = format!("VERDICT: findings\n{}", format!("- {}\n", "x".repeat(2_000)).repeat(50));
    let many = findings(&many, &two).unwrap();
    assert!(many.len() == FINDINGS && many.iter().all(|one| one.words.len() <= LONGEST + 4), "{many:?}");
}

#[test]
fn a_review_is_due_after_so_many_items_and_of_the_rest_once_nothing_is_left() {
    for (every, ticks, expected) in [
        (0, &["one", "two", "three"][..], &[][..]),
        (1, &[], &[]),
        (1, &["one"], &["one"]),
        (2, &["one"], &[]),
        (2, &["one", "two"], &["one", "two"]),
        (9, &["one", "two", "three"], &["one", "two", "three"]),
    ] {
        assert_eq!(due(&at_work(every), Some(&ticked(ticks))), items(expected), "{every} {ticks:?}");
    }
    // Over several sessions; what is unticked again no longer waits.
    let mut state = at_work(3);
    state.take_items(&ticked(&["one", "two"]));
    wait(&mut state, Some(&ticked(&["one", "two"])));
    assert_eq!(state.outcomes.reviews.waiting, ["one", "two"]);
    begin_session(&mut state, 2, "h2");
    assert!(due(&state, Some(&ticked(&["one", "three"]))).is_empty(), "two is open again");
    assert_eq!(due(&state, Some(&ticked(&["one", "two", "three"]))), items(&["one", "two", "three"]));
    assert_eq!(base(&state, &items(&["three"])), Some("h2"));
    assert_eq!(base(&state, &items(&["two", "three"])), Some("h1"), "it began with the session that took it");
}

#[test]
fn a_tick_is_taken_back_twice_and_stands_the_third_time_with_what_is_open() {
    let mut state = at_work(1);
    assert_eq!(plays(&mut state, 1, "one", "VERDICT: findings\n- 1: x"), ["one"]);
    assert_eq!(state.outcomes.reviews.standing(&state.items.completed_items).count(), 0);
    assert_eq!(plays(&mut state, 2, "one", "VERDICT: findings\n- y"), ["one"]);
    assert_eq!(base(&state, &items(&["one"])), Some("h1"), "the next review sees all of the work");
    assert!(plays(&mut state, 3, "one", "VERDICT: findings\n- z\n- 1: v").is_empty());
    assert_eq!(state.outcomes.reviews.last.as_ref().unwrap().facts.stand, ["one"]);
    let standing: Vec<&ItemPoints> = state.outcomes.reviews.standing(&state.items.completed_items).collect();
    assert_eq!((standing.len(), standing[0].findings.as_slice()), (1, &items(&["z", "v"])[..]));
    assert!(state.outcomes.reviews.begun.iter().all(|begun| begun.item != "one"));
    assert!(due(&state, Some(&ticked(&["one"]))).is_empty(), "this session is reviewed");
}

#[test]
fn a_review_that_passes_closes_the_points() {
    let mut state = at_work(9);
    // It is due at once, for it was reviewed before.
    answers(&mut state, &["one"], "VERDICT: findings\n- 1: x");
    assert!(state.outcomes.taken_back.take().unwrap().is_pending);
    assert!(plays(&mut state, 2, "one", "VERDICT: pass").is_empty());
    let reviews = &state.outcomes.reviews;
    assert_eq!(reviews.standing(&state.items.completed_items).count(), 0);
    assert_eq!((reviews.unanswered, reviews.waiting.len(), reviews.begun.len()), (0, 0, 0));
    assert!(has_answered(&state));
}

#[test]
fn a_review_without_a_verdict_is_repeated_once() {
    for (second, found) in [("VERDICT: pass", 0), ("VERDICT: findings\n- 1: x", 1)] {
        let mut state = at_work(1);
        assert_eq!(take_answer(&mut state, &["one"], "Looks good to me."), AfterReview::Repeat);
        assert!(
            state.outcomes.taken_back.is_none() && state.outcomes.reviews.last.is_none(),
            "not decided yet"
        );
        assert_eq!(due(&state, Some(&ticked(&["one"]))), ["one"], "it is still due");
        let facts = answers(&mut state, &["one"], second);
        assert_eq!(
            (facts.trouble, facts.findings.len(), facts.cost_usd),
            (None, found, 0.5),
            "both are paid"
        );
        let reviews = &state.outcomes.reviews;
        assert_eq!((reviews.unanswered, &reviews.failed_attempt, state.spent.review_count), (1, &None, 2));
    }
}

#[test]
fn ticks_without_a_verdict_are_taken_back_with_a_question() {
    let mut state = at_work(2);
    answers(&mut state, &["one", "two"], "VERDICT: findings\n- 1: x");
    let open_points = state.outcomes.reviews.points.clone();
    begin_session(&mut state, 2, "h2");
    assert_eq!(take_answer(&mut state, &["one", "two"], "Nice."), AfterReview::Repeat);
    answers(&mut state, &["one", "two"], "VERDICT: maybe");
    let taken = state.outcomes.taken_back.clone().unwrap();
    assert_eq!((taken.items, taken.findings, taken.is_pending), (items(&["one", "two"]), Vec::new(), true));
    let question = taken.question.unwrap();
    assert!(question.contains(UNREADABLE) && !question.contains('\n'), "{question}");
    assert_eq!(state.outcomes.reviews.points, open_points, "what a review found stays open");
    assert!(!has_answered(&state));

    // A failure in another session, or about other items, is a first one again.
    begin_session(&mut state, 3, "h3");
    assert_eq!(take_answer(&mut state, &["one"], ""), AfterReview::Repeat);
    assert_eq!(take_answer(&mut state, &["two"], ""), AfterReview::Repeat);
    begin_session(&mut state, 4, "h4");
    assert_eq!(take_answer(&mut state, &["two"], ""), AfterReview::Repeat);
}

#[test]
fn only_the_items_that_a_finding_names_are_open_again() {
    let mut state = at_work(3);
    let last = answers(&mut state, &["one", "two", "three"], "VERDICT: findings\n- 2: x\n- 2: y\n");
    let taken = state.outcomes.taken_back.clone().unwrap();
    assert_eq!((taken.items, taken.findings), (items(&["two"]), items(&["x", "y"])));
    assert_eq!(last.findings_of("one"), items(&[]));
    assert_eq!(state.outcomes.reviews.points.len(), 1);
}

#[test]
fn a_reviewing_session_takes_over_neither_model_nor_permissions() {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (given, kept) in [
        ("", ""),
        ("--model opus --allowedTools Bash Edit --settings s.json", ""),
        ("--mcp-config a.json b.json --permission-mode plan", ""),
        ("--dangerously-skip-permissions --verbose", "--verbose"),
        ("--tools Bash --tools=Write --model=opus --add-dir .. --effort low", "--effort low"),
    ] {
        assert_eq!(arguments(&words(given)), words(kept), "{given}");
    }
}
