//! Runs rounds of merging, each in its own thread.

use super::abort_flag::AbortFlag;
use crate::workers::context::ParallelRun;
use crate::workers::error::MergeError;
use crate::workers::merger::Merger;
use plimsoll_domain::journal::JournalEvent;
use std::sync::mpsc::Sender;
use std::thread::{Scope, ScopedJoinHandle};

/// The round of merging that is running, if any.
#[derive(Default)]
pub(super) struct MergeRounds<'scope> {
    current_round: Option<ScopedJoinHandle<'scope, Result<(), MergeError>>>,
    /// True if this process cannot merge anything anymore.
    is_merging_impossible: bool,
}

/// The result of a round of merging.
pub(super) enum MergeRoundOutcome {
    /// The round has ended, or another round will continue its work.
    Finished,
    /// This process cannot merge anything anymore, for this reason.
    Failed(String),
}

impl<'scope> MergeRounds<'scope> {
    pub(super) fn is_running(&self) -> bool {
        self.current_round.is_some()
    }

    pub(super) fn is_merging_impossible(&self) -> bool {
        self.is_merging_impossible
    }

    /// Starts a round in a new thread.
    pub(super) fn spawn_merge_round<'env: 'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        parallel_run: ParallelRun<'env>,
        abort_flag: &AbortFlag,
        event_sender: Sender<JournalEvent>,
        include_waiting_items: bool,
    ) {
        let should_abort = abort_flag.second_interrupt_check();
        self.current_round = Some(scope.spawn(move || {
            Merger::new(parallel_run, &should_abort, event_sender, include_waiting_items)
                .run_merge_round_if_lease_acquired()
        }));
    }

    /// Returns the result of the round once its thread has finished.
    pub(super) fn join_finished_round(&mut self, is_abort_expected: bool) -> Option<MergeRoundOutcome> {
        if !self.current_round.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
            return None;
        }
        let error = match self.current_round.take()?.join() {
            Ok(Ok(())) => return Some(MergeRoundOutcome::Finished),
            Ok(Err(MergeError::Aborted)) if is_abort_expected => {
                self.is_merging_impossible = true;
                return Some(MergeRoundOutcome::Finished);
            }
            Ok(Err(error)) if error.is_transient() => return Some(MergeRoundOutcome::Finished),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the merger has failed".to_owned(),
        };
        self.is_merging_impossible = true;
        Some(MergeRoundOutcome::Failed(error))
    }
}
