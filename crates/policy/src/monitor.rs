//! Decides what the monitor does after each batch of tools.

#[cfg(test)]
mod tests;

use crate::step::{NextStepTooLarge, predict_step_reaching_l2_by_median};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::reading::UsageSource;
use plimsoll_domain::record::{CheckpointClaim, CheckpointProgress, LastUsage};
use plimsoll_domain::settings::Settings;
use plimsoll_domain::{SessionRecord, Timestamp, UsageReading};

/// The input of the monitor's decision.
#[derive(Debug, Clone)]
pub struct MonitorInput {
    pub reading: UsageReading,
    /// The token counts at which the levels begin; `None` while the window is unknown.
    pub thresholds: Option<Thresholds>,
    /// True after a whole batch of tools; false after each tool, on clients that do not report batches.
    pub is_batch: bool,
    /// True if the session belongs to a run that is in progress.
    pub is_in_run: bool,
    /// The present commit, if HEAD has moved since the last recorded commit.
    pub new_commit: Option<Commit>,
    /// True if the current item is still open after that commit.
    pub is_current_item_open: bool,
    /// True if the record has a claim that is too old or whose process has ended.
    pub is_claim_old_or_process_dead: bool,
    /// Id of this process, for a claim.
    pub pid: u32,
    /// The current time, for a claim.
    pub now: Timestamp,
}

/// A commit of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub commit_id: String,
    /// Tokens in the window at the commit, if this batch has made it; `None` if the commit is older, or if that is
    /// unknown.
    pub used_tokens: Option<u64>,
}

/// The decision of the monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorAction {
    Nothing,
    /// Announce a level: advice, and a handoff from L2 on in a session without a run.
    Warn {
        level: Level,
        /// The deciding figure, in whole percent.
        percent: u64,
        /// True if a handoff must be written.
        writes_handoff: bool,
    },
    /// Write state and handoff; then ask the model to wrap up, or end the session.
    Checkpoint {
        level: Level,
        /// The deciding figure, in whole percent.
        percent: u64,
        /// True if the session ends with this checkpoint.
        ends_session: bool,
    },
    /// Write state and handoff, and ask the model to stop here, at its commit.
    StopAtCommit {
        /// The deciding figure, in whole percent.
        percent: u64,
        /// The reason why the next step may not fit.
        next_step: NextStepTooLarge,
    },
    /// End the session: its checkpoint is written, and the model has continued for too long.
    EndSession {
        level: Level,
        /// The deciding figure, in whole percent.
        percent: u64,
        reason: String,
    },
}

/// Decides what to do and records the decision, so that under the session's lock each level is announced once. An
/// estimate can warn and checkpoint; only a measured figure ends a session.
pub fn decide_action(record: &mut SessionRecord, input: &MonitorInput, settings: &Settings) -> MonitorAction {
    let Some((thresholds, percent)) = input.thresholds.as_ref().zip(input.reading.projected_percent()) else {
        return MonitorAction::Nothing;
    };
    record_reading(&mut record.usage, &input.reading, percent);
    let previous_level = record.highest_announcement.level;
    let action = decide_for_percent(record, input, thresholds, settings, percent);
    if record.highest_announcement.level > previous_level {
        record.highest_announcement.projected_percent = Some(percent);
    }
    action
}

fn decide_for_percent(
    record: &mut SessionRecord,
    input: &MonitorInput,
    thresholds: &Thresholds,
    settings: &Settings,
    percent: u64,
) -> MonitorAction {
    let level = thresholds.level_at(input.reading.projected_tokens());
    // A figure that the user set by hand warns and checkpoints like an estimate.
    let is_set_by_user = input.reading.usage_source == UsageSource::Environment;
    let measured_level =
        if is_set_by_user { Level::L0 } else { thresholds.level_at(input.reading.measured_tokens()) };
    if !input.is_in_run {
        return warn_outside_run(record, input, level, percent);
    }
    let step_shortage = input
        .new_commit
        .as_ref()
        .and_then(|commit| record_commit_and_check_next_step(record, commit, input, thresholds));
    // L3 is checked before L2: one batch may pass both, and then a single checkpoint serves both.
    if measured_level == Level::L3 {
        return checkpoint_and_end_at_l3(record, input, percent);
    }
    if level >= Level::L2 && record.highest_announcement.level < Level::L2 {
        record.highest_announcement.level = Level::L2;
        record.checkpoint_progress.announced_at_tokens = input.reading.measured_tokens();
        record.checkpoint_progress.tool_batches_since = 0;
        // The session continues, so L2 is announced; the checkpoint names the highest threshold that its percent has
        // reached.
        record.checkpoint_progress.open_claim = Some(new_claim(input, level, percent));
        return MonitorAction::Checkpoint { level, percent, ends_session: false };
    }
    // After the message of L2 (on an estimate that was too high) nothing else is asked for.
    if level == Level::L1
        && record.highest_announcement.level < Level::L2
        && let Some(reason) = step_shortage
    {
        record.highest_announcement.level = Level::L1;
        record.own_commits.was_asked_to_end = true;
        record.checkpoint_progress.open_claim = Some(new_claim(input, level, percent));
        return MonitorAction::StopAtCommit { percent, next_step: reason };
    }
    let orphaned_claim =
        record.checkpoint_progress.open_claim.as_ref().filter(|_| input.is_claim_old_or_process_dead);
    let orphaned_level = orphaned_claim.map(|claim| claim.level);
    if orphaned_level == Some(Level::L1) {
        // Stopping at that commit was better, but not necessary: the next commit is checked again, and the warning
        // comes now.
        record.checkpoint_progress.open_claim = None;
        record.own_commits.was_asked_to_end = false;
        record.highest_announcement.level = Level::L0;
    } else if orphaned_level.is_some() {
        let level = level.max(Level::L2);
        record.checkpoint_progress.open_claim = Some(new_claim(input, level, percent));
        return MonitorAction::Checkpoint { level, percent, ends_session: false };
    }
    if record.highest_announcement.level >= Level::L2 && measured_level >= Level::L2 {
        return end_after_grace_period(record, input, thresholds, settings, percent);
    }
    if level == Level::L1 && record.highest_announcement.level < Level::L1 {
        record.highest_announcement.level = Level::L1;
        return MonitorAction::Warn { level, percent, writes_handoff: false };
    }
    MonitorAction::Nothing
}

/// Records a commit, and returns the shortage if the next step does not fit below L2. This is checked until the model
/// was asked to stop once, and not if the commit completes the item.
fn record_commit_and_check_next_step(
    record: &mut SessionRecord,
    commit: &Commit,
    input: &MonitorInput,
    thresholds: &Thresholds,
) -> Option<NextStepTooLarge> {
    let is_new = record.own_commits.record_commit_if_new(&commit.commit_id, commit.used_tokens);
    let should_check = is_new
        && commit.used_tokens.is_some()
        && input.is_current_item_open
        && !record.own_commits.was_asked_to_end;
    if should_check {
        predict_step_reaching_l2_by_median(&record.own_commits.usage_samples, thresholds.l2)
    } else {
        None
    }
}

fn record_reading(usage: &mut LastUsage, reading: &UsageReading, percent: u64) {
    let has_new_percent = usage.projected_percent != Some(percent);
    let has_new_window = usage.last_reading.as_ref().map(|old| &old.window) != Some(&reading.window);
    // Only a change of the whole percent or of the window is worth a write.
    if has_new_percent || has_new_window {
        let previous_tokens = usage.last_reading.as_ref().map(UsageReading::projected_tokens);
        let step = previous_tokens
            .map_or(0, |previous_tokens| reading.projected_tokens().saturating_sub(previous_tokens));
        usage.largest_step = usage.largest_step.max(step);
        usage.last_reading = Some(reading.clone());
        usage.projected_percent = Some(percent);
        usage.percent_used_by_client = reading.percent_shown_by_client();
    }
    usage.peak_projected_percent = usage.peak_projected_percent.max(percent);
}

/// Decides for a session outside a run. It belongs to the user: each level is announced once, and the session is
/// never ended. A handoff that a killed hook has not written is written at the next event.
fn warn_outside_run(
    record: &mut SessionRecord,
    input: &MonitorInput,
    level: Level,
    percent: u64,
) -> MonitorAction {
    let has_orphaned_claim =
        record.checkpoint_progress.open_claim.is_some() && input.is_claim_old_or_process_dead;
    if level <= record.highest_announcement.level && !has_orphaned_claim {
        return MonitorAction::Nothing;
    }
    let is_first_handoff = level >= Level::L2 && record.highest_announcement.level < Level::L2;
    let level = level.max(record.highest_announcement.level);
    let writes_handoff = has_orphaned_claim || is_first_handoff || level == Level::L3;
    record.highest_announcement.level = level;
    if writes_handoff {
        record.checkpoint_progress.open_claim = Some(new_claim(input, level, percent));
    }
    MonitorAction::Warn { level, percent, writes_handoff }
}

fn checkpoint_and_end_at_l3(record: &mut SessionRecord, input: &MonitorInput, percent: u64) -> MonitorAction {
    let has_orphaned_claim =
        record.checkpoint_progress.open_claim.is_some() && input.is_claim_old_or_process_dead;
    if record.highest_announcement.level < Level::L3 || has_orphaned_claim {
        record.highest_announcement.level = Level::L3;
        record.checkpoint_progress.open_claim = Some(new_claim(input, Level::L3, percent));
        return MonitorAction::Checkpoint { level: Level::L3, percent, ends_session: true };
    }
    // The client continued all the same (a background task woke it). The checkpoint exists, so only end the session.
    MonitorAction::EndSession { level: Level::L3, percent, reason: format!("the context is at {percent}%") }
}

/// Ends a session that continues for too long after its checkpoint. The model has a few batches, or half of the
/// tokens that were left to L3, to finish its edit, write its notes and commit.
fn end_after_grace_period(
    record: &mut SessionRecord,
    input: &MonitorInput,
    thresholds: &Thresholds,
    settings: &Settings,
    percent: u64,
) -> MonitorAction {
    count_batch(&mut record.checkpoint_progress, input);
    let tokens_to_l3 = thresholds.l3.saturating_sub(record.checkpoint_progress.announced_at_tokens);
    // Not below L2: if L2 was announced on an estimate, the count began at a lower figure.
    let is_half_used = input.reading.measured_tokens()
        >= record.checkpoint_progress.announced_at_tokens.saturating_add(tokens_to_l3 / 2).max(thresholds.l2);
    let batch_count = record.checkpoint_progress.tool_batches_since;
    let reason = if record.end.hook_end_reason.is_some() {
        "the session continued after it had been ended at its checkpoint".to_owned()
    } else if batch_count >= settings.grace_batches {
        format!("{batch_count} batches of tools after the checkpoint")
    } else if is_half_used {
        format!("half of the room between the checkpoint and L3 is used ({percent}%)")
    } else {
        return MonitorAction::Nothing;
    };
    MonitorAction::EndSession { level: Level::L2, percent, reason }
}

/// Counts a batch. Parallel tools of one message are one batch, even if the client reports each tool separately.
fn count_batch(checkpoint: &mut CheckpointProgress, input: &MonitorInput) {
    let message_id = if input.is_batch { None } else { input.reading.message_id.clone() };
    if message_id.is_none() || message_id != checkpoint.counted_message {
        checkpoint.tool_batches_since += 1;
    }
    checkpoint.counted_message = message_id;
}

fn new_claim(input: &MonitorInput, level: Level, percent: u64) -> CheckpointClaim {
    CheckpointClaim { level, percent, pid: input.pid, claimed_at: input.now.clone() }
}

/// A large step: the tokens that one message can add to the window, such as a few large Reads at once. It is a
/// percentage of the window, and at least the tokens of one Read.
const LARGE_STEP_PERCENT: u64 = 20;
const LARGE_STEP_TOKENS: u64 = 40_000;

/// Returns true if the monitor should wait for the client to write its transcript: if the last known figure plus a
/// large step could reach a level that has not been announced, or L3.
pub fn should_wait_for_transcript(
    last_known_tokens: u64,
    thresholds: &Thresholds,
    announced_level: Level,
) -> bool {
    let step = (thresholds.window * LARGE_STEP_PERCENT / 100).max(LARGE_STEP_TOKENS);
    let next_threshold = match announced_level {
        Level::L0 => thresholds.l1,
        Level::L1 => thresholds.l2,
        Level::L2 | Level::L3 => thresholds.l3,
    };
    last_known_tokens.saturating_add(step) >= next_threshold
}
