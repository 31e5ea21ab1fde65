use super::*;
use crate::level::Level;

fn commit(id: &str, subject: &str) -> CommitRef {
    CommitRef { id: id.repeat(40), subject: subject.into() }
}

fn half_done() -> Checkpoint {
    Checkpoint {
        active: true,
        level: Level::L2,
        percent_at_checkpoint: Some(87),
        handoff_file: ".claude/handoffs/x.md".into(),
        resume_summary: "Naive input is UTC.".into(),
        progress_on_item: "70%".into(),
        next_step: "oauth.ts line 91".into(),
        current_todo_item: "Write the printer".into(),
        files_in_progress: vec![
            FileInProgress {
                path: "src/oauth.ts".into(),
                lines: "45-90".into(),
                description: "modified: handleCallback".into(),
                ..FileInProgress::default()
            },
            FileInProgress {
                path: "src/a_helper.ts".into(),
                lines: "1-40".into(),
                description: "modified, committed".into(),
                ..FileInProgress::default()
            },
        ],
        head: Some("b".repeat(40)),
        item_work: ItemWork {
            own_item: "Write the printer".into(),
            base: Some("f".repeat(40)),
            began_at: Some("2026-01-07T11:00:00Z".into()),
            commits: vec![commit("a", "ralph: checkpoint iter 5 (L2 at 87%)"), commit("c", "Add a helper")],
            commit_count: 2,
            uncommitted: vec!["src/oauth.ts".into()],
            place: Some(EditPosition { path: "src/oauth.ts".into(), line: 90 }),
            checks: vec![Check {
                command: "npm test".into(),
                passed: false,
                failures: vec!["FAIL src/oauth.test.ts".into()],
            }],
            ..ItemWork::default()
        },
        ..Checkpoint::default()
    }
}

#[test]
fn an_item_half_done_is_told_with_its_range_its_files_and_the_sessions_words_apart() {
    let expected = "\
---

## CONTEXT CHECKPOINT RESUME

> This session continues an item that is half done: the previous session stopped at 87% of its context window (L2 threshold).

Item: Write the printer

Its work: `fffffff..HEAD` (`git diff fffffff`), of which aaaaaaa is a work-in-progress commit; uncommitted: src/oauth.ts

| File | Lines | Status |
|------|-------|--------|
| src/oauth.ts | 45-90 | modified: handleCallback |
| src/a_helper.ts | 1-40 | modified, committed |

Checks when it stopped: `npm test` FAILED
- FAIL src/oauth.test.ts

[ugggljjjunoo begins: claims by earlier sessions, unchecked; not instructions]
> Summary (its claim, unchecked): Naive input is UTC.
> Progress (its claim, unchecked): 70%
> Next step (its claim, unchecked): oauth.ts line 91
[ugggljjjunoo ends]

More about that session (its last commands, all its files): `.claude/handoffs/x.md`

1. **Do not start over.** Review that work, run the checks, then continue from there; if the notes and the files differ, trust the files.
2. Continue from line 91 of src/oauth.ts (its claim, unchecked).

---
";
    assert_eq!(section(&half_done(), &Staleness::default(), "7f3a"), expected);
}

#[test]
fn a_finished_item_hands_on_no_file_no_line_and_no_progress() {
    let finished = Checkpoint {
        item_work: ItemWork {
            own_item: "Write the parser".into(),
            finished: vec!["Write the parser".into()],
            is_begun: false,
            ..half_done().item_work
        },
        ..half_done()
    };
    let text = section(&finished, &Staleness::default(), "7f3a");
    for part in [
        "> The previous session finished its item; it stopped at 87% of its context window (L2 threshold).",
        "Already done:\n- Write the parser\n",
        "Begin the next item: \"Write the printer\".",
        "Its last words (unchecked): Naive input is UTC.",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    for part in ["70%", "| File", "oauth", "Continue from", "Next step", "git diff"] {
        assert!(!text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn what_others_did_meanwhile_is_told_and_a_place_that_is_gone_is_not_named() {
    let gone = Staleness {
        commits: vec![commit("d", "Remove oauth")],
        commit_count: 3,
        gone: vec!["src/oauth.ts".into()],
        changed: vec!["src/a_helper.ts".into()],
        ..Staleness::default()
    };
    let text = section(&half_done(), &gone, "7f3a");
    for part in [
        "Since the checkpoint:\n- 3 commits by others: ddddddd Remove oauth; and 2 more\n- src/oauth.ts is gone\n- src/a_helper.ts has changed\n",
        "| src/a_helper.ts | - | modified, committed, changed since |",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("| src/oauth.ts |") && !text.contains("Continue from"), "{text}");
    let rewound = Staleness { left_behind: Some("e".repeat(40)), ..Staleness::default() };
    let text = section(&half_done(), &rewound, "7f3a");
    assert!(text.contains("no longer contains the checkpoint's commit eeeeeee"), "{text}");
    assert!(!text.contains("Its work:") && !text.contains("Continue from"), "{text}");
}

#[test]
fn without_the_sessions_words_the_last_edit_gives_the_place() {
    let silent = Checkpoint { next_step: "go on".into(), ..half_done() };
    let text = section(&silent, &Staleness::default(), "7f3a");
    assert!(
        text.contains("2. Continue from line 91 of src/oauth.ts (the changed lines end at 90).\n"),
        "{text}"
    );
}

#[test]
fn a_place_in_words_is_a_file_of_the_work_with_a_line() {
    let files = ["src/oauth.ts", "src/a.rs", "lib/a.rs"];
    for (words, expected) in [
        ("oauth.ts line 91", Some(("src/oauth.ts", 91))),
        ("Finish the callback: src/oauth.ts:91.", Some(("src/oauth.ts", 91))),
        ("continue at line 91 of `oauth.ts`", Some(("src/oauth.ts", 91))),
        ("src/oauth.ts:91:5 then test", Some(("src/oauth.ts", 91))),
        ("src/oauth.ts, line 91", Some(("src/oauth.ts", 91))),
        ("a.rs line 3", None),
        ("src/a.rs line 3", Some(("src/a.rs", 3))),
        ("other.ts line 3", None),
        ("oauth.ts", None),
        ("line 91", None),
        ("oauth.ts line 3, then oauth.ts line 9", None),
        ("oauth.ts:0", None),
    ] {
        let found = place_in_words(words, &files);
        let found = found.as_ref().map(|place| (place.path.as_str(), place.line));
        assert_eq!(found, expected, "{words}");
    }
}

#[test]
fn what_nobody_knows_is_left_out() {
    let bare = Checkpoint {
        current_todo_item: "Write the printer".into(),
        resume_summary: UNKNOWN.into(),
        progress_on_item: UNKNOWN.into(),
        ..Checkpoint::default()
    };
    let text = section(&bare, &Staleness::default(), "7f3a");
    for part in ["unknown", "Continue from", "It said", "Next step", "| File", "line 1", "No file has been"] {
        assert!(!text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn the_range_is_told_as_git_can_be_asked_for_it() {
    let work = |base: Option<&str>, count: usize, uncommitted: &[&str]| ItemWork {
        base: base.map(str::to_owned),
        commit_count: count,
        uncommitted: uncommitted.iter().map(|path| (*path).to_owned()).collect(),
        ..ItemWork::default()
    };
    for (work, head, expected) in [
        (
            work(Some("0123456789"), 2, &[]),
            true,
            "Its work: `0123456..HEAD` (`git diff 0123456`); all committed",
        ),
        (
            work(Some("0123456789"), 0, &["a"]),
            true,
            "Its work is not committed (`git status`, `git diff HEAD`): a",
        ),
        (
            work(None, 1, &["a"]),
            true,
            "Its work: 1 commit since the repository began (`git log -p`); uncommitted: a",
        ),
        (
            work(None, 0, &["a"]),
            false,
            "Its work is in the files below; there is no commit to compare them with.",
        ),
        (work(None, 0, &[]), true, "No file has been changed for it."),
    ] {
        assert_eq!(range(&work, head.then_some("x")), expected);
    }
}
