//! The monitor's decision, after each batch of tools.

#[cfg(test)]
mod tests;

use crate::step::{TooSmall, too_small};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::reading::UsedSource;
use plimsoll_domain::record::{CheckpointProgress, Claim, UsageSeen};
use plimsoll_domain::settings::Settings;
use plimsoll_domain::{Reading, SessionRecord, Timestamp};

/// What the monitor sees.
#[derive(Debug, Clone)]
pub struct MonitorInput {
    /// The reading.
    pub reading: Reading,
    /// Where the levels begin; none while the window is unknown.
    pub thresholds: Option<Thresholds>,
    /// True after a whole batch of tools; false after each tool, on clients that know no batches.
    pub is_batch: bool,
    /// True when the session belongs to a run that is in progress.
    pub in_run: bool,
    /// Where HEAD has moved since the last commit that was noted.
    pub committed: Option<Commit>,
    /// True when the current item is still open after it.
    pub item_is_open: bool,
    /// True when the record holds a claim whose process is gone.
    pub claim_is_orphaned: bool,
    /// Who we are, for a claim.
    pub pid: u32,
    /// Now, for a claim.
    pub now: Timestamp,
}

/// A commit of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub head: String,
    /// The fill in tokens, if this batch has made it; none if it is older, or that is not known.
    pub fill: Option<u64>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Say nothing.
    Nothing,
    /// Announce a level: advice, and in a session without a run (from L2 on) a handoff that is ready.
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
pub fn monitor(record: &mut SessionRecord, sight: &MonitorInput, settings: &Settings) -> Action {
    let Some((thresholds, percent)) = sight.thresholds.as_ref().zip(sight.reading.percent()) else {
        return Action::Nothing;
    };
    note_reading(&mut record.usage, &sight.reading, percent);
    let before = record.announced.level;
    let action = decide(record, sight, thresholds, settings, percent);
    if record.announced.level > before {
        record.announced.percent = Some(percent);
    }
    action
}

fn decide(
    record: &mut SessionRecord,
    sight: &MonitorInput,
    thresholds: &Thresholds,
    settings: &Settings,
    percent: u64,
) -> Action {
    let level = thresholds.level(sight.reading.projected());
    // A figure that the user set by hand warns and checkpoints like an estimate.
    let by_hand = sight.reading.source == UsedSource::Environment;
    let certain = if by_hand { Level::L0 } else { thresholds.level(sight.reading.measured()) };
    if !sight.in_run {
        return advise(record, sight, level, percent);
    }
    let room = sight.committed.as_ref().and_then(|commit| step(record, commit, sight, thresholds));
    // Before L2: one batch may jump over it, and then this one checkpoint serves both.
    if certain == Level::L3 {
        return emergency(record, sight, percent);
    }
    if level >= Level::L2 && record.announced.level < Level::L2 {
        record.announced.level = Level::L2;
        record.checkpoint.tokens = sight.reading.measured();
        record.checkpoint.batches_since = 0;
        // The session goes on, so L2 is announced; the checkpoint names the highest threshold that its percent has reached.
        record.checkpoint.claim = Some(claim(sight, level, percent));
        return Action::Checkpoint { level, percent, ends: false };
    }
    // After L2's own words (on an estimate that was too high) nothing else is asked for.
    if level == Level::L1
        && record.announced.level < Level::L2
        && let Some(why) = room
    {
        record.announced.level = Level::L1;
        record.commits.told = true;
        record.checkpoint.claim = Some(claim(sight, level, percent));
        return Action::StopHere { percent, why };
    }
    let orphaned = record.checkpoint.claim.as_ref().filter(|_| sight.claim_is_orphaned);
    let orphaned = orphaned.map(|claim| claim.level);
    if orphaned == Some(Level::L1) {
        // To stop at that commit was better, not needed: the next one asks again, and the warning comes now.
        record.checkpoint.claim = None;
        record.commits.told = false;
        record.announced.level = Level::L0;
    } else if orphaned.is_some() {
        let level = level.max(Level::L2);
        record.checkpoint.claim = Some(claim(sight, level, percent));
        return Action::Checkpoint { level, percent, ends: false };
    }
    if record.announced.level >= Level::L2 && certain >= Level::L2 {
        return wrap_up(record, sight, thresholds, settings, percent);
    }
    if level == Level::L1 && record.announced.level < Level::L1 {
        record.announced.level = Level::L1;
        return Action::Warn { level, percent, handoff: false };
    }
    Action::Nothing
}

/// A step is committed; is there room for the next one? Asked once, and not where the item is done with it.
fn step(
    record: &mut SessionRecord,
    commit: &Commit,
    sight: &MonitorInput,
    thresholds: &Thresholds,
) -> Option<TooSmall> {
    let is_new = record.commits.note(&commit.head, commit.fill);
    let may_ask = is_new && commit.fill.is_some() && sight.item_is_open && !record.commits.told;
    if may_ask { too_small(&record.commits.fills, thresholds.l2) } else { None }
}

fn note_reading(usage: &mut UsageSeen, reading: &Reading, percent: u64) {
    let new_figure = usage.percent != Some(percent);
    let new_window = usage.reading.as_ref().map(|old| &old.window) != Some(&reading.window);
    // The cheapest write is none: tokens that do not move the whole percent are not worth one.
    if new_figure || new_window {
        let before = usage.reading.as_ref().map(Reading::projected);
        let step = before.map_or(0, |before| reading.projected().saturating_sub(before));
        usage.largest_step = usage.largest_step.max(step);
        usage.reading = Some(reading.clone());
        usage.percent = Some(percent);
        usage.percent_used = reading.percent_used();
    }
    usage.peak_percent = usage.peak_percent.max(percent);
}

/// A session outside a run belongs to the user: each level is announced once, and nothing is ever ended.
/// A handoff that a killed hook has not written comes with the next event.
fn advise(record: &mut SessionRecord, sight: &MonitorInput, level: Level, percent: u64) -> Action {
    let unfinished = record.checkpoint.claim.is_some() && sight.claim_is_orphaned;
    if level <= record.announced.level && !unfinished {
        return Action::Nothing;
    }
    let first_handoff = level >= Level::L2 && record.announced.level < Level::L2;
    let level = level.max(record.announced.level);
    let handoff = unfinished || first_handoff || level == Level::L3;
    record.announced.level = level;
    if handoff {
        record.checkpoint.claim = Some(claim(sight, level, percent));
    }
    Action::Warn { level, percent, handoff }
}

fn emergency(record: &mut SessionRecord, sight: &MonitorInput, percent: u64) -> Action {
    let unfinished = record.checkpoint.claim.is_some() && sight.claim_is_orphaned;
    if record.announced.level < Level::L3 || unfinished {
        record.announced.level = Level::L3;
        record.checkpoint.claim = Some(claim(sight, Level::L3, percent));
        return Action::Checkpoint { level: Level::L3, percent, ends: true };
    }
    // The client continued all the same (a background task woke it): the checkpoint exists, so only end the session.
    Action::End { level: Level::L3, percent, reason: format!("the context is at {percent}%") }
}

/// After the checkpoint the model has a few batches, or half of what was left to L3, to finish its edit, write
/// its notes and commit.
fn wrap_up(
    record: &mut SessionRecord,
    sight: &MonitorInput,
    thresholds: &Thresholds,
    settings: &Settings,
    percent: u64,
) -> Action {
    count_batch(&mut record.checkpoint, sight);
    let left = thresholds.l3.saturating_sub(record.checkpoint.tokens);
    // Not below L2: where L2 was announced on an estimate, the count began lower.
    let half_gone =
        sight.reading.measured() >= record.checkpoint.tokens.saturating_add(left / 2).max(thresholds.l2);
    let batches = record.checkpoint.batches_since;
    let reason = if record.end.ended_by_us.is_some() {
        "the session continued after it had been ended at its checkpoint".to_owned()
    } else if batches >= settings.grace_batches {
        format!("{batches} batches of tools after the checkpoint")
    } else if half_gone {
        format!("half of the room between the checkpoint and L3 is used ({percent}%)")
    } else {
        return Action::Nothing;
    };
    Action::End { level: Level::L2, percent, reason }
}

/// Parallel tools of one message are one batch, also where the client reports each tool apart.
fn count_batch(checkpoint: &mut CheckpointProgress, sight: &MonitorInput) {
    let message = if sight.is_batch { None } else { sight.reading.message_id.clone() };
    if message.is_none() || message != checkpoint.counted_message {
        checkpoint.batches_since += 1;
    }
    checkpoint.counted_message = message;
}

fn claim(sight: &MonitorInput, level: Level, percent: u64) -> Claim {
    Claim { level, percent, pid: sight.pid, at: sight.now.clone() }
}

/// One message can add this much to the window: a few large Reads at once. In percent of the window, and at
/// least one Read in tokens.
const STEP_PERCENT: u64 = 20;
const STEP_TOKENS: u64 = 40_000;

/// Should the monitor wait for the client's transcript writer? Only where the last known figure plus a
/// generous step could reach a level that has not been announced, or L3.
pub fn is_worth_waiting(last_known: u64, thresholds: &Thresholds, announced: Level) -> bool {
    let step = (thresholds.window * STEP_PERCENT / 100).max(STEP_TOKENS);
    let next = match announced {
        Level::L0 => thresholds.l1,
        Level::L1 => thresholds.l2,
        Level::L2 | Level::L3 => thresholds.l3,
    };
    last_known.saturating_add(step) >= next
}
