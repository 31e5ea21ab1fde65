//! One worker with its item: the worktree being prepared, the item's run, or a pause.

use crate::run::Interrupt;
use crate::workers::tree::TreeError;
use plimsoll_domain::Exit;
use plimsoll_launcher::client::Client;
use plimsoll_launcher::process::{self, Identity};
use plimsoll_policy::workers::Claim;
use std::thread::ScopedJoinHandle;

/// What a worker does.
pub(super) enum Stage<'scope> {
    /// Its worktree is being prepared.
    Preparing(ScopedJoinHandle<'scope, Result<(), TreeError>>),
    /// The item's run is at work.
    AtWork(Client),
    /// The item's run has ended for a while, until the plan's pause is over.
    Waiting,
}

/// A worker at an item.
pub(super) struct Slot<'scope> {
    /// From 1.
    pub(super) worker: usize,
    pub(super) claim: Claim,
    pub(super) stage: Stage<'scope>,
    /// How its run was asked to end.
    pub(super) asked: Option<Interrupt>,
}

impl Slot<'_> {
    /// How the item's run ended, once it has.
    pub(super) fn ended(&mut self) -> Option<Exit> {
        match &mut self.stage {
            Stage::AtWork(client) => client.ended(),
            Stage::Preparing(_) | Stage::Waiting => None,
        }
    }

    /// Asks the item's run to end, as Ctrl-C does.
    pub(super) fn ask_to_end(&mut self, interrupt: Interrupt) {
        let Stage::AtWork(client) = &self.stage else { return };
        if self.asked >= Some(interrupt) {
            return;
        }
        if let Some(known) = client.identity() {
            process::ask_to_end(known, interrupt > Interrupt::Once);
        }
        self.asked = Some(interrupt);
    }

    /// Returns true if the item's run is not at work, and its worktree is ready.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting)
    }

    /// The process of its run.
    pub(super) fn process(&self) -> Option<Identity> {
        match &self.stage {
            Stage::AtWork(client) => client.identity(),
            Stage::Preparing(_) | Stage::Waiting => None,
        }
    }
}
