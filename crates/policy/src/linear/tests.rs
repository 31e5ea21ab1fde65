use super::*;
use plimsoll_domain::Status;
use plimsoll_domain::level::Level;
use plimsoll_domain::state::{Cause, Checkpoint, HistoryEntry};
use plimsoll_domain::state::{Items, Lifecycle, Spent};

fn note(iteration: u32, words: &str) -> Note {
    Note {
        at: "2026-01-07T11:45:10Z".into(),
        run_id: "04f3c1aa-1".into(),
        task: "Dates".into(),
        iteration,
        words: words.into(),
        ..Note::default()
    }
}

/// Nothing is secret here.
fn clean(words: &str) -> String {
    words.to_owned()
}

fn state() -> RunState {
    RunState {
        context_checkpoint: Checkpoint {
            cause: Cause::Level,
            level: Level::L2,
            percent_at_checkpoint: Some(87),
            current_todo_item: "Item two".into(),
            progress_on_item: "70%".into(),
            resume_summary: "lines 45-120 are converted.".into(),
            next_step: "line 121".into(),
            handoff_file: ".claude/handoffs/2026-01-07-1145.md".into(),
            ..Checkpoint::default()
        },
        items: Items {
            completed_items: vec!["Item one".into()],
            todo_items: vec!["Item two".into(), "Item three".into()],
            ..Items::default()
        },
        ..RunState::default()
    }
}

#[test]
fn a_checkpoint_is_told_with_its_item_and_what_the_session_said() {
    assert_eq!(
        checkpoint(&state(), &clean),
        "checkpoint (level, L2 at 87 %). Current item: “Item two”. Progress: 70%. Summary: lines 45-120 are converted. Next step: line 121. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md"
    );
    let mut silent = state();
    silent.context_checkpoint.progress_on_item = "unknown".into();
    silent.context_checkpoint.resume_summary = "unknown".into();
    insta::assert_snapshot!(checkpoint(&silent, &clean), @"checkpoint (level, L2 at 87 %). Current item: “Item two”. Next step: line 121. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md");
}

#[test]
fn a_finished_item_is_credited_and_the_next_one_is_not_begun() {
    let mut finished = state();
    finished.context_checkpoint.progress_on_item = "not begun".into();
    finished.context_checkpoint.next_step = String::new();
    finished.context_checkpoint.item_work.finished = vec!["Item one".into()];
    finished.context_checkpoint.item_work.is_begun = false;
    insta::assert_snapshot!(checkpoint(&finished, &clean), @"checkpoint (level, L2 at 87 %). Finished: “Item one”. Next item: “Item two”. Progress: not begun. Summary: lines 45-120 are converted. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md");
}

#[test]
fn an_end_is_told_with_its_reason_and_what_it_took() {
    let verdict = Verdict::Stop { status: Status::MaxIterations, reason: "2 of 2".into() };
    let ended = RunState {
        context_history: vec![HistoryEntry::default(), HistoryEntry::default()],
        lifecycle: Lifecycle::after(&verdict),
        spent: Spent { cost_usd: 1.234, tokens: 1_200_000, ..state().spent },
        ..state()
    };
    assert_eq!(
        end(&ended, &clean),
        "the run ended: max_iterations (2 of 2). 1 item done, 2 open; 2 sessions, $1.23, 1.2M tokens."
    );
    let mut cancelled = ended;
    cancelled.lifecycle.reopen();
    cancelled.lifecycle.cancel(None);
    // An older verdict is no reason.
    insta::assert_snapshot!(end(&cancelled, &clean), @"the run ended: cancelled. 1 item done, 2 open; 2 sessions, $1.23, 1.2M tokens.");
}

#[test]
fn foreign_words_stay_letters() {
    let mut hostile = state();
    hostile.context_checkpoint.current_todo_item =
        "![x](https://e.invalid/p.png)\n# <img src=a> @all `c` **b**".into();
    let said = checkpoint(&hostile, &clean);
    assert_eq!(said.lines().count(), 1);
    let body = body(&[note(1, &said)], LONGEST_BODY);
    insta::assert_snapshot!(body, @r"
    **Plimsoll: Dates** (run 04f3c1aa)

    **Iteration 1** · 2026-01-07 11:45 UTC · checkpoint (level, L2 at 87 %). Current item: “!\[x\](https://e.invalid/p.png) \# \<img src=a\> \@all \`c\` \*\*b\*\*”. Progress: 70%. Summary: lines 45-120 are converted. Next step: line 121. 1 item done, 2 open. Handoff: .claude/handoffs/2026-01-07-1145.md
    ");
}

#[test]
fn what_is_cleaned_is_cleaned_before_it_is_shortened() {
    let mut telling = state();
    telling.context_checkpoint.resume_summary = format!("{} secret", "x".repeat(595));
    let said = checkpoint(&telling, &|words| words.replace("secret", "-"));
    assert!(said.contains(" -.") && !said.contains("sec"), "{said}");
}

#[test]
fn every_paragraph_begins_with_its_iteration() {
    let body = body(&[note(1, "one."), note(3, "three.")], LONGEST_BODY);
    assert_eq!(
        body,
        "**Plimsoll: Dates** (run 04f3c1aa)\n\n**Iteration 1** · 2026-01-07 11:45 UTC · one.\n\n**Iteration 3** · 2026-01-07 11:45 UTC · three.\n"
    );
    assert_eq!(super::body(&[], LONGEST_BODY), "");
}

#[test]
fn where_there_is_no_room_the_oldest_become_short_and_the_newest_stays() {
    let long = "x".repeat(700);
    let notes: Vec<Note> =
        (1..=40).map(|iteration| note(iteration, &format!("{iteration} {long}"))).collect();
    let whole = body(&notes, LONGEST_BODY);
    assert!(whole.chars().count() <= LONGEST_BODY, "{}", whole.chars().count());
    assert!(whole.contains(&format!("40 {long}\n")) && !whole.contains(&format!(" 1 {long}\n")));
    assert!(whole.contains("**Iteration 1** · ") && !whole.contains("left out"));
    for most in [100, 900, 1_000, 2_000, 5_000] {
        let short = body(&notes, most);
        assert!(short.contains(&format!("40 {long}\n")), "the newest stays whole in {most}");
        assert!(short.chars().count() <= most.max(900), "{most}: {}", short.chars().count());
        assert!(short.contains("older notes left out"), "{most}");
    }
}

#[test]
fn a_network_that_stays_away_is_asked_less_and_less_often() {
    assert_eq!([1, 2, 3, 6, 100].map(backoff_seconds), [60, 120, 240, 1_800, 1_800]);
}

#[test]
fn an_item_of_a_parallel_run_has_one_paragraph_with_what_became_of_it_last() {
    let told = |news: ItemNews<'_>| item_news("Item one", news, &clean);
    assert_eq!(told(ItemNews::Merged("0123456789abcdef")), "“Item one” was merged (0123456789ab).");
    let back = told(ItemNews::SentBack("it conflicts"));
    assert_eq!(back, "“Item one” was not merged and is tried again: it conflicts");
    assert_eq!(told(ItemNews::SetAside("red")), "“Item one” was set aside: red");
    let item = |number, words: &str| Note { kind: NoteKind::Item, ..note(number, words) };
    let body = body(&[item(2, &back), item(1, "one."), note(2, "two."), item(2, "merged.")], LONGEST_BODY);
    let paragraphs: Vec<&str> = body.lines().filter(|line| !line.is_empty()).skip(1).collect();
    for (paragraph, words) in paragraphs.iter().zip([
        "**Item 2** · 2026-01-07 11:45 UTC · merged.",
        "**Item 1** · 2026-01-07 11:45 UTC · one.",
        "**Iteration 2** · 2026-01-07 11:45 UTC · two.",
    ]) {
        assert_eq!(*paragraph, words);
    }
    assert_eq!(paragraphs.len(), 3);
}
