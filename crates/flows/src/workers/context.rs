//! What stays the same while a parallel run is at work.

use crate::run::Options;
use crate::run_context::RunContext;
use crate::workers::board::Board;
use crate::workers::shown_plan;
use crate::workers::target::Target;
use crate::workers::tree::Trees;
use plimsoll_domain::RunState;
use plimsoll_domain::workers::Workers;
use plimsoll_store::{Project, StoreError};

/// A parallel run at work, for its scheduler and its merger.
#[derive(Clone, Copy)]
pub(super) struct ParallelRun<'env> {
    pub(super) context: RunContext<'env>,
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

    /// Shows in plan and state what is merged, what waits for an answer, and what was used.
    pub(super) fn show(&self) -> Result<(), StoreError> {
        shown_plan::show(self.context.project, self.state, self.board.table())
    }

    /// How many workers there are.
    pub(super) fn worker_count(&self) -> usize {
        self.state.options.workers.as_ref().map_or(1, |workers| workers.count.max(1))
    }
}
