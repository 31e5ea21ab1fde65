//! What is said at which fill, in tables.

use super::*;
use crate::thresholds::{CompactionConfig, auto_compact, thresholds};
use plimsoll_domain::reading::WindowSource;
use plimsoll_domain::{Timestamp, Window};

const WINDOW: u64 = 1_000_000;

fn sight(used_percent: u64, added_percent: u64, in_run: bool) -> MonitorInput {
    let auto_compact = auto_compact(WINDOW, Some("claude-opus-5-5"), &CompactionConfig::default());
    let settings = Settings::default();
    MonitorInput {
        reading: Reading {
            used: used_percent * WINDOW / 100,
            output: 0,
            added: added_percent * WINDOW / 100,
            window: Some(Window { tokens: WINDOW, source: WindowSource::Table }),
            model: None,
            source: UsedSource::Transcript,
            message_id: None,
            at: None,
            behind: false,
        },
        is_batch: true,
        thresholds: Some(thresholds(WINDOW, auto_compact, &settings.levels, &settings.margins, 0)),
        in_run,
        committed: None,
        item_is_open: false,
        claim_is_orphaned: false,
        pid: 1,
        now: Timestamp::default(),
    }
}

fn run(percents: &[u64], in_run: bool) -> Vec<Action> {
    let mut record = SessionRecord::default();
    let decide = |percent: &u64| monitor(&mut record, &sight(*percent, 0, in_run), &Settings::default());
    percents.iter().map(decide).filter(|action| *action != Action::Nothing).collect()
}

fn check(percents: &[u64], levels: &[Level]) {
    let announced: Vec<Level> = run(percents, true)
        .iter()
        .filter_map(|action| match action {
            Action::Warn { level, .. } | Action::Checkpoint { level, .. } => Some(*level),
            _ => None,
        })
        .collect();
    assert_eq!(announced, levels, "{percents:?}");
}

#[test]
fn parallel_tools_of_one_message_are_one_batch_of_the_grace_also_where_each_is_told_apart() {
    let mut record = SessionRecord::default();
    let mut after = |message: &str, is_batch: bool| {
        let mut sight = sight(86, 0, true);
        sight.reading.message_id = Some(message.to_owned());
        sight.is_batch = is_batch;
        monitor(&mut record, &sight, &Settings::default());
        record.checkpoint.batches_since
    };
    let told: Vec<u32> = ["a", "b", "b", "b", "c"].iter().map(|message| after(message, false)).collect();
    assert_eq!(told, [0, 1, 1, 1, 2]);
    assert_eq!([after("c", true), after("c", true)], [3, 4]);
}

#[test]
fn each_level_is_announced_once() {
    use Level::{L1, L2, L3};
    check(&[0, 20, 69], &[]);
    check(&[59, 71, 72, 86], &[L1, L2]);
    check(&[86, 86, 86], &[L2]);
    check(&[20, 55, 72, 87, 97, 97], &[L1, L2, L3]);
    check(&[60, 97], &[L3]);
}

#[test]
fn a_session_without_a_run_is_advised_and_never_ended() {
    let actions = run(&[60, 72, 73, 87, 88, 88, 88, 88, 88, 88, 88, 97, 98], false);
    let expected = [(Level::L1, 72, false), (Level::L2, 87, true), (Level::L3, 97, true)];
    assert_eq!(actions, expected.map(|(level, percent, handoff)| Action::Warn { level, percent, handoff }));
}

#[test]
fn an_estimate_checkpoints_and_never_ends() {
    let mut record = SessionRecord::default();
    let action = monitor(&mut record, &sight(60, 40, true), &Settings::default());
    assert_eq!(action, Action::Checkpoint { level: Level::L3, percent: 100, ends: false });
    let action = monitor(&mut record, &sight(97, 0, true), &Settings::default());
    assert_eq!(action, Action::Checkpoint { level: Level::L3, percent: 97, ends: true });
}

#[test]
fn a_checkpoint_has_the_highest_level_that_its_percent_reaches() {
    let reached = sight(0, 0, true).thresholds.unwrap();
    for (used, added) in [(86, 0), (10, 76), (10, 86), (84, 12), (86, 10), (97, 0)] {
        let mut record = SessionRecord::default();
        let action = monitor(&mut record, &sight(used, added, true), &Settings::default());
        let Action::Checkpoint { level, .. } = action else { panic!("{action:?}") };
        assert_eq!(level, reached.level((used + added) * WINDOW / 100), "{used}% and {added}%");
        assert_eq!(record.checkpoint.claim.as_ref().map(|claim| claim.level), Some(level));
        // The hook that claimed it died: the next event writes the same level.
        let orphaned = MonitorInput { claim_is_orphaned: true, ..sight(used, added, true) };
        let again = monitor(&mut record, &orphaned, &Settings::default());
        assert!(matches!(again, Action::Checkpoint { level: found, .. } if found == level), "{again:?}");
    }
}

#[test]
fn an_estimate_that_did_not_come_true_ends_nothing_and_neither_does_a_figure_set_by_hand() {
    let mut record = SessionRecord::default();
    monitor(&mut record, &sight(60, 40, true), &Settings::default());
    for _ in 0..10 {
        assert_eq!(monitor(&mut record, &sight(40, 0, true), &Settings::default()), Action::Nothing);
    }
    let mut by_hand = sight(96, 0, true);
    by_hand.reading.source = UsedSource::Environment;
    let action = monitor(&mut SessionRecord::default(), &by_hand, &Settings::default());
    assert_eq!(action, Action::Checkpoint { level: Level::L3, percent: 96, ends: false });
}

#[test]
fn a_model_that_does_not_wrap_up_is_ended_after_the_grace() {
    let actions = run(&[86; 6], true);
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert!(
        matches!(&actions[1], Action::End { level: Level::L2, reason, .. } if reason.contains("5 batches"))
    );
    let actions = run(&[86, 92], true);
    assert!(matches!(&actions[1], Action::End { reason, .. } if reason.contains("half")), "{actions:?}");
}

#[test]
fn a_client_that_goes_on_after_its_end_is_ended_again_without_a_second_checkpoint() {
    let actions = run(&[97, 97, 98], true);
    assert!(matches!(actions[0], Action::Checkpoint { ends: true, .. }));
    assert!(actions[1..].iter().all(|action| matches!(action, Action::End { level: Level::L3, .. })));
}

#[test]
fn a_claim_of_a_dead_hook_is_finished_by_the_next_event() {
    let mut record = SessionRecord::default();
    monitor(&mut record, &sight(86, 0, true), &Settings::default());
    let orphaned = MonitorInput { claim_is_orphaned: true, pid: 2, ..sight(86, 0, true) };
    assert!(matches!(monitor(&mut record, &orphaned, &Settings::default()), Action::Checkpoint { .. }));
    assert_eq!(record.checkpoint.claim.unwrap().pid, 2);
}

#[test]
fn an_unknown_window_means_no_level_and_no_action() {
    let mut record = SessionRecord::default();
    let mut unknown = sight(97, 0, true);
    unknown.thresholds = None;
    assert_eq!(monitor(&mut record, &unknown, &Settings::default()), Action::Nothing);
    assert_eq!(record, SessionRecord::default());
}

fn commit(percent: u64) -> Commit {
    Commit { head: percent.to_string(), fill: Some(percent * WINDOW / 100) }
}

/// Commits at these fills; what is said at each, and at 86 % after them.
fn commits(percents: &[u64], item_is_open: bool) -> Vec<Action> {
    let mut record = SessionRecord::default();
    let mut decide = |percent: u64, committed: bool| {
        let sight = MonitorInput {
            committed: committed.then(|| commit(percent)),
            item_is_open,
            ..sight(percent, 0, true)
        };
        monitor(&mut record, &sight, &Settings::default())
    };
    let mut said: Vec<Action> = percents.iter().map(|percent| decide(*percent, true)).collect();
    said.push(decide(86, false));
    said.into_iter().filter(|action| *action != Action::Nothing).collect()
}

#[test]
fn a_session_is_told_once_to_stop_at_a_commit_after_which_the_next_step_does_not_fit() {
    // To 84.5 %: from there on 85 is shown.
    let why = |step: u64| TooSmall { step: step * 10_000, left: 125_000 };
    let warned = Action::Warn { level: Level::L1, percent: 72, handoff: false };
    let l2 = Action::Checkpoint { level: Level::L2, percent: 86, ends: false };
    let here = |percent, why| Action::StopHere { percent, why };
    for (percents, item_is_open, expected) in [
        (&[30, 52, 72][..], true, vec![here(72, why(22)), l2.clone()]),
        (&[30, 52, 72, 80], true, vec![here(72, why(22)), l2.clone()]),
        // The item is done with it; or there is room; or it is too early for L1, or one commit seen twice.
        (&[30, 52, 72], false, vec![warned.clone(), l2.clone()]),
        (&[60, 66, 72], true, vec![warned.clone(), l2.clone()]),
        (&[10, 40, 69], true, vec![l2.clone()]),
        (&[40, 72, 72, 72], true, vec![warned, l2.clone()]),
        (&[30, 58, 86], true, vec![l2]),
    ] {
        assert_eq!(commits(percents, item_is_open), expected, "{percents:?}");
    }
}

#[test]
fn a_commit_of_unknown_fill_begins_anew_and_after_l2_nothing_is_said_of_steps() {
    let mut record = SessionRecord::default();
    let mut decide = |percent: u64, added: u64, committed: Commit| {
        let sight =
            MonitorInput { committed: Some(committed), item_is_open: true, ..sight(percent, added, true) };
        monitor(&mut record, &sight, &Settings::default())
    };
    let unknown = Commit { head: "old".to_owned(), fill: None };
    let said = [(30, commit(30)), (52, unknown), (72, commit(72)), (73, commit(73))]
        .map(|(percent, commit)| decide(percent, 0, commit));
    assert!(said.iter().all(|action| !matches!(action, Action::StopHere { .. })), "{said:?}");
    let l2 = decide(74, 12, commit(74));
    assert!(matches!(l2, Action::Checkpoint { level: Level::L2, .. }), "{l2:?}");
    assert_eq!(decide(84, 0, commit(84)), Action::Nothing, "its estimate was too high");
}

#[test]
fn a_word_to_stop_that_a_dead_hook_took_with_it_is_said_at_the_next_commit() {
    let mut record = SessionRecord::default();
    let mut decide = |percent: u64, committed: bool, claim_is_orphaned: bool| {
        let committed = committed.then(|| commit(percent));
        let sight =
            MonitorInput { committed, item_is_open: true, claim_is_orphaned, ..sight(percent, 0, true) };
        monitor(&mut record, &sight, &Settings::default())
    };
    let is_word = |action: &Action| matches!(action, Action::StopHere { .. });
    let said =
        [(30, true, false), (52, true, false), (72, true, false), (73, false, true), (74, true, false)]
            .map(|(percent, committed, orphaned)| decide(percent, committed, orphaned));
    assert_eq!(said.iter().map(is_word).collect::<Vec<_>>(), [false, false, true, false, true], "{said:?}");
    assert_eq!(record.checkpoint.claim.map(|claim| claim.level), Some(Level::L1));
}

#[test]
fn waiting_is_worth_it_only_near_a_level() {
    let thresholds = sight(0, 0, true).thresholds.unwrap();
    let worth = |percent: u64, announced| is_worth_waiting(percent * WINDOW / 100, &thresholds, announced);
    assert!(!worth(20, Level::L0));
    assert!(worth(60, Level::L0));
    assert!(worth(72, Level::L1));
    assert!(worth(86, Level::L2));
    assert!(!worth(60, Level::L1));
}

#[test]
fn the_largest_step_is_the_most_that_came_from_one_reading_to_the_next() {
    let mut record = SessionRecord::default();
    let mut after = |percent, added| {
        monitor(&mut record, &sight(percent, added, true), &Settings::default());
        record.usage.largest_step
    };
    // What the session begins with is no step; a compaction neither is one nor takes one back.
    let steps =
        [(30, 0), (31, 0), (31, 3), (36, 0), (12, 0), (14, 0)].map(|(percent, added)| after(percent, added));
    assert_eq!(steps, [0, 10_000, 30_000, 30_000, 30_000, 30_000]);
}
