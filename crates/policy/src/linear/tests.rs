use super::*;
use plimsoll_domain::RunStatus;
use plimsoll_domain::level::Level;
use plimsoll_domain::state::{Checkpoint, CheckpointCause, HistoryEntry};
use plimsoll_domain::state::{Lifecycle, PlanItems, RunSpending};

fn new_note(iteration: u32, words: &str) -> LinearNote {
    LinearNote {
        recorded_at: "2026-01-07T11:45:10Z".into(),
        run_id: "04f3c1aa-1".into(),
        task_name: "Dates".into(),
        iteration_or_item_number: iteration,
        text: words.into(),
        ..LinearNote::default()
    }
}

/// Redacts nothing.
fn keep_text(words: &str) -> String {
    words.to_owned()
}

fn state() -> RunState {
    RunState {
        context_checkpoint: Checkpoint {
            cause: CheckpointCause::Level,
            level: Level::L2,
            percent_at_checkpoint: Some(87),
            current_todo_item: "Item two".into(),
            progress_on_item: "70%".into(),
            resume_summary: "lines 45-120 are converted.".into(),
            next_step: "line 121".into(),
            handoff_file: ".claude/handoffs/2026-01-07-1145.md".into(),
            ..Checkpoint::default()
        },
        plan_items: PlanItems {
            completed_items: vec!["Item one".into()],
            todo_items: vec!["Item two".into(), "Item three".into()],
            ..PlanItems::default()
        },
        ..RunState::default()
    }
}

#[test]
fn a_checkpoint_note_has_the_item_and_the_notes_of_the_session() {
    assert_eq!(
        render_checkpoint_note(&state(), &keep_text),
        "checkpoint (level, L2 at 87%). Current item: “Item two”. Progress: 70%. Summary: lines 45-120 are converted. Next step: line 121. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md"
    );
    let mut without_notes = state();
    without_notes.context_checkpoint.progress_on_item = "unknown".into();
    without_notes.context_checkpoint.resume_summary = "unknown".into();
    insta::assert_snapshot!(render_checkpoint_note(&without_notes, &keep_text), @"checkpoint (level, L2 at 87%). Current item: “Item two”. Next step: line 121. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md");
}

#[test]
fn a_finished_item_is_listed_and_the_next_one_is_not_begun() {
    let mut finished = state();
    finished.context_checkpoint.progress_on_item = "not begun".into();
    finished.context_checkpoint.next_step = String::new();
    finished.context_checkpoint.item_work.ticked_items = vec!["Item one".into()];
    finished.context_checkpoint.item_work.is_begun = false;
    insta::assert_snapshot!(render_checkpoint_note(&finished, &keep_text), @"checkpoint (level, L2 at 87%). Finished: “Item one”. Next item: “Item two”. Progress: not begun. Summary: lines 45-120 are converted. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md");
}

#[test]
fn an_end_note_has_the_reason_the_sessions_and_the_cost() {
    let verdict = Verdict::Stop { status: RunStatus::MaxIterations, reason: "2 of 2".into() };
    let ended = RunState {
        context_history: vec![HistoryEntry::default(), HistoryEntry::default()],
        lifecycle: Lifecycle::from_verdict(&verdict),
        spending: RunSpending { cost_usd: 1.234, tokens: 1_200_000, ..state().spending },
        ..state()
    };
    assert_eq!(
        render_run_end_note(&ended, &keep_text),
        "the run ended: max_iterations (2 of 2). 1 item done, 2 open; 2 sessions, $1.23, 1.2M tokens."
    );
    let mut cancelled = ended;
    cancelled.lifecycle.reopen_if_ended();
    cancelled.lifecycle.cancel_if_open(None);
    // The reason of an older verdict is left out.
    insta::assert_snapshot!(render_run_end_note(&cancelled, &keep_text), @"the run ended: cancelled. 1 item done, 2 open; 2 sessions, $1.23, 1.2M tokens.");
}

#[test]
fn markdown_in_untrusted_text_is_escaped() {
    let mut hostile = state();
    hostile.context_checkpoint.current_todo_item =
        "![x](https://e.invalid/p.png)\n# <img src=a> @all `c` **b**".into();
    let rendered = render_checkpoint_note(&hostile, &keep_text);
    assert_eq!(rendered.lines().count(), 1);
    let body = render_comment_shortening_or_omitting_oldest(&[new_note(1, &rendered)], MAX_COMMENT_CHARS);
    insta::assert_snapshot!(body, @r"
    **Plimsoll: Dates** (run 04f3c1aa)

    **Session 1** · 2026-01-07 11:45 UTC · checkpoint (level, L2 at 87%). Current item: “!\[x\](https://e.invalid/p.png) \# \<img src=a\> \@all \`c\` \*\*b\*\*”. Progress: 70%. Summary: lines 45-120 are converted. Next step: line 121. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md
    ");
}

#[test]
fn text_is_redacted_before_it_is_shortened() {
    let mut with_secret = state();
    with_secret.context_checkpoint.resume_summary = format!("{} secret", "x".repeat(595));
    let rendered = render_checkpoint_note(&with_secret, &|words| words.replace("secret", "-"));
    assert!(rendered.contains(" -.") && !rendered.contains("sec"), "{rendered}");
}

#[test]
fn every_paragraph_begins_with_its_iteration() {
    let body = render_comment_shortening_or_omitting_oldest(
        &[new_note(1, "one."), new_note(3, "three.")],
        MAX_COMMENT_CHARS,
    );
    assert_eq!(
        body,
        "**Plimsoll: Dates** (run 04f3c1aa)\n\n**Session 1** · 2026-01-07 11:45 UTC · one.\n\n**Session 3** · 2026-01-07 11:45 UTC · three.\n"
    );
    assert_eq!(render_comment_shortening_or_omitting_oldest(&[], MAX_COMMENT_CHARS), "");
}

#[test]
fn old_notes_are_shortened_and_the_newest_stays_complete() {
    let long = "x".repeat(700);
    let notes: Vec<LinearNote> =
        (1..=40).map(|iteration| new_note(iteration, &format!("{iteration} {long}"))).collect();
    let full_comment = render_comment_shortening_or_omitting_oldest(&notes, MAX_COMMENT_CHARS);
    assert!(full_comment.chars().count() <= MAX_COMMENT_CHARS, "{}", full_comment.chars().count());
    assert!(
        full_comment.contains(&format!("40 {long}\n")) && !full_comment.contains(&format!(" 1 {long}\n"))
    );
    assert!(full_comment.contains("**Session 1** · ") && !full_comment.contains("left out"));
    for max_chars in [100, 900, 1_000, 2_000, 5_000] {
        let short = render_comment_shortening_or_omitting_oldest(&notes, max_chars);
        assert!(short.contains(&format!("40 {long}\n")), "the newest stays whole in {max_chars}");
        assert!(short.chars().count() <= max_chars.max(900), "{max_chars}: {}", short.chars().count());
        assert!(short.contains("older notes left out"), "{max_chars}");
    }
}

#[test]
fn the_retry_delay_doubles_up_to_its_maximum() {
    assert_eq!([1, 2, 3, 6, 100].map(backoff_seconds), [60, 120, 240, 1_800, 1_800]);
}

#[test]
fn an_item_of_a_parallel_run_has_one_note_with_its_last_event() {
    let render = |event: ParallelItemEvent<'_>| render_item_note("Item one", event, &keep_text);
    assert_eq!(
        render(ParallelItemEvent::Merged("0123456789abcdef")),
        "“Item one” was merged (0123456789ab)."
    );
    let requeued = render(ParallelItemEvent::Requeued("it conflicts"));
    assert_eq!(requeued, "“Item one” was not merged and is tried again: it conflicts");
    assert_eq!(render(ParallelItemEvent::SetAside("red")), "“Item one” was set aside: red");
    let item_note =
        |number, words: &str| LinearNote { kind: LinearNoteKind::Item, ..new_note(number, words) };
    let body = render_comment_shortening_or_omitting_oldest(
        &[item_note(2, &requeued), item_note(1, "one."), new_note(2, "two."), item_note(2, "merged.")],
        MAX_COMMENT_CHARS,
    );
    let paragraphs: Vec<&str> = body.lines().filter(|line| !line.is_empty()).skip(1).collect();
    for (paragraph, words) in paragraphs.iter().zip([
        "**Item 2** · 2026-01-07 11:45 UTC · merged.",
        "**Item 1** · 2026-01-07 11:45 UTC · one.",
        "**Session 2** · 2026-01-07 11:45 UTC · two.",
    ]) {
        assert_eq!(*paragraph, words);
    }
    assert_eq!(paragraphs.len(), 3);
}
