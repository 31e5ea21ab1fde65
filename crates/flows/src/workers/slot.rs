//! A worker and its item: the worktree is being prepared, the item's run is running, or it waits.

use crate::run::Interrupt;
use crate::workers::worktrees::WorktreeSetupError;
use plimsoll_domain::ProcessExit;
use plimsoll_launcher::client::LaunchedClient;
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::workers::Claim;
use std::thread::ScopedJoinHandle;

/// The current step of a worker.
pub(super) enum SlotStage<'scope> {
    /// Its worktree is being prepared.
    Preparing(ScopedJoinHandle<'scope, Result<(), WorktreeSetupError>>),
    /// The item's run is running.
    Running(LaunchedClient),
    /// The item's run is not running, and is started once a pause is over or money is available.
    Waiting,
}

/// A worker with a claimed item.
pub(super) struct Slot<'scope> {
    /// The worker's number, from 1.
    pub(super) worker_number: usize,
    pub(super) claim: Claim,
    pub(super) stage: SlotStage<'scope>,
    /// The strongest request to end that the item's run has received.
    pub(super) requested_interrupt: Option<Interrupt>,
}

impl Slot<'_> {
    /// Returns how the item's run ended, or `None` if it has not ended.
    pub(super) fn take_exit_if_ended(&mut self) -> Option<ProcessExit> {
        match &mut self.stage {
            SlotStage::Running(client) => client.exit_if_ended(),
            SlotStage::Preparing(_) | SlotStage::Waiting => None,
        }
    }

    /// Requests that the item's run ends, as Ctrl-C does. Ignored if a request of at least this strength was
    /// sent.
    pub(super) fn request_end_if_stronger(&mut self, interrupt: Interrupt) {
        let SlotStage::Running(client) = &self.stage else { return };
        if self.requested_interrupt >= Some(interrupt) {
            return;
        }
        if let Some(process_identity) = client.identity() {
            process::request_end(process_identity, interrupt > Interrupt::AfterSession);
        }
        self.requested_interrupt = Some(interrupt);
    }

    /// Returns true if the item's run is not running, and its worktree is ready.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, SlotStage::Waiting)
    }

    /// Returns the process of the item's run while it is running.
    pub(super) fn running_process(&self) -> Option<ProcessIdentity> {
        match &self.stage {
            SlotStage::Running(client) => client.identity(),
            SlotStage::Preparing(_) | SlotStage::Waiting => None,
        }
    }
}
