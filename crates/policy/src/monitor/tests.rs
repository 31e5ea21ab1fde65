//! Tables of the monitor's decisions at given percentages.

use super::*;
use crate::thresholds::{CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds};
use plimsoll_domain::reading::WindowSource;
use plimsoll_domain::{Timestamp, WindowSize};

const WINDOW: u64 = 1_000_000;

fn monitor_input(used_percent: u64, added_percent: u64, in_run: bool) -> MonitorInput {
    let auto_compact = compute_auto_compact_threshold_and_action(
        WINDOW,
        Some("claude-opus-5-5"),
        &CompactionConfig::default(),
    );
    let settings = Settings::default();
    MonitorInput {
        reading: UsageReading {
            used_tokens: used_percent * WINDOW / 100,
            output_tokens: 0,
            estimated_added_tokens: added_percent * WINDOW / 100,
            window: Some(WindowSize { tokens: WINDOW, source: WindowSource::ModelTable }),
            model: None,
            usage_source: UsageSource::Transcript,
            message_id: None,
            responded_at: None,
            is_one_request_behind: false,
        },
        is_batch: true,
        thresholds: Some(compute_thresholds(WINDOW, auto_compact, &settings.levels, &settings.margins, 0)),
        is_in_run: in_run,
        new_commit: None,
        is_current_item_open: false,
        is_claim_old_or_process_dead: false,
        pid: 1,
        now: Timestamp::default(),
    }
}

fn actions_at_percents(percents: &[u64], in_run: bool) -> Vec<MonitorAction> {
    let mut record = SessionRecord::default();
    let decide =
        |percent: &u64| decide_action(&mut record, &monitor_input(*percent, 0, in_run), &Settings::default());
    percents.iter().map(decide).filter(|action| *action != MonitorAction::Nothing).collect()
}

fn assert_announced_levels(percents: &[u64], levels: &[Level]) {
    let announced: Vec<Level> = actions_at_percents(percents, true)
        .iter()
        .filter_map(|action| match action {
            MonitorAction::Warn { level, .. } | MonitorAction::Checkpoint { level, .. } => Some(*level),
            _ => None,
        })
        .collect();
    assert_eq!(announced, levels, "{percents:?}");
}

#[test]
fn parallel_tools_of_one_message_count_as_one_batch() {
    let mut record = SessionRecord::default();
    let mut after = |message: &str, is_batch: bool| {
        let mut input = monitor_input(86, 0, true);
        input.reading.message_id = Some(message.to_owned());
        input.is_batch = is_batch;
        decide_action(&mut record, &input, &Settings::default());
        record.checkpoint_progress.tool_batches_since
    };
    let batch_counts: Vec<u32> =
        ["a", "b", "b", "b", "c"].iter().map(|message| after(message, false)).collect();
    assert_eq!(batch_counts, [0, 1, 1, 1, 2]);
    assert_eq!([after("c", true), after("c", true)], [3, 4]);
}

#[test]
fn each_level_is_announced_once() {
    use Level::{L1, L2, L3};
    assert_announced_levels(&[0, 20, 69], &[]);
    assert_announced_levels(&[59, 71, 72, 86], &[L1, L2]);
    assert_announced_levels(&[86, 86, 86], &[L2]);
    assert_announced_levels(&[20, 55, 72, 87, 97, 97], &[L1, L2, L3]);
    assert_announced_levels(&[60, 97], &[L3]);
}

#[test]
fn a_session_outside_a_run_is_warned_and_never_ended() {
    let actions = actions_at_percents(&[60, 72, 73, 87, 88, 88, 88, 88, 88, 88, 88, 97, 98], false);
    let expected = [(Level::L1, 72, false), (Level::L2, 87, true), (Level::L3, 97, true)];
    assert_eq!(
        actions,
        expected.map(|(level, percent, handoff)| MonitorAction::Warn {
            level,
            percent,
            writes_handoff: handoff
        })
    );
}

#[test]
fn an_estimate_checkpoints_and_never_ends() {
    let mut record = SessionRecord::default();
    let action = decide_action(&mut record, &monitor_input(60, 40, true), &Settings::default());
    assert_eq!(action, MonitorAction::Checkpoint { level: Level::L3, percent: 100, ends_session: false });
    let action = decide_action(&mut record, &monitor_input(97, 0, true), &Settings::default());
    assert_eq!(action, MonitorAction::Checkpoint { level: Level::L3, percent: 97, ends_session: true });
}

#[test]
fn a_checkpoint_has_the_highest_level_that_its_percent_reaches() {
    let reached = monitor_input(0, 0, true).thresholds.unwrap();
    for (used, added) in [(86, 0), (10, 76), (10, 86), (84, 12), (86, 10), (97, 0)] {
        let mut record = SessionRecord::default();
        let action = decide_action(&mut record, &monitor_input(used, added, true), &Settings::default());
        let MonitorAction::Checkpoint { level, .. } = action else { panic!("{action:?}") };
        assert_eq!(level, reached.level_at((used + added) * WINDOW / 100), "{used}% and {added}%");
        assert_eq!(record.checkpoint_progress.open_claim.as_ref().map(|claim| claim.level), Some(level));
        // The hook that claimed it died: the next event writes the same level.
        let orphaned =
            MonitorInput { is_claim_old_or_process_dead: true, ..monitor_input(used, added, true) };
        let again = decide_action(&mut record, &orphaned, &Settings::default());
        assert!(
            matches!(again, MonitorAction::Checkpoint { level: again_level, .. } if again_level == level),
            "{again:?}"
        );
    }
}

#[test]
fn a_wrong_estimate_or_a_figure_set_by_hand_never_ends_a_session() {
    let mut record = SessionRecord::default();
    decide_action(&mut record, &monitor_input(60, 40, true), &Settings::default());
    for _ in 0..10 {
        assert_eq!(
            decide_action(&mut record, &monitor_input(40, 0, true), &Settings::default()),
            MonitorAction::Nothing
        );
    }
    let mut set_by_user = monitor_input(96, 0, true);
    set_by_user.reading.usage_source = UsageSource::Environment;
    let action = decide_action(&mut SessionRecord::default(), &set_by_user, &Settings::default());
    assert_eq!(action, MonitorAction::Checkpoint { level: Level::L3, percent: 96, ends_session: false });
}

#[test]
fn a_session_that_does_not_wrap_up_ends_after_the_grace_period() {
    let actions = actions_at_percents(&[86; 6], true);
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert!(
        matches!(&actions[1], MonitorAction::EndSession { level: Level::L2, reason, .. } if reason.contains("5 batches"))
    );
    let actions = actions_at_percents(&[86, 92], true);
    assert!(
        matches!(&actions[1], MonitorAction::EndSession { reason, .. } if reason.contains("half")),
        "{actions:?}"
    );
}

#[test]
fn a_session_that_continues_after_its_end_gets_no_second_checkpoint() {
    let actions = actions_at_percents(&[97, 97, 98], true);
    assert!(matches!(actions[0], MonitorAction::Checkpoint { ends_session: true, .. }));
    assert!(
        actions[1..]
            .iter()
            .all(|action| matches!(action, MonitorAction::EndSession { level: Level::L3, .. }))
    );
}

#[test]
fn a_claim_of_a_dead_hook_is_finished_by_the_next_event() {
    let mut record = SessionRecord::default();
    decide_action(&mut record, &monitor_input(86, 0, true), &Settings::default());
    let orphaned = MonitorInput { is_claim_old_or_process_dead: true, pid: 2, ..monitor_input(86, 0, true) };
    assert!(matches!(
        decide_action(&mut record, &orphaned, &Settings::default()),
        MonitorAction::Checkpoint { .. }
    ));
    assert_eq!(record.checkpoint_progress.open_claim.unwrap().pid, 2);
}

#[test]
fn an_unknown_window_means_no_level_and_no_action() {
    let mut record = SessionRecord::default();
    let mut unknown = monitor_input(97, 0, true);
    unknown.thresholds = None;
    assert_eq!(decide_action(&mut record, &unknown, &Settings::default()), MonitorAction::Nothing);
    assert_eq!(record, SessionRecord::default());
}

fn commit_at_percent(percent: u64) -> Commit {
    Commit { commit_id: percent.to_string(), used_tokens: Some(percent * WINDOW / 100) }
}

/// Returns the actions at commits with these percentages, and at 86% after them.
fn actions_at_commits(percents: &[u64], item_is_open: bool) -> Vec<MonitorAction> {
    let mut record = SessionRecord::default();
    let mut decide = |percent: u64, has_commit: bool| {
        let input = MonitorInput {
            new_commit: has_commit.then(|| commit_at_percent(percent)),
            is_current_item_open: item_is_open,
            ..monitor_input(percent, 0, true)
        };
        decide_action(&mut record, &input, &Settings::default())
    };
    let mut actions: Vec<MonitorAction> = percents.iter().map(|percent| decide(*percent, true)).collect();
    actions.push(decide(86, false));
    actions.into_iter().filter(|action| *action != MonitorAction::Nothing).collect()
}

#[test]
fn a_session_stops_once_at_a_commit_if_the_next_step_does_not_fit() {
    // There is room up to 84.5%; from there on 85% is shown.
    let shortage =
        |step: u64| NextStepTooLarge { typical_step_tokens: step * 10_000, tokens_below_l2: 125_000 };
    let warning = MonitorAction::Warn { level: Level::L1, percent: 72, writes_handoff: false };
    let l2 = MonitorAction::Checkpoint { level: Level::L2, percent: 86, ends_session: false };
    let stop_at_commit = |percent, shortage| MonitorAction::StopAtCommit { percent, next_step: shortage };
    for (percents, item_is_open, expected) in [
        (&[30, 52, 72][..], true, vec![stop_at_commit(72, shortage(22)), l2.clone()]),
        (&[30, 52, 72, 80], true, vec![stop_at_commit(72, shortage(22)), l2.clone()]),
        // No stop: the item is done, there is room, L1 is not reached, or one commit is seen twice.
        (&[30, 52, 72], false, vec![warning.clone(), l2.clone()]),
        (&[60, 66, 72], true, vec![warning.clone(), l2.clone()]),
        (&[10, 40, 69], true, vec![l2.clone()]),
        (&[40, 72, 72, 72], true, vec![warning, l2.clone()]),
        (&[30, 58, 86], true, vec![l2]),
    ] {
        assert_eq!(actions_at_commits(percents, item_is_open), expected, "{percents:?}");
    }
}

#[test]
fn an_unknown_commit_restarts_and_after_l2_steps_are_not_checked() {
    let mut record = SessionRecord::default();
    let mut decide = |percent: u64, added: u64, new_commit: Commit| {
        let input = MonitorInput {
            new_commit: Some(new_commit),
            is_current_item_open: true,
            ..monitor_input(percent, added, true)
        };
        decide_action(&mut record, &input, &Settings::default())
    };
    let unknown = Commit { commit_id: "old".to_owned(), used_tokens: None };
    let actions = [
        (30, commit_at_percent(30)),
        (52, unknown),
        (72, commit_at_percent(72)),
        (73, commit_at_percent(73)),
    ]
    .map(|(percent, commit)| decide(percent, 0, commit));
    assert!(
        actions.iter().all(|action| !matches!(action, MonitorAction::StopAtCommit { .. })),
        "{actions:?}"
    );
    let l2 = decide(74, 12, commit_at_percent(74));
    assert!(matches!(l2, MonitorAction::Checkpoint { level: Level::L2, .. }), "{l2:?}");
    assert_eq!(decide(84, 0, commit_at_percent(84)), MonitorAction::Nothing, "its estimate was too high");
}

#[test]
fn a_stop_request_lost_with_a_dead_hook_is_repeated_at_the_next_commit() {
    let mut record = SessionRecord::default();
    let mut decide = |percent: u64, has_commit: bool, claim_is_orphaned: bool| {
        let new_commit = has_commit.then(|| commit_at_percent(percent));
        let input = MonitorInput {
            new_commit,
            is_current_item_open: true,
            is_claim_old_or_process_dead: claim_is_orphaned,
            ..monitor_input(percent, 0, true)
        };
        decide_action(&mut record, &input, &Settings::default())
    };
    let is_stop_at_commit = |action: &MonitorAction| matches!(action, MonitorAction::StopAtCommit { .. });
    let actions =
        [(30, true, false), (52, true, false), (72, true, false), (73, false, true), (74, true, false)]
            .map(|(percent, committed, orphaned)| decide(percent, committed, orphaned));
    assert_eq!(
        actions.iter().map(is_stop_at_commit).collect::<Vec<_>>(),
        [false, false, true, false, true],
        "{actions:?}"
    );
    assert_eq!(record.checkpoint_progress.open_claim.map(|claim| claim.level), Some(Level::L1));
}

#[test]
fn the_monitor_waits_for_the_transcript_only_near_a_level() {
    let thresholds = monitor_input(0, 0, true).thresholds.unwrap();
    let should_wait =
        |percent: u64, announced| should_wait_for_transcript(percent * WINDOW / 100, &thresholds, announced);
    assert!(!should_wait(20, Level::L0));
    assert!(should_wait(60, Level::L0));
    assert!(should_wait(72, Level::L1));
    assert!(should_wait(86, Level::L2));
    assert!(!should_wait(60, Level::L1));
}

#[test]
fn the_largest_step_is_the_largest_increase_between_two_readings() {
    let mut record = SessionRecord::default();
    let mut after = |percent, added| {
        decide_action(&mut record, &monitor_input(percent, added, true), &Settings::default());
        record.usage.largest_step
    };
    // The initial usage is not a step. A compaction is not a step either, and does not lower the maximum.
    let steps =
        [(30, 0), (31, 0), (31, 3), (36, 0), (12, 0), (14, 0)].map(|(percent, added)| after(percent, added));
    assert_eq!(steps, [0, 10_000, 30_000, 30_000, 30_000, 30_000]);
}
