use super::*;
use crate::question::OpenQuestion;
use crate::state::{Items, Outcomes, RunOptions};

fn block(state: &RunState, around: &Surroundings) -> String {
    super::block(state, around).text().to_owned()
}

fn state() -> RunState {
    RunState {
        iteration: 2,
        nonce: "7f3a".into(),
        options: RunOptions {
            task_name: "Dates".into(),
            max_iterations: 50,
            completion_promise: "COMPLETE".into(),
            todo_file: Some("fix_plan.md".into()),
            ..RunOptions::default()
        },
        items: Items { todo_items: vec!["Item two".into()], ..Items::default() },
        ..RunState::default()
    }
}

#[test]
fn the_users_text_survives_any_number_of_rewrites_byte_for_byte() {
    let nasty: Vec<&[u8]> = vec![
        b"",
        b"/compact now\n",
        b"---\n$(rm -rf /) `x` \"q\" 'q'\n",
        b"no end of line",
        b"\n\nleading\r\n",
        b"\xff\xfe not utf-8",
        b"quotes our marks: <!-- plimsoll:end -->\n",
    ];
    for task in nasty {
        let mut file = task.to_vec();
        for _ in 0..3 {
            let text = task_text(&file).unwrap().to_vec();
            file = assemble(&super::block(&state(), &Surroundings::default()), &text);
            assert!(file.starts_with(b"<!-- plimsoll:begin"));
        }
        assert_eq!(task_text(&file).unwrap(), task);
    }
    let big = vec![b'x'; 200_000];
    assert_eq!(task_text(&assemble(&super::block(&state(), &Surroundings::default()), &big)).unwrap(), big);
}

#[test]
fn a_block_without_its_end_is_refused() {
    assert_eq!(task_text(format!("{BEGIN}\n# Task").as_bytes()), Err(NoEndMark));
}

#[test]
fn a_quoted_end_mark_does_not_end_the_block() {
    let mut state = state();
    state.outcomes.refusals = vec![format!("the test said\n{END}\nand failed")];
    let file = assemble(&super::block(&state, &Surroundings::default()), b"mine");
    assert_eq!(task_text(&file).unwrap(), b"mine");
}

#[test]
fn the_block_holds_the_exact_promise_line_and_the_first_open_item() {
    let text = block(&state(), &Surroundings::default());
    assert!(text.contains("\n<promise>COMPLETE 7f3a</promise>\n"), "{text}");
    assert!(text.contains("Item two"));
    assert!(!text.contains("RESUME"));
}

#[test]
fn the_block_stays_small_whatever_the_run_has_become() {
    let long = "x".repeat(5_000);
    let state = RunState {
        items: Items { todo_items: (0..500).map(|n| format!("Item {n} {long}")).collect(), ..state().items },
        outcomes: Outcomes { refusals: vec![long.repeat(4); 9], ..state().outcomes },
        options: RunOptions { verify: vec!["cargo test".into()], ..state().options },
        ..state()
    };
    let around = Surroundings {
        resume: Some((Checkpoint::default(), Staleness::default())),
        progress: vec![long.clone(), long],
        ..Surroundings::default()
    };
    let text = block(&state, &around);
    assert!(text.len() < 16_000, "{}", text.len());
    assert!(text.contains("… and 489 more"));
}

#[test]
fn an_item_that_is_set_aside_is_passed_over_and_named() {
    let items = vec!["Item two".to_owned(), "Item three".to_owned()];
    let state = RunState {
        items: Items { todo_items: items.clone(), set_aside: items[..1].to_vec(), ..state().items },
        ..state()
    };
    let text = block(&state, &Surroundings::default());
    assert!(text.contains("that is not set aside, which is \"Item three\""), "{text}");
    assert!(text.contains("- Item two (set aside"), "{text}");
}

#[test]
fn an_item_that_waits_for_an_answer_is_passed_over_and_named() {
    let items = vec!["Item two".to_owned(), "Item three".to_owned()];
    let parked = |count: usize| {
        let parked = items
            .iter()
            .take(count)
            .map(|item| OpenQuestion { item: item.clone(), ..OpenQuestion::default() });
        let items = Items { todo_items: items.clone(), parked: parked.collect(), ..state().items };
        block(&RunState { items, ..state() }, &Surroundings::default())
    };
    let one = parked(1);
    assert!(one.contains("that does not wait for an answer, which is \"Item three\""), "{one}");
    assert!(one.contains("- Item two (waits for the user's answer: leave it)"), "{one}");
    assert!(parked(0).contains("`fix_plan.md`, which is \"Item two\""));
    let all = parked(2);
    assert!(all.contains("Every open item of `fix_plan.md` waits") && !all.contains("are ticked"), "{all}");
}

#[test]
fn a_session_is_told_how_to_ask_and_the_line_that_says_so_exactly() {
    let text = block(&state(), &Surroundings::default());
    assert!(text.contains("write `  ? your question` under it"), "{text}");
    assert!(text.contains("\n\n<promise>BLOCKED 7f3a REASON</promise>\n"), "{text}");
    let options = RunOptions { todo_file: None, ..state().options };
    let without_plan = block(&RunState { options, ..state() }, &Surroundings::default());
    assert!(!without_plan.contains("? your question"), "{without_plan}");
    assert!(without_plan.contains("\n\n<promise>BLOCKED 7f3a REASON</promise>\n"), "{without_plan}");
}

#[test]
fn an_item_that_fits_no_window_is_to_be_split_first() {
    let large = RunState {
        items: Items { todo_items: vec!["Rewrite it (very complex)".into()], ..state().items },
        ..state()
    };
    assert!(block(&large, &Surroundings::default()).contains("first split it"));
    assert!(!block(&state(), &Surroundings::default()).contains("first split it"));
}

#[test]
fn a_resume_stands_between_the_state_and_the_instructions() {
    let checkpoint = Checkpoint { current_todo_item: "Item two".into(), ..Checkpoint::default() };
    let around = Surroundings { resume: Some((checkpoint, Staleness::default())), ..Surroundings::default() };
    let text = block(&state(), &around);
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in\n{text}"));
    assert!(place("- **Started**") < place("## CONTEXT CHECKPOINT RESUME"));
    assert!(place("## CONTEXT CHECKPOINT RESUME") < place("## Instructions"));
}

#[test]
fn the_last_action_is_told_in_words() {
    assert!(block(&state(), &Surroundings::default()).contains("- **Last action**: not recorded\n"));
    let acted = RunState {
        outcomes: Outcomes { last_action: "iteration 1 ticked \"Item one\"".into(), ..state().outcomes },
        ..state()
    };
    let text = block(&acted, &Surroundings::default());
    assert!(text.contains("- **Last action**: iteration 1 ticked \"Item one\"\n"), "{text}");
}
