//! Values that do not change while a parallel run works.

use crate::run::LaunchOptions;
use crate::run_context::RunContext;
use crate::workers::board::Board;
use crate::workers::shown_plan;
use crate::workers::target::Target;
use crate::workers::worktrees::Worktrees;
use plimsoll_domain::RunState;
use plimsoll_domain::workers::WorkersState;
use plimsoll_store::{Project, StoreError};

/// The context of a parallel run, for its scheduler and its merger.
#[derive(Clone, Copy)]
pub(super) struct ParallelRun<'env> {
    pub(super) context: RunContext<'env>,
    pub(super) launch_options: &'env LaunchOptions,
    /// The run's state when this process began.
    pub(super) initial_state: &'env RunState,
    pub(super) board: &'env dyn Board,
    pub(super) target: &'env dyn Target,
    pub(super) worktrees: &'env Worktrees,
}

impl ParallelRun<'_> {
    /// Returns a copy of this machine's record.
    pub(super) fn workers_state(&self) -> WorkersState {
        self.board.workers_file().workers_state()
    }

    /// Changes the record of this machine. If the record cannot be written, the change is dropped.
    pub(super) fn update_workers_state<T>(
        &self,
        update: impl FnOnce(&mut WorkersState) -> T,
    ) -> Result<T, StoreError> {
        self.board.workers_file().update_and_write_file(update)
    }

    /// Returns the project in the worktree of an item.
    pub(super) fn item_project(&self, item: usize) -> Project {
        self.worktrees.project_in(&self.worktrees.item_worktree(item))
    }

    /// Writes the merged items, the open questions and the usage to the shown plan and the state.
    pub(super) fn update_shown_plan_and_state(&self) -> Result<(), StoreError> {
        shown_plan::write_board_to_shown_plan_and_state(
            self.context.project,
            self.initial_state,
            self.board.workers_file(),
        )
    }

    /// Returns the number of workers, at least 1.
    pub(super) fn worker_count(&self) -> usize {
        self.initial_state.options.workers.as_ref().map_or(1, |workers| workers.worker_count.max(1))
    }
}
