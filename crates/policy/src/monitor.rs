//! The monitor's decision, after each batch of tools.

use crate::step::{TooSmall, too_small};
use session::level::{Level, Marks};
use session::reading::UsedSource;
use session::record::Claim;
use session::settings::Settings;
use session::{Reading, SessionRecord};

/// What the monitor sees.
#[derive(Debug, Clone)]
pub struct Sight {
    /// The reading.
    pub reading: Reading,
    /// Where the levels begin; none while the window is unknown.
    pub marks: Option<Marks>,
    /// True after a whole batch of tools; false after each tool, on clients that know no batches.
    pub is_batch: bool,
    /// True when the session belongs to a run that is going on.
    pub in_run: bool,
    /// Where HEAD has moved since the last commit that was noted.
    pub committed: Option<Commit>,
    /// True when the item in hand is still open after it.
    pub item_is_open: bool,
    /// True when the record holds a claim whose process is gone.
    pub claim_is_orphaned: bool,
    /// Who we are, for a claim.
    pub pid: u32,
    /// Now, for a claim.
    pub now: String,
}

/// A commit of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub head: String,
    /// The fill in tokens, if this batch has made it; none where it is older, or that is not known.
    pub fill: Option<u64>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Say nothing.
    Nothing,
    /// Tell of a level: advice, and in a session without a run (from L2 on) a handoff that is ready.
    Warn {
        /// The level.
        level: Level,
        /// The deciding figure, whole percent.
        percent: u64,
        /// True when a handoff is to be written.
        handoff: bool,
    },
    /// Write state and handoff; then ask the model to wrap up, or end the session.
    Checkpoint {
        /// The level.
        level: Level,
        /// The deciding figure, whole percent.
        percent: u64,
        /// True when the session ends with it.
        ends: bool,
    },
    /// Write state and handoff, and ask the model to end here, at its commit.
    StopHere {
        /// The deciding figure, whole percent.
        percent: u64,
        /// Why.
        why: TooSmall,
    },
    /// The checkpoint is written; the model has gone on too long.
    End {
        /// The level.
        level: Level,
        /// The deciding figure, whole percent.
        percent: u64,
        /// Why.
        reason: String,
    },
}

/// Decides, and notes in the record what has been decided: under the session's lock each level is announced
/// once. An estimate may warn and checkpoint; only what was measured ends a session.
pub fn monitor(record: &mut SessionRecord, sight: &Sight, settings: &Settings) -> Action {
    let Some((marks, percent)) = sight.marks.as_ref().zip(sight.reading.percent()) else {
        return Action::Nothing;
    };
    note_reading(record, &sight.reading, percent);
    let level = marks.level(sight.reading.projected());
    // A figure that the user set by hand warns and checkpoints like an estimate.
    let by_hand = sight.reading.source == UsedSource::Environment;
    let certain = if by_hand { Level::L0 } else { marks.level(sight.reading.measured()) };
    if !sight.in_run {
        return advise(record, sight, level, percent);
    }
    let room = sight.committed.as_ref().and_then(|commit| step(record, commit, sight, marks));
    if certain == Level::L3 {
        return emergency(record, sight, percent);
    }
    if level >= Level::L2 && record.announced < Level::L2 {
        record.announced = Level::L2;
        record.checkpoint_tokens = sight.reading.measured();
        record.batches_since_checkpoint = 0;
        record.claim = Some(claim(sight, Level::L2, percent));
        return Action::Checkpoint { level: Level::L2, percent, ends: false };
    }
    // After L2's own words (on an estimate that was too high) nothing else is asked for.
    if let Some(why) = room.filter(|_| level == Level::L1 && record.announced < Level::L2) {
        record.announced = Level::L1;
        record.commits.told = true;
        record.claim = Some(claim(sight, level, percent));
        return Action::StopHere { percent, why };
    }
    let orphaned = record.claim.as_ref().filter(|_| sight.claim_is_orphaned).map(|claim| claim.level);
    if orphaned == Some(Level::L1) {
        // To stop at that commit was better, not needed: the next one asks again, and the warning comes now.
        record.claim = None;
        record.commits.told = false;
        record.announced = Level::L0;
    } else if orphaned.is_some() {
        record.claim = Some(claim(sight, Level::L2, percent));
        return Action::Checkpoint { level: Level::L2, percent, ends: false };
    }
    if record.announced >= Level::L2 && certain >= Level::L2 {
        return wrap_up(record, sight, marks, settings, percent);
    }
    if level == Level::L1 && record.announced < Level::L1 {
        record.announced = Level::L1;
        return Action::Warn { level, percent, handoff: false };
    }
    Action::Nothing
}

/// A step is committed; is there room for the next one? Asked once, and not where the item is done with it.
fn step(record: &mut SessionRecord, commit: &Commit, sight: &Sight, marks: &Marks) -> Option<TooSmall> {
    let is_new = record.commits.note(&commit.head, commit.fill);
    let may_ask = is_new && commit.fill.is_some() && sight.item_is_open && !record.commits.told;
    too_small(&record.commits.fills, marks.l2).filter(|_| may_ask)
}

fn note_reading(record: &mut SessionRecord, reading: &Reading, percent: u64) {
    let new_figure = record.percent != Some(percent);
    let new_window = record.reading.as_ref().map(|old| &old.window) != Some(&reading.window);
    // The cheapest write is none: tokens that do not move the whole percent are not worth one.
    if new_figure || new_window {
        record.reading = Some(reading.clone());
        record.percent = Some(percent);
        record.percent_used = reading.percent_used();
    }
    record.peak_percent = record.peak_percent.max(percent);
}

/// In a session of no run people work: they are told, each level once, and nothing is ever ended.
/// A handoff that a killed hook has not written comes with the next event.
fn advise(record: &mut SessionRecord, sight: &Sight, level: Level, percent: u64) -> Action {
    let unfinished = record.claim.is_some() && sight.claim_is_orphaned;
    if level <= record.announced && !unfinished {
        return Action::Nothing;
    }
    let first_handoff = level >= Level::L2 && record.announced < Level::L2;
    let level = level.max(record.announced);
    let handoff = unfinished || first_handoff || level == Level::L3;
    record.announced = level;
    if handoff {
        record.claim = Some(claim(sight, level, percent));
    }
    Action::Warn { level, percent, handoff }
}

fn emergency(record: &mut SessionRecord, sight: &Sight, percent: u64) -> Action {
    let unfinished = record.claim.is_some() && sight.claim_is_orphaned;
    if record.announced < Level::L3 || unfinished {
        record.announced = Level::L3;
        record.claim = Some(claim(sight, Level::L3, percent));
        return Action::Checkpoint { level: Level::L3, percent, ends: true };
    }
    // The client went on all the same (a background task woke it): the checkpoint stands, so only end it.
    Action::End { level: Level::L3, percent, reason: format!("the context is at {percent}%") }
}

/// After the checkpoint the model has a few batches, or half of what was left to L3, to finish its edit, write
/// its notes and commit.
fn wrap_up(
    record: &mut SessionRecord,
    sight: &Sight,
    marks: &Marks,
    settings: &Settings,
    percent: u64,
) -> Action {
    count_batch(record, sight);
    let left = marks.l3.saturating_sub(record.checkpoint_tokens);
    let half_gone =
        sight.reading.measured() >= record.checkpoint_tokens.saturating_add(left / 2).max(marks.l2);
    let batches = record.batches_since_checkpoint;
    let reason = if record.ended_by_us.is_some() {
        "the session had been ended at its checkpoint and went on".to_owned()
    } else if batches >= settings.grace_batches {
        format!("{batches} batches of tools after the checkpoint")
    } else if half_gone {
        format!("half of the room between the checkpoint and L3 is gone ({percent}%)")
    } else {
        return Action::Nothing;
    };
    Action::End { level: Level::L2, percent, reason }
}

/// Parallel tools of one message are one batch, also where the client tells of each tool apart.
fn count_batch(record: &mut SessionRecord, sight: &Sight) {
    let message = sight.reading.message_id.clone().filter(|_| !sight.is_batch);
    if message.is_none() || message != record.counted_message {
        record.batches_since_checkpoint += 1;
    }
    record.counted_message = message;
}

fn claim(sight: &Sight, level: Level, percent: u64) -> Claim {
    Claim { level, percent, pid: sight.pid, at: sight.now.clone() }
}

/// One message can add so much to the window: a few large Reads at once. In percent of the window, and at
/// least one Read in tokens.
const STEP_PERCENT: u64 = 20;
const STEP_TOKENS: u64 = 40_000;

/// Should the monitor wait for the client's transcript writer? Only where the last known figure plus a
/// generous step could reach a level that has not been announced, or L3.
pub fn is_worth_waiting(last_known: u64, marks: &Marks, announced: Level) -> bool {
    let step = (marks.window * STEP_PERCENT / 100).max(STEP_TOKENS);
    let next = match announced {
        Level::L0 => marks.l1,
        Level::L1 => marks.l2,
        Level::L2 | Level::L3 => marks.l3,
    };
    last_known.saturating_add(step) >= next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::{Knobs, ceiling, marks};
    use session::Window;
    use session::reading::WindowSource;

    const WINDOW: u64 = 1_000_000;

    fn sight(used_percent: u64, added_percent: u64, in_run: bool) -> Sight {
        let ceiling = ceiling(WINDOW, Some("claude-opus-5-5"), &Knobs::default());
        let settings = Settings::default();
        Sight {
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
            marks: Some(marks(WINDOW, ceiling, &settings.levels, &settings.margins)),
            in_run,
            committed: None,
            item_is_open: false,
            claim_is_orphaned: false,
            pid: 1,
            now: String::new(),
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
            record.batches_since_checkpoint
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
        assert_eq!(
            actions,
            expected.map(|(level, percent, handoff)| Action::Warn { level, percent, handoff })
        );
    }

    #[test]
    fn an_estimate_checkpoints_and_never_ends() {
        let mut record = SessionRecord::default();
        let action = monitor(&mut record, &sight(60, 40, true), &Settings::default());
        assert_eq!(action, Action::Checkpoint { level: Level::L2, percent: 100, ends: false });
        let action = monitor(&mut record, &sight(97, 0, true), &Settings::default());
        assert_eq!(action, Action::Checkpoint { level: Level::L3, percent: 97, ends: true });
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
        assert_eq!(action, Action::Checkpoint { level: Level::L2, percent: 96, ends: false });
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
        let orphaned = Sight { claim_is_orphaned: true, pid: 2, ..sight(86, 0, true) };
        assert!(matches!(monitor(&mut record, &orphaned, &Settings::default()), Action::Checkpoint { .. }));
        assert_eq!(record.claim.unwrap().pid, 2);
    }

    #[test]
    fn an_unknown_window_means_no_level_and_no_action() {
        let mut record = SessionRecord::default();
        let mut unknown = sight(97, 0, true);
        unknown.marks = None;
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
            let sight = Sight {
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
        let why = |step: u64, left: u64| TooSmall { step: step * 10_000, left: left * 10_000 };
        let warned = Action::Warn { level: Level::L1, percent: 72, handoff: false };
        let l2 = Action::Checkpoint { level: Level::L2, percent: 86, ends: false };
        let here = |percent, why| Action::StopHere { percent, why };
        for (percents, item_is_open, expected) in [
            (&[30, 52, 72][..], true, vec![here(72, why(22, 13)), l2.clone()]),
            (&[30, 52, 72, 80], true, vec![here(72, why(22, 13)), l2.clone()]),
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
                Sight { committed: Some(committed), item_is_open: true, ..sight(percent, added, true) };
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
            let sight = Sight { committed, item_is_open: true, claim_is_orphaned, ..sight(percent, 0, true) };
            monitor(&mut record, &sight, &Settings::default())
        };
        let is_word = |action: &Action| matches!(action, Action::StopHere { .. });
        let said =
            [(30, true, false), (52, true, false), (72, true, false), (73, false, true), (74, true, false)]
                .map(|(percent, committed, orphaned)| decide(percent, committed, orphaned));
        assert_eq!(
            said.iter().map(is_word).collect::<Vec<_>>(),
            [false, false, true, false, true],
            "{said:?}"
        );
        assert_eq!(record.claim.map(|claim| claim.level), Some(Level::L1));
    }

    #[test]
    fn waiting_is_worth_it_only_near_a_level() {
        let marks = sight(0, 0, true).marks.unwrap();
        let worth = |percent: u64, announced| is_worth_waiting(percent * WINDOW / 100, &marks, announced);
        assert!(!worth(20, Level::L0));
        assert!(worth(60, Level::L0));
        assert!(worth(72, Level::L1));
        assert!(worth(86, Level::L2));
        assert!(!worth(60, Level::L1));
    }
}
