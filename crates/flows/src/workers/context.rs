//! What stays the same while a parallel run is at work.

use crate::run::Options;
use crate::workers::board::Board;
use crate::workers::shown_plan;
use crate::workers::target::Target;
use crate::workers::tree::Trees;
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, Settings};
use plimsoll_store::{Durability, Project, StoreError, state_file};

/// A parallel run at work, for its scheduler and its merger.
#[derive(Clone, Copy)]
pub(super) struct ParallelRun<'env> {
    pub(super) project: &'env Project,
    pub(super) settings: &'env Settings,
    pub(super) options: &'env Options,
    /// The state with which this process began.
    pub(super) state: &'env RunState,
    pub(super) board: &'env dyn Board,
    pub(super) target: &'env dyn Target,
    pub(super) trees: &'env Trees,
}

impl ParallelRun<'_> {
    /// The record of this machine as it is now.
    pub(super) fn record(&self) -> Workers {
        self.board.table().now()
    }

    /// Changes the record of this machine. What could not be written has not happened.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Workers) -> T) -> Result<T, StoreError> {
        self.board.table().change(change)
    }

    /// The project in the worktree of an item.
    pub(super) fn project_of(&self, item: usize) -> Project {
        self.trees.project(&self.trees.of_item(item))
    }

    /// The state as it is now; none if the run is gone.
    pub(super) fn load_state(&self) -> Result<Option<RunState>, StoreError> {
        state_file::load(self.project, Some(&self.state.run_id))
    }

    /// Changes the state.
    pub(super) fn update_state<T>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut RunState) -> T,
    ) -> Result<Option<T>, StoreError> {
        state_file::update(self.project, Some(&self.state.run_id), durability, change)
    }

    /// Shows in plan and state what is merged, what waits for an answer, and what was used.
    pub(super) fn show(&self) -> Result<(), StoreError> {
        shown_plan::show(self.project, self.state, self.board.table())
    }

    /// How many workers there are.
    pub(super) fn worker_count(&self) -> usize {
        self.state.options.workers.as_ref().map_or(1, |workers| workers.count.max(1))
    }
}
