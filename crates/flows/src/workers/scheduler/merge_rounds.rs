//! Runs rounds of merging, each in its own thread.

use super::give_up_flag::GiveUpFlag;
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
    /// True once nothing can be merged in this process.
    is_merging_impossible: bool,
}

/// The result of a round of merging.
pub(super) enum MergeRoundEnd {
    /// The round has ended, or another round will continue its work.
    Finished,
    /// Nothing can be merged in this process, for this reason.
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
    pub(super) fn start_round<'env: 'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        parallel_run: ParallelRun<'env>,
        give_up_flag: &GiveUpFlag,
        event_sender: Sender<JournalEvent>,
        include_waiting: bool,
    ) {
        let give_up = give_up_flag.second_interrupt_check();
        self.current_round = Some(scope.spawn(move || {
            Merger::new(parallel_run, &give_up, event_sender, include_waiting).run_merge_round()
        }));
    }

    /// Returns the result of the round once its thread has finished.
    pub(super) fn take_finished_round(&mut self, is_give_up_expected: bool) -> Option<MergeRoundEnd> {
        if !self.current_round.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
            return None;
        }
        let error = match self.current_round.take()?.join() {
            Ok(Ok(())) => return Some(MergeRoundEnd::Finished),
            Ok(Err(MergeError::GivenUp)) if is_give_up_expected => {
                self.is_merging_impossible = true;
                return Some(MergeRoundEnd::Finished);
            }
            Ok(Err(error)) if error.is_transient() => return Some(MergeRoundEnd::Finished),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the merger has failed".to_owned(),
        };
        self.is_merging_impossible = true;
        Some(MergeRoundEnd::Failed(error))
    }
}
