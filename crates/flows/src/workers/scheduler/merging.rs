//! Rounds of merging, each in a thread of its own.

use super::stop::Stop;
use crate::workers::context::ParallelRun;
use crate::workers::error::MergeError;
use crate::workers::merger::Merger;
use plimsoll_domain::journal::JournalEvent;
use std::sync::mpsc::Sender;
use std::thread::{Scope, ScopedJoinHandle};

/// The round of merging that is at work, if any.
#[derive(Default)]
pub(super) struct Merging<'scope> {
    round: Option<ScopedJoinHandle<'scope, Result<(), MergeError>>>,
    /// True once nothing can be merged in this process any more.
    is_over: bool,
}

/// What a round of merging came to.
pub(super) enum RoundEnd {
    /// It is over, or another one goes on with it.
    Over,
    /// Nothing can be merged any more, for this reason.
    Failed(String),
}

impl<'scope> Merging<'scope> {
    pub(super) fn is_running(&self) -> bool {
        self.round.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Begins a round.
    pub(super) fn start_round<'env: 'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        run: ParallelRun<'env>,
        stop: &Stop,
        news: Sender<JournalEvent>,
        takes_all: bool,
    ) {
        let give_up = stop.give_up();
        self.round = Some(scope.spawn(move || Merger::new(run, &give_up, news, takes_all).merge()));
    }

    /// Takes up what a round has left, once it is over.
    pub(super) fn take_finished_round(&mut self, is_closing: bool) -> Option<RoundEnd> {
        if !self.round.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
            return None;
        }
        let why = match self.round.take()?.join() {
            Ok(Ok(())) => return Some(RoundEnd::Over),
            Ok(Err(MergeError::GivenUp)) if is_closing => {
                self.is_over = true;
                return Some(RoundEnd::Over);
            }
            Ok(Err(error)) if error.may_pass() => return Some(RoundEnd::Over),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the merger has failed".to_owned(),
        };
        self.is_over = true;
        Some(RoundEnd::Failed(why))
    }
}
